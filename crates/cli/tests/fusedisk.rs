//! Truth: a real block device whose behaviour is programmed. `rdsk` reads a loop device over a disk that answers each
//! request after a known time; what rdsk reports must be what was programmed, and its counts must be those of the disk's log.
//!
//! The kernel's overhead comes on top of what is programmed. A loop of plain pread(2), independent of rdsk, measures it, and
//! the disk subtracts it. Another program on the machine may increase it for a while, so one of a few attempts must show
//! the figure.

mod support;

use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, requires};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::plain::calibrate;
use support::{
    Counted, MIB, assert_near, brief, cell, count, device as device_counters, figure, identity, rdsk,
    record_of, settle, sum_over_cells,
};

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const US: u64 = 1000;
const MS: u64 = 1000 * US;
const ATTEMPTS: usize = 12;

/// One test at a time: each needs the machine for itself.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk of 64 MiB that serves on one processor, and the loop device over it.
fn disk_of(behaviour: Behaviour) -> (FuseDisk, LoopDevice) {
    let builder = FuseDisk::builder().capacity(64 * MIB).device(behaviour).on_one_cpu();
    let disk = builder.mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    (disk, device)
}

/// The Record of a run of random direct reads, on the processor on which the disk serves, so that no other must be woken.
fn reads(disk: &FuseDisk, device: &LoopDevice, bs: &str, depth: u64, runtime: &str) -> Value {
    let cpu = disk.cpu().expect("it serves on one").to_string();
    record_of(rdsk(&[
        &"stream",
        &device.path(),
        &"--rw",
        &"read",
        &"--pattern",
        &"random",
        &"--bs",
        &bs,
        &"--iodepth",
        &depth.to_string(),
        &"--runtime",
        &runtime,
        &"--pin",
        &cpu,
    ]))
}

#[test]
fn median_is_what_was_programmed() {
    if !requires(&NEEDS) {
        return;
    }
    let _alone = alone();
    let (disk, device) = disk_of(Behaviour::default());
    let programmed = [(100 * US, 0.15), (500 * US, 0.06), (MS, 0.04), (2 * MS, 0.05), (8 * MS, 0.03)];
    for (latency_ns, tolerance) in programmed {
        let truth = latency_ns as f64;
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            calibrate(&disk, &device, latency_ns, 4096);
            let record = reads(&disk, &device, "4k", 1, "250ms");
            let p50 = figure(cell(&record, "stream/read/direct"), "/result/latency_ns/p50");
            seen.push(p50 / truth - 1.0);
            if (p50 / truth - 1.0).abs() <= tolerance {
                break;
            }
        }
        eprintln!("programmed {truth} ns, p50 off by {seen:.3?}");
        assert!(seen.iter().any(|off| off.abs() <= tolerance), "{latency_ns} ns: off by {seen:?}");
    }
}

#[test]
fn single_server_has_its_rate_at_any_depth() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let _alone = alone();
    let (disk, device) = disk_of(Behaviour::single(MS));
    let is_right = |(rate, p50_off): &(f64, f64)| (970.0..=1030.0).contains(rate) && p50_off.abs() <= 0.04;
    for depth in [1, 4, 16] {
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            calibrate(&disk, &device, MS, 4096);
            let record = reads(&disk, &device, "4k", depth, "600ms");
            let direct = cell(&record, "stream/read/direct");
            assert_eq!(count(direct, "/workload/queue_depth"), depth);
            let rate = figure(direct, "/result/ops_per_s/mean");
            // Little's law, whatever the machine does: what is in flight is the rate times the latency.
            let in_flight = figure(direct, "/result/in_flight_mean");
            let mean_ns = figure(direct, "/result/latency_ns/mean");
            assert_near("rate × mean latency", rate * mean_ns / 1e9, in_flight, 0.05);
            // At the start of a visit the server is idle and the first reads are quicker, which the median does not see.
            let p50_off = figure(direct, "/result/latency_ns/p50") / (depth * MS) as f64 - 1.0;
            seen.push((rate, p50_off));
            if is_right(&(rate, p50_off)) {
                break;
            }
        }
        eprintln!("depth {depth}: per second, and the median off by, {seen:.3?}");
        assert!(seen.iter().any(is_right), "depth {depth}: {seen:?}");
    }
}

