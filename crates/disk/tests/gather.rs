//! A controller's protected cache that gathers partial stripes, as the fifth report advises: a write waits in it until its
//! stripe is whole, so nothing is read for the parity.

use crate::common::call;
use proptest::prelude::*;
use rdsk_disk::{Array, ArrayParams, DeviceParams, Host, Operation, Request, Route, load, parse};

const KIB: u64 = 1024;

/// The array of `raid5`: five members, chunks of 64 KiB, behind a cache of so many bytes that gathers for so long.
fn array(write_back_bytes: u64, gather_ns: u64) -> Array {
    let params = load("raid5").expect("it is built in").params;
    let DeviceParams::Array(params) = &params.luns[0].device else { panic!("not an array") };
    Array::new(&ArrayParams { write_back_bytes, gather_ns, ..params.clone() }, 1)
}

/// Reads and writes of all members, and bytes written.
fn sums(array: &Array) -> (u64, u64, u64) {
    array.counts().iter().fold((0, 0, 0), |(reads, writes, bytes), member| {
        (reads + member.reads, writes + member.writes, bytes + member.write_bytes)
    })
}

#[test]
fn sequential_writes_of_any_size_become_whole_stripes_and_read_nothing() {
    const SECOND: u64 = 1_000_000_000;
    for block in [4 * KIB, 16 * KIB, 48 * KIB, 256 * KIB, 1024 * KIB] {
        let mut gathering = array(64 << 20, SECOND);
        let mut plain = array(0, 0);
        let (mut now_ns, mut plain_ns, stripe) = (0, 0, gathering.stripe_bytes());
        for n in 0..12 * stripe / block {
            now_ns = gathering.submit(now_ns, Request::write(n * block, block)).end_ns;
            plain_ns = plain.submit(plain_ns, Request::write(n * block, block)).end_ns;
        }
        let (reads, writes, bytes) = sums(&gathering);
        assert_eq!((reads, writes, bytes), (0, 60, 60 * 64 * KIB), "{block}: 12 stripes of 5 members");
        let (plain_reads, ..) = sums(&plain);
        assert_eq!(plain_reads == 0, block % stripe == 0, "{block}: {plain_reads} reads without gathering");
        assert!(now_ns < plain_ns / 5, "{block}: {now_ns} ns gathered, {plain_ns} ns without");
    }
}

#[test]
fn a_part_whose_stripe_stays_incomplete_goes_out_when_its_time_is_over() {
    let mut array = array(64 << 20, 500_000_000);
    let seen = array.submit(0, Request::write(0, 4 * KIB));
    assert!(seen.end_ns < 100_000, "it completes in the cache: {} ns", seen.end_ns);
    array.submit(499_000_000, Request::read(1 << 30, 4 * KIB));
    assert_eq!(sums(&array), (1, 0, 0), "held back: only the read went out");
    array.submit(501_000_000, Request::read(2 << 30, 4 * KIB));
    assert_eq!(sums(&array), (4, 2, 8 * KIB), "old data and parity are read, new ones written");
}

#[test]
fn what_is_held_is_read_from_the_cache_and_what_is_not_is_written_first() {
    let mut array = array(64 << 20, 1_000_000_000);
    array.submit(0, Request::write(0, 32 * KIB));
    let held = array.submit(1_000_000, Request::read(8 * KIB, 8 * KIB));
    assert!(held.end_ns - 1_000_000 < 100_000, "{} ns", held.end_ns);
    assert_eq!(sums(&array), (0, 0, 0));
    array.submit(2_000_000, Request::read(16 * KIB, 32 * KIB));
    assert_eq!(sums(&array), (3, 2, 64 * KIB), "the part with its parity, then the read");
}

#[test]
fn small_random_writes_are_hidden_until_the_cache_is_full() {
    let random = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 20) * 256 * KIB;
    let mut array = array(2 << 20, 60_000_000_000);
    let mut now_ns = 0;
    let mut took = Vec::new();
    for n in 0..2000 {
        let done = array.submit(now_ns, Request::write(random(n), 4 * KIB));
        took.push(done.end_ns - now_ns);
        now_ns = done.end_ns;
    }
    assert!(took[..256].iter().all(|&ns| ns < 100_000), "half of the cache: {:?}", took[..256].iter().max());
    let later: u64 = took[1000..].iter().sum::<u64>() / 1000;
    assert!(later > 1_000_000, "then the members set the pace: {later} ns a write");
    assert!(sums(&array).0 > 1000, "and what was no stripe reads for its parity");
}

/// The cache is protected: a durable write waits for it only, and no flush is sent.
#[test]
fn a_durable_write_is_done_when_the_cache_has_it() {
    let text = "extends = \"raid5\"\n[[luns]]\n[luns.device.array]\nwrite_back_bytes = 67108864\ngather_ns = 1000000000\n";
    let mut host = Host::new(&parse("mine", text).expect("it is possible").params, 1);
    for block in 0..64 {
        let durable = rdsk_disk::Call {
            stability: rdsk_disk::Stability::Durable,
            ..call(Operation::Write, Route::Direct, block * 16 * KIB, 16 * KIB)
        };
        host.run(durable).expect("whole sectors");
    }
    assert!(host.now_ns() < 64 * 200_000, "{} ns", host.now_ns());
    assert_eq!(host.counters(0).flushes, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing is forgotten: once all have waited long enough, what was written is on the data members, once for each time
    /// that it left the cache.
    #[test]
    fn everything_written_reaches_the_members(
        writes in prop::collection::vec((0_u64..64, 1_u64..40), 1..60), cache_kib in 1_u64..2000,
    ) {
        let mut array = array(cache_kib * KIB, 1_000_000);
        let mut covered = std::collections::BTreeSet::new();
        let mut now_ns = 0;
        for (first, units) in writes {
            now_ns = array.submit(now_ns, Request::write(first * 8 * KIB, units * 8 * KIB)).end_ns;
            covered.extend(first..first + units);
        }
        array.submit(now_ns + 2_000_000, Request::flush());
        let (.., bytes) = sums(&array);
        prop_assert!(bytes > covered.len() as u64 * 8 * KIB, "{} of {} units", bytes / 8 / KIB, covered.len());
    }
}
