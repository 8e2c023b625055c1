//! What counting costs: random direct reads of a zram device without the BPF programs and with them, in pairs, as fast as the device
//! gives them in 4 KiB; and of any size the time that the programs took by the kernel's own count, which shows a part of a thousand
//! where rates scatter by a tenth. The processor moves the data, so that nothing waits and every nanosecond of the programs shows.

use super::environment::BenchTarget;
use super::kernel_count::Counting;
use super::{Compared, Options, in_turn};
use crate::programs::{json, rdsk_command, release, text_of};
use anyhow::{Context as _, Result, ensure};
use rdsk_stats::median;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Pairs for each pair that is asked for: the differences that are looked for are small.
const PAIRS_EACH: usize = 3;
/// At this rate and below, the programs may take this part of the time.
const SLOW_PER_S: f64 = 20_000.0;
const SLOW_SHARE: f64 = 0.005;
/// The budget of a run of which the kernel counts the programs.
const COUNTED_FOR: &str = "12s";
/// The cell of a run whose rate counts.
const CELL: &str = "stream/read/direct";

/// What is compared with `--evidence sysfs`: words, evidence, the ratio that is wanted.
const CASES: [(&str, &str, f64); 2] =
    [("throughout (--evidence bpf)", "bpf", 0.93), ("for a part of each visit (auto)", "auto", 0.99)];

/// Blocks whose programs the kernel counts; those of 256 KiB and more give at most [`SLOW_PER_S`] or a little above.
const COUNTED: [(&str, &str); 5] =
    [("4k", "bpf"), ("4k", "auto"), ("256k", "auto"), ("512k", "auto"), ("1M", "auto")];

