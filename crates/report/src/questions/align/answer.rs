//! `align`: what it costs to start inside a page, and what a write of part of a page makes the system read.

use crate::cells;
use crate::figures::{fio_size, number, times};
use rdsk_analysis::comparison::{Comparison, Kind, NoRatio, Ratio};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Experiment, Op, Sync};
use rdsk_units::Bytes;

/// Pages read per write from which the writes caused them.
const PAGES_PER_WRITE: f64 = 0.5;

pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let shift = shift(analysis);
    let reads = partial(analysis);
    match (shift, reads) {
        (Some(shift), Some(reads)) => vec![format!("{shift}; {reads}"), shift],
        (Some(text), None) | (None, Some(text)) => vec![text],
        (None, None)
            if cells::of_experiment(analysis, Experiment::Align).all(|cell| cell.workload.op == Op::Read) =>
        {
            vec!["misaligned I/O is compared for writes, and only reads were measured: see --details".into()]
        }
        (None, None) => {
            vec!["nothing to compare: no block size was measured both aligned and shifted".into()]
        }
    }
}

/// The most that a shifted I/O takes over the same one aligned.
fn shift(analysis: &Analysis<'_>) -> Option<String> {
    let pairs: Vec<&Comparison<'_>> = analysis.comparisons(Kind::Shift).collect();
    let with_ratio = || pairs.iter().filter_map(|pair| Some((*pair, pair.ratio.ok()?)));
    let by_mean = |left: &(&Comparison<'_>, Ratio), right: &(&Comparison<'_>, Ratio)| {
        left.1.mean.total_cmp(&right.1.mean)
    };
    let Some((pair, worst)) =
        with_ratio().filter(|(_, ratio)| ratio.is_sure() && ratio.mean > 1.0).max_by(by_mean)
    else {
        let Some(most) = with_ratio().map(|(_, ratio)| ratio.high).reduce(f64::max) else {
            let why = pairs.first()?.ratio.err()?;
            return Some(match why {
                NoRatio::Burst | NoRatio::Sittings => {
                    format!("shifted and aligned not compared: {}", why.words())
                }
                _ => format!("too few I/Os to compare shifted with aligned: {}", why.words()),
            });
        };
        // The end of the widest interval: what a mean says is not the most that there may be.
        return Some(format!("misaligned I/O costs at most {} (95%)", words::times(most)));
    };
    let workload = &pair.base.workload;
    let dsync = if workload.sync == Sync::Dsync { "dsync " } else { "" };
    Some(format!(
        "misaligned {dsync}{} {} {}s take up to {} as long",
        workload.path,
        fio_size(workload.block_bytes),
        workload.op,
        times(worst)
    ))
}

/// `each 512 write reads 4096 B first`, of the largest such block.
fn partial(analysis: &Analysis<'_>) -> Option<String> {
    let page_bytes = metrics::page_bytes(analysis) as f64;
    let reading = |cell: &&CellRecord| {
        cell.workload.op == Op::Write
            && cell.workload.shift_bytes == 0
            && metrics::read_bytes_per_io(cell).is_some_and(|bytes| bytes >= PAGES_PER_WRITE * page_bytes)
    };
    let largest = cells::of_experiment(analysis, Experiment::Align)
        .filter(reading)
        .max_by_key(|cell| cell.workload.block_bytes)?;
    let read = metrics::read_bytes_per_io(largest)?;
    let block = Bytes(largest.workload.block_bytes);
    Some(format!("a write of {block} reads {} B first", number(read)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::{self, file, in_rounds, record, with};
    use rdsk_model::IoPath;

    #[test]
    fn a_run_that_only_reads_says_that_writes_are_compared() {
        let reads = |id: &str, shift_bytes: u64| {
            with(in_rounds(fixtures::cell(id, Op::Read, IoPath::Direct, 4096, 6000, 1_000_000_000)), |cell| {
                (cell.experiment, cell.workload.shift_bytes) = (Experiment::Align, shift_bytes);
            })
        };
        let record = record(vec![file()], vec![reads("a", 0), reads("s", 512)]);
        let said = answer(&Analysis::of(&record));
        assert_eq!(
            said,
            ["misaligned I/O is compared for writes, and only reads were measured: see --details"]
        );
    }

    /// The finding asks for the same certainty, and what is not shown may be as much as the interval leaves.
    #[test]
    fn a_cost_is_said_where_it_is_sure_and_else_the_most_that_it_may_be() {
        let written = |id: &str, shift_bytes: u64, elapsed_ns: u64| {
            with(in_rounds(fixtures::cell(id, Op::Write, IoPath::Direct, 4096, 6000, elapsed_ns)), |cell| {
                cell.workload.shift_bytes = shift_bytes;
            })
        };
        let mut barely_sure = 0;
        for step in 0..120 {
            let cells =
                vec![written("a", 0, 6_000_000_000), written("s", 512, 6_000_000_000 + 3_000_000 * step)];
            let record = record(vec![file()], cells);
            let analysis = Analysis::of(&record);
            let ratio = analysis.comparisons(Kind::Shift).next().unwrap().ratio.unwrap();
            let said = shift(&analysis).unwrap();
            if ratio.is_sure() && ratio.mean > 1.0 {
                assert!(said.contains(" as long"), "{ratio:?}: {said}");
                barely_sure += usize::from(!ratio.is_different());
            } else {
                let most = words::times(ratio.high);
                assert_eq!(said, format!("misaligned I/O costs at most {most} (95%)"));
            }
        }
        assert!(barely_sure > 0, "some are sure by less than targets need");
    }
}
