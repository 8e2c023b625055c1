//! Truth: known rates. A loop device that a control group holds to an exact rate, GNU dd, iostat and fio beside rdsk.

mod support;

use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, cli, requires};
use serde_json::Value;
use std::process::Command;
use support::{
    LONG, MIB, assert_near, brief, cell, complete, count, device, figure, identity, loop_device, rdsk,
    record_of, tool, verdict, word,
};

const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::BlkioThrottle];

fn throttle(disk: &LoopDevice, limits: Limits) -> BlkioThrottle {
    BlkioThrottle::new(disk.major_minor(), limits).expect("requires() found throttles")
}

/// The mean is within 1 % of the truth, the interval covers it, and the verdict names a device or its limit.
fn assert_truth(cell: &Value, rate: &str, truth: f64) {
    let estimate = &cell["result"][rate];
    assert_near(rate, figure(estimate, "/mean"), truth, 0.01);
    let (low, high) = (figure(estimate, "/low"), figure(estimate, "/high"));
    assert!(low <= truth && truth <= high, "{low} to {high} does not cover {truth}: {}", brief(cell));
    // An interval that is as wide as a house would cover everything.
    assert!((high - low) / truth < 0.1, "{low} to {high} around {truth}: {}", brief(cell));
    assert!(["throttled", "device"].contains(&verdict(cell)), "{}", brief(cell));
}

/// Seconds that GNU dd says it took for `count` direct blocks.
fn dd_seconds(throttle: &BlkioThrottle, disk: &LoopDevice, block: &str, count: u32) -> f64 {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", disk.path().display())).args(["of=/dev/null", "iflag=direct"]);
    dd.args([format!("bs={block}"), format!("count={count}")]).env("LC_ALL", "C");
    let (_, talk) = tool(throttle.command(dd));
    // "4194304 bytes (4.2 MB, 4.0 MiB) copied, 3.99501 s, 1.0 MB/s"
    let seconds = talk.split(", ").find_map(|part| part.strip_suffix(" s")?.parse().ok());
    seconds.unwrap_or_else(|| panic!("dd did not say how long it took: {talk}"))
}

#[test]
fn reads_per_second_are_the_limit() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_iops: Some(256), ..Limits::default() });
    let record = record_of(throttle.command(rdsk(&[
        &"run",
        &disk.path(),
        &"--only",
        &"headline",
        &"--rw",
        &"read",
        &"--budget",
        &"12s",
        &"--precision",
        &"0.2%",
    ])));
    // The same limit for one in flight on the plain engine and for 32 on the ring; only the latencies differ.
    for (id, depth) in [("headline/read/random-qd1", 1.0), ("headline/read/random-qd32", 32.0)] {
        let random = cell(&record, id);
        assert_truth(random, "ops_per_s", 256.0);
        assert_truth(random, "bytes_per_s", 1_048_576.0);
        assert_near("in flight", figure(random, "/result/in_flight_mean"), depth, 0.05);
        assert_near("mean latency", figure(random, "/result/latency_ns/mean"), depth / 256.0 * 1e9, 0.06);
        assert_eq!(count(device(random, &disk), "/reads"), count(random, "/result/ops"), "{}", brief(random));
        let limits = random["evidence"]["limits"].as_array().expect("evidence lists limits");
        assert!(limits.iter().any(|limit| limit["ops_per_s"] == 256 && limit["op"] == "read"), "{limits:?}");
    }
    let dd_rate = 512.0 / dd_seconds(&throttle, &disk, "4k", 512);
    let ours = figure(cell(&record, "headline/read/random-qd1"), "/result/ops_per_s/mean");
    assert_near("rdsk against dd", ours, dd_rate, 0.02);
}

/// Passes of a known size: a pass is timed as a whole, so that its truth is the limit from the first byte on.
#[test]
fn bytes_read_per_second_are_the_limit() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_bps: Some(MIB), ..Limits::default() });
    let record = record_of(throttle.command(rdsk(&[
        &"stream",
        &disk.path(),
        &"--rw",
        &"read",
        &"--bs",
        &"16k",
        &"--bytes",
        &"4M",
        &"--budget",
        &"60s",
    ])));
    let direct = cell(&record, "stream/read/direct");
    assert_eq!(word(direct, "/result/stop"), "complete", "{}", brief(direct));
    assert_truth(direct, "bytes_per_s", 1_048_576.0);
    let buffered = cell(&record, "stream/read/buffered");
    assert!(["throttled", "device"].contains(&verdict(buffered)), "{}", brief(buffered));

    let dd_rate = 4.0 * 1_048_576.0 / dd_seconds(&throttle, &disk, "16k", 256);
    assert_near("rdsk against dd", figure(direct, "/result/bytes_per_s/mean"), dd_rate, 0.02);
}

#[test]
fn bytes_written_per_second_are_the_limit() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { write_bps: Some(MIB), ..Limits::default() });
    let record = record_of(throttle.command(rdsk(&[
        &"paths",
        &disk.path(),
        &"--rw",
        &"write",
        &"--bs",
        &"16k",
        &"--bytes",
        &"4M",
        &"--budget",
        &"60s",
        &"--destroy",
        &identity(&disk),
    ])));
    let direct = cell(&record, "paths/write/direct");
    assert_eq!(word(direct, "/result/stop"), "complete", "{}", brief(direct));
    assert_truth(direct, "bytes_per_s", 1_048_576.0);
    assert_near("device share", figure(direct, "/verdict/device_share"), 1.0, 0.01);
}

