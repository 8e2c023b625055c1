//! Faults outside rdsk: disks that fail or fill up, targets that disappear or are none. The real binary reports what
//! happened, keeps what it measured, leaves no test file, and never hangs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::support::checked_run::{
    self, Answer, Started, ask, assert_nothing_left, directory, rdsk, start, start_command, test_files, word,
    written_file,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::cli;
use rdsk_testkit::fusedisk::{Behaviour, Extra, FuseDisk, Served};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, requires};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const DEVICE: [Need; 2] = [Need::Root, Need::Loop];
const FILESYSTEM: [Need; 3] = [Need::Root, Need::Loop, Need::Ext4];
const EIO: u64 = 5;
const ENOSPC: u64 = 28;
/// Runs of which one has to be under way when its fault comes.
const ATTEMPTS: usize = 3;

fn done(command: &mut Command) {
    let output = command.output().expect("util-linux and coreutils are installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Bytes that the device has read and written; its counters go on from one attachment to the next.
fn moved_bytes(device: &LoopDevice) -> u64 {
    const SECTORS_READ: usize = 2;
    const SECTORS_WRITTEN: usize = 6;
    let stat = device.sysfs("stat").unwrap_or_default();
    let numbers: Vec<u64> = stat.split_whitespace().flat_map(str::parse).collect();
    [SECTORS_READ, SECTORS_WRITTEN].iter().filter_map(|&index| numbers.get(index)).sum::<u64>() * 512
}

/// Starts a run and waits until the device has moved so much that only a measurement can have done it.
fn start_and_wait_for(device: &LoopDevice, line: &str, bytes: u64) -> Started {
    let before = moved_bytes(device);
    let started = start(line);
    started.wait_until("the device is busy", || moved_bytes(device) > before + bytes);
    started
}

/// Waits until a test file of at least `bytes` is in `place`.
fn wait_for_file(started: &Started, place: &Path, bytes: u64) {
    started.wait_until("the test file is there", || {
        test_files(place).iter().any(|file| fs::metadata(file).is_ok_and(|file| file.len() >= bytes))
    });
}

fn errors(answer: &Answer) -> Vec<&Value> {
    answer.cells().iter().flat_map(|cell| checked_run::contract::list(&cell["result"]["errors"])).collect()
}

fn measured_bytes(answer: &Answer) -> u64 {
    answer.cells().iter().filter_map(|cell| cell["result"]["bytes"].as_u64()).sum()
}

/// Asserts that a command line is refused before anything is measured, with these words in its error.
fn fails_at_once(line: &str, code: i32, words: &[&str]) -> Answer {
    let answer = ask(line).expect_code(code);
    let (error, hint) = answer.error_and_hint();
    for word in words {
        assert!(error.contains(word), "{line}: no \"{word}\" in: {error}");
    }
    assert!(!hint.is_empty());
    assert!(answer.cells().is_empty(), "{line} measured: {}", answer.said());
    answer
}

#[test]
fn a_disk_that_fails_in_mid_run() {
    if !requires(&DEVICE) {
        return;
    }
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    let line = format!("stream {} --rw read --runtime 20s --precision 0.1%", word(device.path()));
    let started = start_and_wait_for(&device, &line, 16 * MIB);
    device.truncate_backing(4 * MIB).unwrap();
    let answer = started.answer().expect_code(4);
    let failed = errors(&answer);
    assert!(!failed.is_empty(), "{}", answer.said());
    for error in failed {
        assert_eq!(error["errno"], EIO, "{error}");
        assert!(error["offset_bytes"].as_u64() >= Some(4 * MIB - 16384), "{error}");
        assert!(error["message"].as_str().unwrap().contains("Input/output error"), "{error}");
    }
    assert!(measured_bytes(&answer) > MIB, "what was measured before is lost");
    let (error, _) = answer.error_and_hint();
    assert!(error.contains("Input/output error"), "{error}");
}

#[test]
fn a_disk_that_fails_from_the_start_fails_one_cell_after_the_other() {
    if !requires(&DEVICE) {
        return;
    }
    let device = LoopDevice::builder().size(16 * MIB).create().unwrap();
    device.truncate_backing(0).unwrap();
    let answer = ask(&format!("run {} --budget 2s", word(device.path()))).expect_code(4);
    assert!(errors(&answer).iter().all(|error| error["errno"] == EIO), "{}", answer.said());
    assert!(
        answer
            .cells()
            .iter()
            .all(|cell| cell["verdict"].is_null() || cell["verdict"]["code"] == "incomplete")
    );
    let rates = answer.cells().iter().filter(|cell| cell["result"]["bytes_per_s"].is_object());
    assert_eq!(rates.count(), 0, "a rate of a disk that gave nothing");
}

/// A read that hangs for twice as long as the windows of a visit reach that was planned for a fraction of a second: the run shows the
/// stall as long as it was.
#[test]
fn a_read_that_hangs_for_longer_than_the_windows_of_its_visit_reach() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    first_right(2 * ATTEMPTS, read_that_hangs);
}

/// `Err` with the reason if the read did not hang in the midst of a visit.
fn read_that_hangs() -> Result<(), String> {
    const HELD_NS: u64 = 14_000_000_000;
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let held = Extra { every: 200, costs_ns: HELD_NS };
    disk.set_behaviour(Behaviour { extra: Some(held), ..Behaviour::single(1_000_000) });
    // A busy machine may take two seconds before the first read.
    let line = format!("stream {} --rw read --pattern random --bs 4k --budget 5s", device.path().display());
    let answer = ask(&line);
    let log = disk.log();
    let record = &answer.record;
    let waited = |cell: &&Value| cell["result"]["latency_ns"]["max"].as_u64().is_some_and(|ns| ns >= HELD_NS);
    let cells = answer.cells();
    let cell = cells.iter().find(|cell| waited(cell));
    let Some(result) = cell.map(|cell| &cell["result"]) else {
        return Err(format!("nothing hung: {record}"));
    };
    let width_ns = result["windows"]["width_ns"].as_u64().expect("a width");
    let bytes = checked_run::contract::list(&result["windows"]["bytes"]);
    let visits = checked_run::contract::list(&result["visits"]);
    let returned = |visit: &Value| visit["to_return_ns"].as_u64().expect("a time");
    let needed: u64 = visits.iter().map(|visit| returned(visit).div_ceil(width_ns)).sum();
    assert_eq!(bytes.len() as u64, needed, "each visit has its windows");
    let stalls = checked_run::contract::list(&result["stalls"]["seen"]);
    let longest = stalls.iter().filter_map(|stall| stall["lasts_ns"].as_u64()).max();
    let Some(told_ns) = longest.filter(|ns| *ns > HELD_NS / 4) else {
        return Err(format!("it hung at the start of a visit: {result}"));
    };
    let visit_ns = visits.iter().map(returned).max().expect("a visit");
    assert!(told_ns <= visit_ns, "{told_ns} ns in a visit of {visit_ns} ns");
    let took_ns = |served: &&Served| served.answered_ns - served.arrival_ns;
    let held_ns = log
        .iter()
        .filter(|served| took_ns(served) >= HELD_NS)
        .map(|served| took_ns(&served))
        .min()
        .expect("one was held");
    assert!(told_ns as f64 > 0.9 * held_ns as f64, "{told_ns} of {held_ns} ns: {}", result["stalls"]);
    Ok(())
}

#[test]
fn a_disk_that_takes_no_more_writes() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::BlkioThrottle]) {
        return;
    }
    first_right(ATTEMPTS, takes_no_more_writes);
}

