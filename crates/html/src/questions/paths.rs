//! Direct against buffered: the time of one sweep over the same bytes, split into the return of the last call, the close, and the flush
//! until the data is on disk, of one or several Records.

use super::Subject;
use super::parts::{joined, with_unit};
use super::rates::{self, Measure};
use super::rows::{NamedCell, evidence_of_rows, rows};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
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
    if untimed.is_empty() {
        return vec![times];
    }
    // What all paths have answers: the rate, since some of them did no whole sweep.
    let paths: Vec<NamedCell<'_>> =
        cells.iter().map(|row| NamedCell { label: path_and_size(&cells, row), ..row.clone() }).collect();
    let shows = "The rate over the bytes that each path moved; of writes until they are on disk.";
    let rates = rates::figure(("paths-rate", "Rate of each path", shows), &paths, Measure::OnDisk);
    rates.into_iter().chain([times]).collect()
}

/// `direct`, `64 KiB direct` where there are several sizes.
fn path_and_size(rows: &[NamedCell<'_>], row: &NamedCell<'_>) -> String {
    let bytes = row.cell.workload.block_bytes;
    let has_sizes = rows.iter().any(|other| other.cell.workload.block_bytes != bytes);
    let size = if has_sizes { format!("{} ", Bytes(bytes)) } else { String::new() };
    format!("{size}{}", path_column(row.cell))
}

/// The cells by targets, direction and size; of several Records those of each path together.
fn named<'s>(subjects: &[Subject<'s, '_>]) -> Vec<NamedCell<'s>> {
    let rows = rows(subjects, Experiment::Paths, |_| String::new());
    let labels: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row.op(), path_and_size(&rows, row))).collect();
    let rows = rows.into_iter().zip(labels).map(|(row, label)| NamedCell { label, ..row });
    let key = |row: &NamedCell<'_>| (row.owner.clone(), row.cell.workload.op, row.cell.workload.block_bytes);
    let grouped = by_key(rows.map(|row| (key(&row), row))).into_iter().flat_map(|(_, rows)| rows);
    // Of several Records the cells of each path together.
    let together = by_key(grouped.map(|row| (row.label.clone(), row)));
    together.into_iter().flat_map(|(_, rows)| rows).collect()
}

fn times(cell: &CellRecord) -> Option<Times> {
    let per_pass = |ns: Option<u64>| passes::per_pass(cell, ns?);
    let is_write = cell.workload.op == Op::Write;
    Some(Times {
        return_ns: per_pass(cell.result.to_return_ns)?,
        close_ns: per_pass(cell.result.to_close_ns).filter(|_| is_write),
        stable_ns: per_pass(cell.result.to_stable_ns).filter(|_| is_write),
    })
}

/// The parts of all bars, of several results in the colour of each.
fn series(timed: &[(&NamedCell<'_>, Times)], unit: Unit) -> Vec<Series> {
    let closed = |times: &Times| times.close_ns.unwrap_or(times.return_ns);
    let part = |kind: usize, name: &str, part: &dyn Fn(&Times) -> Option<(f64, f64)>| {
        let point = |(place, (row, times)): (usize, &(&NamedCell<'_>, Times))| {
            let (from, to) = part(times)?;
            let point =
                Point { x: unit.scaled(to), y: place as f64, from: unit.scaled(from), interval: None };
            let look = row.whose.kind(kind);
            Some(((look, look.map(|_| row.owner.clone()).unwrap_or_default()), point))
        };
        let shape = Shape::Bar { slot: 0, slots: 1 };
        let by_result = by_key(timed.iter().enumerate().filter_map(point)).into_iter();
        by_result
            .map(|((look, owner), points)| Series::new(joined(&owner, name), shape, points).looking(look))
            .collect::<Vec<_>>()
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
