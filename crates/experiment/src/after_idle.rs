//! Single reads after rests, at the end of a run: a disk that sleeps when nothing is asked of it answers a program that reads now and
//! then much later than one that reads all the time. It changes no figure of any cell.

use crate::experiments::question;
use crate::run_state::RunState;
use rdsk_engine::{CacheCheck, Engine, Flow, Job, Limits, Progress};
use rdsk_model::{AfterIdle, IoPath, Plan, StopFlag, StreamRange, Target, TargetKind, Workload};
use rdsk_targets::Claim;
use rdsk_units::Nanos;

/// The rests before reads. Disks and links sleep after some hundred milliseconds.
const RESTS_NS: [u64; 2] = [500_000_000, 1_000_000_000];
/// Reads after each rest; one before them wakes the disk up.
const READS: u32 = 3;
/// Reads without a rest right after these, for what the disk does at that time.
const READS_BESIDE: u32 = 16;
/// The part of the budget that this may take: one in so many.
const SHARE: u64 = 10;
/// The windows of so few reads are not drawn.
const MIN_WINDOW_NS: u64 = 50_000_000;
/// Time for a read that takes much longer than its rest.
const PATIENCE_NS: u64 = 10_000_000_000;

/// What is to be done at the end of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AfterIdlePlan {
    /// The cells, by index, whose I/O is repeated.
    cells: Vec<usize>,
    rests_ns: Vec<u64>,
    /// Time of the budget that is kept for it.
    pub(crate) reserved_ns: u64,
    /// That there is no time for it.
    pub(crate) note: Option<String>,
}

impl AfterIdlePlan {
    /// All rests if they fit, else the short ones, else none. The time of simulated targets costs nothing, and none of it is taken from
    /// their cells.
    pub(crate) fn fitting(plan: &Plan, targets: &[Target]) -> Self {
        let is_asked = |index: &usize| {
            let cell = &plan.cells[*index];
            let is_direct = cell.workload.path == IoPath::Direct && cell.not_applicable.is_none();
            is_direct && question(cell.experiment).is_repeated_after_rests(&cell.workload)
        };
        let cells: Vec<usize> = (0..plan.cells.len()).filter(is_asked).collect();
        if cells.is_empty() || plan.runtime_ns.is_some() {
            return Self::default();
        }
        if targets.iter().all(|target| target.kind == TargetKind::Sim) {
            return Self { cells, rests_ns: RESTS_NS.to_vec(), ..Self::default() };
        }
        let takes_ns = |rests: &[u64]| rests.iter().sum::<u64>() * u64::from(READS) * cells.len() as u64;
        let part_ns = plan.budget_ns / SHARE;
        let fits = [&RESTS_NS[..], &RESTS_NS[..1]].into_iter().find(|rests| takes_ns(rests) <= part_ns);
        match fits {
            Some(rests) => Self { reserved_ns: takes_ns(rests), rests_ns: rests.to_vec(), cells, note: None },
            None => Self {
                note: Some(format!(
                    "latency after idle was not measured: it needs a budget of {}",
                    Nanos(takes_ns(&RESTS_NS[..1]) * SHARE)
                )),
                ..Self::default()
            },
        }
    }
}

/// What the reads need, all of it the runner's.
pub(crate) struct IdleReads<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) claims: &'a [Claim],
    pub(crate) engine: &'a mut dyn Engine,
    pub(crate) pin_cpus: &'a [usize],
    pub(crate) stop: &'a StopFlag,
}

impl IdleReads<'_> {
    /// Makes the reads; a target that fails has none.
    pub(crate) fn make(&mut self, planned: &AfterIdlePlan, state: &mut RunState) {
        for &index in &planned.cells {
            for (number, &rest_ns) in (0..).zip(planned.rests_ns.iter().chain(&[0])) {
                let totals = &state.totals[index];
                let has_failed = totals.failure.is_some() || !totals.errors.is_empty();
                if self.stop.is_raised() || has_failed || totals.visits.is_empty() || state.has_hung {
                    continue;
                }
                let latency_ns = self.after_rests(index, (number, rest_ns), state).unwrap_or_default();
                if !latency_ns.is_empty() {
                    state.totals[index].after_idle.push(AfterIdle { rest_ns, latency_ns });
                }
            }
        }
    }

    /// The latencies of reads that each began a rest after the one before: a stream for each, one starting after the other. Without a
    /// rest the median of reads one after the other. Each set of reads, by its number, has places of its own, which no cache has.
    fn after_rests(
        &mut self,
        index: usize,
        (number, rest_ns): (u32, u64),
        state: &RunState,
    ) -> Option<Vec<u64>> {
        let (streams, reads) = if rest_ns > 0 { (READS + 1, READS + 1) } else { (1, READS_BESIDE) };
        let workload = Workload {
            streams,
            stagger_ns: rest_ns,
            range: StreamRange::Shared,
            ..self.plan.cells[index].workload.clone()
        };
        let job = Job {
            workload: &workload,
            claims: self.claims,
            limits: Limits {
                max_bytes: None,
                max_ops: Some(reads.into()),
                max_elapsed_ns: rest_ns.saturating_mul(streams.into()).saturating_add(PATIENCE_NS),
            },
            visit: state.totals[index].next_visit().saturating_add(number),
            begin_bytes: 0,
            first_position: 0,
            cache_check: CacheCheck::Span,
            window_ns: rest_ns.max(MIN_WINDOW_NS),
            pin_cpus: self.pin_cpus,
            stop: self.stop.clone(),
        };
        let mut session = self.engine.open(&job).ok()?;
        session.prepare().ok()?;
        let run = session.run(&mut |_: &Progress| Flow::Continue).ok()?;
        session.settle().ok()?;
        if rest_ns == 0 {
            return Some(run.histogram.quantile_unchecked(0.5).into_iter().collect());
        }
        let pairs = run.streams.windows(2);
        // One that began while the read before it was still under way, or just behind it, had no rest.
        let rested = pairs.filter(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns) >= rest_ns / 4 * 3);
        let done = rested.filter(|pair| pair[1].ops == 1);
        Some(done.map(|pair| pair[1].end_ns - pair[1].start_ns).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Cell, Experiment, Extent, Pattern};

    #[test]
    fn the_rests_take_a_tenth_of_the_budget_at_most() {
        let plan = |budget_s: u64| Plan {
            cells: vec![Cell {
                id: "headline/read/random-qd1".into(),
                experiment: Experiment::Headline,
                workload: Workload { pattern: Pattern::Random, ..Workload::sequential_read(1 << 30) },
                extent: Extent::Timed,
                weight: 1.0,
                not_applicable: None,
            }],
            budget_ns: budget_s * 1_000_000_000,
            runtime_ns: None,
            precision: 0.05,
            rounds: 6,
            notes: Vec::new(),
        };
        let plan_of = |budget_s: u64, kind: TargetKind| {
            AfterIdlePlan::fitting(&plan(budget_s), &[Target { kind, ..Target::default() }])
        };
        let real = |budget_s: u64| plan_of(budget_s, TargetKind::Block);
        assert_eq!((real(60).rests_ns.len(), real(60).reserved_ns), (2, 4_500_000_000));
        assert_eq!((real(20).rests_ns.len(), real(20).reserved_ns), (1, 1_500_000_000));
        assert!(real(10).cells.is_empty() && real(10).note.is_some_and(|note| note.ends_with("15.0 s")));
        let simulated = plan_of(10, TargetKind::Sim);
        assert_eq!((simulated.rests_ns.len(), simulated.reserved_ns, simulated.note), (2, 0, None));
    }
}
