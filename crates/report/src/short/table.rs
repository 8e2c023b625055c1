//! The headline in a few rows: reads beside writes, or a row per target where there are many. A letter marks each figure that is
//! not simply the device's, and is explained right below.

use super::row::{RateTexts, pad, pad_left};
use super::{Limits, marks, target_rows};
use crate::cells::{self, target_name};
use crate::figures::{MISSING, fio_size};
use crate::lasting;
use crate::page::{self, Page, Tone};
use crate::style::Style;
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::is_of_memory_alone;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Experiment, Op, Pattern, Sync};
use unicode_width::UnicodeWidthStr as _;

/// Targets that have a table each; more have a row each.
const MAX_TABLES: usize = 2;
/// Lines of what a mark means.
const LEGEND_LINES: usize = 2;
/// Columns between the two directions.
const GAP: usize = 3;

pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, style: Style, limits: &Limits) {
    let mut groups = cells::groups_by(analysis, Experiment::Headline, |cell| cell.workload.targets.clone());
    // What only compares memory is a finding.
    groups.iter_mut().for_each(|cells| cells.retain(|cell| !is_of_memory_alone(analysis, cell)));
    if groups.len() > MAX_TABLES {
        target_rows::draw(page, analysis, &groups, style, limits);
        draw_notes(page, analysis, &groups.concat(), limits);
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
        if shown < rows.len() {
            page.line(format!("  and {} more: --details", plural((rows.len() - shown) as u64, "row")));
        }
        let wakings = cells.iter().flat_map(|cell| crate::questions::headline::after_idle(cell));
        wakings.for_each(|text| page.sentence(Tone::Plain, "After idle: ", text));
        draw_notes(page, analysis, cells, limits);
        left -= shown;
    }
}

/// What the marks mean, and over how many bytes the writes were measured.
fn draw_notes(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord], limits: &Limits) {
    for wordings in marks::legend(analysis, cells) {
        page.wordings(Tone::Plain, "", wordings, limits.answer_lines.min(LEGEND_LINES));
    }
    let measured = lasting::measured(analysis, cells, workload_label);
    if !measured.is_empty() {
        page.wordings(Tone::Plain, lasting::LEAD, measured, 3);
    }
}

/// One workload: its cells side by side.
struct WorkloadRow<'a> {
    /// `Random 4K QD32`.
    label: String,
    /// The same in fewer columns: `Rand 4K QD32`.
    brief: String,
    read: Option<&'a CellRecord>,
    write: Option<&'a CellRecord>,
}

impl<'a> WorkloadRow<'a> {
    fn new(first: &CellRecord) -> Self {
        Self { label: workload_label(first), brief: brief(first), read: None, write: None }
    }

    fn cell(&self, op: Op) -> Option<&'a CellRecord> {
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
    for (_, cells) in by_key(cells.iter().map(|cell| (key(cell), *cell))) {
        let first = rows.len();
        for cell in cells {
            match rows[first..].iter_mut().find(|row| row.cell(cell.workload.op).is_none()) {
                Some(row) => row.set(cell),
                None => {
                    let mut row = WorkloadRow::new(cell);
                    row.set(cell);
                    rows.push(row);
                }
            }
        }
    }
    rows
}

/// `Sequential 1M QD8`, `Random 4K QD1`, `Sync write 4K QD1`: what was asked for, in fio's words.
pub fn workload_label(cell: &CellRecord) -> String {
    with_words(cell, ["Sequential", "Random", "Sync write"])
}

fn brief(cell: &CellRecord) -> String {
    with_words(cell, ["Seq", "Rand", "Sync"])
}

fn with_words(cell: &CellRecord, [sequential, random, sync]: [&str; 3]) -> String {
    let workload = &cell.workload;
    let what = match (workload.sync, workload.pattern) {
        (Sync::None, Pattern::Sequential) => sequential,
        (Sync::None, Pattern::Random) => random,
        _ => sync,
    };
    format!("{what} {} QD{}", fio_size(workload.block_bytes), metrics::wanted_depth(workload))
}

/// Which percentiles stand beside the rates.
#[derive(Clone, Copy, PartialEq)]
enum Percentiles {
    Both,
    P99,
    Neither,
}

/// One direction below its head.
struct Column {
    head: &'static str,
    /// A row without such a cell is empty.
    rows: Vec<RateTexts>,
    percentiles: Percentiles,
}

