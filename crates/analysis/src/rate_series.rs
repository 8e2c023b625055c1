//! The rate of a cell over time: its windows by visit, and the lasting falls of the rate among them. It reports what
//! happened and when, and explains nothing.

use crate::metrics::{self, typical_ns};
use rdsk_model::{CellRecord, Record, StopReason, VerdictCode, Visit};
use rdsk_stats::level_shift;

/// Blocks that an ordinary window must hold: with fewer, a window without a completion is no news.
const BLOCKS_PER_WINDOW: u64 = 4;
/// Windows on each side of a fall, and the time that they must span. A faster first second counts as warm-up.
const MIN_WINDOWS: usize = 10;
const MIN_NS: u64 = 1_000_000_000;
/// The lower level within a visit is at most this share of the higher one.
const LOWER: f64 = 0.8;
/// The same between two visits: on a noisy machine two visits differ by chance far more than two halves of one.
const LOWER_BETWEEN: f64 = 0.6;

/// Parts of a visit whose levels are compared with those of a fall in another visit, and how many of the last ones count.
const PARTS: usize = 5;
const LAST_PARTS: usize = 3;

/// A visit's full windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// When the visit began, from the start of the run; 0 in Records that do not say.
    pub start_ns: u64,
    /// I/O time of the cell's earlier visits.
    pub before_ns: u64,
    /// Bytes of the cell's earlier visits.
    pub before_bytes: u64,
    /// Bytes of the visit before the first window here: streams that began one after the other.
    pub early_bytes: u64,
    /// Time after the last full window.
    pub rest_ns: u64,
    /// Bytes of each full window.
    pub bytes: Vec<u64>,
}

/// A cell's windows by visit.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSeries {
    /// Width of a window, at least the Record's: so wide that an ordinary one holds several blocks.
    pub width_ns: u64,
    /// The visits that fill a window.
    pub segments: Vec<Segment>,
}

/// A fall of the rate to a lower level that lasted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelShift {
    /// Position of the visit among those that fill a window: the one in which the lower level began.
    pub segment: usize,
    /// Whether the change was seen during the I/O of a visit, and not between two or near the ends of a short one.
    pub within_visit: bool,
    /// I/O time of the cell until then.
    pub at_ns: u64,
    /// Bytes of the cell until then.
    pub bytes: u64,
    /// Bytes of the visit until then.
    pub visit_bytes: u64,
    /// Earliest and latest time of the change, from the start of the run.
    pub run_ns: (u64, u64),
    /// Level before, in bytes per second: see [`rdsk_stats::interquartile_mean`].
    pub fast: f64,
    /// Level after.
    pub slow: f64,
}

/// Whether the Record says when its visits began.
pub fn has_times(record: &Record) -> bool {
    record.cells.iter().flat_map(|cell| &cell.result.visits).any(|visit| visit.start_ns > 0)
}

/// The windows of a cell whose progress is that of its device. `None` for cells that memory answered, whose writes stop in
/// memory first, that a control group slows down in bursts, or that failed; and for visits shorter than a window.
pub(crate) fn rate_series(cell: &CellRecord) -> Option<RateSeries> {
    if !follows_device(cell) {
        return None;
    }
    let windows = cell.result.windows.as_ref().filter(|windows| windows.width_ns > 0)?;
    let counts = counts(&cell.result.visits, windows.width_ns, windows.bytes.len());
    let (mut segments, mut begin) = (Vec::new(), 0);
    let (mut before_ns, mut before_bytes) = (0, 0);
    for (visit, (count, full)) in cell.result.visits.iter().zip(counts) {
        let of_visit = windows.bytes.get(begin..begin + count)?;
        let together = together(visit, windows.width_ns, full.min(count));
        let bytes = of_visit[together.clone()].to_vec();
        if !bytes.is_empty() {
            let early_ns = windows.width_ns * together.start as u64;
            let late_ns = windows.width_ns * together.end as u64;
            segments.push(Segment {
                start_ns: visit.start_ns + early_ns,
                before_ns: before_ns + early_ns,
                before_bytes,
                early_bytes: of_visit[..together.start].iter().sum(),
                rest_ns: visit.elapsed_ns.saturating_sub(late_ns),
                bytes,
            });
        }
        begin += count;
        before_ns += visit.elapsed_ns;
        before_bytes += visit.bytes;
    }
    coarsened(cell, RateSeries { width_ns: windows.width_ns, segments })
}

