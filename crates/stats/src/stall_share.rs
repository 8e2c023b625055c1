//! What stalls leave unsure: the share of the time that goes to rare events of which a few were seen. It finds no stall, and
//! the caller says what one is.

use statrs::distribution::{ContinuousCDF as _, DiscreteCDF as _, Gamma, Poisson};

/// What is left on each side of a range.
const TAIL: f64 = 0.025;

/// Stalls that were seen in some time: how many, and the sums from which the share of the time follows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StallsSeen {
    /// How many.
    pub count: u64,
    /// The sum of their lengths, in any unit of time.
    pub sum: f64,
    /// The sum of the squares of their lengths.
    pub squares: f64,
    /// The time in which they were seen, they included, in the same unit.
    pub elapsed: f64,
}

impl StallsSeen {
    /// Stalls of these lengths in this time.
    pub fn of(lengths: &[f64], elapsed: f64) -> Self {
        let (sum, squares) = (lengths.iter().sum(), lengths.iter().map(|length| length * length).sum());
        Self { count: lengths.len() as u64, sum, squares, elapsed }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            elapsed: self.elapsed + other.elapsed,
        }
    }

    /// The share of the time that went to stalls.
    pub fn share(self) -> f64 {
        if self.elapsed > 0.0 { (self.sum / self.elapsed).min(1.0) } else { 0.0 }
    }

    /// The 95 % range of the share of all time that goes to stalls: low and high. None without any stall, since it is unknown
    /// how long those are that were not seen.
    ///
    /// Stalls that come by chance are a Poisson process; the sum of their lengths then is as unsure as a Poisson number of
    /// (Σd)²/Σd² equal ones, whose limits are those of Garwood (1936) by gamma quantiles (for sums of unequal ones Fay and
    /// Feuer 1997). One stall of 1 % may stand for 0.03 or for 5.6 %, ten of 1 % in total for 0.5 to 1.8 %. Stalls at regular
    /// distances are known better; the range is then too wide.
    pub fn share_range(self) -> Option<(f64, f64)> {
        if self.count == 0 || self.sum <= 0.0 || self.elapsed <= 0.0 {
            return None;
        }
        let worth = self.sum * self.sum / self.squares;
        let quantile = |shape: f64, p: f64| Some(Gamma::new(shape, 1.0).ok()?.inverse_cdf(p));
        let each = self.sum / worth / self.elapsed;
        let (low, high) = (quantile(worth, TAIL)? * each, quantile(worth + 1.0, 1.0 - TAIL)? * each);
        Some((low.min(1.0), high.min(1.0)))
    }

    /// Whether these stalls may be some of the `whole` of them, of which they are part: their number is not too small or too large
    /// for their part of the time (a Poisson number, each side at 2.5 %).
    pub fn may_be_of(self, whole: Self) -> bool {
        let expected = whole.count as f64 * self.elapsed / whole.elapsed;
        let Ok(chance) = Poisson::new(expected) else { return self.count == whole.count };
        let fewer = self.count.checked_sub(1).map_or(0.0, |fewer| chance.cdf(fewer));
        chance.cdf(self.count) > TAIL && 1.0 - fewer > TAIL
    }
}

/// The interval of a mean rate when stalls are part of it: from `mean` over some time in which `own` stalls were seen, and
/// its interval `low` to `high` from windows and rounds, with the share of the time that `basis` makes likely. It is never
/// narrower than that interval, since the windows saw the stalls too.
pub fn with_stalls(mean: f64, (low, high): (f64, f64), own: StallsSeen, basis: StallsSeen) -> (f64, f64) {
    let Some((least, most)) = basis.share_range() else { return (low, high) };
    // The rate between the stalls.
    let clear = mean / (1.0 - own.share()).max(f64::EPSILON);
    (low.min(clear * (1.0 - most)), high.max(clear * (1.0 - least)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;

    #[test]
    fn few_stalls_leave_their_share_unsure() {
        // Garwood's limits for one and ten events: 0.0253 to 5.572, 4.795 to 18.39.
        let near = |told: f64, expected: f64| {
            assert!((told / expected - 1.0).abs() < 0.001, "{told}, not {expected}");
        };
        let (low, high) = StallsSeen::of(&[2.0], 100.0).share_range().unwrap();
        near(low, 0.000_506_4);
        near(high, 0.111_43);
        let (low, high) = StallsSeen::of(&[0.1; 10], 100.0).share_range().unwrap();
        near(low, 0.004_795);
        near(high, 0.018_39);
        let (_, odd) = StallsSeen::of(&[0.91, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01], 100.0)
            .share_range()
            .unwrap();
        assert!(odd > 0.045, "one long stall among ten is as unsure as one alone: {odd}");
        assert_eq!(StallsSeen::of(&[], 100.0).share_range(), None);
        assert_eq!(StallsSeen::of(&[1.0], 0.0).share_range(), None);
        assert!(StallsSeen::of(&[50.0], 60.0).share_range().unwrap().1 <= 1.0);
    }

    #[test]
    fn an_interval_only_gets_wider() {
        let own = StallsSeen::of(&[1.0], 10.0);
        let (low, high) = with_stalls(90.0, (89.0, 91.0), own, own);
        assert!(
            (low - 100.0 * (1.0 - 0.5572)).abs() < 0.1 && (high - 100.0 * (1.0 - 0.00253)).abs() < 0.1,
            "{low} {high}"
        );
        assert_eq!(with_stalls(90.0, (0.0, 200.0), own, own), (0.0, 200.0));
        assert_eq!(
            with_stalls(90.0, (89.0, 91.0), StallsSeen::default(), StallsSeen::default()),
            (89.0, 91.0)
        );
    }

    #[test]
    fn what_cannot_be_of_the_same_kind_is_told() {
        let all = |count: usize| StallsSeen::of(&vec![0.1; count], 60.0);
        let part = |count: usize| StallsSeen::of(&vec![0.1; count], 15.0);
        assert!(part(0).may_be_of(all(3)) && part(3).may_be_of(all(3)));
        assert!(!part(0).may_be_of(all(40)), "ten were to be expected");
        assert!(!part(20).may_be_of(all(20)), "five were to be expected");
        assert!(part(0).may_be_of(all(0)));
    }

    #[test]
    fn the_share_is_covered_for_stalls_by_chance_and_for_regular_ones() {
        for regular in [false, true] {
            for mean_gap in [5.0, 15.0] {
                let (mut covered, mut seen) = (0, 0);
                for seed in 0..600 {
                    let mut rng = seeded(seed);
                    let mut at = -mean_gap * rng.uniform();
                    let mut lengths = Vec::new();
                    while at < 30.0 {
                        let gap = if regular { mean_gap } else { -mean_gap * (1.0 - rng.uniform()).ln() };
                        at += gap;
                        if (0.0..30.0).contains(&at) {
                            lengths.push(0.05 * mean_gap * (0.5 + rng.uniform()));
                        }
                    }
                    if let Some((low, high)) = StallsSeen::of(&lengths, 30.0).share_range() {
                        seen += 1;
                        covered += i32::from((low..=high).contains(&0.05));
                    }
                }
                let share = f64::from(covered) / f64::from(seen);
                assert!(share >= 0.94, "regular {regular}, each {mean_gap}: {share} of {seen}");
            }
        }
    }
}
