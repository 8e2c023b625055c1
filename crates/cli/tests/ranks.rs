//! Ranks under mpirun. Those of one machine (`one_machine`) are part of the step `mpi` of `cargo xtask test` on the build server. Here is the
//! campaign `mpi`: ranks under mpirun, each as a host of its own, with a network, mounts, a name and a clock, over one file that is
//! served through FUSE, whose log is the truth. `cargo xtask campaign mpi` runs it and writes xtask/records/campaigns/mpi.md.

#![allow(clippy::print_stderr, reason = "a campaign says how far it is")]

mod one_machine;

use rdsk_stats::Histogram;
use rdsk_testkit::fusedisk::{Behaviour, FuseDisk, Op};
use rdsk_testkit::guest::campaign::note;
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const RANKS: u64 = 4;
const FILE_BYTES: u64 = 64 * MIB;
/// Latency of a request, whatever else is in flight.
const LATENCY_NS: u64 = 1_000_000;
/// How far the clock of each rank is ahead.
const OFFSETS_NS: [i64; 4] = [0, 3_600_000_000_000, 3_000_000, 0];
/// Runs of each kind.
const RUNS: usize = 20;
const NEEDS: [Need; 5] =
    [Need::Root, Need::Fuse, Need::Tool("mpirun"), Need::Tool("ip"), Need::Tool("unshare")];

/// What makes a rank of mpirun a host: its network, mounts, name and clock, and, where that is asked for, its boot. The kernel switches to the new clock with the next program.
const AS_HOST: &str = r#"
export RDSK_RANK=$OMPI_COMM_WORLD_RANK
if [ $RDSK_RANK = 2 ]; then RDSK_SHARED=$RDSK_SHARED_BY_2; fi
exec ip netns exec rdsk-rank$RDSK_RANK unshare --uts --mount sh -c '
  hostname node$RDSK_RANK
  mount --make-rprivate / && mount --bind "$RDSK_SHARED" "$RDSK_MOUNT" || exit 1
  if [ "$RDSK_BOOTS" ]; then
    echo 00000000-0000-4000-8000-00000000000$RDSK_RANK > "$RDSK_MOUNT.boot$RDSK_RANK"
    mount --bind "$RDSK_MOUNT.boot$RDSK_RANK" /proc/sys/kernel/random/boot_id || exit 1
  fi
  exec perl -e '\''syscall(272, 0x80) == 0 or die "unshare: $!";
    my @off = split /,/, $ENV{RDSK_CLOCKS}; open(F, ">", "/proc/self/timens_offsets") or die "open: $!";
    syswrite(F, "monotonic $off[$ENV{RDSK_RANK}]\n") or die "write: $!"; close(F); exec @ARGV'\'' "$@"' sh "$@"
"#;

fn sh(script: &str) {
    let status = Command::new("sh").args(["-e", "-c", script]).status().expect("sh");
    assert!(status.success(), "{script}");
}

/// Four networks of one bridge; gone on drop.
struct Networks;

