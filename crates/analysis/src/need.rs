//! Whether a target meets a need: the figure of each threshold with its 95 % interval, and PASS, FAIL or UNSURE. A pass needs the whole
//! interval on the good side, and a figure that is the device's and lasts; where either lacks, it says what would settle it.
//!
//! An example: etcd wants 99% of its flushes within 10 ms. In 8,000 flushes the p99 is 9.2 ms, and in the rounds of the run it lies between
//! 8.7 and 9.8 ms: PASS. Between 8.9 and 10.4 ms it would be UNSURE, and four times as many flushes would halve the interval. Between 10.3
//! and 11.6 ms it is FAIL, whatever else is said of the figure.

mod course;
mod doubts;
mod figure;

pub use figure::Figure;

use crate::steady::Course;
use crate::words;
use course::RateCourse;
use doubts::{Doubts, doubts};
use figure::figure_of;
use rdsk_model::{CellRecord, JobResult, KindResult, LoadJob, Need, Record, Statistic, Subject, Threshold};

/// The answer to one threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The threshold is not about such a device.
    Exempt,
    /// The whole interval is on the good side.
    Pass,
    /// Neither is shown.
    Unsure,
    /// The whole interval is on the bad side.
    Fail,
}

impl Outcome {
    /// The word on a page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exempt => "EXEMPT",
            Self::Pass => "PASS",
            Self::Unsure => "UNSURE",
            Self::Fail => "FAIL",
        }
    }
}

/// A threshold, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged<'a> {
    /// What was asked.
    pub threshold: &'a Threshold,
    /// The job that it is about, as it ran.
    pub job: Option<&'a LoadJob>,
    /// What was measured; `None` where nothing was.
    pub figure: Option<Figure>,
    /// Whether a lowest bandwidth is that of a second, and not of a tenth of the time.
    pub is_by_second: bool,
    /// The answer.
    pub outcome: Outcome,
    /// Why it is not what the figure alone says, or why there is none; in words, as a sentence without its end.
    pub doubt: Option<String>,
    /// How many times as long the run has to be for the interval to end at the threshold; `None` where more time would not settle it.
    pub longer: Option<f64>,
}

/// The answer to a need: the worst of the thresholds that are about the device.
pub fn outcome(judged: &[Judged<'_>]) -> Outcome {
    let outcomes = judged.iter().map(|judged| judged.outcome).filter(|outcome| *outcome != Outcome::Exempt);
    outcomes.max().unwrap_or(Outcome::Unsure)
}

/// Judges every threshold of a Record's need on its first target that has one; empty without a need.
pub fn judge(record: &Record) -> Vec<Judged<'_>> {
    let Some(need) = &record.need else { return Vec::new() };
    need.thresholds.iter().map(|threshold| judge_threshold(record, need, threshold)).collect()
}

fn judge_threshold<'a>(record: &'a Record, need: &Need, threshold: &'a Threshold) -> Judged<'a> {
    let outlasts_bytes = need.outlasts_bytes.max(threshold.outlasts_bytes);
    let need = &Need { outlasts_bytes, ..need.clone() };
    let unsure = |doubt: String| Judged {
        threshold,
        job: None,
        figure: None,
        is_by_second: false,
        outcome: Outcome::Unsure,
        doubt: Some(doubt),
        longer: None,
    };
    let has_job = |cell: &&CellRecord| cell.workload.jobs.iter().any(|job| job.name == threshold.job);
    let Some(cell) = record.cells.iter().find(has_job) else { return unsure("it was not measured".into()) };
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job);
    if threshold.statistic == Statistic::Size {
        return match figure::size(record, cell) {
            Some(figure) => {
                let outcome = by_figure(threshold, &figure);
                Judged { job, figure: Some(figure), outcome, doubt: None, ..unsure(String::new()) }
            }
            None => Judged { job, ..unsure("the size of the device is not known".into()) },
        };
    }
    let result = cell.result.jobs.iter().find(|result| result.name == threshold.job);
    let Some((result, figure)) =
        result.and_then(|result| Some((result, figure_of(need, threshold, cell, result)?)))
    else {
        let doubt = match result.map_or(0, |result| total(result, threshold.of, |kind| kind.ops)) {
            0 => format!("it was not measured: {}", why_unmeasured(threshold, cell, job, result)),
            // A percentile needs ten requests above it.
            requests => format!("too few requests for it ({requests})"),
        };
        return Judged { job, ..unsure(doubt) };
    };
    if threshold.exempts_rotational && rotates(record, cell) {
        let doubt = "the source exempts rotating disks from it".to_owned();
        return Judged { job, figure: Some(figure), outcome: Outcome::Exempt, ..unsure(doubt) };
    }
    let by_figure = by_figure(threshold, &figure);
    let doubts = doubts(record, need, threshold, cell, (result, &figure));
    let (outcome, doubt) = with_doubts(by_figure, doubts, threshold, (&figure, result));
    let course = Course::of_rate(result);
    let is_steady = course.is_none_or(|course| course.steady_from == Some(0));
    let longer = (by_figure == Outcome::Unsure && is_steady).then(|| longer(threshold, &figure)).flatten();
    let is_by_second =
        [&result.reads, &result.writes].into_iter().flatten().any(|kind| kind.least_bytes_per_s.is_some());
    Judged { threshold, job, figure: Some(figure), is_by_second, outcome, doubt, longer }
}

