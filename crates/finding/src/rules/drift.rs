//! `drift`: the second half of a cell ran at another rate than the first. A sudden fall is left to `slows-down` and
//! `write-cache-full`.

use super::common::{cells, cite};
use super::{Needs, Rule};
use rdsk_analysis::Analysis;
use rdsk_analysis::trend::Trend;
use rdsk_analysis::words;
use rdsk_model::{CellRecord, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("drift", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        matches!(analysis.trend(cell), Some(Trend::Drift { .. })) && analysis.level_shifts(cell).is_empty()
    });
    if cells.is_empty() {
        return Vec::new();
    }
    let cited = |cell: &CellRecord| match analysis.trend(cell) {
        Some(Trend::Drift { first, second }) => cite(
            cell,
            "first half of the windows",
            format_args!("{}, second half = {}", words::rate(first.mean), words::rate(second.mean)),
        ),
        _ => cite(cell, "windows", "steady"),
    };
    let text = "Every part of the second half is faster, or every part slower, than the first half, and the means differ by \
                more than 20 %. Heat, a full cache, other I/O on the device or another part of the disk can cause this.";
    vec![
        RULE.about(&cells, "the rate changed over time", text, cited).advice(
            "run longer with --budget and look at the rate over time; quote the rate of the last part",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::rippled;

    #[test]
    fn fires_on_halves_that_differ_without_a_sudden_fall_only() {
        let rises = fires(RULE, &rippled(&[[6.0; 50].as_slice(), &[10.0; 50]].concat()));
        assert!(rises.evidence[0].contains("second half = 100"), "{:?}", rises.evidence);
        let slope: Vec<f64> = (0..100).map(|index| 10.0 - f64::from(index) * 0.06).collect();
        let sinks = fires(RULE, &rippled(&slope));
        assert!(sinks.evidence[0].contains("second half = 55"), "{:?}", sinks.evidence);
        silent(RULE, &rippled(&[[10.0; 50].as_slice(), &[6.0; 50]].concat()));
        silent(RULE, &rippled(&[10.0; 100]));
        silent(RULE, &rippled(&[[4.0; 25].as_slice(), &[10.0; 75]].concat()));
    }
}
