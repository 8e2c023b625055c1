//! What the first access of each place costs beside later ones: by visits that were the first at their places and others that were not,
//! or by the I/Os of visits that had both. Where that explains a difference over time, the visits with first accesses are left out of
//! every other question about time and position. It names no cause.

use crate::contention::contention;
use crate::groups::by_key;
use crate::metrics::{self, ratio};
use crate::rate_series::counts;
use rdsk_model::{CacheState, CellRecord, FirstAccess, Op, Pattern, Record, StopReason, VerdictCode, Visit};
use rdsk_stats::{median, stddev};

/// From this share of first accesses on, a visit is one of first accesses, ...
const MOSTLY: f64 = 0.5;
/// ... from this one on it has hardly any other, and below the last one it has hardly any.
const NEARLY_ALL: f64 = 0.9;
const HARDLY_ANY: f64 = 0.02;
/// How many times as slow first accesses are at least.
const MIN_FACTOR: f64 = 1.5;
/// The same where one visit shows them, or two: a first visit is slow for reasons of its own, too, such as processors that were idle.
const FEW_FIRST: [f64; 2] = [3.0, 2.0];
/// By how many standard deviations of the later visits, in logarithms, their median is above the first ones: a rate that wanders by
/// itself has been as slow before.
const SPREADS: f64 = 3.0;
/// This share of the later visits is clearly faster than each of the first ones, by this factor.
const MOST_LATER: f64 = 0.8;
const CLEARLY: f64 = 1.3;
/// Later visits, and visits in all, without which nothing is said.
const MIN_LATER: usize = 2;
const MIN_VISITS: usize = 4;
/// I/Os of either kind that a visit with both needs, and that all of them together need; and where the cost is large in each such visit.
const MIN_OPS: u64 = 5;
const MIN_ALL_OPS: u64 = 30;
const MIN_OPS_OF_LARGE: u64 = 3;
const MIN_ALL_OPS_OF_LARGE: u64 = 8;
/// Windows without progress for this long, or for five usual I/Os, are a stall and no cost of each access.
const STALL_NS: u64 = 100_000_000;
const STALL_IOS: u64 = 5;
/// The share of the cells that could show the cost which show it at least, as one in this number, unless the cost is larger.
const SHOWN_IN: usize = 3;
const LARGE: f64 = 4.0;
/// How many times as long a MiB of the test file's layout takes at least as a later write.
const MIN_LAYOUT_FACTOR: f64 = 2.0;
const MIB: u64 = 1 << 20;

/// What shows the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownBy {
    /// Visits that were the first at their places, beside others of the same cell.
    Visits,
    /// First and later I/Os of the same visits.
    Ios,
    /// The layout of the test file, beside later writes.
    Layout,
}

/// First accesses of a cell beside later ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstCost {
    /// What shows it.
    pub shown_by: ShownBy,
    /// Bytes of a place.
    pub place_bytes: u64,
    /// Bytes per second of first accesses.
    pub first_bytes_per_s: f64,
    /// Bytes per second of later ones.
    pub later_bytes_per_s: f64,
    /// First accesses that were seen.
    pub first_ops: u64,
    /// Later ones.
    pub later_ops: u64,
}

impl FirstCost {
    /// How many times as slow the first accesses are.
    pub fn factor(&self) -> f64 {
        self.later_bytes_per_s / self.first_bytes_per_s
    }
}

/// The cells that show the cost, by target and direction, the clearest of each first.
pub fn shown(cells: &[CellRecord]) -> Vec<(&CellRecord, FirstCost)> {
    let judged = cells.iter().filter(|cell| is_judged(cell));
    let costs_by_key = judged.filter_map(|cell| Some((key(cell), (cell, of_cell(cell)?))));
    let mut clearest = Vec::new();
    for (_, group) in by_key(costs_by_key) {
        let of_group = group.len();
        let mut costs: Vec<(&CellRecord, FirstCost)> =
            group.into_iter().filter_map(|(cell, cost)| Some((cell, cost?))).collect();
        costs.sort_by(|(cell, a), (other, b)| clearness(other, b).total_cmp(&clearness(cell, a)));
        let is_large = costs.iter().any(|(_, cost)| cost.factor() >= LARGE);
        if is_large || costs.len() * SHOWN_IN >= of_group {
            clearest.extend(costs);
        }
    }
    clearest
}

