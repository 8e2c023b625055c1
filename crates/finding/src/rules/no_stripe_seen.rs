//! `no-stripe-seen`: neither the size nor the offset of a request changes its cost as a stripe would. It does not say that
//! there is none.

use super::common::{cells, cite};
use super::{Needs, Rule};
use rdsk_analysis::stripe::MemberLayout;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{Confidence, Experiment, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("no-stripe-seen", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let blind =
        cells(analysis, |cell| cell.experiment == Experiment::Stripe).into_iter().filter_map(|cell| {
            let reading = analysis.stripe(cell)?;
            if reading.chunk().is_some() || !reading.is_conclusive() {
                return None;
            }
            let counted =
                reading.counted.iter().flat_map(|layout| layout.evidence.iter().chain(&layout.doubts));
            let timed = reading.answer.evidence.iter().filter(|_| reading.timed > 0);
            let reasons: Vec<String> = counted.chain(timed).cloned().collect();
            let sure = rdsk_units::percent(reading.none_confidence());
            let reach = if reading.timed > 0 {
                format!(
                    " Full stripes of up to {} would show in requests of up to {}.",
                    words::bytes(reading.largest_bytes / 2),
                    words::bytes(reading.largest_bytes)
                )
            } else {
                String::new()
            };
            Some(
                RULE.finding(
                    format!("no stripe was seen ({sure} confidence)"),
                    format!("{}{reach}", words::sentence(&reasons.join("; "))),
                )
                .evidence([
                    cite(cell, "requests", reading.requests),
                    cite(cell, "confidence that there is none", sure),
                ])
                .confidence(if reading.counted.as_ref().is_some_and(MemberLayout::is_sure) {
                    Confidence::Measured
                } else {
                    Confidence::Inferred
                })
                .cells([cell]),
            )
        });
    blind.collect()
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::{array, single};

    #[test]
    fn fires_on_one_device_and_not_on_an_array() {
        let finding = fires(RULE, &single());
        assert!(finding.text.contains("512 KiB"), "{}", finding.text);
        silent(RULE, &array(64 << 10, 3));
    }
}
