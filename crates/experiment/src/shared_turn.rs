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

/// Waits for the others through a turn in which this rank issues nothing.
pub(crate) fn wait(peers: &mut Option<&mut dyn Peers>) {
    let Some(peers) = peers else { return };
    if peers.prepared(true) && peers.start(true).is_some() {
        peers.done(None);
    }
}

/// The limits of a turn, which several ranks count from their common start.
pub(crate) fn whole(has_peers: bool, limits: Limits, slice: Slice) -> Limits {
    if has_peers { Limits { max_elapsed_ns: slice.limit_ns.max(slice.ns), ..limits } } else { limits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Problem, RankVisit};

    /// Peers of which one may fail to prepare, and the calls that a rank made.
    struct Others {
        are_prepared: bool,
        calls: Vec<&'static str>,
    }

    impl Peers for Others {
        fn begin(&mut self, _: Result<&[&str], &Problem>) -> Result<(), Problem> {
            Ok(())
        }
        fn turn(&mut self, mine: Option<SharedTurn>, _: bool) -> Option<SharedTurn> {
            mine
        }
        fn prepared(&mut self, is_ready: bool) -> bool {
            self.calls.push("prepared");
            is_ready && self.are_prepared
        }
        fn start(&mut self, is_ready: bool) -> Option<u64> {
            self.calls.push("start");
            is_ready.then_some(7)
        }
        fn done(&mut self, visit: Option<RankVisit>) {
            assert!(visit.is_none(), "it issued nothing");
            self.calls.push("done");
        }
        fn end(&mut self) {}
    }

    #[test]
    fn a_rank_that_waits_makes_the_calls_of_a_turn() {
        for (are_prepared, calls) in [(true, vec!["prepared", "start", "done"]), (false, vec!["prepared"])] {
            let mut others = Others { are_prepared, calls: Vec::new() };
            wait(&mut Some(&mut others));
            assert_eq!(others.calls, calls);
        }
    }
}
