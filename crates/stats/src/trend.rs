//! Whether a series changed over its length: parts of it compared by their means and 95 % intervals. It explains nothing.

use crate::mean_interval;
use crate::order::{batches, mean};

/// Samples below which parts are too short to compare: on a noisy disk two visits of 20 windows each differ by chance.
const MIN_SAMPLES: usize = 100;
/// Batches per part: few enough that neighbouring samples, which resemble each other, fall into one batch.
const BATCHES: usize = 5;
/// A change smaller than this share is not reported even if it is significant.
const MIN_CHANGE: f64 = 0.2;

/// A part of a series: its mean, with the half-width of the interval, and the extremes of its batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Mean, in the unit of the samples.
    pub mean: f64,
    half_width: f64,
    lowest: f64,
    highest: f64,
}

/// How a series changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trend {
    /// The first quarter was lower than the rest, and the rest held steady.
    LowStart {
        /// The first quarter.
        first: Part,
        /// What came after it.
        rest: Part,
    },
    /// The second half differs from the first.
    Drift {
        /// The first half.
        first: Part,
        /// The second half.
        second: Part,
    },
}

/// The change of a series, if it is beyond both intervals, beyond every batch of the other part, and of more than 20 %.
/// `None` for fewer than 100 samples.
pub fn trend(samples: &[f64]) -> Option<Trend> {
    if samples.len() < MIN_SAMPLES {
        return None;
    }
    let (quarter, half) = (samples.len() / 4, samples.len() / 2);
    let (first, rest) = (part(&samples[..quarter])?, part(&samples[quarter..])?);
    let rest_middle = quarter + (samples.len() - quarter) / 2;
    let is_steady_later = !differ(part(&samples[quarter..rest_middle])?, part(&samples[rest_middle..])?);
    if first.mean < rest.mean && differ(first, rest) && is_steady_later {
        return Some(Trend::LowStart { first, rest });
    }
    let (first, second) = (part(&samples[..half])?, part(&samples[half..])?);
    differ(first, second).then_some(Trend::Drift { first, second })
}

fn differ(a: Part, b: Part) -> bool {
    let distance = (a.mean - b.mean).abs();
    let is_apart = a.highest < b.lowest || b.highest < a.lowest;
    is_apart && distance > a.half_width + b.half_width && distance > MIN_CHANGE * a.mean.max(b.mean)
}

/// Mean and interval from the means of equal batches; a remainder at the end is left out of them.
fn part(samples: &[f64]) -> Option<Part> {
    let means: Vec<f64> = batches(samples, BATCHES).filter_map(mean).collect();
    let interval = mean_interval(&means)?;
    Some(Part {
        mean: interval.mean,
        half_width: (interval.high - interval.low) / 2.0,
        lowest: means.iter().copied().fold(f64::INFINITY, f64::min),
        highest: means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    #[test]
    fn halves_and_a_low_start_are_told_apart_from_noise() {
        for seed in 0..100 {
            let noise = seeded(seed).series(200, 100.0, 10.0);
            let scaled = |from: usize, to: usize| -> Vec<f64> {
                let low = |(at, x): (usize, &f64)| if (from..to).contains(&at) { 0.5 * x } else { *x };
                noise.iter().enumerate().map(low).collect()
            };
            assert_eq!(trend(&noise), None, "seed {seed}");
            assert!(
                matches!(trend(&scaled(0, 50)), Some(Trend::LowStart { first, rest }) if first.mean < rest.mean)
            );
            assert!(
                matches!(trend(&scaled(100, 200)), Some(Trend::Drift { first, second }) if first.mean > second.mean)
            );
            assert_eq!(trend(&scaled(0, 50)[..99]), None, "too few samples");
        }
    }
}
