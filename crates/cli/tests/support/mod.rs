//! What the truth tests share: running the real binary for its Record, reading figures from it, and the devices and files
//! that it runs on. It judges nothing: the tests do.

pub(crate) mod array;
pub(crate) mod bpf;
pub(crate) mod checked_run;
pub(crate) mod given_up;
pub(crate) mod in_use;
pub(crate) mod one_speed;
pub(crate) mod passes;
pub(crate) mod plain;
pub(crate) mod short_page;
pub(crate) mod stopped;
pub(crate) mod ways;
pub(crate) mod zoned_disk;

use rdsk_testkit::cli::{self, Ended, Run};
use rdsk_testkit::{Behaviour, DirectIo, FuseDisk, LoopDevice};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longer than any run here takes on a busy machine; a run that needs it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(400);

/// One mebibyte.
pub(crate) const MIB: u64 = 1 << 20;

/// Size of the devices that carry a filesystem: from 512 MiB on mkfs.ext4 takes blocks of 4096 bytes by itself. The
/// backing file is sparse, so that it costs what is written.
const FILESYSTEM_BYTES: u64 = 768 * MIB;

/// `rdsk ARGUMENTS --json -`, ready to run or to be put into a throttle.
pub(crate) fn rdsk(arguments: &[&dyn AsRef<OsStr>]) -> Command {
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    for argument in arguments {
        command.arg(argument);
    }
    command.args(["--json", "-"]);
    command
}

/// Runs to the end and gives the Record of a complete run.
pub(crate) fn record_of(command: Command) -> Value {
    complete(&cli::run(command, LONG))
}

/// The Record of a run that ended well.
pub(crate) fn complete(run: &Run) -> Value {
    assert_eq!(run.ended, Ended::Exited(0), "{}\n{}\n{}", run.command, run.stderr, excerpt(&run.stdout));
    let record = cli::json(run);
    assert_eq!(record["schema"], "rdsk.record/2");
    assert_eq!(record["status"], "complete", "{}", record["error"]);
    record
}

/// Runs a tool of the system successfully, and gives its standard output and standard error.
pub(crate) fn tool(command: Command) -> (String, String) {
    let run = cli::run(command, LONG);
    assert_eq!(run.ended, Ended::Exited(0), "{}\n{}", run.command, run.stderr);
    (run.stdout, run.stderr)
}

/// The cell of this id.
pub(crate) fn cell<'a>(record: &'a Value, id: &str) -> &'a Value {
    let cells = record["cells"].as_array().expect("a Record has cells");
    cells.iter().find(|cell| cell["id"] == id).unwrap_or_else(|| {
        let ids: Vec<_> = cells.iter().map(|cell| &cell["id"]).collect();
        panic!("there is no cell {id} among {ids:?}")
    })
}

/// The row of `iostat -x` that follows from the counters of a device of a Record, by sysstat's names.
pub(crate) fn iostat_of(device: &Value) -> Value {
    let evidence = serde_json::from_value(device.clone()).expect("the evidence of a device");
    let row = rdsk_analysis::iostat::iostat_row(&evidence).expect("counters over some time");
    rdsk_analysis::iostat::COLUMNS.iter().map(|(name, figure)| (*name, figure(&row))).collect()
}

/// The number at a JSON pointer such as `/result/bytes_per_s/mean`.
pub(crate) fn figure(value: &Value, pointer: &str) -> f64 {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("no number at {pointer} of {}", brief(value)))
}

/// The whole number at a JSON pointer.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    let number = value.pointer(pointer).and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("no whole number at {pointer} of {}", brief(value)))
}

/// The word at a JSON pointer.
pub(crate) fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let word = value.pointer(pointer).and_then(Value::as_str);
    word.unwrap_or_else(|| panic!("no text at {pointer} of {}", brief(value)))
}

/// The verdict's code.
pub(crate) fn verdict(cell: &Value) -> &str {
    word(cell, "/verdict/code")
}

