//! Latencies of a stream, and what it completed in the warm-up, apart.

use crate::job_run::JobRun;
use rdsk_stats::Histogram;

/// Latencies in a histogram, and their exact sum.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) histogram: Histogram,
    pub(crate) sum_ns: u64,
}

impl Latencies {
    /// Those of the reads and writes of a job.
    pub(crate) fn of(run: &JobRun) -> Self {
        let mut histogram = run.reads.histogram.clone();
        histogram.merge(&run.writes.histogram);
        Self { histogram, sum_ns: run.reads.latency_sum_ns + run.writes.latency_sum_ns }
    }

    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.histogram.record(latency_ns);
        self.sum_ns += latency_ns;
    }
}

/// What a stream completed in the warm-up.
#[derive(Debug, Default)]
pub(crate) struct Early {
    pub(crate) latencies: Latencies,
    pub(crate) bytes: u64,
    pub(crate) ops: u64,
}
