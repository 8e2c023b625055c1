//! A history on a real file: runs, cells and their columns, ids and labels, several connections, other files, old versions.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_model::{CellRecord, Record, Status};
use rdsk_store::{Filter, Found, History, Holder, Patience, RunLine, State, StoreError};
use rdsk_testkit::schema::{self, Writer};
use rdsk_testkit::{Need, requires};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A Record of this schema as rdsk wrote it, which has to be read for good.
const GOLDEN: &str = include_str!("fixtures/record-1.json");

fn golden() -> Record {
    of_today(serde_json::from_str(GOLDEN).unwrap())
}

/// A Record that is written again is of today's schema.
fn of_today(record: Record) -> Record {
    Record { schema: rdsk_model::SCHEMA.into(), ..record }
}

/// The golden Record with another id, as if it had begun so many seconds after 2026.
fn run(id: u32, seconds: i64) -> Record {
    let started_at = jiff::Timestamp::from_second(1_767_225_600 + seconds).unwrap().to_string();
    Record { id: format!("01KAP3XM2C{id:016}"), started_at, ..golden() }
}

fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/rdsk/history.db");
    (directory, path)
}

fn all(history: &History) -> Vec<RunLine> {
    history.list(&Filter::default()).unwrap()
}

fn this_process() -> Holder {
    Holder::this(Path::new("/proc")).unwrap()
}

#[test]
fn a_record_comes_back_as_it_was() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let record = golden();
    history.finish(&record).unwrap();
    let [line] = &all(&history)[..] else { panic!("one run") };
    assert_eq!(history.record(line).unwrap().record, record);
    assert_eq!(line.state, State::Complete);
    assert_eq!(line.cells, record.cells.len() as u64);
    let rates = |op: &str, is_headline: bool| {
        let of_op = |cell: &&CellRecord| {
            let verdict = cell.verdict.as_ref().map(|verdict| verdict.code.as_str());
            let is_ours = !is_headline || cell.name() == format!("headline/{op}/sequential");
            cell.workload.op.as_str() == op && verdict == Some("device") && is_ours
        };
        let rates = record.cells.iter().filter(of_op).filter_map(|cell| cell.result.bytes_per_s);
        rates.map(|rate| rate.mean).collect::<Vec<f64>>()
    };
    let shown = |op: &str| {
        let of_headline = rates(op, true).first().copied();
        of_headline.or(rates(op, false).into_iter().reduce(f64::max))
    };
    assert!(shown("read").is_some(), "the golden record has a rate of the device");
    assert_eq!(line.read_bytes_per_s, shown("read"));
    assert_eq!(line.write_bytes_per_s, shown("write"));
    // Keeping it again changes nothing.
    history.finish(&record).unwrap();
    assert_eq!(all(&history).len(), 1);
}

