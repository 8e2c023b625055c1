//! What the jobs of a load did: their requests by kind, with latencies in the order of time, and how they kept up with a rate.

use crate::latency::Latency;
use serde::{Deserialize, Serialize};

/// Latencies of requests that completed within one part of the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyWindow {
    /// When it begins: time in which the load ran, the visits before included.
    pub begin_ns: u64,
    /// How long it is; the last of a visit ends with it.
    pub lasts_ns: u64,
    /// How many completed in it.
    pub ops: u64,
    /// Their median to 0.8 %; `None` with too few.
    pub p50_ns: Option<u64>,
    /// Their 99th percentile to 0.8 %; `None` with too few.
    pub p99_ns: Option<u64>,
    /// The longest of them; `None` without any.
    pub max_ns: Option<u64>,
}

/// Requests of one kind that a job completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindResult {
    /// How many.
    pub ops: u64,
    /// Their bytes; 0 for flushes.
    pub bytes: u64,
    /// Their latencies: from the arrival where the job has a rate, else from the call.
    pub latency_ns: Latency,
    /// The fewest bytes that moved in a whole second of a visit, each request's spread evenly over its time; `None` where no visit was as
    /// long, and in Records before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_bytes_per_s: Option<u64>,
    /// The latencies in the order of time, at most 16 windows of equal length in each visit.
    pub windows: Vec<LatencyWindow>,
}

/// How a job kept up with its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateResult {
    /// Requests that were due before the load ended.
    pub due: u64,
    /// Of these, the ones that were never issued, since all that may be in flight was.
    pub unsent: u64,
    /// From each arrival to the call.
    pub lag_ns: Latency,
}

/// What one job of a load did in all visits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobResult {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub name: String,
    /// Time in which its streams ran, all visits together.
    pub elapsed_ns: u64,
    /// Its reads.
    pub reads: Option<KindResult>,
    /// Its writes.
    pub writes: Option<KindResult>,
    /// Its trims, whose bytes were discarded and not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trims: Option<KindResult>,
    /// Its flushes.
    pub flushes: Option<KindResult>,
    /// `None` in a closed loop.
    pub rate: Option<RateResult>,
}

impl RateResult {
    /// Whether the job kept up: a few requests that arrived just before the end are no sign of a target that falls behind.
    pub fn is_kept(&self) -> bool {
        self.unsent <= self.due / 1000
    }
}

impl JobResult {
    /// Its kinds of request with their names: `reads`, `writes`, `trims`, `flushes`.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &KindResult)> {
        let kinds = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("trims", &self.trims),
            ("flushes", &self.flushes),
        ];
        kinds.into_iter().filter_map(|(name, kind)| Some((name, kind.as_ref()?)))
    }

    /// How many reads and writes completed.
    pub fn requests(&self) -> u64 {
        self.reads.iter().chain(&self.writes).map(|kind| kind.ops).sum()
    }

    /// Reads and writes per second; `None` where it never ran.
    #[allow(clippy::cast_precision_loss, reason = "counts and times of a run are far below 2^53")]
    pub fn requests_per_s(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.requests() as f64 / (self.elapsed_ns as f64 / 1e9))
    }
}
