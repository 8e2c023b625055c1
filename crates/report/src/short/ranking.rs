//! Which findings matter most. The order follows from data of the findings alone: first what is at stake, then by which
//! factor, then the order of the Record. docs/findings/README.md explains it to users.

use rdsk_model::{Experiment, Finding, Record, Severity, Stake};
use std::cmp::Ordering;

/// The findings that a list of what matters may show, the weightiest first. The others are answers to a question of their
/// own, or remarks without a figure.
pub(crate) fn ranked(record: &Record) -> Vec<&Finding> {
    let mut found: Vec<&Finding> =
        record.findings.iter().filter(|finding| !is_answer(finding) && !is_remark(finding)).collect();
    // A stable sort keeps the order of the Record among equals.
    found.sort_by(|one, other| by_weight(one, other));
    found
}

/// Whether the finding is the answer of its experiment, which the page gives elsewhere.
pub(super) fn is_answer(finding: &Finding) -> bool {
    let is_of_paths = matches!(finding.experiment, Some(Experiment::Paths | Experiment::Stream));
    is_of_paths && finding.effect.is_none()
}

fn is_remark(finding: &Finding) -> bool {
    finding.severity == Severity::Remark && finding.effect.is_none()
}

fn by_weight(one: &Finding, other: &Finding) -> Ordering {
    one.stake().cmp(&other.stake()).then(factor(other).total_cmp(&factor(one)))
}

/// How far off something is. A figure that is not the device's at all is off by any factor; other findings without a factor
/// come after those that have one.
fn factor(finding: &Finding) -> f64 {
    let known = finding.effect.as_ref().and_then(|effect| effect.factor).filter(|factor| factor.is_finite());
    let is_foreign = finding.stake() == Stake::Figure && finding.severity == Severity::Invalid;
    known.unwrap_or(if is_foreign { f64::INFINITY } else { 1.0 })
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
    fn wrong_figures_come_before_data_at_risk_and_large_factors_before_small_ones() {
        let mut record = fixtures::run();
        let cost = |factor| Some((Stake::Cost, factor));
        record.findings = vec![
            finding("remark", Severity::Remark, None),
            finding("small", Severity::Cost, cost(Some(1.2))),
            finding("none", Severity::Cause, None),
            finding("not-finite", Severity::Cause, cost(Some(f64::NAN))),
            finding("large", Severity::Remark, cost(Some(30.0))),
            finding("data", Severity::Remark, Some((Stake::Data, None))),
            finding("off", Severity::Uncertain, Some((Stake::Figure, Some(1.1)))),
            finding("far-off", Severity::Cause, Some((Stake::Figure, Some(3.0)))),
            finding("foreign", Severity::Invalid, None),
        ];
        let codes: Vec<&str> = ranked(&record).into_iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["foreign", "far-off", "off", "data", "large", "small", "none", "not-finite"]);
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
