//! `hole-read`: blocks that were never written were read, so no device was measured.

use super::Rule;
use super::common::{cite, cite_all, how_many, ids, with_verdict};
use rdsk_analysis::metrics;
use rdsk_model::{Confidence, Finding, Op, Record, VerdictCode};
use rdsk_units::{Bytes, percent};

pub(super) const RULE: Rule = Rule { code: "hole-read", check };

fn check(record: &Record) -> Vec<Finding> {
    let cells = with_verdict(record, VerdictCode::Hole);
    if cells.is_empty() {
        return Vec::new();
    }
    let evidence = cite_all(&cells, |cell| {
        let holes = metrics::hole_share(cell).map_or_else(|| "unknown".into(), percent);
        let moved =
            metrics::device_bytes(cell, Op::Read).map_or("not counted".into(), |moved| Bytes(moved).approx());
        cite(cell, "share never written", format_args!("{holes}, device read = {moved}"))
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("holes were read, not a disk: {}", how_many(&cells)),
        text: "The file has space that was never written. The filesystem answers for it with zeros by itself, with O_DIRECT \
               too, and reads no device: the figure is that of memory, wholly or in part."
            .into(),
        evidence,
        confidence: Confidence::Measured,
        advice: Some("measure a file that was really written, or give a directory and let rdsk write one".into()),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, read_from_memory, record, with};
    use rdsk_model::{ExtentEvidence, IoPath};

    #[test]
    fn fires_on_a_sparse_file_and_is_silent_on_a_written_one() {
        let sparse = ExtentEvidence { mapped_bytes: 0, unwritten_bytes: 0, hole_bytes: 64 << 20, extents: 0 };
        let hole = with(cell("h", Op::Read, IoPath::Direct, 1 << 20, 64, 2_000_000), |cell| {
            *cell = read_from_memory(cell.clone());
            cell.workload.path = IoPath::Direct;
            cell.evidence.extents = Some(sparse);
        });
        let finding = fires(RULE, &record(vec![file()], vec![hole.clone()]));
        assert_eq!(finding.evidence, ["h: share never written = 100 %, device read = 0 B"]);
        let written = with(cell("w", Op::Read, IoPath::Direct, 1 << 20, 64, 2_000_000), |cell| {
            cell.evidence.extents = Some(ExtentEvidence { mapped_bytes: 64 << 20, hole_bytes: 0, ..sparse });
        });
        silent(RULE, &record(vec![file()], vec![written]));
    }
}
