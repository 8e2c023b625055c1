//! What counting costs: the same reads without the BPF programs and with them, in pairs, on the fastest device that can be made
//! here: in 4 KiB, and in blocks so large that it gives at most 20 000 IOPS. The processor moves the data, so that nothing waits
//! and every nanosecond of the programs shows. The device is the benchmark's own.

use super::disk::tied;
use super::environment::BenchTarget;
use super::kernel_count::Counting;
use super::median;
use super::rivals::build;
use crate::programs::{json, text_of};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What `--only` looks for.
pub(crate) const NAME: &str = "observer: IOPS with the BPF programs against none";

/// Pairs for each pair that is asked for: the differences that are looked for are small.
const PAIRS_EACH: usize = 3;
/// Above this rate the cost of the programs themselves is told.
const FAST_PER_S: f64 = 300_000.0;
/// At this rate and below, the programs may take 0.5 %.
const SLOW_PER_S: f64 = 20_000.0;
/// The budget of a run of which the kernel counts the programs.
const COUNTED_FOR: &str = "12s";
/// The cell of a run whose rate counts.
const CELL: &str = "stream/read/direct";

/// One comparison with `--evidence sysfs`.
struct Case {
    name: &'static str,
    /// The size of each read.
    block: &'static str,
    evidence: &'static str,
    /// The smallest ratio that is wanted.
    goal: f64,
    /// Rates for which the goal is meant.
    holds_for: std::ops::Range<f64>,
}

const CASES: [Case; 5] = [
    Case {
        name: "throughout (--evidence bpf)",
        block: "4k",
        evidence: "bpf",
        goal: 0.93,
        holds_for: FAST_PER_S..f64::INFINITY,
    },
    Case {
        name: "for a part of each visit (auto)",
        block: "4k",
        evidence: "auto",
        goal: 0.99,
        holds_for: 100_000.0..f64::INFINITY,
    },
    slow("1M"),
    slow("512k"),
    slow("256k"),
];

/// Reads of so many bytes take 50 us and more. Everything is counted and timed, by default, too.
const fn slow(block: &'static str) -> Case {
    Case { name: "as it is (auto)", block, evidence: "auto", goal: 0.995, holds_for: 0.0..SLOW_PER_S }
}

/// Prints the table, or why it cannot be measured.
pub(crate) fn report(pairs: usize, seconds: u32) {
    if let Err(error) = compare(pairs * PAIRS_EACH, seconds) {
        println!("{NAME}: not measured: {error:#}");
    }
}

fn compare(pairs: usize, seconds: u32) -> Result<()> {
    let rdsk = build(&["-p", "rdsk", "--bin", "rdsk"])?;
    println!("\n{NAME}");
    println!(
        "random direct reads of a zram device, one at a time, {pairs} pairs of runs of {seconds} s in the order A B B A; medians; p50: \
         by how many us the median latency is longer"
    );
    println!(
        "{:<52} {:>9} {:>9} {:>7}  {:<15} {:>6}  {:<9} counted for",
        "", "with", "without", "ratio", "spread", "goal", "p50"
    );
    let zram = BenchTarget::zram()?;
    for case in &CASES {
        let runs: Vec<[Run; 2]> = (0..pairs)
            .map(|pair| {
                let run = |evidence| run(&rdsk, &zram.path(), case.block, evidence, seconds);
                // A B, then B A: drift hits both alike.
                if pair % 2 == 0 {
                    let with = run(case.evidence)?;
                    return Ok([with, run("sysfs")?]);
                }
                let without = run("sysfs")?;
                Ok([run(case.evidence)?, without])
            })
            .collect::<Result<_>>()?;
        println!("{}", line(&format!("{} {}", case.block, case.name), case, &runs));
    }
    println!(
        "by the kernel's own count, of the time of all visits of a run of {COUNTED_FOR}, buffered and direct reads:"
    );
    let counting = Counting::on()?;
    for case in &CASES {
        println!("{}", counted_line(&counting, &rdsk, &zram.path(), case)?);
    }
    Ok(())
}

/// What the programs took of a run as long as a user's, with as many visits. It is judged by the rate of the direct reads, the higher one.
fn counted_line(counting: &Counting, rdsk: &Path, device: &Path, case: &Case) -> Result<String> {
    let mut command = reads(rdsk, device, case.block, case.evidence);
    let (output, took_ns) = counting.run(command.args(["--budget", COUNTED_FOR]))?;
    let record = json(&output)?;
    let rate = figures(&record, case.evidence)?.rate;
    let (cell, visits) = cell_and_visits(&record)?;
    // The kernel does not tell for which cell a program ran.
    let cells = record["cells"].as_array().into_iter().flatten();
    let elapsed_ns: f64 = cells.filter_map(|cell| cell.pointer("/result/elapsed_ns")?.as_f64()).sum();
    let share = took_ns as f64 / elapsed_ns;
    let followed = cell.pointer("/evidence/bpf/followed").and_then(Value::as_array).map_or(visits, Vec::len);
    let mark = match (rate <= SLOW_PER_S, share <= 1.0 - case.goal) {
        (true, false) => "  missed",
        _ => "",
    };
    let name = format!("{} {}", case.block, case.name);
    Ok(format!(
        "{name:<52} {rate:>9.0} {:>8.2} %  {followed} of {visits} visits followed{mark}",
        share * 100.0
    ))
}

