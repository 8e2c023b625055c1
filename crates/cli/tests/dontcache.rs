//! Truth: the path `dontcache` in the Record and on the page, where the kernel has it and where it has not.

mod support;

use rdsk_testkit::{Need, cli, requires};
use serde_json::Value;
use std::path::Path;
use support::{
    Counted, LONG, MIB, assert_near, brief, cell, count, device, figure, finding_on, findings, on_ext4,
    on_xfs, rdsk, record_of, word, write_file,
};

const NEEDS: [Need; 4] = [Need::Root, Need::Loop, Need::Cachestat, Need::DontCache];
const WHY: &str = "RWF_DONTCACHE needs Linux 6.14 or later and a filesystem that supports it";

fn paths_of(directory: &Path) -> Value {
    record_of(rdsk(&[&"paths", &directory, &"--bytes", &"64M", &"--runtime", &"1s"]))
}

/// What is in the page cache after a cell, as the Record has it, and the bytes that its visits moved.
fn left(cell: &Value) -> (u64, u64) {
    let state = if word(cell, "/workload/op") == "read" { "after" } else { "stable" };
    let cached = count(cell, &format!("/evidence/page_cache/{state}/cached_bytes"));
    (cached, count(cell, "/result/bytes"))
}

#[test]
fn nothing_stays_and_everything_reaches_the_device() {
    if !requires(&NEEDS) || !requires(&[Need::Xfs]) {
        return;
    }
    on_xfs(|directory, disk| {
        // On a busy machine pages stay that a quiet one drops (11 of 101 MiB of a read, seen beside a load of 20), so one of a few
        // runs must be without.
        let run = || {
            let before = Counted::now(disk);
            let record = paths_of(directory);
            (record, Counted::now(disk).since(before))
        };
        let is_dropped = |op: &str, record: &Value| {
            let (cached, bytes) = left(cell(record, &format!("paths/{op}/dontcache")));
            cached < bytes / 100
        };
        let mut runs = (0..10).map(|_| run());
        let dropped = runs.find(|(record, _)| ["read", "write"].iter().all(|op| is_dropped(op, record)));
        let (record, counted) = dropped.expect("in each of ten runs pages stay cached");
        assert_eq!(record["targets"][0]["dontcache"], true);
        for op in ["read", "write"] {
            let id = format!("paths/{op}/dontcache");
            let own = cell(&record, &id);
            let (_, bytes) = left(own);
            let of_device = figure(device(own, disk), &format!("/{op}_bytes"));
            if op == "write" {
                assert_near(&id, of_device, bytes as f64, 0.02);
            } else {
                // What is dropped before all of it was read is fetched again.
                assert!(of_device >= bytes as f64, "{of_device} of {bytes}");
            }
            assert_eq!(count(own, "/evidence/page_cache/before/cached_bytes"), 0, "{}", brief(own));
            let finding = finding_on(&record, "dontcache-saves", &id);
            let cited = finding["evidence"].as_array().expect("a finding cites");
            assert!(
                cited.iter().all(|line| line.as_str().is_some_and(|line| line.contains("cached afterwards")))
            );
            // Every cell of the direction moved whole passes of the same bytes.
            for column in ["direct", "buffered"] {
                let other = cell(&record, &format!("paths/{op}/{column}"));
                assert_eq!(other["workload"]["span_bytes"], own["workload"]["span_bytes"]);
            }
        }
        // Writes return before the device has them, and the time until stable has all of it.
        let write = cell(&record, "paths/write/dontcache");
        let [returned, stable] =
            ["to_return_ns", "to_stable_ns"].map(|name| count(write, &format!("/result/{name}")));
        assert!(returned < stable, "{}", brief(write));
        // From outside: the file was made once, and every pass of every path was written.
        let columns = ["direct", "buffered", "dontcache"];
        let written: u64 = columns
            .iter()
            .map(|column| count(cell(&record, &format!("paths/write/{column}")), "/result/bytes"))
            .sum();
        assert_near("bytes seen from outside", counted.write_bytes as f64, (written + 64 * MIB) as f64, 0.02);
    });
}

#[test]
fn each_write_of_a_part_of_a_page_reads_it() {
    if !requires(&NEEDS) || !requires(&[Need::Ext4]) {
        return;
    }
    on_ext4(|directory, disk| {
        let words = ["--size", "16M", "--bytes", "16M", "--bs", "1,512,4096", "--runtime", "250ms"];
        let mut command = rdsk(&[&"align", &directory]);
        command.args(words);
        let record = record_of(command);
        for (name, pages) in
            [("1", 1), ("512", 1), ("4096", 0), ("4096+512", 2), ("4096+1", 2), ("4096+2048", 2)]
        {
            let id = format!("align/write/uncached-dontcache/{name}");
            let own = cell(&record, &id);
            let per_write = |bytes: f64| bytes / figure(own, "/result/ops");
            let charged = per_write(figure(own, "/evidence/process/read_bytes"));
            let of_device = per_write(figure(device(own, disk), "/read_bytes"));
            if pages > 0 {
                assert_near(&id, charged, f64::from(pages * 4096), 0.05);
                assert_near(&id, of_device, f64::from(pages * 4096), 0.05);
                finding_on(&record, "read-modify-write", &id);
            } else {
                assert!(charged < 64.0 && of_device < 200.0, "{}", brief(own));
            }
        }
    });
}

#[test]
fn a_filesystem_in_memory_has_it_not_and_says_so() {
    let directory =
        tempfile::Builder::new().prefix("rdsk-truth-").tempdir_in("/dev/shm").expect("it is writable");
    let file = directory.path().join("data");
    write_file(&file, 4 * MIB);
    let record =
        record_of(rdsk(&[&"paths", &file, &"--rw", &"read", &"--bytes", &"4M", &"--runtime", &"100ms"]));
    assert_eq!(record["targets"][0]["dontcache"], false);
    let own = cell(&record, "paths/read/dontcache");
    assert_eq!(word(own, "/result/stop"), "not_applicable", "{}", brief(own));
    assert_eq!(word(own, "/result/why"), format!("the kernel refuses it on tmpfs (EOPNOTSUPP): {WHY}"));
    assert!(own["verdict"].is_null() && findings(&record, "dontcache-saves").is_empty());
    assert_eq!(word(cell(&record, "paths/read/buffered"), "/verdict/code"), "page-cache");
}

#[test]
fn a_simulated_host_has_it_not_and_the_page_says_so() {
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(["paths", "sim:linux-disk", "--bytes", "8M", "--quiet"]);
    let run = cli::run(command, LONG);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("dontcache: the simulated host has no RWF_DONTCACHE"), "{}", run.stdout);
}
