//! What only a quiet machine shows: full queues, streams that start when they should, and a stop that comes at once.
//! `cargo xtask campaign timing` runs it; what no other program can change of the same questions is in the suite.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod common;

use common::{Watcher, file_of, job, millis, random, reading, staggered, visit, visit_with};
use rdsk_engine::{Control, Ended, Flow, Progress, RealEngine};
use rdsk_model::{EngineKind, IoPath, Workload};
use rdsk_testkit::{DirectIo, LoopDevice, Need, requires};
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
        fn window(&mut self, _progress: &Progress<'_>) -> Flow {
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
