//! `misaligned-write`: the same write takes longer when its offset is not a multiple of the page size.

use super::prelude::*;

pub(super) const RULE: Rule =
    Rule::new("misaligned-write", Severity::Cost, Needs::OwnTimes, check).shown_on(Experiment::Align);

/// Minimum ratio of the time of the shifted write to that of the aligned one.
const MIN_FACTOR: f64 = 1.2;

/// The aligned cell, the shifted one and the factor, where the shift surely costs something.
fn costly<'a>(pair: &Comparison<'a>) -> Option<(&'a CellRecord, &'a CellRecord, Ratio)> {
    let ratio = pair.ratio.ok().filter(|ratio| ratio.mean >= MIN_FACTOR && ratio.is_sure())?;
    Some((pair.cell, pair.base, ratio))
}

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let pairs: Vec<(&CellRecord, &CellRecord, Ratio)> =
        analysis.comparisons(Kind::Shift).filter_map(costly).collect();
    let worst = pairs.iter().max_by(|left, right| left.2.mean.total_cmp(&right.2.mean));
    let Some(&(aligned, shifted, worst)) = worst else { return Vec::new() };
    let evidence: Vec<String> = pairs
        .iter()
        .map(|(aligned, cell, ratio)| {
            let reads = metrics::read_bytes_per_io(cell)
                .map_or(String::new(), |bytes| format!(", read per write = {} B", words::figure(bytes)));
            let reads = format!("{reads}{}", bios_per_write(analysis, cell));
            let (low, high) = (words::figure(ratio.low), words::figure(ratio.high));
            let times = words::times(ratio.mean);
            cite(
                cell,
                "time / aligned",
                format_args!("{times} ({low} to {high}){reads}, against {}", words::test(aligned)),
            )
        })
        .collect();
    let multiple = safe_multiple(analysis, aligned);
    let text = format!(
        "{} A write that starts inside a page changes two pages partially, and each may have to be read first.",
        words::interval(worst.low, worst.high)
    );
    // A write into RAM and one that waits for a disk are far apart: the title says through which path it went.
    let path = shifted.workload.path;
    let title = format!("misaligned {path} writes take up to {} as long", words::times(worst.mean));
    vec![
        RULE.finding(title.clone(), text)
            .effect(Stake::Cost, Some(worst.mean), title)
            .within(worst.low, worst.high)
            .evidence(evidence)
            .advice(format!("write multiples of {multiple} at offsets that are multiples of {multiple}"))
            .cells(pairs.iter().flat_map(|(aligned, cell, _)| [*aligned, *cell])),
    ]
}

/// `, in 2.00 bios inside the write`; nothing without BPF.
fn bios_per_write(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    analysis.block_io(cell).map_or(String::new(), |block_io| {
        let bios = metrics::ratio(block_io.reads_in_writes().0.count, block_io.calls().max(1));
        format!(", in {} bios inside the write{}", words::figure(bios), block_io.part_in_words())
    })
}

/// The smallest safe size and alignment: a page, or the device's physical block when that is larger.
fn safe_multiple(record: &Record, cell: &CellRecord) -> Bytes {
    let physical =
        metrics::first_device(record, cell).and_then(|device| device.physical_block_bytes).unwrap_or(0);
    Bytes(physical.max(metrics::page_bytes(record)))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, file, in_rounds, record, with};
    use rdsk_model::{CacheState, IoPath, Op};

    fn writes(id: &str, shift_bytes: u64, elapsed_ns: u64) -> CellRecord {
        with(in_rounds(fixtures::cell(id, Op::Write, IoPath::Buffered, 4096, 1000, elapsed_ns)), |cell| {
            cell.workload.shift_bytes = shift_bytes;
            cell.workload.cache = CacheState::Cold;
            cell.evidence.process.read_bytes = Some(if shift_bytes == 0 { 0 } else { 8_192_000 });
        })
    }

    #[test]
    fn fires_when_the_shift_costs() {
        let record = record(vec![file()], vec![writes("a", 0, 25_000_000), writes("s", 512, 8_000_000_000)]);
        let finding = fires(RULE, &record);
        let expected = "sequential buffered 4K writes at +512 B: time / aligned = 320x (318 to 323), read per write = 8192 B, against sequential buffered 4K writes";
        assert_eq!(finding.evidence, [expected]);
        assert!(finding.text.starts_with("The 95% interval is 318 to 323. A write"), "{}", finding.text);
        assert!(finding.advice.unwrap().contains("multiples of 4 KiB at"));
    }

    #[test]
    fn bios_show_how_many_reads_a_write_waited_for() {
        let bios = vec![bio(Op::Read, "this", Some("pwrite64"), 2000, 4096)];
        let shifted = counted(writes("s", 512, 8_000_000_000), bios, vec![request(Op::Read, 4096, 2000)]);
        let finding = fires(RULE, &record(vec![file()], vec![writes("a", 0, 25_000_000), shifted]));
        assert!(
            finding.evidence[0].contains("8192 B, in 2.00 bios inside the write"),
            "{:?}",
            finding.evidence
        );
    }

    #[test]
    fn is_silent_when_it_does_not_or_has_no_twin() {
        let aligned = || writes("a", 0, 25_000_000);
        silent(RULE, &record(vec![file()], vec![aligned(), writes("s", 512, 29_000_000)]));
        silent(RULE, &record(vec![file()], vec![aligned(), writes("s", 4096, 80_000_000)]));
        silent(RULE, &record(vec![file()], vec![writes("s", 512, 80_000_000)]));
        let direct = with(aligned(), |cell| cell.workload.path = IoPath::Direct);
        silent(RULE, &record(vec![file()], vec![direct, writes("s", 512, 80_000_000)]));
        let short = with(writes("s", 512, 80_000_000), |cell| cell.result.visits.truncate(2));
        silent(RULE, &record(vec![file()], vec![aligned(), short]));
        let uneven = with(writes("s", 512, 30_000_000), |cell| {
            for (visit, factor) in cell.result.visits.iter_mut().zip([1, 3, 1, 2, 1, 4]) {
                visit.elapsed_ns = visit.elapsed_ns * factor * 10 / 13;
            }
        });
        silent(RULE, &record(vec![file()], vec![aligned(), uneven]));
    }
}
