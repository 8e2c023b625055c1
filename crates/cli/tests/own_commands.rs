//! What the commands with parsers of their own have in common: help, hints, typing errors, and `--history`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, error_and_hint, holds_only, rdsk, scratch};
use rdsk_testkit::cli::{self, Run};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::path::Path;

const OWN: [&str; 11] = [
    "list",
    "compare",
    "report",
    "export",
    "import",
    "delete",
    "dd",
    "watch",
    "schema",
    "completions",
    "man",
];

/// Runs a line in a directory; the environment names no history.
fn at(directory: &Path, line: &str) -> Run {
    let mut command = common::command(shlex::split(line).unwrap());
    command.current_dir(directory);
    cli::run(command, common::SOON)
}

/// As [`at`], successfully and without a word on standard error.
fn quietly(directory: &Path, line: &str) -> String {
    let run = at(directory, line);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{line}");
    run.stdout
}

fn labels(directory: &Path, history: &str) -> Vec<String> {
    let document: Value =
        serde_json::from_str(&quietly(directory, &format!("list --history {history} --json"))).unwrap();
    let of = |run: &Value| run["label"].as_str().unwrap_or("none").to_owned();
    document["runs"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_has_its_line_in_the_list_and_a_help_that_is_narrow() {
    let list = rdsk(["--help"]).stdout;
    for name in OWN {
        assert!(list.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}: {list}");
        let help = rdsk([name, "--help"]);
        assert_eq!((help.status_code, help.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(help.stdout.contains(&format!("Usage: rdsk {name} ")), "{}", help.stdout);
        assert!(help.stdout.contains("\nExamples:\n"), "{}", help.stdout);
        assert!(help.stdout.lines().all(|line| line.chars().count() <= 80), "{}", help.stdout);
    }
}

#[test]
fn bash_completes_commands_flags_and_operands() {
    if !requires(&[Need::Tool("bash")]) {
        return;
    }
    let scratch = scratch();
    let place = scratch.path();
    std::fs::write(place.join("bash"), quietly(place, "completions bash")).unwrap();
    let bash = |line: &str, words: &str, index: usize| {
        let script = format!(
            "compopt() {{ echo compopt \"$@\"; }}; source ./bash; COMP_WORDS=({words}); COMP_CWORD={index}; COMP_LINE='{line}'; \
             set -- $(complete -p rdsk); while [ \"$1\" != -F ]; do shift; done; \"$2\" rdsk \"${{COMP_WORDS[$COMP_CWORD]}}\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output =
            std::process::Command::new("bash").args(["-c", &script]).current_dir(place).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(bash("rdsk compa", "rdsk compa", 1), "compare\n");
    assert_eq!(bash("rdsk list --lim", "rdsk list --lim", 2), "--limit\n");
    assert_eq!(bash("rdsk watch --inter", "rdsk watch --inter", 2), "--interval\n");
    assert_eq!(bash("rdsk dd cou", "rdsk dd cou", 2), "compopt -o nospace\ncount=\n");
    assert_eq!(bash("rdsk dd status=no", "rdsk dd status=no", 2), "status=none\nstatus=noxfer\n");
    assert_eq!(bash("rdsk run --engine io", "rdsk run --engine io", 3), "io_uring\n");
    assert_eq!(bash("rdsk export --format c", "rdsk export --format c", 3), "csv\n");
    assert_eq!(bash("rdsk completions z", "rdsk completions z", 2), "zsh\n");
    assert_eq!(bash("rdsk man wat", "rdsk man wat", 2), "watch\n");
    assert_eq!(bash("rdsk schema r", "rdsk schema r", 2), "record\n");
}

#[test]
fn a_manual_page_is_of_rdsk_and_its_command() {
    let scratch = scratch();
    let place = scratch.path();
    let page = quietly(place, "man run");
    assert!(page.contains(".TH rdsk-run 1") && page.contains("budget"), "{page}");
    let run = at(place, "man nothing");
    assert_eq!(error_and_hint(&run).0, "unknown command \"nothing\"");
}

#[test]
fn a_schema_is_the_file_of_the_documents() {
    let scratch = scratch();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (line, file) in [("schema", "record"), ("schema record", "record"), ("schema watch", "watch")] {
        let text = std::fs::read_to_string(docs.join(format!("{file}.schema.json"))).unwrap();
        assert_eq!(quietly(scratch.path(), line), text, "{line}");
    }
}

#[test]
fn a_typing_error_is_answered_by_what_was_meant() {
    for (line, message, hint) in [
        (&["lsit"][..], "unknown command \"lsit\"", "did you mean rdsk list?"),
        (&["comprae", "a"], "unknown command \"comprae\"", "did you mean rdsk compare?"),
        (&["list", "--limti", "3"], "unknown flag --limti", "did you mean --limit?"),
        (&["delete", "--older", "3d"], "unknown flag --older", "did you mean --older-than?"),
        (&["compare", "a", "b", "--fail-fi", "x"], "unknown flag --fail-fi", "did you mean --fail-if?"),
        (&["report", "a", "--ouptut", "x"], "unknown flag --ouptut", "did you mean --output?"),
        (&["export", "a", "--fromat", "csv"], "unknown flag --fromat", "did you mean --format?"),
        (&["import", "a", "--lable", "x"], "unknown flag --lable", "did you mean --label?"),
        (&["watch", "--colunms", "old"], "unknown flag --colunms", "did you mean --columns?"),
        (&["list", "--since", "yesterday"], "--since: \"yesterday\" is no date, time or age", "2026-11-22"),
        (&["list", "sda"], "the word \"sda\" is one too many", "rdsk list --help"),
        (&["export", "last", "--csv"], "--csv does not apply to rdsk export", "write --format csv"),
        (&["list", "--limit"], "--limit has no value", "write a value after --limit"),
        (&["watch", "--plain", "--json"], "--plain conflicts with --json", "leave one of them out"),
    ] {
        let run = rdsk(line);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""), "{line:?}");
        let (said, hinted) = error_and_hint(&run);
        assert_eq!(said, message, "{line:?}");
        assert!(hinted.contains(hint), "{line:?}: {hinted}");
    }
}

#[test]
fn each_takes_the_history_that_its_line_names() {
    let scratch = scratch();
    let place = scratch.path();
    for label in ["one", "two"] {
        let line = "stream sim:wd2500 --rw read --budget 5s --history h.db";
        let page = quietly(place, &format!("{line} --label {label}"));
        assert!(page.contains("sim:wd2500"), "{page}");
    }
    quietly(place, "show one --json one.json --history h.db");
    assert!(quietly(place, "show one --history h.db").contains("STREAM"));
    assert!(quietly(place, "compare one two --history h.db").contains("B AGAINST A"));
    assert!(quietly(place, "export one two --format markdown --history h.db").contains("2 runs"));
    quietly(place, "report one two -o both.html --history h.db");
    quietly(place, "import one.json --label three --history i.db");
    assert_eq!(labels(place, "h.db"), ["two", "one"]);
    assert_eq!(labels(place, "i.db"), ["three"]);
    assert!(quietly(place, "delete one --history h.db").ends_with("1 run deleted\n"));
    assert_eq!(labels(place, "h.db"), ["two"]);
    // Without the flag there is none here.
    for line in ["compare one two", "export one --format csv", "report one -o x.html", "show one"] {
        let run = at(place, line);
        assert_eq!(run.status_code, Some(2), "{line}");
        assert!(error_and_hint(&run).0.contains("no history"), "{line}: {}", run.stderr);
    }
    let left = ["both.html", "h.db", "h.db-shm", "h.db-wal", "i.db", "i.db-shm", "i.db-wal", "one.json"];
    let there: Vec<&str> = left.into_iter().filter(|name| place.join(name).exists()).collect();
    holds_only(place, &there);
}

#[test]
fn runs_that_compare_makes_are_kept_where_its_line_says() {
    let scratch = scratch();
    let line = "stream sim:wd2500 --rw read --budget 3s";
    let compared = at(
        scratch.path(),
        &format!(
            "compare --repeat 2 --quiet --history h.db -- '{line} --label a' '{line} --label b --no-history'"
        ),
    );
    assert_eq!(compared.status_code, Some(0), "{}", compared.stderr);
    assert_eq!(labels(scratch.path(), "h.db"), ["a", "a"]);
}
