//! `rdsk compare` through the real program: simulated runs with and without a change, conditions and exit codes, two command lines
//! in turn, the course of a cell, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, SOON, command, error_and_hint, rdsk, scratch};
use rdsk_testkit::cli::{self, Run, Signal};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A Record of two cells of a simulated system.
fn record(directory: &Path, name: &str, system: &str, seed: &str) -> String {
    let path = directory.join(name).to_str().unwrap().to_owned();
    let run = rdsk([
        "stream", system, "--rw", "read", "--budget", "5s", "--quiet", "--seed", seed, "--json", &path,
    ]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    path
}

fn compare(words: &[&str]) -> Run {
    rdsk(std::iter::once("compare").chain(words.iter().copied()))
}

fn document(run: &Run) -> Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", run.stdout, run.stderr))
}

fn is_narrow(page: &str) {
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn a_run_is_like_itself_and_unlike_that_of_another_system() {
    let scratch = scratch();
    let disk = record(scratch.path(), "a.json", "sim:wd2500", "1");
    let again = record(scratch.path(), "b.json", "sim:wd2500", "2");
    let flash = record(scratch.path(), "c.json", "sim:tms-ramsan", "1");
    let same = compare(&[&disk, &again, "--fail-if", "differs>5%"]);
    assert_eq!(same.status_code, Some(0), "{}\n{}", same.stdout, same.stderr);
    assert!(same.stdout.starts_with("No clear difference in 2 tests"), "{}", same.stdout);
    is_narrow(&same.stdout);
    let slower = compare(&[&disk, &flash, "--fail-if", "slower>5%", "--fail-if", "faster>5%"]);
    assert_eq!(slower.status_code, Some(1), "{}", slower.stderr);
    let full = compare(&[&disk, &flash, "--details"]);
    for (run, part) in [
        (&slower, " is faster: 2 of 2 tests, none slower; "),
        (&slower, "slower>5%: met in 2 of 2 tests"),
        (&slower, "faster>5%: met in none of 2 tests"),
        (&full, "WHAT DIFFERS"),
        (&full, "name: A sim:wd2500 | B sim:tms-ramsan"),
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    is_narrow(&slower.stdout);
    let comparison = document(&compare(&[&disk, &flash, "--json", "-"]));
    assert_eq!(comparison["schema"], "rdsk.compare/1");
    let cell = &comparison["comparisons"][0]["cells"][0]["changes"][0];
    let [base, other, ratio] = ["base", "other", "ratio"].map(|key| cell[key].as_f64().unwrap());
    assert!((other / base - ratio).abs() < 1e-9 && cell["answer"] == "slower", "{cell}");
}

#[test]
fn data_that_leave_a_condition_open_fail_only_if_that_is_asked() {
    let scratch = scratch();
    let [one, two] = ["1", "2"].map(|seed| record(scratch.path(), seed, "sim:stalls", seed));
    let line = [one.as_str(), &two, "--fail-if", "slower>1%"];
    let lenient = compare(&line);
    assert!(lenient.stdout.contains("leave open a change of 1.0% or"), "{}", lenient.stdout);
    assert_eq!(lenient.status_code, Some(0), "{}", lenient.stderr);
    assert_eq!(compare(&[&line[..], &["--fail-if-unsure"]].concat()).status_code, Some(1));
}

/// 6 % slower, and as far as the data go by 2 % or more: that is slower, and not surely by 5 %.
#[test]
fn a_change_that_may_be_smaller_than_the_bound_leaves_the_condition_open() {
    let scratch = scratch();
    let [base, other] = ["1", "2"].map(|seed| record(scratch.path(), seed, "sim:tms-ramsan", seed));
    let mut slower: Value = serde_json::from_str(&fs::read_to_string(&other).unwrap()).unwrap();
    for cell in slower["cells"].as_array_mut().unwrap() {
        let rate = &mut cell["result"]["bytes_per_s"];
        let Some(mean) = rate["mean"].as_f64().map(|mean| mean * 0.94) else { continue };
        *rate = serde_json::json!({ "mean": mean, "low": mean * 0.985, "high": mean * 1.015 });
    }
    fs::write(&other, slower.to_string()).unwrap();
    let with = |words: &[&str]| compare(&[&[base.as_str(), &other], words].concat());
    let open = with(&["--fail-if", "slower>5%"]);
    assert_eq!(open.status_code, Some(0), "{}{}", open.stdout, open.stderr);
    for part in [
        " is faster: 2 of 2 tests, none slower; 1.06x on average ",
        "slower>5%: met in none of 2 tests",
        "leave open a change of 5.0% or more in 2 of 2",
    ] {
        let text = open.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part), "{part}: {}", open.stdout);
    }
    assert_eq!(with(&["--fail-if", "slower>5%", "--fail-if-unsure"]).status_code, Some(1));
    let smaller = with(&["--fail-if", "slower>1%"]);
    assert_eq!(smaller.status_code, Some(1), "{}", smaller.stdout);
    assert!(smaller.stdout.contains("slower>1%: met in 2 of 2 tests"), "{}", smaller.stdout);
}

