//! What one cell measured: its sums, and its visits, streams, windows and chosen positions. It holds data and draws nothing.

use crate::job_result::JobResult;
use crate::latency::{Estimate, Latency};
use crate::stalled::Stalls;
use crate::workload_words::{EngineKind, words};
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// Why a cell ended.
    StopReason {
        /// The interval is as narrow as requested.
        Precision = "precision",
        /// The share of the time was used up.
        Budget = "budget",
        /// The pass is complete.
        Complete = "complete",
        /// A signal.
        Interrupted = "interrupted",
        /// An I/O failed.
        Error = "error",
        /// The cell has no meaning here; `why` says why.
        NotApplicable = "not_applicable",
    }
);
impl Default for StopReason {
    /// That of a result without figures.
    fn default() -> Self {
        Self::NotApplicable
    }
}

/// Bytes completed per window of fixed width, visits one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Windows {
    /// Width of a window.
    pub width_ns: u64,
    /// Bytes that completed in each.
    pub bytes: Vec<u64>,
}

/// One stream of a visit or, summed, of a cell. Times of a visit count from its start; those of a cell are times of its I/O, all visits
/// one after the other, and have the gaps between visits that ended for this stream and not for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub struct StreamResult {
    pub index: u32,
    pub target: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub ops: u64,
    /// In the sum of a cell: the time from start to end of each visit, together; what rates are bytes over. `None` in a visit, where it
    /// is the end less the start, and in older Records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ns: Option<u64>,
}

/// One pass over the chosen positions of a workload; shorter than their list if its time was used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointRun {
    /// Index in the workload's list of positions, in the order of visiting.
    pub order: Vec<u32>,
    /// Latency at each, in the same order.
    pub latency_ns: Vec<u64>,
    /// Positions that failed; they are not in `order`, and `errors` of the cell names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<u32>,
}

/// The part of a visit in which all of its streams ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overlap {
    /// When the last stream began, from the start of the visit.
    pub start_ns: u64,
    /// When the first stream ended.
    pub end_ns: u64,
    /// Bytes of all streams in the whole windows between the two.
    pub bytes: u64,
    /// Time of these windows; 0 where none lies between the two.
    pub covered_ns: u64,
}

/// Single I/Os of a cell that were made after the run, each after a rest without any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterIdle {
    /// The time without I/O before each.
    pub rest_ns: u64,
    /// The latency of each.
    pub latency_ns: Vec<u64>,
}

/// The I/Os of a visit that were the first of the run at some place of their target. Places are of one size, and begin at multiples of
/// it. A write is the first if nothing was written at its place, a read if nothing was read or written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstAccess {
    /// Bytes of a place.
    pub place_bytes: u64,
    /// Places that these I/Os reached first.
    pub places: u64,
    /// How many I/Os.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latencies, summed.
    pub latency_ns: u64,
    /// The median of these latencies.
    pub p50_ns: u64,
    /// The median of the latencies of the visit's other I/Os; `None` if it had no others.
    pub later_p50_ns: Option<u64>,
}

/// One visit of a cell: the cache prepared, the I/O, the close, the flush.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub struct Visit {
    /// The round in which the cell had this visit, from 0. Visits of one round follow each other closely, so they are one
    /// sample of the disk's state.
    #[serde(default)]
    pub round: u32,
    /// How many runs before this one it was made: 0 in this run, 1 in the run that this one goes on with, and so on. The rounds and the
    /// times of two sittings have nothing in common.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sitting: u32,
    /// When its I/O began, from the start of the run over all cells; 0 in Records that do not say.
    #[serde(default)]
    pub start_ns: u64,
    pub elapsed_ns: u64,
    pub bytes: u64,
    pub ops: u64,
    pub to_return_ns: Option<u64>,
    pub to_close_ns: Option<u64>,
    pub to_stable_ns: Option<u64>,
    /// Whether the wanted cache state was reached, and how it was checked.
    pub cache: Option<ColdCheck>,
    /// The streams of this visit, times from its own start; empty for a single one.
    #[serde(default)]
    pub streams: Vec<StreamResult>,
    /// The part in which all streams ran; `None` for a single one.
    #[serde(default)]
    pub overlap: Option<Overlap>,
    /// Its first accesses; `None` where it had none, as of a file that this run has written, and where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstAccess>,
    /// When rdsk itself did not run. The times of the visit, its windows and its latencies leave that out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<OwnGap>,
}

/// A time in which rdsk did not run: it was stopped, its control group was frozen, or the machine was suspended or paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnGap {
    /// Where it lies, from the start of the visit; gaps take no time there.
    pub at_ns: u64,
    /// How long it was, to 50 ms, until rdsk went on.
    pub lasts_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(sitting: &u32) -> bool {
    *sitting == 0
}

/// What the check of the cache state found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColdCheck {
    /// Bytes of the span that were cached when the visit began.
    pub cached_bytes: Option<u64>,
    /// I/Os whose own range was looked at just before.
    pub ranges_checked: u64,
    /// Of those, how many were not in the wanted state.
    pub ranges_wrong: u64,
}

/// Processor time of the whole process, `io_uring` workers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub struct CpuTime {
    pub user: u64,
    pub system: u64,
}

/// A short trial of one way to issue a cell's I/O, made before its first visit and counted nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// The engine.
    pub engine: EngineKind,
    /// I/Os completed: reads, or writes where the cell writes.
    pub ops: u64,
    /// Time that they took.
    pub elapsed_ns: u64,
    /// Processor time of the whole process meanwhile, the kernel's workers for it included.
    pub cpu_ns: u64,
    /// Those that were complete when the call that submitted them returned; `None` where the engine cannot say.
    #[serde(default)]
    pub within_submit: Option<u64>,
}

