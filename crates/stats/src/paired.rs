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

/// A figure that is read from steps, such as a percentile from the buckets of a histogram, and what it may have been.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// As it is reported.
    pub value: f64,
    /// The least that is reported like this.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Stepped {
    /// A figure that no steps round.
    pub const fn exact(value: f64) -> Self {
        Self { value, least: value, most: value }
    }

    fn is_sound(&self) -> bool {
        self.least > 0.0 && self.least <= self.value && self.value <= self.most && self.most.is_finite()
    }

    /// How wide its step is, as a difference of logarithms.
    pub fn width(&self) -> f64 {
        (self.most / self.least).ln()
    }
}

/// As [`TimedPair`], of figures that are read from steps.
pub type SteppedPair = (f64, Stepped, Stepped);

/// The ratio of the first figure of each pair to the second.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedRatio {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// How many pairs there were.
    pub pairs: usize,
    /// The 95 % interval of the ratio; `None` for fewer than [`MIN_PAIRS`] pairs.
    pub interval: Option<(f64, f64)>,
    /// The mean logarithm of the ratio, and what its samples leave unsure.
    log: LastingMean,
    /// How far below it that of the figures before they were rounded may lie: the mean of what the steps hide.
    below: f64,
    /// The same above it.
    above: f64,
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
    let exact = |&(at, a, b): &TimedPair| (at, Stepped::exact(a), Stepped::exact(b));
    paired_ratio_of_steps(&pairs.iter().map(exact).collect::<Vec<_>>())
}

/// The same of figures that are read from steps. What a step hides is a part of the doubt, twice: a steady figure falls into the same step
/// again and again, so that its roundings are all alike and no number of pairs makes them cancel; so the interval is that of the
/// samples, moved out by all that the steps may hide. And figures that scatter by less than a step show none of their scatter; so the
/// error of the mean has at least the variance of independent roundings, that of a step's width over twelve for each figure.
/// [`PairedRatio::p_value`] follows the interval: of ratios that the steps alone allow it is 1.
pub fn paired_ratio_of_steps(pairs: &[SteppedPair]) -> Option<PairedRatio> {
    if !pairs.iter().all(|(_, a, b)| a.is_sound() && b.is_sound()) {
        return None;
    }
    let logs: Vec<TimedSample> = pairs.iter().map(|&(at, a, b)| (at, (a.value / b.value).ln())).collect();
    let mean_of = |hidden: fn(&SteppedPair) -> f64| mean(&pairs.iter().map(hidden).collect::<Vec<f64>>());
    let below = mean_of(|(_, a, b)| (a.value / a.least).ln() + (b.most / b.value).ln())?;
    let above = mean_of(|(_, a, b)| (a.most / a.value).ln() + (b.value / b.least).ln())?;
    let rounding = mean_of(|(_, a, b)| (a.width().powi(2) + b.width().powi(2)) / 12.0)?;
    let log = LastingMean::estimate(&logs)?.with_least_error((rounding / pairs.len() as f64).sqrt());
    let compared =
        PairedRatio { ratio: log.mean.exp(), pairs: pairs.len(), interval: None, log, below, above };
    let half_width = (pairs.len() >= MIN_PAIRS).then(|| compared.log.half_width());
    Some(PairedRatio { interval: half_width.map(|half| compared.around(half)), ..compared })
}

impl PairedRatio {
    /// The interval of the ratio that leaves this share outside, above 0 and below 1: the ratios of which [`Self::p_value`] is larger.
    /// `None` for fewer than [`MIN_PAIRS`] pairs.
    pub fn interval_leaving(&self, outside: f64) -> Option<(f64, f64)> {
        self.interval.map(|_| self.around(self.log.half_width_leaving(outside)))
    }

