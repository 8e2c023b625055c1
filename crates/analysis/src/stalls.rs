//! Times in which no I/O of a cell completed although some waited: where its windows show them, and what they leave unsure in
//! its rate. It names no cause.

use crate::first_access::later_cells;
use crate::groups::by_key;
use crate::metrics::{self, typical_ns};
use crate::rate_series::{LONG_LATENCIES, WAITED, ordinary};
use crate::rate_series::{RateSeries, Segment, rate_series};
use crate::words;
use rdsk_model::{CellRecord, CellResult, Estimate, Op, Stall, StallBasis, Stalls};
use rdsk_stats::{StallsSeen, with_stalls};

/// A window with at most this share of the median made no progress.
const NO_PROGRESS: f64 = 0.05;
/// A neighbour of such a window below this share belongs partly to the stall.
const IN_PART: f64 = 0.7;
/// No progress for this long is a stall, or for [`LONG_LATENCIES`] when that is less, ...
const LONG_NS: u64 = 250_000_000;
/// ... but never for less than this (two windows may be empty by chance), nor than five median latencies.
const MIN_NS: u64 = 100_000_000;
const MIN_LATENCIES: u64 = 5;
/// A visit that begins without progress for less than this may wait for what the one before left in a cache.
const LONG_START_NS: u64 = 2_000_000_000;
/// Minimum number of standard deviations (1.4826 median absolute deviations) between the median and no progress. In noisier
/// series a few windows are nearly empty by chance, and a stall must last this many windows.
const CLEAR: f64 = 4.0;
const MIN_WINDOWS_IN_NOISE: u64 = 20;

/// The stalls of a cell, in order: runs of windows without progress that are long enough and in which an I/O waited. One at
/// the start of a visit counts from [`LONG_START_NS`] on, and not in the first visit of a run, before which the device may have been
/// asleep. Empty for cells whose progress is not that of the device.
pub(crate) fn stalls(cell: &CellRecord, course: &RateSeries) -> Vec<Stall> {
    let Some(latency) = &cell.result.latency_ns else { return Vec::new() };
    let (Some(typical_ns), Some(max_ns)) = (typical_ns(latency), latency.max) else { return Vec::new() };
    let visits = course.segments.iter().map(|segment| segment.bytes.as_slice());
    let of_windows: Vec<f64> =
        ordinary(cell, course.width_ns, visits).into_iter().map(|bytes| bytes as f64).collect();
    let median = rdsk_stats::median(&of_windows).unwrap_or(0.0);
    let deviation = 1.4826 * rdsk_stats::mad(&of_windows).unwrap_or(0.0);
    let is_noisy = (1.0 - NO_PROGRESS) * median < CLEAR * deviation;
    let least_ns = LONG_NS
        .min(LONG_LATENCIES.saturating_mul(typical_ns))
        .max(MIN_NS)
        .max(MIN_LATENCIES.saturating_mul(typical_ns))
        .max(if is_noisy { MIN_WINDOWS_IN_NOISE * course.width_ns } else { 0 });
    let is_long =
        |stall: &Stall| stall.lasts_ns >= least_ns && max_ns as f64 >= WAITED * stall.lasts_ns as f64;
    let segments = course.segments.iter().filter(|_| median > 0.0);
    segments.flat_map(|segment| without_progress(segment, course.width_ns, median)).filter(is_long).collect()
}

/// The runs of windows without progress in a visit, but for a short one at its start.
fn without_progress(segment: &Segment, width_ns: u64, median: f64) -> Vec<Stall> {
    let windows = &segment.bytes;
    let is_empty = |bytes: u64| bytes as f64 <= NO_PROGRESS * median;
    let missing_ns = |bytes: Option<&u64>| missing_ns(bytes, median, width_ns);
    let mut stalls = Vec::new();
    let at_start = windows.iter().take_while(|&&bytes| is_empty(bytes)).count();
    let is_awake = segment.start_ns > 0;
    let is_long_start = is_awake && width_ns.saturating_mul(at_start as u64) >= LONG_START_NS;
    let mut begin = if is_long_start { 0 } else { at_start };
    while let Some(skipped) = windows[begin..].iter().position(|&bytes| is_empty(bytes)) {
        let from = begin + skipped;
        let count = windows[from..].iter().take_while(|&&bytes| is_empty(bytes)).count();
        begin = from + count;
        let late_ns = from.checked_sub(1).map_or(0, |before| missing_ns(windows.get(before)));
        // What was waiting at the end of a visit completed right then.
        let early_ns = if begin == windows.len() { segment.rest_ns } else { missing_ns(windows.get(begin)) };
        let offset_ns = width_ns * from as u64 - late_ns;
        stalls.push(Stall {
            start_ns: segment.start_ns + offset_ns,
            cell_ns: segment.before_ns + offset_ns,
            lasts_ns: width_ns * count as u64 + late_ns + early_ns,
        });
    }
    stalls
}

