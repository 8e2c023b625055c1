//! `rdsk scale` through the real binary: the report's statements on the simulated store, totals of throttled loop devices,
//! starts, failing streams and the shapes that options give.

use crate::support::{
    LONG, MIB, assert_near, assert_overlap_from_the_last_start, brief, cell, count, device, figure,
    finding_on, findings, loop_device, rdsk, record_of, scale_rate, staggered_streams, streams, verdict,
    word,
};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{Behaviour, BlkioThrottle, FuseDisk, Limits, Need, cli, requires};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write as _;
use std::ops::Range;

const FUSE: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const SYSTEMS: [&str; 3] = ["sim:tms-ramsan", "sim:tms-ramsan-2", "sim:tms-ramsan-3"];
const SIZES: [&str; 8] = ["16k", "32k", "64k", "128k", "256k", "512k", "1M", "2M"];
const MS: u64 = 1_000_000;
/// How often something is tried that others can disturb, or a machine that stands still.
const ATTEMPTS: usize = 5;

fn scale(words: &[&dyn AsRef<OsStr>]) -> Value {
    record_of(rdsk(&[&[&"scale" as &dyn AsRef<OsStr>], words].concat()))
}

/// The words of a Record's findings and notes.
fn notes(record: &Value) -> String {
    record["notes"].to_string()
}

#[test]
fn the_reports_statements_hold_on_its_store() {
    let records = SYSTEMS.map(|name| scale(&[&name]));
    for (name, record) in SYSTEMS.iter().zip(&records) {
        for size in SIZES {
            for (streams, range) in [(1, 1.27..1.33), (3, 1.07..1.41), (9, 1.07..1.41)] {
                let ahead =
                    scale_rate(record, "write", size, streams) / scale_rate(record, "read", size, streams);
                assert!(range.contains(&ahead), "{name} {size} × {streams}: writes are {ahead:.3}x reads");
            }
        }
        for op in ["read", "write"] {
            // The block size matters, for one as for many.
            for streams in [1, 3, 9] {
                let (small, large) =
                    (scale_rate(record, op, "16k", streams), scale_rate(record, op, "256k", streams));
                assert!(large > small * 1.3, "{name} {op} × {streams}: {small} with 16k, {large} with 256k");
            }
            for pair in SIZES.windows(2).take(4) {
                let (small, large) = (scale_rate(record, op, pair[0], 1), scale_rate(record, op, pair[1], 1));
                assert!(large > small, "{name} {op}: {} {small}, {} {large}", pair[0], pair[1]);
            }
        }
    }
    for op in ["read", "write"] {
        for size in SIZES {
            for streams in [3, 9] {
                let [one, two, three] = [0, 1, 2].map(|index| scale_rate(&records[index], op, size, streams));
                assert!(
                    two > one * 1.05 && three > two * 1.05,
                    "{op} {size} × {streams}: {one:.0}, {two:.0} and {three:.0} B/s with 1, 2 and 3 controllers"
                );
            }
        }
    }
    // One controller for all three LUNs is what they share; with one each they share nothing.
    let shares = |record: &Value| {
        let knees = findings(record, "scale-knee");
        knees
            .iter()
            .any(|finding| finding["title"].as_str().is_some_and(|title| title.contains("share a path")))
    };
    assert!(shares(&records[0]), "{}", records[0]["findings"]);
    assert!(!shares(&records[2]), "{}", records[2]["findings"]);
    // Three LUNs on two controllers: the one that is alone on its own gets twice as much.
    let unfair = finding_on(&records[1], "unfair-streams", "scale/read/256k/9");
    assert!(unfair["evidence"].to_string().contains("Jain"), "{unfair}");
}

/// The link carries 94 MB/s, a command costs 80 µs and its data are fetched at 332 MB/s first: pieces of 256 KiB, one after
/// the other, so this is the most that one port gives, whichever asks.
#[test]
fn streams_on_one_lun_do_not_exceed_its_server() {
    let record = scale(&[
        &"sim:tms-ramsan/0", &"--rw", &"read", &"--bs", &"1M", &"--streams", &"1,2,4", &"--stagger", &"0s",
    ]);
    let piece = f64::from(256 << 10);
    let most = piece / (80e-6 + piece / 94e6 + piece / 332e6);
    for streams in [1, 2, 4] {
        let rate = scale_rate(&record, "read", "1M", streams);
        assert!(rate <= most && rate > most * 0.95, "{streams} streams: {rate} of {most}");
    }
    let knee = finding_on(&record, "scale-knee", "scale/read/1M/1");
    assert!(knee["text"].as_str().is_some_and(|text| text.contains("sim:tms-ramsan/0 was busy")), "{knee}");
}

