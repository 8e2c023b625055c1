//! Whose turn it is where several ranks run the same plan: all take the turn of rank 0, and with it the time that it has there. It measures
//! nothing.

use crate::run_state::{RunState, Slice};
use crate::schedule::Turn;
use rdsk_engine::Limits;
use rdsk_model::{Peers, SharedTurn};

/// The next turn: that of rank 0, where there are several.
pub(crate) fn agreed(
    peers: &mut Option<&mut dyn Peers>,
    mine: Option<Turn>,
    state: &RunState,
) -> Option<Turn> {
    let Some(peers) = peers else { return mine };
    let shared = mine.map(|Turn { index, round, slice }| SharedTurn {
        position: index,
        round,
        run_ns: slice.ns,
        most_ns: slice.limit_ns,
    });
    let is_well = state.totals.iter().all(|totals| totals.failure.is_none() && totals.errors.is_empty());
    let SharedTurn { position, round, run_ns, most_ns } = peers.turn(shared, is_well)?;
    Some(Turn { index: position, round, slice: Slice { ns: run_ns, limit_ns: most_ns } })
}

/// The limits of a turn, which several ranks count from their common start.
pub(crate) fn whole(has_peers: bool, limits: Limits, slice: Slice) -> Limits {
    if has_peers { Limits { max_elapsed_ns: slice.limit_ns.max(slice.ns), ..limits } } else { limits }
}
