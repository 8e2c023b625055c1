//! Whose turn it is and how long it lasts. First come the rounds of the plan, all turns of a cell equally long; then
//! further rounds over the groups of cells whose figures are least precise, in the time that is left. It opens nothing and
//! measures nothing.

use crate::run_state::{RunState, Slice};
use crate::stopping::{MIN_RUN_NS, longest_ns};
use rdsk_model::plan::turned;
use rdsk_model::{Cell, EngineKind, Extent, Op, Plan};
use std::collections::VecDeque;

/// The part of the budget for the rounds of the plan; the rest goes where precision is missing.
pub(crate) const FIRST_ROUNDS_SHARE: f64 = 0.5;
/// The first round may exceed the budget by one part in `OVERRUN_PART`, and in any case by `MIN_OVERRUN_NS` or its share of
/// `MIN_OVERRUN_OF_ALL_CELLS_NS`: with few cells, the preparation of one may take longer than a part of a short budget.
const OVERRUN_PART: u64 = 4;
const MIN_OVERRUN_NS: u64 = 1_500_000_000;
const MIN_OVERRUN_OF_ALL_CELLS_NS: u64 = 60_000_000_000;
/// A further turn of a group is begun where at least this part of what its last one took is left.
const NEARLY_ALL: f64 = 0.95;

/// One turn of a cell: its visits of one round.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// The cell, by its place in the plan.
    pub(crate) index: usize,
    pub(crate) round: u32,
    pub(crate) slice: Slice,
}

