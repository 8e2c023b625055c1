//! The life of one stream's thread: get ready, wait at the gate, wait for its turn, issue, hand back. It decides which
//! engine really issues, and says so.

use crate::EngineError;
use crate::arena::{Arena, Fill};
use crate::board::{Board, Tally};
use crate::clock::now_ns;
use crate::gate::{Gate, Opened};
use crate::lane::{Bounds, Lane, Latencies, NoLatencies, Outcome, Recorder, Work};
use crate::real::Recording;
use crate::ring::{self, NoRing, Ring, RingSource, UringTuning};
use crate::{sync, uring};
use rdsk_model::{EngineKind, Op};
use std::time::Duration;

/// What all streams of a run share.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) gate: Gate,
    pub(crate) engine: EngineKind,
    pub(crate) ring_source: RingSource,
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
    let wants_ring = course.engine == EngineKind::Uring;
    let depth = if wants_ring { lane.depth } else { 1 };
    let fill = match lane.op {
        Op::Read => Fill::Touched,
        Op::Write => Fill::Random { seed: crate::random::mix(lane.seed, u64::from(lane.stream)) },
    };
    let arena = Arena::new(depth, lane.block_bytes, fill)?;
    let (ring, note) = if wants_ring { ring_or_note(course, &lane, &arena)? } else { (None, None) };
    let engine = if ring.is_some() { EngineKind::Uring } else { EngineKind::Sync };
    let outcome = match seat.ready() {
        Opened::Abort => Outcome::nothing(now_ns()),
        Opened::Start => match course.recording {
            Recording::On => issue::<Latencies>(course, lane, board, arena, ring)?,
            Recording::Off => issue::<NoLatencies>(course, lane, board, arena, ring)?,
        },
    };
    Ok(Done { outcome, engine, note })
}

/// A ring, or the reason why the sync engine has to do.
fn ring_or_note(
    course: &Course,
    lane: &Lane<'_>,
    arena: &Arena,
) -> Result<(Option<Ring>, Option<String>), EngineError> {
    let depth = u32::try_from(lane.depth).unwrap_or(u32::MAX);
    match ring::make(course.ring_source, depth, lane.issue, arena, lane.fd) {
        Ok(ring) => Ok((Some(ring), None)),
        Err(NoRing::Forbidden(error)) => {
            let words = crate::lane::errno_words(error.raw_os_error().unwrap_or(0));
            Ok((None, Some(format!("io_uring is forbidden here ({words}): using the sync engine, depth 1"))))
        }
        Err(NoRing::Failed(source)) => Err(EngineError::Ring { stream: lane.stream, source }),
    }
}

fn issue<R: Recorder>(
    course: &Course,
    lane: Lane<'_>,
    board: &Board,
    mut arena: Arena,
    ring: Option<Ring>,
) -> Result<Outcome, EngineError> {
    let begin_ns = course.gate.begin_at(now_ns());
    let turn_ns = begin_ns.saturating_add(course.stagger_ns.saturating_mul(u64::from(lane.stream)));
    let deadline_ns = begin_ns.saturating_add(course.max_elapsed_ns);
    if !wait_for_turn(&course.gate, turn_ns.min(deadline_ns)) {
        return Ok(Outcome::nothing(now_ns()));
    }
    let bounds = Bounds { gate: &course.gate, deadline_ns };
    let tally = Tally::new(board, begin_ns, course.window_ns);
    let work = Work::<R>::new(lane, bounds, tally, now_ns());
    match ring {
        Some(ring) => uring::run(work, arena, ring, course.tuning.wait_batch),
        None => Ok(sync::run(work, &mut arena)),
    }
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
