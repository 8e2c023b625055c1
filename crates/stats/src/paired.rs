//! Paired comparison of two series: what both share in a pair, such as the state of a disk in one round, cancels in its
//! ratio. And the correction of several such comparisons for their number. It knows nothing of what was measured.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::lasting::{LastingMean, TimedSample};
use crate::order::{mean, stddev};

/// Fewer pairs than this give no interval: with two, Student's t alone makes it 13 standard errors wide.
pub const MIN_PAIRS: usize = 3;
/// A difference of logarithms below this is that of rounding.
const ROUNDING: f64 = 1e-12;

/// Two figures of one round: when they were taken, in any unit of time, and the two.
pub type TimedPair = (f64, f64, f64);

/// The ratio of the first figure of each pair to the second.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedRatio {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// How many pairs there were.
    pub pairs: usize,
    /// The 95 % interval of the ratio; `None` for fewer than [`MIN_PAIRS`] pairs.
    pub interval: Option<(f64, f64)>,
    /// The mean logarithm of the ratio.
    log: LastingMean,
}

/// The ratio over pairs of positive figures in the order of time: the mean of their log ratios, with the 95 % interval of
/// [`LastingMean`]: two disks of which each has slow times of its own differ for longer than a round. `None` for fewer than two
/// pairs, or if a figure is not positive and finite.
///
/// ```
/// let found = rdsk_stats::paired_ratio(&[(0.0, 2.0, 1.0), (1.0, 4.2, 2.0), (2.0, 1.9, 1.0)]).unwrap();
/// let (low, high) = found.interval.unwrap();
/// assert!(low < 2.0 && 2.0 < high && found.p_value(1.0).unwrap() < 0.01);
/// ```
pub fn paired_ratio(pairs: &[TimedPair]) -> Option<PairedRatio> {
    let is_figure = |x: f64| x.is_finite() && x > 0.0;
    if !pairs.iter().all(|&(_, a, b)| is_figure(a) && is_figure(b)) {
        return None;
    }
    let logs: Vec<TimedSample> = pairs.iter().map(|&(at, a, b)| (at, (a / b).ln())).collect();
    let log = LastingMean::of(&logs)?;
    let half_width = (pairs.len() >= MIN_PAIRS).then(|| log.half_width());
    let interval = half_width.map(|half| ((log.mean - half).exp(), (log.mean + half).exp()));
    Some(PairedRatio { ratio: log.mean.exp(), pairs: pairs.len(), interval, log })
}

impl PairedRatio {
    /// The interval of the ratio that leaves this share outside, above 0 and below 1: the ratios of which [`Self::p_value`] is larger.
    /// `None` for fewer than [`MIN_PAIRS`] pairs.
    pub fn interval_leaving(&self, outside: f64) -> Option<(f64, f64)> {
        let half = self.log.half_width_leaving(outside);
        self.interval.map(|_| ((self.log.mean - half).exp(), (self.log.mean + half).exp()))
    }

    /// Chance of a ratio as far from `expected`, which is positive, as this one or farther if the true one is `expected`;
    /// `None` without an interval.
    pub fn p_value(&self, expected: f64) -> Option<f64> {
        let is_it = (self.log.mean - expected.ln()).abs() < ROUNDING;
        self.interval.map(|_| if is_it { 1.0 } else { self.log.p_value(expected.ln()) })
    }
}

/// Chance that the mean of independent samples lies as far from `expected` as it does or farther if the true mean is
/// `expected`, by Student's t, two-sided; `None` for fewer than [`MIN_PAIRS`] samples.
pub fn mean_p_value(samples: &[f64], expected: f64) -> Option<f64> {
    let error = stddev(samples).filter(|_| samples.len() >= MIN_PAIRS)? / (samples.len() as f64).sqrt();
    two_sided((mean(samples)? - expected).abs(), error, samples.len())
}

/// The p-values corrected for their number, in the order given (Holm 1979): the chance that any true hypothesis among them
/// is rejected below 0.05 is at most 0.05, however they depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - place) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

fn student(samples: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, samples as f64 - 1.0).ok()
}

