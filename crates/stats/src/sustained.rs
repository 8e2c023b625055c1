//! Whether the rate of something that goes on has settled, at which rate, and how much was done before it fell. It says nothing of
//! what comes after the end of the series.

use crate::order::{lag1, mean, stddev};

/// Parts of equal time into which the whole is cut.
const PARTS: usize = 200;
/// A series of fewer points is too coarse to be judged.
const MIN_POINTS: usize = 40;
/// The rate has settled where the two quarters of the later half differ by at most this share of their mean.
const LEVEL: f64 = 0.05;
/// A reader who decides when to stop asks for so much of that, so that the judgement holds when the last part is complete.
const CLEARLY: f64 = 0.8;
/// A fall is one from at least so many times the later rate.
const FALL: f64 = 1.25;
/// What was done beyond the later rate before a fall must be so many standard deviations of what chance adds.
const DEVIATIONS: f64 = 5.0;

/// How a rate went on: what it is in the later half of the time, and the fall before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sustained {
    /// Amount per unit of time in the later half.
    pub rate: f64,
    /// How far its two quarters differ, as a share of `rate`; infinite where it is 0.
    pub change: f64,
    /// From a higher rate; `None` where it did not fall.
    pub fall: Option<Fall>,
}

/// A fall of a rate that lasted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// When, from the start.
    pub time: f64,
    /// How much was done until then.
    pub amount: f64,
    /// The rate until then.
    pub before: f64,
}

impl Sustained {
    /// Whether the later half is one level.
    pub fn is_settled(&self) -> bool {
        self.change <= LEVEL
    }

    /// The same with a margin, for who goes on until it is.
    pub fn is_clearly_settled(&self) -> bool {
        self.change <= CLEARLY * LEVEL
    }
}

/// How a rate went on, from how much was done at rising times, both from 0; `None` for too few points to say. A rate has settled
/// when the later half of all the time is one level: whatever fell did so long ago, measured by what came before.
///
/// A cache of 30 that is filled at 10 a second and emptied at 1 has no room after 3⅓ s, when 33⅓ have been taken:
///
/// ```
/// let taken = |s: f64| (10.0 * s).min(30.0 + s);
/// let points: Vec<(f64, f64)> = (0..=200).map(|i| 0.1 * f64::from(i)).map(|s| (s, taken(s))).collect();
/// let seen = rdsk_stats::sustained(&points).unwrap();
/// assert!(seen.is_settled() && (seen.rate - 1.0).abs() < 1e-9);
/// let fall = seen.fall.unwrap();
/// // As exact as points that lie 0.1 s apart.
/// assert!((fall.amount - 33.3).abs() < 0.1 && (fall.before - 10.0).abs() < 0.1);
/// // After 6 s the later half is not one level.
/// assert!(!rdsk_stats::sustained(&points[..61]).unwrap().is_settled());
/// ```
pub fn sustained(points: &[(f64, f64)]) -> Option<Sustained> {
    let &(end, _) = points.last().filter(|&&(end, _)| points.len() >= MIN_POINTS && end > 0.0)?;
    let width = end / PARTS as f64;
    let amounts: Vec<f64> = (0..=PARTS).map(|part| amount_at(points, part as f64 * width)).collect();
    let rates: Vec<f64> = amounts.windows(2).map(|pair| (pair[1] - pair[0]) / width).collect();
    let late = &rates[PARTS / 2..];
    let (rate, third, fourth) = (mean(late)?, mean(&late[..PARTS / 4])?, mean(&late[PARTS / 4..])?);
    let change = if rate > 0.0 { (third - fourth).abs() / rate } else { f64::INFINITY };
    Some(Sustained { rate, change, fall: fall(&rates, rate, width) })
}

/// How much was done at a time: between two points, what a straight line between them has.
fn amount_at(points: &[(f64, f64)], time: f64) -> f64 {
    let next = points.partition_point(|&(at, _)| at < time);
    let (begin, done) = next.checked_sub(1).map_or((0.0, 0.0), |last| points[last]);
    let Some(&(end, more)) = points.get(next) else { return done };
    if end > begin { done + (more - done) * (time - begin) / (end - begin) } else { more }
}

/// The fall from the level before the split by least squares, if it was to `rate` and no chance. When it happened follows from what
/// was done beyond that rate: the part in which it happened has some of both.
fn fall(rates: &[f64], rate: f64, width: f64) -> Option<Fall> {
    let half = rates.len() / 2;
    let split = split(rates).min(half);
    let before = mean(&rates[..split.saturating_sub(1).max(1)])?;
    if rate <= 0.0 || before < FALL * rate {
        return None;
    }
    let surplus: f64 = rates[..(2 * split + 2).min(half)].iter().map(|part| part - rate).sum();
    let late = &rates[half..];
    let rho = lag1(late).clamp(0.0, 0.95);
    let chance = stddev(late)? * (split as f64 * (1.0 + rho) / (1.0 - rho)).sqrt();
    let time = surplus * width / (before - rate);
    (surplus > DEVIATIONS * chance).then_some(Fall { time, amount: time * before, before })
}

