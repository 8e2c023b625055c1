//! Truth: the number of requested I/Os is the number done, the number in the evidence, and the number in the kernel's
//! counters read independently; the depth is never above the requested one; the same seed does the same work on both engines.

#![allow(clippy::print_stderr, reason = "a test that was disturbed says so")]

use crate::support::{
    Counted, assert_near, brief, cell, count, device, figure, identity, iostat_of, loop_device, near,
    one_writer, rdsk, reads_at_depth_32, record_of, sum_over_cells, verdict_at_the_loop, word,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{DirectIo, LoopDevice, Need, requires};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};

const NEEDS: [Need; 2] = [Need::Root, Need::Loop];

/// The number of requests in one pass.
const REQUESTS: u64 = 23;
const BLOCK: u64 = 4096;
/// A device that is zeroed before each of several runs and read whole after it.
const SEEDED_BYTES: u64 = 16 << 20;

/// The round of each visit.
fn rounds(cell: &Value) -> Vec<u64> {
    let visits = cell["result"]["visits"].as_array().expect("a cell lists its visits");
    visits.iter().map(|visit| count(visit, "/round")).collect()
}

fn visits(cell: &Value) -> u64 {
    rounds(cell).len() as u64
}

/// Requests with data in them. The kernel counts an empty flush among the writes, with no bytes, besides among the flushes.
fn requests(cell: &Value, disk: &LoopDevice, counter: &str) -> u64 {
    let counters = device(cell, disk);
    let counted = count(counters, &format!("/{counter}s"));
    if counter == "write" { counted - count(counters, "/flushes") } else { counted }
}

/// Every pass of the direct cell is 23 requests in its result and in its evidence.
fn assert_counts(direct: &Value, disk: &LoopDevice, counter: &str) {
    assert_eq!(word(direct, "/result/stop"), "complete", "{}", brief(direct));
    let passes = visits(direct);
    assert!(passes >= 1, "{}", brief(direct));
    for visit in direct["result"]["visits"].as_array().expect("just counted") {
        assert_eq!(count(visit, "/ops"), REQUESTS);
    }
    assert_eq!(count(direct, "/result/ops"), passes * REQUESTS);
    assert_eq!(count(direct, "/result/bytes"), passes * REQUESTS * BLOCK);
    assert_eq!(count(direct, "/result/latency_ns/count"), passes * REQUESTS);
    assert_eq!(requests(direct, disk, counter), passes * REQUESTS, "{}", brief(direct));
    assert_eq!(count(device(direct, disk), &format!("/{counter}_bytes")), passes * REQUESTS * BLOCK);
    assert_eq!(verdict_at_the_loop(direct), "device", "{}", brief(direct));
    assert_near("device share", figure(direct, "/verdict/device_share"), 1.0, 1e-9);
}

/// One run over passes of so many requests, and what the kernel counted meanwhile.
fn counted_run(disk: &LoopDevice, direction: &[&str], requests: u64) -> (Value, Counted) {
    let mut command = rdsk(&[&"paths", &disk.path(), &"--bs", &"4k", &"--budget", &"60s"]);
    command.args(["--bytes", &(requests * BLOCK).to_string()]).args(direction);
    let before = Counted::now(disk);
    let record = record_of(command);
    (record, Counted::now(disk).since(before))
}

/// What the kernel counted beyond the evidence of the cells: what it costs to examine, claim and leave the device.
fn beyond_cells(record: &Value, disk: &LoopDevice, counted: Counted) -> Counted {
    let beyond = |total: u64, counter: &str| {
        let charged = sum_over_cells(record, disk, counter);
        assert!(total >= charged, "the cells claim {charged} {counter}, the kernel counted {total}");
        total - charged
    };
    Counted {
        reads: beyond(counted.reads, "/reads"),
        read_bytes: beyond(counted.read_bytes, "/read_bytes"),
        writes: beyond(counted.writes, "/writes"),
        write_bytes: beyond(counted.write_bytes, "/write_bytes"),
        flushes: beyond(counted.flushes, "/flushes"),
    }
}