#[test]
fn two_command_lines_run_in_turn_and_every_record_is_kept() {
    let scratch = scratch();
    let log = scratch.path().join("log");
    let directory = scratch.path().join("runs");
    fs::create_dir(&directory).unwrap();
    let line = "stream sim:tms-ramsan --rw read --budget 3s";
    let [a, b] = ["a", "b"].map(|side| format!("echo {side} >>{}", log.display()));
    let run = compare(&[
        "--repeat",
        "3",
        "--prepare-a",
        &a,
        "--prepare-b",
        &b,
        "--json",
        directory.to_str().unwrap(),
        "--",
        line,
        &format!("{line} --bs 32k"),
    ]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let order: String = fs::read_to_string(&log).unwrap().split_whitespace().collect();
    assert_eq!(order, "abbaab", "every second pair begins with the other one");
    common::holds_only(
        &directory,
        &["a-1.json", "a-2.json", "a-3.json", "b-1.json", "b-2.json", "b-3.json", "compare.json"],
    );
    let text = fs::read_to_string(directory.join("compare.json")).unwrap();
    let comparison: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(comparison["comparisons"][0]["basis"]["pairs"], 3);
    assert!(
        run.stdout.contains("3 pairs") && run.stderr.contains("pair 3 of 3, A: rdsk stream"),
        "{}",
        run.stderr
    );
    let seeds: Vec<Value> = ["a-2", "b-2"]
        .map(|name| {
            let text = fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["command"].clone()
        })
        .into();
    assert!(seeds.iter().all(|words| words.to_string().contains("\"--seed\",\"2\"")), "{seeds:?}");
}

#[test]
fn a_preparation_that_fails_ends_it_with_its_output() {
    let line = "run sim:wd2500 --budget 3s";
    let run =
        compare(&["--repeat", "2", "--prepare-b", "echo some words; exit 3", "--quiet", "--", line, line]);
    assert_eq!(run.status_code, Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains("  some words\n") && run.stderr.contains("ended with exit code 3"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.is_empty(), "{}", run.stdout);
}

/// What a preparation leaves behind holds its output, and may write there later.
#[test]
fn a_preparation_may_leave_a_program_behind() {
    let line = "run sim:wd2500 --budget 3s";
    // It ends with the process group of the run, which is killed when that has ended.
    let prepare = "sleep 3600 & echo some words";
    let run = compare(&["--repeat", "1", "--prepare-a", prepare, "--quiet", "--", line, line]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(!run.stderr.contains("some words"), "it did not fail: {}", run.stderr);
}

#[test]
fn a_signal_ends_it_and_what_is_complete_is_compared() {
    let scratch = scratch();
    let log = scratch.path().join("log");
    let line = "stream sim:tms-ramsan --rw read --budget 3s";
    // The last run would be prepared for an hour.
    let wait = format!("echo x >>{0}; test $(wc -l <{0}) -lt 4 || exec sleep 3600", log.display());
    let started = cli::start(command([
        "compare", "--repeat", "4", "--prepare-b", &wait, "--json", "-", "--", line, line,
    ]));
    let is_waiting = || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 4);
    assert!(rdsk_testkit::wait_until(SOON, is_waiting), "the last run was not reached");
    cli::signal(started.pid(), Signal::INT).unwrap();
    let run = started.finish(SOON);
    assert_eq!(run.status_code, Some(130), "{}", run.stderr);
    let comparison = document(&run);
    assert_eq!(comparison["comparisons"][0]["basis"]["pairs"], 3);
    assert_eq!(comparison["records"].as_array().unwrap().iter().filter(|one| one["side"] == "b").count(), 3);
}

#[test]
fn the_course_of_a_cell_over_runs_is_in_the_order_of_time() {
    let scratch = scratch();
    let path = record(scratch.path(), "one.json", "sim:tms-ramsan", "1");
    let kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let id = kept["cells"][0]["id"].as_str().unwrap().to_owned();
    let paths: Vec<String> = (0..10)
        .map(|day| {
            let mut run = kept.clone();
            run["started_at"] = format!("2026-03-{:02}T10:00:00Z", 10 - day).into();
            run["id"] = format!("01JD3K7QZ400000000000000{day:02}").into();
            let rate = run["cells"][0]["result"]["bytes_per_s"]["mean"].as_f64().unwrap();
            // The first five files are the latest runs.
            let factor = if day < 5 { 0.88 } else { 1.0 } + 0.001 * f64::from(day % 3);
            run["cells"][0]["result"]["bytes_per_s"]["mean"] = (rate * factor).into();
            let path = scratch.path().join(format!("{day}.json"));
            fs::write(&path, run.to_string()).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let mut words = vec!["--trend", &id];
    words.extend(paths.iter().map(String::as_str));
    let run = compare(&words);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("since 2026-03-06 12.0% slower than before"), "{}", run.stdout);
    is_narrow(&run.stdout);
    let unknown = compare(&["--trend", "nothing/here", &path, &paths[0], &paths[1]]);
    assert_eq!(unknown.status_code, Some(2));
    assert!(error_and_hint(&unknown).1.contains(&id));
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let scratch = scratch();
    let kept = record(scratch.path(), "one.json", "sim:tms-ramsan", "1");
    let two = record(scratch.path(), "two.json", "sim:tms-ramsan", "2");
    let copy = scratch.path().join("copy.json").to_str().unwrap().to_owned();
    fs::copy(&kept, &copy).unwrap();
    let (said, hint) = error_and_hint(&compare(&[&kept, &two, &copy]));
    assert!(said.starts_with(&format!("{kept} and {copy} are the same run, 01")), "{said}");
    assert_eq!(hint, "name each run once; rdsk list shows them");
    let (said, _) = error_and_hint(&compare(&["--trend", "any", &kept, &two, &copy]));
    assert!(said.starts_with(&format!("{kept} and {copy} are the same run, 01")), "{said}");
}

#[test]
fn a_course_over_two_targets_says_so() {
    let scratch = scratch();
    let paths: Vec<String> = (0..4)
        .map(|number| {
            let system = ["sim:tms-ramsan", "sim:tms-ramsan-2"][number / 2];
            record(scratch.path(), &format!("{number}.json"), system, &number.to_string())
        })
        .collect();
    let kept: Value = serde_json::from_str(&fs::read_to_string(&paths[0]).unwrap()).unwrap();
    let mut words = vec!["--trend", kept["cells"][0]["id"].as_str().unwrap()];
    words.extend(paths.iter().map(String::as_str));
    let run = compare(&words);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("name: sim:tms-ramsan in 2 runs | sim:tms-ramsan-2 in 2 runs since 2"),
        "{}",
        run.stdout
    );
    is_narrow(&run.stdout);
    words.extend(["--json", "-"]);
    let comparison = document(&compare(&words));
    let name =
        comparison["differences"].as_array().unwrap().iter().find(|kept| kept["what"] == "name").unwrap();
    let expected = ["sim:tms-ramsan", "sim:tms-ramsan", "sim:tms-ramsan-2", "sim:tms-ramsan-2"];
    assert_eq!(name["values"], serde_json::json!(expected));
}

#[test]
fn simulated_systems_are_run_and_compared() {
    let run = cli::run(
        command(["compare", "sim:tms-ramsan", "sim:tms-ramsan-2", "--question", "scale", "--quiet"]),
        Duration::from_secs(600),
    );
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("sim:tms-ramsan-2 is faster"), "{}", run.stdout);
    assert!(run.stdout.contains(" streams "), "{}", run.stdout);
}

#[test]
fn wrong_words_are_one_line_and_a_hint() {
    let scratch = scratch();
    let text = scratch.path().join("text");
    fs::write(&text, "no Record").unwrap();
    let text = text.to_str().unwrap();
    for words in [&[text, text][..], &["/nonexistent", text], &[text], &[text, text, "--fail-if", "slow"]] {
        let run = compare(words);
        assert_eq!(run.status_code, Some(2), "{words:?}: {}", run.stderr);
        error_and_hint(&run);
    }
}

/// The third run of B is not prepared: the two pairs before it are shown, and kept.
#[test]
fn a_run_that_fails_costs_none_of_the_pairs_before_it() {
    let scratch = scratch();
    let log = scratch.path().join("log");
    let directory = scratch.path().join("runs");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("b-3.json"), "{\"schema\":\"rdsk.record/1\"}").unwrap();
    let line = "stream sim:tms-ramsan --rw read --budget 3s";
    let third_fails = format!("echo x >>{0}; test $(wc -l <{0}) -lt 3 || exit 7", log.display());
    let place = directory.to_str().unwrap();
    let words = ["--repeat", "4", "--prepare-b", &third_fails, "--json", place, "--", line, line];
    let run = compare(&words);
    assert_eq!(run.status_code, Some(2), "{}", run.stderr);
    assert!(
        run.stdout.contains("RUNS: A is the baseline") && run.stderr.contains("ended with exit code 7"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("from an earlier comparison: b-3.json\n"),
        "that is no run of this comparison: {}",
        run.stderr
    );
    let files = ["a-1.json", "a-2.json", "a-3.json", "b-1.json", "b-2.json", "b-3.json", "compare.json"];
    common::holds_only(&directory, &files);
    let text = fs::read_to_string(directory.join("compare.json")).unwrap();
    let comparison: Value = serde_json::from_str(&text).unwrap();
    let basis = &comparison["comparisons"][0]["basis"];
    assert_eq!((&basis["pairs"], &basis["alone"]), (&Value::from(2), &Value::from(1)));
}

/// Nothing runs where the document of any run would replace something else, or runs of a longer comparison would stay beside it.
#[test]
fn the_places_of_all_runs_are_checked_before_the_first() {
    let scratch = scratch();
    let line = "stream sim:tms-ramsan --rw read --budget 3s";
    for (name, content, said) in [
        ("b-2.json", "mine", "b-2.json: it is an existing file"),
        ("a-3.json", "{\"schema\":\"rdsk.record/1\"}", "it holds a-3.json of a comparison of more pairs"),
    ] {
        let directory = scratch.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(name), content).unwrap();
        let run = compare(&["--repeat", "2", "--json", directory.to_str().unwrap(), "--", line, line]);
        assert_eq!(run.status_code, Some(3), "{}", run.stderr);
        assert!(run.stderr.contains(said) && !run.stderr.contains("pair 1"), "{}", run.stderr);
        common::holds_only(&directory, &[name]);
        assert_eq!(fs::read_to_string(directory.join(name)).unwrap(), content);
    }
}

