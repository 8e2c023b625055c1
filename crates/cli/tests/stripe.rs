//! Truth: chunk and full stripe. What `rdsk stripe` finds on arrays whose geometry is known: models in virtual time, forty
//! of them from files of their own, and a real loop device over an array that answers in real time.

mod support;

use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::{Agreement, SURE, StripeResult};
use rdsk_disk::{ArrayParams, Device, DeviceParams, RaidLevel, RamParams};
use rdsk_model::Record;
use rdsk_stats::rng::SplitMix64;
use rdsk_testkit::{FuseDisk, Need, requires};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use support::{MIB, identity, rdsk, record_of};

const NEEDS: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const KIB: u64 = 1024;
const ATTEMPTS: usize = 4;

/// A Record's first cell, read; with and without what the members' counters say.
fn read(record: Value) -> (Record, StripeResult, StripeResult) {
    let record: Record = serde_json::from_value(record).expect("rdsk reads its own Records");
    let first = |record: &Record| Analysis::of(record).stripe(&record.cells[0]).cloned();
    let whole = first(&record).expect("its requests were made");
    let mut blind = record.clone();
    blind.cells[0].result.points.iter_mut().for_each(|run| {
        run.members.clear();
        run.chosen.clear();
    });
    let timed = first(&blind).expect("its requests were made");
    (record, whole, timed)
}

fn bytes_of(figure: Option<(u64, f64)>) -> Option<u64> {
    figure.map(|(bytes, _)| bytes)
}

