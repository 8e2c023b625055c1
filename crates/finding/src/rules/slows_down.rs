//! `slows-down`: the rate of a cell fell to a lower level and stayed there. It leaves a full write cache to
//! `write-cache-full`.

use super::Rule;
use super::common::{cells, cite, how_many, ids, target};
use super::write_cache_full;
use rdsk_analysis::rate_series::{self, LevelShift, RateSeries};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CellRecord, Confidence, Finding, Pattern, Record};

pub(super) const RULE: Rule = Rule { code: "slows-down", check };

/// Citations of one finding at most.
const MAX_CITED: usize = 8;
/// How far apart the changes of several cells may lie and still be one event.
const ONE_EVENT_NS: u64 = 1_000_000_000;
/// Share of a rotational device that a sequential cell must cross for its tracks to be a candidate.
const CROSSED: f64 = 0.05;

fn check(record: &Record) -> Vec<Finding> {
    let fallen: Vec<(&CellRecord, Vec<LevelShift>)> = cells(record, |_| true)
        .into_iter()
        .map(|cell| (cell, rate_series::level_shifts(cell)))
        .filter(|(cell, falls)| !falls.is_empty() && write_cache_full::grounds(record, cell, falls).is_none())
        .collect();
    // What was seen within a visit is known best.
    let seen = fallen.iter().find(|(_, falls)| falls[0].within_visit);
    let Some((first, falls)) = seen.or(fallen.first()) else { return Vec::new() };
    let cells: Vec<&CellRecord> = fallen.iter().map(|(cell, _)| *cell).collect();
    let fall = &falls[0];
    let mixed = first.result.bytes_per_s.map_or(String::new(), |rate| {
        format!(" The mean, {}, mixes the two levels and is no steady figure.", words::rate(rate.mean))
    });
    let text = format!(
        "After {} of I/O and {}{} the rate fell at once, {} to {}, and stayed low{}.{mixed}{} Heat, spent burst credits, \
         an internal cache that is full{} or another user of the device look alike here.",
        words::nanos(fall.at_ns),
        words::bytes(fall.bytes),
        if cells.len() > 1 { format!(" of {}", first.id) } else { String::new() },
        words::rate(fall.fast),
        words::rate(fall.slow),
        recovery(first, falls),
        one_event(record, &fallen),
        if cells.iter().any(|cell| crosses_tracks(record, cell)) { ", other tracks of the disk" } else { "" },
    );
    vec![Finding {
        code: RULE.code.into(),
        title: format!("slows down to {} of its rate: {}", share(fall), how_many(&cells)),
        text,
        evidence: fallen.iter().take(MAX_CITED).map(|(cell, falls)| cited(cell, &falls[0])).collect(),
        confidence: Confidence::Measured,
        advice: Some(
            "quote both levels, the lower one for work that lasts; let the device rest and repeat the run to see whether \
             the higher one comes back"
                .into(),
        ),
        cells: ids(&cells),
    }]
}

/// The citation of a fall: when, after how much, from where to where.
pub(super) fn cited(cell: &CellRecord, fall: &LevelShift) -> String {
    let (when, bytes) = (words::nanos(fall.at_ns), words::bytes(fall.bytes));
    let place = if fall.within_visit { "" } else { ", between two visits" };
    cite(
        cell,
        "windows",
        format_args!(
            "{} before, {} after ({}) {when} of I/O and {bytes}{place}",
            words::rate(fall.fast),
            words::rate(fall.slow),
            share(fall)
        ),
    )
}

fn share(fall: &LevelShift) -> String {
    rdsk_units::percent(fall.slow / fall.fast)
}

/// Whether a later visit began on the higher level again.
fn recovery(cell: &CellRecord, falls: &[LevelShift]) -> String {
    let again = rate_series::rate_series(cell).map_or(0, |course| fast_beginnings(&course, &falls[0]));
    match again {
        0 => String::new(),
        1 => " until the visit ended; a later visit began fast again".into(),
        many => format!(" until the visit ended; {many} later visits began fast again"),
    }
}

/// Visits behind a fall that begin on its higher level.
fn fast_beginnings(course: &RateSeries, fall: &LevelShift) -> usize {
    let middle = f64::midpoint(fall.fast, fall.slow);
    let seconds = metrics::seconds(course.width_ns);
    let begins_fast = |bytes: &[u64]| {
        let first: Vec<f64> = bytes.iter().take(5).map(|&bytes| bytes as f64 / seconds).collect();
        rate_series::level(&first) > middle
    };
    course.segments[fall.segment + 1..].iter().filter(|segment| begins_fast(&segment.bytes)).count()
}