/// The verdict as far as the loop device: `device` also where all bytes passed it and memory, or nothing, answered behind its
/// backing file, as behind a sparse one in /tmp.
pub(crate) fn verdict_at_the_loop(cell: &Value) -> &str {
    if word(cell, "/verdict/text").contains("backing file") { "device" } else { verdict(cell) }
}

/// The counters of a device by its name, among the evidence of a cell.
pub(crate) fn device<'a>(cell: &'a Value, device: &LoopDevice) -> &'a Value {
    let devices = cell["evidence"]["device"].as_array().expect("evidence lists devices");
    let counted = devices.iter().find(|counted| counted["name"] == device.name());
    counted.unwrap_or_else(|| panic!("no counters of {} in {}", device.name(), brief(cell)))
}

/// The findings of this code.
pub(crate) fn findings<'a>(record: &'a Value, code: &str) -> Vec<&'a Value> {
    let findings_of_run = record["findings"].as_array().expect("a Record has findings");
    findings_of_run.iter().filter(|finding| finding["code"] == code).collect()
}

/// The one finding of this code, and that it speaks of this cell.
pub(crate) fn finding_on<'a>(record: &'a Value, code: &str, id: &str) -> &'a Value {
    let speaks = |finding: &&&Value| {
        finding["cells"].as_array().is_some_and(|ids| ids.iter().any(|listed| listed == id))
    };
    let matching = findings(record, code);
    matching
        .iter()
        .find(speaks)
        .unwrap_or_else(|| panic!("no finding {code} on {id}: {}", record["findings"]))
}

/// A cell without what fills screens, for messages.
pub(crate) fn brief(cell: &Value) -> String {
    let mut short = cell.clone();
    for (place, name) in
        [("/result", "windows"), ("/result/latency_ns", "histogram"), ("/result/latency_ns", "rounds")]
    {
        if let Some(Value::Object(map)) = short.pointer_mut(place) {
            map.remove(name);
        }
    }
    if let Some(Value::Array(devices)) = short.pointer_mut("/evidence/device") {
        for device in devices {
            device["in_flight_series"].take();
            device["bytes_series"].take();
        }
    }
    format!("{short:#}")
}

/// Asserts that a figure is within `tolerance` (a share) of the truth.
#[track_caller]
pub(crate) fn assert_near(what: &str, figure: f64, truth: f64, tolerance: f64) {
    near(what, figure, truth, tolerance).unwrap_or_else(|off| panic!("{off}"));
}

/// The same for an attempt.
pub(crate) fn near(what: &str, figure: f64, truth: f64, tolerance: f64) -> Result<(), String> {
    let off = (figure / truth - 1.0).abs();
    let words = || format!("{what}: {figure} is {:.2}% away from {truth}", off * 100.0);
    rdsk_testkit::attempts::ensure(off <= tolerance, words)
}

/// What the kernel has counted for a device since it was made, read here and not by rdsk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) flushes: u64,
}

impl Counted {
    /// The counters now (Documentation/admin-guide/iostats.rst: fields 1, 3, 5, 7 and 16; sectors of 512 bytes).
    pub(crate) fn now(device: &LoopDevice) -> Self {
        Self::by_name(device.name())
    }

    /// The same by the device's name, for threads of their own.
    pub(crate) fn by_name(name: &str) -> Self {
        let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat"));
        let text = stat.expect("our device is attached");
        let fields: Vec<u64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        Self {
            reads: fields[0],
            read_bytes: fields[2] * 512,
            writes: fields[4],
            write_bytes: fields[6] * 512,
            flushes: fields[15],
        }
    }

    /// What was counted from `before` to `self`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            read_bytes: self.read_bytes - before.read_bytes,
            writes: self.writes - before.writes,
            write_bytes: self.write_bytes - before.write_bytes,
            flushes: self.flushes - before.flushes,
        }
    }
}

/// Sum of one counter of a device over all cells that ran.
pub(crate) fn sum_over_cells(record: &Value, of: &LoopDevice, counter: &str) -> u64 {
    let cells = record["cells"].as_array().expect("a Record has cells");
    let ran = cells.iter().filter(|cell| cell["result"]["stop"] != "not_applicable");
    ran.map(|cell| count(device(cell, of), counter)).sum()
}

