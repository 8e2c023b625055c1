//! The highest rate of a load at which a promise on latency holds, by the rates that were tried.

use rdsk_model::{CellRecord, Experiment, Promise, Record};
use rdsk_stats::Histogram;

/// One rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Requests per second that arrived.
    pub offered_per_s: f64,
    /// Requests per second that completed.
    pub reached_per_s: f64,
    /// The median latency in ns.
    pub p50_ns: Option<u64>,
    /// The latency of the promise's percentile in ns; `None` with too few requests.
    pub held_ns: Option<u64>,
    /// Requests that arrived and were never sent, which are in no latency.
    pub unsent: u64,
    /// Whether the promise holds: requests that were never sent count as too late.
    pub held: Held,
}

/// Whether a promise holds at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The percentile is within it.
    Yes,
    /// It is not; or of requests that are too few for a percentile, more were late than chance makes where it holds.
    No,
    /// The requests are too few to say.
    Unknown,
}

/// Chance of as many late requests where a promise holds, below which it is broken.
const CHANCE: f64 = 0.001;

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Promised {
    /// What had to hold.
    pub promise: Promise,
    /// The rate of the closed loop, which is the most that the target does.
    pub closed_per_s: Option<f64>,
    /// The rates that were tried, in ascending order.
    pub steps: Vec<Step>,
}

impl Promised {
    /// Of a Record whose load had a promise.
    pub fn of(record: &Record) -> Option<Self> {
        let promise = record.promise?;
        let cells = record.cells.iter().filter(|cell| cell.experiment == Experiment::Load);
        let mut steps: Vec<Step> = cells.filter_map(|cell| step(cell, promise)).collect();
        steps.sort_by(|left, right| left.offered_per_s.total_cmp(&right.offered_per_s));
        let closed = record.cells.iter().find(|cell| cell.workload.jobs.iter().all(|job| job.rate.is_none()));
        Some(Self { promise, closed_per_s: closed.and_then(reached), steps })
    }

    /// The highest rate that holds below the lowest one that does not, in requests per second.
    pub fn best_per_s(&self) -> Option<f64> {
        let below = self.steps.iter().take_while(|step| step.held != Held::No);
        below.filter(|step| step.held == Held::Yes).last().map(|step| step.offered_per_s)
    }

    /// The lowest rate that does not hold.
    pub fn limit_per_s(&self) -> Option<f64> {
        self.steps.iter().find(|step| step.held == Held::No).map(|step| step.offered_per_s)
    }
}

/// Requests per second of the cell's first job.
pub fn reached(cell: &CellRecord) -> Option<f64> {
    cell.result.jobs.first()?.requests_per_s()
}

fn step(cell: &CellRecord, promise: Promise) -> Option<Step> {
    let offered_per_s = cell.workload.jobs.first()?.offered_per_s()?;
    let latency = cell.result.latency_ns.as_ref()?;
    Some(Step {
        offered_per_s,
        reached_per_s: reached(cell)?,
        p50_ns: latency.p50,
        held_ns: if promise.percent > 99.5 { latency.p999 } else { latency.p99 },
        unsent: unsent(cell),
        held: held(cell, promise),
    })
}

fn unsent(cell: &CellRecord) -> u64 {
    cell.result.jobs.iter().filter_map(|job| job.rate.as_ref()).map(|rate| rate.unsent).sum()
}

/// Whether the percentile of the latencies of a cell is within the promise, where requests that were never sent are beyond it.
///
/// An example: of 3 requests at a rate, all took longer than the p99 that was promised. Where one of 100 may, that happens once in a
/// million times, so the promise is broken; had one of them been late, nothing could be said.
pub fn held(cell: &CellRecord, promise: Promise) -> Held {
    let latency = cell.result.latency_ns.as_ref();
    let histogram = latency.and_then(|latency| Histogram::from_base64(latency.histogram.as_deref()?).ok());
    let Some(histogram) = histogram.filter(|histogram| histogram.count() > 0) else {
        return if unsent(cell) > 0 { Held::No } else { Held::Unknown };
    };
    let arrived = histogram.count() + unsent(cell);
    // As on the page, where a percentile is the end of its bucket, or the longest latency of all.
    let are_all =
        latency.and_then(|latency| latency.max).is_some_and(|longest| longest <= promise.at_most_ns);
    let within = if are_all { histogram.count() } else { histogram.count_within(promise.at_most_ns) };
    let share = promise.percent / 100.0;
    if Histogram::has_enough(histogram.count(), share) {
        return if within as f64 >= share * arrived as f64 { Held::Yes } else { Held::No };
    }
    if chance_of_at_least(arrived - within, arrived, 1.0 - share) < CHANCE { Held::No } else { Held::Unknown }
}

/// The probability that at least `late` of `count` requests are late, where each is late with the probability `chance`.
fn chance_of_at_least(late: u64, count: u64, chance: f64) -> f64 {
    let mut fewer = 0.0;
    let mut exactly = (1.0 - chance).powf(count as f64);
    for number in 0..late {
        fewer += exactly;
        exactly *= (count - number) as f64 / (number + 1) as f64 * chance / (1.0 - chance);
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_late_requests_break_a_promise_where_chance_makes_so_many_hardly_ever() {
        let is_near =
            |chance: f64, expected: f64| assert!((chance / expected - 1.0).abs() < 1e-6, "{chance}");
        is_near(chance_of_at_least(3, 3, 0.01), 1e-6);
        is_near(chance_of_at_least(1, 3, 0.01), 1.0 - 0.99_f64.powi(3));
        // A binomial distribution's own: 1 - (0.99^100 + 100 · 0.01 · 0.99^99).
        is_near(chance_of_at_least(2, 100, 0.01), 1.0 - 0.99_f64.powi(100) - 0.99_f64.powi(99));
        assert_eq!(chance_of_at_least(0, 50, 0.01), 1.0);
    }
}
