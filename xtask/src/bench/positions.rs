//! Speed by position: `rdsk zones` against a loop of `dd` and `zcav` of bonnie++, in one run, on a disk of the benchmark's
//! own whose speed is known everywhere. No device that existed before is touched.

use super::disk::{Disk, tied};
use super::median;
use super::rivals::build;
use crate::programs::{checked, json, text_of};
use crate::tools::{is_installed, search_path};
use anyhow::{Context as _, Result, ensure};
use rustix::fs::{Advice, fadvise};
use serde_json::Value;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// What `--only` looks for.
pub(crate) const NAME: &str = "positions: speed by position against dd and zcav";

const MIB: u64 = 1 << 20;
/// Rates of three zones of one size, outermost first, in MB/s. What the programs add to a read of 1 MiB differs by up to
/// 0.7 ms (rdsk 0.4 ms, dd 0.8, zcav 1.0; a virtual machine of two processors, Linux 6.18, 2026-11). The fastest read takes
/// 66 ms here, so that this is a third of what is allowed; at 80 MB/s it would be more than all of it.
const ZONES_MB_PER_S: [u64; 3] = [16, 12, 8];
/// Positions; a multiple of the zones, so that no block of zcav lies in two of them.
const POINTS: u64 = 9;
/// What rdsk and dd read at a position. A request of the FUSE disk is no larger.
const READ_BYTES: u64 = MIB;
/// What zcav reads at a position, in the same reads of 1 MiB. It prints times in whole ms, so one read alone would
/// be too short, and on a position of 4 MiB the rounding is below 0.2 %.
const ZCAV_BLOCK_BYTES: u64 = 4 * MIB;
const DISK_BYTES: u64 = POINTS * ZCAV_BLOCK_BYTES;
/// How far the medians of a position may lie apart.
const GOAL: f64 = 0.03;

/// What one pass found: the number of the position and MB/s there, in the order of visiting.
type Pass = Vec<(usize, f64)>;

/// Prints the table, or why it cannot be measured. Each round is a pass of all three programs.
pub(crate) fn report(rounds: usize) {
    if let Some(lacking) = lacking() {
        println!("{NAME}: skipped: {lacking}");
    } else if let Err(error) = compare(rounds) {
        println!("{NAME}: not measured: {error:#}");
    }
}

/// What this machine lacks.
fn lacking() -> Option<String> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        return Some("no disk of known speed can be created: that needs root and /dev/fuse".into());
    }
    let needed = [("zcav", "bonnie++"), ("losetup", "mount"), ("setpriv", "util-linux"), ("dd", "coreutils")];
    let (tool, package) = needed.into_iter().find(|(tool, _)| !is_installed(tool, &search_path()))?;
    Some(format!("{tool} is not installed (package {package})"))
}

fn compare(rounds: usize) -> Result<()> {
    let rdsk = build(&["-p", "rdsk", "--bin", "rdsk"])?;
    let server = build(&["-p", "rdsk-testkit", "--bin", "fusedisk"])?;
    let zones = zones().map(|(range, rate)| format!("--zone={}-{}={rate}MB/s", range.start, range.end));
    let disk = Disk::start(&server, DISK_BYTES, zones)?;
    println!("\n{NAME}; medians in MB/s (rounds: {rounds}, interleaved A B C C B A)");
    println!(
        "on a FUSE disk of {} MiB under a loop device, 1 MiB at a time; rdsk and dd read directly, zcav through the \
         page cache without readahead",
        DISK_BYTES / MIB
    );
    // This pass does not count. It says where rdsk reads, and loads what is loaded once.
    let offsets = offsets(&rdsk_record(&rdsk, &disk)?)?;
    // In the order of the columns.
    let programs: [&dyn Fn() -> Result<Pass>; 3] =
        [&|| visits(&rdsk_record(&rdsk, &disk)?), &|| dd(&disk, &offsets), &|| zcav(&disk)];
    let mut rates: Vec<[Vec<f64>; 3]> = vec![Default::default(); offsets.len()];
    for round in 0..rounds {
        let mut columns = [0, 1, 2];
        // A B C, then C B A: drift hits all alike.
        if round % 2 == 1 {
            columns.reverse();
        }
        for column in columns {
            for (position, rate) in programs[column]()? {
                rates.get_mut(position).context("a position that is none")?[column].push(rate);
            }
        }
    }
    let medians: Vec<[f64; 3]> =
        rates.iter_mut().map(|columns| columns.each_mut().map(|column| median(column))).collect();
    print_table(&offsets, &medians);
    Ok(())
}

