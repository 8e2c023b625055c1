//! `misaligned-write`: the same write takes longer when its offset is not a multiple of the page size.

use super::common::{cells, cite};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Experiment, Finding, Op, Record, Severity, Workload};
use rdsk_units::Bytes;

pub(super) const RULE: Rule =
    Rule::new("misaligned-write", Severity::Cost, Needs::OwnTimes, check).shown_on(Experiment::Align);

/// Minimum ratio of the latency of the shifted write to that of the aligned one.
const MIN_FACTOR: f64 = 1.2;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let page_bytes = metrics::page_bytes(analysis);
    let shifted = cells(analysis, |cell| {
        cell.workload.op == Op::Write && !cell.workload.shift_bytes.is_multiple_of(page_bytes)
    });
    let pairs: Vec<(&CellRecord, &CellRecord, f64)> = shifted
        .into_iter()
        .filter_map(|cell| {
            let aligned = aligned_twin(analysis, cell)?;
            Some((aligned, cell, latency(cell)? / latency(aligned)?))
        })
        .filter(|(_, _, factor)| *factor >= MIN_FACTOR)
        .collect();
    let Some((aligned, _, _)) = pairs.first() else { return Vec::new() };
    let worst = pairs.iter().map(|(_, _, factor)| *factor).fold(0.0, f64::max);
    let evidence: Vec<String> = pairs
        .iter()
        .map(|(aligned, cell, factor)| {
            let reads = metrics::read_bytes_per_io(cell)
                .map_or(String::new(), |bytes| format!(", read per write = {} B", words::figure(bytes)));
            cite(
                cell,
                "latency / aligned",
                format_args!("{}{reads}, against {}", words::times(*factor), aligned.id),
            )
        })
        .collect();
    let multiple = safe_multiple(analysis, aligned);
    vec![RULE
            .finding(
                format!("misaligned writes take up to {} as long", words::times(worst)),
                "A write of whole pages that starts inside a page changes two pages partially, and each may have to be read \
                 first.",
            )
            .evidence(evidence)
            .advice(format!("write multiples of {multiple} at offsets that are multiples of {multiple}"))
            .cells(pairs.iter().flat_map(|(aligned, cell, _)| [*aligned, *cell]))]
}

/// The cell that differs in the shift only, which is 0.
fn aligned_twin<'a>(record: &'a Record, cell: &CellRecord) -> Option<&'a CellRecord> {
    let mut wanted = cell.workload.clone();
    wanted.shift_bytes = 0;
    let page_bytes = metrics::page_bytes(record);
    cells(record, |other| {
        let mut workload = other.workload.clone();
        workload.seed = wanted.seed;
        workload.align_bytes = wanted.align_bytes;
        workload == wanted
            && other.experiment == cell.experiment
            && stays_in_its_pages(&other.workload, page_bytes)
    })
    .first()
    .copied()
}

/// Whether no write touches more pages than its size needs.
fn stays_in_its_pages(workload: &Workload, page_bytes: u64) -> bool {
    let align = workload.align_bytes;
    align.is_multiple_of(page_bytes)
        || (align > 0 && page_bytes.is_multiple_of(align) && workload.block_bytes <= align)
}

/// Median latency in nanoseconds, or the mean when there are too few for a median.
fn latency(cell: &CellRecord) -> Option<f64> {
    let latency = cell.result.latency_ns.as_ref()?;
    latency.p50.map(|p50| p50 as f64).or(latency.mean).filter(|&ns| ns > 0.0)
}

/// The smallest safe size and alignment: a page, or the device's physical block when that is larger.
fn safe_multiple(record: &Record, cell: &CellRecord) -> Bytes {
    let physical =
        metrics::first_device(record, cell).and_then(|device| device.physical_block_bytes).unwrap_or(0);
    Bytes(physical.max(metrics::page_bytes(record)))
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, file, record, with};
    use rdsk_model::{CacheState, IoPath};

    fn writes(id: &str, shift_bytes: u64, elapsed_ns: u64) -> CellRecord {
        with(fixtures::cell(id, Op::Write, IoPath::Buffered, 4096, 1000, elapsed_ns), |cell| {
            cell.workload.shift_bytes = shift_bytes;
            cell.workload.cache = CacheState::Cold;
            cell.evidence.process.read_bytes = Some(if shift_bytes == 0 { 0 } else { 8_192_000 });
        })
    }

    #[test]
    fn fires_when_the_shift_costs() {
        let record = record(vec![file()], vec![writes("a", 0, 25_000_000), writes("s", 512, 8_000_000_000)]);
        let finding = fires(RULE, &record);
        assert_eq!(finding.evidence, ["s: latency / aligned = 320 ×, read per write = 8192 B, against a"]);
        assert!(finding.advice.unwrap().contains("multiples of 4 KiB at"));
    }

    #[test]
    fn is_silent_when_it_does_not_or_has_no_twin() {
        let aligned = || writes("a", 0, 25_000_000);
        silent(RULE, &record(vec![file()], vec![aligned(), writes("s", 512, 29_000_000)]));
        silent(RULE, &record(vec![file()], vec![aligned(), writes("s", 4096, 80_000_000)]));
        silent(RULE, &record(vec![file()], vec![writes("s", 512, 80_000_000)]));
        let direct = with(aligned(), |cell| cell.workload.path = IoPath::Direct);
        silent(RULE, &record(vec![file()], vec![direct, writes("s", 512, 80_000_000)]));
    }
}
