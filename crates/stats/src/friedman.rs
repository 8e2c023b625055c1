//! Friedman's test: whether repeated treatments of the same blocks differ, whatever the blocks and the scatter are like.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

/// Probability of treatments that differ as much as these or more by chance alone (Friedman 1937).
///
/// `blocks` are rows of equal length, a column for each treatment; only ranks within a row count. `None` with fewer than
/// two columns or five rows, with rows of unequal length, or if every row has only equal values.
pub fn friedman_p_value(blocks: &[Vec<f64>]) -> Option<f64> {
    let columns = blocks.first()?.len();
    if columns < 2 || blocks.len() < 5 || blocks.iter().any(|row| row.len() != columns) {
        return None;
    }
    let (rows, width) = (blocks.len() as f64, columns as f64);
    let middle = f64::midpoint(width, 1.0);
    let mut sums = vec![0.0; columns];
    let mut spread = 0.0;
    for row in blocks {
        for (sum, rank) in sums.iter_mut().zip(crate::ranks::ranks(row)) {
            *sum += rank - middle;
            spread += (rank - middle).powi(2);
        }
    }
    if spread <= 0.0 {
        return None;
    }
    // With ties the spread of the ranks is smaller than without.
    let statistic = sums.iter().map(|sum| sum * sum).sum::<f64>() / rows / (spread / rows / (width - 1.0));
    let distribution = ChiSquared::new(width - 1.0).ok()?;
    Some(distribution.sf(statistic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;

    /// Friedman's own example, as Conover (1999) computes it: four grasses ranked by twelve home owners, χ² = 8.097.
    #[test]
    fn textbook_example() {
        let rows: [[f64; 4]; 12] = [
            [4.0, 3.0, 2.0, 1.0],
            [4.0, 2.0, 3.0, 1.0],
            [3.0, 1.5, 1.5, 4.0],
            [3.0, 1.0, 2.0, 4.0],
            [4.0, 2.0, 1.0, 3.0],
            [2.0, 2.0, 2.0, 4.0],
            [1.0, 3.0, 2.0, 4.0],
            [2.0, 4.0, 1.0, 3.0],
            [3.5, 1.0, 2.0, 3.5],
            [4.0, 1.0, 3.0, 2.0],
            [4.0, 2.0, 3.0, 1.0],
            [3.5, 1.0, 2.0, 3.5],
        ];
        let blocks: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        let p = friedman_p_value(&blocks).unwrap();
        let expected = ChiSquared::new(3.0).unwrap().sf(8.0973);
        assert!((p - expected).abs() < 1e-4, "{p} {expected}");
    }

    #[test]
    fn false_alarms_are_rare_and_a_drift_is_found() {
        let (mut alarms, mut found) = (0, 0);
        for seed in 0..300 {
            let mut noise = seeded(seed);
            let mut blocks = |drift: f64| -> Vec<Vec<f64>> {
                (0..40)
                    .map(|block| {
                        (0..5).map(|run| f64::from(block) + drift * f64::from(run) + noise.normal()).collect()
                    })
                    .collect()
            };
            alarms += u32::from(friedman_p_value(&blocks(0.0)).unwrap() < 0.01);
            found += u32::from(friedman_p_value(&blocks(0.4)).unwrap() < 0.01);
        }
        assert!(alarms <= 8 && found >= 295, "{alarms} false alarms, {found} found");
    }

    #[test]
    fn what_cannot_tell_says_nothing() {
        assert_eq!(friedman_p_value(&[]), None);
        assert_eq!(friedman_p_value(&vec![vec![1.0, 1.0]; 9]), None);
        assert_eq!(friedman_p_value(&[vec![1.0, 2.0], vec![1.0]]), None);
    }
}