fn print_table(offsets: &[u64], medians: &[[f64; 3]]) {
    println!(
        "{:>9}  {:>10} {:>7} {:>7} {:>7} {:>8} {:>10}",
        "MiB", "programmed", "rdsk", "dd", "zcav", "rdsk/dd", "rdsk/zcav"
    );
    for (offset, [rdsk, dd, zcav]) in offsets.iter().zip(medians) {
        println!(
            "{:>9.2}  {:>10} {rdsk:>7.2} {dd:>7.2} {zcav:>7.2} {:>8.3} {:>10.3}",
            *offset as f64 / MIB as f64,
            programmed(*offset),
            rdsk / dd,
            rdsk / zcav
        );
    }
    for (name, column) in [("dd", 1), ("zcav", 2)] {
        let (middle, worst) = apart(medians.iter().map(|rates| rates[0] / rates[column]));
        let mark = if worst <= GOAL { "" } else { "  missed" };
        println!(
            "against {name}: {:.1} % apart in the median, {:.1} % at the worst position (goal: {:.0} %){mark}",
            middle * 100.0,
            worst * 100.0,
            GOAL * 100.0
        );
    }
}

/// How far ratios lie from 1: the median and the largest distance.
fn apart(ratios: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut distances: Vec<f64> = ratios.map(|ratio| (ratio - 1.0).abs()).collect();
    let middle = median(&mut distances);
    (middle, distances.last().copied().unwrap_or(f64::NAN))
}

/// Bytes and MB/s of each zone.
fn zones() -> impl Iterator<Item = (Range<u64>, u64)> {
    let bytes = DISK_BYTES / 3;
    (0..).zip(ZONES_MB_PER_S).map(move |(index, rate)| (index * bytes..(index + 1) * bytes, rate))
}

/// The rate of the zone that holds the offset.
fn programmed(offset_bytes: u64) -> u64 {
    zones().find(|(range, _)| range.contains(&offset_bytes)).map_or(0, |(_, rate)| rate)
}

/// MB/s.
fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / 1e6 / seconds
}

fn rdsk_record(rdsk: &Path, disk: &Disk) -> Result<Value> {
    let mut command = tied(rdsk);
    command.arg("zones").arg(&disk.device).args(["--rw", "read", "--runs", "1", "--json", "-", "--quiet"]);
    command.arg(format!("--bs={READ_BYTES}")).arg(format!("--points={POINTS}"));
    json(&text_of(&mut command)?)
}

/// Where a Record's only cell read. Each offset lies in the block of zcav with the same number, or this is an error.
fn offsets(record: &Value) -> Result<Vec<u64>> {
    let listed = &record["cells"][0]["workload"]["points"]["offset_bytes"];
    let offsets: Vec<u64> = serde_json::from_value(listed.clone()).context("rdsk lists its positions")?;
    ensure!(offsets.len() as u64 == POINTS, "rdsk took {} positions instead of {POINTS}", offsets.len());
    for (index, offset) in (0..).zip(&offsets) {
        let begin = index * ZCAV_BLOCK_BYTES;
        let last = begin + ZCAV_BLOCK_BYTES - READ_BYTES;
        let is_inside = (begin..=last).contains(offset);
        ensure!(is_inside, "rdsk reads at {offset}, outside of zcav's block at {begin}");
    }
    Ok(offsets)
}

/// The only pass of a Record's only cell.
fn visits(record: &Value) -> Result<Pass> {
    let result = &record["cells"][0]["result"];
    ensure!(result["errors"].as_array().is_some_and(Vec::is_empty), "rdsk met errors: {}", result["errors"]);
    let pass = &result["points"][0];
    let order: Vec<usize> = serde_json::from_value(pass["order"].clone()).context("rdsk gives its order")?;
    let latencies_ns: Vec<f64> = serde_json::from_value(pass["latency_ns"].clone())?;
    ensure!(latencies_ns.len() as u64 == POINTS, "rdsk made {} reads only", latencies_ns.len());
    Ok(order.into_iter().zip(latencies_ns.iter().map(|ns| rate(READ_BYTES, ns / 1e9))).collect())
}

/// A process for each read; the time is the one that dd prints, which begins when dd does and not with its process.
fn dd(disk: &Disk, offsets: &[u64]) -> Result<Pass> {
    let mut visits = Vec::new();
    for (position, offset) in offsets.iter().enumerate() {
        let mut command = tied(Path::new("dd"));
        command.arg(format!("if={}", disk.device.display())).args(["of=/dev/null", "count=1"]);
        command.arg(format!("bs={READ_BYTES}")).arg(format!("skip={offset}")).arg("iflag=direct,skip_bytes");
        let talk = checked(&mut command)?.stderr;
        let talk = String::from_utf8_lossy(&talk);
        let seconds = dd_seconds(&talk).with_context(|| format!("dd gave no time: {talk}"))?;
        visits.push((position, rate(READ_BYTES, seconds)));
    }
    Ok(visits)
}

