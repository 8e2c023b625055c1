//! Every exit path of a run: signals, a closed pipe, a kill, a full disk. The exit code is right, the document is there,
//! and no test file is left.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, command, error_and_hint, holds_only, record};
use crate::support::given_up::stopped_by_itself;
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::cli::{self, Running, Signal};
use rdsk_testkit::{Need, requires, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longer than any of these runs takes on a busy machine.
const LONG: Duration = Duration::from_secs(400);

/// A run may take this long to stop on the busiest machine; what it would still have to do takes far longer. How soon it
/// really ends is in timing/ends.rs.
const SOON: Duration = Duration::from_secs(60);

/// Runs of which one has to stop by itself.
const ATTEMPTS: usize = 3;

/// A run that takes far longer than any test waits.
const ENDLESS: &[&str] = &["stream", ".", "--size", "16M", "--runtime", "10m"];

fn start(directory: &Path, arguments: &[&str]) -> Running {
    let mut command = command(arguments);
    command.current_dir(directory);
    cli::start(command)
}

fn test_files(directory: &Path) -> usize {
    fs::read_dir(directory)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".rdsk-test-"))
        .count()
}

/// Waits for the test file, and then until the run is in the middle of a cell: only there it reads and writes so often.
fn wait_for_cell(running: &Running, directory: &Path) {
    assert!(wait_until(LONG, || test_files(directory) > 0), "no test file appeared");
    let calls = || cli::io_calls(running.pid()).expect("the run goes on");
    let before = calls();
    assert!(wait_until(LONG, || calls() > before + 4000), "no cell began");
}

#[test]
fn a_signal_keeps_what_was_measured() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        first_right(ATTEMPTS, || is_kept_after(signal));
    }
}

/// Whatever ends a process that does not expect it: Ctrl-\\, the USR1 that dd answers, those of batch systems and of timers.
#[test]
fn a_signal_that_nobody_expects_leaves_no_file_either() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    for signal in
        [Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::VTALARM, Signal::PROF, Signal::XCPU]
    {
        // What these tests were started with ignored, as SIGQUIT by a shell in the background, ends nothing that they start.
        if !is_in(&status, "SigIgn:", signal) {
            first_right(ATTEMPTS, || is_kept_after(signal));
        }
    }
}

/// Whether a line of `/proc/PID/status` names the signal.
fn is_in(status: &str, key: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

fn is_kept_after(signal: Signal) -> Result<(), String> {
    let scratch = common::scratch();
    let mut line = ENDLESS.to_vec();
    line.extend(["--json", "r.json"]);
    let running = start(scratch.path(), &line);
    wait_for_cell(&running, scratch.path());
    let signalled = Instant::now();
    cli::signal(running.pid(), signal).unwrap();
    let run = running.finish(LONG);
    assert_eq!(run.status_code, Some(130), "{signal:?}: {}", run.stderr);
    assert!(signalled.elapsed() < SOON, "{signal:?} took {:?}", signalled.elapsed());
    let (error, _) = error_and_hint(&run);
    holds_only(scratch.path(), &["r.json"]);
    let text = fs::read_to_string(scratch.path().join("r.json")).unwrap();
    let record = record(serde_json::from_str(&text).unwrap());
    assert_eq!(record["status"], "interrupted");
    stopped_by_itself(&record)?;
    assert!(error.contains("signal"), "{error}");
    assert!(!run.stdout.is_empty(), "the page of what was measured is missing");
    let cells = record["cells"].as_array().unwrap();
    assert!(cells.iter().any(|cell| cell["result"]["ops"].as_u64().unwrap_or(0) > 0), "{record:#}");
    assert!(cells.iter().any(|cell| cell["result"]["stop"] == "interrupted"), "{record:#}");
    Ok(())
}

#[test]
fn a_signal_while_the_file_is_made_leaves_none() {
    first_right(ATTEMPTS, || {
        let scratch = common::scratch();
        let running = start(scratch.path(), &["run", "--size", "4G", "--json", "-"]);
        let began = Instant::now();
        while test_files(scratch.path()) == 0 && !running.has_ended() && began.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(1));
        }
        cli::signal(running.pid(), Signal::INT).unwrap();
        let run = running.finish(LONG);
        assert_eq!(run.status_code, Some(130), "{}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        let record = record(cli::json(&run));
        assert_eq!(
            (&record["status"], &record["error"]["kind"]),
            (&"interrupted".into(), &"interrupted".into())
        );
        holds_only(scratch.path(), &[]);
        stopped_by_itself(&record)?;
        // On a machine that stands still the file may be made.
        ensure(error.contains("while the test file was created"), || error.clone())?;
        assert!(hint.contains("--size"), "{error} {hint}");
        Ok(())
    });
}