/// A plain loop device of 64 MiB.
pub(crate) fn loop_device() -> LoopDevice {
    LoopDevice::builder().direct_io(DirectIo::Off).create().expect("requires() found loop devices")
}

/// The word that `--destroy` must repeat for a loop device: its backing file, as the kernel has it.
pub(crate) fn identity(device: &LoopDevice) -> String {
    device.sysfs("loop/backing_file").expect("a loop device has a backing file")
}

/// Runs `test` in a directory on an ext4 filesystem of its own with blocks of 4096 bytes.
pub(crate) fn on_ext4(test: impl FnOnce(&Path, &LoopDevice)) {
    with_ext4(LoopDevice::builder(), test);
}

/// The same on a device of which no part is the machine's disk, so that only a throttle takes time.
pub(crate) fn on_ext4_in_memory(test: impl FnOnce(&Path, &LoopDevice)) {
    with_ext4(LoopDevice::builder().in_memory(), test);
}

/// The same on XFS, on a device that passes the page cache of its backing file.
pub(crate) fn on_xfs(test: impl FnOnce(&Path, &LoopDevice)) {
    let builder = LoopDevice::builder().size(FILESYSTEM_BYTES).direct_io(DirectIo::On);
    let device = builder.create().expect("requires() found loop devices");
    device.mkfs_xfs("truth").expect("requires() found mkfs.xfs");
    let mount = device.mount().expect("requires() found XFS in the kernel");
    test(mount.path(), &device);
}

fn with_ext4(device: rdsk_testkit::loopdev::Builder, test: impl FnOnce(&Path, &LoopDevice)) {
    let device = device.size(FILESYSTEM_BYTES).create().expect("requires() found loop devices");
    device.mkfs_ext4("truth").expect("requires() found mkfs.ext4");
    let mount = device.mount().expect("requires() found ext4 in the kernel");
    test(mount.path(), &device);
}

/// Writes `bytes` bytes that do not compress, makes them stable, and leaves them in the page cache.
pub(crate) fn write_file(path: &Path, bytes: u64) {
    let mut file = File::create_new(path).expect("the directory is ours");
    let mut word = 0x9E37_79B9_7F4A_7C15_u64;
    let mut block = Vec::with_capacity(1 << 20);
    let mut left = bytes;
    while left > 0 {
        block.clear();
        let len = left.min(MIB);
        while (block.len() as u64) < len {
            // xorshift64: Marsaglia, "Xorshift RNGs" (2003).
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            block.extend_from_slice(&word.to_le_bytes());
        }
        block.truncate(usize::try_from(len).expect("at most 1 MiB"));
        file.write_all(&block).expect("there is room");
        left -= len;
    }
    file.sync_all().expect("there is room");
}

/// Bytes of a file that are in the page cache, as util-linux's fincore counts them.
pub(crate) fn cached_bytes(path: &Path) -> u64 {
    let mut fincore = Command::new("fincore");
    fincore.args(["--bytes", "--noheadings", "--output", "RES"]).arg(path);
    tool(fincore).0.trim().parse().expect("fincore prints a number")
}

fn excerpt(text: &str) -> &str {
    text.get(..2000).unwrap_or(text)
}

/// Bytes per second of a cell of `scale`; of a single stream beside several targets, that on the first of them.
pub(crate) fn scale_rate(record: &Value, op: &str, size: &str, streams: u32) -> f64 {
    let has_several = record["targets"].as_array().is_some_and(|targets| targets.len() > 1);
    let on_first = if streams == 1 && has_several { "@0" } else { "" };
    figure(cell(record, &format!("scale/{op}/{size}/{streams}{on_first}")), "/result/bytes_per_s/mean")
}

/// The streams of the first visit of a cell of `scale`.
pub(crate) fn streams(cell: &Value) -> &Vec<Value> {
    cell["result"]["visits"][0]["streams"].as_array().expect("a visit lists its streams")
}

