//! Size and alignment: the time per I/O over block size, the same for offsets that are not aligned, and the bytes that each
//! write made the kernel read.

use super::parts::{evidence, groups, on_target, size_ticks, targets_slug};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::metrics;
use rdsk_model::{CacheState, CellRecord, Experiment, Op, Record};
use rdsk_report::words::{place, verdict_word};
use rdsk_report::{MISSING, Unit, significant};

pub(super) fn figures(record: &Record) -> Vec<Figure> {
    let groups = groups(record, Experiment::Align, |cell| (cell.workload.op, cell.workload.targets.clone()));
    groups.iter().flat_map(|(_, cells)| of_group(record, cells)).collect()
}

fn of_group(record: &Record, cells: &[&CellRecord]) -> Vec<Figure> {
    let Some(first) = cells.first() else { return Vec::new() };
    let (op, on) = (first.workload.op, on_target(record, first));
    let id = |name: &str| format!("align-{name}-{op}{}", targets_slug(record, first));
    let (aligned, shifted): (Vec<&CellRecord>, Vec<&CellRecord>) =
        cells.iter().partition(|cell| cell.workload.shift_bytes == 0);
    let mut figures = vec![by_size(id("size"), op, &on, &aligned)];
    if !shifted.is_empty() {
        let is_compared = |cell: &&&CellRecord| {
            shifted.iter().any(|other| other.workload.block_bytes == cell.workload.block_bytes)
        };
        let mut compared: Vec<&CellRecord> = aligned.iter().filter(is_compared).copied().collect();
        compared.extend(&shifted);
        figures.push(by_place(id("place"), op, &on, compared));
    }
    figures.extend(reads(id("reads"), op, &on, cells));
    figures
}

/// `cached direct`, `uncached buffered`.
fn column(cell: &CellRecord) -> String {
    let cached = if cell.workload.cache == CacheState::Warm { "cached" } else { "uncached" };
    format!("{cached} {}", cell.workload.path)
}

fn mean_ns(cell: &CellRecord) -> Option<f64> {
    cell.result.latency_ns.as_ref()?.mean.filter(|_| metrics::ran(cell))
}

fn by_size(id: String, op: Op, on: &str, cells: &[&CellRecord]) -> Figure {
    let unit = Unit::fit(&Unit::TIMES, cells.iter().filter_map(|cell| mean_ns(cell)));
    let line = |(name, cells): (String, Vec<&CellRecord>)| {
        let point =
            |cell: &&CellRecord| Some(Point::at(cell.workload.block_bytes as f64, unit.of(mean_ns(cell)?)));
        let mut points: Vec<Point> = cells.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(name, Shape::Line, points)
    };
    let columns = by_key(cells.iter().map(|cell| (column(cell), *cell)));
    let plot = Plot {
        x: Axis::log("block size", "")
            .with_ticks(size_ticks(cells.iter().map(|cell| cell.workload.block_bytes))),
        y: Axis::log(&format!("mean time per {op}"), unit.name),
        series: columns.into_iter().map(line).filter(|series| !series.points.is_empty()).collect(),
    };
    Figure {
        id,
        title: format!("Time per {op} by block size{on}"),
        shows: format!(
            "Aligned {op}s, one line for each state of the page cache and path. Both axes are logarithmic. A {op} that is not \
             possible on a path has no value; the evidence says why."
        ),
        drawing: Drawing::of(plot, "No aligned cell completed."),
        table: table(op, cells),
        evidence: evidence(cells.iter().copied(), |cell| {
            format!("{} {}", column(cell), cell.workload.block_bytes)
        }),
    }
}

