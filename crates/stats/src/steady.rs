//! The warm-up cut: how many samples at the start of a series do not yet belong to its steady state. Never
//! cuts more than half, and says when half was not enough.

/// Samples per batch in MSER-5.
const BATCH: usize = 5;
/// The statistic rests on at least this many batches; with fewer, chance alone makes the end look steady.
const MIN_BATCHES: usize = 5;
/// The second half must be this much better than the first before a series is called unsteady, because the
/// minimum of a steady series may lie anywhere by chance.
const CLEARLY_BETTER: f64 = 0.5;

/// Whether a series has a steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steadiness {
    /// The samples after the cut look alike.
    Steady,
    /// The series was still changing when half of it was over.
    NotSteady,
    /// Fewer than ten batches of five: nothing can be said, nothing is cut.
    TooShort,
}

/// Where the steady state of a series begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warmup {
    /// How many samples to drop from the start; at most half of them.
    pub cut: usize,
    /// Whether what is left is steady.
    pub steady: Steadiness,
}

/// The warm-up of a series by MSER-5 (White 1997, "An effective truncation heuristic for bias reduction in
/// simulation output"; White, Cobb and Spratt 2000): batches of five, cut where the squared standard error of
/// the mean of the rest is least. Looked for in the first half; a clearly smaller error in the second half
/// makes the series not steady. The last five batches are no candidates (Hoad and Robinson 2010), as so few
/// can agree by chance.
pub fn mser5(samples: &[f64]) -> Warmup {
    let batches: Vec<f64> = samples.chunks_exact(BATCH).filter_map(crate::mean).collect();
    if batches.len() < 2 * MIN_BATCHES {
        return Warmup { cut: 0, steady: Steadiness::TooShort };
    }
    let half = batches.len() / 2;
    // From the end, so that each step adds one batch to the tail (Welford 1962).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let (mut first_half, mut second_half) = ((0, f64::INFINITY), f64::INFINITY);
    for (index, &batch) in batches.iter().enumerate().rev() {
        count += 1.0;
        let delta = batch - mean;
        mean += delta / count;
        squares += delta * (batch - mean);
        let error = squares / (count * count);
        if index > half && batches.len() - index >= MIN_BATCHES {
            second_half = second_half.min(error);
        }
        // With equal errors the smaller cut wins: a constant series loses nothing.
        if index <= half && error <= first_half.1 {
            first_half = (index, error);
        }
    }
    if second_half < CLEARLY_BETTER * first_half.1 {
        return Warmup { cut: half * BATCH, steady: Steadiness::NotSteady };
    }
    Warmup { cut: first_half.0 * BATCH, steady: Steadiness::Steady }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::median;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    /// Median share cut and share of series called not steady, over seeded series.
    fn over_seeds(make: impl Fn(&mut SplitMix64) -> Vec<f64>) -> (f64, f64) {
        let (mut cuts, mut not_steady) = (Vec::new(), 0.0);
        for seed in 0..200 {
            let series = make(&mut seeded(seed));
            let warmup = mser5(&series);
            assert!(warmup.cut <= series.len() / 2);
            cuts.push(warmup.cut as f64 / series.len() as f64);
            not_steady += f64::from(u8::from(warmup.steady == Steadiness::NotSteady)) / 200.0;
        }
        (median(&cuts).unwrap(), not_steady)
    }

    #[test]
    fn a_steady_series_is_left_alone() {
        assert_eq!(mser5(&[0.1; 333]), Warmup { cut: 0, steady: Steadiness::Steady });
        for n in [60, 200, 1000] {
            let (cut, not_steady) = over_seeds(|noise| noise.series(n, 100.0, 10.0));
            assert!(cut <= 0.10 && not_steady <= 0.05, "{n}: {cut}, {not_steady}");
        }
        let (cut, not_steady) = over_seeds(|noise| noise.autoregressive(400, 100.0, 10.0, 0.5));
        assert!(cut <= 0.10 && not_steady <= 0.05, "{cut}, {not_steady}");
        let (cut, not_steady) = over_seeds(|noise| noise.pulses(400, 20.0, 0.0));
        assert!(cut <= 0.10 && not_steady <= 0.05, "{cut}, {not_steady}");
    }

    #[test]
    fn a_warm_up_is_cut() {
        for seed in 0..50 {
            let mut series = seeded(seed).series(300, 100.0, 2.0);
            for (index, sample) in series.iter_mut().enumerate().take(60) {
                *sample *= index as f64 / 60.0;
            }
            let warmup = mser5(&series);
            assert_eq!(warmup.steady, Steadiness::Steady);
            assert!((45..=110).contains(&warmup.cut), "seed {seed}: {warmup:?}");
        }
    }

    #[test]
    fn a_fast_start_is_cut_too() {
        let mut series = vec![900.0; 40];
        series.extend(seeded(1).series(160, 100.0, 5.0));
        let warmup = mser5(&series);
        assert!((40..=60).contains(&warmup.cut), "{warmup:?}");
    }

    #[test]
    fn an_endless_ramp_is_not_steady() {
        let ramp: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(mser5(&ramp), Warmup { cut: 100, steady: Steadiness::NotSteady });
        let late_step: Vec<f64> = (0..200).map(|i| if i < 150 { 10.0 } else { 2.0 }).collect();
        assert_eq!(mser5(&late_step).steady, Steadiness::NotSteady);
    }

    #[test]
    fn a_short_series_is_not_judged() {
        assert_eq!(mser5(&[1.0; 49]), Warmup { cut: 0, steady: Steadiness::TooShort });
        assert_eq!(mser5(&[]), Warmup { cut: 0, steady: Steadiness::TooShort });
    }
}