/// The time in `1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0442969 s, 23.7 MB/s`: six digits.
fn dd_seconds(talk: &str) -> Option<f64> {
    let line = talk.lines().find(|line| line.starts_with(&format!("{READ_BYTES} bytes ")))?;
    line.split_once(" copied, ")?.1.split_once(" s,")?.0.parse().ok()
}

/// One pass over the whole disk. zcav has no direct reads, and a descriptor with `O_DIRECT` as its standard input fails
/// with EINVAL, since its buffer lies 16 bytes behind a page. With the readahead of the page cache the disk works while
/// zcav copies, requests cross the ends of blocks, and the times of equal blocks differ by a half. So its standard input is
/// a descriptor that was advised as random: it stays zcav as it is, but each of its reads waits for its own 1 MiB, as a
/// direct read does (seen in the FUSE disk's log). What is cached goes with the last close of a device; dropping it before
/// is for the case that somebody else has it open.
fn zcav(disk: &Disk) -> Result<Pass> {
    let input = File::open(&disk.device)?;
    fadvise(&input, 0, None, Advice::DontNeed)?;
    fadvise(&input, 0, None, Advice::Random)?;
    let mut command = tied(Path::new("zcav"));
    command.arg("-b").arg(format!("{}:{}", ZCAV_BLOCK_BYTES / MIB, READ_BYTES / MIB));
    // Without -u it refuses to run as root.
    command.args(["-u", "root", "-f", "-"]).stdin(input);
    let text = text_of(&mut command)?;
    let times = zcav_seconds(&text);
    ensure!(times.len() as u64 == POINTS, "zcav gave {} times instead of {POINTS}: {text}", times.len());
    Ok(times.into_iter().map(|seconds| rate(ZCAV_BLOCK_BYTES, seconds)).enumerate().collect())
}

/// The times of the blocks, from lines such as `0.02 11.28 0.355`. Below half a second zcav finds a rate not worth
/// printing, `#0.02 ++++ 0.355`, but the time is good to 1 ms all the same.
fn zcav_seconds(text: &str) -> Vec<f64> {
    let third = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [position, _, seconds] = words[..] else { return None };
        position.trim_start_matches('#').parse::<f64>().ok()?;
        seconds.parse().ok()
    };
    text.lines().filter_map(third).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_times_of_dd_and_zcav_are_read() {
        let talk = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0442969 s, 23.7 MB/s\n";
        assert_eq!(dd_seconds(talk), Some(0.044_296_9));
        assert_eq!(dd_seconds("512 bytes copied, 0.01 s, 51 kB/s\n"), None);
        let text = "#block offset (GiB), MiB/s, time\n#0.00 ++++ 0.180\n0.01 7.84 0.510\n\
                    # Read 36 megs in 2 seconds, 15 megabytes per second.\n";
        assert_eq!(zcav_seconds(text), [0.18, 0.51]);
    }

    #[test]
    fn distances_count_both_ways() {
        let (middle, worst) = apart([1.01, 0.96, 1.02].into_iter());
        assert!((middle - 0.02).abs() < 1e-9 && (worst - 0.04).abs() < 1e-9, "{middle} {worst}");
    }

    #[test]
    fn zones_have_their_rates() {
        assert_eq!([0, 12 * MIB - 1, 12 * MIB, DISK_BYTES - 1].map(programmed), [16, 16, 12, 8]);
    }

    #[test]
    fn positions_lie_in_the_blocks_of_zcav() {
        let record =
            |offsets: &[u64]| json!({"cells": [{"workload": {"points": {"offset_bytes": offsets}}}]});
        let good: Vec<u64> =
            (0..POINTS).map(|index| index * (DISK_BYTES - READ_BYTES) / (POINTS - 1)).collect();
        assert_eq!(offsets(&record(&good)).unwrap(), good);
        assert!(offsets(&record(&good[1..])).is_err());
        let mut bad = good;
        bad[4] = 15 * MIB;
        assert!(offsets(&record(&bad)).is_err());
    }

    #[test]
    fn a_record_tells_what_was_read_where() {
        let pass = json!({"order": [2, 0, 1, 3, 4, 5, 6, 7, 8], "latency_ns": vec![1_048_576_000; 9]});
        let record = |pass: Value| json!({"cells": [{"result": {"errors": [], "points": [pass]}}]});
        let found = visits(&record(pass)).unwrap();
        assert_eq!((found.len(), found[0].0), (9, 2));
        assert!((found[0].1 - 1.0).abs() < 1e-9);
        assert!(visits(&record(json!({"order": [2, 0], "latency_ns": [1, 1]}))).is_err());
    }
}
