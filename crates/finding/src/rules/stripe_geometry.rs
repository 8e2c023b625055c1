//! `stripe-geometry`: the target stores data in chunks on several members, and the size of a full stripe. It is silent when
//! neither latencies nor counters show one.

use super::common::{cite, stripes};
use super::{Needs, Rule};
use rdsk_analysis::stripe::{MemberLayout, SURE, StripeResult, exact};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Confidence, Finding, Severity};
use rdsk_units::percent;

pub(super) const RULE: Rule = Rule::new("stripe-geometry", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    stripes(analysis).into_iter().filter_map(|(cell, result)| finding(cell, result)).collect()
}

fn finding(cell: &CellRecord, reading: &StripeResult) -> Option<Finding> {
    let (chunk_bytes, chunk_confidence) = reading.chunk().filter(|_| reading.is_conclusive())?;
    let chunk = exact(chunk_bytes);
    let sure = reading.stripe().filter(|&(_, confidence)| confidence >= SURE);
    let title = match sure {
        Some((stripe_bytes, _)) => format!(
            "a full stripe is {}: {} × {chunk}{}",
            exact(stripe_bytes),
            stripe_bytes / chunk_bytes,
            match reading.parity() {
                Some(true) => ", with parity",
                Some(false) => ", without parity",
                None => "",
            }
        ),
        None if chunk_confidence >= SURE => format!("chunks of {chunk}; the full stripe is not certain"),
        None => format!("perhaps chunks of {chunk}; nothing is certain"),
    };
    let counted = reading.counted.as_ref();
    // Counted evidence needs no inference beside it; the page has both.
    let reasons: Vec<String> = counted.map_or_else(
        || reading.answer.evidence.clone(),
        |layout| layout.evidence.iter().chain(&layout.doubts).cloned().collect(),
    );
    let mut evidence = vec![cite(cell, "chunk", format_args!("{chunk} ({})", percent(chunk_confidence)))];
    if let Some((stripe_bytes, confidence)) = sure {
        evidence.push(cite(
            cell,
            "full stripe",
            format_args!("{} ({})", exact(stripe_bytes), percent(confidence)),
        ));
    }
    if let Some(layout) = counted {
        let parity = layout.parity_members.map(|members| format!(", {members} of each stripe hold parity"));
        evidence.push(cite(
            cell,
            "members",
            format_args!("{}{}", layout.members, parity.unwrap_or_default()),
        ));
        evidence.extend(layout.level.map(|level| cite(cell, "level", level.name())));
        evidence.extend(
            layout.declared.as_ref().map(|declared| cite(cell, "as the kernel reports it", &declared.text)),
        );
    }
    Some(
        RULE.finding(title, words::sentence(&reasons.join("; ")))
            .evidence(evidence)
            .confidence(confidence(reading))
            .advice(reading.advice())
            .cells([cell]),
    )
}

/// Counted beyond doubt, or inferred.
pub(super) fn confidence(reading: &StripeResult) -> Confidence {
    let is_counted = reading.counted.as_ref().is_some_and(MemberLayout::is_sure);
    if is_counted { Confidence::Measured } else { Confidence::Inferred }
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::{array, counted_as, single};
    use rdsk_model::{ArrayFacts, Record, VerdictCode};

    #[test]
    fn fires_on_an_array_and_not_on_one_device() {
        let finding = fires(RULE, &array(64 << 10, 3));
        assert_eq!(finding.title, "a full stripe is 192 KiB: 3 × 64 KiB, with parity");
        assert!(finding.advice.is_some_and(|advice| advice.contains("192 KiB")));
        silent(RULE, &single());
    }

    #[test]
    fn a_stripe_over_others_is_not_said_to_be_without_parity() {
        let facts = |device: &str, level: &str, chunk_bytes: u64| ArrayFacts {
            device: device.into(),
            source: "md".into(),
            level: Some(level.into()),
            chunk_bytes: Some(chunk_bytes),
            ..ArrayFacts::default()
        };
        let over = |below: &str| {
            let mut record =
                counted_as(|offset| vec![offset / (64 << 10) % 2 == 0, offset / (64 << 10) % 2 == 1]);
            let device = record.targets[0].device.as_mut().unwrap();
            device.array = Some(facts("md0", "raid0", 64 << 10));
            device.arrays_below = ["md1", "md2"].map(|name| facts(name, below, 512 << 10)).to_vec();
            fires(RULE, &record)
        };
        let sure = over("raid1");
        assert_eq!(
            (sure.title.as_str(), sure.confidence),
            ("a full stripe is 128 KiB: 2 × 64 KiB, without parity", Confidence::Measured)
        );
        let finding = over("raid5");
        assert_eq!(finding.title, "perhaps chunks of 64 KiB; nothing is certain");
        assert_eq!(finding.confidence, Confidence::Inferred);
        let why = "md1 and md2 below are raid5 with chunks of 512 KiB, which these counts do not show";
        assert!(finding.text.contains(why), "{}", finding.text);
        assert!(finding.evidence.iter().all(|line| !line.contains("parity")), "{:?}", finding.evidence);
    }

    #[test]
    fn memory_and_too_few_requests_say_nothing_of_stripes() {
        let silent_on = |record: &Record| {
            assert_eq!(
                crate::findings(&Analysis::of(record))
                    .iter()
                    .filter(|one| one.code.contains("stripe"))
                    .count(),
                0
            );
        };
        for code in [VerdictCode::Hole, VerdictCode::PageCache] {
            let mut record = array(64 << 10, 3);
            record.cells[0].verdict.as_mut().unwrap().code = code;
            silent_on(&record);
        }
        let mut record = array(64 << 10, 3);
        let run = &mut record.cells[0].result.points[0];
        run.order.truncate(100);
        run.latency_ns.truncate(100);
        silent_on(&record);
    }
}
