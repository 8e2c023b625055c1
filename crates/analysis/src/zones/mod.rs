//! What the latencies at chosen places say of a disk: the samples of each position, the zones of equal rate, the scatter,
//! bands beside the main mode, change over the passes, and the time that was not spent in I/O. Derived from a
//! Record; the sentences are made elsewhere.

mod boundaries;
mod latency_bands;
mod over_time;
mod positions;
mod reappears;

pub use latency_bands::{Cause, FALSE_ALARM, LatencyBand, LatencyBands, MIN_SHARE, Stretches};
pub use over_time::{DRIFT_FALSE_ALARM, Drift, MIN_DRIFT};
pub use positions::{Position, Zone, rotates};
pub use rdsk_stats::{MIN_PASSES, PassShape};

use crate::contention::is_shared;
use boundaries::{cuts, cuts_of_passes, factor, in_each_pass, zones_of};
use positions::{Places, places};
use rdsk_model::{CellRecord, Pattern, PointRun, Record};
use rdsk_stats::{deviation_within, median, quantile_sorted};
use std::cmp::Ordering;

/// The part of the positions at either end that the outer and the inner rate are taken from.
const END_SHARE: usize = 10;
/// Relative scatter up to which a block size is called tight.
pub const TIGHT: f64 = 0.05;
/// Correlation of the scatter of neighbouring I/Os from which on it comes from time.
const IN_TIME: f64 = 0.3;
/// Probability of a boundary if the rate is the same everywhere, for a whole curve.
pub const BOUNDARY_FALSE_ALARM: f64 = 0.01;
/// Rates nearer to each other than this are one zone.
pub const MIN_STEP: f64 = 0.01;
/// Factor between the fastest and the slowest zone from which zones are worth a word.
pub const MIN_FACTOR: f64 = 1.05;

/// Positions from which on a tenth of them is worth a figure.
pub const MIN_POSITIONS: usize = 20;

/// What the passes of a cell say of steps of the rate along the positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// There is none, or none that the passes agree on.
    None,
    /// The passes show them again at the same positions, each in an order of its own.
    Shown,
    /// A single pass has them: a change with time looks the same.
    OfOnePass,
    /// The medians have them, and these passes cannot separate them from a change with time: they went in ascending order, from the
    /// same start or too few of them.
    Untold,
    /// The medians have them, but other programs shared the processors or the device meanwhile, and their work looks the same.
    Shared,
}

/// A cell of `zones`, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Zones {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The positions that were visited, by offset.
    pub positions: Vec<Position>,
    /// Median rate over the tenth of the positions with the lowest offsets, in bytes per second; `None` if none of them was
    /// visited.
    pub outer_bytes_per_s: Option<f64>,
    /// The same over the tenth with the highest.
    pub inner_bytes_per_s: Option<f64>,
    /// Median rate over all positions.
    pub median_bytes_per_s: f64,
    /// The zones, by offset; one if the rate is the same everywhere, or if the passes do not show its steps again.
    pub zones: Vec<Zone>,
    /// Whether the passes show steps of the rate.
    pub steps: Steps,
    /// The 95 % interval of the factor between the rates of the fastest and the slowest zone; `None` with a single zone, or where a
    /// zone is too small for an interval.
    pub factor_range: Option<(f64, f64)>,
    /// Scatter of a sample around the level of its position, as a share of it: a standard deviation, from the differences between
    /// the samples of each position ([`deviation_within`]). `None` where no position has two samples.
    pub scatter: Option<f64>,
    /// How much the scatter of an I/O is that of the one before it, by the order of issue: the correlation of neighbours.
    /// `None` with fewer than two passes.
    pub scatter_in_time: Option<f64>,
    /// Bands beside the main mode; `None` if there are none.
    pub latency_bands: Option<LatencyBands>,
    /// A change over the passes; `None` if there is none, or if there are too few passes.
    pub drift: Option<Drift>,
    /// Standard deviation of the passes' levels, as a share; `None` with fewer than two complete passes.
    pub pass_scatter: Option<f64>,
    /// Time between two I/Os that belongs to neither, per I/O, in ns.
    pub outside_ns: f64,
    /// The part of the measured time in which the device was busy; `None` if no counters reach it.
    pub busy_share: Option<f64>,
    /// Complete passes.
    pub passes: usize,
    /// The rounds that they are of: passes of one round follow each other and are one sample of the disk's state.
    pub rounds: usize,
}

impl Zones {
    /// Whether its samples scatter so little, without bands, that one pass gives the rate.
    pub fn is_tight(&self) -> bool {
        self.latency_bands.is_none() && self.scatter.is_some_and(|scatter| scatter <= TIGHT)
    }

    /// The zone with the highest rate.
    pub fn fastest(&self) -> &Zone {
        self.extreme(f64::total_cmp)
    }