fn takes_no_more_writes() -> Result<(), String> {
    // A disk that promises more than the filesystem below it can hold once another program has filled that, as thin volumes do.
    let below = LoopDevice::builder().in_memory().size(192 * MIB).create().unwrap();
    below.mkfs_ext4("thin").unwrap();
    let mount = below.mount().unwrap();
    let backing = mount.path().join("image");
    fs::File::create(&backing).unwrap().set_len(128 * MIB).unwrap();
    let device = LoopDevice::builder().over(&backing).create().unwrap();
    let line = format!(
        "paths {} --rw write --destroy {} --bytes 64M --runtime 5m --json -",
        word(device.path()),
        word(&backing)
    );
    // The first pass takes four seconds, in which the other program comes, unless this one stands still.
    let limits = Limits { write_bps: Some(16 * MIB), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let before = moved_bytes(&device);
    let started = start_command(throttle.command(rdsk(&line)));
    started.wait_until("the device is busy", || moved_bytes(&device) > before + 4 * MIB);
    let other = format!("of={}", mount.path().join("other").display());
    let filled = Command::new("dd").args(["if=/dev/zero", other.as_str(), "bs=1M"]).output().unwrap();
    assert!(!filled.status.success(), "the filesystem has become full");
    let answer = started.answer();
    let cell =
        |id: &str| answer.cells().iter().find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    let direct = cell("paths/write/direct");
    ensure(direct["result"]["stop"] == "error", || format!("{direct:#}"))?;
    assert_eq!(answer.code(), 4, "{}", answer.said());
    let errno = direct["result"]["errors"][0]["errno"].as_u64();
    assert!(errno == Some(EIO) || errno == Some(ENOSPC), "{direct:#}");
    // Memory took the buffered writes; only the flush learns that they never arrived.
    let buffered = cell("paths/write/buffered");
    assert_eq!(buffered["result"]["stop"], "error", "lost writes pass as written: {buffered:#}");
    answer.error_and_hint();
    Ok(())
}

#[test]
fn a_test_file_that_does_not_fit() {
    if !requires(&FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("small").unwrap();
    let mount = device.mount().unwrap();
    let place = word(mount.path());
    for size in ["55M", "63M", "1G", "1000T"] {
        let line = format!("paths {place} --size {size} --runtime 50ms");
        let answer = fails_at_once(&line, 3, &["does not fit", place]);
        assert_eq!(answer.error_code(), "no-space");
        assert_nothing_left(mount.path());
    }
    // The hint holds what it promises, and a tenth stays free.
    let hint = ask(&format!("paths {place} --size 1G")).error_and_hint().1;
    let size = hint.split("at most ").nth(1).unwrap_or_else(|| panic!("no size in: {hint}"));
    // We may be too late to see the file.
    first_right(10, || {
        let started = start(&format!("paths {place} --size {size} --bytes 1M --runtime 600ms"));
        let mut least = u64::MAX;
        started.wait_until("the test file comes and goes", || {
            let stat = rustix::fs::statvfs(mount.path()).unwrap();
            least = least.min(stat.f_bavail * 100 / stat.f_blocks);
            least < 20 && test_files(mount.path()).is_empty()
        });
        started.answer().expect_code(0);
        assert!(least >= 9, "{least}% were free");
        ensure(least < 20, || format!("{least}% were free"))
    });
    // Without --size it fits by itself.
    let answer = ask(&format!("run {place} --budget 1s")).expect_code(0);
    let bytes = answer.record["targets"][0]["size_bytes"].as_u64().unwrap();
    assert!((MIB..58 * MIB).contains(&bytes), "{bytes}");
    assert_nothing_left(mount.path());
}

/// Makes a test file of 32 MiB on a slow filesystem while another program takes all the space that is left.
fn crowded_out(device: &LoopDevice) -> Answer {
    let mount = device.mount().expect("its filesystem is new");
    // Slow until the space is gone, so that this test is not too late.
    let limits = Limits { write_bps: Some(MIB), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).expect("looked for by requires()");
    let line = format!("paths {} --size 32M --bytes 1M --runtime 50ms --json -", word(mount.path()));
    let started = start_command(throttle.command(rdsk(&line)));
    wait_for_file(&started, mount.path(), MIB);
    let mut other = fs::File::create(mount.path().join("other")).expect("there is space yet");
    // It stands still while the space goes, so that no disk is too slow for that.
    started.signal(cli::Signal::STOP);
    let chunk = vec![1_u8; 1 << 20];
    while other.write_all(&chunk).is_ok() {}
    let _ = other.sync_data();
    assert_eq!(test_files(mount.path()).len(), 1, "too late: the file was made");
    throttle.lift(device.major_minor()).expect("it was limited");
    started.signal(cli::Signal::CONT);
    let answer = started.answer();
    assert_nothing_left(mount.path());
    answer
}

#[test]
fn a_filesystem_that_fills_up_while_the_file_is_made() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::BlkioThrottle]) {
        return;
    }
    // Without extents ext4 cannot reserve, as many filesystems cannot.
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    done(Command::new("mkfs.ext4").args(["-q", "-F", "-O", "^extent,^64bit"]).arg(device.path()));
    let answer = crowded_out(&device).expect_code(3);
    assert_eq!(answer.error_code(), "no-space", "{}", answer.said());
    assert!(answer.error_and_hint().0.contains("no space is left"), "{}", answer.said());
    // Where space can be reserved, no process takes it away.
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("reserved").unwrap();
    crowded_out(&device).expect_code(0);
}

