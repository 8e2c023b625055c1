//! `direct-refused`: cells that could not run because direct I/O does not accept their size or offset.

use super::prelude::*;
use rdsk_model::StopReason;

pub(super) const RULE: Rule =
    Rule::new("direct-refused", Severity::Remark, Needs::Facts, check).shown_on(Experiment::Align);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let is_refused = |cell: &&CellRecord| {
        cell.workload.path == IoPath::Direct
            && cell.result.stop == StopReason::NotApplicable
            && is_about_direct(analysis, cell)
    };
    let cells: Vec<&CellRecord> = analysis.cells.iter().filter(is_refused).collect();
    // Each disk has its own multiple.
    let multiple = |cell: &CellRecord| {
        metrics::first_target(analysis, cell).and_then(|target| target.direct_align_bytes)
    };
    let groups = by_key(cells.into_iter().map(|cell| (multiple(cell), cell)));
    groups.into_iter().map(|(multiple, cells)| refused(analysis, multiple.map(Bytes), &cells)).collect()
}

fn refused(analysis: &Analysis<'_>, multiple: Option<Bytes>, cells: &[&CellRecord]) -> Finding {
    let advice = match multiple {
        Some(multiple) => format!("use sizes and offsets that are multiples of {multiple} with direct I/O"),
        None => "use multiples of the logical block size, or buffered I/O".into(),
    };
    let text = if cells.first().is_some_and(|first| is_simulated(analysis, first)) {
        "A direct request reaches the device as it is. A device accepts whole blocks only."
    } else {
        "A direct request reaches the device as it is, and the kernel refuses (EINVAL) what is no multiple of its blocks. Some \
         filesystems support no direct I/O at all."
    };
    RULE.about(cells, "direct I/O is not possible", text, |cell| {
        cite(cell, "reason", printable(&cell.result.why))
    })
    .advice(advice)
}

/// Whether direct I/O is the reason why the cell could not run: buffered I/O would not help an engine without queue depth,
/// or a target with too few blocks.
fn is_about_direct(record: &Record, cell: &CellRecord) -> bool {
    metrics::first_target(record, cell).is_some_and(|target| target.direct_io == Some(false))
        || cell.result.why.contains("direct I/O")
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, not_applicable, record};
    use rdsk_model::{EngineKind, Op};

    #[test]
    fn fires_on_direct_cells_that_never_ran_only() {
        let refused = not_applicable(
            cell("align/27/direct", Op::Write, IoPath::Direct, 27, 10, 1_000_000),
            "the kernel refused it (EINVAL): direct I/O here takes multiples of 512 bytes",
        );
        let finding = fires(RULE, &record(vec![file()], vec![refused]));
        assert!(finding.evidence[0].contains(": reason = the kernel refused it"));
        assert!(finding.advice.unwrap().contains("512 B"));
        let buffered = not_applicable(cell("b", Op::Write, IoPath::Buffered, 27, 10, 1_000_000), "read-only");
        let ran = cell("d", Op::Write, IoPath::Direct, 512, 10, 1_000_000);
        silent(RULE, &record(vec![file()], vec![buffered, ran]));
    }

    #[test]
    fn is_silent_where_something_else_than_direct_io_was_in_the_way() {
        let never = |change: fn(&mut CellRecord)| {
            let mut cell = cell("d", Op::Read, IoPath::Direct, 4096, 10, 1_000_000);
            change(&mut cell);
            not_applicable(cell, "something else")
        };
        let deep = never(|cell| {
            cell.workload.engine = EngineKind::Sync;
            cell.workload.queue_depth = 32;
        });
        let tiny = never(|cell| cell.workload.span_bytes = 0);
        let small = not_applicable(deep.clone(), "the target holds fewer than 8 blocks of this size");
        silent(RULE, &record(vec![file()], vec![deep.clone(), tiny, small]));
        let mut refusing = file();
        refusing.direct_io = Some(false);
        fires(RULE, &record(vec![refusing], vec![deep]));
    }
}
