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
        "load", "sim:ssd-slc", "--rw", "randrw", "--mix", "70", "--budget", "2s", "--no-history", "-q",
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

/// The largest λ below a limit of which `holds` is true; it is true of small ones.
fn largest(limit: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, limit);
    for _ in 0..60 {
        let lambda = f64::midpoint(low, high);
        if holds(lambda) { low = lambda } else { high = lambda }
    }
    low
}

/// P(T > t) of the time in M/M/c with a service time of 1 (Erlang C).
fn lasts_beyond(t: f64, lambda: f64, servers: u32) -> f64 {
    let c = f64::from(servers);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..servers {
        term *= lambda / f64::from(k);
        sum += term;
    }
    let last = term * lambda / c * c / (c - lambda);
    let waits = last / (sum + last);
    let left = c - 1.0 - lambda;
    let factor = if left.abs() < 1e-9 { t } else { (1.0 - (-left * t).exp()) / left };
    (-t).exp() * (1.0 + waits * factor)
}

/// Sizes from 512 B on, each 2% rarer than the one before: where a byte costs as much as every other, service times of 1 ms on average
/// that are exponential in steps of 20 µs.
fn exponential_sizes() -> String {
    let share = |k: i32| format!("{}/{:.6}", 512 * k, 0.98_f64.powi(k - 1));
    (1..=500).map(share).collect::<Vec<_>>().join(":")
}

/// Servers whose requests cost 1 ms each, or by their bytes.
fn servers(count: u32, command_ns: u64, bytes_per_s: f64) -> NamedTempFile {
    file_of(&format!(
        "extends = \"ssd-slc\"\n[host.cost]\ndirect_call_ns = 0\n[[luns]]\n[luns.device.ram]\ncapacity_bytes = 1073741824\n\
         read_command_ns = {command_ns}\nwrite_command_ns = 0\nread_bytes_per_s = {bytes_per_s:e}\nwrite_bytes_per_s = 1e15\n\
         servers = {count}\n"
    ))
}

/// The highest rates of which 99% take no longer: M/D/1 within 4 ms, M/M/1 within 20 ms and M/M/4 within 10 ms, of 1 ms of service each.
#[test]
fn the_highest_rate_with_a_promise_is_that_of_the_formula() {
    let sizes = exponential_sizes();
    let by_bytes = 25_600.0 * 1000.0;
    for (name, server, bs, promise_ms, expected, most) in [
        (
            "M/D/1",
            servers(1, 1_000_000, 1e15),
            "4k",
            4.0,
            largest(1.0, |lambda| waits_within(3.0, lambda) >= 0.99),
            1.0,
        ),
        ("M/M/1", servers(1, 0, by_bytes), &sizes, 20.0, 1.0 - 100_f64.ln() / 20.0, 1.0),
        (
            "M/M/4",
            servers(4, 0, by_bytes),
            &sizes,
            10.0,
            largest(4.0, |lambda| lasts_beyond(10.0, lambda, 4) <= 0.01),
            4.0,
        ),
    ] {
        let line = format!(
            "load sim:{} --rw randread --bs {bs} --p99 {promise_ms}ms --budget 20m",
            server.path().display()
        );
        let record: rdsk_model::Record = serde_json::from_value(document(&line, 0)).unwrap();
        let promised = rdsk_analysis::promise::Promised::of(&record).unwrap();
        let best = promised.best_per_s().unwrap() / 1000.0;
        assert!(
            (best / expected - 1.0).abs() < 0.05,
            "{name}: {best}/ms, {expected}/ms by the formula: {:?}",
            promised.steps
        );
        assert!(
            (promised.closed_per_s.unwrap() / 1000.0 / most - 1.0).abs() < 0.02,
            "{name}: {:?}",
            promised.closed_per_s
        );
    }
}

/// A disk of which one flush in 25 or so is late, by as much as its pace lets vary: the p99 is the fourth part of these.
fn late_by(late_ns: u64) -> NamedTempFile {
    file_of(&format!(
        "extends = \"ssd-slc\"\n[[luns]]\n[luns.device.ram]\ncapacity_bytes = 1073741824\nread_command_ns = 100000\n\
         write_command_ns = 100000\nread_bytes_per_s = 1e9\nwrite_bytes_per_s = 1e9\nservers = 4\n\
         [luns.faults.late]\nshare = 0.02\nby_ns = {late_ns}\n\
         [luns.faults.pace.noise.autoregressive]\nsigma = 0.2\nrho = 0.0\nstep_ns = 1000000\n"
    ))
}

