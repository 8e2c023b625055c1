//! Short trials of the engines on a target: random reads for a few milliseconds each, before a visit is prepared and before
//! anything is counted. It only ever reads, from offsets of its own, and keeps nothing but counts and times.

use crate::controller::run_streams;
use crate::engine_choice::TRIAL_ENGINES;
use crate::error::EngineError;
use crate::job::{CacheCheck, Control, Flow, Job, Limits, Progress, Run};
use crate::open_target::OpenTarget;
use crate::random::mix;
use crate::stream::{Recording, RunConfig};
use crate::stream_spec::StreamSpec;
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Pattern, Sync, Trial, Workload};
use rdsk_targets::{Access, OpenMode};

/// No read is submitted later than this after the start of one trial.
const TRIAL_NS: u64 = 4_000_000;

/// In flight during a trial, at most: enough to tell the engines apart, and soon drained.
const MAX_DEPTH: u32 = 16;

/// Each engine is tried so often; its best trial counts, because another program can only slow it down.
const ROUNDS: usize = 2;

/// A device that completes less often than every 50 µs does not show what issuing costs.
const SLOW_NS: u64 = 50_000;

/// Makes the seed of the trials differ from that of every visit, so that no read of a visit finds its data fetched.
const SEED: u64 = 0x7472_6961_6c73;

/// Nobody watches a trial.
struct Unwatched;

impl Control for Unwatched {
    fn window(&mut self, _progress: &Progress<'_>) -> Flow {
        Flow::Continue
    }
}

/// Tries every engine on the job's first target; those that fail are left out. Where the device is slow and AIO hands it
/// its reads without waiting, one trial is enough: it is as fast as any.
///
/// # Errors
/// When the target cannot be opened for reading or nothing can be issued.
pub(crate) fn trials(
    job: &Job<'_>,
    config: impl Fn(EngineKind, &Job<'_>) -> RunConfig,
) -> Result<Vec<Trial>, EngineError> {
    let Some(&index) = job.workload.targets.first() else { return Ok(Vec::new()) };
    let Some(claim) = job.claims.get(index as usize) else { return Ok(Vec::new()) };
    let mode = OpenMode { access: Access::Read, path: IoPath::Direct, sync: Sync::None };
    let target = [OpenTarget::open(index, claim, mode)?];
    let workload = reading(job.workload);
    // The limits of the visit are not those of the trial.
    let limits = Limits { max_bytes: None, max_ops: None, max_elapsed_ns: TRIAL_NS };
    let job = Job {
        workload: &workload,
        limits,
        window_ns: TRIAL_NS,
        visit: 0,
        first_position: 0,
        members: None,
        cache_check: CacheCheck::Span,
        ..job.clone()
    };
    let spec = StreamSpec::new(&job, 0, &target)?;
    let mut best: Vec<Trial> = Vec::with_capacity(TRIAL_ENGINES.len());
    for round in 0..ROUNDS {
        // There and back, so that drift hits all alike.
        let order: Vec<EngineKind> = match round % 2 {
            0 => TRIAL_ENGINES.to_vec(),
            _ => TRIAL_ENGINES.iter().rev().copied().collect(),
        };
        for kind in order {
            if job.stop.is_raised() {
                return Ok(best);
            }
            // What cannot even start is left out like what fails.
            let config = RunConfig { recording: Recording::On, ..config(kind, &job) };
            let result = run_streams(&config, &[spec], job.pinning.cpus(), &[], &job.stop, &mut Unwatched);
            let Ok((run, _)) = result else { continue };
            if run.engine != kind || !run.errors.is_empty() {
                continue;
            }
            let trial = counted(kind, &run);
            match best.iter_mut().find(|known| known.engine == kind) {
                Some(known) if is_faster(&trial, known) => *known = trial,
                Some(_) => {}
                None => best.push(trial),
            }
            if kind == EngineKind::Aio && is_slow(&trial) && !is_within(&trial) {
                return Ok(best);
            }
        }
        if best.iter().all(is_slow) {
            break;
        }
    }
    Ok(best)
}

/// The trial's own workload: reads where the visit goes, random ones, never from the page cache.
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

fn counted(engine: EngineKind, run: &Run) -> Trial {
    Trial {
        engine,
        ops: run.ops,
        elapsed_ns: run.to_return_ns,
        cpu_ns: run.cpu.user + run.cpu.system,
        within_submit: run.issuing.within_submit,
    }
}

fn is_faster(trial: &Trial, other: &Trial) -> bool {
    u128::from(trial.ops) * u128::from(other.elapsed_ns)
        > u128::from(other.ops) * u128::from(trial.elapsed_ns)
}

fn is_slow(trial: &Trial) -> bool {
    trial.elapsed_ns > trial.ops.saturating_mul(SLOW_NS)
}

/// Whether most reads were done within their submission, one after the other.
fn is_within(trial: &Trial) -> bool {
    trial.within_submit.is_some_and(|within| within * 2 > trial.ops)
}
