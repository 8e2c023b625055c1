//! What an experiment is to the planner and the runner. Each experiment implements [`Question`] in a file of its own; only
//! `experiments` knows them all.

use crate::context::PlanContext;
use crate::request::PlanOptions;
use rdsk_model::{Cell, Workload};

/// Rounds over the cells, so that every figure rests on visits at this many moments of the run.
pub(crate) const ROUNDS: u32 = 6;
/// Rounds where the budget gives no more.
pub(crate) const MIN_ROUNDS: u32 = 4;

/// Which targets one cell of an experiment works on. Cells of each target come first in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Targets {
    /// One: every target has cells of its own.
    Each,
    /// All of them, streams dealt round; a simulated system stands for all of its LUNs.
    Together,
}

/// An experiment. It plans and issues nothing; all methods are pure.
///
/// `contexts` is never empty and holds every target of the run, with the same options, scope and budget.
pub(crate) trait Question: Sync {
    /// The cells for one target, which is one of `contexts`; for the first one only if the targets are measured together.
    /// Their ids start with the experiment's name.
    fn cells(&self, context: &PlanContext<'_>, contexts: &[PlanContext<'_>]) -> Vec<Cell>;

    /// Which targets one cell works on.
    fn targets(&self) -> Targets {
        Targets::Each
    }

    /// Rounds over the cells when nothing else is measured; several experiments together take [`ROUNDS`].
    fn rounds(&self, _contexts: &[PlanContext<'_>]) -> u32 {
        ROUNDS
    }

    /// What was left out or shortened to fit the budget, in words.
    fn notes(&self, _contexts: &[PlanContext<'_>]) -> Vec<String> {
        Vec::new()
    }

    /// Time in which the streams of all cells and rounds start one after the other; it measures nothing and is not shared
    /// out.
    fn ramps_ns(&self, _contexts: &[PlanContext<'_>]) -> u64 {
        0
    }

    /// The most streams that a cell has when nothing else is measured.
    fn max_streams(&self, _options: &PlanOptions) -> u32 {
        1
    }

    /// Time of a cell whose time costs nothing: long enough to reach the steady state.
    fn free_cell_ns(&self) -> u64 {
        10_000_000_000
    }

    /// The part of its span that a sequential visit through the page cache may use, which is made cold before it; the next one goes
    /// on behind it. `None` for the whole span.
    fn window_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether the user chose the number of passes, so that they end when they are done and not with the budget.
    fn has_fixed_passes(&self, _options: &PlanOptions) -> bool {
        false
    }

    /// Whether a stream that has transferred its part of the target starts over, so that a requested pass may be larger than
    /// the target.
    fn starts_over(&self) -> bool {
        false
    }

    /// Whether single I/Os of a workload are repeated after rests, at the end of the run.
    fn is_repeated_after_rests(&self, _workload: &Workload) -> bool {
        false
    }

    /// Whether a writing cell is visited once more, until its rate has settled, after everything else.
    fn is_sustained(&self, _cell: &Cell) -> bool {
        false
    }
}