/// Streams that are done before the next begins have no rate together, and none is made up of the time between them.
#[test]
fn streams_that_never_meet_have_no_rate_together() {
    let record = scale(&[
        &"sim:tms-ramsan", &"--rw", &"read", &"--bs", &"64k", &"--bytes", &"4M", &"--streams", &"1,3",
    ]);
    let cell = cell(&record, "scale/read/64k/3");
    assert_eq!(cell["result"]["bytes_per_s"], Value::Null, "{cell}");
    assert!(word(cell, "/result/why").contains("never all ran at once"), "{cell}");
    let visits = cell["result"]["visits"].as_array().expect("a cell lists its visits").len() as u64;
    assert_eq!(count(cell, "/result/bytes"), visits * 3 * 4 * MIB);
    assert!(scale_rate(&record, "read", "64k", 1) > 0.0);
}

/// In virtual time starts are exact, and the ramp, in which fewer streams run, is not in the rate.
#[test]
fn the_ramp_is_not_in_the_rate() {
    let record = scale(&[
        &"sim:tms-ramsan-3", &"--rw", &"read", &"--bs", &"256k", &"--streams", &"1,3", &"--stagger", &"2s",
        &"--runtime", &"3s",
    ]);
    let three = cell(&record, "scale/read/256k/3");
    for (index, stream) in streams(three).iter().enumerate() {
        assert_eq!(count(stream, "/start_ns"), index as u64 * 2_000 * MS);
        assert_eq!(count(stream, "/target"), index as u64, "dealt round the targets");
    }
    // What a stream's rate is over: its times in the visits, without what the other streams of a visit went on for.
    let visits = three["result"]["visits"].as_array().expect("a cell lists its visits");
    let sums = three["result"]["streams"].as_array().expect("a result lists its streams");
    for (index, stream) in sums.iter().enumerate() {
        let its = visits.iter().map(|visit| &visit["streams"][index]);
        let active_ns: u64 = its.map(|part| count(part, "/end_ns") - count(part, "/start_ns")).sum();
        assert_eq!(count(stream, "/active_ns"), active_ns);
    }
    let overlap = &three["result"]["visits"][0]["overlap"];
    assert_eq!(count(overlap, "/start_ns"), 4_000 * MS);
    let (rate_of_three, single) =
        (scale_rate(&record, "read", "256k", 3), scale_rate(&record, "read", "256k", 1));
    assert_near("three targets of their own", rate_of_three, 3.0 * single, 0.02);
    let with_ramp = figure(three, "/result/bytes") * 1e9 / figure(three, "/result/elapsed_ns");
    assert!(with_ramp < rate_of_three * 0.9, "{with_ramp} over all the time, {rate_of_three} while all ran");
}

#[test]
fn a_stream_that_fails_ends_alone() {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().expect("there is room");
    // Of four streams dealt round three LUNs the last has the second half of the first LUN, from 4 GiB on.
    let text = "extends = \"tms-ramsan\"\n[[luns]]\n[luns.faults]\nerrors = [{ offset_bytes = 4299161600, bytes = 4096 }]\n";
    file.write_all(text.as_bytes()).expect("there is room");
    let name = format!("sim:{}", file.path().display());
    let words: [&dyn AsRef<OsStr>; 10] =
        [&"scale", &name, &"--rw", &"read", &"--bs", &"256k", &"--streams", &"4", &"--stagger", &"0s"];
    let run = cli::run(rdsk(&[&words[..], &[&"--runtime", &"4s", &"--precision", &"0.01%"]].concat()), LONG);
    failed_alone(&run, "scale/read/256k/4", 3, &(4_299_161_600..4_299_165_696)).unwrap();
}

/// The same on a real device: a FUSE disk that answers a part of its range with EIO.
#[test]
fn a_stream_that_fails_on_a_real_device_ends_alone() {
    if !requires(&FUSE) {
        return;
    }
    // Of three streams on 48 MiB the last has the part from 32 MiB on.
    let bad = 40 * MIB..40 * MIB + 4096;
    let behaviour = Behaviour { errors: vec![bad.clone()], ..Behaviour::single(500_000) };
    let disk =
        FuseDisk::builder().capacity(48 * MIB).device(behaviour).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let words: [&dyn AsRef<OsStr>; 10] = [
        &"scale",
        &device.path(),
        &"--rw",
        &"read",
        &"--bs",
        &"64k",
        &"--streams",
        &"3",
        &"--stagger",
        &"0s",
    ];
    let run =
        || cli::run(rdsk(&[&words[..], &[&"--runtime", &"20s", &"--precision", &"0.01%"]].concat()), LONG);
    // The bad bytes are a fifth of a second away; a machine that stood still for most of a visit of 2 s shows nothing of the
    // others.
    first_right(ATTEMPTS, || {
        let run = run();
        ensure(run.status_code != Some(0), || "it never met the bad bytes".to_owned())?;
        failed_alone(&run, "scale/read/64k/3", 2, &bad)
    });
}

