//! How far out a score is among many, without a law for all of them: the scores beyond a share of all are taken to fall off
//! exponentially, which is slower than a normal distribution does. Only numbers.

use rdsk_stats::{median, quantile_sorted};
use std::f64::consts::LN_2;

/// With this number of disks or more, the tail begins at the last tenth of the scores, with fewer at the last third.
const MANY: usize = 30;
const SHARES: [f64; 2] = [0.1, 1.0 / 3.0];
/// A tail is no shorter than this in standard deviations; that of a normal distribution is 0.5.
const LEAST_EXCESS: f64 = 0.4;
/// The median of an exponential distribution knows half of what its mean does.
const OF_MEDIAN: f64 = 0.5;
/// The scores of one disk in its tests depend on each other: this is the most that they count as.
const MOST_PER_DISK: usize = 4;

/// The upper tail of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    share: f64,
    begin: f64,
    excess: f64,
    /// How many exceedances it is known by.
    weight: f64,
}

impl Tail {
    /// Of the scores of so many disks, in any order. Up to a twentieth of the disks, of few disks a sixth, may be bad: the tail is known
    /// by the median of what exceeds its beginning.
    pub(super) fn of(mut scores: Vec<f64>, disks: usize) -> Option<Self> {
        scores.sort_unstable_by(f64::total_cmp);
        let share = if disks < MANY { SHARES[1] } else { SHARES[0] };
        let begin = quantile_sorted(&scores, 1.0 - share)?;
        let beyond: Vec<f64> =
            scores.iter().filter(|&&score| score > begin).map(|score| score - begin).collect();
        let excess = (median(&beyond).unwrap_or(0.0) / LN_2).max(LEAST_EXCESS);
        let each = (scores.len() / disks.max(1)).clamp(1, MOST_PER_DISK);
        let weight = share * (disks * each) as f64 * OF_MEDIAN;
        Some(Self { share, begin, excess, weight: weight.max(1.0) })
    }

    /// The chance of a score as high as this one: what is to be expected of the next value of an exponential distribution that is known
    /// by `weight` values only.
    pub(super) fn chance(&self, score: f64) -> f64 {
        if score <= self.begin {
            return 1.0;
        }
        let beyond = (score - self.begin) / self.excess;
        self.share * (1.0 + beyond / self.weight).powf(-self.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_stats::rng::SplitMix64;

    #[test]
    fn a_normal_tail_is_never_called_rarer_than_it_is() {
        let mut noise = SplitMix64::new(1);
        let scores: Vec<f64> = (0..500).map(|_| noise.normal()).collect();
        let tail = Tail::of(scores, 500).unwrap();
        for (score, chance) in [(3.0, 1.35e-3), (4.0, 3.17e-5), (5.0, 2.87e-7)] {
            assert!(tail.chance(score) > chance, "{score}: {}", tail.chance(score));
        }
        assert_eq!(tail.chance(0.0), 1.0);
        assert!(tail.chance(12.0) < 1e-6, "{}", tail.chance(12.0));
    }

    #[test]
    fn a_few_far_out_do_not_hide_themselves_and_few_disks_leave_more_doubt() {
        let even = |count: u32| (0..count).map(move |place| f64::from(place) / f64::from(count) * 2.0);
        let tail = |count: u32, bad: usize| {
            Tail::of(even(count).chain(std::iter::repeat_n(50.0, bad)).collect(), count as usize + bad)
                .unwrap()
        };
        assert!(tail(500, 5).chance(50.0) < 1e-9);
        assert!(tail(500, 0).chance(20.0) < tail(40, 0).chance(20.0));
        assert!(tail(40, 0).chance(20.0) < tail(10, 0).chance(20.0));
    }
}
