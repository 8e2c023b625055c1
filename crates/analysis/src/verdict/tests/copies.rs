//! Devices that keep several copies of each byte, and limits on one of them.

use super::*;

/// A target over two devices that keep two copies, as btrfs raid1 does.
fn mirrored(mut cell: CellRecord, each: u64) -> CellRecord {
    let mut second = cell.evidence.device[0].clone();
    second.name = "sdb".into();
    cell.evidence.device.push(second);
    for device in &mut cell.evidence.device {
        device.write_bytes = Some(each);
        device.diskstat.as_mut().unwrap().write_sectors = each / SECTOR_BYTES;
    }
    cell.evidence.counted = vec![rdsk_model::Counted {
        target: 0,
        devices: vec!["sda".into(), "sdb".into()],
        written_least: 2.0,
        written_most: Some(2.0),
        why: Some("btrfs raid1 over sda, sdb".into()),
    }];
    cell
}

#[test]
fn copies_are_taken_off() {
    let both = mirrored(write(IoPath::Direct), 64 * MIB);
    check(
        &both,
        fixtures::file(),
        VerdictCode::Device,
        "sda and sdb wrote 128 MiB for 64 MiB completed (2.00x, btrfs raid1",
    );
    assert_eq!(verdict(&both, &[fixtures::file()], None).device_share, Some(1.0));
    // One copy of all of it, or two of half: the rest is in memory.
    let half = mirrored(write(IoPath::Direct), 32 * MIB);
    check(&half, fixtures::disk(), VerdictCode::Unverified, "64 MiB");
    let half = mirrored(write(IoPath::Buffered), 32 * MIB);
    check(&half, fixtures::file(), VerdictCode::PageCache, "written 50.0%");
    // Only what is beyond both copies is another program's.
    let foreign = mirrored(write(IoPath::Direct), 80 * MIB);
    check(&foreign, fixtures::disk(), VerdictCode::Disturbed, "wrote 32 MiB for others");
    // Where parity is written, it is unknown how much belongs to it.
    let parity = with(foreign, |cell| {
        cell.evidence.counted[0].written_least = 1.5;
        cell.evidence.counted[0].written_most = None;
    });
    check(&parity, fixtures::disk(), VerdictCode::Device, "");
    // Each byte is read once, from one of the two.
    let read = with(mirrored(read(IoPath::Direct), 0), |cell| {
        cell.evidence.device[0].read_bytes = Some(30 * MIB);
        cell.evidence.device[1].read_bytes = Some(34 * MIB);
    });
    check(&read, fixtures::file(), VerdictCode::Device, "sda and sdb read 64 MiB");
}

#[test]
fn a_limit_on_a_member_holds_for_the_member() {
    // A stripe of two: the limit of one of them is half of what both do together.
    let striped = |device: &str, limit: u64| {
        with(mirrored(write(IoPath::Direct), 32 * MIB), |cell| {
            (cell.evidence.counted[0].written_least, cell.evidence.counted[0].written_most) =
                (1.0, Some(1.0));
            cell.evidence.limits = vec![Limit {
                target: 0,
                device: device.into(),
                source: "/sys/fs/cgroup/a/io.max".into(),
                op: Op::Write,
                bytes_per_s: Some(limit),
                ops_per_s: None,
            }];
        })
    };
    check(
        &striped("sdb", 64 * MIB),
        fixtures::disk(),
        VerdictCode::Throttled,
        "sdb moved 64.0 MiB/s, the limit of 64.0 MiB/s that /sys/fs/cgroup/a/io.max sets",
    );
    check(&striped("sdb", 128 * MIB), fixtures::disk(), VerdictCode::Device, "");
    // Neither is a rate above a member's limit a burst of it.
    check(&striped("sdb", 100 * MIB), fixtures::disk(), VerdictCode::Device, "");
}
