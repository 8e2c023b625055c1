//! The headline in a few rows: a row per workload, reads beside writes, or a row per target where there are many. A star
//! marks each figure that is not simply the device's.

use super::{Limits, not_device};
use crate::cells::{self, is_bandwidth, target_name};
use crate::figures::{self, MISSING, Unit};
use crate::lasting;
use crate::page::{self, Page, Tone};
use crate::style::Style;
use crate::table::end_of;
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::is_of_memory_alone;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Estimate, Experiment, Op, Pattern, Sync, Workload};
use rdsk_units::{Bytes, count, percent, printable};
use std::collections::VecDeque;
use unicode_width::UnicodeWidthStr as _;

/// Targets that have a table each; more have a row each.
const MAX_TABLES: usize = 2;
/// Lines of what the mark of a burst means.
const LEGEND_LINES: usize = 2;
/// Half-widths from here on need no decimal.
const WIDE: f64 = 0.0995;

pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, style: Style, limits: &Limits) {
    let mut groups = cells::groups_by(analysis, Experiment::Headline, |cell| cell.workload.targets.clone());
    // What only compares memory is a finding.
    groups.iter_mut().for_each(|cells| cells.retain(|cell| !is_of_memory_alone(analysis, cell)));
    if groups.len() > MAX_TABLES {
        draw_targets(page, analysis, &groups, style, limits);
        draw_lasting(page, analysis, &groups.concat(), limits, |cell| cell.id.clone());
        return;
    }
    let mut left = limits.rows;
    for cells in &groups {
        let Some(name) = cells.first().map(|first| target_name(analysis, first)) else { continue };
        if let Some(name) = name {
            page.wordings(Tone::Heading, "", vec![name], 1);
        }
        let rows = rows(cells);
        let shown = rows.len().min(left);
        draw_rows(page, analysis, &rows[..shown], style);
        let wakings = cells.iter().flat_map(|cell| crate::questions::headline::after_idle(cell));
        wakings.for_each(|text| page.line(format!("  after idle: {text}")));
        if shown < rows.len() {
            page.line(format!("  and {} more: --details", plural((rows.len() - shown) as u64, "row")));
        }
        draw_lasting(page, analysis, cells, limits, label);
        left -= shown;
    }
}

/// What the mark of a burst means, and over how many bytes the writes were measured.
fn draw_lasting(
    page: &mut Page,
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    limits: &Limits,
    name: impl Fn(&CellRecord) -> String,
) {
    let legend = lasting::legend(analysis, cells, &name);
    if !legend.is_empty() {
        page.wordings(Tone::Warning, lasting::LEGEND, legend, limits.answer_lines.min(LEGEND_LINES));
    }
    let measured = lasting::measured(analysis, cells, name);
    if !measured.is_empty() {
        page.wordings(Tone::Plain, lasting::LEAD, measured, 1);
    }
}

/// One workload: its cells side by side.
struct WorkloadRow<'a> {
    /// Beside the same workload at another depth, the depth alone.
    label: String,
    /// What it is wherever it stands.
    full: String,
    read: Option<&'a CellRecord>,
    write: Option<&'a CellRecord>,
}

impl<'a> WorkloadRow<'a> {
    fn of(&self, op: Op) -> Option<&'a CellRecord> {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
    }

    fn set(&mut self, cell: &'a CellRecord) {
        match cell.workload.op {
            Op::Read => self.read = Some(cell),
            Op::Write => self.write = Some(cell),
        }
    }
}

fn rows<'a>(cells: &[&'a CellRecord]) -> Vec<WorkloadRow<'a>> {
    let key = |cell: &CellRecord| {
        let workload = &cell.workload;
        let wanted = metrics::wanted_depth(workload);
        (workload.pattern, workload.sync, workload.path, workload.block_bytes, wanted)
    };
    let mut rows: Vec<WorkloadRow<'_>> = Vec::new();
    let mut above = None;
    for (key, cells) in by_key(cells.iter().map(|cell| (key(cell), *cell))) {
        let is_deeper = above == Some((key.0, key.1, key.2, key.3));
        above = Some((key.0, key.1, key.2, key.3));
        let full = label(cells[0]);
        let label = if is_deeper { format!("  depth {}", key.4) } else { full.clone() };
        let first = rows.len();
        for cell in cells {
            match rows[first..].iter_mut().find(|row| row.of(cell.workload.op).is_none()) {
                Some(row) => row.set(cell),
                None => {
                    let mut row =
                        WorkloadRow { label: label.clone(), full: full.clone(), read: None, write: None };
                    row.set(cell);
                    rows.push(row);
                }
            }
        }
    }
    rows
}

