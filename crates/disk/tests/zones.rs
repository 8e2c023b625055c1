//! Section 3's system, tested by itself: a whole disk read in blocks; and what it costs to simulate that.

use crate::common::{call, host, shuffled};
use rdsk_disk::{Host, Operation, Route};
use rdsk_stats::rng::SplitMix64;

const MIB: u64 = 1 << 20;

/// Rate at a position: some blocks there, in bytes per second.
fn rate_at(host: &mut Host, offset_bytes: u64, block_bytes: u64) -> f64 {
    let offset_bytes = offset_bytes / block_bytes * block_bytes;
    host.run(call(Operation::Read, Route::Direct, offset_bytes, block_bytes)).expect("whole sectors");
    let start_ns = host.now_ns();
    for block in 1..=8 {
        host.run(call(Operation::Read, Route::Direct, offset_bytes + block * block_bytes, block_bytes))
            .expect("whole sectors");
    }
    (8 * block_bytes) as f64 / ((host.now_ns() - start_ns) as f64 / 1e9)
}

#[test]
fn the_rate_falls_from_the_outer_edge_to_the_inner() {
    let mut host = host("freebsd-wd800jd");
    let capacity_bytes = host.capacity_bytes(0);
    let rates: Vec<f64> = (0..40).map(|n| rate_at(&mut host, capacity_bytes / 41 * n, 5 * MIB)).collect();
    assert!(rates.windows(2).all(|pair| pair[1] < pair[0] * 1.03), "{rates:?}");
    let ratio = rates[0] / rates[39];
    assert!((1.6..2.1).contains(&ratio), "outer to inner {ratio}");
}

/// Times in ms of consecutive blocks of a region that begins at `eighth` of the disk, and the disk's utilisation: what a
/// script sees that starts a dd for every block, in ascending order.
fn ascending(operation: Operation, block_bytes: u64, eighth: u64) -> (Vec<f64>, f64) {
    let mut host = host("freebsd-wd800jd");
    let first = host.capacity_bytes(0) / 8 * eighth / block_bytes;
    let mut took_ms = Vec::new();
    for block in 0..(START + COUNT) as u64 {
        let done = host.run(call(operation, Route::Direct, (first + block) * block_bytes, block_bytes));
        let done = done.expect("whole sectors");
        if block < START as u64 {
            continue;
        }
        took_ms.push((done.end_ns - done.start_ns) as f64 / 1e6);
    }
    let seen = host.counters(0);
    (took_ms, seen.busy_ns as f64 / seen.at_ns as f64)
}

/// Blocks of a region that are looked at.
const COUNT: usize = 200;

/// Blocks before them, until the disk's buffer is in its stride.
const START: usize = 5;

/// The two clusters of a plain check: the sorted times are cut at their widest gap. Gives the gap, the distance of the
/// clusters' medians, and the share of the upper one.
fn clusters(mut took_ms: Vec<f64>) -> (f64, f64, f64) {
    took_ms.sort_by(f64::total_cmp);
    let gap_before = |&n: &usize| took_ms[n] - took_ms[n - 1];
    let cut = (1..took_ms.len())
        .max_by(|a, b| gap_before(a).total_cmp(&gap_before(b)))
        .expect("there are several times");
    let (low, high) = took_ms.split_at(cut);
    let distance_ms = high[high.len() / 2] - low[low.len() / 2];
    (gap_before(&cut), distance_ms, high.len() as f64 / took_ms.len() as f64)
}

/// One revolution at 7200 rpm.
const REVOLUTION_MS: f64 = 60e3 / 7200.0;

#[test]
fn in_ascending_order_one_megabyte_has_bands_a_revolution_apart_and_larger_blocks_have_none() {
    for operation in [Operation::Read, Operation::Write] {
        let mut banded = 0;
        for eighth in [0, 2, 4, 6] {
            let (took_ms, _) = ascending(operation, MIB, eighth);
            let (gap_ms, distance_ms, share) = clusters(took_ms);
            if gap_ms > 5.0 && (0.05..0.95).contains(&share) {
                banded += 1;
                // A block crosses one track boundary or two, so that the medians differ by a switch more or less.
                assert!((distance_ms / REVOLUTION_MS - 1.0).abs() < 0.3, "{operation:?} {distance_ms} ms");
            }
            for block_bytes in [5 * MIB, 10 * MIB, 20 * MIB] {
                let (took_ms, _) = ascending(operation, block_bytes, eighth);
                let median_ms = took_ms[COUNT / 2];
                let (gap_ms, ..) = clusters(took_ms);
                assert!(
                    gap_ms < 2.5 && gap_ms < 0.03 * median_ms,
                    "{operation:?} {block_bytes}: {gap_ms} ms"
                );
            }
        }
        assert!(banded >= 2, "{operation:?}: bands in {banded} of 4 regions");
    }
}

