//! What the block layer did at some devices: bios by call and process, requests by exact size. It sums up what was counted; nothing is inferred, and nothing judged.

use crate::{metrics, words};
use rdsk_model::{Bio, BlockActivity, Evidence, Op, Origin, Request};
use rdsk_units::{Bytes, grouped};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sizes of requests that words name.
const NAMED_SIZES: usize = 2;

/// Bios or requests, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Sum {
    /// Mean size in bytes; `None` of none.
    pub fn mean_bytes(self) -> Option<f64> {
        (self.count > 0).then(|| metrics::ratio(self.bytes, self.count))
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self { count: self.count.saturating_add(more.count), bytes: self.bytes.saturating_add(more.bytes) }
    }
}

impl std::iter::Sum for Sum {
    fn sum<I: Iterator<Item = Self>>(sums: I) -> Self {
        sums.fold(Self::default(), Self::plus)
    }
}

impl From<&Bio> for Sum {
    fn from(bio: &Bio) -> Self {
        Self { count: bio.count, bytes: bio.bytes }
    }
}

/// Bios of one kind and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted<'a> {
    /// Who submitted them.
    pub origin: Origin<'a>,
    /// Direction.
    pub op: Op,
    /// Whether they hold no data and only ask for a flush.
    pub is_flush: bool,
    /// Whether they read ahead of what was asked for.
    pub read_ahead: bool,
    /// Whether they fail where they would wait; such bios are submitted once more, without this mark.
    pub nowait: bool,
    /// How many, and their bytes.
    pub sum: Sum,
}

/// The bios and requests at one device, or at several that carry a target together.
#[derive(Clone, Debug, Default)]
pub struct Account<'a> {
    bios: Vec<&'a Bio>,
    requests: Vec<&'a Request>,
    /// Whether nothing was missed and no bio was cut, so that as many requests of one size prove the size of each bio.
    is_uncut: bool,
}

impl<'a> From<&'a BlockActivity> for Account<'a> {
    fn from(block: &'a BlockActivity) -> Self {
        Self {
            bios: block.bios.iter().collect(),
            requests: block.requests.iter().collect(),
            is_uncut: block.splits == 0 && block.lost == 0,
        }
    }
}

impl<'a> Account<'a> {
    /// Of these devices of a cell, each named with its target.
    pub fn at(evidence: &'a Evidence, is_at: impl Fn(u32, &str) -> bool) -> Self {
        let bpf = evidence.bpf.as_ref();
        let mut devices = evidence.device.iter().filter(|device| is_at(device.target, &device.name));
        Self {
            bios: evidence.bios.iter().filter(|bio| is_at(bio.target, &bio.device)).collect(),
            requests: evidence.requests.iter().filter(|made| is_at(made.target, &made.device)).collect(),
            is_uncut: devices.all(|device| {
                device.splits == Some(0)
                    && bpf.is_some_and(|bpf| bpf.lost_of(device.target, &device.name) == 0)
            }),
        }
    }