#[test]
fn a_test_file_that_another_unlinks() {
    let place = directory();
    let started =
        start(&format!("stream {} --size 16M --runtime 500ms --precision 0.1%", word(place.path())));
    wait_for_file(&started, place.path(), 16 * MIB);
    started.wait_for_io(2000);
    for file in test_files(place.path()) {
        fs::remove_file(file).unwrap();
    }
    let answer = started.answer();
    // The descriptor still leads to the file, so that the figures are good; otherwise the run says what happened.
    match answer.code() {
        0 => assert!(answer.cells().iter().all(|cell| cell["result"]["bytes"].as_u64() > Some(0))),
        4 => assert!(!answer.error_and_hint().0.is_empty()),
        code => panic!("exit {code}: {}", answer.said()),
    }
    assert_nothing_left(place.path());
}

/// A loop device of a chosen number over a test's own file. Dropped, it is detached.
struct Attached<'name>(&'name str);

impl<'name> Attached<'name> {
    fn to(name: &'name str, file: &Path) -> Option<Self> {
        let done =
            Command::new("losetup").arg(name).arg(file).output().is_ok_and(|output| output.status.success());
        // Not then_some(), which would make one to drop it.
        done.then(|| Self(name))
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        // Not asserted: a second panic while the first one unwinds would hide it.
        let _ = Command::new("losetup").arg("--detach").arg(self.0).output();
    }
}

