//! Cells for the pages: choosing them, their verdict word, why one has no figure. It judges nothing; verdicts come from
//! the Record.

use crate::page::{Page, Tone};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::{metrics, passes, words};
use rdsk_model::{CacheState, CellRecord, DeviceEvidence, Experiment, Op, Record, StopReason, VerdictCode};
use rdsk_units::{Bytes, printable};

/// What a row says whose writes returned from a cache, where its verdict says nothing else.
pub(crate) const INTO_CACHE: &str = "into cache";

/// Whether a finding says of a cell that its rate is that into a cache.
pub(crate) fn is_into_cache(record: &Record, cell: &CellRecord) -> bool {
    let mut said = record.findings.iter().filter(|finding| finding.code == "cached-write");
    said.any(|finding| finding.cells.contains(&cell.id))
}

/// The cells of one experiment, in the order of the Record.
pub(crate) fn of_experiment(record: &Record, experiment: Experiment) -> impl Iterator<Item = &CellRecord> {
    record.cells.iter().filter(move |cell| cell.experiment == experiment)
}

/// The cells of one experiment in groups of the same key, in the order in which the first of each stands in the Record.
pub(crate) fn groups_by<K: PartialEq>(
    record: &Record,
    experiment: Experiment,
    key: impl Fn(&CellRecord) -> K,
) -> Vec<Vec<&CellRecord>> {
    let groups = by_key(of_experiment(record, experiment).map(|cell| (key(cell), cell)));
    groups.into_iter().map(|(_, cells)| cells).collect()
}

/// The cells that belong side by side: same direction, targets and block size.
pub(crate) fn groups(record: &Record, experiment: Experiment) -> Vec<Vec<&CellRecord>> {
    groups_by(record, experiment, |cell| {
        (cell.workload.op, cell.workload.targets.clone(), cell.workload.block_bytes)
    })
}

/// What distinguishes a group from the others on the same target: the direction, and the block size if the experiment has
/// several.
pub(crate) fn group_title(record: &Record, cell: &CellRecord) -> String {
    let block_bytes = cell.workload.block_bytes;
    let has_others =
        of_experiment(record, cell.experiment).any(|other| other.workload.block_bytes != block_bytes);
    let size = if has_others { format!(" {}", Bytes(block_bytes)) } else { String::new() };
    format!("{}{size}", cell.workload.op)
}

/// The block size of an experiment; several stand in the titles of their groups.
pub(crate) fn only_block(record: &Record, experiment: Experiment) -> Option<Bytes> {
    let blocks = distinct(of_experiment(record, experiment).map(|cell| cell.workload.block_bytes));
    (blocks.len() == 1).then(|| Bytes(blocks[0]))
}

pub use rdsk_analysis::words::is_bandwidth;

/// A wider margin is no figure any more.
const UNSTABLE: f64 = 0.5;

/// The margin of the figure that stands for a cell in the headline, relative to it.
pub(crate) fn margin_of(cell: &CellRecord) -> Option<f64> {
    let estimate = if is_bandwidth(cell) { cell.result.bytes_per_s } else { cell.result.ops_per_s };
    estimate.and_then(|estimate| estimate.margin())
}

/// Whether a margin is so wide that a word stands for it.
pub(crate) fn is_wide(margin: f64) -> bool {
    !margin.is_finite() || margin > UNSTABLE
}

/// Whether the figure of a cell has such a margin.
pub(crate) fn is_unstable(cell: &CellRecord) -> bool {
    margin_of(cell).is_some_and(is_wide)
}

/// The names of a cell's targets, if the Record has several.
pub(crate) fn target_name(record: &Record, cell: &CellRecord) -> Option<String> {
    (record.targets.len() > 1).then(|| words::target_names(record, &cell.workload.targets))
}

/// The verdict in one word; what has no verdict says why: `n/a`, `failed`, `interrupted`.
pub fn verdict_word(cell: &CellRecord) -> String {
    let word = code_word(cell);
    // The figure is the device's, and slower than it would be alone.
    match processor_word(cell) {
        Some(why) if word == VerdictCode::Device.as_str() => why.into(),
        _ => word,
    }
}

/// What a row says beside its figure: nothing if that is simply the device's.
pub(crate) fn remark(cell: &CellRecord) -> String {
    match (is_device(cell), processor_word(cell)) {
        (true, word) => word.unwrap_or_default().into(),
        (false, _) => verdict_word(cell),
    }
}

/// Whether a row needs no word beside its figure.
pub(crate) fn is_plain(cell: &CellRecord) -> bool {
    is_device(cell) && processor_word(cell).is_none()
}

/// The word for a cell whose threads waited for their CPU quota, or for processors that others used. A figure that is not the
/// device's needs none.
fn processor_word(cell: &CellRecord) -> Option<&'static str> {
    let contention = rdsk_analysis::contention::contention(cell).filter(|_| is_device(cell))?;
    match contention {
        contention if contention.is_quota() => Some("cpu quota"),
        contention if contention.is_much() => Some("cpu shared"),
        _ => None,
    }
}

