//! How sure a percentile of latencies is: its 95 % range from order statistics, made as wide as the rounds of the run differ.
//! It computes ranges and gives no percentile.

use crate::Histogram;
use crate::histogram::{BUCKETS, bounds_of};
use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, Normal, StudentsT};

/// What is left on each side of a range.
const TAIL: f64 = 0.025;
/// From this variance of a count on, the normal distribution stands for the binomial one, which the table no longer gives
/// everywhere; they differ by less than 0.001.
const NORMAL_FROM: f64 = 10_000.0;

/// A range of medians of fewer rounds would be so wide as to say nothing.
const MIN_MEDIANS: usize = 3;

/// The buckets of a histogram that hold anything; a few KiB instead of 34.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    /// Bucket and count, ascending.
    buckets: Vec<(u16, u64)>,
}

impl SparseHistogram {
    /// Adds all of `other`'s values, to the width of a bucket.
    pub fn merge(&mut self, other: &Histogram) {
        let mut sum = Vec::with_capacity(self.buckets.len());
        let mut mine = self.buckets.iter().copied().peekable();
        for (index, &count) in (0_u16..).zip(other.counts()).filter(|(_, count)| **count > 0) {
            while let Some(smaller) = mine.next_if(|(own, _)| *own < index) {
                sum.push(smaller);
            }
            let own = mine.next_if(|(own, _)| *own == index).map_or(0, |(_, count)| count);
            sum.push((index, own.saturating_add(count)));
        }
        sum.extend(mine);
        self.buckets = sum;
    }

    /// How many values it holds.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// As base64, like [`Histogram::to_base64`].
    pub fn to_base64(&self) -> String {
        let mut counts = [0; BUCKETS];
        for &(index, count) in &self.buckets {
            counts[usize::from(index)] = count;
        }
        crate::codec::encode(&counts)
    }

    /// Adds all values of another one.
    pub fn append(&mut self, other: &Self) {
        let mut sum: std::collections::BTreeMap<u16, u64> = self.buckets.iter().copied().collect();
        for &(index, count) in &other.buckets {
            let own = sum.entry(index).or_default();
            *own = own.saturating_add(count);
        }
        self.buckets = sum.into_iter().collect();
    }

    /// The quantile at `p` to the width of a bucket, its upper end in nanoseconds; `None` without enough values, as
    /// [`Histogram::quantile`].
    pub fn quantile(&self, p: f64) -> Option<u64> {
        let count = self.count();
        let mut below = 0_u64;
        let (index, _) = self.buckets.iter().find(|(_, more)| {
            below = below.saturating_add(*more);
            below as f64 >= p * count as f64
        })?;
        Histogram::has_enough(count, p).then_some(bounds_of(usize::from(*index)).1)
    }