/// `random 4 KiB`; the depth of sequential I/O stands beside its rate.
fn label(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let what = if workload.sync == Sync::None { workload.pattern.as_str() } else { "durable" };
    let depth = match metrics::wanted_depth(workload) {
        wanted if wanted > 1 && !is_bandwidth(cell) => format!(", depth {wanted}"),
        _ => String::new(),
    };
    format!("{what} {}{depth}", Bytes(workload.block_bytes))
}

/// `2.35 GiB/s ±3.1 %`, `30.6k/s* ±12 %`.
fn rate(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let star = if not_device::word(analysis, cell).is_some() { "*" } else { "" };
    let (estimate, figure) = if is_bandwidth(cell) {
        let estimate = cell.result.bytes_per_s;
        (estimate, estimate.map(|rate| figures::rate(rate.mean)))
    } else {
        let estimate = cell.result.ops_per_s;
        (estimate, estimate.map(|rate| format!("{}/s", count(rate.mean))))
    };
    let Some(figure) = figure else { return format!("{MISSING}{star}") };
    let interval = estimate.and_then(|estimate: Estimate| estimate.margin()).map(plus_minus);
    let burst = if lasting::is_burst(analysis, cell) { lasting::MARK } else { "" };
    format!("{figure}{star}{burst}{}", interval.map_or_else(String::new, |interval| format!(" {interval}")))
}

fn plus_minus(half: f64) -> String {
    match half {
        half if !half.is_finite() => format!("±{MISSING}"),
        half if half > 1.0 => "±>100 %".into(),
        half if half >= WIDE => format!("±{:.0} %", half * 100.0),
        half => format!("±{}", percent(half)),
    }
}

/// `31.2/107 µs`, the median and the 99th percentile; the depth of sequential I/O.
fn latency(cell: &CellRecord) -> String {
    if is_bandwidth(cell) {
        return match metrics::wanted_depth(&cell.workload) {
            1 => String::new(),
            wanted => format!("depth {wanted}"),
        };
    }
    let Some(latency) = &cell.result.latency_ns else { return String::new() };
    let Some(p50) = latency.p50 else { return String::new() };
    let unit = Unit::fit(&Unit::TIMES, [p50 as f64]);
    let p99 = unit.figure_or_missing(latency.p99.map(|ns| ns as f64));
    format!("{}/{p99} {}", unit.figure(p50 as f64), unit.name)
}

/// Rate and latency of one direction below their heads, as lines: half a latency would be a wrong one, so that there is none where it
/// has no room.
fn column(
    analysis: &Analysis<'_>,
    op: Option<Op>,
    cells: &[Option<&CellRecord>],
    has_latency: bool,
) -> Vec<String> {
    let latency = |cell: &CellRecord| if has_latency { latency(cell) } else { String::new() };
    let mut texts = vec![(op.map_or("", Op::as_str).to_owned(), "p50/p99".to_owned())];
    let texts_of = |cell: &CellRecord| (rate(analysis, cell), latency(cell));
    texts.extend(cells.iter().map(|cell| cell.map(texts_of).unwrap_or_default()));
    if texts[1..].iter().all(|(_, latency)| !latency.contains('/')) {
        texts[0].1.clear();
    }
    let rates = texts.iter().map(|(rate, _)| rate.width()).max().unwrap_or(0);
    texts.iter().map(|(rate, latency)| format!("{} {latency}", pad(rate, rates))).collect()
}

/// Columns that the longest of these lines takes.
fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.trim_end().width()).max().unwrap_or(0)
}

fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

fn draw_rows(page: &mut Page, analysis: &Analysis<'_>, rows: &[WorkloadRow<'_>], style: Style) {
    if rows.is_empty() {
        return;
    }
    let ops = [Op::Read, Op::Write].into_iter().filter(|&op| rows.iter().any(|row| row.of(op).is_some()));
    let cells = |op| rows.iter().map(|row| row.of(op)).collect::<Vec<_>>();
    let columns: VecDeque<Vec<String>> = ops.map(|op| column(analysis, Some(op), &cells(op), true)).collect();
    let labels: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
    let needed = widest(&labels) + columns.iter().map(|column| widest(column) + 2).sum::<usize>();
    if needed <= page::width(style) {
        draw_columns(page, labels, columns);
        return;
    }
    // Too wide side by side: one below the other.
    let singles = [Op::Read, Op::Write]
        .into_iter()
        .flat_map(|op| rows.iter().map(move |row| (format!("{op} {}", row.full), row.of(op))));
    let (labels, cells): (Vec<String>, Vec<Option<&CellRecord>>) =
        singles.filter(|(_, cell)| cell.is_some()).unzip();
    let column = |has_latency: bool| column(analysis, None, &cells, has_latency);
    let has_room = widest(&labels) + 2 + widest(&column(true)) <= page::width(style);
    draw_columns(page, labels, [column(has_room)].into());
}

