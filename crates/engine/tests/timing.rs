//! What only a quiet machine shows: full queues, streams that start when they should, a stop that comes at once, and
//! flushes of several targets at once.
//! `cargo xtask campaign timing` runs it; what no other program can change of the same questions is in the suite.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{
    self, Watcher, destroying, file_of, job, millis, ops, random, reading, staggered, visit, visit_with,
};
use rdsk_engine::{Control, Ended, Flow, Progress, RealEngine, Settled};
use rdsk_model::{EngineKind, IoPath, Op, Workload};
use rdsk_testkit::{Behaviour, DirectIo, FuseDisk, LoopDevice, Need, requires};
use std::time::{Duration, Instant};

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_queue_is_as_deep_as_requested() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).direct_io(DirectIo::On).create().unwrap();
    std::fs::write(device.path(), vec![0x77; 64 << 20]).unwrap();
    let claims = [reading(device.path())];
    for engine in [EngineKind::Uring, EngineKind::Aio] {
        let workload = random(64 << 20, engine, 32);
        let (_, run, _) = visit(&job(&workload, &claims, millis(500)));
        #[expect(clippy::cast_precision_loss, reason = "a ratio of sums of nanoseconds")]
        let in_flight = run.latency_sum_ns as f64 / run.elapsed_ns as f64;
        assert!((in_flight / 32.0 - 1.0).abs() < 0.05, "{engine}: {in_flight} in flight");
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn staggered_streams_start_when_they_should() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = staggered(50_000_000);
    let (_, run, _) = visit(&job(&workload, &claims, millis(200)));
    let starts: Vec<u64> = run.streams.iter().map(|stream| stream.start_ns / 1_000_000).collect();
    assert!(
        starts[0] < 40 && (49..90).contains(&starts[1]) && (99..140).contains(&starts[2]),
        "{starts:?} ms"
    );
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_stop_flag_ends_a_throttled_wait_within_a_second() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::IoUring]) {
        return;
    }
    let deep = [EngineKind::Threads, EngineKind::Aio, EngineKind::Uring].map(|engine| (engine, 8));
    for (engine, queue_depth) in std::iter::once((EngineKind::Sync, 1)).chain(deep) {
        let (run, late) = common::stopped_in_a_throttled_wait(engine, queue_depth);
        assert_eq!(run.ended, Ended::Interrupted, "{engine}");
        assert!(late < Duration::from_secs(1), "{engine}: {late:?} after the flag");
        assert!(run.ops > 0 && run.ops < 200, "{engine}: {} I/Os", run.ops);
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_control_ends_a_visit_within_two_seconds() {
    struct Panics;
    impl Control for Panics {
        fn window(&mut self, _progress: &Progress) -> Flow {
            panic!("the control breaks (this is part of the test)");
        }
    }
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, ..random(4 << 20, EngineKind::Sync, 1) };
    let mut watcher = Watcher { stop_after: Some(3), ..Watcher::default() };
    let (_, run, _) =
        visit_with(RealEngine::default(), &job(&workload, &claims, millis(5000)), &mut watcher).unwrap();
    assert!(run.elapsed_ns < 2_000_000_000);
    let begin = Instant::now();
    let result = std::panic::catch_unwind(|| {
        visit_with(RealEngine::default(), &job(&workload, &claims, millis(30_000)), &mut Panics)
    });
    assert!(result.is_err());
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// Several targets are closed and flushed at once: the time until all is stable is that of the slowest, and no sum.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn two_targets_are_flushed_at_once() {
    const FLUSH_NS: u64 = 1_500_000_000;
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    let disk = || {
        let behaviour = Behaviour { flush_ns: FLUSH_NS, ..Behaviour::default() };
        FuseDisk::builder().capacity(4 << 20).device(behaviour).mount().unwrap()
    };
    let disks = [disk(), disk()];
    let devices: Vec<_> = disks.iter().map(|disk| disk.loop_device().unwrap()).collect();
    let workload = Workload {
        op: Op::Write,
        path: IoPath::Direct,
        engine: EngineKind::Sync,
        streams: 2,
        targets: vec![0, 1],
        ..Workload::sequential_read(4 << 20)
    };
    // One after the other they take two flushes at least, however quick the machine; at once one, and what noise adds.
    let is_at_once = (0..3).any(|_| {
        let claims: Vec<_> =
            devices.iter().map(|device| destroying(device.path(), device.backing_path())).collect();
        let (_, run, settled) = visit(&job(&workload, &claims, ops(2)));
        assert_eq!(run.bytes, 2 << 20);
        let Settled { to_close_ns: Some(close_ns), to_stable_ns: Some(stable_ns), .. } = settled else {
            panic!("{settled:?}")
        };
        let flushes_ns = stable_ns - close_ns;
        assert!(flushes_ns >= FLUSH_NS, "{flushes_ns} ns");
        flushes_ns < 2 * FLUSH_NS
    });
    assert!(is_at_once);
}