impl Column {
    fn lines(&self) -> Vec<String> {
        let widest = |text: fn(&RateTexts) -> &String| {
            self.rows.iter().map(|row| text(row).width()).max().unwrap_or(0)
        };
        let rate = widest(|row| &row.rate).max(self.head.width());
        let (margin, marks) = (widest(|row| &row.margin), widest(|row| &row.marks));
        // A column without a single figure takes no room; its place is the other one's.
        let has = |text: fn(&RateTexts) -> &String| {
            self.rows.iter().any(|row| !["", MISSING, "-"].contains(&text(row).as_str()))
        };
        let shown_99 = self.percentiles != Percentiles::Neither && has(|row| &row.p99);
        let shown_50 = match self.percentiles {
            Percentiles::Both => has(|row| &row.p50),
            Percentiles::P99 => !shown_99 && has(|row| &row.p50),
            Percentiles::Neither => false,
        };
        let p50 = if shown_50 { widest(|row| &row.p50) } else { 0 };
        let p99 = if shown_99 { widest(|row| &row.p99) } else { 0 };
        let line = |row: &RateTexts, head: Option<&str>| {
            let first = if head.is_some() { pad(&row.rate, rate) } else { pad_left(&row.rate, rate) };
            let mut text = first;
            for (figure, columns) in [(&row.margin, margin), (&row.marks, marks)] {
                if columns > 0 {
                    text = format!("{text} {}", pad(figure, columns));
                }
            }
            if p50 > 0 {
                text = format!("{text}  {}", pad_left(&row.p50, p50));
            }
            if p99 > 0 {
                text = format!("{text}  {}", pad_left(&row.p99, p99));
            }
            text
        };
        let head = RateTexts {
            rate: self.head.into(),
            p50: if p50 > 0 { "p50".into() } else { String::new() },
            p99: if p99 > 0 { "p99".into() } else { String::new() },
            ..RateTexts::default()
        };
        std::iter::once(line(&head, Some(self.head)))
            .chain(self.rows.iter().map(|row| line(row, None)))
            .collect()
    }
}

/// Lines of a table: the labels, then the columns side by side.
fn beside(labels: &[&str], columns: &[Vec<String>]) -> Vec<String> {
    let widest = labels.iter().map(|label| label.width()).max().unwrap_or(0);
    let heads = std::iter::once("").chain(labels.iter().copied());
    heads
        .enumerate()
        .map(|(index, label)| {
            let mut line = pad(label, widest);
            for (position, column) in columns.iter().enumerate() {
                let gap = if position == 0 { 2 } else { GAP };
                line = format!("{line}{}{}", " ".repeat(gap), column[index]);
            }
            line
        })
        .collect()
}

fn draw_rows(page: &mut Page, analysis: &Analysis<'_>, rows: &[WorkloadRow<'_>], style: Style) {
    let width = page::width(style);
    let fits = |lines: &Vec<String>| lines.iter().all(|line| line.trim_end().width() <= width);
    let ops: Vec<Op> = [Op::Read, Op::Write]
        .into_iter()
        .filter(|&op| rows.iter().any(|row| row.cell(op).is_some()))
        .collect();
    let column = |op: Op, rows: &[&WorkloadRow<'_>], percentiles| Column {
        head: if op == Op::Read { "READ" } else { "WRITE" },
        rows: rows
            .iter()
            .map(|row| row.cell(op).map_or_else(RateTexts::default, |cell| RateTexts::of(analysis, cell)))
            .map(|figures| figures.in_charset(style.charset))
            .collect(),
        percentiles,
    };
    let every: Vec<&WorkloadRow<'_>> = rows.iter().collect();
    let side_by_side = |is_brief: bool, percentiles: Percentiles| {
        let columns: Vec<Vec<String>> =
            ops.iter().map(|&op| column(op, &every, percentiles).lines()).collect();
        beside(&labels(&every, is_brief), &columns)
    };
    let stacked = |is_brief: bool, percentiles: Percentiles| {
        let tables = ops.iter().flat_map(|&op| {
            let rows: Vec<&WorkloadRow<'_>> = rows.iter().filter(|row| row.cell(op).is_some()).collect();
            beside(&labels(&rows, is_brief), &[column(op, &rows, percentiles).lines()])
        });
        tables.collect::<Vec<String>>()
    };
    use Percentiles::{Both, Neither, P99};
    let forms: [&dyn Fn() -> Vec<String>; 8] = [
        &|| side_by_side(false, Both),
        &|| side_by_side(true, Both),
        &|| side_by_side(false, P99),
        &|| side_by_side(true, P99),
        &|| stacked(false, Both),
        &|| stacked(true, Both),
        &|| stacked(true, P99),
        &|| stacked(true, Neither),
    ];
    let lines = forms.iter().map(|form| form()).find(fits).unwrap_or_else(|| stacked(true, Neither));
    lines.into_iter().for_each(|line| page.line(line));
}

fn labels<'a>(rows: &[&'a WorkloadRow<'_>], is_brief: bool) -> Vec<&'a str> {
    rows.iter().map(|row| if is_brief { row.brief.as_str() } else { row.label.as_str() }).collect()
}
