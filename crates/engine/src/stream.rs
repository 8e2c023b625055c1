//! One stream's thread from start to end: set up, wait at the barrier, wait for its turn, issue, return. It decides which
//! engine issues the I/O and reports it.

use crate::aio::Contexts;
use crate::arena::{Arena, Fill, WriteFill, pool_bytes};
use crate::clock::now_ns;
use crate::counters::{SharedCounters, StreamCounters};
use crate::error::EngineError;
use crate::load::{self, RequestSource};
use crate::ring::{self, NoRing, QueueSource, Ring, WaitBatch};
use crate::start_barrier::{Release, StartBarrier};
use crate::stream_spec::{LoadSpec, StreamSpec};
use crate::work::{Schedule, StreamOutcome, Work};
use crate::{aio, position_loop, sync, thread_pool, uring};
use rdsk_model::{EngineKind, IoPath, Op};
use rdsk_sys::aio::Context;
use rdsk_sys::usage::thread_wait_ns;

/// How all streams of a run issue their I/O.
#[derive(Debug)]
pub(crate) struct RunConfig {
    pub(crate) engine: EngineKind,
    pub(crate) path: IoPath,
    /// Threads per stream of the threads engine.
    pub(crate) pool_threads: usize,
    pub(crate) ring_source: QueueSource,
    pub(crate) aio_source: QueueSource,
    pub(crate) contexts: Contexts,
    pub(crate) wait_batch: WaitBatch,
    pub(crate) window_ns: u64,
    pub(crate) max_elapsed_ns: u64,
    pub(crate) stagger_ns: u64,
}

/// What issues the I/O of a stream.
enum Issuer {
    Sync,
    Threads,
    Aio(Context),
    Ring(Box<Ring>),
}

impl Issuer {
    fn engine(&self) -> EngineKind {
        match self {
            Self::Sync => EngineKind::Sync,
            Self::Threads => EngineKind::Threads,
            Self::Aio(_) => EngineKind::Aio,
            Self::Ring(_) => EngineKind::Uring,
        }
    }
}

/// When the turn of a stream is, from the start of the run.
pub(crate) fn turn_ns(config: &RunConfig, spec: &StreamSpec<'_>) -> u64 {
    match spec.load {
        Some(load) => load.job.delay_ns,
        None => config.stagger_ns.saturating_mul(u64::from(spec.stream)),
    }
}

/// Runs one of `streams` streams from setup to end.
///
/// # Errors
/// When the stream could not start: no processor, no memory, or no ring for a reason other than being forbidden.
pub(crate) fn run_stream(
    config: &RunConfig,
    barrier: &StartBarrier,
    spec: StreamSpec<'_>,
    shared: &SharedCounters,
    warm_up_ns: u64,
    streams: usize,
    cpu: Option<usize>,
) -> Result<StreamOutcome, EngineError> {
    let participant = barrier.join();
    if let Some(cpu) = cpu {
        let pinned = rdsk_sys::affinity::pin_to_cpu(cpu);
        pinned.map_err(|source| EngineError::Thread { stream: spec.stream, source })?;
    }
    let requests = match spec.load {
        Some(LoadSpec { job, stream_of_job, .. }) => {
            Some(RequestSource::new(job, spec.seed, spec.visit, stream_of_job)?)
        }
        None => None,
    };
    let fill = match spec.op {
        Op::Read => Fill::Touched,
        Op::Write => Fill::Random(WriteFill {
            seed: crate::random::mix(spec.seed, u64::from(spec.stream)),
            pool_bytes: pool_bytes(streams, spec.full_ops, spec.block_bytes),
            compressible_percent: spec.load.map_or(0, |load| load.job.compressible_percent),
            with_reads: spec.load.is_some_and(|load| load.job.reads.is_some()),
        }),
    };
    let (issuer, mut arena, note) = issuer_of(config, &spec, fill)?;
    let engine = issuer.engine();
    let work = || {
        if participant.ready() == Release::Abort {
            return None;
        }
        let schedule =
            Schedule { turn_ns: turn_ns(config, &spec), max_elapsed_ns: config.max_elapsed_ns, warm_up_ns };
        Some(Work::new(spec, barrier, schedule, StreamCounters::new(shared)))
    };
    let wait_batch = config.wait_batch;
    let outcome = match issuer {
        Issuer::Threads => {
            let mut outcome = thread_pool::run(spec, &mut arena, requests, work)?;
            outcome.look_at(&mut arena, &spec);
            outcome
        }
        issuer => match (work(), issuer) {
            (None, _) => StreamOutcome::nothing(now_ns()),
            (Some(work), Issuer::Ring(ring)) => uring::run(work, arena, *ring, wait_batch, requests)?,
            (Some(work), Issuer::Aio(context)) => {
                aio::run(work, arena, context, &config.contexts, wait_batch, requests)?
            }
            (Some(work), Issuer::Sync | Issuer::Threads) => {
                let mut outcome = match (spec.load.zip(requests), spec.positions) {
                    (Some((load, requests)), _) => load::run_sync(work, &mut arena, load, requests),
                    (None, Some(positions)) => position_loop::run(work, &mut arena, positions),
                    (None, None) => sync::run(work, &mut arena),
                };
                outcome.look_at(&mut arena, &spec);
                outcome
            }
        },
    };
    // The threads engine has summed up its threads; this one only waited for them.
    let own_wait = || Some(thread_wait_ns()?.saturating_sub(outcome.waited_before_ns?));
    let processor_wait_ns = outcome.processor_wait_ns.or_else(own_wait);
    Ok(StreamOutcome { engine, processor_wait_ns, note: note.or(outcome.note), ..outcome })
}

