//! `page-write-no-read`: whole pages were written without reading, in contrast to partial pages.

use super::prelude::*;
use super::read_modify_write::affected;

pub(super) const RULE: Rule = Rule::new("page-write-no-read", Severity::Remark, Needs::Counters, check);

/// Pages read per write that still count as none: the file's metadata has to be read once.
const PAGES_PER_WRITE: f64 = 0.05;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // This is the normal case; it matters only as the contrast that shows the cause.
    if affected(analysis).is_empty() {
        return Vec::new();
    }
    let page_bytes = metrics::page_bytes(analysis);
    let cells = cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path.uses_page_cache()
            && cell.workload.cache == CacheState::Cold
            && !metrics::writes_partial_pages(&cell.workload, page_bytes)
            && metrics::read_bytes_per_io(cell)
                .is_some_and(|bytes| bytes <= PAGES_PER_WRITE * page_bytes as f64)
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let cited = |cell: &CellRecord| {
        let per_write = words::figure(metrics::read_bytes_per_io(cell).unwrap_or(0.0));
        cite(cell, "process.read_bytes per write", format_args!("{per_write} B"))
    };
    let text = format!(
        "A write that replaces a whole page needs none of its old content, so the {} does not read it. For \
         aligned writes of {} or more, the reads that smaller writes cause are gone.",
        system(analysis, first),
        Bytes(page_bytes)
    );
    vec![RULE.about(&cells, "whole pages were written without reading", text, cited)]
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, record, with};
    use rdsk_model::{CellRecord, IoPath};

    fn writes(id: &str, block_bytes: u64, read_bytes: u64) -> CellRecord {
        with(cell(id, Op::Write, IoPath::Buffered, block_bytes, 1000, 500_000_000), |cell| {
            cell.workload.cache = CacheState::Cold;
            cell.evidence.process.read_bytes = Some(read_bytes);
        })
    }

    #[test]
    fn fires_as_a_contrast_only() {
        let (small, whole) = (writes("512", 512, 4_096_000), writes("4096", 4096, 4096));
        let finding = fires(RULE, &record(vec![file()], vec![small.clone(), whole.clone()]));
        assert_eq!(finding.cells, ["4096"]);
        assert_eq!(finding.evidence, ["4096: process.read_bytes per write = 4.10 B"]);
        silent(RULE, &record(vec![file()], vec![whole]));
        silent(RULE, &record(vec![file()], vec![small.clone(), writes("4096", 4096, 4_096_000)]));
        silent(RULE, &record(vec![file()], vec![small]));
    }
}
