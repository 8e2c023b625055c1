//! Sums up what the jobs of a load did over the visits of its cell. It holds numbers and issues nothing.

use rdsk_engine::{JobRun, KindRun, WindowRun};
use rdsk_model::{JobResult, KindResult, Latency, LatencyWindow, LoadJob, RateResult};
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
    ops: u64,
    bytes: u64,
    least_bytes_per_s: Option<u64>,
    windows: Vec<LatencyWindow>,
}

impl KindTotals {
    /// Adds a visit of a job that began after so much time of those before.
    fn add(&mut self, round: u32, job: &JobRun, run: &KindRun, begin_ns: u64) {
        self.latencies.add(round, &run.histogram);
        self.ops += run.ops;
        self.bytes += run.bytes;
        let least = job.least_bytes_per_s(run);
        self.least_bytes_per_s = self.least_bytes_per_s.into_iter().chain(least).min();
        if run.histogram.count() > 0 {
            self.windows.extend(windows(job, run, begin_ns));
        }
    }

    fn result(&self) -> Option<KindResult> {
        let latency_ns = self.latencies.latency();
        (self.ops > 0).then(|| KindResult {
            ops: self.ops,
            bytes: self.bytes,
            latency_ns,
            least_bytes_per_s: self.least_bytes_per_s.filter(|_| self.bytes > 0),
            windows: self.windows.clone(),
        })
    }
}

/// The windows of a visit, the empty ones after its last request included: in a stall nothing completes. What rdsk paused is no part
/// of them.
fn windows(job: &JobRun, run: &KindRun, begin_ns: u64) -> Vec<LatencyWindow> {
    let (width_ns, mut windows) = run.windows();
    let at_ns = |number: u64| job.without_pauses(number * width_ns).min(job.elapsed_ns);
    let mut count = windows.len() as u64;
    while at_ns(count) < job.elapsed_ns {
        count += 1;
    }
    windows.resize_with(usize::try_from(count).unwrap_or(usize::MAX), WindowRun::default);
    let window = |(number, window): (u64, &WindowRun)| LatencyWindow {
        begin_ns: begin_ns + at_ns(number),
        lasts_ns: at_ns(number + 1) - at_ns(number),
        ops: window.latencies.count(),
        p50_ns: window.latencies.quantile(0.5),
        p99_ns: window.latencies.quantile(0.99),
        max_ns: (window.max_ns > 0).then_some(window.max_ns),
    };
    let is_left_out = |window: &LatencyWindow| window.lasts_ns == 0 && window.ops == 0;
    (0..).zip(&windows).map(window).filter(|window| !is_left_out(window)).collect()
}

/// What one job did in all visits.
#[derive(Default)]
pub(crate) struct JobTotals {
    reads: KindTotals,
    writes: KindTotals,
    trims: KindTotals,
    flushes: KindTotals,
    lag: LatencyTotals,
    unsent: u64,
    elapsed_ns: u64,
}

impl JobTotals {
    fn add(&mut self, round: u32, run: &JobRun) {
        let kinds = [&mut self.reads, &mut self.writes, &mut self.trims, &mut self.flushes];
        for (totals, run_of_kind) in
            kinds.into_iter().zip([&run.reads, &run.writes, &run.trims, &run.flushes])
        {
            totals.add(round, run, run_of_kind, self.elapsed_ns);
        }
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
            trims: self.trims.result(),
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