/// The rate of large blocks in sequence says most of a volume; then the largest factor.
fn clearness(cell: &CellRecord, cost: &FirstCost) -> f64 {
    let is_streamed = cost.shown_by == ShownBy::Visits && cell.workload.pattern == Pattern::Sequential;
    let blocks = if is_streamed { cell.workload.block_bytes.min(MIB) as f64 } else { 0.0 };
    blocks + cost.factor().min(1e6) / 1e6
}

fn key(cell: &CellRecord) -> (&[u32], Op) {
    (&cell.workload.targets, cell.workload.op)
}

/// Whether a cell's rate can be that of first accesses: not one that memory or a limit made, nor one that others had a part in.
fn is_judged(cell: &CellRecord) -> bool {
    use VerdictCode::{Disturbed, Hole, Incomplete, PageCache, Throttled};
    let workload = &cell.workload;
    let is_other = |code| [Disturbed, Hole, Incomplete, PageCache, Throttled].contains(&code);
    let stays_cached = workload.path.uses_page_cache() && workload.cache != CacheState::Cold;
    let is_of_memory = workload.is_written_behind() || (workload.op == Op::Read && stays_cached);
    let is_measured = !matches!(cell.result.stop, StopReason::Error | StopReason::NotApplicable);
    let is_of_others = cell.verdict.as_ref().is_some_and(|verdict| is_other(verdict.code));
    is_measured && !is_of_memory && !is_of_others
}

/// The part of a visit that was first at its place: of its I/Os, or of the places that a sequence goes through.
fn share(cell: &CellRecord, visit: &Visit) -> f64 {
    let Some(first) = visit.first else { return 0.0 };
    let of_ios = ratio(first.ops, visit.ops.max(1));
    match cell.workload.pattern {
        Pattern::Sequential if cell.workload.points.is_none() => {
            of_ios.max(ratio(first.places.saturating_mul(first.place_bytes), visit.bytes.max(1))).min(1.0)
        }
        _ => of_ios,
    }
}

/// Whether first accesses of a cell cost more than later ones; `None` where it has not enough of both.
fn of_cell(cell: &CellRecord) -> Option<Option<FirstCost>> {
    let place_bytes = cell.result.visits.iter().find_map(|visit| Some(visit.first?.place_bytes))?;
    match (by_visits(cell, place_bytes), by_ios(cell, place_bytes)) {
        (Some(Some(cost)), _) | (_, Some(Some(cost))) => Some(Some(cost)),
        (None, None) => None,
        _ => Some(None),
    }
}

