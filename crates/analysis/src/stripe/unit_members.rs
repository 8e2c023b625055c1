//! Which members a small request reached, unit by unit: repeating a request removes what other I/O added. Bytes are
//! compared, never request counts: a flush is a write of no bytes on every member, and two pages may go as one request.

use rdsk_model::{ChosenIo, MemberIo, Op};
use std::collections::BTreeMap;

/// Members, one bit each.
pub(super) type Mask = u128;

/// Members that a mask has room for.
pub(super) const MAX_MEMBERS: usize = 128;
/// Requests at one place before what they have in common is believed.
const MAX_TRIES: usize = 6;
/// Reads of one place that must agree before a boundary is believed: while a copy is busy, another one answers.
const AGREEING_READS: usize = 2;
/// Bytes beyond those requested from which on others moved data of their own; md's superblock has 512 to 1024.
const MIN_FOREIGN_BYTES: u64 = 4096;
/// The share of requests that may move other bytes than their own: superblocks, bitmaps, metadata.
const DISTURBED: f64 = 0.1;

/// What the requests at one place have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Members that every request reached; of reads that different copies answered, those of the majority.
    members: Mask,
    tries: usize,
    /// By how many requests these members are ahead of others.
    lead: usize,
    /// Whether in some request that reached them no more than the requested bytes moved on each.
    is_clean: bool,
}

/// The places that were requested so far, by unit from the start of the span.
#[derive(Clone, Debug)]
pub(super) struct UnitMembers {
    op: Op,
    seen: BTreeMap<u64, Seen>,
    /// Fewest members that a request reached.
    least: u32,
    /// Requests that moved on a member more than was requested, or on more members than the least.
    noisy: usize,
    requests: usize,
}

impl UnitMembers {
    /// Reads requests in the order of issue, each of one unit.
    pub(super) fn of(op: Op, begin_bytes: u64, unit_bytes: u64, chosen: &[ChosenIo]) -> Self {
        let mut seen: BTreeMap<u64, Seen> = BTreeMap::new();
        let least = chosen.iter().map(|one| reached(op, one).count_ones()).filter(|&n| n > 0).min();
        let least = least.unwrap_or(0);
        let mut noisy = 0;
        for one in chosen.iter().filter(|one| one.offset_bytes >= begin_bytes) {
            let members = reached(op, one);
            let is_clean = members != 0 && moved_only(op, one);
            noisy += usize::from(!is_clean || members.count_ones() > least);
            let unit = (one.offset_bytes - begin_bytes) / unit_bytes.max(1);
            seen.entry(unit).or_default().add(op, members, is_clean);
        }
        Self { op, seen, least, noisy, requests: chosen.len() }
    }

    /// The members that a unit lies on; `None` if it must be requested, or requested again.
    pub(super) fn at(&self, unit: u64) -> Option<Mask> {
        let seen = self.seen.get(&unit)?;
        let is_sure = seen.is_clean && seen.members.count_ones() == self.least;
        (is_sure || seen.tries >= MAX_TRIES).then_some(seen.members)
    }

    /// The same for a unit on which a boundary rests, which needs several reads that agree. A write reaches all copies.
    pub(super) fn surely_at(&self, unit: u64) -> Option<Mask> {
        let seen = self.seen.get(&unit)?;
        let agree = self.op == Op::Write || seen.lead >= AGREEING_READS || seen.tries >= MAX_TRIES;
        self.at(unit).filter(|_| agree)
    }

    /// All units that need no further request.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Mask)> + '_ {
        self.seen.keys().filter_map(|&unit| Some((unit, self.at(unit)?)))
    }

    /// Members that any unit lies on.
    pub(super) fn used(&self) -> Mask {
        self.iter().fold(0, |all, (_, members)| all | members)
    }

    /// Members that hold each unit.
    pub(super) fn least(&self) -> u32 {
        self.least
    }

    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// Whether so many requests found others at work that nothing is sure.
    pub(super) fn is_disturbed(&self) -> bool {
        self.noisy as f64 > DISTURBED * self.requests as f64 + MAX_TRIES as f64
    }
}

impl Seen {
    fn add(&mut self, op: Op, members: Mask, is_clean: bool) {
        self.tries += 1;
        let in_common = self.members & members;
        if in_common != 0 {
            self.members = in_common;
            self.is_clean |= is_clean;
            self.lead += 1;
        } else if self.members == 0 || (op == Op::Read && members != 0 && self.lead == 1) {
            (self.members, self.is_clean, self.lead) = (members, is_clean, 1);
        } else {
            // Counters that lag show a request beside the next one; or another copy answered.
            self.lead = self.lead.saturating_sub(1);
        }
    }
}

fn bytes_of(op: Op, io: &MemberIo) -> u64 {
    match op {
        Op::Read => io.read_bytes,
        Op::Write => io.write_bytes,
    }
}

/// The members that moved at least what was requested; superblocks and bitmaps are smaller on most arrays.
fn reached(op: Op, one: &ChosenIo) -> Mask {
    let members = one.members.iter().take(MAX_MEMBERS).enumerate();
    members.filter(|(_, io)| bytes_of(op, io) >= one.bytes.max(1)).fold(0, |all, (at, _)| all | 1 << at)
}

/// Whether each member moved no more than was requested, but for a superblock.
fn moved_only(op: Op, one: &ChosenIo) -> bool {
    one.members.iter().map(|io| bytes_of(op, io)).all(|bytes| bytes < one.bytes + MIN_FOREIGN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset_bytes: u64, written: &[u64]) -> ChosenIo {
        let members =
            written.iter().map(|&write_bytes| MemberIo { writes: 9, write_bytes, ..MemberIo::default() });
        ChosenIo { offset_bytes, bytes: 4096, latency_ns: 1, members: members.collect() }
    }

    #[test]
    fn bytes_count_and_requests_do_not() {
        let one = [write(8192, &[0, 4096, 512, 4096])];
        let units = UnitMembers::of(Op::Write, 4096, 4096, &one);
        assert_eq!(units.at(1), Some(0b1010));
        assert_eq!((units.at(0), units.least(), units.is_disturbed()), (None, 2, false));
    }

    #[test]
    fn what_a_bitmap_adds_is_asked_again_and_taken_away() {
        let mut all = vec![write(0, &[4096, 4096, 4096, 8192])];
        assert_eq!(
            UnitMembers::of(Op::Write, 0, 4096, &all).at(0),
            None,
            "a member moved more than was asked"
        );
        all.push(write(4096, &[4096, 0, 0, 4096]));
        assert_eq!(UnitMembers::of(Op::Write, 0, 4096, &all).at(0), None, "others need fewer members");
        all.push(write(0, &[0, 4096, 0, 4096]));
        let units = UnitMembers::of(Op::Write, 0, 4096, &all);
        assert_eq!((units.at(0), units.at(1)), (Some(0b1010), Some(0b1001)));
    }

    #[test]
    fn an_array_at_work_is_disturbed() {
        let all: Vec<ChosenIo> = (0..60).map(|n| write(n * 4096, &[65536, 65536, 4096])).collect();
        assert!(UnitMembers::of(Op::Write, 0, 4096, &all).is_disturbed());
    }
}