/// How a cell's I/O came to be issued as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Issuing {
    /// Why another engine than the workload's issued it; `None` where the workload's did.
    #[serde(default)]
    pub why: Option<String>,
    /// I/Os that were complete when the call that submitted them returned: the device, or a driver above it, did them one
    /// after the other within the call. `None` where the engine cannot say; only `aio` can.
    #[serde(default)]
    pub within_submit: Option<u64>,
    /// The trials that the choice rests on; empty where none was needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// An I/O that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoError {
    /// Index of the target.
    pub target: u32,
    /// Number of the stream; `None` for what belongs to none, such as the flush at the end.
    #[serde(default)]
    pub stream: Option<u32>,
    /// Where.
    pub offset_bytes: u64,
    /// The system's number; 0 for a transfer that was shorter than asked.
    pub errno: i32,
    /// In words.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub message: String,
}

/// What another program says of the rates of successive parts of a run: each of `count` samples is the rate over one part. Their
/// order is not known, so no interval follows that allows for neighbours being alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateSamples {
    /// How many.
    pub count: u64,
    /// Their mean, which need not be the rate over the whole time.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many jobs ran of which each sample is that of a single one, so that the rate of all is that many times the mean;
    /// 1 where each sample is of everything.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub jobs: u32,
}

const fn single() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_single(jobs: &u32) -> bool {
    *jobs == 1
}

/// The samples of a cell, where another program measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Of the bandwidth, in bytes per second.
    pub bytes_per_s: Option<RateSamples>,
    /// Of the rate of I/Os, per second.
    pub ops_per_s: Option<RateSamples>,
}

/// What reads returned, summed over visits: data, or nothing but zeros, which many devices return for what was never written without
/// looking at their medium. It is looked at in the buffers when the streams of a visit end; of a pass from start to end, whose last
/// buffers hold the end of the span alone, on the device after the visit, in a few places of the span; of copies, what that run's look saw in which most held data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadContent {
    /// Pages of 4 KiB, or blocks that are shorter, that were looked at.
    pub pages: u64,
    /// Of these, those in which every byte was zero.
    pub zero_pages: u64,
}

impl ReadContent {
    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self { pages: self.pages + more.pages, zero_pages: self.zero_pages + more.zero_pages }
    }
}

/// What one cell measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellResult {
    /// Why it ended.
    pub stop: StopReason,
    /// The same in words, with the figures.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub why: String,
    /// Time of I/O, summed over visits; preparing and settling left out.
    pub elapsed_ns: Option<u64>,
    /// Who really issued the I/O; where visits differ, the earliest of [`EngineKind`].
    pub engine: Option<EngineKind>,
    /// How that came about; `None` in Records before it was recorded, and for cells that never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuing: Option<Issuing>,
    /// Bytes requested in I/Os that were issued.
    pub asked_bytes: Option<u64>,
    /// Bytes of a whole pass, of cells that transfer passes; a visit with fewer was cut short. `None` for other cells, and in
    /// Records before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_bytes: Option<u64>,
    /// Bytes completed.
    pub bytes: Option<u64>,
    /// I/Os completed.
    pub ops: Option<u64>,
    /// Bandwidth.
    pub bytes_per_s: Option<Estimate>,
    /// Rate of I/Os.
    pub ops_per_s: Option<Estimate>,
    /// What another program that measured says of its samples; `None` where rdsk did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Latency from just before submission to completion seen.
    pub latency_ns: Option<Latency>,
    /// Latency of the calls that made data durable beside the I/Os (fsync, fdatasync, `sync_file_range`), which is not in
    /// `latency_ns`; `None` where there were none, or they were not timed one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_latency_ns: Option<Latency>,
    /// From the first I/O to the return of the last; summed over visits, as `bytes` is.
    pub to_return_ns: Option<u64>,
    /// From the first I/O to the return of the last close; summed over visits.
    pub to_close_ns: Option<u64>,
    /// From the first I/O until everything is on stable storage; summed over visits. `None` for reads.
    pub to_stable_ns: Option<u64>,
    /// Rate by time.
    pub windows: Option<Windows>,
    /// The streams.
    pub streams: Vec<StreamResult>,
    /// Processor time.
    pub cpu_ns: Option<CpuTime>,
    /// What failed; the first of each stream.
    pub errors: Vec<IoError>,
    /// Mean number of our own I/Os in flight: the sum of all latencies over the elapsed time (Little's law).
    pub in_flight_mean: Option<f64>,
    /// The start of the first visit that is left out of rate and latencies as warm-up: its time. `elapsed_ns`, `bytes`, `ops`,
    /// `windows`, `visits` and `in_flight_mean` are those of everything done.
    pub warmup_ns: Option<u64>,
    /// Bytes completed in that time; `None` in Records of versions that left it out of the rate only.
    #[serde(default)]
    pub warmup_bytes: Option<u64>,
    /// I/Os completed in that time, which `latency_ns` does not have.
    #[serde(default)]
    pub warmup_ops: Option<u64>,
    /// Where it or a cell of the same kind stalled; `None` where none did, and in Records before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// System calls that a signal interrupted and that were repeated.
    pub interrupted_calls: Option<u64>,
    /// What reads returned; `None` for writes, for what another program or a simulated host read, and in Records before it was
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ReadContent>,
    /// What its I/Os take after a rest; empty where that was not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_idle: Vec<AfterIdle>,
    /// The visits.
    pub visits: Vec<Visit>,
    /// The latencies at chosen places, one pass per visit; empty where none were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointRun>,
    /// What each job of a load did; empty for a plain workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
}
