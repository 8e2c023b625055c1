//! What the cells of `scale` say: what all streams did together and the ramp apart from it, what each stream and each target
//! had, where more streams stop helping, and what limits there. Derived from a Record on request; it claims no limit
//! whose counters are missing.

mod cause;
mod limit;
mod shared;
mod shares;

pub use crate::target_shares::TargetShare;
pub use cause::{Cause, Limit};
use limit::limit;
pub use limit::{BUSY, IDLE, name, of_point};
use shared::of_targets_together;
pub use shares::{Fairness, Point, Ramp, StreamShare};

use std::collections::BTreeSet;

use crate::comparison::{Family, Kind, Measure, NoRatio, Ratio, ratio_to_sum};
use rdsk_model::{CellRecord, Experiment, Op, Record};
use rdsk_stats::{Knee, Step, knee};

/// Targets that surely give less than this part of what each gives by itself share something.
const TOGETHER: f64 = 0.9;

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
    /// Of several targets: one stream on each of them by itself, in the order of the targets; empty where not all were measured.
    pub alone: Vec<Point<'a>>,
    /// Of several targets: what the fewest streams on all of them give together over what each gives by itself.
    pub together: Option<Ratio>,
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

impl<'a> Grid<'a> {
    /// The stream counts of all lines, ascending.
    pub fn counts(&self) -> Vec<u32> {
        let counts: BTreeSet<u32> =
            self.lines.iter().flat_map(|line| &line.points).map(Point::count).collect();
        counts.into_iter().collect()
    }

    /// What the counts count: `stream`, and of several ranks `host` or `rank`.
    pub fn noun(&self) -> &'static str {
        let first = self.lines.iter().flat_map(|line| &line.points).next();
        first.map_or("stream", Point::noun)
    }

    /// The line of a block size.
    pub fn line(&self, block_bytes: u64) -> Option<&Line<'a>> {
        self.lines.iter().find(|line| line.block_bytes == block_bytes)
    }
}

impl<'a> Line<'a> {
    /// The cell of a number of streams.
    pub fn point(&self, streams: u32) -> Option<&Point<'a>> {
        self.points.iter().find(|point| point.count() == streams)
    }

    /// What the targets give one by one, added up, in bytes per second; `None` where not all were measured.
    pub fn sum_alone(&self) -> Option<f64> {
        let rates: Option<Vec<f64>> = self.alone.iter().map(Point::bytes_per_s).collect();
        rates.filter(|rates| !rates.is_empty()).map(|rates| rates.iter().sum())
    }
}

/// Mean time of a cell's requests in the device; `None` where it is not known.
type DeviceNs<'s> = &'s dyn Fn(&CellRecord) -> Option<f64>;

/// Reads the `scale` cells of a Record: one grid per direction and set of targets, in the order of the Record. Single streams on one of
/// several targets are no grid of their own: they stand beside what the targets gave together.
pub(crate) fn analyse<'a>(
    record: &'a Record,
    family: Option<&Family<'_>>,
    device_ns: DeviceNs<'_>,
) -> Vec<Grid<'a>> {
    let mut grids: Vec<Grid<'a>> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.experiment == Experiment::Scale) {
        let (op, targets) = (cell.workload.op, &cell.workload.targets);
        let position = grids.iter().position(|grid| grid.op == op && grid.targets == *targets);
        let position = position.unwrap_or_else(|| {
            grids.push(Grid { op, targets: targets.clone(), lines: Vec::new() });
            grids.len() - 1
        });
        add(&mut grids[position], cell);
    }
    let mut grids = with_singles(grids);
    for line in grids.iter_mut().flat_map(|grid| &mut grid.lines) {
        line.points.sort_by_key(Point::count);
        line.finish(record, family, device_ns);
    }
    for grid in &mut grids {
        grid.lines.sort_by_key(|line| line.block_bytes);
        grid.have_one_limit();
    }
    grids
}

/// The grids of several targets with their single streams, and those of one target that are more than that.
fn with_singles(grids: Vec<Grid<'_>>) -> Vec<Grid<'_>> {
    let is_single = |grid: &Grid<'_>| {
        let counts_one = |line: &Line<'_>| line.points.iter().all(|point| point.count() == 1);
        let is_part = |other: &Grid<'_>| {
            other.op == grid.op && other.targets.len() > 1 && other.targets.contains(&grid.targets[0])
        };
        grid.targets.len() == 1 && grid.lines.iter().all(counts_one) && grids.iter().any(is_part)
    };
    let are_single: Vec<bool> = grids.iter().map(is_single).collect();
    let (singles, mut others): (Vec<_>, Vec<_>) =
        grids.into_iter().zip(are_single).partition(|(_, is_single)| *is_single);
    for grid in others.iter_mut().map(|(grid, _)| grid).filter(|grid| grid.targets.len() > 1) {
        for line in &mut grid.lines {
            let alone = grid.targets.iter().map(|target| {
                let is_its =
                    |(single, _): &&(Grid<'_>, bool)| single.op == grid.op && single.targets == [*target];
                let single = singles.iter().find(is_its)?.0.line(line.block_bytes)?;
                single.point(1).filter(|point| point.is_whole()).cloned()
            });
            line.alone = alone.collect::<Option<_>>().unwrap_or_default();
        }
    }
    others.into_iter().map(|(grid, _)| grid).collect()
}

