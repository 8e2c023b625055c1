//! Every option with nonsense, overflow, zero, a negative, an unknown suffix, nothing; conflicting flags; unknown
//! commands and flags: exit 2, one line and a hint, nothing on standard output, nothing created.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, command, error_and_hint, holds_only, rdsk, record};
use rdsk_testkit::cli;

const SIZE: &[&str] =
    &["", "x", "-1", "-4k", "99999999T", "4x", "4b", "1e3", "0.3", "+4k", "4k4", "NaN", "\u{1b}[31m"];
const COUNT: &[&str] = &["", "x", "0", "-1", "1.5", "4k", "99999999999999999999", "1000000"];
const TIME: &[&str] = &["", "x", "0", "-5s", "5x", "99999999999h", "1ns", "5 parsecs", "1e3"];

/// Verb, flag, and the values that are nonsense for it.
const TABLE: &[(&str, &str, &[&str])] = &[
    ("run", "--only", &["", "x", "0", "-1", "stripe", "paths,", "Paths"]),
    ("run", "--budget", TIME),
    ("run", "--precision", &["", "x", "0", "-2%", "2", "100%", "1e-2", "NaN", "inf"]),
    ("run", "--size", SIZE),
    ("run", "--size", &["0"]),
    ("run", "--iodepth", COUNT),
    ("run", "--seed", &["", "x", "-1", "1.5", "99999999999999999999"]),
    ("run", "--engine", &["", "x", "0", "-1", "sim", "libaio"]),
    ("run", "--pin", &["", "x", "-1", "3-1", "0-", "8000", "0,,1", "99999999999999999999"]),
    ("run", "--destroy", &["", " "]),
    ("run", "--rw", &["", "x", "0", "-1", "rw", "read,"]),
    ("run", "--json", &[""]),
    ("run", "--label", &["", " "]),
    ("run", "--color", &["", "x", "0", "-1"]),
    ("paths", "--bs", SIZE),
    ("paths", "--bs", &["0", "2G", "4k,", "4k,0", "4k,-1"]),
    ("paths", "--bytes", SIZE),
    ("paths", "--bytes", &["0"]),
    ("paths", "--runtime", TIME),
    ("align", "--bs", SIZE),
    ("stream", "--offset", SIZE),
    ("stream", "--streams", COUNT),
    ("scale", "--streams", COUNT),
    ("scale", "--stagger", &["", "-1s", "soon", "5000h", "0x"]),
    ("zones", "--bs", SIZE),
    ("zones", "--points", COUNT),
    ("zones", "--runs", COUNT),
    ("zones", "--order", &["", "x", "0", "random"]),
    ("zones", "--resume", &["", "/nonexistent/record.json", "/dev/null"]),
    ("stream", "--pattern", &["", "x", "0", "-1", "zipf"]),
];

/// Runs the program in an empty directory and asserts a usage error that says `message`.
fn refused(line: &[&str], message: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let mut command = command(line);
    command.current_dir(scratch.path());
    let run = cli::run(command, common::SOON);
    assert_eq!(run.status_code, Some(2), "{line:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{line:?}");
    let (error, _) = error_and_hint(&run);
    assert!(error.contains(message), "{line:?}: {error}");
    assert!(!run.stderr.contains('\u{1b}'), "{line:?}: {:?}", run.stderr);
    holds_only(scratch.path(), &[]);
}

#[test]
fn every_option_refuses_nonsense() {
    for (verb, flag, values) in TABLE {
        for value in *values {
            refused(&[verb, flag, value], flag);
            refused(&[verb, &format!("{flag}={value}")], flag);
        }
        refused(&[verb, flag], flag);
    }
}

#[test]
fn conflicting_flags_are_refused() {
    for (line, message) in [
        (&["paths", "--runtime", "1s", "--budget", "9s"][..], "--runtime conflicts with --budget"),
        (&["zones", "--full", "--points", "9"], "--points conflicts with --full"),
        (&["stream", "--streams", "1,2"], "rdsk stream takes one number of --streams"),
        (&["run", "--json-compact"], "--json-compact needs --json"),
        (&["run", "--iodepth", "32", "--engine", "sync"], "--iodepth 32 conflicts with --engine sync"),
        (&["stream", "--iodepth", "2", "--engine", "sync"], "--iodepth 2 conflicts with --engine sync"),
        (&["run", "x", "--destroy", "S", "--overwrite"], "--destroy conflicts with --overwrite"),
        (&["paths", "x", "--destroy", "S", "--rw", "read"], "--destroy conflicts with --rw read"),
        (&["paths", "x", "--overwrite", "--rw", "read"], "--overwrite conflicts with --rw read"),
        (&["stream", "--end-fsync", "--rw", "read"], "--end-fsync conflicts with --rw read"),
        (&["run", "--destroy", "S"], "--destroy needs a target"),
        (&["paths", "--bs", "1M", "--bytes", "64k"], "--bytes 64 KiB is less than one block"),
        (&["paths", "--bytes", "1M", "--size", "512k"], "--bytes 1 MiB does not fit into --size 512 KiB"),
        (&["run", "--seed", "1", "--seed", "2"], "--seed is given twice"),
        (&["run", "--dry-run=yes"], "--dry-run takes no value"),
    ] {
        refused(line, message);
    }
}

