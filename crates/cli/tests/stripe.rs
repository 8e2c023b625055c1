//! Truth: chunk and full stripe. What `rdsk stripe` finds on arrays whose geometry is known: models in virtual time, forty
//! of them from files of their own, and a real loop device over an array that answers in real time.

use crate::support::array::{KIB, NEEDS, bytes_of, codes, is_surely_not, read, slow_disk};
use crate::support::{MIB, identity, rdsk, record_of};
use rdsk_analysis::stripe::{Agreement, SURE};
use rdsk_model::Op;
use rdsk_stats::rng::SplitMix64;
use rdsk_testkit::requires;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn the_arrays_of_the_report_are_recovered_from_latency() {
    for system in ["sim:raid5", "sim:raid6"] {
        let (record, stripe) = read(record_of(rdsk(&[&"stripe", &system])));
        assert!(stripe.described.is_none(), "no kernel describes a simulated array");
        assert_eq!(bytes_of(stripe.chunk()), Some(64 * KIB), "{system}");
        assert_eq!(bytes_of(stripe.stripe()), Some(256 * KIB), "{system}");
        assert_eq!((stripe.parity, stripe.start_offset_bytes), (Some(true), Some(0)));
        assert!(stripe.stripe().is_some_and(|(_, confidence)| (SURE..1.0).contains(&confidence)));
        assert_eq!(record.cells.len(), 1, "{system}");
        assert!(codes(&record).contains(&"stripe-geometry"));
    }
}

#[test]
fn one_disk_and_flash_have_no_stripe() {
    for system in ["sim:linux-disk-nocache", "sim:wd2500", "sim:ssd-slc", "sim:tms-ramsan"] {
        let (record, stripe) = read(record_of(rdsk(&[&"stripe", &system])));
        assert_eq!((stripe.chunk(), stripe.stripe()), (None, None), "{system}");
        assert!(codes(&record).contains(&"no-stripe-seen"), "{system}: {:?}", codes(&record));
        assert!(!codes(&record).contains(&"stripe-geometry"));
    }
}

#[test]
fn reads_tell_the_chunk_and_are_not_sure_of_the_stripe() {
    let (_, stripe) = read(record_of(rdsk(&[&"stripe", &"sim:raid5", &"--rw", &"read"])));
    assert_eq!(bytes_of(stripe.chunk()), Some(64 * KIB));
    assert!(stripe.stripe().is_none_or(|(_, confidence)| confidence < SURE), "{:?}", stripe.stripe());
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
        let (_, timed) = read(record);
        let is = |figure: Option<(u64, f64)>, bytes: u64| bytes_of(figure) == Some(bytes);
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
        assert!(timed.chunk().is_some() || timed.none_confidence < SURE, "{table}");
    }
    assert!(right >= 38, "{right} of 40\n{table}");
}

/// Where the host cuts what is as large as a stripe, none is written whole: latencies claim nothing for sure that is not so.
#[test]
fn stripes_larger_than_the_requests_are_not_guessed() {
    let directory = tempfile::tempdir().unwrap();
    for (raid, members, parity) in [("raid5", 5, 1), ("raid6", 8, 2), ("raid0", 4, 0), ("raid5", 3, 1)] {
        for chunk_bytes in [256 * KIB, 512 * KIB, MIB] {
            let path = directory.path().join(format!("{raid}-{members}-{chunk_bytes}.toml"));
            std::fs::write(&path, system_of(raid, members, chunk_bytes, MIB)).unwrap();
            let name = format!("sim:{}", path.display());
            let (_, timed) = read(record_of(rdsk(&[&"stripe", &name])));
            let stripe_bytes = chunk_bytes * (members - parity);
            let what = format!("{raid} of {members} × {} KiB", chunk_bytes / KIB);
            assert!(!is_surely_not(timed.chunk(), chunk_bytes), "{what}: {:?}", timed.chunk());
            assert!(!is_surely_not(timed.stripe(), stripe_bytes), "{what}: {:?}", timed.stripe());
        }
    }
}

/// Requests begin at a multiple of every chunk, whatever the offset, and advice counts from the begin of the target.
#[test]
fn an_offset_does_not_move_the_stripes() {
    for offset in ["4k", "64k", "12345", "1M", "10G"] {
        let (_, stripe) = read(record_of(rdsk(&[&"stripe", &"sim:raid5", &"--offset", &offset])));
        assert_eq!(bytes_of(stripe.stripe()), Some(256 * KIB), "{offset}");
        assert_eq!(stripe.start_offset_bytes, Some(0), "{offset}");
        assert!(stripe.advice.starts_with("write multiples of 256 KiB at multiples of 256 KiB"));
    }
}

/// Chunks that are no power of two, chunks far larger than the requests, and copies: latencies may say nothing, and nothing wrong for sure.
#[test]
fn unusual_arrays_are_not_guessed() {
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
        let (_, timed) = read(record_of(rdsk(&[&"stripe", &name])));
        let what = format!("{raid} of {members} × {} KiB", chunk_bytes / KIB);
        assert!(!is_surely_not(timed.chunk(), chunk_bytes), "{what}: {:?}", timed.chunk());
        assert!(!is_surely_not(timed.stripe(), stripe_bytes.unwrap_or(0)), "{what}: {:?}", timed.stripe());
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
        let (_, timed) = read(record_of(rdsk(&[&"stripe", &name.as_str(), &"--offset", &offset])));
        if timed.stripe().is_some_and(|(bytes, confidence)| bytes == 704 * KIB && confidence >= SURE) {
            assert!(timed.start_offset_bytes.is_none_or(|start| start == 0), "{offset}: {timed:?}");
        }
    }
}

/// A real block device: the loop device of a disk whose requests are answered as late as the array would. What a busy machine
/// cannot change: what is described and hinted, and that all requests reach the disk. Whether the latencies show the array is in
/// timing/stripe.rs.
#[test]
fn a_real_device_without_words_is_measured_by_latency_alone() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = slow_disk();
    let device = disk.loop_device().expect("requires() found loop devices");
    let identity = identity(&device);
    let words: [&dyn AsRef<OsStr>; 8] =
        [&"stripe", &device.path(), &"--rw", &"write", &"--destroy", &identity, &"--points", &"200"];
    disk.clear_log();
    let (record, inferred) = read(record_of(rdsk(&words)));
    assert!(inferred.described.is_none(), "nothing describes a loop device");
    // A loop device gives no hint of it, and on a busy machine there may be nothing to be hinted.
    if let Some((agreement, _)) = inferred.hints {
        assert!(matches!(agreement, Agreement::NotHinted | Agreement::NoStripe), "{agreement:?}");
    }
    let counts = disk.counts();
    let moved = |op: Op| -> u64 {
        let cells = record.cells.iter().filter(|cell| cell.workload.op == op);
        cells.filter_map(|cell| cell.result.bytes).sum()
    };
    assert!(moved(Op::Write) > 0);
    assert_eq!(counts.write_bytes, moved(Op::Write));
    assert!(counts.read_bytes >= moved(Op::Read));
}

#[test]
fn what_is_not_to_be_written_is_only_read() {
    let file = tempfile::NamedTempFile::new_in(Path::new(".")).unwrap();
    let content: Vec<u8> = (0..8 * MIB).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect();
    std::fs::write(file.path(), &content).unwrap();
    let (record, _) = read(record_of(rdsk(&[&"stripe", &file.path(), &"--points", &"300"])));
    assert_eq!(record.cells.len(), 1);
    assert_eq!(record.cells[0].id, "stripe/read");
    assert!(std::fs::read(file.path()).unwrap() == content, "the file was changed");
}
