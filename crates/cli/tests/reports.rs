//! What bare commands say of the reports' systems, where docs/reports does not have it: a task checks each row of those pages in
//! each run of the suite. Virtual time and a fixed seed make every figure exact.

use crate::support::{cell, figure, iostat_of, rdsk, record_of};
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
