//! What two programs asked of the same disk, by its log: sums, the share of reads, the order of offsets, and whether random ones have the
//! same distribution. Block sizes tell the programs' requests from those of whoever else looks at a disk.

use crate::fusedisk::{Op, Served};
use std::collections::BTreeMap;

/// The requests of a program, in the order in which the disk saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenIo {
    /// Offsets and sizes of the reads in bytes.
    pub reads: Vec<(u64, u64)>,
    /// Those of the writes.
    pub writes: Vec<(u64, u64)>,
    /// How many flushes there were.
    pub flushes: u64,
}

impl SeenIo {
    /// Of the reads, those of and at a multiple of `read_unit_bytes` are the program's; all writes are. What the kernel merged counts as so many
    /// requests of `merged_bytes`, where that is given.
    pub fn of(log: &[Served], read_unit_bytes: u64, merged_bytes: Option<u64>) -> Self {
        let mut seen = Self::default();
        let is_own = |served: &Served| {
            [served.offset_bytes, served.bytes].iter().all(|bytes| bytes.is_multiple_of(read_unit_bytes))
        };
        for served in log {
            let parts = |list: &mut Vec<(u64, u64)>| match merged_bytes {
                Some(part) if served.bytes.is_multiple_of(part) => {
                    list.extend(
                        (0..served.bytes / part).map(|index| (served.offset_bytes + index * part, part)),
                    );
                }
                _ => list.push((served.offset_bytes, served.bytes)),
            };
            match served.op {
                Op::Read if is_own(served) => parts(&mut seen.reads),
                Op::Write => parts(&mut seen.writes),
                Op::Flush => seen.flushes += 1,
                Op::Read => {}
            }
        }
        seen
    }

