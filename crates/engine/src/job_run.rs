//! What the streams of a load counted in a visit, job by job. It issues nothing.

use crate::byte_seconds::ByteSeconds;
use crate::latency_series::{LatencySeries, WindowRun};
use rdsk_model::Op;
use rdsk_stats::Histogram;
use std::ops::Range;

/// Requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct KindRun {
    /// Their latencies: from the arrival where the job has a rate, else from the call.
    pub histogram: Histogram,
    /// The sum of these.
    pub latency_sum_ns: u64,
    /// How many completed, those without a latency included: this process was away while they were in flight.
    pub ops: u64,
    /// Their bytes; 0 for flushes.
    pub bytes: u64,
    series: LatencySeries,
    seconds: ByteSeconds,
}

impl KindRun {
    /// Counts one that ended at a time, from the start of the job.
    #[inline]
    pub(crate) fn count(&mut self, at_ns: u64, latency_ns: u64, bytes: u64) {
        self.histogram.record(latency_ns);
        self.series.record(at_ns, latency_ns);
        self.seconds.add(at_ns, latency_ns, bytes);
        self.latency_sum_ns += latency_ns;
        self.ops += 1;
        self.bytes += bytes;
    }

    /// Counts one that ended while this process was away, or had waited for it: its latency says nothing of the device.
    #[cold]
    pub(crate) fn count_away(&mut self, bytes: u64) {
        self.ops += 1;
        self.bytes += bytes;
    }

    fn add(&mut self, more: &Self) {
        self.histogram.merge(&more.histogram);
        self.latency_sum_ns += more.latency_sum_ns;
        self.ops += more.ops;
        self.bytes += more.bytes;
        self.series.add(&more.series);
        self.seconds.merge(&more.seconds);
    }

    /// The latencies in the order of time, by the window in which each ended; and how long a window is, in ns.
    pub fn windows(&self) -> (u64, Vec<WindowRun>) {
        self.series.clone().finished()
    }
}

/// What one job did in a visit.
#[derive(Clone, Debug, Default)]
pub struct JobRun {
    /// Its reads.
    pub reads: KindRun,
    /// Its writes.
    pub writes: KindRun,
    /// Its trims.
    pub trims: KindRun,
    /// Its flushes.
    pub flushes: KindRun,
    /// From each arrival to the call; empty in a closed loop.
    pub lag: Histogram,
    /// Arrivals that found everything in flight until the end, so that they were never issued.
    pub unsent: u64,
    /// From the first start of a stream to the last end, without what is left out.
    pub elapsed_ns: u64,
    /// When its time was over, on the engine's clock: that of a rate goes on whether or not anything arrives. 0 for those
    /// without a rate.
    pub(crate) over_ns: u64,
    /// Where its time begins, on the engine's clock; `None` before its end.
    pub(crate) from_ns: Option<u64>,
    /// What is left out since this process did not run, from its start.
    pub(crate) left_out: Vec<Range<u64>>,
}

impl JobRun {
    /// Whether its requests arrive at a rate of their own.
    pub(crate) const fn is_offered(&self) -> bool {
        self.over_ns > 0
    }

    /// A time since its start, which counts pauses of this process, without those before it.
    pub fn without_pauses(&self, at_ns: u64) -> u64 {
        let before = |pause: &Range<u64>| at_ns.clamp(pause.start, pause.end) - pause.start;
        at_ns - self.left_out.iter().map(before).sum::<u64>()
    }

    /// The fewest bytes of one kind that moved in a whole second in which this process did not pause, each request's spread evenly over
    /// its time; `None` without such a second.
    pub fn least_bytes_per_s(&self, kind: &KindRun) -> Option<u64> {
        let left_out_ns: u64 = self.left_out.iter().map(|pause| pause.end - pause.start).sum();
        kind.seconds.least(self.elapsed_ns + left_out_ns, &self.left_out)
    }

    /// Those of one direction.
    #[inline]
    pub(crate) fn kind(&mut self, op: Op) -> &mut KindRun {
        match op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
        }
    }

    /// Adds what another stream of the job did.
    pub(crate) fn add(&mut self, more: &Self) {
        self.reads.add(&more.reads);
        self.writes.add(&more.writes);
        self.trims.add(&more.trims);
        self.flushes.add(&more.flushes);
        self.lag.merge(&more.lag);
        self.unsent += more.unsent;
        self.elapsed_ns = self.elapsed_ns.max(more.elapsed_ns);
        self.over_ns = self.over_ns.max(more.over_ns);
        self.from_ns = self.from_ns.into_iter().chain(more.from_ns).min();
    }
}