/// What is left of the answer that the figure gives, and why it is no other.
fn with_doubts(
    by_figure: Outcome,
    doubts: Doubts,
    threshold: &Threshold,
    (figure, result): (&Figure, &JobResult),
) -> (Outcome, Option<String>) {
    match by_figure {
        Outcome::Pass => match doubts.of_pass {
            Some(doubt) => (Outcome::Unsure, Some(doubt)),
            None => (Outcome::Pass, None),
        },
        Outcome::Fail => match doubts.of_fail {
            Some(doubt) => (Outcome::Unsure, Some(doubt)),
            None if is_disputed(threshold, figure) => {
                (Outcome::Unsure, Some("sources disagree about a figure between the two marks".into()))
            }
            None if !threshold.only_passes.is_empty() => {
                (Outcome::Unsure, Some(threshold.only_passes.clone()))
            }
            None => (Outcome::Fail, None),
        },
        Outcome::Unsure | Outcome::Exempt => (Outcome::Unsure, Some(why_unsure(threshold, figure, result))),
    }
}

/// Whether a target of a cell says that it rotates.
fn rotates(record: &Record, cell: &CellRecord) -> bool {
    let mut targets = record.targets.iter().filter(|target| cell.workload.targets.contains(&target.index));
    targets.any(|target| target.device.as_ref().is_some_and(|device| device.rotational == Some(true)))
}

/// The requests that a threshold is about, or their bytes, together.
fn total(result: &JobResult, subject: Subject, of_kind: fn(&KindResult) -> u64) -> u64 {
    let sum = |kind: &Option<KindResult>| kind.as_ref().map_or(0, of_kind);
    match subject {
        Subject::Reads => sum(&result.reads),
        Subject::Writes => sum(&result.writes),
        Subject::Flushes => sum(&result.flushes),
        Subject::Requests => sum(&result.reads) + sum(&result.writes),
    }
}

/// Why there was none of the requests that a threshold is about.
fn why_unmeasured(
    threshold: &Threshold,
    cell: &CellRecord,
    job: Option<&LoadJob>,
    result: Option<&JobResult>,
) -> String {
    let has_written = result.is_some_and(|result| total(result, Subject::Writes, |kind| kind.ops) > 0);
    match job.and_then(|job| job.flush).filter(|_| threshold.of == Subject::Flushes && has_written) {
        Some(flush) => {
            let writes = words::plural(flush.every.into(), "write");
            format!(
                "no repeat lasted until the first {}, which follows {writes}; more --budget makes repeats longer",
                flush.call
            )
        }
        None => cell.result.why.clone(),
    }
}

/// A card or stick has less than the size that it is sold as: one of 64 GB has 61.5 GB.
const SOLD_SHARE: f64 = 0.9;

/// What the interval says alone.
fn by_figure(threshold: &Threshold, figure: &Figure) -> Outcome {
    // Of an extreme, what was seen is the least that it is; that nothing worse was seen is as sure as it can be.
    if matches!(threshold.statistic, Statistic::Max | Statistic::LowestBytesPerS) {
        let is_kept = threshold.at_most.is_none_or(|most| figure.value <= most)
            && threshold.at_least.is_none_or(|least| figure.value >= least);
        return if is_kept { Outcome::Pass } else { Outcome::Fail };
    }
    if threshold.statistic == Statistic::Size {
        let is_kept = threshold.at_least.is_none_or(|least| figure.value >= SOLD_SHARE * least)
            && threshold.at_most.is_none_or(|most| figure.value <= most);
        return if is_kept { Outcome::Pass } else { Outcome::Fail };
    }
    let (good, bad) = match (threshold.at_most, threshold.at_least) {
        (Some(most), _) => {
            (figure.high.is_some_and(|high| high <= most), figure.low.is_some_and(|low| low > most))
        }
        (None, Some(least)) => {
            (figure.low.is_some_and(|low| low >= least), figure.high.is_some_and(|high| high < least))
        }
        (None, None) => (false, false),
    };
    match (good, bad) {
        (true, _) => Outcome::Pass,
        (_, true) => Outcome::Fail,
        _ => Outcome::Unsure,
    }
}