impl Networks {
    fn up() -> Self {
        let made = Self;
        sh("ip link add rdskbr0 type bridge; ip addr add 10.77.0.254/24 dev rdskbr0; ip link set rdskbr0 up
            for r in 0 1 2 3; do
              ip netns add rdsk-rank$r
              ip link add rdskv$r type veth peer name eth0 netns rdsk-rank$r
              ip link set rdskv$r master rdskbr0 up
              ip -n rdsk-rank$r addr add 10.77.0.$((r+1))/24 dev eth0
              ip -n rdsk-rank$r link set eth0 up; ip -n rdsk-rank$r link set lo up
            done");
        made
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        let down = "for r in 0 1 2 3; do ip netns del rdsk-rank$r; done; ip link del rdskbr0";
        let _ = Command::new("sh").args(["-c", down]).status();
    }
}

/// A shared disk, and where the ranks mount it and keep their parts.
struct Hosts {
    _networks: Networks,
    disk: FuseDisk,
    /// The disk of rank 2 where that is another one.
    of_rank_2: Option<FuseDisk>,
    place: tempfile::TempDir,
}

impl Hosts {
    fn new(behaviour: Behaviour, of_rank_2: Option<Behaviour>) -> Self {
        let made = |behaviour: Behaviour| {
            FuseDisk::builder().capacity(FILE_BYTES).device(behaviour).mount().expect("a FUSE disk")
        };
        let (disk, of_rank_2) = (made(behaviour), of_rank_2.map(made));
        let place = tempfile::Builder::new().prefix("rdsk-ranks-").tempdir().expect("a directory");
        std::fs::create_dir(place.path().join("mnt")).expect("a new directory");
        std::fs::write(place.path().join("as-host.sh"), AS_HOST).expect("a new file");
        Self { _networks: Networks::up(), disk, of_rank_2, place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The line of a load of all ranks, whose parts go to this directory.
    fn load(&self, parts: &str, arguments: &[&str]) -> Command {
        self.line("load", parts, arguments)
    }

    /// The line of a command of all ranks.
    fn line(&self, name: &str, parts: &str, arguments: &[&str]) -> Command {
        let parts = self.path(parts);
        // Parts of an earlier run are no part of this one.
        let _ = std::fs::remove_dir_all(&parts);
        let file = self.path("mnt").join(self.disk.file().file_name().expect("a name"));
        let mut command = Command::new("mpirun");
        command
            .args("--allow-run-as-root --oversubscribe --mca btl tcp,self --mca pml ob1".split(' '))
            .args(["--mca", "btl_tcp_if_include", "10.77.0.0/24", "-n", "4", "sh"])
            .arg(self.path("as-host.sh"))
            .arg(env!("CARGO_BIN_EXE_rdsk"))
            .arg(name)
            .arg(file)
            .args(arguments)
            .arg("--json")
            .arg(&parts)
            .env("PMIX_MCA_ptl_base_if_include", "rdskbr0")
            .env("RDSK_HISTORY", "")
            .env("RDSK_SHARED", directory(&self.disk))
            .env("RDSK_SHARED_BY_2", directory(self.of_rank_2.as_ref().unwrap_or(&self.disk)))
            .env("RDSK_MOUNT", self.path("mnt"))
            .env("RDSK_CLOCKS", "0 0,3600 0,0 3000000,0 0");
        command
    }

    /// Runs a load to its end and gives the page and the result of all parts.
    fn run(&self, arguments: &[&str]) -> (String, Value) {
        self.page_and_result(self.load("parts", arguments))
    }

    fn page_and_result(&self, mut line: Command) -> (String, Value) {
        let output = line.output().expect("mpirun");
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{page}{}", String::from_utf8_lossy(&output.stderr));
        (page, merged(&self.path("parts")))
    }
}

fn directory(disk: &FuseDisk) -> &Path {
    disk.file().parent().expect("a file lies somewhere")
}

/// The result of the parts in a directory.
fn merged(parts: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdsk"));
    let output =
        command.args(["show", "--json", "-"]).arg(parts).env("RDSK_HISTORY", "").output().expect("rdsk");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value:.300}"))
}

const WRITES: [&str; 5] = ["--rw", "randwrite", "--overwrite", "--budget", "4s"];

fn writes(record: &Value) -> &Value {
    &record["cells"][0]["result"]["jobs"][0]["writes"]
}

fn held(group: &str, name: &str, times: usize, of: usize, began: Instant) {
    let mark = if times < of { "**" } else { "" };
    note(group, name, &format!("{mark}{times} of {of}{mark}"), began.elapsed());
    eprintln!("{group}, {name}: {times} of {of}");
}

/// Reads that each take this long, as many at once as all ranks have in flight.
fn disk(latency_ns: u64) -> Behaviour {
    Behaviour::parallel(64, latency_ns)
}

/// Whether the offset of each comparison of a rank's clock is no farther from the true one than it says.
fn is_true_within(run: &Value) -> bool {
    let rank = usize::try_from(run["rank"].as_u64().expect("a number")).expect("a small one");
    let clocks = [&run["clock_before"], &run["clock_after"]];
    let of_turns = array(run, "visits").iter().map(|turn| &turn["clock"]);
    clocks.into_iter().chain(of_turns).all(|clock| {
        let offset_ns = clock["offset_ns"].as_i64().expect("an offset");
        let off_ns = (offset_ns - OFFSETS_NS[rank]).unsigned_abs();
        off_ns <= clock["uncertainty_ns"].as_u64().expect("an uncertainty")
    })
}

/// From the first to the last start of each turn, on the one clock that all have below theirs.
fn spreads_ns(record: &Value) -> Vec<u64> {
    let ranks = array(record, "ranks");
    let turns = ranks.iter().map(|rank| array(rank, "visits").len()).min().expect("ranks");
    let start = |turn: usize| {
        let each = ranks.iter().zip(OFFSETS_NS);
        let on_one = each.map(|(rank, off_ns)| {
            let start_ns = rank["visits"][turn]["start_ns"].as_u64().expect("a time");
            start_ns.checked_add_signed(-off_ns).expect("an earlier clock")
        });
        let all: Vec<u64> = on_one.collect();
        all.iter().max().expect("ranks") - all.iter().min().expect("ranks")
    };
    (0..turns).map(start).collect()
}

#[test]
#[ignore = "campaign: cargo xtask campaign mpi"]
fn starts_sums_and_equal_ranks() {
    if !requires(&NEEDS) {
        return;
    }
    let began = Instant::now();
    let hosts = Hosts::new(disk(LATENCY_NS), None);
    let (mut spreads, mut within, mut exact, mut apart, mut pooled, mut unnamed) =
        (Vec::new(), 0, 0, 0, 0, 0);
    for _ in 0..RUNS {
        hosts.disk.clear_log();
        let (page, record) = hosts.run(&WRITES);
        spreads.push(spreads_ns(&record)[0]);
        within += usize::from(array(&record, "ranks").iter().all(is_true_within));
        let counts = hosts.disk.counts();
        exact += usize::from(
            writes(&record)["bytes"] == counts.write_bytes && writes(&record)["ops"] == counts.writes,
        );
        let log = hosts.disk.log();
        let in_parts = log.iter().filter(|served| served.op == Op::Write).all(|served| served.bytes == 4096);
        apart += usize::from(
            in_parts && log.iter().all(|served| served.offset_bytes + served.bytes <= FILE_BYTES),
        );
        pooled += usize::from(is_pooled(&record, &hosts.path("parts")));
        unnamed += usize::from(page.contains("no rank is clearly slower"));
        eprintln!(
            "{spreads:?}: {within} within, {exact} exact, {apart} apart, {pooled} pooled, {unnamed} unnamed"
        );
    }
    spreads.sort_unstable();
    let median_us = spreads[RUNS / 2] / 1000;
    note("start", "median of 20 starts of four ranks", &format!("{median_us} µs apart"), began.elapsed());
    eprintln!("starts: {spreads:?} ns");
    held(
        "clock",
        "true offsets of 1 h and 3 ms inside the uncertainty, in every comparison",
        within,
        RUNS,
        began,
    );
    held("sums", "bytes and writes equal those of the disk's log", exact, RUNS, began);
    held("sums", "every write of the log is a whole one inside the file", apart, RUNS, began);
    held("sums", "percentiles equal those of the pooled histograms", pooled, RUNS, began);
    held("slow", "four equal ranks, none named", unnamed, RUNS, began);
    assert!(spreads[RUNS / 2] <= 1_000_000, "{spreads:?}");
    assert_eq!([within, exact, apart, pooled, unnamed], [RUNS; 5]);
}

/// Whether the percentiles of all are those of the histograms of the parts, added.
fn is_pooled(record: &Value, parts: &Path) -> bool {
    let mut all = Histogram::new();
    for rank in 0..RANKS {
        let text = std::fs::read(parts.join(format!("rank-{rank}.json"))).expect("a part");
        let part: Value = serde_json::from_slice(&text).expect("a document");
        let histogram = writes(&part)["latency_ns"]["histogram"].as_str().expect("a histogram");
        all.merge(&Histogram::from_base64(histogram).expect("a histogram"));
    }
    let latency = &writes(record)["latency_ns"];
    let same = |key: &str, p: f64| latency[key].as_u64() == all.quantile(p);
    latency["count"] == all.count()
        && same("p50", 0.5)
        && same("p90", 0.9)
        && same("p99", 0.99)
        && same("p999", 0.999)
}

const READS: [&str; 6] = ["--rw", "randread", "--iodepth", "8", "--budget", "4s"];

/// How often rank 2 is named, and how often no rank is, where its disk takes so long for a read and those of the others 8 ms.
fn named(of_rank_2_ns: u64) -> (usize, usize) {
    let hosts = Hosts::new(disk(8_000_000), Some(disk(of_rank_2_ns)));
    let (mut named, mut unnamed) = (0, 0);
    for run in 1..=RUNS {
        let (page, _) = hosts.run(&READS);
        let words: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
        named += usize::from(words.contains("slowest rank 2 on node2"));
        unnamed += usize::from(words.contains("slowest no rank is clearly slower"));
        eprintln!("{of_rank_2_ns} ns: rank 2 named in {named} of {run}, no rank in {unnamed}");
    }
    (named, unnamed)
}

#[test]
#[ignore = "campaign: cargo xtask campaign mpi"]
fn a_rank_slowed_by_a_fifth_is_named_and_equal_ones_are_not() {
    if !requires(&NEEDS) {
        return;
    }
    let began = Instant::now();
    let (slow, _) = named(10_000_000);
    held("slow", "rank 2 with a disk of 10 ms, those of the others 8 ms: named", slow, RUNS, began);
    let began = Instant::now();
    let (_, equal) = named(8_000_000);
    held("slow", "four equal ranks on two disks: none named", equal, RUNS, began);
    assert_eq!((slow, equal), (RUNS, RUNS));
}

/// Each host has two reads of 8 ms in flight, and the disk as many as all have, so that 1, 2 and 4 hosts get 250, 500 and 1,000 reads per second.
#[test]
#[ignore = "campaign: cargo xtask campaign mpi"]
fn one_two_and_four_hosts_read_while_the_others_wait() {
    if !requires(&NEEDS) {
        return;
    }
    let began = Instant::now();
    let hosts = Hosts::new(disk(8_000_000), None);
    let arguments = ["--rw", "read", "--bs", "64k", "--streams", "2", "--budget", "20s"];
    let mut line = hosts.line("scale", "parts", &arguments);
    line.env("RDSK_BOOTS", "1");
    let (page, record) = hosts.page_and_result(line);
    for words in ["1 host", "2 hosts", "4 hosts"] {
        assert!(page.contains(words), "no {words:?}: {page}");
    }
    let bytes_of = |run: &Value, cell: &Value| -> u64 {
        let visits = array(run, "visits").iter().filter(|visit| visit["cell"] == cell["id"]);
        visits.filter_map(|visit| visit["bytes"].as_u64()).sum()
    };
    let cells = array(&record, "cells");
    assert_eq!(cells.len(), 3, "{page}");
    let mut rates = Vec::new();
    for (cell, count) in cells.iter().zip([1, 2, 4]) {
        assert_eq!(cell["workload"]["at_once"]["hosts"], count);
        let each: Vec<u64> = array(&record, "ranks").iter().map(|run| bytes_of(run, cell)).collect();
        let reading = each.iter().filter(|&&bytes| bytes > 0).count();
        assert_eq!((reading, cell["result"]["bytes"].as_u64()), (count, Some(each.iter().sum())), "{each:?}");
        rates.push(cell["result"]["bytes_per_s"]["mean"].as_f64().expect("a rate"));
    }
    // Beside them, each rank looks at what the file begins with.
    let log = hosts.disk.log();
    let blocks = log.iter().filter(|served| served.op == Op::Read && served.bytes == 65_536).count() as u64;
    let all: u64 = cells.iter().filter_map(|cell| cell["result"]["bytes"].as_u64()).sum();
    assert_eq!(all, blocks * 65_536, "what the disk's log has");
    let of_one: Vec<f64> = rates.iter().map(|rate| rate / rates[0]).collect();
    let shown = format!("{:.2} and {:.2} times the rate of one", of_one[1], of_one[2]);
    note("scale", "2 and 4 hosts; bytes equal those of the disk's log", &shown, began.elapsed());
    eprintln!("{page}{shown}");
    assert!((1.7..2.3).contains(&of_one[1]) && (3.2..4.8).contains(&of_one[2]), "{shown}");
}

/// The process of a rank.
fn process_of(rank: u32) -> Option<u32> {
    process_with(rank, |_| true)
}

/// The process of a rank of the run that keeps its parts in this directory.
fn process_in(parts: &Path, rank: u32) -> Option<u32> {
    let name = parts.as_os_str().as_encoded_bytes();
    process_with(rank, |line| line.split(|&byte| byte == 0).any(|argument| argument == name))
}

/// The process of a rank whose command line, with a zero byte behind each argument, is it.
fn process_with(rank: u32, is_it: impl Fn(&[u8]) -> bool) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|pid| {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let mine = format!("OMPI_COMM_WORLD_RANK={rank}");
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        program == Path::new(env!("CARGO_BIN_EXE_rdsk"))
            && is_it(&read("cmdline"))
            && read("environ").split(|&byte| byte == 0).any(|variable| variable == mine.as_bytes())
    })
}