/// A disk that became too slow for a p99 does not pass a condition on it, and a run that failed passes nothing.
#[test]
fn what_a_run_does_not_have_passes_no_condition_unseen() {
    let scratch = scratch();
    let [base, other] = ["1", "2"].map(|seed| record(scratch.path(), seed, "sim:tms-ramsan", seed));
    let whole: Value = serde_json::from_str(&fs::read_to_string(&other).unwrap()).unwrap();
    let mut slow = whole.clone();
    for cell in slow["cells"].as_array_mut().unwrap() {
        cell["result"]["latency_ns"]["count"] = 460.into();
        cell["result"]["latency_ns"]["p99"] = Value::Null;
    }
    fs::write(&other, slow.to_string()).unwrap();
    let with = |words: &[&str]| compare(&[&[base.as_str(), &other], words].concat());
    let lenient = with(&["--fail-if", "p99:slower>10%"]);
    assert_eq!(lenient.status_code, Some(0), "{}{}", lenient.stdout, lenient.stderr);
    let text = lenient.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("nothing was judged") && text.contains("no p99 in B: stream: read "), "{text}");
    assert!(text.contains("(460 I/Os, 1000 are needed)"), "{text}");
    is_narrow(&lenient.stdout);
    let strict = with(&["--fail-if", "p99:slower>10%", "--fail-if-unsure"]);
    assert_eq!(strict.status_code, Some(1), "{}", strict.stderr);
    let mut failed = whole;
    failed["cells"] = serde_json::json!([]);
    failed["status"] = "failed".into();
    fs::write(&other, failed.to_string()).unwrap();
    let run = with(&["--fail-if", "slower>5%"]);
    assert_eq!(run.status_code, Some(4), "{}", run.stderr);
    assert!(run.stdout.contains("not measured in B: stream: read "), "{}", run.stdout);
    assert_eq!(with(&["--fail-if", "slower>5%", "--fail-if-unsure"]).status_code, Some(1));
}

