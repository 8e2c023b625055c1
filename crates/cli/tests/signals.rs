//! Signals and closed pipes during a run: it ends soon, with what it has, and no test file is left.
//! What a SIGKILL leaves is found by the next run, and what another run still uses is left alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::checked_run::{
    self, ask, assert_nothing_left, directory, in_a_cell, rdsk, start, start_command, test_files,
    wait_for_file, word,
};
use crate::support::given_up::stopped_by_itself;
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::cli::{self, Ended, Run, Signal};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, requires};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const SLOW_FILESYSTEM: [Need; 4] = [Need::Root, Need::Loop, Need::Ext4, Need::BlkioThrottle];
/// A run may take this long to stop on the busiest machine; the cells that it would still have to do take far longer. How
/// soon it really ends is in timing/ends.rs.
const SOON: Duration = Duration::from_secs(60);
/// Runs of which one has to stop by itself, and in time for what is shown of it.
const ATTEMPTS: usize = 3;

fn assert_interrupted_in_a_cell(record: &Value) {
    assert_eq!(record["status"], "interrupted");
    let cells = checked_run::contract::list(&record["cells"]);
    let stops: Vec<&str> = cells.iter().filter_map(|cell| cell["result"]["stop"].as_str()).collect();
    assert!(stops.contains(&"interrupted"), "{stops:?}");
    let bytes: u64 = cells.iter().filter_map(|cell| cell["result"]["bytes"].as_u64()).sum();
    assert!(bytes > MIB, "what was measured is lost: {bytes}");
}

#[test]
fn each_signal_ends_a_cell_and_keeps_what_it_saw() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        first_right(ATTEMPTS, || {
            let place = directory();
            let started = in_a_cell(place.path(), "--json -");
            let sent = Instant::now();
            started.signal(signal);
            let answer = started.answer().expect_code(130);
            assert!(sent.elapsed() < SOON, "{signal:?}: {:?}", sent.elapsed());
            assert_nothing_left(place.path());
            stopped_by_itself(&answer.record)?;
            assert_interrupted_in_a_cell(&answer.record);
            Ok(())
        });
    }
}

#[test]
fn the_page_and_the_document_of_an_interrupted_run_are_kept() {
    first_right(ATTEMPTS, || {
        let place = directory();
        let documents = directory();
        let document = documents.path().join("record.json");
        let started = in_a_cell(place.path(), &format!("--json {}", word(&document)));
        started.signal(Signal::INT);
        let run = started.end();
        assert_eq!(run.ended, Ended::Exited(130), "{}", run.stderr);
        assert!(run.stderr.contains("error: "), "{}", run.stderr);
        let record: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
        assert_eq!(checked_run::contract::complaints(&record), [""; 0]);
        assert_nothing_left(place.path());
        assert_eq!(fs::read_dir(documents.path()).unwrap().count(), 1, "an unfinished document is left");
        stopped_by_itself(&record)?;
        assert!(run.stdout.lines().count() > 3, "no page: {}", run.stdout);
        assert_interrupted_in_a_cell(&record);
        Ok(())
    });
}

#[test]
fn each_signal_ends_the_making_of_the_file() {
    if !requires(&SLOW_FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(128 * MIB).create().unwrap();
    device.mkfs_ext4("slow").unwrap();
    let mount = device.mount().unwrap();
    // To make the whole file would take two minutes.
    let limits = Limits { write_bps: Some(MIB / 2), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let line = format!("run {} --size 64M --json -", word(mount.path()));
        let started = start_command(throttle.command(rdsk(&line)));
        wait_for_file(&started, mount.path(), 1);
        let sent = Instant::now();
        started.signal(signal);
        let answer = started.answer().expect_code(130);
        assert!(sent.elapsed() < SOON, "{signal:?}: {:?}", sent.elapsed());
        assert_eq!(answer.record["status"], "interrupted");
        assert!(answer.cells().is_empty());
        assert!(answer.run.stderr.contains("interrupted"), "{}", answer.run.stderr);
        assert_nothing_left(mount.path());
    }
}

#[test]
fn a_disk_that_is_stuck_does_not_keep_the_last_words() {
    if !requires(&SLOW_FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("stuck").unwrap();
    let mount = device.mount().unwrap();
    first_right(ATTEMPTS, || tells_its_last_words(&device, mount.path()));
}

fn tells_its_last_words(device: &LoopDevice, place: &Path) -> Result<(), String> {
    // A block of 1 MiB takes two minutes, in which no signal reaches the thread that waits for it.
    let limits = Limits { write_bps: Some(MIB / 128), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let documents = directory();
    let document = documents.path().join("record.json");
    let line = format!("run {} --size 32M --json {}", word(place), word(&document));
    let started = start_command(throttle.command(rdsk(&line)));
    wait_for_file(&started, place, 0);
    started.wait_until("a thread is stuck", || is_stuck(started.pid()));
    let first = Instant::now();
    started.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    let files = test_files(place).len();
    // It gives up by itself after five seconds, for which this test may have stood still.
    let is_late = first.elapsed() >= Duration::from_secs(5);
    assert!(is_late || files == 1, "the disk is not as slow as this test needs it");
    // The second signal gives up. The kernel lets go of the file and of the process when the block is written; what
    // there is to say does not wait for that.
    let sent = Instant::now();
    started.signal(Signal::INT);
    started.wait_until("the document is there", || document.exists());
    let told = sent.elapsed();
    assert!(told < SOON, "it was silent for {told:?}");
    throttle.lift(device.major_minor()).unwrap();
    let run = started.end();
    assert_eq!(run.ended, Ended::Exited(130), "{}", run.stderr);
    assert!(run.stderr.contains("error: "), "{}", run.stderr);
    let record: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
    assert_eq!(checked_run::contract::complaints(&record), [""; 0]);
    assert_eq!(record["status"], "interrupted");
    assert_nothing_left(place);
    ensure(!is_late, || "the second signal came too late to show anything".to_owned())
}

/// Whether a thread of the process is in uninterruptible sleep and does not wake in half a second.
fn is_stuck(pid: u32) -> bool {
    let stuck_now = || -> BTreeSet<String> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let states = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        let is_told =
            |line: &&str| ["State:", "Pid:", "voluntary_"].iter().any(|word| line.starts_with(word));
        let states = states.map(|status| status.lines().filter(is_told).collect::<Vec<_>>().join(" "));
        states.filter(|state| state.contains("\tD ")).collect()
    };
    let mut stuck = stuck_now();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(50));
        let now = stuck_now();
        stuck.retain(|thread| now.contains(thread));
    }
    !stuck.is_empty()
}

