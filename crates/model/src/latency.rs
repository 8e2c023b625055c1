//! Figures with their uncertainty: a mean with its interval, and the percentiles of latencies with their histogram. It
//! computes nothing but what follows from histograms.

use rdsk_stats::{Histogram, SparseHistogram, quantile_range};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The mean over the measured time.
    pub mean: f64,
    /// Lower end; `None` where there were too few samples for an interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// The margin of error relative to the mean, as ± says it: how far the farther end of the interval is, which is half the
    /// width where both are equally far; `None` without an interval.
    pub fn margin(&self) -> Option<f64> {
        match (self.low, self.high) {
            (Some(low), Some(high)) if self.mean > 0.0 => {
                Some((high - self.mean).max(self.mean - low) / self.mean)
            }
            _ => None,
        }
    }

    /// The estimate of a mean whose interval reaches as far to both sides, but not below 0; `None` where that is not known.
    pub fn around(mean: f64, half_width: Option<f64>) -> Self {
        let low = half_width.map(|half| (mean - half).max(0.0));
        Self { mean, low, high: half_width.map(|half| mean + half) }
    }

    /// That of the figure over so much: of I/Os per second over the bytes of each.
    pub fn over(self, divisor: f64) -> Self {
        let end = |end: Option<f64>| end.map(|end| end / divisor);
        Self { mean: self.mean / divisor, low: end(self.low), high: end(self.high) }
    }
}

/// Latencies of one cell. A percentile without enough samples (n < 10/(1−p)) is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How sure the percentiles are; `None` in Records before it was recorded, and where the latencies of fewer than two
    /// rounds are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<PercentileRanges>,
    /// What the ranges follow from; left out by a compact record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<RoundLatency>,
}

/// The 95 % range of each percentile that is given: see [`rdsk_stats::quantile_range`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are those of `Latency`")]
pub struct PercentileRanges {
    pub p50: Option<PercentileRange>,
    pub p90: Option<PercentileRange>,
    pub p99: Option<PercentileRange>,
    pub p999: Option<PercentileRange>,
    pub p9999: Option<PercentileRange>,
}

/// A 95 % range in nanoseconds. An end is `None` where so few and so different I/Os show none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PercentileRange {
    /// The lower end.
    pub low: Option<u64>,
    /// The upper end.
    pub high: Option<u64>,
}

/// The latencies of the visits of one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundLatency {
    /// Its number, as in the visits.
    pub round: u32,
    /// base64 of HdrHistogram V2.
    pub histogram: String,
}

impl Latency {
    /// These latencies with the ranges of their percentiles, from those of each round.
    #[must_use]
    pub fn with_rounds(self, rounds: &BTreeMap<u32, SparseHistogram>) -> Self {
        let histograms: Vec<SparseHistogram> = rounds.values().cloned().collect();
        let range = |p: f64| {
            let rdsk_stats::QuantileRange { low, high } = quantile_range(p, &histograms)?;
            Some(PercentileRange { low, high })
        };
        let ranges = PercentileRanges {
            p50: range(0.5),
            p90: range(0.9),
            p99: range(0.99),
            p999: range(0.999),
            p9999: range(0.9999),
        };
        let of_round = |(&round, histogram): (&u32, &SparseHistogram)| RoundLatency {
            round,
            histogram: histogram.to_base64(),
        };
        Self {
            ranges: Some(ranges).filter(|ranges| *ranges != PercentileRanges::default()),
            rounds: rounds.iter().map(of_round).collect(),
            ..self
        }
    }

    /// The latencies of both; `None` where one of them was recorded without its histogram.
    pub fn of_both(left: &Self, right: &Self) -> Option<Self> {
        if left.count == 0 || right.count == 0 {
            return Some(if left.count == 0 { right.clone() } else { left.clone() });
        }
        let histogram = |side: &Self| Histogram::from_base64(side.histogram.as_deref()?).ok();
        let mut sum = histogram(left)?;
        sum.merge(&histogram(right)?);
        let weighted = |side: &Self| Some(side.mean? * side.count as f64);
        // The encoded histogram has no exact end and no exact sum; the Record has them beside it.
        Some(Self {
            min: left.min.min(right.min),
            mean: weighted(left)
                .zip(weighted(right))
                .map(|(a, b)| (a + b) / (left.count + right.count) as f64),
            max: left.max.max(right.max),
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
            ranges: None,
            rounds: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_of(values_ns: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values_ns.into_iter().for_each(|ns| histogram.record(ns));
        histogram
    }

    fn latency_of(rounds: &[Histogram]) -> Latency {
        let mut all = Histogram::new();
        rounds.iter().for_each(|round| all.merge(round));
        let sparse = (0..).zip(rounds.iter().map(SparseHistogram::from)).collect();
        Latency::from(&all).with_rounds(&sparse)
    }

    #[test]
    fn a_margin_holds_both_ends() {
        let margin = |mean: f64, low: Option<f64>, high: Option<f64>| Estimate { mean, low, high }.margin();
        // Stalls may have taken more or less than was seen, what was read ahead only makes a rate higher.
        for (mean, low, high, told) in
            [(100.0, 90.0, 110.0, 0.1), (100.0, 82.0, 102.0, 0.18), (100.0, 99.0, 140.0, 0.4)]
        {
            let margin = margin(mean, Some(low), Some(high)).unwrap();
            assert!((margin - told).abs() < 1e-9, "{mean}, {low} to {high}: {margin}");
        }
        assert_eq!(margin(100.0, None, Some(110.0)), None);
        assert_eq!(margin(0.0, Some(0.0), Some(1.0)), None);
    }

    #[test]
    fn every_percentile_that_is_given_has_its_range() {
        let rounds: Vec<Histogram> = (0..6).map(|_| round_of(1_000_000..1_000_200)).collect();
        let latency = latency_of(&rounds);
        let ranges = latency.ranges.unwrap();
        assert!(ranges.p50.is_some() && ranges.p90.is_some() && ranges.p99.is_some());
        assert!(latency.p999.is_none() && ranges.p999.is_none() && ranges.p9999.is_none());
        let PercentileRange { low, high } = ranges.p50.unwrap();
        assert!(low <= latency.p50 && latency.p50 <= high, "{ranges:?}");
        let numbers: Vec<u32> = latency.rounds.iter().map(|round| round.round).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(latency.rounds[0].histogram, rounds[0].to_base64());
        assert_eq!(latency_of(&rounds[..1]).ranges, None, "one round says nothing of others");
    }
}
