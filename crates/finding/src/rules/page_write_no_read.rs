//! `page-write-no-read`: whole pages were written without reading, beside partial pages that were not.

use super::Rule;
use super::common::{cells, cite, cite_all, how_many, ids, system};
use super::read_modify_write::{affected, read_per_write};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CacheState, Confidence, Finding, IoPath, Op, Record};
use rdsk_units::Bytes;

pub(super) const RULE: Rule = Rule { code: "page-write-no-read", check };

/// Pages read per write up to which there were none: the file's metadata has to be read once.
const PAGES_PER_WRITE: f64 = 0.05;

fn check(record: &Record) -> Vec<Finding> {
    // Alone this is what everybody expects; it is worth a word only as the contrast that names the cause.
    if affected(record).is_empty() {
        return Vec::new();
    }
    let page_bytes = metrics::page_bytes(record);
    let cells = cells(record, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path == IoPath::Buffered
            && cell.workload.cache == CacheState::Cold
            && !metrics::writes_partial_pages(&cell.workload, page_bytes)
            && read_per_write(cell).is_some_and(|bytes| bytes <= PAGES_PER_WRITE * page_bytes as f64)
    });
    let Some(first) = cells.first() else { return Vec::new() };
    let evidence = cite_all(&cells, |cell| {
        let per_write = words::figure(read_per_write(cell).unwrap_or(0.0));
        cite(cell, "process.read_bytes per write", format_args!("{per_write} B"))
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("whole pages were written without reading: {}", how_many(&cells)),
        text: format!(
            "A write that replaces all of a page needs nothing of what the page held, so the {} does not read it. \
             From {} on, aligned, the reads that smaller writes cause are gone.",
            system(record, first),
            Bytes(page_bytes)
        ),
        evidence,
        confidence: Confidence::Measured,
        advice: None,
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, record, with};
    use rdsk_model::CellRecord;

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