/// Whether a figure on the bad side is still within what some sources allow.
fn is_disputed(threshold: &Threshold, figure: &Figure) -> bool {
    let Some(until) = threshold.disputed_until else { return false };
    match threshold.at_most {
        Some(_) => figure.low.is_some_and(|low| low <= until),
        None => figure.high.is_some_and(|high| high >= until),
    }
}

fn why_unsure(threshold: &Threshold, figure: &Figure, result: &JobResult) -> String {
    // An unsteady rate that stays on one side of the mark leaves nothing open by that.
    if let Some(course) = RateCourse::of(threshold, result)
        && !course.is_steady
        && !course.stays_good(threshold)
        && !course.stays_bad(threshold)
    {
        return course.to_string();
    }
    if figure.low.is_none() || figure.high.is_none() {
        // Ten in the part above the percentile.
        let enough = if threshold.statistic == Statistic::P999 { 10_000 } else { 1000 };
        if figure.ops < enough {
            format!("too few requests for an interval ({})", figure.ops)
        } else if result.kinds().all(|(_, kind)| kind.latency_ns.rounds.len() < 2) {
            "a single repeat shows no interval".into()
        } else {
            "the repeats differ too much for an interval".into()
        }
    } else {
        "the threshold lies inside the interval".into()
    }
}

