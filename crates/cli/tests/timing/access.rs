//! What the history of accesses makes of a disk, in real time: first accesses are distinguished from later ones, in reads, writes and copies; a
//! disk that sleeps shows its latency after idle; and read-ahead that a test leaves in flight is not taken for other programs.
#![expect(clippy::print_stderr, reason = "what a run showed is needed when it fails")]

use crate::support::{
    cell, complete, figure, findings, identity, programmed, programmed_of, rdsk, record_of, word,
};
use rdsk_testkit::cli::run;
use rdsk_testkit::fusedisk::{FirstAccessParams, SleepParams};
use rdsk_testkit::{Behaviour, Need, requires};
use serde_json::Value;

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const US: u64 = 1000;
const MS: u64 = 1000 * US;
const MIB: u64 = 1 << 20;
const RUNS: usize = 20;
/// What must not be said of a difference that first access explains.
const OTHERS: [&str; 6] = ["drift", "slow-start", "slows-down", "stalls", "passes-differ", "level-shifts"];

/// 300 µs for each request, and `first` more for the first access of each MiB.
fn fetched(first_ns: u64) -> Behaviour {
    let first_access =
        Some(FirstAccessParams { place_bytes: MIB, costs_ns: first_ns, ..FirstAccessParams::default() });
    Behaviour { first_access, ..Behaviour::single(300 * US) }
}

fn says(record: &Value, codes: &[&str]) -> Vec<String> {
    let matching = codes.iter().filter(|code| !findings(record, code).is_empty());
    matching.map(|code| (*code).to_owned()).collect()
}

/// The Record of a copy.
fn copied(words: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let file = directory.path().join("record.json");
    let mut command = rdsk_testkit::cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(["dd", "--json"]).arg(&file).args(words);
    let ended = run(command, crate::support::LONG);
    let text = std::fs::read_to_string(&file).expect("it was written");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", ended.stderr))
}

