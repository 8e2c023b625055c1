//! The start of a visit is kept apart at one instant: the latencies of every engine, its bytes and its windows part there.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{Watcher, file_of, job, millis, ops, random, reading, visit_with};
use rdsk_engine::{Engine as _, RealEngine, Run, SimEngine};
use rdsk_model::{EngineKind, IoPath, Pattern, Workload};
use rdsk_targets::{Access, Claim, Permission, Roots, claim, examine};

const MS: u64 = 1_000_000;
/// Width of a window of the tests' jobs.
const WIDTH_NS: u64 = 10 * MS;

fn kept_apart(warm_up_ns: u64) -> Watcher {
    Watcher { warm_up_ns, ..Watcher::default() }
}

/// The warm-up of a Run holds exactly what its first windows hold.
fn assert_parted(run: &Run, windows: usize, what: &str) {
    let warm_up = run.warm_up.as_ref().unwrap();
    let block_bytes = run.bytes / run.ops;
    assert_eq!(warm_up.until_ns, windows as u64 * WIDTH_NS, "{what}");
    assert_eq!(warm_up.bytes, run.windows.iter().take(windows).sum::<u64>(), "{what}: bytes");
    assert_eq!(warm_up.ops * block_bytes, warm_up.bytes, "{what}: I/Os");
    assert_eq!(warm_up.histogram.count(), warm_up.ops, "{what}: latencies");
    assert_eq!(run.histogram.count(), run.ops - warm_up.ops, "{what}: the others");
}

#[test]
fn every_engine_parts_latencies_and_windows_at_the_same_instant() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    // AIO is for direct I/O, which the directory of temporary files may not have.
    let has_direct = claims[0].target.direct_io == Some(true);
    for (engine, queue_depth, streams) in [
        (EngineKind::Sync, 1, 1),
        (EngineKind::Sync, 1, 3),
        (EngineKind::Threads, 8, 1),
        (EngineKind::Uring, 8, 2),
        (EngineKind::Aio, 8, 1),
    ] {
        let path = if engine == EngineKind::Aio { IoPath::Direct } else { IoPath::Buffered };
        if path == IoPath::Direct && !has_direct {
            continue;
        }
        let workload = Workload { path, streams, ..random(4 << 20, engine, queue_depth) };
        let job = job(&workload, &claims, millis(120));
        let (_, run, _) = visit_with(RealEngine::default(), &job, &mut kept_apart(3 * WIDTH_NS)).unwrap();
        assert_parted(&run, 3, &format!("{engine}, {streams} streams"));
    }
}

#[test]
fn a_visit_that_ends_in_the_warm_up_is_all_warm_up() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = random(4 << 20, EngineKind::Sync, 1);
    let job = job(&workload, &claims, ops(50));
    let (_, run, _) = visit_with(RealEngine::default(), &job, &mut kept_apart(u64::MAX / 2)).unwrap();
    let warm_up = run.warm_up.unwrap();
    assert_eq!((run.ops, run.histogram.count(), warm_up.ops, warm_up.bytes), (50, 0, 50, run.bytes));
    let (_, run, _) = visit_with(RealEngine::default(), &job, &mut Watcher::default()).unwrap();
    assert!(run.warm_up.is_none() && run.histogram.count() == 50);
}

fn simulated(name: &str) -> Claim {
    let roots = Roots::default();
    claim(examine(name, &roots).unwrap(), Access::Write, &Permission::default(), &roots).unwrap()
}

#[test]
fn so_does_the_simulated_engine() {
    let claims = [simulated("sim:tms-ramsan")];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let workload = Workload {
        engine: EngineKind::Sim,
        pattern: Pattern::Random,
        queue_depth: 4,
        block_bytes: 4096,
        align_bytes: 4096,
        ..Workload::sequential_read(claims[0].size_bytes() >> 20 << 20)
    };
    let job = job(&workload, &claims, millis(200));
    let mut session = engine.open(&job).unwrap();
    session.prepare().unwrap();
    let run = session.run(&mut kept_apart(4 * WIDTH_NS)).unwrap();
    assert_parted(&run, 4, "sim");
    assert!(run.warm_up.unwrap().ops > 100 && run.histogram.count() > 400);
}