/// Whether one stream failed at its bad bytes, and the others went on without it; on a busy machine they may be too late for that.
fn failed_alone(run: &cli::Run, id: &str, failed: u64, bad: &Range<u64>) -> Result<(), String> {
    assert_eq!(run.status_code, Some(4), "{}", run.stderr);
    let record = cli::json(run);
    assert_eq!(record["status"], "failed");
    let cell = cell(&record, id);
    let errors = cell["result"]["errors"].as_array().expect("a result lists errors");
    assert_eq!(errors.len(), 1, "{}", brief(cell));
    assert_eq!((count(&errors[0], "/stream"), count(&errors[0], "/errno")), (failed, 5));
    let (offset, block) = (count(&errors[0], "/offset_bytes"), count(cell, "/workload/block_bytes"));
    assert!(offset < bad.end && offset + block > bad.start, "{offset} does not touch {bad:?}");
    let parts = streams(cell);
    let end = |stream: &Value| count(stream, "/end_ns");
    let failed_end = end(&parts[usize::try_from(failed).expect("a few streams")]);
    let overlap = &cell["result"]["visits"][0]["overlap"];
    for stream in parts.iter().filter(|stream| count(stream, "/index") != failed) {
        ensure(end(stream) > failed_end + 100 * MS && count(stream, "/bytes") > 0, || {
            format!("{stream} ended with the one that failed at {failed_end}")
        })?;
    }
    // What the failed one did is no part of what the others did together.
    same("start together", &overlap["start_ns"].as_u64(), &Some(failed_end))?;
    let mean = cell["result"]["bytes_per_s"]["mean"].as_f64();
    ensure(mean.is_some_and(|mean| mean > 0.0), || brief(cell))
}

#[test]
fn bytes_are_those_of_each_stream() {
    let record = scale(&[
        &"sim:tms-ramsan-2", &"--rw", &"write", &"--bs", &"64k", &"--streams", &"1,3,10", &"--bytes", &"32M",
        &"--stagger", &"100ms",
    ]);
    for streams_asked in [1_u64, 3, 10] {
        // One stream runs on each LUN by itself.
        let on_first = if streams_asked == 1 { "@0" } else { "" };
        let one = cell(&record, &format!("scale/write/64k/{streams_asked}{on_first}"));
        assert_eq!(count(one, "/workload/streams"), streams_asked);
        let visits = one["result"]["visits"].as_array().expect("a result lists visits");
        assert_eq!(count(one, "/result/bytes"), visits.len() as u64 * streams_asked * 32 * MIB);
        for stream in visits.iter().flat_map(|visit| visit["streams"].as_array().expect("a list")) {
            assert_eq!(count(stream, "/bytes"), 32 * MIB, "{stream}");
        }
    }
}

#[test]
fn the_grid_is_shortened_by_rule_and_says_so() {
    let short = scale(&[&"sim:tms-ramsan", &"--rw", &"read", &"--runtime", &"2s", &"--budget", &"30s"]);
    assert!(notes(&short).contains("scale was shortened to fit the budget"), "{}", notes(&short));
    let cells = short["cells"].as_array().expect("a Record has cells");
    assert!(cells.len() >= 6 && cells.len() < 24, "{} cells", cells.len());
    cell(&short, "scale/read/16k/9");
    assert!(figure(&short, "/elapsed_ns") < 60e9, "{}", short["elapsed_ns"]);
    // What was asked for stays.
    let asked: [&dyn AsRef<OsStr>; 8] =
        [&"sim:tms-ramsan", &"--rw", &"read", &"--bs", &"64k", &"--streams", &"1,3", &"--stagger"];
    let kept = scale(&[&asked[..], &[&"1s", &"--runtime", &"2s", &"--budget", &"60s"]].concat());
    assert!(!notes(&kept).contains("shortened"), "{}", notes(&kept));
    // One stream on each of three LUNs, and three on all.
    assert_eq!(kept["cells"].as_array().map(Vec::len), Some(4));
    assert_eq!(count(cell(&kept, "scale/read/64k/3"), "/workload/stagger_ns"), 1_000 * MS);
}

