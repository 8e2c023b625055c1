//! The logarithm of the ratio of two figures, and how unsure it is. Only numbers: what was measured is not its business.

use crate::figure::MIN_ROUNDS;
use crate::spread::Spread;
use rdsk_model::Estimate;
use rdsk_stats::{PairedRatio, t_quantile, t_tail};

/// How much two runs of the same thing differ even where both are perfectly steady, as a standard deviation: where the kernel
/// put their memory, interrupts and threads (Mytkowicz and others 2009, Kalibera and Jones 2013, who found 1 % and more in processor
/// times). No run can see it in itself.
const UNSEEN: f64 = 0.005;
/// What is left outside of the interval of a figure.
const OUTSIDE: f64 = 0.05;
/// More degrees of freedom make no difference: Student's t is then normal to a thousandth.
const MANY: f64 = 1000.0;
/// A difference of logarithms below this is that of rounding.
const ROUNDING: f64 = 1e-9;

/// A part of a variance, and the degrees of freedom that it was estimated with.
type Part = (f64, f64);

/// Standard error towards one side, and its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Error {
    size: f64,
    freedom: f64,
}

impl Error {
    /// Independent parts together (Welch 1947, Satterthwaite 1946).
    fn joined(parts: &[Part]) -> Self {
        let sum: f64 = parts.iter().map(|part| part.0).sum();
        let squares: f64 = parts.iter().map(|(variance, freedom)| variance * variance / freedom).sum();
        let freedom = match (sum.is_finite(), squares > 0.0) {
            (true, true) => (sum * sum / squares).min(MANY),
            (true, false) => MANY,
            (false, _) => 1.0,
        };
        Self { size: sum.sqrt(), freedom }
    }
}

/// How far the true logarithm of a ratio may lie from the one that was found.
#[derive(Clone, Debug, PartialEq)]
enum Doubt {
    /// Of one run each: below it and above it.
    OfRuns { below: Error, above: Error },
    /// Of pairs of runs: what the states leave open in which they may have been, which no single width says.
    OfPairs(PairedRatio),
}

/// The logarithm of a ratio.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRatio {
    /// Its value.
    mean: f64,
    doubt: Doubt,
}

impl LogRatio {
    /// Of a figure to that of another run. The interval of each is one side of the interval of their difference (the method of
    /// variance estimates recovery, Zou and Donner 2008); to that come the changes that are slower than a run, over the
    /// octaves of time that lie between the two. `None` where a run shows too little.
    ///
    /// Of two runs of ten rounds each, one at 100 and one at 95, both ± 2 %, each interval is 2.26 standard errors wide to either side
    /// (Student's t of 9 degrees): ln 1.02 / 2.26 = 0.0088 each. With the 0.005 that no run sees that is
    /// √(0.0088² + 0.0088² + 0.005²) = 0.0134 of 24 degrees: the ratio is 0.95 within e^±(2.06 × 0.0134), 0.924 to 0.977. If each run
    /// drifts by 0.02 per octave and a day lies between runs of a minute, 10.5 octaves, that adds 2 × 10.5 × 0.02²: the error
    /// is 0.093 and the ratio 0.78 to 1.15, so nothing differs.
    pub(crate) fn of_runs(base: (Estimate, Spread), other: (Estimate, Spread), octaves: f64) -> Option<Self> {
        let (base, base_spread) = base;
        let (other, other_spread) = other;
        let is_enough = |spread: Spread| spread.rounds >= MIN_ROUNDS;
        if !is_enough(base_spread) || !is_enough(other_spread) {
            return None;
        }
        let up = |figure: Estimate, spread| Some(side(figure.high? / figure.mean, spread));
        let down = |figure: Estimate, spread| Some(side(figure.mean / figure.low?, spread));
        let (base_up, base_down) = (up(base, base_spread), down(base, base_spread));
        let (other_up, other_down) = (up(other, other_spread), down(other, other_spread));
        let drift = |spread: Spread| (spread.drift_per_octave * octaves, spread.rounds as f64 - 1.0);
        let slow = [drift(base_spread), drift(other_spread), (UNSEEN * UNSEEN, MANY)];
        let error = |first: Option<Part>, second: Option<Part>| {
            let open = (f64::INFINITY, 1.0);
            let own = [first.unwrap_or(open), second.unwrap_or(open)];
            Error::joined(&[&own[..], &slow[..]].concat())
        };
        // Without one whole end there is nothing to judge.
        let has_end =
            (other_down.is_some() && base_up.is_some()) || (other_up.is_some() && base_down.is_some());
        has_end.then(|| Self {
            mean: (other.mean / base.mean).ln(),
            doubt: Doubt::OfRuns { below: error(other_down, base_up), above: error(other_up, base_down) },
        })
    }

