//! Confidence intervals of 95 %: for the mean of a correlated series, for the mean of independent samples,
//! and for the median. Never assumes that neighbouring windows are independent, and never promises more than
//! the series can say.

use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, StudentsT};

use crate::order::{lag1, mean, sorted, stddev};

/// An interval from fewer samples would be decided by chance alone.
const MIN_SAMPLES: usize = 4;
/// Batches are not made fewer than this: few batches make wide and erratic intervals, and 10 to 30 are enough
/// (Schmeiser 1982).
const MIN_BATCHES: usize = 8;
/// Correlation beyond this is not corrected further; the interval is then wide enough to say "not known".
const MAX_CORRELATION: f64 = 0.9;
/// A series whose running total strays less than this (in units of σ√n) is paced; chance strays so little in
/// fewer than 1 of 1000 independent series (the distribution of Kuiper 1960).
const PACED_STRAY: f64 = 0.6;
/// By how much a random walk seen at n points strays less than a continuous one, in units of σ: 2 · 0.5826
/// (Chernoff 1965; Siegmund 1985).
const SEEN_AT_POINTS: f64 = 1.165;

/// A mean and its 95 % confidence interval, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean of all samples.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many batches the width rests on; the number of samples if none were joined.
    pub batches: usize,
    /// The lag-1 correlation of these batches' means.
    pub lag1: f64,
}

impl Interval {
    /// Half the width relative to the mean: 0.02 is ±2 %. Infinite for a mean of zero, of which no share can
    /// be reported.
    pub fn half_width_rel(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { (self.high - self.low) / 2.0 / self.mean.abs() }
    }

    pub(crate) fn around(mean: f64, half_width: f64, batches: usize, lag1: f64) -> Interval {
        Interval { mean, low: mean - half_width, high: mean + half_width, batches, lag1 }
    }
}

/// The 95 % interval of the mean of a series in the order of time, whose neighbours may be correlated; none
/// for fewer than four samples or ones that are not finite. A constant series has a width of zero.
///
/// The width is that of non-overlapping batch means (Law and Kelton, *Simulation Modeling and Analysis*, ch.
/// 9): batches are doubled in size until the lag-1 correlation r of their means is not significant (|r| <
/// 2/√batches) or fewer than 8 batches would be left; what correlation remains widens the variance by
/// (1+r)/(1−r), as of an AR(1) process, the model that ASAP3 fits to batch means (Steiger et al. 2005).
///
/// Two properties of paced series, such as a throttle that lets one request through each second, need more.
/// Its windows are 0, 0, …, 1, 0, …: batch means scatter by how many requests happen to fall into a batch,
/// not because the rate is uncertain; and where in the period the series began shifts its mean. Both are
/// bounded by how far the running total of deviations from the mean strays, highest minus lowest (the
/// standardized time series of Schruben 1983). One stray divided by n is the least half-width ever given.
/// If the total strays too little for chance, the half-width is at most one stray if the stray does not
/// grow with the length of the series (a clock) and two if it grows as a random walk does (requests that
/// keep their distance, but not the time).
///
/// A worked example: 64 windows of mean 100 with a standard deviation of 8. If their lag-1 correlation is within ±2/√64 = ±0.25 and 0 after
/// its correction, each is a batch of its own, and the half-width is 1.998 · 8/√64 = 2.0. If it takes 16 batches of 4 until the correlation
/// of their means, 0.2, is within ±2/√16, and these means scatter by 3, it is 2.131 · 3/√16 = 1.60, times √(1.2625/0.7375) = 1.31 for
/// r = 0.2 + 1/16: 2.1.
///
/// ```
/// let windows: Vec<f64> = (0..100).map(|i| 100.0 + f64::from(i * 7 % 10)).collect();
/// let interval = rdsk_stats::batch_interval(&windows).unwrap();
/// assert!(interval.low < 104.5 && 104.5 < interval.high);
/// assert!(interval.half_width_rel() < 0.01);
/// ```
pub fn batch_interval(samples: &[f64]) -> Option<Interval> {
    if samples.len() < MIN_SAMPLES || !samples.iter().all(|x| x.is_finite()) {
        return None;
    }
    let (mean, sigma) = (mean(samples)?, stddev(samples)?);
    if sigma == 0.0 {
        return Some(Interval::around(samples[0], 0.0, samples.len(), 0.0));
    }
    let batches = uncorrelated_batches(samples, mean);
    let r = lag1(&batches);
    let count = batches.len() as f64;
    // The estimate of a correlation is too low by about 1/n (Marriott and Pope 1954).
    let inflation = match (r + 1.0 / count).clamp(0.0, MAX_CORRELATION) {
        0.0 => 1.0,
        r => ((1.0 + r) / (1.0 - r)).sqrt(),
    };
    let of_batches = student_half_width(&batches)? * inflation;

    let n = samples.len() as f64;
    let total_stray = stray(samples);
    let least = total_stray / n;
    let paced = (total_stray / sigma + SEEN_AT_POINTS) / n.sqrt() < PACED_STRAY;
    let half_width =
        if paced { of_batches.min(least * (1.0 + stray_growth(samples, total_stray))) } else { of_batches };
    Some(Interval::around(mean, half_width.max(least), batches.len(), r))
}