fn load(directory: &Path, name: &str, words: &[&str]) -> String {
    let path = directory.join(name).to_str().unwrap().to_owned();
    let run = rdsk(words.iter().copied().chain(["--budget", "40s", "--quiet", "--json", &path]));
    assert_eq!(run.stderr, "", "{}", run.stdout);
    path
}

/// The rates of two logs say little of their flushes, and nothing of how long one takes.
#[test]
fn flushes_of_a_load_are_compared_and_jobs_that_differ_are_not() {
    let scratch = scratch();
    let log = |name: &str, system: &str, seed: &str| {
        load(scratch.path(), name, &["check", "etcd", system, "--seed", seed])
    };
    let [base, again, other] = [
        log("a.json", "sim:linux-disk", "1"),
        log("b.json", "sim:linux-disk", "2"),
        log("c.json", "sim:linux-10k", "1"),
    ];
    let slower = ["--fail-if", "p50:slower>5%"];
    assert_eq!(compare(&[&[base.as_str(), &again], &slower[..]].concat()).status_code, Some(0));
    let run = compare(&[&[base.as_str(), &other], &slower[..]].concat());
    assert_eq!(run.status_code, Some(1), "{}{}", run.stdout, run.stderr);
    let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("p50:slower>5%: met in 1 of 2 tests: B load/1/wal/flushes 1.4"), "{text}");
    is_narrow(&run.stdout);
    let trend = ["--trend", "load/1/wal/flushes", "--figure", "p50", &base, &again, &other];
    let run = compare(&trend);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    // A load as a whole has a course, too.
    assert_eq!(compare(&["--trend", "load/1", &base, &again, &other]).status_code, Some(0));
    let [seven, six] = ["70", "60"]
        .map(|mix| load(scratch.path(), mix, &["load", "sim:tms-ramsan", "--rw", "randrw", "--mix", mix]));
    let run = compare(&[&seven, &six]);
    assert!(run.stdout.starts_with("Nothing is compared: no test of"), "{}", run.stdout);
}
