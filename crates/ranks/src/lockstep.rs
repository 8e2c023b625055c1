//! What a rank does with the others in a run: the same turns, a common start on all clocks, and one wait for all after each. It keeps what
//! the result says of this rank.

use crate::clocks::{GATE_TRIPS, RUN_TRIPS, compare_clocks};
use crate::error::RanksError;
use crate::ranks::Ranks;
use crate::tree::{all_gather_is_true, broadcast, from_all};
use rdsk_model::{Clock, ClockOffset, Peers, Problem, ProblemKind, RankRun, RankVisit, SharedTurn};
use std::sync::{Arc, Mutex, PoisonError};

/// From the choice of the start to the start, while it travels to all ranks: so much, and for each step of the tree.
const LEAD_NS: u64 = 10_000_000;
const LEAD_PER_STEP_NS: u64 = 2_000_000;

/// What is known of this rank so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Myself(Arc<Mutex<RankRun>>);

impl Myself {
    /// A rank that has done nothing yet.
    pub fn new(run: RankRun) -> Self {
        Self(Arc::new(Mutex::new(run)))
    }

    /// As far as it is.
    pub fn so_far(&self) -> RankRun {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut RankRun)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The other ranks in the turns of a run.
pub struct Lockstep<'a> {
    ranks: &'a dyn Ranks,
    clock: &'a dyn Clock,
    myself: Myself,
    /// The clock and the agreed start of the turn that goes on.
    turn: (ClockOffset, u64),
    /// Why this rank cannot go on with the others.
    lost: Option<RanksError>,
}

impl<'a> Lockstep<'a> {
    /// This rank among the others.
    pub fn new(ranks: &'a dyn Ranks, clock: &'a dyn Clock, myself: Myself) -> Self {
        Self { ranks, clock, myself, turn: (ClockOffset::default(), 0), lost: None }
    }

    /// What is known of this rank so far.
    pub fn myself(&self) -> &Myself {
        &self.myself
    }

    /// Why this rank lost the others; `None` where it did not.
    pub fn lost(&self) -> Option<&RanksError> {
        self.lost.as_ref()
    }

    /// What a step with the others gives; nothing after one of them was lost.
    fn with<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, RanksError>) -> Option<T> {
        if self.lost.is_some() {
            return None;
        }
        step(self).map_err(|error| self.lost = Some(error)).ok()
    }

    /// The common start on this clock, once all are ready.
    fn agree(&mut self) -> Result<u64, RanksError> {
        let clock = compare_clocks(self.ranks, self.clock, GATE_TRIPS)?;
        // Every rank has been asked when this returns, so that none is waited for after the choice.
        from_all(self.ranks, (), |(), ()| ())?;
        let steps = u64::from(u32::BITS - self.ranks.size().leading_zeros());
        let chosen_ns = self.clock.now_ns() + LEAD_NS + LEAD_PER_STEP_NS * steps;
        let chosen_ns = broadcast(self.ranks, chosen_ns)?;
        let agreed_ns = chosen_ns.saturating_add_signed(clock.offset_ns);
        self.turn = (clock, agreed_ns);
        Ok(agreed_ns)
    }
}

/// The least rank that has a reason, with it.
type Reason = Option<(u32, String)>;

fn least(left: Reason, right: Reason) -> Reason {
    [left, right].into_iter().flatten().min()
}

impl Peers for Lockstep<'_> {
    fn begin(&mut self, plan: Result<&[&str], &Problem>) -> Result<(), Problem> {
        let said = self.with(|me| {
            let mine = plan.unwrap_or_default();
            let first: Vec<String> = broadcast(me.ranks, mine.iter().map(|&id| id.to_owned()).collect())?;
            let reason = match plan {
                Err(problem) => Some(problem.message.as_str()),
                // A rank that has no plan says so itself.
                Ok(cells) => {
                    (!first.is_empty() && first != cells).then_some("it plans other tests than rank 0")
                }
            };
            let mine = reason.map(|reason| (me.ranks.rank(), reason.to_owned()));
            let reason = broadcast(me.ranks, from_all(me.ranks, mine, least)?)?;
            if reason.is_none() {
                let clock = compare_clocks(me.ranks, me.clock, RUN_TRIPS)?;
                me.myself.change(|run| run.clock_before = Some(clock));
            }
            Ok(reason)
        });
        let problem = match said {
            Some(None) => return Ok(()),
            Some(Some((rank, reason))) => Problem::new(
                ProblemKind::Refused,
                "rank-differs",
                format!("rank {rank} of {}: {reason}", self.ranks.size()),
                "every rank needs the same targets under the same names",
            ),
            None => self.lost.as_ref().map_or_else(|| RanksError::Gone(0).problem(), RanksError::problem),
        };
        Err(problem)
    }

    fn turn(&mut self, mine: Option<SharedTurn>, is_well: bool) -> Option<SharedTurn> {
        self.with(|me| {
            let all_are_well = from_all(me.ranks, is_well, |left, right| left && right)?;
            broadcast(me.ranks, mine.filter(|_| all_are_well))
        })?
    }

    fn prepared(&mut self, is_ready: bool) -> bool {
        self.with(|me| all_gather_is_true(me.ranks, is_ready)).unwrap_or(false)
    }

    fn start(&mut self, is_ready: bool) -> Option<u64> {
        self.with(|me| match all_gather_is_true(me.ranks, is_ready)? {
            true => me.agree().map(Some),
            false => Ok(None),
        })?
    }

    fn done(&mut self, visit: Option<RankVisit>) {
        if let Some(visit) = visit {
            let (clock, agreed_ns) = self.turn;
            self.myself.change(|run| run.visits.push(RankVisit { clock, agreed_ns, ..visit }));
        }
        self.with(|me| all_gather_is_true(me.ranks, true));
    }

    fn end(&mut self) {
        if let Some(clock) = self.with(|me| compare_clocks(me.ranks, me.clock, RUN_TRIPS)) {
            self.myself.change(|run| run.clock_after = Some(clock));
        }
    }
}
