//! Plain descriptions of a series: mean, spread, quantiles, correlation, fairness. Never sorts in place,
//! never guesses: an empty series has no mean.

/// The arithmetic mean; none for an empty series.
pub fn mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() { None } else { Some(samples.iter().sum::<f64>() / samples.len() as f64) }
}

/// The standard deviation with n − 1 in the denominator; none for fewer than two samples.
pub fn stddev(samples: &[f64]) -> Option<f64> {
    let center = mean(samples).filter(|_| samples.len() > 1)?;
    // A constant series must have no spread at all, whatever the mean's last bit says.
    if samples.iter().all(|x| *x == samples[0]) {
        return Some(0.0);
    }
    let squares: f64 = samples.iter().map(|x| (x - center).powi(2)).sum();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// The quantile at `p` (brought into [0, 1]) of an ascending series, interpolated between its neighbours
/// (Hyndman and Fan 1996, type 7); none for an empty series.
pub fn quantile_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and the last index; a NaN becomes 0")]
    let below = (position as usize).min(last);
    let above = (below + 1).min(last);
    let share = position - below as f64;
    // Equal neighbours, infinite ones too, need no interpolation.
    if sorted[below] == sorted[above] {
        return Some(sorted[below]);
    }
    Some(sorted[below] + share * (sorted[above] - sorted[below]))
}

/// The median; none for an empty series. The series may be in any order.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile_sorted(&sorted(samples), 0.5)
}

/// The median absolute deviation from the median, unscaled (times 1.4826 it estimates a normal standard
/// deviation); none for an empty series.
pub fn mad(samples: &[f64]) -> Option<f64> {
    let center = median(samples)?;
    median(&samples.iter().map(|x| (x - center).abs()).collect::<Vec<_>>())
}

/// The correlation of each sample with the next, about −1 … 1; 0 for a constant series or fewer than three
/// samples.
pub fn lag1(samples: &[f64]) -> f64 {
    let Some(center) = mean(samples).filter(|_| samples.len() > 2 && stddev(samples) != Some(0.0)) else {
        return 0.0;
    };
    let products: f64 = samples.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    let squares: f64 = samples.iter().map(|x| (x - center).powi(2)).sum();
    products / squares
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984): 1 if all shares are equal, 1/n if one has all.
/// 1 for an empty series and for one of zeros, where none is worse off than another.
///
/// ```
/// assert_eq!(rdsk_stats::jain(&[5.0, 5.0]), 1.0);
/// assert_eq!(rdsk_stats::jain(&[5.0, 0.0]), 0.5);
/// ```
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// So many parts of equal length, in order; a remainder at the end is left out. Fewer if there are fewer samples.
pub(crate) fn batches(samples: &[f64], count: usize) -> impl Iterator<Item = &[f64]> {
    samples.chunks_exact((samples.len() / count).max(1)).take(count)
}

/// An ascending copy; the total order puts NaN last instead of failing.
pub(crate) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut copy = samples.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use proptest::prelude::*;

    #[test]
    fn small_series() {
        let series = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((mean(&series), median(&series), mad(&series)), (Some(2.5), Some(2.5), Some(1.0)));
        assert!((stddev(&series).unwrap() - 1.290_994).abs() < 1e-6);
        assert_eq!((mean(&[]), median(&[]), mad(&[]), quantile_sorted(&[], 0.5)), (None, None, None, None));
        assert_eq!((stddev(&[1.0]), stddev(&[0.1; 7])), (None, Some(0.0)));
        assert_eq!(quantile_sorted(&[1.0, 2.0, 3.0], 0.25), Some(1.5));
        assert_eq!(quantile_sorted(&[1.0, 2.0, 3.0], 7.0), Some(3.0));
    }

    #[test]
    fn correlation_is_found() {
        assert_eq!((lag1(&[]), lag1(&[1.0, 2.0]), lag1(&[0.1; 50])), (0.0, 0.0, 0.0));
        let alternating: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert!(lag1(&alternating) < -0.98);
        let correlated = seeded(3).autoregressive(20_000, 5.0, 1.0, 0.8);
        assert!((lag1(&correlated) - 0.8).abs() < 0.02, "{}", lag1(&correlated));
    }

    #[test]
    fn fairness() {
        assert_eq!((jain(&[]), jain(&[0.0, 0.0]), jain(&[3.0; 4])), (1.0, 1.0, 1.0));
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_stay_inside(
            series in prop::collection::vec(-1e9_f64..1e9, 1..50), p in 0.0_f64..1.0
        ) {
            let ascending = sorted(&series);
            let low = quantile_sorted(&ascending, p * 0.9).unwrap();
            let high = quantile_sorted(&ascending, p).unwrap();
            prop_assert!(ascending[0] <= low && low <= high && high <= ascending[ascending.len() - 1]);
        }
    }
}
