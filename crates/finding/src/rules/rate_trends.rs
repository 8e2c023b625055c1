//! `drift`: the second half of a cell ran at another rate than the first; a sudden fall is left to `slows-down` and
//! `write-cache-full`. `slow-start`: the first part was slower than the steady rest.

use super::common::{cells, cite};
use super::{Needs, Rule};
use rdsk_analysis::trend::Trend;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Severity};

pub(super) const DRIFT: Rule = Rule::new("drift", Severity::Uncertain, Needs::OwnTimes, |analysis| {
    let cells = cells(analysis, |cell| {
        matches!(analysis.trend(cell), Some(Trend::Drift { .. })) && analysis.level_shifts(cell).is_empty()
    });
    let text = "Every part of the second half is faster, or every part slower, than the first half, and the means differ by \
                more than 20 %. Heat, a full cache, other I/O on the device or another part of the disk can cause this.";
    let advice = "run longer with --budget and look at the rate over time; quote the rate of the last part";
    DRIFT.about_any(&cells, "the rate changed over time", text, |cell| parts(analysis, cell), advice)
});

pub(super) const SLOW_START: Rule = Rule::new("slow-start", Severity::Cause, Needs::OwnTimes, |analysis| {
    let cells = cells(analysis, |cell| matches!(analysis.trend(cell), Some(Trend::LowStart { .. })));
    let text = "The first quarter of the measured windows was slower than the rest, which held steady: a device that wakes \
                up or a cache that fills looks like this.";
    let advice = "give more --budget, so that the start weighs less in the mean";
    SLOW_START.about_any(&cells, "slower at the start", text, |cell| parts(analysis, cell), advice)
});

/// The rates of the two parts that differ.
fn parts(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let (first, early, second, late) = match analysis.trend(cell) {
        Some(Trend::Drift { first, second }) => ("first half", first, "second half", second),
        Some(Trend::LowStart { first, rest }) => ("first quarter", first, "the rest", rest),
        None => return cite(cell, "windows", "steady"),
    };
    let rates = format!("{}, {second} = {}", words::rate(early.mean), words::rate(late.mean));
    cite(cell, &format!("{first} of the windows"), rates)
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::rippled;

    #[test]
    fn fires_on_halves_that_differ_without_a_sudden_fall_only() {
        let rises = fires(DRIFT, &rippled(&[[6.0; 50].as_slice(), &[10.0; 50]].concat()));
        assert!(rises.evidence[0].contains("second half = 100"), "{:?}", rises.evidence);
        let slope: Vec<f64> = (0..100).map(|index| 10.0 - f64::from(index) * 0.06).collect();
        let sinks = fires(DRIFT, &rippled(&slope));
        assert!(sinks.evidence[0].contains("second half = 55"), "{:?}", sinks.evidence);
        silent(DRIFT, &rippled(&[[10.0; 50].as_slice(), &[6.0; 50]].concat()));
        silent(DRIFT, &rippled(&[10.0; 100]));
        silent(DRIFT, &rippled(&[[4.0; 25].as_slice(), &[10.0; 75]].concat()));
    }

    #[test]
    fn fires_on_a_slow_first_quarter_only() {
        let finding = fires(SLOW_START, &rippled(&[[4.0; 25].as_slice(), &[10.0; 75]].concat()));
        assert!(
            finding.evidence[0].contains("w: first quarter of the windows = 4"),
            "{:?}",
            finding.evidence
        );
        silent(SLOW_START, &rippled(&[10.0; 100]));
        silent(SLOW_START, &rippled(&[[10.0; 50].as_slice(), &[6.0; 50]].concat()));
    }
}
