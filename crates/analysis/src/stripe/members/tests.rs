//! What adaptive probes of invented arrays show: every layout, with what real arrays do besides (flushes, bitmaps, the stripe cache,
//! copies that answer in turn).

use super::*;
use crate::stripe::layouts::{self, Known};
use rdsk_model::{NextPosition, PositionChooser as _};

const K: u64 = 1024;

/// An invented array, and what goes on beside the requests.
#[derive(Clone, Copy)]
struct Array {
    known: Known,
    chunk_bytes: u64,
    /// Where the target begins on it.
    shift_bytes: u64,
    besides: Besides,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Besides {
    Nothing,
    /// A flush on every member at each write, a superblock of 512 bytes now and then, every 40th write a bitmap page on all.
    AsMd,
    /// All members are read and written by a resync all the time.
    Resync,
    /// The first copy answers every read but the one of this number, at which it is busy.
    BusyAt(u64),
}

impl Array {
    fn ask_all(&self, op: Op) -> Vec<ChosenIo> {
        let probes = probes_of(op);
        let mut chosen = Vec::new();
        while let NextPosition::Ask { offset_bytes, bytes } = probes.next(&chosen) {
            let members = self.serve(op, offset_bytes, bytes, chosen.len() as u64);
            chosen.push(ChosenIo { offset_bytes, bytes, latency_ns: 1, members });
        }
        chosen
    }

    fn serve(&self, op: Op, offset_bytes: u64, bytes: u64, number: u64) -> Vec<MemberIo> {
        let count = usize::try_from(self.known.members).unwrap();
        let mut members = vec![MemberIo::default(); count];
        let place = |role: u64| count - 1 - usize::try_from(role).unwrap();
        let roles = self.known.roles((offset_bytes + self.shift_bytes) / self.chunk_bytes);
        match op {
            Op::Read => {
                let copy = match self.besides {
                    _ if !self.known.reads_anywhere() => 0,
                    Besides::BusyAt(one) => u64::from(number == one),
                    _ => number % self.known.copies(),
                };
                members[place(roles.written()[usize::try_from(copy).unwrap()])].read_bytes += bytes;
            }
            Op::Write => {
                for &role in roles.written() {
                    members[place(role)].write_bytes += bytes;
                    // Three of eight writes find what they need in the stripe cache.
                    if self.known.parities() > 0 && number % 8 < 5 {
                        members[place(role)].read_bytes += bytes;
                    }
                }
            }
        }
        for member in &mut members {
            match (self.besides, op) {
                (Besides::AsMd, Op::Write) => {
                    member.writes += 2;
                    member.write_bytes += if number.is_multiple_of(7) { 512 } else { 0 };
                    member.write_bytes += if number.is_multiple_of(40) { 4096 } else { 0 };
                }
                (Besides::Resync, _) => {
                    member.read_bytes += 64 * K;
                    member.write_bytes += 64 * K;
                }
                _ => {}
            }
        }
        members
    }

    fn told(&self) -> MemberLayout {
        let (reads, writes) = (self.ask_all(Op::Read), self.ask_all(Op::Write));
        assert!(reads.len() <= 350 && writes.len() <= 350, "{} and {} requests", reads.len(), writes.len());
        let run = |op, chosen| Some(AdaptiveRun { probes: probes_of(op), chosen });
        let seen = MemberEvidence {
            reads: run(Op::Read, &reads),
            writes: run(Op::Write, &writes),
            ..MemberEvidence::default()
        };
        infer_from_members(&seen).unwrap()
    }
}

fn probes_of(op: Op) -> AdaptiveProbes {
    AdaptiveProbes { op, begin_bytes: 0, span_bytes: 256 << 20, unit_bytes: 4 * K, seed: 3 }
}

/// On a machine so slow that the time is over after one: the two members of one write are no mirror.
#[test]
fn one_request_tells_no_level() {
    let known = layouts::all(3).into_iter().find(|known| known.parities() == 1).unwrap();
    let array = Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::Nothing };
    let chosen = &array.ask_all(Op::Write)[..1];
    let writes = Some(AdaptiveRun { probes: probes_of(Op::Write), chosen });
    let seen = infer_from_members(&MemberEvidence { writes, ..MemberEvidence::default() }).unwrap();
    assert_eq!((seen.level, seen.copies), (None, None), "{seen:#?}");
    assert_eq!(seen.evidence, ["each of 1 small writes reaches 2 of 3 members"]);
    assert!(!seen.is_sure());
}