/// The part of a neighbouring window that belongs to a stall.
fn missing_ns(bytes: Option<&u64>, median: f64, width_ns: u64) -> u64 {
    let share = bytes.map_or(1.0, |&bytes| bytes as f64 / median);
    if share < IN_PART { metrics::whole((1.0 - share) * width_ns as f64) } else { 0 }
}

/// What a cell saw after its warm-up.
struct CellStalls<'a> {
    position: usize,
    cell: &'a CellRecord,
    stalls: Vec<Stall>,
    sums: StallsSeen,
}

impl<'a> CellStalls<'a> {
    /// `later` is the cell without what first accesses explain, if they explain anything.
    fn after_warm_up(position: usize, cell: &'a CellRecord, later: Option<&CellRecord>) -> Option<Self> {
        let series = rate_series(later.unwrap_or(cell))?;
        let warm_up_ns = cell.result.warmup_ns.unwrap_or(0);
        let mut stalls = stalls(later.unwrap_or(cell), &series);
        stalls.retain(|stall| stall.cell_ns >= warm_up_ns);
        let lengths: Vec<f64> = stalls.iter().map(|stall| stall.lasts_ns as f64).collect();
        let windows: u64 = series.segments.iter().map(|segment| segment.bytes.len() as u64).sum();
        let rests_ns: u64 = series.segments.iter().map(|segment| segment.rest_ns).sum();
        let elapsed_ns = (series.width_ns * windows).saturating_add(rests_ns).saturating_sub(warm_up_ns);
        Some(Self { position, cell, stalls, sums: StallsSeen::of(&lengths, elapsed_ns as f64) })
    }
}

/// Puts into each result which stalls its windows show, and makes its interval as wide as they leave the rate unsure. Whether
/// stalls come is a matter of the device, so all cells of the same targets count together: one of 18 s that met none is no
/// surer of its rate than the next one that met two. Where their numbers forbid it, the stalls belong to what is done to the
/// device: then the cells of one direction count together, or each by itself.
pub fn carry(cells: &mut [CellRecord]) {
    let later = later_cells(cells);
    let each = cells.iter().zip(&later).enumerate();
    let own_stalls = each
        .filter_map(|(position, (cell, later))| CellStalls::after_warm_up(position, cell, later.as_ref()));
    let by_target = by_key(own_stalls.map(|own| (&own.cell.workload.targets, own)));
    let mut carried: Vec<(usize, Stalls, StallsSeen, StallsSeen)> = Vec::new();
    for (_, group) in by_target {
        for own in &group {
            let (basis, op) = basis_of(own, &group);
            if let Some((share_low, share_high)) = basis.share_range() {
                let whole = StallBasis {
                    count: basis.count,
                    stalled_ns: metrics::whole(basis.sum),
                    elapsed_ns: metrics::whole(basis.elapsed),
                    share_low,
                    share_high,
                    op,
                };
                let stalls = Stalls { seen: own.stalls.clone(), basis: whole };
                carried.push((own.position, stalls, own.sums, basis));
            }
        }
    }
    for (position, stalls, own, basis) in carried {
        let result = &mut cells[position].result;
        widen(result, |rate| widened(rate, own, basis), "what stalls leave unsure");
        result.stalls = Some(stalls);
    }
}

/// Makes the intervals of both rates wider, and says so beside the margin that the cell ended with: `; with WHAT it is ±3%`.
pub(crate) fn widen(result: &mut CellResult, wider: impl Fn(Estimate) -> Estimate, what: &str) {
    let before = result.bytes_per_s.and_then(|rate| rate.margin());
    for rate in [&mut result.bytes_per_s, &mut result.ops_per_s] {
        *rate = rate.map(&wider);
    }
    let after = result.bytes_per_s.and_then(|rate| rate.margin());
    if let Some(after) = after.filter(|_| after != before) {
        result.why.push_str(&format!("; with {what} it is {}", words::plus_minus(after)));
    }
}

/// The stalls that count for a cell among those of the same targets, and their direction if they have one.
fn basis_of(own: &CellStalls<'_>, group: &[CellStalls<'_>]) -> (StallsSeen, Option<Op>) {
    let op = own.cell.workload.op;
    let is_same = |other: &&CellStalls<'_>| other.cell.workload.op == op;
    let sum = |sum: StallsSeen, other: &CellStalls<'_>| sum.and(other.sums);
    let of_all = group.iter().fold(StallsSeen::default(), sum);
    let same = group.iter().filter(is_same).fold(StallsSeen::default(), sum);
    if same.may_be_of(of_all) && own.sums.may_be_of(of_all) {
        (of_all, Some(op).filter(|_| group.iter().all(|other| is_same(&other))))
    } else if own.sums.may_be_of(same) {
        (same, Some(op))
    } else {
        (own.sums, Some(op))
    }
}

