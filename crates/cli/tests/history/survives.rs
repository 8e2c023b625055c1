//! What must never harm a history: kills at any moment, many runs at once, a full disk.

use super::{Place, RUN, id};
use crate::common::{self, SOON};
use rdsk_stats::rng::SplitMix64;
use rdsk_store::{Filter, History, RunLine, State};
use rdsk_testkit::cli::{self, Ended, Signal};
use rdsk_testkit::guest::campaign::note;

use rdsk_testkit::{Need, requires, wait_until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn lines(file: &Path) -> Vec<RunLine> {
    match History::open_existing(file) {
        Ok(Some(history)) => history.list(&Filter::default()).unwrap(),
        Ok(None) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Complete runs, counted without `store`, which keeps the file open until the process ends.
fn complete_runs(file: &Path) -> u32 {
    let database = rusqlite::Connection::open(file).unwrap();
    database.query_row("SELECT count(*) FROM runs WHERE status = 'complete'", [], |row| row.get(0)).unwrap()
}

fn check(file: &Path) {
    let database = rusqlite::Connection::open(file).unwrap();
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

/// Half of the runs are killed at any moment, the others at any moment after some of their cells were kept. The cells that were
/// seen in the history before the kill are there after it.
#[test]
fn a_kill_at_any_moment_loses_no_cell_that_was_kept() {
    let kills = if std::env::var("RDSK_CAMPAIGN").is_ok_and(|name| name == "kills") { 100 } else { 20 };
    let began = Instant::now();
    let place = Place::new();
    let mut random = SplitMix64::new(13);
    let mut with_cells = 0;
    for kill in 0..kills {
        let label = format!("kill {kill}");
        let words =
            ["paths", ".", "--rw", "read", "--size", "4M", "--budget", "3s", "--label", &label, "--quiet"];
        let running = cli::start(place.command(&words));
        let mine = || lines(&place.file()).into_iter().find(|line| line.label.as_ref() == Some(&label));
        if kill % 2 == 1 {
            let is_kept = || mine().is_some_and(|line| line.cells > 0 || line.state != State::Running);
            assert!(wait_until(SOON, is_kept), "cells are kept");
        }
        let pause_ms = random.below(if kill % 2 == 1 { 300 } else { 1000 });
        std::thread::sleep(Duration::from_millis(pause_ms));
        let before = mine();
        // One that has ended was not killed, and has to be whole all the same.
        let _ = cli::signal(running.pid(), Signal::KILL);
        let ended = running.finish(SOON).ended;
        let cells_before = before.as_ref().map_or(0, |line| line.cells);
        let after = mine();
        assert!(after.as_ref().map_or(0, |line| line.cells) >= cells_before, "{before:?}, then {after:?}");
        if let Some(line) = after {
            let mut history = History::open(&place.file()).unwrap();
            history.note_killed(Path::new("/proc")).unwrap();
            let kept = history.record(&line).unwrap();
            assert_eq!(kept.record.cells.len() as u64, line.cells);
            let is_whole = ended == Ended::Exited(0) || kept.state == State::Complete;
            assert_eq!(kept.state == State::Killed, !is_whole, "{ended:?}: {:?}", kept.state);
            with_cells += u32::from(kept.state == State::Killed && !kept.record.cells.is_empty());
        }
        check(&place.file());
    }
    assert!(with_cells > 0, "some were killed with cells");
    // The next run works, and a killed one is drawn.
    place.quiet(&RUN);
    assert_eq!(place.runs()[0]["status"], "complete");
    let killed = lines(&place.file()).into_iter().find(|line| line.state == State::Killed && line.cells > 0);
    let shown = place.run(&["show", &killed.unwrap().id]);
    assert_eq!(shown.ended, Ended::Exited(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("the process was killed"), "{}", shown.stdout);
    let result = format!("whole each time; {with_cells} had cells already");
    note("history", &format!("{kills} kills"), &result, began.elapsed());
}

#[test]
fn none_of_many_runs_at_once_is_lost() {
    let runs = if std::env::var("RDSK_CAMPAIGN").is_ok_and(|name| name == "kills") { 200 } else { 20 };
    let began = Instant::now();
    // Where a commit takes no time, so that no program waits for the others longer than for a minute.
    let place = Place::in_memory();
    let children: Vec<_> = (0..runs).map(|_| cli::start(place.command(&RUN))).collect();
    for running in children {
        let run = running.finish(SOON);
        assert_eq!((run.ended, run.stderr.as_str()), (Ended::Exited(0), ""));
    }
    let lines = lines(&place.file());
    assert_eq!(lines.len(), runs);
    assert!(lines.iter().all(|line| line.state == State::Complete && line.cells == lines[0].cells));
    check(&place.file());
    note("history", &format!("{runs} runs at once"), "none lost", began.elapsed());
}

/// The same command with its standard output in a file of its directory.
fn with_output_in(command: &Command, file: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$@\" >{file}"), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

/// Another process has the right to write for longer than the user waits. What was measured is not lost with the wait.
#[test]
fn a_signal_while_the_history_is_waited_for_costs_no_record() {
    let place = Place::new();
    place.quiet(&RUN);
    let database = rusqlite::Connection::open(place.file()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for (flags, said) in [
        (&["--json", "r.json"][..], "only in the document that was written"),
        (&["--markdown", "r.md"], "rdsk show draws it"),
    ] {
        let written = place.directory.path().join(flags[1]);
        let mut command = place.command(&[&RUN[..], flags].concat());
        command.env("TMPDIR", place.directory.path());
        let output = format!("{}.page", flags[1]);
        let running = cli::start(with_output_in(&command, &output));
        // Documents and the page are written before the history is. A signal leaves half a second for what is missing of them.
        let page = || std::fs::read_to_string(place.directory.path().join(&output)).unwrap_or_default();
        let is_whole = || page().split_once("\nDetails: ").is_some_and(|(_, more)| more.ends_with('\n'));
        assert!(wait_until(SOON, is_whole), "{flags:?}: {}", page());
        assert!(written.exists(), "{flags:?}");
        cli::signal(running.pid(), Signal::INT).unwrap();
        let run = running.finish(SOON);
        assert_eq!(run.ended, Ended::Exited(130), "{}", run.stderr);
        assert!(run.stderr.contains(said) && run.stderr.lines().count() == 1, "{}", run.stderr);
        let page = page();
        assert!(page.contains("sim:wd2500"), "the page is printed: {page}");
        if let Some(named) = run.stderr.split_whitespace().find(|word| word.ends_with(".json")) {
            assert!(Path::new(named).starts_with(place.directory.path()), "{named}");
            let body = |page: &str| page.split_once("\nDetails: ").map(|(body, _)| body.to_owned());
            assert_eq!(body(&place.quiet(&["show", named])), body(&page), "the whole Record is there");
        }
    }
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(complete_runs(&place.file()), 1);
}

/// So it is with a copy, which has a signal handler of its own.
#[test]
fn a_signal_while_a_copy_waits_for_the_history_costs_no_record() {
    let place = Place::new();
    place.quiet(&RUN);
    let database = rusqlite::Connection::open(place.file()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = place.command(&["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4"]);
        command.env("TMPDIR", place.directory.path());
        let running = cli::start(command);
        let tasks = format!("/proc/{}/task", running.pid());
        let is_waiting = || {
            let mut tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            tasks.any(|task| {
                std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "history\n")
            })
        };
        assert!(wait_until(SOON, is_waiting), "{signal:?}");
        cli::signal(running.pid(), signal).unwrap();
        let run = running.finish(SOON);
        let file = run.stderr.split_whitespace().find(|word| word.ends_with(".json"));
        assert!(run.stderr.contains("a signal came before the history had this run"), "{}", run.stderr);
        let shown = place.quiet(&["show", file.expect("the warning names a file")]);
        assert!(shown.contains("/dev/zero"), "{shown}");
    }
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(complete_runs(&place.file()), 1);
}

/// Histories in a directory that is about to become read-only.
struct Histories {
    /// Closed in order.
    closed: PathBuf,
    /// Copied while a connection was open: what it wrote last is beside the file.
    killed: PathBuf,
    /// The same without the file that SQLite needs to read those writes.
    alone: PathBuf,
    /// With a run whose process was of a boot before this one.
    cut: PathBuf,
    /// Of version 1.
    old: PathBuf,
}

impl Histories {
    fn make(place: &Place, small: &Path) -> Self {
        let (closed, killed, old) = (small.join("h.db"), small.join("killed.db"), small.join("old.db"));
        std::fs::copy(place.file(), &closed).unwrap();
        // While a connection is open, what it wrote last is beside the file.
        let database = rusqlite::Connection::open(place.file()).unwrap();
        database.execute_batch("UPDATE run SET label = 'changed'").unwrap();
        for end in ["", "-wal", "-shm"] {
            let beside = |path: &Path| format!("{}{end}", path.display());
            std::fs::copy(beside(&place.file()), beside(&killed)).unwrap();
        }
        drop(database);
        // Beside the last one its writes are there, and what SQLite needs to read them is not.
        let (cut, alone) = (small.join("cut.db"), small.join("alone.db"));
        for end in ["", "-wal"] {
            std::fs::copy(format!("{}{end}", killed.display()), format!("{}{end}", alone.display())).unwrap();
        }
        // Its process was of a boot before this one.
        std::fs::copy(&closed, &cut).unwrap();
        let database = rusqlite::Connection::open(&cut).unwrap();
        database.execute_batch("UPDATE run SET status = 'running', holder = 'before pid:[1] 1 1'").unwrap();
        drop(database);
        let database = rusqlite::Connection::open(&old).unwrap();
        let dump = include_str!("../../../store/tests/fixtures/history-1.sql");
        database.execute_batch(dump).unwrap();
        database.pragma_update(None, "application_id", u32::from_be_bytes(*b"rdsk")).unwrap();
        database.pragma_update(None, "user_version", 1).unwrap();
        drop(database);
        Self { closed, killed, alone, cut, old }
    }

    fn are_read(&self, run: &dyn Fn(&Path, &[&str]) -> cli::Run) {
        let Self { closed, killed, alone, cut, old } = self;
        for (file, label) in [(closed, "kept"), (killed, "changed")] {
            let list = run(file, &["list"]);
            assert_eq!((list.ended, list.stderr.as_str()), (Ended::Exited(0), ""));
            assert!(list.stdout.contains(&format!("({label})")), "{}", list.stdout);
            assert_eq!(run(file, &["show", label]).ended, Ended::Exited(0));
            let measured = run(file, &RUN);
            assert_eq!(measured.ended, Ended::Exited(0));
            assert!(
                measured.stderr.starts_with("warning: this run is not kept: the history ")
                    && measured.stderr.contains("can only be read")
                    && measured.stderr.lines().count() == 1,
                "{}",
                measured.stderr
            );
            let deleted = run(file, &["delete", label]);
            let (error, hint) = common::error_and_hint(&deleted);
            assert_eq!(deleted.status_code, Some(3), "{error}");
            assert!(hint.contains("rights of the file") && !hint.contains("damage"), "{error}: {hint}");
        }
        let (error, hint) = common::error_and_hint(&run(old, &["list"]));
        assert!(error.contains("history version 1") && hint.starts_with("copy the file"), "{error}: {hint}");
        let (error, hint) = common::error_and_hint(&run(alone, &["list"]));
        assert!(error.contains("alone.db-wal") && hint.contains("its -wal"), "{error}: {hint}");
        let list = run(cut, &["list"]);
        assert!(list.stdout.contains("  killed  ") && !list.stdout.contains("running"), "{}", list.stdout);
        let shown = run(cut, &["show", "last"]);
        assert!(shown.stdout.contains("was killed") && !shown.stdout.contains("goes on"), "{}", shown.stdout);
    }
}

/// On a filesystem that can only be read, a history is read: one that was closed, one whose process was killed in the midst of
/// writing, and one of an older version, which is refused in words.
#[test]
fn a_history_that_can_only_be_read_is_read_and_stays_as_it_is() {
    if !requires(&[Need::Root, Need::Tool("mount")]) {
        return;
    }
    let place = Place::new();
    place.quiet(&[&RUN[..], &["--label", "kept"]].concat());
    let small = place.directory.path().join("small %?#");
    std::fs::create_dir(&small).unwrap();
    let mount = |arguments: &[&str]| {
        let mut mount = std::process::Command::new("mount");
        mount.args(arguments).arg(&small);
        // A program that another test starts has our descriptors until it executes.
        assert!(wait_until(SOON, || mount.status().unwrap().success()));
    };
    mount(&["-t", "tmpfs", "-o", "size=8m", "rdsk-readonly"]);
    let tested = std::panic::catch_unwind(|| {
        let histories = Histories::make(&place, &small);
        mount(&["-o", "remount,ro"]);
        let run = |file: &Path, words: &[&str]| {
            let mut command = common::command(words);
            command.env("RDSK_HISTORY", file).current_dir(place.directory.path());
            cli::run(command, SOON)
        };
        histories.are_read(&run);
        let mut names: Vec<_> =
            std::fs::read_dir(&small).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "alone.db", "alone.db-wal", "cut.db", "h.db", "killed.db", "killed.db-shm", "killed.db-wal",
                "old.db"
            ]
        );
    });
    unmount(&small);
    if let Err(why) = tested {
        std::panic::resume_unwind(why);
    }
}

/// Once no process has a file of it, not even a program that another test starts, until it executes.
fn unmount(directory: &Path) {
    let mut umount = Command::new("umount");
    umount.arg(directory);
    assert!(wait_until(SOON, || umount.status().unwrap().success()));
}

/// A small tmpfs that is full before the run ends: the Record is in the file that the warning names, and the history holds what it
/// held.
#[test]
fn a_full_disk_costs_no_record_and_no_history() {
    if !requires(&[Need::Root, Need::Tool("mount")]) {
        return;
    }
    let place = Place::new();
    let small = place.directory.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=512k", "rdsk-small"]).arg(&small);
    assert!(mount.status().unwrap().success());
    let file = small.join("h.db");
    let tested = std::panic::catch_unwind(|| {
        let run = |words: &[&str]| {
            let mut command = common::command(words);
            command.env("RDSK_HISTORY", &file).env("TMPDIR", place.directory.path());
            cli::run(command, SOON)
        };
        let first = run(&RUN);
        assert_eq!((first.ended, first.stderr.as_str()), (Ended::Exited(0), ""));
        // What is left of the disk is taken, all of it.
        let filling = std::fs::write(small.join("filler"), vec![7_u8; 1 << 20]);
        assert_eq!(filling.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        let full = run(&[&RUN[..], &["--quiet"]].concat());
        assert_eq!(full.ended, Ended::Exited(0), "{}", full.stderr);
        assert!(full.stderr.contains("full") && full.stderr.lines().count() == 1, "{}", full.stderr);
        let named = full.stderr.split_whitespace().find(|word| word.ends_with(".json")).unwrap();
        assert!(Path::new(named).starts_with(place.directory.path()), "{named}");
        let shown = run(&["show", named]);
        // But for the last line, which says where the rest of the run is.
        let body = |page: &str| page.split_once("\nDetails: ").map(|(body, _)| body.to_owned());
        assert_eq!(body(&shown.stdout), body(&full.stdout), "the fallback file has the whole Record");
        assert!(body(&full.stdout).is_some(), "{}", full.stdout);
        std::fs::remove_file(small.join("filler")).unwrap();
        check(&file);
        assert_eq!(complete_runs(&file), 1);
        let next = run(&RUN);
        assert_eq!((next.ended, next.stderr.as_str()), (Ended::Exited(0), ""));
        assert_eq!(complete_runs(&file), 2);
    });
    unmount(&small);
    if let Err(why) = tested {
        std::panic::resume_unwind(why);
    }
    assert!(place.runs().iter().all(|run| !id(run).is_empty()));
}