#[test]
fn only_the_user_may_read_it() {
    let (directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.finish(&golden()).unwrap();
    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        let mode = fs::metadata(path.with_file_name(name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mode = fs::metadata(directory.path().join("data/rdsk")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// A mount of FUSE, which ends with the test program: what was looked into stays open until then.
struct View<'path>(&'path Path);

impl Drop for View<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

/// Hosts share no memory for the index of `-wal`; a history that has one gets a rollback journal there.
#[test]
fn where_several_hosts_may_use_it_it_has_a_rollback_journal() {
    if !requires(&[Need::Root, Need::Fuse, Need::Tool("bindfs")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [below, point] = ["below", "point"].map(|name| directory.path().join(name));
    for place in [&below, &point] {
        fs::create_dir(place).unwrap();
    }
    let has_wal = |place: &Path| place.join("h.db-wal").exists();
    let mut history = History::open(&below.join("h.db")).unwrap();
    history.finish(&run(1, 1)).unwrap();
    assert!(has_wal(&below));
    drop(history);
    let mounted = std::process::Command::new("bindfs").args([&below, &point]).status().unwrap();
    assert!(mounted.success());
    let view = View(&point);
    let mut history = History::open(&point.join("h.db")).unwrap();
    history.finish(&run(2, 2)).unwrap();
    let mut other = History::open(&point.join("h.db")).unwrap();
    other.finish(&run(3, 3)).unwrap();
    assert_eq!((all(&history).len(), has_wal(&below)), (3, false));
    drop((history, other));
    drop(view);
    let history = History::open(&below.join("h.db")).unwrap();
    assert_eq!((all(&history).len(), has_wal(&below)), (3, false), "others may use it through the server");
}

#[test]
fn cells_of_a_run_that_goes_on_are_there_and_its_death_is_noted() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let record = golden();
    let begun = Record { cells: Vec::new(), findings: Vec::new(), ..record.clone() };
    history.begin(&begun, &this_process()).unwrap();
    let cells: Vec<(usize, CellRecord)> = record.cells.iter().cloned().enumerate().take(2).collect();
    history.save_cells(&begun, &cells).unwrap();
    history.save_cells(&begun, &cells[1..]).unwrap();

    let mut other = History::open_existing(&path).unwrap().unwrap();
    other.note_killed(Path::new("/proc")).unwrap();
    let line = all(&other).pop().unwrap();
    assert_eq!((line.state, line.cells, line.elapsed_ns), (State::Running, 2, None));
    let kept = other.record(&line).unwrap();
    assert_eq!(kept.record.cells, record.cells[..2]);
    assert_eq!(kept.record.status, Status::Interrupted);

    // Without a /proc/PID no process lives.
    let machine = tempfile::tempdir().unwrap();
    fs::create_dir_all(machine.path().join("sys/kernel/random")).unwrap();
    fs::copy("/proc/sys/kernel/random/boot_id", machine.path().join("sys/kernel/random/boot_id")).unwrap();
    fs::create_dir_all(machine.path().join("self/ns")).unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    std::os::unix::fs::symlink(namespace, machine.path().join("self/ns/pid")).unwrap();
    // In another container no process sees it.
    let container = tempfile::tempdir().unwrap();
    fs::create_dir_all(container.path().join("sys/kernel/random")).unwrap();
    fs::copy("/proc/sys/kernel/random/boot_id", container.path().join("sys/kernel/random/boot_id")).unwrap();
    fs::create_dir_all(container.path().join("self/ns")).unwrap();
    std::os::unix::fs::symlink("pid:[1]", container.path().join("self/ns/pid")).unwrap();
    other.note_killed(container.path()).unwrap();
    let line = all(&other).pop().unwrap();
    assert_eq!((line.state, line.state.as_str(), line.cells), (State::Elsewhere, "elsewhere", 2));
    assert_eq!(other.record(&line).unwrap().record.status, Status::Interrupted);
    other.note_killed(machine.path()).unwrap();
    let line = all(&other).pop().unwrap();
    assert_eq!(line.state, State::Killed);
    assert_eq!(other.record(&line).unwrap().record.error.unwrap().code, "killed");
    // A run that was taken for dead and is not overwrites that at its end.
    history.finish(&record).unwrap();
    assert_eq!(all(&other).pop().unwrap().state, State::Complete);
}

#[test]
fn words_name_runs() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    assert_eq!(history.find("last").unwrap(), Found::Nothing);
    for number in 1..=3 {
        let label = Some(if number == 2 { "before" } else { "after" }.to_owned());
        history.finish(&Record { label, ..run(number, i64::from(number)) }).unwrap();
    }
    let id_in = |history: &History, word: &str| match history.find(word).unwrap() {
        Found::Run(line) => line.id,
        found => panic!("{word}: {found:?}"),
    };
    let id_of = |word: &str| id_in(&history, word);
    assert_eq!(id_of("last"), run(3, 0).id);
    assert_eq!(id_of("after"), run(3, 0).id, "the newest of a label");
    assert_eq!(id_of("before"), run(2, 0).id);
    assert_eq!(id_of(&run(1, 0).id), run(1, 0).id);
    assert_eq!(id_of(&run(1, 0).id.to_lowercase()), run(1, 0).id);
    assert_eq!(id_of(&run(1, 0).id[..26]), run(1, 0).id);
    assert!(matches!(history.find("01KAP3"), Ok(Found::Several(runs)) if runs.len() == 3));
    // A label that is the beginning of several ids names its run, but the beginning of one id is that.
    history.finish(&Record { label: Some("01KAP3".into()), ..run(4, 4) }).unwrap();
    assert_eq!(id_in(&history, "01KAP3"), run(4, 0).id);
    assert!(matches!(history.find("01kap3"), Ok(Found::Several(runs)) if runs.len() == 4));
    let prefix = run(1, 0).id;
    history.finish(&Record { label: Some(prefix[..25].into()), ..run(40, 5) }).unwrap();
    assert!(matches!(history.find(&prefix[..25]), Ok(Found::Run(line)) if line.id == run(40, 0).id));
    assert_eq!(id_in(&history, &run(40, 0).id[..25]), run(40, 0).id);
    for nothing in ["01K", "nobody", "", "*", "01KAP3XM2?", "before'; DROP TABLE run; --"] {
        assert_eq!(history.find(nothing).unwrap(), Found::Nothing, "{nothing}");
    }
}

#[test]
fn filters_and_limits_choose_the_newest_first() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    for number in 0..5 {
        let mut record = run(number, i64::from(number) * 100);
        record.targets[0].name = format!("/srv/{number}\"%_'");
        record.label = (number == 4).then(|| "new".into());
        history.finish(&record).unwrap();
    }
    let start = |seconds: i64| Some((1_767_225_600 + seconds) * 1_000_000_000);
    let numbers = |filter: Filter| -> Vec<i64> {
        let lines = history.list(&filter).unwrap();
        lines.iter().map(|line| (line.started_ns / 1_000_000_000 - 1_767_225_600) / 100).collect()
    };
    let none = Filter::default();
    assert_eq!(numbers(none.clone()), [4, 3, 2, 1, 0]);
    assert_eq!(numbers(Filter { limit: Some(2), ..none.clone() }), [4, 3]);
    assert_eq!(numbers(Filter { since_ns: start(200), until_ns: start(400), ..none.clone() }), [3, 2]);
    assert_eq!(numbers(Filter { target: Some("/3\"%".into()), ..none.clone() }), [3]);
    assert_eq!(numbers(Filter { target: Some("%".into()), ..none.clone() }).len(), 5);
    assert_eq!(numbers(Filter { target: Some("/srv/_".into()), ..none.clone() }), [0; 0], "no pattern");
    assert_eq!(numbers(Filter { label: Some("new".into()), ..none.clone() }), [4]);
    let experiment = golden().cells[0].experiment.as_str().to_owned();
    assert_eq!(numbers(Filter { experiment: Some(experiment), ..none.clone() }).len(), 5);
    assert_eq!(numbers(Filter { experiment: Some("zon".into()), ..none }), [0; 0]);
}

#[test]
fn a_relative_name_is_listed_by_its_whole_path() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let named = |id: u32, name: &str, path: Option<&str>, made_by_rdsk: bool| {
        let mut record = run(id, i64::from(id));
        let target = &mut record.targets[0];
        (target.name, target.path, target.made_by_rdsk) =
            (name.into(), path.map(str::to_owned), made_by_rdsk);
        record.targets.truncate(1);
        record
    };
    for record in [
        named(1, ".", Some("/srv/data/.rdsk-1.tmp"), true),
        named(2, "../disk.img", Some("/srv/disk.img"), false),
        named(3, "/dev/disk/by-id/x", Some("/dev/sda"), false),
        named(4, "sim:wd2500", None, false),
        named(5, ".", Some("/.rdsk-1.tmp"), true),
    ] {
        history.finish(&record).unwrap();
    }
    let names: Vec<String> = all(&history).iter().rev().flat_map(|run| run.targets.clone()).collect();
    assert_eq!(names, ["/srv/data", "/srv/disk.img", "/dev/disk/by-id/x", "sim:wd2500", "/"]);
    let filter = Filter { target: Some("/srv".into()), ..Filter::default() };
    assert_eq!(history.list(&filter).unwrap().len(), 2, "found wherever it is looked for");
}

#[test]
fn what_is_deleted_is_gone_with_its_cells_and_its_room() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    for number in 0..20 {
        history.finish(&run(number, 0)).unwrap();
    }
    drop(history);
    let before = fs::metadata(&path).unwrap().len();
    let mut history = History::open(&path).unwrap();
    let lines = all(&history);
    history.delete(&lines[1..]).unwrap();
    history.delete(&lines[1..]).unwrap();
    assert_eq!(all(&history), lines[..1]);
    assert_eq!(history.record(&lines[0]).unwrap().record.cells.len(), golden().cells.len());
    assert!(history.record(&lines[1]).is_err());
    drop(history);
    let after = fs::metadata(&path).unwrap().len();
    assert!(after * 4 < before, "{before} bytes, then {after}");
}

#[test]
fn files_of_others_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("foreign.db");
    let database = rusqlite::Connection::open(&foreign).unwrap();
    database.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1)").unwrap();
    database.close().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "my thesis").unwrap();
    let header = directory.path().join("header");
    fs::write(&header, b"SQLite format 3\0").unwrap();
    for path in [&foreign, &text, &header] {
        let before = (fs::read(path).unwrap(), fs::metadata(path).unwrap().mtime_nsec());
        for opened in [History::open(path).map(drop), History::open_existing(path).map(drop)] {
            assert!(matches!(opened, Err(StoreError::Foreign { .. })), "{opened:?}");
        }
        assert_eq!((fs::read(path).unwrap(), fs::metadata(path).unwrap().mtime_nsec()), before);
    }
    assert!(matches!(History::open(directory.path()), Err(StoreError::Foreign { .. })));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "nothing was left beside them");
    assert!(History::open_existing(&directory.path().join("none")).unwrap().is_none());
    assert!(matches!(History::open(&text.join("below")), Err(StoreError::File { .. })));
}

