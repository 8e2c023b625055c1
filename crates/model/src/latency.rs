//! Figures with their uncertainty: a mean with its interval, and the percentiles of latencies with their histogram. It
//! computes nothing but what follows from a histogram.

use rdsk_stats::Histogram;
use serde::{Deserialize, Serialize};

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
