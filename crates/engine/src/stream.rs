//! The life of one stream's thread: get ready, wait at the gate, wait for its turn, issue, hand back. It decides which
//! engine really issues, and says so.

use crate::EngineError;
use crate::aio::{AioSource, Contexts};
use crate::arena::{Arena, Fill};
use crate::board::{Board, Tally};
use crate::clock::now_ns;
use crate::gate::{Gate, Opened};
use crate::lane::{Bounds, Lane, Latencies, NoLatencies, Outcome, Recorder, Work};
use crate::real::Recording;
use crate::ring::{self, NoRing, Ring, RingSource, UringTuning};
use crate::{aio, crew, sync, uring};
use rdsk_model::{EngineKind, IoPath, Op};
use rdsk_sys::aio::Context;
use std::time::Duration;

/// What all streams of a run share.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) gate: Gate,
    pub(crate) engine: EngineKind,
    pub(crate) path: IoPath,
    /// Threads of a stream on the engine of threads.
    pub(crate) crew_size: usize,
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
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) engine: EngineKind,
    pub(crate) note: Option<String>,
}

/// What a stream issues its I/O with.
enum Means {
    Sync,
    Crew,
    Aio(Context),
    Ring(Box<Ring>),
}

impl Means {
    fn engine(&self) -> EngineKind {
        match self {
            Self::Sync => EngineKind::Sync,
            Self::Crew => EngineKind::Threads,
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
pub(crate) fn live(
    course: &Course,
    lane: Lane<'_>,
    board: &Board,
    cpu: Option<usize>,
) -> Result<Done, EngineError> {
    let seat = course.gate.seat();
    if let Some(cpu) = cpu {
        let pinned = rdsk_sys::timer::pin_to_cpu(cpu);
        pinned.map_err(|source| EngineError::Thread { stream: lane.stream, source })?;
    }
    let start = || match seat.ready() {
        Opened::Abort => None,
        Opened::Start => begin(course, &lane),
    };
    match course.recording {
        Recording::On => issue::<Latencies>(course, lane, board, start),
        Recording::Off => issue::<NoLatencies>(course, lane, board, start),
    }
}

/// Gets the means, waits for the start, issues.
fn issue<R: Recorder + Send>(
    course: &Course,
    lane: Lane<'_>,
    board: &Board,
    start: impl FnOnce() -> Option<Begun>,
) -> Result<Done, EngineError> {
    let fill = match lane.op {
        Op::Read => Fill::Touched,
        Op::Write => Fill::Random { seed: crate::random::mix(lane.seed, u64::from(lane.stream)) },
    };
    let (means, mut arena, mut note) = means_of(course, &lane, fill)?;
    let engine = means.engine();
    let work = || {
        let Begun { begin_ns, deadline_ns } = start()?;
        let bounds = Bounds { gate: &course.gate, deadline_ns };
        let tally = Tally::new(board, begin_ns, course.window_ns);
        Some(Work::<R>::new(lane, bounds, tally, now_ns()))
    };
    let outcome = match means {
        Means::Crew => {
            let (outcome, fewer) = crew::live(lane, &mut arena, work)?;
            note = note.or(fewer);
            outcome
        }
        means => match (work(), means) {
            (None, _) => Outcome::nothing(now_ns()),
            (Some(work), Means::Ring(ring)) => uring::run(work, arena, *ring, course.tuning.wait_batch)?,
            (Some(work), Means::Aio(context)) => {
                aio::run(work, arena, context, &course.contexts, course.tuning.wait_batch)?
            }
            (Some(work), Means::Sync | Means::Crew) => sync::run(work, &mut arena),
        },
    };
    Ok(Done { outcome, engine, note })
}

/// What the stream's engine needs, or that of the next one that is to be had here, with the reason.
fn means_of(
    course: &Course,
    lane: &Lane<'_>,
    fill: Fill,
) -> Result<(Means, Arena, Option<String>), EngineError> {
    let mut note = None;
    if course.engine == EngineKind::Sync {
        return Ok((Means::Sync, Arena::new(1, lane.block_bytes, fill)?, None));
    }
    if course.engine == EngineKind::Uring {
        let arena = Arena::new(lane.depth, lane.block_bytes, fill)?;
        let depth = u32::try_from(lane.depth).unwrap_or(u32::MAX);
        match ring::make(course.ring_source, depth, lane.issue, &arena, lane.fd) {
            Ok(ring) => return Ok((Means::Ring(Box::new(ring)), arena, None)),
            Err(NoRing::Forbidden(error)) => note = Some(ring::forbidden_words(&error)),
            Err(NoRing::Failed(source)) => {
                return Err(EngineError::Ring { stream: lane.stream, source });
            }
        }
    }
    let wants_aio = course.engine == EngineKind::Aio || course.path == IoPath::Direct;
    if course.engine != EngineKind::Threads && wants_aio {
        match course.contexts.take(course.aio_source, lane.depth) {
            Ok(context) => {
                let arena = Arena::new(lane.depth, lane.block_bytes, fill)?;
                return Ok((Means::Aio(context), arena, note));
            }
            Err(error) => note = Some(joined(note, &aio::forbidden_words(&error))),
        }
    }
    Ok((Means::Crew, Arena::new(course.crew_size, lane.block_bytes, fill)?, note))
}

fn joined(first: Option<String>, second: &str) -> String {
    first.map_or_else(|| second.to_owned(), |first| format!("{first}, and {second}"))
}

/// A stream's turn.
struct Begun {
    begin_ns: u64,
    deadline_ns: u64,
}

/// Waits for the stream's turn after the start of the run; `None` when the run was halted before.
fn begin(course: &Course, lane: &Lane<'_>) -> Option<Begun> {
    let begin_ns = course.gate.begin_at(now_ns());
    let turn_ns = begin_ns.saturating_add(course.stagger_ns.saturating_mul(u64::from(lane.stream)));
    let deadline_ns = begin_ns.saturating_add(course.max_elapsed_ns);
    wait_for_turn(&course.gate, turn_ns.min(deadline_ns)).then_some(Begun { begin_ns, deadline_ns })
}

/// Sleeps until a time; false when the run was halted before.
fn wait_for_turn(gate: &Gate, turn_ns: u64) -> bool {
    loop {
        if gate.is_halted() {
            return false;
        }
        let now = now_ns();
        if now >= turn_ns {
            return true;
        }
        std::thread::sleep(Duration::from_nanos((turn_ns - now).min(TURN_POLL_NS)));
    }
}
