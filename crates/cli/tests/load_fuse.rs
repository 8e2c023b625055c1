//! Loads on a disk whose log is the truth: latencies of an open loop from the intended arrivals, and the flushes that decide about etcd.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::checked_run::{ask, word};
use crate::support::{figure, programmed, programmed_of};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::fusedisk::{Behaviour, Extra, Op, Served, Stall};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::process::Command;

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const RATE: u64 = 1000;
const ATTEMPTS: usize = 5;

#[test]
fn an_open_loop_counts_a_stall_from_the_intended_arrivals() {
    if requires(&NEEDS) {
        first_right(ATTEMPTS, || stalled(Stall { every_ns: 6 * S, lasts_ns: S / 2 }, 15));
    }
}

/// Reads at a steady rate of a disk that stalls: the p99.9 and the longest latency are those of its log, within 2%.
pub(crate) fn stalled(stall: Stall, budget_s: u64) -> Result<(), String> {
    let (disk, device) = programmed(Behaviour { stall: Some(stall), ..Behaviour::single(MS / 5) });
    disk.clear_log();
    let line = format!(
        "load {} --rate {RATE} --arrivals constant --budget {budget_s}s --no-history",
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
    for (key, truth) in [("p999", nearest(0.999)), ("max", nearest(1.0))] {
        ensure(reads["latency_ns"][key].is_u64(), || {
            format!("too few reads for {key}: {}", latencies.len())
        })?;
        let said = figure(reads, &format!("/latency_ns/{key}"));
        ensure((said / truth - 1.0).abs() < 0.02, || format!("{key}: {said} ns, {truth} ns by the log"))?;
    }
    ensure(nearest(0.999) > 0.4 * stall.lasts_ns as f64, || "no stall fell into a repeat".into())
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

#[test]
fn etcd_is_judged_by_the_flushes_of_the_disk() {
    if requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::Ext4]) {
        for p99_ms in [9, 11] {
            first_right(ATTEMPTS, || {
                let Judged { code, logged_ns, is_open } = etcd_with(p99_ms)?;
                // A busy machine makes the disk slower than it was programmed, and then the answer is another one.
                let right = if is_open { 5 } else { i32::from(logged_ns > 10 * MS) };
                ensure(code == right, || format!("exit code {code}, and a p99 of {logged_ns} ns in the log"))
            });
        }
    }
}

/// The answer of a check, and what it rests on.
pub(crate) struct Judged {
    pub(crate) code: i32,
    /// The p99 of the flushes by the log of the disk.
    pub(crate) logged_ns: u64,
    /// Whether 10 ms lie inside the interval.
    pub(crate) is_open: bool,
}

/// `check etcd` on a filesystem of a disk whose flushes make a p99 of so many milliseconds. `Err` where the figure is not that of the
/// disk's log, within 5%.
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
    let said_ns = figure(flushes, "/latency_ns/p99");
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
    let logged_ns = took_ns[whole * 99 / 100];
    ensure((said_ns / logged_ns as f64 - 1.0).abs() < 0.05, || {
        format!("{said_ns} ns, {logged_ns} ns by the log")
    })?;
    let end = |name: &str| flushes["latency_ns"]["ranges"]["p99"][name].as_u64();
    let is_open =
        end("low").is_none_or(|low| low <= 10 * MS) && end("high").is_none_or(|high| high > 10 * MS);
    Ok(Judged { code: answer.code(), logged_ns, is_open })
}