#[test]
fn the_second_signal_does_not_wait_for_a_reader() {
    first_right(ATTEMPTS, is_ended_by_the_second);
}

fn is_ended_by_the_second() -> Result<(), String> {
    let place = directory();
    // A pipe that no process reads: the document is larger than it holds, and writing it never ends.
    let mut command = rdsk(&format!("run {} --size 16M --budget 30s --json -", word(place.path())));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    checked_run::wait_until("the test file is made", || {
        test_files(place.path())
            .iter()
            .any(|file| fs::metadata(file).is_ok_and(|file| file.len() == 16 * MIB))
    });
    std::thread::sleep(Duration::from_millis(300));
    cli::signal(child.id(), Signal::INT).unwrap();
    checked_run::wait_until("the test file is removed", || test_files(place.path()).is_empty());
    std::thread::sleep(Duration::from_millis(700));
    // So does that of a run which was given up after five seconds.
    ensure(child.try_wait().unwrap().is_none(), || "the document fits the pipe, which shows nothing".into())?;
    let sent = Instant::now();
    cli::signal(child.id(), Signal::INT).unwrap();
    let mut status = None;
    checked_run::wait_until("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some() || sent.elapsed() > SOON
    });
    if status.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(status.and_then(|status| status.code()), Some(130), "after {:?}", sent.elapsed());
    Ok(())
}

#[test]
fn an_ignored_hang_up_stays_ignored() {
    let place = directory();
    let line =
        format!("stream {} --rw read --size 4M --runtime 2s --precision 0.1% --json -", word(place.path()));
    let mut nohup = cli::rdsk("sh");
    nohup.args(["-c", &format!("trap '' HUP; exec {} {line}", env!("CARGO_BIN_EXE_rdsk"))]);
    let started = start_command(nohup);
    wait_for_file(&started, place.path(), 4 * MIB);
    started.signal(Signal::HUP);
    let answer = started.answer().expect_code(0);
    assert_eq!(answer.record["status"], "complete");
    assert_nothing_left(place.path());
}

#[test]
fn what_a_kill_leaves_the_next_run_removes() {
    let place = directory();
    let killed = in_a_cell(place.path(), "");
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().ended, Ended::Signalled(9));
    let orphans = test_files(place.path());
    assert_eq!(orphans.len(), 1, "a kill leaves the file; otherwise this test shows nothing");
    let orphan = word(&orphans[0]).to_owned();
    // Not everything of that kind of name is rdsk's.
    let notes = place.path().join(".rdsk-test-notes.tmp");
    fs::write(&notes, "mine\n").unwrap();
    let copied = place.path().join(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    std::os::unix::fs::symlink(&notes, &copied).unwrap();

    let run = cli::run(
        rdsk(&format!("paths {} --size 4M --bytes 1M --runtime 50ms", word(place.path()))),
        checked_run::LIMIT,
    );
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let talk = format!("{}{}", run.stdout, run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(talk.contains("removed a test file"), "nobody is told: {talk}");
    assert!(!Path::new(&orphan).exists(), "the orphan is still there");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine\n");
    assert!(fs::symlink_metadata(&copied).is_ok());
    assert_eq!(test_files(place.path()).len(), 2);
}

#[test]
fn the_record_says_that_an_orphan_was_removed() {
    let place = directory();
    let killed = in_a_cell(place.path(), "");
    killed.signal(Signal::KILL);
    let _ = killed.end();
    let orphan = test_files(place.path()).remove(0);
    let answer =
        ask(&format!("paths {} --size 4M --bytes 1M --runtime 50ms", word(place.path()))).expect_code(0);
    let notes = checked_run::contract::list(&answer.record["notes"]);
    assert!(
        notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(word(&orphan)))),
        "{notes:?}"
    );
    assert_nothing_left(place.path());
}

