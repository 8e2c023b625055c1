//! Whichever engine issues the I/O, even if a sandbox forbids io_uring: the Record names it and why, and its counts are those
//! of the disk's log. That the requested depth and the ring's rate are reached is in timing/engines.rs.
//!
//! `kernel.io_uring_disabled` answers EPERM, too (io_uring/io_uring.c of the kernel), but holds for the whole machine, so no
//! test sets it; every error number has its test in the engine.

use crate::support::ways::{BLOCK, DEPTH, ID, NEEDS, WAYS, Way, reads};
use crate::support::{brief, cell, count, device as counters_of, figure, settle, sum_over_cells, word};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{FuseDisk, LoopDevice, requires};
use serde_json::Value;

/// How often something is tried that who looks at a device can disturb.
const ATTEMPTS: usize = 10;

#[test]
fn every_way_is_named_and_does_what_the_log_says() {
    if !requires(&NEEDS) {
        return;
    }
    for way in &WAYS {
        let (disk, device) = way.disk();
        let with_ring = reads(&device, way.latency_ns, None);
        assert_eq!(word(cell(&with_ring, ID), "/result/engine"), "uring");
        first_right(ATTEMPTS, || {
            settle(&disk);
            disk.clear_log();
            let record = reads(&device, way.latency_ns, Some(way));
            settle(&disk);
            held_against_the_log(&disk, &device, &record, way)
        });
    }
}

/// The engine that is named, the reason, and, where no other program read, that every read is one of the disk's log.
fn held_against_the_log(
    disk: &FuseDisk,
    device: &LoopDevice,
    record: &Value,
    way: &Way,
) -> Result<(), String> {
    let direct = cell(record, ID);
    assert!(figure(direct, "/result/in_flight_mean") <= DEPTH as f64 * 1.0001, "{}", brief(direct));
    assert_eq!(word(direct, "/result/engine"), way.engine, "{}", brief(direct));
    let why = direct.pointer("/result/issuing/why").and_then(Value::as_str);
    assert_eq!(why.is_some_and(|why| why.contains("forbidden here")), way.is_fallback, "{why:?}");
    // No other program reads 12 KiB at once, so that the first and the last of this size bound what the cells did. Neighbours may have been
    // merged; between the cells lie flushes, whose size is 0, and nothing else.
    let log: Vec<u64> = disk.log().iter().map(|served| served.bytes).collect();
    let is_own = |bytes: &u64| *bytes == BLOCK;
    let bounds = log.iter().position(is_own).zip(log.iter().rposition(is_own));
    let (first, last) = bounds.ok_or_else(|| format!("nothing was read: {log:?}"))?;
    let cells = &log[first..=last];
    let others: Vec<_> = log.iter().filter(|bytes| !bytes.is_multiple_of(BLOCK)).collect();
    ensure(cells.iter().all(|bytes| bytes.is_multiple_of(BLOCK)), || format!("others read {others:?}"))?;
    let (ops, counters) = (count(direct, "/result/ops"), counters_of(direct, device));
    let by_device =
        [count(counters, "/read_bytes"), count(counters, "/reads") + count(counters, "/read_merges")];
    same(&format!("bytes and reads beside {others:?}"), &by_device, &[ops * BLOCK, ops])?;
    let by_evidence = sum_over_cells(record, device, "/read_bytes");
    same("bytes of the log", &cells.iter().sum::<u64>(), &by_evidence)?;
    // The disk never had more in flight than was asked for, unless others read.
    ensure(count(counters, "/in_flight_max") <= DEPTH, || brief(direct))
}
