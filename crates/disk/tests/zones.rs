//! Section 3's system, tested by itself: a whole disk read in blocks; and what it costs to simulate that.

mod common;

use common::{Random, call, host};
use rdsk_disk::{Host, Operation, Route};

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

#[test]
fn the_disk_is_not_saturated() {
    let mut host = host("freebsd-wd800jd");
    for block in 0..200 {
        host.run(call(Operation::Write, Route::Direct, block * MIB, MIB)).expect("whole sectors");
        // Each block is a dd of its own, which takes some milliseconds to start.
        let started_ns = host.now_ns() + 4_000_000;
        host.advance(started_ns);
    }
    let seen = host.counters(0);
    let busy = seen.busy_ns as f64 / seen.at_ns as f64;
    assert!((0.5..0.95).contains(&busy), "busy {busy}");
}

/// Spread of the rate of single blocks at one position, each a dd of its own that takes 3 to 5 ms to start: the middle nine
/// tenths over the median.
fn spread(operation: Operation, block_bytes: u64) -> f64 {
    let mut host = host("freebsd-wd800jd");
    let mut random = Random(1);
    let mut rates: Vec<f64> = (0..500)
        .map(|block| {
            let started_ns = host.now_ns() + 3_000_000 + random.below(2_000_000);
            host.advance(started_ns);
            let done = host.run(call(operation, Route::Direct, block * block_bytes, block_bytes));
            let done = done.expect("whole sectors");
            block_bytes as f64 / (done.end_ns - done.start_ns) as f64
        })
        .skip(100)
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[380] - rates[20]) / rates[200]
}

#[test]
fn small_blocks_scatter_and_larger_ones_are_tight() {
    for operation in [Operation::Read, Operation::Write] {
        let (small, large) = (spread(operation, MIB), spread(operation, 5 * MIB));
        assert!(small > 0.15 && large < 0.08, "{operation:?}: {small} at 1 MB, {large} at 5 MB");
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
