//! Visits the cells of a Plan in ABBA order through an engine, with an observer beside every visit, within the budget.
//! It decides when a cell has had enough; it never opens a path, prints, or reads a clock other than the engine's.

use crate::cell_totals::{CellTotals, ResultContext, is_write_behind};
use crate::resume::continued;
use crate::stopping::{MIN_RUN_NS, StopPolicy, cache_check, is_enough, limits, next_ops, window_ns};
use rdsk_engine::{Ended, Engine, EngineError, Job, Limits, Pinning, Prepared, Run, Settled};
use rdsk_model::{
    Cell, CellRecord, Clock, EngineKind, Event, Evidence, Experiment, Extent, MemberCounters, Plan, Problem,
    ProblemKind, StopFlag, Target, Watch,
};
use rdsk_observe::Observer;
use rdsk_stats::StopRule;
use rdsk_targets::Claim;
use rdsk_units::Nanos;
use std::collections::BTreeMap;

/// Cells in a row that may fail before the rest is given up: a dead disk would fail them all, slowly.
const FAILURES_IN_A_ROW: u32 = 3;
/// A flush of this time is worth a word where the budget ends meanwhile.
const LONG_FLUSH_NS: u64 = 1_000_000_000;
/// Visits of one cell within one slice; a guard, far above what a slice of seconds needs.
const VISITS_PER_SLICE: u32 = 200;

/// Everything that running a plan needs.
pub struct Runner<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// The targets as the Record shows them.
    pub targets: &'a [Target],
    /// The right to use them, in the same order.
    pub claims: &'a [Claim],
    /// Cells of an earlier Record that are continued, by their ids.
    pub resumed: &'a [CellRecord],
    /// Who issues the I/O.
    pub engine: &'a mut dyn Engine,
    /// The time that the engine lives in, handed in beside it because sessions borrow the engine.
    pub clock: &'a dyn Clock,
    /// Makes the observer of the targets with these indices.
    pub observer: &'a dyn Fn(&[u32]) -> Box<dyn Observer>,
    /// Finds the members of the target with this index, where it is an array whose members can be seen.
    pub members: &'a dyn Fn(u32) -> Option<Box<dyn MemberCounters>>,
    /// Processors that the process may use, where known; the verdict on the processor rests on it.
    pub cpu_count: Option<u32>,
    /// Processors to pin streams to; empty leaves them free.
    pub pin_cpus: &'a [usize],
    /// Who watches.
    pub watch: &'a mut dyn Watch,
    /// Raised by signals.
    pub stop: &'a StopFlag,
}

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

/// Keeps, and says by its answer, that a flush took most of what was left of the budget, or went beyond it: nothing can cut a flush short.
fn note_long_flush(
    totals: &mut CellTotals,
    cell: &Cell,
    took_ns: u64,
    now_ns: u64,
    deadline_ns: u64,
) -> bool {
    let over_ns = now_ns.saturating_sub(deadline_ns);
    // What went over by less than this is the ordinary end of a run.
    if took_ns < LONG_FLUSH_NS || over_ns < LONG_FLUSH_NS {
        return false;
    }
    let (took, over) = (Nanos(took_ns), Nanos(over_ns.min(took_ns)));
    totals.notes.push(format!(
        "the flush after {} took {took}, {over} of it beyond the budget: a flush cannot be cut short",
        cell.id
    ));
    true
}

/// The state of one run over a plan.
struct RunState {
    all_totals: Vec<CellTotals>,
    /// Time that each cell was given so far.
    slices_ns: Vec<u64>,
    /// Bytes per second until stable, last seen per target; what a write-behind visit is measured out by.
    stable_rates: BTreeMap<u32, f64>,
    /// One observer per set of targets, made when first needed.
    observers: BTreeMap<Vec<u32>, Box<dyn Observer>>,
    failures_in_a_row: u32,
    /// A flush went far beyond the budget. What was visited once is not visited again: its flush may hang too.
    has_hung: bool,
    visits_done: usize,
    visits: usize,
    began_ns: u64,
    deadline_ns: u64,
}

