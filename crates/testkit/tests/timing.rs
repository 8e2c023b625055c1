//! What only a quiet machine shows of the test kit: how close the disk of known behaviour and the throttles come to their
//! times. `cargo xtask campaign timing` runs it; that they are never too early is in the suite.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{MIB, MS, check_programmed_times, middle, open, read, seconds_of_readers};
use rdsk_disk::Device;
use rdsk_testkit::cli::{self, Ended};
use rdsk_testkit::fusedisk::Stall;
use rdsk_testkit::{Behaviour, BlkioThrottle, DirectIo, FuseDisk, Limits, LoopDevice, Need, requires};
use std::process::Command;
use std::time::{Duration, Instant};

const FUSE: [Need; 2] = [Need::Root, Need::Fuse];
const THROTTLED: [Need; 3] = [Need::Root, Need::Loop, Need::BlkioThrottle];
const LONG: Duration = Duration::from_secs(200);

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn time_is_what_was_programmed() {
    if !requires(&FUSE) {
        return;
    }
    check_programmed_times(|seen_ns, truth_ns| {
        assert!(seen_ns >= truth_ns && seen_ns < truth_ns + truth_ns / 5, "{seen_ns} for {truth_ns}");
    });
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn as_many_at_once_as_programmed() {
    if !requires(&FUSE) {
        return;
    }
    for (behaviour, rounds) in [(Behaviour::single(5 * MS), 80.0), (Behaviour::parallel(4, 5 * MS), 20.0)] {
        let disk = FuseDisk::builder().device(behaviour).mount().unwrap();
        let seconds = seconds_of_readers(&disk, 8, 10);
        let truth = rounds * 0.005;
        assert!(seconds >= truth && seconds < truth * 1.4, "{seconds} s, {truth} s were programmed");
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn stalls_come_when_they_should() {
    if !requires(&FUSE) {
        return;
    }
    let stall = Stall { every_ns: 200 * MS, lasts_ns: 80 * MS };
    let disk = FuseDisk::builder()
        .device(Behaviour { stall: Some(stall), ..Behaviour::single(MS) })
        .mount()
        .unwrap();
    let file = open(disk.file());
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_millis(900) {
        let before = Instant::now();
        read(&file, 0, 4096).unwrap();
        longest = longest.max(before.elapsed());
    }
    let stalled =
        disk.log().into_iter().filter(|served| served.end_ns - served.arrival_ns > stall.lasts_ns / 2);
    assert!((3..=5).contains(&stalled.count()));
    assert!(longest >= Duration::from_millis(78), "the reader waited {longest:?} at most");
}

/// A model of a real device answers in time, and so does the disk as a program.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn answers_come_in_time() {
    if !requires(&FUSE) {
        return;
    }
    let system = rdsk_disk::load("wd2500").unwrap();
    let zones = Behaviour::default().zone_latency(0..4 * MIB, 2 * MS);
    let models: [rdsk_testkit::fusedisk::Model; 2] =
        [Device::of_lun(&system.params.luns[0], 1).into(), zones.into()];
    for model in models {
        let disk = FuseDisk::builder().device(model).mount().unwrap();
        let file = open(disk.file());
        (0..41).for_each(|index| drop(read(&file, index * 4096, 4096).unwrap()));
        let late_ns = middle(disk.log().iter().map(|served| served.answered_ns - served.end_ns).collect());
        assert!(late_ns < MS / 2, "answers come {late_ns} ns late");
    }
}

fn direct_reads(device: &LoopDevice, count: u32) -> Command {
    let mut command = Command::new("dd");
    command
        .arg(format!("if={}", device.path().display()))
        .args(["of=/dev/null", "bs=4k", "iflag=direct", "status=none"])
        .arg(format!("count={count}"));
    command
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn time_is_proportional_to_throttled_reads() {
    if !requires(&THROTTLED) {
        return;
    }
    let device = LoopDevice::builder().direct_io(DirectIo::On).create().unwrap();
    let iops = Limits { read_iops: Some(128), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), iops).unwrap();
    let [few, many] = [64, 256].map(|count| {
        let run = cli::run(throttle.command(direct_reads(&device, count)), LONG);
        assert_eq!(run.ended, Ended::Exited(0), "{}", run.stderr);
        run.elapsed.as_secs_f64()
    });
    let free = cli::run(direct_reads(&device, 256), LONG).elapsed.as_secs_f64();
    // The throttle lets one slice of 100 ms through at once, so the shortest time is a little under the nominal.
    assert!((1.8..2.6).contains(&many), "256 reads at 128 per second took {many} s");
    assert!((3.0..5.5).contains(&(many / few)), "{many} s against {few} s");
    assert!(many / free > 3.0, "without a throttle it took {free} s, with one {many} s");
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_thread_is_throttled_inside_only() {
    if !requires(&THROTTLED) {
        return;
    }
    let device = LoopDevice::builder().direct_io(DirectIo::On).create().unwrap();
    let iops = Limits { read_iops: Some(64), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), iops).unwrap();
    let seconds = || {
        let start = Instant::now();
        device.content_hash().unwrap();
        start.elapsed().as_secs_f64()
    };
    let free = seconds();
    let entered = throttle.enter_current_thread().unwrap();
    let throttled = seconds();
    drop(entered);
    assert!(throttled / free > 3.0, "{throttled} s inside, {free} s outside");
}