#[test]
fn etcd_is_answered_right_on_both_sides_of_the_mark_and_never_both_ways_at_it() {
    for (p99_ms, late_ns, code) in [(9.0, 8_850_000, 0), (10.0, 9_920_000, 5), (11.0, 10_900_000, 1)] {
        let disk = late_by(late_ns);
        let mut p99s = Vec::new();
        for seed in 1..=20 {
            let line = format!("check etcd sim:{} --budget 30s --seed {seed}", disk.path().display());
            let record = document(&line, code);
            p99s.push(figure(&record["cells"][0]["result"]["jobs"][0]["flushes"], "/latency_ns/p99") / 1e6);
        }
        let mean = p99s.iter().sum::<f64>() / 20.0;
        assert!((mean / p99_ms - 1.0).abs() < 0.01, "{p99_ms} ms: {p99s:?}");
    }
}

/// Each repeat begins with the delays, so that one of most of a repeat leaves nothing to measure.
#[test]
fn a_job_that_begins_late_in_each_repeat_is_refused_with_both_times() {
    let jobs = |head: &str| {
        file_of(&format!(
            "{head}[[job]]\nname = \"a\"\nrw = \"randread\"\n[[job]]\nname = \"b\"\nrw = \"randread\"\ndelay = \"1s\"\n"
        ))
    };
    let repeated = jobs("");
    let late = document(&format!("load {} sim:ssd-slc --budget 6s", repeated.path().display()), 3);
    let why = late["cells"][0]["result"]["why"].as_str().unwrap();
    let expected = "job b begins 1.00 s after the others in each repeat, and a repeat lasts about 1.00 s";
    assert!(why.starts_with(expected), "{why}");
    let longer = document(&format!("load {} sim:ssd-slc --budget 30s", repeated.path().display()), 0);
    let once = jobs("repeat = false\n");
    let once = document(&format!("load {} sim:ssd-slc --budget 6s", once.path().display()), 0);
    for record in [longer, once] {
        assert!(figure(&record["cells"][0]["result"]["jobs"][1], "/reads/ops") > 0.0, "{record}");
    }
}

/// No repeat waits for a request that arrives long after its end.
#[test]
fn a_rate_of_one_in_ten_seconds_keeps_the_budget() {
    // None has arrived by then, which is no success.
    let record = document("load sim:ssd-slc --rate 0.1 --budget 3s", 3);
    assert!(figure(&record, "/elapsed_ns") <= 3.1e9, "{}", record["elapsed_ns"]);
    let rare = document("load sim:ssd-slc --rate 0.1 --arrivals constant --budget 10m", 0);
    let job = &rare["cells"][0]["result"]["jobs"][0];
    assert_eq!(figure(job, "/rate/due"), figure(job, "/reads/ops"));
    assert!((figure(job, "/reads/ops") - 60.0).abs() < 8.0, "{job}");
    // What arrives at a rate fills no queue, and a job that flushes none either.
    let codes = |record: &Value| {
        let findings = record["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["code"].to_string()).collect::<Vec<_>>().join(" ")
    };
    let open = document("load sim:ssd-slc --rate 500 --budget 3s", 0);
    assert!(!codes(&open).contains("queue-depth"), "{}", codes(&open));
}

/// Nothing arrives in the time of the test, which is said in words and is no success.
#[test]
fn a_load_of_which_no_request_completed_is_no_success() {
    let record = document("load sim:ssd-slc --rate 0.0001 --budget 3s", 3);
    assert_eq!(record["cells"][0]["result"]["jobs"][0]["reads"], Value::Null);
    let words = ["load", "sim:ssd-slc", "--rate", "0.0001", "--budget", "3s"];
    let page = rdsk(words.into_iter().chain(["--no-history", "-q"]));
    let text = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no request completed in"), "{}", page.stdout);
    assert!(text.contains("at this rate one arrives every 2 h 46 min 40 s"), "{}", page.stdout);
    assert_eq!(page.status_code, Some(3));
}

/// Holes in a test file of rdsk, which are in no bandwidth; a file of the user is left as it is.
#[test]
fn trims_make_holes_only_in_files_of_our_own() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    for (kind, iodepth) in [("randtrim", 1), ("trimwrite", 4)] {
        let line = format!("load {place} --rw {kind} --path buffered --iodepth {iodepth} --budget 2s");
        let record = document(&line, 0);
        let result = &record["cells"][0]["result"];
        let job = &result["jobs"][0];
        assert!(figure(job, "/trims/ops") > 0.0, "{result}");
        assert_eq!(figure(job, "/trims/bytes"), figure(job, "/trims/ops") * 4096.0);
        if kind == "randtrim" {
            assert_eq!((figure(result, "/ops"), figure(result, "/bytes")), (0.0, 0.0));
            let text = record["cells"][0]["verdict"]["text"].as_str().unwrap();
            assert!(text.starts_with("trims move no data"), "{text}");
        } else {
            assert_eq!(figure(job, "/writes/ops"), figure(result, "/ops"));
            assert!(figure(job, "/trims/ops") - figure(job, "/writes/ops") < 5.0, "{job}");
        }
    }
    let file = directory.path().join("own");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    let line = format!("load {} --overwrite --rw trim --path buffered --budget 1s", file.display());
    let record = document(&line, 3);
    let why = record["cells"][0]["result"]["why"].as_str().unwrap();
    assert!(why.contains("holes are made only in test files of rdsk"), "{why}");
    assert!(std::fs::read(&file).unwrap().iter().all(|&byte| byte == 7));
}

