//! `stalls`: for a while no I/O completed although some were waiting. It reports how often, how long and how far apart, and names
//! no cause.

use super::prelude::*;
use rdsk_analysis::rate_series;
use rdsk_model::Stall;

pub(super) const RULE: Rule = Rule::new("stalls", Severity::Uncertain, Needs::OwnTimes, check);

/// Spread (maximum less minimum, over the mean) below which lengths and distances count as one figure.
const REGULAR: f64 = 0.1;
/// Minimum number of stalls for a period: three at random times have equal distances in 5 of 100 cases, or whole multiples of the
/// smallest in one more, four in fewer than one (simulated, 2026-11-25). Distances may be multiples, since stalls between visits are
/// missed: the maximum distance from a multiple, in periods.
const MIN_EVENTS: usize = 4;
const NEAR: f64 = 0.05;
const MAX_MISSED: f64 = 10.0;

#[derive(Clone, Copy)]
struct Stalled<'a> {
    cell: &'a CellRecord,
    stalls: &'a [Stall],
}

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let has_times = rate_series::has_times(analysis);
    let measured = cells(analysis, |_| true).into_iter().filter_map(|cell| {
        analysis.rate_series(cell)?;
        Some((&cell.workload.targets, Stalled { cell, stalls: analysis.stalls(cell) }))
    });
    let went_on = analysis.sustained.iter().map(|cell| {
        let stalls = cell.result.stalls.as_ref().map_or(&[][..], |stalls| &stalls.seen);
        (&cell.workload.targets, Stalled { cell, stalls })
    });
    let went_on = by_key(went_on);
    let of_targets = by_key(measured).into_iter().filter_map(|(targets, measured)| {
        // Tests of a second or two may all lie between two stalls; one that went on for a minute does not.
        let went_on = went_on.iter().find(|(others, _)| *others == targets).map(|(_, cells)| &cells[..]);
        let source =
            [&measured[..], went_on.unwrap_or_default()].into_iter().find(|cells| has_stalls(cells))?;
        let elapsed_ns = source.iter().map(|stalled| stalled.cell.result.elapsed_ns.unwrap_or(0)).sum();
        let stalled: Vec<Stalled<'_>> =
            source.iter().filter(|stalled| !stalled.stalls.is_empty()).copied().collect();
        Some(finding(analysis, &stalled, elapsed_ns, has_times))
    });
    of_targets.collect()
}

