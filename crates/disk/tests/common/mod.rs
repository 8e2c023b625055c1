//! A small dd over the simulated hosts, for the tests of the reports' tables.

use rdsk_disk::{Call, Counters, Host, Operation, Route, Stability, load};
use rdsk_stats::rng::SplitMix64;

/// What one dd saw.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Until close returned: dd's wall time.
    pub(crate) wall_s: f64,
    /// Everything.
    pub(crate) all: Counters,
    /// Between a quarter and the end of the transfer.
    pub(crate) steady: Counters,
}

/// A built-in system's host at time 0.
pub(crate) fn host(name: &str) -> Host {
    Host::new(&load(name).unwrap_or_else(|error| panic!("{error}")).params, 1)
}

/// A call of the first stream on the first LUN.
pub(crate) fn call(operation: Operation, route: Route, offset_bytes: u64, bytes: u64) -> Call {
    Call { operation, route, stability: Stability::Any, lun: 0, offset_bytes, bytes, stream: 0 }
}

/// dd of `count` blocks.
pub(crate) fn dd(name: &str, operation: Operation, route: Route, block_bytes: u64, count: u64) -> Seen {
    let mut host = host(name);
    let mut quarter = Counters::default();
    for block in 0..count {
        if block == count / 4 {
            quarter = host.counters(0);
        }
        let done = host
            .run(call(operation, route, block * block_bytes, block_bytes))
            .expect("dd's blocks are whole");
        assert_eq!(done.outcome, Ok(()));
    }
    let steady = host.counters(0).since(&quarter);
    host.run(call(Operation::Close, route, 0, 0)).expect("a close is never refused");
    Seen { wall_s: host.now_ns() as f64 / 1e9, all: host.counters(0), steady }
}

/// Mean number of requests waiting; NaN over no time.
pub(crate) fn waiting_mean(counters: &Counters) -> f64 {
    counters.waiting_ns as f64 / counters.at_ns as f64
}

/// Mean number of requests at the device; NaN over no time.
pub(crate) fn active_mean(counters: &Counters) -> f64 {
    counters.active_ns as f64 / counters.at_ns as f64
}

/// Asserts that a figure is within a share of what the report has.
#[track_caller]
pub(crate) fn near(what: &str, is: f64, wanted: f64, share: f64) {
    let error = is / wanted - 1.0;
    assert!(error.abs() <= share, "{what}: {is} is {:+.1}% from {wanted}", error * 100.0);
}

/// All numbers below `count`, each once, in random order.
pub(crate) fn shuffled(rng: &mut SplitMix64, count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    rng.shuffle(&mut numbers);
    numbers
}

/// Several dd at once, dealt round the LUNs, each over its own range; bytes per second of all together while all run.
pub(crate) fn streams(
    host: &mut Host,
    operation: Operation,
    route: Route,
    block_bytes: u64,
    streams: usize,
) -> f64 {
    const BLOCKS: u64 = 400;
    let luns = host.paths().luns();
    let next = |stream: usize, block: u64| Call {
        lun: stream % luns,
        stream,
        ..call(operation, route, (stream as u64 * BLOCKS + block) * block_bytes, block_bytes)
    };
    let mut blocks = vec![0_u64; streams];
    let mut stream_of = std::collections::HashMap::new();
    for stream in 0..streams {
        stream_of.insert(host.submit(0, next(stream, 0)).expect("dd's blocks are whole"), stream);
    }
    let mut bytes = 0;
    loop {
        for done in host.advance_one() {
            let stream = stream_of.remove(&done.id).expect("it was submitted here");
            bytes += block_bytes;
            blocks[stream] += 1;
            if blocks[stream] == BLOCKS {
                return bytes as f64 / (host.now_ns() as f64 / 1e9);
            }
            let id = host.submit(host.now_ns(), next(stream, blocks[stream])).expect("dd's blocks are whole");
            stream_of.insert(id, stream);
        }
    }
}