    /// The bios of one direction that hold data; others only ask for a flush, which is a request of its own.
    fn bios(&self, op: Op) -> impl Iterator<Item = &'a Bio> {
        self.bios.iter().copied().filter(move |bio| bio.op == op && bio.bytes > 0)
    }

    /// All bios by kind and origin: those of other processes last, else the most frequent first.
    pub fn submitted(&self) -> Vec<Submitted<'a>> {
        let mut sums: BTreeMap<(bool, &str, Origin<'_>, bool, bool), Submitted<'a>> = BTreeMap::new();
        for bio in &self.bios {
            let origin = bio.origin();
            let key = (bio.flush, bio.op.as_str(), origin, bio.read_ahead, bio.nowait);
            let entry = sums.entry(key).or_insert(Submitted {
                origin,
                op: bio.op,
                is_flush: bio.flush,
                read_ahead: bio.read_ahead,
                nowait: bio.nowait,
                sum: Sum::default(),
            });
            entry.sum = entry.sum.plus(Sum::from(*bio));
        }
        let mut submitted: Vec<Submitted<'a>> = sums.into_values().collect();
        submitted.sort_by_key(|bios| (bios.origin == Origin::Other, Reverse(bios.sum.count)));
        submitted
    }

    /// All bios of one direction by origin, those with most bytes first.
    pub fn origins(&self, op: Op) -> Vec<(Origin<'a>, Sum)> {
        let mut origins: Vec<(Origin<'a>, Sum)> = Vec::new();
        for bio in self.bios(op) {
            match origins.iter_mut().find(|(origin, _)| *origin == bio.origin()) {
                Some((_, sum)) => *sum = sum.plus(Sum::from(bio)),
                None => origins.push((bio.origin(), Sum::from(bio))),
            }
        }
        origins.sort_by_key(|(_, sum)| Reverse(sum.bytes));
        origins
    }

    /// Bios of one direction of such origins.
    pub fn by(&self, op: Op, is_wanted: impl Fn(Origin<'a>) -> bool) -> Sum {
        self.bios(op).filter(|bio| is_wanted(bio.origin())).map(Sum::from).sum()
    }

    /// Bios of one direction of those whose I/O is measured or watched, by their calls and by workers. What must not wait and would have
    /// to is submitted once more, without that mark, so of the two kinds the larger sum has each bio once.
    pub fn own(&self, op: Op) -> Sum {
        let is_own = |bio: &&Bio| bio.origin().is_own();
        let [plain, marked] = [false, true].map(|nowait| {
            let bios = self.bios(op).filter(is_own).filter(|bio| bio.nowait == nowait);
            bios.map(Sum::from).sum::<Sum>()
        });
        if marked.bytes > plain.bytes { marked } else { plain }
    }

    /// Reads inside calls that do nothing but write, because these changed a part of what they wrote to; and all reads.
    pub fn reads_in_writes(&self) -> (Sum, Sum) {
        (self.by(Op::Read, Origin::is_write_call), self.by(Op::Read, |_| true))
    }

    /// The requests of one direction by exact size: size and count, the size that moved most bytes first.
    pub fn request_sizes(&self, op: Op) -> Vec<(u64, u64)> {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for request in self.requests.iter().filter(|request| request.op == op && request.bytes > 0) {
            *counts.entry(request.bytes).or_default() += request.count;
        }
        let mut sizes: Vec<(u64, u64)> = counts.into_iter().collect();
        sizes.sort_by_key(|&(bytes, count)| Reverse(bytes.saturating_mul(count)));
        sizes
    }

    /// All requests by direction, size and durability (FUA), and how many of each.
    pub fn request_kinds(&self) -> Vec<(Op, u64, bool, u64)> {
        self.requests.iter().map(|made| (made.op, made.bytes, made.fua, made.count)).collect()
    }

    /// All requests of one direction that moved data.
    pub fn requests(&self, op: Op) -> Sum {
        let sizes = self.request_sizes(op).into_iter();
        sizes.map(|(bytes, count)| Sum { count, bytes: bytes.saturating_mul(count) }).sum()
    }

    /// The largest request of one direction, in bytes.
    pub fn largest(&self, op: Op) -> Option<u64> {
        self.request_sizes(op).into_iter().map(|(bytes, _)| bytes).max()
    }

    /// Whether the mean of these bios is the size of each of them: of one bio; where all are a page or a block of the program; and where
    /// as many requests of this one size prove it. Others may be of many sizes.
    pub fn is_each(&self, op: Op, bios: Sum, block_bytes: Option<u64>) -> bool {
        let is_all_of = |bytes: u64| bios.bytes == bytes.saturating_mul(bios.count);
        let is_proven = || match self.request_sizes(op)[..] {
            [(bytes, count)] => self.is_uncut && count == self.by(op, |_| true).count && is_all_of(bytes),
            _ => false,
        };
        bios.count == 1 || is_all_of(metrics::PAGE_BYTES) || block_bytes.is_some_and(is_all_of) || is_proven()
    }

    /// Write requests that were done only when they were durable (FUA), and bios that only asked for a flush.
    pub fn durable(&self) -> (u64, u64) {
        let fua = self.requests.iter().filter(|request| request.fua && request.op == Op::Write);
        let flushes = self.bios.iter().filter(|bio| bio.flush);
        (fua.map(|request| request.count).sum(), flushes.map(|bio| bio.count).sum())
    }

    /// `128 of 512 KiB`, `16 of 660 KiB, 16 of 364 KiB and 3 of other sizes`.
    pub fn sizes_in_words(&self, op: Op) -> String {
        let sizes = self.request_sizes(op);
        let named = sizes.iter().take(NAMED_SIZES);
        let mut parts: Vec<String> =
            named.map(|&(bytes, count)| format!("{} of {}", grouped(count), Bytes(bytes))).collect();
        let others: u64 = sizes.iter().skip(NAMED_SIZES).map(|(_, count)| count).sum();
        if others > 0 {
            parts.push(format!("{} of other sizes", grouped(others)));
        }
        words::list(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::bios::{bio, request};

    fn small_writes() -> BlockActivity {
        BlockActivity {
            bios: vec![
                bio(Op::Write, "kernel", None, 3, 4096),
                bio(Op::Write, "child", Some("close"), 256, 4096),
                bio(Op::Read, "child", Some("write"), 256, 4096),
                bio(Op::Read, "other", Some("read"), 1000, 4096),
                Bio { flush: true, ..bio(Op::Write, "child", Some("fsync"), 1, 0) },
            ],
            requests: vec![
                request(Op::Write, 512 << 10, 2),
                request(Op::Write, 0, 5),
                request(Op::Read, 4096, 256),
                request(Op::Read, 8192, 256),
            ],
            ..BlockActivity::default()
        }
    }

    #[test]
    fn bios_are_told_apart_by_who_submitted_them() {
        let block = small_writes();
        let account = Account::from(&block);
        let submitted = account.submitted();
        let origins: Vec<(Origin<'_>, u64)> =
            submitted.iter().map(|bios| (bios.origin, bios.sum.count)).collect();
        assert_eq!(
            origins,
            [
                (Origin::Call("write"), 256),
                (Origin::Call("close"), 256),
                (Origin::Kernel, 3),
                (Origin::Call("fsync"), 1),
                (Origin::Other, 1000)
            ],
            "what others called is not told, and theirs come last"
        );
        assert!(submitted[3].is_flush);
        assert_eq!(account.reads_in_writes().0, Sum { count: 256, bytes: 1 << 20 });
        assert_eq!(account.by(Op::Write, Origin::flushes).count, 256);
        assert_eq!(account.by(Op::Write, Origin::submits_writes), Sum::default());
        assert_eq!(account.durable(), (0, 1));
    }

    #[test]
    fn a_call_that_submits_both_directions_says_nothing_of_its_reads() {
        for call in ["io_uring_enter", "io_submit"] {
            let bios = [Op::Read, Op::Write].map(|op| bio(op, "child", Some(call), 8, 4096)).to_vec();
            let block = BlockActivity { bios, ..BlockActivity::default() };
            let account = Account::from(&block);
            assert_eq!(account.reads_in_writes().0, Sum::default(), "{call}");
            assert_eq!(account.by(Op::Write, Origin::submits_writes).count, 8, "{call}");
        }
    }

    #[test]
    fn marks_are_told_apart() {
        let plain = bio(Op::Read, "child", Some("io_uring_enter"), 7, 4096);
        let nowait = Bio { nowait: true, ..plain.clone() };
        let ahead = Bio { read_ahead: true, ..plain.clone() };
        let block = BlockActivity { bios: vec![plain, nowait, ahead], ..BlockActivity::default() };
        let submitted = Account::from(&block).submitted();
        let marks: Vec<(bool, bool)> = submitted.iter().map(|bios| (bios.nowait, bios.read_ahead)).collect();
        assert_eq!(marks, [(false, false), (true, false), (false, true)]);
    }

    #[test]
    fn sizes_are_exact_and_what_moved_most_comes_first() {
        let block = small_writes();
        let account = Account::from(&block);
        assert_eq!(account.request_sizes(Op::Write), [(512 << 10, 2)]);
        assert_eq!(account.request_sizes(Op::Read), [(8192, 256), (4096, 256)]);
        assert_eq!((account.requests(Op::Read).count, account.requests(Op::Write).count), (512, 2));
        assert_eq!(account.largest(Op::Read), Some(8192));
    }

    #[test]
    fn the_size_of_each_bio_is_said_where_it_is_known() {
        let sums = |count, bytes_each: u64| Sum { count, bytes: count * bytes_each };
        let block = |requests, splits| BlockActivity {
            bios: vec![bio(Op::Write, "child", Some("write"), 16, 64 << 10)],
            requests,
            splits,
            ..BlockActivity::default()
        };
        let is_each = |block: &BlockActivity, bios, of| Account::from(block).is_each(Op::Write, bios, of);
        let merged = block(vec![request(Op::Write, 512 << 10, 2)], 0);
        assert!(!is_each(&merged, sums(16, 64 << 10), None));
        assert!(is_each(&merged, sums(16, 64 << 10), Some(64 << 10)), "a block of the program");
        assert!(is_each(&merged, sums(16, 4096), None) && is_each(&merged, sums(1, 70_000), None));
        let proven = block(vec![request(Op::Write, 64 << 10, 16)], 0);
        assert!(is_each(&proven, sums(16, 64 << 10), None));
        let cut = block(vec![request(Op::Write, 64 << 10, 16)], 3);
        assert!(!is_each(&cut, sums(16, 64 << 10), None));
    }
}
