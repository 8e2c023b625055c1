//! Which of the known layouts explain which members were reached: for each, roles are assigned to members so that as much
//! as possible agrees, and what does not is counted. It knows no sizes.

use super::layouts::{self, Known};
use super::unit_members::Mask;

/// The share of chunks that may contradict a layout: others' I/O that went on through all repetitions.
const DISTURBED: f64 = 0.02;
/// Members up to which every start of the first chunk is tried.
const MAX_SHIFTED: u64 = 24;

/// A chunk, numbered from one boundary on, and the members that a read and a write of it reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) number: u64,
    pub(super) read: Option<Mask>,
    pub(super) written: Option<Mask>,
}

/// A layout that explains the chunks, if the first of them is number `shift` of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) known: Known,
    pub(super) shift: u64,
}

/// Whether the first chunk is known to be the first of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// It may be; others are tried if it explains nothing.
    WithTheArray,
    /// It is not.
    Anywhere,
}

/// Whether some member is reached again after others were: one device after the other never is.
pub(super) fn comes_round(chunks: &[Chunk]) -> bool {
    let returns = |of: fn(&Chunk) -> Option<Mask>| {
        let seen: Vec<Mask> = chunks.iter().filter_map(of).collect();
        let changed = |at: usize| seen[..at].iter().position(|mask| *mask == seen[at]);
        (1..seen.len())
            .any(|at| changed(at).is_some_and(|first| seen[first..at].iter().any(|mask| *mask != seen[at])))
    };
    returns(|chunk| chunk.read) || returns(|chunk| chunk.written)
}

