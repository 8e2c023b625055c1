//! `align`: what it costs to start inside a page, and what a write of part of a page makes the system read.

use super::{number, times};
use crate::cells;
use rdsk_analysis::comparison::{Comparison, Kind, NoRatio, Ratio};
use rdsk_analysis::{Analysis, metrics};
use rdsk_model::{CellRecord, Experiment, Op, Sync};
use rdsk_units::Bytes;

/// Pages read per write from which the writes caused them.
const PAGES_PER_WRITE: f64 = 0.5;

pub(super) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let shift = shift(analysis);
    let reads = partial(analysis);
    match (shift, reads) {
        (Some(shift), Some(reads)) => vec![format!("{shift}; {reads}"), shift],
        (Some(one), None) | (None, Some(one)) => vec![one],
        (None, None) => vec!["nothing to compare: no block was measured both aligned and shifted".into()],
    }
}

/// The most that a shifted I/O takes over the same one aligned.
fn shift(analysis: &Analysis<'_>) -> Option<String> {
    let pairs: Vec<&Comparison<'_>> = analysis.comparisons(Kind::Shift).collect();
    let known = || pairs.iter().filter_map(|pair| Some((*pair, pair.ratio.ok()?)));
    let by_mean = |one: &(&Comparison<'_>, Ratio), other: &(&Comparison<'_>, Ratio)| {
        one.1.mean.total_cmp(&other.1.mean)
    };
    let Some((pair, worst)) =
        known().filter(|(_, ratio)| ratio.is_different() && ratio.mean > 1.0).max_by(by_mean)
    else {
        let Some((_, most)) = known().max_by(by_mean) else {
            let why = pairs.first()?.ratio.err()?;
            return Some(match why {
                NoRatio::Burst | NoRatio::Sittings => {
                    format!("shifted is not compared with aligned: {}", why.words())
                }
                _ => format!("too few to compare shifted with aligned: {}", why.words()),
            });
        };
        return Some(format!("no cost of a shift shown: at most {}", times(most)));
    };
    let workload = &pair.base.workload;
    let dsync = if workload.sync == Sync::Dsync { "dsync " } else { "" };
    Some(format!(
        "{dsync}{} {}s of {} take up to {} as long off a page boundary as on one",
        workload.path,
        workload.op,
        Bytes(workload.block_bytes),
        times(worst)
    ))
}

/// `a write of 512 B makes the system read 4096 B first`, of the largest such block.
fn partial(analysis: &Analysis<'_>) -> Option<String> {
    let page_bytes = metrics::page_bytes(analysis) as f64;
    let reading = |cell: &&CellRecord| {
        cell.workload.op == Op::Write
            && cell.workload.shift_bytes == 0
            && metrics::read_bytes_per_io(cell).is_some_and(|bytes| bytes >= PAGES_PER_WRITE * page_bytes)
    };
    let largest = cells::of(analysis, Experiment::Align)
        .filter(reading)
        .max_by_key(|cell| cell.workload.block_bytes)?;
    let read = metrics::read_bytes_per_io(largest)?;
    let block = Bytes(largest.workload.block_bytes);
    Some(format!("a write of {block} makes the system read {} B first", number(read)))
}