#[test]
fn a_hang_up_is_ignored_under_nohup() {
    if !requires(&[Need::Tool("nohup")]) {
        return;
    }
    let scratch = common::scratch();
    let mut nohup = cli::rdsk("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_rdsk")).args(ENDLESS).current_dir(scratch.path());
    let running = cli::start(nohup);
    wait_for_cell(&running, scratch.path());
    cli::signal(running.pid(), Signal::HUP).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(test_files(scratch.path()), 1, "the run has ended");
    cli::signal(running.pid(), Signal::INT).unwrap();
    let run = running.finish(LONG);
    assert_eq!(run.status_code, Some(130), "{}", run.stderr);
    assert_eq!(test_files(scratch.path()), 0);
}

/// As a background job of a script ignores SIGINT and SIGQUIT: no handler takes the place of that.
#[test]
fn what_is_ignored_from_the_start_stays_ignored() {
    let scratch = common::scratch();
    let mut shell = cli::rdsk("sh");
    let line = format!("trap '' INT TERM QUIT USR1 XCPU; exec \"$0\" {}", ENDLESS.join(" "));
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_rdsk")]).current_dir(scratch.path());
    let running = cli::start(shell);
    wait_for_cell(&running, scratch.path());
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let has = |key: &str, signal: Signal| is_in(&status, key, signal);
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT, Signal::USR1, Signal::XCPU] {
        assert!(has("SigIgn:", signal) && !has("SigCgt:", signal), "{signal:?}: {status}");
    }
    // One that is caught is the default again in what rdsk starts; one that is ignored would stay so.
    for signal in [Signal::USR2, Signal::XFSZ] {
        assert!(has("SigCgt:", signal) && !has("SigIgn:", signal), "{signal:?}: {status}");
    }
    for signal in [Signal::QUIT, Signal::INT, Signal::TERM, Signal::USR2] {
        cli::signal(running.pid(), signal).unwrap();
    }
    assert_eq!(running.finish(LONG).status_code, Some(130));
    holds_only(scratch.path(), &[]);
}

#[test]
fn the_next_run_removes_what_a_kill_left() {
    let scratch = common::scratch();
    let running = start(scratch.path(), ENDLESS);
    wait_for_cell(&running, scratch.path());
    cli::signal(running.pid(), Signal::KILL).unwrap();
    let _ = running.finish(LONG);
    assert_eq!(test_files(scratch.path()), 1, "a kill leaves the file");
    let run =
        start(scratch.path(), &["paths", "--size", "4M", "--bytes", "4M", "--budget", "5s", "--json", "-"])
            .finish(LONG);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let record = record(cli::json(&run));
    assert!(record["notes"].to_string().contains(".rdsk-test-"), "{:#}", record["notes"]);
    holds_only(scratch.path(), &[]);
}