#[test]
fn two_runs_in_one_directory_leave_each_other_alone() {
    // On a disk that stands still the long one may have ended before the other.
    first_right(5, || {
        let place = directory();
        let line = format!("stream {} --rw read --size 4M --precision 0.1%", word(place.path()));
        let long = start(&format!("{line} --runtime 8s"));
        let file = wait_for_file(&long, place.path(), 4 * MIB);
        let short = ask(&format!("{line} --runtime 100ms")).expect_code(0);
        assert_eq!(short.record["notes"].as_array().map(Vec::len), Some(0), "{}", short.said());
        let left = test_files(place.path());
        let long = long.answer().expect_code(0);
        assert_nothing_left(place.path());
        same("the second run took the first one's file, or left its own", &left, &vec![file])?;
        // It read to the end of its time, more than once over the file.
        let whole = |cell: &Value| {
            let result = &cell["result"];
            result["bytes"].as_u64() > Some(4 * MIB) && result["stop"] == "budget"
        };
        ensure(long.cells().iter().all(whole), || long.said())
    });
}

/// Runs a pipeline whose first program is rdsk; standard error ends with its exit code.
fn piped(line: &str, reader: &str) -> Run {
    let program = env!("CARGO_BIN_EXE_rdsk");
    let mut command = cli::rdsk("sh");
    command.args(["-c", &format!("{{ {program} {line}; echo \"code $?\" >&2; }} {reader}")]);
    cli::run(command, checked_run::LIMIT)
}

#[test]
fn readers_that_leave() {
    let place = directory();
    let documents = directory();
    let document = documents.path().join("record.json");
    let measure = format!("paths {} --size 4M --bytes 1M --runtime 50ms", word(place.path()));
    let keep = format!("--json {}", word(&document));
    for (line, reader) in [
        (measure.clone(), "| head -1"),
        (measure.clone(), "| true"),
        (format!("{measure} --json -"), "| head -1"),
        (format!("{measure} --json -"), "| true"),
        (format!("{measure} {keep}"), "| true"),
        (format!("info {}", word(place.path())), "| true"),
        ("--help".to_owned(), "| true"),
    ] {
        let run = piped(&line, reader);
        assert_eq!(
            run.stderr.lines().last(),
            Some("code 0"),
            "{line} {reader}: {:?} {}",
            run.ended,
            run.stderr
        );
        assert!(!run.stderr.contains("panic") && !run.stderr.contains("error:"), "{line}: {}", run.stderr);
        if reader == "| head -1" {
            assert_eq!(run.stdout.lines().count(), 1, "{line}: {}", run.stdout);
        }
        assert_nothing_left(place.path());
    }
    let record: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
    assert_eq!(checked_run::contract::complaints(&record), [""; 0]);
    // A full disk is no reader that has left: what was to be shown is lost, and that is an error.
    let run = piped(&measure, "> /dev/full");
    assert_eq!(run.stderr.lines().last(), Some("code 4"), "{}", run.stderr);
    assert!(run.stderr.contains("error: cannot write to standard output"), "{}", run.stderr);
    assert_nothing_left(place.path());
}

#[test]
fn a_failure_is_reported_although_nobody_reads() {
    for reader in ["| true", "| head -1"] {
        let run = piped("run /nonexistent --json -", reader);
        assert_eq!(run.stderr.lines().last(), Some("code 3"), "{reader}: {}", run.stderr);
        checked_run::error_and_hint(&run);
    }
}

/// A reader that leaves has seen enough; where there was none, what was asked for is lost.
#[test]
fn a_closed_standard_output_is_a_failure() {
    let place = directory();
    let measure = format!("paths {} --size 4M --bytes 1M --runtime 50ms", word(place.path()));
    let run = piped(&measure, ">&-");
    assert_eq!(run.stderr.lines().last(), Some("code 4"), "{}", run.stderr);
    assert!(
        checked_run::error_and_hint(&run).0.contains("cannot write to standard output"),
        "{}",
        run.stderr
    );
    let run = piped("run /nonexistent --json -", ">&-");
    assert_eq!(run.stderr.lines().last(), Some("code 3"), "{}", run.stderr);
    assert!(run.stderr.contains("/nonexistent does not exist"), "{}", run.stderr);
}
