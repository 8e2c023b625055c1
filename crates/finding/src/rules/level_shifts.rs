//! Cells whose rate fell to a lower level, and what supports a full write cache as the cause. `write-cache-full` reports those
//! with such support, `slows-down` the others.

use super::prelude::*;
use rdsk_analysis::rate_series::{self, LevelShift};
use rdsk_model::Visit;

/// Reads held their rate when it was at least this share of that before the fall.
const HELD: f64 = 0.9;
/// Reads fell too when their rate was at most this share.
const FELL: f64 = 0.8;
/// Minimum number of windows of reads on each side of the fall for comparing windows; with fewer, whole visits are compared,
/// with a minimum number of I/Os on each side.
const MIN_WINDOWS: usize = 10;
const MIN_OPS: u64 = 50;
/// Falls of several visits count as falls after the same bytes up to this ratio of the largest to the smallest.
const SAME_BYTES: f64 = 1.2;

/// What supports a full write cache as the cause.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SupportingEvidence {
    /// The reads of this test held their rate: before and after, in bytes per second.
    ReadsHeld { test: String, before: f64, after: f64 },
    /// This many repeats fell after the same number of bytes.
    SameBytes { repeats: usize },
    /// The device is not rotational nor that of a virtual machine, and no reads before and after it show another cause.
    Flash,
}

pub(super) struct Shifted<'a> {
    pub(super) cell: &'a CellRecord,
    /// At least one.
    pub(super) falls: &'a [LevelShift],
    pub(super) support: Option<SupportingEvidence>,
}

/// Every cell whose rate fell, classified.
pub(super) fn shifted<'a>(analysis: &'a Analysis<'_>) -> Vec<Shifted<'a>> {
    cells(analysis, |cell| !analysis.level_shifts(cell).is_empty())
        .into_iter()
        .map(|cell| {
            let falls = analysis.level_shifts(cell);
            Shifted { cell, falls, support: support(analysis, cell, falls) }
        })
        .collect()
}

/// The citation of a fall: when, after how much, from where to where.
pub(super) fn cited(cell: &CellRecord, fall: &LevelShift) -> String {
    let (when, bytes) = (words::nanos(fall.at_ns), words::bytes(fall.bytes));
    let place = if fall.within_visit { "" } else { ", between two repeats" };
    cite(
        cell,
        "windows",
        format_args!(
            "{} before, {} after ({}) {when} of I/O and {bytes}{place}",
            words::rate(fall.fast),
            words::rate(fall.slow),
            share(fall)
        ),
    )
}

pub(super) fn share(fall: &LevelShift) -> String {
    rdsk_units::percent(fall.slow / fall.fast)
}

/// What supports a full write cache as the cause of these falls; `None` when nothing does, or when reads fell too.
fn support(analysis: &Analysis<'_>, cell: &CellRecord, falls: &[LevelShift]) -> Option<SupportingEvidence> {
    if cell.workload.op != Op::Write {
        return None;
    }
    let fall = falls.first()?;
    let (mut held, mut is_known) = (None, false);
    let reads = cells(analysis, |read| {
        read.workload.op == Op::Read
            && read.workload.targets == cell.workload.targets
            && read.id != cell.id
            && read.sitting() == cell.sitting()
    });
    for read in reads {
        if !analysis.level_shifts(read).is_empty() {
            return None;
        }
        let Some((before, after)) = levels(analysis, read, fall.run_ns) else { continue };
        if after <= FELL * before {
            return None;
        }
        is_known = true;
        if after >= HELD * before {
            held = held.or(Some(SupportingEvidence::ReadsHeld { test: words::test(read), before, after }));
        }
    }
    // Reads that fell a little speak of heat or of a limit.
    if is_known && held.is_none() {
        return None;
    }
    let in_visits: Vec<u64> =
        falls.iter().filter(|fall| fall.within_visit).map(|fall| fall.visit_bytes).collect();
    held.or_else(|| same_bytes(&in_visits)).or_else(|| {
        let device = metrics::first_device(analysis, cell);
        let is_flash = device.is_some_and(|device| device.rotational == Some(false));
        // A volume of a cloud has credits.
        (is_flash && !analysis.is_of_guest() && !in_visits.is_empty()).then_some(SupportingEvidence::Flash)
    })
}

/// Rates of a read cell before and after a time of the run: levels when both sides have enough windows, otherwise those of
/// whole visits with enough I/Os.
fn levels(
    analysis: &Analysis<'_>,
    read: &CellRecord,
    (earliest_ns, latest_ns): (u64, u64),
) -> Option<(f64, f64)> {
    if !rate_series::has_times(analysis) {
        return None;
    }
    let series = analysis.rate_series(read)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for segment in &series.segments {
        for (index, &bytes) in segment.bytes.iter().enumerate() {
            let begin_ns = segment.start_ns + series.width_ns * index as u64;
            let rate = bytes as f64 / metrics::seconds(series.width_ns);
            if begin_ns + series.width_ns <= earliest_ns {
                before.push(rate);
            } else if begin_ns >= latest_ns {
                after.push(rate);
            }
        }
    }
    if before.len() >= MIN_WINDOWS && after.len() >= MIN_WINDOWS {
        return Some((rdsk_stats::interquartile_mean(&before), rdsk_stats::interquartile_mean(&after)));
    }
    let rate = |is_on_side: &dyn Fn(&Visit) -> bool| {
        let visits = || read.result.visits.iter().filter(|visit| is_on_side(visit));
        let elapsed_ns: u64 = visits().map(|visit| visit.elapsed_ns).sum();
        let bytes: u64 = visits().map(|visit| visit.bytes).sum();
        let is_enough = visits().map(|visit| visit.ops).sum::<u64>() >= MIN_OPS && elapsed_ns > 0;
        is_enough.then(|| bytes as f64 / metrics::seconds(elapsed_ns))
    };
    Some((
        rate(&|visit| visit.start_ns + visit.elapsed_ns <= earliest_ns)?,
        rate(&|visit| visit.start_ns >= latest_ns)?,
    ))
}

fn same_bytes(bytes: &[u64]) -> Option<SupportingEvidence> {
    let (least, most) = (*bytes.iter().min()?, *bytes.iter().max()?);
    let is_same = bytes.len() >= 2 && most as f64 <= SAME_BYTES * least as f64;
    is_same.then_some(SupportingEvidence::SameBytes { repeats: bytes.len() })
}
