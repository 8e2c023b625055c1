//! The lasting fall of a series to a lower level: sudden, beyond chance, with both levels held. A slope, a dip and a few
//! stalls are none.

use crate::order::{batches, lag1, mad, mean, sorted};
use crate::ranks::{RankSums, strongest};

/// Probability of a false alarm in one series, by the bound of [`is_significant`].
const FALSE_ALARM: f64 = 1e-3;
/// Parts into which each side of a fall is cut to see whether the level held.
const BATCHES: usize = 5;
/// Share of the fall that must happen at once; a slope has a tenth or so of it there.
const SUDDEN: f64 = 0.6;

/// Where a series falls, and the levels on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoLevels {
    /// Position of the first sample after the fall.
    pub index: usize,
    /// [`interquartile_mean`] of all samples before it.
    pub before: f64,
    /// The same of all samples from there on; above 0.
    pub after: f64,
}

impl TwoLevels {
    fn residuals(&self, samples: &[f64]) -> Vec<f64> {
        let level = |index: usize| if index < self.index { self.before } else { self.after };
        samples.iter().enumerate().map(|(index, sample)| sample - level(index)).collect()
    }
}

/// The mean of the middle half of the samples; 0 for none. A few stalls do not move it, as they would a mean; nor do samples
/// that take few values, as they would a median.
pub fn interquartile_mean(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let cut = sorted.len() / 4;
    mean(&sorted[cut..sorted.len() - cut]).unwrap_or(0.0)
}

/// The lasting fall of a series of finite samples, with at least `min_samples`, and five, on each side.
///
/// It is found by the maximally selected rank sum (Wilcoxon's statistic at every split, the largest taken; Lausen and
/// Schumacher 1992), deflated for the correlation of neighbouring samples and held against a bound of 1 false alarm in
/// 1000 series; it must be sudden, and both levels must hold. How large a fall matters is for the caller to say.
pub fn level_shift(samples: &[f64], min_samples: usize) -> Option<TwoLevels> {
    let min_samples = min_samples.max(BATCHES);
    if samples.len() < 2 * min_samples {
        return None;
    }
    let sums = RankSums::count(samples)?;
    let splits = min_samples..=samples.len() - min_samples;
    let (index, score) = strongest(splits.map(|split| (split, sums.score(0, split))))?;
    let (before, after) = samples.split_at(index);
    let shift = TwoLevels { index, before: interquartile_mean(before), after: interquartile_mean(after) };
    // No progress at all is a stall, which ends; not a level.
    let is_fall = shift.after > 0.0
        && is_significant(samples, &shift, score)
        && is_held(before, after, &shift)
        && is_sudden(samples, &shift);
    is_fall.then_some(shift)
}

/// Whether chance gives a split as marked as this in fewer than 1 of 1000 series: the normal tail is at most
/// exp(−z²/2)/2, and there are at most n splits (Bonferroni). Neighbouring samples that resemble each other count for less
/// than one each: the deflation of an autoregressive series of order 1.
fn is_significant(samples: &[f64], shift: &TwoLevels, score: f64) -> bool {
    let residuals = shift.residuals(samples);
    // One stall among the samples must not hide how much the others resemble each other.
    let limit = 3.0 * 1.4826 * mad(&residuals).unwrap_or(0.0);
    let clipped: Vec<f64> = residuals.iter().map(|residual| residual.clamp(-limit, limit)).collect();
    let rho = lag1(&clipped).clamp(0.0, 0.95);
    let deflated = score * ((1.0 - rho) / (1.0 + rho)).sqrt();
    deflated >= (2.0 * (samples.len() as f64 / (2.0 * FALSE_ALARM)).ln()).sqrt()
}

/// Whether both levels held: of five parts on each side, all but one before lie above all but one after, and the last part
/// is low.
fn is_held(before: &[f64], after: &[f64], shift: &TwoLevels) -> bool {
    let levels = |side| sorted(&batches(side, BATCHES).map(interquartile_mean).collect::<Vec<f64>>());
    let (high, low) = (levels(before), levels(after));
    let end = &after[after.len() - after.len() / BATCHES..];
    interquartile_mean(end) < f64::midpoint(shift.before, shift.after) && high[1] > low[BATCHES - 2]
}