#[test]
fn in_shuffled_order_there_is_a_smear_of_a_revolution_and_no_bands() {
    let mut host = host("freebsd-wd800jd");
    let blocks = host.capacity_bytes(0) / 8 / MIB;
    let mut took_ms: Vec<f64> = shuffled(&mut SplitMix64::new(3), blocks)[..COUNT]
        .iter()
        .map(|block| {
            let done = host.run(call(Operation::Read, Route::Direct, block * MIB, MIB));
            let done = done.expect("whole sectors");
            (done.end_ns - done.start_ns) as f64 / 1e6
        })
        .collect();
    took_ms.sort_by(f64::total_cmp);
    let middle = &took_ms[COUNT / 20..COUNT - COUNT / 20];
    let spread_ms = middle[middle.len() - 1] - middle[0];
    let (gap_ms, ..) = clusters(middle.to_vec());
    assert!(spread_ms > 0.9 * REVOLUTION_MS && gap_ms < 0.1 * REVOLUTION_MS, "{gap_ms} of {spread_ms} ms");
}

#[test]
fn the_disk_is_not_saturated() {
    for operation in [Operation::Read, Operation::Write] {
        let mut last = 0.0;
        for (block_bytes, least, most) in
            [(MIB, 0.7, 0.86), (5 * MIB, 0.8, 0.95), (10 * MIB, 0.85, 0.96), (20 * MIB, 0.85, 0.97)]
        {
            let (_, busy) = ascending(operation, block_bytes, 4);
            assert!((least..most).contains(&busy), "{operation:?} {block_bytes}: busy {busy}");
            assert!(busy > last, "a larger block spends a smaller share outside the disk");
            last = busy;
        }
    }
}

#[test]
fn one_megabyte_starts_lower_and_five_are_tight() {
    for operation in [Operation::Read, Operation::Write] {
        let seen = |block_bytes, eighth| {
            let (mut took_ms, _) = ascending(operation, block_bytes, eighth);
            took_ms.sort_by(f64::total_cmp);
            let rate = |n: usize| block_bytes as f64 / 1e3 / took_ms[n];
            (rate(COUNT / 2), (rate(COUNT / 20) - rate(COUNT - COUNT / 20)) / rate(COUNT / 2))
        };
        let ((small, scatter), (large, tight)) = (seen(MIB, 2), seen(5 * MIB, 2));
        assert!(small < 0.85 * large, "{operation:?}: {small} MB/s and {large} MB/s at the outer edge");
        assert!(scatter > 0.3 && tight < 0.05, "{operation:?}: {scatter} at 1 MB, {tight} at 5 MB");
        let (inner_small, inner_large) = (seen(MIB, 7).0, seen(5 * MIB, 7).0);
        assert!(inner_small / inner_large > small / large, "the sizes come together towards the inner edge");
    }
}

/// Run with `cargo test --release -p rdsk-disk --test zones -- --ignored --nocapture`: the goal is 10 s.
#[test]
#[ignore = "a benchmark of half a minute in a debug build"]
fn ten_passes_over_the_whole_disk_take_seconds() {
    let begun = std::time::Instant::now();
    let mut host = host("freebsd-wd800jd");
    let blocks = host.capacity_bytes(0) / MIB;
    let mut first_s = 0.0;
    for pass in 0..10 {
        let start_ns = host.now_ns();
        for block in 0..blocks {
            host.run(call(Operation::Read, Route::Direct, block * MIB, MIB)).expect("whole sectors");
        }
        let took_s = (host.now_ns() - start_ns) as f64 / 1e9;
        if pass == 0 {
            first_s = took_s;
        }
        assert!(
            (took_s / first_s - 1.0).abs() < 0.01,
            "every pass takes about the same: {took_s} s, {first_s} s"
        );
    }
    println!("ten passes of {first_s:.0} s each in {:.2} s", begun.elapsed().as_secs_f64());
}
