//! Truth: what a write of part of a page costs, on a real ext4 filesystem of 4096-byte blocks.

use crate::support::{
    self, brief, cell, count, device, figure, findings, near, on_ext4, rdsk, record_of, verdict_at_the_loop,
    word,
};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{LoopDevice, Need, requires};
use serde_json::Value;

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
fn state_was_checked(cell: &Value) -> Result<(), String> {
    let ops = count(cell, "/result/ops");
    ensure(ops >= 32, || brief(cell))?;
    let visits = cell["result"]["visits"].as_array().expect("a cell lists its visits");
    let sum = |name: &str| visits.iter().map(|visit| count(visit, &format!("/cache/{name}"))).sum::<u64>();
    assert!(sum("ranges_checked") >= ops, "{} checked of {ops}", sum("ranges_checked"));
    same("ranges in another state", &sum("ranges_wrong"), &0)
}

/// Another program may make the kernel forget the filesystem's metadata or pages of the program itself. They are read again meanwhile,
/// which shows beside the few writes that a busy machine comes to.
const ATTEMPTS: usize = 10;

/// Writes of a cell that read so many bytes each, by the process and by the device, and a finding that says so.
fn reads_first<'a>(record: &'a Value, disk: &LoopDevice, id: &str, bytes: f64) -> Result<&'a Value, String> {
    let own = cell(record, id);
    near(id, read_per_write(own), bytes, 0.05)?;
    near(id, device_read_per_write(own, disk), bytes, 0.05)?;
    let is_on = |finding: &&&Value| {
        finding["cells"].as_array().is_some_and(|ids| ids.iter().any(|listed| listed == id))
    };
    let matching = findings(record, "read-modify-write");
    matching.iter().find(is_on).copied().ok_or_else(|| format!("no finding on {id}: {}", record["findings"]))
}

#[test]
fn writes_of_part_of_a_page_read_it_first() {
    if !requires(&NEEDS) {
        return;
    }
    on_ext4(|directory, disk| {
        first_right(ATTEMPTS, || {
            let record = record_of(rdsk(&[
                &"align", &directory, &"--size", &"16M", &"--bytes", &"16M", &"--bs", &"1,512,4096",
                &"--runtime", &"250ms",
            ]));
            for size in [1, 512] {
                a_part_of_a_page_reads_it(&record, disk, &format!("align/write/uncached-buffered/{size}"))?;
            }
            // The contrast: a whole page is written without reading, and what is cached needs no reading.
            for id in ["align/write/uncached-buffered/4096", "align/write/cached-buffered/512"] {
                nothing_is_read(&record, disk, id)?;
            }
            // The same 4096 bytes cost two reads once they begin in one page and end in the next.
            for shift in [1, 512, 2048] {
                let id = format!("align/write/uncached-buffered/4096+{shift}");
                reads_first(&record, disk, &id, 8192.0)?;
            }
            direct_needs_sectors(&record)
        });
    });
}

fn a_part_of_a_page_reads_it(record: &Value, disk: &LoopDevice, id: &str) -> Result<(), String> {
    state_was_checked(cell(record, id))?;
    let finding = reads_first(record, disk, id, 4096.0)?;
    let evidence = finding["evidence"].as_array().expect("a finding cites").iter();
    let cited: Vec<_> = evidence.filter_map(Value::as_str).collect();
    // BPF says which call read; without it there are the counters of the process.
    let says = |line: &&str| line.contains("read per write = 4096 B") || line.contains("process.read_bytes");
    ensure(cited.iter().any(says), || format!("{finding:#}"))?;
    assert!(word(finding, "/text").contains("read"), "{finding:#}");
    assert!(finding["advice"].as_str().is_some_and(|advice| advice.contains("4 KiB")), "{finding:#}");
    Ok(())
}

fn nothing_is_read(record: &Value, disk: &LoopDevice, id: &str) -> Result<(), String> {
    let quiet = cell(record, id);
    state_was_checked(quiet)?;
    ensure(read_per_write(quiet) < 64.0 && device_read_per_write(quiet, disk) < 200.0, || brief(quiet))?;
    let matching = findings(record, "read-modify-write");
    let names = |finding: &&Value| {
        finding["cells"].as_array().expect("a finding names cells").iter().any(|cell| cell == id)
    };
    ensure(!matching.iter().any(names), || format!("a finding on {id}: {matching:?}"))
}

fn direct_needs_sectors(record: &Value) -> Result<(), String> {
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
        support::finding_on(record, "direct-refused", id);
    }
    for id in ["align/write/uncached-direct/512", "align/write/uncached-direct/4096"] {
        let direct = cell(record, id);
        ensure(verdict_at_the_loop(direct) == "device" && read_per_write(direct) < 64.0, || brief(direct))?;
    }
    Ok(())
}
