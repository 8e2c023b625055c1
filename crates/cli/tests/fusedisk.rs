//! Truth: a real block device whose behaviour is programmed. `rdsk` reads a loop device over a disk that answers each
//! request after a known time; its counts must be those of the disk's log, and no time may be shorter than was programmed. How
//! close the times come is in timing/fusedisk.rs.

use crate::support::{
    Counted, assert_near, brief, cell, count, device as device_counters, figure, identity, programmed,
    programmed_of, random_reads, rdsk, record_of, settle, sum_over_cells,
};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, requires};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// No machine, however busy, makes a disk quicker than its log says: not one read, and not the rate at any depth.
#[test]
fn no_read_is_quicker_than_was_programmed() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    for latency_ns in [100 * US, 2 * MS] {
        let (disk, device) = programmed(Behaviour::single(latency_ns));
        for depth in [1, 4, 16] {
            disk.clear_log();
            let record = random_reads(&disk, &device, "4k", depth, &["--bytes", "256k"]);
            let direct = cell(&record, "stream/read/direct");
            assert_eq!(count(direct, "/workload/queue_depth"), depth);
            let ops = count(direct, "/result/ops");
            assert_eq!(ops, 64 * direct["result"]["visits"].as_array().map_or(0, Vec::len) as u64);
            assert!(count(direct, "/result/latency_ns/min") >= latency_ns, "{}", brief(direct));
            // One server: all its reads lie one behind the other within the time of the cell. Neighbours that the kernel
            // merged are one request.
            let requests = ops - count(device_counters(direct, &device), "/read_merges");
            assert!(count(direct, "/result/elapsed_ns") >= requests * latency_ns, "{}", brief(direct));
            let in_flight = figure(direct, "/result/in_flight_mean");
            assert!(in_flight > 0.0 && in_flight <= depth as f64 * 1.0001, "{}", brief(direct));
            // The reader sees each answer after the disk gave it.
            let log = disk.log();
            let own = log.iter().filter(|served| served.bytes == 4096);
            let quickest_ns = own.map(|served| served.answered_ns - served.arrival_ns).min();
            assert!(Some(count(direct, "/result/latency_ns/min")) >= quickest_ns, "{}", brief(direct));
        }
    }
}

/// Large blocks lie in the memory that programs have: a device that takes 128 pieces in one request gets 1 MiB in two, from rdsk as from
/// fio, by the disk's own log; from huge pages in one.
#[test]
fn a_large_read_is_as_many_requests_as_fio_makes_of_it() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::Tool("fio")]) {
        return;
    }
    let (disk, device) = programmed(Behaviour::single(3 * MS));
    let segments = std::fs::read_to_string(format!("/sys/block/{}/queue/max_segments", device.name()));
    assert_eq!(segments.expect("a loop device has a queue").trim(), "128", "256 pages are two requests");
    let by_fio = || {
        let mut fio = std::process::Command::new("fio");
        fio.args(["--name=reads", "--readonly", "--rw=read", "--bs=1M", "--size=8M", "--direct=1"])
            .args(["--ioengine=psync", &format!("--filename={}", device.path().display())]);
        assert!(fio.output().expect("requires() found fio").status.success());
    };
    let by_rdsk = |memory: &str| {
        let words =
            ["--rw", "read", "--bs", "1M", "--bytes", "8M", "--memory", memory, "--evidence", "sysfs"];
        let path = device.path();
        let mut line: Vec<&dyn AsRef<OsStr>> = vec![&"paths", &path];
        line.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
        let record = record_of(rdsk(&line));
        let direct = cell(&record, "paths/read/direct");
        let counters = device_counters(direct, &device);
        (count(direct, "/result/ops"), count(counters, "/reads"), direct["workload"]["buffers"].clone())
    };
    // A partition scan by another program is one more read.
    first_right(5, || {
        disk.clear_log();
        by_fio();
        let of_fio = disk.counts().reads;
        let (ops, requests, buffers) = by_rdsk("ordinary");
        assert_eq!(buffers, "ordinary");
        same("requests of fio for each read", &(of_fio / 8), &2)?;
        same("requests", &requests, &(2 * ops))?;
        let (ops, requests, buffers) = by_rdsk("huge");
        assert_eq!(buffers, "huge");
        // Where the machine has no huge page left, these are ordinary ones.
        ensure(requests >= ops && requests <= 2 * ops, || format!("{requests} requests of {ops} reads"))
    });
}

