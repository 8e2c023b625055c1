//! The paths page: the same bytes by direct and by buffered I/O, side by side, with what the device saw.

use crate::cells::{self, is_device, verdict_word, why};
use crate::figures::{Unit, or_missing, plus_minus, significant, whole};
use crate::findings;
use crate::page::{Page, Tone};
use rdsk_model::{CacheState, CellRecord, Experiment, IoPath, Op, Record};
use rdsk_units::Bytes;

pub(crate) fn draw(page: &mut Page, record: &Record) {
    page.heading(format!("PATHS: direct against buffered{}", what_was_done(record)));
    for columns in cells::groups(record, Experiment::Paths) {
        draw_group(page, record, &columns);
    }
}

fn what_was_done(record: &Record) -> String {
    let Some(first) = cells::of(record, Experiment::Paths).next() else { return String::new() };
    let block = Bytes(first.workload.block_bytes).approx();
    let per_pass = |cell: &CellRecord| Some(cell.result.bytes? / passes(cell));
    match cells::of(record, Experiment::Paths).filter_map(per_pass).max() {
        Some(bytes) => format!(", {} a pass in blocks of {block}", Bytes(bytes).approx()),
        None => format!(", blocks of {block}"),
    }
}

/// Passes of a cell, at least 1, so that totals can be shown for one pass.
fn passes(cell: &CellRecord) -> u64 {
    cell.result.visits.len().max(1) as u64
}

/// What the column is called: the path, and for a buffered read whether its pages were in the cache.
fn column(cell: &CellRecord) -> &'static str {
    match (cell.workload.path, cell.workload.op, cell.workload.cache) {
        (IoPath::Buffered, Op::Read, CacheState::Warm) => "cached",
        (path, _, _) => path.as_str(),
    }
}

fn draw_group(page: &mut Page, record: &Record, columns: &[&CellRecord]) {
    let Some(first) = columns.first() else { return };
    let op = first.workload.op;
    let mut rows = vec![
        row("passes", columns, |cell| whole(cell.result.bytes.map(|_| passes(cell)))),
        time_row("to the return", columns, |cell| cell.result.to_return_ns),
    ];
    if op == Op::Write {
        rows.push(time_row("to the close", columns, |cell| cell.result.to_close_ns));
        rows.push(time_row("until stable", columns, |cell| cell.result.to_stable_ns));
    }
    rows.extend(rate_rows(op, columns));
    rows.push(row("requests", columns, |cell| {
        or_missing(cells::requests(cell).map(|requests| significant(requests as f64 / passes(cell) as f64)))
    }));
    rows.push(unit_row("mean request", columns, Unit::of_sizes, cells::request_bytes));
    rows.push(row("merges", columns, |cell| {
        or_missing(cells::merges(cell).map(|merges| significant(merges as f64 / passes(cell) as f64)))
    }));
    rows.push(row("in flight (aqu-sz)", columns, |cell| {
        or_missing(cells::device(cell).and_then(|device| device.in_flight_mean).map(significant))
    }));
    if op == Op::Write {
        rows.push(unit_row("reads caused", columns, Unit::of_sizes, |cell| {
            cell.evidence.process.read_bytes.map(|bytes| bytes as f64 / passes(cell) as f64)
        }));
        rows.push(unit_row("dirty at the return", columns, Unit::of_sizes, |cell| {
            cell.evidence.page_cache?.after.dirty_bytes.map(|bytes| bytes as f64 / passes(cell) as f64)
        }));
    }
    rows.push(row("verdict", columns, verdict_word));
    let title = cells::group_title(record, first);
    let mut head = vec![title.as_str(), ""];
    head.extend(columns.iter().map(|cell| column(cell)));
    page.table_with(&head, &rows, &[1]);
    for cell in columns.iter().filter(|cell| !is_device(cell)) {
        page.sentence(Tone::Warning, format!("  {}: ", column(cell)), why(cell));
    }
    findings::draw_comparisons(page, record, |id| columns.iter().any(|cell| cell.id == id));
    page.blank();
}

fn row(name: &str, columns: &[&CellRecord], figure: impl Fn(&CellRecord) -> String) -> Vec<String> {
    let mut row = vec![format!("  {name}"), String::new()];
    row.extend(columns.iter().map(|cell| figure(cell)));
    row
}

/// A row whose figures share the unit that suits the smallest.
fn unit_row(
    name: &str,
    columns: &[&CellRecord],
    unit: impl Fn(Vec<f64>) -> Unit,
    value: impl Fn(&CellRecord) -> Option<f64>,
) -> Vec<String> {
    let values: Vec<Option<f64>> = columns.iter().map(|cell| value(cell)).collect();
    let unit = unit(values.iter().copied().flatten().collect());
    let mut row = vec![format!("  {name}"), unit.name.into()];
    row.extend(values.into_iter().map(|value| unit.figure_or_missing(value)));
    row
}

/// A time of one pass.
fn time_row(name: &str, columns: &[&CellRecord], ns: impl Fn(&CellRecord) -> Option<u64>) -> Vec<String> {
    unit_row(&format!("time {name}"), columns, Unit::of_times, |cell| {
        ns(cell).map(|ns| ns as f64 / passes(cell) as f64)
    })
}

fn rate_rows(op: Op, columns: &[&CellRecord]) -> Vec<Vec<String>> {
    let mean = |cell: &CellRecord| cell.result.bytes_per_s.map(|rate| rate.mean);
    let name = if op == Op::Write { "rate to the return" } else { "rate" };
    let mut rows = vec![
        unit_row(name, columns, Unit::of_rates, mean),
        row("  its interval", columns, |cell| plus_minus(cell.result.bytes_per_s)),
    ];
    if op == Op::Write {
        rows.push(unit_row("rate until stable", columns, Unit::of_rates, cells::stable_rate));
    }
    rows
}
