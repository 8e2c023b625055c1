//! The campaign `verdicts`: how often a verdict or finding says what was done on purpose, over many runs: loop devices behind
//! which no disk answers, busy loops on the processors, a rival with small reads on the same disk; and how often it says so when
//! nothing was done. `cargo xtask campaign verdicts` runs it and writes xtask/records/campaigns/verdicts.md.

#![allow(clippy::print_stderr, reason = "a campaign says how far it is")]

use crate::support::{brief, findings, rdsk, record_of, verdict, word, write_file};
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::{DirectIo, LoopDevice, Need, requires};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Runs of each kind.
const RUNS: usize = 20;
/// Of these, how many at least must name what was done.
const NAMED: usize = 18;
const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::Cachestat];
const LOOP_BYTES: u64 = 128 * MIB;
const RIVAL_THREADS: usize = 4;
const BUSY_LOOPS: usize = 4;

/// Reads a target for some seconds, in three ways.
fn headline(target: &Path) -> Value {
    record_of(rdsk(&[&"run", &target, &"--only", &"headline", &"--rw", &"read", &"--budget", &"4s"]))
}

fn cells(record: &Value) -> &Vec<Value> {
    record["cells"].as_array().expect("a Record has cells")
}

/// A directory on the machine's disk.
fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("rdsk-verdicts-").tempdir().expect("a directory of our own")
}

/// What a backing file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    Tmpfs,
    Sparse,
    Unwritten,
    Cached,
}

fn backing(kind: Backing, directory: &Path) -> PathBuf {
    let file = match kind {
        Backing::Tmpfs => {
            tempfile::Builder::new().prefix("rdsk-verdicts-").tempdir_in("/dev/shm").expect("tmpfs").keep()
        }
        _ => directory.to_owned(),
    }
    .join("backing");
    match kind {
        Backing::Tmpfs | Backing::Cached => write_file(&file, LOOP_BYTES),
        Backing::Sparse => {
            File::create_new(&file).and_then(|made| made.set_len(LOOP_BYTES)).expect("a new file");
        }
        Backing::Unwritten => {
            let made =
                Command::new("fallocate").args(["--length", &LOOP_BYTES.to_string()]).arg(&file).status();
            assert!(made.is_ok_and(|status| status.success()));
        }
    }
    file
}

/// Bytes that a device has read so far, by the kernel's own count.
fn read_bytes(device: &str) -> u64 {
    let stat =
        std::fs::read_to_string(format!("/sys/class/block/{device}/stat")).expect("it is a block device");
    stat.split_ascii_whitespace().nth(2).and_then(|sectors| sectors.parse::<u64>().ok()).expect("a count")
        * 512
}

/// Twenty runs of three cells over one kind of file. None may be called `device`, unless the disk below read as much.
fn loops(kind: Backing, direct_io: DirectIo) {
    let (began, directory) = (Instant::now(), place());
    let file = backing(kind, directory.path());
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let (mut wrong, mut from_disk) = (0, 0);
    for _ in 0..RUNS {
        let disk = LoopDevice::builder().over(&file).direct_io(direct_io).create().expect("loop devices");
        if kind == Backing::Cached {
            std::io::copy(&mut File::open(&file).expect("ours"), &mut std::io::sink())
                .expect("it can be read");
        }
        let of_disk =
            |record: &Value| record["cells"][0]["evidence"]["loops"][0]["below"].as_str().map(str::to_owned);
        let disk_name = disk_of(&file);
        let before = disk_name.as_deref().map(read_bytes);
        // The counters of a loop device go on from file to file.
        let moved_before = read_bytes(disk.name());
        let record = headline(disk.path());
        let read_below =
            disk_name.as_deref().map(read_bytes).zip(before).map_or(0, |(after, before)| after - before);
        assert_eq!(of_disk(&record), disk_name, "the disk below the file");
        let moved = read_bytes(disk.name()) - moved_before;
        let is_from_disk = read_below * 10 >= moved * 9;
        from_disk += usize::from(is_from_disk);
        for cell in cells(&record) {
            *said.entry(verdict(cell).to_owned()).or_default() += 1;
        }
        let devices = cells(&record).iter().filter(|cell| verdict(cell) == "device").count();
        wrong += usize::from(devices > 0 && !is_from_disk);
    }
    let said: Vec<String> = said.iter().map(|(code, count)| format!("{code} {count}")).collect();
    let because =
        if from_disk > 0 { format!("; the disk read all of it in {from_disk}") } else { String::new() };
    let name = format!("{kind:?} file, direct-io {direct_io:?}").to_lowercase();
    let result =
        format!("`device` without the disk in {wrong} of {RUNS} runs; cells: {}{because}", said.join(", "));
    note("loop", &name, &result, began.elapsed());
    eprintln!("{name}: {result}");
    if kind == Backing::Tmpfs {
        std::fs::remove_dir_all(file.parent().expect("it has one")).expect("ours");
    }
    assert_eq!(wrong, 0, "{name}: {result}");
}