    /// Chance of a ratio as far from `expected`, which is positive, as this one or farther if the true one is `expected`;
    /// `None` without an interval.
    pub fn p_value(&self, expected: f64) -> Option<f64> {
        let off = self.log.mean - expected.ln();
        let away = if off > 0.0 { off - self.below } else { -off - self.above };
        self.interval.map(|_| if away < ROUNDING { 1.0 } else { self.log.chance_of(away) })
    }

    /// The ratios from this far below what the steps allow to as far above it.
    fn around(&self, half: f64) -> (f64, f64) {
        let mean = self.log.mean;
        ((mean - self.below - half).exp(), (mean + self.above + half).exp())
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

    /// A figure as steps of 1 % say it: the upper end of its own.
    fn in_steps(log: f64) -> Stepped {
        let step = (log * 100.0).floor() / 100.0;
        Stepped { value: (step + 0.01).exp(), least: step.exp(), most: (step + 0.01).exp() }
    }

    fn of_steps(pairs: &[(f64, f64)]) -> PairedRatio {
        let pair = |(at, &(a, b)): (usize, &(f64, f64))| (at as f64, in_steps(a), in_steps(b));
        paired_ratio_of_steps(&pairs.iter().enumerate().map(pair).collect::<Vec<_>>()).unwrap()
    }

    /// On both sides of an edge: the steps allow anything from the same to two of them.
    #[test]
    fn a_difference_of_a_step_is_none() {
        for pairs in [3, 4, 6, 20] {
            let found = of_steps(&vec![(0.501, 0.499); pairs]);
            near(found.ratio.ln(), 0.01, 1e-12);
            let (low, high) = found.interval.unwrap();
            assert!(low < 1.0 && high > 0.02_f64.exp(), "{pairs}: {low} {high}");
            assert_eq!(found.p_value(1.0), Some(1.0), "{pairs}");
        }
        // Of three pairs two steps apart the distance beyond the steps is a width; t = 1 / (√(2/12) / √3) = 4.243 with 2 degrees.
        let apart = of_steps(&[(0.515, 0.495); 3]);
        near(apart.p_value(1.0).unwrap(), 0.0513, 1e-4);
        near(apart.interval_leaving(apart.p_value(1.0).unwrap()).unwrap().0, 1.0, 1e-6);
        assert!(of_steps(&[(0.555, 0.495); 5]).p_value(1.0).unwrap() < 0.001, "what is far apart is found");
        let broken = Stepped { value: 1.0, least: 1.1, most: 1.2 };
        assert_eq!(paired_ratio_of_steps(&[(0.0, broken, broken); 3]), None);
    }

    /// Whatever they scatter by and wherever the edges lie, equal figures have a p below any level in no more of all trials than that
    /// level, and one that is larger by five steps is found.
    #[test]
    fn figures_in_steps_are_called_different_as_seldom_as_they_scatter() {
        let mut found = 0;
        for pairs in 3..=6 {
            for scatter in [0.0, 0.001, 0.003, 0.005, 0.01, 0.02] {
                let p_value = |seed: u64, by: f64| {
                    let mut noise = seeded(seed);
                    let middle = 0.5 + 0.0025 * (seed % 4) as f64;
                    let mut one = |by: f64| middle + by + scatter * noise.normal();
                    let pairs: Vec<(f64, f64)> = (0..pairs).map(|_| (one(by), one(0.0))).collect();
                    of_steps(&pairs).p_value(1.0).unwrap()
                };
                let equal: Vec<f64> = (0..TRIALS).map(|seed| p_value(seed, 0.0)).collect();
                for level in [0.05, 0.005] {
                    let different = equal.iter().filter(|p| **p < level).count() as f64 / TRIALS as f64;
                    // Three deviations of 1000 trials are 2.1 % and 0.7 % more.
                    let most = level + 3.0 * (level / TRIALS as f64).sqrt();
                    assert!(different <= most, "{pairs} pairs, {scatter}: {different} at {level}");
                }
                found += (0..50).filter(|&seed| p_value(seed, 0.05) < 0.05).count();
            }
        }
        assert!(found >= 800, "{found} of 1200");
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