#[test]
fn a_device_that_is_detached_in_mid_run() {
    if !requires(&DEVICE) {
        return;
    }
    first_right(ATTEMPTS, is_detached_in_mid_run);
}

fn is_detached_in_mid_run() -> Result<(), String> {
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    let other = directory();
    let innocent = other.path().join("innocent");
    written_file(&innocent, 32 << 20);
    let before = checked_run::file_hash(&innocent);
    let line = format!("stream {} --rw write --runtime 4s", word(device.path()));
    let line = format!("{line} --precision 0.1% --destroy {}", word(device.backing_path()));
    let started = start_and_wait_for(&device, &line, 4 * MIB);
    done(Command::new("losetup").arg("--detach").arg(device.path()));
    // The kernel lets it go at the next close, and the number is soon another disk's.
    let name = word(device.path());
    let mut attached = None;
    started.wait_until("the number is free", || {
        attached = Attached::to(name, &innocent);
        attached.is_some()
    });
    let answer = started.answer();
    drop(attached);
    assert_eq!(
        checked_run::file_hash(&innocent),
        before,
        "the run wrote to another disk that took the number"
    );
    ensure(answer.code() != 0, || "it was done before the device went".to_owned())?;
    let answer = answer.expect_code(4);
    assert!(measured_bytes(&answer) > 0, "what was measured before is lost: {}", answer.said());
    assert!(answer.error_and_hint().0.contains(name), "{}", answer.said());
    Ok(())
}

#[test]
fn directories_that_take_no_file() {
    let place = directory();
    let missing = place.path().join("missing");
    fails_at_once(&format!("run {}", word(&missing)), 3, &["missing", "does not exist"]);
    let file = place.path().join("file");
    written_file(&file, 4096);
    fails_at_once(&format!("run {}/inside", word(&file)), 3, &["file/inside"]);
    if !requires(&FILESYSTEM) {
        return;
    }
    let device = LoopDevice::builder().size(16 * MIB).create().unwrap();
    device.mkfs_ext4("frozen").unwrap();
    let mount = device.mount().unwrap();
    done(Command::new("mount").args(["-o", "remount,ro"]).arg(mount.path()));
    let before = device.content_hash().unwrap();
    let answer = fails_at_once(&format!("run {}", word(mount.path())), 3, &["read-only", word(mount.path())]);
    assert_eq!(answer.error_code(), "read-only");
    assert!(answer.error_and_hint().1.contains("director"), "{}", answer.said());
    assert_eq!(device.content_hash().unwrap(), before);
    assert_nothing_left(mount.path());
}

