//! How much the rate of a cell changes from round to round of its run, beyond what its rounds are too short to say. It compares
//! no runs.

use crate::figure::{measure, timed_rates};
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{round_rates, visits_by_round, warm_up};
use rdsk_analysis::rate_series::{RateSeries, Segment};
use rdsk_model::{CellRecord, Visit};
use rdsk_stats::stddev;

/// What a run says of one cell beside its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Rounds in which the cell moved something.
    pub(crate) rounds: usize,
    /// Variance of the logarithm of the rate for each doubling of the time that is looked at: see [`spread`].
    pub(crate) drift_per_octave: f64,
}

/// What the rounds of a cell show of slow changes. Rates of rounds differ because a round is short, which its own two halves
/// show, and because the disk changes between rounds; the rest is taken to be that. Rounds that are spread over the run see
/// changes that take from one round to the whole run, log₂ of their number octaves, and each octave is given the same variance, as
/// the slow noise of machines has it (1/f; Keshner 1982), so that the changes that take longer than a run can be reckoned with.
pub(crate) fn spread(analysis: &Analysis<'_>, cell: &CellRecord) -> Spread {
    let logs: Vec<f64> = timed_rates(cell).iter().map(|(_, rate)| rate.ln()).collect();
    let rounds = logs.len();
    if rounds < 2 {
        return Spread { rounds, drift_per_octave: 0.0 };
    }
    let of_rounds = stddev(&logs).unwrap_or(0.0).powi(2);
    let of_halves = variance_within(cell, analysis.rate_series(cell), rounds).unwrap_or(0.0);
    Spread { rounds, drift_per_octave: (of_rounds - of_halves).max(0.0) / (rounds as f64).log2() }
}

/// The variance of the logarithm of a round's rate that changes within the round leave: that of the differences of its halves, which
/// are of its visits, or of the windows of its only one. What the halves of all rounds differ by alike, such as a fast start, makes
/// no round differ from another and is left out. `None` where fewer than half of the rounds have two halves.
fn variance_within(cell: &CellRecord, series: Option<&RateSeries>, rounds: usize) -> Option<f64> {
    let mut found = halves_of_visits(cell);
    found.extend(series.into_iter().flat_map(|series| halves_of_windows(cell, series)));
    if found.len() * 2 < rounds { None } else { stddev(&found).map(|deviation| deviation * deviation) }
}

/// How far a round's own changes move the logarithm of its rate, by one trial: from the rates of two halves and how long each took
/// of how long all took. What the mean over a time varies by goes with one over that time.
fn moved((first, second): (f64, f64), took: (f64, f64), all: f64) -> Option<f64> {
    let by = (first / second).ln() * (1.0 / all / (1.0 / took.0 + 1.0 / took.1)).sqrt();
    by.is_finite().then_some(by)
}

/// Of each round of several visits what its halves say; one in the middle is left out.
fn halves_of_visits(cell: &CellRecord) -> Vec<f64> {
    let rounds = visits_by_round(cell);
    if rounds.values().all(|visits| visits.len() < 2) {
        return Vec::new();
    }
    // Each half is a round of its own, so that its rate is taken as that of a round is.
    let mut halved = cell.clone();
    halved.result.visits.clear();
    // The warm-up is that of the first visit, which is in the middle of a round if it is alone there.
    let has_first =
        |visits: &Vec<&Visit>| visits.len() > 1 && std::ptr::eq(visits[0], &cell.result.visits[0]);
    if !rounds.values().next().is_some_and(has_first) {
        halved.result.warmup_bytes = None;
    }
    for (place, visits) in (0_u32..).zip(rounds.values()) {
        let (half, all) = (visits.len() / 2, visits.len());
        let numbered = |round| move |visit: &&Visit| Visit { round, ..(*visit).clone() };
        halved.result.visits.extend(visits[..half].iter().map(numbered(2 * place)));
        halved.result.visits.extend(visits[all - half..].iter().map(numbered(2 * place + 1)));
    }
    let rates = round_rates(&halved, measure(cell));
    let of_round = |(place, visits): (u32, &Vec<&Visit>)| {
        let halves = (*rates.get(&(2 * place))?, *rates.get(&(2 * place + 1))?);
        let (half, all) = (visits.len() / 2, visits.len());
        let took = |visits: &[&Visit]| visits.iter().map(|visit| visit.elapsed_ns as f64).sum::<f64>();
        moved(halves, (took(&visits[..half]), took(&visits[all - half..])), took(visits))
    };
    (0_u32..).zip(rounds.values()).filter_map(of_round).collect()
}

