//! fio's document as data, under fio's own names. Keys that no figure follows from are left out.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The key that every document of fio has.
pub(crate) const VERSION: &str = "fio version";

/// The options of a job as fio repeats them: texts, sometimes empty.
pub(super) type OptionTexts = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    /// When fio wrote the document, in Unix time.
    pub(super) timestamp: Option<u64>,
    pub(super) timestamp_ms: Option<u64>,
    #[serde(rename = "global options", default)]
    pub(super) global_options: OptionTexts,
    #[serde(default)]
    pub(super) jobs: Vec<Job>,
    /// Only of `fio --client`.
    pub(super) client_stats: Option<Value>,
    #[serde(default)]
    pub(super) disk_util: Vec<DiskUtil>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) jobname: String,
    /// An error number; 0 for none.
    #[serde(default)]
    pub(super) error: i32,
    /// I/Os that failed while `continue_on_error` went on.
    #[serde(default)]
    pub(super) total_err: u64,
    /// Whole seconds since fio began.
    #[serde(default)]
    pub(super) elapsed: u64,
    /// Unix time in milliseconds; older versions do not say.
    pub(super) job_start: Option<u64>,
    #[serde(rename = "job options", default)]
    pub(super) options: OptionTexts,
    pub(super) read: Option<Direction>,
    pub(super) write: Option<Direction>,
    pub(super) trim: Option<Direction>,
    /// The sum of all directions; with `unified_rw_reporting=1` it stands in their place, with `both` beside them.
    pub(super) mixed: Option<Direction>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Direction {
    pub(super) io_bytes: u64,
    pub(super) total_ios: u64,
    pub(super) short_ios: u64,
    pub(super) drop_ios: u64,
    /// Milliseconds.
    pub(super) runtime: u64,
    pub(super) clat_ns: Latencies,
    pub(super) lat_ns: Latencies,
    /// KiB/s, as the four below.
    pub(super) bw_mean: f64,
    pub(super) bw_dev: f64,
    pub(super) bw_min: f64,
    pub(super) bw_max: f64,
    pub(super) bw_samples: u64,
    pub(super) iops_mean: f64,
    pub(super) iops_stddev: f64,
    pub(super) iops_min: f64,
    pub(super) iops_max: f64,
    pub(super) iops_samples: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latencies {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    /// Older versions of fio do not say.
    #[serde(rename = "N")]
    pub(super) count: Option<u64>,
    /// Percent with decimals, as a text, and nanoseconds.
    pub(super) percentile: BTreeMap<String, u64>,
    /// The middle of each bucket in nanoseconds, as a text, and its count; of `json+` only.
    pub(super) bins: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DiskUtil {
    pub(super) name: String,
    pub(super) read_ios: u64,
    pub(super) write_ios: u64,
    /// Percent of the time.
    pub(super) util: f64,
}