    /// The figures that two programs must have in common beside the mix, by name: requests and bytes of both directions together, since
    /// the directions of a mix are drawn.
    pub fn figures(&self) -> [(&'static str, u64); 2] {
        let all = || self.reads.iter().chain(&self.writes);
        [("requests", all().count() as u64), ("bytes", all().map(|(_, bytes)| bytes).sum())]
    }

    /// Percent of the requests that are reads.
    pub fn read_percent(&self) -> f64 {
        let (reads, writes) = (self.reads.len() as f64, self.writes.len() as f64);
        100.0 * reads / (reads + writes).max(1.0)
    }

    /// Which figures differ by more than a share of `other`'s, and the mix by more than so many percent of all requests.
    pub fn differences(&self, other: &Self, share: f64) -> Vec<String> {
        let pairs = self.figures().into_iter().zip(other.figures());
        let mut found: Vec<String> = pairs
            .filter(|((_, ours), (_, theirs))| ours.abs_diff(*theirs) as f64 > share * *theirs as f64)
            .map(|((name, ours), (_, theirs))| format!("{name}: {ours}, not {theirs}"))
            .collect();
        if (self.read_percent() - other.read_percent()).abs() > share * 100.0 {
            found.push(format!("{:.1}% reads, not {:.1}%", self.read_percent(), other.read_percent()));
        }
        found
    }
}

/// Pearson's statistic for counts that should have these shares, and its critical value at 0.1 %.
pub fn chi_square(counts: &[u64], shares: &[f64]) -> (f64, f64) {
    let (total, whole) = (counts.iter().sum::<u64>() as f64, shares.iter().sum::<f64>());
    let terms = counts.iter().zip(shares).map(|(&count, share)| {
        let expected = total * share / whole;
        (count as f64 - expected).powi(2) / expected
    });
    (terms.sum(), critical(counts.len() - 1))
}

/// The statistic for two samples that should have the same distribution over the same classes, and its critical value at 0.1 %.
pub fn chi_square_of_two(left: &[u64], right: &[u64]) -> (f64, f64) {
    let (of_left, of_right) = (left.iter().sum::<u64>() as f64, right.iter().sum::<u64>() as f64);
    let classes: Vec<(f64, f64)> =
        left.iter().zip(right).map(|(l, r)| (*l as f64, *r as f64)).filter(|(l, r)| l + r > 0.0).collect();
    let (ratio, inverse) = ((of_right / of_left).sqrt(), (of_left / of_right).sqrt());
    let statistic = classes.iter().map(|(l, r)| (ratio * l - inverse * r).powi(2) / (l + r)).sum();
    (statistic, critical(classes.len().saturating_sub(1)))
}

/// What chi-square exceeds once in a thousand times (Wilson and Hilferty's approximation).
fn critical(freedom: usize) -> f64 {
    const NORMAL: f64 = 3.0902;
    let ninth = 2.0 / (9.0 * freedom.max(1) as f64);
    freedom.max(1) as f64 * (1.0 - ninth + NORMAL * ninth.sqrt()).powi(3)
}

/// How often the places were used, the most popular first, in classes of 1, 1, 2, 4, 8 … places.
pub fn by_popularity(requests: &[(u64, u64)]) -> Vec<u64> {
    let mut uses = BTreeMap::new();
    for (offset_bytes, _) in requests {
        *uses.entry(offset_bytes).or_insert(0u64) += 1;
    }
    let mut uses: Vec<u64> = uses.into_values().collect();
    uses.sort_unstable_by(|left, right| right.cmp(left));
    let (mut classes, mut rest, mut size) = (Vec::new(), uses.as_slice(), 1);
    while !rest.is_empty() {
        let (class, more) = rest.split_at(rest.len().min(size));
        classes.push(class.iter().sum());
        rest = more;
        size = if classes.len() == 1 { 1 } else { size * 2 };
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusedisk::RequestOutcome;

    fn served(op: Op, offset_bytes: u64, bytes: u64) -> Served {
        Served {
            op,
            offset_bytes,
            bytes,
            arrival_ns: 0,
            start_ns: 0,
            end_ns: 0,
            answered_ns: 0,
            outcome: RequestOutcome::Done,
        }
    }

    #[test]
    fn only_the_programs_own_requests_are_compared() {
        let log = [
            served(Op::Read, 0, 4096),
            served(Op::Read, 24_576, 24_576),
            served(Op::Write, 0, 512),
            served(Op::Flush, 0, 0),
        ];
        let seen = SeenIo::of(&log, 12_288, Some(12_288));
        assert_eq!((seen.reads.as_slice(), seen.flushes), (&[(24_576, 12_288), (36_864, 12_288)][..], 1));
        assert_eq!(seen.figures().map(|(_, figure)| figure), [3, 25_088]);
        assert!(seen.differences(&seen, 0.0).is_empty());
        let less = SeenIo { reads: seen.reads[..1].to_vec(), ..seen.clone() };
        assert_eq!(less.differences(&seen, 0.02).len(), 3, "requests, bytes and the mix");
        assert_eq!(SeenIo::of(&log, 12_288, None).reads, [(24_576, 24_576)]);
    }

    #[test]
    fn what_is_not_the_same_is_found() {
        assert!((critical(63) - 103.4).abs() < 0.5 && (critical(1) - 10.83).abs() < 0.6, "{}", critical(1));
        let (same, limit) = chi_square(&[100, 110, 95, 105], &[1.0; 4]);
        assert!(same < limit);
        let (other, limit) = chi_square(&[100, 200, 95, 105], &[1.0; 4]);
        assert!(other > limit);
        let (same, limit) = chi_square_of_two(&[100, 50, 25], &[210, 95, 52]);
        assert!(same < limit, "{same}");
        let (other, limit) = chi_square_of_two(&[100, 50, 25], &[120, 120, 120]);
        assert!(other > limit, "{other}");
        let popular = by_popularity(&[(0, 1), (0, 1), (8, 1), (16, 1), (24, 1), (0, 1)]);
        assert_eq!(popular, [3, 1, 2]);
    }
}