/// Gives the turns of a run, one after the other: what came of the turns before decides on the next one.
///
/// With two groups, A of cells 0 and 1 and B of cell 2, and two rounds, the turns are 0 1 2, then 1 0 2 (`Plan::order`). If B's
/// first turn took 20 s and 13 s are left when its second one comes, it has none. If turns of A take 2 s and the margin of cell 0 is
/// wider than wanted, A has further rounds in these 13 s: 0 1, 1 0, 0 1.
pub(crate) struct Schedule<'a> {
    plan: &'a Plan,
    groups: Vec<Vec<usize>>,
    /// The cells of each round of the plan, group by group.
    order: Vec<Vec<usize>>,
    round: u32,
    /// Groups of this round that had their turn, and the cells in them.
    groups_done: usize,
    cells_done: usize,
    /// Cells of the group whose turn it is that wait.
    waiting: VecDeque<usize>,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let (groups, order) = (plan.groups(), plan.order());
        Self { plan, groups, order, round: 0, groups_done: 0, cells_done: 0, waiting: VecDeque::new() }
    }

    /// The next turn at this moment; `None` when the run is over.
    pub(crate) fn next(&mut self, now_ns: u64, state: &mut RunState) -> Option<Turn> {
        loop {
            if state.has_given_up() {
                return None;
            }
            let left_ns = state.deadline_ns.saturating_sub(now_ns);
            let Some(index) = self.waiting.pop_front() else {
                self.waiting = self.next_group(left_ns, state)?.into();
                continue;
            };
            let slice = self.slice_of(index, left_ns, state);
            let cell = &self.plan.cells[index];
            let is_left_out = cell.not_applicable.is_some()
                || self.is_too_late(cell, now_ns, state)
                || state.skips_visit(index, cell);
            if !is_left_out {
                return Some(Turn { index, round: self.round, slice });
            }
        }
    }

    /// The cells of the next group that has a turn, in their order.
    fn next_group(&mut self, left_ns: u64, state: &mut RunState) -> Option<Vec<usize>> {
        while let Some(cells) = self.order.get(self.round as usize) {
            let Some(group) = self.groups.get(self.groups_done) else {
                (self.round, self.groups_done, self.cells_done) = (self.round + 1, 0, 0);
                continue;
            };
            let turns_left = &cells[self.cells_done..];
            self.groups_done += 1;
            self.cells_done += group.len();
            if self.round == 0 || self.affords(group, turns_left, left_ns, state) {
                return Some(turns_left[..group.len()].to_vec());
            }
        }
        self.further_group(left_ns, state)
    }

    /// Once the rounds of the plan are over, the group that gains most from another one, all of its cells alike, so that a comparison
    /// has the same rounds on both sides; `None` when all cells are precise or no time is left.
    fn further_group(&mut self, left_ns: u64, state: &mut RunState) -> Option<Vec<usize>> {
        if self.plan.runtime_ns.is_some() || state.has_hung {
            return None;
        }
        let group = self.least_precise(left_ns, state)?;
        state.visits += group.len();
        if self.groups_done > 0 {
            self.round += 1;
        }
        self.groups_done += 1;
        Some(turned(&group, self.round))
    }

    fn slice_of(&self, index: usize, left_ns: u64, state: &RunState) -> Slice {
        match self.order.get(self.round as usize) {
            Some(cells) => {
                let place = self.cells_done - self.waiting.len() - 1;
                self.slice(&cells[place..], left_ns, state)
            }
            None => {
                let ns = state.slices_ns[index] / u64::from(state.rounds_done[index].max(1));
                let cell = &self.plan.cells[index];
                let limit_ns = if is_pass(cell) { left_ns.max(ns) } else { longest_ns(cell, ns) };
                Slice { ns, limit_ns }
            }
        }
    }

    /// Whether a cell's first turn comes when the time was long used up: what comes before visits, such as filling the page cache, is
    /// in no cell's slice. Simulated time costs nothing, and whatever the time is, something is measured.
    fn is_too_late(&self, cell: &Cell, now_ns: u64, state: &RunState) -> bool {
        let over_ns = now_ns.saturating_sub(state.deadline_ns);
        let least_ns =
            (MIN_OVERRUN_OF_ALL_CELLS_NS / self.plan.cells.len().max(1) as u64).max(MIN_OVERRUN_NS);
        let may_be_ns = (self.plan.budget_ns / OVERRUN_PART).max(least_ns);
        self.round == 0
            && over_ns > may_be_ns
            && state.visits_done > 0
            // What hangs is reported for each cell, once.
            && !state.has_hung
            && self.plan.runtime_ns.is_none()
            && cell.workload.engine != EngineKind::Sim
    }

    /// Whether another turn of all cells of a group, the first of the turns left in a round, fits into the time left; that of
    /// passes, which cannot be shorter, into the group's part of it. Where even the first pass was cut short, the time left
    /// goes to more parts. So cells of a group have the same number of rounds: visits that were cut short would be unlike the others,
    /// and a flush cannot be cut.
    ///
    /// Group A has two cells of passes, whose turns took 5 s each, and B one, of 20 s; all have the weight 1. In the second of three
    /// rounds, with 62 s left, the turns of this round and the next one take 2 × 30 s: both groups have theirs. With 50 s left they
    /// would not fit, so each group is held against its part. A has 2 of the 6 weights that are left in two rounds, 16.7 s, of which it
    /// needs 10: it has its turns. B then has 1 of 4 weights and 10 of the 40 s left, but needs 20: it has none in this round.
    fn affords(&self, group: &[usize], turns_left: &[usize], left_ns: u64, state: &RunState) -> bool {
        if self.plan.runtime_ns.is_some() {
            return true;
        }
        if group.iter().any(|&index| self.is_cut(index, state)) {
            return left_ns > state.longest_wait_ns(group, self.plan.budget_ns);
        }
        let takes_ns = turns_ns(group, &state.turns_ns);
        let fits = share(takes_ns, NEARLY_ALL, 1.0).max(self.with_a_wait_ns(group, state)) <= left_ns;
        if !fits || !self.running(group).any(is_pass) {
            return fits;
        }
        // As long as the turns of all cells fit, none is skipped: it would come later, among others of its own.
        let later_rounds = u64::from(self.plan.rounds.saturating_sub(self.round + 1));
        let round_ns: u64 = state.turns_ns.iter().sum();
        let all_ns =
            turns_ns(turns_left, &state.turns_ns).saturating_add(round_ns.saturating_mul(later_rounds));
        if all_ns <= left_ns {
            return true;
        }
        let weight: f64 = self.running(group).map(|cell| cell.weight).sum();
        takes_ns <= share(left_ns, weight, self.weight_left(turns_left))
    }

    /// The time for the first of the turns that are left in a round: as requested, else an equal part of the cell's share
    /// of the budget, and no more than its share of the time that is left. A pass may take half of the cell's share.
    ///
    /// Of 60 s for five rounds, a cell of weight 1 beside one of weight 2 has 20 s, half of them in these rounds: 2 s in each. If
    /// 15 s are left when the first round begins, since a test file was filled before, its share of them is 1 of 3 + 4 × 3
    /// weights, and its first turn has 1 s. With all 60 s left, a pass has 2 s too, and may take 10 s until it is whole: half of 20 s.
    fn slice(&self, turns_left: &[usize], left_ns: u64, state: &RunState) -> Slice {
        let plan = self.plan;
        let rounds = u64::from(plan.rounds.max(1));
        if let Extent::Once { most_ns } = plan.cells[turns_left[0]].extent {
            return Slice { ns: most_ns, limit_ns: most_ns };
        }
        if let Some(runtime_ns) = plan.runtime_ns {
            let ns = (runtime_ns / rounds).max(MIN_RUN_NS);
            return Slice { ns, limit_ns: ns };
        }
        let cell = &plan.cells[turns_left[0]];
        let later_rounds = rounds - 1 - u64::from(self.round);
        let later_ns = self.ramps_ns_of_all().saturating_mul(later_rounds);
        let ramps_ns = self.ramps_ns(turns_left).saturating_add(later_ns);
        let left_ns = left_ns.saturating_sub(ramps_ns);
        let share_ns = share(left_ns, cell.weight, self.weight_left(turns_left)).max(MIN_RUN_NS);
        let all_ns = plan.budget_ns.saturating_sub(self.ramps_ns_of_all().saturating_mul(rounds));
        let whole_ns = share(all_ns, cell.weight, self.weight_of_all());
        let equal_ns = share(whole_ns, FIRST_ROUNDS_SHARE, rounds as f64);
        // What no longer fits is left out whole, so that only the first round is squeezed into what is left: it sets the length.
        let ns = if self.round > 0 { equal_ns } else { share_ns.min(equal_ns) }.max(MIN_RUN_NS);
        let limit_ns = match cell {
            cell if !is_pass(cell) => longest_ns(cell, ns),
            // Half of the time was not enough for a pass: its parts have what is left, not half of all each time.
            _ if self.is_cut(turns_left[0], state) => share_ns,
            _ => share_ns.max(left_ns.min(whole_ns / rounds.min(2))),
        };
        Slice { ns, limit_ns }
    }

    /// Whether the latest pass of a cell had no time to be whole.
    fn is_cut(&self, index: usize, state: &RunState) -> bool {
        let visit = state.totals[index].visits.last();
        self.plan.cells[index]
            .extent
            .pass_bytes()
            .zip(visit)
            .is_some_and(|(bytes, visit)| visit.bytes < bytes)
    }

    /// The group whose least precise cell gains most from another round, if one fits into the time left; without the cells
    /// that are not repeated.
    fn least_precise(&self, left_ns: u64, state: &RunState) -> Option<Vec<usize>> {
        // A turn may take as long as the longest so far: a cache that was full is flushed for longer.
        let fits = |group: &Vec<usize>| {
            turns_ns(group, &state.longest_turns_ns).max(self.with_a_wait_ns(group, state)) <= left_ns
        };
        // The width falls with the root of the rounds: by half of this share with the next one. Two rounds give a width,
        // if anything does.
        let gain_of = |&index: &usize| {
            let rounds = state.rounds_done[index];
            match state.margins[index] {
                Some(width) if width > self.plan.precision => width / f64::from(rounds.max(1)),
                None if rounds < 2 => f64::INFINITY,
                _ => 0.0,
            }
        };
        let gain = |group: &Vec<usize>| group.iter().map(gain_of).fold(0.0, f64::max);
        self.groups
            .iter()
            .map(|group| group.iter().copied().filter(|&index| self.is_repeatable(index, state)).collect())
            .filter(|group| fits(group) && gain(group) > 0.0)
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// Whether more rounds of a cell show anything: a single pass was all that was asked, and what failed fails again. Writes
    /// of a whole run have the rounds of the plan, and no more.
    fn is_repeatable(&self, index: usize, state: &RunState) -> bool {
        let (cell, totals) = (&self.plan.cells[index], &state.totals[index]);
        let is_written = self.plan.is_whole_run() && cell.workload.op == Op::Write;
        if is_written && state.rounds_done[index] >= self.plan.rounds {
            return false;
        }
        let has_failed = totals.failure.is_some() || !totals.errors.is_empty() || totals.visits.is_empty();
        cell.not_applicable.is_none()
            && !matches!(cell.extent, Extent::Pass { .. } | Extent::Once { .. })
            && !has_failed
    }

    /// The time that these turns are given, or need, and the longest wait of an I/O: it may come again, and cannot be cut.
    fn with_a_wait_ns(&self, turns: &[usize], state: &RunState) -> u64 {
        let given_ns = |index: usize| state.slices_ns[index] / u64::from(state.rounds_done[index].max(1));
        let least_ns = |&index: &usize| given_ns(index).min(state.longest_turns_ns[index]);
        let wait_ns = state.longest_wait_ns(turns, self.plan.budget_ns);
        turns.iter().map(least_ns).fold(wait_ns, u64::saturating_add)
    }

    /// Weight of the turns left in a round and of all later rounds.
    fn weight_left(&self, turns_left: &[usize]) -> f64 {
        let later = self.plan.rounds.saturating_sub(self.round + 1);
        self.running(turns_left).map(|cell| cell.weight).sum::<f64>()
            + self.weight_of_all() * f64::from(later)
    }

    fn weight_of_all(&self) -> f64 {
        self.plan.cells.iter().filter(|cell| cell.not_applicable.is_none()).map(|cell| cell.weight).sum()
    }

    fn ramps_ns_of_all(&self) -> u64 {
        ramps_ns(self.plan.cells.iter().filter(|cell| cell.not_applicable.is_none()))
    }

    fn ramps_ns(&self, turns: &[usize]) -> u64 {
        ramps_ns(self.running(turns))
    }

    fn running<'c>(&'c self, turns: &'c [usize]) -> impl Iterator<Item = &'c Cell> {
        turns.iter().map(|&index| &self.plan.cells[index]).filter(|cell| cell.not_applicable.is_none())
    }
}