#[test]
fn twenty_three_reads_are_twenty_three() {
    if !requires(&NEEDS) {
        return;
    }
    // Devices that hold one pass and no more, so that no read-ahead runs on beyond it. What examining them reads is in the
    // cache already, and stays there while a program has the device open.
    let device_of = |requests| LoopDevice::builder().size(requests * BLOCK).create().expect("loop devices");
    let (disk, larger) = (device_of(REQUESTS), device_of(2 * REQUESTS));
    let run = |disk: &LoopDevice, requests| {
        let mut open = File::open(disk.path()).expect("our device");
        std::io::copy(&mut open, &mut std::io::sink()).expect("our device");
        counted_run(disk, &["--rw", "read"], requests)
    };
    // What the kernel counted from outside is what the cells hold, but for a probe, which costs the same in a run over
    // twice as much. Others may read the device meanwhile: a kernel that takes cached pages back by itself has them read
    // again, and who looks for a disk by its identity, as another test here does, reads the first pages of all.
    let both_cost_the_same = |_| {
        let (record, counted) = run(&disk, REQUESTS);
        let direct = cell(&record, "paths/read/direct");
        if requests(direct, &disk, "read") > visits(direct) * REQUESTS {
            eprintln!("others read within the cell: {}", brief(direct));
            return false;
        }
        assert_counts(direct, &disk, "read");
        let beyond = beyond_cells(&record, &disk, counted);
        assert_eq!(counted.write_bytes, 0, "nobody was allowed to write");
        let (double, counted) = run(&larger, 2 * REQUESTS);
        let twice = beyond_cells(&double, &larger, counted);
        assert_eq!(count(cell(&double, "paths/read/direct"), "/result/visits/0/ops"), 2 * REQUESTS);
        eprintln!("beyond the cells {beyond:?}, and with twice as many {twice:?}");
        let small = beyond.reads <= 2 && beyond.read_bytes <= 2 * BLOCK;
        small && (beyond.reads, beyond.read_bytes) == (twice.reads, twice.read_bytes)
    };
    assert!((0..5).any(both_cost_the_same), "a probe costs little, and the same however much is read");
}

#[test]
fn twenty_three_writes_are_twenty_three() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = loop_device();
    let (record, counted) = counted_run(&disk, &["--rw", "write", "--destroy", &identity(&disk)], REQUESTS);
    assert_counts(cell(&record, "paths/write/direct"), &disk, "write");
    let beyond = beyond_cells(&record, &disk, counted);
    assert_eq!((beyond.writes - beyond.flushes, beyond.write_bytes), (0, 0), "{counted:?}");
    // The kernel merges what is buffered: 23 pages in a row need fewer requests than pages.
    let buffered = cell(&record, "paths/write/buffered");
    let merged = requests(buffered, &disk, "write");
    assert!(
        merged < visits(buffered) * REQUESTS,
        "{merged} requests of buffered writes: {}",
        brief(buffered)
    );
}

#[test]
fn one_direct_writer_has_one_request_in_flight() {
    if !requires(&NEEDS) {
        return;
    }
    // Past the page cache of its backing file, which would take some of it, and then its figure would be that of no device.
    let builder = LoopDevice::builder().direct_io(DirectIo::On);
    let disk = builder.create().expect("requires() found loop devices");
    first_right(10, || {
        let record = one_writer(&disk);
        let direct = cell(&record, "stream/write/direct");
        let row = &iostat_of(device(direct, &disk));
        let in_flight = figure(direct, "/result/in_flight_mean");
        assert!(in_flight > 0.0 && in_flight <= 1.001, "{in_flight} of our own in flight");
        // The columns belong together: w/s of wareq-sz are wkB/s.
        let product = figure(row, "/w~1s") * figure(row, "/wareq-sz");
        assert_near("w/s × wareq-sz", product, figure(row, "/wkB~1s"), 0.001);
        // The kernel may have more of it in flight only while another program looks at the device.
        let aqu_sz = figure(row, "/aqu-sz");
        ensure(aqu_sz > 0.0 && aqu_sz <= 1.05, || format!("aqu-sz {aqu_sz}: {}", brief(direct)))?;
        // The flushes, empty writes to the kernel, show beside the few writes that a busy machine comes to.
        near("wareq-sz", figure(row, "/wareq-sz"), 4.0, 0.01)?;
        Ok(())
    });
}

