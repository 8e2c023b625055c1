//! What the runner keeps between visits: the totals of all cells, consecutive failures, stable write rates; and the outcome of a plan, with
//! the problem that it reports if cells failed. It does nothing within a visit.

use crate::cell_totals::CellTotals;
use crate::resume::visits_before;
use crate::sequences::Sequences;
use rdsk_engine::Run;
use rdsk_model::{Cell, CellRecord, EngineKind, Op, Plan, Problem, ProblemKind, Target};
use rdsk_observe::Observer;
use rdsk_units::Nanos;
use std::collections::BTreeMap;

/// Cells in a row that may fail before the run ends: a dead disk would fail them all, slowly.
const MAX_FAILURES_IN_A_ROW: u32 = 3;
/// A flush that takes this long is noted if the budget ends meanwhile.
const LONG_FLUSH_NS: u64 = 1_000_000_000;

/// The part of the budget that is kept for a wait that only other cells saw: one in so many.
const WAIT_OF_OTHERS: u64 = 3;
/// How much longer than the longest so far an I/O may wait: by one part in so many. A queue that was full may be fuller.
const WAIT_GROWS: u64 = 4;

/// The time of one turn.
#[derive(Clone, Copy)]
pub(crate) struct Slice {
    /// In which visits may begin.
    pub(crate) ns: u64,
    /// In which the first visit must end; more than `ns` for passes, which are worth nothing unless they are whole, and for visits that
    /// keep many I/Os in flight.
    pub(crate) limit_ns: u64,
}

pub(crate) struct RunState {
    pub(crate) totals: Vec<CellTotals>,
    /// Time that each cell was given so far.
    pub(crate) slices_ns: Vec<u64>,
    /// Time that the latest turn of each cell took, preparing and settling included.
    pub(crate) turns_ns: Vec<u64>,
    /// Time that the longest one took.
    pub(crate) longest_turns_ns: Vec<u64>,
    /// Bytes per second until stable, last seen per target; limits the bytes of a write-behind visit.
    pub(crate) stable_rates: BTreeMap<u32, f64>,
    pub(crate) sequences: Sequences,
    /// One observer per set of targets, created when first needed.
    pub(crate) observers: BTreeMap<Vec<u32>, Box<dyn Observer>>,
    /// The margin of each cell's interval, relative to its rate, after its latest turn; `None` before there is one.
    pub(crate) margins: Vec<Option<f64>>,
    /// Rounds in which each cell had a turn.
    pub(crate) rounds_done: Vec<u32>,
    pub(crate) failures_in_a_row: u32,
    /// A flush far exceeded the budget. Cells that were visited once are not visited again: their flush may hang too.
    pub(crate) has_hung: bool,
    pub(crate) visits_done: usize,
    pub(crate) visits: usize,
    pub(crate) start_ns: u64,
    pub(crate) deadline_ns: u64,
}

impl RunState {
    /// `resumed` are cells of an earlier Record that go on, `earlier` all of its cells.
    pub(crate) fn new(
        plan: &Plan,
        targets: &[Target],
        (resumed, earlier): (&[CellRecord], &[CellRecord]),
        now_ns: u64,
    ) -> Self {
        let applicable = plan.cells.iter().filter(|cell| cell.not_applicable.is_none()).count();
        let mut totals: Vec<CellTotals> =
            plan.cells.iter().map(|cell| CellTotals::after(cell, resumed)).collect();
        let mut visits = Vec::new();
        for (cell, totals) in plan.cells.iter().zip(&mut totals) {
            let Some(then) = earlier.iter().find(|then| then.id == cell.id) else { continue };
            totals.visits_before = visits_before(cell, then);
            visits.push((cell, then.result.visits.as_slice()));
        }
        Self {
            margins: plan.cells.iter().zip(&totals).map(|(cell, totals)| totals.margin(cell)).collect(),
            totals,
            slices_ns: vec![0; plan.cells.len()],
            turns_ns: vec![0; plan.cells.len()],
            longest_turns_ns: vec![0; plan.cells.len()],
            rounds_done: vec![0; plan.cells.len()],
            stable_rates: BTreeMap::new(),
            sequences: Sequences::after(targets, &visits),
            observers: BTreeMap::new(),
            failures_in_a_row: 0,
            has_hung: false,
            visits_done: 0,
            visits: applicable * plan.order().len(),
            start_ns: now_ns,
            deadline_ns: now_ns.saturating_add(plan.budget_ns),
        }
    }

    /// Whether so many cells failed that the rest is not run.
    pub(crate) fn has_given_up(&self) -> bool {
        self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW
    }

    /// Whether the next visit of a cell is left out: it failed, its flush may hang, or an earlier run has done this round.
    pub(crate) fn skips_visit(&mut self, index: usize, cell: &Cell) -> bool {
        let totals = &mut self.totals[index];
        let has_failed = totals.failure.is_some() || !totals.errors.is_empty();
        (has_failed && !totals.goes_on_after_errors(&cell.workload))
            || (self.has_hung && !totals.visits.is_empty())
            || totals.skip_round()
    }

