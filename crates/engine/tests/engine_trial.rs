//! On a device without RWF_NOWAIT the engine is chosen by a trial, which runs once, is counted apart, and reports its
//! figures.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{self, PAGE, file_of, job, ops, random, reading, visit, writing};
use rdsk_engine::{Engine as _, EnginePolicy, QueueSource, RealEngine};
use rdsk_model::{EngineKind, Filesystem, Issuing, Op, Trial, Workload};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{Behaviour, FuseDisk, Need, ZramDevice, requires};

const BYTES: usize = 16 << 20;

/// What was read before a visit began, what it read itself, and how it was issued.
type Seen = (u64, u64, EngineKind, Issuing);

/// A visit of 3000 reads.
fn seen(engine: &mut RealEngine, device: &ZramDevice, workload: &Workload) -> Seen {
    let claims = [reading(device.path())];
    let before = device.reads().unwrap();
    let job = job(workload, &claims, ops(3000));
    let mut session = engine.open(&job).unwrap();
    session.prepare().unwrap();
    let opened = device.reads().unwrap();
    let run = session.run(&mut common::Watcher::default()).unwrap();
    let ran = device.reads().unwrap();
    session.settle().unwrap();
    assert_eq!((run.ops, run.bytes), (3000, 3000 * PAGE));
    (opened - before, ran - opened, run.engine, run.issuing)
}

/// The first of a few visits without a trial in which no other program reads the device, as who looks for a filesystem does.
fn seen_alone(mut visit: impl FnMut() -> Seen) -> Seen {
    first_right(5, || {
        let seen = visit();
        assert!(seen.1 >= 3000, "nobody takes reads away: {seen:?}");
        same("reads before and in the visit", &(seen.0, seen.1), &(0, 3000)).map(|()| seen)
    })
}

#[test]
fn the_trial_is_made_once_and_counted_apart() {
    if !requires(&[Need::Root, Need::Zram, Need::IoUring]) {
        return;
    }
    let device = ZramDevice::create(BYTES).unwrap();
    let workload = random(BYTES as u64, EngineKind::Uring, 32);
    // Another program may read the device.
    let (mut free, (of_trial, engine, issuing)) = first_right(10, || {
        let mut free = RealEngine { policy: EnginePolicy::Fastest, ..RealEngine::default() };
        let (of_trial, of_run, engine, issuing) = seen(&mut free, &device, &workload);
        same("engines that were tried", &issuing.trials.len(), &3)?;
        same("the counters of the visit hold the visit alone: reads", &of_run, &3000)?;
        // Of many threads, one may find that the time is over before another, which lost its processor, says when it read.
        let is_long = |trial: &Trial| trial.elapsed_ns >= 1_000_000;
        ensure(issuing.trials.iter().all(is_long), || format!("{issuing:?}"))?;
        Ok((free, (of_trial, engine, issuing)))
    });
    assert!(of_trial >= issuing.trials.iter().map(|trial| trial.ops).sum(), "{of_trial}: {issuing:?}");
    let mut tried: Vec<EngineKind> = issuing.trials.iter().map(|trial| trial.engine).collect();
    tried.sort_unstable();
    assert_eq!(tried, [EngineKind::Threads, EngineKind::Aio, EngineKind::Uring]);
    for trial in &issuing.trials {
        assert!(trial.ops > 0 && trial.cpu_ns > 0, "{trial:?}");
        // One thread ends with the first read that returns after 4 ms.
        assert!(trial.elapsed_ns >= 4_000_000 || trial.engine == EngineKind::Threads, "{trial:?}");
        // zram does each read within io_submit.
        let within = (trial.engine == EngineKind::Aio).then_some(trial.ops);
        assert_eq!(trial.within_submit, within, "{trial:?}");
    }
    assert_eq!(issuing.why.is_some(), engine != EngineKind::Uring, "{issuing:?}");
    // The second visit uses the same trials.
    seen_alone(|| {
        let again = seen(&mut free, &device, &workload);
        assert_eq!((again.2, &again.3.trials), (engine, &issuing.trials));
        again
    });
}