/// What was requested is never cut to what is there, and nothing is created before it is refused.
#[test]
fn a_pass_that_no_target_holds_is_refused() {
    let scratch = common::scratch();
    let file = scratch.path().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let (directory, file) = (scratch.path().to_str().unwrap(), file.to_str().unwrap());
    for (line, message) in [
        (
            &["paths", "sim:hpux-k460", "--bytes", "8G"][..],
            "is more than sim:hpux-k460 holds: 4.00 GiB (4,290,772,992 bytes)",
        ),
        (&["align", file, "--bytes", "2M"], "--bytes 2 MiB (2,097,152 bytes) is more than "),
        (&["stream", directory, file, "--bytes", "2M"], "file holds: 1 MiB (1,048,576 bytes)"),
        (
            &["paths", file, "--bytes", "1M", "--offset", "4k"],
            "--bytes 1 MiB (1,048,576 bytes) from --offset",
        ),
    ] {
        refused(line, message);
        holds_only(scratch.path(), &["file"]);
    }
    let run = rdsk(["paths", directory, "--bytes", "900T"]);
    assert_eq!(run.status_code, Some(3), "{}", run.stderr);
    let (error, hint) = error_and_hint(&run);
    assert!(error.starts_with("a test file of 900 TiB does not fit in "), "{error}");
    assert!(hint.contains("ask for at most "), "{hint}");
    holds_only(scratch.path(), &["file"]);
}

/// A directory gets a test file that holds the pass, however large; what it is shown to be, it becomes.
#[test]
fn a_directory_gets_a_file_as_large_as_the_pass() {
    let scratch = common::scratch();
    let directory = scratch.path().to_str().unwrap();
    let sizes = |flags: &[&str]| {
        let words = ["paths", directory, "--budget", "1s", "--json", "-", "--rw", "read"];
        let run = rdsk(words.iter().chain(flags));
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        cli::json(&run)["targets"][0]["size_bytes"].as_u64().unwrap()
    };
    assert_eq!(sizes(&["--bytes", "1100M", "--dry-run"]), 1100 << 20, "more than the usual 1 GiB");
    assert_eq!(sizes(&["--bytes", "5M", "--offset", "4k"]), 6 << 20);
    assert_eq!(sizes(&["--bytes", "5M", "--size", "8M"]), 8 << 20);
    holds_only(scratch.path(), &[]);
}

#[test]
fn what_is_not_there_is_unknown() {
    for (line, message) in [
        (&[][..], "no command is given"),
        (&["zone"], "unknown command \"zone\""),
        (&["erase", "."], "unknown command \"erase\""),
        (&["/dev/sdb"], "unknown command \"/dev/sdb\""),
        (&["run", "--nonsense"], "unknown flag --nonsense"),
        (&["run", "--runtime", "5s"], "--runtime does not apply to rdsk run"),
        (&["paths", "--streams", "3"], "--streams does not apply to rdsk paths"),
        (&["info", "--budget", "5s"], "--budget does not apply to rdsk info"),
        (&["run", ""], "the name of a target is empty"),
    ] {
        refused(line, message);
    }
}

#[test]
fn a_record_reports_the_usage_error_on_standard_output() {
    for line in [
        &["paths", "--json", "-", "--bs", "99999999T"][..],
        &["paths", "--bs", "-4k", "--json=-"],
        &["run", "--json", "-", "--runtime", "1s"],
        &["nonsense", "--json", "-"],
    ] {
        let run = rdsk(line);
        assert_eq!(run.status_code, Some(2));
        let (error, hint) = error_and_hint(&run);
        let record = record(cli::json(&run));
        assert_eq!(record["status"], "failed");
        assert_eq!(record["error"]["message"], *error);
        assert_eq!(record["error"]["hint"], *hint);
        assert_eq!(record["error"]["code"], "usage");
        assert_eq!(record["command"].as_array().unwrap().len(), line.len() + 1);
        assert_eq!(record["cells"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn a_record_reports_the_usage_error_in_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("r.json");
    let run = rdsk(["run", "--budget", "soon", "--json", path.to_str().unwrap()]);
    assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""));
    let text = std::fs::read_to_string(&path).unwrap();
    let record = record(serde_json::from_str(&text).unwrap());
    assert!(record["error"]["message"].as_str().unwrap().contains("--budget"));
    holds_only(scratch.path(), &["r.json"]);
}

#[test]
fn a_file_of_jobs_is_no_target() {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["jobs.toml", "jobs.fio"] {
        std::fs::write(scratch.path().join(name), "[[job]]\nrw = \"randread\"\n").unwrap();
    }
    for (line, place) in [
        (&["load", "sim:ssd-slc", "jobs.toml"][..], "rdsk load jobs.toml TARGET"),
        (&["load", "jobs.toml", "sim:ssd-slc", "./jobs.toml"], "rdsk load ./jobs.toml TARGET"),
        (&["load", "jobs.fio"], "rdsk load --fio jobs.fio TARGET"),
        (&["check", "etcd", "jobs.toml"], "rdsk check jobs.toml TARGET"),
    ] {
        let mut command = command(line);
        command.current_dir(scratch.path());
        let run = cli::run(command, common::SOON);
        assert_eq!(run.status_code, Some(2), "{line:?}: {}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        assert!(error.contains("is a file of jobs, and no target"), "{line:?}: {error}");
        assert!(hint.contains(place), "{line:?}: {hint}");
    }
}