/// Of each round of a single visit what the halves of its windows say, without those of the warm-up.
fn halves_of_windows(cell: &CellRecord, series: &RateSeries) -> Vec<f64> {
    let rounds = visits_by_round(cell);
    let ends_ns: Vec<u64> = cell
        .result
        .visits
        .iter()
        .scan(0_u64, |end_ns, visit| {
            *end_ns = end_ns.saturating_add(visit.elapsed_ns);
            Some(*end_ns)
        })
        .collect();
    let is_alone = |segment: &&Segment| {
        let place = ends_ns.partition_point(|end_ns| *end_ns <= segment.before_ns);
        let visit = cell.result.visits.get(place);
        visit.is_some_and(|visit| rounds.get(&visit.round).is_some_and(|visits| visits.len() == 1))
    };
    let early = usize::try_from(warm_up(cell).1.div_ceil(series.width_ns.max(1))).unwrap_or(usize::MAX);
    let of_segment = |segment: &Segment| {
        let begin = if segment.before_ns == 0 { early } else { 0 };
        let bytes = segment.bytes.get(begin..)?;
        let (all, half) = (bytes.len(), bytes.len() / 2);
        let sum = |part: &[u64]| part.iter().sum::<u64>() as f64;
        let took = (half as f64, half as f64);
        moved((sum(&bytes[..half]), sum(&bytes[all - half..])), took, all as f64)
    };
    series.segments.iter().filter(is_alone).filter_map(of_segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record, with_halves, with_rates};
    use rdsk_stats::mean;
    use rdsk_stats::rng::SplitMix64;

    fn drift_of(cell: CellRecord) -> f64 {
        let record = record("2026-01-01T00:00:00Z", vec![cell]);
        spread(&Analysis::of(&record), &record.cells[0]).drift_per_octave
    }

    fn drift(rates: &[f64]) -> f64 {
        drift_of(with_rates(cell("a"), rates))
    }

    #[test]
    fn rounds_that_differ_are_drift_and_equal_ones_are_none() {
        assert!(drift(&[100.0; 8]) < 1e-12);
        let wide = drift(&[90.0, 110.0, 90.0, 110.0, 90.0, 110.0, 90.0, 110.0]);
        // The logarithms lie 0.1003 from their mean; 8 rounds see three octaves.
        assert!((wide - 0.1003_f64.powi(2) * 8.0 / 7.0 / 3.0).abs() < 1e-4, "{wide}");
    }

    /// Six rounds of so many visits each. A visit has a noise of its own, of which both halves have their part, beside what a round
    /// has.
    fn noisy(seed: u64, visits: usize, of_round: f64, of_visit: f64) -> CellRecord {
        let mut noise = SplitMix64::new(seed);
        let mut round = |_| {
            let level = 100.0 * (of_round * noise.normal()).exp();
            let mut half = || level * (std::f64::consts::SQRT_2 * of_visit * noise.normal()).exp();
            (0..visits).map(|_| (half(), half())).collect()
        };
        let rounds: Vec<Vec<(f64, f64)>> = (0..6).map(&mut round).collect();
        with_halves(cell("a"), &rounds)
    }

    fn mean_drift(visits: usize, of_round: f64, of_visit: f64) -> f64 {
        let all: Vec<f64> = (0..400).map(|seed| drift_of(noisy(seed, visits, of_round, of_visit))).collect();
        mean(&all).unwrap()
    }

    /// Rounds that change by 5 % show 0.0025 in log₂ 6 octaves, however many visits they have of how much noise.
    #[test]
    fn what_rounds_change_by_is_found_whatever_they_are_made_of() {
        let octaves = 6.0_f64.log2();
        for (visits, of_visit) in [(1, 0.01), (1, 0.03), (2, 0.04), (5, 0.06), (6, 0.06)] {
            let found = mean_drift(visits, 0.05, of_visit) * octaves;
            assert!((found - 0.0025).abs() < 0.0004, "{visits} visits with {of_visit}: {found}");
        }
    }

    /// Without a change, what is left is what chance leaves of a difference that is as often below 0.
    #[test]
    fn the_noise_of_visits_is_no_drift() {
        for visits in [1, 2, 5, 6] {
            let variance = 0.06_f64.powi(2) / visits as f64;
            let found = mean_drift(visits, 0.0, 0.06) * 6.0_f64.log2();
            assert!(found < 0.4 * variance, "{visits} visits: {found} of {variance}");
        }
    }

    #[test]
    fn rounds_of_one_visit_and_of_several_count_alike_and_few_halves_say_nothing() {
        let one = |rate: f64, by: f64| vec![(rate + by, rate - by)];
        let three = |rate: f64, by: f64| [one(rate, by), one(rate, 0.0), one(rate - 2.0 * by, by)].concat();
        let rounds =
            [one(100.0, 9.0), three(90.0, 4.0), one(110.0, -9.0), three(100.0, -5.0), one(105.0, 4.0)];
        let mixed = with_halves(cell("a"), &rounds);
        let record = record("2026-01-01T00:00:00Z", vec![mixed.clone()]);
        let analysis = Analysis::of(&record);
        let (cell, series) = (&record.cells[0], analysis.rate_series(&record.cells[0]));
        assert_eq!((halves_of_visits(cell).len(), halves_of_windows(cell, series.unwrap()).len()), (2, 3));
        assert!(variance_within(cell, series, 5).is_some() && variance_within(cell, None, 5).is_none());
        // Of three visits the first and the last: ln(90 / 82) · √(1/6); of one its windows: ln(109 / 91) · √(1/4).
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        near(halves_of_visits(cell)[0], (90.0_f64 / 82.0).ln() / 6.0_f64.sqrt());
        near(halves_of_windows(cell, series.unwrap())[0], (109.0_f64 / 91.0).ln() / 2.0);
    }

    /// What rounds of a short visit and a long one are said to differ by, of what they do; their noise is that of so many I/Os.
    fn share_within(short_ns: u64) -> f64 {
        let (part, mib_100) = (short_ns as f64 / 1e9, f64::from(100 << 20));
        let share = |seed| {
            let mut cell = noisy(seed, 2, 0.0, 0.03);
            for visit in cell.result.visits.iter_mut().step_by(2) {
                let off = (visit.bytes as f64 / mib_100).ln() / part.sqrt();
                visit.bytes = rdsk_analysis::metrics::whole(mib_100 * off.exp() * part);
                visit.elapsed_ns = short_ns;
            }
            let logs: Vec<f64> = timed_rates(&cell).iter().map(|(_, rate)| rate.ln()).collect();
            variance_within(&cell, None, 6).unwrap() / stddev(&logs).unwrap().powi(2)
        };
        rdsk_stats::median(&(0..400).map(share).collect::<Vec<f64>>()).unwrap()
    }

    /// The first of six rounds of 100 MiB/s began with a fifth of a second at three times that.
    fn with_warm_up(mut cell: CellRecord) -> CellRecord {
        cell.result.visits[0].bytes = 140 << 20;
        (cell.result.warmup_ns, cell.result.warmup_bytes) = (Some(200_000_000), Some(60 << 20));
        cell
    }

    #[test]
    fn the_warm_up_is_left_out_of_the_first_visit_and_of_no_other() {
        let still = |found: &[f64], rounds: usize| {
            assert!(found.len() == rounds && found.iter().all(|by| by.abs() < 1e-9), "{found:?}");
        };
        let visits = |count: usize| vec![(100.0, 100.0); count];
        let all_of_two = with_halves(cell("a"), &[2; 6].map(visits));
        still(&halves_of_visits(&with_warm_up(all_of_two)), 6);
        let first_alone = with_halves(cell("a"), &[1, 2, 2, 2, 2, 2].map(visits));
        still(&halves_of_visits(&with_warm_up(first_alone)), 5);
        let segment = |round: u64| Segment {
            start_ns: round * 9_000_000_000,
            before_ns: round * 1_000_000_000,
            before_bytes: 0,
            early_bytes: 0,
            rest_ns: 0,
            bytes: (0..10).map(|window| if round == 0 && window < 2 { 30 } else { 10 }).collect(),
        };
        let series = RateSeries { width_ns: 100_000_000, segments: (0..6).map(segment).collect() };
        let single = with_warm_up(with_rates(cell("a"), &[100.0; 6]));
        still(&halves_of_windows(&single, &series), 6);
        assert!(drift_of(single) < 1e-12, "and it is no drift");
    }

    /// `align` begins each round with a short visit.
    #[test]
    fn a_short_visit_counts_for_as_long_as_it_is() {
        for short_ns in [1_000_000_000, 100_000_000, 20_000_000] {
            let share = share_within(short_ns);
            assert!((0.75..1.35).contains(&share), "{short_ns}: {share}");
        }
    }

    #[test]
    fn what_all_visits_begin_with_hides_no_drift() {
        let rounds: Vec<Vec<(f64, f64)>> =
            [90.0, 110.0].repeat(4).iter().map(|rate| vec![(rate * 1.2, rate * 0.8)]).collect();
        let wide = drift_of(with_halves(cell("a"), &rounds));
        assert!((wide - 0.1003_f64.powi(2) * 8.0 / 7.0 / 3.0).abs() < 1e-4, "{wide}");
    }
}