impl Runner<'_> {
    /// Visits all cells.
    pub fn run(mut self) -> Outcome {
        let order = self.plan.order();
        let cells = self.plan.cells.len();
        let running = self.plan.cells.iter().filter(|cell| cell.not_applicable.is_none()).count();
        let mut state = RunState {
            all_totals: self.plan.cells.iter().map(|cell| CellTotals::of(cell, self.resumed)).collect(),
            slices_ns: vec![0; cells],
            stable_rates: BTreeMap::new(),
            observers: BTreeMap::new(),
            failures_in_a_row: 0,
            has_hung: false,
            visits_done: 0,
            visits: running * order.len(),
            began_ns: self.clock.now_ns(),
            deadline_ns: self.clock.now_ns().saturating_add(self.plan.budget_ns),
        };
        self.watch.event(&Event::Started { cells: running, budget_ns: self.plan.budget_ns });
        let visits: Vec<usize> =
            order.into_iter().flatten().filter(|&index| self.is_applicable(index)).collect();
        for (position, &index) in visits.iter().enumerate() {
            if self.stop.is_raised() || state.failures_in_a_row >= FAILURES_IN_A_ROW {
                break;
            }
            let totals = &state.all_totals[index];
            let is_over = totals.failure.is_some() || !totals.errors.is_empty();
            if is_over && !totals.goes_on_after_errors(&self.plan.cells[index].workload) {
                continue;
            }
            if state.has_hung && !state.all_totals[index].visits.is_empty() {
                continue;
            }
            if state.all_totals[index].skip_round() {
                continue;
            }
            let slice_ns = self.slice_ns(&visits[position..], state.deadline_ns);
            state.slices_ns[index] += slice_ns;
            self.spend_slice(index, slice_ns, &mut state);
        }
        self.finish(&state)
    }

    fn is_applicable(&self, index: usize) -> bool {
        self.plan.cells[index].not_applicable.is_none()
    }

    /// The time for the first of the visits that are left: what was asked for, else its share of the time that is left.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a budget in nanoseconds stays far below 2^53"
    )]
    fn slice_ns(&self, visits_left: &[usize], deadline_ns: u64) -> u64 {
        if let Some(runtime_ns) = self.plan.runtime_ns {
            return (runtime_ns / u64::from(self.plan.rounds.max(1))).max(MIN_RUN_NS);
        }
        let ramps_ns: u64 = visits_left.iter().map(|&index| self.plan.cells[index].workload.ramp_ns()).sum();
        let left_ns = deadline_ns.saturating_sub(self.clock.now_ns()).saturating_sub(ramps_ns) as f64;
        let weights: f64 = visits_left.iter().map(|&index| self.plan.cells[index].weight).sum();
        let share = self.plan.cells[visits_left[0]].weight / weights;
        ((left_ns * share) as u64).max(MIN_RUN_NS)
    }

    /// Spends one slice on one cell: one visit, or as many as the slice allows where visits are short by nature.
    fn spend_slice(&mut self, index: usize, slice_ns: u64, state: &mut RunState) {
        let plan = self.plan;
        let cell = &plan.cells[index];
        let until_ns = self.clock.now_ns().saturating_add(slice_ns).saturating_add(cell.workload.ramp_ns());
        state.visits_done += 1;
        self.watch.event(&Event::VisitStarted {
            id: &cell.id,
            visit: state.visits_done,
            visits: state.visits,
            left_ns: state.deadline_ns.saturating_sub(self.clock.now_ns()),
        });
        let mut ops = match cell.extent {
            Extent::Samples { first_ops } => Some(first_ops),
            _ => None,
        };
        for _ in 0..VISITS_PER_SLICE {
            let began_ns = self.clock.now_ns();
            let limits = limits(cell, ops, until_ns.saturating_sub(began_ns), state.write_behind_rate(cell));
            let ended = match self.visit(index, limits, until_ns, slice_ns, state) {
                Ok(ended) => ended,
                // Preparing was cut short by the signal that ends the run; nothing failed.
                Err(_) if self.stop.is_raised() => return,
                Err(error) => {
                    state.all_totals[index].failure = Some(error.problem());
                    state.failures_in_a_row += 1;
                    return;
                }
            };
            if ended == Ended::Failed {
                let refused = state.all_totals[index].is_refused_by_kernel(&cell.workload);
                state.failures_in_a_row = if refused { 0 } else { state.failures_in_a_row + 1 };
                return;
            }
            state.failures_in_a_row = 0;
            let now_ns = self.clock.now_ns();
            let left_ns = until_ns.saturating_sub(now_ns);
            if ended == Ended::Interrupted
                || left_ns == 0
                || is_enough(cell, &state.all_totals[index], plan.precision, ended)
                || (matches!(cell.extent, Extent::Passes { .. }) && left_ns < now_ns - began_ns)
            {
                return;
            }
            ops = ops.map(|ops| next_ops(cell, ops, &state.all_totals[index], now_ns - began_ns, left_ns));
        }
    }

    /// One visit: open, prepare, run under observation, settle, add up.
    fn visit(
        &mut self,
        index: usize,
        limits: Limits,
        until_ns: u64,
        slice_ns: u64,
        state: &mut RunState,
    ) -> Result<Ended, EngineError> {
        let plan = self.plan;
        let cell = &plan.cells[index];
        let totals = &mut state.all_totals[index];
        let members = match (cell.experiment, cell.workload.targets.first()) {
            (Experiment::Stripe, Some(&target)) => (self.members)(target),
            _ => None,
        };
        let walk = rdsk_analysis::stripe::AdaptiveProbes::of(&cell.workload);
        let job = Job {
            workload: &cell.workload,
            claims: self.claims,
            limits,
            visit: totals.next_visit(),
            first_position: totals.first_point(),
            members: members.as_deref(),
            chooser: Some(&walk),
            cache_check: cache_check(cell),
            window_ns: window_ns(slice_ns),
            pinning: match self.pin_cpus {
                [] => Pinning::Free,
                cpus => Pinning::Cpus(cpus.to_vec()),
            },
            stop: self.stop.clone(),
        };
        let observer = state
            .observers
            .entry(cell.workload.targets.clone())
            .or_insert_with(|| (self.observer)(&cell.workload.targets));
        let mut session = self.engine.open(&job)?;
        let prepared = session.prepare()?;
        let now_ns = self.clock.now_ns();
        let mut policy = StopPolicy {
            rule: StopRule { precision: plan.precision },
            previous_rates: totals.samples(),
            timed: cell.extent == Extent::Timed,
            id: &cell.id,
            watch: self.watch,
            // Preparing has used up some of the slice; a quarter of it is left for the I/O whatever it took.
            run_ns: until_ns.saturating_sub(now_ns).max(slice_ns / 4).max(MIN_RUN_NS),
            left_ns: state.deadline_ns.saturating_sub(now_ns),
            last: (0, 0, 0),
            ramp_ns: cell.workload.ramp_ns(),
            rates: Vec::new(),
        };
        observer.begin();
        let run = session.run(&mut policy)?;
        observer.end_io();
        let settling_ns = self.clock.now_ns();
        let left_ns = state.deadline_ns.saturating_sub(settling_ns);
        self.watch.event(&Event::Settling { id: &cell.id, left_ns });
        let settled = session.settle();
        self.watch.event(&Event::Settled);
        let settled_ns = self.clock.now_ns();
        let seen = observer.end();
        let took_ns = settled_ns.saturating_sub(settling_ns);
        state.has_hung |= note_long_flush(totals, cell, took_ns, settled_ns, state.deadline_ns);
        totals.start_ns = now_ns.saturating_sub(state.began_ns);
        self.add_visit(cell, totals, &prepared, &run, settled, seen)?;
        state.note_stable_rate(cell, &run, index);
        Ok(run.ended)
    }

    /// Adds a visit to the totals; a failed close or flush is kept as the cell's failure beside the figures.
    fn add_visit(
        &mut self,
        cell: &Cell,
        totals: &mut CellTotals,
        prepared: &Prepared,
        run: &Run,
        settled: Result<Settled, EngineError>,
        seen: rdsk_observe::VisitEvidence,
    ) -> Result<(), EngineError> {
        totals.evidence.add(seen);
        for note in &run.notes {
            if !totals.notes.contains(note) {
                self.watch.event(&Event::Warning { text: note });
            }
        }
        match settled {
            Ok(settled) => {
                totals.add_visit(cell.extent, prepared, run, &settled);
                Ok(())
            }
            Err(error) => {
                totals.add_visit(cell.extent, prepared, run, &Settled::default());
                Err(error)
            }
        }
    }

    fn finish(&mut self, state: &RunState) -> Outcome {
        let interrupted = self.stop.is_raised();
        let gave_up = state.failures_in_a_row >= FAILURES_IN_A_ROW;
        let mut cells = Vec::with_capacity(self.plan.cells.len());
        let mut notes: Vec<String> = Vec::new();
        for (index, cell) in self.plan.cells.iter().enumerate() {
            let totals = &state.all_totals[index];
            notes.extend(
                totals.notes.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>(),
            );
            let cut_short =
                interrupted && (totals.visits.is_empty() || totals.ended == Some(Ended::Interrupted));
            let context = ResultContext {
                precision: self.plan.precision,
                slice_ns: state.slices_ns[index],
                interrupted: cut_short,
                align_bytes: self.target_of(cell).and_then(|target| target.direct_align_bytes),
            };
            let mut result = totals.result(cell, &context);
            if gave_up && totals.visits.is_empty() && result.stop == rdsk_model::StopReason::Budget {
                result.stop = rdsk_model::StopReason::Error;
                result.why = "not run: the cells before it failed".into();
            }
            let mut record = CellRecord {
                id: cell.id.clone(),
                experiment: cell.experiment,
                workload: cell.workload.clone(),
                result,
                evidence: self.evidence(cell, totals),
                verdict: None,
            };
            if record.result.stop != rdsk_model::StopReason::NotApplicable {
                record.verdict =
                    Some(rdsk_analysis::verdict_with_cpus(&record, self.targets, self.cpu_count));
            }
            self.watch.event(&Event::CellFinished { cell: &record });
            cells.push(record);
        }
        let problem = first_problem(&cells, &state.all_totals);
        let observer = state.observers.values().next().map(|observer| observer.describe());
        Outcome { cells, interrupted, problem, notes, observer }
    }

    fn target_of(&self, cell: &Cell) -> Option<&Target> {
        self.targets.get(*cell.workload.targets.first()? as usize)
    }

    fn evidence(&self, cell: &Cell, totals: &CellTotals) -> Evidence {
        let mut evidence = totals.evidence.clone().finish();
        evidence.page_cache = totals.page_cache;
        if let Some(then) = continued(cell, self.resumed) {
            evidence = crate::merge_evidence::merge(&then.evidence, evidence);
        }
        let workload = &cell.workload;
        evidence.extents = workload
            .targets
            .first()
            .and_then(|&target| self.claims.get(target as usize))
            .and_then(|claim| claim.allocation(workload.offset_bytes, workload.span_bytes));
        evidence
    }
}

impl RunState {
    /// The rate that a write-behind visit of this cell is measured out by.
    fn write_behind_rate(&self, cell: &Cell) -> Option<f64> {
        cell.workload.targets.first().and_then(|target| self.stable_rates.get(target).copied())
    }

    fn note_stable_rate(&mut self, cell: &Cell, run: &Run, index: usize) {
        if cell.workload.op != rdsk_model::Op::Write || cell.workload.block_bytes < 4096 || run.bytes == 0 {
            return;
        }
        if let (Some(&target), Some(rate)) =
            (cell.workload.targets.first(), self.all_totals[index].stable_rate())
            && (is_write_behind(&cell.workload) || cell.workload.block_bytes >= 1 << 20)
        {
            self.stable_rates.insert(target, rate);
        }
    }
}

/// What failed first, with the cell's name before it. A refusal or a shortage that let nothing be measured stays what it
/// is; a target that was lost on the way is failed I/O.
fn first_problem(cells: &[CellRecord], all_totals: &[CellTotals]) -> Option<Problem> {
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
