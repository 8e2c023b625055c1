//! The standard deviation that groups of few samples share, each round a level of its own. It is read from the differences within the
//! groups and needs no group's level, so that two samples of each are enough. It knows nothing of what the numbers are.

use crate::bands::dithered;

/// A sample is compared with at most so many that follow it in its group, which limits how many differences there are.
const MAX_PARTNERS: usize = 16;
/// What the lower quartile of the differences of two normal samples is multiplied with to be the standard deviation of one:
/// 1 / (√2 · Φ⁻¹(5/8)).
const QUARTILE_TO_DEVIATION: f64 = 2.2191;

/// The standard deviation of normal samples round the level of their group, in their unit: the lower quartile of the differences within
/// the groups, scaled (Qn, Rousseeuw and Croux 1993). `None` without a group of two samples.
///
/// It is right for groups of any size, since it takes no level from samples which then lie too near to it. Stray samples make it larger,
/// three in ten about twice as large, and half of them leave it finite. Samples that are known only to steps of `grain`, as readings of a
/// clock are, come out no finer than a third of a step; 0 for exact ones.
pub fn deviation_within(groups: &[Vec<f64>], grain: f64) -> Option<f64> {
    let mut differences: Vec<f64> = Vec::new();
    for group in groups {
        for (place, sample) in group.iter().enumerate() {
            let partners = group[place + 1..].iter().take(MAX_PARTNERS);
            differences.extend(partners.map(|partner| partner - sample));
        }
    }
    let last = differences.len().checked_sub(1)?;
    let mut sizes: Vec<f64> = dithered(&differences, grain).into_iter().map(f64::abs).collect();
    let (_, quartile, _) = sizes.select_nth_unstable_by(last / 4, f64::total_cmp);
    Some(*quartile * QUARTILE_TO_DEVIATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    /// Groups of so many samples, 24,000 in all, each group round a level of its own.
    fn groups(size: usize, sigma: f64) -> Vec<Vec<f64>> {
        let mut noise = seeded(size as u64);
        (0..24_000 / size).map(|group| noise.series(size, 10.0 * group as f64, sigma)).collect()
    }

    #[test]
    fn normal_noise_has_its_deviation_in_groups_of_any_size() {
        for size in [2, 3, 4, 8, 30] {
            let found = deviation_within(&groups(size, 0.5), 0.0).unwrap();
            assert!((found / 0.5 - 1.0).abs() < 0.05, "{size} samples a group: {found}");
        }
    }

    #[test]
    fn stray_samples_make_it_about_twice_as_large_at_most() {
        for size in [2, 3, 8] {
            let mut stray = seeded(7);
            let mut some = groups(size, 0.5);
            for sample in some.iter_mut().flatten() {
                if stray.uniform() < 0.3 {
                    *sample += 1000.0 * stray.uniform();
                }
            }
            let found = deviation_within(&some, 0.0).unwrap() / 0.5;
            assert!((1.0..2.5).contains(&found), "{size} samples a group: {found}");
        }
    }

    /// A clock in steps of 1 reads 0 in most differences of noise that is as fine as it.
    #[test]
    fn steps_of_a_clock_do_not_hide_the_noise() {
        for (sigma, least, most) in [(0.01, 0.2, 0.4), (1.0, 0.9, 1.3), (5.0, 4.7, 5.3)] {
            let mut read = groups(3, sigma);
            read.iter_mut().flatten().for_each(|sample| *sample = sample.round());
            let found = deviation_within(&read, 1.0).unwrap();
            assert!((least..most).contains(&found), "{sigma}: {found}");
        }
    }

    #[test]
    fn equal_samples_have_none_and_single_ones_tell_nothing() {
        assert_eq!(deviation_within(&[vec![3.0; 4], vec![5.0; 2]], 0.0), Some(0.0));
        assert_eq!(deviation_within(&[vec![1.0], vec![2.0], Vec::new()], 0.0), None);
        assert_eq!(deviation_within(&[], 0.0), None);
        let one_pair = deviation_within(&[vec![1.0, 2.0]], 0.0).unwrap();
        assert!((one_pair - QUARTILE_TO_DEVIATION).abs() < 1e-12, "{one_pair}");
    }
}
