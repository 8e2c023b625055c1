//! The life of one stream's thread: get ready, wait at the gate, wait for its turn, issue, hand back. It decides which
//! engine really issues, and says so.

use crate::aio::{AioSource, Contexts};
use crate::arena::{Arena, Fill};
use crate::clock::now_ns;
use crate::counters::{SharedCounters, StreamCounters};
use crate::error::EngineError;
use crate::ring::{self, NoRing, Ring, RingSource, UringTuning};
use crate::start_barrier::{Release, StartBarrier};
use crate::stream_spec::StreamSpec;
use crate::work::{Bounds, Latencies, NoLatencies, Outcome, Recorder, Work};
use crate::{aio, position_loop, sync, thread_pool, uring};
use rdsk_model::{EngineKind, IoPath, Op};
use rdsk_sys::aio::Context;
use std::time::Duration;

/// Whether latencies are recorded; switched off only to measure what recording costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// Every one.
    #[default]
    On,
    /// None: the histogram of the Run stays empty.
    Off,
}

/// How all streams of a run issue their I/O.
#[derive(Debug)]
pub(crate) struct RunConfig {
    pub(crate) engine: EngineKind,
    pub(crate) path: IoPath,
    /// Threads of a stream on the engine of threads.
    pub(crate) pool_threads: usize,
    pub(crate) ring_source: RingSource,
    pub(crate) aio_source: AioSource,
    pub(crate) contexts: Contexts,
    pub(crate) tuning: UringTuning,
    pub(crate) recording: Recording,
    pub(crate) window_ns: u64,
    pub(crate) max_elapsed_ns: u64,
    pub(crate) stagger_ns: u64,
}

/// What one stream did, and with which engine.
#[derive(Debug)]
pub(crate) struct StreamDone {
    pub(crate) outcome: Outcome,
    pub(crate) engine: EngineKind,
    pub(crate) note: Option<String>,
}

/// What a stream issues its I/O with.
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

/// How long a stream that waits for its turn goes without a look at the flags.
const TURN_POLL_NS: u64 = 5_000_000;

/// Runs one stream from its setup to its end.
///
/// # Errors
/// When the stream could not start: no processor, no memory, no ring for another reason than that it is forbidden.
pub(crate) fn run_stream(
    config: &RunConfig,
    barrier: &StartBarrier,
    spec: StreamSpec<'_>,
    shared: &SharedCounters,
    cpu: Option<usize>,
) -> Result<StreamDone, EngineError> {
    let participant = barrier.join();
    if let Some(cpu) = cpu {
        let pinned = rdsk_sys::timer::pin_to_cpu(cpu);
        pinned.map_err(|source| EngineError::Thread { stream: spec.stream, source })?;
    }
    let start = || match participant.ready() {
        Release::Abort => None,
        Release::Start => wait_for_start(config, barrier, &spec),
    };
    match config.recording {
        Recording::On => issue::<Latencies>(config, barrier, spec, shared, start),
        Recording::Off => issue::<NoLatencies>(config, barrier, spec, shared, start),
    }
}

