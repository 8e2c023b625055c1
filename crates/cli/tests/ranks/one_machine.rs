//! Ranks of one machine: what they read and write against what a FUSE disk and a loop device have counted, a file that they lay out, a device
//! that they hold together, and how many messages 64 of them send. It needs no quiet machine.

use super::{
    FILE_BYTES, LATENCY_NS, MIB, NEEDS, RANKS, array, disk, is_pooled, merged, process_in, sh, wait, writes,
};
use rdsk_testkit::fusedisk::{FuseDisk, Op, Served};
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::{LoopDevice, Need, requires};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// mpirun with this number of ranks, all on this machine.
fn mpirun(ranks: u32) -> Command {
    mpirun_through(ranks, &[])
}

/// The same; `words` start each rank.
fn mpirun_through(ranks: u32, words: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args("--allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none -n".split(' '))
        .arg(ranks.to_string())
        .args(words)
        .arg(env!("CARGO_BIN_EXE_rdsk"))
        .env("RDSK_HISTORY", "");
    command
}

/// A run of so many ranks of this machine on a disk that is served through FUSE, and the result of all its parts.
struct OneMachine {
    disk: FuseDisk,
    place: tempfile::TempDir,
}

impl OneMachine {
    fn new(latency_ns: u64) -> Self {
        let disk = FuseDisk::builder().capacity(FILE_BYTES).device(disk(latency_ns)).mount();
        let place = tempfile::Builder::new().prefix("rdsk-ranks-").tempdir();
        Self { disk: disk.expect("a FUSE disk"), place: place.expect("a directory") }
    }

    fn parts(&self) -> PathBuf {
        self.place.path().join("parts")
    }

    /// Runs ranks to their end, whatever it is.
    fn output(&self, ranks: u32, command: &str, target: &Path, arguments: &[&str]) -> Output {
        let _ = std::fs::remove_dir_all(self.parts());
        mpirun(ranks)
            .arg(command)
            .arg(target)
            .args(arguments)
            .arg("--json")
            .arg(self.parts())
            .output()
            .expect("mpirun")
    }

    /// Runs ranks on the file of the disk and gives the page and the result of all.
    fn run(&self, ranks: u32, command: &str, arguments: &[&str]) -> (String, Value) {
        let output = self.output(ranks, command, self.disk.file(), arguments);
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{page}{}", String::from_utf8_lossy(&output.stderr));
        (page, merged(&self.parts()))
    }
}

#[test]
fn four_ranks_give_what_the_disk_has_served() {
    if !requires(&NEEDS[..3]) {
        return;
    }
    let machine = OneMachine::new(LATENCY_NS);
    let (page, record) = machine.run(4, "load", &["--rw", "randwrite", "--overwrite", "--budget", "2s"]);
    assert!(page.contains("4 RANKS ON 1 HOST"), "{page}");
    let counts = machine.disk.counts();
    assert_eq!(writes(&record)["ops"], counts.writes);
    assert_eq!(writes(&record)["bytes"], counts.write_bytes);
    assert_eq!(record["cells"][0]["workload"]["streams"], 4);
    assert!(is_pooled(&record, &machine.parts()));
    let log = machine.disk.log();
    let writes_in = |part: u64| {
        let is_in =
            |served: &&Served| served.op == Op::Write && served.offset_bytes / (FILE_BYTES / RANKS) == part;
        log.iter().filter(is_in).count() as u64
    };
    for (rank, run) in (0..).zip(array(&record, "ranks")) {
        let ops: u64 = array(run, "visits").iter().filter_map(|visit| visit["ops"].as_u64()).sum();
        assert_eq!(writes_in(rank), ops, "rank {rank} writes to its own part");
    }
}