fn codes(record: &Record) -> Vec<&str> {
    record.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn the_arrays_of_the_report_are_counted_and_timed() {
    for (system, members, parity) in [("sim:raid5", 5, 1), ("sim:raid6", 6, 2)] {
        let (record, seen, timed) = read(record_of(rdsk(&[&"stripe", &system])));
        let layout = seen.counted.as_ref().expect("a simulated array shows its members");
        assert_eq!((layout.members, layout.parity_members), (members, Some(parity)), "{system}");
        assert!(layout.is_sure() && layout.evidence.len() >= 2, "{layout:?}");
        for reading in [&seen, &timed] {
            assert_eq!(bytes_of(reading.chunk()), Some(64 * KIB), "{system}");
            assert_eq!(bytes_of(reading.stripe()), Some(256 * KIB), "{system}");
            assert_eq!((reading.parity(), reading.start_offset_bytes()), (Some(true), Some(0)));
        }
        assert!(timed.stripe().is_some_and(|(_, confidence)| (SURE..1.0).contains(&confidence)));
        // Every small write made a member read, as no model of an array without a cache can spare it.
        assert!(layout.writes > 50, "{layout:?}");
        assert_eq!(layout.writes_with_reads, layout.writes, "{system}");
        let chosen: usize =
            record.cells.iter().flat_map(|cell| &cell.result.points).map(|run| run.chosen.len()).sum();
        assert!(chosen <= 700, "{chosen} requests to count by");
        assert!(codes(&record).contains(&"stripe-geometry"));
    }
}

#[test]
fn one_disk_and_flash_have_no_stripe() {
    for system in ["sim:linux-disk-nocache", "sim:wd2500", "sim:ssd-slc", "sim:tms-ramsan"] {
        let (record, seen, _) = read(record_of(rdsk(&[&"stripe", &system])));
        assert_eq!((seen.chunk(), seen.stripe(), seen.counted.is_none()), (None, None, true), "{system}");
        assert!(codes(&record).contains(&"no-stripe-seen"), "{system}: {:?}", codes(&record));
        assert!(!codes(&record).contains(&"stripe-geometry"));
    }
}

#[test]
fn reads_tell_the_chunk_and_are_not_sure_of_the_stripe() {
    let (_, seen, _) = read(record_of(rdsk(&[&"stripe", &"sim:raid5", &"--rw", &"read"])));
    assert_eq!(bytes_of(seen.chunk()), Some(64 * KIB));
    assert!(seen.stripe().is_none_or(|(_, confidence)| confidence < SURE), "{:?}", seen.stripe());
}

/// A number below `bound`.
fn draw(rng: &mut SplitMix64, bound: u64) -> u64 {
    rng.next_u64() % bound
}

/// The system `raid5` with another array in it, and a host that hands on whole what is no larger than `largest_bytes`.
fn system_of(raid: &str, members: u64, chunk_bytes: u64, largest_bytes: u64) -> String {
    let mut text = String::new();
    for line in include_str!("../../disk/systems/raid5.toml").lines() {
        let key = line.split('=').next().unwrap_or_default().trim();
        match key {
            "direct_request_bytes" => writeln!(text, "direct_request_bytes = {largest_bytes}"),
            "level" => writeln!(text, "level = \"{raid}\""),
            "members" => writeln!(text, "members = {members}"),
            "chunk_bytes" => writeln!(text, "chunk_bytes = {chunk_bytes}"),
            _ => writeln!(text, "{line}"),
        }
        .expect("writing to a String");
    }
    text
}

#[test]
fn forty_arrays_of_turning_disks_are_recovered_from_latency_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = SplitMix64::new(4);
    let mut arrays = Vec::new();
    for number in 0..40 {
        let (raid, parity) =
            [("raid0", 0), ("raid5", 1), ("raid6", 2)][usize::try_from(draw(&mut rng, 3)).unwrap()];
        let least = if parity == 2 { 4 } else { 3 };
        let members = least + draw(&mut rng, 13 - least);
        let chunk_bytes = (16 * KIB) << draw(&mut rng, 7);
        let path = directory.path().join(format!("{number}.toml"));
        std::fs::write(&path, system_of(raid, members, chunk_bytes, 32 * MIB)).unwrap();
        arrays.push((format!("sim:{}", path.display()), raid, chunk_bytes, chunk_bytes * (members - parity)));
    }
    let (mut right, mut table) = (0, String::new());
    for (number, (name, raid, chunk_bytes, stripe_bytes)) in arrays.iter().enumerate() {
        let record = record_of(rdsk(&[&"stripe", &name.as_str(), &"--seed", &number.to_string()]));
        let (_, seen, timed) = read(record);
        assert_eq!(bytes_of(seen.chunk()), Some(*chunk_bytes), "counters of {raid} {table}");
        assert_eq!(bytes_of(seen.stripe()), Some(*stripe_bytes), "counters of {raid}");
        let is = |figure: Option<(u64, f64)>, bytes: u64| bytes_of(figure) == Some(bytes);
        let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
            figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
        };
        let is_right = is(timed.chunk(), *chunk_bytes) && is(timed.stripe(), *stripe_bytes);
        right += usize::from(is_right);
        writeln!(
            table,
            "{raid} {} KiB of {} KiB: {:?} {:?} {}",
            stripe_bytes / KIB,
            chunk_bytes / KIB,
            timed.chunk(),
            timed.stripe(),
            if is_right { "" } else { "<<<" }
        )
        .unwrap();
        assert!(!is_surely_not(timed.chunk(), *chunk_bytes), "{table}");
        assert!(!is_surely_not(timed.stripe(), *stripe_bytes), "{table}");
        assert!(timed.chunk().is_some() || timed.answer.none_confidence < SURE, "{table}");
    }
    assert!(right >= 38, "{right} of 40\n{table}");
}