fn has_stalls(cells: &[Stalled<'_>]) -> bool {
    cells.iter().any(|stalled| !stalled.stalls.is_empty())
}

fn finding(record: &Record, stalled: &[Stalled<'_>], elapsed_ns: u64, has_times: bool) -> Finding {
    let cells: Vec<&CellRecord> = stalled.iter().map(|test| test.cell).collect();
    let mut stalls: Vec<Stall> = stalled.iter().flat_map(|test| test.stalls.iter().copied()).collect();
    // Where visits have no start times, those of one cell still have an order.
    let begin_ns = |stall: &Stall| if has_times { stall.start_ns } else { stall.cell_ns };
    stalls.sort_by_key(begin_ns);
    // Times of several cells or visits are comparable only when all are counted from the start of the run.
    let is_one_sitting = cells.iter().all(|cell| cell.sitting() == cells[0].sitting());
    let is_comparable =
        (has_times && is_one_sitting) || (cells.len() == 1 && cells[0].result.visits.len() <= 1);
    let begins_ns: Vec<u64> = stalls.iter().map(begin_ns).collect();
    let every = if is_comparable { period(&begins_ns) } else { None };
    let lost_ns: u64 = stalls.iter().map(|stall| stall.lasts_ns).sum();
    let lengths = lengths(&stalls);
    let times = if stalls.len() == 1 { "Once".into() } else { format!("{} times", stalls.len()) };
    let regular = every.map_or(String::new(), |ns| format!(", every {}", words::nanos(ns)));
    let text = format!(
        "{times}{regular}, no I/O completed for {lengths} with at least one waiting; the others took {} as usual, and {} of the I/O time was \
         lost. Garbage collection in flash, zone rewriting in a shingled disk, error recovery, thermal throttling, path failover or a limit \
         outside this machine can cause this.",
        usual(&cells),
        rdsk_units::percent(metrics::ratio(lost_ns, elapsed_ns.max(1))),
    );
    let title = match every {
        Some(ns) => format!("stalls every {}, {lengths}: {}", words::nanos(ns), how_many(&cells)),
        None => format!("{} of {lengths}: {}", words::plural(stalls.len() as u64, "stall"), how_many(&cells)),
    };
    let lost = metrics::ratio(lost_ns, elapsed_ns.max(1));
    let length = lengths.trim_end_matches(" each");
    let often = match every {
        Some(ns) => format!("{length} every {}", words::nanos(ns)),
        None if stalls.len() == 1 => format!("{length} once"),
        None => format!("{length}, {} times", stalls.len()),
    };
    let effect = format!(
        "I/O stops for {often} in {}: {} of the I/O time",
        how_many(&cells),
        rdsk_units::percent(lost)
    );
    RULE.finding(title, text)
        .effect(Stake::Figure, Some(1.0 / (1.0 - lost)), effect)
        .evidence(stalled.iter().take(MAX_CITED).map(cited))
        .advice(format!(
            "{}; quote the maximum latency, since the median hides stalls",
            if is_simulated(record, cells[0]) {
                "see the parameters of the model with rdsk sim show"
            } else {
                "read the logs of device and kernel for these times"
            }
        ))
        .cells(cells)
}

fn cited(stalled: &Stalled<'_>) -> String {
    let latency = stalled.cell.result.latency_ns.as_ref();
    let ns = |ns: Option<u64>| ns.map_or_else(|| "unknown".into(), words::nanos);
    cite(
        stalled.cell,
        "windows without progress",
        format_args!(
            "{} of {}, latency max = {}, p50 = {}",
            words::plural(stalled.stalls.len() as u64, "stall"),
            lengths(stalled.stalls),
            ns(latency.and_then(|latency| latency.max)),
            ns(latency.and_then(|latency| latency.p50)),
        ),
    )
}

/// What an ordinary I/O takes, from the quickest of the cells to the slowest.
fn usual(cells: &[&CellRecord]) -> String {
    let typical = |cell: &&CellRecord| cell.result.latency_ns.as_ref().and_then(metrics::typical_ns);
    let typical_ns: Vec<u64> = cells.iter().filter_map(typical).collect();
    match typical_ns.iter().min().zip(typical_ns.iter().max()) {
        None => "an unknown time".into(),
        Some((least, most)) if least == most => words::nanos(*least),
        Some((least, most)) => {
            format!("{} to {} (medians)", words::nanos(*least), words::nanos(*most))
        }
    }
}

/// `2.00 s each`, `0.5 s to 2.0 s`.
fn lengths(stalls: &[Stall]) -> String {
    let lengths: Vec<u64> = stalls.iter().map(|stall| stall.lasts_ns).collect();
    let (least, most) =
        (lengths.iter().min().copied().unwrap_or(0), lengths.iter().max().copied().unwrap_or(0));
    let mean = lengths.iter().sum::<u64>() / lengths.len().max(1) as u64;
    if stalls.len() == 1 {
        words::nanos(mean)
    } else if is_one_figure(least, most, mean) {
        format!("{} each", words::nanos(mean))
    } else {
        format!("{} to {}", words::nanos(least), words::nanos(most))
    }
}

fn is_one_figure(least: u64, most: u64, mean: u64) -> bool {
    ((most - least) as f64) < REGULAR * mean as f64
}

/// The period of the stalls, if there is one: four or more at equal distances, or at whole multiples of the smallest,
/// because the others happened between two visits.
fn period(begins_ns: &[u64]) -> Option<u64> {
    if begins_ns.len() < MIN_EVENTS {
        return None;
    }
    let gaps: Vec<u64> = begins_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, most) = (*gaps.iter().min()?, *gaps.iter().max()?);
    let span = begins_ns.last()? - begins_ns.first()?;
    let mean = span / gaps.len() as u64;
    if mean > 0 && is_one_figure(least, most, mean) {
        return Some(mean);
    }
    let multiples: Vec<f64> = gaps.iter().map(|&gap| gap as f64 / least.max(1) as f64).collect();
    let is_near = |&multiple: &f64| (multiple - multiple.round()).abs() <= NEAR && multiple <= MAX_MISSED;
    let periods: f64 = multiples.iter().map(|multiple| multiple.round()).sum();
    multiples.iter().all(is_near).then_some(metrics::whole(span as f64 / periods))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{NOISES, RUN_WINDOWS, laid_out, noisy_rates, steady};
    use rdsk_model::{IoPath, Op};
    use rdsk_stats::rng::SplitMix64;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// A cell of 50 ms windows in which nothing completes from each of these times, in seconds, on.
    fn stalling(windows: usize, begins_s: &[f64], lasts_s: f64) -> CellRecord {
        let series = steady(windows, 100.0)
            .iter()
            .enumerate()
            .map(|(index, rate)| {
                let (begin, end) = (index as f64 * 0.05, (index + 1) as f64 * 0.05);
                let lost: f64 =
                    begins_s.iter().map(|&at| (end.min(at + lasts_s) - begin.max(at)).max(0.0)).sum();
                rate * (1.0 - lost / 0.05).max(0.0)
            })
            .collect();
        waited(laid_out("w", Op::Write, &[series]), lasts_s)
    }

    fn waited(cell: CellRecord, max_s: f64) -> CellRecord {
        with(cell, |cell| {
            if let Some(latency) = &mut cell.result.latency_ns {
                latency.p50 = Some(8 * MS);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a test's figure"
                )]
                let max_ns = (max_s * 1e9) as u64;
                latency.max = Some(max_ns);
            }
        })
    }

    #[test]
    fn names_the_period_and_the_length() {
        let cell = stalling(2400, &[28.0, 58.0, 88.0, 118.0], 2.0);
        let finding = fires(RULE, &record(vec![disk()], vec![cell]));
        assert_eq!(finding.title, "stalls every 30.0 s, 2.00 s each: sequential direct 64K writes");
        assert!(
            finding.text.starts_with("4 times, every 30.0 s, no I/O completed for 2.00 s each"),
            "{}",
            finding.text
        );
        assert!(finding.text.contains("6.7% of the I/O time"), "{}", finding.text);
        assert!(finding.text.contains("can cause this"));
        assert_eq!(
            finding.evidence,
            [
                "sequential direct 64K writes: windows without progress = 4 stalls of 2.00 s each, latency max = 2.00 s, p50 = 8.00 ms"
            ]
        );
    }

    #[test]
    fn a_test_that_went_on_shows_what_short_ones_miss() {
        let short = stalling(40, &[], 2.0);
        let went_on = with(stalling(2400, &[28.0, 58.0, 88.0, 118.0], 2.0), |cell| {
            let seen: Vec<Stall> = [28, 58, 88, 118]
                .map(|at| Stall { start_ns: at * S, cell_ns: at * S, lasts_ns: 2 * S })
                .into();
            let basis = rdsk_model::StallBasis {
                count: 4,
                stalled_ns: 8 * S,
                elapsed_ns: 120 * S,
                share_low: 0.02,
                share_high: 0.2,
                op: None,
            };
            cell.result.stalls = Some(rdsk_model::Stalls { seen, basis });
        });
        let record = rdsk_model::Record { sustained: vec![went_on], ..record(vec![disk()], vec![short]) };
        let finding = fires(RULE, &record);
        assert_eq!(
            finding.effect.map(|effect| effect.text).as_deref(),
            Some("I/O stops for 2.00 s every 30.0 s in sequential direct 64K writes: 6.7% of the I/O time")
        );
    }

    #[test]
    fn two_stalls_or_irregular_ones_have_no_period() {
        let two = fires(RULE, &record(vec![disk()], vec![stalling(1400, &[28.0, 58.0], 2.0)]));
        assert_eq!(two.title, "2 stalls of 2.00 s each: sequential direct 64K writes");
        let odd = fires(RULE, &record(vec![disk()], vec![stalling(1400, &[3.05, 7.7, 33.3], 0.4)]));
        assert!(odd.title.starts_with("3 stalls of "), "{}", odd.title);
        assert!(odd.title.contains("400 ms"), "{}", odd.title);
        let one = fires(RULE, &record(vec![disk()], vec![stalling(400, &[5.0], 0.3)]));
        assert_eq!(one.title, "1 stall of 300 ms: sequential direct 64K writes");
    }

    #[test]
    fn times_by_chance_have_no_period() {
        let told = |count: usize| {
            let by_chance = |seed: u64| {
                let mut rng = SplitMix64::new(seed);
                let mut begins_ns: Vec<u64> = (0..count).map(|_| rng.below(60 * S)).collect();
                begins_ns.sort_unstable();
                period(&begins_ns)
            };
            (0..2000).filter_map(by_chance).count()
        };
        assert_eq!(told(3), 0);
        assert!(told(4) <= 30 && told(5) <= 10, "{} {}", told(4), told(5));
        let three = fires(RULE, &record(vec![disk()], vec![stalling(2400, &[28.0, 58.0, 88.0], 2.0)]));
        assert_eq!(three.title, "3 stalls of 2.00 s each: sequential direct 64K writes");
    }

    #[test]
    fn cells_that_take_turns_are_put_on_one_line() {
        // Visits of 20 s in turn; the stalls at 28, 58, 118 and 148 s fall into them, that of 88 s between two.
        let of = |id: &str, starts_s: [u64; 2], begins_s: [f64; 2]| {
            let visit = |begin_s: f64| -> Vec<f64> {
                (0..400)
                    .map(|index| f64::from(index) * 0.05)
                    .map(|at| if at >= begin_s && at < begin_s + 2.0 { 0.0 } else { 100.0 })
                    .collect()
            };
            let cell = waited(laid_out(id, Op::Read, &begins_s.map(visit)), 2.0);
            with(cell, |cell| {
                for (visit, start_s) in cell.result.visits.iter_mut().zip(starts_s) {
                    visit.start_ns = start_s * S;
                }
            })
        };
        let cells = vec![of("a", [20, 100], [8.0, 18.0]), of("b", [50, 140], [8.0, 8.0])];
        let finding = fires(RULE, &record(vec![disk()], cells.clone()));
        assert_eq!(finding.title, "stalls every 30.0 s, 2.00 s each: 2 tests");
        assert!(finding.text.contains("; the others took 8.00 ms as usual, "), "{}", finding.text);
        // Two sittings have no time in common.
        let mut sittings = cells.clone();
        sittings[0].result.visits.iter_mut().for_each(|visit| visit.sitting = 1);
        let finding = fires(RULE, &record(vec![disk()], sittings));
        assert_eq!(finding.title, "4 stalls of 2.00 s each: 2 tests");
        let mut slower = cells;
        slower[0].result.latency_ns.as_mut().unwrap().p50 = Some(400_000);
        let finding = fires(RULE, &record(vec![disk()], slower));
        let text = "; the others took 400 µs to 8.00 ms (medians) as usual, ";
        assert!(finding.text.contains(text), "{}", finding.text);
    }

    #[test]
    fn noise_drift_and_zones_are_no_stalls() {
        let mut noise = SplitMix64::new(3);
        let drift = |x: f64| 100.0 * (1.0 - 0.05 * x);
        let zones = |x: f64| 100.0 * (1.0 - 0.5 * (x * 16.0).floor() / 16.0);
        for (sigma, rho) in [(0.1, 0.0), (0.3, 0.0), (0.4, 0.0), (0.1, 0.8), (0.3, 0.5), (0.3, 0.8)] {
            for _ in 0..250 {
                // One I/O did take long, so that only the windows can show it.
                for series in [
                    noisy_rates(&mut noise, drift, 300, sigma, rho),
                    noisy_rates(&mut noise, zones, 300, sigma, rho),
                ] {
                    let cell = waited(laid_out("r", Op::Read, &[series]), 2.0);
                    silent(RULE, &record(vec![disk()], vec![cell]));
                }
            }
        }
    }

    /// Three cells that take turns of 3 s over 60 s: noise that is stationary, and a stall of 1 s in every 9.4 s, 200 runs
    /// each.
    #[test]
    fn a_run_over_stationary_noise_has_no_stalls_and_one_second_in_ten_is_found() {
        let told = |course: &[f64]| {
            let cell = |turn: usize| {
                let visits: Vec<Vec<f64>> =
                    (0..6).map(|round| course[round * 200 + turn * 66..][..60].to_vec()).collect();
                waited(laid_out(&format!("c{turn}"), Op::Read, &visits), 1.0)
            };
            !(RULE.check)(&Analysis::of(&record(vec![disk()], (0..3).map(cell).collect()))).is_empty()
        };
        for kind in NOISES {
            let rates = |seed: u64| kind.windows(&mut SplitMix64::new(seed), RUN_WINDOWS, 0.15);
            let alarms =
                (0..200).filter(|&seed| told(&rates(seed).iter().map(|x| 100.0 * x).collect::<Vec<_>>()));
            let alarms = alarms.count();
            assert!(alarms <= 4, "{kind:?}: {alarms} of 200");
        }
        let found = (0..200).filter(|&seed| {
            let mut rng = SplitMix64::new(seed);
            let noise = NOISES[1].windows(&mut rng, RUN_WINDOWS, 0.1);
            // A round of the cells takes 10 s; were the period the same, each would meet the stall alike or not at all.
            let (begin, period) = (rng.uniform() * 200.0, 187.0);
            let stalls = |at: usize| (at as f64 + begin) % period < 20.0;
            let rates = noise.iter().enumerate().map(|(at, x)| if stalls(at) { 0.0 } else { 100.0 * x });
            told(&rates.collect::<Vec<f64>>())
        });
        let found = found.count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn is_silent_where_the_program_paused_or_nothing_is_long_enough() {
        let paused = waited(stalling(1400, &[28.0], 2.0), 0.01);
        silent(RULE, &record(vec![disk()], vec![paused]));
        silent(RULE, &record(vec![disk()], vec![stalling(1400, &[28.0], 0.08)]));
        silent(RULE, &record(vec![disk()], vec![stalling(1400, &[], 2.0)]));
        // At the very beginning a disk may have been asleep.
        silent(RULE, &record(vec![disk()], vec![stalling(1400, &[0.0], 2.0)]));
        // Blocks that take longer than a window leave windows empty.
        let slow = with(stalling(1400, &[], 2.0), |cell| {
            cell.workload.block_bytes = 64 << 20;
            if let Some(windows) = &mut cell.result.windows {
                windows.bytes = (0..1400).map(|index| if index % 13 == 0 { 64 << 20 } else { 0 }).collect();
            }
            if let Some(latency) = &mut cell.result.latency_ns {
                (latency.p50, latency.max) = (Some(640 * MS), Some(900 * MS));
            }
        });
        silent(RULE, &record(vec![disk()], vec![slow]));
        let in_memory = with(stalling(1400, &[28.0], 2.0), |cell| cell.workload.path = IoPath::Buffered);
        silent(RULE, &record(vec![disk()], vec![in_memory]));
    }
}
