//! The simulated engine against what is known about the systems it runs on: exact counts, exact times, streams, limits,
//! errors, the state of the cache. All in virtual time, so every figure is asserted exactly or to a rounding.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{Watcher, job, millis, ops};
use rdsk_engine::{Ended, Engine as _, Job, Run, Settled, SimEngine};
use rdsk_model::{
    CacheState, Clock as _, EngineKind, IoPath, Op, Pattern, Points, StreamRange, Sync, Workload,
};
use rdsk_targets::{Access, Claim, Permission, Roots, claim, examine};
use std::io::Write as _;

fn claimed(name: &str) -> Claim {
    let roots = Roots::default();
    claim(examine(name, &roots).unwrap(), Access::Write, &Permission::default(), &roots).unwrap()
}

/// A claim on a system of the test's own, which extends a built-in one.
fn own(text: &str) -> (tempfile::NamedTempFile, Claim) {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let claim = claimed(&format!("sim:{}", file.path().display()));
    (file, claim)
}

fn workload(claim: &Claim) -> Workload {
    Workload { engine: EngineKind::Sim, ..Workload::sequential_read(claim.size_bytes() >> 20 << 20) }
}

fn visit(engine: &mut SimEngine, job: &Job<'_>, watcher: &mut Watcher) -> (Run, Settled) {
    let mut session = engine.open(job).unwrap();
    session.prepare().unwrap();
    let run = session.run(watcher).unwrap();
    (run, session.settle().unwrap())
}

