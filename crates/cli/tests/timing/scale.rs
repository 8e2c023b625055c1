//! `rdsk scale` on loop devices: starts, and known rates of a throttle: sums, totals of each target, and the target that
//! limits.

use crate::support::{
    Counted, MIB, assert_near, assert_overlap_from_the_last_start, brief, cell, count, device, figure,
    finding_on, loop_device, rdsk, record_of, scale_rate, staggered_streams, streams, verdict,
};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, requires};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
/// A machine that stands still for a moment starts threads late; none of three attempts late is the claim.
const ATTEMPTS: usize = 3;
const THROTTLED: [Need; 3] = [Need::Root, Need::Loop, Need::BlkioThrottle];

/// Limits both devices for those inside; the group of the first takes the second's rule too.
fn throttle(disks: &[(&LoopDevice, u64)]) -> BlkioThrottle {
    let limits = |rate| Limits { read_bps: Some(rate), ..Limits::default() };
    let throttle =
        BlkioThrottle::new(disks[0].0.major_minor(), limits(disks[0].1)).expect("requires() found throttles");
    for (disk, rate) in &disks[1..] {
        throttle.also(disk.major_minor(), limits(*rate)).expect("the group is ours");
    }
    throttle
}

/// Bytes per second that the devices' own counters grew by, watched from outside every few milliseconds while `run` went
/// on: the slope over the middle of the time in which they grew.
fn watched<T>(disks: &[&LoopDevice], run: impl FnOnce() -> T) -> (T, Vec<f64>) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let witness = scope.spawn(|| {
            let began = Instant::now();
            let mut samples: Vec<(f64, Vec<u64>)> = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let bytes = disks.iter().map(|disk| Counted::now(disk).read_bytes).collect();
                samples.push((began.elapsed().as_secs_f64(), bytes));
                std::thread::sleep(Duration::from_millis(4));
            }
            samples
        });
        let result = run();
        stop.store(true, Ordering::Relaxed);
        let samples = witness.join().expect("the witness does not panic");
        let slope = |disk: usize| {
            let own: Vec<(f64, u64)> = samples.iter().map(|(at, bytes)| (*at, bytes[disk])).collect();
            slope(&own)
        };
        (result, (0..disks.len()).map(slope).collect())
    })
}