    /// Over pairs of runs; `None` where there are too few of them.
    pub(crate) fn of_pairs(paired: PairedRatio) -> Option<Self> {
        paired.interval.map(|_| Self { mean: paired.ratio.ln(), doubt: Doubt::OfPairs(paired) })
    }

    /// The interval of the ratio that leaves this share outside.
    pub(crate) fn interval(&self, outside: f64) -> (f64, f64) {
        let half = |error: Error| {
            if error.size > 0.0 { error.size * t_quantile(outside, error.freedom) } else { 0.0 }
        };
        match &self.doubt {
            Doubt::OfRuns { below, above } => {
                ((self.mean - half(*below)).exp(), (self.mean + half(*above)).exp())
            }
            Doubt::OfPairs(paired) => paired.interval_leaving(outside).unwrap_or((0.0, f64::INFINITY)),
        }
    }

    /// Chance of a ratio as far from 1 as this one or farther if the true one is 1.
    pub(crate) fn p_value(&self) -> f64 {
        if self.mean.abs() < ROUNDING {
            return 1.0;
        }
        let towards_one = match &self.doubt {
            Doubt::OfRuns { below, .. } if self.mean > 0.0 => below,
            Doubt::OfRuns { above, .. } => above,
            Doubt::OfPairs(paired) => return paired.p_value(1.0).unwrap_or(1.0),
        };
        if towards_one.size == 0.0 {
            return 0.0;
        }
        (2.0 * t_tail(self.mean.abs() / towards_one.size, towards_one.freedom)).min(1.0)
    }
}