/// The log of a real disk says where the streams were.
#[test]
fn ranges_are_disjoint_unless_shared() {
    if !requires(&FUSE) {
        return;
    }
    let disk = FuseDisk::builder().capacity(16 * MIB).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    for (shared, firsts, seconds) in [(false, 1, 1), (true, 2, 0)] {
        let path = device.path();
        let mut words: Vec<&dyn AsRef<OsStr>> = vec![&"scale", &path, &"--rw", &"read", &"--bs", &"256k"];
        words.extend::<[&dyn AsRef<OsStr>; 6]>([&"--streams", &"2", &"--bytes", &"8M", &"--stagger", &"0s"]);
        if shared {
            words.push(&"--shared-range");
        }
        // Who looks at the device may read ahead as much as half a block.
        first_right(ATTEMPTS, || {
            disk.clear_log();
            let record = record_of(rdsk(&words));
            let cell = cell(&record, "scale/read/256k/2");
            assert_eq!(word(cell, "/workload/range"), if shared { "shared" } else { "disjoint" });
            let passes = cell["result"]["visits"].as_array().map_or(0, Vec::len) as u64;
            let log = disk.log();
            // Blocks of 256 KiB are what no other program reads.
            let read = |half: Range<u64>| -> u64 {
                let ours =
                    log.iter().filter(|cell| half.contains(&cell.offset_bytes) && cell.bytes >= 128 << 10);
                ours.map(|cell| cell.bytes).sum()
            };
            let halves = [read(0..8 * MIB), read(8 * MIB..16 * MIB)];
            let expected = [firsts, seconds].map(|times| times * passes * 8 * MIB);
            same(&format!("bytes of each half, shared: {shared}"), &halves, &expected)
        });
    }
}

/// They run together from the last one's start, whenever that was. A stream whose first read came too late for the run has no
/// part in it, and where that leaves one alone, none ran together. When each starts is in `timing/scale.rs` and, in virtual
/// time, in the engine's `sim.rs`.
#[test]
fn streams_run_together_from_the_last_start() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let disk = loop_device();
    for stagger in ["200ms", "0s"] {
        let run_together = |_| {
            let record = record_of(staggered_streams(&disk, stagger));
            let cell = cell(&record, "scale/read/64k/4");
            assert_eq!(streams(cell).len(), 4, "{}", brief(cell));
            assert_overlap_from_the_last_start(cell) >= 2
        };
        assert!((0..10).any(run_together), "{stagger}: one stream alone in each of ten runs");
    }
}

/// Bytes that a limit lets through in a cell: what it allows for the time, and a quarter of a second more for each visit,
/// since the kernel lets through at once what it allows for a tenth.
fn allowed_bytes(cell: &Value, bytes_per_s: u64) -> u64 {
    let visits = cell["result"]["visits"].as_array().map_or(0, Vec::len);
    let seconds = figure(cell, "/result/elapsed_ns") / 1e9 + 0.25 * visits as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some megabytes")]
    let bytes = (bytes_per_s as f64 * seconds) as u64;
    bytes
}

/// Bytes that the streams on a target moved.
fn bytes_of_target(cell: &Value, index: usize) -> u64 {
    let parts = cell["result"]["streams"].as_array().expect("a list").iter();
    let its = parts.filter(|stream| count(stream, "/target") == index as u64);
    its.map(|stream| count(stream, "/bytes")).sum()
}

#[test]
fn totals_of_throttled_devices_are_those_of_the_kernel() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle]) {
        return;
    }
    let disks = [loop_device(), loop_device()];
    let limits = [12 * MIB, 4 * MIB];
    let read_bps = |rate| Limits { read_bps: Some(rate), ..Limits::default() };
    let throttle =
        BlkioThrottle::new(disks[0].major_minor(), read_bps(limits[0])).expect("it was looked for");
    throttle.also(disks[1].major_minor(), read_bps(limits[1])).expect("the group is ours");
    let words: [&dyn AsRef<OsStr>; 9] =
        [&"scale", &disks[0].path(), &disks[1].path(), &"--rw", &"read", &"--bs", &"16k", &"--streams", &"2"];
    let more: [&dyn AsRef<OsStr>; 6] = [&"--stagger", &"0s", &"--runtime", &"2s", &"--precision", &"0.01%"];
    // Who looks at a device meanwhile reads it.
    let record = first_right(ATTEMPTS, || {
        let record = record_of(throttle.command(rdsk(&[&words[..], &more[..]].concat())));
        let two = cell(&record, "scale/read/16k/2");
        for (index, disk) in disks.iter().enumerate() {
            let own = bytes_of_target(two, index);
            ensure(own > 0, || brief(two))?;
            same("bytes of the device", &count(device(two, disk), "/read_bytes"), &own)?;
        }
        // A machine too busy to reach the limit measures its disk, whose backing file was never written.
        ensure(["throttled", "hole", "device"].contains(&verdict(two)), || brief(two))?;
        Ok(record)
    });
    let two = cell(&record, "scale/read/16k/2");
    for (index, limit) in limits.into_iter().enumerate() {
        let total = bytes_of_target(two, index);
        assert!(total <= allowed_bytes(two, limit), "{total} of {limit} per second: {}", brief(two));
    }
    let listed = two["evidence"]["limits"].as_array().expect("evidence lists limits");
    assert_eq!(listed.len(), 2, "{listed:?}");
}
