//! The standard deviation of samples round the level of their group, from groups of few. It is read from the differences within the
//! groups and needs no group's level, so that two samples of each are enough. It knows nothing of what the numbers are.

use crate::bands::dithered;
use crate::{median, stddev};
use std::collections::BTreeMap;

/// A sample is compared with at most so many that follow it in its group, which limits how many differences there are.
const MAX_PARTNERS: usize = 16;
/// What the lower quartile of the differences of two normal samples is multiplied with to be the standard deviation of one:
/// 1 / (√2 · Φ⁻¹(5/8)).
const QUARTILE_TO_DEVIATION: f64 = 2.2191;

/// The standard deviation of samples round the level of their group, in their unit. The first samples of all groups are of one round,
/// the second ones of another, and so on. `None` without a group of two samples.
///
/// It is made of two parts: that of the rounds, by their medians, and that within them, by the lower quartile of the differences within
/// the groups, scaled (Qn, Rousseeuw and Croux 1993), round the median difference of their two rounds, since one that all groups share
/// is no noise of each. It is right for groups of any size, since it takes no level from samples which then lie too near to it. Stray
/// samples make it larger, three in ten about twice as large, and half of them leave it finite. Samples that are known only to steps of
/// `grain`, as readings of a clock are, come out no finer than a third of a step; 0 for exact ones.
pub fn deviation_within(groups: &[Vec<f64>], grain: f64) -> Option<f64> {
    let mut by_rounds: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for group in groups {
        for (round, sample) in group.iter().enumerate() {
            for (next, partner) in group.iter().enumerate().skip(round + 1).take(MAX_PARTNERS) {
                by_rounds.entry((round, next)).or_default().push(partner - sample);
            }
        }
    }
    let mut sizes: Vec<f64> = Vec::new();
    for differences in by_rounds.values().map(|differences| dithered(differences, grain)) {
        let of_rounds = median(&differences)?;
        sizes.extend(differences.iter().map(|difference| (difference - of_rounds).abs()));
    }
    let last = sizes.len().checked_sub(1)?;
    let (_, quartile, _) = sizes.select_nth_unstable_by(last / 4, f64::total_cmp);
    Some((*quartile * QUARTILE_TO_DEVIATION).hypot(stddev(&levels(groups)).unwrap_or(0.0)))
}

/// How far the samples of each round lie from the median of their group, by the median.
fn levels(groups: &[Vec<f64>]) -> Vec<f64> {
    let mut by_round: Vec<Vec<f64>> = Vec::new();
    for group in groups.iter().filter(|group| group.len() > 1) {
        let Some(level) = median(group) else { continue };
        by_round.resize(by_round.len().max(group.len()), Vec::new());
        for (round, sample) in by_round.iter_mut().zip(group) {
            round.push(sample - level);
        }
    }
    by_round.iter().filter_map(|round| median(round)).collect()
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

    /// Rounds that lie apart as a whole add how far they do, once: of two that are 3 apart, and of three in even steps.
    #[test]
    fn what_all_samples_of_a_round_share_counts_once() {
        for (size, between) in [(2, 3.0 / 2.0_f64.sqrt()), (3, 3.0), (8, 3.0 * 6.0_f64.sqrt())] {
            let mut shifted = groups(size, 0.5);
            for group in &mut shifted {
                group.iter_mut().enumerate().for_each(|(round, sample)| *sample += 3.0 * round as f64);
            }
            let (found, expected) = (deviation_within(&shifted, 0.0).unwrap(), between.hypot(0.5));
            assert!((found / expected - 1.0).abs() < 0.03, "{size} samples a group: {found}, not {expected}");
        }
        let few: Vec<Vec<f64>> = groups(5, 0.5).into_iter().take(8).collect();
        let found = deviation_within(&few, 0.0).unwrap();
        assert!((0.3..0.7).contains(&found), "{found}");
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
        assert!((one_pair - 0.5_f64.sqrt()).abs() < 1e-12, "{one_pair}");
    }
}
