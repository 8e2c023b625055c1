//! `read-modify-write`: buffered writes of part of a page made the kernel read the rest of it first.

use super::common::{cells, cite, system};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Experiment, Finding, IoPath, Op, Record, Severity, Stake};
use rdsk_units::Bytes;

pub(super) const RULE: Rule =
    Rule::new("read-modify-write", Severity::Cost, Needs::Counters, check).shown_on(Experiment::Align);

/// Minimum number of pages read per write; fewer may be metadata.
const PAGES_PER_WRITE: f64 = 0.5;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = affected(analysis);
    let Some(first) = cells.first() else { return Vec::new() };
    let (page, system) = (Bytes(metrics::page_bytes(analysis)), system(analysis, first));
    let cited = |cell: &CellRecord| {
        let ops = words::plural(cell.result.ops.unwrap_or(0), "write");
        let per_write = words::figure(metrics::read_bytes_per_io(cell).unwrap_or(0.0));
        let block = Bytes(cell.workload.block_bytes);
        cite(cell, "process.read_bytes / write", format_args!("{per_write} B, {ops} of {block}"))
    };
    let text = format!(
        "A write that changes part of a page of {page} that is not cached waits until the {system} has read that page from \
         the device."
    );
    let advice = format!("write whole pages: multiples of {page} at multiples of {page}");
    let most = cells.iter().filter_map(|cell| metrics::read_bytes_per_io(cell)).fold(0.0, f64::max);
    let effect = format!(
        "writes of part of a page make the {system} read up to {} B first, each",
        words::figure(most)
    );
    let found = RULE.about_any(&cells, &format!("writes made the {system} read first"), text, cited, &advice);
    found.into_iter().map(|finding| finding.effect(Stake::Cost, None, effect.clone())).collect()
}

/// The cells whose partial pages were read, by the I/O counters of the process.
pub(super) fn affected(record: &Record) -> Vec<&CellRecord> {
    let page_bytes = metrics::page_bytes(record);
    cells(record, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path == IoPath::Buffered
            && metrics::writes_partial_pages(&cell.workload, page_bytes)
            && metrics::read_bytes_per_io(cell)
                .is_some_and(|bytes| bytes >= PAGES_PER_WRITE * page_bytes as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, file, record, with};

    fn small_writes(block_bytes: u64, read_bytes: Option<u64>) -> Record {
        let cell =
            with(fixtures::cell("s", Op::Write, IoPath::Buffered, block_bytes, 2048, 500_000_000), |cell| {
                cell.evidence.process.read_bytes = read_bytes;
            });
        record(vec![file()], vec![cell])
    }

    #[test]
    fn fires_when_each_small_write_read_a_page() {
        let finding = fires(RULE, &small_writes(512, Some(2048 * 4096)));
        assert_eq!(finding.evidence, ["s: process.read_bytes / write = 4096 B, 2,048 writes of 512 B"]);
        fires(RULE, &small_writes(512, Some(2048 * 2048)));
    }

    #[test]
    fn a_page_is_the_buffer_of_the_host() {
        let mut record = small_writes(4096, Some(2048 * 8192));
        silent(RULE, &record);
        if let Some(host) = &mut record.host {
            host.page_bytes = Some(8192);
        }
        let finding = fires(RULE, &record);
        assert!(finding.text.contains("page of 8 KiB"), "{}", finding.text);
        assert_eq!(
            finding.advice.as_deref(),
            Some("write whole pages: multiples of 8 KiB at multiples of 8 KiB")
        );
        assert!(finding.title.contains("kernel"), "{}", finding.title);
        record.cells[0].evidence.source = rdsk_model::EvidenceSource::Sim;
        assert!(fires(RULE, &record).title.starts_with("writes made the host read first"));
    }

    #[test]
    fn is_silent_without_reads_or_counters_or_partial_pages() {
        silent(RULE, &small_writes(512, Some(2048 * 2047)));
        silent(RULE, &small_writes(512, None));
        silent(RULE, &small_writes(4096, Some(2048 * 4096)));
    }
}