/// What the stream's engine needs, or the next available one with the reason.
fn issuer_of(
    config: &RunConfig,
    spec: &StreamSpec<'_>,
    fill: Fill,
) -> Result<(Issuer, Arena, Option<String>), EngineError> {
    let mut note = None;
    // The jobs of a load differ in depth, and what has one request in flight needs no queue.
    if config.engine == EngineKind::Sync || spec.load.is_some_and(|load| load.job.queue_depth == 1) {
        return Ok((Issuer::Sync, Arena::new(spec.pages, 1, spec.block_bytes, fill)?, None));
    }
    // A trim is a call that a thread waits for.
    let is_trimmed = spec.load.is_some_and(|load| load.job.has_trims());
    if config.engine == EngineKind::Uring && !is_trimmed {
        let arena = Arena::new(spec.pages, spec.depth, spec.block_bytes, fill)?;
        let depth = u32::try_from(spec.depth).unwrap_or(u32::MAX);
        match ring::make(config.ring_source, depth, spec.issue, &arena, spec.fd) {
            Ok(mut ring) => {
                let note = ring.note.take();
                return Ok((Issuer::Ring(Box::new(ring)), arena, note));
            }
            Err(NoRing::Forbidden(why)) => note = Some(why),
            Err(NoRing::Failed(source)) => {
                return Err(EngineError::Ring { stream: spec.stream, source });
            }
        }
    }
    let wants_aio = config.engine == EngineKind::Aio
        || spec.load.map_or(config.path, |load| load.job.path) == IoPath::Direct;
    if config.engine != EngineKind::Threads && wants_aio && !is_trimmed {
        match config.contexts.take(config.aio_source, spec.depth) {
            Ok(context) => {
                let arena = Arena::new(spec.pages, spec.depth, spec.block_bytes, fill)?;
                return Ok((Issuer::Aio(context), arena, note));
            }
            Err(error) => {
                let lead = note.map_or_else(String::new, |note| format!("{note}, and "));
                note = Some(lead + &aio::forbidden_message(&error));
            }
        }
    }
    if let Some(load) = spec.load.filter(|load| !load.job.may_be_shared_by_threads()) {
        let (job, depth) = (&load.job.name, load.job.queue_depth);
        let why = note.unwrap_or_else(|| "only the sync engine was asked for".into());
        return Err(EngineError::Workload(format!(
            "job {job} has {depth} requests in flight and flushes, which takes io_uring, or Linux AIO where it is direct: {why}"
        )));
    }
    // The jobs of a load differ in depth.
    let threads = config.pool_threads.min(spec.depth);
    Ok((Issuer::Threads, Arena::new(spec.pages, threads, spec.block_bytes, fill)?, note))
}
