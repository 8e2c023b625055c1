//! `drift`: the rate of a cell changes within its visits, most of them alike, or steadily over the run; a sudden fall is left
//! to `slows-down` and `write-cache-full`. `slow-start`: on average over the visits, their first part was slower than the steady rest;
//! `fast-start`: it was faster.

use super::prelude::*;
use rdsk_analysis::trend::{Trend, VisitTrend};

pub(super) const DRIFT: Rule = Rule::new("drift", Severity::Uncertain, Needs::OwnTimes, |analysis| {
    let cells = cells(analysis, |cell| {
        let is_shown = analysis.trend(cell).is_some_and(|trend| match trend.shape {
            Trend::WithinVisits => {
                trend.late < trend.early || first_quarter_ns(analysis, cell) >= MIN_START_NS
            }
            shape => shape == Trend::OverVisits,
        });
        is_shown && is_worth_it(analysis, cell) && analysis.level_shifts(cell).is_empty()
    });
    let text = "The rate rises or falls within most repeats alike, or steadily over the run. Heat, a cache that fills, other I/O or another \
                part of the disk can cause this.";
    let advice = "run longer with --budget and look at the rate over time; quote the rate of the last part";
    let findings =
        DRIFT.about_any(&cells, "the rate changed over time", text, |cell| parts(analysis, cell), advice);
    valued(analysis, &cells, findings, |times| format!("the rate changes over time by up to {times}"))
});

/// A shorter first quarter is no state of the device: read-ahead and queues fill that long at the start of each pass, and caches of the
/// processor.
const MIN_START_NS: u64 = 50_000_000;

pub(super) const SLOW_START: Rule = Rule::new("slow-start", Severity::Cause, Needs::OwnTimes, |analysis| {
    let cells = cells(analysis, |cell| {
        shape(analysis, cell) == Some(Trend::LowStart)
            && is_worth_it(analysis, cell)
            && first_quarter_ns(analysis, cell) >= MIN_START_NS
    });
    let text = "The first quarter of the repeats was slower than the rest, which held steady. A device that wakes up or a cache that fills \
                does this.";
    let advice = "give more --budget, so that the start weighs less in the mean";
    let findings = SLOW_START.about_any(&cells, "slow start", text, |cell| parts(analysis, cell), advice);
    valued(analysis, &cells, findings, |times| {
        format!("the rest of a test is up to {times} as fast as its start")
    })
});

pub(super) const FAST_START: Rule = Rule::new("fast-start", Severity::Cause, Needs::OwnTimes, |analysis| {
    let cells = cells(analysis, |cell| {
        shape(analysis, cell) == Some(Trend::HighStart)
            && is_worth_it(analysis, cell)
            && analysis.level_shifts(cell).is_empty()
    });
    let text = "The repeats start faster than their steady second half. Virtual disks and cloud volumes that save burst credit while idle do \
                this, and so does a cache in the device.";
    let advice =
        "quote the rate of the later part; give more --budget, so that the start weighs less in the mean";
    let findings = FAST_START.about_any(&cells, "fast start", text, |cell| parts(analysis, cell), advice);
    let later = later(analysis, &cells);
    let findings = valued(analysis, &cells, findings, |times| {
        format!("the start of a test is up to {times} as fast as the rest")
    });
    findings.into_iter().map(|finding| with_later(finding, &later)).collect()
});

