//! The chunk from small requests around the multiples of each candidate: if two neighbours lie on two members, the latency
//! of the second one, and that of a request across the boundary, is distributed differently. How differently is not
//! assumed.

use std::collections::BTreeMap;

use rdsk_stats::{ClassCounts, kolmogorov_smirnov, quantile_sorted};

use super::geometry::{BoundaryStep, Sample};

/// Odd parts of a chunk that is no power of two.
const ODD_PARTS: [u64; 3] = [3, 5, 7];
/// Chance of a difference above which there is none.
const INDISTINCT: f64 = 0.01;
/// Share of a latency from which on a difference is taken for mechanical.
const MOTION: f64 = 0.1;

/// The small requests of one level: boundaries that are odd multiples of one power of two.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) log2: u32,
    /// Latencies of the request that follows its neighbour, in ns.
    pub(super) after: Vec<f64>,
    /// Latencies of the request across the boundary, in ns.
    pub(super) across: Vec<f64>,
    /// Which multiple of the power of two each boundary is.
    pub(super) multiples: Vec<u64>,
}

/// Latency around boundaries, level by level.
#[derive(Clone, Debug)]
pub(super) struct BoundaryProfile {
    levels: Vec<Level>,
    after: ClassCounts,
    across: ClassCounts,
}

/// Reads the triples of a sweep out of samples in the order of issue. `None` with fewer than two levels.
pub(super) fn boundary_profile(samples: &[Sample]) -> Option<BoundaryProfile> {
    let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
    for triple in samples.windows(3).filter(|triple| is_triple(triple)) {
        let boundary = triple[1].offset_bytes;
        let log2 = boundary.trailing_zeros().min(super::sweep::MAX_BOUNDARY_LOG2);
        let level = levels.entry(log2).or_insert_with(|| Level { log2, ..Level::default() });
        level.after.push(triple[1].latency_ns as f64);
        level.across.push(triple[2].latency_ns as f64);
        level.multiples.push(boundary >> log2);
    }
    let levels: Vec<Level> = levels.into_values().collect();
    if levels.len() < 2 {
        return None;
    }
    let counts = |latencies: fn(&Level) -> &Vec<f64>| {
        ClassCounts::of(&levels.iter().map(|level| latencies(level).as_slice()).collect::<Vec<&[f64]>>())
    };
    let (after, across) = (counts(|level| &level.after), counts(|level| &level.across));
    Some(BoundaryProfile { levels, after, across })
}

/// Whether three requests are one up to a boundary, one from it on and one across it.
pub(super) fn is_triple(triple: &[Sample]) -> bool {
    let [up_to, after, across] = triple else { return false };
    let (unit, at) = (after.bytes, after.offset_bytes);
    up_to.bytes == unit
        && across.bytes == 2 * unit
        && up_to.offset_bytes + unit == at
        && across.offset_bytes + unit == at
}

impl BoundaryProfile {
    /// The chunks that are considered, ascending: all levels but the lowest.
    pub(super) fn candidates(&self) -> Vec<u64> {
        self.levels.iter().skip(1).map(|level| 1_u64 << level.log2).collect()
    }

    /// How many times (as a natural logarithm) likelier the latencies are if the chunk is this than if there is none.
    /// Boundaries of stripes may differ from those of other chunks (the parity moves on; two spindles stand to each other
    /// otherwise than two others): with `stripe_bytes` given, the better of both views counts.
    pub(super) fn log_odds(&self, chunk_bytes: u64, stripe_bytes: Option<u64>) -> f64 {
        let at = |splits: &[usize]| self.after.log_odds(splits) + self.across.log_odds(splits);
        let chunk = self.split(chunk_bytes);
        let plain = at(&[chunk]);
        let stripe = stripe_bytes.map(|bytes| self.split(1 << bytes.trailing_zeros()));
        match stripe.filter(|&stripe| stripe > chunk && stripe < self.levels.len()) {
            Some(stripe) => plain.max(at(&[chunk, stripe])),
            None => plain,
        }
    }

