//! The verdicts in a line or two: the cells whose figures are not simply the device's, named as compactly as they fit. It
//! judges nothing.

use super::Limits;
use crate::cells::{self, is_plain, verdict_word};
use crate::page::{Page, Tone};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Experiment, Record};

/// Cells of one experiment that are named; more are counted.
const MAX_NAMED: usize = 3;

/// What stands before the verdicts, as wide as the names of the questions above it.
const LEAD: &str = "verdicts ";

pub(super) fn draw(page: &mut Page, record: &Record, limits: &Limits) {
    if record.cells.is_empty() {
        return;
    }
    let others = others(record);
    let rest = record.cells.len() - others.iter().map(|(_, cells)| cells.len()).sum::<usize>();
    let rest = match (others.len(), rest) {
        (0, all) => format!("all {}: device", plural(all as u64, "cell")),
        (_, 0) => "none is simply the device's".to_owned(),
        (_, rest) => format!("the other {rest}: device"),
    };
    let by_word = |star: fn(&[&CellRecord]) -> &'static str, words: &dyn Fn(&[&CellRecord]) -> String| {
        let groups = others.iter().map(|(word, cells)| format!("{word}{}: {}; ", star(cells), words(cells)));
        format!("{}{rest}", groups.collect::<String>())
    };
    let count = |cells: &[&CellRecord]| plural(cells.len() as u64, "cell");
    let texts = vec![
        by_word(star, &|cells| named(record, cells, MAX_NAMED)),
        by_word(star, &|cells| named(record, cells, 1)),
        by_word(star, &|cells| named(record, cells, 0)),
        by_word(star, &count),
        by_word(|_| "", &count),
        by_word(|_| "", &|cells| cells.len().to_string()),
    ];
    page.wordings(Tone::Plain, LEAD, texts, limits.not_device_lines);
}

/// The star that figures of the headline have, behind the word that explains it.
fn star(cells: &[&CellRecord]) -> &'static str {
    if cells.iter().any(|cell| cell.experiment == Experiment::Headline) { "*" } else { "" }
}

/// The cells under the word that says what their figures are, in the order of the Record.
pub(crate) fn others(record: &Record) -> Vec<(String, Vec<&CellRecord>)> {
    let worded = record.cells.iter().filter_map(|cell| Some((word(record, cell)?, cell)));
    by_key(worded)
}

/// The findings that say of a cell that its mean is of more than one rate.
const UNSTEADY: [&str; 5] = ["drift", "fast-start", "slow-start", "slows-down", "write-cache-full"];

/// The verdict that is not `device`, a rate into a cache, the depth that was not reached, or a rate that did not hold; `None` for a
/// cell that is simply the device's.
pub(crate) fn word(record: &Record, cell: &CellRecord) -> Option<String> {
    if !is_plain(cell) {
        return Some(verdict_word(cell));
    }
    let says = |codes: &[&str]| {
        let mut found = record.findings.iter().filter(|finding| codes.contains(&finding.code.as_str()));
        found.any(|finding| finding.cells.contains(&cell.id))
    };
    if cells::is_into_cache(record, cell) {
        return Some(cells::INTO_CACHE.to_owned());
    }
    // With one I/O at a time there is no queue; what is missing is time between the I/Os.
    let is_deep = metrics::wanted_depth(&cell.workload) > 1;
    if is_deep && !metrics::has_reached_depth(cell) {
        return Some("depth not reached".to_owned());
    }
    says(&UNSTEADY).then(|| "not steady".to_owned())
}

/// `paths/read/cached, stream/write/buffered, align (9 of 16)`.
pub(crate) fn named(record: &Record, cells: &[&CellRecord], most: usize) -> String {
    let groups = by_key(cells.iter().map(|cell| (cell.experiment, *cell)));
    let parts = groups.iter().map(|(experiment, cells)| {
        let all = record.cells.iter().filter(|cell| cell.experiment == *experiment).count();
        match cells.len() {
            count if count == all => format!("all of {experiment}"),
            count if count <= most => cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>().join(", "),
            count => format!("{experiment} ({count} of {all})"),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
