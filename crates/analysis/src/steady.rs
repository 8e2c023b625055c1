//! Whether a load came to a steady state, and from when on, by the rule of SNIA's Performance Test Specification over tenths of the time:
//! from there on the figures of all tenths, at least five, lie within 20 % of their mean, and the line through them changes by at most
//! 10 % of it.
//!
//! An example: a flash drive writes 400 MiB/s in the first three tenths, until its fast part is full, and 90 ± 5 MiB/s in the other seven:
//! it is steady from the fourth on. One that loses 5 % from tenth to tenth never is.

use rdsk_model::{JobResult, KindResult, LatencyWindow};

/// Parts of the time.
const PARTS: usize = 10;
/// Parts that are steady together, at least.
const LEAST_PARTS: usize = 5;
/// What the figures of these parts may differ by, as a share of their mean.
const MOST_RANGE: f64 = 0.2;
/// What the line through them may change by, as a share of their mean.
const MOST_CHANGE: f64 = 0.1;

/// What is steady, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requests per second, in a closed loop.
    Rate,
    /// The median latency in ns, where a rate is offered: what completes is then no choice of the target.
    Median,
}

/// The figures of a job over its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// What the figures are.
    pub measure: Measure,
    /// A figure of each tenth of the time, in order.
    pub parts: Vec<f64>,
    /// The length of a tenth in ns.
    pub part_ns: u64,
    /// The first tenth of the steady state; `None` without one.
    pub steady_from: Option<usize>,
}

impl Course {
    /// Of a job; `None` where too little completed to say anything of each tenth.
    pub fn of(job: &JobResult) -> Option<Self> {
        let kinds: Vec<&KindResult> = job.reads.iter().chain(&job.writes).collect();
        let measure = if job.rate.is_some() { Measure::Median } else { Measure::Rate };
        let busiest = kinds.iter().max_by_key(|kind| kind.ops)?;
        let end = |kind: &KindResult| kind.windows.last().map(|window| window.begin_ns + window.lasts_ns);
        let whole_ns = end(busiest)?;
        let part_ns = whole_ns / PARTS as u64;
        if part_ns == 0 {
            return None;
        }
        let part = |number: usize| match measure {
            Measure::Rate => rate(&kinds, number, part_ns),
            Measure::Median => median(&busiest.windows, number, part_ns),
        };
        let parts: Vec<f64> = (0..PARTS).map(part).collect::<Option<_>>()?;
        let steady_from = (0..=PARTS - LEAST_PARTS).find(|&from| is_steady(&parts[from..]));
        Some(Self { measure, parts, part_ns, steady_from })
    }

    /// Of a job whose rate is its own choice: one in a closed loop.
    pub fn of_rate(job: &JobResult) -> Option<Self> {
        Self::of(job).filter(|course| course.measure == Measure::Rate)
    }

    /// The least and the largest figure of the steady state, or of all tenths without one.
    pub fn range(&self) -> (f64, f64) {
        let parts = &self.parts[self.steady_from.unwrap_or(0)..];
        let least = parts.iter().copied().fold(f64::INFINITY, f64::min);
        (least, parts.iter().copied().fold(0.0, f64::max))
    }
}

/// The windows with their middle in a part of the time.
fn windows_of(windows: &[LatencyWindow], part: usize, part_ns: u64) -> impl Iterator<Item = &LatencyWindow> {
    let of_part = move |window: &&LatencyWindow| {
        (window.begin_ns + window.lasts_ns / 2) / part_ns.max(1) == part as u64
    };
    windows.iter().filter(of_part)
}

/// Requests per second of a part.
fn rate(kinds: &[&KindResult], part: usize, part_ns: u64) -> Option<f64> {
    let per_s = |kind: &&KindResult| {
        let (mut ops, mut lasts_ns) = (0, 0);
        for window in windows_of(&kind.windows, part, part_ns) {
            ops += window.ops;
            lasts_ns += window.lasts_ns;
        }
        (lasts_ns > 0).then(|| ops as f64 / (lasts_ns as f64 / 1e9))
    };
    kinds.iter().map(per_s).sum()
}