/// Where the host cuts what is as large as a stripe, none is written whole: counters tell it all the same, and latencies
/// alone claim nothing for sure that is not so.
#[test]
fn stripes_larger_than_the_requests_are_counted_and_not_guessed() {
    let directory = tempfile::tempdir().unwrap();
    for (raid, members, parity) in [("raid5", 5, 1), ("raid6", 8, 2), ("raid0", 4, 0), ("raid5", 3, 1)] {
        for chunk_bytes in [256 * KIB, 512 * KIB, MIB] {
            let path = directory.path().join(format!("{raid}-{members}-{chunk_bytes}.toml"));
            std::fs::write(&path, system_of(raid, members, chunk_bytes, MIB)).unwrap();
            let name = format!("sim:{}", path.display());
            let (_, seen, timed) = read(record_of(rdsk(&[&"stripe", &name])));
            let stripe_bytes = chunk_bytes * (members - parity);
            let what = format!("{raid} of {members} × {} KiB", chunk_bytes / KIB);
            assert_eq!(bytes_of(seen.chunk()), Some(chunk_bytes), "{what}");
            assert_eq!(bytes_of(seen.stripe()), Some(stripe_bytes), "{what}");
            assert_eq!(seen.parity(), Some(parity > 0), "{what}");
            let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
                figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
            };
            assert!(!is_surely_not(timed.chunk(), chunk_bytes), "{what}: {:?}", timed.chunk());
            assert!(!is_surely_not(timed.stripe(), stripe_bytes), "{what}: {:?}", timed.stripe());
        }
    }
}

/// Requests begin at a multiple of every chunk, whatever the offset, and advice counts from the begin of the target.
#[test]
fn an_offset_does_not_move_the_stripes() {
    for offset in ["4k", "64k", "12345", "1M", "10G"] {
        let (_, seen, timed) = read(record_of(rdsk(&[&"stripe", &"sim:raid5", &"--offset", &offset])));
        for reading in [&seen, &timed] {
            assert_eq!(bytes_of(reading.stripe()), Some(256 * KIB), "{offset}");
            assert_eq!(reading.start_offset_bytes(), Some(0), "{offset}");
            assert!(reading.advice().starts_with("write multiples of 256 KiB at multiples of 256 KiB"));
        }
    }
}

/// Counters tell what no latency does: chunks that are no power of two, chunks far larger than the requests, and copies.
#[test]
fn unusual_arrays_are_counted_and_not_guessed() {
    let directory = tempfile::tempdir().unwrap();
    for (raid, members, chunk_bytes, largest_bytes, stripe_bytes) in [
        ("raid0", 24, 4 * MIB, 512 * KIB, Some(96 * MIB)),
        ("raid6", 6, 192 * KIB, MIB, Some(768 * KIB)),
        ("raid5", 24, 36 * KIB, MIB, Some(828 * KIB)),
        ("raid5", 9, 128 * KIB, 64 * KIB, Some(MIB)),
        ("raid1", 3, 8 * KIB, MIB, None),
    ] {
        let path = directory.path().join(format!("{raid}-{members}-{chunk_bytes}.toml"));
        std::fs::write(&path, system_of(raid, members, chunk_bytes, largest_bytes)).unwrap();
        let name = format!("sim:{}", path.display());
        let (record, seen, timed) = read(record_of(rdsk(&[&"stripe", &name])));
        let what = format!("{raid} of {members} × {} KiB", chunk_bytes / KIB);
        assert_eq!(bytes_of(seen.chunk()), stripe_bytes.map(|_| chunk_bytes), "{what}");
        assert_eq!(bytes_of(seen.stripe()), stripe_bytes, "{what}");
        let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
            figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
        };
        assert!(!is_surely_not(timed.chunk(), chunk_bytes), "{what}: {:?}", timed.chunk());
        assert!(!is_surely_not(timed.stripe(), stripe_bytes.unwrap_or(0)), "{what}: {:?}", timed.stripe());
        if stripe_bytes.is_none() {
            assert!(codes(&record).contains(&"no-stripe-seen"), "{:?}", codes(&record));
        }
    }
}

