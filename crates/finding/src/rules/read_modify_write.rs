//! `read-modify-write`: writes of part of a page through the page cache made the kernel read the rest of it first.

use super::prelude::*;

pub(super) const RULE: Rule =
    Rule::new("read-modify-write", Severity::Cost, Needs::Counters, check).shown_on(Experiment::Align);

/// Minimum number of pages read per write; fewer may be metadata.
const PAGES_PER_WRITE: f64 = 0.5;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = affected(analysis);
    let Some(first) = cells.first() else { return Vec::new() };
    let (page, system) = (Bytes(metrics::page_bytes(analysis)), system(analysis, first));
    let cited = |cell: &CellRecord| {
        let calls = analysis.block_io(cell).map(BlockIo::calls);
        let ops = words::plural(calls.or(cell.result.ops).unwrap_or(0), "write");
        let per_write = words::figure(analysis.read_per_write(cell).unwrap_or(0.0));
        let block = Bytes(cell.workload.block_bytes);
        match inside_writes(analysis, cell, page.0) {
            Some(inside) => {
                cite(cell, "read per write", format_args!("{per_write} B, {ops} of {block}; {inside}"))
            }
            None => cite(cell, "process.read_bytes / write", format_args!("{per_write} B, {ops} of {block}")),
        }
    };
    let text = format!(
        "A write of part of a {page} page that is not cached waits until the {system} has read that page from the device. Whole pages need \
         no read."
    );
    let advice = format!("write whole pages: multiples of {page} at multiples of {page}");
    let most = cells.iter().filter_map(|cell| analysis.read_per_write(cell)).fold(0.0, f64::max);
    let is_each =
        cells.iter().all(|cell| !is_sequential(cell) && analysis.read_per_write(cell) == Some(page.0 as f64));
    let each = if is_each { "each" } else { "on average" };
    let effect = format!(
        "writes of part of a page make the {system} read up to {} B first, {each}",
        words::figure(most)
    );
    let findings = RULE.about_any(&cells, "reads before partial-page writes", text, cited, &advice);
    findings.into_iter().map(|finding| finding.effect(Stake::Cost, None, effect.clone())).collect()
}

/// `256 of 256 reads came from pwrite64(2), 4 KiB each`; `None` without BPF.
fn inside_writes(analysis: &Analysis<'_>, cell: &CellRecord, page_bytes: u64) -> Option<String> {
    let block_io = analysis.block_io(cell)?;
    let (inside, total) = block_io.reads_in_writes();
    let grouped = rdsk_units::grouped;
    let calls: Vec<String> = block_io
        .origins(Op::Read)
        .iter()
        .filter(|(origin, _)| origin.is_write_call())
        .map(|(origin, _)| origin.to_string())
        .collect();
    let mean = words::bytes(metrics::whole(inside.mean_bytes()?));
    // A mean is the size of each bio only where all of them are of one size; a page is the least that is read.
    let each = if inside.bytes == inside.count * page_bytes { "each" } else { "on average" };
    let (inside, total, calls) = (grouped(inside.count), grouped(total.count), words::list(&calls));
    let part = block_io.part_in_words();
    Some(format!("{inside} of {total} reads came from {calls}, {mean} {each}{part}"))
}

fn is_sequential(cell: &CellRecord) -> bool {
    cell.workload.pattern == Pattern::Sequential && cell.workload.points.is_none()
}

/// Pages that a write of this cell must have read, on average. Writes that follow each other share their pages; whether so few
/// reads are of pages and not of metadata is known only where BPF says which call made them.
fn least_pages(analysis: &Analysis<'_>, cell: &CellRecord, page_bytes: u64) -> f64 {
    let of_page = metrics::ratio(cell.workload.block_bytes, page_bytes).min(1.0);
    if is_sequential(cell) && analysis.block_io(cell).is_some() {
        PAGES_PER_WRITE * of_page
    } else {
        PAGES_PER_WRITE
    }
}

