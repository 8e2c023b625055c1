//! Continues passes over chosen positions from an earlier Record: which passes are complete, where the last one stopped,
//! and whether the Record has the same target and workload at all. It reads no file.

use crate::cell_totals::CellTotals;
use rdsk_model::{
    Cell, CellRecord, Plan, PointRun, Problem, ProblemKind, Record, SCHEMA, StopReason, Target, Visit,
};
use rdsk_stats::Histogram;

/// The cells of an earlier Record that this plan continues.
///
/// # Errors
/// If the Record has other targets, or none of its cells is one of this plan with the same positions.
pub(crate) fn cells_of(
    earlier: &Record,
    targets: &[Target],
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<Vec<CellRecord>, Problem> {
    let refusal = |message: String, hint: &str| Problem::new(ProblemKind::Usage, "no-resume", message, hint);
    if let Some(why) = damage(earlier) {
        return Err(refusal(
            format!("record {} cannot be continued: {why}", rdsk_units::printable(&earlier.id)),
            "name a file that rdsk wrote with --json, unchanged",
        ));
    }
    let same = earlier.targets.len() == targets.len()
        && earlier.targets.iter().zip(targets).all(|(then, now)| is_same(then, now));
    if !same {
        return Err(refusal(
            format!("record {} is not of this target", rdsk_units::printable(&earlier.id)),
            "name the target of the record, with the same name and size",
        ));
    }
    let cells: Vec<CellRecord> = earlier
        .cells
        .iter()
        .filter(|then| !then.result.points.is_empty() && then.result.stop != StopReason::NotApplicable)
        .filter(|then| plan.cells.iter().any(|cell| is_continued(cell, then)))
        .cloned()
        .collect();
    if cells.is_empty()
        && earlier.cells.iter().any(|then| plan.cells.iter().any(|cell| began_elsewhere(cell, then)))
    {
        return Err(refusal(
            format!(
                "record {} is of a version whose passes in ascending order all begin at the first position",
                rdsk_units::printable(&earlier.id)
            ),
            "measure anew without --resume: passes that begin elsewhere tell speed by position from change with time",
        ));
    }
    if cells.is_empty() {
        return Err(refusal(
            format!("record {} has no pass over the same positions", rdsk_units::printable(&earlier.id)),
            "use the same --bs, --points, --order, --rw and --seed as the first time",
        ));
    }
    let held: Vec<String> =
        cells.iter().map(|cell| format!("{} {}", cell.id, cell.result.points.len())).collect();
    notes.push(format!(
        "continues record {}, with the passes that it holds: {}",
        rdsk_units::printable(&earlier.id),
        held.join(", ")
    ));
    Ok(cells)
}

/// Why no run of rdsk can have written this Record.
fn damage(earlier: &Record) -> Option<String> {
    if earlier.schema != SCHEMA {
        return Some(format!("its schema is {}, not {SCHEMA}", rdsk_units::printable(&earlier.schema)));
    }
    let bad = earlier.cells.iter().find(|cell| !cell.result.points.is_empty() && !is_sound(cell))?;
    Some(format!("the passes of {} do not fit its positions", bad.id))
}

/// Every pass has a visit that moved its bytes, and visits each position at most once.
fn is_sound(cell: &CellRecord) -> bool {
    let Some(points) = &cell.workload.points else { return false };
    let passes = &cell.result.points;
    let is_pass = |run: &PointRun| {
        let mut visited = vec![false; points.len()];
        let is_new =
            |&index: &u32| visited.get_mut(index as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        run.order.len() == run.latency_ns.len() && run.order.iter().all(is_new)
    };
    let moved = |run: &PointRun| -> Option<u64> {
        run.order.iter().try_fold(0_u64, |sum, &index| {
            sum.checked_add(points.get(index as usize, cell.workload.block_bytes)?.1)
        })
    };
    passes.len() == cell.result.visits.len()
        && passes.iter().all(is_pass)
        && passes.iter().zip(&cell.result.visits).all(|(run, visit)| moved(run) == Some(visit.bytes))
}

/// Names and sizes alone do not tell two disks apart; the serial number does, if there is one.
fn is_same(then: &Target, now: &Target) -> bool {
    let serial = |target: &Target| target.device.as_ref().and_then(|device| device.serial.clone());
    (&then.name, then.kind, then.size_bytes) == (&now.name, now.kind, now.size_bytes)
        && serial(then) == serial(now)
        && !now.made_by_rdsk
}

/// What an earlier Record holds of a cell.
pub(crate) fn continued<'a>(cell: &Cell, earlier: &'a [CellRecord]) -> Option<&'a CellRecord> {
    earlier.iter().find(|then| is_continued(cell, then))
}

fn is_continued(cell: &Cell, then: &CellRecord) -> bool {
    cell.id == then.id && cell.workload == then.workload
}

/// Whether an earlier cell is this one but for where its passes begin.
fn began_elsewhere(cell: &Cell, then: &CellRecord) -> bool {
    let moves = |points: &Option<rdsk_model::Points>| points.as_ref().map(|points| points.moves_start);
    let (now, before) = (moves(&cell.workload.points), moves(&then.workload.points));
    if cell.id != then.id || (now, before) != (Some(true), Some(false)) {
        return false;
    }
    let mut moved = then.workload.clone();
    if let Some(points) = &mut moved.points {
        points.moves_start = true;
    }
    cell.workload == moved
}

impl CellTotals {
    /// Totals that start with what an earlier Record holds of the cell.
    pub(crate) fn of(cell: &Cell, earlier: &[CellRecord]) -> Self {
        let mut totals = CellTotals { rates_of_overlap: cell.workload.streams > 1, ..CellTotals::default() };
        let (Some(then), Some(points)) = (continued(cell, earlier), &cell.workload.points) else {
            return totals;
        };
        for (position, (visit, run)) in then.result.visits.iter().zip(&then.result.points).enumerate() {
            totals.take_over(visit, run);
            if run.order.len() + run.failed.len() < points.len() {
                totals.partial.push_back(position);
            } else {
                totals.skip_rounds += 1;
            }
        }
        totals
    }

    /// Whether the resumed run completed the next round of this cell; counts it as done.
    pub(crate) fn skip_round(&mut self) -> bool {
        let skip = self.skip_rounds > 0;
        self.skip_rounds = self.skip_rounds.saturating_sub(1);
        skip
    }

    /// The number of the next visit: that of a pass that the resumed run started, or a new one.
    pub(crate) fn next_visit(&self) -> u32 {
        u32::try_from(self.partial.front().copied().unwrap_or(self.visits.len())).unwrap_or(u32::MAX)
    }

    /// How many positions of the next visit the resumed run has visited.
    pub(crate) fn first_position(&self) -> u32 {
        let done = self.partial.front().and_then(|&position| self.positions.get(position));
        u32::try_from(done.map_or(0, |run| run.order.len() + run.failed.len())).unwrap_or(u32::MAX)
    }

    fn take_over(&mut self, visit: &Visit, run: &PointRun) {
        let mut histogram = Histogram::new();
        for &latency_ns in &run.latency_ns {
            histogram.record(latency_ns);
            self.latency_sum_ns += u128::from(latency_ns);
        }
        self.histogram.merge(&histogram);
        self.round_histograms.entry(visit.round).or_default().merge(&histogram);
        self.asked_bytes += visit.bytes;
        self.add_measured(visit.round, visit.bytes, visit.elapsed_ns);
        self.visits.push(visit.clone());
        self.positions.push(run.clone());
    }
}
