//! One figure of one cell of one run, and how unsure it is: the rate and percentiles of the latency, with what their intervals
//! rest on. It compares nothing.

use rdsk_analysis::comparison::{Measure, began, round_rates};
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Estimate, Latency, PercentileRange, Visit};
use rdsk_stats::{Halves, Histogram, Stepped, TimedSample, rounds_interval};

/// Fewer rounds say nothing of how a disk changes from one moment to another.
pub(crate) const MIN_ROUNDS: usize = 3;

/// What is compared of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// The share of the latencies that a percentile is not below; `None` for the rate.
    pub(crate) const fn share(self) -> Option<f64> {
        match self {
            Self::Rate => None,
            Self::P50 => Some(0.5),
            Self::P99 => Some(0.99),
        }
    }

    /// Whether a larger figure is the faster one.
    pub const fn grows_with_speed(self) -> bool {
        matches!(self, Self::Rate)
    }
}

/// How the rate of a cell is taken from its visits.
pub(crate) fn measure(cell: &CellRecord) -> Measure {
    let is_behind = cell.workload.is_written_behind() && cell.result.to_stable_ns.is_some();
    if is_behind { Measure::UntilStable } else { Measure::Together }
}

/// A figure of a cell; `None` where the run does not have it.
pub(crate) fn figure(cell: &CellRecord, metric: Metric) -> Option<Estimate> {
    let latency = || cell.result.latency_ns.as_ref();
    match metric {
        Metric::Rate => rate(cell),
        Metric::P50 => percentile(latency()?, |latency| latency.p50, |ranges| ranges.p50),
        Metric::P99 => percentile(latency()?, |latency| latency.p99, |ranges| ranges.p99),
    }
}

fn rate(cell: &CellRecord) -> Option<Estimate> {
    let recorded = cell.result.bytes_per_s?;
    if measure(cell) != Measure::UntilStable {
        return Some(recorded).filter(|figure| figure.mean > 0.0);
    }
    let mean = metrics::stable_rate(cell)?;
    Some(around(mean, &timed_rates(cell)))
}

/// A rate with the interval that its rounds give. A round that takes longer counts for more in the rate, and as one of many in the interval.
pub(crate) fn around(mean: f64, rounds: &[TimedSample]) -> Estimate {
    let half_width = rounds_interval(rounds, &Halves::default())
        .map(|interval| ((interval.high - interval.low) / 2.0).max((interval.mean - mean).abs()));
    Estimate::around(mean, half_width)
}

fn percentile(
    latency: &Latency,
    value: fn(&Latency) -> Option<u64>,
    range: fn(&rdsk_model::PercentileRanges) -> Option<PercentileRange>,
) -> Option<Estimate> {
    let mean = value(latency).filter(|&ns| ns > 0)? as f64;
    let range = latency.ranges.as_ref().and_then(range);
    let end = |end: Option<u64>| end.map(|ns| ns as f64);
    // The percentile and its range are read from buckets; the range never leaves the percentile out.
    Some(Estimate {
        mean,
        low: range.and_then(|range| end(range.low)).map(|low| low.min(mean)),
        high: range.and_then(|range| end(range.high)).map(|high| high.max(mean)),
    })
}

/// A figure of a cell with what may have been said like it. A percentile is read from the buckets of a histogram. A rate is that of
/// whole I/Os over the time to the return of the last, to the nanosecond, and no step rounds it; but where a part is cut out, the
/// I/O that is under way at the cut counts as a whole or not at all.
pub(crate) fn stepped(cell: &CellRecord, metric: Metric) -> Option<Stepped> {
    let value = figure(cell, metric)?.mean;
    if metric == Metric::Rate {
        let open = cut_share(cell);
        return Some(Stepped { value, least: value * (1.0 - open).max(0.0), most: value * (1.0 + open) });
    }
    Some(step_of(value))
}

/// A percentile with the bucket that it was read from.
pub(crate) fn step_of(ns: f64) -> Stepped {
    let (least, most) = Histogram::step_of(metrics::whole(ns));
    Stepped { value: ns, least: least.min(ns), most: most.max(ns) }
}

/// One I/O for each cut, as a share of what the rate counts: the warm-up is cut off, and the common part of several streams out of a
/// visit where they did not begin and end together.
fn cut_share(cell: &CellRecord) -> f64 {
    if measure(cell) == Measure::UntilStable {
        return 0.0;
    }
    let counted = |visit: &Visit| visit.overlap.map_or(visit.bytes, |overlap| overlap.bytes);
    let cut = cell.result.visits.iter().filter(|visit| counted(visit) != visit.bytes).count() as u64
        + u64::from(cell.result.warmup_ns.is_some_and(|ns| ns > 0));
    let bytes: u64 = cell.result.visits.iter().map(counted).sum();
    if cut == 0 { 0.0 } else { metrics::ratio(cut * cell.workload.block_bytes, bytes.max(1)).min(1.0) }
}

