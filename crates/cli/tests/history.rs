//! The history as a user sees it: what is kept, found, listed, deleted and gone on with, and what happens where it cannot be
//! written. How it is stored, `store` tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod resume;
mod survives;

use crate::common::{self, SOON, error_and_hint};
use rdsk_testkit::cli::{self, Ended, Run};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A run of virtual time: quick, and kept like any other.
const RUN: [&str; 5] = ["run", "sim:wd2500", "--only", "headline", "--budget=5s"];

/// A directory with a history of its own.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: common::scratch() }
    }

    /// One without a disk below it, where there is such a place.
    fn in_memory() -> Self {
        Self { directory: tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| common::scratch()) }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("h.db")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = common::command(words);
        command.env("RDSK_HISTORY", self.file()).current_dir(self.directory.path());
        command
    }

    fn run(&self, words: &[&str]) -> Run {
        cli::run(self.command(words), SOON)
    }

    /// Runs it successfully, without a word on standard error.
    fn quiet(&self, words: &[&str]) -> String {
        let run = self.run(words);
        assert_eq!((run.ended, run.stderr.as_str()), (Ended::Exited(0), ""), "{words:?}");
        run.stdout
    }

    /// The runs of `rdsk list --json`.
    fn runs(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.quiet(&["list", "--json"])).unwrap();
        document["runs"].as_array().unwrap().clone()
    }
}

fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap()
}