/// Gets the means, waits for the start, issues.
fn issue<R: Recorder + Send>(
    config: &RunConfig,
    barrier: &StartBarrier,
    spec: StreamSpec<'_>,
    shared: &SharedCounters,
    start: impl FnOnce() -> Option<Started>,
) -> Result<StreamDone, EngineError> {
    let fill = match spec.op {
        Op::Read => Fill::Touched,
        Op::Write => Fill::Random { seed: crate::random::mix(spec.seed, u64::from(spec.stream)) },
    };
    let (issuer, mut arena, mut note) = issuer_of(config, &spec, fill)?;
    let engine = issuer.engine();
    let work = || {
        let Started { begin_ns, deadline_ns } = start()?;
        let bounds = Bounds { barrier, deadline_ns };
        let counters = StreamCounters::new(shared, begin_ns, config.window_ns);
        Some(Work::<R>::new(spec, bounds, counters, now_ns()))
    };
    let outcome = match issuer {
        Issuer::Threads => {
            let (outcome, fewer) = thread_pool::run(spec, &mut arena, work)?;
            note = note.or(fewer);
            outcome
        }
        issuer => match (work(), issuer) {
            (None, _) => Outcome::nothing(now_ns()),
            (Some(work), Issuer::Ring(ring)) => uring::run(work, arena, *ring, config.tuning.wait_batch)?,
            (Some(work), Issuer::Aio(context)) => {
                aio::run(work, arena, context, &config.contexts, config.tuning.wait_batch)?
            }
            (Some(work), Issuer::Sync | Issuer::Threads) => match spec.positions {
                Some(positions) => position_loop::run(work, &mut arena, positions),
                None => sync::run(work, &mut arena),
            },
        },
    };
    Ok(StreamDone { outcome, engine, note })
}

/// What the stream's engine needs, or that of the next one that is to be had here, with the reason.
fn issuer_of(
    config: &RunConfig,
    spec: &StreamSpec<'_>,
    fill: Fill,
) -> Result<(Issuer, Arena, Option<String>), EngineError> {
    let mut note = None;
    if config.engine == EngineKind::Sync {
        return Ok((Issuer::Sync, Arena::new(1, spec.block_bytes, fill)?, None));
    }
    if config.engine == EngineKind::Uring {
        let arena = Arena::new(spec.depth, spec.block_bytes, fill)?;
        let depth = u32::try_from(spec.depth).unwrap_or(u32::MAX);
        match ring::make(config.ring_source, depth, spec.issue, &arena, spec.fd) {
            Ok(ring) => return Ok((Issuer::Ring(Box::new(ring)), arena, None)),
            Err(NoRing::Forbidden(error)) => note = Some(ring::forbidden_message(&error)),
            Err(NoRing::Failed(source)) => {
                return Err(EngineError::Ring { stream: spec.stream, source });
            }
        }
    }
    let wants_aio = config.engine == EngineKind::Aio || config.path == IoPath::Direct;
    if config.engine != EngineKind::Threads && wants_aio {
        match config.contexts.take(config.aio_source, spec.depth) {
            Ok(context) => {
                let arena = Arena::new(spec.depth, spec.block_bytes, fill)?;
                return Ok((Issuer::Aio(context), arena, note));
            }
            Err(error) => note = Some(joined(note, &aio::forbidden_message(&error))),
        }
    }
    Ok((Issuer::Threads, Arena::new(config.pool_threads, spec.block_bytes, fill)?, note))
}

fn joined(first: Option<String>, second: &str) -> String {
    first.map_or_else(|| second.to_owned(), |first| format!("{first}, and {second}"))
}

/// A stream's turn.
struct Started {
    begin_ns: u64,
    deadline_ns: u64,
}

/// Waits for the stream's turn after the start of the run; `None` when the run was halted before.
fn wait_for_start(config: &RunConfig, barrier: &StartBarrier, spec: &StreamSpec<'_>) -> Option<Started> {
    let begin_ns = barrier.start_at(now_ns());
    let turn_ns = begin_ns.saturating_add(config.stagger_ns.saturating_mul(u64::from(spec.stream)));
    let deadline_ns = begin_ns.saturating_add(config.max_elapsed_ns);
    wait_for_turn(barrier, turn_ns.min(deadline_ns)).then_some(Started { begin_ns, deadline_ns })
}

/// Sleeps until a time; false when the run was halted before.
fn wait_for_turn(barrier: &StartBarrier, turn_ns: u64) -> bool {
    loop {
        if barrier.is_halted() {
            return false;
        }
        let now = now_ns();
        if now >= turn_ns {
            return true;
        }
        std::thread::sleep(Duration::from_nanos((turn_ns - now).min(TURN_POLL_NS)));
    }
}
