//! Ranks of a series, and how far those of a part differ from those of the rest (Wilcoxon 1945; Mann and Whitney 1947).

/// The rank of each sample from 1; equal ones have the mean of theirs.
pub(crate) fn ranks(samples: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|&left, &right| samples[left].total_cmp(&samples[right]));
    let mut ranks = vec![0.0; samples.len()];
    let mut from = 0;
    while from < order.len() {
        let same = |&index: &usize| samples[index] == samples[order[from]];
        let to = from + order[from..].iter().take_while(|index| same(index)).count().max(1);
        for &index in &order[from..to] {
            ranks[index] = (from + to + 1) as f64 / 2.0;
        }
        from = to;
    }
    ranks
}

/// The ranks of a series, summed up to each position.
pub(crate) struct RankSums {
    /// Sums of the ranks less their mean; one more than there are samples.
    sums: Vec<f64>,
    /// Variance of the ranks; ties make it smaller.
    variance: f64,
}

impl RankSums {
    /// `None` for a series without two different samples.
    pub(crate) fn count(samples: &[f64]) -> Option<RankSums> {
        let total = samples.len() as f64;
        let mean = (total + 1.0) / 2.0;
        let centred = || ranks(samples).into_iter().map(move |rank| rank - mean);
        let variance = centred().map(|rank| rank.powi(2)).sum::<f64>() / (total - 1.0);
        let running = centred().scan(0.0, |sum, rank| {
            *sum += rank;
            Some(*sum)
        });
        (variance > 0.0).then(|| RankSums { sums: [0.0].into_iter().chain(running).collect(), variance })
    }

    /// The rank sum of the samples from `from` up to before `to`, in its standard deviations: positive if they rank above
    /// the others. Some samples must be in this part, and some outside.
    pub(crate) fn score(&self, from: usize, to: usize) -> f64 {
        let (sum, variance) = self.sum(from, to);
        sum / variance.sqrt()
    }

    /// The rank sum of these samples less its mean, and its variance.
    pub(crate) fn sum(&self, from: usize, to: usize) -> (f64, f64) {
        let (inside, total) = ((to - from) as f64, (self.sums.len() - 1) as f64);
        (self.sums[to] - self.sums[from], self.variance * inside * (total - inside) / total)
    }
}

/// The first of the positions with the largest score.
pub(crate) fn strongest(scored: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    scored.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_share_their_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 7.0]), [2.5, 1.0, 2.5, 4.0]);
        assert!(RankSums::count(&[2.0; 9]).is_none() && RankSums::count(&[]).is_none());
    }

    /// The textbook's variance of a rank sum with ties: m n / 12 · ((N + 1) − Σ(t³ − t) / (N (N − 1))).
    #[test]
    fn the_score_is_wilcoxons() {
        let samples = [5.0, 6.0, 6.0, 1.0, 2.0, 3.0, 3.0, 3.0];
        let (m, n, all) = (3.0, 5.0, 8.0);
        let ties = (8.0 - 2.0) + (27.0 - 3.0);
        let variance: f64 = m * n / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        let expected = (6.0 + 7.5 + 7.5 - m * (all + 1.0) / 2.0) / variance.sqrt();
        assert!((RankSums::count(&samples).unwrap().score(0, 3) - expected).abs() < 1e-12);
    }
}
