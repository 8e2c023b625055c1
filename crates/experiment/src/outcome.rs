//! What running a plan gives, and what it says when cells failed.

use crate::cell_totals::CellTotals;
use rdsk_model::{CellRecord, EngineKind, Problem, ProblemKind};

/// What running a plan gave.
#[derive(Debug)]
pub struct Outcome {
    /// One record per cell of the plan, in its order.
    pub cells: Vec<CellRecord>,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// The first failure, when cells failed.
    pub problem: Option<Problem>,
    /// What engines and observers had to say, once each.
    pub notes: Vec<String>,
    /// How the evidence was gathered; `None` when no cell ran.
    pub observer: Option<rdsk_model::Observer>,
}

/// What failed first, with the cell's name before it. A refusal or a shortage that let nothing be measured stays what it
/// is; a target that was lost on the way is failed I/O.
pub(crate) fn first_problem(cells: &[CellRecord], all_totals: &[CellTotals]) -> Option<Problem> {
    let is_failed = |cell: &CellRecord| cell.result.stop == rdsk_model::StopReason::Error;
    let (failed, totals) = cells.iter().zip(all_totals).find(|(cell, _)| is_failed(cell))?;
    let message = format!("{}: {}", failed.id, failed.result.why);
    if let Some(problem) = &totals.failure {
        let began = all_totals.iter().any(|totals| !totals.visits.is_empty());
        let kind = if began { ProblemKind::Io } else { problem.kind };
        return Some(Problem { kind, message, ..problem.clone() });
    }
    let hint = if failed.workload.engine == EngineKind::Sim {
        "the figures of the system say where it fails (rdsk sim show); the record keeps those up to the error"
    } else {
        "look at the kernel's log (dmesg) for the device; the record keeps the figures up to the error"
    };
    Some(Problem::new(ProblemKind::Io, "io-error", message, hint))
}