/// The whole name of the block device that carries a file, by its number; `None` where there is none.
fn disk_of(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let dev = std::fs::metadata(file).expect("ours").dev();
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let directory = Path::new("/sys/dev/block").join(number).canonicalize().ok()?;
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

#[test]
#[ignore = "campaign: cargo xtask campaign verdicts"]
fn loops_that_no_disk_answers() {
    if !requires(&NEEDS) {
        return;
    }
    for kind in [Backing::Tmpfs, Backing::Sparse, Backing::Unwritten, Backing::Cached] {
        for direct_io in [DirectIo::On, DirectIo::Off] {
            loops(kind, direct_io);
        }
    }
}

/// Processes that use a processor each, until dropped.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start(count: usize) -> Self {
        let verdict_of_run = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .expect("a shell")
        };
        Self((0..count).map(|_| verdict_of_run()).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How often `is_named` holds over twenty runs of the headline on a test file.
fn named(group: &str, name: &str, expected: Option<usize>, is_named: impl Fn(&Value) -> bool) {
    let (began, directory) = (Instant::now(), place());
    let file = directory.path().join("data");
    write_file(&file, 512 * MIB);
    let count = (0..RUNS).filter(|_| is_named(&headline(&file))).count();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let result = format!("named in {count} of {RUNS} runs (load average {load})");
    note(group, name, &result, began.elapsed());
    eprintln!("{group}, {name}: {result}");
    assert!(expected.is_none_or(|expected| count >= expected), "{name}: {result}");
}

fn is_contended(record: &Value) -> bool {
    let matching = findings(record, "processor-contended");
    let is_depth_1 = |id: &Value| id == "headline/read/random-qd1";
    matching.iter().any(|finding| finding["cells"].as_array().is_some_and(|ids| ids.iter().any(is_depth_1)))
}

/// Whether the sequential cell is called disturbed, and by requests or bytes of others.
fn is_disturbed(record: &Value) -> bool {
    let sequential =
        cells(record).iter().find(|cell| cell["id"] == "headline/read/sequential").expect("it was run");
    let is_disturbed = verdict(sequential) == "disturbed";
    if is_disturbed {
        assert!(word(sequential, "/verdict/text").contains("for others"), "{}", brief(sequential));
    }
    is_disturbed
}

#[test]
#[ignore = "campaign: cargo xtask campaign verdicts"]
fn busy_loops_beside_random_reads() {
    if !requires(&NEEDS) {
        return;
    }
    let _loops = BusyLoops::start(BUSY_LOOPS);
    named("processor", "four busy loops beside random-qd1", Some(NAMED), is_contended);
}

/// Findings that claim a shape of the rate over time or over positions.
const SHAPES: [&str; 7] = [
    "drift", "fast-start", "passes-differ", "slow-start", "slows-down", "speed-by-position",
    "write-cache-full",
];

/// Twenty runs of the headline and of zones, beside two busy loops from their beginning, or from their middle on: what the loops take is
/// no shape of the disk.
#[test]
#[ignore = "campaign: cargo xtask campaign verdicts"]
fn no_shape_is_claimed_beside_busy_loops() {
    if !requires(&NEEDS) {
        return;
    }
    let (began, directory) = (Instant::now(), place());
    let file = directory.path().join("data");
    write_file(&file, 512 * MIB);
    let mut claimed: Vec<String> = Vec::new();
    for run in 0..RUNS {
        let late = Duration::from_secs(if run % 2 == 0 { 0 } else { 5 });
        let record = std::thread::scope(|scope| {
            let (done, is_done) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let _ = is_done.recv_timeout(late);
                let _loops = BusyLoops::start(2);
                let _ = is_done.recv();
            });
            let what = "headline,zones";
            let record =
                record_of(rdsk(&[&"run", &file, &"--only", &what, &"--rw", &"read", &"--budget", &"10s"]));
            drop(done);
            record
        });
        let matching = SHAPES.iter().flat_map(|code| findings(&record, code));
        claimed.extend(matching.map(|finding| format!("run {run}: {}", word(finding, "/title"))));
    }
    let result = format!("{} claims of a shape in {RUNS} runs", claimed.len());
    note("processor", "two busy loops, all the time or from the middle on", &result, began.elapsed());
    eprintln!("{result}: {claimed:?}");
    assert!(claimed.is_empty(), "{claimed:?}");
}

/// Reads of 4 KiB at random places of a file, past the page cache, until asked to stop.
fn rival<'scope>(
    scope: &'scope Scope<'scope, '_>,
    file: &'scope Path,
    stop: &'scope AtomicBool,
    reads: &'scope AtomicU64,
) {
    for number in 0..RIVAL_THREADS as u64 {
        scope.spawn(move || {
            let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag");
            let file = OpenOptions::new().read(true).custom_flags(flags).open(file).expect("ours");
            let mut memory = vec![0_u8; 8192];
            let skip = memory.as_ptr().align_offset(4096);
            let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ number;
            while !stop.load(Ordering::Relaxed) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let block = state % (256 * MIB / 4096);
                file.read_exact_at(&mut memory[skip..skip + 4096], block * 4096).expect("it can be read");
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

#[test]
#[ignore = "campaign: cargo xtask campaign verdicts"]
fn small_reads_of_a_rival_beside_sequential_reads() {
    if !requires(&NEEDS) {
        return;
    }
    let directory = place();
    let file = directory.path().join("rival");
    write_file(&file, 256 * MIB);
    let (stop, reads, began) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        // Whatever happens below, the threads end.
        let stop_at_end = StopAtEnd(&stop);
        rival(scope, &file, &stop, &reads);
        named(
            "rival",
            "4 KiB random reads of four threads beside sequential reads",
            Some(NAMED),
            is_disturbed,
        );
        drop(stop_at_end);
    });
    let per_s = reads.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    note("rival", "its own count", &format!("{per_s:.0} reads per second"), began.elapsed());
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is said when this campaign does nothing: on an idle machine nothing, and the load average says whether it was one.
#[test]
#[ignore = "campaign: cargo xtask campaign verdicts"]
fn nothing_on_purpose() {
    if !requires(&NEEDS) {
        return;
    }
    named("nothing", "disturbed, nothing done on purpose", None, is_disturbed);
    named("nothing", "processor-contended, nothing done on purpose", None, is_contended);
}