fn by_place(id: String, op: Op, on: &str, mut cells: Vec<&CellRecord>) -> Figure {
    cells.sort_by_key(|cell| (cell.workload.block_bytes, cell.workload.shift_bytes));
    let unit = Unit::fit(&Unit::TIMES, cells.iter().filter_map(|cell| mean_ns(cell)));
    let name = |cell: &CellRecord| place(cell.workload.block_bytes, cell.workload.shift_bytes);
    let places = distinct(cells.iter().map(|cell| name(cell)));
    let series = |(column, cells): (String, Vec<&CellRecord>)| {
        let point = |cell: &&CellRecord| {
            let row = places.iter().position(|place| *place == name(cell))?;
            Some(Point::at(unit.of(mean_ns(cell)?), row as f64))
        };
        Series::new(column, Shape::Mark, cells.iter().filter_map(point).collect())
    };
    let columns = by_key(cells.iter().map(|cell| (column(cell), *cell)));
    let plot = Plot {
        x: Axis::log(&format!("mean time per {op}"), unit.name),
        y: Axis::rows(places.iter().cloned()),
        series: columns.into_iter().map(series).filter(|series| !series.points.is_empty()).collect(),
    };
    Figure {
        id,
        title: format!("Time per {op} by alignment{on}"),
        shows: format!(
            "The same {op}s at multiples of their size and moved by some bytes, a mark for each state of the page cache and \
             path. The axis is logarithmic."
        ),
        drawing: Drawing::of(plot, "No cell completed."),
        table: table(op, &cells),
        evidence: evidence(cells.iter().copied(), |cell| format!("{} {}", column(cell), name(cell))),
    }
}

/// The bytes read for each write; `None` where the kernel read nothing, or did not count.
fn reads(id: String, op: Op, on: &str, cells: &[&CellRecord]) -> Option<Figure> {
    let is_asked = |cell: &&&CellRecord| {
        op == Op::Write && metrics::ran(cell) && cell.workload.cache != CacheState::Warm
    };
    let asked: Vec<(&CellRecord, f64)> = cells
        .iter()
        .filter(is_asked)
        .filter_map(|cell| Some((*cell, metrics::read_bytes_per_io(cell)?)))
        .collect();
    if asked.iter().all(|(_, bytes)| *bytes == 0.0) {
        return None;
    }
    let name = |cell: &CellRecord| place(cell.workload.block_bytes, cell.workload.shift_bytes);
    let places = distinct(asked.iter().map(|(cell, _)| name(cell)));
    let columns = by_key(asked.iter().map(|(cell, bytes)| (column(cell), (*cell, *bytes))));
    let slots = columns.len();
    let series = columns.into_iter().enumerate().map(|(slot, (column, cells))| {
        let bar = |(cell, bytes): &(&CellRecord, f64)| {
            let row = places.iter().position(|place| *place == name(cell))?;
            Some(Point::at(*bytes, row as f64))
        };
        Series::new(column, Shape::Bar { slot, slots }, cells.iter().filter_map(bar).collect())
    });
    let plot = Plot {
        x: Axis::from_zero("bytes read for each write", "B"),
        y: Axis::rows(places.iter().cloned()),
        series: series.collect(),
    };
    let rows = asked.iter().map(|(cell, bytes)| vec![column(cell), name(cell), significant(*bytes)]);
    Some(Figure {
        id,
        title: format!("Reads that writes caused{on}"),
        shows: "Bytes that the kernel read for each uncached write: a write of a part of a page makes it read the rest first. \
                A path without a bar at a place read nothing there."
            .into(),
        drawing: Drawing::Plot(plot),
        table: Table {
            heads: ["", "write of", "bytes read"].map(String::from).to_vec(),
            rows: rows.collect(),
            ..Table::default()
        },
        evidence: evidence(asked.iter().map(|(cell, _)| *cell), |cell| format!("{} {}", column(cell), name(cell))),
    })
}

fn table(op: Op, cells: &[&CellRecord]) -> Table {
    let row = |cell: &&CellRecord| {
        let reads = metrics::read_bytes_per_io(cell);
        vec![
            column(cell),
            place(cell.workload.block_bytes, cell.workload.shift_bytes),
            Unit::MICROSECONDS.figure_or_missing(mean_ns(cell)),
            reads.map_or_else(|| MISSING.into(), significant),
            verdict_word(cell),
        ]
    };
    let of = format!("{op} of");
    let heads = ["", &of, "mean, µs", "bytes read for each", "verdict"];
    Table {
        heads: heads.map(String::from).to_vec(),
        rows: cells.iter().map(row).collect(),
        ..Table::default()
    }
}
