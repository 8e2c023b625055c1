//! `stripe-geometry`: the target stores data in chunks on several members, and the size of a full stripe. It is silent when
//! neither the kernel nor latencies name one.

use super::prelude::*;
use rdsk_analysis::stripe::{RequestCost, SURE, StripeResult, exact};

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
            match reading.parity {
                Some(true) => ", with parity",
                Some(false) => ", without parity",
                None => "",
            }
        ),
        None if chunk_confidence >= SURE => format!("chunks of {chunk}; the full stripe is not certain"),
        None => format!("perhaps chunks of {chunk}, not certain"),
    };
    let mut evidence = vec![cite(cell, "chunk", format_args!("{chunk} ({})", percent(chunk_confidence)))];
    if let Some((stripe_bytes, confidence)) = sure {
        evidence.push(cite(
            cell,
            "full stripe",
            format_args!("{} ({})", exact(stripe_bytes), percent(confidence)),
        ));
    }
    evidence.extend(reading.costs.iter().map(|cost| cost_line(cell, cost)));
    Some(
        RULE.finding(title, words::sentence(&reading.evidence.join("; ")))
            .evidence(evidence)
            .confidence(confidence(reading))
            .advice(reading.advice.as_str())
            .cells([cell]),
    )
}

/// What requests of one kind took, and what the disks below the array did for each.
fn cost_line(cell: &CellRecord, cost: &RequestCost) -> String {
    let took = cost.median_ns.map_or_else(|| "no median".to_owned(), words::nanos);
    let disks = cost.disks.map(|disks| {
        let bytes = |bytes: f64| words::bytes(metrics::whole(bytes));
        format!(
            ", its disks read {} and wrote {} for each",
            bytes(disks.read_bytes),
            bytes(disks.write_bytes)
        )
    });
    cite(cell, &cost.name(), format_args!("{took}{}", disks.unwrap_or_default()))
}

/// Said by the kernel, or inferred.
pub(super) fn confidence(reading: &StripeResult) -> Confidence {
    let is_said = reading.described.as_ref().is_some_and(|described| !described.has_hidden_stripes());
    if is_said { Confidence::Measured } else { Confidence::Inferred }
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::{array, described, single, words};
    use rdsk_model::{Record, VerdictCode};

    #[test]
    fn fires_on_an_array_and_not_on_one_device() {
        let finding = fires(RULE, &array(64 << 10, 3));
        assert_eq!(finding.title, "a full stripe is 192 KiB: 3 × 64 KiB, with parity");
        assert!(finding.advice.is_some_and(|advice| advice.contains("192 KiB")));
        silent(RULE, &single());
    }

    #[test]
    fn the_kernels_words_are_no_inference_and_costs_their_evidence() {
        let finding = fires(RULE, &described(words("md0", "raid5", Some(64 << 10)), &[]));
        assert_eq!(
            (finding.title.as_str(), finding.confidence),
            ("a full stripe is 192 KiB: 3 × 64 KiB, with parity", Confidence::Measured)
        );
        let cost = finding.evidence.iter().find(|line| line.contains("single chunks")).unwrap();
        assert!(cost.contains("its disks read 128 KiB and wrote 128 KiB for each"), "{cost}");
        assert!(finding.text.contains("RAID 5, left-symmetric, 4 members"), "{}", finding.text);
    }

    #[test]
    fn a_stripe_over_others_is_not_said_to_be_without_parity() {
        let over = |below: &str| {
            let below = ["md1", "md2"].map(|name| words(name, below, Some(512 << 10)));
            fires(RULE, &described(words("md0", "raid0", Some(64 << 10)), &below))
        };
        assert_eq!(over("raid1").title, "a full stripe is 256 KiB: 4 × 64 KiB, without parity");
        let finding = over("raid5");
        assert_eq!(finding.title, "a full stripe is 256 KiB: 4 × 64 KiB, with parity");
        let level = "md1 and md2 are RAID 5, left-symmetric, 4 members, chunk 512 KiB, full stripe 1.5 MiB";
        assert!(finding.text.contains(level), "{}", finding.text);
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