    /// The rate by which a write-behind visit of this cell is limited.
    pub(crate) fn write_behind_rate(&self, cell: &Cell) -> Option<f64> {
        cell.workload.targets.first().and_then(|target| self.stable_rates.get(target).copied())
    }

    /// Keeps the rate until stable of a cell whose writes are large enough to show it.
    pub(crate) fn note_stable_rate(&mut self, cell: &Cell, run: &Run, index: usize) {
        if cell.workload.op != Op::Write || cell.workload.block_bytes < 4096 || run.bytes == 0 {
            return;
        }
        if let (Some(&target), Some(rate)) = (cell.workload.targets.first(), self.totals[index].stable_rate())
            && (cell.workload.is_written_behind() || cell.workload.block_bytes >= 1 << 20)
        {
            self.stable_rates.insert(target, rate);
        }
    }

    /// How long an I/O of these cells may take: a quarter more than the longest so far, 0 before the first one; or of all cells,
    /// of which a wait counts up to a part of the budget: a disk that once woke up must not end what other cells repeat.
    pub(crate) fn longest_wait_ns(&self, cells: &[usize], budget_ns: u64) -> u64 {
        let longest =
            |totals: &CellTotals| totals.histogram.max().map(|ns| ns.saturating_add(ns / WAIT_GROWS));
        let own = cells.iter().filter_map(|&index| longest(&self.totals[index])).max();
        let of_all = self.totals.iter().filter_map(longest).max();
        own.max(of_all.map(|ns| ns.min(budget_ns / WAIT_OF_OTHERS))).unwrap_or(0)
    }

    /// Notes a flush that took most of what was left of the budget, or exceeded it: a flush cannot be cut short.
    pub(crate) fn note_long_flush(&mut self, cell: &Cell, index: usize, took_ns: u64, now_ns: u64) {
        let over_ns = now_ns.saturating_sub(self.deadline_ns);
        // A smaller overrun is the ordinary end of a run.
        if took_ns < LONG_FLUSH_NS || over_ns < LONG_FLUSH_NS {
            return;
        }
        let (took, over) = (Nanos(took_ns), Nanos(over_ns.min(took_ns)));
        self.totals[index].notes.push(format!(
            "the flush after {} took {took}, {over} of it beyond the budget: a flush cannot be cut short",
            cell.id
        ));
        self.has_hung = true;
    }
}

/// The filesystem, or what this user may have of it, is full.
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// The outcome of running a plan.
#[derive(Debug)]
pub struct RunOutcome {
    /// One record per cell of the plan, in its order.
    pub cells: Vec<CellRecord>,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// The first failure, if cells failed.
    pub problem: Option<Problem>,
    /// Notes of engines and observers, each of them once.
    pub notes: Vec<String>,
    /// How the evidence was collected; `None` if no cell ran.
    pub observer: Option<rdsk_model::ObserverFacts>,
}

/// The first failure, with the name of its cell. If nothing was measured before it, it keeps its kind; a target that is
/// lost during the run counts as failed I/O.
pub(crate) fn first_problem(cells: &[CellRecord], all_totals: &[CellTotals]) -> Option<Problem> {
    let is_failed = |cell: &CellRecord| cell.result.stop == rdsk_model::StopReason::Error;
    let (failed, totals) = cells.iter().zip(all_totals).find(|(cell, _)| is_failed(cell))?;
    let message = format!("{}: {}", failed.id, failed.result.why);
    if let Some(problem) = &totals.failure {
        let began = all_totals.iter().any(|totals| !totals.visits.is_empty());
        let kind = if began { ProblemKind::Io } else { problem.kind };
        return Some(Problem { kind, message, ..problem.clone() });
    }
    let hint = hint(failed.workload.engine, totals.errors.first().map(|error| error.errno));
    Some(Problem::new(ProblemKind::Io, "io-error", message, hint))
}

/// What helps after an I/O failed with this error.
fn hint(engine: EngineKind, errno: Option<i32>) -> &'static str {
    match (engine, errno) {
        (EngineKind::Sim, _) => {
            "the description of the system says where it fails (rdsk sim show); the record keeps the figures up to the error"
        }
        (_, Some(ENOSPC | EDQUOT)) => {
            "free space, raise the quota if there is one, or measure reads; the record keeps the figures up to the error"
        }
        // A transfer that was shorter than requested has no number.
        (_, Some(0) | None) => {
            "a file ends so where its owner has made it shorter; else look at the kernel's log (dmesg) for the device"
        }
        _ => "look at the kernel's log (dmesg) for the device; the record keeps the figures up to the error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_filesystem_is_no_failing_device() {
        let hint_of = |errno| hint(EngineKind::Sync, Some(errno));
        assert!(hint_of(ENOSPC).starts_with("free space") && hint_of(EDQUOT).starts_with("free space"));
        assert!(hint_of(5).contains("dmesg") && !hint_of(5).contains("shorter"));
        assert!(hint_of(0).contains("made it shorter"), "a transfer that was shorter than requested");
        assert!(hint(EngineKind::Sim, Some(ENOSPC)).contains("rdsk sim show"));
    }
}
