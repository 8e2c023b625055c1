//! `no-stripe-seen`: neither the size nor the offset of a request changes its cost as a stripe would. It does not say that
//! there is none.

use super::common::{cite, stripes};
use super::stripe_geometry::confidence;
use super::{Needs, Rule};
use rdsk_analysis::stripe::StripeResult;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("no-stripe-seen", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let seen = stripes(analysis).into_iter();
    let blind = seen.filter(|(_, reading)| reading.chunk().is_none() && reading.is_conclusive());
    blind.map(|(cell, reading)| finding(cell, reading)).collect()
}

fn finding(cell: &CellRecord, reading: &StripeResult) -> Finding {
    let counted = reading.counted.iter().flat_map(|layout| layout.evidence.iter().chain(&layout.doubts));
    let timed = reading.answer.evidence.iter().filter(|_| reading.timed > 0);
    let reasons: Vec<String> = counted.chain(timed).cloned().collect();
    let mut text = words::sentence(&reasons.join("; "));
    if reading.timed > 0 {
        text.push_str(&format!(
            " Full stripes of up to {} would show in requests of up to {}.",
            words::bytes(reading.largest_bytes / 2),
            words::bytes(reading.largest_bytes)
        ));
    }
    let sure = rdsk_units::percent(reading.none_confidence());
    RULE.finding(format!("no stripe was seen ({sure} confidence)"), text)
        .evidence([
            cite(cell, "requests", reading.requests),
            cite(cell, "confidence that there is none", sure),
        ])
        .confidence(confidence(reading))
        .cells([cell])
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::{array, counted_as, single};
    use rdsk_model::{ArrayFacts, Confidence};

    #[test]
    fn fires_on_one_device_and_not_on_an_array() {
        let finding = fires(RULE, &single());
        assert!(finding.text.contains("512 KiB"), "{}", finding.text);
        silent(RULE, &array(64 << 10, 3));
    }

    #[test]
    fn a_cache_and_copies_of_arrays_leave_it_open() {
        let facts = |device: &str, level: &str, chunk_bytes: Option<u64>| ArrayFacts {
            device: device.into(),
            level: Some(level.into()),
            chunk_bytes,
            ..ArrayFacts::default()
        };
        let of = |level: &str, below: Vec<ArrayFacts>| {
            let mut record = counted_as(|_| vec![true, true]);
            let device = record.targets[0].device.as_mut().unwrap();
            (device.array, device.arrays_below) = (Some(facts("dm-0", level, None)), below);
            fires(RULE, &record)
        };
        let mirror = of("raid1", Vec::new());
        assert_eq!(
            (mirror.title.as_str(), mirror.confidence),
            ("no stripe was seen (100 % confidence)", Confidence::Measured)
        );
        for (finding, why) in [
            (of("cache", Vec::new()), "dm-0 is a cache and no array"),
            (
                of("raid1", vec![facts("md1", "raid0", Some(64 << 10))]),
                "md1 below is raid0 with chunks of 64 KiB",
            ),
        ] {
            assert_eq!(
                (finding.title.as_str(), finding.confidence),
                ("no stripe was seen (50.0 % confidence)", Confidence::Inferred)
            );
            assert!(finding.text.contains(why), "{}", finding.text);
        }
    }
}
