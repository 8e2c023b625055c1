//! The warm-up of a cell: the start of its first visit, left out of rate and latencies alike where it was different. The
//! engine keeps the first fifth apart; afterwards it is decided here whether that is left out. It issues nothing.

use crate::cell_totals::{CellTotals, per_second};
use rdsk_engine::{Run, WarmUp};
use rdsk_model::{Cell, Extent};

/// The part of the first visit that may be left out as its warm-up: a fifth.
const DIVISOR: u64 = 5;

/// How much of the start of the next visit, of `run_ns`, is kept apart: whole windows, at most a fifth of it. Only the first
/// visit of a timed cell has a warm-up: a pass counts as a whole, and every sample starts anew.
pub(crate) fn candidate_ns(cell: &Cell, totals: &CellTotals, run_ns: u64, window_ns: u64) -> u64 {
    let is_first = cell.extent == Extent::Timed && totals.visits.is_empty();
    if is_first { run_ns / DIVISOR / window_ns.max(1) * window_ns } else { 0 }
}

/// The start that is left out: if the rates in it and those in the rest have intervals that lie apart. None if the visit
/// ended so early that it is more than a fifth, and none if nothing completed in most of the rest, since the start is then
/// most of the I/O itself.
pub(crate) fn left_out(run: &Run) -> Option<&WarmUp> {
    let warm_up = run.warm_up.as_ref()?;
    if warm_up.ops == 0 || warm_up.until_ns.saturating_mul(DIVISOR) > run.to_return_ns {
        return None;
    }
    let (start, rest) = (rates(run, 0, warm_up.until_ns), rates(run, warm_up.until_ns, run.to_return_ns));
    let busy = rest.iter().filter(|&&rate| rate > 0.0).count();
    if busy * 2 < rest.len() {
        return None;
    }
    let (start, rest) = (rdsk_stats::batch_interval(&start)?, rdsk_stats::batch_interval(&rest)?);
    (start.high < rest.low || rest.high < start.low).then_some(warm_up)
}

/// Bytes per second in each window that lies wholly between two times.
pub(crate) fn rates(run: &Run, from_ns: u64, until_ns: u64) -> Vec<f64> {
    let width_ns = run.window_ns.max(1);
    let window = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(run.windows.len());
    let (first, end) = (window(from_ns.div_ceil(width_ns)), window(until_ns / width_ns));
    let windows = run.windows.get(first..end).unwrap_or_default();
    windows.iter().map(|&bytes| per_second(bytes, run.window_ns)).collect()
}