    /// The best log odds of a chunk over all full stripes.
    pub(super) fn best_case(&self, chunk_bytes: u64) -> f64 {
        let stripes =
            self.levels.iter().map(|level| 1_u64 << level.log2).filter(|&bytes| bytes > chunk_bytes);
        let plain = self.log_odds(chunk_bytes, None);
        stripes.map(|bytes| self.log_odds(chunk_bytes, Some(bytes))).fold(plain, f64::max)
    }

    /// Chance of a difference as great as that between the levels below `chunk_bytes` and the others if there were none
    /// (Kolmogorov and Smirnov, two samples), over both kinds of request and all candidates.
    pub(super) fn p_value(&self, chunk_bytes: u64) -> f64 {
        let apart = |latencies: fn(&Level) -> &Vec<f64>| {
            let (below, from) = self.parted(chunk_bytes, latencies);
            kolmogorov_smirnov(&below, &from)
        };
        let least = apart(|level| &level.after).min(apart(|level| &level.across));
        (least * 2.0 * (self.levels.len() - 1) as f64).min(1.0)
    }

    /// An odd number by which the chunk is larger than the power of two: only boundaries at its multiples then differ from
    /// those of smaller powers.
    pub(super) fn odd_part(&self, chunk_bytes: u64) -> Option<u64> {
        let apart = |latencies: fn(&Level) -> &Vec<f64>, odd: u64| {
            let (below, _) = self.parted(chunk_bytes, latencies);
            let others = self.levels[self.split(chunk_bytes)..].iter();
            let others = others.flat_map(|level| latencies(level).iter().zip(&level.multiples));
            let others = others.filter(|(_, multiple)| !multiple.is_multiple_of(odd));
            kolmogorov_smirnov(&below, &sorted(others.map(|(&latency, _)| latency).collect()))
        };
        ODD_PARTS
            .into_iter()
            .find(|&odd| apart(|level| &level.after, odd).min(apart(|level| &level.across, odd)) > INDISTINCT)
    }

    /// Whether what follows its neighbour takes another time, or one less regular, on another member than on the same, as
    /// with rotating media; memory does not know where the last request was.
    pub(super) fn has_mechanical_delay(&self, chunk_bytes: u64) -> bool {
        let (below, from) = self.parted(chunk_bytes, |level| &level.after);
        let at = |sorted: &[f64], p| quantile_sorted(sorted, p).unwrap_or(0.0);
        let spread = |sorted: &[f64]| at(sorted, 0.9) - at(sorted, 0.1);
        let apart = (at(&below, 0.5) - at(&from, 0.5)).abs().max((spread(&below) - spread(&from)).abs());
        apart > MOTION * at(&below, 0.5) && kolmogorov_smirnov(&below, &from) < 1e-3
    }

    /// Whether a request across a boundary takes less than one that crosses none: two members share its bytes. A flash
    /// page or a sector that is crossed costs the same or more.
    pub(super) fn shares_work(&self, chunk_bytes: u64) -> bool {
        let (below, from) = self.parted(chunk_bytes, |level| &level.across);
        let at = |sorted: &[f64]| quantile_sorted(sorted, 0.5).unwrap_or(0.0);
        at(&from) < at(&below)
    }

    /// How many levels are below a chunk.
    fn split(&self, chunk_bytes: u64) -> usize {
        self.levels.partition_point(|level| (1_u64 << level.log2) < chunk_bytes)
    }

    /// The latencies of the levels below a chunk and of the others, both sorted.
    fn parted(&self, chunk_bytes: u64, latencies: fn(&Level) -> &Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let take = |levels: &[Level]| {
            sorted(levels.iter().flat_map(|level| latencies(level).iter().copied()).collect())
        };
        let split = self.split(chunk_bytes);
        (take(&self.levels[..split]), take(&self.levels[split..]))
    }

