//! Ranks as threads of one process: a common start on clocks that are apart, what is sent, and the result of all.

use crate::threads::Threads;
use crate::{
    Lockstep, Merge, Myself, PIECE_BYTES, Ranks, Traffic, agree, receive_document, send_document, shares,
    slow_rank, summary,
};
use rdsk_model::{
    AtOnce, CellRecord, CellResult, Clock, ClockOffset, Evidence, Experiment, Latency, Peers, Problem,
    ProblemKind, RankRun, RankVisit, Record, SharedTurn, Status, StopFlag, StopReason, Visit, Workload,
};
use rdsk_stats::Histogram;
use rdsk_stats::rng::SplitMix64;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that goes on by a step with every reading, off by so much: virtual time that all ranks share.
struct Shifted<'a> {
    shared: &'a AtomicU64,
    off_ns: i64,
}

const STEP_NS: u64 = 1_000;

impl Clock for Shifted<'_> {
    fn now_ns(&self) -> u64 {
        self.shared.fetch_add(STEP_NS, Ordering::SeqCst).checked_add_signed(self.off_ns).unwrap()
    }

    fn sleep_until_ns(&self, _: u64, _: &StopFlag) {}
}

/// What each of several ranks gives, each in a thread, with its clock off by so much.
fn on_ranks<T: Send>(off_ns: &[i64], run: impl Fn(&Threads, &Shifted<'_>) -> T + Sync) -> Vec<T> {
    let shared = AtomicU64::new(10_000_000_000_000);
    let ranks = Threads::new(u32::try_from(off_ns.len()).unwrap());
    let (run, shared) = (&run, &shared);
    std::thread::scope(|scope| {
        let each = ranks.into_iter().zip(off_ns);
        let started: Vec<_> = each
            .map(|(rank, &off_ns)| scope.spawn(move || run(&rank, &Shifted { shared, off_ns })))
            .collect();
        started.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

const HOUR_NS: i64 = 3_600_000_000_000;

#[test]
fn all_agree_on_one_start_whatever_their_clocks_say() {
    let off_ns = [0, HOUR_NS, 3_000_000, -HOUR_NS, -17, 5];
    let found = on_ranks(&off_ns, |rank, clock| {
        let mut peers = Lockstep::new(rank, clock, Myself::default());
        peers.begin(Ok(&["load/1"])).unwrap();
        assert!(peers.prepared(true));
        let agreed_ns = peers.start(true).unwrap();
        peers.done(Some(RankVisit { start_ns: agreed_ns, ..RankVisit::default() }));
        peers.end();
        peers.myself().so_far()
    });
    let first_ns = found[0].visits[0].agreed_ns;
    for (run, off_ns) in found.iter().zip(off_ns) {
        let visit = &run.visits[0];
        for clock in [run.clock_before.unwrap(), visit.clock, run.clock_after.unwrap()] {
            let off_by_ns = (clock.offset_ns - off_ns).unsigned_abs();
            assert!(off_by_ns <= clock.uncertainty_ns, "{off_ns}: {clock:?}");
        }
        let on_first_ns = visit.agreed_ns.checked_add_signed(-off_ns).unwrap();
        assert!(on_first_ns.abs_diff(first_ns) <= visit.clock.uncertainty_ns, "{off_ns}: {visit:?}");
        assert_eq!(visit.start_ns, visit.agreed_ns);
    }
}

#[test]
fn a_rank_that_cannot_go_on_ends_the_run_on_all() {
    let off_ns = [0; 5];
    let begun = on_ranks(&off_ns, |rank, clock| {
        let problem = Problem::new(ProblemKind::Refused, "lost", "no such file", "");
        let plan: Result<&[&str], _> = if rank.rank() == 3 { Err(&problem) } else { Ok(&["a"]) };
        Lockstep::new(rank, clock, Myself::default()).begin(plan).unwrap_err().message
    });
    assert!(begun.iter().all(|why| why == "rank 3 of 5: no such file"), "{begun:?}");
    let turn = SharedTurn { position: 0, round: 0, run_ns: 1, most_ns: 2 };
    let turns = on_ranks(&off_ns, |rank, clock| {
        let mut peers = Lockstep::new(rank, clock, Myself::default());
        let first = peers.turn((rank.rank() == 0).then_some(turn), true);
        let ready = (peers.prepared(rank.rank() != 4), peers.start(rank.rank() != 2));
        (first, ready, peers.turn(Some(turn), rank.rank() != 1))
    });
    assert!(turns.iter().all(|said| *said == (Some(turn), (false, None), None)), "{turns:?}");
    // One leaves without a word.
    let lost = on_ranks(&off_ns, |rank, clock| {
        let mut peers = Lockstep::new(rank, clock, Myself::default());
        if rank.rank() == 4 {
            return None;
        }
        peers.turn(Some(turn), true)
    });
    assert_eq!(lost, [None; 5]);
}

#[test]
fn what_a_rank_cannot_do_none_does() {
    let problem =
        |rank: u32| Problem::new(ProblemKind::Refused, "mounted", format!("no {rank}"), "name another");
    let agreed = on_ranks(&[0; 5], |rank, _| {
        let mine = if rank.rank() >= 2 { Err(problem(rank.rank())) } else { Ok(rank.rank()) };
        agree(rank, mine).unwrap()
    });
    for answer in agreed {
        let problem = answer.unwrap_err();
        assert_eq!((problem.code.as_str(), problem.message.as_str()), ("mounted", "rank 2 of 5: no 2"));
    }
    let agreed = on_ranks(&[0; 3], |rank, _| agree(rank, Ok(rank.rank())).unwrap());
    assert_eq!(agreed, [Ok(0), Ok(1), Ok(2)]);
}

/// What all ranks sent together in a part of a run.
fn sent(size: usize, run: impl Fn(&mut Lockstep<'_>) + Sync) -> Traffic {
    let each = on_ranks(&vec![0; size], |rank, clock| {
        run(&mut Lockstep::new(rank, clock, Myself::default()));
        rank.traffic()
    });
    let count = |of: fn(&Traffic) -> u64| each.iter().map(of).sum();
    Traffic { messages: count(|sent| sent.messages), bytes: count(|sent| sent.bytes) }
}

#[test]
fn the_messages_of_a_run_grow_with_the_ranks_and_no_faster() {
    let gate = |peers: &mut Lockstep<'_>| {
        assert!(peers.prepared(true) && peers.start(true).is_some());
        peers.done(None);
    };
    for size in [2, 8, 64] {
        let others = size as u64 - 1;
        let barrier = sent(size, |peers| assert!(peers.prepared(true)));
        // `true` on its way up and down.
        assert_eq!((barrier.messages, barrier.bytes), (2 * others, 8 * others));
        // Three barriers, eight round trips with their result, and the start.
        assert_eq!(sent(size, gate).messages, others * (3 * 2 + 2 * 8 + 1 + 2));
        // The plan, whether it is the same, and 32 round trips.
        let begin = |peers: &mut Lockstep<'_>| peers.begin(Ok(&["load/1"])).unwrap();
        assert_eq!(sent(size, begin).messages, others * (1 + 2 + 2 * 32 + 1));
    }
}

#[test]
fn a_document_comes_in_pieces_and_whole() {
    let document: Vec<u8> = (0..=250).cycle().take(PIECE_BYTES * 2 + 17).collect();
    let received = on_ranks(&[0, 0], |rank, _| {
        if rank.rank() == 1 {
            send_document(rank, 0, &document).unwrap();
            return (0, Vec::new());
        }
        let (mut longest, mut whole) = (0, Vec::new());
        let kept = receive_document(rank, 1, |piece| {
            longest = longest.max(piece.len());
            whole.extend_from_slice(piece);
            Ok::<(), ()>(())
        });
        assert_eq!(kept.unwrap(), Ok(()));
        (longest, whole)
    });
    assert_eq!(received[0].0, PIECE_BYTES);
    assert!(received[0].1 == document);
}

const PARTS: u64 = 20;
const PART_NS: u64 = 50_000_000;

/// The part of a rank: turns of a second whose rates share a state of the disk and have a noise of their own.
#[allow(clippy::cast_possible_truncation, reason = "a few megabytes")]
fn part(rank: u32, ranks: u32, speed: f64, seed: u64) -> Record {
    let mut own = SplitMix64::from_index(seed, u64::from(rank) + 1);
    let mut disk = SplitMix64::from_index(seed, 0);
    let around = |random: &mut SplitMix64, width: f64| {
        1.0 + width * ((random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
    };
    let mut histogram = Histogram::new();
    let offset_ns = i64::from(rank) * HOUR_NS;
    let visits = (0..6_u64).map(|turn| {
        let parts: Vec<u64> = (0..PARTS)
            .map(|_| (1e6 * speed * around(&mut disk, 0.5) * around(&mut own, 0.1)) as u64)
            .collect();
        parts.iter().for_each(|&bytes| histogram.record(bytes));
        let start_ns = (HOUR_NS as u64 + turn * 2_000_000_000 + u64::from(rank) * 10_000)
            .checked_add_signed(offset_ns)
            .unwrap();
        RankVisit {
            cell: "load/1".into(),
            clock: ClockOffset { offset_ns, uncertainty_ns: 5_000, at_ns: start_ns },
            start_ns,
            end_ns: start_ns + PARTS * PART_NS,
            bytes: parts.iter().sum(),
            ops: PARTS,
            part_ns: PART_NS,
            parts,
            ..RankVisit::default()
        }
    });
    let visits: Vec<RankVisit> = visits.collect();
    let run = RankRun {
        rank,
        ranks,
        run: "01".into(),
        host: format!("node{rank}"),
        boot: format!("boot{rank}"),
        status: Some(Status::Complete),
        clock_before: Some(ClockOffset { offset_ns, uncertainty_ns: 5_000, at_ns: 0 }),
        clock_after: Some(ClockOffset { offset_ns: offset_ns + 700, uncertainty_ns: 5_000, at_ns: 0 }),
        visits,
        ..RankRun::default()
    };
    let sum = |of: fn(&RankVisit) -> u64| Some(run.visits.iter().map(of).sum());
    let result = CellResult {
        bytes: sum(|visit| visit.bytes),
        asked_bytes: sum(|visit| visit.bytes),
        ops: sum(|visit| visit.ops),
        latency_ns: Some(Latency::from(&histogram)),
        ..CellResult::default()
    };
    let cell = CellRecord {
        id: "load/1".into(),
        experiment: Experiment::Load,
        workload: Workload::sequential_read(1 << 20),
        result,
        evidence: Evidence::default(),
        verdict: None,
    };
    Record { cells: vec![cell], ranks: vec![run], ..Record::default() }
}

fn merged(parts: &[Record]) -> Record {
    let mut merge = Merge::new(parts[0].clone()).unwrap();
    assert!(parts[1..].iter().all(|part| merge.add(part)));
    merge.result()
}

#[test]
fn the_result_of_all_is_the_sum_of_the_parts() {
    let parts: Vec<Record> = (0..4).map(|rank| part(rank, 4, 1.0, 7)).collect();
    let all = merged(&parts);
    let cell = &all.cells[0].result;
    let sum = |of: fn(&CellResult) -> Option<u64>| parts.iter().map(|part| of(&part.cells[0].result)).sum();
    assert_eq!(cell.bytes, sum(|result| result.bytes));
    assert_eq!(cell.ops, sum(|result| result.ops));
    assert_eq!(all.cells[0].workload.streams, 4);
    let mut pooled = Histogram::new();
    for part in &parts {
        let text = part.cells[0].result.latency_ns.as_ref().unwrap().histogram.as_deref().unwrap();
        pooled.merge(&Histogram::from_base64(text).unwrap());
    }
    let latency = cell.latency_ns.as_ref().unwrap();
    let expected = Latency::from(&pooled);
    assert_eq!((latency.p50, latency.p90, latency.p99), (expected.p50, expected.p90, expected.p99));
    assert_eq!((latency.count, &latency.histogram), (expected.count, &expected.histogram));
    assert_eq!((all.status, all.error.clone()), (Status::Complete, None));
    // A part counts once, and one of another run never.
    let mut merge = Merge::new(parts[0].clone()).unwrap();
    assert!(merge.add(&parts[1]) && !merge.add(&parts[1]) && !merge.add(&part(2, 3, 1.0, 7)));
}

#[test]
fn the_time_in_which_all_ran_is_that_of_one_clock() {
    let parts: Vec<Record> = (0..4).map(|rank| part(rank, 4, 1.0, 7)).collect();
    let all = merged(&parts);
    let turn = &shares(&all.ranks, "load/1")[0];
    assert_eq!(turn.starts_ns.1 - turn.starts_ns.0, 30_000, "four ranks, 10 us each");
    assert_eq!(turn.common_ns(), PARTS * PART_NS - 30_000);
    let found = summary(&all).unwrap();
    assert_eq!((found.ranks, found.hosts, found.starts.unwrap().turns), (4, 4, 6));
    let drifts: Vec<_> = found.clocks.iter().map(|clock| (clock.rank, clock.drift_ns)).collect();
    assert_eq!(drifts, [(1, Some(700)), (2, Some(700)), (3, Some(700))]);
    // The rate is the sum over the whole parts in that time.
    let rate = all.cells[0].result.bytes_per_s.unwrap().mean;
    let whole = all.cells[0].result.bytes.unwrap() as f64 / 6.0;
    assert!((rate / whole - 1.0).abs() < 0.1, "{rate} {whole}");
}

#[test]
fn a_rank_slowed_by_a_fifth_is_named_and_equal_ones_are_not() {
    for seed in 0..20 {
        for speed in [1.0, 0.8] {
            let speed_of = |rank| if rank == 2 { speed } else { 1.0 };
            let parts: Vec<Record> = (0..4).map(|rank| part(rank, 4, speed_of(rank), seed)).collect();
            let slow = slow_rank(&merged(&parts).ranks, "load/1");
            match slow {
                Some(slow) => {
                    assert!(speed < 1.0 && slow.rank == 2, "{seed}: {slow:?}");
                    assert!((slow.ratio - 0.8).abs() < 0.03 && slow.p_value < 0.05, "{slow:?}");
                }
                None => assert!(speed == 1.0, "{seed}"),
            }
        }
    }
}

/// The parts of ranks on hosts of their own of which 1, 2 and 4 read at once while the others wait.
fn parts_of_numbers() -> Vec<Record> {
    let part_of = |rank: u32| {
        let whole = part(rank, 4, 1.0, 7);
        let mut cells = Vec::new();
        let mut visits = Vec::new();
        for count in [1, 2, 4] {
            let mut cell = whole.cells[0].clone();
            cell.id = format!("scale/{count}");
            cell.workload.at_once = Some(AtOnce::Hosts(count));
            cell.result.visits = vec![Visit::default(); 6];
            cell.result.stop = StopReason::Budget;
            if rank < count {
                let its = whole.ranks[0]
                    .visits
                    .iter()
                    .map(|visit| RankVisit { cell: cell.id.clone(), ..visit.clone() });
                visits.extend(its);
            } else {
                let why = "this host waits".into();
                cell.result = CellResult { stop: StopReason::NotApplicable, why, ..CellResult::default() };
            }
            cells.push(cell);
        }
        let run = RankRun { visits, ..whole.ranks[0].clone() };
        Record { cells, ranks: vec![run], ..whole }
    };
    (0..4).map(part_of).collect()
}

#[test]
fn numbers_of_hosts_are_summed_over_those_that_read() {
    let parts = parts_of_numbers();
    // Whichever part comes first, as where that of rank 0 is lost.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        let all = merged(&order.map(|rank: usize| parts[rank].clone()));
        let alone_bytes: Vec<u64> = parts.iter().filter_map(|part| part.cells[2].result.bytes).collect();
        for (cell, count) in all.cells.iter().zip([1_usize, 2, 4]) {
            assert_eq!(cell.result.bytes, Some(alone_bytes[..count].iter().sum()), "{order:?}: {}", cell.id);
            assert_eq!(cell.workload.streams as usize, count);
            let visit = &cell.result.visits[0];
            let issued: Vec<u32> = visit.streams.iter().map(|stream| stream.index).collect();
            assert_eq!(issued, (0..u32::try_from(count).unwrap()).collect::<Vec<_>>());
            let rate = cell.result.bytes_per_s.unwrap().mean;
            let together = visit.overlap.unwrap();
            assert!(together.covered_ns > 0 && together.bytes > 0, "{together:?}");
            assert!((rate / (count as f64 * 20e6) - 1.0).abs() < 0.1, "{rate} of {count}");
        }
    }
}

#[test]
fn a_number_of_hosts_that_lacks_one_has_no_rate() {
    let mut parts = parts_of_numbers();
    parts[1].ranks[0].visits.retain(|visit| visit.cell != "scale/4");
    parts[1].ranks[0].status = None;
    let rates =
        |all: &Record| all.cells.iter().map(|cell| cell.result.bytes_per_s.is_some()).collect::<Vec<_>>();
    assert_eq!(rates(&merged(&parts)), [true, true, false], "rank 1 died before its first turn of all");
    // Without its part nobody knows of which host it was.
    parts.remove(1);
    assert_eq!(rates(&merged(&parts)), [false; 3]);
}

#[test]
fn a_rank_that_ended_without_a_word_is_named() {
    let mut parts: Vec<Record> = (0..4).map(|rank| part(rank, 4, 1.0, 7)).collect();
    parts[2].ranks[0].status = None;
    parts[2].ranks[0].visits.truncate(3);
    parts[1].ranks[0].status = Some(Status::Interrupted);
    let error = merged(&parts).error.unwrap();
    assert_eq!(error.message, "partial: of 4 ranks, these ended without a word: 2 on node2");
    let all = merged(&parts[..2]);
    assert_eq!(all.ranks.len(), 4);
    assert!(all.error.unwrap().message.ends_with("without a word: 2, 3"));
    assert_eq!(all.status, Status::Failed);
}
