//! Whether groups of samples are distributed differently, by counts in classes: the evidence for a split of the groups, with
//! unknown shares integrated out. Nothing is supposed of how the distributions differ.

use crate::order::{quantile_sorted, sorted};

/// Classes that the samples of all groups are divided into, equally full.
const CLASSES: usize = 8;

/// How many samples of each group lie in each class.
#[derive(Clone, Debug)]
pub struct ClassCounts(Vec<[usize; CLASSES]>);

impl ClassCounts {
    /// Counts the samples of the groups, in eight classes with as many samples of all groups together in each.
    pub fn of(groups: &[&[f64]]) -> ClassCounts {
        let pooled = sorted(&groups.concat());
        let limits: Vec<f64> = (1..CLASSES)
            .filter_map(|class| quantile_sorted(&pooled, class as f64 / CLASSES as f64))
            .collect();
        let mut counts = vec![[0; CLASSES]; groups.len()];
        for (group, count) in groups.iter().zip(&mut counts) {
            for sample in *group {
                count[limits.partition_point(|limit| limit < sample)] += 1;
            }
        }
        ClassCounts(counts)
    }

    /// Log odds that the groups between the splits have other shares of the classes each, against that all have the same;
    /// unknown shares are integrated out (each mixture as likely as any other). Splits are ascending positions of groups.
    pub fn log_odds(&self, splits: &[usize]) -> f64 {
        let ends: Vec<usize> = [0].into_iter().chain(splits.iter().copied()).chain([self.0.len()]).collect();
        let mut apart = 0.0;
        for pair in ends.windows(2) {
            apart += self.evidence(pair[0]..pair[1]);
        }
        apart - self.evidence(0..self.0.len())
    }

    /// Logarithm of the chance of these groups' counts when all mixtures are equally likely.
    fn evidence(&self, groups: std::ops::Range<usize>) -> f64 {
        let mut counts = [0; CLASSES];
        for group in &self.0[groups] {
            counts.iter_mut().zip(group).for_each(|(sum, count)| *sum += count);
        }
        let samples: usize = counts.iter().sum();
        log_factorial(CLASSES - 1) + counts.iter().map(|&count| log_factorial(count)).sum::<f64>()
            - log_factorial(samples + CLASSES - 1)
    }
}

fn log_factorial(n: usize) -> f64 {
    (2..=n).map(|k| (k as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    /// The counts that these distributions have on average give the true split log odds of 103. Equal groups have odds of 1 on
    /// average, so odds of t or more come with a chance of at most 1/t; of the 200 splits tried here, one in 1000 runs of the
    /// test would have one above 200,000.
    #[test]
    fn the_true_split_has_the_best_odds_and_equal_groups_have_none() {
        for seed in 0..50 {
            let mut noise = seeded(seed);
            // Other scatter around the same middle.
            let groups: Vec<Vec<f64>> =
                (0..8).map(|group| noise.series(40, 10.0, if group < 3 { 0.1 } else { 1.0 })).collect();
            let groups: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
            let counts = ClassCounts::of(&groups);
            let best = (1..8).max_by(|&a, &b| counts.log_odds(&[a]).total_cmp(&counts.log_odds(&[b])));
            assert_eq!(best, Some(3), "seed {seed}");
            assert!(counts.log_odds(&[3]) > 60.0, "seed {seed}");
            let alike = ClassCounts::of(&groups[3..]);
            assert!((1..5).all(|split| alike.log_odds(&[split]) < 200_000_f64.ln()), "seed {seed}");
        }
    }
}
