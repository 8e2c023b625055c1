//! What the streams of a load counted in a visit, job by job. It issues nothing.

use crate::byte_seconds::ByteSeconds;
use crate::latency_series::{LatencySeries, WindowRun};
use rdsk_model::Op;
use rdsk_stats::Histogram;

/// Requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct KindRun {
    /// Their latencies: from the arrival where the job has a rate, else from the call.
    pub histogram: Histogram,
    /// The sum of these.
    pub latency_sum_ns: u64,
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
        self.bytes += bytes;
    }

    fn add(&mut self, more: &Self) {
        self.histogram.merge(&more.histogram);
        self.latency_sum_ns += more.latency_sum_ns;
        self.bytes += more.bytes;
        self.series.add(&more.series);
        self.seconds.merge(&more.seconds);
    }

    /// The fewest bytes that moved in a whole second of a job that ran so long, each request's spread evenly over its time; `None` in
    /// less than a second.
    pub fn least_bytes_per_s(&self, ran_ns: u64) -> Option<u64> {
        self.seconds.least(ran_ns)
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
    /// From the first start of a stream to the last end.
    pub elapsed_ns: u64,
}

impl JobRun {
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
    }
}
