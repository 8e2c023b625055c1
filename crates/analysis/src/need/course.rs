//! The rate that a threshold is about in the course of the test: whether it held, and between which ends it went.

use super::total;
use crate::steady::Course;
use crate::words;
use rdsk_model::{JobResult, Statistic, Threshold};
use std::fmt;

/// The rate of a threshold over the tenths of the test, in its unit.
pub(super) struct RateCourse {
    statistic: Statistic,
    /// Whether it held from the start.
    pub(super) is_steady: bool,
    lowest: f64,
    highest: f64,
}

impl RateCourse {
    /// `None` where the threshold is about no rate, where a rate was offered, and where too little completed.
    pub(super) fn of(threshold: &Threshold, result: &JobResult) -> Option<Self> {
        let amount = match threshold.statistic {
            Statistic::OpsPerS => total(result, threshold.of, |kind| kind.ops),
            Statistic::BytesPerS => total(result, threshold.of, |kind| kind.bytes),
            _ => return None,
        };
        let course = Course::of_rate(result)?;
        let of_request = amount as f64 / result.requests().max(1) as f64;
        let rates = || course.parts.iter().map(|part| part * of_request);
        Some(Self {
            statistic: threshold.statistic,
            is_steady: course.steady_from == Some(0),
            lowest: rates().fold(f64::INFINITY, f64::min),
            highest: rates().fold(0.0, f64::max),
        })
    }

    /// Whether even the worst tenth meets the threshold.
    pub(super) fn stays_good(&self, threshold: &Threshold) -> bool {
        threshold.at_least.is_none_or(|least| self.lowest >= least)
            && threshold.at_most.is_none_or(|most| self.highest <= most)
    }

    /// Whether even the best tenth fails it.
    pub(super) fn stays_bad(&self, threshold: &Threshold) -> bool {
        threshold.at_least.is_some_and(|least| self.highest < least)
            || threshold.at_most.is_some_and(|most| self.lowest > most)
    }
}

impl fmt::Display for RateCourse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |per_s: f64| match self.statistic {
            Statistic::BytesPerS => words::rate(per_s),
            _ => format!("{}/s", rdsk_units::count(per_s)),
        };
        let (lowest, highest) = (rate(self.lowest), rate(self.highest));
        write!(
            f,
            "the rate is not steady: {lowest} in the slowest tenth of the test, {highest} in the fastest"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use rdsk_model::Subject;

    /// Writes of 1 MiB at these rates, one for each tenth of the test, and the lowest rate of a threshold, in MiB/s.
    fn writing(mib_per_s: [u64; 10], at_least: f64) -> (JobResult, Threshold) {
        let mut job = fixtures::load().cells[0].result.jobs[1].clone();
        let writes = job.writes.as_mut().unwrap();
        for (number, window) in writes.windows.iter_mut().enumerate() {
            window.ops = mib_per_s[number / 3];
        }
        writes.ops = writes.windows.iter().map(|window| window.ops).sum();
        writes.bytes = writes.ops << 20;
        let threshold = Threshold {
            at_least: Some(at_least * 1_048_576.0),
            ..Threshold::new("log", Subject::Writes, Statistic::BytesPerS)
        };
        (job, threshold)
    }

    #[test]
    fn the_slowest_and_the_fastest_tenth_show_that_a_rate_did_not_hold() {
        let mib_per_s = [100, 150, 60, 150, 100, 150, 60, 150, 100, 100];
        let (job, threshold) = writing(mib_per_s, 80.0);
        let course = RateCourse::of(&threshold, &job).unwrap();
        assert!(!course.is_steady && !course.stays_good(&threshold) && !course.stays_bad(&threshold));
        assert_eq!(
            course.to_string(),
            "the rate is not steady: 60.0 MiB/s in the slowest tenth of the test, 150 MiB/s in the fastest"
        );
        let (job, low) = writing(mib_per_s, 60.0);
        assert!(RateCourse::of(&low, &job).unwrap().stays_good(&low));
        let (job, high) = writing(mib_per_s, 151.0);
        assert!(RateCourse::of(&high, &job).unwrap().stays_bad(&high));
        assert!(RateCourse::of(&high, &writing([100; 10], 80.0).0).unwrap().is_steady);
        let of_latency = Threshold { statistic: Statistic::P99, ..high };
        assert!(RateCourse::of(&of_latency, &job).is_none());
    }

    #[test]
    fn an_unsteady_rate_leaves_open_only_what_its_tenths_do() {
        let mib_per_s = [100, 150, 60, 150, 100, 150, 60, 150, 100, 100];
        let why = |at_least: f64| {
            let (job, threshold) = writing(mib_per_s, at_least);
            let figure = super::super::Figure { value: 112e6, low: Some(0.0), high: Some(2e8), ops: 3360 };
            super::super::why_unsure(&threshold, &figure, &job)
        };
        assert!(why(80.0).starts_with("the rate is not steady"));
        assert_eq!([why(59.0), why(151.0)], ["the threshold lies inside the interval"; 2]);
    }
}
