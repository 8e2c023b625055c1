//! Goes on with an earlier Record: which of its cells are finished and taken over, which passes over a list of positions are
//! complete and where the last one stopped, and whether the Record has the same target and workload at all. It reads no file.

use crate::cell_totals::CellTotals;
use crate::counted_part::ramp_ns;
use rdsk_model::{
    Cell, CellRecord, Experiment, Extent, Plan, PointRun, Points, Problem, ProblemKind, Record, SCHEMA,
    Status, StopReason, Target, Visit,
};
use rdsk_stats::Histogram;

/// What an earlier Record holds of a plan's cells.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    /// Cells that are taken over as they are, and not measured again.
    finished: Vec<CellRecord>,
    /// Cells whose passes over a list of positions are continued where they stopped.
    pub(crate) continued: Vec<CellRecord>,
    /// What was taken over, in words.
    pub(crate) note: Option<String>,
}

impl Resumed {
    /// Finds the cells of an earlier Record that a plan goes on with. `now` is the Record of this run, without cells.
    ///
    /// # Errors
    /// If the Record has other targets or was made by another version, a cell that it finished was measured with other options,
    /// or nothing of it can be taken over, or nothing is missing.
    pub(crate) fn find(earlier: &Record, now: &Record, plan: &Plan) -> Result<Self, Problem> {
        let id = rdsk_units::printable(&earlier.id);
        let refusal = |why: String, hint: &str| {
            let message = format!("record {id} cannot be continued: {why}");
            Problem::new(ProblemKind::Usage, "no-resume", message, hint)
        };
        if let Some(why) = damage(earlier) {
            return Err(refusal(why, "name a file that rdsk wrote with --json, unchanged"));
        }
        if let Some(why) = difference(earlier, now) {
            return Err(refusal(
                why,
                "name the target of the record, unchanged since, or measure anew without --resume",
            ));
        }
        let mut resumed = Self::default();
        let mut missing = 0;
        for cell in plan.cells.iter().filter(|cell| cell.not_applicable.is_none()) {
            let then = earlier.cells.iter().find(|then| then.id == cell.id);
            match then {
                Some(then) if continues_passes(cell, then, now) => {
                    missing += u32::from(misses_passes(cell, then, plan.rounds));
                    resumed.continued.push(then.clone());
                }
                Some(then) if began_elsewhere(cell, then) => {
                    return Err(refusal(
                        "it is of a version whose sweeps in ascending order all begin at the first position"
                            .into(),
                        "measure anew without --resume: sweeps that begin elsewhere separate speed by position from change with time",
                    ));
                }
                Some(then) if has_passes(cell, then) && !is_continued(cell, then) => {
                    return Err(refusal(
                        format!("{} has no sweep over the same positions", cell.id),
                        "use the same --bs, --points, --order, --rw and --seed as the first time",
                    ));
                }
                Some(then) if !is_finished(then, earlier, plan) => missing += 1,
                Some(then) if then.workload == cell.workload => resumed.finished.push(then.clone()),
                Some(_) => {
                    let why = format!("{} was measured with other options", cell.id);
                    return Err(refusal(
                        why,
                        "use the same flags as the first time, --budget and --seed too",
                    ));
                }
                None => missing += 1,
            }
        }
        if resumed.continued.is_empty() && resumed.finished.is_empty() {
            return Err(refusal(nothing_finished(earlier, plan), "measure anew without --resume"));
        }
        if missing == 0 {
            let what = if resumed.continued.is_empty() { "test" } else { "sweep" };
            return Err(refusal(format!("no {what} is missing"), "rdsk show draws it again"));
        }
        resumed.note = Some(resumed.words(&id));
        Ok(resumed)
    }

    fn words(&self, id: &str) -> String {
        let passes = |cell: &CellRecord| format!("{} {}", cell.id, cell.result.points.len());
        let held: Vec<String> = self.continued.iter().map(passes).collect();
        let mut words = format!("continues record {id}");
        if !held.is_empty() {
            words.push_str(&format!(", with the sweeps that it holds: {}", held.join(", ")));
        }
        if !self.finished.is_empty() {
            let ids: Vec<&str> = self.finished.iter().map(|cell| cell.id.as_str()).collect();
            words.push_str(&format!(
                ", with the tests that it finished, so that these were not measured at the same time as the others: {}",
                ids.join(", ")
            ));
        }
        words
    }