fn code_word(cell: &CellRecord) -> String {
    match (&cell.verdict, cell.result.stop) {
        (_, StopReason::NotApplicable) => "n/a".into(),
        (Some(verdict), StopReason::Error) if verdict.code == VerdictCode::Incomplete => "failed".into(),
        (Some(verdict), StopReason::Error) => format!("{}, failed", verdict.code),
        (Some(verdict), _) if is_cut_short(cell) => match verdict.code {
            VerdictCode::Device => "cut short".into(),
            VerdictCode::Incomplete => verdict.code.to_string(),
            code => format!("{code}, cut short"),
        },
        (Some(verdict), _) => verdict.code.to_string(),
        (None, stop) => stop.to_string(),
    }
}

/// Whether a signal ended the cell, or its time before the first whole pass.
fn is_cut_short(cell: &CellRecord) -> bool {
    cell.result.stop == StopReason::Interrupted || passes::has_no_whole_pass(cell)
}

/// Whether the figure is simply the device's.
pub(crate) fn is_device(cell: &CellRecord) -> bool {
    metrics::has_verdict(cell, VerdictCode::Device)
        && cell.result.stop != StopReason::Error
        && !is_cut_short(cell)
}

/// Whether the verdict needs its sentence: the figure is not the device's, not that of memory on purpose, and no finding
/// explains it.
fn needs_word(record: &Record, cell: &CellRecord) -> bool {
    let is_explained =
        record.findings.iter().any(|finding| finding.covers_verdicts && finding.cells.contains(&cell.id));
    let is_warm_read = cell.workload.op == Op::Read && cell.workload.cache == CacheState::Warm;
    let is_memory = metrics::has_verdict(cell, VerdictCode::PageCache);
    !(is_device(cell) || is_explained || is_memory && is_warm_read)
}

/// The sentences of the cells that need one, each once behind the names of its cells.
pub(crate) fn draw_whys(
    page: &mut Page,
    record: &Record,
    cells: &[&CellRecord],
    name: impl Fn(&CellRecord) -> String,
) {
    let needing = cells.iter().filter(|cell| needs_word(record, cell));
    for (text, names) in by_key(needing.map(|cell| (why(cell), name(cell)))) {
        match &names[..] {
            [name] => page.sentence(Tone::Warning, format!("  {name}: "), text),
            many => page.sentence(Tone::Warning, "  ", format!("{}: {text}", many.join("; "))),
        }
    }
}

/// Why no cell of an experiment completed anything; `None` when one did, when none was to run, and of a load, whose jobs say what each did.
pub(crate) fn nothing_completed(record: &Record, experiment: Experiment) -> Option<&str> {
    let is_idle = |cell: &CellRecord| {
        let did_nothing = cell.result.ops.is_none_or(|ops| ops == 0) && cell.result.jobs.is_empty();
        cell.result.stop == StopReason::NotApplicable || did_nothing
    };
    if !of_experiment(record, experiment).all(is_idle) {
        return None;
    }
    of_experiment(record, experiment)
        .find(|cell| cell.result.stop != StopReason::NotApplicable)
        .map(|cell| cell.result.why.as_str())
}

/// The sentence behind the verdict word: the verdict's text, or why the cell has no figure.
fn why(cell: &CellRecord) -> &str {
    match &cell.verdict {
        Some(verdict) if verdict.code == VerdictCode::Device && passes::has_no_whole_pass(cell) => {
            &cell.result.why
        }
        Some(verdict) if cell.result.stop != StopReason::NotApplicable => &verdict.text,
        _ => &cell.result.why,
    }
}

/// The counters of the device under the cell's first target; of several that count for it, the first.
pub(crate) fn device(cell: &CellRecord) -> Option<&DeviceEvidence> {
    cell.evidence.counters_of(*cell.workload.targets.first()?).into_iter().next()
}

/// That the figures of one device stand for a target whose data lie on several, as those of a btrfs may: `that of sda alone; the
/// data lie on sda and sdb`. `None` where they lie on one.
pub fn which_device(cell: &CellRecord) -> Option<String> {
    let counted = cell.evidence.counters_of(*cell.workload.targets.first()?);
    let names: Vec<String> = counted.iter().map(|device| printable(&device.name)).collect();
    (names.len() > 1).then(|| format!("that of {} alone; the data lie on {}", names[0], words::list(&names)))
}

/// The same below a table.
pub(crate) fn draw_which_device(page: &mut Page, cells: &[&CellRecord], what: &str) {
    let Some(text) = cells.iter().find_map(|cell| which_device(cell)) else { return };
    page.sentence(Tone::Plain, format!("  {what}: "), format!("{text}."));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use rdsk_finding::fixtures::{cell, with};
    use rdsk_model::{Counted, IoPath};

    #[test]
    fn one_device_of_several_is_named() {
        let drawn = |cell: &CellRecord| {
            let mut page = Page::default();
            draw_which_device(&mut page, &[cell], "iostat -x");
            page.render(Style::default())
        };
        let one = cell("c", Op::Write, IoPath::Direct, 4096, 10, 1_000_000);
        assert_eq!(drawn(&one), "");
        let two = with(one, |cell| {
            let mut other = cell.evidence.device[0].clone();
            other.name = "sdb".into();
            cell.evidence.device.push(other);
            cell.evidence.counted = vec![Counted {
                target: 0,
                devices: vec!["sda".into(), "sdb".into()],
                written_least: 1.0,
                written_most: Some(1.0),
                why: Some("btrfs raid0 over sda and sdb".into()),
            }];
        });
        assert_eq!(drawn(&two), "  iostat -x: that of sda alone; the data lie on sda and sdb.\n");
    }
}
