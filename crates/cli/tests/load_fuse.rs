//! Loads on a disk whose log is the truth: latencies of an open loop from the intended arrivals, and the flushes that decide about etcd.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::checked_run::{ask, word};
use crate::support::{figure, programmed, programmed_of};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::fusedisk::{Behaviour, Extra, Op, Served, Stall};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::fmt;
use std::process::Command;

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const RATE: u64 = 1000;
/// No latency is shorter than what the log says, but for the width of a bucket of the histogram.
const BUCKET: f64 = 0.98;
/// A busy machine may leave too few I/Os.
const ATTEMPTS: usize = 5;

/// A latency in ns: what rdsk says, and what the log of the disk says.
pub(crate) struct Latency {
    pub(crate) name: &'static str,
    pub(crate) said: f64,
    pub(crate) logged: f64,
}

impl Latency {
    fn ratio(&self) -> f64 {
        self.said / self.logged
    }

    /// An error unless the two agree within a share.
    pub(crate) fn agrees(&self, within: f64) -> Result<(), String> {
        ensure((self.ratio() - 1.0).abs() < within, || self.to_string())
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ns, {} ns by the log", self.name, self.said, self.logged)
    }
}

/// A busy machine adds to what the disk takes, and never makes it shorter; how close the two are is in timing/load.rs. Counted from the
/// call, one read in each stall would be late, and not 500.
#[test]
fn an_open_loop_counts_a_stall_from_the_intended_arrivals() {
    if requires(&NEEDS) {
        let latencies = first_right(ATTEMPTS, || stalled(Stall { every_ns: 6 * S, lasts_ns: S / 2 }, 24, 0));
        for latency in latencies {
            assert!(latency.ratio() > BUCKET, "{latency}");
        }
    }
}

/// Reads at a steady rate, one in flight, of a disk that stalls: their p99.9 and the longest. `Err` where the machine left too few. The
/// load begins so long after the disk does: a stall between two repeats is in neither.
pub(crate) fn stalled(stall: Stall, budget_s: u64, begins_s: u64) -> Result<Vec<Latency>, String> {
    let (disk, device) = programmed(Behaviour { stall: Some(stall), ..Behaviour::single(MS / 5) });
    disk.clear_log();
    std::thread::sleep(std::time::Duration::from_secs(begins_s));
    let line = format!(
        "load {} --rate {RATE} --arrivals constant --iodepth 1 --budget {budget_s}s --no-history",
        word(device.path())
    );
    let answer = ask(&line).expect_code(0);
    let log = disk.log();
    let cell = &answer.cells()[0];
    let reads = &cell["result"]["jobs"][0]["reads"];
    let latencies = intended_latencies(&log, cell)?;
    ensure(latencies.len() as u64 == reads["ops"].as_u64().unwrap(), || {
        "not all of its reads are in the log".into()
    })?;
    let nearest = |share: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank below a million")]
        let rank = (share * latencies.len() as f64).ceil() as usize;
        latencies[rank.clamp(1, latencies.len()) - 1] as f64
    };
    ensure(nearest(0.999) > 0.4 * stall.lasts_ns as f64, || "no stall fell into a repeat".into())?;
    ensure(reads["latency_ns"]["p999"].is_u64(), || format!("too few reads: {}", latencies.len()))?;
    let latency = |name: &'static str, share: f64| {
        let said = figure(reads, &format!("/latency_ns/{name}"));
        Latency { name, said, logged: nearest(share) }
    };
    Ok(vec![latency("p999", 0.999), latency("max", 1.0)])
}