/// A cache below the block layer, of a hypervisor or an array, would answer what was read before, and no counter of this machine would
/// say. So no visit of a sequence goes over what an earlier one has read, as long as something else is left, and no random cell draws
/// the offsets of another cell or of another run.
#[test]
fn nothing_is_read_again_while_something_else_is_left() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    // More than it reads in that time, however large its requests are.
    const DISK_BYTES: u64 = 2 << 30;
    let (disk, device) = programmed_of(DISK_BYTES, Behaviour::single(10 * MS));
    settle(&disk);
    // The Record, how often each place was read in sequence, and each time that one was read at random.
    let attempt = || {
        disk.clear_log();
        let words: [&dyn AsRef<OsStr>; 9] = [
            &"run",
            &device.path(),
            &"--only",
            &"headline",
            &"--rw",
            &"read",
            &"--budget",
            &"12s",
            &"--quiet",
        ];
        let record = record_of(rdsk(&words));
        let (mut sequential, mut random) = (BTreeMap::new(), Vec::new());
        // What comes before the first long read is of who examines the disk.
        for served in disk.log().into_iter().skip_while(|served| served.bytes <= 64 << 10) {
            if served.bytes > 4096 {
                *sequential.entry(served.offset_bytes).or_insert(0) += 1;
            } else if served.bytes == 4096 {
                random.push(served.offset_bytes);
            }
        }
        (record, sequential, random)
    };
    // A busy machine may leave time for one visit only, of which nothing can be reported; and who looks for a disk reads its first blocks.
    let run = || {
        first_right(5, || {
            let (record, sequential, random) = attempt();
            let sequence = cell(&record, "headline/read/sequential");
            let visits = sequence["result"]["visits"].as_array().map_or(0, Vec::len);
            ensure(visits >= 2 && random.len() > 100, || {
                format!("too little was read: {visits} visits, {} at random", random.len())
            })?;
            let total = count(sequence, "/result/bytes");
            assert!(total < DISK_BYTES, "{total} bytes in {}", brief(sequence));
            assert!(!sequential.is_empty());
            let again: Vec<_> = sequential.iter().filter(|(_, times)| **times > 1).collect();
            ensure(again.is_empty(), || format!("read again: {again:?}"))?;
            let distinct: BTreeSet<u64> = random.iter().copied().collect();
            ensure(distinct.len() * 10 >= random.len() * 9, || {
                format!("{} of {}", distinct.len(), random.len())
            })?;
            Ok(distinct)
        })
    };
    let (distinct, second) = (run(), run());
    let shared = distinct.intersection(&second).count();
    assert!(
        shared * 5 < distinct.len().min(second.len()),
        "{shared} of {} and {}",
        distinct.len(),
        second.len()
    );
}

