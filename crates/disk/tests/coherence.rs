//! Calls that meet in the same range or at the same time: direct and buffered I/O agree, and no call's return is lost.

use crate::common::{call, host};
use rdsk_disk::{Call, Host, Op, Operation, Route, Stability, parse};

const KIB: u64 = 1024;

#[test]
fn a_direct_read_sees_what_was_written_through_the_cache() {
    let mut host = host("linux-disk");
    let clean = host.clone().run(call(Operation::Read, Route::Direct, 0, 64 * KIB)).expect("whole sectors");
    host.run(call(Operation::Write, Route::Buffered, 8 * KIB, 16 * KIB)).expect("any size");
    host.run(call(Operation::Write, Route::Buffered, 1 << 30, 4 * KIB)).expect("any size");
    assert_eq!((host.counters(0).writes, host.dirty_bytes(0)), (0, 20 * KIB), "all of it in the cache only");
    let read = host.run(call(Operation::Read, Route::Direct, 0, 64 * KIB)).expect("whole sectors");
    let seen = host.counters(0);
    assert_eq!((seen.writes, seen.write_bytes, seen.reads, seen.read_bytes), (1, 16 * KIB, 1, 64 * KIB));
    assert_eq!(host.dirty_bytes(0), 4 * KIB, "what lies elsewhere stays dirty");
    assert_eq!(host.cached_bytes(0, 0, 64 * KIB), 16 * KIB, "and what was written stays cached");
    assert!(read.end_ns - read.start_ns > clean.end_ns - clean.start_ns, "one after the other");
}

#[test]
fn a_direct_read_waits_for_what_is_on_its_way() {
    let mut host = host("linux-disk");
    host.run(call(Operation::Write, Route::Buffered, 0, 1 << 20)).expect("any size");
    let (now_ns, sync) = (host.now_ns(), call(Operation::Sync, Route::Buffered, 0, 0));
    let sync = host.submit(now_ns, sync).expect("never refused");
    let read =
        host.run(call(Operation::Read, Route::Direct, (1 << 20) - 4 * KIB, 4 * KIB)).expect("whole sectors");
    let seen = host.counters(0);
    assert_eq!(seen.write_bytes, 1 << 20, "the last request of the sync was before it");
    let mut returned: Vec<u64> = Vec::new();
    while host.next_ns().is_some() {
        returned.extend(host.advance_one().iter().map(|done| done.id));
    }
    returned.extend(host.advance(host.now_ns()).iter().map(|done| done.id));
    assert_eq!(
        (returned, read.outcome),
        (vec![sync], Ok(())),
        "the sync's return is kept for who asks for it"
    );
    assert_eq!(host.counters(0).write_bytes, 1 << 20, "nothing is written twice");
}

#[test]
fn a_direct_write_puts_its_range_out_of_the_cache() {
    let mut host = host("linux-disk");
    host.fill_cache(0, 0, 64 * KIB);
    host.run(call(Operation::Write, Route::Buffered, 0, 4 * KIB)).expect("any size");
    host.run(call(Operation::Write, Route::Direct, 0, 32 * KIB)).expect("whole sectors");
    assert_eq!(host.cached_bytes(0, 0, 64 * KIB), 32 * KIB);
    let sizes: Vec<_> = host.counters(0).sizes.into_iter().collect();
    assert_eq!(sizes, [((Op::Write, 4 * KIB), 1), ((Op::Write, 32 * KIB), 1)], "what was dirty goes first");
    let read = host.run(call(Operation::Read, Route::Buffered, 0, 4 * KIB)).expect("any size");
    assert_eq!((read.outcome, host.counters(0).reads > 0), (Ok(()), true), "it is read anew");
}

#[test]
fn a_full_queue_holds_up_the_writing_out_but_loses_nothing() {
    let text = "extends = \"linux-disk\"\n[host]\nqueue_limit = 1\nqueue_batch = 0\nmerge_bytes = 4096\n";
    let mut host = Host::new(&parse("mine", text).expect("possible").params, 1);
    for page in 0..20 {
        host.run(call(Operation::Write, Route::Buffered, page * 8 * KIB, 4 * KIB)).expect("any size");
    }
    let read = host.run(call(Operation::Read, Route::Direct, 0, 256 * KIB)).expect("whole sectors");
    let seen = host.counters(0);
    assert_eq!((read.outcome, seen.writes, host.dirty_bytes(0), seen.queue_max), (Ok(()), 20, 0, 1));
}

