//! The headline: the few figures wanted first, each with its interval, and its verdict if it is not simply
//! the device's.

use crate::cells::{self, is_bandwidth, remark, verdict_word};
use crate::certainty;
use crate::figures::{Unit, fio_size, iops, or_missing, plus_minus, significant};
use crate::lasting;
use crate::page::{Page, Tone};
use rdsk_analysis::after_idle::Waking;
use rdsk_analysis::comparison::is_of_memory_alone;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{BufferPages, CellRecord, Experiment, Op, Pattern, Sync};
use rdsk_units::Bytes;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    for cells in cells::groups_by(analysis, Experiment::Headline, |cell| cell.workload.targets.clone()) {
        let Some(first) = cells.first() else { continue };
        page.blank();
        let name = cells::target_name(analysis, first).map_or(String::new(), |name| format!("{name}: "));
        page.sentence(Tone::Heading, "HEADLINE: ", format!("{name}{}", in_words(analysis, &cells)));
        draw_tables(page, analysis, &cells);
    }
}

/// The figures in one line: `sequential 1M QD8: reads 160 MiB/s, writes 140 MiB/s; random 4K QD1: reads 125 IOPS; sync 4K QD1: writes 60.0 IOPS`.
pub(crate) fn in_words(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> String {
    // A figure that is not the device's own is always marked with its verdict.
    let marked = |cell: &CellRecord, text: String| {
        let remark = beside(analysis, cell);
        if remark.is_empty() { text } else { format!("{text} ({remark})") }
    };
    // Random writes stay in caches, so the sync ones represent writing here.
    let is_named = |cell: &&&CellRecord| {
        let workload = &cell.workload;
        let is_single = workload.queue_depth == 1 && workload.streams == 1;
        let is_not_cached = workload.op == Op::Read || workload.sync != Sync::None;
        if is_bandwidth(cell) { !is_of_memory_alone(analysis, cell) } else { is_single && is_not_cached }
    };
    let figures = cells.iter().filter(is_named).filter_map(|cell| {
        let rate = words::mean_rate(cell)?;
        Some((test(cell), marked(cell, format!("{}s {rate}", cell.workload.op))))
    });
    let parts: Vec<String> = by_key(figures)
        .into_iter()
        .map(|(test, figures)| format!("{test}: {}", figures.join(", ")))
        .chain(certainty::stalls_in_words(cells))
        .collect();
    if parts.is_empty() { "nothing completed".into() } else { parts.join("; ") }
}

/// `sequential 1M QD8`, `random 4K QD1`, `sync 4K QD1`.
fn test(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let kind = if workload.sync == Sync::None { workload.pattern.as_str() } else { "sync" };
    format!("{kind} {} QD{}", fio_size(workload.block_bytes), metrics::wanted_depth(workload))
}

fn draw_tables(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    let (bandwidth, latency): (Vec<&CellRecord>, Vec<&CellRecord>) =
        cells.iter().partition(|cell| is_bandwidth(cell));
    if !bandwidth.is_empty() {
        let rows: Vec<Vec<String>> = bandwidth.iter().map(|cell| bandwidth_row(analysis, cell)).collect();
        page.table_with(&["", Unit::MIB_PER_S.name, Unit::MB_PER_S.name, "±95%", ""], &rows, &[4]);
    }
    if !latency.is_empty() {
        draw_latency(page, analysis, &latency);
        certainty::draw_ranges(page, &latency, label);
        for cell in &latency {
            for text in after_idle(cell) {
                page.sentence(Tone::Warning, format!("  {}: ", label(cell)), text);
            }
        }
    }
    draw_settling(page, analysis, cells);
    draw_lasting(page, analysis, cells);
    certainty::draw_stalls(page, cells, label);
    cells::draw_whys(page, analysis, cells, |cell| format!("{}: {}", label(cell), verdict_word(cell)));
}

/// `40.4 ms after 500 ms of rest, 109 × the usual (3 reads)`, for each rest that says.
pub(crate) fn after_idle(cell: &CellRecord) -> Vec<String> {
    let text = |waking: Waking| {
        format!(
            "{} after {} of rest, {} the usual ({})",
            words::mean_nanos(waking.latency_ns),
            words::nanos(waking.rest_ns),
            words::times(waking.latency_ns / waking.usual_ns),
            words::plural(waking.reads as u64, "read"),
        )
    };
    rdsk_analysis::after_idle::after_idle(cell).into_iter().map(text).collect()
}

/// What a row says beside its figure: what else than the device it is of, else that it is a rate into a cache.
fn beside(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    match remark(cell) {
        remark if remark.is_empty() && cells::is_into_cache(analysis, cell) => cells::INTO_CACHE.into(),
        remark if remark.is_empty() && lasting::is_burst(analysis, cell) => "burst".into(),
        remark => remark,
    }
}

/// The rates until stable of the rows whose writes returned clearly before, and what their visits wrote.
fn draw_settling(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    for cell in cells.iter().filter(|cell| cells::is_into_cache(analysis, cell)) {
        let Some(settling) = analysis.settling(cell) else { continue };
        let rate = if is_bandwidth(cell) {
            Unit::MIB_PER_S.text(settling.bytes_per_s)
        } else {
            format!("{} I/Os per s", iops(settling.bytes_per_s / cell.workload.block_bytes.max(1) as f64))
        };
        let text = format!(
            "{rate} until on disk. The rate above is that into a cache: {} a repeat returned in {}, and was on disk after {}.",
            words::bytes(settling.visit_bytes),
            words::nanos(settling.return_ns),
            words::nanos(settling.stable_ns),
        );
        page.sentence(Tone::Warning, format!("  {}: ", label(cell)), text);
    }
}

/// The bursts among the rows, and over how many bytes the writes were measured.
fn draw_lasting(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    for cell in cells {
        let Some(lasting) = analysis.lasting(cell).filter(|lasting| lasting.is_burst) else { continue };
        page.sentence(Tone::Warning, format!("  {}: ", label(cell)), lasting::sentence(cell, &lasting));
    }
    if let Some(text) = lasting::measured(analysis, cells, label).into_iter().next() {
        page.sentence(Tone::Plain, "  Writes: ", format!("{text}."));
    }
}

fn bandwidth_row(analysis: &Analysis<'_>, cell: &CellRecord) -> Vec<String> {
    let rate = cell.result.bytes_per_s;
    let mean = rate.map(|rate| rate.mean);
    vec![
        label(cell),
        Unit::MIB_PER_S.figure_or_missing(mean),
        Unit::MB_PER_S.figure_or_missing(mean),
        plus_minus(rate),
        beside(analysis, cell),
    ]
}

fn draw_latency(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    let percentile = |cell: &CellRecord, which: fn(&rdsk_model::Latency) -> Option<u64>| {
        cell.result.latency_ns.as_ref().and_then(which).map(|ns| ns as f64)
    };
    let medians = cells.iter().filter_map(|cell| percentile(cell, |latency| latency.p50));
    let unit = Unit::fit(&Unit::TIMES, medians);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            vec![
                label(cell),
                or_missing(cell.result.ops_per_s.map(|rate| iops(rate.mean))),
                plus_minus(cell.result.ops_per_s),
                unit.figure_or_missing(percentile(cell, |latency| latency.p50)),
                unit.figure_or_missing(percentile(cell, |latency| latency.p99)),
                beside(analysis, cell),
            ]
        })
        .collect();
    let (p50, p99) = (format!("p50 {}", unit.name), format!("p99 {}", unit.name));
    page.table_with(&["", "I/Os per s", "±95%", &p50, &p99, ""], &rows, &[5]);
}

/// `random read, 4 KiB, depth 32`; `depth 1.00 of 32` if the queue was not that deep.
fn label(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let block = Bytes(workload.block_bytes);
    let wanted = metrics::wanted_depth(workload);
    let what = match workload.sync {
        Sync::None => workload.pattern.as_str(),
        Sync::Dsync | Sync::FsyncAtEnd => "sync",
    };
    // No row claims a depth that it did not reach.
    let depth = match metrics::depth_had(cell).filter(|_| wanted > 1 && !metrics::has_reached_depth(cell)) {
        Some(had) => format!(", depth {} of {wanted}", significant(had)),
        None if wanted > 1 || (workload.pattern, workload.sync) == (Pattern::Random, Sync::None) => {
            format!(", depth {wanted}")
        }
        None => String::new(),
    };
    let pages = if workload.buffers == Some(BufferPages::Huge) { ", huge pages" } else { "" };
    format!("{what} {}, {block}{depth}{pages}", workload.op)
}
