//! Many targets: a row for each, with one column per workload.

use super::Limits;
use super::row::{RateTexts, pad};
use crate::cells::target_name;
use crate::page::{self, Page};
use crate::style::Style;
use crate::table::end_of;
use rdsk_analysis::Analysis;
use rdsk_analysis::metrics;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Op, Pattern, Sync, Workload};
use rdsk_units::printable;
use std::collections::VecDeque;
use unicode_width::UnicodeWidthStr as _;

/// Whether a workload is the one of a column.
type Choice = fn(&Workload) -> bool;

/// What stands in the row of a target: the head, and the cell below it.
const COLUMNS: [(&str, Choice); 4] = [
    ("seq read", |workload| is_plain(workload, Op::Read, Pattern::Sequential)),
    ("seq write", |workload| is_plain(workload, Op::Write, Pattern::Sequential)),
    ("random read", |workload| {
        is_plain(workload, Op::Read, Pattern::Random) && metrics::wanted_depth(workload) == 1
    }),
    ("sync write", |workload| workload.op == Op::Write && workload.sync != Sync::None),
];

fn is_plain(workload: &Workload, op: Op, pattern: Pattern) -> bool {
    (workload.op, workload.pattern, workload.sync) == (op, pattern, Sync::None)
}

pub(super) fn draw(
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
    let mut columns: VecDeque<Vec<String>> = COLUMNS
        .into_iter()
        .filter_map(|(head, choice)| target_column(analysis, head, choice, shown, style))
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
    style: Style,
) -> Option<Vec<String>> {
    let of_target: Vec<Option<&&CellRecord>> =
        groups.iter().map(|cells| cells.iter().find(|cell| choice(&cell.workload))).collect();
    of_target.iter().any(Option::is_some).then(|| {
        let rates = of_target
            .into_iter()
            .map(|cell| cell.map_or_else(String::new, |cell| rate(analysis, cell, style)));
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

/// `2.35 GiB/s ±3% c`.
fn rate(analysis: &Analysis<'_>, cell: &CellRecord, style: Style) -> String {
    let figures = RateTexts::of(analysis, cell).in_charset(style.charset);
    let parts = [figures.rate, figures.margin, figures.marks];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
