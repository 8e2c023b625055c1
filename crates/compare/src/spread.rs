//! How much the rate of a cell, or a percentile of its latencies, changes from round to round of its run, beyond what its rounds are too
//! short to say. A device whose rate is capped has the same rate in every round, whatever its slow I/Os do; so each percentile is asked
//! for itself. It compares no runs.

use crate::figure::{MIN_ROUNDS, Metric, measure, timed_rates};
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{round_rates, visits_by_round, warm_up};
use rdsk_analysis::rate_series::{RateSeries, Segment};
use rdsk_model::{CellRecord, Estimate, Latency, Visit};
use rdsk_stats::{Histogram, mean, stddev, t_quantile};

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
///
/// Rates of eight rounds scatter by 5 %, a variance of 0.0025. Their halves leave 0.0007 of it to what is shorter than a round. The
/// other 0.0018 is that of log₂ 8 = 3 octaves, 0.0006 each: over the ten octaves from a minute to a day it is 0.006, 8 %.
pub(crate) fn spread(analysis: &Analysis<'_>, cell: &CellRecord) -> Spread {
    let logs: Vec<f64> = timed_rates(cell).iter().map(|(_, rate)| rate.ln()).collect();
    let rounds = logs.len();
    let of_rounds = stddev(&logs).unwrap_or(0.0).powi(2);
    let of_halves = variance_within(cell, analysis.rate_series(cell), rounds).unwrap_or(0.0);
    Spread { rounds, drift_per_octave: per_octave(of_rounds - of_halves, rounds) }
}

/// The variance of the logarithm of a round's rate that changes within the round leave: that of the differences of its halves, which
/// are of its visits, or of the windows of its only one. What the halves of all rounds differ by alike, such as a fast start, makes
/// no round differ from another and is left out. `None` where fewer than half of the rounds have two halves.
fn variance_within(cell: &CellRecord, series: Option<&RateSeries>, rounds: usize) -> Option<f64> {
    let mut moved = halves_of_visits(cell);
    moved.extend(series.into_iter().flat_map(|series| halves_of_windows(cell, series)));
    if moved.len() * 2 < rounds { None } else { stddev(&moved).map(|deviation| deviation * deviation) }
}

/// How far a round's own changes move the logarithm of its rate, by one trial: from the rates of two halves and how long each took
/// of how long all took. What the mean over a time varies by goes with one over that time.
fn moved((first, second): (f64, f64), took: (f64, f64), whole: f64) -> Option<f64> {
    let by = (first / second).ln() * (1.0 / whole / (1.0 / took.0 + 1.0 / took.1)).sqrt();
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
        let (half, count) = (visits.len() / 2, visits.len());
        let numbered = |round| move |visit: &&Visit| Visit { round, ..(*visit).clone() };
        halved.result.visits.extend(visits[..half].iter().map(numbered(2 * place)));
        halved.result.visits.extend(visits[count - half..].iter().map(numbered(2 * place + 1)));
    }
    let rates = round_rates(&halved, measure(cell));
    let of_round = |(place, visits): (u32, &Vec<&Visit>)| {
        let halves = (*rates.get(&(2 * place))?, *rates.get(&(2 * place + 1))?);
        let (half, count) = (visits.len() / 2, visits.len());
        let took = |visits: &[&Visit]| visits.iter().map(|visit| visit.elapsed_ns as f64).sum::<f64>();
        moved(halves, (took(&visits[..half]), took(&visits[count - half..])), took(visits))
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
        let (count, half) = (bytes.len(), bytes.len() / 2);
        let sum = |part: &[u64]| part.iter().sum::<u64>() as f64;
        let took = (half as f64, half as f64);
        moved((sum(&bytes[..half]), sum(&bytes[count - half..])), took, count as f64)
    };
    series.segments.iter().filter(is_alone).filter_map(of_segment).collect()
}

/// What is left outside of a range.
const OUTSIDE: f64 = 0.05;

