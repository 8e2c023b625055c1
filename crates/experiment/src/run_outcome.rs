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
        _ => "look at the kernel's log (dmesg) for the device; the record keeps the figures up to the error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_filesystem_is_no_failing_device() {
        let of = |errno| hint(EngineKind::Sync, Some(errno));
        assert!(of(ENOSPC).starts_with("free space") && of(EDQUOT).starts_with("free space"));
        assert!(of(5).contains("dmesg"));
        assert!(hint(EngineKind::Sim, Some(ENOSPC)).contains("rdsk sim show"));
    }
}
