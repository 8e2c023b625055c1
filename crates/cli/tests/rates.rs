//! Truth: known limits. A loop device that a control group throttles: the limit is in the Record, the counts are those of the
//! device, and nothing passes quicker than the limit. How close the rates come to it, and to those of dd, iostat and fio, is
//! in timing/rates.rs.

use crate::support::passes::{NEEDS, deep_reads, read_passes, throttle, write_passes};
use crate::support::{
    MIB, assert_near, brief, cell, count, device, figure, iostat_of, loop_device, near, rdsk, record_of,
    verdict, word,
};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{Limits, LoopDevice, Need, requires};
use serde_json::Value;

/// How often something is tried that others can disturb, or a machine that stands still.
const ATTEMPTS: usize = 5;

/// The kernel lets through at once what it allows for a tenth of a second, so a visit may be that much quicker; twice as much
/// is what rounding costs at most.
fn assert_no_quicker(cell: &Value, done: f64, per_second: f64) {
    let visits = cell["result"]["visits"].as_array().map_or(0, Vec::len);
    let allowed = per_second * (figure(cell, "/result/elapsed_ns") / 1e9 + 0.2 * visits as f64);
    assert!(done > 0.0 && done <= allowed, "{done}, and {allowed} are allowed: {}", brief(cell));
}

/// A machine too busy to reach the limit measures its disk; the backing files are sparse, so reads find that nothing was written.
/// Pages that another opener brought in make an attempt void.
fn limited_or_too_busy(cell: &Value) -> Result<(), String> {
    let unlimited = if word(cell, "/workload/op") == "read" { "hole" } else { "device" };
    ensure(["throttled", unlimited].contains(&verdict(cell)), || brief(cell))
}

/// Runs what gives a Record until no other program read the device within its cell `id`, so that its device moved what it asked for, the
/// limit shows, and `is_exact` holds of the Record and the cell, too.
fn undisturbed(
    disk: &LoopDevice,
    id: &str,
    run: impl Fn() -> Value,
    is_exact: impl Fn(&Value, &Value) -> Result<(), String>,
) -> Value {
    first_right(ATTEMPTS, || {
        let record = run();
        let own = cell(&record, id);
        let moved = count(device(own, disk), "/read_bytes");
        ensure(moved <= count(own, "/result/bytes"), || format!("others read: {}", brief(own)))?;
        limited_or_too_busy(own)?;
        is_exact(&record, own)?;
        Ok(record)
    })
}

#[test]
fn reads_are_counted_and_their_limit_is_listed() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_iops: Some(256), ..Limits::default() });
    let run = || {
        record_of(throttle.command(rdsk(&[
            &"run",
            &disk.path(),
            &"--only",
            &"headline",
            &"--rw",
            &"read",
            &"--engine",
            &"sync",
            &"--budget",
            &"4s",
        ])))
    };
    let record = undisturbed(&disk, "headline/read/random-qd1", run, |_, random| {
        same("reads", &count(device(random, &disk), "/reads"), &count(random, "/result/ops"))
    });
    let random = cell(&record, "headline/read/random-qd1");
    assert_no_quicker(random, figure(random, "/result/ops"), 256.0);
    let limits = random["evidence"]["limits"].as_array().expect("evidence lists limits");
    assert!(limits.iter().any(|limit| limit["ops_per_s"] == 256 && limit["op"] == "read"), "{limits:?}");
    // The row of iostat is arithmetic: what is read per second times the seconds is what was read.
    let counters = device(random, &disk);
    let row = &iostat_of(counters);
    let column = |name: &str| figure(row, &format!("/{}", name.replace('/', "~1")));
    let reads = column("r/s") * figure(counters, "/interval_ns") / 1e9;
    assert_near("r/s times the interval", reads, figure(counters, "/reads"), 0.001);
    assert_near("rareq-sz", column("rareq-sz"), 4.0, 0.001);
    assert_near("rkB/s", column("rkB/s"), column("r/s") * 4.0, 0.001);
    for name in ["w/s", "wkB/s", "w_await", "d/s", "rrqm/s", "%rrqm", "f/s"] {
        assert!(column(name).abs() < 0.5, "{name}: {row:#}");
    }
}

/// A device that holds one pass and no more, so that readahead cannot run on beyond it.
fn one_pass_device() -> LoopDevice {
    LoopDevice::builder().size(MIB).create().expect("requires() found loop devices")
}

fn are_passes(direct: &Value, disk: &LoopDevice, counter: &str) -> Result<(), String> {
    let visits = direct["result"]["visits"].as_array().map_or(0, Vec::len) as u64;
    ensure(word(direct, "/result/stop") == "complete" && visits >= 2, || brief(direct))?;
    assert_eq!(count(direct, "/result/bytes"), visits * MIB, "{}", brief(direct));
    same("bytes of the device", &count(device(direct, disk), counter), &(visits * MIB))?;
    near("device share", figure(direct, "/verdict/device_share"), 1.0, 0.01)?;
    assert_no_quicker(direct, (visits * MIB) as f64, MIB as f64);
    Ok(())
}

#[test]
fn passes_of_a_limited_device_are_whole_and_take_their_time() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = one_pass_device();
    let limits = Limits { read_bps: Some(MIB), write_bps: Some(MIB), ..Limits::default() };
    let throttle = throttle(&disk, limits);
    let run = || record_of(throttle.command(read_passes(&disk, "1M", "60s")));
    undisturbed(&disk, "stream/read/direct", run, |record, direct| {
        are_passes(direct, &disk, "/read_bytes")?;
        limited_or_too_busy(cell(record, "stream/read/buffered"))
    });
    first_right(ATTEMPTS, || {
        let record = record_of(throttle.command(write_passes(&disk, "1M", "60s")));
        let direct = cell(&record, "paths/write/direct");
        limited_or_too_busy(direct)?;
        are_passes(direct, &disk, "/write_bytes")
    });
}

/// Several in flight are never more than were asked for.
#[test]
fn a_limited_queue_is_not_deeper_than_requested() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_bps: Some(32 * MIB), ..Limits::default() });
    let run = || record_of(throttle.command(deep_reads(&disk, "16M", "60s")));
    let record = undisturbed(&disk, "stream/read/direct", run, |_, direct| {
        ensure(word(direct, "/result/stop") == "complete", || brief(direct))?;
        let of_device = count(device(direct, &disk), "/read_bytes");
        same("bytes of the device", &of_device, &count(direct, "/result/bytes"))
    });
    let direct = cell(&record, "stream/read/direct");
    let in_flight = figure(direct, "/result/in_flight_mean");
    assert!(in_flight > 0.0 && in_flight <= 8.001, "{in_flight} in flight");
    assert_no_quicker(direct, figure(direct, "/result/bytes"), 32.0 * MIB as f64);
}
