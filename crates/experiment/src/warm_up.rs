//! The warm-up of a cell: the start of its first visit, left out of rate and latencies alike where it was different. The
//! engine keeps the first fifth apart; afterwards it is decided here whether that is left out. It issues nothing.

use rdsk_engine::{Run, WarmUp};
use rdsk_model::{Cell, Extent};

/// The part of the first visit that may be left out as its warm-up: a fifth.
const DIVISOR: u64 = 5;

/// How much of the start of a visit of `run_ns`, of which the cell had some before, is kept apart: whole windows, at most a
/// fifth of it. Only the first visit of a timed cell has a warm-up: a pass counts as a whole, and every sample starts anew.
pub(crate) fn candidate_ns(cell: &Cell, visits_before: usize, run_ns: u64, window_ns: u64) -> u64 {
    let may_have_one = cell.extent == Extent::Timed && visits_before == 0;
    if may_have_one { run_ns / DIVISOR / window_ns.max(1) * window_ns } else { 0 }
}

/// The start that is left out: if the rates in it and those in the rest have intervals that lie apart. None if the visit
/// ended so early that it is more than a fifth, and none if nothing completed in most of the rest, since the start is then
/// most of the I/O itself.
pub(crate) fn left_out(run: &Run) -> Option<&WarmUp> {
    let warm_up = run.warm_up.as_ref()?;
    if warm_up.ops == 0 || warm_up.until_ns.saturating_mul(DIVISOR) > run.to_return_ns {
        return None;
    }
    let start = windows_between(run, 0, warm_up.until_ns);
    let rest = windows_between(run, warm_up.until_ns, run.to_return_ns);
    let busy = rest.iter().filter(|&&bytes| bytes > 0).count();
    if busy * 2 < rest.len() {
        return None;
    }
    let interval = |windows: &[u64]| {
        rdsk_stats::batch_interval(&windows.iter().map(|&bytes| bytes as f64).collect::<Vec<f64>>())
    };
    let (start, rest) = (interval(start)?, interval(rest)?);
    (start.high < rest.low || rest.high < start.low).then_some(warm_up)
}

/// The windows of a visit that lie wholly between two times.
pub(crate) fn windows_between(run: &Run, from_ns: u64, until_ns: u64) -> &[u64] {
    let width_ns = run.window_ns.max(1);
    let window = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(run.windows.len());
    run.windows.get(window(from_ns.div_ceil(width_ns))..window(until_ns / width_ns)).unwrap_or_default()
}
