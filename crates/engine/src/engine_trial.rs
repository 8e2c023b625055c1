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

/// A trial is disturbed whose one thread waited for a processor for more than this share of its time.
const MAX_WAIT_SHARE: u64 = 4;

/// Makes the seed of the trials differ from that of every visit, so that no visit reads data that a trial has already
/// fetched.
const SEED: u64 = 0x7472_6961_6c73;

/// How one trial ended.
enum Ended {
    /// How it went, and whether the machine let it.
    Counted(Trial, Undisturbed),
    /// The engine cannot start, fails, issues nothing, or another one takes over.
    Unavailable,
}

/// Whether a trial tells of the device and the engine, and not of who else uses the processors.
type Undisturbed = bool;

impl Trials {
    fn of(best: Vec<(Trial, Undisturbed)>) -> Self {
        let is_disturbed = best.iter().any(|(_, is_undisturbed)| !is_undisturbed);
        Self { best: best.into_iter().map(|(trial, _)| trial).collect(), is_disturbed }
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
    let mut best: Vec<(Trial, Undisturbed)> = Vec::new();
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
            let (trial, is_undisturbed) = match trial_of(&config(kind, &job), &[spec], &job) {
                Ended::Counted(trial, is_undisturbed) => (trial, is_undisturbed),
                Ended::Unavailable => continue,
            };
            let is_enough =
                is_undisturbed && kind == EngineKind::Aio && is_slow(&trial) && !is_within(&trial);
            match best.iter_mut().find(|(known, _)| known.engine == kind) {
                Some(known) if is_better((&trial, is_undisturbed), known) => *known = (trial, is_undisturbed),
                Some(_) => {}
                None => best.push((trial, is_undisturbed)),
            }
            if is_enough {
                return Ok(Trials::of(best));
            }
        }
        if best.iter().all(|(trial, is_undisturbed)| is_slow(trial) && *is_undisturbed) {
            break;
        }
        // Forwards, then backwards, so that drift affects all alike.
        order.reverse();
    }
    Ok(Trials::of(best))
}

/// Whether a trial says more of its engine than the one before: it was not disturbed, or is faster.
fn is_better(
    (trial, is_undisturbed): (&Trial, Undisturbed),
    (known, was_undisturbed): &(Trial, Undisturbed),
) -> bool {
    (is_undisturbed, is_undisturbed == *was_undisturbed && is_faster(trial, known))
        > (*was_undisturbed, false)
}

/// One trial of the configuration's engine: the first that was not disturbed, or else the best.
fn trial_of(config: &RunConfig, specs: &[StreamSpec<'_>], job: &Job<'_>) -> Ended {
    let mut to_the_end = |_: &Progress| Flow::Continue;
    let mut best: Option<Trial> = None;
    for _ in 0..STARTS {
        let result = run_streams(config, specs, job.pin_cpus, &[], &job.stop, &mut to_the_end);
        let Ok((run, _)) = result else { return Ended::Unavailable };
        if run.engine != config.engine || !run.errors.is_empty() {
            return Ended::Unavailable;
        }
        let trial = Trial {
            engine: run.engine,
            ops: run.ops,
            elapsed_ns: run.to_return_ns,
            cpu_ns: run.cpu.user + run.cpu.system,
            within_submit: run.issuing.within_submit,
        };
        if run.ops > 0 && !is_disturbed(&run) {
            return Ended::Counted(trial, true);
        }
        if run.ops > 0 && best.as_ref().is_none_or(|best| is_faster(&trial, best)) {
            best = Some(trial);
        }
        if job.stop.is_raised() {
            break;
        }
    }
    best.map_or(Ended::Unavailable, |best| Ended::Counted(best, false))
}

/// Whether others had the processor while the trial's thread was ready to use it. The many threads of the threads engine wait for each
/// other anyhow.
fn is_disturbed(run: &Run) -> bool {
    run.engine != EngineKind::Threads
        && run.processor_wait_ns.is_some_and(|wait_ns| wait_ns > run.to_return_ns / MAX_WAIT_SHARE)
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
