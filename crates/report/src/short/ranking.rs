//! Which findings are bullets of the short page, and in which order: what is not what it seems first, then what stops or falls, then
//! data at risk, then changes over time, then shape. It follows from the codes and the effects of the findings alone;
//! docs/findings/README.md explains it to users.

use rdsk_analysis::lasting::lasting_of;
use rdsk_model::{CellRecord, Experiment, Finding, Record, Severity, Stake};
use std::cmp::Ordering;

/// An effect below this factor is no bullet.
const MIN_FACTOR: f64 = 1.15;

/// What a finding is about, in the order of the bullets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    /// The figure is not the device's: memory, a limit, a hole, a busy machine, other I/O.
    NotWhatItSeems,
    /// The device stops for a while, or its rate does not last.
    StopsOrFalls,
    /// Writes that were acknowledged can be lost.
    DataAtRisk,
    /// The rate changes over time.
    OverTime,
    /// Depth, streams, block size, position.
    Shape,
}

/// Codes whose topic is another one than their stake says.
const TOPICS: &[(&str, Topic)] = &[
    ("stalls", Topic::StopsOrFalls),
    ("burst-writes", Topic::StopsOrFalls),
    ("write-cache-full", Topic::StopsOrFalls),
    ("slows-down", Topic::StopsOrFalls),
    ("first-access", Topic::StopsOrFalls),
    ("durable-not-flushed", Topic::NotWhatItSeems),
    ("drift", Topic::OverTime),
    ("passes-differ", Topic::OverTime),
    ("fast-start", Topic::OverTime),
    ("slow-start", Topic::OverTime),
    ("latency-bands", Topic::OverTime),
    ("few-samples", Topic::StopsOrFalls),
];

/// What holds for every system of the kind, what a column or a mark of the page says already, and what a topic answers.
const NO_BULLETS: &[&str] = &[
    "cached-write", "contiguous-memory", "deep-write-behind", "device-saturated", "direct-vs-buffered",
    "dontcache-saves", "larger-blocks-help", "misaligned-write", "page-write-no-read",
    "queue-depth-not-reached", "read-ahead-helped", "read-modify-write", "requests-merged", "requests-split",
    "scale-knee", "single-writer-depth", "speed-by-position",
];

/// A finding that is said by another one, where that is there.
const SAID_BY: &[(&str, &str)] =
    &[("write-cache-full", "burst-writes"), ("fast-start", "burst-writes"), ("slows-down", "burst-writes")];

/// The findings that are bullets, the weightiest first. The others are answers to a question of their own, or remarks without a
/// figure.
pub(crate) fn ranked(record: &Record) -> Vec<&Finding> {
    let mut bullets: Vec<&Finding> =
        record.findings.iter().filter(|finding| is_bullet(record, finding)).collect();
    // A stable sort keeps the order of the Record among equals.
    bullets.sort_by(|left, right| by_weight(left, right));
    bullets
}

fn is_bullet(record: &Record, finding: &Finding) -> bool {
    let code = finding.code.as_str();
    let has = |other: &str| record.findings.iter().any(|finding| finding.code == other);
    let is_said = SAID_BY.iter().any(|(said, by)| *said == code && has(by));
    let is_small = factor(finding).is_some_and(|factor| factor < MIN_FACTOR) && code != "stalls";
    let is_nothing = match code {
        "few-samples" => !has_unstable_headline(record, finding),
        "durable-write-cost" => finding.effect.is_none(),
        // What all buffered writes do is news of a headline that was to be of the device.
        "buffered-write-in-memory" => !is_of_headline(record, finding),
        _ => false,
    };
    !(is_nothing
        || NO_BULLETS.contains(&code)
        || is_said
        || is_small
        || is_answer(finding)
        || is_remark(finding))
}

/// Whether a figure of the headline has so wide a margin that the page gives none, and neither a burst nor a stall is why.
fn has_unstable_headline(record: &Record, finding: &Finding) -> bool {
    let mut headline = headline_cells(record, finding);
    let is_burst = |cell| lasting_of(record, cell).is_some_and(|lasting| lasting.is_burst);
    let has_stalls =
        |cell: &CellRecord| cell.result.stalls.as_ref().is_some_and(|stalls| !stalls.seen.is_empty());
    headline.any(|cell| crate::cells::is_unstable(cell) && !is_burst(cell) && !has_stalls(cell))
}

fn is_of_headline(record: &Record, finding: &Finding) -> bool {
    headline_cells(record, finding).next().is_some()
}

fn headline_cells<'a>(record: &'a Record, finding: &Finding) -> impl Iterator<Item = &'a CellRecord> {
    let cells = record.cells.iter().filter(|cell| finding.cells.contains(&cell.id));
    cells.filter(|cell| cell.experiment == Experiment::Headline)
}

