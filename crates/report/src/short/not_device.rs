//! The cells whose figures are not simply the device's, and the word for each. It judges nothing.

use crate::cells::{self, is_plain, verdict_word};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Record};

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
        let mut findings = record.findings.iter().filter(|finding| codes.contains(&finding.code.as_str()));
        findings.any(|finding| finding.cells.contains(&cell.id))
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
        let total = record.cells.iter().filter(|cell| cell.experiment == *experiment).count();
        match cells.len() {
            count if count == total => format!("all of {experiment}"),
            count if count <= most => cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>().join(", "),
            count => format!("{experiment} ({count} of {total})"),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
