//! Section 5 of the reports: write latency by size, cached or not, buffered or direct; and its section on RAID.

use crate::common::{call, host, near, shuffled};
use rdsk_disk::{Device, Host, HostError, MemberCounts, Operation, Request, Route, load};
use rdsk_stats::rng::SplitMix64;

const FILE: u64 = 64 << 20;
const PAGE: u64 = 4096;

#[derive(Clone, Copy, PartialEq)]
enum Cache {
    Warm,
    Cold,
}

/// Mean time of random writes of `bytes` within the file, in µs, each in a page of its own, after as many again; the seed
/// draws the places and where the platter stands.
fn write_us(seed: u64, cache: Cache, route: Route, bytes: u64, count: u64) -> Result<f64, HostError> {
    let mut host = Host::new(&load("wd2500").expect("built in").params, seed);
    if cache == Cache::Warm {
        host.fill_cache(0, 0, FILE);
    }
    let mut random = SplitMix64::new(seed);
    let pages = shuffled(&mut random, FILE / PAGE);
    let mut spent_ns = 0;
    for (n, page) in (0..2 * count).zip(pages.into_iter().cycle()) {
        let slot = if bytes < PAGE { random.below(PAGE / bytes) } else { 0 };
        let done = host.run(call(Operation::Write, route, page * PAGE + slot * bytes, bytes))?;
        assert_eq!(done.outcome, Ok(()));
        if cache == Cache::Cold {
            host.drop_cache(0, 0, FILE);
        }
        if n >= count {
            spent_ns += done.end_ns - done.start_ns;
        }
    }
    Ok(spent_ns as f64 / count as f64 / 1e3)
}

#[test]
fn the_table_of_write_latencies() {
    (1..=6).for_each(check_table);
}

fn check_table(seed: u64) {
    for (bytes, cached, cached_direct, uncached, uncached_direct) in [
        (1, 5.887, None, 8306.0, None),
        (27, 6.135, None, 8479.0, None),
        (512, 8.713, Some(2498.0), 8742.0, Some(2579.0)),
        (2048, 9.733, Some(2422.0), 8670.0, Some(2721.0)),
        (4096, 10.350, Some(2514.0), 25.039, Some(2560.0)),
    ] {
        let at = |cache, route| write_us(seed, cache, route, bytes, 3000);
        near(
            &format!("{bytes} cached buffered"),
            at(Cache::Warm, Route::Buffered).expect("any size"),
            cached,
            0.2,
        );
        let share = if bytes < PAGE { 0.1 } else { 0.2 };
        near(
            &format!("{bytes} uncached buffered"),
            at(Cache::Cold, Route::Buffered).expect("any size"),
            uncached,
            share,
        );
        for (what, cache, wanted) in
            [("cached", Cache::Warm, cached_direct), ("uncached", Cache::Cold, uncached_direct)]
        {
            match wanted {
                Some(wanted) => {
                    near(
                        &format!("{bytes} {what} direct"),
                        at(cache, Route::Direct).expect("whole sectors"),
                        wanted,
                        0.1,
                    );
                }
                None => {
                    let refused = at(cache, Route::Direct).expect_err("no whole sectors");
                    assert!(matches!(refused, HostError::Misaligned { sector_bytes: 512, .. }));
                }
            }
        }
    }
}

#[test]
fn only_a_part_of_an_uncached_page_is_read_first() {
    for (bytes, filled, reads) in [(512, 0, 1), (2048, 0, 1), (4096, 0, 0), (512, PAGE, 0), (6144, 0, 1)] {
        let mut host = host("wd2500");
        host.fill_cache(0, 0, filled);
        host.run(call(Operation::Write, Route::Buffered, 0, bytes)).expect("any size");
        assert_eq!(host.counters(0).reads_caused_by_writes, reads, "{bytes} bytes, {filled} cached");
    }
}

fn written(name: &str, offset_bytes: u64, bytes: u64) -> (u64, u64, u64) {
    let mut device = Device::of_lun(&load(name).expect("built in").params.luns[0], 1);
    let done = device.submit(0, Request::write(offset_bytes, bytes));
    let sum = |of: fn(&MemberCounts) -> u64| device.member_counts().iter().map(of).sum::<u64>();
    (sum(|m| m.reads), sum(|m| m.writes), done.end_ns)
}

#[test]
fn a_whole_stripe_goes_straight_out_and_less_costs_reads() {
    const CHUNK: u64 = 65_536;
    for (name, parities) in [("raid5", 1), ("raid6", 2)] {
        let (reads, writes, whole_ns) = written(name, 8 * CHUNK, 4 * CHUNK);
        assert_eq!((reads, writes), (0, 4 + parities), "{name}: a whole stripe");
        let (reads, writes, part_ns) = written(name, 8 * CHUNK, CHUNK);
        // Raid 5: the old chunk and parity (2), not the other three; raid 6: three either way, so read-modify-write.
        assert_eq!((reads, writes), (1 + parities, 1 + parities), "{name}: one chunk");
        assert!(part_ns > whole_ns, "{name}: the reads come first");
        let (reads, writes, _) = written(name, 8 * CHUNK, 3 * CHUNK);
        assert_eq!((reads, writes), (1, 3 + parities), "{name}: the one other chunk gives the parity");
        let (reads, writes, _) = written(name, 8 * CHUNK + 512, 512);
        assert_eq!((reads, writes), (1 + parities, 1 + parities), "{name}: a sector");
        let (reads, writes, _) = written(name, 7 * CHUNK, 2 * CHUNK);
        assert_eq!((reads, writes), (2 * (1 + parities), 2 * (1 + parities)), "{name}: across two stripes");
    }
}
