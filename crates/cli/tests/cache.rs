//! Truth: memory and holes never pass for a disk. Files on a real ext4 filesystem, the kernel's own counters beside
//! rdsk's.

use crate::support::{
    Counted, MIB, brief, cached_bytes, cell, count, device, figure, finding_on, findings, near, on_ext4,
    on_ext4_in_memory, rdsk, record_of, tool, verdict, verdict_at_the_loop, word, write_file, write_paths,
};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need, requires};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::Command;

const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::Ext4];

/// How often something is tried that other programs can disturb: a kernel that takes pages back or writes them early, who looks at a
/// device, a machine that stands still.
const ATTEMPTS: usize = 5;

/// The cells of `paths --rw read`.
const READS: [&str; 3] = ["paths/read/direct", "paths/read/buffered", "paths/read/cached"];

fn read_paths(file: &Path) -> Value {
    record_of(rdsk(&[&"paths", &file, &"--rw", &"read", &"--bytes", &"16M", &"--budget", &"10s"]))
}

/// The device takes 64 MiB/s from the program that submits, and lies in memory. That its flush then has a known time is seen by
/// timing/cache.rs.
#[test]
fn buffered_write_is_memory_until_it_is_stable() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::BlkioThrottle]) {
        return;
    }
    on_ext4_in_memory(|directory, disk| {
        let limits = Limits { write_bps: Some(64 * MIB), ..Limits::default() };
        let throttle = BlkioThrottle::new(disk.major_minor(), limits).expect("requires() found throttles");
        first_right(ATTEMPTS, || {
            let before = Counted::now(disk);
            let record = record_of(throttle.command(write_paths(directory)));
            let counted = Counted::now(disk).since(before);
            let left: Vec<_> = std::fs::read_dir(directory).expect("our mount").flatten().collect();
            assert!(left.iter().all(|entry| entry.file_name() == "lost+found"), "left behind: {left:?}");
            is_memory_until_stable(&record, disk, counted)
        });
    });
}

/// Whether whole passes of buffered writes are said to be memory, and all of them reached the device.
fn is_memory_until_stable(record: &Value, disk: &LoopDevice, counted: Counted) -> Result<(), String> {
    let buffered = cell(record, "paths/write/buffered");
    let code = (word(buffered, "/result/stop"), verdict(buffered));
    ensure(code == ("complete", "page-cache"), || brief(buffered))?;
    let visits = buffered["result"]["visits"].as_array().expect("a cell lists its visits").len() as u64;
    let bytes = count(buffered, "/result/bytes");
    assert_eq!(bytes, visits * 64 * MIB);
    let [to_return_ns, to_close_ns, to_stable_ns] = ["to_return_ns", "to_close_ns", "to_stable_ns"]
        .map(|name| figure(buffered, &format!("/result/{name}")));
    assert!(to_return_ns <= to_close_ns && to_close_ns <= to_stable_ns, "{}", brief(buffered));
    let stable_bytes = figure(device(buffered, disk), "/write_bytes");
    near("device bytes until stable", stable_bytes, bytes as f64, 0.02)?;
    // The file was made once, and every pass reached the device: the kernel's count from outside says so too.
    let direct = cell(record, "paths/write/direct");
    let third = cell(record, "paths/write/dontcache").pointer("/result/bytes").and_then(Value::as_u64);
    let asked = 64 * MIB + bytes + count(direct, "/result/bytes") + third.unwrap_or(0);
    near("bytes seen from outside", counted.write_bytes as f64, asked as f64, 0.02)?;
    ensure(verdict_at_the_loop(direct) != "page-cache", || brief(direct))?;
    ensure(findings(record, "buffered-write-in-memory").is_empty(), || "the page shows both times".into())
}

#[test]
fn holes_are_holes_on_every_path() {
    if !requires(&NEEDS) {
        return;
    }
    on_ext4(|directory, disk| {
        let sparse = directory.join("sparse");
        File::create_new(&sparse).and_then(|file| file.set_len(16 * MIB)).expect("there is room");
        let fallocated = directory.join("fallocated");
        let mut fallocate = Command::new("fallocate");
        fallocate.args(["--length", "16MiB"]).arg(&fallocated);
        tool(fallocate);
        for (file, kind) in [(&sparse, "hole_bytes"), (&fallocated, "unwritten_bytes")] {
            first_right(ATTEMPTS, || {
                let before = Counted::now(disk);
                let record = read_paths(file);
                let counted = Counted::now(disk).since(before);
                for id in READS {
                    let hole = cell(&record, id);
                    ensure(count(hole, "/result/bytes") >= 16 * MIB, || brief(hole))?;
                    assert_eq!(verdict(hole), "hole", "{kind} {id}: {}", brief(hole));
                    assert_eq!(count(hole, &format!("/evidence/extents/{kind}")), 16 * MIB);
                    finding_on(&record, "hole-read", id);
                }
                // The truth from outside: the device had next to nothing to do.
                ensure(counted.read_bytes < MIB, || format!("{counted:?}"))
            });
        }
    });
}

