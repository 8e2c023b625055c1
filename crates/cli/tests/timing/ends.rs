//! How soon the program answers and ends.

use crate::support::checked_run::{
    assert_nothing_left, directory, in_a_cell, rdsk, start_command, test_files, wait_for_file, wait_until,
    word,
};
use rdsk_testkit::cli::{self, Ended, Signal};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, requires};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const SLOW_FILESYSTEM: [Need; 4] = [Need::Root, Need::Loop, Need::Ext4, Need::BlkioThrottle];
/// A run takes no longer to stop.
const STOPPED: Duration = Duration::from_secs(8);
/// What was asked to give up, or only writes, takes no longer.
const GIVEN_UP: Duration = Duration::from_secs(3);

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_version_answers_within_ten_milliseconds() {
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let began = Instant::now();
            let output =
                Command::new(env!("CARGO_BIN_EXE_rdsk")).arg("--version").output().expect("it starts");
            assert!(output.status.success());
            began.elapsed()
        })
        .collect();
    times.sort();
    // The quickest quarter: a busy machine says nothing about rdsk.
    assert!(times[5] < Duration::from_millis(10), "{times:?}");
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn each_signal_ends_a_cell_within_seconds() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let place = directory();
        let started = in_a_cell(place.path(), "--json -");
        let sent = Instant::now();
        started.signal(signal);
        started.answer().expect_code(130);
        assert!(sent.elapsed() < STOPPED, "{signal:?}: {:?}", sent.elapsed());
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn each_signal_ends_the_making_of_the_file_within_seconds() {
    if !requires(&SLOW_FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(128 * MIB).create().expect("requires() found loop devices");
    device.mkfs_ext4("slow").expect("requires() found mkfs.ext4");
    let mount = device.mount().expect("requires() found ext4");
    let limits = Limits { write_bps: Some(4 * MIB), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).expect("requires() found throttles");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let line = format!("run {} --size 64M --json -", word(mount.path()));
        let started = start_command(throttle.command(rdsk(&line)));
        wait_for_file(&started, mount.path(), 1);
        let sent = Instant::now();
        started.signal(signal);
        started.answer().expect_code(130);
        assert!(sent.elapsed() < STOPPED, "{signal:?}: {:?}", sent.elapsed());
        assert_nothing_left(mount.path());
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_last_words_do_not_wait_for_a_stuck_disk() {
    if !requires(&SLOW_FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(64 * MIB).create().expect("requires() found loop devices");
    device.mkfs_ext4("stuck").expect("requires() found mkfs.ext4");
    let mount = device.mount().expect("requires() found ext4");
    // A block of 1 MiB takes eight seconds.
    let limits = Limits { write_bps: Some(MIB / 8), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).expect("requires() found throttles");
    let documents = directory();
    let document = documents.path().join("record.json");
    let line = format!("run {} --size 32M --json {}", word(mount.path()), word(&document));
    let started = start_command(throttle.command(rdsk(&line)));
    wait_for_file(&started, mount.path(), 0);
    std::thread::sleep(Duration::from_millis(300));
    started.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    let sent = Instant::now();
    started.signal(Signal::INT);
    started.wait_until("the document is there", || document.exists());
    let told = sent.elapsed();
    assert_eq!(started.end().ended, Ended::Exited(130));
    assert!(told < GIVEN_UP, "it was silent for {told:?}");
}

/// The first signal is sent when the run has ended and its document waits for a reader, the second in the middle of a run.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_reader_that_does_not_read_holds_no_signal_up_for_long() {
    for (line, signals, most) in [
        ("align --size 4M --bytes 4M --budget 10s --json -", 1, GIVEN_UP),
        ("run --size 16M --budget 30s --json -", 2, STOPPED),
    ] {
        let place = directory();
        let mut command = rdsk(line);
        command.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let is_made = |bytes| {
            let files = test_files(place.path());
            files.iter().any(|file| fs::metadata(file).is_ok_and(|file| file.len() == bytes))
        };
        wait_until("the test file is made", || is_made(if signals == 1 { 4 * MIB } else { 16 * MIB }));
        if signals == 2 {
            std::thread::sleep(Duration::from_millis(300));
            cli::signal(child.id(), Signal::INT).expect("it is under way");
        }
        wait_until("the test file is removed", || test_files(place.path()).is_empty());
        std::thread::sleep(Duration::from_millis(700));
        assert!(child.try_wait().expect("a child").is_none(), "the document fits the pipe");
        let sent = Instant::now();
        cli::signal(child.id(), Signal::INT).expect("it is under way");
        let status = child.wait().expect("a child");
        assert_eq!(status.code(), Some(130));
        assert!(sent.elapsed() < most, "{line}: {:?}", sent.elapsed());
    }
}