/// What a job did, by the words of its load.
fn job_of(words: &str, budget: &str) -> Value {
    let file = file_of(words);
    let line = format!("load {} sim:ssd-slc --budget {budget}", file.path().display());
    document(&line, 0)["cells"][0]["result"]["jobs"][0].clone()
}

#[test]
fn a_rate_counts_over_the_time_in_which_it_was_offered_and_a_job_that_is_done_owes_nothing() {
    // Some 6 arrivals of which the last lies long before the end: no more per second than were offered.
    let rare = document("load sim:ssd-slc --rate 0.7 --arrivals constant --budget 12s", 0);
    let job = &rare["cells"][0]["result"]["jobs"][0];
    let per_s = figure(job, "/reads/ops") / figure(job, "/elapsed_ns") * 1e9;
    assert!((0.5..=0.75).contains(&per_s), "{per_s}: {job}");
    // What a CSV and the history have is the rate of the test, which is the same: found by a user, 1.5/s for 0.5/s.
    let result = &rare["cells"][0]["result"];
    assert_eq!((figure(result, "/elapsed_ns"), figure(result, "/ops_per_s/mean")), (12e9, per_s), "{result}");
    // Four streams that have a part of the rate each, and a real file on which nothing may arrive in a whole repeat.
    let four = document("load sim:ssd-slc --rate 4 --streams 4 --budget 12s", 0);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
    let real = document(&format!("load {} --rate 2 --budget 3s", file.path().display()), 0);
    for record in [four, real] {
        let result = &record["cells"][0]["result"];
        let (test_ns, job_ns) = (figure(result, "/elapsed_ns"), figure(&result["jobs"][0], "/elapsed_ns"));
        assert!((test_ns / job_ns - 1.0).abs() < 0.01, "{test_ns} and {job_ns}");
        let per_s = figure(&result["jobs"][0], "/reads/ops") / job_ns * 1e9;
        assert!((figure(result, "/ops_per_s/mean") / per_s - 1.0).abs() < 0.01, "{per_s}: {result}");
    }
    let done =
        job_of("[[job]]\nname = \"a\"\nrate = \"100k\"\nbytes = \"1M\"\n[[job]]\nname = \"b\"\n", "3s");
    assert_eq!(figure(&done, "/rate/unsent"), 0.0, "{done}");
    let visits = figure(&done, "/reads/ops") / 256.0;
    assert!(visits >= 1.0 && visits.fract() == 0.0, "{done}");
    assert!(figure(&done, "/elapsed_ns") < visits * 0.1e9, "{done}");
    // A mix of which nothing is written is no load that writes.
    let reads = document("load sim:ssd-slc --rw randrw --mix 100 --budget 2s", 0);
    assert_eq!(reads["cells"][0]["workload"]["op"], "read");
    assert!(reads["cells"][0]["workload"]["jobs"][0]["writes"].is_null());
}