/// What a run shows of slow changes of a percentile, as [`spread`] does of the rate: the variance of the logarithms of
/// the rounds' own percentiles, less what chance leaves of them.
///
/// A Record without the latencies of its rounds (an older one, or a compact one) still has the range of the percentile, which is as wide
/// as the rounds differ: if all of its width is change from round to round, a round changes by the square root of their number times
/// it. That is more than what rounds themselves would show, and never less. `of_rate` is what the rate shows; its rounds are counted then.
pub(crate) fn latency_spread(latency: &Latency, metric: Metric, figure: Estimate, of_rate: Spread) -> Spread {
    let rounds = metric.share().and_then(|p| percentiles(latency, p));
    let Some(rounds) = rounds.filter(|rounds| rounds.len() >= MIN_ROUNDS) else {
        // Flushes have a latency, and no rate.
        let count = if of_rate.rounds == 0 { latency.rounds.len() } else { of_rate.rounds };
        return Spread {
            rounds: count,
            drift_per_octave: per_octave(variance_of_range(figure, count), count),
        };
    };
    let logs: Vec<f64> = rounds.iter().map(|round| round.log).collect();
    let of_rounds = stddev(&logs).unwrap_or(0.0).powi(2);
    let of_chance = mean(&rounds.iter().map(|round| round.chance).collect::<Vec<f64>>()).unwrap_or(0.0);
    Spread { rounds: logs.len(), drift_per_octave: per_octave(of_rounds - of_chance, logs.len()) }
}

/// The rounds see log₂ of their number octaves of time: see [`spread`].
fn per_octave(variance: f64, rounds: usize) -> f64 {
    if rounds < 2 { 0.0 } else { variance.max(0.0) / (rounds as f64).log2() }
}

/// The percentile of one round.
struct RoundPercentile {
    log: f64,
    /// The variance of it that the number of its I/Os leaves.
    chance: f64,
}

/// The percentile of each round that completed anything; `None` if the latencies of one are not known.
///
/// Of n independent latencies √(n·p·(1 − p)) more or fewer than n·p lie below the true percentile, as a standard deviation; so it is as
/// unsure as the values are apart that many ranks below and above it. Latencies that come in spells are less sure than that: what
/// this leaves of them counts as change, on the safe side. A round of fewer than a hundred I/Os has its longest one for a p99.
fn percentiles(latency: &Latency, p: f64) -> Option<Vec<RoundPercentile>> {
    let read = |text: &str| Histogram::from_base64(text).ok();
    let rounds: Option<Vec<Histogram>> = latency.rounds.iter().map(|round| read(&round.histogram)).collect();
    let of_round = |round: &Histogram| {
        let off = (p * (1.0 - p) / round.count() as f64).sqrt();
        let log = |p: f64| round.quantile_unchecked(p).map(|ns| (ns.max(1) as f64).ln());
        let (below, log, above) = (log(p - off)?, log(p)?, log(p + off)?);
        Some(RoundPercentile { log, chance: ((above - below) / 2.0).powi(2) })
    };
    Some(rounds?.iter().filter(|round| round.count() > 0).filter_map(of_round).collect())
}

