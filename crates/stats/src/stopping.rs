//! When a measurement may stop: its mean is known to the wanted precision. Never stops by luck, and never
//! knows how much time is left; budgets belong to whoever runs the measurement.

use crate::{Interval, batch_interval, mser5};

/// No decision before this many windows, and none on fewer after the warm-up cut: a handful of windows agree
/// by chance too often.
const MIN_WINDOWS: usize = 20;

/// Stop when the 95 % confidence interval of the mean is narrow enough.
///
/// ```
/// use rdsk_stats::{Stop, StopRule};
/// let rule = StopRule { precision: 0.02 };
/// assert_eq!(rule.decide(&[100.0; 5]), Stop::Continue);
/// assert!(matches!(rule.decide(&[100.0; 20]), Stop::Precise(interval) if interval.mean == 100.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// The wanted half-width of the interval relative to the mean, in (0, 1): 0.02 is ±2 %.
    pub precision: f64,
}

/// What to do after a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stop {
    /// Measure on.
    Continue,
    /// The mean is known to the wanted precision. The interval is that of the windows the decision was taken
    /// on: after the warm-up cut, up to the last checkpoint.
    Precise(Interval),
}

impl StopRule {
    /// Decides on all windows so far, in the order of time, warm-up included. Meant to be called after every
    /// window; 4096 windows take well under a millisecond.
    ///
    /// Looking again and again at an interval until it is narrow finds the moment at which it is narrow by
    /// chance. So the windows are looked at only at checkpoints, 20 and then a quarter more each time, which
    /// are 25 looks up to 4096 windows, and between two checkpoints the answer stays that of the last.
    ///
    /// A series that still drifts has correlated batches, hence an interval about as wide as the drift, and
    /// stops only if the drift is smaller than the precision; whether there is one, [`mser5`] says. What no
    /// rule can see is a change after the stop: a warm-up that holds still for longer than the first checkpoint
    /// looks like the steady state.
    pub fn decide(&self, windows: &[f64]) -> Stop {
        let Some(checkpoint) = last_checkpoint(windows.len()) else { return Stop::Continue };
        let seen = &windows[..checkpoint];
        let kept = &seen[mser5(seen).cut..];
        if kept.len() < MIN_WINDOWS {
            return Stop::Continue;
        }
        match batch_interval(kept) {
            Some(interval) if interval.half_width_rel() <= self.precision => Stop::Precise(interval),
            _ => Stop::Continue,
        }
    }
}

/// The largest checkpoint that `count` windows have reached.
fn last_checkpoint(count: usize) -> Option<usize> {
    let next = |checkpoint: &usize| Some(checkpoint + checkpoint.div_ceil(4));
    std::iter::successors(Some(MIN_WINDOWS), next).take_while(|&checkpoint| checkpoint <= count).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    const RULE: StopRule = StopRule { precision: 0.02 };

    /// Feeds a series window by window until the rule stops; gives the number of windows and the interval.
    fn run(windows: &[f64]) -> Option<(usize, Interval)> {
        (1..=windows.len()).find_map(|n| match RULE.decide(&windows[..n]) {
            Stop::Precise(interval) => Some((n, interval)),
            Stop::Continue => None,
        })
    }

    /// The share of seeded series whose mean at the stop is within the precision of `truth`, and the median
    /// stop.
    fn right_stops(truth: f64, make: impl Fn(&mut SplitMix64) -> Vec<f64>) -> (f64, f64) {
        const TRIALS: u64 = 300;
        let (mut right, mut lengths) = (0.0, Vec::new());
        for seed in 0..TRIALS {
            let windows = make(&mut seeded(seed));
            let (n, interval) = run(&windows).expect("the series is long enough");
            right += f64::from(u8::from((interval.mean / truth - 1.0).abs() <= RULE.precision));
            lengths.push(n as f64);
        }
        (right / TRIALS as f64, crate::median(&lengths).unwrap())
    }

    #[test]
    fn the_mean_at_the_stop_is_right() {
        let (right, length) = right_stops(100.0, |noise| noise.series(1000, 100.0, 10.0));
        // Had it been known that the noise is 10 %, 96 windows would have been enough.
        assert!(right >= 0.9 && length <= 200.0, "{right}, {length}");
        let (right, length) = right_stops(100.0, |noise| noise.autoregressive(4096, 100.0, 10.0, 0.5));
        assert!(right >= 0.9 && length <= 600.0, "{right}, {length}");
        let (right, length) = right_stops(0.3, |noise| noise.on_off(2000, 10.0, 3.0));
        assert!(right >= 0.9 && length <= 600.0, "{right}, {length}");
    }

    #[test]
    fn a_warm_up_does_not_enter_the_mean() {
        let plateau = right_stops(100.0, |noise| {
            let mut windows = noise.series(1000, 100.0, 3.0);
            windows.iter_mut().take(10).for_each(|window| *window *= 0.3);
            windows
        });
        let ramp = right_stops(100.0, |noise| {
            let mut windows = noise.series(1000, 100.0, 3.0);
            (0..30).for_each(|index| windows[index] *= (index + 1) as f64 / 30.0);
            windows
        });
        assert!(plateau.0 >= 0.9 && ramp.0 >= 0.9, "{plateau:?}, {ramp:?}");
        assert!(plateau.1 <= 100.0 && ramp.1 <= 150.0, "{plateau:?}, {ramp:?}");
    }

    #[test]
    fn what_is_not_known_does_not_stop() {
        assert_eq!(RULE.decide(&[]), Stop::Continue);
        assert_eq!(RULE.decide(&[5.0; 19]), Stop::Continue);
        assert_eq!(run(&[0.0; 500]), None);
        let ramp: Vec<f64> = (100..400).map(f64::from).collect();
        assert_eq!(run(&ramp), None);
        let mut late_drop = [100.0; 200];
        late_drop[150..].fill(60.0);
        assert_eq!(RULE.decide(&late_drop), Stop::Continue);
        let noisy = seeded(5).series(500, 100.0, 60.0);
        assert_eq!(run(&noisy), None);
        let with_nan = [&[5.0; 10][..], &[f64::NAN; 20]].concat();
        assert_eq!(run(&with_nan), None);
    }

    #[test]
    fn checkpoints_grow_by_a_quarter() {
        assert_eq!(
            [19, 20, 24, 25, 31, 32].map(last_checkpoint),
            [None, Some(20), Some(20), Some(25), Some(25), Some(32)]
        );
        let looks: std::collections::BTreeSet<_> = (0..=4096).filter_map(last_checkpoint).collect();
        assert!(looks.len() <= 25, "{}", looks.len());
    }
}