    /// The figures for the page.
    pub(super) fn steps(&self) -> Vec<BoundaryStep> {
        let step = |level: &Level| {
            let (after, across) = (sorted(level.after.clone()), sorted(level.across.clone()));
            Some(BoundaryStep {
                boundary_bytes: 1 << level.log2,
                count: after.len(),
                after_median_ns: quantile_sorted(&after, 0.5)?,
                after_spread_ns: quantile_sorted(&after, 0.9)? - quantile_sorted(&after, 0.1)?,
                across_median_ns: quantile_sorted(&across, 0.5)?,
            })
        };
        self.levels.iter().filter_map(step).collect()
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Triples at odd multiples of 4 KiB to 4 MiB; `cost` gives the latencies after and across by the power of two and
    /// the number of the visit.
    fn climbed(cost: impl Fn(u32, u64) -> (u64, u64)) -> BoundaryProfile {
        let mut samples = Vec::new();
        for log2 in 12..=22_u32 {
            for visit in 0..20 {
                let at = (2 * visit + 1) << log2;
                let (after, across) = cost(log2, visit);
                let small = |offset_bytes, bytes, latency_ns| Sample { offset_bytes, bytes, latency_ns };
                samples.push(small(at - 4096, 4096, 5_000_000));
                samples.push(small(at, 4096, after));
                samples.push(small(at - 4096, 8192, across));
            }
        }
        boundary_profile(&samples).unwrap()
    }

    fn best(profile: &BoundaryProfile) -> u64 {
        let odds = |chunk: &u64| profile.log_odds(*chunk, None);
        profile.candidates().into_iter().max_by(|a, b| odds(a).total_cmp(&odds(b))).unwrap()
    }

    #[test]
    fn other_scatter_of_the_same_middle_is_a_step() {
        let scatter = |visit: u64| 8_000_000 + visit * 7919 % 20 * 100_000 - 1_000_000;
        let profile = climbed(|log2, visit| {
            (if log2 < 16 { 8_000_000 + visit } else { scatter(visit) }, 9_000_000 + visit)
        });
        assert_eq!(best(&profile), 1 << 16);
        assert!(profile.log_odds(1 << 16, None) > 20.0 && profile.p_value(1 << 16) < 1e-6);
        assert!(profile.has_mechanical_delay(1 << 16));
    }

    #[test]
    fn no_difference_is_no_step() {
        let profile = climbed(|log2, visit| {
            let noise = (u64::from(log2) * 31 + visit * 17) % 20 * 1000;
            (8_000_000 + noise, 9_000_000 + noise)
        });
        for chunk in profile.candidates() {
            assert!(profile.best_case(chunk) < 0.0, "{chunk}");
            assert!(!profile.has_mechanical_delay(chunk) && profile.p_value(chunk) > 0.01);
        }
    }

    #[test]
    fn a_crossing_that_only_costs_more_is_no_shared_work() {
        let more_expensive =
            climbed(|log2, visit| (500_000 + visit, if log2 < 14 { 500_000 } else { 900_000 } + visit));
        assert_eq!(best(&more_expensive), 1 << 14);
        assert!(!more_expensive.shares_work(1 << 14) && !more_expensive.has_mechanical_delay(1 << 14));
        let cheaper =
            climbed(|log2, visit| (500_000 + visit, if log2 < 14 { 500_000 } else { 300_000 } + visit));
        assert!(cheaper.shares_work(1 << 14));
    }

    #[test]
    fn stripes_may_differ_from_chunks() {
        let profile = climbed(|log2, visit| {
            let after = match log2 {
                ..15 => 8_000_000,
                15..18 => 3_000_000,
                _ => 5_000_000,
            };
            (after + visit * 100, 9_000_000)
        });
        assert!(profile.log_odds(1 << 15, Some(3 << 18)) > profile.log_odds(1 << 15, None));
        assert!(profile.best_case(1 << 15) >= profile.log_odds(1 << 15, Some(1 << 18)));
    }

    #[test]
    fn what_is_no_triple_is_not_read() {
        let sample = |offset_bytes, bytes| Sample { offset_bytes, bytes, latency_ns: 1 };
        assert!(is_triple(&[sample(4096, 4096), sample(8192, 4096), sample(4096, 8192)]));
        assert!(!is_triple(&[sample(4096, 4096), sample(8192, 4096), sample(8192, 8192)]));
        assert!(!is_triple(&[sample(0, 4096), sample(8192, 4096), sample(4096, 8192)]));
        assert!(
            boundary_profile(&[sample(4096, 4096), sample(8192, 4096), sample(4096, 8192)]).is_none(),
            "one level is no profile"
        );
    }
}
