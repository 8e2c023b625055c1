//! Failures have a defined outcome: errors are data, nothing hangs, nothing is lost.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{
    self, PAGE, destroying, file_of, job, millis, ops, random, reading, visit, visit_with, writing,
};
use rdsk_engine::{Control, Ended, Engine as _, EngineError, Flow, Job, Limits, Progress, RealEngine};
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Workload};
use rdsk_testkit::fusedisk::{Behaviour, Extra, FuseDisk};
use rdsk_testkit::{LoopDevice, Need, requires};
use std::time::{Duration, Instant};

const ENGINES: [(EngineKind, u32); 4] =
    [(EngineKind::Sync, 1), (EngineKind::Threads, 8), (EngineKind::Aio, 8), (EngineKind::Uring, 8)];

#[test]
fn a_truncated_backing_file_is_an_io_error_with_its_offset() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(16 << 20).create().unwrap();
    let claims = [reading(device.path())];
    device.truncate_backing(4 << 20).unwrap();
    for (engine, queue_depth) in ENGINES {
        let workload = Workload {
            block_bytes: PAGE,
            align_bytes: PAGE,
            engine,
            queue_depth,
            ..Workload::sequential_read(16 << 20)
        };
        let (_, run, _) = visit(&job(&workload, &claims, ops(4096)));
        assert_eq!(run.ended, Ended::Failed, "{engine}");
        let [error] = run.errors.as_slice() else { panic!("{:?}", run.errors) };
        assert_eq!((error.errno, error.target), (libc::EIO, 0));
        assert_eq!(error.message, "Input/output error");
        assert!(error.offset_bytes >= 4 << 20 && error.offset_bytes < (4 << 20) + 8 * PAGE, "{error:?}");
        assert!(run.bytes >= 4 << 20, "what was good is kept");
    }
}

/// A read that hangs for a multiple of the longest time that the windows of its visit were chosen for.
#[test]
fn a_read_that_hangs_leaves_no_time_without_a_window() {
    const HELD_NS: u64 = 14_000_000_000;
    const WIDTH_NS: u64 = 1_562_500;
    const WINDOWS: u64 = 4096;
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    let disk = FuseDisk::builder().capacity(16 << 20).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let claims = [reading(device.path())];
    let limits = Limits { max_bytes: None, max_ops: Some(90), max_elapsed_ns: 3_000_000_000 };
    let workload = random(16 << 20, EngineKind::Sync, 1);
    let job = Job { window_ns: WIDTH_NS, ..job(&workload, &claims, limits) };
    // On a machine that has no time for it, the visit may end before the read that hangs.
    let mut visits = (0..5).filter_map(|_| {
        let held = Extra { every: 50, costs_ns: HELD_NS };
        disk.set_behaviour(Behaviour { extra: Some(held), ..Behaviour::single(1_000_000) });
        disk.clear_log();
        let (_, run, _) = visit(&job);
        let longest_ns = disk.log().iter().map(|one| one.answered_ns - one.arrival_ns).max()?;
        // Who else looks at a new device may have met it.
        let met_it = run.histogram.max().is_some_and(|ns| ns >= HELD_NS);
        met_it.then_some((run, longest_ns))
    });
    let (run, held_ns) = visits.next().expect("in one of five visits a read hangs");
    assert!(held_ns > 2 * WINDOWS * WIDTH_NS);
    assert!(run.window_ns > WIDTH_NS && run.windows.len() as u64 <= WINDOWS, "{} ns", run.window_ns);
    let empty = run.windows.split(|&bytes| bytes > 0).map(<[u64]>::len).max().unwrap() as u64;
    let ratio = (empty * run.window_ns) as f64 / held_ns as f64;
    assert!(ratio > 0.95, "nothing completed in windows of {ratio} of the time in which a read hung");
}

#[test]
fn other_streams_go_on() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(16 << 20).create().unwrap();
    let claims = [reading(device.path())];
    device.truncate_backing(8 << 20).unwrap();
    for (engine, queue_depth) in ENGINES {
        let workload = Workload {
            block_bytes: PAGE,
            align_bytes: PAGE,
            engine,
            queue_depth,
            streams: 2,
            ..Workload::sequential_read(16 << 20)
        };
        // A stream that gets no processor within the second does not meet its bad bytes.
        let mut visits = (0..10).map(|_| visit(&job(&workload, &claims, millis(1000))).1);
        let is_one = |run: &rdsk_engine::Run| (run.ended, run.errors.len()) == (Ended::OutOfTime, 1);
        let run = visits.find(is_one).unwrap_or_else(|| panic!("{engine}: in ten visits never one failed"));
        assert!(run.streams[0].ops > 0);
        assert_eq!(run.streams[1].ops, 0);
    }
}

/// Makes a file shorter when all is open and before anything is read.
struct Shortens(std::fs::File, u64);

impl Control for Shortens {
    fn window(&mut self, _progress: &Progress) -> Flow {
        Flow::Continue
    }

    fn starts_at_ns(&mut self, is_ready: bool) -> Option<u64> {
        self.0.set_len(self.1).unwrap();
        is_ready.then_some(0)
    }
}