/// The 95 % interval of the mean of independent samples, such as runs, by Student's t; none for fewer than
/// two samples or ones that are not finite.
pub fn mean_interval(samples: &[f64]) -> Option<Interval> {
    if !samples.iter().all(|x| x.is_finite()) {
        return None;
    }
    let half_width = student_half_width(samples)?;
    // The sum of equal values divided by their number may differ from them in the last bit.
    let mean = if half_width == 0.0 { samples[0] } else { mean(samples)? };
    Some(Interval::around(mean, half_width, samples.len(), lag1(samples)))
}

/// The median and its 95 % interval between two of the samples themselves, whatever their distribution (order
/// statistics; Hahn and Meeker, *Statistical Intervals*, ch. 5); the samples, independent, may be in any
/// order. None for fewer than six samples, of which even the smallest and the largest hold the median with less
/// than 95 %, or for a NaN.
///
/// Gives (median, low, high). Of six samples the interval is from the least to the largest: the median lies below the least of six with a
/// probability of 1/64 = 1.6 %. Of ten it is from the second to the ninth: below the second with 11/1024 = 1.1 %, below the third with 5.5 %.
pub fn median_interval(samples: &[f64]) -> Option<(f64, f64, f64)> {
    if samples.len() < 6 || samples.iter().any(|x| x.is_nan()) {
        return None;
    }
    let ascending = sorted(samples);
    let n = ascending.len();
    let below_median = Binomial::new(0.5, n as u64).ok()?;
    // The largest rank that the median falls short of in at most 2.5 % of all cases; rank 0 is the least
    // sample.
    let ranks: Vec<usize> = (0..n / 2).collect();
    let rank = ranks.partition_point(|&rank| below_median.cdf(rank as u64) <= 0.025).checked_sub(1)?;
    Some((crate::quantile_sorted(&ascending, 0.5)?, ascending[rank], ascending[n - 1 - rank]))
}

/// Half the width of Student's 95 % interval of the mean; none for fewer than two samples.
pub(crate) fn student_half_width(samples: &[f64]) -> Option<f64> {
    let sigma = stddev(samples)?;
    let n = samples.len() as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    Some(t * sigma / n.sqrt())
}

