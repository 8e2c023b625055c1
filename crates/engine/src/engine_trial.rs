//! Short trials of the engines on a target: random reads for some milliseconds each, before a visit is prepared and before
//! anything is counted. Only for a visit that writes does it write, through what that visit has opened for it, in its span, and data of
//! its own. It keeps only counts and times.

use crate::controller::run_streams;
use crate::engine_choice::{Reason, TRIAL_ENGINES, Trials, is_slow};
use crate::error::EngineError;
use crate::job::{CacheCheck, Flow, Job, Limits, Progress, Run};
use crate::open_target::OpenTarget;
use crate::random::mix;
use crate::stream::RunConfig;
use crate::stream_spec::StreamSpec;
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Pattern, Trial, Workload};

/// No I/O is submitted later than this after the start of one trial.
const TRIAL_NS: u64 = 4_000_000;

/// The same where a mix keeps a processor busy. In 4 ms the start of the threads and the first touch of a cold device weigh more than the
/// engines, which are nearer to each other there: of eleven mixes on zram six kept the ring, which eleven of twelve leave with this, for
/// threads that are 1.4 times as fast (2026-11-29).
const TRIAL_OF_MIX_NS: u64 = 16_000_000;

/// Most I/Os in flight during a trial: enough to distinguish the engines, and soon drained.
const MAX_DEPTH: u32 = 16;

/// Most that one trial writes, so that the trials of fast targets and large blocks end as soon.
const MAX_WRITTEN_BYTES: u64 = 32 << 20;

/// Larger blocks are not written in trials.
pub(crate) const MAX_WRITTEN_BLOCK_BYTES: u64 = MAX_WRITTEN_BYTES / 2;

/// Trials per engine, and those of a mix. The best one counts, because other programs can only slow it down.
const ROUNDS: usize = 2;
const ROUNDS_OF_MIX: usize = 3;

/// Runs of one trial until one is not disturbed.
const STARTS: usize = 3;

/// A trial is disturbed if its one thread waited for a processor for more than one of so many parts of its time.
const PARTS: u64 = 4;

/// Makes the seed of the trials differ from that of every visit, so that no visit reads data that a trial has already
/// fetched, or writes data that one has written.
const SEED: u64 = 0x7472_6961_6c73;

/// One trial, and whether it is of the device and the engine, and not of what else uses the processors.
struct Made {
    trial: Trial,
    is_undisturbed: bool,
}

impl Made {
    /// Whether it says more of its engine than another one.
    fn is_better_than(&self, other: &Self) -> bool {
        match (self.is_undisturbed, other.is_undisturbed) {
            (true, false) => true,
            (false, true) => false,
            _ => is_faster(&self.trial, &other.trial),
        }
    }
}

impl Trials {
    fn new(best: Vec<Made>) -> Self {
        let is_disturbed = best.iter().any(|made| !made.is_undisturbed);
        Self { best: best.into_iter().map(|made| made.trial).collect(), is_disturbed }
    }
}