#[test]
fn a_short_transfer_is_an_error() {
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Threads, 1), (EngineKind::Uring, 1)] {
        if engine == EngineKind::Uring && !requires(&[Need::IoUring]) {
            return;
        }
        let (_directory, path) = file_of(16 * PAGE);
        let claims = [reading(&path)];
        let shrunk = std::fs::File::options().write(true).open(&path).unwrap();
        let mut shortens = Shortens(shrunk, 8 * PAGE + 512);
        let workload = Workload {
            path: IoPath::Buffered,
            block_bytes: PAGE,
            align_bytes: PAGE,
            engine,
            queue_depth,
            ..Workload::sequential_read(16 * PAGE)
        };
        let (_, run, _) =
            visit_with(RealEngine::default(), &job(&workload, &claims, ops(16)), &mut shortens).unwrap();
        assert_eq!((run.ended, run.ops), (Ended::Failed, 8));
        assert_eq!((run.errors[0].errno, run.errors[0].offset_bytes), (0, 8 * PAGE));
        assert_eq!(run.errors[0].message, "short read: 512 of 4096 bytes");
    }
}

#[test]
fn unaligned_direct_io_explains_the_alignment() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(1 << 20).create().unwrap();
    let claims = [reading(device.path())];
    for (engine, queue_depth) in ENGINES {
        let workload = Workload { block_bytes: 1000, ..random(1 << 20, engine, queue_depth) };
        let (_, run, _) = visit(&job(&workload, &claims, ops(10)));
        assert_eq!((run.ended, run.errors[0].errno), (Ended::Failed, libc::EINVAL));
        assert_eq!(
            run.errors[0].message,
            "Invalid argument: direct I/O needs block sizes and offsets that are multiples of 512 bytes here"
        );
    }
}

#[test]
fn the_stop_flag_ends_a_throttled_wait() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::IoUring]) {
        return;
    }
    for (engine, queue_depth) in ENGINES {
        let (run, late) = common::stopped_in_a_throttled_wait(engine, queue_depth);
        assert_eq!(run.ended, Ended::Interrupted, "{engine}");
        // Without the flag it would go on for ten minutes. How soon it ends is in timing.rs.
        assert!(late < Duration::from_secs(60), "{engine}: {late:?} after the flag");
        // The kernel lets a tenth of a second's worth through at once, and what is in flight is waited for.
        let most = 16.0 * (run.elapsed_ns as f64 / 1e9 + 0.2) + f64::from(queue_depth);
        assert!(run.ops > 0 && run.ops as f64 <= most, "{engine}: {} I/Os, {most}", run.ops);
    }
}

#[test]
fn impossible_jobs_are_refused_before_anything_happens() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let good = Workload { path: IoPath::Buffered, ..random(1 << 20, EngineKind::Sync, 1) };
    for bad in [
        Workload { span_bytes: 2 << 20, ..good.clone() },
        Workload { block_bytes: 2 << 20, align_bytes: 1, ..good.clone() },
        Workload { queue_depth: 2, ..good.clone() },
        Workload { streams: 0, ..good.clone() },
        Workload { engine: EngineKind::Sim, ..good.clone() },
        Workload { targets: vec![], ..good.clone() },
        Workload { targets: vec![3], ..good.clone() },
    ] {
        let mut engine = RealEngine::default();
        let Err(error) = engine.open(&job(&bad, &claims, ops(1))) else { panic!("{bad:?}") };
        assert!(!error.problem().message.is_empty());
    }
    let write = Workload { op: Op::Write, ..good };
    let mut engine = RealEngine::default();
    assert!(matches!(engine.open(&job(&write, &claims, ops(1))), Err(EngineError::Target(_))));
}

#[test]
fn a_pinned_processor_that_does_not_exist_is_an_error_and_no_hang() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, streams: 3, ..random(1 << 20, EngineKind::Sync, 1) };
    let mut job = job(&workload, &claims, ops(9));
    job.pin_cpus = &[0, 1023, 0];
    let result = visit_with(RealEngine::default(), &job, &mut common::Watcher::default());
    assert!(matches!(result, Err(EngineError::Thread { stream: 1, .. })), "{result:?}");
}

#[test]
fn data_is_stable_though_others_hold_the_device_open() {
    if !requires(&[Need::Root, Need::Loop, Need::Cachestat]) {
        return;
    }
    let device = LoopDevice::builder().size(4 << 20).create().unwrap();
    let claims = [destroying(device.path(), device.backing_path())];
    // With this one open, the engine's close is not the last and flushes nothing.
    let other = std::fs::File::open(device.path()).unwrap();
    let workload = Workload { op: Op::Write, path: IoPath::Buffered, ..random(4 << 20, EngineKind::Sync, 1) };
    let (_, run, settled) = visit(&job(&workload, &claims, ops(500)));
    assert_eq!(run.ops, 500);
    assert!(settled.to_stable_ns > settled.to_close_ns);
    let state = rdsk_sys::cache::cachestat(&other, 0, 0).unwrap();
    assert_eq!((state.dirty_bytes(), state.writeback_bytes()), (Some(0), Some(0)));
}

#[test]
fn a_panicking_control_stops_the_streams() {
    struct Panics;
    impl Control for Panics {
        fn window(&mut self, _progress: &Progress) -> Flow {
            panic!("the control breaks (this is part of the test)");
        }
    }
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, ..random(1 << 20, EngineKind::Sync, 1) };
    let begin = Instant::now();
    let result = std::panic::catch_unwind(|| {
        visit_with(RealEngine::default(), &job(&workload, &claims, millis(600_000)), &mut Panics)
    });
    assert!(result.is_err());
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn cold_cycles_end_by_themselves() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [writing(&path)];
    for (engine, queue_depth) in ENGINES {
        let workload = Workload {
            path: IoPath::Buffered,
            cache: CacheState::Cold,
            ..random(64 * PAGE, engine, queue_depth)
        };
        assert_eq!(rdsk_engine::capacity(&workload), 64);
        let (_, run, _) = visit(&job(&workload, &claims, millis(600_000)));
        assert_eq!((run.ended, run.ops), (Ended::Complete, 64));
    }
}
