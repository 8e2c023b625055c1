//! Direct against buffered: the time of one pass, split into the return of the last call, the close, and the flush until the data
//! is stable, of one or several Records.

use super::Subject;
use super::parts::{along_row, evidence, with_unit};
use super::rows::{NamedCell, by_label, evidence_of_rows, rows};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::words::list;
use rdsk_analysis::{metrics, passes};
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_report::{MISSING, Unit, path_column, plus_minus, significant, verdict_word};
use rdsk_units::Bytes;

/// The times of one pass in ns, each from its start.
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
        Axis::from_zero("time of one pass", unit.name),
        Axis::rows(timed.iter().map(|(row, _)| row.name())),
        series(&timed, unit),
    );
    let untimed: Vec<String> = cells
        .iter()
        .filter(|row| metrics::ran(row.cell) && times(row.cell).is_none())
        .map(NamedCell::name)
        .collect();
    let cut_short = if untimed.is_empty() {
        String::new()
    } else {
        format!(" No whole pass, and so no bar: {}; their rates are in the next figure.", list(&untimed))
    };
    let mut figures = vec![Figure {
        id: "paths-time".into(),
        title: "Time of one pass, direct and buffered".into(),
        shows: format!(
            "The same bytes on each path. The first part of a bar is the time until the last call returned; writes go on with \
             the close and with the flush until the data is on stable storage, which is the time that counts.{cut_short}"
        ),
        drawing: Drawing::of(plot, "No pass was completed."),
        table: table(&cells, unit),
        evidence: evidence_of_rows(&cells),
    }];
    figures.extend((!untimed.is_empty()).then(|| rates(&cells)));
    figures
}

/// The rates of all paths, where not all of them did a whole pass: those of a part of the bytes compare, too.
fn rates(cells: &[NamedCell<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let ran: Vec<&NamedCell<'_>> = cells.iter().filter(|row| metrics::ran(row.cell)).collect();
    let series_of = |name: &str, slot: usize, of: &dyn Fn(&CellRecord) -> Option<Point>| {
        let point = |(place, row): (usize, &&NamedCell<'_>)| Some(Point { y: place as f64, ..of(row.cell)? });
        let points = ran.iter().enumerate().filter_map(point).collect();
        Series::new(name, Shape::Bar { slot, slots: 2 }, points)
    };
    let returned = |cell: &CellRecord| Some(along_row(0, cell.result.bytes_per_s?, unit));
    let stable = |cell: &CellRecord| {
        let rate = metrics::stable_rate(cell).filter(|_| cell.workload.op == Op::Write)?;
        Some(Point { x: unit.of(rate), y: 0.0, from: 0.0, interval: None })
    };
    let all =
        [series_of("until the last call returned", 0, &returned), series_of("until stable", 1, &stable)];
    let plot =
        Plot::new(Axis::from_zero("rate", unit.name), Axis::rows(ran.iter().map(|row| row.name())), all);
    Figure {
        id: "paths-rate".into(),
        title: "Rate of each path".into(),
        shows: "The rate over the bytes that each path moved, with its 95% interval; writes also until the data is stable."
            .into(),
        drawing: Drawing::of(plot, "No path moved any bytes."),
        table: rate_table(&ran),
        evidence: evidence(ran.iter().map(|row| (row.name(), row.cell))),
    }
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
    if subjects.len() < 2 {
        return labelled.collect();
    }
    let together = by_label(labelled.collect()).into_iter();
    together
        .flat_map(|(label, rows)| rows.into_iter().map(move |row| NamedCell { label: label.clone(), ..row }))
        .collect()
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
    let part = |name: &str, of: &dyn Fn(&Times) -> Option<(f64, f64)>| {
        let bar = |(row, (_, times)): (usize, &(&NamedCell<'_>, Times))| {
            let (from, to) = of(times)?;
            Some(Point { x: unit.of(to), y: row as f64, from: unit.of(from), interval: None })
        };
        let points = timed.iter().enumerate().filter_map(bar).collect();
        Series::new(name, Shape::Bar { slot: 0, slots: 1 }, points)
    };
    let closed = |times: &Times| times.close_ns.unwrap_or(times.return_ns);
    let all = [
        part("until the last call returned", &|times| Some((0.0, times.return_ns))),
        part("close", &|times| Some((times.return_ns, times.close_ns?))),
        part("flush until stable", &|times| Some((closed(times), times.stable_ns?))),
    ];
    all.into_iter().filter(|series| !series.points.is_empty()).collect()
}

fn rate_table(rows: &[&NamedCell<'_>]) -> Table {
    let row = |row: &&NamedCell<'_>| {
        let cell = row.cell;
        let stable = metrics::stable_rate(cell).filter(|_| cell.workload.op == Op::Write);
        vec![
            row.name(),
            Unit::MIB_PER_S.figure_or_missing(cell.result.bytes_per_s.map(|rate| rate.mean)),
            plus_minus(cell.result.bytes_per_s),
            Unit::MIB_PER_S.figure_or_missing(stable),
            verdict_word(cell),
        ]
    };
    let heads = ["", "rate, MiB/s", "±95%", "until stable, MiB/s", "verdict"];
    Table::new(heads, rows.iter().map(row))
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
            Unit::MIB_PER_S.figure_or_missing(stable),
            requests.map_or_else(|| MISSING.into(), significant),
            with_unit(
                Unit::fit(&Unit::SIZES, metrics::mean_request_bytes(cell, op)),
                metrics::mean_request_bytes(cell, op),
            ),
            verdict_word(cell),
        ]
    };
    let unit = unit.name;
    let heads = [
        "",
        &format!("return, {unit}"),
        &format!("close, {unit}"),
        &format!("stable, {unit}"),
        "rate, MiB/s",
        "until stable, MiB/s",
        "requests",
        "mean request",
        "verdict",
    ];
    Table::new(heads, rows.iter().map(row))
}
