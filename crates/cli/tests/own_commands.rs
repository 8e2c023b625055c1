//! What the commands with parsers of their own have in common: help, hints, typing errors, and `--history`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, error_and_hint, holds_only, rdsk, scratch};
use rdsk_testkit::cli::{self, Run};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::path::Path;

const OWN: [&str; 11] = [
    "list", "compare", "report", "export", "import", "delete", "dd", "watch", "schema", "completions", "man",
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
    let label_of = |run: &Value| run["label"].as_str().unwrap_or("none").to_owned();
    document["runs"].as_array().unwrap().iter().map(label_of).collect()
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

/// A directory with the program, the script of each shell, and a history with one run, which has a label.
fn shells() -> tempfile::TempDir {
    let scratch = scratch();
    let place = scratch.path();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rdsk"), place.join("rdsk")).unwrap();
    for shell in ["bash", "fish", "zsh"] {
        std::fs::write(place.join(shell), quietly(place, &format!("completions {shell}"))).unwrap();
    }
    quietly(place, "stream sim:wd2500 --rw read --budget 5s --history h.db --label 'before upgrade' --quiet");
    scratch
}

/// What a shell prints that runs a script in this directory, where the history is.
fn says(place: &Path, shell: &str, flags: &[&str], script: &str) -> String {
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new(shell);
    command.args(flags).args(["-c", script]).current_dir(place);
    command.env("PATH", path).env("HOME", place).env("RDSK_HISTORY", "h.db");
    let run = cli::run(command, common::SOON);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{shell}: {script}");
    run.stdout
}

#[test]
fn bash_completes_commands_flags_and_values() {
    if !requires(&[Need::Tool("bash")]) {
        return;
    }
    let scratch = shells();
    let bash = |line: &str| {
        let script = format!(
            "compopt() {{ echo compopt \"$@\"; }}; source ./bash; COMP_WORDBREAKS=$' \\t\\n=:'; COMP_LINE='{line}'; \
             COMP_POINT=${{#COMP_LINE}}; _rdsk rdsk; [[ -v COMPREPLY ]] && printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        says(scratch.path(), "bash", &["--norc"], &script)
    };
    for (line, expected) in [
        ("rdsk compa", "compare\n"),
        ("rdsk list --lim", "--limit\n"),
        ("rdsk watch --inter", "--interval\n"),
        ("rdsk dd cou", "compopt -o nospace\ncount=\n"),
        // What bash breaks at stays; only what follows is replaced.
        ("rdsk dd status=no", "none\nnoxfer\n"),
        ("rdsk run sim:wd2500-", "wd2500-4kn\n"),
        ("rdsk run --label x s", "compopt -o nospace\nsim:\n"),
        ("rdsk run --only headline,str", "headline,stream\n"),
        ("rdsk run --engine io", "io_uring\n"),
        ("rdsk export --format c", "csv\n"),
        ("rdsk completions z", "zsh\n"),
        ("rdsk man wat", "watch\n"),
        ("rdsk schema r", "record\n"),
        ("rdsk show la", "last\n"),
        ("rdsk show bef", "before\\ upgrade\n"),
        ("rdsk compare last bef", "before\\ upgrade\n"),
        ("rdsk list --label bef", "before\\ upgrade\n"),
        ("rdsk run --json h.d", "h.db\n"),
    ] {
        assert_eq!(bash(line), expected, "{line}");
    }
    let runs = bash("rdsk delete ");
    assert_eq!(runs.lines().count(), 3, "the word last, the label, the id: {runs}");
}

#[test]
fn fish_and_zsh_complete_values_too() {
    if !requires(&[Need::Tool("fish"), Need::Tool("zsh")]) {
        return;
    }
    let scratch = shells();
    let fish = |line: &str| {
        says(
            scratch.path(),
            "fish",
            &["--no-config"],
            &format!("source ./fish; complete --do-complete '{line}'"),
        )
    };
    // The builtins of zsh that offer words stand in a widget only.
    let zsh = |words: &str, current: usize, prefix: &str| {
        let script = format!(
            "compdef() {{ :; }}; _files() {{ print -r files; }}; compadd() {{ local name=$@[-1]; print -rl -- \"${{(@P)name}}\"; }}; source ./zsh; \
             words=({words}); CURRENT={current}; PREFIX={prefix}; _rdsk"
        );
        says(scratch.path(), "zsh", &["-f"], &script)
    };
    assert!(fish("rdsk run sim:wd2500-").starts_with("sim:wd2500-4kn\t"), "{}", fish("rdsk run sim:wd2500-"));
    assert!(fish("rdsk show bef").starts_with("before upgrade\t"), "{}", fish("rdsk show bef"));
    assert!(fish("rdsk run --only hea").starts_with("headline"), "{}", fish("rdsk run --only hea"));
    assert_eq!(zsh("rdsk run sim:wd2500-", 3, "sim:wd2500-"), "sim:wd2500-4kn\n");
    assert_eq!(zsh("rdsk show bef", 3, "bef"), "before upgrade\n");
    assert_eq!(zsh("rdsk comp", 2, "compa"), "compare\n");
    assert_eq!(zsh("rdsk dd cou", 3, "cou"), "count=\n");
    assert_eq!(zsh("rdsk run nothing-is-called-so", 3, "nothing-is-called-so"), "files\n");
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
        (&["list", "sda"], "unexpected word \"sda\"", "rdsk list --help"),
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
    assert!(quietly(place, "compare one two --history h.db").starts_with("No clear difference in "));
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
