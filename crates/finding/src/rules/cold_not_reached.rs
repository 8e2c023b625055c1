//! `cold-not-reached`: the page cache could not be emptied before a cell that should start cold.

use super::prelude::*;
use rdsk_analysis::passes::visit_span_bytes;
use rdsk_model::ColdCheck;

pub(super) const RULE: Rule = Rule::new("cold-not-reached", Severity::Uncertain, Needs::Counters, check);

/// Share of the span, and of the checked ranges, that may stay cached: a page that readahead brought back is no failure.
const TOLERATED: f64 = 0.01;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| cell.workload.cache == CacheState::Cold && worst(cell).is_some());
    let Some(first) = cells.first() else { return Vec::new() };
    let (text, advice) = if is_simulated(analysis, first) {
        (
            "The simulated host dropped the buffers of this range and still held some. They are dirty.",
            "compare with the direct tests, which need no empty cache",
        )
    } else {
        (
            "The kernel was asked to drop the pages of this range, but cachestat(2) still found some. They are dirty, mapped or in \
             use, or the container denies drop_caches.",
            "run as root outside the container, stop the programs that use the file, or compare with the direct tests",
        )
    };
    let cited = |cell: &CellRecord| {
        let check = worst(cell).unwrap_or_default();
        let cached = check.cached_bytes.map_or_else(|| "unknown".into(), words::bytes);
        let ranges = match check.ranges_checked {
            0 => String::new(),
            checked => format!(", ranges cached = {} of {checked}", check.ranges_wrong),
        };
        cite(cell, "cached before the first I/O", format_args!("{cached}{ranges}"))
    };
    vec![RULE.about(&cells, "the page cache was not empty", text, cited).advice(advice)]
}

/// The worst check among the visits, when it is above the tolerance.
fn worst(cell: &CellRecord) -> Option<ColdCheck> {
    let targets = cell.workload.targets.len().max(1) as u64;
    let span = visit_span_bytes(cell).saturating_mul(targets).max(1);
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
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, file, record, with};
    use rdsk_model::{Experiment, IoPath, Op, Record};

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
        assert_eq!(
            finding.evidence,
            ["sequential buffered 1M reads: cached before the first I/O = 8 MiB, ranges cached = 0 of 1000"]
        );
        fires(RULE, &cold(Some(0), 11));
        fires(RULE, &cold(None, 11));
    }

    /// What is cached is that of the part which a visit uses, whatever the size of the target.
    #[test]
    fn a_visit_of_stream_is_checked_over_its_window() {
        let of = |experiment, pass_bytes| {
            let mut record = cold(Some(64 << 20), 0);
            let cell = &mut record.cells[0];
            (cell.experiment, cell.workload.span_bytes) = (experiment, 100 << 30);
            (cell.workload.path, cell.result.pass_bytes) = (IoPath::Buffered, pass_bytes);
            record
        };
        fires(RULE, &of(Experiment::Stream, None));
        silent(RULE, &of(Experiment::Stream, Some(100 << 30)));
        silent(RULE, &of(Experiment::Headline, None));
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
