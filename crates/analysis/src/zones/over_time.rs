//! What time does to a cell of `zones`: a change over its passes, and scatter that lasts from one I/O to the next. A pass is
//! one sample, since its positions share their moment; a state that comes and goes within passes is no change over them.

use super::complete;
use super::positions::Places;
use rdsk_model::{CellRecord, PointRun};
use rdsk_stats::{PassChange, PassShape, lag1, mad, median, pass_change, stddev};

/// Probability of passes that change as much by chance, below which they are said to differ.
pub const DRIFT_FALSE_ALARM: f64 = 0.001;
/// Change of the latency over the passes from which on it matters.
pub const MIN_DRIFT: f64 = 0.02;
/// What a median absolute deviation is multiplied with, at most, to be a sample that is no stray one.
const STRAY: f64 = 4.5;
/// Parts of a pass whose levels are compared, and the share of a change over the passes from which on two of them differ as much.
const PARTS: usize = 3;
const AS_MUCH: f64 = 0.9;

/// Passes that differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// A trend from the first pass to the last, or a step between two.
    pub shape: PassShape,
    /// Probability of such a change by chance: Mann and Kendall's for a trend, Student's for a step.
    pub p_value: f64,
    /// How much longer the I/Os take at the end, as a share; negative if they became faster.
    pub slower_by: f64,
    /// Complete passes.
    pub passes: usize,
}

/// The change over at least eight complete passes.
pub(super) fn drift(cell: &CellRecord, places: &Places) -> Option<Drift> {
    let levels: Vec<f64> = levels(cell, places)?.into_iter().map(f64::ln).collect();
    let change = pass_change(&levels, DRIFT_FALSE_ALARM)?;
    let slower_by = change.by.exp() - 1.0;
    let drift = Drift { shape: change.shape, p_value: change.p_value, slower_by, passes: levels.len() };
    (change.by.abs() >= MIN_DRIFT && !comes_and_goes(cell, places, &change)).then_some(drift)
}

/// Whether the latency swings within some pass as much as it changes over the passes. Then the disk has a state that comes and
/// goes, each pass meets it at a moment of chance, and a few passes are in order more often than their scatter tells: of ten passes
/// that each meet one of two speeds, 14 in 1024 have one step. A step may fall into one of the passes beside it, and one pass
/// of a trend may swing by chance.
fn comes_and_goes(cell: &CellRecord, places: &Places, change: &PassChange) -> bool {
    let is_beside = |pass: usize| match change.shape {
        PassShape::Step(after) => pass == after || pass + 1 == after,
        PassShape::Trend => false,
    };
    let by_chance = usize::from(change.shape == PassShape::Trend);
    let others = complete(cell).enumerate().filter(|(pass, _)| !is_beside(*pass));
    // The second fastest of its samples is that of the same state at every position, where the median may be of either.
    let fast = |position: &Vec<u64>| {
        let mut samples = position.clone();
        samples.sort_unstable();
        samples.get(1).or(samples.first()).map_or(1.0, |&ns| ns.max(1) as f64)
    };
    let fast: Vec<f64> = places.samples.iter().map(fast).collect();
    let of = |run: &PointRun| swing(&ratios(run, places, |position| fast[position]));
    let swings = others.filter_map(|(_, run)| of(run)).filter(|swing| *swing >= AS_MUCH * change.by.abs());
    swings.count() > by_chance
}

/// The distance of the logarithms of the highest and the lowest level among the parts of a pass; `None` for a pass of fewer samples.
fn swing(ratios: &[f64]) -> Option<f64> {
    if ratios.len() < PARTS {
        return None;
    }
    let part = |at: usize| &ratios[at * ratios.len() / PARTS..(at + 1) * ratios.len() / PARTS];
    let levels: Vec<f64> = (0..PARTS).map(|at| median(part(at)).map(f64::ln)).collect::<Option<_>>()?;
    let (low, high) = levels
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &level| (low.min(level), high.max(level)));
    Some(high - low)
}

/// Standard deviation of the complete passes' levels.
pub(super) fn pass_scatter(cell: &CellRecord, places: &Places) -> Option<f64> {
    stddev(&levels(cell, places)?)
}

/// Of each complete pass the median over the positions of its latency against the position's median.
fn levels(cell: &CellRecord, places: &Places) -> Option<Vec<f64>> {
    complete(cell).map(|run| median(&to_medians(run, places))).collect()
}

/// The latencies of a pass, each against the median of its position.
fn to_medians(run: &PointRun, places: &Places) -> Vec<f64> {
    ratios(run, places, |position| places.positions[position].median_ns)
}

/// The latencies of a pass, each against one of its position.
fn ratios(run: &PointRun, places: &Places, base_ns: impl Fn(usize) -> f64) -> Vec<f64> {
    let position = |point: u32| places.position_of.get(point as usize).copied().flatten();
    let both = run.order.iter().zip(&run.latency_ns);
    both.filter_map(|(&point, &ns)| Some(ns.max(1) as f64 / base_ns(position(point)?))).collect()
}

/// The correlation of the scatter of neighbouring I/Os, by the order of issue. Stray ones are cut down, so that one late I/O
/// neither makes nor hides it.
pub(super) fn scatter(cell: &CellRecord, places: &Places) -> Option<f64> {
    if cell.result.points.len() < 2 {
        return None;
    }
    let off: Vec<f64> =
        cell.result.points.iter().flat_map(|run| to_medians(run, places)).map(f64::ln).collect();
    let most = STRAY * mad(&off)?;
    let clipped: Vec<f64> = off.iter().map(|off| off.clamp(-most, most)).collect();
    let correlation = lag1(&clipped);
    // Below this, chance makes as much.
    Some(if correlation > 2.0 / (off.len() as f64).sqrt() { correlation } else { 0.0 })
}
