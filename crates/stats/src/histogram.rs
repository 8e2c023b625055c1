//! The latency histogram: fixed buckets, so that merging is addition and recording allocates nothing. Never
//! resizes, never loses a value: what is outside the range is counted at its end.
//!
//! The buckets are those of an HdrHistogram of two significant digits from 1 ns to 1000 s, so that exporting
//! is exact. They are our own array because recording sits in the hot loop: on one core of an AMD EPYC a
//! value cost 1.4 ns here and 4.2 ns in the general library (test `record_cost`, 2026-11).

use crate::codec::{self, HistogramError, MAX_NS, MIN_NS};

/// Each power of two is cut into this many buckets, two to this power: a width of at most 1/128 = 0.8 %.
const SUB_BITS: u32 = 7;
/// All buckets up to the power of two that holds `MAX_NS` (2^39 < 10^12 < 2^40).
pub(crate) const BUCKETS: usize = (40 - SUB_BITS as usize + 1) << SUB_BITS;

/// Counts of latencies in nanoseconds, by buckets of at most 0.8 % relative width between 1 ns and 1000 s.
/// Count, sum, smallest and largest are kept exactly beside the buckets. 34 KiB.
///
/// ```
/// let mut latencies = rdsk_stats::Histogram::default();
/// for ns in 1..=1000 {
///     latencies.record(ns * 1000);
/// }
/// assert_eq!(latencies.max(), Some(1_000_000));
/// assert!(latencies.quantile(0.99).unwrap().abs_diff(990_000) < 9_900);
/// assert_eq!(latencies.quantile(0.999), None); // 10 000 values would be needed
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram; the one allocation happens here.
    pub fn new() -> Histogram {
        let counts = vec![0; BUCKETS].try_into().expect("the vector has just been made as long as the array");
        Histogram { counts, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one latency. Zero counts as 1 ns, more than 1000 s as 1000 s.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let ns = ns.clamp(MIN_NS, MAX_NS);
        self.counts[index_of(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts the same latency so many times, as [`Histogram::record`] does once.
    pub fn record_n(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let ns = ns.clamp(MIN_NS, MAX_NS);
        let bucket = &mut self.counts[index_of(ns)];
        *bucket = bucket.saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(times));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of `other`'s values, as if they had been recorded here.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The values that are not in `part`, which were all recorded here too; smallest and largest are the bounds of their buckets.
    #[must_use]
    pub fn without(&self, part: &Histogram) -> Histogram {
        let pairs = self.counts.iter().zip(part.counts.iter());
        let counts: Vec<u64> = pairs.map(|(whole, part)| whole.saturating_sub(*part)).collect();
        let sum_ns = u64::try_from(self.sum_ns.saturating_sub(part.sum_ns)).unwrap_or(u64::MAX);
        Histogram::from_buckets(&counts, sum_ns)
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many values are at most `ns`, to the width of a bucket: those of the bucket that holds `ns` count, too.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        self.counts[..=index_of(ns)].iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// How many values are surely at most `ns`: of the bucket that holds `ns`, none unless it ends there.
    pub fn count_within(&self, ns: u64) -> u64 {
        let index = index_of(ns);
        let end = if bounds_of(index).1 <= ns { index + 1 } else { index };
        self.counts[..end].iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The sum in nanoseconds of the values above `ns`, to the width of a bucket: those of the bucket that holds `ns` do not count, and each
    /// other counts as the middle of its bucket.
    pub fn sum_above(&self, ns: u64) -> f64 {
        let first = index_of(ns) + 1;
        let buckets = (first..BUCKETS).filter(|&index| self.counts[index] > 0);
        buckets
            .map(|index| {
                let (low, high) = bounds_of(index);
                low.midpoint(high) as f64 * self.counts[index] as f64
            })
            .sum()
    }

    /// The smallest value in nanoseconds, exact; none while empty.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The largest value in nanoseconds, exact; none while empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The mean in nanoseconds, from the exact sum; none while empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The value in nanoseconds that a share `p` of all values does not exceed, at most 0.8 % too high; none
    /// if fewer than 10/(1−p) values were recorded, because such a quantile would rest on fewer than ten
    /// values above it, and none for a `p` outside [0, 1). Ask [`Histogram::max`] for the end.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        if Self::has_enough(self.count, p) { self.quantile_unchecked(p) } else { None }
    }

    /// Whether so many values have a quantile at `p`: ten lie above it.
    pub fn has_enough(count: u64, p: f64) -> bool {
        // 1 − 0.99 is a little more than 0.01 in binary; exactly 1000 values must still be enough.
        (0.0..1.0).contains(&p) && count as f64 * (1.0 - p) >= 10.0 * (1.0 - 1e-9)
    }

    /// What a latency may have been that is reported as `ns`, a quantile of any histogram: from the lowest value of its bucket up to, and
    /// without, the nanosecond after it.
    pub fn step_of(ns: u64) -> (f64, f64) {
        (lower_of(index_of(ns)) as f64, ns.saturating_add(1) as f64)
    }

    /// The count of each bucket.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts[..]
    }

    /// As [`Histogram::quantile`], however few values there are; none only while empty. `p` is brought into
    /// [0, 1].
    ///
    /// It is the highest value of the bucket that holds the ⌈p·n⌉-th smallest value, never above
    /// [`Histogram::max`]: the convention of HdrHistogram.
    pub fn quantile_unchecked(&self, p: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let exact_rank = p.clamp(0.0, 1.0) * self.count as f64;
        // Without the small allowance 0.07 · 100 would ask for the 8th value.
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and the count; a NaN becomes 0")]
        let rank = ((exact_rank * (1.0 - 1e-12)).ceil() as u64).clamp(1, self.count);
        let mut below = 0_u64;
        for (index, &count) in self.counts.iter().enumerate() {
            below = below.saturating_add(count);
            if below >= rank {
                return Some(upper_of(index).min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// A histogram that was counted elsewhere, in the same buckets: `counts` has one per bucket, missing ones are 0. The sum
    /// is exact; smallest and largest value are the bounds of their buckets.
    pub fn from_buckets(counts: &[u64], sum_ns: u64) -> Histogram {
        let mut histogram = Histogram::new();
        for (index, &count) in counts.iter().enumerate().take(BUCKETS).filter(|(_, count)| **count > 0) {
            histogram.counts[index] = count;
            histogram.count = histogram.count.saturating_add(count);
            histogram.min_ns = histogram.min_ns.min(lower_of(index).max(MIN_NS));
            histogram.max_ns = upper_of(index).min(MAX_NS);
        }
        histogram.sum_ns = sum_ns.into();
        histogram
    }

    /// The buckets as base64 of an uncompressed HdrHistogram V2 encoding, which other HdrHistogram libraries
    /// read. The exact sum, minimum and maximum have no place in that format.
    pub fn to_base64(&self) -> String {
        codec::encode(&self.counts[..])
    }

    /// Reads what [`Histogram::to_base64`] wrote. The buckets come back as they were; minimum, maximum and mean only to the width of a
    /// bucket (lowest value of the first, highest of the last, middle of each), so a record keeps the exact ones beside it. Errors:
    /// [`HistogramError`] for anything but our own layout, whatever the text holds.
    pub fn from_base64(text: &str) -> Result<Histogram, HistogramError> {
        let mut histogram = Histogram::new();
        codec::decode(text, &mut histogram.counts[..])?;
        for index in 0..BUCKETS {
            let count = histogram.counts[index];
            if count == 0 {
                continue;
            }
            let (lower, upper) = (lower_of(index), upper_of(index).min(MAX_NS));
            histogram.count =
                histogram.count.checked_add(count).ok_or(HistogramError::Damaged { what: "count" })?;
            histogram.sum_ns += u128::from(count) * u128::from(lower.midpoint(upper));
            histogram.min_ns = histogram.min_ns.min(lower);
            histogram.max_ns = upper;
        }
        Ok(histogram)
    }
}

/// The bucket of a value: below 2^8 each value has its own, above the topmost eight bits choose.
#[inline]
fn index_of(ns: u64) -> usize {
    let ns = ns.min(MAX_NS);
    let shift = (u64::BITS - SUB_BITS - 1).saturating_sub((ns | 1).leading_zeros());
    // The shifted value is below 2^8 and the shift at most 32.
    #[expect(clippy::cast_possible_truncation, reason = "a bucket index is below BUCKETS")]
    let index = ((u64::from(shift) << SUB_BITS) + (ns >> shift)) as usize;
    index
}

/// The lowest and the highest value of a bucket.
pub(crate) fn bounds_of(index: usize) -> (u64, u64) {
    (lower_of(index), upper_of(index))
}

/// The lowest value of a bucket.
fn lower_of(index: usize) -> u64 {
    let (value, shift) = value_and_shift(index);
    value << shift
}

/// The highest value of a bucket.
fn upper_of(index: usize) -> u64 {
    let (value, shift) = value_and_shift(index);
    ((value + 1) << shift) - 1
}

fn value_and_shift(index: usize) -> (u64, u32) {
    let half = 1 << SUB_BITS;
    let shift = (index >> SUB_BITS).saturating_sub(1);
    let value = if index < 2 * half { index } else { half + index % half };
    (value as u64, u32::try_from(shift).expect("there are fewer than 64 powers of two"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_above_a_limit_leaves_out_what_is_below() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_000, 50);
        histogram.record_n(150_000_000, 4);
        histogram.record(400_000_000);
        assert!((histogram.sum_above(100_000_000) / 1e9 - 1.0).abs() < 0.004);
        assert!((histogram.sum_above(200_000_000) / 4e8 - 1.0).abs() < 0.004);
        assert!(histogram.sum_above(500_000_000) < 1.0);
    }
    use proptest::prelude::*;

    #[test]
    fn values_up_to_a_limit_are_counted_to_a_bucket() {
        let histogram = histogram_of(&[1, 100, 100, 5_000, u64::MAX]);
        for (ns, count) in [(0, 0), (1, 1), (99, 1), (100, 3), (4_000, 3), (6_000, 4), (u64::MAX, 5)] {
            assert_eq!(histogram.count_up_to(ns), count, "{ns}");
        }
        // Those of a bucket count where it ends, and not before.
        let (low, high) = bounds_of(index_of(5_000));
        assert!(low < high, "a bucket of several values");
        for (ns, count) in [(0, 0), (1, 1), (100, 3), (low, 3), (high - 1, 3), (high, 4), (u64::MAX, 5)] {
            assert_eq!(histogram.count_within(ns), count, "{ns}");
        }
    }

    #[test]
    fn many_times_at_once_are_as_many_one_by_one() {
        let (mut at_once, mut singly) = (Histogram::new(), Histogram::new());
        for (ns, times) in [(0, 2), (1_000, 7), (u64::MAX, 3), (5, 0)] {
            at_once.record_n(ns, times);
            (0..times).for_each(|_| singly.record(ns));
        }
        assert_eq!(at_once, singly);
        at_once.record_n(1, u64::MAX);
        assert_eq!(at_once.count(), u64::MAX, "it stops at the end and does not go round");
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
    fn whole(ns: f64) -> u64 {
        ns as u64
    }

    fn histogram_of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    /// The buckets that hold anything, upwards: lowest and highest value in nanoseconds, both inclusive, and count.
    fn buckets(histogram: &Histogram) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let used = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(index, &count)| (lower_of(index), upper_of(index), count))
    }

    /// How many values are at least `ns`, to the resolution of the buckets.
    fn count_at_or_above(histogram: &Histogram, ns: u64) -> u64 {
        buckets(histogram).filter(|&(_, highest, _)| highest >= ns).map(|(_, _, count)| count).sum()
    }

    /// Latencies of all magnitudes, beyond both ends too.
    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((any::<u64>(), 20_u32..64).prop_map(|(ns, shift)| ns >> shift), 0..300)
    }

    #[test]
    fn buckets_tile_the_range_without_gaps() {
        assert_eq!(lower_of(0), 0);
        for index in 1..BUCKETS {
            assert_eq!(lower_of(index), upper_of(index - 1) + 1, "{index}");
            assert_eq!(index_of(lower_of(index).min(MAX_NS)), index.min(index_of(MAX_NS)), "{index}");
            let width = upper_of(index) - lower_of(index);
            assert!(width as f64 <= 0.01 * lower_of(index) as f64, "bucket {index} is {width} wide");
        }
        assert!(index_of(u64::MAX) < BUCKETS);
    }

    /// Of a thousand nanoseconds on a bucket is wider than one; below 2^8 ns it is one.
    #[test]
    fn a_quantile_stands_for_its_bucket() {
        let (low, high) = Histogram::step_of(upper_of(index_of(80_000)));
        assert!(low <= 80_000.0 && 80_000.0 < high && (0.004..0.008).contains(&(high / low - 1.0)));
        assert_eq!(index_of(80_000), index_of(whole(low)), "its lowest value");
        assert_eq!(index_of(whole(high)), index_of(80_000) + 1, "up to the next bucket");
        assert_eq!(Histogram::step_of(100), (100.0, 101.0));
    }

    #[test]
    fn both_ends_are_counted() {
        let histogram = histogram_of(&[0, u64::MAX]);
        assert_eq!((histogram.count(), histogram.min(), histogram.max()), (2, Some(1), Some(MAX_NS)));
        assert_eq!(histogram.quantile_unchecked(1.0), Some(MAX_NS));
        assert_eq!(histogram.quantile_unchecked(0.0), Some(1));
    }

    #[test]
    fn an_empty_histogram_knows_nothing() {
        let empty = Histogram::default();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.mean()), (0, None, None, None));
        assert_eq!((empty.quantile(0.5), empty.quantile_unchecked(0.5)), (None, None));
        assert_eq!((count_at_or_above(&empty, 0), buckets(&empty).count()), (0, 0));
        assert_eq!(Histogram::from_base64(&empty.to_base64()), Ok(empty));
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it() {
        for (p, needed) in [(0.5, 20), (0.9, 100), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000)] {
            let mut histogram = Histogram::new();
            (1..needed).for_each(|_| histogram.record(5));
            assert_eq!(histogram.quantile(p), None, "{p}");
            histogram.record(5);
            assert_eq!(histogram.quantile(p), Some(5), "{p}");
        }
        assert_eq!(histogram_of(&[5; 100]).quantile(1.0), None);
        assert_eq!(histogram_of(&[5; 100]).quantile(f64::NAN), None);
    }

    #[test]
    fn ranks_are_exact_for_small_values() {
        let histogram = histogram_of(&(1..=100).collect::<Vec<_>>());
        for percent in 1..=100 {
            assert_eq!(
                histogram.quantile_unchecked(f64::from(percent) / 100.0),
                Some(percent.try_into().unwrap())
            );
        }
        assert_eq!(count_at_or_above(&histogram, 91), 10);
        assert_eq!(histogram.mean(), Some(50.5));
        assert_eq!(buckets(&histogram).nth(2), Some((3, 3, 1)));
    }

    proptest! {
        #[test]
        fn merging_is_recording_together_in_any_order(a in latencies(), b in latencies(), c in latencies()) {
            let (ha, hb, hc) = (histogram_of(&a), histogram_of(&b), histogram_of(&c));
            let together = histogram_of(&[a, b, c].concat());
            let mut left = ha.clone();
            left.merge(&hb);
            left.merge(&hc);
            let mut right = hc;
            right.merge(&hb);
            let mut outer = ha;
            outer.merge(&right);
            prop_assert_eq!(&left, &together);
            prop_assert_eq!(&outer, &together);
        }

        #[test]
        fn quantiles_err_by_at_most_a_bucket(mut values in latencies(), p in 0.0_f64..=1.0) {
            prop_assume!(!values.is_empty());
            let histogram = histogram_of(&values);
            values.iter_mut().for_each(|ns| *ns = (*ns).clamp(MIN_NS, MAX_NS));
            values.sort_unstable();
            #[expect(clippy::cast_possible_truncation, reason = "a rank within a short vector")]
            let rank = ((p * values.len() as f64 * (1.0 - 1e-12)).ceil() as usize).max(1);
            let (exact, told) = (values[rank - 1], histogram.quantile_unchecked(p).unwrap());
            prop_assert!(told >= exact && told <= *values.last().unwrap());
            prop_assert!((told - exact) as f64 <= 0.01 * exact as f64, "{} for {}", told, exact);
        }

        #[test]
        fn base64_round_trips_the_buckets(values in latencies()) {
            let histogram = histogram_of(&values);
            let back = Histogram::from_base64(&histogram.to_base64()).unwrap();
            prop_assert_eq!(back.count(), histogram.count());
            prop_assert!(buckets(&back).eq(buckets(&histogram)));
            prop_assert_eq!(back.to_base64(), histogram.to_base64());
            if let (Some(mean), Some(exact)) = (back.mean(), histogram.mean()) {
                prop_assert!((mean - exact).abs() <= 0.01 * exact);
                prop_assert!(back.min() <= histogram.min() && back.max() >= histogram.max());
            }
        }

        #[test]
        fn the_general_library_agrees(values in latencies(), p in 0.0_f64..=1.0) {
            prop_assume!(!values.is_empty());
            let ours = histogram_of(&values);
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(MIN_NS, MAX_NS, 2).unwrap();
            values.iter().for_each(|&ns| theirs.record(ns.clamp(MIN_NS, MAX_NS)).unwrap());
            let told = ours.quantile_unchecked(p).unwrap();
            let expected = theirs.highest_equivalent(theirs.value_at_quantile(p));
            prop_assert_eq!(theirs.highest_equivalent(told), expected);
        }
    }

    /// Run by hand: `cargo test --release -p rdsk-stats record_cost -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement of a quiet machine in a release build"]
    fn record_cost() {
        let mut random = crate::noise::seeded(1);
        let values: Vec<u64> = (0..4096).map(|_| 60_000 + random.next_u64() % 200_000).collect();
        let mut ours = Histogram::new();
        let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(MIN_NS, MAX_NS, 2).unwrap();
        let cost_ns = |record: &mut dyn FnMut(&[u64])| {
            let start = std::time::Instant::now();
            (0..500).for_each(|_| record(std::hint::black_box(&values)));
            start.elapsed().as_nanos() as f64 / (500.0 * values.len() as f64)
        };
        let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            our_costs.push(cost_ns(&mut |values| values.iter().for_each(|&ns| ours.record(ns))));
            their_costs
                .push(cost_ns(&mut |values| values.iter().for_each(|&ns| theirs.saturating_record(ns))));
        }
        let (our_ns, their_ns) = (crate::median(&our_costs).unwrap(), crate::median(&their_costs).unwrap());
        println!("ns per record: ours {our_ns:.2}, hdrhistogram {their_ns:.2}");
        assert_eq!(ours.count(), theirs.len());
        assert!(our_ns < their_ns, "our own buckets have lost their reason to be");
    }
}
