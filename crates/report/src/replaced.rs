//! Which files of the user a run has replaced the contents of, or would, in words. It draws nothing.

use rdsk_analysis::words::few;
use rdsk_model::{CellRecord, Experiment, Op, Record, Target, TargetKind};

/// Files that a sentence names.
const MAX_NAMED: usize = 4;

/// `contents of disk.img replaced`, of files that were there before and that cells wrote to; `None` without any. What dd wrote, its
/// operands say.
pub(crate) fn replaced(record: &Record) -> Option<String> {
    let writes_to = |target: &Target, cell: &CellRecord| {
        cell.workload.op == Op::Write
            && cell.workload.targets.contains(&target.index)
            && cell.experiment != Experiment::Dd
            && cell.result.bytes.is_some_and(|bytes| bytes > 0)
    };
    let is_written = |target: &&Target| {
        target.kind == TargetKind::File
            && !target.made_by_rdsk
            && record.cells.iter().any(|cell| writes_to(target, cell))
    };
    let written = record.targets.iter().filter(|_| record.source.is_none()).filter(is_written);
    let names: Vec<String> = written.map(|target| target.name.clone()).collect();
    (!names.is_empty()).then(|| replaced_text(&few(&names, MAX_NAMED, "other file")))
}

/// `contents of disk.img replaced`.
pub(crate) fn replaced_text(name: &str) -> String {
    format!("contents of {name} replaced")
}
