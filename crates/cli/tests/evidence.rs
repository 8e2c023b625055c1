//! Where the evidence comes from: BPF with its privilege, sysfs without it or on request, what each leaves in the Record, and what is
//! said where BPF was asked for and cannot be had. That the counts of BPF are exact is in the tests of `observe`.

mod support;

use rdsk_testkit::cli::{self, Ended};
use rdsk_testkit::sandbox::Errno;
use rdsk_testkit::{BlkioThrottle, Call, FuseDisk, Limits, LoopDevice, Need, requires, without};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use support::{
    LONG, MIB, cell, count, finding_on, findings, identity, loop_device, rdsk, record_of, tool, word,
};

/// While a process reads a BPF map, the kernel passes over events on its processor, so only one test at a time lets rdsk do it.
static TURN: Mutex<()> = Mutex::new(());

const ID: &str = "headline/read/random-qd1";

fn reads(device: &LoopDevice, more: &[&str]) -> Command {
    reads_of(&device.path().display().to_string(), more)
}

fn reads_of(path: &str, more: &[&str]) -> Command {
    let mut command = rdsk(&[&"run", &path, &"--only", &"headline", &"--rw", &"read", &"--budget", &"2s"]);
    command.args(more);
    command
}

#[test]
fn with_privilege_both_sources_count_the_same() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let device = loop_device();
    let record = whole(|| record_of(reads(&device, &["--evidence", "bpf"])));
    assert_eq!(word(&record, "/observer/source"), "bpf");
    assert!(record["observer"]["why_not_higher"].is_null(), "{}", record["observer"]);
    for cell in record["cells"].as_array().expect("a Record has cells") {
        let evidence = &cell["evidence"];
        assert_eq!(word(evidence, "/source"), "bpf");
        assert_eq!(count(evidence, "/bpf/observed_ns"), count(evidence, "/bpf/visits_ns"), "throughout");
        let check = &evidence["bpf"]["checks"][0];
        assert_eq!(word(check, "/device"), device.name());
        assert_eq!(count(check, "/bpf"), count(check, "/sysfs"), "{check}");
        // What must not wait and would have to is submitted again, by another thread; it is marked, and not counted twice.
        let [at_once, nowait] = [false, true].map(|is_marked| own_bytes(evidence, device.name(), is_marked));
        let asked = count(cell, "/result/bytes") + cell["result"]["warmup_bytes"].as_u64().unwrap_or(0);
        assert!(at_once == asked || at_once == 0 && nowait == asked, "{asked}: {}", evidence["bios"]);
    }
}

/// The first of a few runs in which the programs missed no request. The kernel passes over events while somebody reads a map, and
/// says so of none; rdsk counts what is missed.
fn whole(run: impl Fn() -> Value) -> Value {
    let is_whole = |record: &Value| {
        let cells = record["cells"].as_array().expect("a Record has cells");
        // A path that the kernel does not have on a block device was not measured.
        let mut measured = cells.iter().filter(|cell| cell["result"]["stop"] != "not_applicable");
        measured.all(|cell| {
            let bpf = &cell["evidence"]["bpf"];
            count(bpf, "/lost") == 0 && count(bpf, "/checks/0/bpf") == count(bpf, "/checks/0/sysfs")
        })
    };
    (0..10).map(|_| run()).find(is_whole).expect("one of ten runs misses nothing")
}

/// Bytes of our own bios that read.
fn own_bytes(evidence: &Value, device: &str, is_marked: bool) -> u64 {
    let bios = evidence["bios"].as_array().expect("a list").iter();
    let is_one = |bio: &&Value| {
        let is_nowait = bio["nowait"].as_bool().unwrap_or(false);
        bio["task"] == "this" && bio["device"] == device && bio["op"] == "read" && is_nowait == is_marked
    };
    bios.filter(is_one).map(|bio| count(bio, "/bytes")).sum()
}

#[test]
fn on_request_and_without_privilege_sysfs_counts_and_says_why() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("setpriv")]) {
        return;
    }
    let device = loop_device();
    let asked = record_of(reads(&device, &["--evidence", "sysfs"]));
    assert_eq!(word(&asked, "/observer/source"), "sysfs");
    assert!(asked["cells"][0]["evidence"]["bpf"].is_null());

    let record = record_of(unprivileged(&reads(&device, &[])));
    assert_eq!(word(&record, "/observer/source"), "sysfs");
    let why = word(&record, "/observer/why_not_higher");
    assert!(
        why.contains("BPF") && (why.contains("setcap cap_bpf,cap_perfmon+ep") || why.contains("BTF")),
        "{why}"
    );
    assert!(count(cell(&record, ID), "/result/ops") > 0);
}

/// The command where neither the two capabilities nor those that contain them can be had.
fn unprivileged(with: &Command) -> Command {
    // CAP_PERFMON and CAP_BPF, which older versions of setpriv know by number only.
    let mut without = Command::new("setpriv");
    without.arg("--bounding-set=-cap_38,-cap_39,-sys_admin").arg(with.get_program()).args(with.get_args());
    without
}

/// The command as a user without any rights but, perhaps, some capabilities.
fn as_nobody(program: &Path, with: &Command, capabilities: &str) -> Command {
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    nobody.args([format!("--inh-caps=-all{capabilities}"), format!("--ambient-caps=-all{capabilities}")]);
    nobody.arg(program).args(with.get_args()).current_dir("/");
    nobody
}

