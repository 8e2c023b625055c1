//! What the runner knows of a cell as a part of the Record: after the last turn, and after each one before. It changes
//! nothing.

use crate::cell_result::ResultContext;
use crate::cell_totals::CellTotals;
use crate::resume::continued;
use crate::run_state::RunState;
use rdsk_engine::Ended;
use rdsk_model::{Cell, CellRecord, Evidence, Plan, StopReason, Target};
use rdsk_targets::Claim;

/// What a cell's Record follows from besides what was measured.
#[derive(Clone, Copy)]
pub(crate) struct CellContext<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) targets: &'a [Target],
    pub(crate) claims: &'a [Claim],
    pub(crate) resumed: &'a [CellRecord],
    pub(crate) cpu_count: Option<u32>,
}

impl CellContext<'_> {
    /// The cell as it is when all turns are over. `interrupted`: a signal ended the run.
    pub(crate) fn finished(&self, index: usize, state: &RunState, interrupted: bool) -> CellRecord {
        let totals = &state.totals[index];
        let cut_short = interrupted && (totals.visits.is_empty() || totals.ended == Some(Ended::Interrupted));
        let mut record = self.summed_up(index, state, cut_short);
        if state.has_given_up() && totals.visits.is_empty() && record.result.stop == StopReason::Budget {
            record.result.stop = StopReason::Error;
            record.result.why = "not run: the tests before it failed".into();
        }
        record
    }

    /// The cell as it is between two turns: unless it has had its turn in the last round of the plan, one that the end of the run
    /// cut short.
    pub(crate) fn so_far(&self, index: usize, state: &RunState) -> CellRecord {
        let mut record = self.summed_up(index, state, false);
        let (done, rounds) = (state.rounds_done[index], self.plan.rounds);
        let had_last_round = done > 0 && state.totals[index].round + 1 >= rounds;
        let has_ended =
            matches!(record.result.stop, StopReason::Precision | StopReason::Budget | StopReason::Complete);
        if has_ended && !had_last_round {
            record.result.stop = StopReason::Interrupted;
            record.result.why = format!("the run ended after {done} of its {rounds} repeats");
        }
        record
    }

    fn summed_up(&self, index: usize, state: &RunState, interrupted: bool) -> CellRecord {
        let (cell, totals) = (&self.plan.cells[index], &state.totals[index]);
        let context = ResultContext {
            precision: self.plan.precision,
            slice_ns: state.slices_ns[index],
            interrupted,
            align_bytes: first_of(cell, self.targets).and_then(|target| target.direct_align_bytes),
        };
        let mut record = CellRecord {
            id: cell.id.clone(),
            experiment: cell.experiment,
            workload: cell.workload.clone(),
            result: totals.result(cell, &context),
            evidence: self.evidence(cell, totals),
            verdict: None,
        };
        if record.result.stop != StopReason::NotApplicable {
            record.verdict = Some(rdsk_analysis::verdict(&record, self.targets, self.cpu_count));
        }
        record
    }

    fn evidence(&self, cell: &Cell, totals: &CellTotals) -> Evidence {
        let mut evidence = totals.evidence.clone().finish();
        evidence.page_cache = totals.page_cache;
        if let Some(then) = continued(cell, self.resumed) {
            evidence = crate::merge_evidence::merge(&then.evidence, evidence);
        }
        let workload = &cell.workload;
        evidence.extents = first_of(cell, self.claims)
            .and_then(|claim| claim.allocation(workload.offset_bytes, workload.span_bytes));
        evidence
    }
}

/// What a list of all targets holds for the first target of a cell.
fn first_of<'a, T>(cell: &Cell, of_targets: &'a [T]) -> Option<&'a T> {
    of_targets.get(*cell.workload.targets.first()? as usize)
}