/// What looks good enough and is not: one line each, with what the page says of it.
#[test]
fn a_figure_that_says_too_little_is_unsure() {
    let job = "title = \"t\"\nsource = \"s\"\nstrength = \"own\"\n[[job]]\nname = \"j\"\n";
    let threshold = |rest: &str| format!("[[threshold]]\njob = \"j\"\nof = \"reads\"\n{rest}\n");
    let share = threshold("statistic = \"share-over\"\nover = \"1s\"\nat-most = \"0.1%\"");
    for (need, words) in [
        (format!("{job}rate = \"5\"\n{share}"), "requests are too few to show it: it takes 3000"),
        (format!("{job}rate = \"1\"\n{}", threshold("statistic = \"max\"\nat-most = \"1s\"")), "it takes 20"),
        (
            format!("{job}rate = \"20\"\n{}", threshold("statistic = \"p99\"\nat-most = \"1s\"")),
            "; too few requests for it (",
        ),
        // Memory takes a buffered write, whatever the disk does with it, and however fast the reads beside it are.
        (
            format!(
                "{job}rw = \"write\"\npath = \"buffered\"\nfdatasync = 100\n{}",
                threshold("statistic = \"p99\"\nat-most = \"1ms\"").replace("reads", "writes")
            ),
            "this is the time of a copy, not of the disk",
        ),
        (
            format!(
                "{job}iodepth = 128\n[[job]]\nname = \"w\"\nrw = \"randwrite\"\npath = \"buffered\"\nsize = \"4M\"\n\
                 [[threshold]]\njob = \"w\"\nof = \"writes\"\nstatistic = \"ops/s\"\nat-least = \"1000\"\n"
            ),
            "memory took the data",
        ),
    ] {
        let file = file_of(&need);
        let path = file.path().to_str().unwrap();
        let run = rdsk(["check", path, "sim:ssd-slc", "--budget", "12s", "--no-history", "-q"]);
        let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(run.status_code == Some(5) && text.contains(words), "{words}: {}", run.stdout);
        assert!(!text.contains("Note:"), "a note without words: {}", run.stdout);
    }
    // Without a number of commits there is no mark, and Ceph and SAP have none that is enough.
    for line in
        ["check postgres sim:tms-ramsan", "check ceph-osd-ssd sim:tms-ramsan", "check hana sim:ssd-slc"]
    {
        document(&format!("{line} --budget 4s"), 5);
    }
    document("check postgres --commits 100 sim:tms-ramsan --budget 4s", 0);
    // The fast part of the flash is full after 8 GiB, which is more than the class asks to be written.
    document("check sd-v90 sim:ssd-slc --budget 5s", 5);
    // A percentile of so few requests is none.
    let few = rdsk("load sim:linux-disk --p99 100ms --budget 3s --no-history -q".split(' '));
    assert!(few.stdout.contains("too few requests for a p99"), "{}", few.stdout);
    let cached = rdsk(
        "load sim:ssd-slc --rw randwrite --path buffered --p99 5ms --budget 5s --no-history -q".split(' '),
    );
    assert!(cached.stdout.contains("page-cache: "), "{}", cached.stdout);
}

/// A rate of requests is that of the requests, whatever their sizes, and that of a mix is of neither direction.
#[test]
fn the_rates_of_loads_are_those_of_their_requests() {
    let history = NamedTempFile::new().unwrap().into_temp_path();
    let path = history.to_str().unwrap();
    for line in ["--bs 4k/70:64k/30", "--rw randrw --mix 95 --bs 4k,256k"] {
        let record = document(&format!("load sim:tms-ramsan {line} --budget 3s"), 0);
        let result = &record["cells"][0]["result"];
        let expected = figure(result, "/ops") / figure(result, "/elapsed_ns") * 1e9;
        let rate = figure(result, "/ops_per_s/mean");
        assert!((rate / expected - 1.0).abs() < 0.01, "{line}: {rate} of {expected}");
    }
    // A job that ends sooner is in the rate of the time in which both ran, and its large requests are not in all of the others' time.
    let file = file_of(
        "[[job]]\nname = \"a\"\nrw = \"randread\"\nrate = \"1000\"\n[[job]]\nname = \"b\"\nrw = \"write\"\nbs = \"1M\"\n\
         rate = \"100\"\nruntime = \"1s\"\n",
    );
    let record = document(&format!("load {} sim:tms-ramsan --budget 6s", file.path().display()), 0);
    let result = &record["cells"][0]["result"];
    assert!(result["ops_per_s"].is_null() && result["bytes_per_s"].is_object(), "{result}");
    let line = "load sim:wd2500 --rw randrw --mix 95 --budget 5s -q --history";
    assert_eq!(rdsk(line.split(' ').chain([path])).status_code, Some(0));
    let list = cli::json(&rdsk(["list", "--json", "--history", path]));
    let run = &list["runs"][0];
    assert!(run["read_bytes_per_s"].is_null() && run["write_bytes_per_s"].is_null(), "{run}");
    // What completes after the time of a job takes time of its own.
    let rate = |lasts: &str| {
        let file = file_of(&format!(
            "[[job]]\nname = \"j\"\nrw = \"randread\"\niodepth = 32\nruntime = \"{lasts}\"\n"
        ));
        let record = document(&format!("load {} sim:wd2500 --budget 60s", file.path().display()), 0);
        let job = &record["cells"][0]["result"]["jobs"][0];
        figure(job, "/reads/ops") / figure(job, "/elapsed_ns") * 1e9
    };
    let (short, long) = (rate("100ms"), rate("10s"));
    assert!(short < 1.5 * long, "{short}/s in 100 ms, {long}/s in 10 s");
}

