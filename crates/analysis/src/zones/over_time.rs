//! What time does to a cell of `zones`: a change over its passes, and scatter that lasts from one I/O to the next. The passes of a
//! round are one sample, since they follow each other and share their moment, as their positions do; a state that comes and goes
//! within rounds is no change over them.

use super::positions::Places;
use super::{complete, is_complete};
use rdsk_model::{CellRecord, PointRun};
use rdsk_stats::{MIN_PASSES, PassChange, PassShape, lag1, mad, median, pass_change, stddev};

/// Probability of passes that change as much by chance, below which they are said to differ.
pub const DRIFT_FALSE_ALARM: f64 = 0.001;
/// Change of the latency over the passes from which on it matters.
pub const MIN_DRIFT: f64 = 0.02;
/// What a median absolute deviation is multiplied with, at most, to be a sample that is no stray one.
const STRAY: f64 = 4.5;
/// Parts of a pass whose levels are compared, and the share of a change over the passes from which on two of them differ as much.
const PARTS: usize = 3;
const AS_MUCH: f64 = 0.9;
/// Rounds that begin within this share of their mean distance share their moment.
const SAME_MOMENT: f64 = 0.25;

/// Passes that differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// A trend from the first pass to the last, or a step before a pass.
    pub shape: PassShape,
    /// Probability of such a change by chance: Mann and Kendall's for a trend, Student's for a step.
    pub p_value: f64,
    /// How much longer the I/Os take at the end, as a share; negative if they became faster.
    pub slower_by: f64,
    /// Complete passes.
    pub passes: usize,
    /// The rounds that they are of, each one sample.
    pub rounds: usize,
}

/// The change over the complete passes of at least eight rounds. Passes of two sittings have no time in common in which one could be.
pub(super) fn drift(cell: &CellRecord, places: &Places) -> Option<Drift> {
    if !cell.is_of_one_sitting() {
        return None;
    }
    let (begins_ns, rounds): (Vec<u64>, Vec<Vec<&PointRun>>) = begun_rounds(cell).into_iter().unzip();
    let level = |round: &Vec<&PointRun>| {
        median(&round.iter().flat_map(|run| to_medians(run, places)).collect::<Vec<f64>>()).map(f64::ln)
    };
    let levels: Vec<f64> = rounds.iter().map(level).collect::<Option<_>>()?;
    let change = pass_change(&levels, DRIFT_FALSE_ALARM)?;
    if matches!(change.shape, PassShape::Step(_)) && moments(&begins_ns) < MIN_PASSES {
        return None;
    }
    let shape = match change.shape {
        PassShape::Step(round) => PassShape::Step(rounds[..round].iter().map(Vec::len).sum()),
        PassShape::Trend => PassShape::Trend,
    };
    let drift = Drift {
        shape,
        p_value: change.p_value,
        slower_by: change.by.exp() - 1.0,
        passes: rounds.iter().map(Vec::len).sum(),
        rounds: rounds.len(),
    };
    (change.by.abs() >= MIN_DRIFT && !comes_and_goes(&rounds, places, &change)).then_some(drift)
}

/// How many moments the rounds are of. Every second round goes through the cells backwards, so that the last cell of a round is
/// the first of the next one, and its short passes follow each other at once: they meet the same state of the disk. Of
/// six moments, which ten such passes are, 10 in 64 show one clean step on a disk of two states. As many moments as rounds where the
/// Record does not say when they began.
fn moments(begins_ns: &[u64]) -> usize {
    let (Some(first), Some(last)) = (begins_ns.first(), begins_ns.last()) else { return 0 };
    let mean_ns = last.saturating_sub(*first) as f64 / (begins_ns.len().max(2) - 1) as f64;
    let is_apart = |pair: &&[u64]| pair[1].saturating_sub(pair[0]) as f64 >= SAME_MOMENT * mean_ns;
    1 + begins_ns.windows(2).filter(is_apart).count()
}

/// The complete passes, those of one round together; each by itself where the Record does not show the rounds.
pub(super) fn rounds(cell: &CellRecord) -> Vec<Vec<&PointRun>> {
    begun_rounds(cell).into_iter().map(|(_, round)| round).collect()
}

/// The same, each with the time of its beginning in ns from the start of the run; 0 where the Record does not say it.
fn begun_rounds(cell: &CellRecord) -> Vec<(u64, Vec<&PointRun>)> {
    let visits = &cell.result.visits;
    let is_told = visits.len() == cell.result.points.len();
    let begun = (0_u32..).zip(&cell.result.points).map(|(index, run)| {
        let visit = visits.get(index as usize).filter(|_| is_told);
        (visit.map_or(index, |visit| visit.round), visit.map_or(0, |visit| visit.start_ns), run)
    });
    let complete: Vec<(u32, u64, &PointRun)> = begun.filter(|(_, _, run)| is_complete(cell, run)).collect();
    let of_rounds = complete.chunk_by(|(last, ..), (next, ..)| last == next);
    of_rounds.map(|round| (round[0].1, round.iter().map(|(.., run)| *run).collect())).collect()
}

/// Whether the latency swings within some round as much as it changes over the rounds. Then the disk has a state that comes and
/// goes, each round meets it at a moment of chance, and a few rounds are in order more often than their scatter says: of ten
/// that each meet one of two speeds, 14 in 1024 have one step. A step may fall into one of the rounds beside it, and one round
/// of a trend may swing by chance.
fn comes_and_goes(rounds: &[Vec<&PointRun>], places: &Places, change: &PassChange) -> bool {
    let is_beside = |round: usize| match change.shape {
        PassShape::Step(after) => round == after || round + 1 == after,
        PassShape::Trend => false,
    };
    let by_chance = usize::from(change.shape == PassShape::Trend);
    let others = rounds.iter().enumerate().filter(|(round, _)| !is_beside(*round));
    // The second fastest of its samples is that of the same state at every position, where the median may be of either.
    let fast = |position: &Vec<u64>| {
        let mut samples = position.clone();
        samples.sort_unstable();
        samples.get(1).or(samples.first()).map_or(1.0, |&ns| ns.max(1) as f64)
    };
    let fast: Vec<f64> = places.samples.iter().map(fast).collect();
    let swing_of = |round: &Vec<&PointRun>| {
        let passes = round.iter().map(|run| ratios(run, places, |position| fast[position]));
        swing(&passes.collect::<Vec<_>>())
    };
    let swings =
        others.filter_map(|(_, round)| swing_of(round)).filter(|swing| *swing >= AS_MUCH * change.by.abs());
    swings.count() > by_chance
}

/// The distance of the logarithms of the highest and the lowest level among the parts of some passes; `None` if one has fewer
/// samples than parts.
fn swing(passes: &[Vec<f64>]) -> Option<f64> {
    let parts = |ratios: &Vec<f64>| {
        let part = |at: usize| &ratios[at * ratios.len() / PARTS..(at + 1) * ratios.len() / PARTS];
        (0..PARTS).map(|at| median(part(at)).map(f64::ln)).collect::<Option<Vec<f64>>>()
    };
    let levels: Vec<f64> = passes.iter().map(parts).collect::<Option<Vec<_>>>()?.concat();
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
    places.of_pass(run).map(|(position, ns)| ns.max(1) as f64 / base_ns(position)).collect()
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