/// The time of these turns, if each takes as long as one of its cell did.
fn turns_ns(turns: &[usize], of_cells_ns: &[u64]) -> u64 {
    turns.iter().fold(0, |sum, &index| sum.saturating_add(of_cells_ns[index]))
}

/// Time in which streams start one after another; a requested distance may be longer than any budget.
fn ramps_ns<'c>(cells: impl Iterator<Item = &'c Cell>) -> u64 {
    cells.fold(0, |sum, cell| sum.saturating_add(cell.workload.ramp_ns()))
}

fn is_pass(cell: &Cell) -> bool {
    cell.extent.pass_bytes().is_some()
}

/// The part of a time that has `weight` of `weights`.
#[allow(clippy::cast_possible_truncation, reason = "a share of a budget in nanoseconds stays far below 2^53")]
fn share(ns: u64, weight: f64, weights: f64) -> u64 {
    (ns as f64 * weight / weights) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Experiment, Workload};

    #[test]
    fn a_distance_between_streams_beyond_all_time_is_no_overflow() {
        let workload =
            Workload { streams: 2, stagger_ns: u64::MAX / 2 + 1, ..Workload::sequential_read(1 << 20) };
        let cell = Cell {
            id: "far-apart".into(),
            experiment: Experiment::Stream,
            workload,
            extent: Extent::Timed,
            weight: 1.0,
            not_applicable: None,
        };
        assert_eq!(ramps_ns([&cell, &cell].into_iter()), u64::MAX);
        assert_eq!(ramps_ns([&cell].into_iter()), u64::MAX / 2 + 1);
    }
}
