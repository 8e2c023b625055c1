//! Direct against buffered: the time of one sweep over the same bytes, split into the return of the last call, the close, and the flush until the data
//! is stable, of one or several Records.

use super::Subject;
use super::parts::{along_row, joined, with_unit};
use super::rows::{NamedCell, evidence_of_rows, rows};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::words::list;
use rdsk_analysis::{metrics, passes};
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_report::{MISSING, Unit, path_column, significant};
use rdsk_units::Bytes;

/// The times of one sweep in ns, each from its start.
struct Times {
    return_ns: f64,
    /// `None` for reads: their data needs no close.
    close_ns: Option<f64>,
    stable_ns: Option<f64>,
}

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let cells = named(subjects);
    if cells.is_empty() {
        return Vec::new();
    }
    let timed: Vec<(&NamedCell<'_>, Times)> =
        cells.iter().filter_map(|row| Some((row, times(row.cell)?))).collect();
    let longest = timed.iter().map(|(_, times)| times.stable_ns.unwrap_or(times.return_ns));
    // One unit for all: the longest time decides it.
    let unit = Unit::fit(&Unit::TIMES, longest.reduce(f64::max));
    let plot = Plot::new(
        Axis::from_zero("time", unit.name),
        Axis::rows(timed.iter().map(|(row, _)| row.name())),
        series(&timed, unit),
    );
    let untimed: Vec<String> = cells
        .iter()
        .filter(|row| metrics::ran(row.cell) && times(row.cell).is_none())
        .map(NamedCell::name)
        .collect();
    let cut_short = match untimed.len() {
        0 => String::new(),
        _ => format!(
            " No whole sweep, and so no bar: {}; their rates are in the figure of rates.",
            list(&untimed)
        ),
    };
    let times = Figure {
        id: "paths-time".into(),
        title: "Time for the same bytes, direct and buffered".into(),
        shows: format!(
            "One sweep over the same bytes on each path. The first part of a bar is the time until the last call returned; \
             writes go on with the close and with the flush until the data is on disk, which is the time that counts.{cut_short}"
        ),
        drawing: Drawing::of(plot, "No sweep was completed."),
        table: table(&cells, unit),
        evidence: evidence_of_rows(&cells),
    };
    // What all paths have answers: the time, or else the rate.
    if untimed.is_empty() { vec![times] } else { vec![rates(&cells), times] }
}

