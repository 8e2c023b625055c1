//! Truth: known rates. A loop device that a control group throttles to an exact rate, with GNU dd, iostat and fio beside rdsk.

use crate::support::passes::{NEEDS, deep_reads, read_passes, throttle, write_passes};
use crate::support::{
    Counted, LONG, MIB, assert_near, brief, cell, complete, count, device, figure, iostat_of, loop_device,
    rdsk, record_of, sum_over_cells, tool, verdict, word,
};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, cli, requires};
use serde_json::Value;
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

/// What rdsk saw, which has been held against the device's own counter, is what another program sees in one of three passes:
/// the machine may stand still in that program's pass as in any other. Each triple is our figure, its own, and how far apart
/// they may be.
fn agrees_with_one_of_three(program: &str, mut pass: impl FnMut() -> Vec<(f64, f64, f64)>) {
    let is_near = |&(ours, its, tolerance): &(f64, f64, f64)| (ours / its - 1.0).abs() <= tolerance;
    let mut rates = Vec::new();
    for _ in 0..3 {
        rates.push(pass());
        if rates.last().is_some_and(|figures| figures.iter().all(is_near)) {
            return;
        }
    }
    panic!("{program} differs in every pass: {rates:?}");
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

/// The kernel hands out reads in slices of a tenth of a second, in whole reads, and its timer may be late: 256 per second
/// are really somewhat fewer. So the truth is the slope of the device's own counter, watched from outside.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn reads_per_second_are_the_limit() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_iops: Some(256), ..Limits::default() });
    let meter = Meter::start(&disk);
    let record = record_of(throttle.command(rdsk(&[
        &"run",
        &disk.path(),
        &"--only",
        &"headline",
        &"--rw",
        &"read",
        &"--engine",
        &"sync",
        &"--budget",
        &"18s",
        &"--precision",
        &"0.1%",
    ])));
    let reads = meter.finish(|counted| counted.reads);
    // The visits of this cell lie side by side in the middle of the run, between those of the sequential cell.
    let random = cell(&record, "headline/read/random-qd1");
    let truth = slope(&reads, 0.3..0.7);
    assert_near("the limit itself", truth, 256.0, 0.15);
    assert_truth(random, "ops_per_s", truth);
    assert_truth(random, "bytes_per_s", truth * 4096.0);
    assert_near("mean latency", figure(random, "/result/latency_ns/mean"), 1e9 / truth, 0.015);
    assert_eq!(count(device(random, &disk), "/reads"), count(random, "/result/ops"), "{}", brief(random));
    let limits = random["evidence"]["limits"].as_array().expect("evidence lists limits");
    assert!(limits.iter().any(|limit| limit["ops_per_s"] == 256 && limit["op"] == "read"), "{limits:?}");
}

/// Bytes of one pass inside a limit of 1 MiB/s. The kernel lets a tenth of a second's worth through at once, which six
/// seconds make small.
const PASS: u64 = 6 * MIB;

/// A device that holds one pass and no more, so that readahead cannot run on beyond it.
fn one_pass_device() -> LoopDevice {
    LoopDevice::builder().size(PASS).create().expect("requires() found loop devices")
}

