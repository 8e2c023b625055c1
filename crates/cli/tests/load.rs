//! Loads and needs through the binary: exact accounts in virtual time, the highest rate that keeps a promise against the formula of
//! queueing theory, and the answers to needs with their exit codes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::{LONG, figure};
use rdsk_testkit::cli::{self, Run};
use serde_json::Value;
use std::io::Write as _;
use tempfile::NamedTempFile;

fn rdsk<'w>(words: impl IntoIterator<Item = &'w str>) -> Run {
    let mut line = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    line.args(words);
    cli::run(line, LONG)
}

/// The document of a run that ended with this code.
fn document(line: &str, code: i32) -> Value {
    let file = NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let words: Vec<&str> = line.split(' ').chain(["--no-history", "-q", "--json", path]).collect();
    let run = rdsk(words);
    assert_eq!(run.status_code, Some(code), "{line}: {}{}", run.stdout, run.stderr);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn file_of(text: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A device of one server that takes 1 ms for each request.
fn one_server() -> NamedTempFile {
    file_of(
        "extends = \"ssd-slc\"\n[host.cost]\ndirect_call_ns = 0\n[[luns]]\n[luns.device.ram]\ncapacity_bytes = 1073741824\n\
         read_command_ns = 1000000\nwrite_command_ns = 1000000\nread_bytes_per_s = 1e15\nwrite_bytes_per_s = 1e15\nservers = 1\n",
    )
}

#[test]
fn a_mix_is_counted_by_kind_and_judged_in_both_directions() {
    let record = document("load sim:ssd-slc --rw randrw --mix 70 --iodepth 4 --streams 2 --budget 5s", 0);
    let cell = &record["cells"][0];
    let job = &cell["result"]["jobs"][0];
    let ops = |kind: &str| figure(job, &format!("/{kind}/ops"));
    assert_eq!(ops("reads") + ops("writes"), figure(cell, "/result/ops"));
    let share = ops("reads") / (ops("reads") + ops("writes"));
    assert!((share - 0.7).abs() < 0.02, "{share}");
    assert_eq!(figure(job, "/reads/bytes"), ops("reads") * 4096.0);
    let text = cell["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("read ") && text.contains("wrote "), "{text}");
    let page = rdsk([
        "load",
        "sim:ssd-slc",
        "--rw",
        "randrw",
        "--mix",
        "70",
        "--budget",
        "2s",
        "--no-history",
        "-q",
    ]);
    for words in
        ["load reads", "load writes", "70% reads, reads random 4 KiB, writes random 4 KiB", "closed loop"]
    {
        let text = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {}", page.stdout);
    }
}

/// P(W ≤ t) of the wait in M/D/1 with a service time of 1 (Erlang): (1 − λ) Σ (λ (k − t))^k / k! e^(−λ (k − t)), k from 0 to t.
fn waits_within(t: f64, lambda: f64) -> f64 {
    let mut sum = 0.0;
    let mut factorial = 1.0;
    let mut k = 0.0;
    while k <= t {
        if k > 0.0 {
            factorial *= k;
        }
        sum += (lambda * (k - t)).powf(k) / factorial * (-lambda * (k - t)).exp();
        k += 1.0;
    }
    (1.0 - lambda) * sum
}

/// The rate at which 99% of the requests to one server of 1 ms take 4 ms at most: 3 ms of waiting.
#[test]
fn the_highest_rate_with_a_promise_is_that_of_the_formula() {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let lambda = f64::midpoint(low, high);
        if waits_within(3.0, lambda) >= 0.99 { low = lambda } else { high = lambda }
    }
    let expected = low * 1000.0;
    let server = one_server();
    let record =
        document(&format!("load sim:{} --rw randread --p99 4ms --budget 10m", server.path().display()), 0);
    let record: rdsk_model::Record = serde_json::from_value(record).unwrap();
    let promised = rdsk_analysis::promise::Promised::of(&record).unwrap();
    let best = promised.best_per_s().unwrap();
    assert!(
        (best / expected - 1.0).abs() < 0.05,
        "{best}/s, {expected}/s by the formula: {:?}",
        promised.steps
    );
    assert!((promised.closed_per_s.unwrap() / 1000.0 - 1.0).abs() < 0.01);
}

#[test]
fn a_need_is_met_or_not_and_the_exit_code_says_so() {
    let slow = document("check etcd sim:freebsd-bigfoot --budget 60s", 1);
    assert_eq!(slow["need"]["name"], "etcd");
    let fast = document("check etcd sim:ssd-slc --budget 60s", 0);
    assert!(figure(&fast["cells"][0]["result"]["jobs"][0], "/flushes/ops") > 1000.0);
    // A rule about a day can only fail in a minute, and a rate that has to outlast a burst needs as much written.
    let short = document("check aerospike sim:ssd-slc --budget 5s", 1);
    assert_eq!(short["need"]["lasts_ns"], 86_400_000_000_000_u64);
    document("check dashcam sim:ssd-slc --budget 5s", 5);
    let page = rdsk(["check", "dashcam", "sim:ssd-slc", "--budget", "5s", "--no-history", "-q"]);
    let text = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("UNSURE dashcam") && text.contains("it could only have failed"), "{}", page.stdout);
}

#[test]
fn the_same_need_from_a_file_has_the_same_answer() {
    let shown = rdsk(["check", "show", "satellite"]);
    assert_eq!(shown.status_code, Some(0), "{}", shown.stderr);
    let file = file_of(&shown.stdout);
    let line = |need: &str| format!("check {need} sim:ssd-slc --budget 5s");
    let ours = document(&line("satellite"), 1);
    let theirs = document(&line(file.path().to_str().unwrap()), 1);
    assert_eq!(ours["cells"][0]["result"]["jobs"], theirs["cells"][0]["result"]["jobs"]);
    assert_eq!(ours["need"]["thresholds"], theirs["need"]["thresholds"]);
    let list = rdsk(["check", "list"]);
    assert_eq!(list.stdout.lines().count(), 35, "{}", list.stdout);
}

#[test]
fn memory_is_refused_and_what_means_nothing_is_a_usage_error() {
    if std::path::Path::new("/dev/shm").is_dir() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let run = rdsk([
            "check",
            "etcd",
            directory.path().to_str().unwrap(),
            "--budget",
            "2s",
            "--no-history",
            "-q",
        ]);
        assert_eq!(run.status_code, Some(3), "{}{}", run.stdout, run.stderr);
    }
    for (line, words) in [
        ("check windows-95", "there is no need \"windows-95\""),
        ("check etcd --commits 5 sim:ssd-slc", "--commits is for postgres"),
        ("load sim:ssd-slc --rw sideways", "--rw: \"sideways\" is none of"),
        ("load sim:ssd-slc --mix 70", "--mix: needs reads and writes"),
        ("load sim:ssd-slc --rate 5k --p99 1ms", "--rate conflicts with --p99"),
        ("load ./nowhere.toml", "cannot read ./nowhere.toml"),
    ] {
        let run = rdsk(line.split(' '));
        assert_eq!(run.status_code, Some(2), "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
    }
}
