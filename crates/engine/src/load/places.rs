//! Which place of a span the next request of a job goes to: sequences and distributions over places, deterministic for a seed. It knows
//! numbers of places and no bytes.

use crate::random::{Permutation, WyRand, mix};
use rdsk_model::OffsetRule;
use std::f64::consts::TAU;

/// A chooser of places, all of them below the number that it was made for.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    Uniform,
    Once {
        permutation: Permutation,
        used: u64,
        key: u64,
    },
    Zipf {
        zipf: Zipf,
        scatter: Permutation,
    },
    Pareto {
        power: f64,
        scatter: Permutation,
    },
    Normal {
        deviation: f64,
    },
    /// Share of the requests up to the end of each zone, and its first place and its number of places.
    Zoned(Vec<(f64, u64, u64)>),
}

impl Chooser {
    /// What a rule asks for over so many places, at least 1; `None` for a sequence, which has no choice. All streams that share a span
    /// have the same popular places by `shared_key`.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "places of a span are far fewer than 2^53, and shares of them positive"
    )]
    pub(crate) fn new(rule: &OffsetRule, places: u64, shared_key: u64, key: u64) -> Option<Self> {
        let scatter = Permutation::new(places, shared_key);
        Some(match rule {
            OffsetRule::Sequential | OffsetRule::Skips { .. } => return None,
            OffsetRule::Uniform => Self::Uniform,
            OffsetRule::Once => Self::Once { permutation: Permutation::new(places, key), used: 0, key },
            &OffsetRule::Zipf { theta } => Self::Zipf { zipf: Zipf::new(places, theta), scatter },
            // With x uniform in 0..1, x^power lies below `skew` for a share `1 - skew` of all x.
            &OffsetRule::Pareto { skew } => Self::Pareto { power: skew.ln() / (1.0 - skew).ln(), scatter },
            &OffsetRule::Normal { deviation_percent } => {
                Self::Normal { deviation: places as f64 * deviation_percent / 100.0 }
            }
            OffsetRule::Zoned { zones } => {
                let (mut share, mut span) = (0.0, 0.0);
                let mut parts = Vec::with_capacity(zones.len());
                for zone in zones {
                    let first = (places as f64 * span / 100.0) as u64;
                    share += zone.access_percent / 100.0;
                    span += zone.span_percent;
                    let end = ((places as f64 * span / 100.0) as u64).min(places);
                    let first = first.min(places - 1);
                    parts.push((share, first, end.saturating_sub(first).max(1)));
                }
                Self::Zoned(parts)
            }
        })
    }

    /// The next place below `places`, the number that it was made for.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "places of a span are far fewer than 2^53, and a choice among them is positive"
    )]
    pub(crate) fn next(&mut self, places: u64, random: &mut WyRand) -> u64 {
        match self {
            Self::Uniform => random.below(places),
            Self::Once { permutation, used, key } => {
                if *used == places {
                    *key = mix(*key, 1);
                    *permutation = Permutation::new(places, *key);
                    *used = 0;
                }
                *used += 1;
                permutation.apply(*used - 1)
            }
            Self::Zipf { zipf, scatter } => scatter.apply(zipf.rank(random).min(places) - 1),
            Self::Pareto { power, scatter } => {
                let place = (places as f64 * random.unit().powf(*power)) as u64;
                scatter.apply(place.min(places - 1))
            }
            Self::Normal { deviation } => loop {
                // Box and Muller; of 0 there is no logarithm.
                let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
                let place = places as f64 / 2.0 + *deviation * radius * (TAU * random.unit()).cos();
                if place >= 0.0 && place < places as f64 {
                    break place as u64;
                }
            },
            Self::Zoned(parts) => {
                let share = random.unit();
                let part = parts.iter().find(|(end, ..)| share < *end).or(parts.last());
                let (_, first, count) = part.copied().unwrap_or((1.0, 0, places));
                first + random.below(count)
            }
        }
    }
}

/// Ranks with probabilities in proportion to `rank^-theta`, by rejection from the inverse of the integral of that function (Hörmann and
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", 1996): no table, less than 1.1 draws each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    last: f64,
    /// The integral at the left end of rank 1, and at the right end of the last rank.
    from: f64,
    to: f64,
    /// Ranks that lie at most so far right of the draw are taken without the integral.
    sure: f64,
}

