//! Visits the cells of a Plan in ABBA order through an engine, with an observer beside every visit, within the budget.
//! When it is whose turn, `schedule` decides. It never opens a path, prints, or reads a clock other than the engine's.

use crate::after_idle::{AfterIdlePlan, IdleReads};
use crate::cell_record::CellContext;
use crate::cell_totals::{CellTotals, add_new};
use crate::counted_part::candidate_ns;
use crate::lockstep::Lockstep;
use crate::request::RankPlace;
use crate::run_state::{RunOutcome, RunState, Slice, first_problem};
use crate::schedule::{Schedule, Turn};
use crate::shared_turn;
use crate::stopping::{
    SettleWatch, StopPolicy, cache_check, is_enough, least_ops, limits, next_ops, of_visit, run_ns, window_ns,
};
use rdsk_analysis::MIN_PAGES;
use rdsk_engine::{
    Ended, Engine, EngineError, Job, Limits, PAGE_BYTES, PAGES_LOOKED_AT, Prepared, Run, Settled, look_ns,
};
use rdsk_model::{
    CellRecord, CellsSoFar, Clock, Event, Extent, Peers, Plan, ReadContent, StopFlag, Target, Watch,
};
use rdsk_observe::Observer;
use rdsk_targets::Claim;

/// Most visits of one cell within one slice; a guard, far above what a slice of seconds needs.
const VISITS_PER_SLICE: u32 = 200;

/// Everything that running a plan needs.
pub struct Runner<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// The targets as the Record shows them.
    pub targets: &'a [Target],
    /// The right to use them, in the same order.
    pub claims: &'a [Claim],
    /// Cells of an earlier Record that are continued; found by their ids.
    pub resumed: &'a [CellRecord],
    /// All cells of that Record: nothing draws their offsets again.
    pub earlier: &'a [CellRecord],
    /// What issues the I/O.
    pub engine: &'a mut dyn Engine,
    /// The engine's clock; a field of its own because sessions borrow the engine.
    pub clock: &'a dyn Clock,
    /// Creates the observer of the targets with these indices.
    pub observer: &'a dyn Fn(&[u32]) -> Box<dyn Observer>,
    /// Processors that the process may use, if known; the verdict on processor time needs it.
    pub cpu_count: Option<u32>,
    /// Processors to pin streams to; empty leaves them free.
    pub pin_cpus: &'a [usize],
    /// What receives the events.
    pub watch: &'a mut dyn Watch,
    /// The other ranks of a run of several processes; each has a Runner with the same plan.
    pub peers: Option<&'a mut dyn Peers>,
    /// Where this process stands among them.
    pub rank: Option<RankPlace>,
    /// Raised by signals.
    pub stop: &'a StopFlag,
}

