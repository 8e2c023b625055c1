//! The mean of a few samples that may share a state which lasts: a disk that is slow is slow for a while, so that samples
//! soon after each other say less than as many far apart. How long states last is not known and a few samples hardly show it;
//! so every length that is possible counts as far as the samples fit it. It knows nothing of what was measured.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::order::{mean, stddev};

/// Fewer samples cannot show a state; they count as independent.
const MIN_SAMPLES: usize = 4;
/// How long a state may last, as a share of the time from the first sample to the last. A longer one cannot be distinguished from a level of
/// its own, so nothing is claimed of it.
const LASTS: [f64; 5] = [0.5, 0.25, 0.125, 0.0625, 0.03125];
/// How much of the variance the state has; the rest is each sample's own.
const SHARES: [f64; 2] = [1.0, 0.5];
/// What is left outside a 95 % interval.
const OUTSIDE: f64 = 0.05;
/// Halvings of the bracket of a half-width, to a trillionth of it.
const HALVINGS: usize = 40;

/// A sample and when it was taken, in any unit of time.
pub type TimedSample = (f64, f64);

/// The mean of samples, and how unsure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct LastingMean {
    /// The arithmetic mean.
    pub mean: f64,
    /// How many samples there were.
    pub samples: usize,
    /// For each possible state: how probable it is, together 1, and the standard error of the mean under it.
    states: Vec<(f64, f64)>,
}

/// A state of samples: how long it lasts, in the unit of their times, and its share of the variance.
#[derive(Clone, Copy)]
struct State {
    lasts: f64,
    share: f64,
}

impl LastingMean {
    /// The mean of at least two finite samples in the order of time; times that do not rise count as equal steps.
    ///
    /// Under each state the samples are an autoregressive process of order 1 in continuous time (Ornstein and Uhlenbeck 1930) plus
    /// independent noise; its likelihood without regard to the mean (Harville 1974) says how probable the state is, all being
    /// equally probable before, and independent samples as probable as all others together. The chance of an error is Student's, averaged over the states
    /// (Zellner and Tiao 1964).
    pub fn estimate(samples: &[TimedSample]) -> Option<LastingMean> {
        Self::with_share(samples, 1.0)
    }

    /// The same where a state has at most this share of the variance, from 0 to 1; none at all leaves the samples independent.
    pub(crate) fn with_share(samples: &[TimedSample], most: f64) -> Option<LastingMean> {
        let values: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let (mean, sigma, count) = (mean(&values)?, stddev(&values)?, values.len());
        let own = (sigma * sigma / count as f64).sqrt();
        if sigma == 0.0 || count < MIN_SAMPLES {
            let mean = if sigma == 0.0 { values[0] } else { mean };
            return Some(LastingMean { mean, samples: count, states: vec![(1.0, own)] });
        }
        let times = rising(samples);
        let offs: Vec<f64> = values.iter().map(|value| (value - mean) / sigma).collect();
        let span = times[count - 1] - times[0];
        let each = 1.0 / (LASTS.len() * SHARES.len()) as f64;
        let lasting = LASTS
            .iter()
            .flat_map(|lasts| SHARES.map(|share| (each, State { lasts: lasts * span, share: share * most })));
        let independent = State { lasts: span, share: 0.0 };
        let fits: Vec<(f64, Fit)> = std::iter::once((1.0, independent))
            .chain(lasting)
            .map(|(prior, state)| (prior, fit(&times, &offs, state)))
            .collect();
        let best = fits.iter().map(|(_, fit)| fit.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> =
            fits.iter().map(|(prior, fit)| prior * (fit.log_likelihood - best).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let states = weights.iter().zip(&fits).map(|(weight, (_, fit))| (weight / sum, fit.error * sigma));
        Some(LastingMean { mean, samples: count, states: states.collect() })
    }

    /// The same mean, whose standard error is at least this under every state, whatever the samples show.
    #[must_use]
    pub(crate) fn with_least_error(mut self, least: f64) -> Self {
        for (_, error) in &mut self.states {
            *error = error.max(least);
        }
        self
    }

    /// Half the width of the 95 % interval of the mean.
    pub fn half_width(&self) -> f64 {
        self.half_width_leaving(OUTSIDE)
    }

    /// Half the width of the interval of the mean that leaves this share outside, above 0 and below 1. It is no multiple of the one of
    /// 95 %: the less is left outside, the more the state that leaves most unsure counts.
    pub fn half_width_leaving(&self, outside: f64) -> f64 {
        let Some(student) = self.student() else { return 0.0 };
        let quantile = student.inverse_cdf(1.0 - outside / 2.0);
        let errors = || self.states.iter().map(|(_, error)| *error);
        let (mut low, mut high) =
            (quantile * errors().fold(f64::INFINITY, f64::min), quantile * errors().fold(0.0, f64::max));
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.chance(&student, middle) > outside { low = middle } else { high = middle }
        }
        high
    }

    /// Chance of a mean as far from `expected` as this one or farther if the true one is `expected`.
    pub fn p_value(&self, expected: f64) -> f64 {
        self.chance_of((self.mean - expected).abs())
    }

    /// Chance of a mean as far from the true one as this or farther.
    pub(crate) fn chance_of(&self, away: f64) -> f64 {
        self.student().map_or(1.0, |student| self.chance(&student, away))
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.samples as f64 - 1.0).ok()
    }

