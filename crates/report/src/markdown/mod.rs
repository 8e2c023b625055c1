//! A Record as Markdown that fits a ticket or a pull request: what was measured on what, the headline, the findings with their
//! advice, the figures that are not the device's, and how to repeat it. The other form is a table of several runs.

mod runs;
mod text;

pub use runs::markdown_table;

use crate::cells::{self, target_name, verdict_word};
use crate::figures::{MISSING, Unit, iops, or_missing, plus_minus};
use crate::findings::advice;
use crate::header::{host_text, measured_by, took, whole_seconds};
use crate::short::{matters, not_device, ranking, title};
use rdsk_analysis::metrics;
use rdsk_analysis::words::{plural, sentence};
use rdsk_model::{CellRecord, Experiment, Latency, Record, Status};
use text::{block, plain, row};

/// Lines that a summary has at most.
pub const MAX_LINES: usize = 60;

const MAX_TARGETS: usize = 4;
const MAX_ROWS: usize = 14;
const MAX_FINDINGS: usize = 8;
const MAX_VERDICTS: usize = 6;
/// Cells that are named under each verdict; more are counted.
const MAX_NAMED: usize = 3;

/// The summary of one Record, of at most [`MAX_LINES`] lines. Whatever names it holds, they stay text: no markup, no HTML, no link.
pub fn markdown(record: &Record) -> String {
    let mut lines = vec![format!("### rdsk: {}", plain(&heading(record))), String::new()];
    about(&mut lines, record);
    figures(&mut lines, record);
    matters(&mut lines, record);
    verdicts(&mut lines, record);
    if !record.command.is_empty() {
        lines.extend([String::new(), "To repeat it:".into(), String::new()]);
        lines.extend(block(&command(record)));
    }
    lines.join("\n") + "\n"
}

fn heading(record: &Record) -> String {
    let names = match &record.targets[..] {
        [] => "no target".to_owned(),
        [target] => target.name.clone(),
        [first, rest @ ..] => format!("{} and {}", first.name, plural(rest.len() as u64, "other target")),
    };
    record.label.as_ref().map_or(names.clone(), |label| format!("{names}, \"{label}\""))
}

/// What was measured on what, and how it ended.
fn about(lines: &mut Vec<String>, record: &Record) {
    for target in record.targets.iter().take(MAX_TARGETS) {
        lines.push(format!("- {}", plain(&title::described(record, target))));
    }
    if record.targets.len() > MAX_TARGETS {
        lines.push(format!("- and {}", plural((record.targets.len() - MAX_TARGETS) as u64, "other target")));
    }
    if let Some(host) = &record.host {
        lines.push(format!("- {}", plain(&host_text(host))));
    }
    let took = took(record);
    let (by, started, source) =
        (measured_by(record), whole_seconds(&record.started_at), record.observer.source);
    lines.push(format!(
        "- {}",
        plain(&format!("{by}, {started}, {took}, evidence: {source}, record {}", record.id))
    ));
    match record.status {
        Status::Complete => {}
        Status::Interrupted => lines.push("- **interrupted**: the figures are partial".into()),
        Status::Failed => lines.push("- **failed**: the figures are partial or missing".into()),
    }
    if let Some(error) = &record.error {
        lines.push(format!("- error: {}", plain(&error.message)));
    }
}

/// The cells that a summary shows: those of the headline, or all where there are none.
fn shown_cells(record: &Record) -> Vec<&CellRecord> {
    let headline: Vec<&CellRecord> = cells::of_experiment(record, Experiment::Headline).collect();
    if headline.is_empty() { record.cells.iter().collect() } else { headline }
}

fn figures(lines: &mut Vec<String>, record: &Record) {
    let cells = shown_cells(record);
    if cells.is_empty() {
        return;
    }
    // Where there is no room for all, a cell without figures takes none; the verdicts below count it.
    let with_figures = |cell: &&&CellRecord| cells.len() <= MAX_ROWS || metrics::ran(cell);
    let shown: Vec<&CellRecord> = cells.iter().filter(with_figures).take(MAX_ROWS).copied().collect();
    let medians = shown.iter().filter_map(|cell| cell.result.latency_ns.as_ref()?.p50);
    let unit = Unit::fit(&Unit::TIMES, medians.map(|ns| ns as f64));
    let (p50, p99) = (format!("p50 {}", unit.name), format!("p99 {}", unit.name));
    lines.push(String::new());
    lines.push(row(["cell", Unit::MIB_PER_S.name, "I/Os per s", "±95%", &p50, &p99, "verdict"]));
    lines.push("|---|--:|--:|--:|--:|--:|---|".into());
    let percentile = |cell: &CellRecord, which: fn(&Latency) -> Option<u64>| {
        unit.figure_or_missing(cell.result.latency_ns.as_ref().and_then(which).map(|ns| ns as f64))
    };
    for &cell in &shown {
        let target = target_name(record, cell).map_or_else(String::new, |name| format!(" on {name}"));
        lines.push(row([
            &format!("{}{target}", cell.name()),
            &Unit::MIB_PER_S.figure_or_missing(cell.result.bytes_per_s.map(|rate| rate.mean)),
            &or_missing(cell.result.ops_per_s.map(|rate| iops(rate.mean))),
            &plus_minus(cell.result.bytes_per_s),
            &percentile(cell, |latency| latency.p50),
            &percentile(cell, |latency| latency.p99),
            &not_device::word(record, cell).unwrap_or_else(|| verdict_word(cell)),
        ]));
    }
    if shown.len() < cells.len() {
        let more = plural((cells.len() - shown.len()) as u64, "more cell");
        lines.extend([String::new(), format!("and {more}: `rdsk show`, `rdsk export --format csv`")]);
    }
}

fn matters(lines: &mut Vec<String>, record: &Record) {
    let ranked = ranking::ranked(record);
    if ranked.is_empty() {
        return;
    }
    lines.extend([String::new(), "**What matters here**".into(), String::new()]);
    for (number, finding) in (1..).zip(ranked.iter().take(MAX_FINDINGS)) {
        let advice =
            advice(record, finding).map_or_else(String::new, |advice| format!(" {}", sentence(&advice)));
        let text = format!("{}{advice} ({})", sentence(&matters::clause(finding)), finding.code);
        lines.push(format!("{number}. {}", plain(&text)));
    }
    if ranked.len() > MAX_FINDINGS {
        lines.extend([
            String::new(),
            format!("and {}", plural((ranked.len() - MAX_FINDINGS) as u64, "other finding")),
        ]);
    }
}

/// The cells whose figures are not simply the device's.
fn verdicts(lines: &mut Vec<String>, record: &Record) {
    let others = not_device::others(record);
    if others.is_empty() {
        return;
    }
    lines.extend([String::new(), "**Not simply the device's figures**".into(), String::new()]);
    for (word, cells) in others.iter().take(MAX_VERDICTS) {
        let named = not_device::named(record, cells, MAX_NAMED);
        lines.push(format!("- **{}**: {}", plain(word), plain(&named)));
    }
    let more: usize = others.iter().skip(MAX_VERDICTS).map(|(_, cells)| cells.len()).sum();
    if more > 0 {
        lines.push(format!("- and {}", plural(more as u64, "other cell")));
    }
}

/// The command line as a shell takes it.
fn command(record: &Record) -> String {
    let words = record.command.iter().map(|word| rdsk_units::printable(word));
    let words: Vec<String> = words.collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| MISSING.into())
}

#[cfg(test)]
mod tests;