#[test]
fn two_capabilities_are_enough_for_a_user() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("setpriv"), Need::Tool("mknod")]) {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let device = loop_device();
    // Where everybody may run it, and read the device.
    let place = tempfile::Builder::new().permissions(everybody()).tempdir().expect("a scratch directory");
    let program = place.path().join("rdsk");
    std::fs::copy(env!("CARGO_BIN_EXE_rdsk"), &program).expect("there is room");
    let node = place.path().join("disk");
    let (major, minor) = device.major_minor().split_once(':').expect("two numbers");
    let mut mknod = Command::new("mknod");
    mknod.args(["-m", "444"]).arg(&node).args(["b", major, minor]);
    tool(mknod);
    let with = reads_of(&node.display().to_string(), &["--evidence", "bpf"]);
    let both = record_of(as_nobody(&program, &with, ",+cap_38,+cap_39"));
    assert_eq!(word(&both, "/observer/source"), "bpf");
    assert!(count(&both, "/cells/0/evidence/bpf/checks/0/bpf") > 0);

    let none = cli::run(as_nobody(&program, &with, ""), LONG);
    assert_eq!(none.ended, Ended::Exited(3), "{}{}", none.stdout, none.stderr);
    assert!(none.stderr.contains("setcap cap_bpf,cap_perfmon+ep"), "{}", none.stderr);
}

fn everybody() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

#[test]
fn where_bpf_is_forbidden_the_reason_is_told() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("setpriv")]) {
        return;
    }
    let device = loop_device();
    for errno in [Errno::PERM, Errno::NOSYS] {
        let record = without(&[Call::Bpf], errno, || record_of(reads(&device, &[])));
        assert_eq!(word(&record, "/observer/source"), "sysfs");
        let why = word(&record, "/observer/why_not_higher");
        assert!(why.contains("forbidden by a seccomp filter"), "{why}");
        assert!(count(cell(&record, ID), "/result/ops") > 0);
    }
    let demanded = reads(&device, &["--evidence", "bpf"]);
    for (run, reason) in [
        (
            without(&[Call::Bpf], Errno::PERM, || cli::run(reads(&device, &["--evidence", "bpf"]), LONG)),
            "seccomp",
        ),
        (cli::run(unprivileged(&demanded), LONG), "CAP_BPF and CAP_PERFMON are missing"),
    ] {
        assert_eq!(run.ended, Ended::Exited(3), "{}{}", run.stdout, run.stderr);
        let record = cli::json(&run);
        assert_eq!((word(&record, "/status"), word(&record, "/error/code")), ("failed", "no-bpf"));
        assert!(word(&record, "/error/message").contains(reason), "{}", record["error"]);
        assert!(word(&record, "/error/hint").contains("--evidence auto"), "{}", record["error"]);
        assert!(run.stderr.contains(reason) && record["cells"] == serde_json::json!([]), "{}", run.stderr);
    }
}

#[test]
fn a_target_without_a_device_is_no_place_for_bpf() {
    if !requires(&[Need::Root, Need::Bpf, Need::Fuse]) {
        return;
    }
    let disk = FuseDisk::builder().mount().expect("requires() found FUSE");
    let run = cli::run(reads_of(&disk.file().display().to_string(), &["--evidence", "bpf"]), LONG);
    assert_eq!(run.ended, Ended::Exited(3), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("no block device is known under"), "{}", run.stderr);
}

#[test]
fn a_partition_and_its_disk_are_counted_each() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("partx")]) {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let device = loop_device();
    let parts = device.partition_gpt().expect("the device takes partitions");
    let record = whole(|| record_of(reads_of(&parts[0].display().to_string(), &["--evidence", "bpf"])));
    for cell in record["cells"].as_array().expect("a Record has cells") {
        let checks = cell["evidence"]["bpf"]["checks"].as_array().expect("a list");
        let own = format!("{}p1", device.name());
        assert_eq!(checks[0]["device"], own, "{checks:?}");
        assert_eq!(count(&checks[0], "/bpf"), count(&checks[0], "/sysfs"), "{checks:?}");
        // The disk is not below the target, but another device may be; each agrees with its own counters.
        assert!(checks.iter().all(|check| check["bpf"] == check["sysfs"]), "{checks:?}");
    }
    let findings = record["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["code"] != "evidence-differs"), "{findings:?}");
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
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // No disk of the machine is below it, so that nobody else's I/O is counted with ours.
    let disk = FuseDisk::builder().capacity(64 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let id = "stream/write/buffered";
    let record = whole(|| record_of(stream(&device, "write", "512")));
    let evidence = &cell(&record, id)["evidence"];
    let bios = evidence["bios"].as_array().expect("a list").iter();
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
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let device = loop_device();
    let limits = Limits { read_iops: Some(128), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).expect("requires() found throttles");
    let run = || record_of(throttle.command(reads(&device, &["--engine", "sync", "--evidence", "bpf"])));
    let mut runs = (0..10).map(|_| whole(run));
    let is_alone = |record: &Value| {
        let told = findings(record, "throttled");
        told.iter().any(|finding| finding["evidence"].to_string().contains(" in the device"))
    };
    let record = runs.find(is_alone).expect("nobody else reads the device in one of ten runs");
    let evidence = &cell(&record, ID)["evidence"];
    let (in_device, of_call) =
        (&evidence["device_latency_ns"]["mean"], &cell(&record, ID)["result"]["latency_ns"]["mean"]);
    assert!(in_device.as_f64() < of_call.as_f64(), "{in_device} of {of_call}");
}

/// The page says in words what the calls became, in 80 columns.
#[test]
fn the_page_follows_the_calls() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
