//! `slow-start`: the first part of a cell was slower than the steady rest.

use super::Rule;
use super::common::{cells, cite, cite_all, how_many, ids};
use rdsk_analysis::trend::{Trend, trend};
use rdsk_analysis::words;
use rdsk_model::{Confidence, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "slow-start", check };

fn check(record: &Record) -> Vec<Finding> {
    let cells = cells(record, |cell| matches!(trend(cell), Some(Trend::SlowStart { .. })));
    if cells.is_empty() {
        return Vec::new();
    }
    let evidence = cite_all(&cells, |cell| match trend(cell) {
        Some(Trend::SlowStart { first, rest }) => cite(
            cell,
            "first quarter of the windows",
            format_args!("{}, the rest = {}", words::rate(first.mean), words::rate(rest.mean)),
        ),
        _ => cite(cell, "windows", "steady"),
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("slower at the start: {}", how_many(&cells)),
        text: "The first quarter of the measured windows was slower than the rest, which held steady: a device that wakes \
               up, or a cache that fills, looks like this."
            .into(),
        evidence,
        confidence: Confidence::Measured,
        advice: Some("give more --budget, so that the start weighs less in the mean".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::rippled;

    #[test]
    fn fires_on_a_slow_first_quarter_only() {
        let finding = fires(RULE, &rippled(&[[4.0; 25].as_slice(), &[10.0; 75]].concat()));
        assert!(
            finding.evidence[0].contains("w: first quarter of the windows = 4"),
            "{:?}",
            finding.evidence
        );
        silent(RULE, &rippled(&[10.0; 100]));
        silent(RULE, &rippled(&[[10.0; 50].as_slice(), &[6.0; 50]].concat()));
    }
}