    /// How many values lie in this bucket or above it.
    fn count_from(&self, bucket: usize) -> u64 {
        let first = self.buckets.partition_point(|(index, _)| usize::from(*index) < bucket);
        self.buckets[first..].iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl From<&Histogram> for SparseHistogram {
    fn from(histogram: &Histogram) -> Self {
        let mut sparse = Self::default();
        sparse.merge(histogram);
        sparse
    }
}

/// A 95 % range, in nanoseconds. An end that the samples do not show is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantileRange {
    /// The lower end.
    pub low: Option<u64>,
    /// The upper end.
    pub high: Option<u64>,
}

/// The 95 % range of the quantile at `p` of all values, which are those of the rounds together; none where
/// [`Histogram::quantile`] gives no quantile, and for fewer than two rounds that hold anything.
///
/// Of n independent values, the number below the true quantile is binomial, so that the quantile lies between two of the
/// values themselves whatever their distribution (Hahn and Meeker, *Statistical Intervals*, ch. 5). Latencies are not
/// independent: a slow second makes thousands of them late together. What is independent, if anything, is the rounds of a
/// run, which lie apart in time. The share of values above the quantile in each round says how much they differ: where its
/// variance between rounds is f times what independence gives, n values are worth n/f (the design effect of cluster samples;
/// Woodruff 1952; Kish 1965), never more than n. A few rounds know f badly, so Student's t over them takes the place of the
/// normal quantile. At worst each round counts as one value: six that agree in nothing still hold the median between the
/// least and the largest of them.
///
/// Shares are taken instead of the rounds' own percentiles, because a round of a hundred I/Os has no p99 of its own, while
/// it does have a number of I/Os beyond the common one. Only where a range of the median stays open because the rounds lie
/// apart as a whole (each has nearly all of its values on one side of the common median), Student's t over the logarithms of
/// their own medians closes it, from three rounds on that have one; other percentiles are then decided by the worst rounds to
/// come, and stay open. Both edges of the quantile's bucket are judged, since most of the
/// values may lie in it. The range covers whole buckets, so that it is never narrower than what the histogram distinguishes.
pub fn quantile_range(p: f64, rounds: &[SparseHistogram]) -> Option<QuantileRange> {
    let rounds: Vec<&SparseHistogram> = rounds.iter().filter(|round| !round.buckets.is_empty()).collect();
    let mut buckets = vec![0_u64; BUCKETS];
    for &(index, count) in rounds.iter().flat_map(|round| &round.buckets) {
        buckets[usize::from(index)] = buckets[usize::from(index)].saturating_add(count);
    }
    let n = buckets.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    if rounds.len() < 2 || !Histogram::has_enough(n, p) {
        return None;
    }
    let bucket = bucket_of(&buckets, p * n as f64)?;
    let effect = design_effect(&rounds, bucket).max(design_effect(&rounds, bucket + 1)).max(1.0);
    let worth = (n as f64 / effect).max(independent_rounds(&rounds));
    let effect = n as f64 / worth;
    let (low, high) = ranks(worth, p)?;
    let end = |rank: Option<f64>| Some(bounds_of(bucket_of(&buckets, rank? * effect)?));
    let (low, high) = (end(low).map(|(lower, _)| lower), end(high).map(|(_, upper)| upper));
    let is_open_median = p == 0.5 && (low.is_none() || high.is_none());
    let of_medians = if is_open_median { range_of_medians(&rounds) } else { None };
    let Some((least, most)) = of_medians else { return Some(QuantileRange { low, high }) };
    let (lower, upper) = bounds_of(bucket);
    Some(QuantileRange { low: low.or(Some(least.min(lower))), high: high.or(Some(most.max(upper))) })
}

/// Student's 95 % interval of the mean logarithm of the rounds' own medians, as nanoseconds; none for fewer than three.
fn range_of_medians(rounds: &[&SparseHistogram]) -> Option<(u64, u64)> {
    let logarithms: Vec<f64> =
        rounds.iter().filter_map(|round| Some((round.quantile(0.5)? as f64).ln())).collect();
    let interval = crate::mean_interval(&logarithms).filter(|_| logarithms.len() >= MIN_MEDIANS)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    let whole = |ns: f64| ns as u64;
    Some((whole(interval.low.exp().floor()), whole(interval.high.exp().ceil())))
}

/// The bucket that holds the value of this rank, from 1.
fn bucket_of(counts: &[u64], rank: f64) -> Option<usize> {
    let mut below = 0_u64;
    counts.iter().position(|&count| {
        below = below.saturating_add(count);
        // Without the small allowance 0.07 · 100 would ask for the 8th value.
        count > 0 && below as f64 >= rank * (1.0 - 1e-12)
    })
}

/// How many times the variance of the share of values in this bucket or above it exceeds that of independent values, with
/// the uncertainty of few rounds in it; 0 where all rounds agree that there are none, or nothing else.
fn design_effect(rounds: &[&SparseHistogram], bucket: usize) -> f64 {
    let counts: Vec<(f64, f64)> =
        rounds.iter().map(|round| (round.count_from(bucket) as f64, round.count() as f64)).collect();
    let above: f64 = counts.iter().map(|(above, _)| above).sum();
    let total: f64 = counts.iter().map(|(_, total)| total).sum();
    let share = above / total;
    let independent = share * (1.0 - share) / total;
    if independent <= 0.0 {
        return 0.0;
    }
    let count = counts.len() as f64;
    let squares: f64 = counts.iter().map(|(above, total)| (above - share * total).powi(2)).sum();
    let between = count / (count - 1.0) * squares / (total * total);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - TAIL));
    between / independent * (t / Normal::standard().inverse_cdf(1.0 - TAIL)).powi(2)
}

/// How many rounds of equal size these are worth.
fn independent_rounds(rounds: &[&SparseHistogram]) -> f64 {
    let counts = || rounds.iter().map(|round| round.count() as f64);
    // A little more, so that six equal rounds are six whatever the last bit says.
    counts().sum::<f64>().powi(2) / counts().map(|count| count * count).sum::<f64>() * (1.0 + 1e-9)
}

