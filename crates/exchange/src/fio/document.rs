//! fio's document as data, under fio's own names. Keys that no figure follows from are left out. A figure that is null, negative
//! or no number is not known: fio prints -1 and numbers that are none where it has none.

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The key that every document of fio has.
pub(crate) const VERSION: &str = "fio version";

/// The options of a job as fio repeats them: texts, sometimes empty.
pub(super) type OptionTexts = BTreeMap<String, Value>;

#[derive(Debug, serde::Deserialize)]
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
    /// Only of `fio --client`: the jobs of all hosts, and behind them their sum.
    #[serde(default)]
    pub(super) client_stats: Vec<Job>,
    #[serde(default)]
    pub(super) disk_util: Vec<DiskUtil>,
}

#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct Job {
    pub(super) jobname: String,
    /// Jobs of one group ran side by side.
    #[serde(default)]
    pub(super) groupid: u32,
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
    /// fsync and the like.
    pub(super) sync: Option<Syncs>,
    /// Percent of the time of one processor; of a group the mean of its jobs.
    #[serde(default, deserialize_with = "figure")]
    pub(super) usr_cpu: Option<f64>,
    #[serde(default, deserialize_with = "figure")]
    pub(super) sys_cpu: Option<f64>,
    /// Only of `fio --client`, and not before 3.3.
    pub(super) hostname: Option<String>,
    pub(super) port: Option<u32>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Direction {
    pub(super) io_bytes: u64,
    pub(super) total_ios: u64,
    pub(super) short_ios: u64,
    pub(super) drop_ios: u64,
    /// Milliseconds.
    pub(super) runtime: u64,
    /// fio's own rates, in KiB/s and I/Os per second.
    #[serde(deserialize_with = "figure")]
    pub(super) bw: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) iops: Option<f64>,
    pub(super) clat_ns: Latencies,
    pub(super) lat_ns: Latencies,
    /// KiB/s, as the three below.
    #[serde(deserialize_with = "figure")]
    pub(super) bw_mean: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) bw_dev: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) bw_min: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) bw_max: Option<f64>,
    #[serde(deserialize_with = "whole")]
    pub(super) bw_samples: Option<u64>,
    #[serde(deserialize_with = "figure")]
    pub(super) iops_mean: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) iops_stddev: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) iops_min: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub(super) iops_max: Option<f64>,
    #[serde(deserialize_with = "whole")]
    pub(super) iops_samples: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(super) struct Latencies {
    #[serde(deserialize_with = "whole")]
    pub(super) min: Option<u64>,
    #[serde(deserialize_with = "whole")]
    pub(super) max: Option<u64>,
    #[serde(deserialize_with = "figure")]
    pub(super) mean: Option<f64>,
    /// Older versions of fio do not say.
    #[serde(rename = "N", deserialize_with = "whole")]
    pub(super) count: Option<u64>,
    /// Percent with decimals, as a text, and nanoseconds.
    #[serde(deserialize_with = "wholes")]
    pub(super) percentile: BTreeMap<String, u64>,
    /// The middle of each bucket in nanoseconds, as a text, and its count; of `json+` only.
    #[serde(deserialize_with = "wholes")]
    pub(super) bins: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Syncs {
    /// 0 in 3.33, however many there were (2026-11).
    pub(super) total_ios: u64,
    pub(super) lat_ns: Latencies,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct DiskUtil {
    pub(super) name: String,
    pub(super) read_ios: u64,
    pub(super) write_ios: u64,
    /// Percent of the time.
    #[serde(deserialize_with = "figure")]
    pub(super) util: Option<f64>,
}

/// A number that is one.
fn figure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_f64().filter(|value| value.is_finite() && *value >= 0.0))
}

/// A number that counts or times something. From 2^63 on it is the largest number, which fio has where it has none yet.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(as_whole(&Value::deserialize(deserializer)?))
}

fn as_whole(value: &Value) -> Option<u64> {
    value.as_u64().filter(|&value| i64::try_from(value).is_ok())
}

/// The known ones of several.
fn wholes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, u64>, D::Error> {
    let values = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(values.into_iter().filter_map(|(key, value)| Some((key, as_whole(&value)?))).collect())
}
