//! How a cell went over time: its windows laid out over its visits, and the lasting falls of the rate among them. It says
//! what happened and when, and explains nothing.

use crate::metrics;
use rdsk_model::{CellRecord, IoPath, Op, Record, StopReason, Sync, VerdictCode, Visit};

/// Blocks that an ordinary window must hold: with fewer, a window without a completion is no news.
const BLOCKS_PER_WINDOW: u64 = 4;
/// Windows on each side of a fall, and the time that they must span. A faster first second counts as warm-up.
const LEAST_WINDOWS: usize = 10;
const LEAST_NS: u64 = 1_000_000_000;
/// Chance of a false alarm in one series, by the bound of [`is_no_chance`].
const FALSE_ALARM: f64 = 1e-3;
/// The lower level within a visit is at most this share of the higher one.
const LOWER: f64 = 0.8;
/// The same between two visits: on a noisy machine two visits differ by chance far more than two halves of one.
const LOWER_BETWEEN: f64 = 0.6;
/// Parts into which each side of a fall is cut to see whether the level held.
const BATCHES: usize = 5;
/// Share of the fall that must happen at once; a slope has a tenth or so of it there.
const SUDDEN: f64 = 0.6;

/// A visit's full windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// When the visit began, from the start of the run; 0 in Records that do not tell.
    pub start_ns: u64,
    /// I/O time of the cell's earlier visits.
    pub before_ns: u64,
    /// Bytes of the cell's earlier visits.
    pub before_bytes: u64,
    /// Bytes of the visit before the first window here: streams that began one after the other.
    pub early_bytes: u64,
    /// Time behind the last full window.
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
    /// Level before, in bytes per second: see [`level`].
    pub fast: f64,
    /// Level after.
    pub slow: f64,
}

