//! What several figures have in common: cells by experiment and target, names, and the evidence beside a figure.

use super::Subject;
use crate::figure::Tick;
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Estimate, Op, Record};
use rdsk_report::{MISSING, Unit};
use rdsk_units::{Bytes, grouped, printable};

/// Sentences of evidence beside a figure.
const MAX_EVIDENCE: usize = 24;

/// The name of a Record if there are others; safe to show.
pub(super) fn record_name(subjects: &[Subject<'_, '_>], subject: &Subject<'_, '_>) -> Option<String> {
    (subjects.len() > 1).then(|| printable(subject.name))
}

/// The names of a cell's targets if the Record has several; safe to show.
pub(super) fn target_name(record: &Record, cell: &CellRecord) -> Option<String> {
    (record.targets.len() > 1).then(|| names_of(record, &cell.workload.targets))
}

/// The names of targets by their indices.
pub(super) fn names_of(record: &Record, targets: &[u32]) -> String {
    printable(&rdsk_analysis::words::target_names(record, targets))
}

/// What distinguishes a cell from those of other Records and, where the cells have several sets of targets, of others: `disk a, /dev/sdb`;
/// empty if there are no others.
pub(super) fn owner(
    subjects: &[Subject<'_, '_>],
    subject: &Subject<'_, '_>,
    cell: &CellRecord,
    sets: usize,
) -> String {
    let targets = (sets > 1).then(|| names_of(subject.analysis, &cell.workload.targets));
    [record_name(subjects, subject), targets].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `owner: what`, or one of them where the other is empty.
pub(super) fn joined(owner: &str, what: &str) -> String {
    match (owner, what) {
        ("", what) => what.to_owned(),
        (owner, "") => owner.to_owned(),
        (owner, what) => format!("{owner}: {what}"),
    }
}

/// ` on /dev/sdb`, where there are several targets.
pub(super) fn on_target(record: &Record, cell: &CellRecord) -> String {
    target_name(record, cell).map_or_else(String::new, |name| format!(" on {name}"))
}

/// A part of an id of letters, digits and `-`.
pub(super) fn slug(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(kept).collect()
}

/// `-t0-t2`: a part of an id that differs for other targets; empty where the Record has one.
pub(super) fn targets_slug(record: &Record, cell: &CellRecord) -> String {
    if record.targets.len() < 2 {
        return String::new();
    }
    cell.workload.targets.iter().map(|index| format!("-t{index}")).collect()
}

/// What the figures of a group are about: the end of their ids, and of their titles.
#[derive(Default)]
pub(super) struct Group {
    pub(super) slug: String,
    /// `of 4 KiB on /dev/sdb`; empty where there is no other group.
    pub(super) title_end: String,
}

impl Group {
    /// The targets of a cell.
    pub(super) fn of_cell(record: &Record, cell: &CellRecord) -> Self {
        Self { slug: targets_slug(record, cell), title_end: on_target(record, cell) }
    }

    /// `align-size-t0`: the id of one of its figures.
    pub(super) fn id(&self, figure: &str) -> String {
        format!("{figure}{}", self.slug)
    }
}

/// What the I/Os of cells are called: `read`, `write`, or `I/O` where there are both.
pub(super) fn noun<'c>(cells: impl IntoIterator<Item = &'c CellRecord>) -> &'static str {
    let ops: Vec<Op> = rdsk_analysis::groups::distinct(cells.into_iter().map(|cell| cell.workload.op));
    match ops[..] {
        [op] => op.as_str(),
        _ => "I/O",
    }
}

/// What each cell's figure is of, with the requests that its device saw, equal sentences once, under the names of the cells.
pub(super) fn evidence<'a>(cells: impl IntoIterator<Item = (String, &'a CellRecord)>) -> Vec<String> {
    let said = by_key(cells.into_iter().map(|(name, cell)| (sentence(cell), name)));
    let count = said.len();
    let mut lines: Vec<String> = said
        .into_iter()
        .take(MAX_EVIDENCE)
        .map(|(text, names)| format!("{}: {text}", names.join("; ")))
        .collect();
    if count > MAX_EVIDENCE {
        lines.push(format!("… and {} more, which rdsk show --json has.", count - MAX_EVIDENCE));
    }
    lines.iter().map(|line| printable(line)).collect()
}

fn sentence(cell: &CellRecord) -> String {
    let text = match &cell.verdict {
        Some(verdict) if metrics::ran(cell) => &verdict.text,
        _ => &cell.result.why,
    };
    let op = cell.workload.op;
    let requests = metrics::device_requests(cell, op).filter(|&count| count > 0).map(|count| {
        let mean = metrics::mean_request_bytes(cell, op).map_or_else(String::new, |bytes| {
            format!(" of {} on average", Bytes(metrics::whole(bytes.round())).approx())
        });
        format!(" The device completed {} {op} requests{mean}.", grouped(count))
    });
    let reads = metrics::process_bytes(cell, Op::Read).filter(|&bytes| op == Op::Write && bytes > 0);
    let reads = reads.map(|bytes| format!(" These writes made the kernel read {}.", Bytes(bytes).approx()));
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{text}{end}{}{}", requests.unwrap_or_default(), reads.unwrap_or_default())
}

/// The interval of an estimate in a unit.
pub(super) fn interval(estimate: Estimate, unit: Unit) -> Option<(f64, f64)> {
    Some((unit.scaled(estimate.low?), unit.scaled(estimate.high?)))
}

/// A figure with its unit, or `–`.
pub(super) fn with_unit(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.into(), |value| unit.text(value))
}

/// Labels at these sizes, each once, ascending.
pub(super) fn size_ticks(sizes: impl IntoIterator<Item = u64>) -> Vec<Tick> {
    let mut sizes: Vec<u64> = sizes.into_iter().collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(|size| Tick { at: size as f64, label: Bytes(size).to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_where_there_are_two() {
        assert_eq!(joined("", "write"), "write");
        assert_eq!(joined("a", ""), "a");
        assert_eq!(joined("a", "write"), "a: write");
        assert_eq!(slug("8 KiB/x"), "8-kib-x");
    }

    #[test]
    fn sizes_are_labelled_once_and_ascending() {
        let labels: Vec<String> = size_ticks([4096, 512, 4096]).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["512 B", "4 KiB"]);
    }
}