fn draw_columns(page: &mut Page, labels: Vec<String>, mut columns: VecDeque<Vec<String>>) {
    let names: Vec<String> = std::iter::once(String::new()).chain(labels).collect();
    let lines = beside(&names, &mut columns, usize::MAX);
    lines.into_iter().filter(|line| !line.trim().is_empty()).for_each(|line| page.line(line));
}

/// Whether a workload is the one of a column.
type Choice = fn(&Workload) -> bool;

/// What stands in the row of a target: the head, and the cell below it.
const OF_TARGET: [(&str, Choice); 4] = [
    ("read", |workload| is_plain(workload, Op::Read, Pattern::Sequential)),
    ("write", |workload| is_plain(workload, Op::Write, Pattern::Sequential)),
    ("random read", |workload| {
        is_plain(workload, Op::Read, Pattern::Random) && metrics::wanted_depth(workload) == 1
    }),
    ("durable write", |workload| workload.op == Op::Write && workload.sync != Sync::None),
];

fn is_plain(workload: &Workload, op: Op, pattern: Pattern) -> bool {
    (workload.op, workload.pattern, workload.sync) == (op, pattern, Sync::None)
}

fn draw_targets(
    page: &mut Page,
    analysis: &Analysis<'_>,
    groups: &[Vec<&CellRecord>],
    style: Style,
    limits: &Limits,
) {
    let shown = &groups[..groups.len().min(limits.rows)];
    let name = |cells: &Vec<&CellRecord>| cells.first().and_then(|first| target_name(analysis, first));
    let names = shown.iter().map(|cells| end_of(&printable(&name(cells).unwrap_or_default())));
    let names: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    let mut columns: VecDeque<Vec<String>> = OF_TARGET
        .into_iter()
        .filter_map(|(head, choice)| target_column(analysis, head, choice, shown))
        .collect();
    let mut left = limits.rows;
    while left >= shown.len() && !columns.is_empty() {
        left -= shown.len();
        beside(&names, &mut columns, page::width(style)).into_iter().for_each(|line| page.line(line));
    }
    let heads: Vec<&str> = columns.iter().map(|column| column[0].as_str()).collect();
    if !heads.is_empty() {
        page.line(format!("  {}: --details", heads.join(", ")));
    }
    if shown.len() < groups.len() {
        page.line(format!("  and {} more: --details", plural((groups.len() - shown.len()) as u64, "target")));
    }
}

/// A head and the rate of each target below it; `None` where no target has such a cell.
fn target_column(
    analysis: &Analysis<'_>,
    head: &str,
    choice: Choice,
    groups: &[Vec<&CellRecord>],
) -> Option<Vec<String>> {
    let found: Vec<Option<&&CellRecord>> =
        groups.iter().map(|cells| cells.iter().find(|cell| choice(&cell.workload))).collect();
    found.iter().any(Option::is_some).then(|| {
        let rates = found.into_iter().map(|cell| cell.map_or_else(String::new, |cell| rate(analysis, cell)));
        std::iter::once(head.to_owned()).chain(rates).collect()
    })
}

/// The names with as many of the columns behind them as fit, one at least; the others stay.
fn beside(names: &[String], columns: &mut VecDeque<Vec<String>>, width: usize) -> Vec<String> {
    let widest = |column: &[String]| column.iter().map(|text| text.width()).max().unwrap_or(0);
    let mut lines: Vec<String> = names.iter().map(|name| pad(name, widest(names))).collect();
    let mut used = widest(names);
    let mut is_first = true;
    while let Some(column) = columns.pop_front() {
        let needed = 2 + widest(&column);
        if !is_first && used + needed > width {
            columns.push_front(column);
            break;
        }
        for (line, text) in lines.iter_mut().zip(&column) {
            line.push_str("  ");
            line.push_str(&pad(text, needed - 2));
        }
        (used, is_first) = (used + needed, false);
    }
    lines
}
