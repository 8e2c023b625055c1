//! `speed-by-position`: the rate changes along the target. It is silent on a target that is equally fast everywhere.

use super::common::cite;
use super::{Needs, Rule};
use rdsk_analysis::zones::{TIGHT, Zones};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("speed-by-position", Severity::Cause, Needs::OwnTimes, check);

/// Minimum ratio between the fastest and the slowest zone.
const MIN_RATIO: f64 = 1.05;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let read: Vec<(&CellRecord, &Zones)> = super::common::zones(analysis)
        .into_iter()
        .filter(|(_, zones)| zones.zones.len() > 1 && ratio(zones) >= MIN_RATIO)
        // With small blocks on a rotational disk, seeks differ more than the tracks do.
        .filter(|(cell, zones)| is_steady(zones) || !rdsk_analysis::zones::rotates(analysis, cell))
        .collect();
    // The block size with the least scatter shows it best; that of a single pass is unknown and comes last.
    let scatter = |zones: &Zones| zones.scatter.unwrap_or(f64::INFINITY);
    let best = read.iter().min_by(|left, right| scatter(left.1).total_cmp(&scatter(right.1)));
    let Some((cell, zones)) = best else { return Vec::new() };
    let (fast, slow) = (extreme(zones, f64::total_cmp), extreme(zones, |a, b| b.total_cmp(a)));
    let text = format!(
        "The positions fall into {} zones whose rates step by at least 1 %: from {} at {} to {} at {}. {}",
        zones.zones.len(),
        words::rate(fast.bytes_per_s),
        words::bytes(fast.begin_bytes),
        words::rate(slow.bytes_per_s),
        words::bytes(slow.begin_bytes),
        if rdsk_analysis::zones::rotates(analysis, cell) {
            "A rotational disk has more sectors on its outer tracks, and every track takes the same time."
        } else {
            "The device does not report itself as rotational; caches, the members of an array or another medium can cause this \
             too."
        }
    );
    vec![
        RULE.finding(
            format!("speed depends on the position: {} between its zones", words::times(ratio(zones))),
            text,
        )
        .evidence(read.iter().take(4).map(|(cell, zones)| cited(cell, zones)))
        .advice(match fast.first {
            0 => format!(
                "quote the rate with its position; put data that must be fast into the first {}",
                words::bytes(fast.end_bytes)
            ),
            _ => format!(
                "quote the rate with its position; put data that must be fast between {} and {}",
                words::bytes(fast.begin_bytes),
                words::bytes(fast.end_bytes)
            ),
        })
        .cells(read.iter().map(|(cell, _)| *cell)),
    ]
}

fn is_steady(zones: &Zones) -> bool {
    zones.scatter.is_none_or(|scatter| scatter <= TIGHT)
}

fn cited(cell: &CellRecord, zones: &Zones) -> String {
    let rate = |bytes_per_s: Option<f64>| bytes_per_s.map_or_else(|| "not visited".into(), words::rate);
    let outer_inner = format!(
        "{}, inner = {}, zones = {}",
        rate(zones.outer_bytes_per_s),
        rate(zones.inner_bytes_per_s),
        zones.zones.len()
    );
    cite(cell, "outer", outer_inner)
}

fn extreme(zones: &Zones, order: impl Fn(&f64, &f64) -> std::cmp::Ordering) -> &rdsk_analysis::zones::Zone {
    let by_rate = |left: &&rdsk_analysis::zones::Zone, right: &&rdsk_analysis::zones::Zone| {
        order(&left.bytes_per_s, &right.bytes_per_s)
    };
    zones.zones.iter().max_by(by_rate).unwrap_or(&zones.zones[0])
}

fn ratio(zones: &Zones) -> f64 {
    extreme(zones, f64::total_cmp).bytes_per_s / extreme(zones, |a, b| b.total_cmp(a)).bytes_per_s
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::zones::made;

    #[test]
    fn fires_where_the_rate_steps_and_not_where_it_is_the_same() {
        let steps = made(60, 3, |place, _, _| 10_000_000 + 5_000_000 * u64::from(place / 20));
        let finding = fires(RULE, &steps.0);
        assert!(finding.title.contains("2.00 ×"), "{}", finding.title);
        assert!(finding.text.contains("3 zones"), "{}", finding.text);
        silent(RULE, &made(60, 3, |place, pass, _| 10_000_000 + u64::from((place + pass) % 7) * 9_000).0);
    }
}
