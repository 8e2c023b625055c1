//! Truth: a real block device whose behaviour is programmed. `rdsk` reads a loop device over a disk that answers each
//! request after a known time; what rdsk reports must be what was programmed.
//!
//! The kernel's overhead comes on top of what is programmed. A loop of plain pread(2), independent of rdsk, measures it, and
//! the disk subtracts it. Another program on the machine may increase it for a while, so one of a few attempts must show
//! the figure.

use crate::support::plain::calibrate;
use crate::support::{
    assert_near, cell, count, figure, programmed, programmed_of, random_reads, rdsk, record_of, tool,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{Behaviour, Need, requires};
use std::ffi::OsStr;
use std::process::Command;

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const US: u64 = 1000;
const MS: u64 = 1000 * US;
const ATTEMPTS: usize = 12;

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn median_is_what_was_programmed() {
    if !requires(&NEEDS) {
        return;
    }
    let (disk, device) = programmed(Behaviour::default());
    let expected = [(100 * US, 0.15), (500 * US, 0.06), (MS, 0.04), (2 * MS, 0.05), (8 * MS, 0.03)];
    for (latency_ns, tolerance) in expected {
        let truth = latency_ns as f64;
        let mut rates = Vec::new();
        for _ in 0..ATTEMPTS {
            calibrate(&disk, &device, latency_ns, 4096);
            let record = random_reads(&disk, &device, "4k", 1, &["--runtime", "250ms"]);
            let p50 = figure(cell(&record, "stream/read/direct"), "/result/latency_ns/p50");
            rates.push(p50 / truth - 1.0);
            if (p50 / truth - 1.0).abs() <= tolerance {
                break;
            }
        }
        eprintln!("programmed {truth} ns, p50 off by {rates:.3?}");
        assert!(rates.iter().any(|off| off.abs() <= tolerance), "{latency_ns} ns: off by {rates:?}");
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn single_server_has_its_rate_at_any_depth() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let (disk, device) = programmed(Behaviour::single(MS));
    let is_right = |(rate, p50_off): &(f64, f64)| (970.0..=1030.0).contains(rate) && p50_off.abs() <= 0.04;
    for depth in [1, 4, 16] {
        let mut rates = Vec::new();
        for _ in 0..ATTEMPTS {
            calibrate(&disk, &device, MS, 4096);
            let record = random_reads(&disk, &device, "4k", depth, &["--runtime", "600ms"]);
            let direct = cell(&record, "stream/read/direct");
            assert_eq!(count(direct, "/workload/queue_depth"), depth);
            let rate = figure(direct, "/result/ops_per_s/mean");
            // Little's law, whatever the machine does: what is in flight is the rate times the latency.
            let in_flight = figure(direct, "/result/in_flight_mean");
            let mean_ns = figure(direct, "/result/latency_ns/mean");
            assert_near("rate × mean latency", rate * mean_ns / 1e9, in_flight, 0.05);
            // At the start of a visit the server is idle and the first reads are quicker, which the median does not see.
            let p50_off = figure(direct, "/result/latency_ns/p50") / (depth * MS) as f64 - 1.0;
            rates.push((rate, p50_off));
            if is_right(&(rate, p50_off)) {
                break;
            }
        }
        eprintln!("depth {depth}: per second, and the median off by, {rates:.3?}");
        assert!(rates.iter().any(is_right), "depth {depth}: {rates:?}");
    }
}

/// The sequential read of the headline is the fio job that its page names: one server of 3 ms answers both at the same rate.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_headline_is_the_rate_of_its_fio_job() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring, Need::Tool("fio")]) {
        return;
    }
    let (_disk, device) = programmed_of(512 << 20, Behaviour::single(3 * MS));
    let page = include_str!("../../../../docs/experiments/headline.md");
    let job = page.lines().find_map(|line| line.trim().strip_prefix("fio --name=headline"));
    let job = job.expect("the page names the job").replace("FILE", &device.path().display().to_string());
    first_right(3, || {
        let mut fio = Command::new("fio");
        fio.args(["--name=headline", "--output-format=json"]).args(job.split_whitespace());
        let document: serde_json::Value = serde_json::from_str(&tool(fio).0).expect("fio prints JSON");
        let by_fio = figure(&document, "/jobs/0/read/bw_bytes");
        let path = device.path();
        let line: [&dyn AsRef<OsStr>; 8] =
            [&"run", &path, &"--only", &"headline", &"--rw", &"read", &"--budget", &"20s"];
        let record = record_of(rdsk(&line));
        let by_rdsk = figure(cell(&record, "headline/read/sequential"), "/result/bytes_per_s/mean");
        eprintln!("bytes per second: rdsk {by_rdsk:.0}, fio {by_fio:.0}, ratio {:.4}", by_rdsk / by_fio);
        ensure((0.95..=1.05).contains(&(by_rdsk / by_fio)), || {
            format!("{by_rdsk} and {by_fio} bytes per second")
        })
    });
}

/// 3,000 writes per second for 30,000 of them, then 500, as a cloud volume with burst credit. The deep cell never rests, so that nothing
/// fills up meanwhile.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn what_a_bucket_of_tokens_lets_through_in_the_long_run_is_found() {
    if !requires(&[Need::Root, Need::Fuse, Need::Loop, Need::IoUring]) {
        return;
    }
    let bucket = Some(rdsk_testkit::fusedisk::Bucket { requests: 30_000, then_ns: 2_000_000 });
    let behaviour = Behaviour { bucket, ..Behaviour::single(333_000) };
    let (_disk, device) = programmed_of(256 << 20, behaviour);
    let identity = crate::support::identity(&device);
    let words = ["--sustained", "--only", "headline", "--rw", "write", "--budget", "160s", "--destroy"];
    let path = device.path();
    let mut line: Vec<&dyn AsRef<OsStr>> = vec![&"run", &path];
    line.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
    line.push(&identity);
    let record = record_of(rdsk(&line));
    let record: rdsk_model::Record = serde_json::from_value(record).expect("a Record");
    let deep = record.cell("headline/write/random-qd32").expect("it was planned");
    let lasting = rdsk_analysis::lasting::lasting_of(&record, deep).expect("it went on");
    let per_s = lasting.bytes_per_s / 4096.0;
    assert!(lasting.is_burst && (475.0..525.0).contains(&per_s), "{per_s} per second: {lasting:?}");
}