#[test]
fn a_reader_that_leaves_does_not_end_the_run() {
    let scratch = common::scratch();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(["paths", "--size", "4M", "--bytes", "4M", "--budget", "5s", "--json", "r.json"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error") && !stderr.contains("panic"), "{stderr}");
    let text = fs::read_to_string(scratch.path().join("r.json")).unwrap();
    assert_eq!(record(serde_json::from_str(&text).unwrap())["status"], "complete");
    holds_only(scratch.path(), &["r.json"]);
}

#[test]
fn a_full_disk_behind_the_page_is_an_error_and_the_document_is_kept() {
    let scratch = common::scratch();
    let output = command(["paths", "--size", "4M", "--bytes", "4M", "--budget", "5s", "--json", "r.json"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
    holds_only(scratch.path(), &["r.json"]);
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_a_signal_up() {
    let scratch = common::scratch();
    // More than a pipe holds: the run ends and then waits for its reader.
    let mut child = command(["align", "--size", "4M", "--bytes", "4M", "--budget", "10s", "--json", "-"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 1];
    stdout.read_exact(&mut first).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "the document fits into the pipe; the test needs a longer one"
    );
    // It would wait for its reader for ever.
    cli::signal(child.id(), Signal::INT).unwrap();
    let mut status = None;
    let has_ended = wait_until(SOON, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !has_ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    assert!(has_ended, "the signal was held up");
    assert_eq!(status.code(), Some(130));
    holds_only(scratch.path(), &[]);
}

#[test]
fn without_a_terminal_there_is_no_progress_and_quiet_is_quiet() {
    let scratch = common::scratch();
    let run = start(scratch.path(), &["paths", "-q", "--size", "4M", "--bytes", "4M", "--budget", "5s"])
        .finish(LONG);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    holds_only(scratch.path(), &[]);
}

#[test]
fn on_a_terminal_the_progress_is_shown_and_wiped_away() {
    if !requires(&[Need::Tool("script")]) {
        return;
    }
    let scratch = common::scratch();
    let line = format!(
        "{} stream --rw read --size 16M --runtime 1s --color never >page",
        env!("CARGO_BIN_EXE_rdsk")
    );
    let mut script = cli::rdsk("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(scratch.path());
    let run = cli::run(script, LONG);
    assert_eq!(run.status_code, Some(0), "{}", run.stdout);
    for shown in ["creating the test file", "stream ", "IOPS", " left"] {
        assert!(run.stdout.contains(shown), "{shown} is missing in {:?}", run.stdout);
    }
    let last = run.stdout.trim_end().rsplit('\r').next().unwrap();
    assert!(!last.contains("left"), "the line stays: {:?}", run.stdout);
    let redraws = run.stdout.matches("stream ").count();
    let most = 30.0 * run.elapsed.as_secs_f64();
    assert!((redraws as f64) < most, "{redraws} redraws in {:?}", run.elapsed);
    holds_only(scratch.path(), &["page"]);
}

#[test]
fn a_dry_run_makes_nothing() {
    let scratch = common::scratch();
    let before = fs::metadata(scratch.path()).unwrap().modified().unwrap();
    let run = start(scratch.path(), &["run", "--dry-run"]).finish(LONG);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(!run.stdout.is_empty());
    let shown = |words: &[&str]| {
        let words = [&["run", "--dry-run", "--json", "-"], words].concat();
        cli::json(&start(scratch.path(), &words).finish(LONG))
    };
    let document = shown(&[]);
    assert_eq!(document["schema"], "rdsk.plan/1");
    assert!(document["plan"]["cells"].as_array().unwrap().len() > 10, "{document:#}");
    assert_eq!(document["targets"][0]["name"], ".");
    // The run draws a seed of its own, but can be given that of the plan.
    let seeds = |document: &Value| -> Vec<Value> {
        let cells = document["plan"]["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["workload"]["seed"].clone()).collect()
    };
    let again = shown(&["--seed", &document["seed"].to_string()]);
    assert_eq!((&again["seed"], seeds(&again)), (&document["seed"], seeds(&document)));
    assert_ne!(seeds(&shown(&[])), seeds(&document));
    holds_only(scratch.path(), &[]);
    assert_eq!(
        fs::metadata(scratch.path()).unwrap().modified().unwrap(),
        before,
        "something was made and removed"
    );
}

#[test]
fn a_refusal_of_a_dry_run_is_that_of_the_run() {
    let scratch = common::scratch();
    let file = scratch.path().join("mine");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    for extra in [&["--dry-run"][..], &[]] {
        let mut line = vec!["paths", "mine", "--rw", "write", "--json", "-"];
        line.extend(extra);
        let run = start(scratch.path(), &line).finish(LONG);
        assert_eq!(run.status_code, Some(3), "{}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        assert!(error.contains("refusing to write") && hint.contains("--overwrite"), "{error} / {hint}");
        assert_eq!(record(cli::json(&run))["error"]["kind"], "refused");
    }
    assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn a_limit_on_files_is_an_error_and_leaves_nothing() {
    let scratch = common::scratch();
    let limited = |blocks: u32, rest: &str| {
        let mut shell = std::process::Command::new("sh");
        let line = format!("ulimit -f {blocks}; exec \"$0\" {rest}");
        shell.args(["-c", &line]).arg(command([""; 0]).get_program()).current_dir(scratch.path());
        cli::start(shell).finish(LONG)
    };
    let run = limited(2048, "stream . --budget 2s --size 4M");
    assert_eq!(run.status_code, Some(3), "{}", run.stderr);
    assert!(error_and_hint(&run).1.contains("ulimit -f"), "{}", run.stderr);
    let run = limited(4, "paths . --dry-run --json plan.json");
    assert_eq!(run.status_code, Some(4), "{}", run.stderr);
    holds_only(scratch.path(), &[]);
}