/// Tries every engine on the job's first target, the first of `targets`, and leaves out those that fail or issue
/// nothing; with `Reason::BusyProcessor` none but `io_uring` where that has time left. What was written is on stable storage then.
///
/// # Errors
/// When nothing can be issued, or what was written cannot be made stable.
pub(crate) fn trials(
    job: &Job<'_>,
    targets: &[OpenTarget<'_>],
    reason: Reason,
    config: impl Fn(EngineKind, &Job<'_>) -> RunConfig,
) -> Result<Trials, EngineError> {
    let Some(target) = targets.first() else { return Ok(Trials::default()) };
    let workload = trial_workload(job.workload);
    let (trial_ns, rounds) = match reason {
        Reason::BusyProcessor => (TRIAL_OF_MIX_NS, ROUNDS_OF_MIX),
        Reason::NoNowait | Reason::OneAtATime => (TRIAL_NS, ROUNDS),
    };
    // A trial has limits of its own.
    let limits = Limits { max_bytes: None, max_ops: max_ops(&workload), max_elapsed_ns: trial_ns };
    let job = Job {
        workload: &workload,
        limits,
        window_ns: trial_ns,
        visit: 0,
        first_position: 0,
        cache_check: CacheCheck::Span,
        ..job.clone()
    };
    let spec = StreamSpec::new(&job, 0, targets)?;
    let mut runs = 0;
    let ring = (reason == Reason::BusyProcessor)
        .then(|| trial_of(&config(EngineKind::Uring, &job), spec, &mut runs, &job))
        .flatten();
    let best = match ring {
        Some(ring) if ring.is_undisturbed && !is_bound_by_processor(&ring.trial) => vec![ring],
        _ => try_engines(&job, spec, rounds, &mut runs, config),
    };
    if workload.op == Op::Write {
        // What it left in the disk's cache would be flushed in the time of the visit.
        drop(target.make_stable()?);
    }
    Ok(Trials::new(best))
}

/// Tries the engines. If the device is slow and `io_submit` does not wait for its I/Os, the AIO trial is enough: AIO is then as fast as
/// any engine.
fn try_engines(
    job: &Job<'_>,
    spec: StreamSpec<'_>,
    rounds: usize,
    runs: &mut u32,
    config: impl Fn(EngineKind, &Job<'_>) -> RunConfig,
) -> Vec<Made> {
    let mut best: Vec<Made> = Vec::new();
    let mut order = TRIAL_ENGINES;
    for _ in 0..rounds {
        for kind in order {
            if job.stop.is_raised() {
                return best;
            }
            let Some(made) = trial_of(&config(kind, job), spec, runs, job) else { continue };
            let is_enough = kind == EngineKind::Aio
                && made.is_undisturbed
                && is_slow(&made.trial)
                && !is_within(&made.trial);
            match best.iter_mut().find(|earlier| earlier.trial.engine == kind) {
                Some(earlier) if made.is_better_than(earlier) => *earlier = made,
                Some(_) => {}
                None => best.push(made),
            }
            if is_enough {
                return best;
            }
        }
        if best.iter().all(|made| made.is_undisturbed && is_slow(&made.trial)) {
            break;
        }
        // Forwards, then backwards, so that drift affects all alike.
        order.reverse();
    }
    best
}

/// One trial of the configuration's engine: the first that was not disturbed, or else the fastest. `None` if the engine cannot start,
/// fails, issues nothing, or another one takes over. `runs` counts them, so that no two write the same data: an array may store such once.
fn trial_of(config: &RunConfig, spec: StreamSpec<'_>, runs: &mut u32, job: &Job<'_>) -> Option<Made> {
    let mut to_the_end = |_: &Progress| Flow::Continue;
    let mut best: Option<Made> = None;
    for _ in 0..STARTS {
        *runs += 1;
        let specs = [StreamSpec { visit: *runs, ..spec }];
        let (run, _) = run_streams(config, &specs, job.pin_cpus, &[], &job.stop, &mut to_the_end).ok()?;
        if run.engine != config.engine || !run.errors.is_empty() {
            return None;
        }
        let trial = Trial {
            engine: run.engine,
            ops: run.ops,
            elapsed_ns: run.to_return_ns,
            cpu_ns: run.cpu.user + run.cpu.system,
            within_submit: run.issuing.within_submit,
        };
        let made = Made { trial, is_undisturbed: !is_disturbed(&run) };
        if run.ops > 0 && best.as_ref().is_none_or(|best| made.is_better_than(best)) {
            best = Some(made);
        }
        if best.as_ref().is_some_and(|best| best.is_undisturbed) || job.stop.is_raised() {
            break;
        }
    }
    best
}

/// Whether the process hardly waited for the target in a trial, in which the processor may have been others' for a quarter of the time.
fn is_bound_by_processor(trial: &Trial) -> bool {
    trial.cpu_ns > trial.elapsed_ns / 10 * 7
}

/// Whether others had the processor while the trial's thread was ready to use it. The many threads of the threads engine wait for each
/// other anyhow.
fn is_disturbed(run: &Run) -> bool {
    run.engine != EngineKind::Threads
        && run.processor_wait_ns.is_some_and(|wait_ns| wait_ns > run.to_return_ns / PARTS)
}

/// The trial's own direct workload in the span of the visit: random reads, or writes as those of the visit.
fn trial_workload(workload: &Workload) -> Workload {
    let (pattern, queue_depth) = match workload.op {
        Op::Read => (Pattern::Random, MAX_DEPTH),
        Op::Write => {
            let blocks = MAX_WRITTEN_BYTES / workload.block_bytes.max(1);
            (workload.pattern, u32::try_from(blocks).unwrap_or(MAX_DEPTH).clamp(2, MAX_DEPTH))
        }
    };
    Workload {
        pattern,
        path: IoPath::Direct,
        cache: CacheState::Any,
        queue_depth: workload.queue_depth.min(queue_depth),
        streams: 1,
        stagger_ns: 0,
        engine: EngineKind::Uring,
        targets: workload.targets.iter().take(1).copied().collect(),
        points: None,
        seed: mix(workload.seed, SEED),
        ..workload.clone()
    }
}

/// How many I/Os a trial issues at most; of reads as many as there is time for.
fn max_ops(workload: &Workload) -> Option<u64> {
    let blocks = MAX_WRITTEN_BYTES / workload.block_bytes.max(1);
    (workload.op == Op::Write).then_some(blocks.max(u64::from(workload.queue_depth)))
}

fn is_faster(trial: &Trial, other: &Trial) -> bool {
    u128::from(trial.ops) * u128::from(other.elapsed_ns)
        > u128::from(other.ops) * u128::from(trial.elapsed_ns)
}

/// Whether most I/Os completed during their submission, one after the other.
fn is_within(trial: &Trial) -> bool {
    trial.within_submit.is_some_and(|within| within * 2 > trial.ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Sync;

    #[test]
    fn a_trial_writes_only_for_a_visit_that_writes_as_that_does_and_little() {
        let write = Workload {
            op: Op::Write,
            sync: Sync::Dsync,
            queue_depth: 32,
            streams: 4,
            offset_bytes: 1 << 30,
            ..Workload::sequential_read(1 << 30)
        };
        let tried = trial_workload(&write);
        assert_eq!((tried.op, tried.pattern, tried.sync), (Op::Write, Pattern::Sequential, Sync::Dsync));
        assert_eq!((tried.offset_bytes, tried.span_bytes), (write.offset_bytes, write.span_bytes));
        assert_eq!((tried.queue_depth, tried.streams, max_ops(&tried)), (16, 1, Some(32)));
        assert_ne!(tried.seed, write.seed, "no visit writes the same data");
        let large = trial_workload(&Workload { block_bytes: MAX_WRITTEN_BLOCK_BYTES, ..write.clone() });
        assert_eq!((large.queue_depth, max_ops(&large)), (2, Some(2)));
        let read = trial_workload(&Workload { op: Op::Read, ..write });
        assert_eq!((read.op, read.pattern, max_ops(&read)), (Op::Read, Pattern::Random, None));
    }

    #[test]
    fn only_a_busy_processor_calls_for_other_engines() {
        let trial = |cpu_ns| Trial {
            engine: EngineKind::Uring,
            ops: 1000,
            elapsed_ns: TRIAL_NS,
            cpu_ns,
            within_submit: None,
        };
        assert!(is_bound_by_processor(&trial(TRIAL_NS - 100_000)));
        assert!(!is_bound_by_processor(&trial(TRIAL_NS / 2)), "the target was waited for");
    }

    #[test]
    fn a_trial_that_others_disturbed_counts_less_than_any_other() {
        let made = |ops, is_undisturbed| Made {
            trial: Trial {
                engine: EngineKind::Aio,
                ops,
                elapsed_ns: TRIAL_NS,
                cpu_ns: 1,
                within_submit: None,
            },
            is_undisturbed,
        };
        for (one, other, is_better) in [
            (made(10, true), made(20, false), true),
            (made(20, false), made(10, true), false),
            (made(20, true), made(10, true), true),
            (made(20, false), made(10, false), true),
            (made(10, true), made(10, true), false),
        ] {
            assert_eq!(one.is_better_than(&other), is_better);
        }
        assert!(Trials::new(vec![made(1, true), made(1, false)]).is_disturbed);
        assert!(!Trials::new(vec![made(1, true)]).is_disturbed);
    }
}