/// Whether most of the fall happens at the split, and not all along: the samples on both sides of it differ by most of the
/// whole fall, and two levels are nearer to the samples than a smooth curve is.
fn is_sudden(samples: &[f64], shift: &TwoLevels) -> bool {
    let shorter = shift.index.min(samples.len() - shift.index);
    let gap = (samples.len() / 50).min(shorter / 4).max(1);
    let width = (samples.len() / 20).max(5);
    let (end, start) = (shift.index - gap, shift.index + gap);
    let before = interquartile_mean(&samples[end.saturating_sub(width)..end]);
    let after = interquartile_mean(&samples[start..(start + width).min(samples.len())]);
    before - after >= SUDDEN * (shift.before - shift.after) && is_nearer_than_a_curve(samples, shift)
}

/// Sums of absolute distances, from the two levels and from the parabola of least squares: a smooth slope is nearly one. The
/// line and the square, less its mean, are orthogonal on equal steps, so each coefficient is found by itself. The levels
/// must be nearer by a margin that shrinks with the number of samples, as chance does.
fn is_nearer_than_a_curve(samples: &[f64], shift: &TwoLevels) -> bool {
    let size = samples.len() as f64;
    let line = |index: usize| index as f64 - (size - 1.0) / 2.0;
    let square = |index: usize| line(index).powi(2) - (size * size - 1.0) / 12.0;
    let coefficient = |shape: &dyn Fn(usize) -> f64| {
        let along: f64 = samples.iter().enumerate().map(|(index, sample)| shape(index) * sample).sum();
        along / (0..samples.len()).map(|index| shape(index).powi(2)).sum::<f64>()
    };
    let (slope, bend) = (coefficient(&line), coefficient(&square));
    let mean = mean(samples).unwrap_or(0.0);
    let from_levels: f64 = shift.residuals(samples).into_iter().map(f64::abs).sum();
    let off =
        |(index, sample): (usize, &f64)| (sample - mean - slope * line(index) - bend * square(index)).abs();
    let from_curve: f64 = samples.iter().enumerate().map(off).sum();
    from_levels <= (1.0 - 1.0 / size.sqrt()) * from_curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    #[test]
    fn a_fall_is_found_where_it_is_and_noise_has_none() {
        let (mut near, mut alarms) = (0, 0);
        for seed in 0..100 {
            let noise = seeded(seed).autoregressive(400, 100.0, 10.0, 0.3);
            alarms += usize::from(level_shift(&noise, 10).is_some());
            let fallen: Vec<f64> =
                noise.iter().enumerate().map(|(at, x)| if at < 150 { *x } else { 0.6 * x }).collect();
            let found = level_shift(&fallen, 10);
            near += usize::from(found.is_some_and(|shift| shift.index.abs_diff(150) <= 4));
            let rising: Vec<f64> = fallen.into_iter().rev().collect();
            assert_eq!(level_shift(&rising, 10), None, "seed {seed}: a rise is no fall");
        }
        assert!(near >= 97 && alarms == 0, "{near} of 100 found, {alarms} false alarms");
    }

    #[test]
    fn a_slope_and_a_short_series_have_none() {
        let slope: Vec<f64> = (0..400).map(|at| 200.0 - f64::from(at) / 4.0).collect();
        assert_eq!(level_shift(&slope, 10), None);
        assert_eq!(level_shift(&[[9.0; 9], [1.0; 9]].concat(), 10), None);
        assert_eq!(level_shift(&[5.0; 100], 10), None);
    }

    #[test]
    fn the_middle_half_counts() {
        assert!((interquartile_mean(&[1000.0, 3.0, 4.0, 0.0]) - 3.5).abs() < 1e-12);
        assert!(interquartile_mean(&[]).abs() < 1e-12);
    }
}