#[test]
fn the_returns_of_other_calls_are_kept() {
    let mut host = host("linux-disk");
    let first = host.submit(0, call(Operation::Read, Route::Direct, 0, 4 * KIB)).expect("whole sectors");
    let second = host.run(call(Operation::Read, Route::Direct, 1 << 30, 4 * KIB)).expect("whole sectors");
    assert!(second.id != first);
    let kept = host.advance(host.now_ns());
    assert_eq!(kept.iter().map(|done| done.id).collect::<Vec<_>>(), [first]);
    assert!(host.advance(u64::MAX / 2).is_empty(), "once");
}

/// A program reads a buffer while another call is copying into it.
#[test]
fn a_read_of_a_buffer_being_written_needs_no_device() {
    let mut host = host("linux-disk");
    let slow = call(Operation::Write, Route::Buffered, 0, 4 * KIB);
    let write = host.submit(0, slow).expect("any size");
    // The write's call is over, its copying is not.
    host.advance(3_500);
    let read = host.run(call(Operation::Read, Route::Buffered, 0, 4 * KIB)).expect("any size");
    assert!(read.id != write && read.outcome == Ok(()));
    assert_eq!(host.counters(0).reads, 0);
}

#[test]
fn processor_time_is_that_of_the_calls_and_their_copying() {
    let mut host = host("linux-disk");
    let cost = host.params().cost;
    host.run(call(Operation::Read, Route::Direct, 0, 1 << 20)).expect("whole sectors");
    let direct_ns = host.cpu_ns();
    assert!((direct_ns as f64 - cost.direct_call_ns).abs() <= 1.0, "waiting costs nothing: {direct_ns}");
    host.run(call(Operation::Write, Route::Buffered, 0, 8 * KIB)).expect("any size");
    let buffered_ns = (host.cpu_ns() - direct_ns) as f64;
    let wanted_ns = cost.buffered_call_ns + 2.0 * cost.new_buffer_ns + 8192.0 * cost.byte_ns;
    assert!((buffered_ns - wanted_ns).abs() <= 2.0, "{buffered_ns} of {wanted_ns}");
    let durable = Call { stability: Stability::Durable, ..call(Operation::Write, Route::Direct, 0, 4 * KIB) };
    host.run(durable).expect("whole sectors");
    assert!((host.cpu_ns() as f64 - direct_ns as f64 - buffered_ns - cost.direct_call_ns).abs() <= 1.0);
}

/// What a program's own work adds to a direct call: so much for each byte, and what chance adds.
#[test]
fn chance_stays_within_its_bound_and_comes_from_the_seed() {
    let text =
        "extends = \"tms-ramsan\"\n[host.cost]\ndirect_byte_ns = 1.0\ndirect_chance_ns = 1_000_000.0\n";
    let params = parse("mine", text).expect("possible").params;
    let costs = |seed| {
        let mut host = Host::new(&params, seed);
        let costs: Vec<u64> = (0..500)
            .map(|_| {
                let before_ns = host.cpu_ns();
                host.run(call(Operation::Read, Route::Direct, 0, 65_536)).expect("whole sectors");
                host.cpu_ns() - before_ns
            })
            .collect();
        costs
    };
    let least_ns = 60_000 + 65_536;
    let seen = costs(1);
    assert!(seen.iter().all(|cost_ns| (least_ns..=least_ns + 1_000_000).contains(cost_ns)));
    let mean_ns = seen.iter().sum::<u64>() as f64 / 500.0;
    assert!((mean_ns / (least_ns as f64 + 500_000.0) - 1.0).abs() < 0.1, "{mean_ns}");
    assert_eq!(seen, costs(1));
    assert!(seen != costs(2));
}