fn by_visits(cell: &CellRecord, place_bytes: u64) -> Option<Option<FirstCost>> {
    let visits: Vec<(f64, &Visit, f64, f64)> = cell
        .result
        .visits
        .iter()
        .zip(rates(cell)?)
        .filter(|(visit, _)| visit.bytes > 0 && visit.elapsed_ns > 0)
        .map(|(visit, (rate, busy_rate))| (share(cell, visit), visit, rate, busy_rate))
        .collect();
    let first: Vec<_> = visits.iter().filter(|(share, ..)| *share >= MOSTLY).collect();
    let later: Vec<_> = visits.iter().filter(|(share, ..)| *share <= HARDLY_ANY).collect();
    if first.is_empty() || later.len() < MIN_LATER || first.len() + later.len() < MIN_VISITS {
        return None;
    }
    let fastest = first.iter().map(|(.., busy_rate)| *busy_rate).fold(0.0, f64::max);
    let clear = later.iter().filter(|(.., rate, _)| *rate >= CLEARLY * fastest).count();
    let rates: Vec<f64> = later.iter().map(|(.., rate, _)| *rate).collect();
    let middle = median(&rates)?;
    let logarithms: Vec<f64> = later.iter().map(|(.., busy_rate)| busy_rate.max(1.0).ln()).collect();
    let spread = stddev(&logarithms).unwrap_or(0.0);
    let least_factor = FEW_FIRST.get(first.len() - 1).copied().unwrap_or(MIN_FACTOR);
    let is_slower = middle >= least_factor * fastest && (middle / fastest).ln() >= SPREADS * spread;
    if !is_slower || (clear as f64) < MOST_LATER * later.len() as f64 {
        return Some(None);
    }
    // Processors that others use make the first visit late, or any other one, and single I/Os much less.
    let is_shared = contention(cell).is_some_and(|contention| contention.is_much() || contention.is_quota());
    let usual_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.p50).unwrap_or(u64::MAX);
    let least_ns = first.iter().filter_map(|(_, visit, ..)| Some(visit.first?.p50_ns)).min().unwrap_or(0);
    if is_shared && (least_ns as f64) < LARGE * usual_ns as f64 {
        return Some(None);
    }
    let purest = first.iter().any(|(share, ..)| *share >= NEARLY_ALL);
    let rate_and_ops = |visits: &[&(f64, &Visit, f64, f64)]| {
        let bytes: u64 = visits.iter().map(|(_, visit, ..)| visit.bytes).sum();
        let elapsed_ns: u64 = visits.iter().map(|(_, visit, ..)| visit.elapsed_ns).sum();
        let ops: u64 = visits.iter().map(|(_, visit, ..)| visit.ops).fold(0, u64::saturating_add);
        (bytes as f64 / metrics::seconds(elapsed_ns), ops)
    };
    let least = if purest { NEARLY_ALL } else { MOSTLY };
    let purest: Vec<_> = first.into_iter().filter(|(share, ..)| *share >= least).collect();
    let ((first_bytes_per_s, first_ops), (later_bytes_per_s, later_ops)) =
        (rate_and_ops(&purest), rate_and_ops(&later));
    let shown_by = ShownBy::Visits;
    Some(Some(FirstCost {
        shown_by,
        place_bytes,
        first_bytes_per_s,
        later_bytes_per_s,
        first_ops,
        later_ops,
    }))
}

/// The rate of each visit, and the one without its stalls; at chosen positions both are that of its median latency.
fn rates(cell: &CellRecord) -> Option<Vec<(f64, f64)>> {
    let (result, workload) = (&cell.result, &cell.workload);
    if workload.points.is_some() {
        let of_pass = |run: &rdsk_model::PointRun| {
            let latencies: Vec<f64> = run.latency_ns.iter().map(|&ns| ns as f64).collect();
            median(&latencies).map(|ns| workload.block_bytes as f64 * 1e9 / ns.max(1.0))
        };
        let rates: Vec<f64> = result.points.iter().map(|run| of_pass(run).unwrap_or(0.0)).collect();
        return (rates.len() == result.visits.len())
            .then(|| rates.into_iter().map(|rate| (rate, rate)).collect());
    }
    let windows = result.windows.as_ref().filter(|windows| windows.width_ns > 0);
    let mut rest = windows.map_or(&[][..], |windows| windows.bytes.as_slice());
    let of_visits = windows.map(|windows| counts(&result.visits, windows.width_ns, windows.bytes.len()));
    let width_ns = windows.map_or(1, |windows| windows.width_ns);
    let rate_of = |(index, visit): (usize, &Visit)| {
        let count = of_visits.as_ref().map_or(0, |counts| counts[index].0).min(rest.len());
        let (own, others) = rest.split_at(count);
        rest = others;
        let usual_ns = visit.first.map_or(0, |first| first.p50_ns);
        let least_ns = STALL_NS.max(STALL_IOS.saturating_mul(usual_ns));
        let stalled_ns: u64 = own
            .split(|&bytes| bytes > 0)
            .map(|empty| width_ns * empty.len() as u64)
            .filter(|&ns| ns >= least_ns)
            .sum();
        let rate = |ns: u64| visit.bytes as f64 / metrics::seconds(ns.max(1));
        (rate(visit.elapsed_ns), rate(visit.elapsed_ns.saturating_sub(stalled_ns)))
    };
    Some(result.visits.iter().enumerate().map(rate_of).collect())
}

