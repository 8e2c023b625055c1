//! `only-zeros`: reads of a device brought back nothing but zeros, or some, which many devices return without looking at their medium.

use super::prelude::*;
use rdsk_analysis::{read_only_zeros, read_some_zeros};

pub(super) const RULE: Rule = Rule::new("only-zeros", Severity::Uncertain, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| read_only_zeros(cell, &analysis.targets));
    let text = "Every block that was checked held only zeros, which an SSD, a thin LUN, a sparse image or a null device returns without \
                reading its medium. The figure may be that of its controller alone.";
    let write_first = write_first(analysis, &cells);
    let advice =
        format!("measure where data is stored (--offset), {write_first}, or measure in a directory on it");
    let findings = RULE.about_any(&cells, "only zeros were read", text, cite_content, &advice);
    let what = format!("only zeros were read, perhaps without the medium: {}", how_many(&cells));
    findings.into_iter().map(|finding| inferred(finding, what.clone())).chain(some(analysis)).collect()
}

/// Zeros beside data.
fn some(analysis: &Analysis<'_>) -> Option<Finding> {
    let cells = cells(analysis, |cell| read_some_zeros(cell, &analysis.targets).is_some());
    let share = |cell: &&CellRecord| {
        let content = cell.result.content.unwrap_or_default();
        content.zero_pages as f64 / content.pages.max(1) as f64
    };
    let most = cells.iter().map(share).max_by(f64::total_cmp)?;
    let text = "Some of the blocks that were checked held only zeros, which an SSD, a thin LUN or a sparse image returns without reading its \
                medium. The figure may be a mean of its medium and of its controller alone.";
    let write_first = write_first(analysis, &cells);
    let advice =
        format!("measure where data is stored (--offset, or in a directory on it), or {write_first}");
    let what = format!(
        "up to {} of the places that were checked held zeros, perhaps without the medium",
        percent(most)
    );
    let finding = RULE.about(&cells, "a part of what was read held only zeros", text, cite_content);
    Some(inferred(finding.advice(advice), what))
}

fn inferred(finding: Finding, what: String) -> Finding {
    Finding { confidence: Confidence::Inferred, ..finding }.effect(Stake::Figure, None, what)
}

fn cite_content(cell: &CellRecord) -> String {
    let content = cell.result.content.unwrap_or_default();
    cite(cell, "pages of zeros", format!("{} of {} checked", content.zero_pages, content.pages))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures;
    use rdsk_model::{IoPath, Op, ReadContent, Record};

    fn record(zero_pages: u64) -> Record {
        let cell = fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000);
        let cell = fixtures::with(cell, |cell| {
            cell.result.content = Some(ReadContent { pages: 48, zero_pages });
        });
        let mut disk = fixtures::disk();
        disk.device.as_mut().unwrap().rotational = Some(false);
        fixtures::record(vec![disk], vec![cell])
    }

    #[test]
    fn fires_on_zeros_and_is_silent_on_data() {
        let finding = fires(RULE, &record(48));
        assert_eq!(finding.evidence, ["sequential direct 4K reads: pages of zeros = 48 of 48 checked"]);
        assert_eq!(finding.confidence, Confidence::Inferred);
        let finding = fires(RULE, &record(47));
        assert_eq!(finding.title, "a part of what was read held only zeros: sequential direct 4K reads");
        assert_eq!(finding.evidence, ["sequential direct 4K reads: pages of zeros = 47 of 48 checked"]);
        silent(RULE, &record(4));
    }
}