/// The means of the smallest batches whose correlation is not significant, or of the fewest batches allowed.
/// All samples are used; if their number does not divide, batches differ in size by one.
fn uncorrelated_batches(samples: &[f64], mean: f64) -> Vec<f64> {
    let mut totals = vec![0.0];
    totals.extend(running_total(samples, mean));
    let mut count = samples.len();
    loop {
        let bound = |batch: usize| batch * samples.len() / count;
        let batch_mean = |batch: usize| {
            let (start, end) = (bound(batch), bound(batch + 1));
            mean + (totals[end] - totals[start]) / (end - start) as f64
        };
        let batches: Vec<f64> = (0..count).map(batch_mean).collect();
        if count / 2 < MIN_BATCHES || lag1(&batches).abs() < 2.0 / (count as f64).sqrt() {
            return batches;
        }
        count /= 2;
    }
}

/// The running total of deviations from `mean`.
fn running_total(samples: &[f64], mean: f64) -> impl Iterator<Item = f64> + '_ {
    samples.iter().scan(0.0, move |total, x| {
        *total += x - mean;
        Some(*total)
    })
}

/// How far the running total of deviations from the series' own mean strays: highest minus lowest, in units ×
/// samples.
fn stray(samples: &[f64]) -> f64 {
    let Some(mean) = mean(samples) else { return 0.0 };
    let (low, high) = running_total(samples, mean)
        .fold((0.0_f64, 0.0_f64), |(low, high), total| (low.min(total), high.max(total)));
    high - low
}

