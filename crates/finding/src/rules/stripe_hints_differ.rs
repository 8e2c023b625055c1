//! `stripe-hints-differ`: the kernel's hints name another geometry than the measurement. Which of them is right it cannot
//! say where members cannot be counted.

use super::Rule;
use super::common::{cells, cite, target};
use rdsk_analysis::stripe::{Agreement, Reading, SURE, stripe};
use rdsk_analysis::words;
use rdsk_model::{CellRecord, Confidence, Experiment, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "stripe-hints-differ", check };

fn check(record: &Record) -> Vec<Finding> {
    let differing = cells(record, |cell| cell.experiment == Experiment::Stripe).into_iter().filter_map(|cell| {
        let reading = stripe(record, cell)?;
        let (agreement, text) = reading.hints.clone()?;
        let is_sure = reading.tells() && reading.chunk().is_some_and(|(_, confidence)| confidence >= SURE)
            || reading.none_confidence() >= SURE;
        if !is_sure || !matches!(agreement, Agreement::Differs | Agreement::NotSeen) {
            return None;
        }
        Some(Finding {
            code: RULE.code.into(),
            title: "the kernel's hints name another stripe than the one that was seen".into(),
            text: format!(
                "{text}. mkfs and partition tools lay out by these hints: what follows a wrong one straddles stripes."
            ),
            evidence: evidence(record, cell, &reading),
            confidence: Confidence::Inferred,
            advice: Some(
                "give mkfs the measured sizes (ext4: -E stride=,stripe-width=; xfs: -d su=,sw=), or look why a \
                 layer below hides its geometry"
                    .into(),
            ),
            cells: vec![cell.id.clone()],
        })
    });
    differing.collect()
}

fn evidence(record: &Record, cell: &CellRecord, reading: &Reading) -> Vec<String> {
    let device = target(record, cell).and_then(|target| target.device.as_ref());
    let hints = device.map(|device| {
        let (minimum, optimal) = (device.minimum_io_bytes.unwrap_or(0), device.optimal_io_bytes.unwrap_or(0));
        cite(cell, "minimum_io_size", format_args!("{minimum}, optimal_io_size = {optimal}"))
    });
    let name =
        |size: Option<(u64, f64)>| size.map_or_else(|| "none".to_owned(), |(bytes, _)| words::bytes(bytes));
    let seen = format!("{}, full stripe = {}", name(reading.chunk()), name(reading.stripe()));
    hints.into_iter().chain([cite(cell, "chunk", seen)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::stripe::array;

    #[test]
    fn fires_on_other_hints_and_not_on_the_same_or_none() {
        let hinted = |minimum: u64, optimal: u64| {
            let mut record = array(64 << 10, 3);
            let device = record.targets[0].device.as_mut().unwrap();
            device.minimum_io_bytes = Some(minimum);
            device.optimal_io_bytes = Some(optimal);
            record
        };
        fires(RULE, &hinted(128 << 10, 512 << 10));
        silent(RULE, &hinted(64 << 10, 192 << 10));
        silent(RULE, &hinted(4096, 0));
    }
}
