//! Whichever engine issues the I/O, even if a sandbox forbids io_uring: the Record names it and why, and its counts are those
//! of the disk's log. That the requested depth and the ring's rate are reached is in timing/engines.rs.
//!
//! `kernel.io_uring_disabled` answers EPERM, too (io_uring/io_uring.c of the kernel), but holds for the whole machine, so no
//! test sets it; every error number has its test in the engine.

mod support;

use rdsk_testkit::{FuseDisk, LoopDevice, requires};
use serde_json::Value;
use support::ways::{BLOCK, DEPTH, ID, NEEDS, WAYS, Way, reads};
use support::{brief, cell, count, device as counters_of, figure, settle, sum_over_cells, word};

#[test]
fn every_way_is_named_and_does_what_the_log_says() {
    if !requires(&NEEDS) {
        return;
    }
    for way in &WAYS {
        let (disk, device) = way.disk();
        let with_ring = reads(&device, way.latency_ns, None);
        assert_eq!(word(cell(&with_ring, ID), "/result/engine"), "uring");
        // Nobody else reads 12 KiB at once; who looks at the device meanwhile is recognised by that, and another run counts.
        let undisturbed = (0..5).find_map(|_| {
            settle(&disk);
            disk.clear_log();
            let record = reads(&device, way.latency_ns, Some(way));
            settle(&disk);
            let log = disk.log();
            let sizes: Vec<u64> = log.iter().map(|served| served.bytes).collect();
            let is_own = |bytes: &u64| *bytes == BLOCK;
            let bounds = sizes.iter().position(is_own).zip(sizes.iter().rposition(is_own));
            let (first, last) = bounds.expect("it was read");
            // Neighbours may have been merged, and a flush has no bytes.
            let is_alone = sizes[first..=last].iter().all(|bytes| bytes.is_multiple_of(BLOCK));
            is_alone.then_some(record)
        });
        held_against_the_log(&disk, &device, &undisturbed.expect("one of five runs was alone"), way);
    }
}

/// What is right in any noise: the engine that is named, the reason, and that every read is one of the disk's log.
fn held_against_the_log(disk: &FuseDisk, device: &LoopDevice, record: &Value, way: &Way) {
    let direct = cell(record, ID);
    assert!(figure(direct, "/result/in_flight_mean") <= DEPTH as f64 * 1.0001, "{}", brief(direct));
    assert_eq!(word(direct, "/result/engine"), way.engine, "{}", brief(direct));
    let why = direct.pointer("/result/issuing/why").and_then(Value::as_str);
    assert_eq!(why.is_some_and(|why| why.contains("forbidden here")), way.is_fallback, "{why:?}");
    let ops = count(direct, "/result/ops");
    let counters = counters_of(direct, device);
    let others: Vec<_> =
        disk.log().iter().map(|served| served.bytes).filter(|bytes| bytes % BLOCK > 0).collect();
    assert_eq!(ops * BLOCK, count(counters, "/read_bytes"), "{}, others read {others:?}", brief(direct));
    assert_eq!(ops, count(counters, "/reads") + count(counters, "/read_merges"));
    let log: Vec<u64> = disk.log().iter().map(|served| served.bytes).collect();
    let is_own = |bytes: &u64| *bytes == BLOCK;
    let (first, last) = (log.iter().position(is_own), log.iter().rposition(is_own));
    let cells = &log[first.expect("it was read")..=last.expect("it was read")];
    // Neighbours may have been merged; between the cells lie flushes, whose size is 0, and nothing else.
    assert!(cells.iter().all(|bytes| bytes.is_multiple_of(BLOCK)), "others read, too");
    assert_eq!(cells.iter().sum::<u64>(), sum_over_cells(record, device, "/read_bytes"));
    // The disk never had more in flight than was asked for.
    assert!(count(counters, "/in_flight_max") <= DEPTH, "{}", brief(direct));
}
