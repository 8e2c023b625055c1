//! A need: what a program asks of its storage, as its makers published it, and the workload that shows whether a target gives it. Pure
//! data; `analysis` judges it.

use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// Which requests of a job a threshold is about.
    Subject {
        /// Its reads.
        Reads = "reads",
        /// Its writes.
        Writes = "writes",
        /// Its fsync and fdatasync calls.
        Flushes = "flushes",
        /// Its reads and writes together.
        Requests = "requests",
    }
);
words!(
    /// What is compared with a threshold.
    Statistic {
        /// The mean of the latencies, in ns.
        Mean = "mean",
        /// The median latency, in ns.
        P50 = "p50",
        /// The latency that 99% do not exceed, in ns.
        P99 = "p99",
        /// The latency that 99.9% do not exceed, in ns.
        P999 = "p99.9",
        /// The longest latency, in ns.
        Max = "max",
        /// Requests per second.
        OpsPerS = "ops/s",
        /// Bytes per second.
        BytesPerS = "bytes/s",
        /// Bytes per second in the worst second, or in the worst tenth of the time where no repeat took a second.
        LowestBytesPerS = "lowest-bytes/s",
        /// The share of the latencies above [`Threshold::over_ns`], between 0 and 1.
        ShareOver = "share-over",
        /// The sum of the latencies above [`Threshold::over_ns`], in ns.
        TimeOver = "time-over",
        /// The size of the device, in bytes.
        Size = "size",
    }
);
words!(
    /// Who published a need.
    Strength {
        /// A requirement, or the project's own test.
        Official = "official",
        /// Guidance of a vendor.
        Vendor = "vendor",
        /// Users.
        Community = "community",
        /// Arithmetic.
        Derived = "derived",
        /// The file of the user.
        Own = "own",
    }
);

/// One threshold of a need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// The job that it is about.
    pub job: String,
    /// Its requests.
    pub of: Subject,
    /// What of them is compared.
    pub statistic: Statistic,
    /// The most that it may be; `None` where it has to be at least something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The least that it has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The latency in ns that [`Statistic::ShareOver`] and [`Statistic::TimeOver`] count above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ns: Option<u64>,
    /// It holds in every period of this length in ns: the worst one counts. `None` where it is about the whole time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_ns: Option<u64>,
    /// A figure between `at_most` and this one is neither good nor bad, as sources disagree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputed_until: Option<f64>,
    /// Why a figure on the bad side is not bad, as a sentence without its end; empty where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub only_passes: String,
    /// Whether it is about no device that rotates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exempts_rotational: bool,
    /// Bytes that have to be written before its rate counts as lasting, where that is more than all of the need asks for.
    #[serde(default, skip_serializing_if = "is_zero_bytes")]
    pub outlasts_bytes: u64,
}

impl Threshold {
    /// One without a mark yet.
    pub fn new(job: &str, of: Subject, statistic: Statistic) -> Self {
        Self {
            job: job.to_owned(),
            of,
            statistic,
            at_most: None,
            at_least: None,
            over_ns: None,
            each_ns: None,
            disputed_until: None,
            only_passes: String::new(),
            exempts_rotational: false,
            outlasts_bytes: 0,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero_bytes(bytes: &u64) -> bool {
    *bytes == 0
}

/// A need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Need {
    /// Its name on the command line.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub name: String,
    /// What needs it, in a few words.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// By whom.
    pub strength: Strength,
    /// Whether only the threshold was published, and the job is rdsk's choice.
    pub job_is_ours: bool,
    /// What a naive test gets wrong.
    pub remark: String,
    /// The shortest run that can meet it, in ns: a shorter one can only fail it. 0 where any length can.
    pub lasts_ns: u64,
    /// Bytes that have to be written before a rate counts as lasting; 0 where a burst counts.
    pub outlasts_bytes: u64,
    /// Why a figure on the good side of every threshold is not enough, as a sentence without its end; empty where it is.
    pub only_fails: String,
    /// All of them have to be met.
    pub thresholds: Vec<Threshold>,
}
