//! Whether a target meets a need: the figure of each threshold with its 95 % interval, and PASS, FAIL or UNSURE. A pass needs the whole
//! interval on the good side, and a figure that is the device's and lasts; where either lacks, it says what would settle it.
//!
//! An example: etcd wants 99% of its flushes within 10 ms. In 8,000 flushes the p99 is 9.2 ms, and in the rounds of the run it lies between
//! 8.7 and 9.8 ms: PASS. Between 8.9 and 10.4 ms it would be UNSURE, and four times as many flushes would halve the interval. Between 10.3
//! and 11.6 ms it is FAIL, whatever else is said of the figure.

use crate::metrics;
use rdsk_model::{
    CellRecord, JobResult, KindResult, LoadJob, Need, PercentileRange, Record, Statistic, Subject, Threshold,
    VerdictCode,
};
use rdsk_stats::{Histogram, mean_interval};

/// The answer to one threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
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
            Self::Pass => "PASS",
            Self::Unsure => "UNSURE",
            Self::Fail => "FAIL",
        }
    }
}

/// A figure with its interval; an end is `None` where so few requests show none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// In the unit of the statistic: ns, per second, or a share.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Requests that it rests on.
    pub ops: u64,
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
    /// The answer.
    pub outcome: Outcome,
    /// Why it is not what the figure alone says, or why there is none; in words, as a sentence without its end.
    pub doubt: Option<String>,
    /// How many times as long the run has to be for the interval to end at the threshold; `None` where more time would not settle it.
    pub longer: Option<f64>,
}

/// The answer to a need: the worst of its thresholds.
pub fn outcome(judged: &[Judged<'_>]) -> Outcome {
    judged.iter().map(|judged| judged.outcome).max().unwrap_or(Outcome::Unsure)
}

/// Judges every threshold of a Record's need on its first target that has one; empty without a need.
pub fn judge(record: &Record) -> Vec<Judged<'_>> {
    let Some(need) = &record.need else { return Vec::new() };
    need.thresholds.iter().map(|threshold| judge_threshold(record, need, threshold)).collect()
}

fn judge_threshold<'a>(record: &'a Record, need: &Need, threshold: &'a Threshold) -> Judged<'a> {
    let unsure = |doubt: String| Judged {
        threshold,
        job: None,
        figure: None,
        outcome: Outcome::Unsure,
        doubt: Some(doubt),
        longer: None,
    };
    let has_job = |cell: &&CellRecord| cell.workload.jobs.iter().any(|job| job.name == threshold.job);
    let Some(cell) = record.cells.iter().find(has_job) else { return unsure("it was not measured".into()) };
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job);
    let result = cell.result.jobs.iter().find(|result| result.name == threshold.job);
    let Some((result, figure)) =
        result.and_then(|result| Some((result, figure_of(threshold, cell, result)?)))
    else {
        return Judged { job, ..unsure(format!("it was not measured: {}", cell.result.why)) };
    };
    let by_figure = by_figure(threshold, &figure);
    let doubts = doubts(record, need, threshold, cell, result);
    let (outcome, doubt) = match by_figure {
        Outcome::Pass => match doubts.of_pass {
            Some(doubt) => (Outcome::Unsure, Some(doubt)),
            None => (Outcome::Pass, None),
        },
        Outcome::Fail => match doubts.of_fail {
            Some(doubt) => (Outcome::Unsure, Some(doubt)),
            None if is_disputed(threshold, &figure) => {
                (Outcome::Unsure, Some("sources disagree about a figure between the two marks".into()))
            }
            None => (Outcome::Fail, None),
        },
        Outcome::Unsure => (Outcome::Unsure, Some(why_unsure(&figure))),
    };
    let longer = (by_figure == Outcome::Unsure).then(|| longer(threshold, &figure)).flatten();
    Judged { threshold, job, figure: Some(figure), outcome, doubt, longer }
}