/// Latencies of the reads of a cell from their intended arrivals, ascending: those of each repeat lie at equal distances, from the
/// read that was sent with the least delay.
fn intended_latencies(log: &[Served], cell: &Value) -> Result<Vec<u64>, String> {
    let gap_ns = S / RATE;
    let mut reads: Vec<&Served> =
        log.iter().filter(|served| served.op == Op::Read && served.bytes == 4096).collect();
    reads.sort_by_key(|served| served.arrival_ns);
    let mut latencies = Vec::new();
    // The last ones of the log are those of the cell: what came before examined the device.
    let visits: Vec<usize> = cell["result"]["visits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|visit| usize::try_from(visit["ops"].as_u64().unwrap()).unwrap())
        .collect();
    let all: usize = visits.iter().sum();
    let mut rest = &reads[reads.len().checked_sub(all).ok_or("the log has fewer reads")?..];
    for ops in visits {
        let (visit, later) = rest.split_at(ops);
        rest = later;
        let due = |number: u64| number * gap_ns;
        let begin_ns =
            (0..).zip(visit).map(|(number, served)| served.arrival_ns.saturating_sub(due(number))).min();
        let begin_ns = begin_ns.unwrap_or(0);
        latencies
            .extend((0..).zip(visit).map(|(number, served)| served.answered_ns - begin_ns - due(number)));
    }
    latencies.sort_unstable();
    Ok(latencies)
}

/// The answer follows from a figure that is never below that of the log: a busy machine makes the disk slower than it was programmed, and
/// then the answer is another one. What a quiet one answers is in timing/load.rs.
#[test]
fn etcd_is_judged_by_the_flushes_of_the_disk() {
    if requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::Ext4]) {
        for p99_ms in [9, 11] {
            let Judged { code, p99, is_open } = first_right(ATTEMPTS, || etcd_with(p99_ms));
            assert!(p99.ratio() > BUCKET, "{p99}");
            let right = if is_open { 5 } else { i32::from(p99.said > 10.0 * MS as f64) };
            assert_eq!(code, right, "{p99}");
        }
    }
}

/// The answer of a check, and what it rests on.
pub(crate) struct Judged {
    pub(crate) code: i32,
    /// Of the flushes.
    pub(crate) p99: Latency,
    /// Whether 10 ms lie inside the interval.
    is_open: bool,
}

/// `check etcd` on a filesystem of a disk with flushes of this p99 in milliseconds. `Err` where the machine left too few of them, or where
/// the log has others.
pub(crate) fn etcd_with(p99_ms: u64) -> Result<Judged, String> {
    let (disk, device) = programmed_of(256 << 20, Behaviour::single(MS / 20));
    // Without a journal, which commits by itself now and then, a call is the writes before a flush and this one flush.
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-O", "^has_journal"])
        .arg(device.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mount = device.mount().unwrap();
    // One write of fifty is late, and so is one call of fifty or more.
    let late = Extra { every: 50, costs_ns: p99_ms * MS - MS / 2 };
    disk.set_behaviour(Behaviour { flush_ns: MS / 5, extra: Some(late), ..Behaviour::single(MS / 20) });
    disk.clear_log();
    let answer = ask(&format!("check etcd {} --budget 12s --no-history", word(mount.path())));
    let flushes = &answer.record["cells"][0]["result"]["jobs"][0]["flushes"];
    ensure(flushes["latency_ns"]["p99"].is_u64(), || format!("too few flushes: {}", flushes["ops"]))?;
    let said = figure(flushes, "/latency_ns/p99");
    let mut log = disk.log();
    log.sort_by_key(|served| served.arrival_ns);
    let calls = log.split_inclusive(|served| served.op == Op::Flush);
    // Longer than all that they wait for is the laying out of the test file before.
    let mut took_ns: Vec<u64> =
        calls.filter_map(|call| Some(call.last()?.answered_ns - call.first()?.arrival_ns)).collect();
    let count = flushes["ops"].as_u64().unwrap();
    let (whole, logged) = (usize::try_from(count).unwrap(), took_ns.len());
    ensure(logged >= whole && logged < whole + whole / 50 + 20, || {
        format!("{whole} calls, {logged} flushes in the log")
    })?;
    took_ns.drain(..logged - whole);
    took_ns.sort_unstable();
    let p99 = Latency { name: "p99", said, logged: took_ns[whole * 99 / 100] as f64 };
    let end = |name: &str| flushes["latency_ns"]["ranges"]["p99"][name].as_u64();
    let is_open =
        end("low").is_none_or(|low| low <= 10 * MS) && end("high").is_none_or(|high| high > 10 * MS);
    Ok(Judged { code: answer.code(), p99, is_open })
}
