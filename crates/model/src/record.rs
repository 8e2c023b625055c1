//! The Record: what was seen, as versioned JSON (schema `rdsk.record/1`). Raw values in base units with the unit in the
//! key; what was not measured is null, never 0. It holds data and a few derived readings, and draws nothing.

use crate::evidence::{Evidence, EvidenceSource};
use crate::finding::Finding;
use crate::plan::Experiment;
use crate::problem::Problem;
use crate::target::Target;
use crate::workload::{EngineKind, Workload, words};
use rdsk_stats::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// How a whole run ended.
    Status {
        /// Every cell was visited.
        Complete = "complete",
        /// A signal ended it; the cells so far are kept.
        Interrupted = "interrupted",
        /// An error ended it, or a cell failed.
        Failed = "failed",
    }
);
words!(
    /// Why a cell ended.
    StopReason {
        /// The interval is as narrow as asked for.
        Precision = "precision",
        /// The share of the time was used up.
        Budget = "budget",
        /// The pass is complete.
        Complete = "complete",
        /// A signal.
        Interrupted = "interrupted",
        /// An I/O failed.
        Error = "error",
        /// The cell has no meaning here; `why` tells.
        NotApplicable = "not_applicable",
    }
);
words!(
    /// What a figure really measured.
    VerdictCode {
        /// The device moved the bytes.
        Device = "device",
        /// Memory did, wholly or in part.
        PageCache = "page-cache",
        /// Nobody did: the blocks were never written.
        Hole = "hole",
        /// The processor is the limit.
        CpuBound = "cpu-bound",
        /// The time went into making the data.
        SourceBound = "source-bound",
        /// A limit of the control group is the limit.
        Throttled = "throttled",
        /// Others used the device at the same time.
        Disturbed = "disturbed",
        /// No counters reach the device.
        Unverified = "unverified",
        /// The cell ended before it could tell.
        Incomplete = "incomplete",
    }
);

/// The clock that all times were taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockFacts {
    /// The kernel's clock source: `tsc`; `virtual` for a simulation.
    pub source: String,
    /// Smallest step between two different readings.
    pub resolution_ns: u64,
    /// Time that one reading takes.
    pub read_cost_ns: u64,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cpu_count: u32,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Hypervisor or container where one shows itself; `None` where none does.
    pub virtualization: Option<String>,
    /// Unit of the page cache: 4096 on most machines, the buffer of a simulated host.
    #[serde(default)]
    pub page_bytes: Option<u64>,
    /// The clock.
    pub clock: ClockFacts,
}

/// How the evidence was gathered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observer {
    /// The best source that worked.
    #[serde(alias = "rung")]
    pub source: EvidenceSource,
    /// Why no better source was used.
    pub why_not_higher: Option<String>,
    /// Events that the observer lost.
    pub lost_events: u64,
    /// What observing cost per I/O, where measured.
    pub cost_ns_per_io: Option<f64>,
}

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over the measured time.
    pub mean: f64,
    /// Lower end; `None` where there were too few samples for an interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// Half the width of the interval relative to the mean; `None` without an interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        match (self.low, self.high) {
            (Some(low), Some(high)) if self.mean > 0.0 => Some((high - low) / 2.0 / self.mean),
            _ => None,
        }
    }
}

/// Latencies of one cell. A percentile without enough samples (n < 10/(1−p)) is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the percentiles that their names say, in nanoseconds")]
pub struct Latency {
    pub count: u64,
    pub min: Option<u64>,
    pub mean: Option<f64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub p9999: Option<u64>,
    pub max: Option<u64>,
    /// base64 of HdrHistogram V2; left out by a compact record.
    pub histogram: Option<String>,
}

impl Latency {
    /// The latencies of both; `None` where one of them was recorded without its histogram.
    #[must_use]
    pub fn of_both(one: &Self, other: &Self) -> Option<Self> {
        if one.count == 0 || other.count == 0 {
            return Some(if one.count == 0 { other.clone() } else { one.clone() });
        }
        let histogram = |of: &Self| Histogram::from_base64(of.histogram.as_deref()?).ok();
        let mut sum = histogram(one)?;
        sum.merge(&histogram(other)?);
        let weighted = |of: &Self| Some(of.mean? * of.count as f64);
        // The encoded histogram has no exact end and no exact sum; the Record has them beside it.
        Some(Self {
            min: one.min.min(other.min),
            mean: weighted(one).zip(weighted(other)).map(|(a, b)| (a + b) / (one.count + other.count) as f64),
            max: one.max.max(other.max),
            ..Self::from(&sum)
        })
    }
}

impl From<&Histogram> for Latency {
    fn from(histogram: &Histogram) -> Self {
        let some = histogram.count() > 0;
        Self {
            count: histogram.count(),
            min: histogram.min(),
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            p9999: histogram.quantile(0.9999),
            max: histogram.max(),
            histogram: some.then(|| histogram.to_base64()),
        }
    }
}

/// Bytes completed per window of fixed width, visits one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Width of a window.
    pub width_ns: u64,
    /// Bytes that completed in each.
    pub bytes: Vec<u64>,
}