/// A full stripe of eleven chunks: no power of two, so that an offset lies somewhere in the middle of one.
#[test]
fn stripes_begin_with_the_target_and_not_with_the_offset() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("eleven.toml");
    std::fs::write(&path, system_of("raid5", 12, 64 * KIB, 32 * MIB)).unwrap();
    let name = format!("sim:{}", path.display());
    for offset in ["0", "4M", "100M"] {
        let (_, seen, timed) = read(record_of(rdsk(&[&"stripe", &name.as_str(), &"--offset", &offset])));
        assert_eq!(bytes_of(seen.stripe()), Some(704 * KIB), "{offset}");
        // Behind the offset no request happens to be a whole one; then the place is not known.
        assert!(seen.start_offset_bytes().is_none_or(|start| start == 0), "{offset}");
        if timed.stripe().is_some_and(|(bytes, confidence)| bytes == 704 * KIB && confidence >= SURE) {
            assert!(timed.start_offset_bytes().is_none_or(|start| start == 0), "{offset}: {timed:?}");
        }
    }
}

/// RAID 5 of four members of 2 ms each, chunk 32 KiB.
fn slow_array() -> ArrayParams {
    let member = RamParams {
        capacity_bytes: 64 * MIB,
        read_command_ns: 2_000_000,
        write_command_ns: 2_000_000,
        read_bytes_per_s: 50e6,
        write_bytes_per_s: 50e6,
        servers: 1,
        write_buffer_bytes: 0,
    };
    ArrayParams {
        level: RaidLevel::Raid5,
        members: 4,
        chunk_bytes: 32 * KIB,
        command_ns: 10_000,
        interface_bytes_per_s: 2e9,
        write_back_bytes: 0,
        gather_ns: 0,
        besides: None,
        member: Box::new(DeviceParams::Ram(member)),
    }
}

/// A real block device: the loop device of a disk whose requests are answered as late as the array would.
#[test]
fn an_array_behind_a_real_device_is_recovered_from_latency_alone() {
    if !requires(&NEEDS) {
        return;
    }
    let model = Device::new(&DeviceParams::Array(slow_array()), 1);
    let disk = FuseDisk::builder().device(model).mount().expect("requires() found FUSE");
    let device = disk.loop_device().expect("requires() found loop devices");
    let identity = identity(&device);
    // Other programs on the machine make single requests late; nothing wrong may be said for sure in any attempt.
    let recovered = (0..ATTEMPTS).any(|_| {
        let (record, seen, _) = read(record_of(rdsk(&[
            &"stripe",
            &device.path(),
            &"--rw",
            &"write",
            &"--destroy",
            &identity,
            &"--points",
            &"800",
        ])));
        eprintln!("{:?} {:?} {:?}", seen.chunk(), seen.stripe(), seen.answer.evidence);
        assert!(seen.counted.is_none(), "a loop device shows no members");
        let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
            figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
        };
        assert!(!is_surely_not(seen.chunk(), 32 * KIB) && !is_surely_not(seen.stripe(), 96 * KIB));
        // A loop device gives no hint of it.
        let hints = seen.hints.as_ref().map(|(agreement, _)| *agreement);
        bytes_of(seen.chunk()) == Some(32 * KIB)
            && seen.stripe().is_some_and(|(bytes, confidence)| bytes == 96 * KIB && confidence >= SURE)
            && seen.parity() == Some(true)
            && hints == Some(Agreement::NotHinted)
            && codes(&record).contains(&"stripe-geometry")
    });
    assert!(recovered, "in none of {ATTEMPTS} attempts");
}

#[test]
fn what_is_not_to_be_written_is_only_read() {
    let file = tempfile::NamedTempFile::new_in(Path::new(".")).unwrap();
    let content: Vec<u8> = (0..8 * MIB).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect();
    std::fs::write(file.path(), &content).unwrap();
    let (record, _, _) = read(record_of(rdsk(&[&"stripe", &file.path(), &"--points", &"300"])));
    assert_eq!(record.cells.len(), 1);
    assert_eq!(record.cells[0].id, "stripe/read");
    assert!(std::fs::read(file.path()).unwrap() == content, "the file was changed");
}