/// What `dd conv=fsync` times: the disk's flush is inside the time of every pass, and in the disk's log.
#[test]
fn an_fsync_at_the_end_is_inside_the_time() {
    if !requires(&NEEDS) {
        return;
    }
    let _alone = alone();
    const FLUSH_NS: u64 = 200 * MS;
    let (disk, device) = disk_of(Behaviour { flush_ns: FLUSH_NS, ..Behaviour::single(50 * US) });
    settle(&disk);
    disk.clear_log();
    let record = record_of(rdsk(&[
        &"stream",
        &device.path(),
        &"--rw",
        &"write",
        &"--bs",
        &"256k",
        &"--bytes",
        &"1M",
        &"--end-fsync",
        &"--destroy",
        &identity(&device),
    ]));
    let (plain, synced) = (cell(&record, "stream/write/buffered"), cell(&record, "stream/write/fsync"));
    assert_eq!(
        (&plain["workload"]["sync"], &synced["workload"]["sync"]),
        (&"none".into(), &"fsync_at_end".into())
    );
    let after_the_last_write = |cell: &Value| {
        let visits = cell["result"]["visits"].as_array().unwrap();
        visits.iter().map(|visit| count(visit, "/elapsed_ns") - count(visit, "/to_return_ns")).min().unwrap()
    };
    assert_eq!(after_the_last_write(plain), 0, "{}", brief(plain));
    assert!(after_the_last_write(synced) >= FLUSH_NS, "{}", brief(synced));
    let rate = count(synced, "/result/bytes") as f64 * 1e9 / figure(synced, "/result/elapsed_ns");
    assert_near("bytes over time with fsync", figure(synced, "/result/bytes_per_s/mean"), rate, 1e-9);
    let flushes = count(device_counters(synced, &device), "/flushes");
    let passes = synced["result"]["visits"].as_array().unwrap().len() as u64;
    assert!(flushes >= passes && disk.counts().flushes >= sum_over_cells(&record, &device, "/flushes"));
}

#[test]
fn counts_are_those_of_the_log() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let _alone = alone();
    // Nobody else reads 12 KiB at once, so that the first and the last of this size in the log bound what the cells did.
    const BLOCK: u64 = 12 << 10;
    let (disk, device) = disk_of(Behaviour::parallel(4, 300 * US));
    for depth in [1, 8] {
        settle(&disk);
        disk.clear_log();
        let before = Counted::now(&device);
        let record = reads(&disk, &device, "12k", depth, "300ms");
        settle(&disk);
        let log: Vec<u64> = disk.log().iter().map(|served| served.bytes).collect();
        let is_own = |bytes: &u64| *bytes == BLOCK;
        let (first, last) = (log.iter().position(is_own), log.iter().rposition(is_own));
        let cells = &log[first.expect("it was read")..=last.expect("it was read")];
        // Neighbours may have been merged. Between the visits is a flush, whose size in the log is 0, and nothing else.
        let (own, other): (Vec<u64>, Vec<u64>) =
            cells.iter().partition(|bytes| **bytes > 0 && bytes.is_multiple_of(BLOCK));
        assert!(other.iter().all(|bytes| *bytes == 0), "other reads between the cells: {other:?}");
        let direct = cell(&record, "stream/read/direct");
        let counters = device_counters(direct, &device);
        let (ops, reads) = (count(direct, "/result/ops"), count(counters, "/reads"));
        assert!(ops > 100, "{}", brief(direct));
        assert_eq!(
            (ops, ops * BLOCK),
            (reads + count(counters, "/read_merges"), count(counters, "/read_bytes"))
        );
        assert_eq!(sum_over_cells(&record, &device, "/reads"), own.len() as u64, "depth {depth}");
        assert_eq!(sum_over_cells(&record, &device, "/read_bytes"), own.iter().sum::<u64>(), "depth {depth}");
        // And the kernel's count of everything, with what it costs to examine the device, is the log's.
        let (kernel, served) = (Counted::now(&device).since(before), disk.counts());
        assert_eq!((kernel.reads, kernel.read_bytes), (served.reads, served.read_bytes));
        assert_eq!((kernel.write_bytes, served.writes, served.errors), (0, 0, 0));
        eprintln!("depth {depth}: {} requests in the evidence and in the log", own.len());
    }
}