/// Runs of reads, of writes and of dd on new disks; how many say `first-access`, and what else they say of time.
fn counted(first_ns: u64) -> [usize; 3] {
    let mut told = [0; 3];
    for _ in 0..RUNS {
        let answer_of = |line: &[&str]| {
            let (_disk, device) = programmed_of(128 * MIB, fetched(first_ns));
            let path = device.path().display().to_string();
            let identity = identity(&device);
            let words = line.iter().map(|word| word.replace("DEVICE", &path).replace("IDENTITY", &identity));
            let words: Vec<String> = words.collect();
            let command =
                rdsk(&words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>).collect::<Vec<_>>());
            let record = record_of(command);
            let others = says(&record, &OTHERS);
            assert!(others.is_empty() || first_ns == 0, "{others:?}: {}", record["findings"]);
            let told = findings(&record, "first-access");
            if told.is_empty() == (first_ns > 0) {
                eprintln!("{line:?}: {told:?}");
            }
            usize::from(!told.is_empty())
        };
        told[0] +=
            answer_of(&["run", "DEVICE", "--rw", "read", "--only", "headline,zones", "--budget", "12s"]);
        told[1] += answer_of(&[
            "run", "DEVICE", "--destroy", "IDENTITY", "--rw", "write", "--only", "headline", "--budget",
            "12s",
        ]);
        let (_disk, device) = programmed_of(128 * MIB, fetched(first_ns));
        let input = format!("if={}", device.path().display());
        let record = copied(&["--repeat", "3", &input, "of=/dev/null", "bs=1M", "iflag=direct"]);
        let is_told = !findings(&record, "first-access").is_empty();
        if is_told != (first_ns > 0) {
            eprintln!("{}", record["copies"][0]["runs"]);
        }
        told[2] += usize::from(is_told);
    }
    told
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn first_access_is_told_in_each_run() {
    if requires(&NEEDS) {
        assert_eq!(counted(20 * MS), [RUNS; 3]);
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn first_access_is_told_of_no_steady_disk() {
    if requires(&NEEDS) {
        assert_eq!(counted(0), [0; 3]);
    }
}

/// The first write of an output's places is another thing, too.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_first_run_of_a_copy_onto_a_thin_disk_is_another_thing() {
    if !requires(&NEEDS) {
        return;
    }
    for _ in 0..RUNS {
        let (_disk, device) = programmed(fetched(20 * MS));
        let output = format!("of={}", device.path().display());
        let destroyed = identity(&device);
        let more = ["if=/dev/zero", &output, "bs=1M", "count=40", "oflag=direct"];
        let record = copied(&[&["--repeat", "3", "--destroy", &destroyed][..], &more].concat());
        let finding = findings(&record, "first-access");
        assert_eq!(finding.len(), 1, "{}", record["copies"][0]["runs"]);
        assert!(word(finding[0], "/title").starts_with("first write of a place"), "{}", finding[0]);
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_disk_that_sleeps_shows_its_latency_after_idle() {
    if !requires(&NEEDS) {
        return;
    }
    let sleep = Some(SleepParams { after_ns: 300 * MS, wakes_in_ns: 40 * MS });
    for sleep in [sleep, None] {
        let (_disk, device) = programmed(Behaviour { sleep, ..Behaviour::single(300 * US) });
        let attempt = |_: usize| {
            let mut command = rdsk_testkit::cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
            command.args(["run", &device.path().display().to_string(), "--rw", "read", "--only", "headline"]);
            let directory = tempfile::tempdir().expect("a directory for temporary files");
            let file = directory.path().join("record.json");
            command.args(["--budget", "60s", "--json"]).arg(&file);
            let page = run(command, crate::support::LONG).stdout;
            let record: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let cell = cell(&record, "headline/read/random-qd1");
            let rests = cell["result"]["after_idle"].as_array().expect("the budget has time for it");
            assert_eq!(rests.len(), 3);
            let rests = rests.iter().filter(|rest| rest["rest_ns"] != 0);
            let latencies = rests.flat_map(|rest| rest["latency_ns"].as_array().unwrap());
            let latencies: Vec<f64> = latencies.map(|ns| ns.as_f64().unwrap()).collect();
            let median_ns = rdsk_stats::median(&latencies).unwrap();
            let longer_ns = median_ns - figure(cell, "/result/latency_ns/p50");
            eprintln!("after rests {latencies:.0?} ns, {longer_ns} ns more than usual");
            // Whatever the machine does, nothing is earlier than programmed.
            assert!(sleep.is_none() || latencies.iter().all(|ns| *ns >= 40e6), "{latencies:?}");
            let is_said = page.contains("after 500 ms of rest");
            is_said == sleep.is_some() && (sleep.is_none() || (longer_ns - 40e6).abs() <= 0.05 * 40e6)
        };
        assert!((0..4).any(attempt), "no attempt shows what was programmed: {sleep:?}");
    }
}

/// A disk of 20 MB/s with a read-ahead of 2560 KiB: a test through the page cache ends with two requests of its own read-ahead in
/// flight, and the direct one after it must not take them for others.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn read_ahead_in_flight_is_no_other_program() {
    if !requires(&NEEDS) {
        return;
    }
    let behaviour = Behaviour::default().zone_rate(0..u64::MAX, 20e6);
    let (_disk, device) = programmed_of(512 * MIB, behaviour);
    let queue = format!("/sys/block/{}/queue/read_ahead_kb", device.name());
    std::fs::write(&queue, "2560").expect("root may set it");
    for _ in 0..RUNS {
        let ended = run(
            rdsk(&[&"run", &device.path(), &"--rw", &"read", &"--only", &"paths", &"--budget", &"6s"]),
            crate::support::LONG,
        );
        let record = complete(&ended);
        for cell in record["cells"].as_array().unwrap() {
            assert_ne!(cell["verdict"]["code"], "disturbed", "{}: {}", cell["id"], cell["verdict"]);
        }
    }
}