#[test]
fn a_run_is_kept_and_found_by_each_of_its_names() {
    let place = Place::new();
    assert_eq!(place.quiet(&["list"]), "no runs\n");
    place.quiet(&[&RUN[..], &["--label", "before", "--json", "r.json"]].concat());
    place.quiet(&RUN);
    let runs = place.runs();
    let [newest, oldest] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((oldest["label"].as_str(), oldest["status"].as_str()), (Some("before"), Some("complete")));
    assert_eq!(oldest["targets"], serde_json::json!(["sim:wd2500"]));
    assert!(oldest["read_bytes_per_s"].as_f64() > Some(1e6), "{oldest}");

    let written: Value =
        serde_json::from_str(&fs::read_to_string(place.directory.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(written["id"], oldest["id"]);
    for word in [id(oldest), &id(oldest)[..24], "before"] {
        let shown: Value = serde_json::from_str(&place.quiet(&["show", word, "--json", "-"])).unwrap();
        assert_eq!(shown, written, "{word}");
    }
    assert_eq!(place.quiet(&["show", "before"]), place.quiet(&["show", "r.json"]));
    let last: Value = serde_json::from_str(&place.quiet(&["show", "last", "--json", "-"])).unwrap();
    assert_eq!(last["id"], newest["id"]);

    let listed = place.quiet(&["list", "--limit", "1"]);
    assert!(listed.contains(&id(newest)[..10]) && listed.contains("there are more"), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    assert_eq!(place.quiet(&["list", "--target", "wd2"]).matches("sim:wd2500").count(), 2);
    assert_eq!(place.quiet(&["list", "--until", "2020-01-01"]), "no runs\n");
}

#[test]
fn a_word_that_means_nothing_or_several_runs_is_refused_and_a_file_comes_first() {
    let place = Place::new();
    let (missing, _) = error_and_hint(&place.run(&["show", "nobody"]));
    assert!(missing.contains("no such file, and no history"), "{missing}");
    place.quiet(&RUN);
    place.quiet(&[&RUN[..], &["--label", "r.json"]].concat());
    let (missing, hint) = error_and_hint(&place.run(&["show", "nobody"]));
    assert!(missing.contains("no such run in") && hint.contains("rdsk list"), "{missing}: {hint}");
    // All ids of these years begin so.
    let several = place.run(&["show", "01k", "--history", "h.db"]);
    assert_eq!(several.status_code, Some(2));
    let prefix: String = id(&place.runs()[0]).chars().take(5).collect();
    let (several, _) = error_and_hint(&place.run(&["show", &prefix]));
    assert!(place.runs().iter().all(|run| several.contains(id(run))), "{several}");
    // A label that is exactly the word is meant, where no single run is.
    place.quiet(&[&RUN[..], &["--label", &prefix]].concat());
    let shown: Value = serde_json::from_str(&place.quiet(&["show", &prefix, "--json", "-"])).unwrap();
    assert_eq!(shown["label"].as_str(), Some(prefix.as_str()));
    fs::write(place.directory.path().join("r.json"), place.quiet(&["show", "r.json", "--json", "-"]))
        .unwrap();
    let both = place.run(&["show", "r.json"]);
    assert_eq!(both.status_code, Some(0));
    assert!(
        both.stderr.starts_with("warning: r.json is a file") && both.stderr.lines().count() == 1,
        "{}",
        both.stderr
    );
}

#[test]
fn nothing_is_kept_where_nothing_is_wanted_or_was_measured() {
    let place = Place::new();
    place.quiet(&[&RUN[..], &["--no-history"]].concat());
    place.quiet(&[&RUN[..], &["--dry-run"]].concat());
    assert_eq!(place.run(&["run", "/nonexistent"]).status_code, Some(3));
    cli::run(common::command(RUN), SOON);
    common::holds_only(place.directory.path(), &[]);
    // With an empty variable there is none to list either.
    let (none, _) = error_and_hint(&cli::run(common::command(["list"]), SOON));
    assert!(none.contains("RDSK_HISTORY is empty"), "{none}");
}

#[test]
fn the_users_data_directory_has_it_and_no_place_is_one_warning() {
    let place = Place::new();
    let home = place.directory.path().join("home");
    let with_home = |home: Option<&Path>, words: &[&str]| {
        let mut command = common::command(words);
        command.env_remove("RDSK_HISTORY").env_remove("XDG_DATA_HOME").env_remove("HOME");
        if let Some(home) = home {
            command.env("HOME", home);
        }
        cli::run(command, SOON)
    };
    let run = with_home(Some(&home), &RUN);
    assert_eq!((run.ended, run.stderr.as_str()), (Ended::Exited(0), ""));
    let file = home.join(".local/share/rdsk/history.db");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    // No process can create a directory in /proc, root included.
    for home in [None, Some(Path::new("/proc/nobody"))] {
        let run = with_home(home, &RUN);
        assert_eq!(run.ended, Ended::Exited(0));
        assert!(run.stderr.starts_with("warning: this run is not kept: "), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stdout.contains("sim:wd2500"), "the page is printed");
        let run = with_home(home, &[&RUN[..], &["--quiet"]].concat());
        assert_eq!(run.ended, Ended::Exited(0));
        assert!(run.stderr.starts_with("warning: this run is not kept: "), "a run is lost: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

#[test]
fn a_file_that_is_something_else_is_left_alone_and_the_run_goes_on() {
    let place = Place::new();
    fs::write(place.file(), "my thesis").unwrap();
    let run = place.run(&RUN);
    assert_eq!(run.ended, Ended::Exited(0));
    assert!(
        run.stderr.contains("is not a history of rdsk") && run.stderr.lines().count() == 1,
        "{}",
        run.stderr
    );
    for words in [&["list"][..], &["delete", "--older-than", "1d"], &["show", "last"]] {
        let run = place.run(words);
        assert_eq!(run.status_code, Some(3), "{words:?}");
        error_and_hint(&run);
    }
    assert_eq!(fs::read_to_string(place.file()).unwrap(), "my thesis");
    common::holds_only(place.directory.path(), &["h.db"]);
}

#[test]
fn runs_are_deleted_by_name_and_by_age() {
    let place = Place::new();
    for label in ["one", "two", "three"] {
        place.quiet(&[&RUN[..], &["--label", label]].concat());
    }
    let (_, hint) = error_and_hint(&place.run(&["delete", "one", "nobody"]));
    assert!(hint.contains("nothing was deleted"), "{hint}");
    let shown = place.quiet(&["delete", "one", "--dry-run"]);
    assert!(shown.contains("(one)") && shown.ends_with("1 run would be deleted\n"), "{shown}");
    assert_eq!(place.runs().len(), 3);
    assert!(place.quiet(&["delete", "one", "one"]).ends_with("1 run deleted\n"));
    assert_eq!(place.quiet(&["delete", "--older-than", "1h"]), "0 runs deleted\n");
    assert_eq!(place.runs().len(), 2);
    assert!(place.quiet(&["delete", "--older-than", "0s"]).ends_with("2 runs deleted\n"));
    assert_eq!(place.quiet(&["list"]), "no runs\n");
}

/// A container that is gone never ends its run, which would stay for ever.
#[test]
fn a_run_of_another_container_is_deleted_only_by_force() {
    let place = Place::new();
    for label in ["one", "two"] {
        place.quiet(&[&RUN[..], &["--label", label]].concat());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let holder = format!("{} pid:[1] 1 1", boot.trim());
    let database = rusqlite::Connection::open(place.file()).unwrap();
    database.execute("UPDATE run SET status = 'running', holder = ?1", [holder]).unwrap();
    drop(database);
    assert!(place.runs().iter().all(|run| run["status"] == "elsewhere"));
    assert!(place.quiet(&["list"]).contains(" elsewhere "));
    let refused = place.run(&["delete", "one"]);
    assert_eq!(refused.status_code, Some(3), "{}", refused.stderr);
    assert!(error_and_hint(&refused).1.contains("--force"), "{}", refused.stderr);
    let old = place.run(&["delete", "--older-than", "0s"]);
    assert_eq!((old.status_code, old.stdout.as_str()), (Some(0), "0 runs deleted\n"));
    assert!(old.stderr.contains("2 runs of other machines or containers stay"), "{}", old.stderr);
    assert!(place.quiet(&["delete", "one", "--force"]).ends_with("1 run deleted\n"));
    assert!(place.quiet(&["delete", "--older-than", "0s", "--force"]).ends_with("1 run deleted\n"));
    assert!(place.runs().is_empty());
}

/// What a user, a device or a file calls itself must not move the cursor or set a title.
#[test]
fn escape_sequences_in_names_are_harmless() {
    let place = Place::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\nfake";
    let file = place.directory.path().join(format!("disk{evil}.toml").replace('/', "_"));
    let system = place.quiet(&["sim", "show", "wd2500"]);
    fs::write(&file, system).unwrap();
    let target = format!("sim:./{}", file.file_name().unwrap().to_str().unwrap());
    place.quiet(&["run", &target, "--only", "headline", "--budget", "5s", "--label", evil]);
    for words in [&["list"][..], &["delete", "last", "--dry-run"], &["show", "last"]] {
        let text = place.quiet(words);
        assert!(text.contains("fake") || text.contains("\\x1b"), "{text:?}");
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{words:?}: {text:?}");
    }
    assert_eq!(place.quiet(&["list"]).lines().count(), 3);
}

/// The line of docs/history.md, by the shell of SQLite, and the views whole.
#[test]
fn sqlite3_reads_what_the_document_promises() {
    if !requires(&[Need::Tool("sqlite3")]) {
        return;
    }
    let place = Place::new();
    let line = ["run", "sim:wd2500", "--only", "headline,paths", "--budget", "20s", "--label", "a,'b"];
    place.quiet(&[&line[..], &["--json", "r.json"]].concat());
    let read = fs::read_to_string(place.directory.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&read).unwrap();
    let cells = record["cells"].as_array().unwrap();
    let sqlite = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("HISTORY", place.file());
        let run = cli::run(shell, SOON);
        assert_eq!((run.ended, run.stderr.as_str()), (Ended::Exited(0), ""), "{script}");
        run.stdout
    };

    let page = include_str!("../../../docs/history.md");
    let start = page.find("    sqlite3 ~/").expect("the document has an example");
    let example = page[start..].split("\n\n").next().unwrap();
    let shown = sqlite(&example.replace("~/.local/share/rdsk/history.db", "\"$HISTORY\""));
    let direct = cells.iter().find(|cell| cell["id"] == "paths/read/direct").unwrap();
    let mib = direct["result"]["bytes_per_s"]["mean"].as_f64().unwrap() / 1_048_576.0;
    assert_eq!(
        shown,
        format!("{}|sim:wd2500|{mib:.1}\n", record["started_at"].as_str().unwrap(), mib = mib.round())
    );

    let runs = sqlite("sqlite3 -json -readonly \"$HISTORY\" 'SELECT * FROM runs'");
    let runs: Value = serde_json::from_str(&runs).unwrap();
    assert_eq!((&runs[0]["id"], &runs[0]["label"]), (&record["id"], &record["label"]));
    assert_eq!(runs[0]["cells"].as_u64(), Some(cells.len() as u64));
    let rows = sqlite("sqlite3 -json -readonly \"$HISTORY\" 'SELECT * FROM cells ORDER BY position'");
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows.len(), cells.len());
    for (row, cell) in rows.iter().zip(cells) {
        for (column, pointer) in [
            ("id", "/id"),
            ("verdict", "/verdict/code"),
            ("block_bytes", "/workload/block_bytes"),
            ("bytes", "/result/bytes"),
            ("latency_p99_ns", "/result/latency_ns/p99"),
            ("latency_max_ns", "/result/latency_ns/max"),
            ("to_stable_ns", "/result/to_stable_ns"),
        ] {
            assert_eq!(
                row[column],
                *cell.pointer(pointer).unwrap_or(&Value::Null),
                "{column} of {}",
                cell["id"]
            );
        }
    }
}

#[test]
fn a_copy_is_kept_where_it_has_a_record() {
    let place = Place::new();
    fs::write(place.directory.path().join("in"), vec![7_u8; 1 << 20]).unwrap();
    let copy = ["if=in", "of=out", "bs=64k"];
    assert_eq!(place.run(&[&["dd"][..], &copy].concat()).ended, Ended::Exited(0));
    assert_eq!(place.runs().len(), 1);
    for line in [&["dd", "--no-history"][..], &["dd", "--explain", "off"]] {
        assert_eq!(place.run(&[line, &copy].concat()).ended, Ended::Exited(0));
    }
    let runs = place.runs();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["command"][1], "dd");
    assert!(place.quiet(&["show", "last"]).contains("in"));
}

/// What was refused or mistyped measured nothing, and `last` stays the last run that did.
#[test]
fn a_copy_that_never_began_is_not_kept() {
    let place = Place::new();
    fs::write(place.directory.path().join("in"), vec![7_u8; 1 << 16]).unwrap();
    assert_eq!(place.run(&["dd", "if=in", "of=out"]).ended, Ended::Exited(0));
    let kept = place.runs();
    for operands in [["if=nothing", "of=out"], ["if=in", "of=no-such-directory/out"]] {
        for line in [&["dd"][..], &["dd", "--repeat", "2"]] {
            assert_eq!(place.run(&[line, &operands].concat()).ended, Ended::Exited(1), "{operands:?}");
        }
    }
    assert_eq!(place.runs(), kept);
    // One that failed on its way has figures.
    let full = place.run(&["dd", "if=in", "of=/dev/full", "bs=4k"]);
    assert_eq!(full.ended, Ended::Exited(1), "{}", full.stderr);
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn dd_never_writes_over_the_history() {
    let place = Place::new();
    fs::write(place.directory.path().join("in"), vec![7_u8; 1 << 16]).unwrap();
    assert_eq!(place.run(&["dd", "if=in", "of=out"]).ended, Ended::Exited(0));
    for operand in ["of=h.db", "of=./h.db", "of=h.db-wal"] {
        for line in [&["dd"][..], &["dd", "--explain", "off"]] {
            let run = place.run(&[line, &["if=in", operand]].concat());
            assert_eq!(run.ended, Ended::Exited(1), "{operand}");
            assert!(run.stderr.contains("it is the history of rdsk"), "{operand}: {}", run.stderr);
        }
    }
    assert_eq!(place.runs().len(), 1, "the copy, and no refusal");
}

/// The last line of a page is a command that works.
#[test]
fn the_page_of_a_run_names_the_command_that_shows_the_rest() {
    let place = Place::new();
    let whole = |page: &str| page.lines().last().unwrap().strip_prefix("Details: rdsk ").unwrap().to_owned();
    let last = |page: &str| whole(page).split("    Page: ").next().unwrap().to_owned();
    let page = place.quiet(&RUN);
    let id = id(&place.runs()[0])[..10].to_owned();
    assert_eq!(whole(&page), format!("show {id} --details    Page: rdsk report {id} --open"));
    let line = last(&page);
    let words: Vec<&str> = line.split(' ').collect();
    assert!(place.quiet(&words).contains("\nHEADLINE: "));
    // Another history than that of the environment has to be named again.
    let line = last(&place.quiet(&[&RUN[..], &["--history", "my other.db"]].concat()));
    let words = shlex::split(&line).unwrap();
    assert_eq!(words[2..], ["--history", "my other.db", "--details"]);
    assert!(place.quiet(&words.iter().map(String::as_str).collect::<Vec<_>>()).contains("\nHEADLINE: "));
    // What the history does not have is named by its document, and what nothing has by how to keep it.
    let line = last(&place.quiet(&[&RUN[..], &["--no-history", "--json", "r.json"]].concat()));
    assert_eq!(line, "show r.json --details");
    let page = place.quiet(&[&RUN[..], &["--no-history"]].concat());
    assert!(page.ends_with("Details: --details, or --json FILE and rdsk show FILE --details\n"), "{page}");
    assert!(place.quiet(&["show", "r.json"]).ends_with("\nDetails: the same command with --details\n"));
}

#[test]
fn a_killed_run_took_no_time_that_is_known() {
    let place = Place::new();
    let words = ["run", ".", "--rw", "read", "--size", "4M", "--budget", "60s", "--quiet"];
    let running = cli::start(place.command(&words));
    let has_cells = || {
        let listed = place.run(&["list", "--json"]).stdout;
        serde_json::from_str::<Value>(&listed).is_ok_and(|list| list["runs"][0]["cells"].as_u64() > Some(0))
    };
    assert!(rdsk_testkit::wait_until(SOON, has_cells), "cells are kept");
    let words_of = |line: &[&str]| place.quiet(line).split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words_of(&["show", "last"]);
    assert!(shown.contains("goes on: began 20"), "{shown}");
    cli::signal(running.pid(), cli::Signal::KILL).unwrap();
    running.finish(SOON);
    for line in
        [&["show", "last"][..], &["show", "last", "--details"], &["export", "last", "--format", "markdown"]]
    {
        let shown = words_of(line);
        assert!(!shown.contains("took 0 ns") && !shown.contains("Took 0 ns"), "{shown}");
        assert!(shown.to_lowercase().contains("cut off: began 20"), "{shown}");
        assert!(shown.contains(" later, in "), "{shown}");
    }
}
