//! The requested depth is reached, whichever engine issues the I/O, even if a sandbox forbids io_uring: rdsk reads a disk of
//! known latency that serves many requests at once, and its counts are compared with the disk's log.
//!
//! `kernel.io_uring_disabled` answers EPERM, too (io_uring/io_uring.c of the kernel), but holds for the whole machine, so no
//! test sets it; every error number has its test in the engine.

mod support;

use rdsk_testkit::sandbox::Errno;
use rdsk_testkit::{Behaviour, Call, FuseDisk, LoopDevice, Need, requires, without};
use serde_json::Value;
use support::{
    MIB, brief, cell, count, device as counters_of, figure, rdsk, record_of, settle, sum_over_cells, word,
};

const NEEDS: [Need; 4] = [Need::Root, Need::Fuse, Need::Loop, Need::IoUring];
const MS: u64 = 1_000_000;
const ATTEMPTS: usize = 12;
const DEPTH: u64 = 32;
/// Nobody else reads 12 KiB at once, so that the first and the last of this size in the log bound what the cells did.
const BLOCK: u64 = 12 << 10;
const ID: &str = "stream/read/direct";

/// A way to run the program: what is forbidden, with what answer, the flags, and the engine that the Record must name.
struct Way {
    forbidden: &'static [Call],
    errno: Errno,
    flags: &'static [&'static str],
    engine: &'static str,
    /// Whether another engine than the planned one issues the I/O, which must be reported.
    is_fallback: bool,
    /// What the disk takes for a read.
    latency_ns: u64,
}

/// Threads have a disk of 8 ms: at 1 ms they would need more processor time for 32 000 switches per second than a busy
/// machine of two processors has beside the disk's own (measured on one, 2026-11: 24 400 against the ring's 26 700).
const WAYS: [Way; 5] = [
    Way {
        forbidden: &[Call::IoUringSetup],
        errno: Errno::PERM,
        flags: &[],
        engine: "aio",
        is_fallback: true,
        latency_ns: MS,
    },
    Way {
        forbidden: &[Call::IoUringSetup],
        errno: Errno::NOSYS,
        flags: &["--engine", "io_uring"],
        engine: "aio",
        is_fallback: true,
        latency_ns: MS,
    },
    Way {
        forbidden: &[Call::IoUringSetup, Call::IoSetup],
        errno: Errno::PERM,
        flags: &[],
        engine: "threads",
        is_fallback: true,
        latency_ns: 8 * MS,
    },
    Way {
        forbidden: &[],
        errno: Errno::PERM,
        flags: &["--engine", "aio"],
        engine: "aio",
        is_fallback: false,
        latency_ns: MS,
    },
    Way {
        forbidden: &[],
        errno: Errno::PERM,
        flags: &["--engine", "threads"],
        engine: "threads",
        is_fallback: false,
        latency_ns: 8 * MS,
    },
];

/// The Record of random reads of [`BLOCK`].
fn reads(device: &LoopDevice, latency_ns: u64, way: Option<&Way>) -> Value {
    let mut command =
        rdsk(&[&"stream", &device.path(), &"--rw", &"read", &"--pattern", &"random", &"--bs", &"12k"]);
    // A thousand reads and more, so that filling and draining the queue does not count.
    let runtime = if latency_ns > MS { "1s" } else { "400ms" };
    command.args(["--iodepth", "32", "--runtime", runtime]);
    let Some(way) = way else { return record_of(command) };
    command.args(way.flags);
    match way.forbidden {
        [] => record_of(command),
        calls => without(calls, way.errno, || record_of(command)),
    }
}

#[test]
fn a_forbidden_ring_costs_neither_depth_nor_rate() {
    if !requires(&NEEDS) {
        return;
    }
    for way in &WAYS {
        let behaviour = Behaviour::parallel(64, way.latency_ns);
        let builder = FuseDisk::builder().capacity(64 * MIB).device(behaviour);
        let disk = builder.mount().expect("requires() found FUSE");
        let device = disk.loop_device().expect("requires() found loop devices");
        let (mut depths, mut rates, mut of_ring) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ATTEMPTS {
            // The two take turns, so that the machine's mood hits both.
            let with_ring = reads(&device, way.latency_ns, None);
            assert_eq!(word(cell(&with_ring, ID), "/result/engine"), "uring");
            of_ring.push(figure(cell(&with_ring, ID), "/result/ops_per_s/mean"));
            settle(&disk);
            disk.clear_log();
            let record = reads(&device, way.latency_ns, Some(way));
            settle(&disk);
            held_against_the_log(&disk, &device, &record, way);
            depths.push(figure(cell(&record, ID), "/result/in_flight_mean"));
            rates.push(figure(cell(&record, ID), "/result/ops_per_s/mean"));
            if depths.iter().any(is_full) && is_same_rate(&rates, &of_ring) {
                break;
            }
        }
        eprintln!("{:?} {:?}: in flight {depths:.2?}", way.forbidden, way.flags);
        eprintln!("  per second {rates:.0?}, with io_uring {of_ring:.0?}");
        assert!(depths.iter().any(is_full), "{} {:?}: {depths:?}", way.engine, way.flags);
        assert!(is_same_rate(&rates, &of_ring), "{} {:?}: {rates:?}, {of_ring:?}", way.engine, way.flags);
    }
}

/// Mean in flight within 5 % of the requested depth.
fn is_full(depth: &f64) -> bool {
    (depth / DEPTH as f64 - 1.0).abs() <= 0.05
}

/// Within 3 % of the ring's rate: in one turn, or best against best, since other programs only ever take from a rate.
fn is_same_rate(rates: &[f64], of_ring: &[f64]) -> bool {
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let last = rates.last().zip(of_ring.last()).map(|(rate, ring)| rate / ring);
    let ratios = last.into_iter().chain([best(rates) / best(of_ring)]);
    ratios.into_iter().any(|ratio| (ratio - 1.0).abs() <= 0.03)
}

/// What is right in any noise: the engine that is named, the reason, and that every read is one of the disk's log.
fn held_against_the_log(disk: &FuseDisk, device: &LoopDevice, record: &Value, way: &Way) {
    let direct = cell(record, ID);
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