/// All layouts that explain the chunks, which ascend, over any number of members that were seen up to `members`.
pub(super) fn matches(chunks: &[Chunk], members: u64, begin: Begin) -> Vec<Match> {
    if !comes_round(chunks) {
        return Vec::new();
    }
    let used = |of: fn(&Chunk) -> Option<Mask>| {
        u64::from(chunks.iter().filter_map(of).fold(0, |all, one| all | one).count_ones())
    };
    let (read, written) = (used(|chunk| chunk.read), used(|chunk| chunk.written));
    // A write reaches all that a stripe needs; a read leaves out parity and copies.
    let sizes = if written > 0 { written..=written } else { read..=members.max(read) };
    let known: Vec<Known> = sizes.flat_map(layouts::all).collect();
    if begin == Begin::WithTheArray {
        let at_begin = known.iter().map(|&known| Match { known, shift: 0 });
        let found: Vec<Match> = at_begin.filter(|one| explains(*one, chunks, members)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    known.into_iter().flat_map(|known| anywhere(known, chunks, members)).collect()
}

/// Every place of a layout at which it explains the chunks; one if there are too many to try.
pub(super) fn anywhere(known: Known, chunks: &[Chunk], members: u64) -> Vec<Match> {
    let shifts = if known.members <= MAX_SHIFTED { known.period() } else { 1 };
    let all = (0..shifts).map(|shift| Match { known, shift });
    all.filter(|one| explains(*one, chunks, members)).collect()
}

fn explains(one: Match, chunks: &[Chunk], members: u64) -> bool {
    // Fewer than two stripes would fit much that is none.
    let is_enough = chunks.len() as u64 >= 2 * one.known.data();
    let answers = answers(one, chunks);
    let Some(dealt) = is_enough.then(|| deal(one, chunks, members, answers)).flatten() else { return false };
    let wrong = chunks.iter().filter(|chunk| !agrees(one, chunk, &dealt, answers)).count();
    wrong as f64 <= DISTURBED * chunks.len() as f64
}

/// The member of each role: those that most chunks speak for, each given once. `None` if a role that is read was seen
/// nowhere.
fn deal(one: Match, chunks: &[Chunk], members: u64, answers: Answers) -> Option<Vec<u32>> {
    let width = usize::try_from(members).ok()?;
    let roles = usize::try_from(one.known.members).ok()?;
    let mut votes = vec![vec![0_i64; width]; roles];
    for chunk in chunks {
        let asked = one.known.roles(chunk.number + one.shift);
        for (role, votes) in (0..).zip(&mut votes) {
            let is_written = asked.written().contains(&role);
            for (member, votes) in votes.iter_mut().enumerate() {
                let reached = |mask: Mask| mask >> member & 1 == 1;
                if let Some(mask) = chunk.written {
                    *votes += if is_written == reached(mask) { 1 } else { -1 };
                }
                if let Some(mask) = chunk.read.filter(|_| answers == Answers::First) {
                    *votes += if (asked.read == role) == reached(mask) { 1 } else { -1 };
                }
            }
        }
    }
    let mut given = vec![false; width];
    let mut dealt = Vec::with_capacity(roles);
    for votes in votes {
        let best = (0..width)
            .filter(|&member| !given[member])
            .max_by_key(|&member| (votes[member], width - member))?;
        given[best] = true;
        dealt.push(u32::try_from(best).ok()?);
    }
    Some(dealt)
}

/// Which copy answers a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// The first. If nobody wrote, or if every member has a copy, nothing else distinguishes chunks.
    First,
    /// Any.
    Any,
}

fn answers(one: Match, chunks: &[Chunk]) -> Answers {
    let has_writes = chunks.iter().any(|chunk| chunk.written.is_some());
    let is_any = one.known.reads_anywhere() && one.known.copies() < one.known.members && has_writes;
    if is_any { Answers::Any } else { Answers::First }
}

fn agrees(one: Match, chunk: &Chunk, dealt: &[u32], answers: Answers) -> bool {
    let asked = one.known.roles(chunk.number + one.shift);
    let member = |role: u64| -> Mask { usize::try_from(role).map_or(0, |role| 1 << dealt[role]) };
    let all = asked.written().iter().fold(0, |all, &role| all | member(role));
    let is_written = chunk.written.is_none_or(|mask| mask == all);
    let is_read = chunk.read.is_none_or(|mask| match answers {
        Answers::Any => mask & !all == 0,
        Answers::First => mask == member(asked.read),
    });
    is_written && is_read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stripe::layouts::{Level, Rotation};

    /// What a layout would show, with roles dealt to members backwards, as names need not follow roles.
    fn shown(known: Known, shift: u64, count: u64, writes: bool) -> Vec<Chunk> {
        let member = |role: u64| -> Mask { 1 << (known.members - 1 - role) };
        let one = |number: u64| {
            let roles = known.roles(number + shift);
            let written = roles.written().iter().fold(0, |all, &role| all | member(role));
            Chunk { number, read: Some(member(roles.read)), written: writes.then_some(written) }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn every_layout_is_told_from_reads_and_writes() {
        for members in 2..=6 {
            for known in layouts::all(members) {
                for shift in [0, 1, 5] {
                    let chunks = shown(known, shift, 64, true);
                    let begin = if shift == 0 { Begin::WithTheArray } else { Begin::Anywhere };
                    let found = matches(&chunks, members, begin);
                    assert!(!found.is_empty(), "{known:?}");
                    // Whether writes made members read tells parity from copies, and is not asked here.
                    for one in found.into_iter().filter(|one| one.known.parities() == known.parities()) {
                        assert_eq!(one.known.data(), known.data(), "{known:?} as {one:?}");
                        if known.parities() > 0 && known.period() > known.data() {
                            let begins = |one: Match| one.shift % one.known.data();
                            assert_eq!(begins(one), shift % known.data(), "{known:?} as {one:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn reads_alone_leave_several() {
        let usual = |level: Level, rotation: Option<Rotation>| {
            let all = layouts::all(4);
            all.into_iter().find(|one| (one.level(), one.rotation()) == (level, rotation)).unwrap()
        };
        let found = |known: Known| -> Vec<u64> {
            let mut data: Vec<u64> = matches(&shown(known, 0, 64, false), 4, Begin::WithTheArray)
                .iter()
                .map(|one| one.known.data())
                .collect();
            data.sort_unstable();
            data.dedup();
            data
        };
        assert_eq!(found(usual(Level::Raid5, Some(Rotation::LeftSymmetric))), [3, 4]);
        assert_eq!(found(usual(Level::Raid0, None)), [3, 4], "in turn, as behind a moving parity");
        assert_eq!(found(usual(Level::Raid5, Some(Rotation::LeftAsymmetric))), [3]);
    }

    #[test]
    fn one_device_behind_the_other_is_no_layout() {
        let chunks: Vec<Chunk> = (0..4)
            .map(|number| Chunk { number, read: Some(1 << number), written: Some(1 << number) })
            .collect();
        assert!(matches(&chunks, 4, Begin::WithTheArray).is_empty());
    }
}