    fn chance(&self, student: &StudentsT, away: f64) -> f64 {
        let part = |&(weight, error): &(f64, f64)| {
            let tail = match error {
                // Samples that are all the same leave no doubt; a division by zero would.
                0.0 if away > 0.0 => 0.0,
                0.0 => 0.5,
                error => student.sf(away / error),
            };
            2.0 * weight * tail
        };
        self.states.iter().map(part).sum::<f64>().min(1.0)
    }
}

/// The times if each is later than the one before, else equal steps.
fn rising(samples: &[TimedSample]) -> Vec<f64> {
    let is_rising = samples.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let time = |(place, sample): (usize, &TimedSample)| if is_rising { sample.0 } else { place as f64 };
    samples.iter().enumerate().map(time).collect()
}

/// How well a state fits, and what it leaves unsure.
struct Fit {
    log_likelihood: f64,
    /// Standard error of the mean.
    error: f64,
}

/// The fit of standardized samples, by the recursion of Kalman (1960) over the samples and over a constant beside them: both need
/// the same steps.
fn fit(times: &[f64], offs: &[f64], state: State) -> Fit {
    let count = offs.len() as f64;
    // What is expected of the sample and of the constant, and the variance of the state.
    let (mut of_sample, mut of_constant, mut variance) = (0.0, 0.0, state.share);
    let (mut squares, mut products, mut constants, mut log_determinant) = (0.0, 0.0, 0.0, 0.0);
    // Sum of the correlations of each sample with all before it, which the variance of the mean needs.
    let (mut with_earlier, mut correlations) = (0.0, 0.0);
    for (index, off) in offs.iter().enumerate() {
        if let Some(before) = index.checked_sub(1) {
            let kept = (-(times[index] - times[before]) / state.lasts).exp();
            of_sample *= kept;
            of_constant *= kept;
            variance = kept * kept * variance + state.share * (1.0 - kept * kept);
            with_earlier = (with_earlier + 1.0) * kept;
            correlations += state.share * with_earlier;
        }
        let expected = variance + 1.0 - state.share;
        let (sample, constant) = (off - of_sample, 1.0 - of_constant);
        log_determinant += expected.ln();
        squares += sample * sample / expected;
        products += sample * constant / expected;
        constants += constant * constant / expected;
        let gain = variance / expected;
        of_sample += gain * sample;
        of_constant += gain * constant;
        variance -= gain * variance;
    }
    let left = (squares - products * products / constants).max(f64::MIN_POSITIVE);
    let freedom = count - 1.0;
    Fit {
        log_likelihood: -0.5 * (log_determinant + constants.ln() + freedom * left.ln()),
        error: (left / freedom * (count + 2.0 * correlations)).sqrt() / count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    const TRIALS: u64 = 500;

    fn timed(values: &[f64]) -> Vec<TimedSample> {
        values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect()
    }

    /// A state of 60 s in steps of 0.1 s, seen for 0.4 s each 60 / `rounds` s.
    fn rounds(course: &[f64], rounds: usize) -> Vec<TimedSample> {
        let begin = |round: usize| round * course.len() / rounds;
        let seen = |round: usize| crate::mean(&course[begin(round)..begin(round) + 4]).unwrap();
        (0..rounds).map(|round| (begin(round) as f64, seen(round))).collect()
    }

    /// Shares of the courses whose interval holds 0, and whose mean is called something else with a chance of 1 %.
    fn held(course: impl Fn(&mut SplitMix64) -> Vec<f64>, count: usize) -> (f64, f64) {
        let (mut held, mut called) = (0, 0);
        for seed in 0..TRIALS {
            let found = LastingMean::estimate(&rounds(&course(&mut seeded(seed)), count)).unwrap();
            held += u32::from(found.mean.abs() <= found.half_width());
            called += u32::from(found.p_value(0.0) < 0.01);
        }
        (f64::from(held) / TRIALS as f64, f64::from(called) / TRIALS as f64)
    }

    #[test]
    fn the_mean_of_states_that_last_is_held() {
        for count in [8, 12, 24] {
            let (independent, never) = held(|noise| noise.series(600, 0.0, 0.1), count);
            assert!(independent >= 0.95 && never <= 0.01, "{count}: {independent}, {never}");
            for rho in [0.9, 0.99] {
                let (lasting, never) = held(|noise| noise.autoregressive(600, 0.0, 0.1, rho), count);
                assert!(lasting >= 0.88 && never <= 0.025, "{count}, {rho}: {lasting}, {never}");
            }
            let (levels, never) = held(|noise| noise.two_levels(600, 0.2, 50.0), count);
            assert!(levels >= 0.9 && never <= 0.01, "{count}: {levels}, {never}");
        }
    }

    /// What is not there costs little: independent samples have intervals that are at most 1.4 times Student's.
    #[test]
    fn independent_samples_stay_nearly_as_precise() {
        for count in [8, 12, 24] {
            let wider = |seed: u64| {
                let values = seeded(seed).series(count, 0.0, 1.0);
                let plain = crate::mean_interval(&values).unwrap();
                LastingMean::estimate(&timed(&values)).unwrap().half_width() * 2.0 / (plain.high - plain.low)
            };
            let ratios: Vec<f64> = (0..TRIALS).map(wider).collect();
            let median = crate::median(&ratios).unwrap();
            assert!((1.0..=1.4).contains(&median), "{count}: {median}");
        }
    }

    #[test]
    fn the_end_of_the_interval_has_a_chance_of_one_in_twenty() {
        let found = LastingMean::estimate(&timed(&[1.0, 2.0, 2.5, 2.0, 1.0, 0.5, 1.5])).unwrap();
        let end = found.mean + found.half_width();
        assert!((found.p_value(end) - 0.05).abs() < 1e-6);
        assert!((found.p_value(found.mean) - 1.0).abs() < 1e-12 && found.p_value(end + 1.0) < 0.05);
    }

    /// The tail is that of the state that leaves most unsure, and no one Student's t.
    #[test]
    fn every_interval_leaves_the_share_outside_that_it_is_asked_for() {
        let found = LastingMean::estimate(&timed(&[1.0, 2.0, 2.5, 2.0, 1.0, 0.5, 1.5, 2.2])).unwrap();
        for outside in [0.3, 0.05, 0.01, 0.05 / 92.0, 1e-6] {
            let left = found.p_value(found.mean + found.half_width_leaving(outside));
            assert!((left / outside - 1.0).abs() < 1e-3, "{outside}: {left}");
        }
        assert_eq!(found.half_width_leaving(0.05), found.half_width());
        let as_one = |outside: f64| found.half_width_leaving(outside) / crate::t_quantile(outside, 7.0);
        assert!(as_one(0.05 / 92.0) > 1.2 * as_one(0.05), "{} {}", as_one(0.05 / 92.0), as_one(0.05));
    }

    /// Of fourteen values, seven before and seven after a jump say less than the same ones in turn.
    #[test]
    fn order_and_distance_in_time_count() {
        let width = |samples: &[TimedSample]| LastingMean::estimate(samples).unwrap().half_width();
        let (one, other) = ([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.05], [2.0, 2.1, 1.9, 2.0, 2.2, 1.8, 2.05]);
        let apart = [one, other].concat();
        let mixed: Vec<f64> = one.iter().zip(&other).flat_map(|(one, other)| [*one, *other]).collect();
        assert!(width(&timed(&apart)) > 1.5 * width(&timed(&mixed)));
        // With a pause at the jump, the neighbours on both sides of it need not resemble each other.
        let paused: Vec<TimedSample> =
            (0..14).map(|at| (at as f64 + if at < 7 { 0.0 } else { 100.0 }, apart[at])).collect();
        assert!(width(&paused) > 1.1 * width(&timed(&apart)));
        // Times that do not rise are equal steps.
        let untimed: Vec<TimedSample> = apart.iter().map(|value| (0.0, *value)).collect();
        assert!((width(&untimed) - width(&timed(&apart))).abs() < 1e-12);
    }

    #[test]
    fn few_and_equal_samples_are_students() {
        // Mean 2, standard error √⅓, t(0.975, 2) = 4.302 653.
        let three = LastingMean::estimate(&timed(&[1.0, 2.0, 3.0])).unwrap();
        assert!((three.half_width() - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-5);
        let equal = LastingMean::estimate(&timed(&[0.1; 9])).unwrap();
        assert_eq!((equal.mean, equal.half_width()), (0.1, 0.0));
        assert_eq!((equal.p_value(0.1), equal.p_value(0.2)), (1.0, 0.0));
        assert!(LastingMean::estimate(&timed(&[1.0])).is_none());
        assert!(LastingMean::estimate(&timed(&[1.0, f64::NAN, 2.0, 3.0])).is_none());
    }
}
