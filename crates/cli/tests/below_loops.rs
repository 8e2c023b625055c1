//! Truth: what answers behind a loop device, where it is known beforehand: memory, holes, a page cache that was filled just
//! before. None of it is a disk, whatever the loop device counts. How often it holds beside other programs, and how rivals on a
//! real disk are named, is the campaign `verdicts`.

#![allow(clippy::print_stderr, reason = "a test that lacks something says so")]

use crate::support::{
    brief, device, findings, identity, on_ext4_in_memory, rdsk, record_of, tool, verdict, word, write_file,
};
use rdsk_testkit::{DirectIo, LoopDevice, Need, ZramDevice, requires};
use serde_json::Value;
use std::fs::File;
use std::path::Path;

const NEEDS: [Need; 2] = [Need::Root, Need::Loop];
const BYTES: u64 = 16 << 20;
const WAYS: [DirectIo; 2] = [DirectIo::On, DirectIo::Off];

/// One pass of direct reads, and one of buffered ones.
fn read(target: &Path) -> Vec<Value> {
    let bytes = BYTES.to_string();
    let arguments: [&dyn AsRef<std::ffi::OsStr>; 8] =
        [&"paths", &target, &"--rw", &"read", &"--bytes", &bytes, &"--budget", &"4s"];
    cells_of(&record_of(rdsk(&arguments)))
}

fn cells_of(record: &Value) -> Vec<Value> {
    let Value::Array(cells) = &record["cells"] else { panic!("a Record has cells") };
    let mut cells = cells.clone();
    // A path that the kernel does not have here moved nothing.
    cells.retain(|cell| cell["result"]["stop"] != "not_applicable");
    // Rules look at cells; the findings go with the first.
    cells[0]["findings"] = record["findings"].clone();
    cells
}

/// The cell of direct I/O and the words of its verdict; no cell of the run says `device`.
#[track_caller]
fn no_device(cells: &[Value]) -> (&str, &str) {
    for cell in cells {
        assert_ne!(verdict(cell), "device", "{}", brief(cell));
    }
    let direct =
        cells.iter().find(|cell| word(cell, "/workload/path") == "direct").expect("paths reads directly");
    (verdict(direct), word(direct, "/verdict/text"))
}

fn has_finding(cells: &[Value], code: &str) -> bool {
    !findings(&cells[0], code).is_empty()
}

/// Whether a file is where the test wants it: on a filesystem that lists extents, so not in memory.
fn is_on_a_disk(file: &Path) -> bool {
    let listed = File::open(file)
        .and_then(|file| rdsk_sys::extents::extents(&file, 0, 0, rdsk_sys::extents::Flush::First));
    if let Err(error) = &listed {
        eprintln!("SKIPPED: {} has no extents ({error})", file.display());
    }
    listed.is_ok()
}

#[test]
fn a_file_in_memory_is_no_disk() {
    if !requires(&NEEDS) {
        return;
    }
    for direct_io in WAYS {
        let disk = LoopDevice::builder()
            .in_memory()
            .size(BYTES)
            .direct_io(direct_io)
            .create()
            .expect("loop devices");
        if !disk.backing_path().starts_with("/dev/shm") {
            eprintln!("SKIPPED: there is no room in /dev/shm");
            return;
        }
        let cells = read(disk.path());
        let (code, text) = no_device(&cells);
        assert!(
            code == "page-cache" && text.contains("is on tmpfs, which keeps its files in memory"),
            "{text}"
        );
        assert!(has_finding(&cells, "loop-backing-cached"), "{}", cells[0]["findings"]);
        let bytes = BYTES.to_string();
        let written = record_of(rdsk(&[
            &"paths",
            &disk.path(),
            &"--rw",
            &"write",
            &"--bytes",
            &bytes,
            &"--budget",
            &"4s",
            &"--destroy",
            &identity(&disk),
        ]));
        assert_eq!(no_device(&cells_of(&written)).0, "page-cache");
    }
}

#[test]
fn partitions_and_loops_over_it_are_no_disk_either() {
    if !requires(&NEEDS) {
        return;
    }
    let lower = LoopDevice::builder().in_memory().size(4 * BYTES).create().expect("loop devices");
    if !lower.backing_path().starts_with("/dev/shm") {
        eprintln!("SKIPPED: there is no room in /dev/shm");
        return;
    }
    let upper = LoopDevice::builder().over(lower.path()).create().expect("loop devices");
    let cells = read(upper.path());
    let (code, text) = no_device(&cells);
    assert!(code == "page-cache" && text.contains("is on tmpfs"), "{text}");
    assert!(text.contains(&format!("the file of {} lies on {}", upper.name(), lower.name())), "{text}");
    drop(upper);
    let partitions = lower.partition_gpt().expect("a partition table fits");
    let cells = read(&partitions[0]);
    let (code, text) = no_device(&cells);
    assert!(code == "page-cache" && text.contains("is on tmpfs"), "{text}");
}

#[test]
fn a_filesystem_on_it_is_in_memory_too() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    on_ext4_in_memory(|directory, disk| {
        if !disk.backing_path().starts_with("/dev/shm") {
            eprintln!("SKIPPED: there is no room in /dev/shm");
            return;
        }
        let file = directory.join("data");
        write_file(&file, BYTES);
        let cells = read(&file);
        let (code, text) = no_device(&cells);
        assert!(code == "page-cache" && text.contains("is on tmpfs"), "{text}");
    });
}