fn wait(child: &mut Child, limit: Duration) -> bool {
    rdsk_testkit::wait_until(limit, || child.try_wait().is_ok_and(|status| status.is_some()))
}

#[test]
#[ignore = "campaign: cargo xtask campaign mpi"]
fn a_killed_rank_leaves_the_parts_of_all() {
    if !requires(&NEEDS) {
        return;
    }
    const KILLS: usize = 5;
    let began = Instant::now();
    let hosts = Hosts::new(disk(LATENCY_NS), None);
    let mut named = 0;
    for _ in 0..KILLS {
        let arguments = ["--rw", "randwrite", "--overwrite", "--budget", "60s"];
        let mut command = hosts.load("killed", &arguments);
        let mut mpirun = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mpirun");
        let parts = hosts.path("killed");
        // After the first turn, each part has a test with figures.
        let has_figures = || {
            (0..RANKS).all(|rank| {
                let text =
                    std::fs::read_to_string(parts.join(format!("rank-{rank}.json"))).unwrap_or_default();
                text.contains("\"histogram\"")
            })
        };
        assert!(rdsk_testkit::wait_until(Duration::from_secs(120), has_figures), "no part has figures");
        let pid = process_of(2).expect("rank 2 runs");
        sh(&format!("kill -KILL {pid}"));
        assert!(wait(&mut mpirun, Duration::from_secs(60)), "mpirun goes on");
        let record = merged(&parts);
        let message = record["error"]["message"].as_str().unwrap_or_default();
        eprintln!("{message}");
        let names: Vec<String> = std::fs::read_dir(&parts)
            .expect("the directory")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        assert!(names.iter().all(|name| name.starts_with("rank-") && name.ends_with(".json")), "{names:?}");
        assert!((0..4).all(|rank| process_of(rank).is_none()), "a rank is left");
        assert!(writes(&record)["ops"].as_u64().is_some_and(|ops| ops > 0), "nothing was measured");
        named +=
            usize::from(message.starts_with("partial") && message.contains("without a word: 2 on node2"));
    }
    held(
        "kill",
        "rank 2 killed: the parts of all merged, the dead one named, nothing left behind",
        named,
        KILLS,
        began,
    );
    assert_eq!(named, KILLS);
}