#[test]
fn every_layout_is_told_whatever_md_writes_besides() {
    for members in 2..=6 {
        for known in layouts::all(members) {
            for (chunk_bytes, shift_bytes) in
                [(64 * K, 0), (4 * K, 0), (36 * K, 0), (512 * K, 0), (64 * K, 500 * K)]
            {
                for besides in [Besides::Nothing, Besides::AsMd] {
                    let seen = Array { known, chunk_bytes, shift_bytes, besides }.told();
                    // Two members with copies of each other: nothing of a write moves, and reads go anywhere.
                    if known.copies() == known.members {
                        assert!(seen.chunk_bytes.is_none() || !seen.is_sure(), "{known:?} {seen:#?}");
                        continue;
                    }
                    let stripe_bytes = chunk_bytes * known.data();
                    assert_eq!(
                        (seen.chunk_bytes, seen.stripe_bytes, seen.is_sure()),
                        (Some(chunk_bytes), Some(stripe_bytes), true),
                        "{known:?} {seen:#?}"
                    );
                    assert_eq!(seen.parity_members, Some(known.parities()), "{known:?}");
                    assert!(seen.level.is_none_or(|level| level == known.level()), "{known:?} {seen:#?}");
                    if known.parities() > 0 {
                        let start = (stripe_bytes - shift_bytes % stripe_bytes) % stripe_bytes;
                        // Parity that never moves does not show which member is the first.
                        let start = Some(start).filter(|_| known.period() > known.data());
                        assert_eq!(seen.start_offset_bytes, start, "{known:?} {seen:#?}");
                    }
                }
            }
        }
    }
}

/// The usual layout of a level over four members, and its reads alone.
fn read_only(level: Level, words: Option<&ArrayFacts>, hints: Option<(u64, u64)>) -> MemberLayout {
    let all = layouts::all(4);
    let known = all.into_iter().find(|one| one.level() == level).unwrap();
    let reads =
        Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::Nothing }.ask_all(Op::Read);
    let reads = Some(AdaptiveRun { probes: probes_of(Op::Read), chosen: &reads });
    infer_from_members(&MemberEvidence { reads, words, hints, ..MemberEvidence::default() }).unwrap()
}

/// md asks another copy while the first one is busy, if only for the moment in which it counts the last request as done.
#[test]
fn a_read_that_another_copy_answers_changes_nothing() {
    let copied = layouts::all(4).into_iter().filter(|known| known.copies() == 2);
    for (known, layout) in copied.zip(["258", "513"]) {
        let quiet = Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::BusyAt(u64::MAX) };
        let requests = quiet.ask_all(Op::Read).len() as u64;
        assert!((100..200).contains(&requests), "{requests} requests");
        for number in 0..requests {
            let reads = Array { besides: Besides::BusyAt(number), ..quiet }.ask_all(Op::Read);
            let reads = Some(AdaptiveRun { probes: probes_of(Op::Read), chosen: &reads });
            let words = words("raid10", layout, 64 * K);
            let words = Some(&words);
            let seen =
                infer_from_members(&MemberEvidence { reads, words, ..MemberEvidence::default() }).unwrap();
            assert_eq!(
                (seen.chunk_bytes, seen.stripe_bytes, seen.level, seen.is_sure()),
                (Some(64 * K), Some(64 * K * known.data()), Some(Level::Raid10), true),
                "request {number}: {known:?} {seen:#?}"
            );
        }
    }
}

fn words(level: &str, layout: &str, chunk_bytes: u64) -> ArrayFacts {
    ArrayFacts {
        device: "md0".into(),
        source: "md".into(),
        level: Some(level.into()),
        layout: Some(layout.into()),
        chunk_bytes: Some(chunk_bytes),
        members: Some(4),
        activity: Some("idle".into()),
        degraded: Some(0),
    }
}

#[test]
fn the_kernels_words_decide_what_reads_leave_open() {
    // Who is read goes round all four on both; only the kernel knows which it is.
    for (level, data, spelled) in [(Level::Raid5, 3, "raid5"), (Level::Raid0, 4, "raid0")] {
        let open = read_only(level, None, None);
        assert_eq!(
            (open.chunk_bytes, open.stripe_bytes, open.level),
            (Some(64 * K), None, None),
            "{open:#?}"
        );
        let by_level = read_only(level, Some(&words(spelled, "2", 64 * K)), None);
        let by_hints = read_only(level, None, Some((64 * K, 64 * K * data)));
        for seen in [&by_level, &by_hints] {
            assert_eq!(
                (seen.stripe_bytes, seen.needs_words, seen.is_sure()),
                (Some(64 * K * data), true, true),
                "{seen:#?}"
            );
        }
        assert_eq!(by_level.level, Some(level));
        // Who goes round all members begins anywhere, unless the target is the array.
        assert_eq!(by_hints.start_offset_bytes, None, "{by_hints:#?}");
        // Hints that name another chunk decide nothing.
        assert_eq!(read_only(level, None, Some((32 * K, 96 * K))).stripe_bytes, None);
    }
}