/// Two figures of the same disk at the same time: what rdsk computes and what sysstat prints. The rate is held by a
/// limit, so that intervals that are not quite the same have the same truth.
#[test]
fn the_row_is_that_of_iostat() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::Tool("iostat")]) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_iops: Some(400), ..Limits::default() });
    let running = cli::start(throttle.command(rdsk(&[
        &"run",
        &disk.path(),
        &"--only",
        &"headline",
        &"--rw",
        &"read",
        &"--engine",
        &"sync",
        &"--budget",
        &"8s",
        &"--precision",
        &"0.1%",
    ])));
    let mut iostat = Command::new("iostat");
    iostat.args(["-x", "-y", "-k", "-o", "JSON", disk.name(), "1", "8"]).env("LC_ALL", "C");
    let document: Value = serde_json::from_str(&tool(iostat).0).expect("iostat -o JSON prints JSON");
    let record = complete(&running.finish(LONG));
    let ours = &device(cell(&record, "headline/read/random-qd1"), &disk)["iostat"];
    let seconds = document["sysstat"]["hosts"][0]["statistics"].as_array().expect("iostat lists statistics");
    // The seconds that lie wholly within the cell of 4 KiB have no requests of another size.
    let rows: Vec<&Value> = seconds.iter().map(|second| &second["disk"][0]).collect();
    let is_pure =
        |row: &&Value| figure(row, "/r~1s") > 300.0 && (figure(row, "/rareq-sz") - 4.0).abs() < 0.01;
    let pure: Vec<&Value> = rows.iter().copied().filter(is_pure).collect();
    assert!(!pure.is_empty(), "no second of the cell: {rows:#?}");
    for column in ["r/s", "rkB/s", "rareq-sz"] {
        assert_near(column, column_of(ours, column), median(&pure, column), 0.02);
    }
    // Times are those of a busy machine: they agree in size.
    for (column, slack) in [("r_await", 0.3), ("aqu-sz", 0.15), ("%util", 12.0)] {
        let (own, other) = (column_of(ours, column), median(&pure, column));
        assert!((own - other).abs() <= slack, "{column}: {own}, iostat says {other}: {ours:#}");
    }
    for column in ["w/s", "wkB/s", "w_await", "d/s", "rrqm/s", "%rrqm", "f/s"] {
        let (own, other) = (column_of(ours, column), median(&pure, column));
        assert!(own.abs() < 0.5 && other.abs() < 0.5, "{column}: {own}, iostat says {other}");
    }
}

/// A column of an `iostat -x` row; in sysstat's JSON the columns of shares have no percent sign.
fn column_of(row: &Value, column: &str) -> f64 {
    let found = row.get(column).or_else(|| row.get(column.strip_prefix('%')?)).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no column {column} in {row:#}"))
}

fn median(rows: &[&Value], column: &str) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| column_of(row, column)).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Large blocks, several in flight, beside fio. The limit is far below what the device could do, so that the other
/// processor's work does not decide; what remains is the arithmetic of both.
#[test]
fn fio_sees_the_same_rate_and_latency() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring, Need::Tool("fio")]) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_bps: Some(128 * MIB), ..Limits::default() });
    let mut rates = Vec::new();
    let mut latencies = Vec::new();
    for _ in 0..3 {
        let record = record_of(throttle.command(rdsk(&[
            &"run",
            &disk.path(),
            &"--only",
            &"headline",
            &"--rw",
            &"read",
            &"--budget",
            &"3s",
            &"--precision",
            &"0.2%",
        ])));
        let sequential = cell(&record, "headline/read/sequential");
        assert_eq!(count(sequential, "/workload/block_bytes"), MIB);
        assert_eq!(count(sequential, "/workload/queue_depth"), 8);
        let read = fio_read(&throttle, &disk);
        rates.push(figure(sequential, "/result/bytes_per_s/mean") / figure(&read, "/bw_bytes"));
        latencies.push(figure(sequential, "/result/latency_ns/mean") / figure(&read, "/lat_ns/mean"));
    }
    for (what, mut ratios, tolerance) in [("rate", rates, 0.05), ("latency", latencies, 0.1)] {
        ratios.sort_by(f64::total_cmp);
        assert!((ratios[1] - 1.0).abs() <= tolerance, "{what} of rdsk over that of fio: {ratios:?}");
    }
}

/// What fio says of sequential direct reads of 1 MiB, 8 in flight, inside the limit.
fn fio_read(throttle: &BlkioThrottle, disk: &LoopDevice) -> Value {
    let mut fio = Command::new("fio");
    fio.arg(format!("--filename={}", disk.path().display())).args([
        "--name=truth",
        "--readonly",
        "--rw=read",
        "--bs=1M",
        "--direct=1",
        "--ioengine=io_uring",
        "--iodepth=8",
        "--time_based",
        "--runtime=1",
        "--output-format=json",
    ]);
    let (document, _) = tool(throttle.command(fio));
    let document: Value = serde_json::from_str(&document).expect("fio prints JSON");
    document["jobs"][0]["read"].clone()
}