/// Where to cut a series so that the two means are nearest to it: the length of the first part, at least 1.
fn split(rates: &[f64]) -> usize {
    let total: f64 = rates.iter().sum();
    let mut sum = 0.0;
    let mut best = (1, f64::NEG_INFINITY);
    for (length, rate) in (1..rates.len()).zip(rates) {
        sum += rate;
        // The squares that the two means explain, less what is the same for every cut.
        let rest = (rates.len() - length) as f64;
        let explained = sum * sum / length as f64 + (total - sum) * (total - sum) / rest;
        if explained > best.1 {
            best = (length, explained);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use proptest::prelude::*;

    /// Points of a series of rates, one a second.
    fn points(rates: &[f64]) -> Vec<(f64, f64)> {
        let mut done = 0.0;
        let add = |(at, rate): (usize, &f64)| {
            done += rate;
            ((at + 1) as f64, done)
        };
        rates.iter().enumerate().map(add).collect()
    }

    fn of(rates: &[f64]) -> Sustained {
        sustained(&points(rates)).unwrap()
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(sustained(&[]), None);
        assert_eq!(sustained(&points(&[1.0; MIN_POINTS - 1])), None);
        let still = of(&[0.0; 100]);
        assert!(!still.is_settled() && still.fall.is_none());
    }

    #[test]
    fn courses_of_every_kind() {
        let two = |fast: f64, length: usize| [vec![fast; length], vec![10.0; 400 - length]].concat();
        let slope = |by: f64| (0..400).map(|at| 100.0 - by * f64::from(at)).collect::<Vec<f64>>();
        let sawtooth: Vec<f64> = (0..400).map(|at| if at % 20 < 2 { 0.0 } else { 10.0 }).collect();
        for (name, rates, settled, fall) in [
            ("level", vec![10.0; 400], true, None),
            ("a burst at the start", two(300.0, 5), true, Some(1500.0)),
            ("a burst for a third", two(30.0, 130), true, Some(3900.0)),
            ("a fall in the later half", two(30.0, 300), false, None),
            ("a small fall", two(12.0, 100), true, None),
            ("a rise", two(2.0, 100), true, None),
            ("a slope", slope(0.2), false, None),
            ("stalls all the time", sawtooth, true, None),
        ] {
            let seen = of(&rates);
            assert_eq!(seen.is_settled(), settled, "{name}: {seen:?}");
            if let Some(amount) = fall {
                let fell = seen.fall.unwrap_or_else(|| panic!("{name}: {seen:?}"));
                assert!((fell.amount / amount - 1.0).abs() < 0.02, "{name}: {seen:?}");
                assert!((seen.rate / 10.0 - 1.0).abs() < 1e-9, "{name}: {seen:?}");
            } else if settled {
                assert_eq!(seen.fall, None, "{name}");
            }
        }
    }

    /// Noise of 10 % with and without memory has no fall; a burst in it is found with what it held.
    #[test]
    fn noise_has_no_fall_and_hides_none() {
        for seed in 0..100 {
            for rho in [0.0, 0.5, 0.9] {
                let noise = seeded(seed).autoregressive(2000, 100.0, 10.0, rho);
                let seen = of(&noise);
                assert_eq!(seen.fall, None, "seed {seed}, {rho}");
                let fallen: Vec<f64> =
                    noise.iter().enumerate().map(|(at, x)| if at < 200 { 3.0 * x } else { *x }).collect();
                let seen = of(&fallen);
                let fell = seen.fall.unwrap_or_else(|| panic!("seed {seed}, {rho}: {seen:?}"));
                assert!((fell.amount / 60_000.0 - 1.0).abs() < 0.15, "seed {seed}, {rho}: {seen:?}");
                assert!((seen.rate / 100.0 - 1.0).abs() < 0.05, "seed {seed}, {rho}: {seen:?}");
            }
        }
    }

    proptest! {
        /// Units of time and amount do not matter, and nothing panics.
        #[test]
        fn scales(rates in prop::collection::vec(0.0_f64..1e9, 40..300), by in 1e-3_f64..1e3) {
            let one = of(&rates);
            let scaled: Vec<(f64, f64)> =
                points(&rates).iter().map(|&(at, done)| (at * by, done * by * by)).collect();
            let other = sustained(&scaled).unwrap();
            prop_assert!((other.rate - one.rate * by).abs() <= 1e-6 * one.rate * by);
            prop_assert_eq!(other.fall.is_some(), one.fall.is_some());
        }
    }
}
