//! Truth: what a write of part of a page costs, on a real ext4 filesystem of 4096-byte blocks.

mod support;

use rdsk_testkit::{LoopDevice, Need, requires};
use serde_json::Value;
use support::{
    assert_near, brief, cell, count, device, figure, finding_on, findings, on_ext4, rdsk, record_of,
    verdict_at_the_loop, word,
};

const NEEDS: [Need; 4] = [Need::Root, Need::Loop, Need::Ext4, Need::Cachestat];

/// Bytes that the kernel read for each write of a cell, by its account of the process.
fn read_per_write(cell: &Value) -> f64 {
    figure(cell, "/evidence/process/read_bytes") / figure(cell, "/result/ops")
}

/// The same by the counters of the device.
fn device_read_per_write(cell: &Value, disk: &LoopDevice) -> f64 {
    figure(device(cell, disk), "/read_bytes") / figure(cell, "/result/ops")
}

/// Every range was looked at just before its write, and was in the state that the cell is about.
fn assert_state_was_checked(cell: &Value) {
    let ops = count(cell, "/result/ops");
    assert!(ops >= 32, "{}", brief(cell));
    let visits = cell["result"]["visits"].as_array().expect("a cell lists its visits");
    let sum = |name: &str| visits.iter().map(|visit| count(visit, &format!("/cache/{name}"))).sum::<u64>();
    assert!(sum("ranges_checked") >= ops, "{} checked of {ops}", sum("ranges_checked"));
    assert_eq!(sum("ranges_wrong"), 0, "{}", brief(cell));
}

/// Another program may make the kernel forget the filesystem's metadata or pages of the program itself. They are read again meanwhile,
/// which shows beside the few writes that a busy machine comes to.
const ATTEMPTS: usize = 3;

/// Whether the writes to part of a page read hardly more than these pages.
fn reads_only_data(record: &Value, disk: &LoopDevice) -> bool {
    let reads =
        [("1", 4096.0), ("512", 4096.0), ("4096+1", 8192.0), ("4096+512", 8192.0), ("4096+2048", 8192.0)];
    reads.iter().all(|(size, bytes)| {
        let small = cell(record, &format!("align/write/uncached-buffered/{size}"));
        let per_write = read_per_write(small).max(device_read_per_write(small, disk));
        per_write <= 1.05 * bytes
    })
}

#[test]
fn writes_of_part_of_a_page_read_it_first() {
    if !requires(&NEEDS) {
        return;
    }
    on_ext4(|directory, disk| {
        let run = || {
            record_of(rdsk(&[
                &"align",
                &directory,
                &"--size",
                &"16M",
                &"--bytes",
                &"16M",
                &"--bs",
                &"1,512,4096",
                &"--runtime",
                &"250ms",
            ]))
        };
        let record =
            (0..ATTEMPTS).map(|_| run()).find(|record| reads_only_data(record, disk)).unwrap_or_else(run);
        for size in [1, 512] {
            let id = format!("align/write/uncached-buffered/{size}");
            let small = cell(&record, &id);
            assert_state_was_checked(small);
            assert_near(&id, read_per_write(small), 4096.0, 0.05);
            assert_near(&id, device_read_per_write(small, disk), 4096.0, 0.05);
            let finding = finding_on(&record, "read-modify-write", &id);
            let evidence = finding["evidence"].as_array().expect("a finding cites").iter();
            let cited: Vec<_> =
                evidence.filter_map(Value::as_str).filter(|line| line.contains(&id)).collect();
            // BPF says which call read; without it there are the counters of the process.
            let says =
                |line: &&str| line.contains("read per write = 4096 B") || line.contains("process.read_bytes");
            assert!(cited.iter().any(says), "{finding:#}");
            assert!(word(finding, "/text").contains("read"), "{finding:#}");
            assert!(finding["advice"].as_str().is_some_and(|advice| advice.contains("4 KiB")), "{finding:#}");
        }
        // The contrast: a whole page is written without reading, and what is cached needs no reading.
        for id in ["align/write/uncached-buffered/4096", "align/write/cached-buffered/512"] {
            let quiet = cell(&record, id);
            assert_state_was_checked(quiet);
            assert!(read_per_write(quiet) < 64.0, "{}", brief(quiet));
            assert!(device_read_per_write(quiet, disk) < 200.0, "{}", brief(quiet));
            for finding in findings(&record, "read-modify-write") {
                let named = finding["cells"].as_array().expect("a finding names cells");
                assert!(named.iter().all(|one| one != id), "{finding:#}");
            }
        }
        a_whole_page_moved_apart_reads_both(&record, disk);
        direct_needs_sectors(&record);
    });
}

/// The same 4096 bytes cost two reads once they begin in one page and end in the next.
fn a_whole_page_moved_apart_reads_both(record: &Value, disk: &LoopDevice) {
    for shift in [1, 512, 2048] {
        let id = format!("align/write/uncached-buffered/4096+{shift}");
        let crossing = cell(record, &id);
        assert_near(&id, read_per_write(crossing), 8192.0, 0.05);
        assert_near(&id, device_read_per_write(crossing, disk), 8192.0, 0.05);
        finding_on(record, "read-modify-write", &id);
    }
}

fn direct_needs_sectors(record: &Value) {
    for id in
        ["align/write/cached-direct/1", "align/write/uncached-direct/1", "align/write/uncached-direct/4096+1"]
    {
        let refused = cell(record, id);
        assert_eq!(word(refused, "/result/stop"), "not_applicable", "{}", brief(refused));
        assert!(
            refused["result"]["bytes_per_s"].is_null() && refused["verdict"].is_null(),
            "{}",
            brief(refused)
        );
        assert!(!word(refused, "/result/why").is_empty());
        finding_on(record, "direct-refused", id);
    }
    for id in ["align/write/uncached-direct/512", "align/write/uncached-direct/4096"] {
        let direct = cell(record, id);
        assert_eq!(verdict_at_the_loop(direct), "device", "{}", brief(direct));
        assert!(read_per_write(direct) < 64.0, "{}", brief(direct));
    }
}