#[test]
fn thirty_two_requested_are_at_most_thirty_two_in_flight() {
    if !requires(&[NEEDS[0], NEEDS[1], Need::IoUring]) {
        return;
    }
    let disk = loop_device();
    for pattern in ["sequential", "random"] {
        // Who looks at the device adds to its queue, and a visit that stood still may have little in flight.
        first_right(10, || {
            let record = reads_at_depth_32(&disk, pattern);
            let direct = cell(&record, "stream/read/direct");
            assert_eq!(count(direct, "/workload/queue_depth"), 32);
            assert_eq!(word(direct, "/workload/engine"), "uring");
            let in_flight = figure(direct, "/result/in_flight_mean");
            assert!(in_flight <= 32.001, "{in_flight} in flight");
            ensure(in_flight > 1.0, || format!("{in_flight} in flight"))?;
            // The kernel saw no more than was asked for: what is merged, or done already, it does not count.
            let most = count(device(direct, &disk), "/in_flight_max");
            ensure((1..=32).contains(&most), || {
                format!("{pattern}: at most {most} in the device: {}", brief(direct))
            })
        });
    }
}

#[test]
fn same_seed_does_the_same_work_on_both_engines() {
    if !requires(&[NEEDS[0], NEEDS[1], Need::IoUring]) {
        return;
    }
    let sequential: &[&str] = &["paths", "--bs", "64k", "--bytes", "8M"];
    let random: &[&str] = &["stream", "--pattern", "random", "--bs", "4k", "--bytes", "512k"];
    let disk = LoopDevice::builder().size(SEEDED_BYTES).create().expect("requires() found loop devices");
    for (id, plan) in [("paths/write/direct", sequential), ("stream/write/direct", random)] {
        // A busy machine has time for fewer visits, and each writes elsewhere, so runs of as many are compared.
        let mut by_visits = [BTreeMap::new(), BTreeMap::new()];
        let both = (0..10).find_map(|_| {
            for (visits, engine) in by_visits.iter_mut().zip(["sync", "uring"]) {
                let (record, hash) = write_pass(&disk, plan, engine, "7");
                let direct = cell(&record, id);
                assert_eq!(word(direct, "/workload/engine"), engine);
                let cells = record["cells"].as_array().expect("a Record has cells");
                let written = || cells.iter().filter(|cell| word(cell, "/result/stop") != "not_applicable");
                if let Some(cell) = written().find(|cell| word(cell, "/result/stop") != "complete") {
                    eprintln!("{id}: no whole visits: {}", brief(cell));
                    continue;
                }
                // What the device holds in the end is of all cells, and of the order of their rounds.
                let ids: Vec<_> =
                    written().map(|cell| (rounds(cell), count(cell, "/result/bytes"))).collect();
                let moved = ["/result/bytes", "/result/ops"].map(|name| count(direct, name));
                let device_moved = ["/writes", "/write_bytes"].map(|name| count(device(direct, &disk), name));
                visits.insert(ids, (moved, device_moved, hash));
            }
            let [sync, uring] = &by_visits;
            sync.iter().find_map(|(visits, its)| Some((*its, *uring.get(visits)?)))
        });
        let (sync, uring) = both.unwrap_or_else(|| panic!("{id}: never as many visits: {by_visits:?}"));
        assert_eq!((sync.0, sync.1), (uring.0, uring.1), "{id}");
        assert_eq!(sync.2, uring.2, "{id}: the same seed left different data on sync and on uring");
        let (_, other_seed) = write_pass(&disk, plan, "sync", "8");
        let of_seed = |(_, _, hash): &(_, _, u64)| *hash == other_seed;
        assert!(!by_visits[0].values().any(of_seed), "{id}: another seed left the same data");
    }
}

/// Writes one plan onto a zeroed device; gives the Record and the hash of what the device then holds.
fn write_pass(disk: &LoopDevice, plan: &[&str], engine: &str, seed: &str) -> (Value, u64) {
    let mut open = OpenOptions::new().write(true).open(disk.path()).expect("our device");
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), SEEDED_BYTES), &mut open).expect("our device");
    open.sync_all().expect("our device");
    drop(open);
    let zeroed = disk.content_hash().expect("our device");
    let mut command = rdsk(&[
        &plan[0],
        &disk.path(),
        &"--rw",
        &"write",
        &"--destroy",
        &identity(disk),
        &"--engine",
        &engine,
        &"--seed",
        &seed,
        &"--budget",
        &"30s",
    ]);
    command.args(&plan[1..]);
    let record = record_of(command);
    let written = disk.content_hash().expect("our device");
    assert_ne!(written, zeroed, "nothing was written");
    (record, written)
}