/// What a cell of the headline goes on with, else the cell that changed most: `; random 4K reads at QD1 go on at 127 IOPS`.
fn later(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> String {
    let weight = |cell: &CellRecord| analysis.trend(cell).map_or(0.0, |trend| change(&trend));
    let is_headline = |cell: &CellRecord| cell.experiment == Experiment::Headline;
    let by_weight = |left: &&&CellRecord, right: &&&CellRecord| {
        is_headline(left).cmp(&is_headline(right)).then(weight(left).total_cmp(&weight(right)))
    };
    let Some((cell, trend)) =
        cells.iter().max_by(by_weight).and_then(|cell| Some((*cell, analysis.trend(cell)?)))
    else {
        return String::new();
    };
    let is_bandwidth = cell.workload.pattern == Pattern::Sequential;
    let rate = if is_bandwidth {
        words::rate(trend.late)
    } else {
        format!("{} IOPS", rdsk_units::count(trend.late / cell.workload.block_bytes.max(1) as f64))
    };
    if cells.len() == 1 { format!(", at {rate}") } else { format!("; {} go on at {rate}", words::test(cell)) }
}

/// The finding whose effect says at which rate it goes on.
fn with_later(mut finding: Finding, later: &str) -> Finding {
    if let Some(effect) = &mut finding.effect {
        effect.text.push_str(later);
    }
    finding
}

/// The finding with the largest change among its cells.
fn valued(
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    findings: Vec<Finding>,
    what: impl Fn(String) -> String,
) -> Vec<Finding> {
    let changes = cells.iter().filter_map(|cell| Some(change(&analysis.trend(cell)?)));
    let Some(most) = changes.max_by(f64::total_cmp) else { return findings };
    let text = format!("{}: {}", what(words::times(most)), how_many(cells));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, Some(most), text.clone())).collect()
}

fn is_worth_it(analysis: &Analysis<'_>, cell: &CellRecord) -> bool {
    analysis.trend(cell).is_some_and(|trend| change(&trend) >= MIN_EFFECT)
}