/// The rates of all paths, where not all of them did a whole sweep: those of a part of the bytes compare, too.
fn rates(cells: &[NamedCell<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let ran: Vec<&NamedCell<'_>> = cells.iter().filter(|row| metrics::ran(row.cell)).collect();
    let returned = |cell: &CellRecord| Some(along_row(0, cell.result.bytes_per_s?, unit));
    let stable = |cell: &CellRecord| {
        let rate = metrics::stable_rate(cell).filter(|_| cell.workload.op == Op::Write)?;
        Some(Point::at(unit.of(rate), 0.0))
    };
    let series = |slot: usize, name: &str, point: &dyn Fn(&CellRecord) -> Option<Point>| {
        let shape = Shape::Bar { slot, slots: 2 };
        by_result(&ran, name, shape, slot, |place, row| Some(Point { y: place as f64, ..point(row.cell)? }))
    };
    let all = [series(0, "until the last call returned", &returned), series(1, "on disk", &stable)].concat();
    let rows = Axis::rows(ran.iter().map(|row| row.name()));
    let plot = Plot::new(Axis::from_zero("rate", unit.name), rows, all);
    let owned: Vec<NamedCell<'_>> = ran.iter().map(|row| (*row).clone()).collect();
    Figure {
        id: "paths-rate".into(),
        title: "Rate of each path".into(),
        shows: "The rate over the bytes that each path moved, with its 95% interval; writes also until the data is on disk."
            .into(),
        drawing: Drawing::of(plot, "No path moved any bytes."),
        table: table(&owned, Unit::TIMES[1]),
        evidence: evidence_of_rows(&owned),
    }
}

/// The points of one kind: a series for each result, of one colour there, or a single one.
fn by_result(
    rows: &[&NamedCell<'_>],
    name: &str,
    shape: Shape,
    kind: usize,
    point: impl Fn(usize, &NamedCell<'_>) -> Option<Point>,
) -> Vec<Series> {
    let points = rows
        .iter()
        .enumerate()
        .filter_map(|(place, row)| Some((row.whose.kind(kind), (row, point(place, row)?))));
    let series = |(look, own): (Option<Look>, Vec<(&&NamedCell<'_>, Point)>)| {
        let owner = look.and(own.first()).map_or("", |(row, _)| row.owner.as_str());
        Series::new(joined(owner, name), shape, own.into_iter().map(|(_, point)| point).collect())
            .looking(look)
    };
    by_key(points).into_iter().map(series).collect()
}

/// The cells by targets, direction and size; of several Records those of each path together.
fn named<'s>(subjects: &[Subject<'s, '_>]) -> Vec<NamedCell<'s>> {
    let all = rows(subjects, Experiment::Paths, |_| String::new());
    let has_sizes = all.iter().any(|row| row.cell.workload.block_bytes != all[0].cell.workload.block_bytes);
    let label = |cell: &CellRecord| {
        let size = if has_sizes { format!(" {}", Bytes(cell.workload.block_bytes)) } else { String::new() };
        format!("{}{size} {}", cell.workload.op, path_column(cell))
    };
    let key = |row: &NamedCell<'_>| (row.owner.clone(), row.cell.workload.op, row.cell.workload.block_bytes);
    let grouped = by_key(all.into_iter().map(|row| (key(&row), row)));
    let labelled =
        grouped.into_iter().flat_map(|(_, rows)| rows).map(|row| NamedCell { label: label(row.cell), ..row });
    // Of several Records the cells of each path together.
    let together = by_key(labelled.map(|row| (row.label.clone(), row)));
    together.into_iter().flat_map(|(_, rows)| rows).collect()
}

fn times(cell: &CellRecord) -> Option<Times> {
    let of = |ns: Option<u64>| passes::per_pass(cell, ns?);
    let is_write = cell.workload.op == Op::Write;
    Some(Times {
        return_ns: of(cell.result.to_return_ns)?,
        close_ns: of(cell.result.to_close_ns).filter(|_| is_write),
        stable_ns: of(cell.result.to_stable_ns).filter(|_| is_write),
    })
}

fn series(timed: &[(&NamedCell<'_>, Times)], unit: Unit) -> Vec<Series> {
    let rows: Vec<&NamedCell<'_>> = timed.iter().map(|(row, _)| *row).collect();
    let closed = |times: &Times| times.close_ns.unwrap_or(times.return_ns);
    let part = |kind: usize, name: &str, part: &dyn Fn(&Times) -> Option<(f64, f64)>| {
        by_result(&rows, name, Shape::Bar { slot: 0, slots: 1 }, kind, |place, _| {
            let (from, to) = part(&timed[place].1)?;
            Some(Point { x: unit.of(to), y: place as f64, from: unit.of(from), interval: None })
        })
    };
    [
        part(0, "until the last call returned", &|times| Some((0.0, times.return_ns))),
        part(1, "close", &|times| Some((times.return_ns, times.close_ns?))),
        part(2, "flush until on disk", &|times| Some((closed(times), times.stable_ns?))),
    ]
    .concat()
}

fn table(rows: &[NamedCell<'_>], unit: Unit) -> Table {
    let row = |row: &NamedCell<'_>| {
        let cell = row.cell;
        let times = times(cell);
        let time = |ns: Option<f64>| unit.figure_or_missing(ns);
        let op = cell.workload.op;
        let requests = metrics::device_requests(cell, op).and_then(|count| passes::per_pass(cell, count));
        let rate = cell.result.bytes_per_s.map(|rate| rate.mean);
        let stable = if op == Op::Write { metrics::stable_rate(cell) } else { None };
        vec![
            row.name(),
            time(times.as_ref().map(|times| times.return_ns)),
            time(times.as_ref().and_then(|times| times.close_ns)),
            time(times.as_ref().and_then(|times| times.stable_ns)),
            Unit::MIB_PER_S.figure_or_missing(rate),
            row.texts.margin.clone(),
            Unit::MIB_PER_S.figure_or_missing(stable),
            requests.map_or_else(|| MISSING.into(), significant),
            with_unit(
                Unit::fit(&Unit::SIZES, metrics::mean_request_bytes(cell, op)),
                metrics::mean_request_bytes(cell, op),
            ),
            row.remark.clone(),
        ]
    };
    let unit = unit.name;
    let heads = [
        "",
        &format!("return, {unit}"),
        &format!("close, {unit}"),
        &format!("on disk, {unit}"),
        "rate, MiB/s",
        "±95%",
        "until on disk, MiB/s",
        "requests",
        "mean request",
        "remark",
    ];
    Table::new(heads, rows.iter().map(row))
}