/// Within 1 % of what the witness saw, and near the limit, from which a busy machine may take something.
fn assert_pass(direct: &Value, witnessed_seconds: f64) {
    assert_eq!(word(direct, "/result/stop"), "complete", "{}", brief(direct));
    assert_eq!(count(direct, "/result/bytes"), 2 * PASS, "{}", brief(direct));
    let truth = (2 * PASS) as f64 / witnessed_seconds;
    assert_near("the limit itself", truth, MIB as f64, 0.15);
    assert_truth(direct, "bytes_per_s", truth);
    assert_near("device share", figure(direct, "/verdict/device_share"), 1.0, 0.01);
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn bytes_read_per_second_are_the_limit() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = one_pass_device();
    let throttle = throttle(&disk, Limits { read_bps: Some(MIB), ..Limits::default() });
    let meter = Meter::start(&disk);
    let record = record_of(throttle.command(read_passes(&disk, "6M", "30s")));
    let bytes = meter.finish(|counted| counted.read_bytes);
    // The budget gives two rounds: buffered, direct, direct, buffered, each a pass of the whole device.
    let direct = cell(&record, "stream/read/direct");
    assert_pass(direct, seconds_between(&bytes, 3 * PASS, PASS));
    let buffered = cell(&record, "stream/read/buffered");
    assert!(["throttled", "device"].contains(&verdict(buffered)), "{}", brief(buffered));

    let rate = figure(direct, "/result/bytes_per_s/mean");
    agrees_with_one_of_three("dd", || {
        let by_dd = PASS as f64 / dd_seconds(&throttle, &disk, "16k", 384);
        vec![(rate, by_dd, 0.02)]
    });
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn bytes_written_per_second_are_the_limit() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = one_pass_device();
    let throttle = throttle(&disk, Limits { write_bps: Some(MIB), ..Limits::default() });
    let meter = Meter::start(&disk);
    let record = record_of(throttle.command(write_passes(&disk, "6M", "30s")));
    let bytes = meter.finish(|counted| counted.write_bytes);
    // The budget gives two rounds: direct, buffered, buffered, direct.
    let seconds = seconds_between(&bytes, 4 * PASS, 3 * PASS) + seconds_between(&bytes, PASS, 0);
    assert_pass(cell(&record, "paths/write/direct"), seconds);
}

/// A witness: it watches the counters of a device from outside, every few milliseconds.
struct Meter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(f64, Counted)>>,
}

impl Meter {
    fn start(disk: &LoopDevice) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (bell, name) = (Arc::clone(&stop), disk.name().to_owned());
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let mut samples = Vec::new();
            while !bell.load(Ordering::Relaxed) {
                samples.push((began.elapsed().as_secs_f64(), Counted::by_name(&name)));
                std::thread::sleep(Duration::from_millis(4));
            }
            samples
        });
        Self { stop, thread }
    }

    /// The course of one counter: pairs of seconds and its value.
    fn finish(self, counter: fn(&Counted) -> u64) -> Vec<(f64, u64)> {
        // What was done last is seen by one more sample.
        std::thread::sleep(Duration::from_millis(20));
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.thread.join().expect("the meter does not panic");
        samples.iter().map(|(seconds, counted)| (*seconds, counter(counted))).collect()
    }
}

/// Seconds that a counter took from `from` to `to`, both counted backwards from its last value.
fn seconds_between(samples: &[(f64, u64)], from: u64, to: u64) -> f64 {
    let last = samples[samples.len() - 1].1;
    let before = samples.iter().rev().find(|(_, value)| *value + from <= last);
    let after = samples.iter().find(|(_, value)| *value + to >= last);
    after.expect("the last sample is one").0 - before.expect("the counter began below").0
}