    /// The zone with the lowest rate.
    pub fn slowest(&self) -> &Zone {
        self.extreme(|rate, other| other.total_cmp(rate))
    }

    fn extreme(&self, order: impl Fn(&f64, &f64) -> Ordering) -> &Zone {
        let zones = self.zones.iter();
        zones.max_by(|zone, other| order(&zone.bytes_per_s, &other.bytes_per_s)).unwrap_or(&self.zones[0])
    }

    /// How many times as fast the fastest zone is as the slowest one.
    pub fn factor(&self) -> f64 {
        self.fastest().bytes_per_s / self.slowest().bytes_per_s
    }

    /// Whether that factor is surely worth a word.
    pub fn differ(&self) -> bool {
        self.factor_range.is_some_and(|(low, _)| low >= MIN_FACTOR)
    }

    /// The rates that nine in ten positions lie between, in bytes per second: the 5th and the 95th percentile of their medians; of fewer
    /// than [`MIN_POSITIONS`], the lowest and the highest.
    pub fn usual_bytes_per_s(&self) -> Option<(f64, f64)> {
        let outside = if self.positions.len() < MIN_POSITIONS { 0.0 } else { 0.05 };
        let rate = |position: &Position| position.bytes_per_s(self.block_bytes);
        let mut rates: Vec<f64> = self.positions.iter().map(rate).collect();
        rates.sort_by(f64::total_cmp);
        quantile_sorted(&rates, outside).zip(quantile_sorted(&rates, 1.0 - outside))
    }

    /// Whether every place is as fast as any other: both ends are, and positions differ by no more than is worth a word, or than the
    /// scatter of their samples makes them. A median of n samples scatters by 1.25 / √n of a sample, and nine in ten lie within 1.64 of
    /// that on either side; half as much again is left to chance. Of 4 passes that scatter by 10 %, a factor of 1.3 is none; beyond that a
    /// difference is worth its figures, whatever it comes from.
    pub fn is_level(&self) -> bool {
        let within = |low: f64, high: f64, factor: f64| high < factor * low;
        let of_chance = self.scatter.unwrap_or(0.0) * 1.25 / (self.passes.max(1) as f64).sqrt();
        let usual = (1.0 + 1.5 * 2.0 * 1.64 * of_chance).clamp(MIN_FACTOR, 1.3);
        let ends = self.outer_bytes_per_s.zip(self.inner_bytes_per_s);
        ends.is_none_or(|(outer, inner)| within(outer.min(inner), outer.max(inner), MIN_FACTOR))
            && self.usual_bytes_per_s().is_none_or(|(low, high)| within(low, high, usual))
    }

    /// Whether what scatters does so from time to time, and not from I/O to I/O: larger blocks would not help.
    pub fn scatters_in_time(&self) -> bool {
        self.scatter_in_time.is_some_and(|correlation| correlation >= IN_TIME)
    }

    /// Puts the one first that shows the zones of a target better: without bands, whose share shifts the medians; then of
    /// less scatter, an unknown one last; then of larger blocks.
    pub fn by_clearness(&self, other: &Zones) -> Ordering {
        let scatter = |zones: &Zones| zones.scatter.unwrap_or(f64::INFINITY);
        let bands = self.latency_bands.is_some().cmp(&other.latency_bands.is_some());
        bands.then(scatter(self).total_cmp(&scatter(other))).then(other.block_bytes.cmp(&self.block_bytes))
    }
}

/// Reads a cell of a Record; `None` if no position was visited.
pub(crate) fn zones(record: &Record, cell: &CellRecord) -> Option<Zones> {
    let places = places(record, cell)?;
    let block_bytes = cell.workload.block_bytes;
    let rates: Vec<f64> = places.positions.iter().map(|position| position.bytes_per_s(block_bytes)).collect();
    let (outer, inner) = ends(cell, &places.positions, &rates);
    let medians: Vec<f64> = places.positions.iter().map(|position| position.median_ns).collect();
    // Before it is asked whether time made them.
    let (cuts, by) = match cuts(&medians) {
        none if none.is_empty() => (cuts_of_passes(&medians, &cell.result.points, &places), SeenBy::Passes),
        cuts => (cuts, SeenBy::Medians),
    };
    let of_medians = zones_of(&places.positions, &medians, &cuts, block_bytes);
    let latency_bands = latency_bands::latency_bands(record, cell, &places, &of_medians);
    let (steps, shown) = shown(cell, &places, cuts, by);
    let zones = zones_of(&places.positions, &medians, &shown, block_bytes);
    let drift = over_time::drift(cell, &places).filter(|_| !is_shared(cell));
    let zones = Zones {
        block_bytes,
        outer_bytes_per_s: outer,
        inner_bytes_per_s: inner,
        median_bytes_per_s: median(&rates)?,
        scatter: scatter(record, &places, median(&medians)?),
        scatter_in_time: over_time::scatter(cell, &places),
        latency_bands,
        drift,
        pass_scatter: over_time::pass_scatter(cell, &places),
        outside_ns: outside_ns(cell)?,
        busy_share: cell.evidence.device.first().and_then(|device| crate::metrics::busy_share(cell, device)),
        passes: complete(cell).count(),
        rounds: over_time::rounds(cell).len(),
        zones,
        steps,
        factor_range: None,
        positions: places.positions.clone(),
    };
    let has_steps = zones.zones.len() > 1;
    let range =
        has_steps.then(|| factor(&cell.result.points, &places, zones.fastest(), zones.slowest())).flatten();
    Some(Zones { factor_range: range, ..zones })
}

