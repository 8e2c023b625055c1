//! Whether repeated measurements of the same thing change with time: the passes over a disk, each one sample. It needs at
//! least eight of them, and does not say why they change.

use crate::order::{lag1, mean, median, stddev};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Fewest passes that can show it.
pub const MIN_PASSES: usize = 8;
/// Fewest passes on each side of a step.
const MIN_SIDE: usize = 2;
/// A step of slow noise looks like one of the disk more often than a trend of it, as simulation shows: its bound is lower.
const STEPS: f64 = 3.0;
/// A trend, or a step, is at least this many standard deviations of what is left beside it.
const CLEAR: f64 = 6.0;
/// Up to this many passes the probability of a trend is counted exactly.
const EXACT: usize = 40;

/// How the passes change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PassShape {
    /// They rise or fall from the first to the last.
    Trend,
    /// They have one level before this pass, counted from 0, and another from it on.
    Step(usize),
}

/// A change over the passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassChange {
    /// What it looks like.
    pub shape: PassShape,
    /// Probability of a change as marked as this by chance.
    pub p_value: f64,
    /// From the first to the last pass, or from before the step to after it, in the samples' unit.
    pub by: f64,
}

/// The change over at least eight finite samples in the order of time, if chance gives one as marked in fewer than
/// `false_alarm` of all series; for a step with a correction for its place and for neighbours that resemble each other.
///
/// A trend is found by Mann and Kendall's test (Mann 1945), its size by Theil and Sen; a step by Student's t at every split,
/// held against Bonferroni's bound. The more probable shape is the one that leaves less.
pub fn pass_change(samples: &[f64], false_alarm: f64) -> Option<PassChange> {
    if samples.len() < MIN_PASSES {
        return None;
    }
    let both = [trend(samples), step(samples)];
    let sure = both.into_iter().flatten().filter(|(change, _)| change.p_value <= false_alarm);
    sure.min_by(|left, right| left.1.total_cmp(&right.1)).map(|(change, _)| change)
}

/// The trend and the standard deviation that it leaves.
fn trend(samples: &[f64]) -> Option<(PassChange, f64)> {
    let mut slopes = Vec::new();
    let mut sum: i64 = 0;
    for (at, first) in samples.iter().enumerate() {
        for (further, second) in samples[at + 1..].iter().enumerate() {
            slopes.push((second - first) / (further + 1) as f64);
            sum += i64::from(second > first) - i64::from(second < first);
        }
    }
    let slope = median(&slopes)?;
    let by = slope * (samples.len() - 1) as f64;
    let rest: Vec<f64> = samples.iter().enumerate().map(|(at, sample)| sample - slope * at as f64).collect();
    let left = stddev(&rest)?;
    let p_value = mann_kendall(samples.len(), sum.unsigned_abs());
    (by.abs() >= CLEAR * left && by != 0.0)
        .then_some((PassChange { shape: PassShape::Trend, p_value, by }, left))
}

/// Probability that the order of `count` samples gives a sum of signs at least this far from 0 by chance, either way.
fn mann_kendall(count: usize, sum: u64) -> f64 {
    let n = count as f64;
    if count > EXACT {
        let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let score = (sum as f64 - 1.0).max(0.0) / deviation;
        return two_sided(score, f64::INFINITY);
    }
    // The share of the orders with each number of inversions, one sample more at a time.
    let mut shares = vec![1.0];
    for more in 2..=count {
        let mut next = vec![0.0; shares.len() + more - 1];
        for (inversions, share) in shares.iter().enumerate() {
            for place in &mut next[inversions..inversions + more] {
                *place += share / more as f64;
            }
        }
        shares = next;
    }
    let pairs = shares.len() as u64 - 1;
    let most = usize::try_from(pairs.saturating_sub(sum) / 2).unwrap_or(usize::MAX);
    (2.0 * shares.iter().take(most + 1).sum::<f64>()).min(1.0)
}

/// The strongest step and the standard deviation that it leaves.
fn step(samples: &[f64]) -> Option<(PassChange, f64)> {
    let splits = MIN_SIDE..=samples.len() - MIN_SIDE;
    let tests = splits.clone().count() as f64;
    let best = splits
        .filter_map(|at| {
            let (before, after) = (mean(&samples[..at])?, mean(&samples[at..])?);
            let level = |index: usize| if index < at { before } else { after };
            let rest: Vec<f64> =
                samples.iter().enumerate().map(|(index, sample)| sample - level(index)).collect();
            let left = (rest.iter().map(|off| off * off).sum::<f64>() / (rest.len() - 2) as f64).sqrt();
            Some((at, after - before, left, rest))
        })
        .max_by(|shape, next| (shape.1.abs() / shape.2).total_cmp(&(next.1.abs() / next.2)))?;
    let (at, by, left, rest) = best;
    if by.abs() < CLEAR * left || by == 0.0 {
        return None;
    }
    let (n, sides) = (samples.len() as f64, (at as f64, (samples.len() - at) as f64));
    // Of a short series the correlation comes out too small, by about this much.
    let rho = lag1(&rest);
    let rho = (rho + (1.0 + 4.0 * rho.max(0.0)) / n).clamp(0.0, 0.9);
    let deflated = (1.0 - rho) / (1.0 + rho);
    let score = by.abs() / left.max(f64::MIN_POSITIVE) * (sides.0 * sides.1 / n * deflated).sqrt();
    let p_value = (two_sided(score, n - 2.0) * tests * STEPS).min(1.0);
    Some((PassChange { shape: PassShape::Step(at), p_value, by }, left))
}

