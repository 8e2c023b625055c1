//! Short trials of the engines on a target: random reads for a few milliseconds each, before a visit is prepared and before
//! anything is counted. It only reads, at offsets of its own, and keeps only counts and times.

use crate::controller::run_streams;
use crate::engine_choice::{TRIAL_ENGINES, Trials, is_slow};
use crate::error::EngineError;
use crate::job::{CacheCheck, Flow, Job, Limits, Progress, Run};
use crate::open_target::OpenTarget;
use crate::random::mix;
use crate::stream::RunConfig;
use crate::stream_spec::StreamSpec;
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Pattern, Sync, Trial, Workload};
use rdsk_targets::{Access, OpenMode};

/// No read is submitted later than this after the start of one trial.
const TRIAL_NS: u64 = 4_000_000;

/// Most I/Os in flight during a trial: enough to distinguish the engines, and soon drained.
const MAX_DEPTH: u32 = 16;

/// Trials per engine. The best one counts, because other programs can only slow it down.
const ROUNDS: usize = 2;

/// Runs of one trial until one is not disturbed.
const STARTS: usize = 3;

/// A trial is disturbed if its one thread waited for a processor for more than one of so many parts of its time.
const PARTS: u64 = 4;

/// Makes the seed of the trials differ from that of every visit, so that no visit reads data that a trial has already
/// fetched.
const SEED: u64 = 0x7472_6961_6c73;

/// One trial, and whether it tells of the device and the engine, and not of who else uses the processors.
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
    fn of(best: Vec<Made>) -> Self {
        let is_disturbed = best.iter().any(|made| !made.is_undisturbed);
        Self { best: best.into_iter().map(|made| made.trial).collect(), is_disturbed }
    }
}

/// Tries every engine on the job's first target and leaves out those that fail or issue nothing. If the device is slow and `io_submit`
/// does not wait for its reads, the AIO trial is enough: AIO is then as fast as any engine.
///
/// # Errors
/// When the target cannot be opened for reading or nothing can be issued.
pub(crate) fn trials(
    job: &Job<'_>,
    config: impl Fn(EngineKind, &Job<'_>) -> RunConfig,
) -> Result<Trials, EngineError> {
    let mut best: Vec<Made> = Vec::new();
    let Some(&index) = job.workload.targets.first() else { return Ok(Trials::default()) };
    let Some(claim) = job.claims.get(index as usize) else { return Ok(Trials::default()) };
    let mode = OpenMode { access: Access::Read, path: IoPath::Direct, sync: Sync::None };
    let target = [OpenTarget::open(index, claim, mode)?];
    let workload = reading(job.workload);
    // A trial has limits of its own.
    let limits = Limits { max_bytes: None, max_ops: None, max_elapsed_ns: TRIAL_NS };
    let job = Job {
        workload: &workload,
        limits,
        window_ns: TRIAL_NS,
        visit: 0,
        begin_bytes: 0,
        first_position: 0,
        members: None,
        cache_check: CacheCheck::Span,
        ..job.clone()
    };
    let spec = StreamSpec::new(&job, 0, &target)?;
    let mut order = TRIAL_ENGINES;
    for _ in 0..ROUNDS {
        for kind in order {
            if job.stop.is_raised() {
                return Ok(Trials::of(best));
            }
            let Some(made) = trial_of(&config(kind, &job), &[spec], &job) else { continue };
            let is_enough = kind == EngineKind::Aio
                && made.is_undisturbed
                && is_slow(&made.trial)
                && !is_within(&made.trial);
            match best.iter_mut().find(|known| known.trial.engine == kind) {
                Some(known) if made.is_better_than(known) => *known = made,
                Some(_) => {}
                None => best.push(made),
            }
            if is_enough {
                return Ok(Trials::of(best));
            }
        }
        if best.iter().all(|made| made.is_undisturbed && is_slow(&made.trial)) {
            break;
        }
        // Forwards, then backwards, so that drift affects all alike.
        order.reverse();
    }
    Ok(Trials::of(best))
}

/// One trial of the configuration's engine: the first that was not disturbed, or else the fastest. `None` if the engine cannot start,
/// fails, issues nothing, or another one takes over.
fn trial_of(config: &RunConfig, specs: &[StreamSpec<'_>], job: &Job<'_>) -> Option<Made> {
    let mut to_the_end = |_: &Progress| Flow::Continue;
    let mut best: Option<Made> = None;
    for _ in 0..STARTS {
        let (run, _) = run_streams(config, specs, job.pin_cpus, &[], &job.stop, &mut to_the_end).ok()?;
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

/// Whether others had the processor while the trial's thread was ready to use it. The many threads of the threads engine wait for each
/// other anyhow.
fn is_disturbed(run: &Run) -> bool {
    run.engine != EngineKind::Threads
        && run.processor_wait_ns.is_some_and(|wait_ns| wait_ns > run.to_return_ns / PARTS)
}

/// The trial's own workload: random direct reads in the span of the visit.
fn reading(workload: &Workload) -> Workload {
    Workload {
        op: Op::Read,
        pattern: Pattern::Random,
        path: IoPath::Direct,
        sync: Sync::None,
        cache: CacheState::Any,
        queue_depth: workload.queue_depth.min(MAX_DEPTH),
        streams: 1,
        stagger_ns: 0,
        engine: EngineKind::Uring,
        targets: workload.targets.iter().take(1).copied().collect(),
        points: None,
        seed: mix(workload.seed, SEED),
        ..workload.clone()
    }
}

fn is_faster(trial: &Trial, other: &Trial) -> bool {
    u128::from(trial.ops) * u128::from(other.elapsed_ns)
        > u128::from(other.ops) * u128::from(trial.elapsed_ns)
}

/// Whether most reads completed during their submission, one after the other.
fn is_within(trial: &Trial) -> bool {
    trial.within_submit.is_some_and(|within| within * 2 > trial.ops)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Trials::of(vec![made(1, true), made(1, false)]).is_disturbed);
        assert!(!Trials::of(vec![made(1, true)]).is_disturbed);
    }
}
