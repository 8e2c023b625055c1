//! What the bare commands say of the reports' systems: the reports' own figures, within what the reproduction is allowed.
//! Virtual time and a fixed seed make every figure exact.

use crate::support::{cell, figure, iostat_of, rdsk, record_of};
use rdsk_analysis::iostat::waiting_mean;
use serde_json::Value;

/// The Record of a command without options.
fn bare(command: &str, system: &str) -> Value {
    record_of(rdsk(&[&command, &system]))
}

/// Asserts that a figure lies within this share of the report's.
fn close(what: &str, found: f64, report: f64, share: f64) {
    assert!((found / report - 1.0).abs() <= share, "{what}: {found}, and the report has {report}");
}

/// A column of `iostat -x` of the device below a cell.
fn column(record: &Value, id: &str, name: &str) -> f64 {
    iostat_of(&cell(record, id)["evidence"]["device"][0])[name].as_f64().expect("a column of iostat")
}

const BLOCK: &str = "stream/write/buffered";
const RAW: &str = "stream/write/direct";

#[test]
fn paths_of_hp_ux() {
    let record = bare("paths", "sim:hpux-k460");
    for (id, seconds) in [
        ("paths/read/direct", 15.06),
        ("paths/read/buffered", 20.60),
        ("paths/write/direct", 18.40),
        ("paths/write/buffered", 442.58),
    ] {
        let cell = cell(&record, id);
        assert_eq!(figure(cell, "/result/pass_bytes"), 104_857_600.0);
        for visit in cell["result"]["visits"].as_array().unwrap() {
            assert_eq!(figure(visit, "/bytes"), 104_857_600.0, "{id}: a pass was cut short");
            close(id, figure(visit, "/to_close_ns") / 1e9, seconds, 0.05);
        }
    }
}

#[test]
fn stream_of_solaris_on_a_san() {
    let record = bare("stream", "sim:solaris-san");
    let device = serde_json::from_value(cell(&record, BLOCK)["evidence"]["device"][0].clone()).unwrap();
    let waiting = waiting_mean(&device).expect("a simulated host counts what waits");
    let (requests, active) = (column(&record, BLOCK, "w/s"), column(&record, BLOCK, "aqu-sz") - waiting);
    for (what, measured, report) in [
        ("w/s", requests, 13006.1),
        ("MB/s", column(&record, BLOCK, "wkB/s") / 1024.0, 101.6),
        ("request, KB", column(&record, BLOCK, "wareq-sz"), 8.0),
        ("wait", waiting, 133.5),
        ("actv", active, 256.4),
        ("wsvc_t", waiting / requests * 1e3, 10.3),
        ("asvc_t", active / requests * 1e3, 19.7),
        ("%b", column(&record, BLOCK, "%util"), 100.0),
        ("raw w/s", column(&record, RAW, "w/s"), 2805.0),
        ("raw MB/s", column(&record, RAW, "wkB/s") / 1024.0, 43.8),
        ("raw asvc_t", column(&record, RAW, "w_await"), 0.3),
        ("raw %b", column(&record, RAW, "%util"), 87.0),
    ] {
        close(what, measured, report, 0.10);
    }
    assert!(column(&record, RAW, "aqu-sz") <= 1.0);
}

#[test]
fn stream_of_linux() {
    let block = bare("stream", "sim:linux-disk");
    for (name, report) in [
        ("w/s", 115.0),
        ("wkB/s", 57868.0),
        ("wrqm/s", 14098.0),
        ("wareq-sz", 1006.4 / 2.0),
        ("aqu-sz", 140.86),
        ("w_await", 1325.4),
        ("%util", 100.0),
    ] {
        close(name, column(&block, BLOCK, name), report, 0.10);
    }
    // The report's raw row has blocks of 8 KiB.
    let raw = record_of(rdsk(&[&"stream", &"sim:linux-disk", &"--bs", &"8k", &"--bytes", &"256M"]));
    for (name, report) in [
        ("w/s", 3645.0),
        ("wkB/s", 29160.0),
        ("wareq-sz", 8.0),
        ("aqu-sz", 0.63),
        ("w_await", 0.18),
        ("%util", 62.9),
    ] {
        close(name, column(&raw, RAW, name), report, 0.10);
    }
    assert_eq!(column(&raw, RAW, "wrqm/s"), 0.0);
}

#[test]
fn stream_of_zfs() {
    let record = bare("stream", "sim:solaris-zfs");
    let shown = |name| column(&record, BLOCK, name);
    for (what, measured, report) in [
        ("w/s", shown("w/s"), 154.0),
        ("MB/s", shown("wkB/s") / 1024.0, 154.0),
        ("request, KB", shown("wareq-sz"), 1024.0),
        ("actv", shown("aqu-sz"), 10.0),
        ("asvc_t, ms", shown("w_await"), 64.7),
    ] {
        close(what, measured, report, 0.10);
    }
}