#[test]
fn a_newer_version_is_refused_in_words() {
    let (_directory, path) = scratch();
    History::open(&path).unwrap().finish(&golden()).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    database.close().unwrap();
    let before = fs::read(&path).unwrap();
    let error = History::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { version: 999, .. }), "{error:?}");
    assert!(error.to_string().contains("newer rdsk"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_version_is_refused_where_only_the_companion_has_it() {
    let (_directory, path) = scratch();
    History::open(&path).unwrap().finish(&golden()).unwrap();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    // As a kill leaves them: no process has the copies open.
    let copy = path.with_file_name("copy.db");
    let beside = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    fs::copy(&path, &copy).unwrap();
    fs::copy(beside(&path), beside(&copy)).unwrap();
    let bytes = || [&copy, &beside(&copy)].map(|file| fs::read(file).unwrap());
    let before = bytes();
    for file in [&path, &copy] {
        for opened in [History::open(file).map(drop), History::open_existing(file).map(drop)] {
            assert!(matches!(opened, Err(StoreError::Newer { version: 999, .. })), "{opened:?}");
        }
    }
    assert_eq!(bytes(), before);
}

fn pragma(path: &Path, name: &str) -> i64 {
    let database = rusqlite::Connection::open(path).unwrap();
    database.pragma_query_value(None, name, |row| row.get(0)).unwrap()
}

/// One text for each version, as `.dump` of sqlite3 writes it, with the golden Record in it.
#[test]
fn every_older_version_is_read_and_becomes_this_one() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for version in 1..=rdsk_store::VERSION {
        let (_scratch, path) = scratch();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let database = rusqlite::Connection::open(&path).unwrap();
        let dump = fs::read_to_string(directory.join(format!("history-{version}.sql"))).unwrap();
        database.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
        database.execute_batch(&dump).unwrap();
        database.pragma_update(None, "application_id", u32::from_be_bytes(*b"rdsk")).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
        database.close().unwrap();
        let mut history = History::open(&path).unwrap();
        let [line] = &all(&history)[..] else { panic!("version {version} has one run") };
        match history.record(line) {
            Ok(kept) => assert_eq!(of_today(kept.record), golden(), "version {version}"),
            // What it kept of a run is compressed in a way that is refused in words; its line and its cells' columns are there.
            Err(error) => assert!(version == 2 && error.to_string().contains("by zstd"), "{error}"),
        }
        let free = pragma(&path, "freelist_count");
        assert_eq!(free, 0, "version {version} leaves room behind");
        history.finish(&run(7, 7)).unwrap();
        assert_eq!(all(&history).len(), 2);
        let database = rusqlite::Connection::open(&path).unwrap();
        let found: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(found, rdsk_store::VERSION);
        let columns = |view: &str| -> Vec<String> {
            let statement = database.prepare(&format!("SELECT * FROM {view}")).unwrap();
            statement.column_names().map(str::to_owned).collect()
        };
        // docs/history.md promises these names.
        let page = include_str!("../../../docs/history.md");
        for (view, column) in
            ["runs", "cells"].iter().flat_map(|view| columns(view).into_iter().map(move |name| (view, name)))
        {
            assert!(
                page.contains(&format!("`{column}`")),
                "docs/history.md does not tell of {column} of {view}"
            );
        }
    }
}

#[test]
fn an_empty_file_becomes_a_history_and_many_may_create_one_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    // To look for a history changes nothing.
    assert!(History::open_existing(&path).unwrap().is_none());
    let facts = fs::metadata(&path).unwrap();
    assert_eq!((facts.len(), facts.mode() & 0o777), (0, 0o644));
    std::thread::scope(|scope| {
        for number in 0..16 {
            let path = &path;
            scope.spawn(move || {
                let mut history = History::open(path).unwrap();
                history.wait(Patience::Long).unwrap();
                history.begin(&Record { cells: Vec::new(), ..run(number, 0) }, &this_process()).unwrap();
                history.finish(&run(number, 0)).unwrap();
            });
        }
    });
    let history = History::open(&path).unwrap();
    assert_eq!(all(&history).len(), 16);
    assert!(all(&history).iter().all(|line| line.state == State::Complete));
    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        let mode = fs::metadata(path.with_file_name(name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// What the history grew by, with its companions folded into it.
fn size_of(path: &Path) -> u64 {
    let database = rusqlite::Connection::open(path).unwrap();
    let busy: i64 = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0, "nobody else uses it");
    fs::metadata(path).unwrap().len()
}

/// The Record of a default run: `rdsk run DIRECTORY` as root with BPF on a virtual machine, 60 s.
fn default_run() -> serde_json::Value {
    let packed: &[u8] = include_bytes!("fixtures/default-run.json.zlib");
    serde_json::from_reader(flate2::read::ZlibDecoder::new(packed)).unwrap()
}

/// A key that was written once is never renamed or removed within its schema; those that came later may be missing.
#[test]
fn the_schema_of_today_names_every_key_of_what_was_kept() {
    for document in [serde_json::from_str(GOLDEN).unwrap(), default_run()] {
        assert_eq!(schema::complaints(&document, Writer::Older), [""; 0]);
    }
}

/// What docs/history.md promises of a default run, with one that was measured, kept as the program keeps it.
#[test]
fn a_default_run_takes_less_than_300_kb() {
    const MOST_BYTES: u64 = 300_000;
    let record = of_today(serde_json::from_value(default_run()).unwrap());
    assert!(record.cells.len() > 40 && record.elapsed_ns > 55_000_000_000, "it is a default run");
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.finish(&run(1, 1)).unwrap();
    let before = size_of(&path);
    let begun = Record { cells: Vec::new(), findings: Vec::new(), ..record.clone() };
    history.begin(&begun, &this_process()).unwrap();
    let cells: Vec<(usize, CellRecord)> = record.cells.iter().cloned().enumerate().collect();
    for turn in cells.chunks(3).chain(cells.chunks(7)) {
        history.save_cells(&begun, turn).unwrap();
    }
    history.finish(&record).unwrap();
    let grown = size_of(&path) - before;
    assert!(grown < MOST_BYTES, "{grown} bytes");
    assert_eq!(history.record(&all(&history)[0]).unwrap().record, record, "and nothing of it is lost");
    // Each datum is there once.
    let database = rusqlite::Connection::open(&path).unwrap();
    let left: i64 = database.query_row("SELECT count(*) FROM cell_document", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_record_without_a_time_cannot_be_kept_and_says_so() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let error = history.finish(&Record { started_at: "yesterday".into(), ..golden() }).unwrap_err();
    assert!(error.to_string().contains("started_at"), "{error}");
    assert!(all(&history).is_empty());
}

#[test]
fn damage_is_an_error_in_words() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.finish(&golden()).unwrap();
    let line = all(&history).pop().unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    let whole = history.record(&line).unwrap().record;
    database.execute_batch("UPDATE document SET json = substr(json, 1, length(json) - 9)").unwrap();
    let error = history.record(&line).unwrap_err();
    assert!(
        matches!(error, StoreError::Unreadable { .. }) && error.to_string().contains(&line.id),
        "{error}"
    );
    assert!(error.is_damaged() && !error.is_denied());
    // So is that of one cell of a run that goes on.
    let begun = Record { cells: Vec::new(), ..whole.clone() };
    history.begin(&begun, &this_process()).unwrap();
    history.save_cells(&begun, &[(0, whole.cells[0].clone())]).unwrap();
    assert_eq!(history.record(&line).unwrap().record.cells, whole.cells[..1]);
    database.execute_batch("UPDATE cell_document SET json = x'00'").unwrap();
    assert!(matches!(history.record(&line), Err(StoreError::Unreadable { .. })));
}
