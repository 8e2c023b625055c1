//! Speed by position: the rate of all block sizes, targets and Records with the access times, a cloud with a dot for each I/O, the zones
//! and bands that were found in it, and the rate of each sweep.

use super::Subject;
use super::parts::{evidence, names_of, noun, on_target, slug, targets_slug};
use super::rows::{NamedCell, looks, rows};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table, Tick};
use rdsk_analysis::words::plural;
use rdsk_analysis::zones::{Position, Steps, Zone, Zones};
use rdsk_analysis::{Analysis, metrics};
use rdsk_model::{CellRecord, Experiment, Op, PointRun};
use rdsk_report::{Unit, significant};
use rdsk_stats::{mean, median};
use rdsk_units::{Bytes, percent};

/// Values of a line over the positions, and I/Os of each where a part of them is in a band of its own.
const MAX_ON_LINE: usize = 300;
const MIN_SAMPLES: usize = 64;
/// Dots of access times, in the grey that no line of few has.
const MAX_DOTS: usize = 3000;
const DOTS: Look = Look { color: 8, style: 0 };
/// Rows of a table of positions.
const MAX_ROWS: usize = 100;

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let cells = read(subjects);
    if cells.is_empty() {
        return Vec::new();
    }
    let mut figures = vec![over_position(&cells)];
    if let [subject] = subjects {
        figures.extend(cells.iter().map(|cell| cloud(subject.analysis, cell.row.cell, cell.zones)));
        figures.extend(sweeps(&cells));
    }
    figures
}

/// A cell with what was found in it.
struct ReadCell<'s> {
    row: NamedCell<'s>,
    zones: &'s Zones,
}

fn read<'s>(subjects: &[Subject<'s, '_>]) -> Vec<ReadCell<'s>> {
    let rows = rows(subjects, Experiment::Zones, |cell| Bytes(cell.workload.block_bytes).to_string());
    let has_both = noun(rows.iter().map(|row| row.cell)) == "I/O";
    let zones = |row: &NamedCell<'s>| {
        let analysis = subjects[row.whose.result()].analysis;
        analysis.zones(row.cell).filter(|_| metrics::ran(row.cell))
    };
    let named = |row: NamedCell<'s>| {
        let zones = zones(&row)?;
        let label = if has_both { format!("{} {}", row.op(), row.label) } else { row.label.clone() };
        Some(ReadCell { row: NamedCell { label, ..row }, zones })
    };
    rows.into_iter().filter_map(named).collect()
}

