//! Truth: the path `dontcache` in the Record and on the page, where the kernel has it and where it has not.

use crate::support::{
    Counted, LONG, MIB, brief, cell, count, device, figure, finding_on, findings, near, on_ext4, on_xfs,
    rdsk, record_of, word, write_file,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{LoopDevice, Need, cli, requires};
use serde_json::Value;
use std::path::Path;

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
fn little_stays_and_everything_reaches_the_device() {
    if !requires(&NEEDS) || !requires(&[Need::Xfs]) {
        return;
    }
    on_xfs(|directory, disk| {
        // What others do shows in a flush or in metadata read again, so one of a few runs must be without.
        first_right(10, || {
            let before = Counted::now(disk);
            let record = paths_of(directory);
            let counted = Counted::now(disk).since(before);
            assert_eq!(record["targets"][0]["dontcache"], true);
            for op in ["read", "write"] {
                leaves_little(&record, disk, op)?;
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
            near("bytes seen from outside", counted.write_bytes as f64, (written + 64 * MIB) as f64, 0.02)
        });
    });
}

/// Whether the path's pages are dropped, its bytes were the device's, and a finding says so. A busy machine keeps pages that a quiet one
/// drops: 11 of 101 MiB of a read beside a load of 20, 1 to 10 % in each of ten runs beside four busy programs. That none stays is for
/// the campaign `timing`.
fn leaves_little(record: &Value, disk: &LoopDevice, op: &str) -> Result<(), String> {
    let id = format!("paths/{op}/dontcache");
    let own = cell(record, &id);
    let (cached, bytes) = left(own);
    let (of_buffered, its_bytes) = left(cell(record, &format!("paths/{op}/buffered")));
    let shares = [(cached, bytes), (of_buffered, its_bytes)].map(|(part, whole)| part as f64 / whole as f64);
    ensure(shares[0] < shares[1] / 2.0, || format!("{shares:?} stay cached: {}", brief(own)))?;
    let of_device = figure(device(own, disk), &format!("/{op}_bytes"));
    if op == "write" {
        near(&id, of_device, bytes as f64, 0.02)?;
    } else {
        // What is dropped before all of it was read is fetched again.
        ensure(of_device >= bytes as f64, || format!("{of_device} of {bytes}: {}", brief(own)))?;
    }
    ensure(count(own, "/evidence/page_cache/before/cached_bytes") == 0, || brief(own))?;
    // Every cell of the direction moved whole passes of the same bytes.
    for column in ["direct", "buffered"] {
        let other = cell(record, &format!("paths/{op}/{column}"));
        assert_eq!(other["workload"]["span_bytes"], own["workload"]["span_bytes"]);
    }
    let is_told = |finding: &&Value| {
        let ids = finding["cells"].as_array().expect("a finding names cells");
        let cited = finding["evidence"].as_array().expect("a finding cites");
        ids.iter().any(|listed| listed == id.as_str())
            && cited.iter().all(|line| line.as_str().is_some_and(|line| line.contains("cached afterwards")))
    };
    let matching = findings(record, "dontcache-saves");
    ensure(matching.iter().any(is_told), || format!("nothing on {id}: {}", record["findings"]))
}

#[test]
fn each_write_of_a_part_of_a_page_reads_it() {
    if !requires(&NEEDS) || !requires(&[Need::Ext4]) {
        return;
    }
    on_ext4(|directory, disk| {
        let words = ["--size", "16M", "--bytes", "16M", "--bs", "1,512,4096", "--runtime", "250ms"];
        // Another program may make the kernel forget the filesystem's metadata, which is read again, and shows beside few writes.
        first_right(10, || {
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
                    near(&id, charged, f64::from(pages * 4096), 0.05)?;
                    near(&id, of_device, f64::from(pages * 4096), 0.05)?;
                    finding_on(&record, "read-modify-write", &id);
                } else {
                    ensure(charged < 64.0 && of_device < 200.0, || brief(own))?;
                }
            }
            Ok(())
        });
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