/// A disk of 64 MiB that serves on one processor, and the loop device over it.
pub(crate) fn programmed(behaviour: Behaviour) -> (FuseDisk, LoopDevice) {
    programmed_of(64 * MIB, behaviour)
}

/// The same of another size.
pub(crate) fn programmed_of(bytes: u64, behaviour: Behaviour) -> (FuseDisk, LoopDevice) {
    let builder = FuseDisk::builder().capacity(bytes).device(behaviour).on_one_cpu();
    let disk = builder.mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    (disk, device)
}

/// The Record of a run of random direct reads, on the processor on which the disk serves, so that no other must be woken.
pub(crate) fn random_reads(
    disk: &FuseDisk,
    device: &LoopDevice,
    bs: &str,
    depth: u64,
    limits: &[&str],
) -> Value {
    let cpu = disk.cpu().expect("it serves on one").to_string();
    let mut command = rdsk(&[
        &"stream",
        &device.path(),
        &"--rw",
        &"read",
        &"--pattern",
        &"random",
        &"--bs",
        &bs,
        &"--iodepth",
        &depth.to_string(),
        &"--pin",
        &cpu,
    ]);
    command.args(limits);
    record_of(command)
}

/// `rdsk paths` that writes passes of 64 MiB in a directory.
pub(crate) fn write_paths(directory: &Path) -> Command {
    rdsk(&[
        &"paths", &directory, &"--rw", &"write", &"--size", &"64M", &"--bytes", &"64M", &"--budget", &"30s",
    ])
}

/// One direct writer of 4 KiB on a device.
pub(crate) fn one_writer(disk: &LoopDevice) -> Value {
    let own = identity(disk);
    let words: [&dyn AsRef<OsStr>; 6] = [&"stream", &disk.path(), &"--rw", &"write", &"--bs", &"4k"];
    record_of(rdsk(&[&words[..], &[&"--runtime", &"500ms", &"--destroy", &own]].concat()))
}

/// Reads of 4 KiB, 32 in flight.
pub(crate) fn reads_at_depth_32(disk: &LoopDevice, pattern: &str) -> Value {
    let words: [&dyn AsRef<OsStr>; 8] =
        [&"stream", &disk.path(), &"--rw", &"read", &"--bs", &"4k", &"--iodepth", &"32"];
    let more: [&dyn AsRef<OsStr>; 6] =
        [&"--pattern", &pattern, &"--runtime", &"600ms", &"--precision", &"0.1%"];
    record_of(rdsk(&[&words[..], &more[..]].concat()))
}

/// Waits until no process reads a new or just closed device any more, as udev does.
pub(crate) fn settle(disk: &FuseDisk) {
    let mut before = disk.counts();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = disk.counts();
        if now == before {
            return;
        }
        before = now;
    }
}

/// The streams of a cell's first visit run together from the last start, whenever that was: a stream whose first read came too
/// late for the run has no part in it, and one that is left alone runs together with none. Returns how many ran.
pub(crate) fn assert_overlap_from_the_last_start(cell: &Value) -> usize {
    let ran = streams(cell).iter().filter(|stream| count(stream, "/ops") > 0);
    let started: Vec<u64> = ran.map(|stream| count(stream, "/start_ns")).collect();
    let last = (started.len() > 1).then(|| started.iter().copied().max()).flatten();
    let overlap = &cell["result"]["visits"][0]["overlap"];
    assert_eq!(overlap.get("start_ns").and_then(Value::as_u64), last, "{}", brief(cell));
    started.len()
}

/// Four streams that start one after the other.
pub(crate) fn staggered_streams(disk: &LoopDevice, stagger: &str) -> Command {
    rdsk(&[
        &"scale",
        &disk.path(),
        &"--rw",
        &"read",
        &"--bs",
        &"64k",
        &"--streams",
        &"4",
        &"--stagger",
        &stagger,
        &"--runtime",
        &"1s",
    ])
}