/// What `dd conv=fsync` times: the disk's flush is inside the time of every pass, and in the disk's log.
#[test]
fn an_fsync_at_the_end_is_inside_the_time() {
    if !requires(&NEEDS) {
        return;
    }
    const FLUSH_NS: u64 = 200 * MS;
    let (disk, device) = programmed(Behaviour { flush_ns: FLUSH_NS, ..Behaviour::single(50 * US) });
    settle(&disk);
    disk.clear_log();
    let record = record_of(rdsk(&[
        &"stream",
        &device.path(),
        &"--rw",
        &"write",
        &"--bs",
        &"256k",
        &"--bytes",
        &"1M",
        &"--end-fsync",
        &"--destroy",
        &identity(&device),
    ]));
    let (plain, synced) = (cell(&record, "stream/write/buffered"), cell(&record, "stream/write/fsync"));
    assert_eq!(
        (&plain["workload"]["sync"], &synced["workload"]["sync"]),
        (&"none".into(), &"fsync_at_end".into())
    );
    let after_the_last_write = |cell: &Value| {
        let visits = cell["result"]["visits"].as_array().unwrap();
        visits.iter().map(|visit| count(visit, "/elapsed_ns") - count(visit, "/to_return_ns")).min().unwrap()
    };
    assert_eq!(after_the_last_write(plain), 0, "{}", brief(plain));
    assert!(after_the_last_write(synced) >= FLUSH_NS, "{}", brief(synced));
    let rate = count(synced, "/result/bytes") as f64 * 1e9 / figure(synced, "/result/elapsed_ns");
    assert_near("bytes over time with fsync", figure(synced, "/result/bytes_per_s/mean"), rate, 1e-9);
    let flushes = count(device_counters(synced, &device), "/flushes");
    let passes = synced["result"]["visits"].as_array().unwrap().len() as u64;
    assert!(flushes >= passes && disk.counts().flushes >= sum_over_cells(&record, &device, "/flushes"));
}

#[test]
fn counts_are_those_of_the_log() {
    if !requires(&[NEEDS[0], NEEDS[1], NEEDS[2], Need::IoUring]) {
        return;
    }
    let (disk, device) = programmed(Behaviour::parallel(4, 300 * US));
    for depth in [1, 8] {
        // Who looks at the device meanwhile is seen in the log, or in one of the two counts only; then another run counts.
        first_right(5, || is_held_against_the_log(&disk, &device, depth));
    }
}

/// Whether no other program read between the cells; if so, what rdsk counted is what the disk's log has.
fn is_held_against_the_log(disk: &FuseDisk, device: &LoopDevice, depth: u64) -> Result<(), String> {
    // No other program reads 12 KiB at once, so that the first and the last of this size in the log bound what the cells did.
    const BLOCK: u64 = 12 << 10;
    settle(disk);
    disk.clear_log();
    let before = Counted::now(device);
    let record = random_reads(disk, device, "12k", depth, &["--bytes", "6M"]);
    settle(disk);
    // And the kernel's count of everything, with what it costs to examine the device, is the log's.
    let (kernel, served) = (Counted::now(device).since(before), disk.counts());
    let log: Vec<u64> = disk.log().iter().map(|served| served.bytes).collect();
    let is_own = |bytes: &u64| *bytes == BLOCK;
    let (first, last) = (log.iter().position(is_own), log.iter().rposition(is_own));
    let (first, last) = first.zip(last).ok_or_else(|| format!("nothing was read: {log:?}"))?;
    let cells = &log[first..=last];
    // Neighbours may have been merged. Between the visits is a flush, whose size in the log is 0, and nothing else.
    let (own, other): (Vec<u64>, Vec<u64>) =
        cells.iter().partition(|bytes| **bytes > 0 && bytes.is_multiple_of(BLOCK));
    ensure(other.iter().all(|bytes| *bytes == 0), || format!("others read between the cells: {other:?}"))?;
    let direct = cell(&record, "stream/read/direct");
    let counters = device_counters(direct, device);
    let (ops, reads) = (count(direct, "/result/ops"), count(counters, "/reads"));
    ensure(ops > 100, || brief(direct))?;
    let of_device = (reads + count(counters, "/read_merges"), count(counters, "/read_bytes"));
    same("reads of the device", &of_device, &(ops, ops * BLOCK))?;
    let of_cells =
        (sum_over_cells(&record, device, "/reads"), sum_over_cells(&record, device, "/read_bytes"));
    same("reads of all cells", &of_cells, &(own.len() as u64, own.iter().sum()))?;
    same("reads of the kernel", &(kernel.reads, kernel.read_bytes), &(served.reads, served.read_bytes))?;
    assert_eq!((kernel.write_bytes, served.writes, served.errors), (0, 0, 0));
    Ok(())
}
