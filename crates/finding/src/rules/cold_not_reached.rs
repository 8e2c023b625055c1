//! `cold-not-reached`: the page cache could not be emptied before a cell that was to start cold.

use super::Rule;
use super::common::{cells, cite, cite_all, how_many, ids, is_simulated};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CacheState, CellRecord, ColdCheck, Confidence, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "cold-not-reached", check };

/// What may stay cached of the span, and how many of the looked-at ranges may be cached: a page of readahead that
/// comes back is no failure.
const TOLERATED: f64 = 0.01;

fn check(record: &Record) -> Vec<Finding> {
    let cells = cells(record, |cell| cell.workload.cache == CacheState::Cold && worst(cell).is_some());
    let Some(first) = cells.first() else { return Vec::new() };
    let (text, advice) = if is_simulated(record, first) {
        (
            "The model of the host was told to forget the buffers of the span, and still held some: they are dirty.",
            "compare with the direct cells, which need no cache to be empty",
        )
    } else {
        (
            "The kernel was asked to forget the pages of the span, and cachestat(2) still found some: they are dirty, \
             mapped, or in use, or the container denies drop_caches.",
            "run as root outside the container, end the programs that use the file, or compare with the direct cells",
        )
    };
    let evidence = cite_all(&cells, |cell| {
        let check = worst(cell).unwrap_or_default();
        let cached = check.cached_bytes.map_or_else(|| "unknown".into(), words::bytes);
        let ranges = match check.ranges_checked {
            0 => String::new(),
            checked => format!(", ranges cached = {} of {checked}", check.ranges_wrong),
        };
        cite(cell, "cached before the first I/O", format_args!("{cached}{ranges}"))
    });
    vec![Finding {
        code: RULE.code.into(),
        title: format!("the page cache was not empty: {}", how_many(&cells)),
        text: text.into(),
        evidence,
        confidence: Confidence::Measured,
        advice: Some(advice.into()),
        cells: ids(&cells),
    }]
}

/// The worst check among the visits, when it is bad enough.
fn worst(cell: &CellRecord) -> Option<ColdCheck> {
    let span = (cell.workload.span_bytes * cell.workload.targets.len().max(1) as u64).max(1);
    let badness = |check: &ColdCheck| {
        let cached = check.cached_bytes.map_or(0.0, |bytes| metrics::ratio(bytes, span));
        let wrong = metrics::ratio(check.ranges_wrong, check.ranges_checked.max(1));
        cached.max(wrong)
    };
    cell.result
        .visits
        .iter()
        .filter_map(|visit| visit.cache)
        .filter(|check| badness(check) > TOLERATED)
        .max_by(|a, b| badness(a).total_cmp(&badness(b)))
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, record, with};
    use rdsk_model::{IoPath, Op};

    fn cold(cached_bytes: Option<u64>, ranges_wrong: u64) -> Record {
        let cell = with(cell("c", Op::Read, IoPath::Buffered, 1 << 20, 64, 500_000_000), |cell| {
            cell.workload.span_bytes = 64 << 20;
            cell.result.visits[0].cache =
                Some(ColdCheck { cached_bytes, ranges_checked: 1000, ranges_wrong });
        });
        record(vec![file()], vec![cell])
    }

    #[test]
    fn fires_above_one_percent_of_bytes_or_ranges() {
        let finding = fires(RULE, &cold(Some(8 << 20), 0));
        assert_eq!(finding.evidence, ["c: cached before the first I/O = 8 MiB, ranges cached = 0 of 1000"]);
        fires(RULE, &cold(Some(0), 11));
        fires(RULE, &cold(None, 11));
    }

    #[test]
    fn is_silent_on_a_clean_cache_and_where_cold_was_not_asked_for() {
        silent(RULE, &cold(Some(0), 0));
        silent(RULE, &cold(Some(600 << 10), 10));
        silent(RULE, &cold(None, 0));
        let mut any = cold(Some(64 << 20), 1000);
        any.cells[0].workload.cache = CacheState::Any;
        silent(RULE, &any);
    }
}