/// The lasting falls of a cell's rate, found by [`rdsk_stats::level_shift`]: those within single visits, else one over the
/// whole cell. A fall within a visit is of a fifth at least, one between visits of two fifths. Those within visits come back
/// in most visits, or the rate was high until then and stays low in all that follow: a device with two speeds that come and
/// go falls in a visit now and then, too.
pub(crate) fn level_shifts(cell: &CellRecord) -> Vec<LevelShift> {
    let Some(series) = rate_series(cell) else { return Vec::new() };
    let rates = |segment: &Segment| -> Vec<f64> {
        segment.bytes.iter().map(|&bytes| bytes as f64 / metrics::seconds(series.width_ns)).collect()
    };
    let Ok(windows) = usize::try_from(MIN_NS.div_ceil(series.width_ns)) else { return Vec::new() };
    let fall = |rates: &[f64], lower: f64| {
        level_shift(rates, MIN_WINDOWS.max(windows)).filter(|shift| shift.after <= lower * shift.before)
    };
    let in_visits: Vec<LevelShift> = (0..series.segments.len())
        .filter_map(|index| {
            let shift = fall(&rates(&series.segments[index]), LOWER)?;
            Some(located(&series, index, &shift, Seen::InVisit))
        })
        .collect();
    if !in_visits.is_empty()
        && (is_repeated(&series, in_visits.len(), windows) || is_lasting(&series, &in_visits[0]))
    {
        return in_visits;
    }
    if series.segments.len() < 2 {
        return Vec::new();
    }
    let joined: Vec<f64> = series.segments.iter().flat_map(rates).collect();
    let Some(shift) = fall(&joined, LOWER_BETWEEN) else { return Vec::new() };
    let (mut segment, mut index) = (0, shift.index);
    while index >= series.segments[segment].bytes.len() {
        index -= series.segments[segment].bytes.len();
        segment += 1;
    }
    vec![located(&series, segment, &rdsk_stats::TwoLevels { index, ..shift }, Seen::BetweenVisits)]
}

/// Whether two thirds of the visits that are long enough to show a fall have one.
fn is_repeated(series: &RateSeries, falls: usize, windows: usize) -> bool {
    let least = 2 * MIN_WINDOWS.max(windows);
    let long = series.segments.iter().filter(|segment| segment.bytes.len() >= least).count();
    (falls >= 2 && falls * 3 >= long * 2) || series.segments.len() == 1
}

/// Whether all visits before the one with this fall are at the higher level in each of their five parts, and all later ones
/// at the lower one in the last three: a cache may have emptied at rest.
fn is_lasting(series: &RateSeries, fall: &LevelShift) -> bool {
    let middle = f64::midpoint(fall.fast, fall.slow) * metrics::seconds(series.width_ns);
    let parts = |segment: &Segment| -> Vec<f64> {
        let bytes: Vec<f64> = segment.bytes.iter().map(|&bytes| bytes as f64).collect();
        bytes.chunks(bytes.len().div_ceil(PARTS)).map(rdsk_stats::interquartile_mean).collect()
    };
    let (before, later) = (&series.segments[..fall.segment], &series.segments[fall.segment + 1..]);
    before.iter().all(|segment| parts(segment).iter().all(|level| *level > middle))
        && later
            .iter()
            .all(|segment| parts(segment).iter().rev().take(LAST_PARTS).all(|level| *level < middle))
}

fn follows_device(cell: &CellRecord) -> bool {
    use VerdictCode::{Hole, Incomplete, PageCache, Throttled};
    let workload = &cell.workload;
    let is_other = |code| [Hole, Incomplete, PageCache, Throttled].contains(&code);
    // Chosen places lie where the rate differs, and streams that begin one after the other end so, too.
    let is_of_parts = workload.points.is_some()
        || (workload.stagger_ns > 0 && cell.result.visits.iter().any(|visit| visit.overlap.is_none()));
    !workload.is_written_behind()
        && !is_of_parts
        && !matches!(cell.result.stop, StopReason::Error | StopReason::NotApplicable)
        && !cell.verdict.as_ref().is_some_and(|verdict| is_other(verdict.code))
}

/// The windows in which all streams of a visit ran: what comes and goes with streams is no doing of the device.
fn together(visit: &Visit, width_ns: u64, full: usize) -> std::ops::Range<usize> {
    let Some(overlap) = visit.overlap else { return 0..full };
    let window = |ns: u64| usize::try_from(ns).unwrap_or(usize::MAX).min(full);
    let begin = window(overlap.start_ns.div_ceil(width_ns));
    begin..window(overlap.end_ns / width_ns).max(begin)
}

/// How many windows each visit has, and how many of them are full. A visit's last window is cut off by its end. Where the
/// counts do not add up (Records of earlier versions, of visits that took far longer than planned), the windows are shared out by time.
pub(crate) fn counts(visits: &[Visit], width_ns: u64, windows: usize) -> Vec<(usize, usize)> {
    let size = |ns: u64| usize::try_from(ns).unwrap_or(usize::MAX);
    let io_ns = |visit: &Visit| visit.to_return_ns.unwrap_or(visit.elapsed_ns);
    let exact: Vec<(usize, usize)> = visits
        .iter()
        .map(|visit| (size(io_ns(visit).div_ceil(width_ns)), size(io_ns(visit) / width_ns)))
        .collect();
    if exact.iter().fold(0_usize, |sum, (count, _)| sum.saturating_add(*count)) == windows {
        return exact;
    }
    let all_ns: u128 = visits.iter().map(|visit| u128::from(io_ns(visit))).sum();
    let (mut elapsed_ns, mut begin) = (0_u128, 0);
    visits
        .iter()
        .map(|visit| {
            elapsed_ns += u128::from(io_ns(visit));
            let end = usize::try_from(windows as u128 * elapsed_ns / all_ns.max(1)).unwrap_or(begin);
            let count = end - begin;
            begin = end;
            (count, count.saturating_sub(1))
        })
        .collect()
}

