//! How much a percentile of a cell's latencies changes from round to round of its run, beyond what so few I/Os leave to chance. A device
//! whose rate is capped has the same rate in every round, whatever its slow I/Os do; so each percentile is asked for itself. It compares
//! no runs.

use crate::figure::{MIN_ROUNDS, Metric};
use crate::spread::Spread;
use rdsk_model::{Estimate, Latency};
use rdsk_stats::{Histogram, mean, stddev, t_quantile};

/// What is left outside of a range.
const OUTSIDE: f64 = 0.05;

/// What a run shows of slow changes of a percentile, as [`crate::spread::spread`] does of the rate: the variance of the logarithms of
/// the rounds' own percentiles, less what chance leaves of them.
///
/// A Record without the latencies of its rounds (an older one, or a compact one) still has the range of the percentile, which is as wide
/// as the rounds differ: if all of its width is change from round to round, a round changes by the square root of their number times
/// it. That is more than what rounds themselves would show, and never less. `of_rate` is what the rate shows; its rounds are counted then.
pub(crate) fn latency_spread(latency: &Latency, metric: Metric, figure: Estimate, of_rate: Spread) -> Spread {
    let rounds = metric.share().and_then(|p| percentiles(latency, p));
    let Some(rounds) = rounds.filter(|rounds| rounds.len() >= MIN_ROUNDS) else {
        let count = of_rate.rounds;
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

/// The rounds see log₂ of their number octaves of time: see [`crate::spread::spread`].
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
    let all: Option<Vec<Histogram>> = latency.rounds.iter().map(|round| read(&round.histogram)).collect();
    let of_round = |round: &Histogram| {
        let off = (p * (1.0 - p) / round.count() as f64).sqrt();
        let log = |p: f64| round.quantile_unchecked(p).map(|ns| (ns.max(1) as f64).ln());
        let (below, log, above) = (log(p - off)?, log(p)?, log(p + off)?);
        Some(RoundPercentile { log, chance: ((above - below) / 2.0).powi(2) })
    };
    Some(all?.iter().filter(|round| round.count() > 0).filter_map(of_round).collect())
}

/// The variance from round to round that a 95 % range stands for if nothing else makes it wide.
fn variance_of_range(figure: Estimate, rounds: usize) -> f64 {
    let side = |wide: Option<f64>| wide.map(|factor| factor.max(1.0).ln());
    let (up, down) =
        (side(figure.high.map(|high| high / figure.mean)), side(figure.low.map(|low| figure.mean / low)));
    // Where one end is not known, the other one stands for it.
    let half_width = match (up, down) {
        (Some(up), Some(down)) => f64::midpoint(up, down),
        (one, other) => one.or(other).unwrap_or(0.0),
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
    use crate::testing::{cell, record, with_rates};
    use rdsk_model::{CellRecord, Record};
    use rdsk_stats::SparseHistogram;
    use rdsk_stats::rng::SplitMix64;

    const ROUNDS: u32 = 8;
    /// The rate of an I/O limit: the same in every round.
    const CAPPED: [f64; ROUNDS as usize] = [100.0; ROUNDS as usize];
    /// I/Os of a round, of which every fiftieth is slow: the p99 is the median of these.
    const IOS: u64 = 2_000;
    const SLOW: u64 = 50;

    /// A cell at a capped rate whose slow I/Os take 1 ms times the factor of each round, with a scatter of 10 % of their own.
    fn capped(noise: &mut SplitMix64, factors: &[f64]) -> CellRecord {
        let (mut all, mut rounds) = (Histogram::new(), std::collections::BTreeMap::new());
        for (round, factor) in (0..).zip(factors) {
            let mut one = Histogram::new();
            for place in 0..IOS {
                let typical_ns = if place % SLOW == 0 { 1e6 * factor } else { 1e5 };
                one.record(rdsk_analysis::metrics::whole(typical_ns * (0.1 * noise.normal()).exp()));
            }
            all.merge(&one);
            rounds.insert(round, SparseHistogram::from(&one));
        }
        let mut cell = with_rates(cell("a"), &CAPPED);
        cell.result.latency_ns = Some(Latency::from(&all).with_rounds(&rounds));
        cell
    }

    /// Slow noise of which every doubling of the time has as much (1/f), as levels that last 1, 2, 4 … rounds.
    struct Flicker {
        seed: u64,
        each: f64,
    }

    impl Flicker {
        /// Levels of up to so many rounds: more than a day of rounds of 7.5 s.
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
            let found = compare(&runs[0], &[&runs[1]]);
            let cell = &found.pairs[0].cells[0];
            assert_eq!(cell.of(Metric::Rate).unwrap().answer(), Answer::NoDifferenceSeen);
            cell.of(Metric::P99).unwrap().answer()
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
        let found = count(0.02, 2.0, Answer::Slower, |_| {});
        assert!(found >= 90, "{found} of {TRIALS} found");
    }

    /// A compact Record has no rounds, and its range says at least as much.
    #[test]
    fn without_the_rounds_the_range_says_how_they_differ() {
        let compact = |latency: &mut Latency| latency.rounds.clear();
        let same = count(0.06, 1.0, Answer::NoDifferenceSeen, compact);
        assert!(same >= 88, "nothing seen in {same} of {TRIALS}");
        let found = count(0.0, 4.0, Answer::Slower, compact);
        assert!(found >= 90, "{found} of {TRIALS} found");
    }

    fn spread_of(cell: &CellRecord, metric: Metric) -> Spread {
        let of_rate = Spread { rounds: 8, drift_per_octave: 0.0 };
        let found = figure(cell, metric).unwrap();
        latency_spread(cell.result.latency_ns.as_ref().unwrap(), metric, found, of_rate)
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
        let found = mean(&drifts).unwrap();
        assert!((found / expected - 1.0).abs() < 0.1, "{found}, not {expected}");
    }

    #[test]
    fn a_damaged_round_leaves_the_range() {
        let mut cell = capped(&mut SplitMix64::new(1), &[1.0; 8]);
        let figure = Estimate { mean: 1.0, low: Some(0.8), high: None };
        let latency = cell.result.latency_ns.as_mut().unwrap();
        latency.rounds[3].histogram = "nonsense".into();
        let of_rate = Spread { rounds: 5, drift_per_octave: 0.0 };
        let found = latency_spread(latency, Metric::P99, figure, of_rate);
        // t(0.975, 4) = 2.776 445.
        let expected = 5.0 * (1.25_f64.ln() / 2.776_445).powi(2) / 5.0_f64.log2();
        assert!(found.rounds == 5 && (found.drift_per_octave - expected).abs() < 1e-6, "{found:?}");
    }
}