/// The scatter of the samples round the level of their position, as a share of it. Steps of a clock, here those of a share of the median
/// of all, do not pass for samples that are the same; those of 1 ns are the figures' own.
fn scatter(record: &Record, places: &Places, median_ns: f64) -> Option<f64> {
    let step_ns = record.host.as_ref().map(|host| host.clock.resolution_ns).filter(|&ns| ns > 1);
    let relative = |(samples, position): (&Vec<u64>, &Position)| -> Vec<f64> {
        samples.iter().map(|&latency_ns| latency_ns as f64 / position.median_ns).collect()
    };
    let positions: Vec<Vec<f64>> = places.samples.iter().zip(&places.positions).map(relative).collect();
    deviation_within(&positions, step_ns.unwrap_or(0) as f64 / median_ns)
}

/// What shows boundaries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenBy {
    /// The medians of the positions.
    Medians,
    /// The ranks within each pass, where the positions are few.
    Passes,
}

/// Whether the passes show these steps, and the boundaries that they show.
fn shown(cell: &CellRecord, places: &Places, cuts: Vec<usize>, by: SeenBy) -> (Steps, Vec<usize>) {
    let runs = &cell.result.points;
    let steps = match cell.workload.pattern {
        _ if cuts.is_empty() => Steps::None,
        _ if is_shared(cell) => Steps::Shared,
        _ if runs.len() < 2 => Steps::OfOnePass,
        Pattern::Sequential => reappears::steps(cell, places),
        // Each pass has an order of its own, and all of them together have been asked.
        Pattern::Random if by == SeenBy::Passes || reappears::reappears(runs, places) => Steps::Shown,
        Pattern::Random => Steps::None,
    };
    match steps {
        Steps::OfOnePass => (steps, cuts),
        Steps::None | Steps::Untold | Steps::Shared => (steps, Vec::new()),
        Steps::Shown => match in_each_pass(cuts, runs, places) {
            none if none.is_empty() => (Steps::None, none),
            boundaries => (Steps::Shown, boundaries),
        },
    }
}

/// Median rates over the tenth of the planned positions with the lowest offsets, and over that with the highest. A pass that
/// was cut short may have visited none of them, and then there is no such rate.
fn ends(cell: &CellRecord, positions: &[Position], rates: &[f64]) -> (Option<f64>, Option<f64>) {
    let mut planned =
        cell.workload.points.as_ref().map_or_else(Vec::new, |points| points.offset_bytes.clone());
    planned.sort_unstable();
    let end = planned.len().div_ceil(END_SHARE);
    let (Some(&low), Some(&high)) = (planned.get(end.saturating_sub(1)), planned.get(planned.len() - end))
    else {
        return (None, None);
    };
    let over = |is_there: &dyn Fn(u64) -> bool| {
        let there = positions.iter().zip(rates).filter(|(position, _)| is_there(position.offset_bytes));
        median(&there.map(|(_, &rate)| rate).collect::<Vec<f64>>())
    };
    (over(&|offset| offset <= low), over(&|offset| offset >= high))
}

/// The passes that visited every place.
fn complete(cell: &CellRecord) -> impl Iterator<Item = &PointRun> {
    cell.result.points.iter().filter(move |run| is_complete(cell, run))
}

fn is_complete(cell: &CellRecord, run: &PointRun) -> bool {
    run.order.len() == cell.workload.points.as_ref().map_or(0, rdsk_model::Points::len)
}

/// Elapsed time that no latency accounts for, per I/O.
fn outside_ns(cell: &CellRecord) -> Option<f64> {
    let latencies = cell.result.points.iter().flat_map(|run| &run.latency_ns);
    let inside: u128 = latencies.map(|&latency_ns| u128::from(latency_ns)).sum();
    let ops = cell.result.ops.filter(|&ops| ops > 0)?;
    Some((cell.result.elapsed_ns? as f64 - inside as f64).max(0.0) / ops as f64)
}

#[cfg(test)]
mod tests;