/// Models of hosts take time, which no processor is short of.
#[test]
fn the_processor_never_limits_a_simulated_system() {
    let record = document("load sim:ssd-slc --iodepth 128 --budget 3s", 0);
    assert_eq!(record["cells"][0]["verdict"]["code"], "device", "{}", record["cells"][0]["verdict"]);
}

#[test]
fn a_need_is_met_or_not_and_the_exit_code_says_so() {
    let slow = document("check etcd sim:freebsd-bigfoot --budget 60s", 1);
    assert_eq!(slow["need"]["name"], "etcd");
    let fast = document("check etcd sim:ssd-slc --budget 60s", 0);
    assert!(figure(&fast["cells"][0]["result"]["jobs"][0], "/flushes/ops") > 1000.0);
    // Its ramp of 10 s leaves time to measure in the default budget.
    let warm = document("check etcd-busy sim:ssd-slc", 0);
    assert!(figure(&warm["cells"][0]["result"]["jobs"][0], "/flushes/ops") > 1000.0);
    // A rule about a day can only fail in a minute, and a rate that has to outlast a burst needs as much written.
    let short = document("check aerospike sim:ssd-slc --budget 5s", 5);
    assert_eq!(short["need"]["lasts_ns"], 86_400_000_000_000_u64);
    document("check dashcam sim:ssd-slc --budget 5s", 5);
    // 3 GiB fit into the fast part of the flash, which has 8, and say nothing of what lasts: the worst tenth of 14 GiB does.
    document("check sd-v30 sim:ssd-slc --budget 3s", 5);
    let lasting = document("check sd-v30 sim:ssd-slc --budget 90s", 0);
    let writes = &lasting["cells"][0]["result"]["jobs"][0]["writes"];
    let mean =
        figure(writes, "/bytes") / figure(&lasting["cells"][0]["result"]["jobs"][0], "/elapsed_ns") * 1e9;
    let lasting: rdsk_model::Record = serde_json::from_value(lasting).unwrap();
    let worst = rdsk_analysis::need::judge(&lasting)[0].figure.unwrap().value;
    assert!(worst < 0.9 * mean && worst > 0.7 * mean, "{worst} B/s of {mean}");
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
    assert_eq!(list.stdout.lines().count(), 42, "{}", list.stdout);
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
    // A load that cannot run here at all is no success.
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let line = ["load", "--rw", "randread", "--bs", "2M", "--size", "1M", place, "--no-history", "-q"];
    let run = rdsk(line);
    assert_eq!(run.status_code, Some(3), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("job load has no room for one block of 2 MiB"), "{}", run.stdout);
    for (line, words) in [
        ("check windows-95", "there is no need \"windows-95\""),
        ("check etcd --commits 5 sim:ssd-slc", "--commits is for postgres"),
        ("load sim:ssd-slc --rw sideways", "--rw: \"sideways\" is none of"),
        ("load sim:ssd-slc --mix 70", "--mix: only fits reads and writes"),
        ("load sim:ssd-slc --rate 5k --p99 1ms", "--rate conflicts with --p99"),
        ("load ./nowhere.toml", "cannot read ./nowhere.toml"),
        ("load sim:ssd-slc --rate 1000000000000", "a rate that is not between"),
        ("load sim:ssd-slc --distribution normal:1000000000000", "a deviation that is not between"),
        ("load sim:ssd-slc --size 1M", "--size is the size of a test file, and no target is a directory"),
        ("run sim:ssd-slc --size 1M --dry-run", "--size is the size of a test file"),
        ("load sim:ssd-slc --mix 101", "--mix: must be a percentage"),
        ("check etcd sim:ssd-slc sim:linux-disk", "on one target"),
        ("load sim:ssd-slc sim:linux-disk --p99 1ms", "on one target"),
    ] {
        let run = rdsk(line.split(' '));
        assert_eq!(run.status_code, Some(2), "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
    }
}