#[test]
fn a_requested_engine_is_used_without_a_trial() {
    if !requires(&[Need::Root, Need::Zram, Need::IoUring]) {
        return;
    }
    let device = ZramDevice::create(BYTES).unwrap();
    let deep = [EngineKind::Threads, EngineKind::Aio, EngineKind::Uring];
    for engine in deep {
        let workload = random(BYTES as u64, engine, 32);
        let (_, _, issued, issuing) = seen_alone(|| seen(&mut RealEngine::default(), &device, &workload));
        assert_eq!(issued, engine);
        assert!(issuing.trials.is_empty() && issuing.why.is_none(), "{issuing:?}");
        assert_eq!(issuing.within_submit, (engine == EngineKind::Aio).then_some(3000));
    }
    // If no ring is available there is nothing to choose.
    let forbidden = RealEngine {
        policy: EnginePolicy::Fastest,
        ring_source: QueueSource::Forbidden,
        ..RealEngine::default()
    };
    let workload = random(BYTES as u64, EngineKind::Uring, 32);
    let (_, _, engine, issuing) = seen_alone(|| seen(&mut forbidden.clone(), &device, &workload));
    assert_eq!((engine, issuing.trials.len()), (EngineKind::Aio, 0));
}

/// Where the threads of a ring may write one at a time, reads show nothing of it.
#[test]
fn writes_are_tried_by_writing_once_and_in_their_span() {
    const BEGIN: usize = 4 << 20;
    const SPAN: usize = 8 << 20;
    if !requires(&[Need::IoUring]) {
        return;
    }
    let (_directory, path) = file_of(16 << 20);
    let mut claim = writing(&path);
    claim.target.filesystem = Some(Filesystem { kind: "btrfs".into(), options: String::new() });
    let claims = [claim];
    // Whether something was written before the visit began, and how it was issued.
    let visited = |engine: &mut RealEngine, workload: &Workload| {
        let before = std::fs::read(&path).unwrap();
        let job = job(workload, &claims, ops(100));
        let mut session = engine.open(&job).unwrap();
        let opened = std::fs::read(&path).unwrap();
        session.prepare().unwrap();
        let run = session.run(&mut common::Watcher::default()).unwrap();
        session.settle().unwrap();
        assert_eq!((run.ops, run.bytes), (100, 100 * PAGE), "trials are counted nowhere");
        let span = BEGIN..BEGIN + SPAN;
        assert!(before[..span.start] == opened[..span.start] && before[span.end..] == opened[span.end..]);
        (before[span.clone()] != opened[span], run.issuing)
    };
    let write =
        Workload { op: Op::Write, offset_bytes: BEGIN as u64, ..random(SPAN as u64, EngineKind::Uring, 8) };
    let mut free = RealEngine { policy: EnginePolicy::Fastest, ..RealEngine::default() };
    let (is_written, issuing) = visited(&mut free, &write);
    assert!(is_written && !issuing.trials.is_empty(), "{issuing:?}");
    let (is_written, again) = visited(&mut free, &write);
    assert_eq!((is_written, &again.trials), (false, &issuing.trials));
    let read = Workload { op: Op::Read, ..write.clone() };
    for (engine, workload) in [(&mut free, &read), (&mut RealEngine::default(), &write)] {
        let (is_written, issuing) = visited(engine, workload);
        assert!(!is_written && issuing.trials.is_empty(), "{issuing:?}");
    }
}

#[test]
fn a_device_with_a_queue_completes_nothing_within_the_submission() {
    if !requires(&[Need::Root, Need::Fuse, Need::Loop]) {
        return;
    }
    let behaviour = Behaviour::parallel(16, 50_000_000);
    let disk = FuseDisk::builder().capacity(BYTES as u64).device(behaviour).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let claims = [reading(device.path())];
    let workload = Workload { op: Op::Read, ..random(BYTES as u64, EngineKind::Aio, 8) };
    let (_, run, _) = visit(&job(&workload, &claims, ops(80)));
    // The caller may lose its processor between the submission and the check, for longer than the disk takes.
    let within = run.issuing.within_submit.unwrap();
    assert!(within < 40, "{within} of {} were done within their submission", run.ops);
}
