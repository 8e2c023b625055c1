//! The paths page: the same bytes by direct and by buffered I/O, side by side, with what the device saw and what stayed in
//! the page cache.

mod answer;

pub(super) use answer::answer;

use crate::block_io;
use crate::cells::{self, remark};
use crate::figures::{Unit, or_missing, plus_minus, significant, whole};
use crate::findings;
use crate::page::{Page, Tone};
use rdsk_analysis::iostat::iostat_row;
use rdsk_analysis::{Analysis, metrics, passes};
use rdsk_model::{CacheState, CellRecord, Experiment, IoPath, Op};
use rdsk_units::Bytes;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    page.heading(format!("PATHS: direct against buffered{}", what_was_done(analysis)));
    super::draw_answer(page, analysis, Experiment::Paths);
    for columns in cells::groups(analysis, Experiment::Paths) {
        draw_group(page, analysis, &columns);
    }
}

fn what_was_done(analysis: &Analysis<'_>) -> String {
    let block = cells::only_block(analysis, Experiment::Paths)
        .map_or(String::new(), |block| format!(" in blocks of {block}"));
    let pass_bytes =
        |cell: &CellRecord| cell.result.pass_bytes.or(Some(cell.result.bytes? / metrics::visits(cell)));
    match cells::of_experiment(analysis, Experiment::Paths).filter_map(pass_bytes).max() {
        Some(bytes) => format!(", {} per sweep{block}", Bytes(bytes).approx()),
        None => block,
    }
}

/// What the column is called: the path, and for a buffered read whether its pages were in the cache.
pub fn column(cell: &CellRecord) -> &'static str {
    match (cell.workload.path, cell.workload.op, cell.workload.cache) {
        (IoPath::Buffered, Op::Read, CacheState::Warm) => "cached",
        (path, _, _) => path.as_str(),
    }
}

fn draw_group(page: &mut Page, analysis: &Analysis<'_>, columns: &[&CellRecord]) {
    let Some(first) = columns.first() else { return };
    let op = first.workload.op;
    let mut rows = vec![row("whole sweeps", columns, passes_done)];
    rows.extend(rate_rows(op, columns));
    rows.push(time_row("returned after", columns, |cell| cell.result.to_return_ns));
    if op == Op::Write {
        rows.push(time_row("closed after", columns, |cell| cell.result.to_close_ns));
        rows.push(time_row("on disk after", columns, |cell| cell.result.to_stable_ns));
    }
    rows.push(unit_row("CPU time per MiB", columns, &Unit::TIMES, cpu_ns_per_mib));
    rows.push(row("requests", columns, |cell| per_pass(cell, metrics::device_requests(cell, op))));
    rows.push(unit_row("mean request", columns, &Unit::SIZES, |cell| metrics::mean_request_bytes(cell, op)));
    rows.push(row("merges", columns, |cell| per_pass(cell, metrics::merges(cell, op))));
    rows.push(row("in flight (aqu-sz)", columns, |cell| {
        or_missing(cells::device(cell).and_then(iostat_row).map(|row| significant(row.aqu_sz)))
    }));
    rows.push(unit_row("in RAM afterwards", columns, &Unit::SIZES, |cell| {
        Some(metrics::ratio(metrics::left_in_cache(cell)?.cached_bytes, metrics::visits(cell)))
    }));
    if op == Op::Write {
        rows.push(unit_row("reads caused", columns, &Unit::SIZES, |cell| {
            cell.evidence.process.read_bytes.and_then(|bytes| passes::per_pass(cell, bytes))
        }));
        rows.push(unit_row("dirty at the return", columns, &Unit::SIZES, |cell| {
            let dirty_bytes = cell.evidence.page_cache?.after.dirty_bytes?;
            Some(metrics::ratio(dirty_bytes, metrics::visits(cell)))
        }));
    }
    // A row of zeros carries nothing.
    rows.retain(|row| !row[2..].iter().all(|figure| figure == "0"));
    rows.push(row("remark", columns, remark));
    // Nor does one without a word.
    rows.retain(|row| !row[2..].iter().all(String::is_empty));
    if let Some(name) = cells::target_name(analysis, first) {
        page.sentence(Tone::Heading, "  ", name);
    }
    let title = cells::group_title(analysis, first);
    let mut head = vec![title.as_str(), ""];
    head.extend(columns.iter().map(|cell| column(cell)));
    page.table_with(&head, &rows, &[1]);
    cells::draw_which_device(page, columns, "in flight (aqu-sz)");
    cells::draw_whys(page, analysis, columns, |cell| column(cell).into());
    findings::draw_beside(page, analysis, columns);
    block_io::draw(page, analysis, columns, |cell| column(cell).into());
    page.blank();
}

/// How many sweeps were whole; words where none was.
fn passes_done(cell: &CellRecord) -> String {
    let count = passes::whole_passes(cell).count() as u64;
    let has_none = passes::has_no_whole_pass(cell);
    if has_none { "none".into() } else { whole(cell.result.bytes.map(|_| count)) }
}

/// A count of one whole sweep.
fn per_pass(cell: &CellRecord, count: Option<u64>) -> String {
    or_missing(count.and_then(|count| passes::per_pass(cell, count)).map(significant))
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
    units: &[Unit],
    value: impl Fn(&CellRecord) -> Option<f64>,
) -> Vec<String> {
    let values: Vec<Option<f64>> = columns.iter().map(|cell| value(cell)).collect();
    let unit = Unit::fit(units, values.iter().copied().flatten());
    let mut row = vec![format!("  {name}"), unit.name.into()];
    row.extend(values.into_iter().map(|value| unit.figure_or_missing(value)));
    row
}

/// Processor time of rdsk and of the kernel for it, in ns per MiB.
fn cpu_ns_per_mib(cell: &CellRecord) -> Option<f64> {
    let mib = cell.result.bytes.filter(|&bytes| bytes > 0)? as f64 / 1_048_576.0;
    Some(metrics::cpu_ns(cell)? as f64 / mib)
}

/// The time of one whole sweep.
fn time_row(name: &str, columns: &[&CellRecord], ns: impl Fn(&CellRecord) -> Option<u64>) -> Vec<String> {
    unit_row(name, columns, &Unit::TIMES, |cell| passes::per_pass(cell, ns(cell)?))
}

fn rate_rows(op: Op, columns: &[&CellRecord]) -> Vec<Vec<String>> {
    let mean = |cell: &CellRecord| cell.result.bytes_per_s.map(|rate| rate.mean);
    let name = if op == Op::Write { "rate, returned" } else { "rate" };
    let mut rows = vec![
        unit_row(name, columns, &Unit::RATES, mean),
        row("  its margin", columns, |cell| plus_minus(cell.result.bytes_per_s)),
    ];
    if op == Op::Write {
        rows.push(unit_row("rate, on disk", columns, &Unit::RATES, metrics::stable_rate));
    }
    rows
}
