//! The stream page: one reader and one writer by several paths, each with the `iostat -x` row of its device under
//! sysstat's own column names, and the curves of queue depth and rate.

use crate::block_io;
use crate::cells::{self, remark};
use crate::figures::{MISSING, Unit, or_missing, plus_minus, significant};
use crate::findings;
use crate::header::write_cache;
use crate::page::{Page, Tone, WIDTH};
use crate::spark;

use rdsk_analysis::block_io::{BlockIo, part_in_words};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::iostat::{COLUMNS, Column, Direction, Iostat, iostat_row};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Experiment, Op, Pattern, Sync};
use rdsk_units::Bytes;

const CURVE_WIDTH: usize = 24;

/// Share of requests and of bytes below which a kind of request is left out.
const LIGHT: f64 = 0.01;
/// What stands above the modes in a table of iostat's columns.
const LEAD: &str = "iostat -x";

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    let block = cells::only_block(analysis, Experiment::Stream)
        .map_or(String::new(), |block| format!(", blocks of {block}"));
    // Random I/O over a part has shorter seeks than over all.
    let random = cells::of_experiment(analysis, Experiment::Stream)
        .find(|cell| cell.workload.pattern == Pattern::Random);
    let over = random
        .map_or(String::new(), |cell| format!(", random over {}", Bytes(cell.workload.span_bytes).approx()));
    page.heading(format!("STREAM: one stream, watched by iostat{block}{over}"));
    super::draw_answer(page, analysis, Experiment::Stream);
    for cells in cells::groups(analysis, Experiment::Stream) {
        draw_group(page, analysis, &cells);
    }
    draw_caches(page, analysis);
}

fn draw_group(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    let Some(first) = cells.first() else { return };
    let op = first.workload.op;
    if let Some(name) = cells::target_name(analysis, first) {
        page.sentence(Tone::Heading, "  ", name);
    }
    let title = cells::group_title(analysis, first);
    let mut heads = vec![title.as_str(), "MiB/s", "±95%"];
    if op == Op::Write {
        heads.push("on disk\nMiB/s");
    }
    heads.extend(["p50", "p99", "p99.9", "remark"]);
    let rows: Vec<Vec<String>> = cells.iter().map(|cell| summary(op, cell)).collect();
    page.table_with(&heads, &rows, &[heads.len() - 1]);
    draw_durable(page, analysis, cells);
    cells::draw_whys(page, analysis, cells, mode);
    findings::draw_beside(page, analysis, cells);
    let rows: Vec<(String, Iostat)> =
        cells.iter().filter_map(|cell| Some((mode(cell), iostat_row(cells::device(cell)?)?))).collect();
    if rows.is_empty() {
        page.line("  No device counters, so no iostat row.");
    } else {
        draw_iostat(page, &rows);
        cells::draw_which_device(page, cells, LEAD);
    }
    draw_curves(page, cells);
    block_io::draw(page, analysis, cells, mode);
    for cell in cells.iter().filter(|cell| is_stacked(cell)) {
        let target = cell.workload.targets.first().copied().unwrap_or(0);
        block_io::draw_tree(
            page,
            &cell.evidence,
            target,
            &format!("what {} I/O became{}, device by device", mode(cell), part_in_words(cell)),
        );
    }
    page.blank();
}

/// Whether the programs counted devices below the target's own, and followed all bios to them.
fn is_stacked(cell: &CellRecord) -> bool {
    let whole = cell.evidence.bpf.iter().filter(|bpf| bpf.timed_share().is_none());
    whole.flat_map(|bpf| &bpf.devices).any(|device| !device.below.is_empty())
}

/// `direct`, `buffered+dsync`.
pub fn mode(cell: &CellRecord) -> String {
    let path = cell.workload.path;
    match cell.workload.sync {
        Sync::None => path.to_string(),
        Sync::Dsync => format!("{path}+dsync"),
        Sync::FsyncAtEnd => format!("{path}+fsync"),
    }
}

fn summary(op: Op, cell: &CellRecord) -> Vec<String> {
    let rate = cell.result.bytes_per_s;
    let mut row =
        vec![mode(cell), Unit::MIB_PER_S.figure_or_missing(rate.map(|rate| rate.mean)), plus_minus(rate)];
    if op == Op::Write {
        row.push(Unit::MIB_PER_S.figure_or_missing(metrics::stable_rate(cell)));
    }
    let percentiles = cell.result.latency_ns.as_ref().map(|latency| [latency.p50, latency.p99, latency.p999]);
    let time =
        |ns: Option<u64>| or_missing(ns.map(|ns| Unit::fit(&Unit::TIMES, [ns as f64]).text(ns as f64)));
    row.extend(percentiles.unwrap_or_default().map(time));
    row.push(remark(cell));
    row
}

