//! Several runs side by side: what each was, and a row for each cell with the figure of every run. It compares nothing; whether a
//! difference is more than noise is another question.

use super::shown_cells;
use super::text::{cells, plain};
use crate::cells::is_bandwidth;
use crate::figures::{self, MISSING, iops};
use crate::header::{measured_by, whole_seconds};
use crate::short::not_device;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words::plural;
use rdsk_model::Record;

/// Cells of a table; more are counted.
const MAX_ROWS: usize = 40;
/// Runs of a table; more do not fit beside each other, and are counted.
const MAX_RUNS: usize = 12;

/// A table of the runs, and one of their figures: those of the headline where a run has one, else of all cells. A star marks a
/// figure that is not simply the device's.
pub fn markdown_table(records: &[&Record]) -> String {
    let shown = &records[..records.len().min(MAX_RUNS)];
    let mut lines = vec![format!("### rdsk: {}", plural(records.len() as u64, "run")), String::new()];
    lines
        .push("| run | started | label | targets | kernel | measured by |\n|--:|---|---|---|---|---|".into());
    for (number, record) in (1..).zip(shown) {
        let targets: Vec<&str> = record.targets.iter().map(|target| target.name.as_str()).collect();
        let texts = [
            format!("{number}"),
            whole_seconds(&record.started_at),
            record.label.clone().unwrap_or_default(),
            targets.join(", "),
            record.host.as_ref().map_or_else(|| MISSING.into(), |host| host.kernel.clone()),
            measured_by(record),
        ];
        lines.push(cells(&texts.map(|text| plain(&text))));
    }
    if shown.len() < records.len() {
        lines.extend([
            String::new(),
            format!("and {}", plural((records.len() - shown.len()) as u64, "more run")),
        ]);
    }
    lines.push(String::new());
    draw_figures(&mut lines, shown);
    lines.extend([String::new(), "\\* not simply the device's figure: `rdsk show` says why".into()]);
    lines.join("\n") + "\n"
}

fn draw_figures(lines: &mut Vec<String>, records: &[&Record]) {
    let ids = distinct(records.iter().flat_map(|record| shown_cells(record)).map(|cell| cell.id.as_str()));
    let heads = (1..=records.len()).map(|number| format!(" run {number} |"));
    lines.push(format!("| cell |{}", heads.collect::<String>()));
    lines.push(format!("|---|{}", "--:|".repeat(records.len())));
    for id in ids.iter().take(MAX_ROWS) {
        let row = std::iter::once(plain(id)).chain(records.iter().map(|record| plain(&figure(record, id))));
        lines.push(cells(&row.collect::<Vec<_>>()));
    }
    if ids.len() > MAX_ROWS {
        let more = plural((ids.len() - MAX_ROWS) as u64, "more cell");
        lines.extend([String::new(), format!("and {more}: `rdsk export --format csv`")]);
    }
}

/// `160 MiB/s ±1.0 %`, `8,306 IOPS*`: bandwidth of sequential I/O, else the rate of I/Os.
fn figure(record: &Record, id: &str) -> String {
    let Some(cell) = record.cell(id) else { return MISSING.into() };
    let is_bandwidth = is_bandwidth(cell);
    let rate = if is_bandwidth { cell.result.bytes_per_s } else { cell.result.ops_per_s };
    let Some(rate) = rate else { return MISSING.into() };
    let star = if not_device::word(record, cell).is_some() { "*" } else { "" };
    let interval = rate
        .margin()
        .map_or_else(String::new, |margin| format!(" {}", rdsk_analysis::words::plus_minus(margin)));
    let figure = if is_bandwidth { figures::rate(rate.mean) } else { format!("{} IOPS", iops(rate.mean)) };
    format!("{figure}{star}{interval}")
}