fn two_sided(away: f64, error: f64, samples: usize) -> Option<f64> {
    if away < ROUNDING {
        return Some(1.0);
    }
    // Samples that are all the same leave no doubt; a division by zero would.
    if error == 0.0 {
        return Some(0.0);
    }
    Some((2.0 * student(samples)?.sf(away / error)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    fn near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} for {expected}");
    }

    /// Pairs of these log ratios, one after the other.
    fn timed(logs: &[f64]) -> Vec<TimedPair> {
        logs.iter().enumerate().map(|(at, log)| (at as f64, log.exp(), 1.0)).collect()
    }

    #[test]
    fn the_interval_and_p_are_those_of_the_tables() {
        // Logs 1, 2, 3: mean 2, standard error √⅓; t(0.975, 2) = 4.302 653. Three pairs cannot show a state.
        let found = paired_ratio(&timed(&[3.0, 1.0, 2.0])).unwrap();
        near(found.ratio, 2.0_f64.exp(), 1e-9);
        let (low, high) = found.interval.unwrap();
        let error = (1.0_f64 / 3.0).sqrt();
        near(low.ln(), 2.0 - 4.302_653 * error, 1e-5);
        near(high.ln(), 2.0 + 4.302_653 * error, 1e-5);
        // At an end of the interval the p-value is 0.05; four errors away from it, t(2) gives 0.057 19.
        near(found.p_value(low).unwrap(), 0.05, 1e-6);
        near(found.p_value((2.0 - 4.0 * error).exp()).unwrap(), 0.057_19, 1e-5);
        near(mean_p_value(&[1.0, 2.0, 3.0, 4.0, 5.0], 3.0 + 2.776_445 * 0.5_f64.sqrt()).unwrap(), 0.05, 1e-6);
    }

    #[test]
    fn an_interval_of_any_share_ends_where_the_chance_is_that_share() {
        let found = paired_ratio(&timed(&[0.01, 0.03, 0.05, 0.04, 0.02, 0.01, 0.03, 0.06])).unwrap();
        assert_eq!(found.interval_leaving(0.05), found.interval);
        for outside in [0.2, 0.01, 0.05 / 92.0] {
            let (low, high) = found.interval_leaving(outside).unwrap();
            near(found.p_value(low).unwrap() / outside, 1.0, 1e-3);
            near(found.p_value(high).unwrap() / outside, 1.0, 1e-3);
        }
        let same = paired_ratio(&[0.0, 1.0, 2.0, 3.0].map(|at| (at, 6.0, 3.0))).unwrap();
        assert_eq!(same.interval_leaving(0.001), same.interval);
        assert_eq!(paired_ratio(&timed(&[0.1, 0.2])).unwrap().interval_leaving(0.05), None);
    }

    #[test]
    fn the_ratio_turns_round_with_its_pairs() {
        let pairs = [(0.0, 10.0, 5.0), (1.0, 21.0, 10.0), (2.0, 8.0, 4.1), (3.0, 3.0, 1.4)];
        let turned = pairs.map(|(at, a, b)| (at, b, a));
        let (one, other) = (paired_ratio(&pairs).unwrap(), paired_ratio(&turned).unwrap());
        near(one.ratio * other.ratio, 1.0, 1e-12);
        near(one.interval.unwrap().0 * other.interval.unwrap().1, 1.0, 1e-12);
        near(one.p_value(1.0).unwrap(), other.p_value(1.0).unwrap(), 1e-12);
    }

    #[test]
    fn too_few_pairs_have_no_interval_and_no_p() {
        let two = paired_ratio(&[(0.0, 2.0, 1.0), (1.0, 4.0, 2.0)]).unwrap();
        assert_eq!((two.pairs, two.interval, two.p_value(1.0)), (2, None, None));
        near(two.ratio, 2.0, 1e-12);
        assert!(paired_ratio(&[]).is_none() && paired_ratio(&[(0.0, 1.0, 1.0)]).is_none());
        for odd in [0.0, f64::NAN, -1.0] {
            assert!(paired_ratio(&[(0.0, 1.0, odd), (1.0, 1.0, 1.0)]).is_none());
        }
        assert_eq!(mean_p_value(&[1.0, 2.0], 0.0), None);
    }

    #[test]
    fn pairs_without_scatter_leave_no_doubt() {
        let four = |a: f64, b: f64| [0.0, 1.0, 2.0, 3.0].map(|at| (at, a, b));
        let same = paired_ratio(&four(3.0, 3.0)).unwrap();
        assert_eq!((same.interval, same.p_value(1.0)), (Some((1.0, 1.0)), Some(1.0)));
        let apart = paired_ratio(&four(6.0, 3.0)).unwrap();
        assert_eq!(apart.p_value(1.0), Some(0.0));
        assert_eq!((mean_p_value(&[0.5; 3], 0.9), mean_p_value(&[0.9; 3], 0.9)), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn holm_is_that_of_the_textbook() {
        // Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, none below the one before it.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(found, expected, 1e-12);
        }
        assert_eq!(holm(&[0.4, 0.9, 0.5]), [1.0, 1.0, 1.0]);
        assert_eq!((holm(&[]), holm(&[0.03])), (Vec::new(), vec![0.03]));
    }

    #[test]
    fn ratios_that_last_leave_more_doubt() {
        let wide = |logs: &[f64]| paired_ratio(&timed(logs)).unwrap().interval.unwrap();
        let (mixed, lasting) = (wide(&[0.1, -0.1].repeat(6)), wide(&[[0.1; 6], [-0.1; 6]].concat()));
        assert!(lasting.1.ln() > 2.0 * mixed.1.ln(), "{lasting:?}, {mixed:?}");
    }

    const TRIALS: u64 = 1000;

    /// Adjusted p-values of three comparisons of disks over these rounds. All share a state that falls by a fifth over the
    /// rounds and wanders, with this correlation from round to round; each has a noise of 2 % of its own.
    fn adjusted(seed: u64, rounds: usize, correlation: f64, factor: f64) -> Vec<f64> {
        let mut noise = seeded(seed);
        let state = noise.autoregressive(rounds, 1.0, 0.1, correlation);
        let state: Vec<f64> =
            (0..rounds).map(|round| state[round] * (1.0 - 0.2 * round as f64 / rounds as f64)).collect();
        let mut disk = |mean: f64| -> Vec<f64> {
            state.iter().map(|state| mean * state * (1.0 + 0.02 * noise.normal())).collect()
        };
        let p_values: Vec<f64> = (0..3)
            .map(|_| {
                let (one, other) = (disk(100.0 * factor), disk(100.0));
                let pairs: Vec<TimedPair> =
                    (0..rounds).map(|round| (round as f64, one[round], other[round])).collect();
                paired_ratio(&pairs).unwrap().p_value(1.0).unwrap()
            })
            .collect();
        holm(&p_values)
    }

    fn trials_with(found: impl Fn(u64) -> bool) -> f64 {
        (0..TRIALS).filter(|&seed| found(seed)).count() as f64 / TRIALS as f64
    }

    #[test]
    fn equal_disks_whose_common_state_drifts_are_seldom_called_different() {
        let mut all = Vec::new();
        for rounds in [3, 4, 6, 12] {
            for correlation in [0.0, 0.9, 0.99] {
                let first = all.len() as u64 * TRIALS;
                let is_any =
                    |seed| adjusted(first + seed, rounds, correlation, 1.0).iter().any(|&p| p < 0.05);
                all.push(trials_with(is_any));
            }
        }
        // Three comparisons at 5 % in all give 4.9 %; three deviations of one setting's count are 2.1 %.
        assert!(all.iter().all(|&any| any <= 0.07), "{all:?}");
        // Of all 12,000 trials together they are 0.6 %.
        assert!(mean(&all).unwrap() <= 0.055, "{all:?}");
    }

    #[test]
    fn a_tenth_is_found_in_noise_of_a_fiftieth() {
        for correlation in [0.0, 0.9, 0.99] {
            let found = trials_with(|seed| adjusted(seed, 6, correlation, 1.1)[0] < 0.05);
            assert!(found >= 0.9, "{correlation}: {found}");
        }
    }
}