/// The cells whose partial pages were read: by bios inside the calls, or by the I/O counters of the process.
pub(super) fn affected<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a CellRecord> {
    let page_bytes = metrics::page_bytes(analysis);
    cells(analysis, |cell| {
        cell.workload.op == Op::Write
            && cell.workload.path.uses_page_cache()
            && metrics::writes_partial_pages(&cell.workload, page_bytes)
            && analysis
                .read_per_write(cell)
                .is_some_and(|bytes| bytes >= least_pages(analysis, cell, page_bytes) * page_bytes as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, file, record, with};
    use rdsk_model::IoPath;

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
        assert_eq!(
            finding.evidence,
            ["sequential buffered 512 B writes: process.read_bytes / write = 4096 B, 2,048 writes of 512 B"]
        );
        fires(RULE, &small_writes(512, Some(2048 * 2048)));
    }

    /// 2048 writes of 512 bytes one after the other to a block device: one read for each page, inside the write.
    fn one_after_the_other(by: &str, reads: u64) -> Record {
        let mut record = small_writes(512, None);
        let bios =
            vec![bio(Op::Read, "this", Some(by), reads, 4096), bio(Op::Read, "other", Some("read"), 4, 4096)];
        let cell = record.cells.remove(0);
        record.cells.push(counted(cell, bios, vec![request(Op::Read, 4096, reads + 4)]));
        record
    }

    #[test]
    fn bios_say_which_call_read_and_how_often() {
        let finding = fires(RULE, &one_after_the_other("pwrite64", 256));
        assert_eq!(
            finding.evidence,
            [
                "sequential buffered 512 B writes: read per write = 512 B, 2,048 writes of 512 B; 256 of 260 reads came from pwrite64(2), 4 KiB each"
            ]
        );
        let mut mixed = one_after_the_other("write", 128);
        mixed.cells[0].evidence.bios.push(bio(Op::Read, "this", Some("pwrite64"), 64, 8192));
        let finding = fires(RULE, &mixed);
        assert!(
            finding.evidence[0]
                .ends_with("192 of 196 reads came from write(2) and pwrite64(2), 5.33 KiB on average"),
            "{:?}",
            finding.evidence
        );
        fires(RULE, &one_after_the_other("write", 128));
        silent(RULE, &one_after_the_other("write", 127));
        ["pread64", "io_uring_enter"].iter().for_each(|by| silent(RULE, &one_after_the_other(by, 256)));
        let mut unsure = one_after_the_other("write", 256);
        unsure.cells[0].evidence.process.read_bytes = Some(256 * 4096);
        unsure.cells[0].evidence.bpf = None;
        silent(RULE, &unsure);
    }

    #[test]
    fn writes_of_the_warm_up_count_once() {
        let mut record = one_after_the_other("pwrite64", 256);
        record.cells[0].result.warmup_ops = Some(400);
        let finding = fires(RULE, &record);
        assert!(finding.evidence[0].contains("read per write = 512 B, 2,048"), "{:?}", finding.evidence);
    }

    #[test]
    fn a_page_is_the_buffer_of_the_host() {
        let mut record = small_writes(4096, Some(2048 * 8192));
        silent(RULE, &record);
        if let Some(host) = &mut record.host {
            host.page_bytes = Some(8192);
        }
        let finding = fires(RULE, &record);
        assert!(finding.text.contains("part of a 8 KiB page"), "{}", finding.text);
        assert_eq!(
            finding.advice.as_deref(),
            Some("write whole pages: multiples of 8 KiB at multiples of 8 KiB")
        );
        assert!(finding.text.contains("until the kernel has read"), "{}", finding.text);
        record.cells[0].evidence.source = rdsk_model::EvidenceSource::Sim;
        assert!(fires(RULE, &record).text.contains("until the host has read"));
    }

    #[test]
    fn is_silent_without_reads_or_counters_or_partial_pages() {
        silent(RULE, &small_writes(512, Some(2048 * 2047)));
        silent(RULE, &small_writes(512, None));
        silent(RULE, &small_writes(4096, Some(2048 * 4096)));
    }
}
