//! The stream page: one reader and one writer by several paths, each with the `iostat -x` row of its device under
//! sysstat's own column names, and the curves of queue depth and rate.

use crate::cells::{self, is_device, verdict_word, why};
use crate::figures::{MISSING, Unit, or_missing, plus_minus, significant};
use crate::findings;
use crate::header::write_cache;
use crate::page::{Page, Tone};
use crate::spark;
use rdsk_model::{CellRecord, Experiment, IoPath, Iostat, Op, Record, Sync};
use rdsk_units::Bytes;

/// Columns of one curve.
const CURVE_WIDTH: usize = 24;

/// A column of iostat: sysstat's name and the figure.
type Column = (&'static str, fn(&Iostat) -> f64);

pub(crate) fn draw(page: &mut Page, record: &Record) {
    let first = cells::of(record, Experiment::Stream).next();
    let block = first
        .map_or(String::new(), |cell| format!(", blocks of {}", Bytes(cell.workload.block_bytes).approx()));
    page.heading(format!("STREAM: one stream, watched by iostat{block}"));
    for op in [Op::Write, Op::Read] {
        let cells: Vec<&CellRecord> =
            cells::of(record, Experiment::Stream).filter(|cell| cell.workload.op == op).collect();
        if !cells.is_empty() {
            draw_op(page, record, op, &cells);
        }
    }
    draw_caches(page, record);
}

fn draw_op(page: &mut Page, record: &Record, op: Op, cells: &[&CellRecord]) {
    let mut heads = vec![op.as_str(), "MiB/s", "±95 %"];
    if op == Op::Write {
        heads.push("until stable");
    }
    heads.extend(["latency µs", "verdict"]);
    let rows: Vec<Vec<String>> = cells.iter().map(|cell| summary(op, cell)).collect();
    page.table_with(&heads, &rows, &[heads.len() - 1]);
    for cell in cells.iter().filter(|cell| !is_device(cell)) {
        page.sentence(Tone::Warning, format!("  {}: ", mode(cell)), why(cell));
    }
    let rows: Vec<(String, Iostat)> =
        cells.iter().filter_map(|cell| Some((mode(cell), cells::device(cell)?.iostat?))).collect();
    findings::draw_comparisons(page, record, |id| cells.iter().any(|cell| cell.id == id));
    if rows.is_empty() {
        page.line("  No counters of the device: no iostat row.");
    } else {
        draw_iostat(page, &rows);
    }
    draw_curves(page, cells);
    page.blank();
}

/// `direct`, `buffered+dsync`.
fn mode(cell: &CellRecord) -> String {
    let path = match cell.workload.path {
        IoPath::Direct => "direct",
        IoPath::Buffered => "buffered",
    };
    match cell.workload.sync {
        Sync::None => path.into(),
        Sync::Dsync => format!("{path}+dsync"),
        Sync::FsyncAtEnd => format!("{path}+fsync"),
    }
}

fn summary(op: Op, cell: &CellRecord) -> Vec<String> {
    let rate = cell.result.bytes_per_s;
    let mut row =
        vec![mode(cell), Unit::MIB_PER_S.figure_or_missing(rate.map(|rate| rate.mean)), plus_minus(rate)];
    if op == Op::Write {
        row.push(Unit::MIB_PER_S.figure_or_missing(cells::stable_rate(cell)));
    }
    let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean);
    row.push(Unit::MICROSECONDS.figure_or_missing(mean_ns));
    row.push(verdict_word(cell));
    row
}

/// The row of `iostat -x` in two lines of columns, a third where there were discards.
fn draw_iostat(page: &mut Page, rows: &[(String, Iostat)]) {
    let first: [Column; 8] = [
        ("r/s", |row| row.r_s),
        ("rkB/s", |row| row.rkb_s),
        ("rrqm/s", |row| row.rrqm_s),
        ("%rrqm", |row| row.rrqm_percent),
        ("r_await", |row| row.r_await),
        ("rareq-sz", |row| row.rareq_sz),
        ("aqu-sz", |row| row.aqu_sz),
        ("%util", |row| row.util_percent),
    ];
    let second: [Column; 8] = [
        ("w/s", |row| row.w_s),
        ("wkB/s", |row| row.wkb_s),
        ("wrqm/s", |row| row.wrqm_s),
        ("%wrqm", |row| row.wrqm_percent),
        ("w_await", |row| row.w_await),
        ("wareq-sz", |row| row.wareq_sz),
        ("f/s", |row| row.f_s),
        ("f_await", |row| row.f_await),
    ];
    let third: [Column; 6] = [
        ("d/s", |row| row.d_s),
        ("dkB/s", |row| row.dkb_s),
        ("drqm/s", |row| row.drqm_s),
        ("%drqm", |row| row.drqm_percent),
        ("d_await", |row| row.d_await),
        ("dareq-sz", |row| row.dareq_sz),
    ];
    draw_columns(page, rows, &first);
    draw_columns(page, rows, &second);
    if rows.iter().any(|(_, row)| row.d_s > 0.0) {
        draw_columns(page, rows, &third);
    }
}

fn draw_columns(page: &mut Page, rows: &[(String, Iostat)], columns: &[Column]) {
    let heads: Vec<&str> =
        std::iter::once("iostat -x").chain(columns.iter().map(|(name, _)| *name)).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|(mode, row)| {
            let figures = columns.iter().map(|(_, figure)| significant(figure(row)));
            std::iter::once(mode.clone()).chain(figures).collect()
        })
        .collect();
    page.table(&heads, &rows);
}

fn draw_curves(page: &mut Page, cells: &[&CellRecord]) {
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let device = cells::device(cell);
            let depth = device.map_or(&[][..], |device| device.in_flight_series.as_slice());
            let windows = cell.result.windows.as_ref();
            let rate = windows.map_or(&[][..], |windows| windows.bytes.as_slice());
            let largest = device.and_then(|device| device.in_flight_max).map(|depth| depth.to_string());
            vec![mode(cell), curve(depth), or_missing(largest), curve(rate)]
        })
        .collect();
    let is_empty = |row: &Vec<String>| row[1] == MISSING && row[3] == MISSING;
    if !rows.iter().all(is_empty) {
        page.table_with(&["by time", "queue depth", "max", "rate"], &rows, &[1, 3]);
    }
}

fn curve(values: &[u64]) -> String {
    if values.is_empty() { MISSING.into() } else { spark::line(values, CURVE_WIDTH) }
}

fn draw_caches(page: &mut Page, record: &Record) {
    for device in record.targets.iter().filter_map(|target| target.device.as_ref()) {
        let state = write_cache(device).unwrap_or_else(|| "write cache not known".into());
        page.line(format!("  {}: {state}.", device.name));
    }
}
