//! Sums up what the jobs of a load did over the visits of its cell. It holds numbers and issues nothing.

use rdsk_engine::{JobRun, KindRun};
use rdsk_model::{JobResult, KindResult, Latency, LoadJob, RateResult};
use rdsk_stats::{Histogram, SparseHistogram};
use std::collections::BTreeMap;

/// Latencies of all visits, and of each round.
#[derive(Default)]
struct LatencyTotals {
    histogram: Histogram,
    rounds: BTreeMap<u32, SparseHistogram>,
}

impl LatencyTotals {
    fn add(&mut self, round: u32, more: &Histogram) {
        self.histogram.merge(more);
        self.rounds.entry(round).or_default().merge(more);
    }

    fn latency(&self) -> Latency {
        Latency::from(&self.histogram).with_rounds(&self.rounds)
    }
}

/// Requests of one kind.
#[derive(Default)]
struct KindTotals {
    latencies: LatencyTotals,
    bytes: u64,
}

impl KindTotals {
    fn add(&mut self, round: u32, run: &KindRun) {
        self.latencies.add(round, &run.histogram);
        self.bytes += run.bytes;
    }

    fn result(&self) -> Option<KindResult> {
        let latency_ns = self.latencies.latency();
        (latency_ns.count > 0).then_some(KindResult { ops: latency_ns.count, bytes: self.bytes, latency_ns })
    }
}

/// What one job did in all visits.
#[derive(Default)]
pub(crate) struct JobTotals {
    reads: KindTotals,
    writes: KindTotals,
    flushes: KindTotals,
    lag: LatencyTotals,
    unsent: u64,
    elapsed_ns: u64,
}

impl JobTotals {
    fn add(&mut self, round: u32, run: &JobRun) {
        self.reads.add(round, &run.reads);
        self.writes.add(round, &run.writes);
        self.flushes.add(round, &run.flushes);
        self.lag.add(round, &run.lag);
        self.unsent += run.unsent;
        self.elapsed_ns += run.elapsed_ns;
    }

    fn result(&self, job: &LoadJob) -> JobResult {
        let sent = self.lag.histogram.count();
        let rate = job.rate.map(|_| RateResult {
            due: sent + self.unsent,
            unsent: self.unsent,
            lag_ns: self.lag.latency(),
        });
        JobResult {
            name: job.name.clone(),
            elapsed_ns: self.elapsed_ns,
            reads: self.reads.result(),
            writes: self.writes.result(),
            flushes: self.flushes.result(),
            rate,
        }
    }
}

/// Adds the jobs of a visit.
pub(crate) fn add_jobs(totals: &mut Vec<JobTotals>, round: u32, runs: &[JobRun]) {
    if totals.len() < runs.len() {
        totals.resize_with(runs.len(), JobTotals::default);
    }
    totals.iter_mut().zip(runs).for_each(|(totals, run)| totals.add(round, run));
}

/// The results of all jobs.
pub(crate) fn job_results(totals: &[JobTotals], jobs: &[LoadJob]) -> Vec<JobResult> {
    totals.iter().zip(jobs).map(|(totals, job)| totals.result(job)).collect()
}
