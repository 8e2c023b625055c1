//! `slow-start`: the first part of a cell was slower than the steady rest.

use super::common::{cells, cite};
use super::{Needs, Rule};
use rdsk_analysis::trend::Trend;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("slow-start", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| matches!(analysis.trend(cell), Some(Trend::LowStart { .. })));
    if cells.is_empty() {
        return Vec::new();
    }
    let cited = |cell: &CellRecord| match analysis.trend(cell) {
        Some(Trend::LowStart { first, rest }) => cite(
            cell,
            "first quarter of the windows",
            format_args!("{}, the rest = {}", words::rate(first.mean), words::rate(rest.mean)),
        ),
        _ => cite(cell, "windows", "steady"),
    };
    let text = "The first quarter of the measured windows was slower than the rest, which held steady: a device that wakes \
                up or a cache that fills looks like this.";
    vec![
        RULE.about(&cells, "slower at the start", text, cited)
            .advice("give more --budget, so that the start weighs less in the mean"),
    ]
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
