//! What the latencies at chosen places say of a disk: the samples of each position, the rate over them, the scatter, and
//! the time that was not spent in I/O. Derived from a Record when asked for; it explains nothing yet.

use rdsk_model::{CellRecord, Rung};
use rdsk_stats::median;

/// The part of the positions at either end that the outer and the inner rate are taken from.
const END_SHARE: usize = 10;
/// Relative scatter up to which a block size is called tight.
pub const TIGHT: f64 = 0.05;
/// What a median absolute deviation of normal scatter is multiplied with to be its standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// One position and what was seen there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// First byte.
    pub offset_bytes: u64,
    /// Passes that visited it.
    pub count: usize,
    /// Median of the latencies, in ns.
    pub median_ns: f64,
    /// Smallest.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// A cell of `zones`, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Zones {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The positions that were visited, by offset.
    pub positions: Vec<Position>,
    /// Median rate over the tenth of the positions with the lowest offsets, in bytes per second.
    pub outer_bytes_per_s: f64,
    /// The same over the tenth with the highest.
    pub inner_bytes_per_s: f64,
    /// Median rate over all positions.
    pub median_bytes_per_s: f64,
    /// Scatter of a sample around the median of its position, as a share of it: the median absolute deviation, scaled as
    /// for normal scatter. `None` with fewer than two passes.
    pub scatter: Option<f64>,
    /// Time between two I/Os that belongs to neither, per I/O, in ns.
    pub outside_ns: f64,
    /// The part of the measured time in which the device was busy; `None` where no counters reach it.
    pub busy_share: Option<f64>,
    /// Complete passes.
    pub passes: usize,
}

impl Position {
    /// Bytes per second of a block of this size.
    #[must_use]
    pub fn bytes_per_s(&self, block_bytes: u64) -> f64 {
        block_bytes as f64 * 1e9 / self.median_ns
    }
}

impl Zones {
    /// Whether its samples scatter little enough for one pass to tell the rate.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        self.scatter.is_some_and(|scatter| scatter <= TIGHT)
    }
}

/// Reads a cell; `None` where no position was visited.
#[must_use]
pub fn zones(cell: &CellRecord) -> Option<Zones> {
    let points = cell.workload.points.as_ref()?;
    let mut samples: Vec<Vec<u64>> = vec![Vec::new(); points.len()];
    for run in &cell.result.points {
        for (&position, &latency_ns) in run.order.iter().zip(&run.latency_ns) {
            if let Some(place) = samples.get_mut(position as usize) {
                place.push(latency_ns.max(1));
            }
        }
    }
    let block_bytes = cell.workload.block_bytes;
    let mut positions = Vec::new();
    let mut off: Vec<f64> = Vec::new();
    for (place, &offset_bytes) in samples.iter().zip(&points.offset_bytes) {
        let (Some(&min_ns), Some(&max_ns)) = (place.iter().min(), place.iter().max()) else { continue };
        let latencies: Vec<f64> = place.iter().map(|&latency_ns| latency_ns as f64).collect();
        let median_ns = median(&latencies)?;
        if place.len() > 1 {
            off.extend(latencies.iter().map(|latency_ns| (latency_ns / median_ns - 1.0).abs()));
        }
        positions.push(Position { offset_bytes, count: place.len(), median_ns, min_ns, max_ns });
    }
    positions.sort_by_key(|position| position.offset_bytes);
    let rates: Vec<f64> = positions.iter().map(|position| position.bytes_per_s(block_bytes)).collect();
    let end = rates.len().div_ceil(END_SHARE);
    let busy = cell.evidence.device.first().filter(|_| cell.evidence.rung <= Rung::Sim);
    Some(Zones {
        block_bytes,
        outer_bytes_per_s: median(&rates[..end])?,
        inner_bytes_per_s: median(&rates[rates.len() - end..])?,
        median_bytes_per_s: median(&rates)?,
        scatter: median(&off).map(|deviation| deviation * MAD_TO_DEVIATION),
        outside_ns: outside_ns(cell)?,
        busy_share: busy.and_then(|device| Some(device.iostat?.util_percent / 100.0)),
        passes: cell.result.points.iter().filter(|run| run.order.len() == points.len()).count(),
        positions,
    })
}

/// Elapsed time that no latency accounts for, per I/O.
fn outside_ns(cell: &CellRecord) -> Option<f64> {
    let inside: u128 = cell
        .result
        .points
        .iter()
        .flat_map(|run| &run.latency_ns)
        .map(|&latency_ns| u128::from(latency_ns))
        .sum();
    let ops = cell.result.ops.filter(|&ops| ops > 0)?;
    Some((cell.result.elapsed_ns? as f64 - inside as f64).max(0.0) / ops as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::cell;
    use rdsk_model::{IoPath, Op, PointRun, Points};

    fn of(samples: &[&[u64]]) -> Option<Zones> {
        let places = samples[0].len() as u64;
        let mut one = cell("zones/read/1M", Op::Read, IoPath::Direct, 1_000_000, 10, 1_000_000);
        one.workload.points = Some(Points {
            offset_bytes: (0..places).map(|index| index << 30).collect(),
            block_bytes: Vec::new(),
        });
        one.result.points = samples
            .iter()
            .map(|run| PointRun {
                order: (0..u32::try_from(run.len()).unwrap()).rev().collect(),
                latency_ns: run.iter().rev().copied().collect(),
            })
            .collect();
        one.result.ops = Some(samples.iter().map(|run| run.len() as u64).sum());
        one.result.elapsed_ns = Some(samples.iter().flat_map(|run| run.iter()).sum::<u64>() + 1000);
        zones(&one)
    }

    #[test]
    fn the_curve_is_that_of_the_medians() {
        let run = [10_000_000, 10_000_000, 20_000_000, 20_000_000];
        let late = [10_000_000, 90_000_000, 20_000_000, 20_000_000];
        let seen = of(&[&run, &run, &late]).unwrap();
        assert_eq!((seen.outer_bytes_per_s, seen.inner_bytes_per_s), (1e8, 5e7));
        assert_eq!((seen.positions[1].median_ns, seen.positions[1].max_ns), (1e7, 90_000_000));
        assert_eq!((seen.passes, seen.scatter), (3, Some(0.0)));
        assert!((seen.outside_ns - 1000.0 / 12.0).abs() < 1e-6);
        assert!(seen.is_tight());
    }

    #[test]
    fn one_pass_has_no_scatter_and_an_interrupted_one_is_not_complete() {
        let seen = of(&[&[10, 10, 10], &[10, 10]]).unwrap();
        assert_eq!(seen.passes, 1);
        assert_eq!(of(&[&[10, 20, 30]]).unwrap().scatter, None);
    }
}
