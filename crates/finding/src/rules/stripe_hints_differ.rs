//! `stripe-hints-differ`: the kernel's hints name another geometry than its own description of the array, or than the measurement where
//! there is none; then it cannot say which of them is right.

use super::prelude::*;
use rdsk_analysis::stripe::{Agreement, SURE, StripeResult};

pub(super) const RULE: Rule = Rule::new("stripe-hints-differ", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let readings = stripes(analysis).into_iter();
    readings.filter_map(|(cell, reading)| finding(analysis, cell, reading)).collect()
}

fn finding(record: &Record, cell: &CellRecord, reading: &StripeResult) -> Option<Finding> {
    let (agreement, text) = reading.hints.as_ref()?;
    let is_sure = reading.is_conclusive()
        && reading.chunk().is_some_and(|(_, confidence)| confidence >= SURE)
        || reading.none_confidence >= SURE;
    let title = match reading.described {
        Some(_) => "the kernel's hints name another stripe than its description of the array",
        None => "the kernel's hints name another stripe than the one that was measured",
    };
    let text = format!(
        "{text}. mkfs and partitioning tools use these hints: data placed by a wrong one straddles stripes."
    );
    let advice = "give mkfs the sizes found here (ext4: -E stride=,stripe-width=; xfs: -d su=,sw=), or find out why a layer \
                  below hides its geometry";
    (is_sure && matches!(agreement, Agreement::Differs | Agreement::NotSeen)).then(|| {
        RULE.finding(title, text)
            .evidence(evidence(record, cell, reading))
            .inferred()
            .advice(advice)
            .cells([cell])
    })
}

fn evidence(record: &Record, cell: &CellRecord, reading: &StripeResult) -> Vec<String> {
    let device = metrics::first_device(record, cell);
    let hints = device.map(|device| {
        let (minimum, optimal) = (device.minimum_io_bytes.unwrap_or(0), device.optimal_io_bytes.unwrap_or(0));
        cite(cell, "minimum_io_size", format_args!("{minimum}, optimal_io_size = {optimal}"))
    });
    let name =
        |size: Option<(u64, f64)>| size.map_or_else(|| "none".to_owned(), |(bytes, _)| words::bytes(bytes));
    let sizes = format!("{}, full stripe = {}", name(reading.chunk()), name(reading.stripe()));
    hints.into_iter().chain([cite(cell, "chunk", sizes)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
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