/// Whether the Record tells when its visits began.
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
        let all = windows.bytes.get(begin..begin + count)?;
        let together = together(visit, windows.width_ns, full.min(count));
        let bytes = all[together.clone()].to_vec();
        if !bytes.is_empty() {
            let early_ns = windows.width_ns * together.start as u64;
            let late_ns = windows.width_ns * together.end as u64;
            segments.push(Segment {
                start_ns: visit.start_ns + early_ns,
                before_ns: before_ns + early_ns,
                before_bytes,
                early_bytes: all[..together.start].iter().sum(),
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

/// The lasting falls of a cell's rate: those within single visits, else one over the whole cell. A fall is found by the
/// maximally selected rank sum (Wilcoxon's statistic at every split, the largest taken; Lausen and Schumacher 1992), deflated
/// for the correlation of neighbouring windows and held against a bound of 1 false alarm in 1000 series; it must be sudden,
/// of a fifth at least, and both levels must hold.
pub(crate) fn level_shifts(cell: &CellRecord) -> Vec<LevelShift> {
    let Some(series) = rate_series(cell) else { return Vec::new() };
    let rates = |segment: &Segment| -> Vec<f64> {
        segment.bytes.iter().map(|&bytes| bytes as f64 / metrics::seconds(series.width_ns)).collect()
    };
    let in_visits: Vec<LevelShift> = (0..series.segments.len())
        .filter_map(|index| {
            let step = step(&rates(&series.segments[index]), series.width_ns)?;
            (step.slow <= LOWER * step.fast).then(|| located(&series, index, &step, Seen::InVisit))
        })
        .collect();
    if !in_visits.is_empty() || series.segments.len() < 2 {
        return in_visits;
    }
    let all: Vec<f64> = series.segments.iter().flat_map(rates).collect();
    let Some(step) = step(&all, series.width_ns) else { return Vec::new() };
    let (mut segment, mut index) = (0, step.index);
    while index >= series.segments[segment].bytes.len() {
        index -= series.segments[segment].bytes.len();
        segment += 1;
    }
    if step.slow > LOWER_BETWEEN * step.fast {
        return Vec::new();
    }
    vec![located(&series, segment, &Step { index, ..step }, Seen::BetweenVisits)]
}

/// The level of a series: the mean of its middle half. A few stalls do not move it, as they would a mean; nor do windows
/// that hold three blocks or four, as they would a median.
pub fn level(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    rdsk_stats::mean(&sorted[cut..sorted.len() - cut]).unwrap_or(0.0)
}

fn follows_device(cell: &CellRecord) -> bool {
    use VerdictCode::{Hole, Incomplete, PageCache, Throttled};
    let workload = &cell.workload;
    let is_behind =
        workload.op == Op::Write && workload.path == IoPath::Buffered && workload.sync != Sync::Dsync;
    let is_other = |code| [Hole, Incomplete, PageCache, Throttled].contains(&code);
    // Chosen places lie where the rate differs, and streams that begin one after the other end so, too.
    let is_of_parts = workload.points.is_some()
        || (workload.stagger_ns > 0 && cell.result.visits.iter().any(|visit| visit.overlap.is_none()));
    !is_behind
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
/// counts do not add up (widths that were doubled on the way), the windows are shared out by time.
fn counts(visits: &[Visit], width_ns: u64, windows: usize) -> Vec<(usize, usize)> {
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
    let bytes: u64 = series.segments.iter().flat_map(|segment| &segment.bytes).sum();
    let windows: u64 = series.segments.iter().map(|segment| segment.bytes.len() as u64).sum();
    let mean = (bytes / windows.max(1)).max(1);
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

/// Places a step in a visit. One that no visit shows by itself lies near an end of one: a cache that empties at rest hides
/// the change in the first windows, so it lies anywhere between the end of the visit before and what was seen, or between
/// that and the beginning of the next visit.
fn located(series: &RateSeries, segment: usize, step: &Step, seen: Seen) -> LevelShift {
    let this = &series.segments[segment];
    let offset_ns = series.width_ns * step.index as u64;
    let visit_bytes = this.early_bytes + this.bytes[..step.index].iter().sum::<u64>();
    let change_ns = this.start_ns + offset_ns;
    let is_early = step.index * 2 <= this.bytes.len();
    let run_ns = match (seen, segment.checked_sub(1), series.segments.get(segment + 1)) {
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
        within_visit: seen == Seen::InVisit,
        at_ns: this.before_ns + offset_ns,
        bytes: this.before_bytes + visit_bytes,
        visit_bytes,
        run_ns,
        fast: step.fast,
        slow: step.slow,
    }
}

/// Where a series falls, and the levels on both sides.
struct Step {
    index: usize,
    fast: f64,
    slow: f64,
}

fn step(rates: &[f64], width_ns: u64) -> Option<Step> {
    let least = LEAST_WINDOWS.max(usize::try_from(LEAST_NS.div_ceil(width_ns)).ok()?);
    if rates.len() < 2 * least {
        return None;
    }
    let (index, z) = largest_rank_sum(rates, least)?;
    let (before, after) = rates.split_at(index);
    let step = Step { index, fast: level(before), slow: level(after) };
    // No progress at all is a stall, which ends; not a level.
    let is_fall = step.slow > 0.0
        && is_no_chance(rates, &step, z)
        && is_held(before, after, &step)
        && is_sudden(rates, &step);
    is_fall.then_some(step)
}

/// The split at which the windows before rank highest above those after, with Wilcoxon's statistic in units of its
/// standard deviation (ties corrected).
fn largest_rank_sum(rates: &[f64], least: usize) -> Option<(usize, f64)> {
    let n = rates.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| rates[a].total_cmp(&rates[b]));
    let (mut ranks, mut ties, mut begin) = (vec![0.0; n], 0.0, 0);
    while begin < n {
        let same = order[begin..].iter().take_while(|&&other| rates[other] == rates[order[begin]]).count();
        for &position in &order[begin..begin + same] {
            ranks[position] = (2 * begin + same + 1) as f64 / 2.0;
        }
        ties += (same as f64).powi(3) - same as f64;
        begin += same;
    }
    let size = n as f64;
    let untied = 1.0 - ties / (size.powi(3) - size);
    let mut sum: f64 = ranks[..least - 1].iter().sum();
    let mut best: Option<(usize, f64)> = None;
    for split in least..=n - least {
        sum += ranks[split - 1];
        let first = split as f64;
        let variance = first * (size - first) * (size + 1.0) / 12.0 * untied;
        let z = (sum - first * (size + 1.0) / 2.0) / variance.sqrt();
        if z.is_finite() && best.is_none_or(|(_, largest)| z > largest) {
            best = Some((split, z));
        }
    }
    best
}

/// Whether chance gives a split as marked as this in fewer than 1 of 1000 series: the normal tail is at most
/// exp(−z²/2)/2, and there are at most n splits (Bonferroni). Neighbouring windows that resemble each other count for less
/// than one each: the deflation of an autoregressive series of order 1.
fn is_no_chance(rates: &[f64], step: &Step, z: f64) -> bool {
    let level = |index| if index < step.index { step.fast } else { step.slow };
    let residuals: Vec<f64> = rates.iter().enumerate().map(|(index, rate)| rate - level(index)).collect();
    // One stall among the windows must not hide how much the others resemble each other.
    let limit = 3.0 * 1.4826 * rdsk_stats::mad(&residuals).unwrap_or(0.0);
    let clipped: Vec<f64> = residuals.iter().map(|residual| residual.clamp(-limit, limit)).collect();
    let rho = rdsk_stats::lag1(&clipped).clamp(0.0, 0.95);
    let deflated = z * ((1.0 - rho) / (1.0 + rho)).sqrt();
    deflated >= (2.0 * (rates.len() as f64 / (2.0 * FALSE_ALARM)).ln()).sqrt()
}

/// Whether both levels held: of five parts on each side, all but one before lie above all but one after, and the last part
/// is low.
fn is_held(before: &[f64], after: &[f64], step: &Step) -> bool {
    let parts = |side: &[f64]| -> Vec<f64> {
        side.chunks_exact(side.len() / BATCHES).take(BATCHES).map(level).collect()
    };
    let (mut high, mut low) = (parts(before), parts(after));
    let ends_low = level(&after[after.len() - after.len() / BATCHES..]) < f64::midpoint(step.fast, step.slow);
    high.sort_by(f64::total_cmp);
    low.sort_by(f64::total_cmp);
    ends_low && high[1] > low[BATCHES - 2]
}

/// Whether most of the fall happens at the split, and not all along: the windows on both sides of it differ by most of the
/// whole fall, and two levels are nearer to the windows than a smooth curve is.
fn is_sudden(rates: &[f64], step: &Step) -> bool {
    let shorter = step.index.min(rates.len() - step.index);
    let gap = (rates.len() / 50).min(shorter / 4).max(1);
    let width = (rates.len() / 20).max(5);
    let (end, begin) = (step.index - gap, step.index + gap);
    let before = level(&rates[end.saturating_sub(width)..end]);
    let after = level(&rates[begin..(begin + width).min(rates.len())]);
    before - after >= SUDDEN * (step.fast - step.slow) && is_nearer_than_a_curve(rates, step)
}

/// Sums of absolute distances, from the two levels and from the parabola of least squares: a zone curve is nearly one. The
/// line and the square, less its mean, are orthogonal on equal steps, so each coefficient is found by
/// itself. The levels must be nearer by a margin that shrinks with the number of windows, as chance does.
fn is_nearer_than_a_curve(rates: &[f64], step: &Step) -> bool {
    let size = rates.len() as f64;
    let line = |index: usize| index as f64 - (size - 1.0) / 2.0;
    let square = |index: usize| line(index).powi(2) - (size * size - 1.0) / 12.0;
    let coefficient = |shape: &dyn Fn(usize) -> f64| {
        let along: f64 = rates.iter().enumerate().map(|(index, rate)| shape(index) * rate).sum();
        along / (0..rates.len()).map(|index| shape(index).powi(2)).sum::<f64>()
    };
    let (slope, bend) = (coefficient(&line), coefficient(&square));
    let mean = rdsk_stats::mean(rates).unwrap_or(0.0);
    let (mut from_levels, mut from_curve) = (0.0, 0.0);
    for (index, rate) in rates.iter().enumerate() {
        let level = if index < step.index { step.fast } else { step.slow };
        from_levels += (rate - level).abs();
        from_curve += (rate - mean - slope * line(index) - bend * square(index)).abs();
    }
    from_levels <= (1.0 - 1.0 / size.sqrt()) * from_curve
}

#[cfg(test)]
pub(super) mod tests;
