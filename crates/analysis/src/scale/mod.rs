//! What the cells of `scale` say: what all streams did together and the ramp apart from it, what each stream and each target
//! had, where more streams stop helping, and what limits there. Derived from a Record on request; it claims no limit
//! whose counters are missing.

mod limit;
mod shares;

pub use crate::target_shares::TargetShare;
use limit::limit;
pub use limit::{BUSY, Cause, IDLE, Limit, name, of_point};
pub use shares::{Fairness, Point, Ramp, StreamShare};

use std::collections::BTreeSet;

use crate::comparison::{Family, Kind, Measure, NoRatio, Ratio, ratio_of};
use rdsk_model::{CellRecord, Experiment, Op, Record};
use rdsk_stats::{Knee, Step, knee};

/// All cells of one direction over the same targets.
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    /// The direction.
    pub op: Op,
    /// Indices of the targets that the streams were dealt round.
    pub targets: Vec<u32>,
    /// One line per block size, ascending.
    pub lines: Vec<Line<'a>>,
}

/// The cells of one block size.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Bytes of each I/O.
    pub block_bytes: u64,
    /// The cells by ascending number of streams; those that never ran are among them.
    pub points: Vec<Point<'a>>,
    /// Where more streams stop helping.
    pub knee: Option<Stop>,
    /// Why no two numbers of streams can be compared, where that is so.
    pub no_ratio: Option<NoRatio>,
}

/// Where more streams stop helping, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The step that gains too little; its index is the position in [`Line::points`].
    pub knee: Knee,
    /// Streams at the knee.
    pub streams: u32,
    /// Streams of the next larger measured count, which gains less than the rule asks for.
    pub next_streams: u32,
    /// What limits at the knee.
    pub limit: Limit,
}

impl Grid<'_> {
    /// The stream counts of all lines, ascending.
    pub fn counts(&self) -> Vec<u32> {
        let counts: BTreeSet<u32> =
            self.lines.iter().flat_map(|line| &line.points).map(Point::count).collect();
        counts.into_iter().collect()
    }

    /// The line of a block size.
    pub fn line(&self, block_bytes: u64) -> Option<&Line<'_>> {
        self.lines.iter().find(|line| line.block_bytes == block_bytes)
    }
}

impl<'a> Line<'a> {
    /// The cell of a number of streams.
    pub fn point(&self, streams: u32) -> Option<&Point<'a>> {
        self.points.iter().find(|point| point.count() == streams)
    }
}

/// Mean time of a cell's requests in the device; `None` where it is not known.
type DeviceNs<'s> = &'s dyn Fn(&CellRecord) -> Option<f64>;

/// Reads the `scale` cells of a Record: one grid per direction and set of targets, in the order of the Record.
pub(crate) fn analyse<'a>(
    record: &'a Record,
    family: Option<&Family<'_>>,
    device_ns: DeviceNs<'_>,
) -> Vec<Grid<'a>> {
    let mut grids: Vec<Grid<'a>> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.experiment == Experiment::Scale) {
        let (op, targets) = (cell.workload.op, &cell.workload.targets);
        let known = grids.iter().position(|grid| grid.op == op && grid.targets == *targets);
        let position = known.unwrap_or_else(|| {
            grids.push(Grid { op, targets: targets.clone(), lines: Vec::new() });
            grids.len() - 1
        });
        add(&mut grids[position], cell);
    }
    for line in grids.iter_mut().flat_map(|grid| &mut grid.lines) {
        line.points.sort_by_key(Point::count);
        line.finish(record, family, device_ns);
    }
    for grid in &mut grids {
        grid.lines.sort_by_key(|line| line.block_bytes);
    }
    grids
}

fn add<'a>(grid: &mut Grid<'a>, cell: &'a CellRecord) {
    let block_bytes = cell.workload.block_bytes;
    let point = shares::point(cell);
    match grid.lines.iter_mut().find(|line| line.block_bytes == block_bytes) {
        Some(line) => line.points.push(point),
        None => grid.lines.push(Line { block_bytes, points: vec![point], knee: None, no_ratio: None }),
    }
}

impl Line<'_> {
    /// What needs all cells of the line: the speed-ups and the knee.
    fn finish(&mut self, record: &Record, family: Option<&Family<'_>>, device_ns: DeviceNs<'_>) {
        let single = self.point(1).filter(|point| point.is_whole()).map(|point| point.cell);
        for point in &mut self.points {
            let against = single.filter(|_| point.is_whole());
            let one = against.filter(|one| one.id != point.cell.id);
            let by_rounds = one.map(|one| ratio_of(point.cell, one, Measure::Together));
            point.speed_up = against.and_then(|one| speed_up(point.cell, one, by_rounds));
            point.speed_up_interval = by_rounds.and_then(Result::ok).map(|ratio| (ratio.low, ratio.high));
            point.evenness = family.and_then(|family| family.evenness.get(point.cell.id.as_str()).copied());
        }
        let whole: Vec<usize> =
            (0..self.points.len()).filter(|&index| self.points[index].is_whole()).collect();
        let compared: Vec<(Step, Option<NoRatio>)> = whole
            .windows(2)
            .filter_map(|pair| step(family?, &self.points[pair[0]], &self.points[pair[1]]))
            .collect();
        self.no_ratio = compared.iter().map(|(_, no_ratio)| *no_ratio).reduce(Option::and).flatten();
        let steps: Vec<Step> = compared.into_iter().map(|(step, _)| step).collect();
        self.knee = knee(&steps).map(|found| {
            let (at, next) = (&self.points[whole[found.index]], &self.points[whole[found.index + 1]]);
            Stop {
                knee: Knee { index: whole[found.index], ..found },
                streams: at.count(),
                next_streams: next.count(),
                limit: limit(record, at, next, device_ns(at.cell).zip(device_ns(next.cell))),
            }
        });
    }
}

/// The ratio by rounds; that of the two rates where there are too few rounds, and none of two sittings.
fn speed_up(
    cell: &CellRecord,
    single: &CellRecord,
    by_rounds: Option<Result<Ratio, NoRatio>>,
) -> Option<f64> {
    let rate = |cell: &CellRecord| cell.result.bytes_per_s.map(|rate| rate.mean);
    let one = rate(single).filter(|&rate| rate > 0.0)?;
    match by_rounds {
        Some(Ok(ratio)) => Some(ratio.mean),
        Some(Err(NoRatio::Sittings)) => None,
        _ => Some(rate(cell)? / one),
    }
}

/// The step from one number of streams to the next. It has an interval where its comparison is sure.
fn step(family: &Family<'_>, from: &Point<'_>, to: &Point<'_>) -> Option<(Step, Option<NoRatio>)> {
    let compared = family.find(Kind::Streams, to.cell, from.cell)?.ratio;
    let sure = compared.ok().filter(Ratio::is_sure);
    let ratio = compared.map_or(f64::NAN, |ratio| ratio.mean);
    let interval = sure.map(|ratio| (ratio.low, ratio.high));
    Some((Step { from: from.count(), to: to.count(), ratio, interval }, compared.err()))
}

#[cfg(test)]
mod tests;