/// What the interval says alone.
fn by_figure(threshold: &Threshold, figure: &Figure) -> Outcome {
    // Of a maximum, what was seen is the least that it is; that none was longer is as sure as it can be.
    if threshold.statistic == Statistic::Max {
        let is_kept = threshold.at_most.is_none_or(|most| figure.value <= most);
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
    threshold.disputed_until.is_some_and(|until| figure.low.is_some_and(|low| low <= until))
}

fn why_unsure(figure: &Figure) -> String {
    if figure.low.is_none() || figure.high.is_none() {
        format!("too few requests for an interval ({})", figure.ops)
    } else {
        "the threshold lies inside the interval".into()
    }
}

/// How much longer a run has to be until the interval, which shrinks with the root of the time, ends at the threshold.
fn longer(threshold: &Threshold, figure: &Figure) -> Option<f64> {
    let mark = threshold.at_most.or(threshold.at_least)?;
    let Figure { value, low, high, .. } = *figure;
    let (Some(low), Some(high)) = (low, high) else { return Some(4.0) };
    let distance = (mark - value).abs();
    let half = if mark > value { high - value } else { value - low };
    let factor = (half / distance).powi(2);
    // Closer to the mark than 1 in 20 of the interval, no time that anyone has would settle it.
    (factor.is_finite() && factor <= 400.0).then_some(factor.max(1.5))
}

/// What speaks against a figure, whatever it is.
struct Doubts {
    of_pass: Option<String>,
    of_fail: Option<String>,
}

fn doubts(
    record: &Record,
    need: &Need,
    threshold: &Threshold,
    cell: &CellRecord,
    result: &JobResult,
) -> Doubts {
    let verdict = cell.verdict.as_ref();
    let text = verdict.map(|verdict| verdict.text.clone()).unwrap_or_default();
    let by_verdict = match verdict.map(|verdict| verdict.code) {
        Some(VerdictCode::Device | VerdictCode::CpuBound) => (None, None),
        Some(VerdictCode::Throttled) => (None, Some(text)),
        Some(VerdictCode::Disturbed) => (None, Some(format!("other I/O took part: {text}"))),
        // What memory did is no worse on a disk.
        Some(VerdictCode::PageCache | VerdictCode::Hole) => (Some(text), None),
        Some(VerdictCode::Unverified | VerdictCode::SourceBound) => (Some(text.clone()), Some(text)),
        Some(VerdictCode::Incomplete) | None => {
            let why = format!("the test was cut short: {}", cell.result.why);
            (Some(why.clone()), Some(why))
        }
    };
    let of_pass = by_verdict
        .0
        .or_else(|| flush_doubt(record, threshold, cell))
        .or_else(|| length_doubt(need, result))
        .or_else(|| burst_doubt(need, result))
        .or_else(|| unsent_doubt(result));
    Doubts { of_pass, of_fail: by_verdict.1 }
}

/// Findings that say that a flush does not do what it promises.
const LYING: [&str; 3] = ["durable-not-flushed", "faster-than-rotation", "memory-device"];

fn flush_doubt(record: &Record, threshold: &Threshold, cell: &CellRecord) -> Option<String> {
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    if job.flush.is_none() && !job.dsync {
        return None;
    }
    let lies = record.findings.iter().find(|finding| LYING.contains(&finding.code.as_str()));
    lies.map(|finding| format!("a power cut may lose what was flushed ({})", finding.code))
}

fn length_doubt(need: &Need, result: &JobResult) -> Option<String> {
    (result.elapsed_ns < need.lasts_ns).then(|| {
        let (ran, needs) = (rdsk_units::Nanos(result.elapsed_ns), rdsk_units::Nanos(need.lasts_ns));
        format!("the rule is about {needs}, and this test ran for {ran}: it could only have failed")
    })
}

fn burst_doubt(need: &Need, result: &JobResult) -> Option<String> {
    let written = result.writes.as_ref().map_or(0, |writes| writes.bytes);
    (need.outlasts_bytes > 0 && result.writes.is_some() && written < need.outlasts_bytes).then(|| {
        let (wrote, needs) =
            (rdsk_units::Bytes(written).approx(), rdsk_units::Bytes(need.outlasts_bytes).approx());
        format!("it has to last beyond {needs}, and {wrote} were written: the rate may be that of a burst")
    })
}

fn unsent_doubt(result: &JobResult) -> Option<String> {
    let rate = result.rate.as_ref().filter(|rate| rate.unsent > 0)?;
    Some(format!("{} of {} requests were never sent, as the target fell behind", rate.unsent, rate.due))
}

/// The figure of a threshold.
fn figure_of(threshold: &Threshold, cell: &CellRecord, result: &JobResult) -> Option<Figure> {
    let kind = match threshold.of {
        Subject::Reads => result.reads.as_ref(),
        Subject::Writes => result.writes.as_ref(),
        Subject::Flushes => result.flushes.as_ref(),
    }?;
    let latency = &kind.latency_ns;
    let ranges = latency.ranges.unwrap_or_default();
    let percentile = |value: Option<u64>, range: Option<PercentileRange>| {
        let end = |end: Option<u64>| end.map(|ns| ns as f64);
        Some(Figure {
            value: value? as f64,
            low: end(range.and_then(|range| range.low)),
            high: end(range.and_then(|range| range.high)),
            ops: latency.count,
        })
    };
    match threshold.statistic {
        Statistic::P50 => percentile(latency.p50, ranges.p50),
        Statistic::P99 => percentile(latency.p99, ranges.p99),
        Statistic::P999 => percentile(latency.p999, ranges.p999),
        Statistic::Max => percentile(latency.max, None),
        Statistic::Mean => of_rounds(kind, latency.mean?, rdsk_stats::Histogram::mean),
        Statistic::ShareOver => {
            let over_ns = threshold.over_ns?;
            let share = |all: &Histogram| {
                let count = all.count();
                (count > 0).then(|| 1.0 - metrics::ratio(all.count_up_to(over_ns), count))
            };
            let all = Histogram::from_base64(latency.histogram.as_deref()?).ok()?;
            of_rounds(kind, share(&all)?, share)
        }
        Statistic::OpsPerS => rate(cell, result, kind.ops, kind.ops),
        Statistic::BytesPerS => rate(cell, result, kind.bytes, kind.ops),
    }
}

/// A figure of all latencies with the interval that those of the rounds give.
fn of_rounds(kind: &KindResult, value: f64, each: impl Fn(&Histogram) -> Option<f64>) -> Option<Figure> {
    let rounds = kind.latency_ns.rounds.iter();
    let samples: Vec<f64> =
        rounds.filter_map(|round| each(&Histogram::from_base64(&round.histogram).ok()?)).collect();
    let half = mean_interval(&samples).map(|interval| interval.high - interval.mean);
    let end = |sign: f64| half.map(|half| (value + sign * half).max(0.0));
    Some(Figure { value, low: end(-1.0), high: end(1.0), ops: kind.ops })
}

/// A rate of the job with the relative interval of the cell's, of which it is a part.
fn rate(cell: &CellRecord, result: &JobResult, amount: u64, ops: u64) -> Option<Figure> {
    let value = amount as f64 / metrics::seconds(result.elapsed_ns.max(1));
    let estimate = cell.result.bytes_per_s.filter(|estimate| estimate.mean > 0.0);
    let end = |end: fn(&rdsk_model::Estimate) -> Option<f64>| {
        let estimate = estimate?;
        Some(value * end(&estimate)? / estimate.mean)
    };
    Some(Figure { value, low: end(|estimate| estimate.low), high: end(|estimate| estimate.high), ops })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p99(at_most: f64) -> Threshold {
        Threshold {
            job: "wal".into(),
            of: Subject::Flushes,
            statistic: Statistic::P99,
            at_most: Some(at_most),
            at_least: None,
            over_ns: None,
            disputed_until: None,
        }
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
        let longest = Threshold { statistic: Statistic::Max, ..p99(10.0) };
        let seen = Figure { low: None, high: None, ..between(0.0, 10.0, 0.0) };
        assert_eq!(by_figure(&longest, &seen), Outcome::Pass);
        assert_eq!(by_figure(&longest, &Figure { value: 10.1, ..seen }), Outcome::Fail);
    }

    #[test]
    fn more_time_settles_what_is_not_too_close() {
        // Half of the interval above the value is 0.8, and the mark is 0.4 away: four times the time.
        assert_eq!(longer(&p99(10.0), &between(9.0, 9.6, 10.4)), Some(4.0));
        assert_eq!(longer(&p99(10.0), &between(9.0, 9.999, 10.4)), None, "too close");
        assert_eq!(outcome(&[]), Outcome::Unsure);
    }
}
