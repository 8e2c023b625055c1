//! Filesystems whose server, another process, does the I/O on their disk: FUSE with a block device, as of ntfs-3g.

use super::*;

fn fuseblk() -> Target {
    let filesystem = Some(Filesystem { kind: "fuseblk".into(), options: "rw,relatime".into() });
    Target { filesystem, ..fixtures::file() }
}

#[test]
fn reads_that_nobody_is_charged_for_are_judged_by_the_disk() {
    for path in [IoPath::Buffered, IoPath::Direct] {
        let read = charged(read(path), Some(0), Some(0));
        check(&read, fuseblk(), VerdictCode::Device, "sda read 64 MiB for 64 MiB completed");
        // A page of the program itself, read meanwhile, is no share of it.
        check(&charged(read.clone(), Some(4096), Some(0)), fuseblk(), VerdictCode::Device, "64 MiB");
        check(&device_reads(read.clone(), 0), fuseblk(), VerdictCode::PageCache, "read 0 B");
        let half = verdict(&device_reads(read, 32 * MIB), &[fuseblk()], Some(8));
        assert_eq!(half.code, VerdictCode::PageCache, "{}", half.text);
        assert!(!half.text.contains("fetched"), "what was charged shows nothing: {}", half.text);
    }
    check(
        &charged(read(IoPath::Buffered), Some(0), Some(0)),
        fixtures::file(),
        VerdictCode::PageCache,
        "fetched 0 B",
    );
}

/// The server reads ahead and reads its tables, and writes what we wrote before.
#[test]
fn what_a_server_does_cannot_be_told_from_what_others_do() {
    let busy = |cell: CellRecord| {
        with(cell, |cell| {
            let device = &mut cell.evidence.device[0];
            let more = |count: &mut Option<u64>, by: u64| *count = count.map(|count| count + by);
            more(&mut device.reads, 20_000);
            more(&mut device.writes, 20_000);
            more(&mut device.read_bytes, 20_000 * 4096);
            more(&mut device.write_bytes, 20_000 * 4096);
            cell.evidence.process.read_bytes = Some(0);
        })
    };
    for cell in [busy(read(IoPath::Direct)), busy(write(IoPath::Direct))] {
        check(&cell, fuseblk(), VerdictCode::Device, "the block layer moved");
        let plain = with(cell, |cell| cell.evidence.process.read_bytes = Some(64 * MIB));
        check(&plain, fixtures::file(), VerdictCode::Disturbed, "others");
    }
}