fn add<'a>(grid: &mut Grid<'a>, cell: &'a CellRecord) {
    let block_bytes = cell.workload.block_bytes;
    let point = shares::point(cell);
    match grid.lines.iter_mut().find(|line| line.block_bytes == block_bytes) {
        Some(line) => line.points.push(point),
        None => grid.lines.push(Line {
            block_bytes,
            points: vec![point],
            knee: None,
            no_ratio: None,
            alone: Vec::new(),
            together: None,
        }),
    }
}

impl Line<'_> {
    /// What needs all cells of the line: the speed-ups, what targets give together, and the knee.
    fn finish(&mut self, record: &Record, family: Option<&Family<'_>>, device_ns: DeviceNs<'_>) {
        let single = self.point(1).filter(|point| point.is_whole()).map(|point| point.cell);
        // Targets are compared with what each gives by itself, added up: one of unlike targets stands for no other.
        let bases: Vec<&CellRecord> = match &self.alone[..] {
            [] => single.into_iter().collect(),
            alone => alone.iter().map(|point| point.cell).collect(),
        };
        for point in &mut self.points {
            let has_base = point.is_whole() && !bases.is_empty();
            let is_base = bases.iter().any(|base| base.id == point.cell.id);
            let by_rounds =
                (has_base && !is_base).then(|| ratio_to_sum(point.cell, &bases, Measure::Together));
            point.speed_up = if has_base { speed_up(point.cell, &bases, by_rounds) } else { None };
            point.speed_up_interval = by_rounds.and_then(Result::ok).map(|ratio| (ratio.low, ratio.high));
            point.evenness = family.and_then(|family| family.evenness.get(point.cell.id.as_str()).copied());
        }
        let fewest = self.points.iter().find(|point| !self.alone.is_empty() && point.is_whole());
        self.together = fewest.and_then(|point| ratio_to_sum(point.cell, &bases, Measure::Together).ok());
        let whole: Vec<usize> =
            (0..self.points.len()).filter(|&index| self.points[index].is_whole()).collect();
        let compared: Vec<(Step, Option<NoRatio>)> = whole
            .windows(2)
            .filter_map(|pair| step(family?, &self.points[pair[0]], &self.points[pair[1]]))
            .collect();
        self.no_ratio = compared.iter().map(|(_, no_ratio)| *no_ratio).reduce(Option::and).flatten();
        let steps: Vec<Step> = compared.into_iter().map(|(step, _)| step).collect();
        self.knee = knee(&steps).map(|knee| {
            let (at, next) = (&self.points[whole[knee.index]], &self.points[whole[knee.index + 1]]);
            let limit = limit(record, at, next, device_ns(at.cell).zip(device_ns(next.cell)));
            Stop {
                knee: Knee { index: whole[knee.index], ..knee },
                streams: at.count(),
                next_streams: next.count(),
                limit: match (self.together, limit) {
                    (Some(ratio), Limit::DeviceBusy(cause)) if ratio.high < TOGETHER => {
                        of_targets_together(record, at, self.sum_alone(), ratio, cause)
                    }
                    (_, limit) => limit,
                },
            }
        });
    }
}

/// The ratio by rounds; that of the two rates where there are too few rounds, and none of two sittings.
fn speed_up(
    cell: &CellRecord,
    bases: &[&CellRecord],
    by_rounds: Option<Result<Ratio, NoRatio>>,
) -> Option<f64> {
    let rate = |cell: &CellRecord| cell.result.bytes_per_s.map(|rate| rate.mean);
    let base_rate = bases.iter().map(|base| rate(base)).sum::<Option<f64>>().filter(|&rate| rate > 0.0)?;
    match by_rounds {
        Some(Ok(ratio)) => Some(ratio.mean),
        Some(Err(NoRatio::Sittings)) => None,
        _ => Some(rate(cell)? / base_rate),
    }
}

impl Grid<'_> {
    /// Names one limit for the targets: where some block sizes show that they share a path, the path is what keeps them busy with the
    /// others, too. A limit of another kind stays: small blocks may wait for the processor, and large ones for the device.
    fn have_one_limit(&mut self) {
        let limits = || self.lines.iter().filter_map(|line| Some(&line.knee.as_ref()?.limit));
        let Some(path) = limits().find(|limit| matches!(limit, Limit::SharedPath(_))).cloned() else {
            return;
        };
        for stop in self.lines.iter_mut().filter_map(|line| line.knee.as_mut()) {
            if matches!(stop.limit, Limit::DeviceBusy(_) | Limit::Unknown) {
                stop.limit = path.clone();
            }
        }
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
