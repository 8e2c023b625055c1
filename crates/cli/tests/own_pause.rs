//! What rdsk does after it was stopped: nothing is written before its claim was judged again, and the time is not the device's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::support::checked_run::{self, start, word};
use crate::support::stopped::{gaps_ns, stopped_for, wait_until_stopped};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::fusedisk::{Behaviour, FuseDisk};
use rdsk_testkit::{LoopDevice, Need, requires};

const MIB: u64 = 1 << 20;
/// Runs of which one has to be in the midst of a visit when it is stopped.
const ATTEMPTS: usize = 5;
const STOP: Duration = Duration::from_secs(3);

/// A disk on which nearly all of a writer's time passes in the kernel.
fn slow_disk() -> FuseDisk {
    let disk = FuseDisk::builder().capacity(8 * MIB).mount().expect("requires() found FUSE");
    disk.set_behaviour(Behaviour::single(4_000_000));
    disk
}

/// Puts other content into a file in place.
fn replace(file: &Path, byte: u8, bytes: u64) {
    let mut file = fs::File::options().write(true).open(file).unwrap();
    file.write_all(&vec![byte; usize::try_from(bytes).unwrap()]).unwrap();
    file.sync_all().unwrap();
}

/// The report of the issue: the rest of an open visit went into an image that was put there, and used, meanwhile.
#[test]
fn an_image_that_comes_into_use_during_a_stop_is_not_written() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    for engine in ["sync", "threads --iodepth 3", "aio --iodepth 3", "uring --iodepth 3"] {
        let disk = slow_disk();
        let line = format!(
            "stream {} --rw write --pattern random --bs 4k --overwrite --budget 100s --engine {engine}",
            word(disk.file())
        );
        let started = start(&line);
        started.wait_until("it writes", || disk.counts().writes > 50);
        wait_until_stopped(&started, &disk);
        replace(disk.file(), 7, 8 * MIB);
        let image = LoopDevice::builder().over(disk.file()).create().unwrap();
        disk.clear_log();
        started.signal(rdsk_testkit::cli::Signal::CONT);
        // 4 where an earlier visit had measured something.
        let answer = started.answer();
        assert!([3, 4].contains(&answer.code()), "{engine}: {}", answer.said());
        assert_eq!(answer.error_code(), "backing-file", "{engine}: {}", answer.said());
        assert!(answer.error_and_hint().0.contains(image.name()), "{engine}: {}", answer.said());
        assert_eq!(disk.counts().writes, 0, "{engine}");
        let content = fs::read(disk.file()).unwrap();
        assert!(content.iter().all(|&byte| byte == 7), "{engine}: the image was written");
        drop(image);
    }
}

/// The target is still unused, so the run goes on, and says for how long it did not run.
#[test]
fn a_stop_is_not_called_the_devices() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    for way in ["--rw read", "--rw write --overwrite"] {
        first_right(ATTEMPTS, || {
            let disk = slow_disk();
            let line = format!("scale {} {way} --streams 1 --bs 4k --budget 8s", word(disk.file()));
            let answer = stopped_for(start(&line), &disk, STOP).expect_code(0);
            let gaps_ns = gaps_ns(&answer.record);
            // Between two visits nothing is measured.
            ensure(gaps_ns >= STOP.as_nanos() / 2, || format!("{way}: gaps of {gaps_ns} ns"))?;
            let result = &answer.cells()[0]["result"];
            let longest = checked_run::contract::list(&result["stalls"]["seen"])
                .iter()
                .filter_map(|stall| stall["lasts_ns"].as_u64())
                .max();
            assert!(longest.is_none_or(|ns| u128::from(ns) < STOP.as_nanos() / 2), "{way}: {result}");
            let most = result["latency_ns"]["max"].as_u64().unwrap();
            assert!(u128::from(most) < STOP.as_nanos() / 2, "{way}: {result}");
            let codes: Vec<&str> = checked_run::contract::list(&answer.record["findings"])
                .iter()
                .filter_map(|finding| finding["code"].as_str())
                .collect();
            assert!(codes.contains(&"own-pause"), "{way}: {codes:?}");
            Ok(())
        });
    }
}

/// dd's own line has all of the time, and the answer leaves the stop out.
#[test]
fn a_stop_is_no_time_of_a_copy() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    first_right(ATTEMPTS, || {
        let disk = slow_disk();
        let line = format!("dd if={} of=/dev/null bs=4k iflag=direct count=1000", word(disk.file()));
        let answer = stopped_for(start(&line), &disk, STOP).expect_code(0);
        let gaps_ns = gaps_ns(&answer.record);
        ensure(gaps_ns >= STOP.as_nanos() / 2, || format!("gaps of {gaps_ns} ns"))?;
        let run = &answer.record["copies"][0]["runs"][0];
        let [read_ns, return_ns, close_ns] =
            ["read_ns", "to_return_ns", "to_close_ns"].map(|key| run[key].as_u64().unwrap());
        assert!(read_ns <= return_ns && return_ns <= close_ns, "{run}");
        let said = answer.said();
        let (_, time) = said.split_once(" copied, ").unwrap_or_else(|| panic!("{said}"));
        let whole: f64 = time.split(' ').next().unwrap().parse().unwrap();
        assert!(whole - close_ns as f64 / 1e9 >= STOP.as_secs_f64() / 2.0, "{said}: {run}");
        let result = &answer.cells()[0]["result"];
        assert!(u128::from(result["latency_ns"]["max"].as_u64().unwrap()) < STOP.as_nanos() / 2, "{result}");
        assert!(said.contains("rdsk itself did not run for "), "{said}");
        Ok(())
    });
}