#[test]
fn stream_of_a_disk_of_10_000_rpm_with_its_cache_on_and_off() {
    let on = bare("stream", "sim:linux-10k");
    for id in [BLOCK, RAW] {
        close(id, column(&on, id, "wkB/s") / 1024.0, 160.0, 0.10);
    }
    let off = record_of(rdsk(&[&"stream", &"sim:linux-10k-nocache", &"--rw", &"write", &"--bytes", &"64M"]));
    let ratio = column(&off, RAW, "wkB/s") / 1024.0 / 1.3;
    assert!((0.5..=2.0).contains(&ratio), "{ratio}");
}

/// The curve falls from the outer to the inner end, 1 MiB has bands and 5 MiB none, and the disk is never saturated.
#[test]
fn zones_of_a_freebsd_disk() {
    let record: rdsk_model::Record =
        serde_json::from_value(bare("zones", "sim:freebsd-wd800jd")).expect("a Record");
    let analysis = rdsk_analysis::Analysis::of(&record);
    let of_sizes: Vec<_> = record.cells.iter().map(|cell| analysis.zones(cell).expect("it ran")).collect();
    assert_eq!(of_sizes.iter().map(|one| one.block_bytes >> 20).collect::<Vec<_>>(), [1, 5, 10, 20]);
    let bands: Vec<bool> = of_sizes.iter().map(|zones| zones.latency_bands.is_some()).collect();
    assert_eq!(bands, [true, false, false, false]);
    // Three passes in ascending order, each from another start, separate its zones from time.
    assert!(record.findings.iter().any(|finding| finding.code == "speed-by-position"));
    for zones in &of_sizes[1..] {
        let falls = zones.outer_bytes_per_s.unwrap() / zones.inner_bytes_per_s.unwrap();
        assert!((1.7..1.9).contains(&falls), "{falls}");
        assert!(zones.zones.windows(2).all(|pair| pair[1].bytes_per_s < pair[0].bytes_per_s));
    }
    let busy: Vec<f64> = of_sizes.iter().map(|zones| zones.busy_share.unwrap()).collect();
    assert!(busy[0] <= 0.85 && busy.iter().all(|&share| share <= 0.95), "{busy:?}");
    // The report's two samples of 1 MB: 14.5 ms, or a revolution more.
    let fast = of_sizes[0].positions.iter().map(|position| position.median_ns).fold(f64::INFINITY, f64::min);
    assert!(fast < 14.545e6, "{fast}");
}

#[test]
fn scale_of_a_ram_san() {
    let rate = |record: &Value, op: &str, size: &str, streams: u32| {
        // One stream runs on each of the three LUNs by itself.
        let on_first = if streams == 1 { "@0" } else { "" };
        let id = format!("scale/{op}/{size}/{streams}{on_first}");
        figure(cell(record, &id), "/result/bytes_per_s/mean")
    };
    let records = ["", "-2", "-3"].map(|more| bare("scale", &format!("sim:tms-ramsan{more}")));
    let sizes = ["16k", "32k", "64k", "128k", "256k", "512k", "1M", "2M"];
    for record in &records {
        for size in sizes {
            for (streams, allowed) in [(1, 1.27..=1.33), (3, 1.07..=1.41), (9, 1.07..=1.41)] {
                let ahead = rate(record, "write", size, streams) / rate(record, "read", size, streams);
                assert!(allowed.contains(&ahead), "{size}, {streams} streams: {ahead}");
            }
        }
        assert!(rate(record, "read", "256k", 1) > 1.3 * rate(record, "read", "16k", 1));
    }
    for pair in records.windows(2) {
        for (op, size) in [("read", "64k"), ("read", "1M"), ("write", "64k"), ("write", "1M")] {
            assert!(rate(&pair[1], op, size, 9) > 1.05 * rate(&pair[0], op, size, 9), "{op} {size}");
        }
    }
}

#[test]
fn align_of_an_ext3_file() {
    let record = bare("align", "sim:wd2500");
    let columns = ["cached-buffered", "cached-direct", "uncached-buffered", "uncached-direct"];
    for (bytes, row) in [
        (1, [Some(5.887), None, Some(8306.0), None]),
        (27, [Some(6.135), None, Some(8479.0), None]),
        (512, [Some(8.713), Some(2498.0), Some(8742.0), Some(2579.0)]),
        (2048, [Some(9.733), Some(2422.0), Some(8670.0), Some(2721.0)]),
        (4096, [Some(10.350), Some(2514.0), Some(25.039), Some(2560.0)]),
    ] {
        for (column, report) in columns.iter().zip(row) {
            let id = format!("align/write/{column}/{bytes}");
            let cell = cell(&record, &id);
            match report {
                Some(report) => {
                    let allowed = if *column == "cached-buffered" { 0.20 } else { 0.10 };
                    close(&id, figure(cell, "/result/latency_ns/mean") / 1e3, report, allowed);
                }
                None => assert_eq!(cell["result"]["stop"], "not_applicable", "{id}"),
            }
        }
    }
}