/// By the medians of first and later I/Os at random places, in visits that had both. In a sequence the first I/O of a place is also the
/// first one of a chunk or of a window of read-ahead.
fn by_ios(cell: &CellRecord, place_bytes: u64) -> Option<Option<FirstCost>> {
    let workload = &cell.workload;
    if workload.pattern != Pattern::Random || workload.points.is_some() {
        return None;
    }
    let with_both = |least: u64, least_of_all: u64| -> Option<Vec<_>> {
        let visits = cell.result.visits.iter().filter_map(|visit| Some((visit.first?, visit)));
        let both: Vec<_> = visits
            .filter(|(first, visit)| first.ops >= least && visit.ops.saturating_sub(first.ops) >= least)
            .filter_map(|(first, visit)| Some((first, visit.ops - first.ops, first.later_p50_ns?.max(1))))
            .collect();
        let first_ops: u64 = both.iter().map(|(first, ..)| first.ops).fold(0, u64::saturating_add);
        let later_ops: u64 = both.iter().map(|(_, later_ops, _)| *later_ops).fold(0, u64::saturating_add);
        (both.len() >= 2 && first_ops.min(later_ops) >= least_of_all).then_some(both)
    };
    let is_large = |both: &Vec<(FirstAccess, u64, u64)>| {
        both.iter().all(|(first, _, later_p50_ns)| first.p50_ns as f64 >= LARGE * *later_p50_ns as f64)
    };
    let few = || with_both(MIN_OPS_OF_LARGE, MIN_ALL_OPS_OF_LARGE).filter(is_large);
    let both = with_both(MIN_OPS, MIN_ALL_OPS).or_else(few)?;
    let first_ops: u64 = both.iter().map(|(first, ..)| first.ops).fold(0, u64::saturating_add);
    let later_ops: u64 = both.iter().map(|(_, later_ops, _)| *later_ops).fold(0, u64::saturating_add);
    let mean = |times: Vec<(u64, u64)>| {
        let (sum, ops) = times
            .into_iter()
            .fold((0.0, 0.0), |(sum, count), (ns, ops)| (sum + ns as f64 * ops as f64, count + ops as f64));
        sum / f64::max(ops, 1.0)
    };
    let first_ns = mean(both.iter().map(|(first, ..)| (first.p50_ns, first.ops)).collect());
    let later_ns = mean(both.iter().map(|&(_, later_ops, later_p50_ns)| (later_p50_ns, later_ops)).collect());
    let is_slower = |(first, _, later_p50_ns): &(FirstAccess, u64, u64)| {
        first.p50_ns as f64 >= CLEARLY * *later_p50_ns as f64
    };
    if first_ns < MIN_FACTOR * later_ns || !both.iter().all(is_slower) {
        return Some(None);
    }
    let rate = |ns: f64| workload.block_bytes as f64 * metrics::wanted_depth(workload) as f64 * 1e9 / ns;
    Some(Some(FirstCost {
        shown_by: ShownBy::Ios,
        place_bytes,
        first_bytes_per_s: rate(first_ns),
        later_bytes_per_s: rate(later_ns),
        first_ops,
        later_ops,
    }))
}