fn line(name: &str, case: &Case, runs: &[[Run; 2]]) -> String {
    let middle = |figure: &dyn Fn(&[Run; 2]) -> f64| median(&mut runs.iter().map(figure).collect::<Vec<_>>());
    let mut ratios: Vec<f64> = runs.iter().map(|[with, without]| with.rate / without.rate).collect();
    let ratio = median(&mut ratios);
    let spread = format!("{:.3} … {:.3}", ratios[0], ratios[ratios.len() - 1]);
    let (with, without) = (middle(&|pair| pair[0].rate), middle(&|pair| pair[1].rate));
    let mark = match (case.holds_for.contains(&without), ratio >= case.goal) {
        (false, _) => "  (not the rate of the goal)",
        (true, true) => "",
        (true, false) => "  missed",
    };
    format!(
        "{name:<52} {with:>9.0} {without:>9.0} {ratio:>7.3}  {spread:<15} {:>6.3}  {:<+9.3} {:.0} %{mark}",
        case.goal,
        middle(&|pair| (pair[0].p50_ns - pair[1].p50_ns) / 1e3),
        middle(&|pair| pair[0].counted * 100.0)
    )
}

/// What one run told.
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

fn run(rdsk: &Path, device: &Path, block: &str, evidence: &str, seconds: u32) -> Result<Run> {
    let mut command = reads(rdsk, device, block, evidence);
    command.arg(format!("--runtime={seconds}s"));
    figures(&json(&text_of(&mut command)?)?, evidence)
}

/// The reads, for as long as is still to be said.
fn reads(rdsk: &Path, device: &Path, block: &str, evidence: &str) -> Command {
    let mut command = tied(rdsk);
    command.arg("stream").arg(device).args([
        "--rw",
        "read",
        "--pattern",
        "random",
        "--bs",
        block,
        "--engine",
        "sync",
    ]);
    command.args(["--evidence", evidence, "--json", "-", "--json-compact", "--quiet"]);
    command
}

/// The cell that counts, and how many visits it has.
fn cell_and_visits(record: &Value) -> Result<(&Value, usize)> {
    let cells = record["cells"].as_array().context("a Record has cells")?;
    let cell = cells.iter().find(|cell| cell["id"] == CELL).with_context(|| format!("no cell {CELL}"))?;
    Ok((cell, cell["result"]["visits"].as_array().map_or(0, Vec::len)))
}

fn number(value: &Value, pointer: &str) -> Result<f64> {
    value.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

fn figures(record: &Value, evidence: &str) -> Result<Run> {
    let (cell, visits) = cell_and_visits(record)?;
    let rate = number(cell, "/result/ops")? / (number(cell, "/result/elapsed_ns")? / 1e9);
    let p50_ns = number(cell, "/result/latency_ns/p50")?;
    if evidence == "sysfs" {
        return Ok(Run { rate, p50_ns, counted: 0.0 });
    }
    let why = &record["observer"]["why_not_higher"];
    ensure!(cell["evidence"]["bpf"].is_object(), "the programs did not count: {why}");
    let visits = visits as f64;
    let followed =
        cell["evidence"]["bpf"]["followed"].as_array().map_or(visits, |followed| followed.len() as f64);
    let observed = number(cell, "/evidence/bpf/observed_ns")? / number(cell, "/evidence/bpf/visits_ns")?;
    let counted = observed * followed / visits;
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

    #[test]
    fn a_goal_is_judged_at_its_own_rate_only() {
        let run = |rate, counted| Run { rate, p50_ns: 1e9 / rate, counted };
        let pair = |with, without| [run(with, 1.0), run(without, 0.0)];
        let fast = line("x", &CASES[0], &[pair(460_000.0, 500_000.0)]);
        assert!(fast.contains("0.920") && fast.contains("+0.174") && fast.ends_with("missed"), "{fast}");
        assert!(line("x", &CASES[0], &[pair(480_000.0, 500_000.0)]).ends_with("100 %"));
        assert!(line("x", &CASES[0], &[pair(1.0, 200_000.0)]).ends_with("(not the rate of the goal)"));
    }
}