/// Whether the finding is the answer of its experiment, which the page gives elsewhere.
pub(super) fn is_answer(finding: &Finding) -> bool {
    let is_of_paths = matches!(finding.experiment, Some(Experiment::Paths | Experiment::Stream));
    is_of_paths && finding.effect.is_none()
}

fn is_remark(finding: &Finding) -> bool {
    finding.severity == Severity::Remark && finding.effect.is_none()
}

fn topic(finding: &Finding) -> Topic {
    let by_stake = match finding.stake() {
        Stake::Figure => Topic::NotWhatItSeems,
        Stake::Data => Topic::DataAtRisk,
        Stake::Cost => Topic::Shape,
    };
    TOPICS.iter().find(|(code, _)| *code == finding.code).map_or(by_stake, |(_, topic)| *topic)
}

fn by_weight(left: &Finding, right: &Finding) -> Ordering {
    let is_stall = |finding: &Finding| finding.code == "stalls";
    topic(left)
        .cmp(&topic(right))
        .then(is_stall(right).cmp(&is_stall(left)))
        .then(weight(right).total_cmp(&weight(left)))
        // Of two reasons why figures are not the device's, the one of more of them.
        .then(foreign_tests(right).cmp(&foreign_tests(left)))
}

/// How far off something is. A figure that is not the device's at all is off by any factor; other findings without a factor
/// come after those that have one.
fn weight(finding: &Finding) -> f64 {
    factor(finding).unwrap_or(if is_foreign(finding) { f64::INFINITY } else { 1.0 })
}

fn is_foreign(finding: &Finding) -> bool {
    finding.stake() == Stake::Figure && finding.severity == Severity::Invalid
}

/// How many tests have figures that are not the device's.
fn foreign_tests(finding: &Finding) -> usize {
    if is_foreign(finding) { finding.cells.len() } else { 0 }
}

fn factor(finding: &Finding) -> Option<f64> {
    finding.effect.as_ref().and_then(|effect| effect.factor).filter(|factor| factor.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;
    use rdsk_model::Effect;

    fn finding(code: &str, severity: Severity, effect: Option<(Stake, Option<f64>)>) -> Finding {
        let made = fixtures::run().findings.into_iter().next().expect("the run has findings");
        let effect =
            effect.map(|(stake, factor)| Effect { stake, factor, low: None, high: None, text: "x".into() });
        Finding { code: code.into(), severity, effect, experiment: None, ..made }
    }

    #[test]
    fn what_decides_comes_first_and_what_holds_everywhere_is_no_bullet() {
        let mut record = fixtures::run();
        let cost = |factor| Some((Stake::Cost, factor));
        record.findings = vec![
            finding("remark", Severity::Remark, None),
            finding("small", Severity::Cost, cost(Some(1.1))),
            finding("none", Severity::Cause, None),
            finding("not-finite", Severity::Cause, cost(Some(f64::NAN))),
            finding("large", Severity::Remark, cost(Some(30.0))),
            finding("data", Severity::Remark, Some((Stake::Data, None))),
            finding("off", Severity::Uncertain, Some((Stake::Figure, Some(1.2)))),
            finding("far-off", Severity::Cause, Some((Stake::Figure, Some(3.0)))),
            finding("stalls", Severity::Uncertain, Some((Stake::Figure, Some(1.07)))),
            finding("burst-writes", Severity::Uncertain, Some((Stake::Figure, Some(9.0)))),
            finding("fast-start", Severity::Cause, Some((Stake::Figure, Some(9.0)))),
            finding("drift", Severity::Uncertain, Some((Stake::Figure, Some(5.0)))),
            finding("cached-write", Severity::Uncertain, Some((Stake::Figure, Some(50.0)))),
            finding("foreign", Severity::Invalid, None),
        ];
        let codes: Vec<&str> = ranked(&record).into_iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(
            codes,
            [
                "foreign", "far-off", "off", "stalls", "burst-writes", "data", "drift", "large", "none",
                "not-finite"
            ]
        );
    }

    #[test]
    fn what_limits_all_tests_comes_before_what_answers_a_single_one() {
        let mut record = fixtures::run();
        let of = |code: &str, tests: usize| {
            let cells = (0..tests).map(|test| format!("headline/{test}")).collect();
            Finding { cells, ..finding(code, Severity::Invalid, None) }
        };
        record.findings = vec![of("loop-backing-cached", 1), of("throttled", 3)];
        let codes: Vec<&str> = ranked(&record).into_iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["throttled", "loop-backing-cached"]);
    }

    #[test]
    fn an_older_record_is_ranked_by_severity() {
        let mut record = fixtures::run();
        record.findings = vec![
            finding("cost", Severity::Cost, None),
            finding("unsure", Severity::Uncertain, None),
            finding("invalid", Severity::Invalid, None),
        ];
        let codes: Vec<&str> = ranked(&record).into_iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["invalid", "unsure", "cost"]);
    }
}
