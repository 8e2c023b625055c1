//! The outcome of running a plan, and the problem that it reports if cells failed. Plain data.

use crate::cell_totals::CellTotals;
use rdsk_model::{CellRecord, EngineKind, Problem, ProblemKind};

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
    let hint = match totals.errors.first().map(|error| error.errno) {
        _ if failed.workload.engine == EngineKind::Sim => {
            "the description of the system says where it fails (rdsk sim show); the record keeps the figures up to the error"
        }
        Some(ENOSPC | EDQUOT) => {
            "free space, or raise the quota (repquota, xfs_quota, btrfs qgroup), or measure reads; the record keeps the figures up to the error"
        }
        _ => "look at the kernel's log (dmesg) for the device; the record keeps the figures up to the error",
    };
    Some(Problem::new(ProblemKind::Io, "io-error", message, hint))
}