/// The variance that half of a 95 % interval stands for.
fn side(factor: f64, spread: Spread) -> Part {
    let freedom = spread.rounds as f64 - 1.0;
    let size = factor.max(1.0).ln() / t_quantile(OUTSIDE, freedom);
    (size * size, freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_stats::rng::SplitMix64;
    use rdsk_stats::{TimedPair, paired_ratio};

    fn figure(mean: f64, half_width: f64) -> Estimate {
        Estimate { mean, low: Some(mean / half_width.exp()), high: Some(mean * half_width.exp()) }
    }

    fn spread(drift_per_octave: f64) -> Spread {
        Spread { rounds: 12, drift_per_octave }
    }

    fn ratio_of(base: Estimate, other: Estimate, drift: f64, octaves: f64) -> LogRatio {
        LogRatio::of_runs((base, spread(drift)), (other, spread(drift)), octaves).unwrap()
    }

    #[test]
    fn the_interval_is_that_of_welch() {
        // Two errors of 2 %/2.201 with 11 degrees of freedom each, and 0.5 % with a thousand.
        let measured = ratio_of(figure(100.0, 0.02), figure(100.0, 0.02), 0.0, 1.0);
        let each = (0.02_f64 / 2.200_985).powi(2);
        let sum = 2.0 * each + UNSEEN * UNSEEN;
        let freedom = sum * sum / (2.0 * each * each / 11.0 + UNSEEN.powi(4) / MANY);
        let (low, high) = measured.interval(0.05);
        let expected = sum.sqrt() * t_quantile(0.05, freedom);
        assert!((high.ln() - expected).abs() < 1e-6 && (low.ln() + expected).abs() < 1e-6, "{low} {high}");
        assert_eq!(measured.p_value(), 1.0);
        let at_end = ratio_of(figure(100.0, 0.02), figure(100.0 * expected.exp(), 0.02), 0.0, 1.0);
        assert!((at_end.p_value() - 0.05).abs() < 1e-6);
    }

    #[test]
    fn drift_and_time_between_the_runs_leave_more_doubt() {
        let width = |drift, octaves| {
            let (low, high) =
                ratio_of(figure(100.0, 0.01), figure(95.0, 0.01), drift, octaves).interval(0.05);
            high / low
        };
        assert!(width(0.0, 1.0) < width(0.001, 1.0) && width(0.001, 1.0) < width(0.001, 10.0));
        assert!((width(0.0, 1.0) - width(0.0, 10.0)).abs() < 1e-12, "what is steady does not drift");
    }

    #[test]
    fn each_side_has_its_own_doubt() {
        let wide_below = Estimate { mean: 100.0, low: Some(50.0), high: Some(101.0) };
        let (low, high) = ratio_of(figure(100.0, 0.01), wide_below, 0.0, 1.0).interval(0.05);
        assert!(low < 0.6 && high < 1.03, "{low} {high}");
        let open = Estimate { mean: 100.0, low: None, high: Some(101.0) };
        let measured = ratio_of(figure(100.0, 0.01), open, 0.0, 1.0);
        assert_eq!(measured.interval(0.05).0, 0.0, "an end that the run does not show is open");
        let none = Estimate { mean: 1.0, low: None, high: None };
        assert!(LogRatio::of_runs((none, spread(0.0)), (none, spread(0.0)), 1.0).is_none());
    }

    /// Ten pairs in equal steps of time.
    fn of_pairs(logs: &[f64]) -> LogRatio {
        let pairs: Vec<TimedPair> =
            logs.iter().enumerate().map(|(at, log)| (at as f64, log.exp(), 1.0)).collect();
        LogRatio::of_pairs(paired_ratio(&pairs).unwrap()).unwrap()
    }

    /// What the states leave unsure has no Student's t of one width: its tail is that of the widest.
    #[test]
    fn far_out_pairs_leave_the_doubt_of_the_longest_state() {
        let ratio = of_pairs(&[0.055, 0.012, 0.048, 0.031, 0.066, 0.024, 0.04, 0.058, 0.02, 0.046]);
        assert!((ratio.p_value() - 1.6e-3).abs() < 1e-4, "{}", ratio.p_value());
        let (low, high) = ratio.interval(0.05 / 92.0);
        assert!((low - 0.986).abs() < 1e-3 && (high - 1.099).abs() < 1e-3, "{low} {high}");
        let end = ratio.interval(ratio.p_value()).0;
        assert!((end - 1.0).abs() < 1e-6, "interval and chance are of one piece: {end}");
    }

    #[test]
    fn equal_pairs_whose_states_last_are_seldom_called_different_among_92() {
        const TRIALS: u64 = 4000;
        let is_different = |seed: &u64| {
            let mut noise = SplitMix64::new(*seed);
            let mut state = 0.02 * noise.normal();
            let logs: Vec<f64> = (0..10)
                .map(|_| {
                    state = 0.7 * state + 0.02 * 0.51_f64.sqrt() * noise.normal();
                    state
                })
                .collect();
            of_pairs(&logs).p_value() < 0.05 / 92.0
        };
        let different = (0..TRIALS).filter(is_different).count();
        // With one Student's t for all states it was 2.1 %.
        assert!(different as f64 <= 0.006 * TRIALS as f64, "{different} of {TRIALS}");
    }

    #[test]
    fn two_rounds_are_too_few() {
        let few = Spread { rounds: 2, drift_per_octave: 0.0 };
        assert!(LogRatio::of_runs((figure(1.0, 0.1), few), (figure(1.0, 0.1), spread(0.0)), 1.0).is_none());
    }
}