#[test]
fn targets_that_are_none() {
    let place = directory();
    let path = |name: &str| place.path().join(name);
    fs::write(path("empty"), "").unwrap();
    done(Command::new("mkfifo").arg(path("fifo")));
    let _listener = UnixListener::bind(path("socket")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    symlink("circle", path("circle")).unwrap();
    for (name, words) in [
        ("empty", &["is empty", "0 bytes"][..]),
        ("fifo", &["pipe"]),
        ("socket", &["socket"]),
        ("dangling", &["dangling"]),
        ("circle", &["circle"]),
    ] {
        let target = path(name);
        for line in
            [format!("run {}", word(&target)), format!("paths {} --rw write --overwrite", word(&target))]
        {
            fails_at_once(&line, 3, words);
        }
    }
    for name in ["/dev/null", "/dev/zero", "/dev/full"] {
        fails_at_once(&format!("run {name}"), 3, &[name, "character device"]);
    }
    fails_at_once("run sim:no-such-disk", 2, &["sim", "no-such-disk"]);
    assert_nothing_left(place.path());
    if requires(&DEVICE) {
        let device = LoopDevice::builder().size(0).create().unwrap();
        fails_at_once(&format!("run {}", word(device.path())), 3, &["is empty"]);
    }
}

#[test]
fn a_file_smaller_than_a_block() {
    let place = directory();
    let path = place.path().join("tiny");
    written_file(&path, 1000);
    let name = word(&path);
    fails_at_once(&format!("paths {name} --bs 4k"), 3, &["1000 bytes", "4096 bytes"]);
    fails_at_once(&format!("stream {name} --offset 1000"), 2, &["--offset", "1000 bytes"]);
    // What fits is measured, and what does not says so.
    let answer = ask(&format!("run {name} --budget 2s")).expect_code(0);
    assert!(measured_bytes(&answer) > 0, "{}", answer.said());
    let large = answer.cells().iter().filter(|cell| cell["workload"]["block_bytes"].as_u64() > Some(1000));
    for cell in large {
        assert_eq!(cell["result"]["stop"], "not_applicable", "{cell:#}");
        let why = cell["result"]["why"].as_str().unwrap();
        assert!(why.contains("smaller than one block") || why.contains("blocks of this size"), "{cell:#}");
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 1000);
}

#[test]
fn direct_io_that_is_not_aligned() {
    if !requires(&DEVICE) {
        return;
    }
    let device = LoopDevice::builder().size(16 * MIB).sector_size(4096).create().unwrap();
    let line = format!("align {} --bs 1,27,512,4096 --runtime 50ms --bytes 4M", word(device.path()));
    let answer = ask(&line).expect_code(0);
    let mut refused = 0;
    for cell in answer.cells().iter().filter(|cell| cell["workload"]["path"] == "direct") {
        let aligned = cell["workload"]["block_bytes"] == 4096 && cell["workload"]["shift_bytes"] == 0;
        assert_eq!(cell["result"]["stop"] == "not_applicable", !aligned, "{cell:#}");
        if !aligned {
            refused += 1;
            assert!(cell["result"]["why"].as_str().unwrap().contains("EINVAL"), "{cell:#}");
            assert!(checked_run::contract::list(&cell["result"]["errors"]).is_empty());
        }
    }
    // Three sizes in two columns, and three shifts in one.
    assert_eq!(refused, 9);
    // Nothing but n/a is no failure either.
    let answer = ask(&format!("paths {} --bs 27 --runtime 50ms --bytes 27k", word(device.path())));
    assert_eq!(answer.code(), 0, "{}", answer.said());
}

#[test]
fn documents_that_cannot_be_written_are_noticed_before_measuring() {
    let place = directory();
    let missing = place.path().join("missing/record.json");
    let line = format!("run {} --budget 60s --json {}", word(place.path()), word(&missing));
    let run = cli::run(rdsk(&line), checked_run::LIMIT);
    assert_eq!(run.status_code, Some(3), "{}", run.stderr);
    assert!(checked_run::error_and_hint(&run).0.contains("missing/record.json"));
    assert!(run.elapsed.as_secs() < 50, "it measured first: {:?}", run.elapsed);
    assert_nothing_left(place.path());
    assert!(!Path::new(&missing).exists());
}

#[test]
fn a_hole_below_the_end_is_no_place_to_write_to() {
    // A file without a byte of its own is read as what it is, and is not filled by measuring it.
    let place = directory();
    let path = place.path().join("sparse");
    OpenOptions::new().create_new(true).write(true).open(&path).unwrap().set_len(8 * MIB).unwrap();
    let answer = ask(&format!("paths {} --runtime 50ms --bytes 4M", word(&path))).expect_code(0);
    for cell in answer.cells() {
        assert_eq!(cell["verdict"]["code"], "hole", "{cell:#}");
    }
    let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap());
    assert_eq!(blocks, 0, "measuring filled the file");
}