fn widened(rate: Estimate, own: StallsSeen, basis: StallsSeen) -> Estimate {
    // Without an interval nothing is claimed that stalls could make unsure.
    let Some(interval) = rate.low.zip(rate.high) else { return rate };
    let (low, high) = with_stalls(rate.mean, interval, own, basis);
    Estimate { low: Some(low), high: Some(high), ..rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::rates::{laid_out, steady};
    use crate::fixtures::with;
    use rdsk_model::Op;

    const S: u64 = 1_000_000_000;

    /// A cell of one visit of windows of 50 ms, ±1 %, in which nothing completes for so long from each of these times on.
    fn cell(id: &str, op: Op, lasts_s: f64, begins_s: &[f64], stalled_s: f64) -> CellRecord {
        let windows = usize::try_from(metrics::whole(lasts_s * 20.0)).unwrap();
        let at = |index: usize| index as f64 * 0.05;
        let rates: Vec<f64> = steady(windows, 100.0)
            .into_iter()
            .enumerate()
            .map(|(index, rate)| {
                let is_stalled =
                    begins_s.iter().any(|&begin| at(index) >= begin && at(index) < begin + stalled_s - 1e-9);
                if is_stalled { 0.0 } else { rate }
            })
            .collect();
        with(laid_out(id, op, &[rates]), |cell| {
            let latency = cell.result.latency_ns.as_mut().unwrap();
            (latency.p50, latency.max) = (Some(1_000_000), Some(metrics::whole(stalled_s * 1e9)));
            let bytes_per_s = cell.result.bytes.unwrap() as f64 / lasts_s;
            let around = |mean: f64| Estimate { mean, low: Some(0.99 * mean), high: Some(1.01 * mean) };
            cell.result.bytes_per_s = Some(around(bytes_per_s));
            cell.result.ops_per_s = Some(around(bytes_per_s / 65_536.0));
            cell.result.why = "asked".into();
        })
    }

    fn margin(cell: &CellRecord) -> f64 {
        cell.result.bytes_per_s.unwrap().margin().unwrap()
    }

    #[test]
    fn a_stall_is_told_and_widens_its_cell_and_its_neighbours() {
        let mut cells = [
            cell("a", Op::Read, 15.0, &[5.0], 1.0),
            cell("b", Op::Read, 15.0, &[], 1.0),
            cell("c", Op::Write, 15.0, &[], 1.0),
        ];
        carry(&mut cells);
        let [a, b, c] = &cells;
        let stalls = a.result.stalls.as_ref().unwrap();
        assert_eq!(stalls.seen, [Stall { start_ns: 5 * S, cell_ns: 5 * S, lasts_ns: S }]);
        let StallBasis { count, stalled_ns, elapsed_ns, share_low, share_high, op } = stalls.basis;
        assert_eq!((count, stalled_ns, elapsed_ns, op), (1, S, 45 * S, None));
        // Garwood's limits for one event: 0.025 and 5.57 stalls of 1 s in 45 s.
        assert!((share_low - 0.025 / 45.0).abs() < 1e-4 && (share_high - 5.57 / 45.0).abs() < 1e-3);
        let rate = a.result.bytes_per_s.unwrap();
        let clear = rate.mean / (1.0 - 1.0 / 15.0);
        assert!((rate.low.unwrap() / (clear * (1.0 - share_high)) - 1.0).abs() < 1e-9);
        assert!((rate.high.unwrap() / (clear * (1.0 - share_low)) - 1.0).abs() < 1e-9);
        assert_eq!(
            a.result.why,
            format!("asked; with what stalls leave unsure it is {}", words::plus_minus(margin(a)))
        );
        // Its neighbour met none, and cannot know whether that was luck.
        for neighbour in [b, c] {
            let stalls = neighbour.result.stalls.as_ref().unwrap();
            assert!(stalls.seen.is_empty() && stalls.basis.count == 1);
            assert!(margin(neighbour) > 0.06, "±{}", margin(neighbour));
            let of_ops = neighbour.result.ops_per_s.unwrap().margin().unwrap();
            assert!((of_ops - margin(neighbour)).abs() < 1e-9);
        }
    }

    /// An I/O that hangs for many times as long as all visits were meant to take leaves no window out, and is reported as long as it was.
    #[test]
    fn a_stall_that_is_most_of_the_time_is_found() {
        let hung = [steady(6, 100.0), vec![0.0; 600]].concat();
        let visits = [steady(6, 100.0), hung, steady(6, 100.0)];
        let waited = |visits: &[Vec<f64>], max_ns: u64| {
            with(laid_out("a", Op::Read, visits), |cell| {
                let latency = cell.result.latency_ns.as_mut().unwrap();
                (latency.p50, latency.max) = (Some(1_000_000), Some(max_ns));
            })
        };
        let stalls_of = |cell: &CellRecord| stalls(cell, &rate_series(cell).unwrap());
        let stall = Stall { start_ns: S * 3 / 10, cell_ns: S * 6 / 10, lasts_ns: 30 * S };
        assert_eq!(stalls_of(&waited(&visits, 30 * S)), [stall]);
        // Of few blocks in a window, several make an ordinary one.
        let few = visits.clone().map(|visit| visit.iter().map(|rate| rate / 50.0).collect::<Vec<f64>>());
        let [found] = stalls_of(&waited(&few, 30 * S))[..] else { panic!("one stall") };
        assert!(found.lasts_ns.abs_diff(30 * S) < S / 5, "{found:?}");
        // None waited, or all I/Os are so slow.
        assert!(stalls_of(&waited(&visits, S)).is_empty());
        let slow = with(waited(&visits, 30 * S), |cell| {
            cell.result.latency_ns.as_mut().unwrap().p50 = Some(10 * S);
        });
        assert!(stalls_of(&slow).is_empty());
    }

    /// The array empties its cache for half a minute before it answers the first read of a repeat.
    #[test]
    fn a_long_wait_at_the_start_of_a_later_visit_is_a_stall() {
        let visits = |begins_ns: u64, empty: usize| {
            let waiting = [vec![0.0; empty], steady(6, 100.0)].concat();
            with(laid_out("a", Op::Read, &[steady(60, 100.0), waiting]), |cell| {
                let latency = cell.result.latency_ns.as_mut().unwrap();
                (latency.p50, latency.max) = (Some(1_000_000), Some(30 * S));
                cell.result.visits[1].start_ns = begins_ns;
            })
        };
        let seen = |cell: &CellRecord| stalls(cell, &rate_series(cell).unwrap());
        let stall = Stall { start_ns: 9 * S, cell_ns: 3 * S, lasts_ns: 30 * S };
        assert_eq!(seen(&visits(9 * S, 600)), [stall]);
        assert!(seen(&visits(9 * S, 20)).is_empty(), "one second is what a cache may need");
        assert!(seen(&visits(0, 600)).is_empty(), "a device may sleep before the run");
    }

    #[test]
    fn a_cell_that_stalls_by_its_own_nature_leaves_the_others_alone() {
        let often: Vec<f64> = (1..20).map(f64::from).collect();
        let mut cells = [cell("a", Op::Write, 20.5, &often, 0.3), cell("b", Op::Write, 60.0, &[], 1.0)];
        carry(&mut cells);
        assert_eq!(cells[0].result.stalls.as_ref().unwrap().basis.count, 19);
        assert_eq!(cells[1].result.stalls, None, "56 were to be expected");
        assert!(margin(&cells[1]) < 0.0101);
    }

    #[test]
    fn stalls_of_one_direction_leave_the_other_alone() {
        let some: Vec<f64> = (1..7).map(|n| 2.0 * f64::from(n)).collect();
        let mut cells = [
            cell("a", Op::Write, 15.0, &some, 0.3),
            cell("b", Op::Write, 15.0, &some[..5], 0.3),
            cell("c", Op::Read, 40.0, &[], 1.0),
        ];
        carry(&mut cells);
        for cell in &cells[..2] {
            let basis = cell.result.stalls.as_ref().unwrap().basis;
            assert_eq!((basis.count, basis.elapsed_ns, basis.op), (11, 30 * S, Some(Op::Write)));
        }
        assert_eq!(cells[2].result.stalls, None, "six were to be expected");
    }

    #[test]
    fn what_is_cut_as_warm_up_holds_no_stall() {
        let mut cells =
            [with(cell("a", Op::Read, 15.0, &[2.0], 0.5), |cell| cell.result.warmup_ns = Some(3 * S))];
        carry(&mut cells);
        assert_eq!(cells[0].result.stalls, None);
    }

    #[test]
    fn steady_cells_stay_as_they_are() {
        let before = [cell("a", Op::Read, 15.0, &[], 1.0), cell("b", Op::Read, 15.0, &[], 1.0)];
        let mut after = before.clone();
        carry(&mut after);
        assert_eq!(before, after);
    }
}