/// The median of the windows' medians of a part.
fn median(windows: &[LatencyWindow], part: usize, part_ns: u64) -> Option<f64> {
    let medians: Vec<f64> =
        windows_of(windows, part, part_ns).filter_map(|window| Some(window.p50_ns? as f64)).collect();
    rdsk_stats::median(&medians)
}

/// Whether figures at equal distances are steady.
fn is_steady(parts: &[f64]) -> bool {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut product, mut square) = (0.0, 0.0);
    for (number, part) in (0_u32..).zip(parts) {
        let distance = f64::from(number) - middle;
        product += distance * (part - mean);
        square += distance * distance;
    }
    let change = product / square * (count - 1.0);
    let range =
        parts.iter().copied().fold(0.0, f64::max) - parts.iter().copied().fold(f64::INFINITY, f64::min);
    range <= MOST_RANGE * mean && change.abs() <= MOST_CHANGE * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// A job with these numbers of requests in successive tenths of a second.
    fn job(ops: [u64; 10]) -> JobResult {
        let window = |(number, &ops): (u64, &u64)| LatencyWindow {
            begin_ns: number * 100_000_000,
            lasts_ns: 100_000_000,
            ops,
            p50_ns: Some(1_000_000),
            p99_ns: None,
            max_ns: Some(2_000_000),
        };
        let reads = KindResult {
            ops: ops.iter().sum(),
            bytes: 4096,
            latency_ns: fixtures::latency(100, 1_000_000),
            least_bytes_per_s: None,
            windows: (0..).zip(&ops).map(window).collect(),
        };
        let name = "load".to_owned();
        JobResult {
            name,
            elapsed_ns: 1_000_000_000,
            reads: Some(reads),
            writes: None,
            trims: None,
            flushes: None,
            rate: None,
        }
    }

    #[test]
    fn a_steady_state_begins_where_the_figures_stay() {
        let from = |ops| Course::of(&job(ops)).unwrap().steady_from;
        assert_eq!(from([400, 400, 400, 90, 95, 88, 92, 90, 91, 93]), Some(3));
        assert_eq!(from([100, 110, 90, 100, 105, 95, 100, 108, 92, 100]), Some(0));
        assert_eq!(from([100, 95, 90, 86, 81, 77, 74, 70, 66, 63]), None, "it falls by 5 % each");
        assert_eq!(from([100, 140, 100, 140, 100, 140, 100, 140, 100, 140]), None);
        assert_eq!(from([9, 400, 400, 400, 400, 400, 90, 90, 90, 90]), None, "four are too few");
        let course = Course::of(&job([400, 400, 400, 90, 95, 88, 92, 90, 91, 93])).unwrap();
        assert_eq!(
            (course.measure, course.range(), course.part_ns),
            (Measure::Rate, (880.0, 950.0), 100_000_000)
        );
    }

    #[test]
    fn an_offered_rate_is_steady_by_its_latency() {
        let mut offered = job([100; 10]);
        let lag_ns = fixtures::latency(1000, 1000);
        offered.rate = Some(rdsk_model::RateResult { due: 1000, unsent: 0, lag_ns });
        let course = Course::of(&offered).unwrap();
        assert_eq!((course.measure, course.range()), (Measure::Median, (1e6, 1e6)));
        let reads = offered.reads.as_mut().unwrap();
        reads.windows.iter_mut().skip(5).for_each(|window| window.p50_ns = Some(9_000_000));
        assert_eq!(Course::of(&offered).unwrap().steady_from, Some(5));
        offered.reads.as_mut().unwrap().windows[2].p50_ns = None;
        assert_eq!(Course::of(&offered), None, "a tenth without a median");
    }
}