/// The layout of the test file beside later writes of its blocks in sequence, for each target where it took clearly longer. A later
/// write may wait for others in flight, and takes no less time until it is stable than its share of the whole.
pub fn of_layouts(record: &Record) -> Vec<(&CellRecord, FirstCost)> {
    let of_target = |target: &rdsk_model::Target| {
        let laid_out = target.laid_out.filter(|laid_out| laid_out.bytes >= MIB && laid_out.elapsed_ns > 0)?;
        let is_alike = |cell: &&CellRecord| {
            let workload = &cell.workload;
            workload.targets == [target.index]
                && (workload.op, workload.pattern) == (Op::Write, Pattern::Sequential)
                && workload.block_bytes >= MIB
                && is_judged(cell)
        };
        let costs = record.cells.iter().filter(is_alike).filter_map(|cell| {
            let result = &cell.result;
            let (bytes, ops) = (result.bytes?, result.ops.filter(|&ops| ops > 0)?);
            let waits_ns = result.latency_ns.as_ref()?.p50? as f64;
            let later_ns = waits_ns.max(result.to_stable_ns? as f64 / ops as f64);
            let first_ns = laid_out.elapsed_ns as f64 * (bytes as f64 / ops as f64) / laid_out.bytes as f64;
            let cost = FirstCost {
                shown_by: ShownBy::Layout,
                place_bytes: MIB,
                first_bytes_per_s: laid_out.bytes as f64 / metrics::seconds(laid_out.elapsed_ns),
                later_bytes_per_s: bytes as f64 / metrics::seconds(result.to_stable_ns?),
                first_ops: laid_out.bytes / MIB,
                later_ops: ops,
            };
            (first_ns >= MIN_LAYOUT_FACTOR * later_ns).then_some((cell, cost))
        });
        costs.min_by_key(|(cell, _)| cell.workload.block_bytes)
    };
    record.targets.iter().filter_map(of_target).collect()
}

/// Of each cell the one without the visits that had first accesses, where these cost more on its target: what is left is of one kind.
/// `None` where nothing is to be left out.
pub(crate) fn later_cells(cells: &[CellRecord]) -> Vec<Option<CellRecord>> {
    let shown = shown(cells);
    let factor_of = |cell: &CellRecord| {
        let costs = shown.iter().filter(|(other, _)| key(other) == key(cell));
        costs.map(|(_, cost)| cost.factor()).max_by(f64::total_cmp)
    };
    cells.iter().map(|cell| factor_of(cell).and_then(|factor| later_only(cell, factor))).collect()
}

/// Without the visits whose first accesses took more than hardly any of their time, at this many times the time of later ones: a hundredth of
/// the I/Os at 40 times the time is a third of a visit.
fn later_only(cell: &CellRecord, factor: f64) -> Option<CellRecord> {
    let result = &cell.result;
    let shares: Vec<f64> = result.visits.iter().map(|visit| share(cell, visit)).collect();
    let stays: Vec<bool> = shares.iter().map(|&share| share * factor.max(1.0) <= HARDLY_ANY).collect();
    let is_none_left = !stays.contains(&true);
    // Where all are first accesses, they are of one kind, too; and a position has no other latency.
    let is_alike = shares.iter().all(|&share| share >= NEARLY_ALL) || cell.workload.points.is_some();
    if !stays.contains(&false) || (is_none_left && is_alike) {
        return None;
    }
    let mut later = cell.clone();
    let kept = &mut later.result;
    if let Some(windows) = kept.windows.as_mut().filter(|windows| windows.width_ns > 0) {
        let of_visits = counts(&result.visits, windows.width_ns, windows.bytes.len());
        let of_window = of_visits.iter().zip(&stays).flat_map(|(&(count, _), &stays)| vec![stays; count]);
        let bytes = windows.bytes.iter().zip(of_window).filter(|(_, stays)| *stays);
        windows.bytes = bytes.map(|(&bytes, _)| bytes).collect();
    }
    if kept.points.len() == stays.len() {
        kept.points = keep(&result.points, &stays);
    }
    kept.visits = keep(&result.visits, &stays);
    kept.bytes = Some(kept.visits.iter().map(|visit| visit.bytes).sum());
    kept.ops = Some(kept.visits.iter().map(|visit| visit.ops).fold(0, u64::saturating_add));
    kept.elapsed_ns = Some(kept.visits.iter().map(|visit| visit.elapsed_ns).sum());
    Some(later)
}

fn keep<T: Clone>(items: &[T], stays: &[bool]) -> Vec<T> {
    items.iter().zip(stays).filter(|(_, stays)| **stays).map(|(item, _)| item.clone()).collect()
}

#[cfg(test)]
mod tests;