#[test]
fn holes_are_no_disk() {
    if !requires(&NEEDS) {
        return;
    }
    for direct_io in WAYS {
        let disk = LoopDevice::builder().size(BYTES).direct_io(direct_io).create().expect("loop devices");
        if !is_on_a_disk(disk.backing_path()) {
            return;
        }
        let cells = read(disk.path());
        let (code, text) = no_device(&cells);
        assert!(code == "hole" && text.contains("100% of its backing file"), "{text}");
        assert!(has_finding(&cells, "hole-read"), "{}", cells[0]["findings"]);
    }
    let disk = LoopDevice::builder().size(BYTES).direct_io(DirectIo::On).create().expect("loop devices");
    let mut reserve = std::process::Command::new("fallocate");
    reserve.args(["--length", &BYTES.to_string()]).arg(disk.backing_path());
    tool(reserve);
    let cells = read(disk.path());
    let (code, text) = no_device(&cells);
    assert!(code == "hole" && text.contains("was never written"), "{text}");
}

/// Two partitions of a loop device over a file with holes: one was written whole, the other never.
#[test]
fn a_partition_is_a_hole_if_its_own_part_of_the_file_is_one() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = LoopDevice::builder().size(4 * BYTES).direct_io(DirectIo::On).create().expect("loop devices");
    if !is_on_a_disk(disk.backing_path()) {
        return;
    }
    let partitions = disk.partition_gpt().expect("a partition table fits");
    let file_of = |cells: &[Value]| cells[0]["evidence"]["loops"][0].clone();
    let never_written = |node: &Path| {
        let cells = read(node);
        let (code, text) = no_device(&cells);
        let name = node.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let words = format!(" below {name} was never written");
        assert!(code == "hole" && text.contains("100% of its") && text.contains(&words), "{text}");
        file_of(&cells)["size_bytes"].as_u64().expect("a size")
    };
    let size_bytes = never_written(&partitions[0]);
    assert!((BYTES..2 * BYTES).contains(&size_bytes), "{size_bytes}");
    let mut node = File::options().write(true).open(&partitions[0]).expect("it is ours");
    let data = vec![7; usize::try_from(size_bytes).expect("some MiB")];
    std::io::Write::write_all(&mut node, &data).expect("it has room for itself");
    node.sync_all().expect("it can be flushed");
    drop(node);
    never_written(&partitions[1]);
    let cells = read(&partitions[0]);
    assert_eq!(file_of(&cells)["extents"]["hole_bytes"], 0, "{}", brief(&cells[0]));
    assert!(cells.iter().all(|cell| verdict(cell) != "hole"), "{}", brief(&cells[0]));
}

/// A file that was written just before is in the page cache. Without direct I/O the loop device reads it there; with direct
/// I/O the disk below reads, and its own counter says so.
#[test]
fn a_cached_file_is_no_disk_unless_the_disk_reads() {
    if !requires(&[Need::Root, Need::Loop, Need::Cachestat]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory of our own");
    let file = place.path().join("backing");
    write_file(&file, BYTES);
    if !is_on_a_disk(&file) {
        return;
    }
    let disk = LoopDevice::builder().over(&file).direct_io(DirectIo::Off).create().expect("loop devices");
    // The kernel may take pages back at any time; then another run counts.
    let was_cached = (0..4).any(|_| {
        std::io::copy(&mut File::open(&file).expect("it is there"), &mut std::io::sink())
            .expect("it can be read");
        let cells = read(disk.path());
        let cached = |cell: &Value| {
            let cache = &cell["evidence"]["loops"][0]["page_cache"]["before"]["cached_bytes"];
            let visits = cell["result"]["visits"].as_array().map_or(0, Vec::len) as u64;
            cache.as_u64() == Some(BYTES * visits)
        };
        if !cells.iter().all(cached) {
            return false;
        }
        let (code, text) = no_device(&cells);
        assert!(code == "page-cache" && text.contains("which held all of it"), "{text}");
        assert!(has_finding(&cells, "loop-backing-cached"), "{}", cells[0]["findings"]);
        true
    });
    assert!(was_cached, "the kernel took pages back in each of four runs");
    drop(disk);
    let disk = LoopDevice::builder().over(&file).direct_io(DirectIo::On).create().expect("loop devices");
    if disk.sysfs("loop/dio").is_ok_and(|dio| dio.trim() != "1") {
        eprintln!("SKIPPED: this filesystem has no direct I/O for loop devices");
        return;
    }
    for cell in read(disk.path()) {
        let below =
            cell["evidence"]["loops"][0]["below"].as_str().expect("a disk carries the file").to_owned();
        let devices = cell["evidence"]["device"].as_array().expect("evidence lists devices");
        let read_by = |name: &str| {
            let counted = devices.iter().find(|device| device["name"] == name).expect("both are counted");
            counted["read_bytes"].as_u64().expect("it is counted")
        };
        let moved = read_by(disk.name());
        assert_eq!(device(&cell, &disk)["read_bytes"].as_u64(), Some(moved));
        if verdict(&cell) == "device" {
            assert!(read_by(&below) * 10 >= moved * 9, "{}", brief(&cell));
        }
    }
}

#[test]
fn zram_is_said_to_be_memory() {
    if !requires(&[Need::Root, Need::Zram]) {
        return;
    }
    let disk = ZramDevice::create(usize::try_from(BYTES).expect("16 MiB")).expect("requires() found zram");
    let cells = read(disk.path());
    assert!(has_finding(&cells, "memory-device"), "{}", cells[0]["findings"]);
}