/// How the stray grows from quarters of the series to the whole: 0 if it does not, as under a clock; 1
/// if it grows with the root of the length, as a random walk does (the rescaled range of Hurst 1951).
fn stray_growth(samples: &[f64], total_stray: f64) -> f64 {
    let quarter = samples.len() / 4;
    if quarter == 0 {
        return 1.0;
    }
    let strays: Vec<f64> = samples.chunks_exact(quarter).take(4).map(stray).collect();
    let of_quarters = strays.iter().sum::<f64>() / strays.len() as f64;
    (total_stray / of_quarters).log2().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    const TRIALS: u64 = 600;

    /// The share of seeded series whose interval holds `truth`, and the median relative half-width.
    fn coverage(truth: f64, make: impl Fn(&mut SplitMix64) -> Vec<f64>) -> (f64, f64) {
        let (mut covered, mut widths) = (0.0, Vec::new());
        for seed in 0..TRIALS {
            let interval = batch_interval(&make(&mut seeded(seed))).unwrap();
            covered += f64::from(u8::from(interval.low <= truth && truth <= interval.high));
            widths.push(interval.half_width_rel());
        }
        (covered / TRIALS as f64, crate::median(&widths).unwrap())
    }

    #[test]
    fn a_correlated_mean_is_covered() {
        for n in [100, 200, 1000] {
            let cases = [
                ("independent", 100.0, coverage(100.0, |noise| noise.series(n, 100.0, 10.0))),
                ("rho 0.5", 300.0, coverage(100.0, |noise| noise.autoregressive(n, 100.0, 10.0, 0.5))),
                ("rho 0.8", 900.0, coverage(100.0, |noise| noise.autoregressive(n, 100.0, 10.0, 0.8))),
            ];
            for (name, variance, (covered, half_width)) in cases {
                assert!(covered >= 0.9, "{name}, n {n}: covers {covered}");
                // Honest is not enough; at most twice the width that the known variance would give.
                let known = 1.96 * (variance / n as f64).sqrt() / 100.0;
                assert!(half_width <= 2.0 * known, "{name}, n {n}: {half_width} against {known}");
            }
        }
    }

    #[test]
    fn a_short_series_is_covered_too() {
        for n in [5, 10, 20] {
            let (covered, _) = coverage(100.0, |noise| noise.series(n, 100.0, 10.0));
            assert!(covered >= 0.9, "n {n}: covers {covered}");
        }
    }

    #[test]
    fn a_paced_mean_is_covered_and_narrow() {
        for (period, on) in [(10.0, 3.0), (2.0, 1.0), (1.37, 0.5), (23.3, 11.0)] {
            for n in [100, 400, 1000] {
                let (covered, half_width) = coverage(on / period, |noise| noise.on_off(n, period, on));
                assert!(covered >= 0.98, "{on} of {period}, n {n}: covers {covered}");
                if n as f64 > 40.0 * period {
                    assert!(half_width <= period / n as f64, "{on} of {period}, n {n}: {half_width}");
                }
            }
        }
        for jitter in [0.0, 0.1, 0.3] {
            for n in [200, 1000, 4000] {
                let (covered, _) = coverage(1.0 / 7.0, |noise| noise.pulses(n, 7.0, jitter));
                assert!(covered >= 0.9, "jitter {jitter}, n {n}: covers {covered}");
            }
        }
    }

    #[test]
    fn one_request_a_second_in_windows_of_a_twentieth() {
        for phase in 0..20 {
            let pulses: Vec<f64> = (0..200).map(|i| f64::from(u8::from(i % 20 == phase))).collect();
            let interval = batch_interval(&pulses).unwrap();
            assert!(interval.low <= 0.05 && 0.05 <= interval.high, "{interval:?}");
            assert!(interval.half_width_rel() <= 0.10, "{interval:?}");
        }
    }

    #[test]
    fn batches_in_step_with_the_pace_do_not_deceive() {
        // Batches of one period each hold the same, whatever share of a period the series ends with.
        for period in [8_u16, 16] {
            for n in 800..816 {
                for phase in 0..period {
                    let pulses: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i % period == phase))).collect();
                    let (interval, truth) = (batch_interval(&pulses).unwrap(), 1.0 / f64::from(period));
                    let covered = interval.low <= truth && truth <= interval.high;
                    assert!(covered, "{period}, {n}, {phase}: {interval:?}");
                }
            }
        }
    }

    #[test]
    fn too_little_gives_no_interval() {
        assert_eq!(batch_interval(&[1.0, 2.0, 3.0]), None);
        assert_eq!(batch_interval(&[1.0, 2.0, f64::NAN, 3.0]), None);
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(mean_interval(&[1.0, f64::INFINITY]), None);
        assert_eq!(median_interval(&[1.0; 5]), None);
    }

    #[test]
    fn a_constant_series_has_no_width() {
        for interval in [batch_interval(&[0.1; 99]).unwrap(), mean_interval(&[0.1; 99]).unwrap()] {
            assert_eq!((interval.mean, interval.low, interval.high), (0.1, 0.1, 0.1));
            assert_eq!(interval.half_width_rel(), 0.0);
        }
        assert_eq!(batch_interval(&[0.0; 99]).unwrap().half_width_rel(), f64::INFINITY);
    }

    #[test]
    fn a_plain_mean_matches_the_tables() {
        // t(0.975, 4) = 2.776 445; the standard error of 1 … 5 is √0.5.
        let interval = mean_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((interval.high - 3.0 - 2.776_445 * 0.5_f64.sqrt()).abs() < 1e-5, "{interval:?}");
        assert_eq!((interval.mean, interval.batches), (3.0, 5));
    }

    #[test]
    fn the_median_matches_the_tables() {
        let ranks = |n: u32| {
            let backwards: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            median_interval(&backwards).unwrap()
        };
        // Ranks from published tables of distribution-free intervals of the median.
        assert_eq!(ranks(6), (3.5, 1.0, 6.0));
        assert_eq!(ranks(10), (5.5, 2.0, 9.0));
        assert_eq!(ranks(25), (13.0, 8.0, 18.0));
        assert_eq!(ranks(100), (50.5, 40.0, 61.0));
        let covered = (0..TRIALS).filter(|&seed| {
            let mut noise = seeded(seed);
            let exponential: Vec<f64> = (0..31).map(|_| -(1.0 - noise.uniform()).ln()).collect();
            let (_, low, high) = median_interval(&exponential).unwrap();
            low <= std::f64::consts::LN_2 && std::f64::consts::LN_2 <= high
        });
        assert!(covered.count() as f64 >= 0.93 * TRIALS as f64);
    }
}
