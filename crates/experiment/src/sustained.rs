//! Writes that go on until their rate has settled, after everything else of a run: each cell that is to be sustained once more, in one
//! visit. The first one of a target, which is sequential, fills what caches there are; what it shows of their size the others exceed.

use crate::experiments::question;
use crate::run_state::RunOutcome;
use rdsk_analysis::lasting::lasting;
use rdsk_model::{Cell, CellRecord, Clock, Endurance, Event, Extent, Plan, Problem, Watch};

/// Time of a visit on a simulated system that never settles, and of one whose rate does not fall; or as many I/Os, since each is computed.
const SIM_MOST_NS: u64 = 3600 * 1_000_000_000;
const SIM_LEAST_NS: u64 = 60 * 1_000_000_000;
const SIM_LEAST_OPS: u64 = 60_000;
const SIM_MOST_OPS: u64 = 600_000;
/// What is written after a cache was seen to be full: what it took and one part in so many more, and the most of it.
const MORE_PART: u64 = 4;
const MOST_BYTES: u64 = 512 << 20;
/// Of the time of a run that sustains its writes, the rounds before them have one part in so many, and no more than a run by itself.
const ROUNDS_PART: u64 = 4;
const MOST_ROUNDS_NS: u64 = 60 * 1_000_000_000;

/// The time for the rounds of a run whose writes are to be sustained.
pub(crate) fn rounds_ns(budget_ns: u64) -> u64 {
    (budget_ns / ROUNDS_PART).min(MOST_ROUNDS_NS)
}

/// For how long all of these visits may go on.
#[derive(Clone, Copy)]
pub(crate) enum Time {
    /// A simulated system, whose time costs nothing.
    Free,
    /// Until then by the clock of the run.
    Until(u64),
}

/// The cells of a plan that are sustained.
pub(crate) fn cells(plan: &Plan) -> Vec<&Cell> {
    let is_sustained =
        |cell: &&Cell| cell.not_applicable.is_none() && question(cell.experiment).is_sustained(cell);
    let mut cells: Vec<&Cell> = plan.cells.iter().filter(is_sustained).collect();
    // What random writes leave in a cache takes long to go, and would be what the ones after them wait for.
    cells.sort_by_key(|cell| cell.workload.pattern);
    cells
}

/// Visits these cells once more with the runners that `runner` makes for plans of one cell. `measured` are those of the rounds. Ends
/// with the first failure.
pub(crate) fn sustain(
    cells: &[&Cell],
    measured: &[CellRecord],
    time: Time,
    clock: &dyn Clock,
    run: &mut dyn FnMut(&Plan) -> RunOutcome,
) -> (Vec<CellRecord>, Option<Problem>) {
    let mut sustained: Vec<CellRecord> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(before) = measured.iter().find(|before| before.id == cell.id) else { continue };
        let left = (cells.len() - index) as u64;
        let most_ns = match time {
            Time::Free => SIM_MOST_NS,
            Time::Until(end_ns) => end_ns.saturating_sub(clock.now_ns()) / left,
        };
        if before.result.bytes_per_s.is_none() || most_ns == 0 {
            continue;
        }
        let endurance = endurance(before, &sustained, time);
        let plan = Plan {
            cells: vec![Cell { extent: Extent::Sustained(endurance), ..(*cell).clone() }],
            budget_ns: most_ns,
            runtime_ns: Some(most_ns),
            precision: 1.0,
            rounds: 1,
            notes: Vec::new(),
        };
        let outcome = run(&plan);
        sustained.extend(outcome.cells.into_iter().filter(|cell| cell.result.elapsed_ns.is_some()));
        if outcome.interrupted || outcome.problem.is_some() {
            return (sustained, outcome.problem);
        }
    }
    (sustained, None)
}

/// How long the visit of a cell goes on, by what the rounds and the visits before it showed of its targets.
#[expect(clippy::cast_possible_truncation, reason = "bytes and rates far below 2^63")]
fn endurance(before: &CellRecord, sustained: &[CellRecord], time: Time) -> Endurance {
    let same_targets = |other: &&CellRecord| other.workload.targets == before.workload.targets;
    let fallen = |other: &CellRecord| lasting(other, other)?.fall_bytes;
    let cache_bytes = sustained.iter().filter(same_targets).filter_map(fallen).max().unwrap_or(0);
    let (least_ns, least_ops, most_ops) = match time {
        Time::Free => (SIM_LEAST_NS, SIM_LEAST_OPS, SIM_MOST_OPS),
        Time::Until(_) => (u64::MAX, u64::MAX, u64::MAX),
    };
    Endurance {
        least_bytes: (cache_bytes + cache_bytes / MORE_PART).min(MOST_BYTES),
        least_ns,
        least_ops,
        most_ops,
        expected_bytes_per_s: before.result.bytes_per_s.map_or(0, |rate| rate.mean as u64),
    }
}

/// Passes on what a visit says of its progress: its runner knows nothing of the run's plan, Record and rounds.
pub(crate) struct ProgressOnly<'a>(pub(crate) &'a mut dyn Watch);

impl Watch for ProgressOnly<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::VisitStarted { .. }
            | Event::Window { .. }
            | Event::Settling { .. }
            | Event::Settled
            | Event::Warning { .. } => self.0.event(event),
            Event::Creating { .. }
            | Event::Planned { .. }
            | Event::Started { .. }
            | Event::TurnEnded { .. }
            | Event::CellFinished { .. } => {}
        }
    }
}
