//! One figure of one cell of one run, and how unsure it is: the rate and percentiles of the latency, with what their intervals
//! rest on. It compares nothing.

use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{Measure, round_rates};
use rdsk_analysis::metrics;
use rdsk_analysis::rate_series::{RateSeries, Segment};
use rdsk_model::{CellRecord, Latency, PercentileRange};
use rdsk_stats::{TimedSample, mean, rounds_interval, stddev};

/// Fewer rounds say nothing of how a disk changes from one moment to another.
pub(crate) const MIN_ROUNDS: usize = 3;

/// What is compared of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Bytes per second; of writes that memory takes first, until everything is on stable storage.
    Rate,
    /// The median of the latency.
    P50,
    /// Its 99th percentile.
    P99,
}

impl Metric {
    /// All, in the order of a page.
    pub const ALL: [Self; 3] = [Self::Rate, Self::P50, Self::P99];

    /// Its word on the command line and in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    /// Whether a larger figure is the faster one.
    pub const fn grows_with_speed(self) -> bool {
        matches!(self, Self::Rate)
    }
}

/// A figure of one run with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Bytes per second, or nanoseconds.
    pub(crate) mean: f64,
    /// Lower end; `None` where the run shows none.
    pub(crate) low: Option<f64>,
    /// Upper end.
    pub(crate) high: Option<f64>,
}

/// What a run tells of one cell beside its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Rounds in which the cell moved something.
    pub(crate) rounds: usize,
    /// Variance of the logarithm of the rate for each doubling of the time that is looked at: see [`spread`].
    pub(crate) drift_per_octave: f64,
}

/// How a cell's rate is taken from its visits.
fn measure(cell: &CellRecord) -> Measure {
    let is_behind = cell.workload.is_written_behind() && cell.result.to_stable_ns.is_some();
    if is_behind { Measure::UntilStable } else { Measure::Together }
}

/// A figure of a cell; `None` where the run does not have it.
pub(crate) fn figure(cell: &CellRecord, metric: Metric) -> Option<Figure> {
    let latency = || cell.result.latency_ns.as_ref();
    match metric {
        Metric::Rate => rate(cell),
        Metric::P50 => percentile(latency()?, |latency| latency.p50, |ranges| ranges.p50),
        Metric::P99 => percentile(latency()?, |latency| latency.p99, |ranges| ranges.p99),
    }
}

fn rate(cell: &CellRecord) -> Option<Figure> {
    let recorded = cell.result.bytes_per_s?;
    if measure(cell) != Measure::UntilStable {
        return Some(Figure { mean: recorded.mean, low: recorded.low, high: recorded.high })
            .filter(|figure| figure.mean > 0.0);
    }
    let mean = metrics::stable_rate(cell)?;
    let half_width =
        rounds_interval(&timed_rates(cell), &[]).map(|interval| (interval.high - interval.low) / 2.0);
    Some(Figure {
        mean,
        low: half_width.map(|half| (mean - half).max(0.0)),
        high: half_width.map(|half| mean + half),
    })
}

fn percentile(
    latency: &Latency,
    value: fn(&Latency) -> Option<u64>,
    range: fn(&rdsk_model::PercentileRanges) -> Option<PercentileRange>,
) -> Option<Figure> {
    let mean = value(latency).filter(|&ns| ns > 0)? as f64;
    let found = latency.ranges.as_ref().and_then(range);
    let end = |end: Option<u64>| end.map(|ns| ns as f64);
    // The percentile and its range are read from buckets; the range never leaves the percentile out.
    Some(Figure {
        mean,
        low: found.and_then(|range| end(range.low)).map(|low| low.min(mean)),
        high: found.and_then(|range| end(range.high)).map(|high| high.max(mean)),
    })
}

fn timed_rates(cell: &CellRecord) -> Vec<TimedSample> {
    round_rates(cell, measure(cell)).into_iter().map(|(round, rate)| (f64::from(round), rate)).collect()
}