/// Growth over the time between a fifth and four fifths of what was read.
fn slope(samples: &[(f64, u64)]) -> f64 {
    let (first, last) = (samples[0].1, samples[samples.len() - 1].1);
    let at = |fifths: u64| {
        let wanted = first + (last - first) * fifths / 5;
        *samples.iter().find(|(_, bytes)| *bytes >= wanted).expect("the last sample has all of it")
    };
    let (low, high) = (at(1), at(4));
    (high.1 - low.1) as f64 / (high.0 - low.0)
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn two_throttled_devices_add_up() {
    if !requires(&THROTTLED) {
        return;
    }
    let (fast, slow) = (loop_device(), loop_device());
    // A throttle lets through what it allows for a tenth of a second at once, at the start too: in visits of six seconds
    // that is less than 2 %.
    let (fast_rate, slow_rate) = (12 * MIB, 4 * MIB);
    let throttle = throttle(&[(&fast, fast_rate), (&slow, slow_rate)]);
    let command = throttle.command(rdsk(&[
        &"scale",
        &fast.path(),
        &slow.path(),
        &"--rw",
        &"read",
        &"--bs",
        &"16k",
        &"--streams",
        &"2",
        &"--stagger",
        &"0s",
        &"--runtime",
        &"12s",
        &"--precision",
        &"0.01%",
    ]));
    let (record, truth) = watched(&[&fast, &slow], || record_of(command));
    let two = cell(&record, "scale/read/16k/2");
    let sum: f64 = truth.iter().sum();
    let aggregate = figure(two, "/result/bytes_per_s/mean");
    eprintln!(
        "aggregate {:.0}, the devices' counters {:.0} + {:.0} = {sum:.0}, limits {:.0}",
        aggregate,
        truth[0],
        truth[1],
        fast_rate + slow_rate
    );
    assert_near("the aggregate against the sum of the devices", aggregate, sum, 0.02);
    assert_near("the sum of the limits", sum, (fast_rate + slow_rate) as f64, 0.15);
    for (index, (disk, truth)) in [&fast, &slow].into_iter().zip(&truth).enumerate() {
        let its: Vec<&Value> =
            streams(two).iter().filter(|stream| count(stream, "/target") == index as u64).collect();
        assert_eq!(its.len(), 1);
        // The totals are those of the kernel, byte for byte; the rates those of the witness.
        let total: u64 = two["result"]["streams"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|stream| count(stream, "/target") == index as u64)
            .map(|stream| count(stream, "/bytes"))
            .sum();
        assert_eq!(total, count(device(two, disk), "/read_bytes"), "{}", brief(two));
        let elapsed = figure(its[0], "/end_ns") - figure(its[0], "/start_ns");
        assert_near("a target's rate", figure(its[0], "/bytes") * 1e9 / elapsed, *truth, 0.03);
    }
    assert_eq!(verdict(two), "throttled");
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn more_streams_do_not_exceed_a_throttled_device_and_it_is_named() {
    if !requires(&THROTTLED) {
        return;
    }
    let disk = loop_device();
    let limit = 8 * MIB;
    let throttle = throttle(&[(&disk, limit)]);
    let command = throttle.command(rdsk(&[
        &"scale",
        &disk.path(),
        &"--rw",
        &"read",
        &"--bs",
        &"16k",
        &"--streams",
        &"1,4",
        &"--stagger",
        &"0s",
        &"--runtime",
        &"5s",
        &"--precision",
        &"0.01%",
    ]));
    let record = record_of(command);
    let (single, four) = (scale_rate(&record, "read", "16k", 1), scale_rate(&record, "read", "16k", 4));
    eprintln!("limit {limit}: one stream {single:.0}, four {four:.0}");
    // The kernel lets one slice of a tenth of a second through before it limits: a fiftieth of five seconds.
    assert!(four <= limit as f64 * 1.03, "{four} of {limit}");
    assert_near("the limit itself", four, limit as f64, 0.15);
    // One of the two may have had a busier machine.
    assert_near("four streams against one", four, single, 0.1);
    let knee = finding_on(&record, "scale-knee", "scale/read/16k/1");
    let text = knee["text"].as_str().expect("a finding has a text");
    let name = disk.path().display().to_string();
    assert!(text.contains(&name) && text.contains("control group"), "{text}");
    assert!(knee["title"].as_str().is_some_and(|title| title.contains("cgroup")), "{knee}");
    assert!(knee["evidence"].to_string().contains(&name), "{knee}");
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn streams_start_when_they_should() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let disk = loop_device();
    for (stagger, step_ns) in [("200ms", 200 * MS), ("0s", 0)] {
        let mut latest_ns = u64::MAX;
        for _ in 0..ATTEMPTS {
            let record = record_of(staggered_streams(&disk, stagger));
            let cell = cell(&record, "scale/read/64k/4");
            let late = streams(cell)
                .iter()
                .enumerate()
                .map(|(index, stream)| count(stream, "/start_ns").abs_diff(index as u64 * step_ns));
            latest_ns = latest_ns.min(late.max().expect("four streams"));
            assert_overlap_from_the_last_start(cell);
            if latest_ns <= 20 * MS {
                break;
            }
            eprintln!("a stream began {latest_ns} ns from its time: the machine stood still, trying again");
        }
        eprintln!("stagger {stagger}: none began more than {latest_ns} ns from its time");
        assert!(latest_ns <= 20 * MS, "{latest_ns} ns from the time asked for");
    }
}