/// The rate of each round, and when it began in ns from the start of the run.
pub(crate) fn timed_rates(cell: &CellRecord) -> Vec<TimedSample> {
    let timed = |(round, rate): (u32, f64)| (began(cell, round), rate);
    round_rates(cell, measure(cell)).into_iter().map(timed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;
    use rdsk_analysis::fixtures::kept_in_memory;
    use rdsk_model::{IoPath, Op, Overlap, PercentileRanges};

    #[test]
    fn the_rate_of_writes_that_memory_takes_is_the_one_until_stable() {
        let write = kept_in_memory(
            rdsk_analysis::fixtures::cell("w", Op::Write, IoPath::Buffered, 1 << 20, 600, 1_000_000_000),
            1_000_000_000,
            6_000_000_000,
        );
        let measured = figure(&write, Metric::Rate).unwrap();
        assert!((measured.mean - f64::from(100 << 20)).abs() < 1.0, "{measured:?}");
        assert_eq!(measured.low, None, "one visit has no interval");
    }

    /// The rate over all rounds is not the mean of theirs where slow rounds take longer; its interval reaches that mean.
    #[test]
    fn the_interval_until_stable_holds_what_its_rounds_say() {
        let mut write = cell("w");
        (write.workload.op, write.workload.path) = (Op::Write, IoPath::Buffered);
        let visit = |round: u32| {
            let stable_ns = if round % 4 == 3 { 12_000_000_000 } else { 1_000_000_000 };
            Visit { round, bytes: 100 << 20, to_stable_ns: Some(stable_ns), ..Visit::default() }
        };
        write.result.visits = (0..24).map(visit).collect();
        write.result.bytes = Some(2400 << 20);
        write.result.to_stable_ns = Some(90_000_000_000);
        let (measured, mib) = (figure(&write, Metric::Rate).unwrap(), f64::from(1 << 20));
        let of_rounds = (18.0 * 100.0 + 6.0 * 100.0 / 12.0) / 24.0 * mib;
        assert!((measured.mean / mib - 2400.0 / 90.0).abs() < 1e-6, "{measured:?}");
        assert!(measured.high.unwrap() >= of_rounds * (1.0 - 1e-9), "{measured:?} and {of_rounds}");
    }

    #[test]
    fn a_percentile_stands_for_its_bucket_and_a_rate_for_itself_unless_it_is_cut() {
        let mut read = crate::testing::with_rates(cell("a"), &[100.0; 3]);
        read.result.latency_ns.as_mut().unwrap().p50 = Some(80_383);
        let of_bucket = Stepped { value: 80_383.0, least: 79_872.0, most: 80_384.0 };
        assert_eq!(stepped(&read, Metric::P50), Some(of_bucket));
        let rate = figure(&read, Metric::Rate).unwrap().mean;
        assert_eq!(stepped(&read, Metric::Rate), Some(Stepped::exact(rate)));
        // One of three visits is cut to a half, and the warm-up off the first: two blocks of 250.
        read.result.warmup_ns = Some(1);
        let visit = &mut read.result.visits[2];
        visit.overlap = Some(Overlap { bytes: visit.bytes / 2, covered_ns: 1, ..Overlap::default() });
        let cut = stepped(&read, Metric::Rate).unwrap();
        assert!((cut.most / rate - 1.008).abs() < 1e-9 && (cut.least / rate - 0.992).abs() < 1e-9, "{cut:?}");
        let mut write = read.clone();
        (write.workload.op, write.workload.path) = (Op::Write, IoPath::Buffered);
        write.result.to_stable_ns = Some(1);
        assert_eq!(cut_share(&write), 0.0, "whole visits until stable");
    }

    #[test]
    fn a_percentile_lies_in_its_range() {
        let mut read = cell("a");
        let latency = read.result.latency_ns.as_mut().unwrap();
        latency.p99 = Some(2_000_000);
        let range = PercentileRange { low: Some(1_900_000), high: None };
        latency.ranges = Some(PercentileRanges { p99: Some(range), ..PercentileRanges::default() });
        let measured = figure(&read, Metric::P99).unwrap();
        assert_eq!((measured.mean, measured.low, measured.high), (2e6, Some(1.9e6), None));
    }
}