/// What the rounds of a cell tell of slow changes. Rates of rounds differ because a round is short, which its own two halves
/// show, and because the disk changes between rounds; the rest is taken to be that. Rounds that are spread over the run see
/// changes that take from one round to the whole run, log₂ of their number octaves, and each octave is given the same variance, as
/// the slow noise of machines has it (1/f; Keshner 1982), so that the changes that take longer than a run can be reckoned with.
pub(crate) fn spread(analysis: &Analysis<'_>, cell: &CellRecord) -> Spread {
    let logs: Vec<f64> = timed_rates(cell).iter().map(|(_, rate)| rate.ln()).collect();
    let rounds = logs.len();
    if rounds < 2 {
        return Spread { rounds, drift_per_octave: 0.0 };
    }
    let of_rounds = stddev(&logs).unwrap_or(0.0).powi(2);
    let of_halves = analysis.rate_series(cell).and_then(variance_within).unwrap_or(0.0);
    Spread { rounds, drift_per_octave: (of_rounds - of_halves).max(0.0) / (rounds as f64).log2() }
}

/// The variance of the logarithm of a visit's rate that changes within the visit leave: a quarter of the mean square of the
/// difference of its halves. `None` where fewer than half of the visits have two halves.
fn variance_within(series: &RateSeries) -> Option<f64> {
    let halves = |segment: &Segment| {
        let (first, second) = segment.bytes.split_at(segment.bytes.len() / 2);
        let rate = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
        let (first, second) = (rate(first), rate(second));
        (first > 0.0 && second > 0.0).then(|| (first / second).ln().powi(2) / 4.0)
    };
    let found: Vec<f64> = series.segments.iter().filter_map(halves).collect();
    if found.len() * 2 < series.segments.len() { None } else { mean(&found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record, with_rates};
    use rdsk_analysis::fixtures::kept_in_memory;
    use rdsk_model::{IoPath, Op, PercentileRanges};

    fn drift(rates: &[f64]) -> f64 {
        let record = record("2026-01-01T00:00:00Z", vec![with_rates(cell("a"), rates)]);
        spread(&Analysis::of(&record), &record.cells[0]).drift_per_octave
    }

    #[test]
    fn rounds_that_differ_are_drift_and_equal_ones_are_none() {
        assert!(drift(&[100.0; 8]) < 1e-12);
        let wide = drift(&[90.0, 110.0, 90.0, 110.0, 90.0, 110.0, 90.0, 110.0]);
        // The logarithms lie 0.1003 from their mean; 8 rounds see three octaves.
        assert!((wide - 0.1003_f64.powi(2) * 8.0 / 7.0 / 3.0).abs() < 1e-4, "{wide}");
    }

    #[test]
    fn what_differs_within_a_round_is_no_drift() {
        let series = |bytes: &[u64]| RateSeries {
            width_ns: 1,
            segments: vec![
                Segment {
                    start_ns: 0,
                    before_ns: 0,
                    before_bytes: 0,
                    early_bytes: 0,
                    rest_ns: 0,
                    bytes: bytes.to_vec()
                };
                3
            ],
        };
        let halves = variance_within(&series(&[100, 100, 110, 110])).unwrap();
        assert!((halves - 1.1_f64.ln().powi(2) / 4.0).abs() < 1e-12);
        assert_eq!(variance_within(&series(&[100])), None, "a single window has no halves");
    }

    #[test]
    fn the_rate_of_writes_that_memory_takes_is_the_one_until_stable() {
        let write = kept_in_memory(
            rdsk_analysis::fixtures::cell("w", Op::Write, IoPath::Buffered, 1 << 20, 600, 1_000_000_000),
            1_000_000_000,
            6_000_000_000,
        );
        let found = figure(&write, Metric::Rate).unwrap();
        assert!((found.mean - f64::from(100 << 20)).abs() < 1.0, "{found:?}");
        assert_eq!(found.low, None, "one visit has no interval");
    }

    #[test]
    fn a_percentile_lies_in_its_range() {
        let mut read = cell("a");
        let latency = read.result.latency_ns.as_mut().unwrap();
        latency.p99 = Some(2_000_000);
        let range = PercentileRange { low: Some(1_900_000), high: None };
        latency.ranges = Some(PercentileRanges { p99: Some(range), ..PercentileRanges::default() });
        let found = figure(&read, Metric::P99).unwrap();
        assert_eq!((found.mean, found.low, found.high), (2e6, Some(1.9e6), None));
    }
}