    /// Leaves the finished cells out of what is measured.
    pub(crate) fn leave_out(&self, plan: &mut Plan) {
        for cell in &mut plan.cells {
            if self.finished.iter().any(|then| then.id == cell.id) {
                cell.not_applicable = Some("taken over from an earlier run".into());
            }
        }
    }

    /// Puts them in their places among those that were measured.
    pub(crate) fn put_back(&self, cells: &mut [CellRecord]) {
        for then in &self.finished {
            if let Some(cell) = cells.iter_mut().find(|cell| cell.id == then.id) {
                cell.clone_from(then);
                cell.result.visits.iter_mut().for_each(|visit| *visit = earlier_sitting(visit));
            }
        }
    }
}

/// A visit as it stands in the Record of the run that takes it over.
fn earlier_sitting(visit: &Visit) -> Visit {
    Visit { sitting: visit.sitting.saturating_add(1), ..visit.clone() }
}

/// How many bytes the cells of `align` choose from, and those of `paths` pass over, follows the rate at which the test file was written
/// or the target read at first, which is another one each time: those of the earlier run count.
pub(crate) fn take_spans(plan: &mut Plan, earlier: &Record) {
    let is_scaled = |cell: &&mut Cell| matches!(cell.experiment, Experiment::Align | Experiment::Paths);
    for cell in plan.cells.iter_mut().filter(is_scaled) {
        let Some(then) = earlier.cells.iter().find(|then| then.id == cell.id) else { continue };
        let mut wanted = cell.workload.clone();
        wanted.span_bytes = then.workload.span_bytes;
        if wanted == then.workload {
            if let Extent::Pass { bytes } | Extent::Passes { bytes } = &mut cell.extent {
                *bytes = wanted.span_bytes;
            }
            cell.workload = wanted;
        }
    }
}

/// Whether a cell had its turn in the last round of the plan. It may have been left out of a round that its group could not afford.
fn is_finished(then: &CellRecord, earlier: &Record, plan: &Plan) -> bool {
    let last_round = then.result.visits.iter().map(|visit| visit.round).max();
    let has_ended =
        matches!(then.result.stop, StopReason::Precision | StopReason::Budget | StopReason::Complete);
    let had_last_round = last_round
        .is_some_and(|round| round.saturating_add(1) >= plan.rounds || earlier.status == Status::Complete);
    has_ended && had_last_round && then.result.errors.is_empty()
}

/// Why there is nothing to take over, in words. The turns of a cell are spread over a run, so that drift affects all cells alike:
/// some that were measured now and some that were measured then are no sample of either.
fn nothing_finished(earlier: &Record, plan: &Plan) -> String {
    let rounds = plan.rounds;
    // What was not marked as ended was killed, or goes on.
    let is_open = earlier.error.as_ref().is_some_and(|error| error.code == "running");
    let ended = if is_open { "it was last saved" } else { "it ended" };
    let visits = earlier.cells.iter().flat_map(|cell| &cell.result.visits);
    match visits.map(|visit| visit.round.saturating_add(1)).max() {
        None => format!("none of its tests is finished: {ended} before the first turn"),
        Some(round) if round < rounds => format!(
            "none of its tests is finished: {ended} in repeat {round} of {rounds}, and each test has a turn in every repeat"
        ),
        Some(_) => "none of its tests is finished: their last turns were cut short or failed".into(),
    }
}

/// Whether a pass over the positions of a cell is missing, or was cut short.
fn misses_passes(cell: &Cell, then: &CellRecord, rounds: u32) -> bool {
    let positions = cell.workload.points.as_ref().map_or(0, Points::len);
    let whole = then.result.points.iter().filter(|run| is_whole(run, positions)).count();
    whole < rounds as usize
}

/// Whether a pass came to the end of its list.
fn is_whole(run: &PointRun, positions: usize) -> bool {
    run.order.len() + run.failed.len() >= positions
}

/// Whether the passes of a cell over its list of positions can go on. A test file is another one each time, on other blocks.
fn continues_passes(cell: &Cell, then: &CellRecord, now: &Record) -> bool {
    has_passes(cell, then)
        && !now.targets.iter().any(|target| target.made_by_rdsk)
        && is_continued(cell, then)
}