/// Both tables.
pub(super) fn report(options: &Options) -> Result<()> {
    let rdsk = release("rdsk")?;
    let (pairs, seconds) = (options.pairs * PAIRS_EACH, options.seconds);
    let zram = BenchTarget::zram()?;
    println!("reads of 4 KiB, one at a time, {pairs} pairs of runs of {seconds} s");
    println!("{}", Compared::head(["with", "without"], "median latency longer by; counted for"));
    for (name, evidence, goal) in CASES {
        let run = |evidence: &str| {
            let mut command = reads(&rdsk, &zram.path, "4k", evidence);
            command.arg(format!("--runtime={seconds}s"));
            figures(&json(&text_of(&mut command)?)?, evidence)
        };
        let runs = in_turn(pairs, || run(evidence), || run("sysfs"))?;
        let middle = |figure: fn(&(Run, Run)) -> f64| {
            median(&runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let longer_us = middle(|(with, without)| (with.p50_ns - without.p50_ns) / 1e3);
        let note = format!("{longer_us:+.3} µs; {:.0}%", middle(|(with, _)| with.counted * 100.0));
        let rates: Vec<(f64, f64)> = runs.iter().map(|(with, without)| (with.rate, without.rate)).collect();
        println!("{}", Compared::of(&rates)?.row(name, goal, &note));
    }
    println!(
        "\nby the kernel's own count, of the time of all visits of a run of {COUNTED_FOR}, buffered and direct reads:"
    );
    let counting = Counting::on()?;
    for (block, evidence) in COUNTED {
        println!("{}", counted_line(&counting, reads(&rdsk, &zram.path, block, evidence), block, evidence)?);
    }
    Ok(())
}

/// What the programs took of a run as long as a user's, with as many visits. It is judged by the rate of the direct reads, the higher one.
fn counted_line(counting: &Counting, mut command: Command, block: &str, evidence: &str) -> Result<String> {
    let (output, took_ns) = counting.run(command.args(["--budget", COUNTED_FOR]))?;
    let record = json(&output)?;
    let rate = figures(&record, evidence)?.rate;
    let (cell, visits) = cell_and_visits(&record)?;
    // The kernel does not say for which cell a program ran.
    let cells = record["cells"].as_array().into_iter().flatten();
    let elapsed_ns: f64 = cells.filter_map(|cell| cell.pointer("/result/elapsed_ns")?.as_f64()).sum();
    let share = took_ns as f64 / elapsed_ns;
    let mark = if rate <= SLOW_PER_S && share > SLOW_SHARE { "  missed" } else { "" };
    Ok(format!(
        "{:<62} {rate:>10.0} per second  {:.2}%  {} of {visits} visits followed{mark}",
        format!("{block}, --evidence {evidence}"),
        share * 100.0,
        followed(cell).unwrap_or(visits)
    ))
}

/// What one run said.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    /// I/Os per second.
    rate: f64,
    /// The median latency, in ns: what the programs cost each I/O. A rate follows the mean, which a few I/Os decide that waited for a
    /// processor.
    p50_ns: f64,
    /// The share of the time for which the programs counted.
    counted: f64,
}

/// The reads, for as long as is still to be said.
fn reads(rdsk: &Path, device: &Path, block: &str, evidence: &str) -> Command {
    let mut command = rdsk_command(rdsk);
    command.arg("stream").arg(device).args(["--rw", "read", "--pattern", "random", "--engine", "sync"]);
    command.args(["--bs", block, "--evidence", evidence, "--json", "-", "--json-compact", "--quiet"]);
    command
}

/// The cell that counts, and how many visits it has.
fn cell_and_visits(record: &Value) -> Result<(&Value, usize)> {
    let cells = record["cells"].as_array().context("a Record has cells")?;
    let cell = cells.iter().find(|cell| cell["id"] == CELL).with_context(|| format!("no cell {CELL}"))?;
    Ok((cell, cell["result"]["visits"].as_array().map_or(0, Vec::len)))
}

/// How many visits the programs followed, where not all.
fn followed(cell: &Value) -> Option<usize> {
    cell["evidence"]["bpf"]["followed"].as_array().map(Vec::len)
}

fn figures(record: &Value, evidence: &str) -> Result<Run> {
    let (cell, visits) = cell_and_visits(record)?;
    let number = |pointer: &str| {
        cell.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no number at {pointer}"))
    };
    let rate = number("/result/ops")? / (number("/result/elapsed_ns")? / 1e9);
    let p50_ns = number("/result/latency_ns/p50")?;
    if evidence == "sysfs" {
        return Ok(Run { rate, p50_ns, counted: 0.0 });
    }
    let why = &record["observer"]["why_not_higher"];
    ensure!(cell["evidence"]["bpf"].is_object(), "the programs did not count: {why}");
    let observed = number("/evidence/bpf/observed_ns")? / number("/evidence/bpf/visits_ns")?;
    let counted = observed * followed(cell).unwrap_or(visits) as f64 / visits as f64;
    Ok(Run { rate, p50_ns, counted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_tells_its_rate_and_for_how_long_it_was_counted() {
        let cell = json!({
            "id": CELL,
            "result": {"ops": 1000, "elapsed_ns": 500_000_000, "latency_ns": {"p50": 1300}, "visits": [{}, {}, {}, {}]},
            "evidence": {"bpf": {"observed_ns": 25, "visits_ns": 100}},
        });
        let mut record = json!({"cells": [cell]});
        let run = |counted| Run { rate: 2000.0, p50_ns: 1300.0, counted };
        assert_eq!(figures(&record, "auto").unwrap(), run(0.25));
        record["cells"][0]["evidence"]["bpf"]["followed"] = json!([0]);
        assert_eq!(figures(&record, "auto").unwrap(), run(0.0625), "a quarter of one of four visits");
        record["cells"][0]["evidence"]["bpf"]["followed"] = json!([0, 1, 2, 3]);
        assert_eq!(figures(&record, "sysfs").unwrap(), run(0.0));
        let without = json!({"cells": [{"id": CELL, "result": {"ops": 1, "elapsed_ns": 1}, "evidence": {}}]});
        assert!(figures(&without, "bpf").is_err(), "a run without BPF is no comparison");
    }
}