/// Joins neighbouring windows until an ordinary one holds several blocks; `None` when nothing is left.
fn coarsened(cell: &CellRecord, mut series: RateSeries) -> Option<RateSeries> {
    let visits = series.segments.iter().map(|segment| segment.bytes.as_slice());
    let ordinary = ordinary(cell, series.width_ns, visits);
    let mean = (ordinary.iter().sum::<u64>() / (ordinary.len() as u64).max(1)).max(1);
    let factor = BLOCKS_PER_WINDOW.saturating_mul(cell.workload.block_bytes).div_ceil(mean).max(1);
    let group = usize::try_from(factor).unwrap_or(usize::MAX);
    for segment in &mut series.segments {
        let cut = segment.bytes.len() % group;
        segment.rest_ns = segment.rest_ns.saturating_add(series.width_ns.saturating_mul(cut as u64));
        segment.bytes = segment.bytes.chunks_exact(group).map(|group| group.iter().sum()).collect();
    }
    series.width_ns = series.width_ns.saturating_mul(factor);
    series.segments.retain(|segment| !segment.bytes.is_empty());
    (!series.segments.is_empty()).then_some(series)
}

/// Where a fall was seen.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// Both levels within one visit.
    InVisit,
    /// Over several visits, none of which shows it by itself.
    BetweenVisits,
}

/// Places a shift in a visit. One that no visit shows by itself lies near an end of one: a cache that empties at rest hides
/// the change in the first windows, so it lies anywhere between the end of the visit before and what was seen, or between
/// that and the start of the next visit.
fn located(series: &RateSeries, segment: usize, shift: &rdsk_stats::TwoLevels, shown: Seen) -> LevelShift {
    let this = &series.segments[segment];
    let offset_ns = series.width_ns * shift.index as u64;
    let visit_bytes = this.early_bytes + this.bytes[..shift.index].iter().sum::<u64>();
    let change_ns = this.start_ns + offset_ns;
    let is_early = shift.index * 2 <= this.bytes.len();
    let run_ns = match (shown, segment.checked_sub(1), series.segments.get(segment + 1)) {
        (Seen::BetweenVisits, Some(last), _) if is_early => {
            let last = &series.segments[last];
            let end_ns = last.start_ns + series.width_ns * last.bytes.len() as u64 + last.rest_ns;
            (end_ns, change_ns)
        }
        (Seen::BetweenVisits, _, Some(next)) if !is_early => (change_ns, next.start_ns),
        _ => (change_ns, change_ns),
    };
    LevelShift {
        segment,
        within_visit: shown == Seen::InVisit,
        at_ns: this.before_ns + offset_ns,
        bytes: this.before_bytes + visit_bytes,
        visit_bytes,
        run_ns,
        fast: shift.before,
        slow: shift.after,
    }
}

/// Without a completion for this long, and for 20 median latencies, an I/O hangs: what fills and empties in turn, as a cache does, is the
/// ordinary way of a device, and takes less ...
const HANGS_NS: u64 = 5_000_000_000;
pub(crate) const LONG_LATENCIES: u64 = 20;
/// ... if one waited for at least this share of that time; otherwise the program had requested nothing.
pub(crate) const WAITED: f64 = 0.5;

/// The windows of a cell, given by visit, without those of the times in which an I/O hung, if these are most of them; else all.
pub(crate) fn ordinary<'a>(
    cell: &CellRecord,
    width_ns: u64,
    visits: impl Iterator<Item = &'a [u64]>,
) -> Vec<u64> {
    let visits: Vec<&[u64]> = visits.collect();
    let others: Vec<u64> = visits.iter().flat_map(|windows| not_hung(cell, width_ns, windows)).collect();
    let windows: usize = visits.iter().map(|windows| windows.len()).sum();
    if others.is_empty() || others.len() * 2 >= windows { visits.concat() } else { others }
}

fn not_hung(cell: &CellRecord, width_ns: u64, windows: &[u64]) -> Vec<u64> {
    let latency = cell.result.latency_ns.as_ref();
    let Some((typical_ns, max_ns)) = latency.and_then(|latency| Some((typical_ns(latency)?, latency.max?)))
    else {
        return windows.to_vec();
    };
    let least_ns = HANGS_NS.max(LONG_LATENCIES.saturating_mul(typical_ns));
    let hangs = |run: &[u64]| {
        let lasts_ns = width_ns.saturating_mul(run.len() as u64);
        run[0] == 0 && lasts_ns >= least_ns && max_ns as f64 >= WAITED * lasts_ns as f64
    };
    let runs = windows.chunk_by(|last, next| (*last == 0) == (*next == 0));
    runs.filter(|run| !hangs(run)).flatten().copied().collect()
}

#[cfg(test)]
pub(super) mod tests;