/// Growth per second by least squares, over the given part of the time in which the counter grew.
fn slope(samples: &[(f64, u64)], part: Range<f64>) -> f64 {
    let (first, last) = (samples[0].1, samples[samples.len() - 1].1);
    let growing: Vec<_> = samples.iter().filter(|(_, value)| *value > first && *value < last).collect();
    let (begin, end) = (growing[0].0, growing[growing.len() - 1].0);
    let window = begin + part.start * (end - begin)..begin + part.end * (end - begin);
    let inside: Vec<(f64, f64)> = growing
        .into_iter()
        .filter(|(seconds, _)| window.contains(seconds))
        .map(|&(seconds, value)| (seconds, value as f64))
        .collect();
    let mean = |column: fn(&(f64, f64)) -> f64| inside.iter().map(column).sum::<f64>() / inside.len() as f64;
    let (mean_x, mean_y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let covariance: f64 = inside.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    covariance / inside.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

/// Two figures of the same disk at the same time: what rdsk computes and what sysstat prints. The rate is held by a
/// limit, so that intervals that are not quite the same have the same truth.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
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
        &"24s",
        &"--precision",
        &"0.1%",
    ])));
    let mut iostat = Command::new("iostat");
    iostat.args(["-x", "-y", "-k", "-o", "JSON", disk.name(), "1", "24"]).env("LC_ALL", "C");
    let document: Value = serde_json::from_str(&tool(iostat).0).expect("iostat -o JSON prints JSON");
    let record = complete(&running.finish(LONG));
    let seconds = document["sysstat"]["hosts"][0]["statistics"].as_array().expect("iostat lists statistics");
    let rows: Vec<&Value> = seconds.iter().map(|second| &second["disk"][0]).collect();
    // Second by second iostat saw as many reads as the cells show, besides those that examine the device.
    let shown: f64 = rows.iter().map(|row| column_of(row, "r/s")).sum();
    assert_near("reads in all", sum_over_cells(&record, &disk, "/reads") as f64, shown, 0.04);

    // The seconds that lie wholly within the cell of 4 KiB have no requests of another size.
    let counters = device(cell(&record, "headline/read/random-qd1"), &disk);
    let ours = &iostat_of(counters);
    let is_pure =
        |row: &&Value| column_of(row, "r/s") > 100.0 && (column_of(row, "rareq-sz") - 4.0).abs() < 0.01;
    let pure: Vec<&Value> = rows.iter().copied().filter(is_pure).collect();
    assert!(!pure.is_empty(), "no second of the cell: {rows:#?}");
    // A second in which the machine was late is in one of the two and not in the other; sizes know no time.
    for (column, tolerance) in [("r/s", 0.15), ("rkB/s", 0.15), ("rareq-sz", 0.001)] {
        assert_near(column, column_of(ours, column), median(&pure, column), tolerance);
    }
    let reads = column_of(ours, "r/s") * figure(counters, "/interval_ns") / 1e9;
    assert_near("r/s times the interval", reads, figure(counters, "/reads"), 0.001);
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
    let figure = row.get(column).or_else(|| row.get(column.strip_prefix('%')?)).and_then(Value::as_f64);
    figure.unwrap_or_else(|| panic!("no column {column} in {row:#}"))
}

fn median(rows: &[&Value], column: &str) -> f64 {
    let mut values: Vec<f64> = rows.iter().map(|row| column_of(row, column)).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Several in flight, beside fio. The limit is far below what the device could do, so that neither the other work of the
/// machine nor the pages of the buffers decide; what remains is the arithmetic of both.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn fio_sees_the_same_rate_and_latency() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring, Need::Tool("fio")]) {
        return;
    }
    let disk = loop_device();
    let throttle = throttle(&disk, Limits { read_bps: Some(32 * MIB), ..Limits::default() });
    let meter = Meter::start(&disk);
    let record = record_of(throttle.command(deep_reads(&disk, "64M", "30s")));
    let direct = cell(&record, "stream/read/direct");
    assert_eq!(word(direct, "/result/stop"), "complete", "{}", brief(direct));
    let bytes = meter.finish(|counted| counted.read_bytes);
    let truth = (128 * MIB) as f64 / seconds_between(&bytes, 192 * MIB, 64 * MIB);
    assert_near("the limit itself", truth, (32 * MIB) as f64, 0.15);
    assert_truth(direct, "bytes_per_s", truth);
    assert_near("in flight", figure(direct, "/result/in_flight_mean"), 8.0, 0.05);
    let rate = figure(direct, "/result/bytes_per_s/mean");
    let latency_ns = figure(direct, "/result/latency_ns/mean");
    agrees_with_one_of_three("fio", || {
        let fio = fio_read(&throttle, &disk);
        assert_eq!(count(&fio, "/io_bytes"), 64 * MIB);
        vec![(rate, figure(&fio, "/bw_bytes"), 0.03), (latency_ns, figure(&fio, "/lat_ns/mean"), 0.05)]
    });
}

/// What fio says of one pass of sequential direct reads of 64 KiB, 8 in flight, inside the limit.
fn fio_read(throttle: &BlkioThrottle, disk: &LoopDevice) -> Value {
    let mut fio = Command::new("fio");
    fio.arg(format!("--filename={}", disk.path().display())).args([
        "--name=truth", "--readonly", "--rw=read", "--bs=64k", "--size=64M", "--direct=1",
        "--ioengine=io_uring", "--iodepth=8", "--output-format=json",
    ]);
    let (document, _) = tool(throttle.command(fio));
    let document: Value = serde_json::from_str(&document).expect("fio prints JSON");
    document["jobs"][0]["read"].clone()
}
