//! A turn of several ranks: they begin it together, and wait for each other after its I/O, so that what is
//! counted meanwhile is the I/O of all ranks of a host. A rank that fails never leaves the others waiting. Alone, it does nothing.

use rdsk_engine::{EngineError, Run};
use rdsk_model::{Peers, RankVisit};

/// Parts of a turn's time at most.
const MAX_PARTS: usize = 32;

/// How far a turn has come with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Preparing,
    Prepared,
    Running,
    Over,
}

/// One turn with the others. Dropped before its end, it says that this rank failed.
pub(crate) struct Lockstep<'a> {
    peers: Option<&'a mut dyn Peers>,
    cell: &'a str,
    step: Step,
    began_ns: Option<u64>,
}

impl<'a> Lockstep<'a> {
    pub(crate) fn new(peers: &'a mut Option<&mut dyn Peers>, cell: &'a str) -> Self {
        let peers: Option<&mut dyn Peers> = match peers {
            Some(peers) => Some(&mut **peers),
            None => None,
        };
        Self { peers, cell, step: Step::Preparing, began_ns: None }
    }

    pub(crate) const fn is_alone(&self) -> bool {
        self.peers.is_none()
    }

    /// When the I/O began, where it did so with others.
    pub(crate) const fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// Waits until all ranks have prepared.
    ///
    /// # Errors
    /// [`EngineError::NotStarted`] where one could not.
    pub(crate) fn prepared(&mut self) -> Result<(), EngineError> {
        let Some(peers) = &mut self.peers else { return Ok(()) };
        if peers.prepared(true) {
            self.step = Step::Prepared;
            return Ok(());
        }
        self.step = Step::Over;
        Err(EngineError::NotStarted)
    }

    /// See [`rdsk_engine::Control::starts_at_ns`].
    pub(crate) fn starts_at_ns(&mut self, is_ready: bool) -> Option<u64> {
        let Some(peers) = &mut self.peers else { return is_ready.then_some(0) };
        let starts = peers.start(is_ready);
        self.step = if starts.is_some() { Step::Running } else { Step::Over };
        starts
    }

    /// See [`rdsk_engine::Control::ended`].
    pub(crate) fn ended(&mut self, begin_ns: u64, run: &Run) {
        let Some(peers) = &mut self.peers else { return };
        let (part_ns, parts) = parts(run.window_ns, &run.windows);
        peers.done(Some(RankVisit {
            cell: self.cell.to_owned(),
            start_ns: begin_ns,
            end_ns: begin_ns + run.to_return_ns,
            bytes: run.bytes,
            ops: run.ops,
            part_ns,
            parts,
            ..RankVisit::default()
        }));
        self.step = Step::Over;
        self.began_ns = Some(begin_ns);
    }
}

impl Drop for Lockstep<'_> {
    fn drop(&mut self) {
        let Some(peers) = &mut self.peers else { return };
        match self.step {
            Step::Preparing => _ = peers.prepared(false),
            Step::Prepared => _ = peers.start(false),
            Step::Running => peers.done(None),
            Step::Over => {}
        }
    }
}

/// Windows joined to at most 32 parts of equal width.
fn parts(window_ns: u64, windows: &[u64]) -> (u64, Vec<u64>) {
    let joined = windows.len().div_ceil(MAX_PARTS).max(1);
    let parts = windows.chunks(joined).map(|windows| windows.iter().sum()).collect();
    (window_ns * joined as u64, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::SharedTurn;

    #[test]
    fn parts_hold_every_window_once() {
        assert_eq!(parts(50, &[]), (50, vec![]));
        assert_eq!(parts(50, &[1, 2, 3]), (50, vec![1, 2, 3]));
        let windows: Vec<u64> = (0..70).collect();
        let (width, joined) = parts(50, &windows);
        assert_eq!((width, joined.len(), joined[0], joined[23]), (150, 24, 3, 69));
        assert_eq!(joined.iter().sum::<u64>(), windows.iter().sum::<u64>());
    }

    /// Notes the calls of a rank.
    #[derive(Default)]
    struct Calls(Vec<String>);

    impl Peers for Calls {
        fn begin(&mut self, _: Result<&[&str], &rdsk_model::Problem>) -> Result<(), rdsk_model::Problem> {
            Ok(())
        }
        fn turn(&mut self, mine: Option<SharedTurn>, _: bool) -> Option<SharedTurn> {
            mine
        }
        fn prepared(&mut self, is_ready: bool) -> bool {
            self.0.push(format!("prepared {is_ready}"));
            is_ready
        }
        fn start(&mut self, is_ready: bool) -> Option<u64> {
            self.0.push(format!("start {is_ready}"));
            is_ready.then_some(7)
        }
        fn done(&mut self, visit: Option<RankVisit>) {
            self.0.push(format!("done {}", visit.is_some()));
        }
        fn end(&mut self) {}
    }

    #[test]
    fn a_rank_that_fails_leaves_no_other_waiting() {
        let mut calls = Calls::default();
        drop(Lockstep::new(&mut Some(&mut calls), "a"));
        assert_eq!(calls.0, ["prepared false"], "it failed while it prepared");
        let ready = ["prepared true", "start true", "done false"];
        for (steps, made) in [(1, vec![ready[0], "start false"]), (2, ready.to_vec())] {
            calls.0.clear();
            let mut others: Option<&mut dyn Peers> = Some(&mut calls);
            let mut turn = Lockstep::new(&mut others, "a");
            turn.prepared().unwrap();
            if steps == 2 {
                assert_eq!(turn.starts_at_ns(true), Some(7));
            }
            drop(turn);
            assert_eq!(calls.0, made, "it failed after {steps} steps");
        }
    }
}