/// How much longer a run has to be until the interval, which shrinks with the root of the time, ends at the threshold.
fn longer(threshold: &Threshold, figure: &Figure) -> Option<f64> {
    // Its interval is that of repeats longer than the period, and longer ones make it wider.
    if threshold.statistic == Statistic::TimeOver {
        return None;
    }
    let mark = threshold.at_most.or(threshold.at_least)?;
    let Figure { value, low, high, .. } = *figure;
    let (Some(low), Some(high)) = (low, high) else { return Some(4.0) };
    let distance = (mark - value).abs();
    let half = if mark > value { high - value } else { value - low };
    let factor = (half / distance).powi(2);
    // Closer to the mark than 1 in 20 of the interval, no time that anyone has would settle it.
    (factor.is_finite() && factor <= 400.0).then_some(factor.max(1.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p99(at_most: f64) -> Threshold {
        Threshold { at_most: Some(at_most), ..Threshold::new("wal", Subject::Flushes, Statistic::P99) }
    }

    fn between(low: f64, value: f64, high: f64) -> Figure {
        Figure { value, low: Some(low), high: Some(high), ops: 8000 }
    }

    #[test]
    fn the_whole_interval_decides() {
        for (figure, expected) in [
            (between(8.7, 9.2, 9.8), Outcome::Pass),
            (between(8.9, 9.5, 10.4), Outcome::Unsure),
            (between(9.9, 10.0, 10.0), Outcome::Pass),
            (between(10.3, 11.0, 11.6), Outcome::Fail),
            (Figure { high: None, ..between(8.7, 9.2, 9.8) }, Outcome::Unsure),
            (Figure { high: None, ..between(10.3, 11.0, 11.6) }, Outcome::Fail),
        ] {
            assert_eq!(by_figure(&p99(10.0), &figure), expected, "{figure:?}");
        }
        let least =
            Threshold { at_most: None, at_least: Some(500.0), statistic: Statistic::OpsPerS, ..p99(0.0) };
        assert_eq!(by_figure(&least, &between(500.0, 510.0, 520.0)), Outcome::Pass);
        assert_eq!(by_figure(&least, &between(480.0, 490.0, 499.0)), Outcome::Fail);
        assert_eq!(by_figure(&least, &between(480.0, 490.0, 500.0)), Outcome::Unsure);
        let disputed = Threshold { disputed_until: Some(450.0), ..least.clone() };
        assert!(is_disputed(&disputed, &between(440.0, 445.0, 450.0)));
        assert!(!is_disputed(&disputed, &between(440.0, 444.0, 449.0)));
        let longest = Threshold { statistic: Statistic::Max, ..p99(10.0) };
        let seen = Figure { low: None, high: None, ..between(0.0, 10.0, 0.0) };
        assert_eq!(by_figure(&longest, &seen), Outcome::Pass);
        assert_eq!(by_figure(&longest, &Figure { value: 10.1, ..seen }), Outcome::Fail);
    }

    #[test]
    fn a_mark_that_its_source_does_not_hold_against_a_disk_fails_none() {
        let mut record = crate::fixtures::load();
        let mut judged = |only_passes: &str| {
            let (statistic, only_passes) = (Statistic::Max, only_passes.to_owned());
            let threshold = Threshold { statistic, only_passes, job: "log".into(), ..p99(1e6) };
            record.need = Some(Need { thresholds: vec![threshold], ..figure::tests::record_need() });
            let judged = judge(&record);
            (judged[0].outcome, judged[0].doubt.clone())
        };
        assert_eq!(judged(""), (Outcome::Fail, None));
        assert_eq!(judged("it only warns"), (Outcome::Unsure, Some("it only warns".into())));
    }

    #[test]
    fn a_rotating_disk_is_exempt_from_what_is_not_about_it() {
        let mut record = crate::fixtures::load();
        let mut judged = |rotational| {
            for target in &mut record.targets {
                target.device.as_mut().unwrap().rotational = rotational;
            }
            let (statistic, exempts_rotational) = (Statistic::Max, true);
            let threshold = Threshold { statistic, exempts_rotational, job: "log".into(), ..p99(1e6) };
            record.need = Some(Need { thresholds: vec![threshold], ..figure::tests::record_need() });
            let judged = judge(&record);
            (judged[0].outcome, outcome(&judged), judged[0].figure.is_some())
        };
        assert_eq!(
            judged(Some(true)),
            (Outcome::Exempt, Outcome::Unsure, true),
            "no other threshold is left"
        );
        assert_eq!(judged(Some(false)), (Outcome::Fail, Outcome::Fail, true));
        assert_eq!(judged(None), (Outcome::Fail, Outcome::Fail, true));
    }

    #[test]
    fn a_device_is_as_large_as_it_is_sold() {
        let mut record = crate::fixtures::load();
        let mut judged = |size_bytes| {
            for target in &mut record.targets {
                target.device.as_mut().unwrap().size_bytes = size_bytes;
            }
            let size =
                Threshold { at_most: None, at_least: Some(64e9), statistic: Statistic::Size, ..p99(0.0) };
            let threshold = Threshold { job: "log".into(), of: Subject::Writes, ..size };
            record.need = Some(Need { thresholds: vec![threshold], ..figure::tests::record_need() });
            judge(&record)[0].outcome
        };
        let outcomes =
            [Some(64_000_000_000), Some(61_530_439_680), Some(32_000_000_000), None].map(&mut judged);
        assert_eq!(outcomes, [Outcome::Pass, Outcome::Pass, Outcome::Fail, Outcome::Unsure]);
    }

    #[test]
    fn a_rate_of_a_threshold_may_have_to_last_where_the_others_do_not() {
        let mut record = crate::fixtures::load();
        let rate =
            Threshold { at_most: None, at_least: Some(1.0), statistic: Statistic::BytesPerS, ..p99(0.0) };
        let rate = Threshold { job: "log".into(), of: Subject::Writes, ..rate };
        let lasting = Threshold { outlasts_bytes: 4_000_000_000, ..rate.clone() };
        record.need = Some(Need { thresholds: vec![rate, lasting], ..figure::tests::record_need() });
        let doubts: Vec<_> =
            judge(&record).into_iter().map(|judged| judged.doubt.unwrap_or_default()).collect();
        assert!(!doubts[0].contains("burst") && doubts[1].contains("burst"), "{doubts:?}");
    }

    #[test]
    fn a_flush_that_no_repeat_came_to_is_why_nothing_was_measured() {
        let cell = crate::fixtures::load().cells.remove(0);
        let (mut job, mut result) = (cell.workload.jobs[1].clone(), cell.result.jobs[1].clone());
        job.flush = job.flush.map(|flush| rdsk_model::Flush { every: 1000, ..flush });
        result.flushes = None;
        let why = why_unmeasured(&p99(10.0), &cell, Some(&job), Some(&result));
        assert!(
            why.starts_with("no repeat lasted until the first fdatasync, which follows 1,000 writes"),
            "{why}"
        );
        result.writes = None;
        assert_eq!(why_unmeasured(&p99(10.0), &cell, Some(&job), Some(&result)), cell.result.why);
    }

    #[test]
    fn more_time_settles_what_is_not_too_close() {
        // Half of the interval above the value is 0.8, and the mark is 0.4 away: four times the time.
        assert_eq!(longer(&p99(10.0), &between(9.0, 9.6, 10.4)), Some(4.0));
        assert_eq!(longer(&p99(10.0), &between(9.0, 9.999, 10.4)), None, "too close");
        let sum = Threshold { statistic: Statistic::TimeOver, ..p99(10.0) };
        assert_eq!(longer(&sum, &between(9.0, 9.6, 10.4)), None, "it is no sample");
        assert_eq!(outcome(&[]), Outcome::Unsure);
    }
}
