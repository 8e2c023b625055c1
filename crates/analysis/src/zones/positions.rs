//! The positions of a cell of `zones`: the samples of each, by offset, and the device they are on.

use rdsk_model::{CellRecord, PointRun, Record};
use rdsk_stats::median;

/// One position and what was seen there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// First byte.
    pub offset_bytes: u64,
    /// Median of the latencies, in ns.
    pub median_ns: f64,
    /// Largest.
    pub max_ns: u64,
}

impl Position {
    /// Bytes per second of a block of this size.
    pub fn bytes_per_s(&self, block_bytes: u64) -> f64 {
        block_bytes as f64 * 1e9 / self.median_ns
    }
}

/// Neighbouring positions of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Place of its first position in the list of positions.
    pub first: usize,
    /// How many positions it has.
    pub positions: usize,
    /// First byte of its first position.
    pub begin_bytes: u64,
    /// Byte after its last position's block.
    pub end_bytes: u64,
    /// Rate at the median latency of its positions, in bytes per second.
    pub bytes_per_s: f64,
}

/// The samples by position.
pub(super) struct Places {
    /// By offset; the latencies of each in the order of the passes.
    pub(super) samples: Vec<Vec<u64>>,
    pub(super) positions: Vec<Position>,
    /// From the index of a chosen place to that of its position; `None` if it was never visited.
    pub(super) position_of: Vec<Option<usize>>,
}

impl Places {
    /// The position of each I/O of a pass in its order, and its latency, in ns.
    pub(super) fn of_pass(&self, run: &PointRun) -> impl Iterator<Item = (usize, u64)> {
        let position = |point: u32| self.position_of.get(point as usize).copied().flatten();
        run.order.iter().zip(&run.latency_ns).filter_map(move |(&point, &ns)| Some((position(point)?, ns)))
    }
}

/// Whether the device has platters, as far as the Record says.
pub fn rotates(record: &Record, cell: &CellRecord) -> bool {
    cell.workload.targets.first().is_some_and(|&target| crate::medium::has_platters(record, target))
}

/// The samples of a cell by position; `None` if no position was visited.
pub(super) fn places(record: &Record, cell: &CellRecord) -> Option<Places> {
    // A time of 0 by a coarse clock is less than one of its steps.
    let least_ns = record.host.as_ref().map_or(1, |host| host.clock.resolution_ns / 2).max(1);
    let points = cell.workload.points.as_ref()?;
    let mut by_point: Vec<Vec<u64>> = vec![Vec::new(); points.len()];
    for run in &cell.result.points {
        for (&point, &latency_ns) in run.order.iter().zip(&run.latency_ns) {
            if let Some(samples) = by_point.get_mut(point as usize) {
                samples.push(latency_ns.max(least_ns));
            }
        }
    }
    let mut visited: Vec<usize> = (0..by_point.len()).filter(|&point| !by_point[point].is_empty()).collect();
    visited.sort_by_key(|&point| points.offset_bytes.get(point));
    let mut places =
        Places { samples: Vec::new(), positions: Vec::new(), position_of: vec![None; by_point.len()] };
    for point in visited {
        let samples = std::mem::take(&mut by_point[point]);
        places.position_of[point] = Some(places.positions.len());
        places.positions.push(position(*points.offset_bytes.get(point)?, &samples)?);
        places.samples.push(samples);
    }
    (!places.positions.is_empty()).then_some(places)
}

fn position(offset_bytes: u64, samples: &[u64]) -> Option<Position> {
    let latencies: Vec<f64> = samples.iter().map(|&latency_ns| latency_ns as f64).collect();
    Some(Position { offset_bytes, median_ns: median(&latencies)?, max_ns: *samples.iter().max()? })
}