impl Zipf {
    #[allow(clippy::cast_precision_loss, reason = "places of a span are far fewer than 2^53")]
    pub(crate) fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self { theta, last: ranks as f64, from: 0.0, to: 0.0, sure: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.last + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-theta));
        zipf
    }

    /// From 1 to x: (x^(1 - theta) - 1) / (1 - theta), and ln x where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let exponent = (1.0 - self.theta) * x.ln();
        if exponent.abs() > 1e-8 { exponent.exp_m1() / exponent * x.ln() } else { x.ln() }
    }

    fn inverse(&self, area: f64) -> f64 {
        let product = (area * (1.0 - self.theta)).max(-1.0);
        if product.abs() > 1e-8 { (product.ln_1p() / product * area).exp() } else { area.exp() }
    }

    /// A rank from 1 to their number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the last rank")]
    pub(crate) fn rank(&self, random: &mut WyRand) -> u64 {
        loop {
            let area = self.to + random.unit() * (self.from - self.to);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.last);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - rank.powf(-self.theta) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Zone;

    const DRAWS: u32 = 200_000;

    /// How often each place was chosen.
    fn counts(rule: &OffsetRule, places: u64) -> Vec<u32> {
        let mut chooser = Chooser::new(rule, places, 7, 11).unwrap();
        let mut random = WyRand::new(3);
        let mut counts = vec![0; usize::try_from(places).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(chooser.next(places, &mut random)).unwrap()] += 1;
        }
        counts
    }

    /// Pearson's statistic less its degrees of freedom, in its standard deviations.
    fn excess(counts: &[u32], shares: &[f64]) -> f64 {
        let sum: f64 = shares.iter().sum();
        let expected = |share: f64| share / sum * f64::from(DRAWS);
        let chi: f64 = counts
            .iter()
            .zip(shares)
            .map(|(&count, &share)| (f64::from(count) - expected(share)).powi(2) / expected(share))
            .sum();
        let freedom = (counts.len() - 1) as f64;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn each_distribution_has_the_shares_that_it_says() {
        let uniform = counts(&OffsetRule::Uniform, 500);
        assert!(excess(&uniform, &[1.0; 500]) < 4.0);
        for theta in [0.6, 1.0, 1.2, 2.5] {
            // Which place is how popular is hidden by the scatter, and found again by the counts themselves.
            let mut zipf = counts(&OffsetRule::Zipf { theta }, 60);
            let shares: Vec<f64> = (1..=60).map(|rank| f64::from(rank).powf(-theta)).collect();
            zipf.sort_unstable_by(|left, right| right.cmp(left));
            // Sorting makes neighbours of the tail even more alike than chance does, so only too much is an error.
            assert!(excess(&zipf, &shares) < 4.0, "{theta}");
            assert!(excess(&zipf, &[1.0; 60]) > 100.0, "{theta} is not uniform");
        }
        let pareto = counts(&OffsetRule::Pareto { skew: 0.2 }, 1000);
        let mut pareto: Vec<f64> = pareto.into_iter().map(f64::from).collect();
        pareto.sort_unstable_by(|left, right| right.total_cmp(left));
        let first: f64 = pareto[..200].iter().sum::<f64>() / f64::from(DRAWS);
        assert!((first - 0.8).abs() < 0.005, "{first}");
        let (mut zone, mut normal) = ([0.0; 2], [0.0; 2]);
        let zones = vec![
            Zone { access_percent: 90.0, span_percent: 25.0 },
            Zone { access_percent: 10.0, span_percent: 75.0 },
        ];
        for (place, count) in (0..).zip(counts(&OffsetRule::Zoned { zones }, 1000)) {
            zone[usize::from(place >= 250)] += f64::from(count) / f64::from(DRAWS);
        }
        assert!((zone[0] - 0.9).abs() < 0.003, "{zone:?}");
        for (place, count) in (0i32..).zip(counts(&OffsetRule::Normal { deviation_percent: 10.0 }, 1000)) {
            normal[usize::from((place - 500).abs() > 100)] += f64::from(count) / f64::from(DRAWS);
        }
        assert!((normal[0] - 0.6827).abs() < 0.005, "{normal:?}");
    }

    #[test]
    fn once_visits_every_place_in_every_pass_and_in_another_order() {
        let mut chooser = Chooser::new(&OffsetRule::Once, 97, 1, 2).unwrap();
        let mut random = WyRand::new(1);
        let mut pass = || (0..97).map(|_| chooser.next(97, &mut random)).collect::<Vec<_>>();
        let (first, second) = (pass(), pass());
        assert_ne!(first, second);
        for mut places in [first, second] {
            places.sort_unstable();
            assert_eq!(places, (0..97).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_place_is_always_that_place() {
        let rules = [
            OffsetRule::Uniform,
            OffsetRule::Once,
            OffsetRule::Zipf { theta: 1.1 },
            OffsetRule::Pareto { skew: 0.1 },
            OffsetRule::Normal { deviation_percent: 5.0 },
            OffsetRule::Zoned { zones: vec![Zone { access_percent: 100.0, span_percent: 100.0 }] },
        ];
        for rule in rules {
            let mut chooser = Chooser::new(&rule, 1, 1, 2).unwrap();
            let mut random = WyRand::new(5);
            assert!((0..100).all(|_| chooser.next(1, &mut random) == 0), "{rule:?}");
        }
    }
}