#[test]
fn half_a_hole_is_no_disk_figure_and_a_written_file_is_no_hole() {
    if !requires(&NEEDS) {
        return;
    }
    on_ext4(|directory, disk| {
        let half = directory.join("half");
        write_file(&half, 8 * MIB);
        OpenOptions::new()
            .write(true)
            .open(&half)
            .and_then(|file| file.set_len(16 * MIB))
            .expect("there is room");
        first_right(ATTEMPTS, || {
            let record = read_paths(&half);
            let direct = cell(&record, "paths/read/direct");
            assert_eq!(verdict(direct), "hole", "{}", brief(direct));
            near("device share", figure(direct, "/verdict/device_share"), 0.5, 0.02)
        });

        let written = directory.join("written");
        write_file(&written, 16 * MIB);
        first_right(ATTEMPTS, || {
            let record = read_paths(&written);
            for id in READS {
                assert_ne!(verdict(cell(&record, id)), "hole", "{}", brief(cell(&record, id)));
            }
            assert!(findings(&record, "hole-read").is_empty());
            let direct = cell(&record, "paths/read/direct");
            let of_device = count(device(direct, disk), "/read_bytes");
            same("bytes of the device", &of_device, &count(direct, "/result/bytes"))
        });
    });
}

#[test]
fn warm_reads_are_memory_and_cold_ones_are_proved_cold() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::Cachestat, Need::Tool("fincore")]) {
        return;
    }
    on_ext4(|directory, disk| {
        let file = directory.join("data");
        write_file(&file, 16 * MIB);
        // All of it is in memory when rdsk begins: a cold cell that does nothing about it reads nothing. The kernel may have
        // taken a page back by itself, at any time, but not every time.
        let is_cached = |_| {
            std::fs::read(&file).expect("it was just written");
            cached_bytes(&file) == 16 * MIB
        };
        assert!((0..3).any(is_cached), "what was just read is cached");
        first_right(ATTEMPTS, || is_warm_and_cold(&file, disk));
    });
}

/// Whether warm reads came from memory and cold ones from the device. Where the kernel took pages back meanwhile, memory holds less
/// than it should, and nothing else is said.
fn is_warm_and_cold(file: &Path, disk: &LoopDevice) -> Result<(), String> {
    let before = Counted::now(disk);
    let record = read_paths(file);
    let counted = Counted::now(disk).since(before);

    let (warm, cold) = (cell(&record, "paths/read/cached"), cell(&record, "paths/read/buffered"));
    let cached: Vec<u64> = visits(warm).iter().map(|visit| count(visit, "/cache/cached_bytes")).collect();
    assert!(!cached.is_empty() && cached.iter().all(|bytes| *bytes <= 16 * MIB), "{cached:?}");
    let after = count(cold, "/evidence/page_cache/after/cached_bytes");
    // What is read ahead of a visit that is not whole is in the cache, too.
    ensure(after <= count(cold, "/result/bytes"), || brief(cold))?;
    let is_kept = after == count(cold, "/result/bytes") && cached.iter().all(|bytes| *bytes == 16 * MIB);
    ensure(is_kept, || {
        format!("warm reads began with {cached:?} bytes, cold ones left {after}: pages were taken back")
    })?;
    let is_memory = verdict(warm) == "page-cache" && figure(warm, "/verdict/device_share") <= 0.02;
    ensure(is_memory, || brief(warm))?;
    assert!(word(warm, "/verdict/text").contains('%'), "the share is said: {}", warm["verdict"]);

    ensure(verdict_at_the_loop(cold) == "device", || brief(cold))?;
    assert_eq!(word(cold, "/workload/cache"), "cold");
    same("cached before", &count(cold, "/evidence/page_cache/before/cached_bytes"), &0)?;
    assert!(!visits(cold).is_empty());
    for visit in visits(cold) {
        same("cached before a visit", &count(visit, "/cache/cached_bytes"), &0)?;
    }
    let from_device = count(device(cold, disk), "/read_bytes");
    near("cold bytes", from_device as f64, figure(cold, "/result/bytes"), 0.02)?;
    // Cold and direct passes show in the kernel's count from outside, and warming once at most.
    let direct = count(cell(&record, "paths/read/direct"), "/result/bytes");
    let third = cell(&record, "paths/read/dontcache").pointer("/result/bytes").and_then(Value::as_u64);
    let least = count(cold, "/result/bytes") + direct + third.unwrap_or(0);
    let is_counted = (least..=least + 3 * 16 * MIB).contains(&counted.read_bytes);
    ensure(is_counted, || format!("{counted:?}, at least {least}"))?;
    ensure(findings(&record, "cold-not-reached").is_empty(), || record["findings"].to_string())
}

fn visits(cell: &Value) -> &Vec<Value> {
    cell["result"]["visits"].as_array().expect("a cell lists its visits")
}

/// The pages of a file on tmpfs are the file: they cannot be dropped, so cold cannot be had, and rdsk must say so
/// instead of believing its own request.
#[test]
fn cold_that_cannot_be_had_is_said() {
    let memory = Path::new("/dev/shm");
    if !requires(&[Need::Cachestat, Need::Tool("findmnt")]) {
        return;
    }
    let mut findmnt = Command::new("findmnt");
    findmnt.args(["--noheadings", "--output", "FSTYPE"]).arg(memory);
    assert_eq!(tool(findmnt).0.lines().next(), Some("tmpfs"), "Linux mounts tmpfs on /dev/shm by custom");
    let directory =
        tempfile::Builder::new().prefix("rdsk-truth-").tempdir_in(memory).expect("/dev/shm is writable");
    let file = directory.path().join("data");
    write_file(&file, 16 * MIB);
    let record = read_paths(&file);
    let cold = cell(&record, "paths/read/buffered");
    assert_eq!(verdict(cold), "page-cache", "{}", brief(cold));
    assert!(count(cold, "/evidence/page_cache/before/cached_bytes") >= 16 * MIB, "{}", brief(cold));
    finding_on(&record, "cold-not-reached", "paths/read/buffered");
}
