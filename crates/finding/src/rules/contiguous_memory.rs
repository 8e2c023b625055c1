//! `contiguous-memory`: a device takes so few pieces of memory in one request that large blocks from ordinary pages take longer than
//! from contiguous memory. It compares two cells of the same run and knows no other cause.

use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("contiguous-memory", Severity::Remark, Needs::Counters, check);

/// Requests per I/O from which blocks were cut.
const CUT: f64 = 1.1;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    analysis.comparisons(Kind::Memory).filter_map(|comparison| of_pair(analysis, comparison)).collect()
}

fn of_pair(analysis: &Analysis<'_>, comparison: &Comparison<'_>) -> Option<Finding> {
    let ratio = comparison.ratio.ok().filter(|ratio| ratio.mean >= MIN_EFFECT && ratio.is_sure())?;
    let per_io = requests_per_io(comparison.base).filter(|&requests| requests >= CUT)?;
    let workload = &comparison.base.workload;
    let target = analysis.targets.iter().find(|target| workload.targets.contains(&target.index))?;
    let segments = target.device.as_ref()?.max_segments?;
    let (op, size) = (workload.op, words::fio_size(workload.block_bytes));
    let factor = words::times(ratio.mean);
    let title = format!("{size} {op}s are {factor} as fast from contiguous memory");
    let text = format!(
        "From 4 KiB pages, which most programs have, each {size} {op} is {} requests, since one takes {segments} segments \
         (queue/max_segments), {} of such pages. From huge pages it is {}.",
        words::figure(per_io),
        Bytes(segments.saturating_mul(4096)).approx(),
        requests_per_io(comparison.cell).map_or_else(|| "fewer".into(), words::figure),
    );
    let cited = [comparison.base, comparison.cell].map(|cell| {
        let requests = requests_per_io(cell).map_or_else(|| "not known".into(), words::figure);
        cite(cell, "requests per I/O", requests)
    });
    let finding = RULE
        .finding(title.clone(), text)
        .effect(Stake::Cost, Some(ratio.mean), title)
        .within(ratio.low, ratio.high)
        .evidence(cited)
        .advice(format!(
            "use blocks of at most {}, or buffers in huge pages; --memory huge measures all with these",
            Bytes(segments.saturating_mul(4096)).approx()
        ))
        .cells([comparison.base, comparison.cell]);
    Some(finding)
}

fn requests_per_io(cell: &CellRecord) -> Option<f64> {
    let ops = cell.result.ops.filter(|&ops| ops > 0)?;
    Some(metrics::device_requests(cell, cell.workload.op)? as f64 / ops as f64)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, in_rounds, record, with};
    use rdsk_model::{BufferPages, IoPath, Op, Record};

    const S: u64 = 1_000_000_000;

    /// 8 reads of 1 MiB in a second from ordinary pages, each in so many requests, and so many from huge ones.
    fn pair(requests: u64, huge_ops: u64, segments: Option<u64>) -> Record {
        let on = |id: &str, pages, ops: u64, requests: u64| {
            let one = with(cell(id, Op::Read, IoPath::Direct, 1 << 20, 60 * ops, 60 * S), |cell| {
                cell.workload.buffers = Some(pages);
                cell.evidence.device[0].reads = Some(60 * ops * requests);
            });
            in_rounds(one)
        };
        let mut target = disk();
        target.device.as_mut().unwrap().max_segments = segments;
        let ordinary = on("headline/read/sequential", BufferPages::Ordinary, 8, requests);
        let huge = on("headline/read/sequential-huge", BufferPages::Huge, huge_ops, 1);
        record(vec![target], vec![ordinary, huge])
    }

    #[test]
    fn fires_where_blocks_are_cut_and_contiguous_memory_is_faster() {
        let finding = fires(RULE, &pair(2, 12, Some(128)));
        assert!(finding.title.starts_with("1M reads are 1.50"), "{}", finding.title);
        assert!(finding.text.contains("is 2.00 requests, since one takes 128 segments"), "{}", finding.text);
        assert!(finding.text.contains("512 KiB"), "{}", finding.text);
    }

    #[test]
    fn is_silent_where_nothing_is_gained_or_cut() {
        silent(RULE, &pair(2, 9, Some(128)));
        silent(RULE, &pair(1, 12, Some(128)));
        silent(RULE, &pair(2, 12, None));
    }
}
