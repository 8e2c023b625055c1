//! One test of several ranks as one: counters are added, histograms merged by addition. What cannot be added is left out: rates over
//! time, streams and windows of latencies stay in the parts of the ranks.

use rdsk_model::{
    CellRecord, CellResult, CpuTime, JobResult, KindResult, Latency, RateResult, ReadContent, StopReason,
    Visit,
};
use rdsk_stats::{Histogram, SparseHistogram};
use std::collections::BTreeMap;

/// Failed I/Os that are kept of all ranks.
const MAX_ERRORS: usize = 16;

/// Latencies of several ranks.
#[derive(Clone, Debug, Default)]
struct Pool {
    histogram: Histogram,
    rounds: BTreeMap<u32, SparseHistogram>,
    /// The ends and the sum, which an encoded histogram has no more.
    min: Option<u64>,
    max: Option<u64>,
    sum_ns: f64,
    /// Whether a part came without its histogram.
    lacks_some: bool,
}

impl Pool {
    fn add(&mut self, more: &Latency) {
        if more.count == 0 {
            return;
        }
        let decoded = |text: &str| Histogram::from_base64(text).ok();
        match more.histogram.as_deref().and_then(decoded) {
            Some(histogram) => self.histogram.merge(&histogram),
            None => self.lacks_some = true,
        }
        for round in &more.rounds {
            if let Some(histogram) = decoded(&round.histogram) {
                self.rounds.entry(round.round).or_default().merge(&histogram);
            }
        }
        self.min = [self.min, more.min].into_iter().flatten().min();
        self.max = self.max.max(more.max);
        self.sum_ns += more.mean.unwrap_or(0.0) * more.count as f64;
    }

    /// `None` where a part came without its histogram, or there is nothing.
    fn latency(&self) -> Option<Latency> {
        let count = self.histogram.count();
        (count > 0 && !self.lacks_some).then(|| {
            let pooled = Latency::from(&self.histogram).with_rounds(&self.rounds);
            Latency { min: self.min, max: self.max, mean: Some(self.sum_ns / count as f64), ..pooled }
        })
    }
}

/// Requests of one kind of a job.
#[derive(Clone, Debug, Default)]
struct KindPool {
    ops: u64,
    bytes: u64,
    latencies: Pool,
}

impl KindPool {
    fn add(&mut self, more: Option<&KindResult>) {
        let Some(more) = more else { return };
        self.ops += more.ops;
        self.bytes += more.bytes;
        self.latencies.add(&more.latency_ns);
    }

    fn result(&self) -> Option<KindResult> {
        let latency_ns = self.latencies.latency()?;
        // The ranks' worst seconds need not be the same ones.
        let (least_bytes_per_s, windows) = (None, Vec::new());
        Some(KindResult { ops: self.ops, bytes: self.bytes, latency_ns, least_bytes_per_s, windows })
    }
}

/// One job.
#[derive(Clone, Debug, Default)]
struct JobPool {
    name: String,
    elapsed_ns: u64,
    kinds: [KindPool; 4],
    due: Option<(u64, u64)>,
    lag: Pool,
}

impl JobPool {
    fn add(&mut self, more: &JobResult) {
        self.name.clone_from(&more.name);
        self.elapsed_ns = self.elapsed_ns.max(more.elapsed_ns);
        let kinds = [&more.reads, &more.writes, &more.trims, &more.flushes];
        self.kinds.iter_mut().zip(kinds).for_each(|(pool, kind)| pool.add(kind.as_ref()));
        if let Some(rate) = &more.rate {
            let (due, unsent) = self.due.unwrap_or_default();
            self.due = Some((due + rate.due, unsent + rate.unsent));
            self.lag.add(&rate.lag_ns);
        }
    }

    fn result(&self) -> JobResult {
        let [reads, writes, trims, flushes] = &self.kinds;
        let none = || Latency::from(&Histogram::new());
        let rate = self.due.map(|(due, unsent)| RateResult {
            due,
            unsent,
            lag_ns: self.lag.latency().unwrap_or_else(none),
        });
        JobResult {
            name: self.name.clone(),
            elapsed_ns: self.elapsed_ns,
            reads: reads.result(),
            writes: writes.result(),
            trims: trims.result(),
            flushes: flushes.result(),
            rate,
        }
    }
}

/// One test of the ranks so far.
#[derive(Clone, Debug)]
pub(crate) struct CellPool {
    /// That of the first rank, with the sums.
    pub(crate) cell: CellRecord,
    latencies: Pool,
    syncs: Pool,
    jobs: Vec<JobPool>,
}

