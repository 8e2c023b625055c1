//! `passes-differ`: the same positions took longer in one pass than in another. It cannot tell what changed.

use super::common::{cite, zones};
use super::{Needs, Rule};
use rdsk_analysis::Analysis;
use rdsk_analysis::zones::Drift;
use rdsk_model::{CellRecord, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("passes-differ", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let drifts: Vec<(&CellRecord, Drift)> =
        zones(analysis).into_iter().filter_map(|(cell, zones)| Some((cell, zones.drift?))).collect();
    let most = drifts.iter().max_by(|left, right| size(&left.1).total_cmp(&size(&right.1)));
    let Some((cell, drift)) = most else { return Vec::new() };
    vec![RULE
            .finding(
                format!("passes over the same positions differ by {}", rdsk_units::percent(size(drift))),
                format!(
                    "Pass {} of {} took {} longer than the median at the same positions, pass {} took {} less. Heat, a cache that \
                     filled or emptied, or other I/O on the device changed between them.",
                    drift.slowest + 1,
                    cell.id,
                    rdsk_units::percent(drift.slowest_by),
                    drift.fastest + 1,
                    rdsk_units::percent(-drift.fastest_by),
                ),
            )
            .evidence(drifts.iter().take(6).map(|(cell, drift)| cited(cell, drift)))
            .advice("repeat with more passes (--runs) and check whether the later ones agree")
            .cells(drifts.iter().map(|(cell, _)| *cell))]
}

fn size(drift: &Drift) -> f64 {
    (1.0 + drift.slowest_by) / (1.0 + drift.fastest_by) - 1.0
}

fn cited(cell: &CellRecord, drift: &Drift) -> String {
    let passes = format_args!(
        "+{}, pass {} = -{} (p = {:.0e})",
        rdsk_units::percent(drift.slowest_by),
        drift.fastest + 1,
        rdsk_units::percent(-drift.fastest_by),
        drift.p_value
    );
    cite(cell, &format!("pass {}", drift.slowest + 1), passes)
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::zones::made;

    #[test]
    fn fires_on_a_slow_pass_and_not_on_equal_ones() {
        let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
        let slow = |pass: u32| if pass == 1 { 2_000_000 } else { 0 };
        let finding =
            fires(RULE, &made(60, 4, |place, pass, _| 10_000_000 + wobble(place, pass) + slow(pass)).0);
        assert!(finding.text.starts_with("Pass 2 of "), "{}", finding.text);
        silent(RULE, &made(60, 4, |place, pass, _| 10_000_000 + wobble(place, pass)).0);
    }
}