#[test]
fn one_two_and_four_ranks_write_while_the_others_wait() {
    if !requires(&NEEDS[..3]) {
        return;
    }
    let machine = OneMachine::new(LATENCY_NS);
    let arguments = ["--rw", "write", "--overwrite", "--bs", "64k", "--budget", "4s"];
    let (page, record) = machine.run(4, "scale", &arguments);
    for words in ["MiB/s of all ranks together", "1 rank", "2 ranks", "4 ranks", "Ranks start together"] {
        assert!(page.contains(words), "no {words:?}: {page}");
    }
    let log = machine.disk.log();
    let of_part = |rank: u64| {
        let is_its =
            |served: &&Served| served.op == Op::Write && served.offset_bytes / (FILE_BYTES / RANKS) == rank;
        log.iter().filter(is_its).map(|served| served.bytes).sum::<u64>()
    };
    let bytes_of = |run: &Value, cell: &str| {
        let visits = array(run, "visits").iter().filter(|visit| visit["cell"] == cell);
        visits.filter_map(|visit| visit["bytes"].as_u64()).sum::<u64>()
    };
    let cells = array(&record, "cells");
    let ids = ["scale/write/64k/1", "scale/write/64k/2", "scale/write/64k/4"];
    for (rank, run) in (0..).zip(array(&record, "ranks")) {
        let issued = ids.map(|id| bytes_of(run, id));
        assert_eq!(issued.iter().sum::<u64>(), of_part(rank), "rank {rank} writes to its own part");
        assert_eq!(issued.map(|bytes| bytes > 0), [rank < 1, rank < 2, true], "rank {rank}");
    }
    for (cell, (id, count)) in cells.iter().zip(ids.into_iter().zip([1, 2, 4])) {
        assert_eq!(cell["id"], id);
        assert_eq!(cell["workload"]["at_once"]["ranks"], count);
        let issued: u64 = array(&record, "ranks").iter().map(|run| bytes_of(run, id)).sum();
        assert_eq!(cell["result"]["bytes"], issued);
        assert!(cell["result"]["bytes_per_s"]["mean"].as_f64().is_some_and(|rate| rate > 0.0), "{id}");
    }
    assert_eq!(cells.len(), 3);
}

/// Waits, while a command goes on, until something holds.
fn until(child: &mut Child, what: &str, holds: impl Fn() -> bool) {
    let is_over = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
    let came = rdsk_testkit::wait_until(Duration::from_secs(120), || holds() || is_over(child));
    assert!(came && !is_over(child), "it ended before {what}");
}

