//! The headline: bandwidth as bars, I/Os per second on a logarithmic axis, and the latencies behind them, of one or several
//! Records.

use super::parts::{along_row, evidence, joined, owner, ran, with_unit};
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Plot, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_model::{CellRecord, Estimate, Experiment, Pattern, Sync};
use rdsk_report::words::{headline_row, plus_minus, verdict_word};
use rdsk_report::{MISSING, Unit, significant};

/// A cell, whose it is, and what it is called among its own.
struct Row<'a> {
    owner: String,
    label: String,
    cell: &'a CellRecord,
}

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let rows: Vec<Row<'_>> = subjects
        .iter()
        .flat_map(|subject| ran(subject.analysis, Experiment::Headline).map(move |cell| (subject, cell)))
        .map(|(subject, cell)| Row { owner: owner(subjects, subject, cell), label: headline_row(cell), cell })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let (bandwidth, rates): (Vec<Row<'_>>, Vec<Row<'_>>) =
        rows.into_iter().partition(|row| is_bandwidth(row.cell));
    let mut figures = Vec::new();
    if !bandwidth.is_empty() {
        figures.push(bars(&bandwidth));
    }
    if !rates.is_empty() {
        figures.push(marks(&rates));
        let named = rates.iter().map(|row| (joined(&row.owner, &row.label), row.cell));
        figures.extend(percentiles::figure("headline-latency", "Latency by percentile", named));
    }
    figures
}

fn is_bandwidth(cell: &CellRecord) -> bool {
    cell.workload.pattern == Pattern::Sequential && cell.workload.sync == Sync::None
}

fn bars(rows: &[Row<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let slots = distinct(rows.iter().map(|row| row.owner.as_str())).len();
    let of = |row: &Row<'_>| row.cell.result.bytes_per_s;
    let series = series(rows, unit, of, |slot| Shape::Bar { slot, slots });
    let plot = Plot { x: Axis::from_zero("bandwidth", unit.name), y: Axis::rows(labels(rows)), series };
    Figure {
        id: "headline-bandwidth".into(),
        title: "Bandwidth".into(),
        shows: "Sequential I/O: each bar is the mean rate over the measured time, the line on it its 95 % interval. \
                A figure that is not the device's has its verdict in the table."
            .into(),
        drawing: Drawing::of(plot, "No sequential I/O completed."),
        table: table(rows, unit, "bandwidth", of),
        evidence: evidence_of(rows),
    }
}

fn marks(rows: &[Row<'_>]) -> Figure {
    let of = |row: &Row<'_>| row.cell.result.ops_per_s;
    let series = series(rows, Unit::ONE, of, |_| Shape::Mark);
    let plot = Plot { x: Axis::log("I/Os per second", ""), y: Axis::rows(labels(rows)), series };
    Figure {
        id: "headline-iops".into(),
        title: "I/Os per second".into(),
        shows: "Random and durable I/O: each mark is the mean rate, the line through it its 95 % interval. The axis is \
                logarithmic, because the rates differ by powers of ten."
            .into(),
        drawing: Drawing::of(plot, "No random or durable I/O completed."),
        table: table(rows, Unit::ONE, "I/Os per second", of),
        evidence: evidence_of(rows),
    }
}

fn labels(rows: &[Row<'_>]) -> Vec<String> {
    distinct(rows.iter().map(|row| row.label.clone()))
}

/// A series for each owner.
fn series(
    rows: &[Row<'_>],
    unit: Unit,
    of: impl Fn(&Row<'_>) -> Option<Estimate>,
    shape: impl Fn(usize) -> Shape,
) -> Vec<Series> {
    let labels = labels(rows);
    let owners = by_key(rows.iter().map(|row| (row.owner.as_str(), row)));
    let one = |(slot, (owner, own)): (usize, (&str, Vec<&Row<'_>>))| {
        let point = |row: &&Row<'_>| {
            let place = labels.iter().position(|label| *label == row.label)?;
            Some(along_row(place, of(row)?, unit))
        };
        let name = if owner.is_empty() { "mean rate" } else { owner };
        Series::new(name, shape(slot), own.iter().filter_map(point).collect())
    };
    owners.into_iter().enumerate().map(one).collect()
}

fn table(rows: &[Row<'_>], unit: Unit, what: &str, of: impl Fn(&Row<'_>) -> Option<Estimate>) -> Table {
    let percentile = |ns: Option<u64>| with_unit(Unit::MICROSECONDS, ns.map(|ns| ns as f64));
    let row = |row: &Row<'_>| {
        let estimate = of(row);
        let latency = row.cell.result.latency_ns.as_ref();
        let mean = estimate.map_or_else(|| MISSING.into(), |one| significant(unit.of(one.mean)));
        vec![
            joined(&row.owner, &row.label),
            mean,
            plus_minus(estimate),
            percentile(latency.and_then(|latency| latency.p50)),
            percentile(latency.and_then(|latency| latency.p99)),
            verdict_word(row.cell),
        ]
    };
    let what = if unit.name.is_empty() { what.to_owned() } else { format!("{what}, {}", unit.name) };
    Table {
        heads: ["", &what, "±95 %", "p50", "p99", "verdict"].map(String::from).to_vec(),
        rows: rows.iter().map(row).collect(),
        ..Table::default()
    }
}

fn evidence_of(rows: &[Row<'_>]) -> Vec<String> {
    let name = |cell: &CellRecord| {
        let row = rows.iter().find(|row| std::ptr::eq(row.cell, cell));
        row.map_or_else(|| cell.id.clone(), |row| joined(&row.owner, &row.label))
    };
    evidence(rows.iter().map(|row| row.cell), name)
}