impl CellPool {
    /// That of the first rank.
    pub(crate) fn new(first: &CellRecord) -> Self {
        let mut cell = first.clone();
        let result = &mut cell.result;
        (result.latency_ns, result.sync_latency_ns) = (None, None);
        (result.windows, result.stalls, result.samples) = (None, None, None);
        (result.bytes_per_s, result.ops_per_s) = (None, None);
        (result.streams, result.points, result.after_idle) = (Vec::new(), Vec::new(), Vec::new());
        for visit in &mut result.visits {
            (visit.streams, visit.overlap, visit.first) = (Vec::new(), None, None);
        }
        let mut pool = Self { cell, latencies: Pool::default(), syncs: Pool::default(), jobs: Vec::new() };
        pool.add_samples(&first.result);
        pool
    }

    /// Whether no rank of it issued anything, because all waited while others did.
    pub(crate) fn has_waited(&self) -> bool {
        has_waited(&self.cell)
    }

    /// Adds that of another rank; the evidence is added apart, once for each host.
    pub(crate) fn add(&mut self, more: &CellRecord) {
        if has_waited(more) {
            return;
        }
        if self.has_waited() {
            let evidence = std::mem::take(&mut self.cell.evidence);
            *self = Self::new(more);
            self.cell.evidence = evidence;
            return;
        }
        add_counters(&mut self.cell.result, &more.result);
        self.cell.workload.streams += more.workload.streams;
        self.add_samples(&more.result);
    }

    fn add_samples(&mut self, more: &CellResult) {
        more.latency_ns.iter().for_each(|latency| self.latencies.add(latency));
        more.sync_latency_ns.iter().for_each(|latency| self.syncs.add(latency));
        if self.jobs.len() < more.jobs.len() {
            self.jobs.resize_with(more.jobs.len(), JobPool::default);
        }
        self.jobs.iter_mut().zip(&more.jobs).for_each(|(pool, job)| pool.add(job));
    }

    /// The sums with their latencies.
    pub(crate) fn result(mut self) -> CellRecord {
        let result = &mut self.cell.result;
        result.latency_ns = self.latencies.latency();
        result.sync_latency_ns = self.syncs.latency();
        result.jobs = self.jobs.iter().map(JobPool::result).collect();
        self.cell
    }
}

/// Whether a rank waited while others had this test.
fn has_waited(cell: &CellRecord) -> bool {
    cell.workload.at_once.is_some() && cell.result.stop == StopReason::NotApplicable
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left?.saturating_add(right?))
}

/// The later of two ends: ranks run at the same time.
fn longer(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left?.max(right?))
}

fn add_counters(sums: &mut CellResult, more: &CellResult) {
    sums.elapsed_ns = longer(sums.elapsed_ns, more.elapsed_ns);
    sums.asked_bytes = sum(sums.asked_bytes, more.asked_bytes);
    sums.pass_bytes = sum(sums.pass_bytes, more.pass_bytes);
    sums.bytes = sum(sums.bytes, more.bytes);
    sums.ops = sum(sums.ops, more.ops);
    sums.to_return_ns = longer(sums.to_return_ns, more.to_return_ns);
    sums.to_close_ns = longer(sums.to_close_ns, more.to_close_ns);
    sums.to_stable_ns = longer(sums.to_stable_ns, more.to_stable_ns);
    sums.warmup_ns = longer(sums.warmup_ns, more.warmup_ns);
    sums.warmup_bytes = sum(sums.warmup_bytes, more.warmup_bytes);
    sums.warmup_ops = sum(sums.warmup_ops, more.warmup_ops);
    sums.interrupted_calls = sum(sums.interrupted_calls, more.interrupted_calls);
    sums.in_flight_mean = sums.in_flight_mean.zip(more.in_flight_mean).map(|(left, right)| left + right);
    sums.cpu_ns = sums
        .cpu_ns
        .zip(more.cpu_ns)
        .map(|(left, right)| CpuTime { user: left.user + right.user, system: left.system + right.system });
    sums.content = [sums.content, more.content].into_iter().flatten().reduce(ReadContent::plus);
    let room = MAX_ERRORS.saturating_sub(sums.errors.len());
    sums.errors.extend(more.errors.iter().take(room).cloned());
    if !more.errors.is_empty() || more.stop == StopReason::Interrupted {
        (sums.stop, sums.why) = (more.stop, more.why.clone());
    }
    sums.visits.truncate(more.visits.len());
    sums.visits.iter_mut().zip(&more.visits).for_each(|(sum, visit)| add_visit(sum, visit));
}

fn add_visit(sums: &mut Visit, more: &Visit) {
    sums.elapsed_ns = sums.elapsed_ns.max(more.elapsed_ns);
    sums.bytes += more.bytes;
    sums.ops += more.ops;
    sums.to_return_ns = longer(sums.to_return_ns, more.to_return_ns);
    sums.to_close_ns = longer(sums.to_close_ns, more.to_close_ns);
    sums.to_stable_ns = longer(sums.to_stable_ns, more.to_stable_ns);
}