#[test]
fn a_file_that_is_not_there_is_laid_out_once_and_goes() {
    if !requires(&[Need::Tool("mpirun")]) {
        return;
    }
    let place = tempfile::Builder::new().prefix("rdsk-ranks-").tempdir_in("/var/tmp").expect("a directory");
    let (shared, parts) = (place.path().join("shared"), place.path().join("parts"));
    let ranks = |budget: &str, more: &[&str]| {
        let _ = std::fs::remove_dir_all(&parts);
        let mut command = mpirun(4);
        command.arg("load").arg(&shared).args(["--rw", "randwrite", "--budget", budget]).args(more);
        command.arg("--json").arg(&parts);
        command
    };
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let nothing_left = || !shared.exists();
    // Without a size nothing is made.
    let output = ranks("2s", &[]).output().expect("mpirun");
    assert!(
        told(&output).contains("which is not there, without its size") && nothing_left(),
        "{}",
        told(&output)
    );
    let output = ranks("2s", &["--size", "16M"]).output().expect("mpirun");
    assert!(output.status.success() && nothing_left(), "{}", told(&output));
    let record = merged(&parts);
    let notes: Vec<&str> = array(&record, "notes").iter().filter_map(Value::as_str).collect();
    assert!(notes.iter().any(|note| note.contains("rank 0 laid it out (16 MiB)")), "{notes:?}");
    assert_eq!(record["targets"][0]["size_bytes"], 16 * MIB);
    // A signal and the death of a rank leave nothing either.
    for (victim, signal) in [(1, "TERM"), (2, "KILL"), (0, "KILL")] {
        let mut command = ranks("12s", &["--size", "16M"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mpirun");
        until(&mut child, "its ranks had written", || {
            let text = std::fs::read_to_string(parts.join("rank-3.json")).unwrap_or_default();
            text.contains("\"histogram\"")
        });
        assert!(shared.exists());
        let of_job = process_in(&parts, victim).expect("the rank runs");
        sh(&format!("kill -{signal} {of_job}"));
        assert!(wait(&mut child, Duration::from_secs(60)), "mpirun goes on");
        assert!(
            rdsk_testkit::wait_until(Duration::from_secs(10), nothing_left),
            "after {signal} the file stays"
        );
    }
    // A file that is there is the user's.
    std::fs::write(&shared, vec![7; 8 << 20]).expect("a new file");
    let output = ranks("2s", &["--size", "16M"]).output().expect("mpirun");
    assert!(told(&output).contains("rdsk did not create this file"), "{}", told(&output));
    assert_eq!(std::fs::read(&shared).expect("the file"), vec![7; 8 << 20]);
}

#[test]
fn ranks_write_to_a_block_device_that_they_hold_together() {
    let needs = [Need::Root, Need::Loop, Need::Tool("mpirun"), Need::Tool("wipefs"), Need::Tool("lsblk")];
    if !requires(&needs) {
        return;
    }
    let device = LoopDevice::builder().size(FILE_BYTES).create().expect("a loop device");
    let identity = device.backing_path().to_str().expect("a name").to_owned();
    let place = tempfile::Builder::new().prefix("rdsk-ranks-").tempdir().expect("a directory");
    let parts = place.path().join("parts");
    let ranks = |words: &[&str], destroy: &str, budget: &str| {
        let _ = std::fs::remove_dir_all(&parts);
        let mut command = mpirun_through(4, words);
        command.arg("load").arg(device.path()).args(["--rw", "randwrite", "--destroy", destroy]);
        command.args(["--budget", budget, "--json"]).arg(&parts);
        command
    };
    let before = device.content_hash().expect("its content");
    let refused = |command: &mut Command, why: &str| {
        let output = command.output().expect("mpirun");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains(why), "no {why:?}: {told}");
        assert_eq!(device.content_hash().expect("its content"), before, "{why}");
    };
    refused(&mut ranks(&[], "/another/file", "2s"), "rank 0 of 4: refusing to write");
    {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        let _user = rustix::fs::open(device.path(), flags, Mode::empty()).expect("it is free");
        refused(&mut ranks(&[], &identity, "2s"), "another program holds it exclusively");
    }
    // On the host of rank 2 another device has the name.
    let other = LoopDevice::builder().size(FILE_BYTES).create().expect("a loop device");
    let (node, other_node) = (device.path().display(), other.path().display());
    let script = format!(
        "if [ $OMPI_COMM_WORLD_RANK = 2 ]; then mount --make-rprivate / && mount --bind {other_node} {node}; fi; exec \"$@\""
    );
    let words = ["unshare", "--mount", "sh", "-c", script.as_str(), "sh"];
    refused(&mut ranks(&words, &identity, "2s"), "rank 2 of 4: refusing to write");
    let exclusive = || {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(device.path(), flags, Mode::empty()).map(drop)
    };
    let sectors_written = || {
        let stat = device.sysfs("stat").expect("its counters");
        stat.split_whitespace().nth(6).and_then(|field| field.parse::<u64>().ok()).expect("a number")
    };
    let sectors_before = sectors_written();
    let mut child = ranks(&[], &identity, "4s").stdout(Stdio::null()).spawn().expect("mpirun");
    until(&mut child, "its ranks had written", || parts.join("rank-3.json").exists());
    assert_eq!(exclusive(), Err(Errno::BUSY), "nobody takes it while the ranks write");
    assert!(child.wait().expect("mpirun").success());
    assert!(rdsk_testkit::wait_until(Duration::from_secs(10), || exclusive().is_ok()), "it is free again");
    let record = merged(&parts);
    assert_eq!(writes(&record)["bytes"], (sectors_written() - sectors_before) * 512);
    for (rank, run) in (0..).zip(array(&record, "ranks")) {
        assert!(array(run, "visits").iter().any(|visit| visit["ops"].as_u64() > Some(0)), "rank {rank}");
        let part = std::fs::read(device.backing_path()).expect("its content");
        let part = &part[usize::try_from(rank * FILE_BYTES / RANKS).expect("an offset")..][..1 << 20];
        assert!(part.iter().any(|&byte| byte != 0), "rank {rank} wrote nothing to its part");
    }
}

#[test]
#[ignore = "campaign: cargo xtask campaign mpi"]
fn sixty_four_ranks_of_one_machine() {
    if !requires(&NEEDS[..3]) {
        return;
    }
    let began = Instant::now();
    let machine = OneMachine::new(5_000_000);
    let (_, record) = machine.run(64, "load", &["--budget", "10s", "--quiet"]);
    let ranks = array(&record, "ranks");
    assert_eq!(ranks.len(), 64);
    let sum = |key: &str| ranks.iter().filter_map(|rank| rank[key].as_u64()).sum::<u64>();
    let turns = array(&ranks[0], "visits").len() as u64;
    // The name and seed of the run, whether its file is there, its size, the plan and whether it is the same, the clocks before and after; each turn with what comes next,
    // three barriers, the clocks and the start; and the turn that is none.
    let (others, run, turn, last) = (63, 1 + 2 + 2 + 1 + 2 + 65 + 65, 2 + 6 + 17 + 2, 2);
    assert_eq!(sum("sent_messages"), others * (run + turn * turns + last), "{turns} turns");
    let sizes =
        (0..64).filter_map(|rank| std::fs::metadata(machine.parts().join(format!("rank-{rank}.json"))).ok());
    let collected: u64 = sizes.map(|facts| facts.len()).sum();
    let text = format!(
        "{turns} turns: {} messages, {} bytes; parts of {} bytes collected",
        sum("sent_messages"),
        sum("sent_bytes"),
        collected
    );
    eprintln!("{text}");
    note("size", "64 ranks on one machine", &text, began.elapsed());
}