fn shape(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<Trend> {
    analysis.trend(cell).map(|trend| trend.shape)
}

/// How long the first quarter of the longest visit lasts.
fn first_quarter_ns(analysis: &Analysis<'_>, cell: &CellRecord) -> u64 {
    let Some(series) = analysis.rate_series(cell) else { return 0 };
    let windows = series.segments.iter().map(|segment| segment.bytes.len() as u64).max();
    series.width_ns.saturating_mul(windows.unwrap_or(0)) / 4
}

/// The factor between the two parts, at least 1.
fn change(trend: &VisitTrend) -> f64 {
    (trend.late / trend.early).max(trend.early / trend.late)
}

/// The rates of the two parts that differ.
fn parts(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let Some(trend) = analysis.trend(cell) else { return cite(cell, "windows", "steady") };
    let (early, late) = match trend.shape {
        Trend::WithinVisits => ("first third of each repeat", "last third"),
        Trend::OverVisits => ("start of the run", "its end"),
        Trend::LowStart => ("first quarter of each repeat", "the rest"),
        Trend::HighStart => ("first eighth of each repeat", "second half"),
    };
    let rates = format!(
        "{}, {late} = {} ({} repeats, {})",
        words::rate(trend.early),
        words::rate(trend.late),
        trend.visits,
        words::chance(trend.p_value)
    );
    cite(cell, early, rates)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record};
    use rdsk_analysis::fixtures::rates::{
        NOISES, RUN_WINDOWS, laid_out, noisy_rates, shared_in_the_last_visit, six_visits,
    };
    use rdsk_model::{Op, Record};
    use rdsk_stats::rng::SplitMix64;

    /// Six visits that all have this course, in noise of 5 %.
    fn six(course: impl Fn(f64) -> f64) -> Record {
        let mut noise = SplitMix64::new(11);
        let visits: Vec<Vec<f64>> = (0..6).map(|_| noisy_rates(&mut noise, &course, 60, 0.05, 0.2)).collect();
        record(vec![disk()], vec![laid_out("w", Op::Read, &visits)])
    }

    #[test]
    fn no_change_over_time_is_told_beside_other_programs() {
        let falling = six(|x| 100.0 - 40.0 * x);
        fires(DRIFT, &falling);
        let mut shared = falling;
        shared_in_the_last_visit(&mut shared.cells[0]);
        silent(DRIFT, &shared);
    }

    #[test]
    fn fires_on_visits_that_all_change_without_a_sudden_fall_only() {
        let rises = fires(DRIFT, &six(|x| if x < 0.5 { 60.0 } else { 100.0 }));
        assert!(rises.evidence[0].contains("last third = 99.9"), "{:?}", rises.evidence);
        assert!(rises.evidence[0].contains("6 repeats, p < 1e-4"), "{:?}", rises.evidence);
        let sinks = fires(DRIFT, &six(|x| 100.0 * (1.0 - 0.5 * x)));
        assert!(sinks.evidence[0].contains("last third = 58"), "{:?}", sinks.evidence);
        silent(DRIFT, &six(|x| if x < 0.5 { 100.0 } else { 50.0 }));
        silent(DRIFT, &six(|_| 100.0));
        silent(DRIFT, &six(|x| if x < 0.25 { 40.0 } else { 100.0 }));
        // Visits of 115 ms from memory, whose first third has 1.5 GiB/s and whose last one 2.3.
        let mut quick = six(|x| if x < 0.5 { 60.0 } else { 100.0 });
        let result = &mut quick.cells[0].result;
        result.windows.as_mut().unwrap().width_ns /= 26;
        result.visits.iter_mut().for_each(|visit| visit.elapsed_ns /= 26);
        silent(DRIFT, &quick);
    }

    #[test]
    fn fires_on_a_slow_first_quarter_only() {
        let finding = fires(SLOW_START, &six(|x| if x < 0.25 { 40.0 } else { 100.0 }));
        assert!(finding.evidence[0].contains("first quarter of each repeat = 4"), "{:?}", finding.evidence);
        assert!(finding.text.starts_with("The first quarter of the repeats"), "{}", finding.text);
        silent(SLOW_START, &six(|_| 100.0));
        silent(SLOW_START, &six(|x| if x < 0.5 { 100.0 } else { 60.0 }));
        // Visits of 80 ms, as those of a file that is read with 3 GiB/s: the start of each is that of its read-ahead.
        let mut quick = six(|x| if x < 0.25 { 40.0 } else { 100.0 });
        let result = &mut quick.cells[0].result;
        result.windows.as_mut().unwrap().width_ns /= 37;
        result.visits.iter_mut().for_each(|visit| visit.elapsed_ns /= 37);
        silent(SLOW_START, &quick);
    }

    #[test]
    fn fires_on_bursts_at_the_start_only_and_calls_them_no_drift() {
        let burst = six(|x| if x < 0.2 { 300.0 } else { 100.0 });
        let finding = fires(FAST_START, &burst);
        assert!(finding.evidence[0].contains("first eighth of each repeat = 3"), "{:?}", finding.evidence);
        assert!(finding.evidence[0].contains("second half = "), "{:?}", finding.evidence);
        let text = finding.effect.as_ref().map_or("", |effect| &effect.text);
        assert!(text.ends_with("as fast as the rest: sequential direct 64K reads, at 99.4 MiB/s"), "{text}");
        silent(DRIFT, &burst);
        silent(FAST_START, &six(|_| 100.0));
        silent(FAST_START, &six(|x| 100.0 * (1.0 - 0.5 * x)));
        silent(FAST_START, &six(|x| if x < 0.2 { 110.0 } else { 100.0 }));
    }

    /// A run of 60 s in eight rounds, every second one backwards, over cells of which each falls evenly by this share: visits of 0.6 s, in
    /// noise of 1 %.
    fn falling(seed: u64, falls: &[f64]) -> Record {
        const ROUNDS: usize = 8;
        let mut rng = SplitMix64::new(seed);
        let turns = ROUNDS * falls.len();
        let mut cells: Vec<(Vec<Vec<f64>>, Vec<u64>)> = falls.iter().map(|_| Default::default()).collect();
        for turn in 0..turns {
            let (round, place) = (turn / falls.len(), turn % falls.len());
            let index = if round % 2 == 0 { place } else { falls.len() - 1 - place };
            let level = 500.0 * (1.0 - falls[index] * turn as f64 / turns as f64);
            cells[index].0.push(noisy_rates(&mut rng, |_| level, 12, 0.01, 0.0));
            cells[index].1.push(1_000_000 + 60_000_000_000 * turn as u64 / turns as u64);
        }
        let laid = cells.iter().enumerate().map(|(index, (visits, starts_ns))| {
            let mut cell = laid_out(&format!("c{index}"), Op::Read, visits);
            cell.result.visits.iter_mut().zip(starts_ns).for_each(|(visit, &at)| visit.start_ns = at);
            cell
        });
        record(vec![disk()], laid.collect())
    }

    #[test]
    fn a_drift_names_the_cells_that_change_with_rates_of_their_own() {
        let four_of_ten = [0.3, 0.0, 0.0, 0.3, 0.0, 0.3, 0.0, 0.0, 0.3, 0.0];
        let one_of_seven = [0.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0];
        for seed in 0..100 {
            let four = fires(DRIFT, &falling(seed, &four_of_ten));
            assert_eq!(four.cells, ["c0", "c3", "c5", "c8"], "{seed}");
            assert!(four.evidence[0].contains(": start of the run = 50"), "{:?}", four.evidence);
            assert!(four.evidence[0].contains(", its end = 35"), "{:?}", four.evidence);
            let one = fires(DRIFT, &falling(seed, &one_of_seven));
            assert_eq!(one.cells, ["c1"], "{seed}");
            let all = fires(DRIFT, &falling(seed, &[0.2; 10]));
            assert_eq!(all.cells.len(), 10, "{seed}: {:?}", all.evidence);
        }
    }

    /// Cells that were taken over from an earlier run drift along a time of their own.
    #[test]
    fn the_time_of_another_sitting_is_another_one() {
        let mut both = falling(1, &[0.3, -0.3, 0.3, -0.3]);
        silent(DRIFT, &both);
        for visit in both.cells.iter_mut().skip(1).step_by(2).flat_map(|cell| &mut cell.result.visits) {
            visit.sitting = 1;
        }
        assert_eq!(fires(DRIFT, &both).cells, ["c0", "c1", "c2", "c3"]);
    }

    /// Four cells of a run of 60 s that share their moments, 200 runs of each kind of noise.
    #[test]
    fn stationary_noise_starts_neither_and_a_drift_of_a_fifth_is_found() {
        let run = |courses: &[Vec<f64>]| {
            let cells = courses.iter().enumerate();
            record(
                vec![disk()],
                cells
                    .map(|(index, course)| laid_out(&format!("c{index}"), Op::Read, &six_visits(course)))
                    .collect(),
            )
        };
        let told = |record: &Record| {
            let analysis = Analysis::of(record);
            !(DRIFT.check)(&analysis).is_empty()
                || !(SLOW_START.check)(&analysis).is_empty()
                || !(FAST_START.check)(&analysis).is_empty()
        };
        let scaled = |rates: Vec<f64>| -> Vec<f64> { rates.iter().map(|rate| 100.0 * rate).collect() };
        for kind in NOISES {
            let alarms = (0..200).filter(|&seed| {
                let mut rng = SplitMix64::new(seed);
                let courses: Vec<Vec<f64>> =
                    (0..4).map(|_| scaled(kind.windows(&mut rng, RUN_WINDOWS, 0.15))).collect();
                told(&run(&courses))
            });
            let alarms = alarms.count();
            assert!(alarms <= 4, "{kind:?}: {alarms} of 200");
        }
        let found = (0..200).filter(|&seed| {
            let mut rng = SplitMix64::new(seed);
            let courses: Vec<Vec<f64>> = (0..4)
                .map(|_| noisy_rates(&mut rng, |x| 100.0 * (1.0 - 0.2 * x), RUN_WINDOWS, 0.05, 0.5))
                .collect();
            told(&run(&courses))
        });
        let found = found.count();
        assert!(found >= 180, "{found} of 200");
    }
}