fn once(claim: Claim, change: impl Fn(&mut Workload), limits: rdsk_engine::Limits) -> (Run, Settled) {
    let mut workload = workload(&claim);
    change(&mut workload);
    let claims = [claim];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    visit(&mut engine, &job(&workload, &claims, limits), &mut Watcher::default())
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_turns_the_platter() {
    let go = |seed| {
        let claims = [claimed("sim:wd2500")];
        let mut engine = SimEngine::new(&claims, seed).unwrap();
        let workload = Workload { pattern: Pattern::Random, seed, ..workload(&claims[0]) };
        let (run, _) = visit(&mut engine, &job(&workload, &claims, ops(200)), &mut Watcher::default());
        (run.elapsed_ns, run.windows, run.histogram.to_base64(), run.bytes)
    };
    assert_eq!(go(1), go(1));
    assert_ne!(go(1), go(2));
}

#[test]
fn a_path_that_the_host_does_not_have_is_refused() {
    let claims = [claimed("sim:ssd-slc")];
    assert_eq!(claims[0].target.dontcache, Some(false));
    let workload = Workload { path: IoPath::DontCache, ..workload(&claims[0]) };
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let error = engine.open(&job(&workload, &claims, ops(1))).err().unwrap();
    assert!(error.to_string().contains("RWF_DONTCACHE"), "{error}");
}

#[test]
fn littles_law_and_the_windows_add_up() {
    for depth in [1, 4, 16] {
        let (run, _) = once(
            claimed("sim:tms-ramsan"),
            |workload| {
                workload.pattern = Pattern::Random;
                workload.queue_depth = depth;
                (workload.block_bytes, workload.align_bytes) = (4096, 4096);
            },
            millis(500),
        );
        assert_eq!(run.ended, Ended::OutOfTime);
        assert_eq!(run.windows.iter().sum::<u64>(), run.bytes);
        assert_eq!(run.bytes, run.ops * 4096);
        assert_eq!(run.asked_bytes, run.bytes, "what was in flight at the end was waited for");
        let in_flight = run.latency_sum_ns as f64 / run.elapsed_ns as f64;
        assert!((in_flight / f64::from(depth) - 1.0).abs() < 0.02, "depth {depth}: {in_flight}");
    }
}

#[test]
fn streams_start_apart_and_go_to_the_luns_in_turn() {
    let claims = [claimed("sim:tms-ramsan-2/0"), claimed("sim:tms-ramsan-2/1")];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let workload =
        Workload { streams: 3, stagger_ns: 100_000_000, targets: vec![0, 1], ..workload(&claims[0]) };
    let (run, _) = visit(&mut engine, &job(&workload, &claims, millis(1000)), &mut Watcher::default());
    let starts: Vec<(u32, u64)> = run.streams.iter().map(|stream| (stream.target, stream.start_ns)).collect();
    assert_eq!(starts, [(0, 0), (1, 100_000_000), (0, 200_000_000)]);
    assert!(run.streams.iter().all(|stream| stream.ops > 0));
    assert_eq!(run.bytes, run.streams.iter().map(|stream| stream.bytes).sum::<u64>());
}

#[test]
fn limits_and_the_control_end_a_visit() {
    let (run, _) = once(claimed("sim:linux-disk"), |_| (), ops(23));
    assert_eq!((run.ended, run.ops, run.bytes), (Ended::Complete, 23, 23 << 20));
    let claims = [claimed("sim:linux-disk")];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let workload = workload(&claims[0]);
    let mut watcher = Watcher { stop_after: Some(3), ..Watcher::default() };
    let (run, _) = visit(&mut engine, &job(&workload, &claims, millis(10_000)), &mut watcher);
    assert_eq!((run.ended, watcher.calls), (Ended::Stopped, 3));
    assert!(run.elapsed_ns < 200_000_000, "{}", run.elapsed_ns);
}

#[test]
fn a_stream_that_meets_a_bad_range_ends_alone() {
    let (_file, claim) = own(
        "extends = \"linux-disk\"\n[[luns]]\n[[luns.faults.errors]]\noffset_bytes = 1_048_576\nbytes = 4096\n",
    );
    let (run, _) = once(claim, |workload| workload.streams = 2, ops(10));
    assert_eq!(run.ended, Ended::Complete, "one stream went on to its end");
    assert_eq!(run.errors.len(), 1);
    assert_eq!(
        (run.errors[0].stream, run.errors[0].errno, run.errors[0].offset_bytes),
        (Some(0), 5, 1 << 20)
    );
    assert_eq!((run.streams[0].ops, run.streams[1].ops), (1, 5));
}

#[test]
fn the_cache_is_made_cold_and_warm_and_checked() {
    let small = |cache| {
        move |workload: &mut Workload| {
            workload.path = IoPath::Buffered;
            workload.cache = cache;
            workload.span_bytes = 64 << 20;
        }
    };
    let (cold, _) = once(claimed("sim:linux-disk"), small(CacheState::Cold), ops(32));
    let (warm, _) = once(claimed("sim:linux-disk"), small(CacheState::Warm), ops(32));
    assert_eq!(cold.check.cached_bytes, Some(0));
    assert_eq!(warm.check.cached_bytes, Some(64 << 20));
    assert!(cold.elapsed_ns > 10 * warm.elapsed_ns, "{} against {}", cold.elapsed_ns, warm.elapsed_ns);
}

#[test]
fn a_buffered_write_returns_long_before_it_is_stable() {
    let change = |workload: &mut Workload| {
        workload.op = Op::Write;
        workload.path = IoPath::Buffered;
    };
    let (run, settled) = once(claimed("sim:linux-disk"), change, ops(64));
    let stable_ns = settled.to_stable_ns.unwrap();
    assert!(stable_ns > 5 * run.to_return_ns, "{stable_ns} against {}", run.to_return_ns);
    let (durable, _) = once(
        claimed("sim:linux-disk"),
        |workload| {
            change(workload);
            workload.sync = Sync::FsyncAtEnd;
        },
        ops(64),
    );
    assert!(durable.elapsed_ns > 5 * durable.to_return_ns, "the fdatasync is part of the time");
}

#[test]
fn direct_io_that_the_host_does_not_take_is_einval() {
    let (run, _) = once(claimed("sim:linux-disk"), |workload| workload.shift_bytes = 1, ops(4));
    assert_eq!((run.ended, run.errors[0].errno, run.ops), (Ended::Failed, 22, 0));
}

#[test]
fn chosen_positions_are_visited_once_and_reported_one_by_one() {
    let points = Points { offset_bytes: (0..50).map(|index| index << 30).collect(), ..Points::default() };
    let (run, _) = once(
        claimed("sim:freebsd-wd800jd"),
        |workload| {
            workload.pattern = Pattern::Random;
            workload.points = Some(points.clone());
        },
        millis(100_000),
    );
    let seen = run.positions.unwrap();
    let mut order = seen.order.clone();
    order.sort_unstable();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
    assert_ne!(order, seen.order);
    assert_eq!(u128::from(seen.latency_ns.iter().sum::<u64>()), run.latency_sum_ns);
}

#[test]
fn a_coarse_clock_shows_only_its_own_steps() {
    let (_file, claim) = own("extends = \"linux-disk\"\n[host]\nclock_resolution_ns = 1_000_000\n");
    let claims = [claim];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let mut workload = workload(&claims[0]);
    workload.pattern = Pattern::Random;
    workload.points =
        Some(Points { offset_bytes: (0..99).map(|index| index << 20).collect(), ..Points::default() });
    let (run, _) = visit(&mut engine, &job(&workload, &claims, millis(100_000)), &mut Watcher::default());
    assert!(run.positions.unwrap().latency_ns.iter().all(|latency_ns| latency_ns % 1_000_000 == 0));
    assert_eq!(engine.clock().now_ns() % 1_000_000, 0);
    assert_eq!(engine.host().unwrap().clock.resolution_ns, 1_000_000);
}

#[test]
fn streams_that_share_their_range_read_the_same_blocks() {
    let change = |range| {
        move |workload: &mut Workload| {
            workload.streams = 2;
            workload.range = range;
            workload.span_bytes = 8 << 20;
            workload.path = IoPath::Buffered;
            workload.cache = CacheState::Cold;
        }
    };
    let moved = |range| {
        let claims = [claimed("sim:linux-disk")];
        let mut engine = SimEngine::new(&claims, 1).unwrap();
        let mut workload = workload(&claims[0]);
        change(range)(&mut workload);
        visit(&mut engine, &job(&workload, &claims, ops(8)), &mut Watcher::default());
        let lun = engine.luns()[0];
        engine.lab().lock().counters(lun).read_bytes
    };
    // Four blocks each: of eight different ones, or twice the same four.
    assert!(moved(StreamRange::Disjoint) >= 8 << 20);
    assert!(moved(StreamRange::Shared) < 6 << 20);
}
