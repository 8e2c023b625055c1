//! `slows-down`: the rate of a cell fell to a lower level and stayed there. It leaves a full write cache to
//! `write-cache-full`.

use super::level_shifts::{Shifted, cited, share, shifted};
use super::prelude::*;
use rdsk_analysis::rate_series::{self, LevelShift, RateSeries};

pub(super) const RULE: Rule = Rule::new("slows-down", Severity::Uncertain, Needs::OwnTimes, check);

/// Changes of several cells up to this far apart count as one event.
const ONE_EVENT_NS: u64 = 1_000_000_000;
/// Minimum share of a rotational device that a sequential cell must cover for slower tracks to be a candidate.
const CROSSED: f64 = 0.05;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let fallen: Vec<Shifted<'_>> =
        shifted(analysis).into_iter().filter(|shifted| shifted.support.is_none()).collect();
    // A fall within a visit is known best.
    let within_visit = fallen.iter().find(|shifted| shifted.falls[0].within_visit);
    let Some(&Shifted { cell: first, falls, .. }) = within_visit.or(fallen.first()) else {
        return Vec::new();
    };
    let cells: Vec<&CellRecord> = fallen.iter().map(|shifted| shifted.cell).collect();
    let fall = &falls[0];
    let text = format!(
        "After {} and {}, {} fell from {} to {} and stayed low{}{}. Heat, spent burst credit, a full cache{} or other I/O can cause this.",
        words::nanos(fall.at_ns),
        words::bytes(fall.bytes),
        words::test(first),
        words::rate(fall.fast),
        words::rate(fall.slow),
        recovery(analysis, first, falls),
        one_event(analysis, &fallen),
        if cells.iter().any(|cell| crosses_tracks(analysis, cell)) {
            ", slower tracks of the disk"
        } else {
            ""
        },
    );
    vec![RULE
            .finding(format!("slows down to {} of its rate: {}", share(fall), how_many(&cells)), text)
            .effect(
                Stake::Figure,
                Some(fall.fast / fall.slow),
                format!(
                    "the rate falls from {} to {} and stays low: {}",
                    words::rate(fall.fast),
                    words::rate(fall.slow),
                    how_many(&cells)
                ),
            )
            .evidence(fallen.iter().take(MAX_CITED).map(|shifted| cited(shifted.cell, &shifted.falls[0])))
            .advice(
                "quote both levels, the lower one for sustained work; let the device rest and repeat the run to see whether the \
                 higher one comes back",
            )
            .cells(cells)]
}

/// Whether a later visit started at the higher level again.
fn recovery(analysis: &Analysis<'_>, cell: &CellRecord, falls: &[LevelShift]) -> String {
    let again = analysis.rate_series(cell).map_or(0, |course| fast_starts(course, &falls[0]));
    match again {
        0 => String::new(),
        1 => " until the repeat ended; a later one started fast again".into(),
        many => format!(" until the repeat ended; {many} later ones started fast again"),
    }
}

/// Number of visits after a fall that start at its higher level.
fn fast_starts(course: &RateSeries, fall: &LevelShift) -> usize {
    let middle = f64::midpoint(fall.fast, fall.slow);
    let seconds = metrics::seconds(course.width_ns);
    let starts_fast = |bytes: &[u64]| {
        let first: Vec<f64> = bytes.iter().take(5).map(|&bytes| bytes as f64 / seconds).collect();
        rdsk_stats::interquartile_mean(&first) > middle
    };
    course.segments[fall.segment + 1..].iter().filter(|segment| starts_fast(&segment.bytes)).count()
}

/// When the falls happened, if one event explains those of all cells.
fn one_event(record: &Record, fallen: &[Shifted<'_>]) -> String {
    let times: Vec<(u64, u64)> = fallen.iter().map(|shifted| shifted.falls[0].run_ns).collect();
    let earliest = times.iter().map(|(begin, _)| *begin).max().unwrap_or(0);
    let latest = times.iter().map(|(_, end)| *end).min().unwrap_or(0);
    if !rate_series::has_times(record) || earliest > latest + ONE_EVENT_NS {
        return String::new();
    }
    let whose = if fallen.len() > 1 { " for all of them" } else { "" };
    let (begin, end) = (words::nanos(earliest.min(latest)), words::nanos(earliest.max(latest)));
    if begin == end || earliest.abs_diff(latest) <= ONE_EVENT_NS {
        format!(", {end} after the start of the run{whose}")
    } else {
        format!(", between {begin} and {end} after the start of the run{whose}")
    }
}

/// Whether the cell covered enough of a rotational disk to reach slower tracks.
fn crosses_tracks(record: &Record, cell: &CellRecord) -> bool {
    let device = metrics::first_device(record, cell);
    let Some(size) = device.and_then(|device| device.size_bytes).filter(|&size| size > 0) else {
        return false;
    };
    cell.workload.pattern == Pattern::Sequential
        && (device.is_some_and(|device| device.rotational.is_none())
            || rdsk_analysis::zones::rotates(record, cell))
        && metrics::ratio(cell.result.bytes.unwrap_or(0), size) >= CROSSED
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{MIB, falling, laid_out, shared_in_the_last_visit, steady};
    use rdsk_model::Op;

    #[test]
    fn says_when_and_both_levels() {
        let cell = laid_out("r", Op::Read, &[falling(600, 600, 120.0, 40.0)]);
        let finding = fires(RULE, &record(vec![disk()], vec![cell]));
        assert!(finding.title.starts_with("slows down to 33"), "{}", finding.title);
        assert!(finding.text.contains("After 30.0 s and 3.5"), "{}", finding.text);
        assert!(!finding.text.contains("start of the run"), "no visit says when it began: {}", finding.text);
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
        assert!(
            finding.text.contains(", 60.0 s after the start of the run for all of them"),
            "{}",
            finding.text
        );
        assert!(finding.evidence[1].contains("between two repeats"), "{:?}", finding.evidence);
    }

    #[test]
    fn a_visit_that_starts_fast_again_is_told() {
        let visits = [falling(100, 100, 120.0, 40.0), falling(150, 60, 120.0, 40.0)];
        let finding = fires(RULE, &record(vec![disk()], vec![laid_out("r", Op::Read, &visits)]));
        assert!(finding.text.contains("a later one started fast again"), "{}", finding.text);
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

    /// Three cells whose processors were shared from their middle on (2026-11): "slows down to 50.6 %" was the other programs.
    #[test]
    fn is_silent_beside_other_programs() {
        let fallen = || laid_out("r", Op::Read, &[steady(400, 120.0), steady(400, 40.0)]);
        fires(RULE, &record(vec![disk()], vec![fallen()]));
        silent(RULE, &record(vec![disk()], vec![with(fallen(), shared_in_the_last_visit)]));
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
        assert!(near.text.contains("slower tracks"), "{}", near.text);
    }
}