impl Runner<'_> {
    /// Visits all cells.
    pub fn run(mut self) -> RunOutcome {
        let mut state =
            RunState::new(self.plan, self.targets, (self.resumed, self.earlier), self.clock.now_ns());
        let is_applicable = |index: &usize| self.plan.cells[*index].not_applicable.is_none();
        let cells = (0..self.plan.cells.len()).filter(is_applicable).count();
        self.watch.event(&Event::Started { cells, budget_ns: self.plan.budget_ns });
        let after_idle = AfterIdlePlan::fitting(self.plan, self.targets);
        state.deadline_ns = state.deadline_ns.saturating_sub(after_idle.reserved_ns);
        let mut schedule = Schedule::new(self.plan);
        while self.goes_on() {
            let turn = schedule.next(self.clock.now_ns(), &mut state);
            let Some(turn) = shared_turn::agreed(&mut self.peers, turn, &state) else { break };
            if self.rank.is_some_and(|rank| rank.waits_while(self.plan.cells[turn.index].workload.at_once)) {
                shared_turn::wait(&mut self.peers);
            } else {
                self.take_turn(turn, &mut state);
            }
        }
        if let Some(peers) = &mut self.peers {
            peers.end();
            return self.finish(&state);
        }
        let (plan, claims, engine) = (self.plan, self.claims, &mut *self.engine);
        let mut reads = IdleReads { plan, claims, engine, pin_cpus: self.pin_cpus, stop: self.stop };
        reads.make(&after_idle, &mut state);
        let mut outcome = self.finish(&state);
        outcome.notes.extend(after_idle.note);
        outcome
    }

    /// Whether there may be another turn. Several ranks decide that together.
    fn goes_on(&self) -> bool {
        self.peers.is_some() || !self.stop.is_raised()
    }

    fn take_turn(&mut self, turn: Turn, state: &mut RunState) {
        let Turn { index, round, slice } = turn;
        state.totals[index].round = round;
        state.slices_ns[index] += slice.ns;
        state.rounds_done[index] += 1;
        let began_ns = self.clock.now_ns();
        self.spend_slice(index, slice, state);
        state.turns_ns[index] = self.clock.now_ns().saturating_sub(began_ns);
        state.longest_turns_ns[index] = state.longest_turns_ns[index].max(state.turns_ns[index]);
        state.margins[index] = state.totals[index].margin(&self.plan.cells[index]);
        let context = self.cell_context();
        let sum_up = |position| context.so_far(position, state);
        self.watch.event(&Event::TurnEnded { position: index, cells: CellsSoFar::new(&sum_up) });
    }

    /// Spends one slice on one cell: one visit, or as many short ones as fit.
    fn spend_slice(&mut self, index: usize, slice: Slice, state: &mut RunState) {
        let plan = self.plan;
        let cell = &plan.cells[index];
        let begin_ns = self.clock.now_ns().saturating_add(cell.workload.ramp_ns());
        let until_ns = begin_ns.saturating_add(slice.ns);
        // Only the first visit may go on beyond the slice.
        let mut latest_ns = begin_ns.saturating_add(slice.limit_ns);
        state.visits_done += 1;
        self.watch.event(&Event::VisitStarted {
            id: &cell.id,
            visit: state.visits_done,
            visits: state.visits,
            left_ns: state.deadline_ns.saturating_sub(self.clock.now_ns()),
        });
        let mut ops = match cell.extent {
            Extent::Samples { first_ops } => Some(first_ops),
            Extent::Sustained(endurance) => Some(endurance.most_ops),
            _ => None,
        };
        for _ in 0..VISITS_PER_SLICE {
            let began_ns = self.clock.now_ns();
            let limits = limits(cell, ops, latest_ns.saturating_sub(began_ns), state.write_behind_rate(cell));
            // A timed visit goes on beyond its slice only for too few I/Os.
            let aim_ns = if cell.extent == Extent::Timed { until_ns } else { latest_ns };
            let limits = shared_turn::whole(self.peers.is_some(), limits, slice);
            let ended = match self.visit(index, limits, aim_ns, slice.ns, state) {
                Ok(ended) => ended,
                // The signal that ends the run cut the preparation short; nothing failed.
                Err(_) if self.stop.is_raised() => return,
                Err(error) => {
                    state.totals[index].failure = Some(error.problem());
                    state.failures_in_a_row += 1;
                    return;
                }
            };
            if ended == Ended::Failed {
                let refused = state.totals[index].is_refused_by_kernel(&cell.workload);
                state.failures_in_a_row = if refused { 0 } else { state.failures_in_a_row + 1 };
                return;
            }
            state.failures_in_a_row = 0;
            let now_ns = self.clock.now_ns();
            let left_ns = until_ns.saturating_sub(now_ns);
            latest_ns = until_ns;
            if ended == Ended::Interrupted
                || self.peers.is_some()
                || left_ns == 0
                || is_enough(cell, ended)
                || (matches!(cell.extent, Extent::Passes { .. }) && left_ns < now_ns - began_ns)
            {
                return;
            }
            ops = ops.map(|ops| next_ops(cell, ops, &state.totals[index], now_ns - began_ns, left_ns));
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
        let totals = &mut state.totals[index];
        let (workload, begin_bytes) = of_visit(cell, state.sequences.begin_bytes(cell));
        let job = Job {
            workload: &workload,
            claims: self.claims,
            limits,
            visit: totals.next_visit(),
            begin_bytes,
            first_position: totals.first_position(),
            cache_check: cache_check(cell),
            window_ns: window_ns(slice_ns),
            pin_cpus: self.pin_cpus,
            stop: self.stop.clone(),
        };
        let observer = state
            .observers
            .entry(cell.workload.targets.clone())
            .or_insert_with(|| (self.observer)(&cell.workload.targets));
        // Read-ahead of the visit before is neither this visit's nor another program's.
        observer.wait_until_idle();
        let mut ranks = Lockstep::new(&mut self.peers, &cell.id);
        let mut session = self.engine.open(&job)?;
        let prepared = session.prepare()?;
        ranks.prepared()?;
        let mut now_ns = self.clock.now_ns();
        let left_ns = if ranks.is_alone() { until_ns.saturating_sub(now_ns) } else { slice_ns };
        let run_ns = run_ns(totals, left_ns, slice_ns);
        let mut policy = StopPolicy {
            ranks: &mut ranks,
            id: &cell.id,
            watch: self.watch,
            run_ns,
            least_ops: least_ops(cell),
            warm_up_ns: candidate_ns(cell, totals.visits.len(), run_ns, job.window_ns),
            left_ns: state.deadline_ns.saturating_sub(now_ns),
            last: (0, 0, 0),
            settle: SettleWatch::for_cell(cell),
        };
        observer.follow(state.totals[index].evidence.may_follow());
        observer.begin();
        let mut run = session.run(&mut policy)?;
        observer.end_io();
        // The ranks began when all of them were ready.
        now_ns = ranks.began_ns().unwrap_or(now_ns);
        drop(ranks);
        let settling_ns = self.clock.now_ns();
        let left_ns = state.deadline_ns.saturating_sub(settling_ns);
        self.watch.event(&Event::Settling { id: &cell.id, left_ns });
        let settled = session.settle();
        self.watch.event(&Event::Settled);
        let settled_ns = self.clock.now_ns();
        let evidence = observer.end();
        let more = self.look_at(&job, &run, state.totals[index].pages_seen(), state.deadline_ns);
        // What the earlier run accessed is not known.
        run.first = run.first.filter(|_| self.earlier.is_empty());
        run.content = run.content.into_iter().chain(more).reduce(ReadContent::plus);
        let took_ns = settled_ns.saturating_sub(settling_ns);
        state.note_long_flush(cell, index, took_ns, settled_ns);
        state.sequences.add(cell, &run.streams);
        let totals = &mut state.totals[index];
        totals.start_ns = now_ns.saturating_sub(state.start_ns);
        self.add_visit(totals, &prepared, &run, settled, evidence)?;
        state.note_stable_rate(cell, &run, index);
        Ok(run.ended)
    }

    /// Looks at what a device holds where it was read, unless a signal came, or the budget has no time for it. After
    /// sequences, whose buffers show nothing, the visits before it may have said enough; other visits look only if their buffers had
    /// too few pages.
    fn look_at(
        &mut self,
        job: &Job<'_>,
        run: &Run,
        pages_seen: u64,
        deadline_ns: u64,
    ) -> Option<ReadContent> {
        // Of a short span, the visits look at the same pages.
        let span_pages = job.workload.span_bytes / PAGE_BYTES;
        let enough = if run.content.is_none() { PAGES_LOOKED_AT } else { MIN_PAGES };
        let pages = pages_seen + run.content.map_or(0, |content| content.pages);
        let now_ns = self.clock.now_ns();
        let mean_ns = run.latency_sum_ns.checked_div(u128::from(run.ops))?;
        let least_ns = u64::try_from(mean_ns * u128::from(MIN_PAGES)).unwrap_or(u64::MAX);
        if pages >= enough.min(span_pages) || least_ns > deadline_ns.saturating_sub(now_ns) {
            return None;
        }
        let until_ns = now_ns.saturating_add(look_ns(run.elapsed_ns).max(least_ns)).min(deadline_ns);
        let (clock, stop) = (self.clock, self.stop);
        self.engine.look_at(job, run, &mut || !stop.is_raised() && clock.now_ns() < until_ns)
    }

    /// Adds a visit to the totals; a failed close or flush is the cell's failure, and its figures are kept.
    fn add_visit(
        &mut self,
        totals: &mut CellTotals,
        prepared: &Prepared,
        run: &Run,
        settled: Result<Settled, EngineError>,
        mut evidence: rdsk_observe::VisitEvidence,
    ) -> Result<(), EngineError> {
        // The threads that issue the I/O have ended, so only they can say how long they waited.
        if let Some(processor) = &mut evidence.processor {
            processor.own_wait_ns = run.processor_wait_ns;
        }
        evidence.leave_out(run.left_out_ns);
        totals.evidence.add(evidence);
        for note in &run.notes {
            if !totals.notes.contains(note) {
                self.watch.event(&Event::Warning { text: note });
            }
        }
        let (settled, result) = match settled {
            Ok(settled) => (settled, Ok(())),
            Err(error) => (Settled::default(), Err(error)),
        };
        totals.add_visit(prepared, run, &settled);
        result
    }

    fn finish(&mut self, state: &RunState) -> RunOutcome {
        let interrupted = self.stop.is_raised();
        let mut notes: Vec<String> = Vec::new();
        for totals in &state.totals {
            add_new(&mut notes, &totals.notes);
        }
        let context = self.cell_context();
        let mut cells: Vec<CellRecord> =
            (0..self.plan.cells.len()).map(|index| context.finished(index, state, interrupted)).collect();
        rdsk_analysis::stalls::carry(&mut cells);
        rdsk_analysis::read_ahead::carry(&mut cells);
        for cell in &cells {
            self.watch.event(&Event::CellFinished { cell });
        }
        let problem = first_problem(&cells, &state.totals);
        let observer = state.observers.values().next().map(|observer| observer.describe());
        RunOutcome { cells, interrupted, problem, notes, observer }
    }
}

impl<'a> Runner<'a> {
    fn cell_context(&self) -> CellContext<'a> {
        CellContext {
            plan: self.plan,
            targets: self.targets,
            claims: self.claims,
            resumed: self.resumed,
            cpu_count: self.cpu_count,
        }
    }
}
