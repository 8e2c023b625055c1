//! What calls become in the block layer, told by the findings and the pages of real runs: the table whose counts are exact in the
//! tests of `observe`.

mod support;

use rdsk_testkit::{BlkioThrottle, FuseDisk, Limits, LoopDevice, Need, Turn, cli, requires};
use serde_json::Value;
use std::process::Command;
use support::bpf::whole;
use support::{LONG, MIB, cell, count, finding_on, findings, identity, loop_device, rdsk, record_of, word};

/// The headline's reads, of which one cell has a single one in flight.
fn one_read_at_a_time(device: &LoopDevice) -> Command {
    let mut command = rdsk(&[&"run", &device.path(), &"--only", &"headline", &"--rw", &"read"]);
    command.args(["--budget", "2s", "--engine", "sync", "--evidence", "bpf"]);
    command
}

/// `rdsk stream` on a device with blocks of this size, observed throughout.
fn stream(device: &LoopDevice, op: &str, block: &str) -> Command {
    let identity = identity(device);
    let mut command =
        rdsk(&[&"stream", &device.path(), &"--rw", &op, &"--bs", &block, &"--evidence", &"bpf"]);
    command.args(["--bytes", "16M", "--budget", "3s"]);
    if op == "write" {
        command.args(["--destroy", &identity]);
    }
    command
}

/// What findings of this code cite of a cell, a line each; empty without one.
fn cited(record: &Value, code: &str, id: &str) -> String {
    let lines =
        findings(record, code).into_iter().flat_map(|finding| finding["evidence"].as_array()).flatten();
    let of_cell = lines
        .filter_map(Value::as_str)
        .filter(|line| line.split_once(": ").is_some_and(|(cell, _)| cell == id));
    of_cell.collect::<Vec<_>>().join("\n")
}

/// The table of what calls become, told by the findings: a partial write reads its page, inside the call.
#[test]
fn reads_inside_writes_are_told_with_their_call() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // No disk of the machine is below it, so that nobody else's I/O is counted with ours.
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let id = "stream/write/buffered";
    let record = whole(|| record_of(stream(&device, "write", "512")));
    let evidence = &cell(&record, id)["evidence"];
    let bios = evidence["bios"].as_array().expect("a list").iter().filter(|bio| bio["flush"] != true);
    let inside =
        bios.filter(|bio| bio["op"] == "read" && bio["task"] == "this").map(|bio| count(bio, "/count"));
    // Eight writes of 512 bytes share a page, each pass begins with cold ones, and its last page may be written in part.
    let result = &cell(&record, id)["result"];
    let visits = result["visits"].as_array().expect("a list").len() as u64;
    let (asked, inside) = (count(result, "/bytes"), inside.sum::<u64>());
    assert!(inside > 0 && inside <= asked / 4096 + visits, "{inside} reads for {asked} bytes");
    let told = cited(&record, "read-modify-write", id);
    assert!(told.contains("reads came from pwrite64(2), 4 KiB each"), "{told}");
    // What the writes left in memory the close wrote, unless somebody else held the device open or the kernel was earlier.
    let at_close = |record: &Value| !findings(record, "written-at-close").is_empty();
    let mut runs = (0..10).map(|_| whole(|| record_of(stream(&device, "write", "512"))));
    let record =
        if at_close(&record) { record } else { runs.find(at_close).expect("one close of ten was the last") };
    let told = cited(&record, "written-at-close", id);
    assert!(told.contains("written inside close(2) = ") && told.contains(", requests = "), "{told}");
    assert!(findings(&whole(|| record_of(stream(&device, "write", "4k"))), "read-modify-write").is_empty());
}

/// Direct reads: which limit cut them, one request in flight where nothing does, and what was read ahead beside them.
#[test]
fn sizes_depth_and_read_ahead_are_told() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    // No disk of the machine is below it, so that nobody else's I/O is counted with ours.
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let largest: u64 = device.sysfs("queue/max_sectors_kb").expect("a queue").parse().expect("a number");
    let block = format!("{}k", (2 * largest).next_power_of_two());
    // A finding cites bios where no more than 1 % of the requests were missed.
    let direct = "stream/read/direct";
    let told = |record: &Value, code: &str, words: &str| cited(record, code, direct).contains(words);
    let mut runs = (0..10).map(|_| record_of(stream(&device, "read", &block)));
    let record =
        runs.find(|record| told(record, "requests-split", ", exactly ")).expect("one of ten is exact");
    let text = word(finding_on(&record, "requests-split", direct), "/text");
    assert!(text.contains("max_sectors_kb cut them") || text.contains("max_segments"), "{text}");

    let mut runs = (0..10).map(|_| record_of(stream(&device, "read", "4k")));
    let alone = |record: &Value| {
        told(record, "single-writer-depth", "deepest queue = 1,")
            && cited(record, "read-ahead-helped", "stream/read/buffered").contains("bios = ")
    };
    let record = runs.find(alone).expect("nobody else reads the device in one of ten runs");
    let depth = cited(&record, "single-writer-depth", direct);
    assert!(depth.ends_with(" in the device"), "{depth}");
    let told = cited(&record, "read-ahead-helped", "stream/read/buffered");
    assert!(told.contains(" on average for "), "{told}");
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
    let mut runs = (0..10).map(|_| whole(run));
    let is_alone = |record: &Value| {
        let told = findings(record, "throttled");
        told.iter().any(|finding| finding["evidence"].to_string().contains(" in the device"))
    };
    let record = runs.find(is_alone).expect("nobody else reads the device in one of ten runs");
    let evidence = &cell(&record, "headline/read/random-qd1")["evidence"];
    let (in_device, of_call) = (
        &evidence["device_latency_ns"]["mean"],
        &cell(&record, "headline/read/random-qd1")["result"]["latency_ns"]["mean"],
    );
    assert!(in_device.as_f64() < of_call.as_f64(), "{in_device} of {of_call}");
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
    let mut pages = (0..10).map(|_| page());
    let is_told = |page: &String| page.contains("what each call became") && page.contains(" by pread64(2);");
    let page = pages.find(is_told).expect("one of ten runs misses nothing");
    assert!(page.contains("reads of 16 KiB became") && page.contains("in flight"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}