/// One stream of a cell. Times count from the start of the cell's first visit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub struct StreamResult {
    pub index: u32,
    pub target: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub ops: u64,
}

/// One pass over the chosen places of a workload; shorter than their list when its time was used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointRun {
    /// Which place, as a position in the workload's list, in the order of visiting.
    pub order: Vec<u32>,
    /// Latency at each, in the same order.
    pub latency_ns: Vec<u64>,
    /// Places that were asked for and failed; they are not in `order`, and `errors` of the cell names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<u32>,
    /// What the members of an array were asked for each, in the same order; empty where nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Vec<crate::MemberIo>>,
    /// The requests whose places were chosen as the run went on, before those of the list, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<crate::ChosenIo>,
}

/// The part of a visit in which all of its streams ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// One visit of a cell: the cache made ready, the I/O, the close, the flush.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub struct Visit {
    /// When its I/O began, from the start of the run over all cells; 0 in Records that do not tell.
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
}

/// What the check of the cache state found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[allow(missing_docs, reason = "the fields are what their names say")]
pub struct CpuTime {
    pub user: u64,
    pub system: u64,
}

/// A short trial of one way to issue a cell's I/O, made before its first visit and counted nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The engine.
    pub engine: EngineKind,
    /// Reads completed.
    pub ops: u64,
    /// Time that they took.
    pub elapsed_ns: u64,
    /// Processor time of the whole process meanwhile, the kernel's workers for it included.
    pub cpu_ns: u64,
    /// Reads that were complete when the call that submitted them returned; `None` where the engine cannot tell.
    #[serde(default)]
    pub within_submit: Option<u64>,
}

/// How a cell's I/O came to be issued as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuing {
    /// Why another engine than the workload's issued it; `None` where the workload's did.
    #[serde(default)]
    pub why: Option<String>,
    /// I/Os that were complete when the call that submitted them returned: the device, or a driver above it, did them one
    /// after the other within the call. `None` where the engine cannot tell; only `aio` can.
    #[serde(default)]
    pub within_submit: Option<u64>,
    /// The trials that the choice rests on; empty where none was needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// An I/O that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub message: String,
}

/// What one cell measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Why it ended.
    pub stop: StopReason,
    /// The same in words, with the figures.
    pub why: String,
    /// Time of I/O, summed over visits; preparing and settling left out.
    pub elapsed_ns: Option<u64>,
    /// Who really issued the I/O; where visits differ, the earliest of [`EngineKind`].
    pub engine: Option<EngineKind>,
    /// How that came about; `None` in Records before it was recorded, and for cells that never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuing: Option<Issuing>,
    /// Bytes asked for in I/Os that were issued.
    pub asked_bytes: Option<u64>,
    /// Bytes completed.
    pub bytes: Option<u64>,
    /// I/Os completed.
    pub ops: Option<u64>,
    /// Bandwidth.
    pub bytes_per_s: Option<Estimate>,
    /// Rate of I/Os.
    pub ops_per_s: Option<Estimate>,
    /// Latency from just before submission to completion seen.
    pub latency_ns: Option<Latency>,
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
    /// Mean number of our own I/Os in flight: the sum of latencies over the elapsed time (Little's law).
    pub in_flight_mean: Option<f64>,
    /// Time at the start that was cut off as warm-up by MSER-5, summed over visits.
    pub warmup_ns: Option<u64>,
    /// System calls that a signal interrupted and that were repeated.
    pub interrupted_calls: Option<u64>,
    /// The visits.
    pub visits: Vec<Visit>,
    /// The latencies at chosen places, one pass per visit; empty where none were chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointRun>,
}

/// What the figure measured, reconciled with the block layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The code.
    pub code: VerdictCode,
    /// Bytes that the device moved for each byte completed; `None` where no counters reach it.
    pub device_share: Option<f64>,
    /// One sentence with the counters it rests on.
    pub text: String,
}

/// One cell of a Record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Unique in the Record.
    pub id: String,
    /// The question.
    pub experiment: Experiment,
    /// What was asked.
    pub workload: Workload,
    /// What was measured.
    pub result: CellResult,
    /// What was counted beside it.
    pub evidence: Evidence,
    /// What it means; `None` for a cell that never ran.
    pub verdict: Option<Verdict>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`crate::SCHEMA`].
    pub schema: String,
    /// Sortable and unique (ULID).
    pub id: String,
    /// The user's name for the run.
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Version of rdsk.
    pub rdsk_version: String,
    /// RFC 3339.
    pub started_at: String,
    /// Wall time of the whole run.
    pub elapsed_ns: u64,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    pub error: Option<Problem>,
    /// The machine; `None` when the run failed before it was looked at.
    pub host: Option<Host>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The observer.
    pub observer: Observer,
    /// The cells.
    pub cells: Vec<CellRecord>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// What the tool has to say about the run as a whole: a fallback, a shortened pass, an orphan removed.
    pub notes: Vec<String>,
}

impl Record {
    /// A cell by its id.
    #[must_use]
    pub fn cell(&self, id: &str) -> Option<&CellRecord> {
        self.cells.iter().find(|cell| cell.id == id)
    }
}