/// What each synced write took on average, and its flushes. The kernel sums up the time of flushes, so that they have no percentiles;
/// those of the calls, flush included, stand in the table.
fn draw_durable(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    for cell in cells.iter().filter(|cell| cell.workload.sync == Sync::Dsync) {
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean);
        let Some(mean_ns) = mean_ns else { continue };
        let text = format!("{} per write on average{}.", words::mean_nanos(mean_ns), flushes(analysis, cell));
        page.sentence(Tone::Plain, format!("  {}: ", mode(cell)), text);
    }
}

/// `; 1.00 flushes per write, 7.92 ms each`.
fn flushes(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let Some(count) = metrics::flushes_per_io(cell) else { return "; flushes are not counted".into() };
    if count == 0.0 {
        let fua_per_write = analysis.block_io(cell).and_then(BlockIo::fua_per_write);
        let has_fua = fua_per_write.is_some_and(|fua| fua > 0.0);
        return if has_fua { "; no flush, each write with FUA".into() } else { "; no flush".into() };
    }
    let awaited = |device| iostat_row(device).map(|row| row.f_await).filter(|&ms| ms > 0.0);
    let slowest =
        metrics::devices(cell).unwrap_or_default().into_iter().filter_map(awaited).max_by(f64::total_cmp);
    let each = slowest.map_or_else(String::new, |ms| format!(", {} each", words::mean_nanos(ms * 1e6)));
    format!("; {} flushes per write{each}", words::figure(count))
}

/// Whether a column's kind of request is at least 1 % of the row's requests or bytes.
fn is_of_weight(name: &str, row: &Iostat) -> bool {
    let kind = match name {
        "r/s" | "rkB/s" | "rrqm/s" | "%rrqm" | "r_await" | "rareq-sz" => row.reads,
        "w/s" | "wkB/s" | "wrqm/s" | "%wrqm" | "w_await" | "wareq-sz" => row.writes,
        "d/s" | "dkB/s" | "drqm/s" | "%drqm" | "d_await" | "dareq-sz" => row.discards,
        _ => return true,
    };
    let share = |figure: fn(&Direction) -> f64| {
        figure(&kind) >= LIGHT * (figure(&row.reads) + figure(&row.writes) + figure(&row.discards))
    };
    share(|kind| kind.ios_s) || share(|kind| kind.kb_s)
}

/// The rows of `iostat -x`, in as many tables as the width needs. Columns that are 0 in every row are left out, and
/// those of a kind of request that hardly occurred; the document has them all.
fn draw_iostat(page: &mut Page, rows: &[(String, Iostat)]) {
    let is_shown = |(name, figure): &&Column| {
        rows.iter().any(|(_, row)| figure(row) != 0.0) && rows.iter().any(|(_, row)| is_of_weight(name, row))
    };
    let shown: Vec<&Column> = COLUMNS.iter().filter(is_shown).collect();
    if shown.is_empty() {
        page.line("  iostat -x: every column is 0.");
    }
    let width_of = |(name, figure): &Column| {
        let widest = rows.iter().map(|(_, row)| significant(figure(row)).chars().count()).max();
        widest.unwrap_or(0).max(name.len()) + 2
    };
    let modes = rows.iter().map(|(mode, _)| mode.len()).max().unwrap_or(0).max(LEAD.len()) + 2;
    let mut tables: Vec<Vec<&Column>> = Vec::new();
    let mut used = usize::MAX;
    for column in shown {
        let width = width_of(column);
        match tables.last_mut().filter(|_| used + width <= WIDTH) {
            Some(table) => {
                table.push(column);
                used += width;
            }
            None => {
                tables.push(vec![column]);
                used = modes + width;
            }
        }
    }
    for table in tables {
        draw_columns(page, rows, &table);
    }
}

fn draw_columns(page: &mut Page, rows: &[(String, Iostat)], columns: &[&Column]) {
    let heads: Vec<&str> = std::iter::once(LEAD).chain(columns.iter().map(|(name, _)| *name)).collect();
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
            let is_timed = cell.evidence.bpf.as_ref().is_none_or(|bpf| bpf.timed_share().is_none());
            let largest = device.and_then(|device| device.in_flight_max).filter(|_| is_timed);
            let largest = largest.map(|depth| depth.to_string());
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

fn draw_caches(page: &mut Page, analysis: &Analysis<'_>) {
    let devices = analysis.targets.iter().filter_map(|target| target.device.as_ref());
    for (name, same) in by_key(devices.map(|device| (&device.name, device))) {
        let state = write_cache(same[0]).unwrap_or_else(|| "write cache not known".into());
        page.line(format!("  {name}: {state}."));
    }
}
