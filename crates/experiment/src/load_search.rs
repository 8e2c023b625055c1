//! The highest rate of a load at which a percentile of its latencies holds: the closed loop shows what the target can do at most, and the
//! interval between nothing and that is halved, with an open loop at each rate in between.
//!
//! An example: a disk that serves 10,000/s at most is offered 5,000/s, where the p99 is 0.4 ms of 1 ms that are allowed, then 7,500/s
//! (0.9 ms), 8,750/s (2.1 ms, too long), 8,125/s and so on: after eight steps the rate is known to 40/s.

use crate::run_state::RunOutcome;
use rdsk_analysis::promise::{Held, held, reached};
use rdsk_model::{Arrivals, Cell, CellRecord, Plan, Problem, Promise, Rate};

/// How often the interval is halved: the rate is known to one part in 256 of what the target can do.
pub(crate) const STEPS: u32 = 8;
/// Part of the budget for the closed loop.
pub(crate) const CLOSED_PART: u64 = 6;
/// Moments of a step at which its rate is offered.
const ROUNDS: u32 = 4;
/// No figure of a step is so precise that its time is cut.
const PRECISION: f64 = 1e-6;

/// Offers rates to the load of `closed`, a cell that was measured in a closed loop as `measured`, each for `step_ns`; `run` runs a plan of
/// one cell. Gives a cell per rate, in the order in which they were tried.
pub(crate) fn search(
    closed: &Cell,
    measured: &CellRecord,
    promise: Promise,
    step_ns: u64,
    run: &mut dyn FnMut(&Plan) -> RunOutcome,
) -> (Vec<CellRecord>, Option<Problem>, bool) {
    let mut cells = Vec::new();
    let (mut low, mut high) = (0.0, reached(measured).unwrap_or(0.0));
    for step in 1..=STEPS {
        let rate = (low + high) / 2.0;
        if rate <= 0.0 {
            break;
        }
        let plan = Plan {
            cells: vec![at_rate(closed, rate, step)],
            budget_ns: step_ns,
            runtime_ns: Some(step_ns),
            precision: PRECISION,
            rounds: ROUNDS,
            notes: Vec::new(),
        };
        let outcome = run(&plan);
        let held = outcome.cells.first().map(|cell| held(cell, promise));
        cells.extend(outcome.cells);
        if outcome.interrupted || outcome.problem.is_some() {
            return (cells, outcome.problem, outcome.interrupted);
        }
        // Where the requests are too few to say, lower rates have fewer still.
        match held {
            Some(Held::Yes | Held::Unknown) => low = rate,
            Some(Held::No) | None => high = rate,
        }
    }
    (cells, None, false)
}

/// The cell with its first job at a rate of all its streams together.
fn at_rate(closed: &Cell, rate: f64, step: u32) -> Cell {
    let mut cell = Cell { id: format!("{}/{step}", closed.id), ..closed.clone() };
    // Other offsets at each rate: what a cache learnt at the one before helps none.
    cell.workload.seed = closed.workload.seed.wrapping_add(u64::from(step)) & ((1 << 53) - 1);
    if let Some(job) = cell.workload.jobs.first_mut() {
        let arrivals = job.rate.map_or(Arrivals::Poisson, |rate| rate.arrivals);
        job.rate = Some(Rate { per_s: rate / f64::from(job.streams.max(1)), arrivals });
    }
    cell
}
