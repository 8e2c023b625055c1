//! What calls become in the block layer, said by the findings and the pages of real runs: the table whose counts are exact in the
//! tests of `observe`.

use crate::support::bpf::{whole, whole_and};
use crate::support::{
    LONG, MIB, cell, count, finding_on, findings, identity, loop_device, rdsk, record_of, word,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{BlkioThrottle, FuseDisk, Limits, LoopDevice, Need, Turn, cli, requires};
use serde_json::Value;
use std::process::Command;

/// The headline's reads, of which one cell has a single one in flight.
fn one_read_at_a_time(device: &LoopDevice) -> Command {
    let mut command = rdsk(&[&"run", &device.path(), &"--only", &"headline", &"--rw", &"read"]);
    command.args(["--budget", "2s", "--engine", "sync", "--evidence", "bpf"]);
    command
}

/// `rdsk stream` of so many bytes a visit on a device with blocks of this size, observed throughout.
fn stream(device: &LoopDevice, op: &str, block: &str, bytes: &str) -> Command {
    let identity = identity(device);
    let mut command =
        rdsk(&[&"stream", &device.path(), &"--rw", &op, &"--bs", &block, &"--evidence", &"bpf"]);
    command.args(["--bytes", bytes, "--budget", "3s"]);
    if op == "write" {
        command.args(["--destroy", &identity]);
    }
    command
}

/// What findings of this code on a cell cite, a line each; empty without one.
fn cited(record: &Value, code: &str, id: &str) -> String {
    let is_on =
        |finding: &&Value| finding["cells"].as_array().is_some_and(|ids| ids.iter().any(|one| one == id));
    let of_cell = findings(record, code).into_iter().filter(is_on);
    let lines = of_cell.flat_map(|finding| finding["evidence"].as_array()).flatten();
    lines.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// The table of what calls become, said by the findings: a partial write reads its page, inside the call.
#[test]
fn reads_inside_writes_are_told_with_their_call() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // No disk of the machine is below it, so that no other program's I/O is counted with ours.
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let id = "stream/write/buffered";
    let is_told = |record: &Value| {
        let evidence = &cell(record, id)["evidence"];
        let bios = evidence["bios"].as_array().expect("a list").iter().filter(|bio| bio["flush"] != true);
        let inside =
            bios.filter(|bio| bio["op"] == "read" && bio["task"] == "this").map(|bio| count(bio, "/count"));
        // Eight writes of 512 bytes share a page, each pass begins with cold ones, and its last page may be written in part.
        let result = &cell(record, id)["result"];
        let visits = result["visits"].as_array().expect("a list").len() as u64;
        let (asked, inside) = (count(result, "/bytes"), inside.sum::<u64>());
        let most = asked / 4096 + visits;
        ensure((1..=most).contains(&inside), || format!("{inside} reads for {asked} bytes"))?;
        let told = cited(record, "read-modify-write", id);
        ensure(told.contains("reads came from pwrite64(2), 4 KiB each"), || told.clone())?;
        // What the writes left in memory the close wrote, unless another program held the device open or the kernel was earlier.
        let told = cited(record, "written-at-close", id);
        let is_at_close = told.contains("written inside close(2) = ") && told.contains(", requests = ");
        ensure(is_at_close, || format!("nothing at close: {told}"))
    };
    whole_and(|| record_of(stream(&device, "write", "512", "1M")), is_told);
    assert!(
        findings(&whole(|| record_of(stream(&device, "write", "4k", "1M"))), "read-modify-write").is_empty()
    );
}

/// Direct reads: which limit cut them, one request in flight where nothing does, and what was read ahead beside them.
#[test]
fn sizes_depth_and_read_ahead_are_told() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // No disk of the machine is below it, so that no other program's I/O is counted with ours.
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let largest: u64 = device.sysfs("queue/max_sectors_kb").expect("a queue").parse().expect("a number");
    let block = format!("{}k", (2 * largest).next_power_of_two());
    // A finding cites bios where no more than 1 % of the requests were missed.
    let direct = "stream/read/direct";
    let told = |record: &Value, code: &str, words: &str| cited(record, code, direct).contains(words);
    let mut runs = (0..10).map(|_| record_of(stream(&device, "read", &block, "16M")));
    let record =
        runs.find(|record| told(record, "requests-split", ", exactly ")).expect("one of ten is exact");
    let text = word(finding_on(&record, "requests-split", direct), "/text");
    assert!(text.contains("max_sectors_kb cut them") || text.contains("max_segments"), "{text}");

    // Another program may read the device.
    first_right(10, || {
        let record = record_of(stream(&device, "read", "4k", "16M"));
        let told = cited(&record, "read-ahead-helped", "stream/read/buffered");
        let is_told = told.contains("bios = ") && told.contains(" on average for ");
        ensure(is_told, || format!("read-ahead: {told}"))
    });
}

/// A throttle holds an I/O back before its request exists: the request itself is soon done.
#[test]
fn what_a_throttle_holds_back_is_not_in_the_device() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::BlkioThrottle]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let device = loop_device();
    let limits = Limits { read_iops: Some(128), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).expect("requires() found throttles");
    let run = || record_of(throttle.command(one_read_at_a_time(&device)));
    // Another program may read the device, and a machine that stands still may have few reads to show.
    first_right(10, || {
        let record = whole(run);
        let told = findings(&record, "throttled");
        let is_told = told.iter().any(|finding| finding["evidence"].to_string().contains(" in the device"));
        ensure(is_told, || format!("{told:?}"))?;
        let random = cell(&record, "headline/read/random-qd1");
        let (in_device, of_call) =
            (&random["evidence"]["device_latency_ns"]["mean"], &random["result"]["latency_ns"]["mean"]);
        ensure(in_device.as_f64() < of_call.as_f64(), || format!("{in_device} of {of_call}"))
    });
}

/// The page says in words what the calls became, in 80 columns.
#[test]
fn the_page_follows_the_calls() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let device = loop_device();
    let path = device.path().display().to_string();
    let page = || {
        let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
        command.args(["stream", &path, "--rw", "read", "--bs", "16k", "--bytes", "4M", "--budget", "3s"]);
        command.args(["--evidence", "bpf"]).env("COLUMNS", "80");
        cli::run(command, LONG).stdout
    };
    // Where a request was missed, the counts of that cell may be too uncertain for words.
    first_right(10, || {
        let page = page();
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        for words in ["what each call became", " by pread64(2);", "reads of 16 KiB became", "in flight"] {
            ensure(page.contains(words), || format!("not \"{words}\": {page}"))?;
        }
        Ok(())
    });
}