/// The ranks, from 1, between which the quantile at `p` of `n` independent values lies with 95 %: the highest that it falls
/// short of in at most 2.5 % of all cases, and the lowest that it exceeds as seldom. None where all values together do not
/// reach that far.
fn ranks(n: f64, p: f64) -> Option<(Option<f64>, Option<f64>)> {
    let n = n.floor();
    let (mean, variance) = (n * p, n * p * (1.0 - p));
    let inside = |rank: f64| (1.0..=n).contains(&rank).then_some(rank);
    if variance >= NORMAL_FROM {
        let reach = Normal::standard().inverse_cdf(1.0 - TAIL) * variance.sqrt() + 0.5;
        return Some((inside((mean - reach).floor()), inside((mean + reach).ceil() + 1.0)));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of values")]
    let n = n as u64;
    let below = Binomial::new(p, n).ok()?;
    let first = |is_reached: &dyn Fn(u64) -> bool| {
        let (mut low, mut high) = (0, n + 1);
        while low < high {
            let middle = low.midpoint(high);
            if is_reached(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low as f64
    };
    // P(fewer than `rank` values lie below the quantile) grows with the rank.
    let fewer = |rank: u64| if rank == 0 { 0.0 } else { below.cdf(rank - 1) };
    Some((inside(first(&|rank| fewer(rank) > TAIL) - 1.0), inside(first(&|rank| fewer(rank) >= 1.0 - TAIL))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    const TRIALS: u64 = 200;

    fn round_of(latencies: impl IntoIterator<Item = f64>) -> SparseHistogram {
        let mut histogram = Histogram::new();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive latencies")]
        latencies.into_iter().for_each(|ns| histogram.record(ns as u64));
        SparseHistogram::from(&histogram)
    }

    /// Latencies of 1 ms, log-normal with a factor of 1.5, of these standard normal values.
    fn log_normal(series: impl IntoIterator<Item = f64>) -> SparseHistogram {
        round_of(series.into_iter().map(|x| 1e6 * (x * 1.5_f64.ln()).exp()))
    }

    /// The quantile of these latencies at `p`.
    fn truth(p: f64) -> f64 {
        1e6 * (Normal::standard().inverse_cdf(p) * 1.5_f64.ln()).exp()
    }

    fn covers(range: QuantileRange, truth: f64) -> bool {
        range.low.is_none_or(|low| low as f64 <= truth) && range.high.is_none_or(|high| truth <= high as f64)
    }

    /// The share of seeded runs whose range of the quantile at `p` holds the truth, and that of those with both ends.
    fn coverage(p: f64, truth: f64, make: impl Fn(&mut SplitMix64) -> Vec<SparseHistogram>) -> (f64, f64) {
        let (mut covered, mut bounded) = (0.0, 0.0);
        for seed in 0..TRIALS {
            let range = quantile_range(p, &make(&mut seeded(seed))).unwrap();
            covered += f64::from(u8::from(covers(range, truth)));
            bounded += f64::from(u8::from(range.low.is_some() && range.high.is_some()));
        }
        (covered / TRIALS as f64, bounded / TRIALS as f64)
    }

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Hahn and Meeker, table A.15; computed anew with exact binomial sums.
        assert_eq!(ranks(100.0, 0.5), Some((Some(40.0), Some(61.0))));
        assert_eq!(ranks(6.0, 0.5), Some((Some(1.0), Some(6.0))));
        assert_eq!(ranks(5.0, 0.5), Some((None, None)));
        assert_eq!(
            ranks(200.0, 0.999),
            Some((Some(199.0), None)),
            "the p99.9 of 200 values has no upper end"
        );
        // Both ways agree where one takes over from the other.
        let (low, high) = ranks(39_999.0, 0.5).unwrap();
        let reach = 1.96 * 10_000_f64.sqrt();
        assert!(
            (low.unwrap() - (20_000.0 - reach)).abs() < 3.0
                && (high.unwrap() - (20_000.0 + reach)).abs() < 3.0
        );
        let (low, high) = ranks(40_001.0, 0.5).unwrap();
        assert!(
            (low.unwrap() - (20_000.0 - reach)).abs() < 3.0
                && (high.unwrap() - (20_000.0 + reach)).abs() < 3.0
        );
        for n in [1e6, 1e8, 1e10, 1e12] {
            let (low, high) = ranks(n, 0.9999).unwrap();
            let reach = (n * 0.9999 * 0.0001_f64).sqrt();
            assert!(((n * 0.9999 - low.unwrap()) / reach - 1.96).abs() < 0.2, "{n}: {low:?}");
            assert!(((high.unwrap() - n * 0.9999) / reach - 1.96).abs() < 0.2, "{n}: {high:?}");
        }
    }

    #[test]
    fn independent_latencies_are_covered_and_not_much_wider_than_needed() {
        for (p, n) in [(0.5, 20), (0.5, 500), (0.9, 500), (0.99, 500), (0.999, 4000)] {
            let make = |rng: &mut SplitMix64| (0..6).map(|_| log_normal(rng.series(n, 0.0, 1.0))).collect();
            let (covered, bounded) = coverage(p, truth(p), make);
            assert!(covered >= 0.93, "p{p} of 6 × {n}: {covered}");
            assert!(bounded > 0.9, "p{p} of 6 × {n}: both ends in {bounded}");
        }
        let range = quantile_range(
            0.5,
            &(0..6).map(|seed| log_normal(seeded(seed).series(500, 0.0, 1.0))).collect::<Vec<_>>(),
        );
        let (low, high) = range.map(|range| (range.low.unwrap() as f64, range.high.unwrap() as f64)).unwrap();
        assert!(high / low < 1.12, "{low} to {high}");
    }

    #[test]
    fn latencies_that_come_in_spells_are_covered_too() {
        // Autoregressive in the order of issue: at 0.99 some 100 neighbours resemble each other, at 0.999 some 1000, so that
        // a round of 1000 is one spell.
        for (p, rho) in [(0.5, 0.9), (0.5, 0.99), (0.5, 0.999), (0.9, 0.99), (0.99, 0.9), (0.99, 0.99)] {
            for rounds in [4, 6, 12] {
                let make = |rng: &mut SplitMix64| {
                    (0..rounds).map(|_| log_normal(rng.autoregressive(1000, 0.0, 1.0, rho))).collect()
                };
                let (covered, _) = coverage(p, truth(p), make);
                assert!(covered >= 0.92, "p{p} at {rho} in {rounds} rounds: {covered}");
            }
        }
    }

    #[test]
    fn rounds_at_two_speeds_have_a_median_between_them() {
        let speeds = [1.0e6, 2.0e6, 1.0e6, 2.0e6, 2.0e6, 1.0e6];
        let rounds: Vec<_> = speeds
            .iter()
            .zip(0..)
            .map(|(&speed, seed)| round_of(seeded(seed).series(1000, speed, 0.02 * speed)))
            .collect();
        let range = quantile_range(0.5, &rounds).unwrap();
        assert!(range.low.unwrap() < 1_100_000 && range.high.unwrap() > 1_900_000, "{range:?}");
    }

    #[test]
    fn rounds_that_lie_apart_as_a_whole_have_a_median_too() {
        for rounds in [4, 5, 6, 9] {
            let make = |rng: &mut SplitMix64| -> Vec<SparseHistogram> {
                let shifts = rng.series(rounds, 0.0, 0.3);
                shifts.iter().map(|&shift| log_normal(rng.series(300, shift, 0.02))).collect()
            };
            let (covered, bounded) = coverage(0.5, 1e6, make);
            assert!(covered >= 0.93 && bounded == 1.0, "{rounds} rounds: {covered}, both ends in {bounded}");
            // Their p99 is that of the slowest round there can be.
            let range = quantile_range(0.99, &make(&mut seeded(1))).unwrap();
            assert_eq!(range.high, None, "{rounds} rounds");
        }
    }

    #[test]
    fn one_bad_round_leaves_a_high_percentile_without_an_upper_end() {
        let steady = || vec![1e6; 1000];
        let late = [vec![1e6; 930], vec![5e7; 70]].concat();
        let rounds: Vec<_> =
            (0..6).map(|round| round_of(if round == 3 { late.clone() } else { steady() })).collect();
        let range = quantile_range(0.99, &rounds).unwrap();
        assert_eq!(range.high, None);
        assert!(range.low.unwrap() <= 1_000_000);
    }

    #[test]
    fn a_range_covers_a_bucket_at_least_and_needs_rounds_and_values() {
        let range = quantile_range(0.5, &[round_of([1e6; 100]), round_of([1e6; 100])]).unwrap();
        let (low, high) = (range.low.unwrap(), range.high.unwrap());
        assert!(low <= 1_000_000 && high >= 1_000_000 && high > low, "{range:?}");
        assert!((high - low) as f64 > 0.003 * 1e6, "a bucket is 0.4 to 0.8% wide: {range:?}");
        assert_eq!(quantile_range(0.5, &[round_of([1e6; 100])]), None, "one round says nothing of others");
        assert_eq!(quantile_range(0.5, &[round_of([1e6; 100]), round_of([])]), None);
        assert_eq!(quantile_range(0.99, &[round_of([1e6; 499]), round_of([1e6; 500])]), None);
        assert!(quantile_range(0.99, &[round_of([1e6; 500]), round_of([1e6; 500])]).is_some());
    }

    #[test]
    fn a_sparse_histogram_is_the_same_histogram() {
        let mut rng = seeded(5);
        let (mut whole, mut sparse) = (Histogram::new(), SparseHistogram::default());
        for _ in 0..3 {
            let mut part = Histogram::new();
            (0..200).for_each(|_| part.record(rng.next_u64() >> 34));
            whole.merge(&part);
            sparse.merge(&part);
        }
        assert_eq!((sparse.count(), sparse.to_base64()), (whole.count(), whole.to_base64()));
        assert_eq!(sparse, SparseHistogram::from(&whole));
    }
}