/// Whether a cell is one of whole passes over a list of positions, of which the earlier run made some.
fn has_passes(cell: &Cell, then: &CellRecord) -> bool {
    cell.workload.points.is_some()
        && matches!(cell.extent, Extent::Pass { .. })
        && !then.result.points.is_empty()
        && then.result.stop != StopReason::NotApplicable
}

/// What makes figures of both runs unlike, in words; `None` where nothing does.
fn difference(earlier: &Record, now: &Record) -> Option<String> {
    if earlier.rdsk_version != now.rdsk_version {
        let version = rdsk_units::printable(&earlier.rdsk_version);
        return Some(format!("rdsk {version} made it, and this is {}", now.rdsk_version));
    }
    if earlier.seed.is_none() {
        return Some("it does not say from which seed its offsets were drawn".into());
    }
    if earlier.targets.len() != now.targets.len() {
        return Some("it is not of these targets".into());
    }
    earlier.targets.iter().zip(&now.targets).find_map(|(then, now)| unlike(then, now))
}

/// Why no run of rdsk can have written this Record.
fn damage(earlier: &Record) -> Option<String> {
    if earlier.schema != SCHEMA {
        return Some(format!("its schema is {}, not {SCHEMA}", rdsk_units::printable(&earlier.schema)));
    }
    let bad = earlier.cells.iter().find(|cell| !cell.result.points.is_empty() && !is_sound(cell))?;
    Some(format!("the sweeps of {} do not fit its positions", bad.id))
}

/// Every pass has a visit that moved its bytes, and visits each position at most once.
fn is_sound(cell: &CellRecord) -> bool {
    let Some(points) = &cell.workload.points else { return false };
    let passes = &cell.result.points;
    let is_pass = |run: &PointRun| {
        let mut visited = vec![false; points.len()];
        let is_new = |&index: &u32| {
            visited.get_mut(index as usize).is_some_and(|is_visited| !std::mem::replace(is_visited, true))
        };
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

/// Why two targets are not one and the same; `None` if they are. Names and sizes alone do not distinguish two disks: the serial
/// number does, if there is one.
fn unlike(then: &Target, now: &Target) -> Option<String> {
    let name = rdsk_units::printable(&then.name);
    let serial = |target: &Target| target.device.as_ref().and_then(|device| device.serial.clone());
    let device = |target: &Target| target.device.as_ref().map(|device| device.name.clone());
    if (&then.name, then.kind, then.made_by_rdsk) != (&now.name, now.kind, now.made_by_rdsk) {
        return Some(format!("it is of {name}, not of {}", rdsk_units::printable(&now.name)));
    }
    if then.size_bytes != now.size_bytes {
        return Some(format!("{name} had {} bytes, and has {} now", then.size_bytes, now.size_bytes));
    }
    let is_elsewhere = !now.made_by_rdsk && then.path != now.path;
    if is_elsewhere || serial(then) != serial(now) || (now.made_by_rdsk && device(then) != device(now)) {
        return Some(format!("{name} is something else now"));
    }
    None
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

/// Visits of an earlier run whose offsets those of this run must not draw again: what they have read may still lie in a cache.
/// Passes over chosen positions go on where they stopped.
pub(crate) fn visits_before(cell: &Cell, then: &CellRecord) -> u32 {
    let visits = if cell.workload.points.is_some() { 0 } else { then.result.visits.len() };
    u32::try_from(visits).unwrap_or(u32::MAX)
}

impl CellTotals {
    /// Totals that start with what an earlier Record holds of the cell.
    pub(crate) fn after(cell: &Cell, earlier: &[CellRecord]) -> Self {
        let mut totals = CellTotals {
            rates_of_overlap: cell.workload.streams > 1,
            has_ramp: ramp_ns(cell) > 0,
            ..CellTotals::default()
        };
        let (Some(then), Some(points)) = (continued(cell, earlier), &cell.workload.points) else {
            return totals;
        };
        for (position, (visit, run)) in then.result.visits.iter().zip(&then.result.points).enumerate() {
            totals.take_over(visit, run);
            if is_whole(run, points.len()) {
                totals.skip_rounds += 1;
            } else {
                totals.partial.push_back(position);
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
        let next = self.partial.front().copied().unwrap_or(self.visits.len());
        u32::try_from(next).unwrap_or(u32::MAX).saturating_add(self.visits_before)
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
        self.visits.push(earlier_sitting(visit));
        self.positions.push(run.clone());
    }
}
