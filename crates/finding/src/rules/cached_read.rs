//! `cached-read`: reads that were meant for the device were answered by memory.

use super::Rule;
use super::common::{cite_all, cite_verdict, has_verdict, how_many, ids};
use rdsk_model::{CacheState, Confidence, Finding, Op, Record, VerdictCode};

pub(super) const RULE: Rule = Rule { code: "cached-read", check };

fn check(record: &Record) -> Vec<Finding> {
    // A warm cell is asked for and measures memory on purpose: nothing to warn of.
    let cells = super::common::cells(record, |cell| {
        cell.workload.op == Op::Read
            && cell.workload.cache != CacheState::Warm
            && has_verdict(cell, VerdictCode::PageCache)
    });
    if cells.is_empty() {
        return Vec::new();
    }
    vec![Finding {
        code: RULE.code.into(),
        title: format!("memory answered reads: {}", how_many(&cells)),
        text: "The data, or part of it, was still in memory, so the figure is a mixture of the speed of memory and that of \
               the device."
            .into(),
        evidence: cite_all(&cells, cite_verdict),
        confidence: Confidence::Measured,
        advice: Some(
            "read past the page cache (rdsk's direct cells do), or a span larger than memory, or run where rdsk may drop the cache".into(),
        ),
        cells: ids(&cells),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, read_from_memory, record, with};
    use rdsk_model::IoPath;

    #[test]
    fn fires_on_a_cached_read_and_is_silent_on_a_cold_or_a_warm_one() {
        let cold = cell("c", Op::Read, IoPath::Buffered, 1 << 20, 64, 500_000_000);
        let cached = read_from_memory(cold.clone());
        let finding = fires(RULE, &record(vec![disk()], vec![cold.clone(), cached.clone()]));
        assert!(finding.evidence[0].contains("sda read 0 B"), "{:?}", finding.evidence);
        let warm = with(cached, |cell| cell.workload.cache = CacheState::Warm);
        silent(RULE, &record(vec![disk()], vec![cold, warm]));
    }
}
