//! What rdsk does after it was stopped: nothing is written before its claim was judged again, and the time is not the device's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::support::checked_run::{contract, error_and_hint, rdsk, start, start_command, word};
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

/// The report of the issue: the rest of an open visit went into an image that was put there, and used, meanwhile. A write that was past the
/// look, and not yet in the kernel, when the process was stopped goes on (docs/refusals.md): that takes the busiest of machines, and never
/// several times in a row.
#[test]
fn an_image_that_comes_into_use_during_a_stop_is_not_written() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    for engine in ["sync", "threads --iodepth 3", "aio --iodepth 3", "uring --iodepth 3"] {
        first_right(ATTEMPTS, || {
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
            let writes = disk.counts().writes;
            assert!(writes <= 3, "{engine}: more than was in line at the stop: {writes} writes");
            ensure(writes == 0, || format!("{engine}: {writes} writes after the stop"))?;
            let content = fs::read(disk.file()).unwrap();
            assert!(content.iter().all(|&byte| byte == 7), "{engine}: the image was written");
            Ok(())
        });
    }
}

/// Found by a user: the time of a job had the pause in it, that of its test had not, and a page showed the half of the rate.
#[test]
fn a_stop_is_left_out_of_the_time_of_a_job_as_of_its_test() {
    if !requires(&[Need::Root, Need::Fuse]) {
        return;
    }
    let disk = slow_disk();
    let line = format!("load {} --rw randread --budget 6s --no-history", word(disk.file()));
    let answer = stopped_for(start(&line), &disk, STOP).expect_code(0);
    assert!(gaps_ns(&answer.record) >= STOP.as_nanos() / 2, "{}", answer.said());
    let result = &answer.record["cells"][0]["result"];
    let job = &result["jobs"][0];
    assert_eq!((&job["elapsed_ns"], &job["reads"]["ops"]), (&result["elapsed_ns"], &result["ops"]), "{job}");
    let windows = job["reads"]["windows"].as_array().unwrap();
    let lasts_ns: u64 = windows.iter().map(|window| window["lasts_ns"].as_u64().unwrap()).sum();
    assert_eq!(Some(lasts_ns), result["elapsed_ns"].as_u64(), "{job}");
}

/// The same of a copy to a block device.
#[test]
fn a_device_that_comes_into_use_during_a_stop_gets_nothing_more_of_a_copy() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    for operands in ["oflag=direct conv=fsync", "oflag=dsync", "--explain off oflag=dsync"] {
        let disk = slow_disk();
        let device = LoopDevice::builder().over(disk.file()).create().unwrap();
        let (output, identity) = (device.path().display(), word(disk.file()));
        let document = tempfile::NamedTempFile::new().unwrap();
        let json = word(document.path());
        let line = format!("dd --json {json} --destroy {identity} if=/dev/zero of={output} bs=4k {operands}");
        let started = start_command(rdsk(&line));
        started.wait_until("it writes", || disk.counts().writes > 50);
        wait_until_stopped(&started, &disk);
        let other = LoopDevice::builder().over(device.path()).create().unwrap();
        disk.clear_log();
        started.signal(rdsk_testkit::cli::Signal::CONT);
        let run = started.end();
        // dd's code for everything that went wrong.
        assert_eq!(run.status_code, Some(1), "{operands}: {}", run.stderr);
        let (error, _) = error_and_hint(&run);
        assert!(error.contains("refusing to write") && error.contains(other.name()), "{operands}: {error}");
        let record: serde_json::Value = serde_json::from_slice(&fs::read(document.path()).unwrap()).unwrap();
        assert_eq!(contract::complaints(&record), [""; 0], "{operands}");
        assert_eq!((&record["error"]["code"], &record["error"]["kind"]), (&"held".into(), &"refused".into()));
        assert_eq!(disk.counts().writes, 0, "{operands}");
    }
}

/// Nothing uses the device, so the copy goes on, whatever it has written: here the label of a filesystem.
#[test]
fn a_copy_of_an_image_goes_on_after_a_stop() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Ext4]) {
        return;
    }
    let disk = slow_disk();
    let image = LoopDevice::builder().size(8 * MIB).create().unwrap();
    image.mkfs_ext4("image").unwrap();
    let device = LoopDevice::builder().over(disk.file()).create().unwrap();
    let (from, output) = (image.path().display(), device.path().display());
    let line = format!("dd --destroy {} if={from} of={output} bs=4k oflag=dsync", word(disk.file()));
    let answer = stopped_for(start(&line), &disk, STOP).expect_code(0);
    assert!(gaps_ns(&answer.record) >= STOP.as_nanos() / 2, "{}", answer.said());
    assert_eq!(device.content_hash().unwrap(), image.content_hash().unwrap());
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
            let longest = contract::list(&result["stalls"]["seen"])
                .iter()
                .filter_map(|stall| stall["lasts_ns"].as_u64())
                .max();
            assert!(longest.is_none_or(|ns| u128::from(ns) < STOP.as_nanos() / 2), "{way}: {result}");
            let most = result["latency_ns"]["max"].as_u64().unwrap();
            assert!(u128::from(most) < STOP.as_nanos() / 2, "{way}: {result}");
            let codes: Vec<&str> = contract::list(&answer.record["findings"])
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
        assert!(said.contains("rdsk did not run for "), "{said}");
        Ok(())
    });
}