/// The rate along the positions, a line for each cell; of a single result with the time of each of its smallest I/Os as dots.
fn over_position(cells: &[ReadCell<'_>]) -> Figure {
    let ends = cells.iter().filter_map(|cell| cell.zones.positions.last());
    let along = unit_along(ends.map(|last| last.offset_bytes));
    let unit = Unit::fit(&Unit::RATES, cells.iter().map(|cell| cell.zones.median_bytes_per_s));
    let looks = looks(&cells.iter().map(|cell| &cell.row).collect::<Vec<_>>());
    let line = |(place, (cell, look)): (usize, (&ReadCell<'_>, Option<Look>))| {
        let points = course(cell.row.cell, cell.zones, along, unit);
        let look = look.unwrap_or(Look { color: place, style: 0 });
        Series::new(cell.row.name(), Shape::Line, points).looking(Some(look))
    };
    let row = |ReadCell { row, zones }: &ReadCell<'_>| {
        let ratio = zones.outer_bytes_per_s.zip(zones.inner_bytes_per_s).map(|(outer, inner)| outer / inner);
        vec![
            row.name(),
            zones.passes.to_string(),
            unit.figure_or_missing(zones.outer_bytes_per_s),
            unit.figure_or_missing(zones.inner_bytes_per_s),
            rdsk_report::or_missing(ratio.map(|ratio| format!("{}x", significant(ratio)))),
            rdsk_report::or_missing(zones.scatter.map(percent)),
            rdsk_report::or_missing(zones.busy_share.map(percent)),
            row.remark.clone(),
        ]
    };
    let (outer, inner) = (format!("outer, {}", unit.name), format!("inner, {}", unit.name));
    let heads = ["", "whole sweeps", &outer, &inner, "outer over inner", "spread", "device busy", "remark"];
    let lines: Vec<Series> = cells.iter().zip(looks).enumerate().map(line).collect();
    let smallest = cells.iter().min_by_key(|cell| (cell.zones.block_bytes, cell.row.op() == Op::Write));
    let dots = smallest.filter(|cell| cell.row.owner.is_empty()).and_then(|cell| access_times(cell, along));
    let (position, rate) = (Axis::from_zero("position", along.name), Axis::from_zero("rate", unit.name));
    let has_bands = cells.iter().any(|cell| cell.zones.latency_bands.is_some());
    let of_band =
        if has_bands { " Where a part of the I/Os waits longer, it is bytes over time." } else { "" };
    let (plot, said) = match dots {
        None => (Plot::new(position, rate, lines), String::new()),
        Some((dots, time)) => {
            let said = format!(" The dots, on the right, are the {}.", dots.name);
            let right = Axis::from_zero("access time", time.name);
            (Plot::new(position, rate, std::iter::once(dots).chain(lines)).with_right(right), said)
        }
    };
    Figure {
        id: "zones-rate".into(),
        title: "Rate over position".into(),
        shows: format!(
            "A line for each block size: the rate at the usual latency of each position and its neighbours.{of_band}{said} Outer is the \
             tenth of the positions with the lowest offsets, inner the tenth with the highest."
        ),
        drawing: Drawing::of(plot, "No position was read or written."),
        table: Table::new(heads, cells.iter().map(row)),
        evidence: evidence(cells.iter().map(|cell| (cell.row.name_with_op(), cell.row.cell))),
    }
}

/// The time of each I/O at its position, and its unit; of very many, of some evenly chosen ones.
fn access_times(cell: &ReadCell<'_>, along: Unit) -> Option<(Series, Unit)> {
    let samples = samples(cell.row.cell)?;
    let unit = Unit::fit(
        &Unit::TIMES,
        rdsk_stats::median(&samples.iter().map(|&(_, ns)| ns as f64).collect::<Vec<_>>()),
    );
    let every = samples.len().div_ceil(MAX_DOTS).max(1);
    let dot = |&(offset, ns): &(u64, u64)| Point::at(along.scaled(offset as f64), unit.scaled(ns as f64));
    let points = samples.iter().step_by(every).map(dot).collect();
    let which = if every == 1 { String::new() } else { format!(", one of every {every}") };
    let name = format!("time per {} of {}{which}", cell.row.op(), Bytes(cell.zones.block_bytes));
    let dots = Series::new(name, Shape::Cloud, points).looking(Some(DOTS));
    Some((Series { is_right: true, ..dots }, unit))
}

/// The offset and the latency in ns of each I/O, by offset.
fn samples(cell: &CellRecord) -> Option<Vec<(u64, u64)>> {
    let places = cell.workload.points.as_ref()?;
    let of_run = |run: &PointRun| {
        let latencies = run.order.iter().zip(&run.latency_ns);
        let sample =
            |(&place, &ns): (&u32, &u64)| Some((*places.offset_bytes.get(place as usize)?, ns.max(1)));
        latencies.filter_map(sample).collect::<Vec<_>>()
    };
    let mut samples: Vec<(u64, u64)> = cell.result.points.iter().flat_map(of_run).collect();
    samples.sort_unstable();
    (!samples.is_empty()).then_some(samples)
}

/// The rate over the positions: that of the median latency of each, and of very many of as many neighbours as make the line readable.
/// Where the latencies have bands it is their bytes over their time: a median would hop from band to band, and each of them is a
/// rate that the device does not keep up.
fn course(cell: &CellRecord, zones: &Zones, along: Unit, unit: Unit) -> Vec<Point> {
    let Some(samples) = samples(cell) else { return Vec::new() };
    let has_bands = zones.latency_bands.is_some();
    let needed = if has_bands { MIN_SAMPLES.div_ceil(cell.result.points.len().max(1)) } else { 1 };
    let each = zones.positions.len().div_ceil(MAX_ON_LINE).max(needed).max(1);
    let point = |part: &[Position]| {
        let (first, last) = (part.first()?.offset_bytes, part.last()?.offset_bytes);
        let from = samples.partition_point(|&(offset, _)| offset < first);
        let to = samples.partition_point(|&(offset, _)| offset <= last);
        let latencies: Vec<f64> = samples[from..to].iter().map(|&(_, ns)| ns as f64).collect();
        let usual_ns = if has_bands { mean(&latencies) } else { median(&latencies) }?;
        let rate = zones.block_bytes as f64 * 1e9 / usual_ns;
        Some(Point::at(along.scaled(part[part.len() / 2].offset_bytes as f64), unit.scaled(rate)))
    };
    zones.positions.chunks(each).filter_map(point).collect()
}

/// The unit of positions, by the largest: a small first one must not make it bytes.
fn unit_along(offsets: impl Iterator<Item = u64>) -> Unit {
    Unit::fit(&Unit::SIZES, offsets.max().map(|offset| offset as f64))
}

fn cloud(analysis: &Analysis<'_>, cell: &CellRecord, zones: &Zones) -> Figure {
    let along = unit_along(zones.positions.last().map(|last| last.offset_bytes).into_iter());
    let unit = Unit::fit(&Unit::RATES, [zones.median_bytes_per_s]);
    let (op, block) = (cell.workload.op, Bytes(zones.block_bytes));
    let mut series: Vec<Series> =
        (1..).zip(&cell.result.points).map(|(pass, run)| dots(cell, pass, run, along, unit)).collect();
    series.extend(levels(zones, along, unit));
    let dots: usize = cell.result.points.iter().map(|run| run.latency_ns.len()).sum();
    let plot = Plot::new(Axis::from_zero("position", along.name), Axis::from_zero("rate", unit.name), series);
    Figure {
        id: format!("zones-{op}-{}{}", slug(&block.to_string()), targets_slug(analysis, cell)),
        title: format!("Rate over position, {op}s of {block}{}", on_target(analysis, cell)),
        shows: format!(
            "A dot for each of {} I/Os in {} over {}; a line for each zone that the sweeps show.",
            rdsk_units::grouped(dots as u64),
            plural(cell.result.points.len() as u64, "sweep"),
            plural(zones.positions.len() as u64, "position"),
        ),
        drawing: Drawing::of(plot, "No position was read or written."),
        table: positions(zones, along, unit),
        evidence: evidence_of_cell(analysis, cell),
    }
}

fn evidence_of_cell(analysis: &Analysis<'_>, cell: &CellRecord) -> Vec<String> {
    evidence([(format!("{} on {}", cell.name(), names_of(analysis, &cell.workload.targets)), cell)])
}

/// One pass: the rate of each of its I/Os at its place.
fn dots(cell: &CellRecord, pass: usize, run: &PointRun, along: Unit, unit: Unit) -> Series {
    let places = cell.workload.points.as_ref();
    let dot = |(&place, &latency_ns): (&u32, &u64)| {
        let (offset, bytes) = places?.get(place as usize, cell.workload.block_bytes)?;
        let rate = bytes as f64 * 1e9 / latency_ns.max(1) as f64;
        Some(Point::at(along.scaled(offset as f64), unit.scaled(rate)))
    };
    let points = run.order.iter().zip(&run.latency_ns).filter_map(dot).collect();
    Series { legend: "one I/O".into(), ..Series::new(format!("sweep {pass}"), Shape::Cloud, points) }
}

/// The rate of each zone, where the sweeps show zones. A band has no line: its distance is from the
/// main mode, which is not the median.
fn levels(zones: &Zones, along: Unit, unit: Unit) -> Option<Series> {
    let has_zones = zones.steps == Steps::Shown || zones.steps == Steps::OfOnePass;
    let piece = |zone: &Zone| {
        let at = |bytes: u64| Point::at(along.scaled(bytes as f64), unit.scaled(zone.bytes_per_s));
        [at(zone.begin_bytes), at(zone.end_bytes)]
    };
    let points = zones.zones.iter().flat_map(piece).collect();
    has_zones.then(|| Series::new("median of each zone", Shape::Level, points))
}

/// Median and worst rate of each position, or of some evenly chosen ones.
fn positions(zones: &Zones, along: Unit, unit: Unit) -> Table {
    let every = zones.positions.len().div_ceil(MAX_ROWS).max(1);
    let row = |position: &Position| {
        let worst = zones.block_bytes as f64 * 1e9 / position.max_ns.max(1) as f64;
        vec![
            along.figure(position.offset_bytes as f64),
            unit.figure(position.bytes_per_s(zones.block_bytes)),
            unit.figure(worst),
        ]
    };
    let heads = [
        format!("position, {}", along.name),
        format!("median, {}", unit.name),
        format!("slowest, {}", unit.name),
    ];
    let left_out = if every == 1 {
        String::new()
    } else {
        format!("One of every {every} positions is listed; the JSON of the result has all of them.")
    };
    let rows = zones.positions.iter().step_by(every).map(row).collect();
    Table { heads: heads.to_vec(), rows, left_out }
}

/// The median rate of each sweep, a line for each block size, direction and target with more than one; `None` where there is none.
fn sweeps(cells: &[ReadCell<'_>]) -> Option<Figure> {
    let lines: Vec<(&ReadCell<'_>, Vec<f64>)> =
        cells.iter().filter_map(|cell| Some((cell, sweep_rates(cell.row.cell)?))).collect();
    let unit = Unit::fit(&Unit::RATES, lines.iter().flat_map(|(_, rates)| rates.iter().copied()));
    let line = |(cell, rates): &(&ReadCell<'_>, Vec<f64>)| {
        let points =
            (1_u32..).zip(rates).map(|(sweep, &rate)| Point::at(f64::from(sweep), unit.scaled(rate)));
        Series::new(cell.row.name(), Shape::Line, points.collect())
    };
    let most = lines.iter().map(|(_, rates)| rates.len()).max()?;
    let tick = |sweep: u32| Tick { at: f64::from(sweep), label: sweep.to_string() };
    let heads = lines.iter().map(|(cell, _)| format!("{}, {}", cell.row.name(), unit.name));
    let row = |sweep: usize| {
        let rates = lines.iter().map(|(_, rates)| unit.figure_or_missing(rates.get(sweep).copied()));
        std::iter::once((sweep + 1).to_string()).chain(rates).collect()
    };
    Some(Figure {
        id: "zones-sweeps".into(),
        title: "Rate of each sweep".into(),
        shows: "The median rate over all positions, sweep by sweep: a line that rises or falls is a change with time, not with \
                position."
            .into(),
        drawing: Drawing::Plot(Plot::new(
            Axis::from_zero("sweep", "").with_ticks((1_u32..).take(most).map(tick).collect()),
            Axis::from_zero("median rate", unit.name),
            lines.iter().map(line),
        )),
        table: Table::new(std::iter::once("sweep".to_owned()).chain(heads), (0..most).map(row)),
        evidence: evidence(lines.iter().map(|(cell, _)| (cell.row.name_with_op(), cell.row.cell))),
    })
}

/// Bytes per second at the median latency of each sweep; `None` with fewer than two.
fn sweep_rates(cell: &CellRecord) -> Option<Vec<f64>> {
    let block = cell.workload.block_bytes as f64;
    let rate = |run: &PointRun| {
        let rates: Vec<f64> = run.latency_ns.iter().map(|&ns| block * 1e9 / ns.max(1) as f64).collect();
        median(&rates)
    };
    let rates: Vec<f64> = cell.result.points.iter().filter_map(rate).collect();
    (rates.len() > 1).then_some(rates)
}
