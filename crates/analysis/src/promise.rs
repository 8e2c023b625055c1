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
    pub holds: bool,
}

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
        let holding = self.steps.iter().take_while(|step| step.holds);
        holding.last().map(|step| step.offered_per_s)
    }

    /// The lowest rate that does not hold.
    pub fn limit_per_s(&self) -> Option<f64> {
        self.steps.iter().find(|step| !step.holds).map(|step| step.offered_per_s)
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
        holds: holds(cell, promise),
    })
}

fn unsent(cell: &CellRecord) -> u64 {
    cell.result.jobs.iter().filter_map(|job| job.rate.as_ref()).map(|rate| rate.unsent).sum()
}

/// Whether the percentile of the latencies of a cell is within the promise, where requests that were never sent are beyond it.
pub fn holds(cell: &CellRecord, promise: Promise) -> bool {
    let latency = cell.result.latency_ns.as_ref();
    let histogram = latency.and_then(|latency| Histogram::from_base64(latency.histogram.as_deref()?).ok());
    let Some(histogram) = histogram.filter(|histogram| histogram.count() > 0) else { return false };
    if !Histogram::has_enough(histogram.count(), promise.percent / 100.0) {
        return false;
    }
    let arrived = (histogram.count() + unsent(cell)) as f64;
    // As on the page, where a percentile is the end of its bucket, or the longest latency of all.
    let are_all =
        latency.and_then(|latency| latency.max).is_some_and(|longest| longest <= promise.at_most_ns);
    let within = if are_all { histogram.count() } else { histogram.count_within(promise.at_most_ns) };
    within as f64 >= promise.percent / 100.0 * arrived
}