/// The variance from round to round that a 95 % range stands for if nothing else makes it wide.
fn variance_of_range(figure: Estimate, rounds: usize) -> f64 {
    let side = |wide: Option<f64>| wide.map(|factor| factor.max(1.0).ln());
    let (up, down) =
        (side(figure.high.map(|high| high / figure.mean)), side(figure.low.map(|low| figure.mean / low)));
    // Where one end is not known, the other one stands for it.
    let half_width = match (up, down) {
        (Some(up), Some(down)) => f64::midpoint(up, down),
        (up, down) => up.or(down).unwrap_or(0.0),
    };
    if rounds < 2 {
        return 0.0;
    }
    rounds as f64 * (half_width / t_quantile(OUTSIDE, rounds as f64 - 1.0)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Answer;
    use crate::compared::compare;
    use crate::figure::figure;
    use crate::testing::{cell, record, with_halves, with_rates};
    use rdsk_model::{CellRecord, Record};
    use rdsk_stats::rng::SplitMix64;
    use rdsk_stats::{SparseHistogram, mean};

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
        let drifts: Vec<f64> =
            (0..400).map(|seed| drift_of(noisy(seed, visits, of_round, of_visit))).collect();
        mean(&drifts).unwrap()
    }

    /// Rounds that change by 5 % show 0.0025 in log₂ 6 octaves, however many visits they have of how much noise.
    #[test]
    fn what_rounds_change_by_is_found_whatever_they_are_made_of() {
        let octaves = 6.0_f64.log2();
        for (visits, of_visit) in [(1, 0.01), (1, 0.03), (2, 0.04), (5, 0.06), (6, 0.06)] {
            let drift = mean_drift(visits, 0.05, of_visit) * octaves;
            assert!((drift - 0.0025).abs() < 0.0004, "{visits} visits with {of_visit}: {drift}");
        }
    }

    /// Without a change, what is left is what chance leaves of a difference that is as often below 0.
    #[test]
    fn the_noise_of_visits_is_no_drift() {
        for visits in [1, 2, 5, 6] {
            let variance = 0.06_f64.powi(2) / visits as f64;
            let drift = mean_drift(visits, 0.0, 0.06) * 6.0_f64.log2();
            assert!(drift < 0.4 * variance, "{visits} visits: {drift} of {variance}");
        }
    }

    #[test]
    fn rounds_of_one_visit_and_of_several_count_alike_and_few_halves_say_nothing() {
        let visit = |rate: f64, by: f64| vec![(rate + by, rate - by)];
        let three =
            |rate: f64, by: f64| [visit(rate, by), visit(rate, 0.0), visit(rate - 2.0 * by, by)].concat();
        let rounds =
            [visit(100.0, 9.0), three(90.0, 4.0), visit(110.0, -9.0), three(100.0, -5.0), visit(105.0, 4.0)];
        let mixed = with_halves(cell("a"), &rounds);
        let record = record("2026-01-01T00:00:00Z", vec![mixed.clone()]);
        let analysis = Analysis::of(&record);
        let (cell, series) = (&record.cells[0], analysis.rate_series(&record.cells[0]));
        assert_eq!((halves_of_visits(cell).len(), halves_of_windows(cell, series.unwrap()).len()), (2, 3));
        assert!(variance_within(cell, series, 5).is_some() && variance_within(cell, None, 5).is_none());
        // Of three visits the first and the last: ln(90 / 82) · √(1/6); of one its windows: ln(109 / 91) · √(1/4).
        let near =
            |actual: f64, expected: f64| assert!((actual - expected).abs() < 1e-6, "{actual} {expected}");
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
        let still = |moved: &[f64], rounds: usize| {
            assert!(moved.len() == rounds && moved.iter().all(|by| by.abs() < 1e-9), "{moved:?}");
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

    const ROUNDS: u32 = 8;
    /// The rate of an I/O limit: the same in every round.
    const CAPPED: [f64; ROUNDS as usize] = [100.0; ROUNDS as usize];
    /// I/Os of a round, of which every fiftieth is slow: the p99 is the median of these.
    const IOS: u64 = 2_000;
    const SLOW: u64 = 50;

    /// A cell at a capped rate whose slow I/Os take 1 ms times the factor of each round, with a scatter of 10 % of their own.
    fn capped(noise: &mut SplitMix64, factors: &[f64]) -> CellRecord {
        let (mut whole, mut rounds) = (Histogram::new(), std::collections::BTreeMap::new());
        for (round, factor) in (0..).zip(factors) {
            let mut of_round = Histogram::new();
            for place in 0..IOS {
                let typical_ns = if place % SLOW == 0 { 1e6 * factor } else { 1e5 };
                of_round.record(rdsk_analysis::metrics::whole(typical_ns * (0.1 * noise.normal()).exp()));
            }
            whole.merge(&of_round);
            rounds.insert(round, SparseHistogram::from(&of_round));
        }
        let mut cell = with_rates(cell("a"), &CAPPED);
        cell.result.latency_ns = Some(Latency::from(&whole).with_rounds(&rounds));
        cell
    }

    /// Slow noise of which every doubling of the time has as much (1/f), as levels that last 1, 2, 4 … rounds.
    struct Flicker {
        seed: u64,
        each: f64,
    }

    impl Flicker {
        /// How many levels there are: the longest lasts 8192 rounds, which is most of a day of rounds of 7.5 s.
        const LEVELS: u64 = 14;

        /// The factor in a round, counted from the beginning of time.
        fn at(&self, round: u64) -> f64 {
            let level = |level: u64| {
                // Levels of different length begin at different moments.
                let place = (round + level * 977) >> level;
                SplitMix64::new(self.seed ^ (level << 56) ^ (place << 32)).normal()
            };
            (self.each * (0..Self::LEVELS).map(level).sum::<f64>()).exp()
        }

        fn run(&self, started_at: &str, first_round: u64, slower: f64) -> Record {
            let factors: Vec<f64> =
                (first_round..).take(ROUNDS as usize).map(|round| slower * self.at(round)).collect();
            let mut noise = SplitMix64::new(self.seed ^ first_round);
            record(started_at, vec![capped(&mut noise, &factors)])
        }

        /// What two runs of a minute a day apart say of the p99, without the Records' rounds if they are compact.
        fn a_day_apart(&self, slower: f64, change: impl Fn(&mut Latency)) -> Answer {
            let mut runs =
                [self.run("2026-03-01T10:00:00Z", 0, 1.0), self.run("2026-03-02T10:00:00Z", 11_520, slower)];
            for run in &mut runs {
                change(run.cells[0].result.latency_ns.as_mut().unwrap());
            }
            let compared = compare(&runs[0], &[&runs[1]]);
            let cell = &compared.pairs[0].cells[0];
            assert_eq!(cell.change(Metric::Rate).unwrap().answer(), Answer::NoDifferenceSeen);
            cell.change(Metric::P99).unwrap().answer()
        }
    }

    const TRIALS: u64 = 100;

    fn count(each: f64, slower: f64, answer: Answer, change: impl Fn(&mut Latency)) -> usize {
        let trial = |seed: u64| Flicker { seed: 7919 * seed + 1, each }.a_day_apart(slower, &change);
        (0..TRIALS).filter(|&seed| trial(seed) == answer).count()
    }

    /// The rate of a capped device says nothing of how its p99 wanders.
    #[test]
    fn equal_runs_whose_p99_wanders_are_seldom_called_different_and_a_real_difference_is_found() {
        for each in [0.0, 0.02, 0.06] {
            let same = count(each, 1.0, Answer::NoDifferenceSeen, |_| {});
            // 5 of 100 are expected, and three deviations more are 12.
            assert!(same >= 88, "{each}: nothing seen in {same} of {TRIALS}");
        }
        let slower = count(0.02, 2.0, Answer::Slower, |_| {});
        assert!(slower >= 90, "{slower} of {TRIALS} found");
    }

    /// A compact Record has no rounds, and its range says at least as much.
    #[test]
    fn without_the_rounds_the_range_says_how_they_differ() {
        let compact = |latency: &mut Latency| latency.rounds.clear();
        let same = count(0.06, 1.0, Answer::NoDifferenceSeen, compact);
        assert!(same >= 88, "nothing seen in {same} of {TRIALS}");
        let slower = count(0.0, 4.0, Answer::Slower, compact);
        assert!(slower >= 90, "{slower} of {TRIALS} found");
    }

    fn spread_of(cell: &CellRecord, metric: Metric) -> Spread {
        let of_rate = Spread { rounds: 8, drift_per_octave: 0.0 };
        let measured = figure(cell, metric).unwrap();
        latency_spread(cell.result.latency_ns.as_ref().unwrap(), metric, measured, of_rate)
    }

    #[test]
    fn what_a_percentile_changes_by_is_its_own() {
        let factors: Vec<f64> = [0.1_f64, -0.1].repeat(4).iter().map(|log| log.exp()).collect();
        let drifts: Vec<f64> = (0..50)
            .map(|seed| {
                let cell = capped(&mut SplitMix64::new(seed), &factors);
                let (median, tail) = (spread_of(&cell, Metric::P50), spread_of(&cell, Metric::P99));
                assert_eq!((median.rounds, tail.rounds), (8, 8));
                assert!(median.drift_per_octave < 5e-5, "{median:?}");
                tail.drift_per_octave
            })
            .collect();
        // 0.1 beside the mean in eight rounds, over three octaves.
        let expected = 0.01 * 8.0 / 7.0 / 3.0;
        let drift = mean(&drifts).unwrap();
        assert!((drift / expected - 1.0).abs() < 0.1, "{drift}, not {expected}");
    }

    #[test]
    fn a_damaged_round_leaves_the_range() {
        let mut cell = capped(&mut SplitMix64::new(1), &[1.0; 8]);
        let figure = Estimate { mean: 1.0, low: Some(0.8), high: None };
        let latency = cell.result.latency_ns.as_mut().unwrap();
        latency.rounds[3].histogram = "nonsense".into();
        let of_rate = Spread { rounds: 5, drift_per_octave: 0.0 };
        let spread = latency_spread(latency, Metric::P99, figure, of_rate);
        // t(0.975, 4) = 2.776 445.
        let expected = 5.0 * (1.25_f64.ln() / 2.776_445).powi(2) / 5.0_f64.log2();
        assert!(spread.rounds == 5 && (spread.drift_per_octave - expected).abs() < 1e-6, "{spread:?}");
    }
}
