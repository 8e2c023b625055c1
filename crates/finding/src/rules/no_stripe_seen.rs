//! `no-stripe-seen`: latency has no steps by size or offset as a stripe would cause. It does not say that there
//! is none.

use super::Rule;
use super::common::{cells, cite};
use rdsk_analysis::stripe::{MemberLayout, stripe};
use rdsk_analysis::words;
use rdsk_model::{Confidence, Experiment, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "no-stripe-seen", check };

fn check(record: &Record) -> Vec<Finding> {
    let blind = cells(record, |cell| cell.experiment == Experiment::Stripe).into_iter().filter_map(|cell| {
        let reading = stripe(record, cell)?;
        if reading.chunk().is_some() || !reading.is_conclusive() {
            return None;
        }
        let counted = reading.counted.iter().flat_map(|layout| layout.evidence.iter().chain(&layout.doubts));
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
        Some(Finding {
            code: RULE.code.into(),
            title: format!("no stripe was seen ({sure} sure that there is none to be seen)"),
            text: format!("{}{reach}", words::sentence(&reasons.join("; "))),
            evidence: vec![
                cite(cell, "requests", reading.requests),
                cite(cell, "confidence that there is none", sure),
            ],
            confidence: if reading.counted.as_ref().is_some_and(MemberLayout::is_sure) {
                Confidence::Measured
            } else {
                Confidence::Inferred
            },
            advice: None,
            cells: vec![cell.id.clone()],
        })
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
