//! `no-stripe-seen`: the kernel describes an array without stripes, or neither the size nor the offset of a request changes its cost as a
//! stripe would, which does not say that there is none.

use super::prelude::*;
use super::stripe_geometry::confidence;
use rdsk_analysis::stripe::StripeResult;

pub(super) const RULE: Rule = Rule::new("no-stripe-seen", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let readings = stripes(analysis).into_iter();
    let blind = readings.filter(|(_, reading)| reading.chunk().is_none() && reading.is_conclusive());
    blind.map(|(cell, reading)| finding(cell, reading)).collect()
}

fn finding(cell: &CellRecord, reading: &StripeResult) -> Finding {
    let mut text = words::sentence(&reading.evidence.join("; "));
    if reading.described.is_none() {
        text.push_str(&format!(
            " Full stripes of up to {} would show in requests of up to {}.",
            words::bytes(reading.largest_bytes / 2),
            words::bytes(reading.largest_bytes)
        ));
    }
    let sure = rdsk_units::percent(reading.none_confidence);
    RULE.finding(format!("no stripe found ({sure} confidence)"), text)
        .evidence([
            cite(cell, "requests", reading.requests),
            cite(cell, "confidence that there is none", sure),
        ])
        .confidence(confidence(reading))
        .cells([cell])
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::{array, described, single, words};
    use rdsk_model::Confidence;

    #[test]
    fn fires_on_one_device_and_not_on_an_array() {
        let finding = fires(RULE, &single());
        assert!(finding.text.contains("512 KiB"), "{}", finding.text);
        silent(RULE, &array(64 << 10, 3));
    }

    #[test]
    fn a_mirror_has_none_and_unlike_arrays_below_leave_it_open() {
        let mirror = fires(RULE, &described(words("md0", "raid1", None), &[]));
        assert_eq!(
            (mirror.title.as_str(), mirror.confidence),
            ("no stripe found (100% confidence)", Confidence::Measured)
        );
        assert!(mirror.text.starts_with("md0 is RAID 1, 4 copies, 4 members, as md says"), "{}", mirror.text);
        let below = [64 << 10, 512 << 10].map(|chunk| words("md1", "raid0", Some(chunk)));
        let row = fires(RULE, &described(words("dm-0", "linear", None), &below));
        assert_eq!(
            (row.title.as_str(), row.confidence),
            ("no stripe found (50.0% confidence)", Confidence::Inferred)
        );
        assert!(row.text.contains("md1 is RAID 0, 4 members, chunk 64 KiB"), "{}", row.text);
    }
}