#[test]
fn other_words_of_the_kernel_leave_nothing_sure() {
    for (level, layout, chunk_bytes) in
        [("raid5", "2", 128 * K), ("raid5", "0", 64 * K), ("raid4", "", 64 * K), ("linear", "", 64 * K)]
    {
        let words = words(level, layout, chunk_bytes);
        let known = layouts::all(4).into_iter().find(|one| one.level() == Level::Raid5).unwrap();
        let array = Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::Nothing };
        let (reads, writes) = (array.ask_all(Op::Read), array.ask_all(Op::Write));
        let seen = MemberEvidence {
            reads: Some(AdaptiveRun { probes: probes_of(Op::Read), chosen: &reads }),
            writes: Some(AdaptiveRun { probes: probes_of(Op::Write), chosen: &writes }),
            words: Some(&words),
            ..MemberEvidence::default()
        };
        let seen = infer_from_members(&seen).unwrap();
        assert_eq!(seen.chunk_bytes, Some(64 * K));
        assert!(!seen.is_sure() && !seen.declared.as_ref().unwrap().agrees, "{level} {layout}: {seen:#?}");
    }
}

#[test]
fn a_resync_leaves_nothing_sure() {
    for known in layouts::all(4) {
        let seen = Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::Resync }.told();
        assert!(!seen.is_sure(), "{known:?} {seen:#?}");
    }
}

/// RAID 6 without a member reads all others for what it lacks (2026-11): that is no other program's I/O.
#[test]
fn what_an_array_does_to_be_whole_is_not_of_others() {
    let known = layouts::all(4).into_iter().find(|one| one.level() == Level::Raid6).unwrap();
    let array = Array { known, chunk_bytes: 64 * K, shift_bytes: 0, besides: Besides::Resync };
    let writes = array.ask_all(Op::Write);
    let doubts = |degraded: u64| {
        let words = ArrayFacts { degraded: Some(degraded), ..words("raid6", "2", 64 * K) };
        let writes = Some(AdaptiveRun { probes: probes_of(Op::Write), chosen: &writes });
        let seen = MemberEvidence { writes, words: Some(&words), ..MemberEvidence::default() };
        infer_from_members(&seen).unwrap().doubts.join("; ")
    };
    assert!(doubts(0).contains("other I/O reaches them"), "{}", doubts(0));
    assert!(!doubts(1).contains("other I/O"), "{}", doubts(1));
    assert!(doubts(1).contains("to compute what it lacks; md0 is missing 1 of its members"), "{}", doubts(1));
}

#[test]
fn mirrors_and_devices_in_a_row_have_no_stripe() {
    let io = |op: Op, members: &[bool]| -> Vec<MemberIo> {
        let one = |&is_reached: &bool| {
            let bytes = if is_reached { 4096 } else { 0 };
            match op {
                Op::Read => MemberIo { read_bytes: bytes, ..MemberIo::default() },
                Op::Write => MemberIo { write_bytes: bytes, ..MemberIo::default() },
            }
        };
        members.iter().map(one).collect()
    };
    let told = |of: &dyn Fn(Op, u64, usize) -> Vec<bool>| {
        let run = |op| {
            let mut chosen = Vec::new();
            while let NextPosition::Ask { offset_bytes, bytes } = probes_of(op).next(&chosen) {
                let members = io(op, &of(op, offset_bytes, chosen.len()));
                chosen.push(ChosenIo { offset_bytes, bytes, latency_ns: 1, members });
            }
            chosen
        };
        let (reads, writes) = (run(Op::Read), run(Op::Write));
        let seen = MemberEvidence {
            reads: Some(AdaptiveRun { probes: probes_of(Op::Read), chosen: &reads }),
            writes: Some(AdaptiveRun { probes: probes_of(Op::Write), chosen: &writes }),
            ..MemberEvidence::default()
        };
        infer_from_members(&seen)
    };
    let mirror =
        told(&|op, _, number| vec![op == Op::Write || number % 2 == 0, op == Op::Write || number % 2 == 1])
            .unwrap();
    assert_eq!((mirror.chunk_bytes, mirror.level, mirror.copies), (None, Some(Level::Raid1), Some(2)));
    assert!(mirror.is_sure());
    let row = told(&|_, offset, _| (0..3).map(|member| offset / (96 << 20) == member).collect()).unwrap();
    assert_eq!((row.chunk_bytes, row.stripe_bytes, row.is_sure()), (None, None, true), "{row:#?}");
    assert_eq!(told(&|_, _, _| vec![false, false]), None, "counters that stand still");
}