/// Whether one event explains the falls of all cells, and when it was.
fn one_event(record: &Record, fallen: &[(&CellRecord, Vec<LevelShift>)]) -> String {
    let times: Vec<(u64, u64)> = fallen.iter().map(|(_, falls)| falls[0].run_ns).collect();
    let earliest = times.iter().map(|(begin, _)| *begin).max().unwrap_or(0);
    let latest = times.iter().map(|(_, end)| *end).min().unwrap_or(0);
    if !rate_series::has_times(record) || earliest > latest + ONE_EVENT_NS {
        return String::new();
    }
    let whose = if fallen.len() > 1 { " for all of these cells" } else { "" };
    let (begin, end) = (words::nanos(earliest.min(latest)), words::nanos(earliest.max(latest)));
    if begin == end || earliest.abs_diff(latest) <= ONE_EVENT_NS {
        format!(" Counted from the start of the run that was at {end}{whose}.")
    } else {
        format!(" Counted from the start of the run that was between {begin} and {end}{whose}.")
    }
}

/// Whether the cell went over enough of a turning disk to reach slower tracks.
fn crosses_tracks(record: &Record, cell: &CellRecord) -> bool {
    let device = target(record, cell).and_then(|target| target.device.as_ref());
    let Some(size) = device.and_then(|device| device.size_bytes).filter(|&size| size > 0) else {
        return false;
    };
    cell.workload.pattern == Pattern::Sequential
        && device.is_some_and(|device| device.rotational != Some(false))
        && metrics::ratio(cell.result.bytes.unwrap_or(0), size) >= CROSSED
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{MIB, falling, laid_out, steady};
    use rdsk_model::Op;

    #[test]
    fn says_when_and_both_levels() {
        let cell = laid_out("r", Op::Read, &[falling(600, 600, 120.0, 40.0)]);
        let finding = fires(RULE, &record(vec![disk()], vec![cell]));
        assert!(finding.title.starts_with("slows down to 33"), "{}", finding.title);
        assert!(finding.text.contains("After 30.0 s of I/O and 3.5"), "{}", finding.text);
        assert!(finding.text.contains("is no steady figure"), "{}", finding.text);
        assert!(!finding.text.contains("start of the run"), "no visit tells when it began: {}", finding.text);
        assert!(finding.evidence[0].contains("(33"), "{:?}", finding.evidence);
    }

    #[test]
    fn two_cells_that_fall_with_the_time_of_the_run_are_one_event() {
        let begun = |id, op, visits: &[Vec<f64>], starts_s: &[u64]| {
            with(laid_out(id, op, visits), |cell| {
                for (visit, start_s) in cell.result.visits.iter_mut().zip(starts_s) {
                    visit.start_ns = start_s * 1_000_000_000;
                }
            })
        };
        let read = begun("r", Op::Read, &[falling(400, 200, 120.0, 40.0)], &[40]);
        let write = begun("w", Op::Write, &[steady(400, 90.0), steady(400, 30.0)], &[15, 80]);
        let finding = fires(RULE, &record(vec![disk()], vec![read, write]));
        assert_eq!(finding.cells, ["r", "w"]);
        assert!(finding.text.contains("that was at 60.0 s for all of these cells"), "{}", finding.text);
        assert!(finding.evidence[1].contains("between two visits"), "{:?}", finding.evidence);
    }

    #[test]
    fn a_visit_that_begins_fast_again_is_told() {
        let visits = [falling(100, 100, 120.0, 40.0), falling(150, 60, 120.0, 40.0)];
        let finding = fires(RULE, &record(vec![disk()], vec![laid_out("r", Op::Read, &visits)]));
        assert!(finding.text.contains("a later visit began fast again"), "{}", finding.text);
    }

    #[test]
    fn is_silent_when_the_rate_holds_rises_or_is_that_of_a_throttle() {
        silent(RULE, &record(vec![disk()], vec![laid_out("r", Op::Read, &[steady(1200, 120.0)])]));
        silent(RULE, &record(vec![disk()], vec![laid_out("r", Op::Read, &[falling(600, 600, 40.0, 120.0)])]));
        let burst = with(laid_out("t", Op::Read, &[falling(100, 500, 120.0, 40.0)]), |cell| {
            let mean = cell.result.bytes_per_s.map_or(0.0, |rate| rate.mean);
            cell.evidence.limits = vec![rdsk_model::Limit {
                target: 0,
                device: "sda".into(),
                source: "/sys/fs/cgroup/x/io.max".into(),
                op: Op::Read,
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a test's figure"
                )]
                bytes_per_s: Some(mean as u64),
                ops_per_s: None,
            }];
        });
        silent(RULE, &record(vec![disk()], vec![burst]));
    }

    #[test]
    fn a_disk_that_was_crossed_has_tracks_as_a_candidate() {
        let mut target = disk();
        let cell = laid_out("r", Op::Read, &[falling(600, 600, 120.0, 40.0)]);
        let far = fires(RULE, &record(vec![target.clone()], vec![cell.clone()]));
        assert!(!far.text.contains("tracks"), "{}", far.text);
        if let Some(device) = &mut target.device {
            device.size_bytes = Some(8192 * MIB);
        }
        let near = fires(RULE, &record(vec![target], vec![cell]));
        assert!(near.text.contains("other tracks"), "{}", near.text);
    }
}