/// Probability of a value of Student's t at least this far from 0; with infinitely many degrees of freedom it is normal.
pub(crate) fn two_sided(t: f64, freedom: f64) -> f64 {
    (2.0 * t_tail(t.abs(), freedom)).min(1.0)
}

/// Probability of a value of Student's t of at least this size.
pub fn t_tail(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(1.0, |student| student.sf(t))
}

/// The size that a value of Student's t exceeds, either way, with this chance; infinite for a chance of 0.
pub fn t_quantile(outside: f64, freedom: f64) -> f64 {
    let inside = |student: StudentsT| student.inverse_cdf(1.0 - outside / 2.0);
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(f64::INFINITY, inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    /// The share of 200 seeded series in which a change is seen.
    fn seen(series: impl Fn(&mut SplitMix64) -> Vec<f64>) -> usize {
        (0..200).filter(|&seed| pass_change(&series(&mut seeded(seed)), 0.001).is_some()).count()
    }

    /// The means of passes of so many seconds each over noise that was made a window at a time, 20 in a second.
    fn passes(windows: &[f64], count: usize) -> Vec<f64> {
        windows.chunks(windows.len() / count).take(count).filter_map(mean).collect()
    }

    #[test]
    fn textbook_probabilities_of_the_order() {
        // Kendall's table: of 8 samples in order, 2 of 40320; a sum of 16 or more in 3.1 % of all, one-sided.
        assert!((mann_kendall(8, 28) - 2.0 / 40_320.0).abs() < 1e-12);
        assert!((mann_kendall(8, 16) / 2.0 - 0.031).abs() < 0.0005);
        assert!((mann_kendall(4, 0) - 1.0).abs() < 1e-12);
        let (exact, near) = (mann_kendall(40, 300), mann_kendall(41, 300));
        assert!((near / exact).ln().abs() < 1.5, "{exact} {near}");
    }

    #[test]
    fn the_quantile_is_the_inverse_of_the_tail() {
        assert!((t_quantile(0.05, 11.0) - 2.200_985).abs() < 1e-5, "of the tables");
        for (outside, freedom) in [(0.05, 1.0), (1e-6, 4.3), (1e-4, 1000.0)] {
            let back = 2.0 * t_tail(t_quantile(outside, freedom), freedom);
            assert!((back / outside - 1.0).abs() < 1e-3, "{outside}, {freedom}: {back}");
        }
    }

    #[test]
    fn stationary_noise_is_no_change() {
        for count in [8, 10, 20] {
            assert!(seen(|noise| noise.series(count, 0.0, 0.1)) <= 2, "independent, {count}");
            for rho in [0.9, 0.99] {
                let alarms = seen(|noise| passes(&noise.autoregressive(1200, 0.0, 0.1, rho), count));
                assert!(alarms <= 4, "AR {rho}, {count} passes: {alarms}");
            }
            let alarms = seen(|noise| passes(&noise.flicker(1200, 0.1), count));
            assert!(alarms <= 4, "1/f, {count} passes: {alarms}");
            let alarms = seen(|noise| passes(&noise.two_levels(1200, 0.2, 100.0), count));
            assert!(alarms <= 4, "two levels, {count} passes: {alarms}");
        }
    }

    #[test]
    fn a_drift_and_a_step_of_a_fifth_are_found() {
        for count in [8, 10] {
            let part = |at: usize| at as f64 / (count - 1) as f64;
            let with = |noise: &mut SplitMix64, shape: &dyn Fn(usize) -> f64| -> Vec<f64> {
                noise.series(count, 0.0, 0.01).iter().enumerate().map(|(at, x)| x + shape(at)).collect()
            };
            let drifts = seen(|noise| with(noise, &|at| 0.2 * part(at)));
            let steps = [2, 4, count - 2]
                .map(|from| seen(|noise| with(noise, &|at| if at >= from { 0.2 } else { 0.0 })));
            assert!(
                drifts >= 180 && steps.iter().all(|found| *found >= 180),
                "{count} passes: {drifts} drifts, {steps:?} steps"
            );
        }
        let stepped = [0.0, 0.01, -0.01, 0.0, 0.3, 0.31, 0.3, 0.29];
        assert!(matches!(
            pass_change(&stepped, 0.001),
            Some(PassChange { shape: PassShape::Step(4), by, .. }) if (by - 0.3).abs() < 0.01
        ));
        assert_eq!(pass_change(&stepped[1..], 0.001), None, "too few");
        assert_eq!(pass_change(&[1.0; 12], 0.001), None);
    }
}
