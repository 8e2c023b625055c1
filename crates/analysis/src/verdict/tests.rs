//! Tables of cells and the verdicts they must get, on both sides of every threshold.

mod copies;
mod served;

use super::*;
use crate::fixtures::{self, cell, kept_in_memory, read_from_memory, with, without_counters};
use rdsk_model::{
    ExtentEvidence, Filesystem, IoPath, Limit, Pattern, SECTOR_BYTES, StreamRange, Sync, TargetKind,
};

const MIB: u64 = 1 << 20;
const HALF_SECOND: u64 = 500_000_000;

fn read(path: IoPath) -> CellRecord {
    cell("t", Op::Read, path, MIB, 64, HALF_SECOND)
}

fn write(path: IoPath) -> CellRecord {
    cell("t", Op::Write, path, MIB, 64, HALF_SECOND)
}

#[track_caller]
fn check(cell: &CellRecord, target: Target, code: VerdictCode, words: &str) {
    let verdict = verdict(cell, &[target], Some(8));
    assert_eq!(verdict.code, code, "{}", verdict.text);
    assert!(verdict.text.contains(words), "\"{words}\" is not in \"{}\"", verdict.text);
    assert!(!verdict.text.contains('\n'));
}

fn device_reads(cell: CellRecord, bytes: u64) -> CellRecord {
    with(cell, |cell| cell.evidence.device[0].read_bytes = Some(bytes))
}

fn device_writes(cell: CellRecord, bytes: u64) -> CellRecord {
    with(cell, |cell| {
        cell.evidence.device[0].write_bytes = Some(bytes);
        cell.evidence.device[0].diskstat.as_mut().unwrap().write_sectors = bytes / SECTOR_BYTES;
    })
}

fn charged(cell: CellRecord, read_bytes: Option<u64>, write_bytes: Option<u64>) -> CellRecord {
    with(cell, |cell| {
        cell.evidence.process.read_bytes = read_bytes;
        cell.evidence.process.write_bytes = write_bytes;
    })
}

fn holes(cell: CellRecord, mapped_bytes: u64, unwritten_bytes: u64, hole_bytes: u64) -> CellRecord {
    let extents = Some(ExtentEvidence { mapped_bytes, unwritten_bytes, hole_bytes, extents: 1 });
    with(cell, |cell| cell.evidence.extents = extents)
}

fn tmpfs() -> Target {
    Target {
        filesystem: Some(Filesystem { kind: "tmpfs".into(), options: "rw".into() }),
        device: None,
        ..fixtures::file()
    }
}

fn silent_disk() -> Target {
    let mut target = fixtures::disk();
    target.device.as_mut().unwrap().iostats = Some(false);
    target
}

#[test]
fn device() {
    check(&read(IoPath::Direct), fixtures::disk(), VerdictCode::Device, "sda read 64 MiB for 64 MiB");
    check(&read(IoPath::Buffered), fixtures::file(), VerdictCode::Device, "100%");
    check(&write(IoPath::Direct), fixtures::disk(), VerdictCode::Device, "until the data was stable");
    let verdict = verdict(&read(IoPath::Direct), &[fixtures::disk()], None);
    assert_eq!(verdict.device_share, Some(1.0));
}

/// ZFS and a server answer from memory that no counter shows.
#[test]
fn who_may_have_answered_from_memory_is_said() {
    for (name, words) in [
        ("zd16", "; zd16: ZFS's ARC in memory may have answered"),
        ("nbd0", "; nbd0: its server's memory may"),
    ] {
        let mut target = fixtures::disk();
        target.stack = vec![name.into()];
        check(&read(IoPath::Direct), target, VerdictCode::Device, words);
    }
    let judged = verdict(&read(IoPath::Direct), &[fixtures::disk()], Some(8));
    assert!(!judged.text.contains("may have answered"), "{}", judged.text);
}

#[test]
fn incomplete_and_cut_short() {
    let nothing = with(read(IoPath::Direct), |cell| {
        cell.result = fixtures::empty_result();
        cell.result.why = "a signal\u{1b}".into();
    });
    check(&nothing, fixtures::disk(), VerdictCode::Incomplete, "a signal\\x1b");
    let zero = with(read(IoPath::Direct), |cell| cell.result.ops = Some(0));
    check(&zero, fixtures::disk(), VerdictCode::Incomplete, "nothing completed");
    for stop in [StopReason::Interrupted, StopReason::Error] {
        let cut = with(read(IoPath::Direct), |cell| {
            cell.result.stop = stop;
            cell.result.why = "because".into();
        });
        check(&cut, fixtures::disk(), VerdictCode::Device, "; cut short: because");
    }
}

#[test]
fn hole() {
    let (file, nothing_read) =
        (fixtures::file, |path| charged(device_reads(read(path), 0), Some(0), Some(0)));
    for path in [IoPath::Direct, IoPath::Buffered] {
        check(&holes(nothing_read(path), 0, 0, 64 * MIB), file(), VerdictCode::Hole, "100% of the span");
        check(&holes(nothing_read(path), 0, 64 * MIB, 0), file(), VerdictCode::Hole, "sda read 0 B");
    }
    // A third of the span is a hole, two thirds were read.
    let third = |fetched| charged(device_reads(read(IoPath::Direct), fetched), Some(fetched), Some(0));
    check(&holes(third(43 * MIB), 43 * MIB, 0, 21 * MIB), file(), VerdictCode::Hole, "32.8%");
    // What was fetched from the device is not said to be zeros.
    check(
        &holes(third(43 * MIB), 43 * MIB, 0, 21 * MIB),
        file(),
        VerdictCode::Hole,
        "reads as zeros: 64 MiB completed (sda read 43 MiB)",
    );
    // Just under a tenth does not make a hole; the missing part is small enough for the device.
    check(&holes(third(59 * MIB), 59 * MIB, 0, 5 * MIB), file(), VerdictCode::Device, "92.2%");
    // The extents are older than the data: device and process agree that everything was fetched.
    check(&holes(read(IoPath::Direct), 0, 64 * MIB, 0), file(), VerdictCode::Device, "100%");
    // The device was read by others while we read a hole.
    let others = charged(read(IoPath::Direct), Some(0), Some(0));
    check(&holes(others, 0, 0, 64 * MIB), file(), VerdictCode::Hole, "zeros");
    // FIEMAP proves it without any counter.
    let blind = charged(without_counters(read(IoPath::Direct)), None, None);
    check(&holes(blind, 0, 0, 64 * MIB), file(), VerdictCode::Hole, "no device counter");
}

#[test]
fn a_compressed_file_is_no_memory() {
    let half = |path| charged(device_reads(read(path), 20 * MIB), Some(20 * MIB), Some(0));
    let on_btrfs = || {
        let mut target = fixtures::file();
        target.filesystem.as_mut().unwrap().kind = "btrfs".into();
        target
    };
    for path in [IoPath::Buffered, IoPath::Direct] {
        let words = "sda read 31.2% of 64 MiB completed: btrfs keeps the file in fewer bytes";
        check(&half(path), on_btrfs(), VerdictCode::Unverified, words);
        let twice = with(half(path), |cell| cell.workload.span_bytes = 32 * MIB);
        let memory = verdict(&twice, &[on_btrfs()], Some(8));
        assert_eq!(memory.code, VerdictCode::PageCache, "{}", memory.text);
        let cached = with(half(path), |cell| {
            cell.evidence.page_cache.as_mut().unwrap().before.cached_bytes = Some(44 * MIB);
        });
        assert_eq!(verdict(&cached, &[on_btrfs()], Some(8)).code, VerdictCode::PageCache);
    }
    // 0.4 % of the bytes; btrfs keeps more of any file.
    let packed = charged(device_reads(read(IoPath::Buffered), 256 << 10), Some(256 << 10), Some(0));
    let mut erofs = on_btrfs();
    erofs.filesystem.as_mut().unwrap().kind = "erofs".into();
    check(&packed, erofs, VerdictCode::Unverified, "erofs keeps the file in fewer bytes");
    check(&packed, on_btrfs(), VerdictCode::PageCache, "memory answered 99.6%");
    // What another program brought into memory meanwhile, or another stream of ours.
    check(&half(IoPath::Buffered), fixtures::file(), VerdictCode::PageCache, "memory answered 68.8%");
    let shared = with(half(IoPath::Buffered), |cell| cell.workload.range = StreamRange::Shared);
    check(&shared, on_btrfs(), VerdictCode::PageCache, "memory answered 68.8%");
}

#[test]
fn page_cache_reads() {
    let memory = read_from_memory(read(IoPath::Buffered));
    check(&memory, fixtures::file(), VerdictCode::PageCache, "memory answered 100% of 64 MiB: sda read 0 B");
    let below = charged(device_reads(read(IoPath::Buffered), 57 * MIB), Some(57 * MIB), None);
    check(&below, fixtures::disk(), VerdictCode::PageCache, "10.9%");
    let above = charged(device_reads(read(IoPath::Buffered), 58 * MIB), Some(58 * MIB), None);
    check(&above, fixtures::disk(), VerdictCode::Device, "90.6%");
    // Others read as much as we did from memory: what the kernel charged to us says.
    let masked = charged(read(IoPath::Buffered), Some(0), None);
    check(&masked, fixtures::disk(), VerdictCode::PageCache, "fetched 0 B for these reads");
    // iostats=0: the process's own account is enough over a block device.
    let blind = without_counters(memory.clone());
    check(&blind, silent_disk(), VerdictCode::PageCache, "fetched 0 B");
    check(&read_from_memory(read(IoPath::Buffered)), tmpfs(), VerdictCode::PageCache, "memory answered");
    check(
        &charged(without_counters(read(IoPath::Direct)), None, None),
        tmpfs(),
        VerdictCode::PageCache,
        "tmpfs keeps",
    );
    let fetched = charged(without_counters(read(IoPath::Buffered)), Some(64 * MIB), None);
    check(
        &fetched,
        silent_disk(),
        VerdictCode::Device,
        "it charged 64 MiB to rdsk for 64 MiB completed; queue/iostats of sda is 0",
    );
    // Without any account cachestat may still prove it.
    let cached = with(charged(without_counters(memory), None, None), |cell| {
        cell.evidence.page_cache.as_mut().unwrap().before.cached_bytes = Some(cell.workload.span_bytes);
    });
    check(&cached, silent_disk(), VerdictCode::PageCache, "before the first read");
    // O_DIRECT that the filesystem answers by itself.
    let own_cache = charged(device_reads(read(IoPath::Direct), 0), Some(0), None);
    check(&own_cache, fixtures::file(), VerdictCode::PageCache, "despite O_DIRECT");
}

#[test]
fn unverified() {
    let blind = without_counters(read(IoPath::Direct));
    check(&blind, silent_disk(), VerdictCode::Unverified, "queue/iostats of sda is 0");
    let none = charged(with(blind, |cell| cell.evidence.device.clear()), None, None);
    let nfs = Target {
        filesystem: Some(Filesystem { kind: "nfs4".into(), options: String::new() }),
        device: None,
        ..fixtures::file()
    };
    check(&none, nfs.clone(), VerdictCode::Unverified, "nfs4 has no block device");
    let buffered = with(none, |cell| cell.workload.path = IoPath::Buffered);
    check(&buffered, nfs, VerdictCode::Unverified, "nfs4");
    // The kernel sent the bytes somewhere, but not through the device that was watched.
    check(&device_reads(read(IoPath::Direct), 0), fixtures::disk(), VerdictCode::Unverified, "do not follow");
    check(&device_reads(read(IoPath::Direct), 0), fixtures::file(), VerdictCode::Unverified, "do not follow");
    check(&device_reads(read(IoPath::Direct), 57 * MIB), fixtures::disk(), VerdictCode::Unverified, "57 MiB");
    check(&device_reads(read(IoPath::Direct), 58 * MIB), fixtures::disk(), VerdictCode::Device, "90.6%");
    check(&without_counters(write(IoPath::Direct)), silent_disk(), VerdictCode::Unverified, "is 0");
    check(
        &device_writes(write(IoPath::Direct), 62 * MIB),
        fixtures::disk(),
        VerdictCode::Unverified,
        "62 MiB",
    );
    check(&device_writes(write(IoPath::Direct), 63 * MIB), fixtures::disk(), VerdictCode::Device, "98.4%");
}

#[test]
fn page_cache_writes() {
    let memory = kept_in_memory(write(IoPath::Buffered), 20_000_000, HALF_SECOND);
    check(&memory, fixtures::file(), VerdictCode::PageCache, "3.12 GiB/s into RAM, 128 MiB/s on disk");
    check(
        &memory,
        fixtures::file(),
        VerdictCode::PageCache,
        "sda had written 0% of 64 MiB at the return and 64 MiB",
    );
    // Other programs wrote to the disk, too: nothing of that is said to be of this test.
    let beside_others = with(memory.clone(), |cell| {
        cell.evidence.device[0].write_bytes = Some(20_000 * MIB);
    });
    let text = "sda had written 0% of 64 MiB at the return and at most 64 MiB for it in the end; 19.5 GiB more were for others, or for the filesystem";
    check(&beside_others, fixtures::file(), VerdictCode::PageCache, text);
    let absorbed = |percent: u64| {
        with(write(IoPath::Buffered), |cell| {
            let counters = cell.evidence.device[0].diskstat.as_mut().unwrap();
            counters.write_sectors = counters.write_sectors * percent / 100;
        })
    };
    check(&absorbed(89), fixtures::file(), VerdictCode::PageCache, "89.0%");
    check(&absorbed(91), fixtures::file(), VerdictCode::Device, "100%");
    // The device was busy with another program's writes; our pages were still dirty.
    let masked = with(write(IoPath::Buffered), |cell| {
        cell.evidence.page_cache.as_mut().unwrap().after.dirty_bytes = cell.result.bytes;
    });
    check(&masked, fixtures::file(), VerdictCode::PageCache, "written 0%");
    // Durable writes are measured by what reached the device in the end.
    for sync in [Sync::Dsync, Sync::FsyncAtEnd] {
        let durable = with(write(IoPath::Buffered), |cell| cell.workload.sync = sync);
        check(&durable, fixtures::file(), VerdictCode::Device, "100%");
    }
    let overwritten = with(device_writes(write(IoPath::Buffered), 32 * MIB), |cell| {
        cell.workload.sync = Sync::FsyncAtEnd;
        cell.workload.pattern = Pattern::Random;
    });
    let overwritten = charged(overwritten, None, Some(32 * MIB));
    check(&overwritten, fixtures::file(), VerdictCode::PageCache, "overwritten before the sync");
    let mut btrfs = fixtures::file();
    btrfs.filesystem.as_mut().unwrap().kind = "btrfs".into();
    check(&overwritten, btrfs.clone(), VerdictCode::PageCache, "overwritten before the sync");
    // What was charged in full was not overwritten: a filesystem that compresses packed it.
    for sync in [Sync::FsyncAtEnd, Sync::Dsync] {
        let packed = with(overwritten.clone(), |cell| cell.workload.sync = sync);
        let packed = charged(packed, None, Some(64 * MIB));
        check(
            &packed,
            btrfs.clone(),
            VerdictCode::Unverified,
            "sda wrote 50.0% of it: btrfs keeps the file in fewer bytes",
        );
    }
    let fell_back = with(kept_in_memory(write(IoPath::Direct), 20_000_000, HALF_SECOND), |cell| {
        cell.workload.path = IoPath::Direct;
    });
    check(&fell_back, fixtures::file(), VerdictCode::PageCache, "O_DIRECT fell back");
    check(
        &charged(device_writes(write(IoPath::Direct), 0), None, Some(0)),
        fixtures::file(),
        VerdictCode::PageCache,
        "kept",
    );
    check(&without_counters(memory), silent_disk(), VerdictCode::PageCache, "64 MiB of 64 MiB were dirty");
    check(
        &with(write(IoPath::Buffered), |cell| cell.evidence.device.clear()),
        tmpfs(),
        VerdictCode::PageCache,
        "tmpfs",
    );
}

/// btrfs passes direct writes through the page cache and compresses them; what no device counted went elsewhere.
#[test]
fn direct_writes_that_a_filesystem_packs_are_no_rate_of_the_device() {
    let mut btrfs = fixtures::file();
    btrfs.filesystem.as_mut().unwrap().kind = "btrfs".into();
    let direct = |moved: u64| charged(device_writes(write(IoPath::Direct), moved), None, Some(64 * MIB));
    check(
        &direct(2 * MIB),
        btrfs.clone(),
        VerdictCode::Unverified,
        "sda wrote 3.1% of it: btrfs keeps the file in",
    );
    check(&direct(256 << 10), btrfs.clone(), VerdictCode::Unverified, "its counters do not follow this I/O");
    check(&direct(2 * MIB), fixtures::file(), VerdictCode::Unverified, "its counters do not follow this I/O");
}

#[test]
fn throttled() {
    let limited = |source_op: Op, bytes_per_s: Option<u64>, ops_per_s: Option<u64>| {
        with(read(IoPath::Direct), |cell| {
            let source = "/cg/blkio.throttle.read_bps_device".into();
            cell.evidence.limits = vec![Limit {
                target: 0,
                device: "sda".into(),
                source,
                op: source_op,
                bytes_per_s,
                ops_per_s,
            }];
        })
    };
    // The cell runs at 128 MiB/s and 128 I/Os per second.
    let disk = fixtures::disk;
    check(
        &limited(Op::Read, Some(128 * MIB), None),
        disk(),
        VerdictCode::Throttled,
        "/cg/blkio.throttle.read_bps",
    );
    check(&limited(Op::Read, None, Some(128)), disk(), VerdictCode::Throttled, "128 I/Os per second");
    check(&limited(Op::Read, Some(123 * MIB), None), disk(), VerdictCode::Throttled, "123 MiB/s");
    check(&limited(Op::Read, Some(134 * MIB), None), disk(), VerdictCode::Throttled, "134 MiB/s");
    check(&limited(Op::Read, Some(121 * MIB), None), disk(), VerdictCode::Throttled, "above the limit");
    check(&limited(Op::Read, None, Some(64)), disk(), VerdictCode::Throttled, "a burst");
    check(&limited(Op::Read, Some(136 * MIB), None), disk(), VerdictCode::Device, "");
    check(&limited(Op::Write, Some(128 * MIB), None), disk(), VerdictCode::Device, "");
    check(&limited(Op::Read, None, None), disk(), VerdictCode::Device, "");
    let elsewhere = with(limited(Op::Read, Some(128 * MIB), None), |cell| cell.evidence.limits[0].target = 7);
    check(&elsewhere, disk(), VerdictCode::Device, "");
    // Memory is not limited: the limit explains nothing there.
    check(&read_from_memory(limited(Op::Read, Some(128 * MIB), None)), disk(), VerdictCode::PageCache, "");
}

#[test]
fn disturbed() {
    let (disk, file) = (fixtures::disk, fixtures::file);
    check(
        &device_reads(read(IoPath::Direct), 71 * MIB),
        disk(),
        VerdictCode::Disturbed,
        "sda read 7 MiB for others",
    );
    check(&device_reads(read(IoPath::Direct), 70 * MIB), disk(), VerdictCode::Device, "");
    // Readahead that was charged to us is ours, however much.
    let ahead = charged(device_reads(read(IoPath::Buffered), 200 * MIB), Some(200 * MIB), None);
    check(&ahead, disk(), VerdictCode::Device, "all of it charged to rdsk");
    let unaccounted = |bytes| charged(device_reads(read(IoPath::Buffered), bytes), None, None);
    check(&unaccounted(72 * MIB), disk(), VerdictCode::Device, "");
    check(&unaccounted(80 * MIB), disk(), VerdictCode::Disturbed, "");
    let written =
        |bytes| with(read(IoPath::Direct), |cell| cell.evidence.device[0].write_bytes = Some(bytes));
    check(&written(7 * MIB), file(), VerdictCode::Disturbed, "wrote 7 MiB for others");
    check(&written(6 * MIB), file(), VerdictCode::Device, "");

    check(&device_writes(write(IoPath::Direct), 71 * MIB), disk(), VerdictCode::Disturbed, "wrote 7 MiB");
    check(&device_writes(write(IoPath::Direct), 70 * MIB), disk(), VerdictCode::Device, "");
    // A journal may cost several times the data.
    check(&device_writes(write(IoPath::Direct), 640 * MIB), file(), VerdictCode::Device, "");
    check(&device_writes(write(IoPath::Direct), 800 * MIB), file(), VerdictCode::Disturbed, "");
    let reads = |bytes| with(write(IoPath::Direct), |cell| cell.evidence.device[0].read_bytes = Some(bytes));
    check(&reads(7 * MIB), file(), VerdictCode::Disturbed, "read 7 MiB for others while");
    check(&reads(6 * MIB), file(), VerdictCode::Device, "");
    // No other program uses a simulated disk: what it moves beyond our bytes is the host's doing for us.
    let of_a_model =
        |cell| with(cell, |cell: &mut CellRecord| cell.evidence.source = rdsk_model::EvidenceSource::Sim);
    check(&of_a_model(written(7 * MIB)), file(), VerdictCode::Device, "");
    check(&of_a_model(device_writes(write(IoPath::Direct), 71 * MIB)), disk(), VerdictCode::Device, "");
    // Reads that our own partial pages caused are ours.
    check(&charged(reads(64 * MIB), Some(64 * MIB), Some(64 * MIB)), file(), VerdictCode::Device, "");
}

#[test]
fn small_buffered_writes_send_whole_pages() {
    let small = with(cell("t", Op::Write, IoPath::Buffered, 512, 4096, HALF_SECOND), |cell| {
        cell.evidence.device[0].write_bytes = Some(4096 * 4096);
        cell.evidence.device[0].read_bytes = Some(4096 * 4096);
        cell.evidence.process.read_bytes = Some(4096 * 4096);
        cell.evidence.process.write_bytes = Some(4096 * 4096);
        cell.workload.sync = Sync::Dsync;
    });
    check(&small, fixtures::disk(), VerdictCode::Device, "8.00x");
    check(&charged(small, None, None), fixtures::disk(), VerdictCode::Device, "");
}

#[test]
fn cpu_and_source() {
    let busy = |op: Op, user: u64, system: u64, in_flight: f64| {
        with(cell("t", op, IoPath::Direct, MIB, 64, HALF_SECOND), |cell| {
            cell.result.cpu_ns = Some(rdsk_model::CpuTime { user, system });
            cell.result.in_flight_mean = Some(in_flight);
        })
    };
    let ms = 1_000_000;
    let disk = fixtures::disk;
    check(
        &busy(Op::Read, 50 * ms, 401 * ms, 0.99),
        disk(),
        VerdictCode::CpuBound,
        "90.2% of the time, 7.05 ms",
    );
    check(&busy(Op::Read, 50 * ms, 399 * ms, 0.99), disk(), VerdictCode::Device, "");
    // Less than 50 ms of I/O: ticks of 10 ms would be noise.
    let short = |elapsed_ms| {
        with(busy(Op::Read, 0, elapsed_ms * ms, 0.99), |cell| cell.result.elapsed_ns = Some(elapsed_ms * ms))
    };
    check(&short(49), disk(), VerdictCode::Device, "");
    check(&short(50), disk(), VerdictCode::CpuBound, "");
    let zram =
        with(busy(Op::Read, 50 * ms, 440 * ms, 0.99), |cell| cell.evidence.device[0].name = "zram3".into());
    check(&zram, disk(), VerdictCode::CpuBound, "zram3 runs on the processor");
    // Sixteen streams on eight processors are bound by eight.
    let many = with(busy(Op::Read, 0, 3_700 * ms, 15.9), |cell| cell.workload.streams = 16);
    check(&many, disk(), VerdictCode::CpuBound, "92.5%");
    assert_eq!(verdict(&many, &[disk()], None).code, VerdictCode::Device);
    // One stream of sixteen threads may use all eight, too; one of them busy is not all.
    for (cpu_ms, code) in [(3_700, VerdictCode::CpuBound), (460, VerdictCode::Device)] {
        let threads = with(busy(Op::Read, 0, cpu_ms * ms, 15.9), |cell| {
            cell.workload.queue_depth = 16;
            cell.result.engine = Some(rdsk_model::EngineKind::Threads);
        });
        check(&threads, disk(), code, "");
    }

    check(&busy(Op::Write, 126 * ms, 40 * ms, 0.74), disk(), VerdictCode::SourceBound, "26.0%");
    check(&busy(Op::Write, 100 * ms, 40 * ms, 0.76), disk(), VerdictCode::Device, "");
    // A copy reads and closes outside its writes, and generates nothing.
    let copy = with(busy(Op::Write, 126 * ms, 40 * ms, 0.74), |cell| {
        cell.experiment = rdsk_model::Experiment::Dd;
    });
    check(&copy, disk(), VerdictCode::Device, "");
    // The time outside was not ours: another program had the processor, or the cache was checked.
    check(&busy(Op::Write, 20 * ms, 40 * ms, 0.50), disk(), VerdictCode::Device, "");
    check(&busy(Op::Read, 200 * ms, 40 * ms, 0.50), disk(), VerdictCode::Device, "");
}

#[test]
fn nothing_is_said_of_what_was_not_counted() {
    let bare = with(read(IoPath::Direct), |cell| {
        cell.result.cpu_ns = None;
        cell.result.in_flight_mean = None;
        cell.result.bytes_per_s = None;
        cell.result.ops_per_s = None;
        cell.evidence.page_cache = None;
        cell.evidence.device[0].diskstat = None;
    });
    check(&bare, fixtures::disk(), VerdictCode::Device, "100%");
    assert_eq!(fixtures::disk().kind, TargetKind::Block);
}

/// A cell of direct writes whose kernel charges and devices wrote so much for each byte.
fn partial(block_bytes: u64, align_bytes: u64, shift_bytes: u64, charged: f64) -> CellRecord {
    let ops = 64;
    let cell = cell("t", Op::Write, IoPath::Direct, block_bytes, ops, HALF_SECOND);
    with(cell, |cell| {
        (cell.workload.align_bytes, cell.workload.shift_bytes) = (align_bytes, shift_bytes);
        let all_bytes = block_bytes * ops;
        // Sixteenths are exact for every factor of these tests.
        let written = (0..).map(|sixteenths: u32| all_bytes * u64::from(sixteenths) / 16);
        let written = written.zip(0..).find(|(_, sixteenths)| f64::from(*sixteenths) / 16.0 >= charged);
        let written = written.map_or(all_bytes, |(written, _)| written);
        cell.evidence.process.write_bytes = Some(written);
        cell.evidence.device[0].write_bytes = Some(written.max(all_bytes));
    })
}

#[test]
fn direct_writes_of_parts_of_pages_that_went_through_the_page_cache() {
    // block, alignment, shift, whole pages for it
    for (block, align, shift, pages) in [
        (512, 512, 0, 8.0),
        (1, 1, 0, 4096.0),
        (4096, 4096, 512, 2.0),
        (4096, 512, 0, 2.0),
        (65536, 65536, 512, 1.0625),
    ] {
        let through = partial(block, align, shift, pages);
        check(&through, fixtures::file(), VerdictCode::PageCache, "through the page cache");
        let past = partial(block, align, shift, 1.0);
        check(&past, fixtures::file(), VerdictCode::Device, "until the data was stable");
        // A device has no pages of its own making: its page cache is not asked for direct writes.
        check(&through, fixtures::disk(), VerdictCode::Device, "");
    }
    // Whole pages are charged as such on either way, and metadata beside them.
    check(&partial(4096, 4096, 0, 1.5), fixtures::file(), VerdictCode::Device, "");
}

#[test]
fn memory_disks_whose_reads_nobody_is_charged_for() {
    let zram = |bytes_in_cache: Option<u64>| {
        with(charged(read(IoPath::Buffered), Some(0), None), |cell| {
            cell.evidence.device[0].name = "zram0".into();
            cell.evidence.page_cache.as_mut().unwrap().before.cached_bytes = bytes_in_cache;
        })
    };
    check(&zram(Some(0)), fixtures::disk(), VerdictCode::Device, "zram0 read 64 MiB for 64 MiB");
    // What was in memory, or may have been, may have answered.
    check(&zram(Some(64 * MIB)), fixtures::disk(), VerdictCode::PageCache, "100%");
    check(&zram(None), fixtures::disk(), VerdictCode::PageCache, "100%");
    let twice = with(zram(Some(0)), |cell| cell.workload.span_bytes = 16 * MIB);
    check(&twice, fixtures::disk(), VerdictCode::PageCache, "100%");
    // The device was not read.
    check(&device_reads(zram(Some(0)), 0), fixtures::disk(), VerdictCode::PageCache, "zram0 read 0 B");
    // A RAM disk counts nothing either.
    let mut ram = fixtures::disk();
    ram.device.as_mut().unwrap().name = "ram0".into();
    let uncounted = fixtures::without_counters(zram(Some(0)));
    check(&uncounted, ram.clone(), VerdictCode::Unverified, "no counter shows");
    check(&fixtures::without_counters(zram(Some(64 * MIB))), ram, VerdictCode::PageCache, "100%");
}

#[test]
fn direct_writes_to_a_filesystem_that_journals_data_pass_the_page_cache() {
    let wrote = cell("w", Op::Write, IoPath::Direct, MIB, 64, 500_000_000);
    let on = |kind: &str, options: &str| {
        let mut target = fixtures::file();
        target.filesystem = Some(rdsk_model::Filesystem { kind: kind.into(), options: options.into() });
        target
    };
    let text =
        "ext4 with data=journal sends direct writes through the page cache and its journal: sda wrote 64 MiB";
    check(&wrote, on("ext4", "rw,relatime,data=journal"), VerdictCode::PageCache, text);
    check(&wrote, on("ext4", "rw,relatime,data=ordered"), VerdictCode::Device, "");
    check(&wrote, on("xfs", "rw,data=journal"), VerdictCode::Device, "");
}

#[test]
fn what_was_fetched_from_a_device_that_is_not_counted_is_not_memorys() {
    let fetched = charged(device_reads(read(IoPath::Buffered), 0), Some(64 * MIB), Some(0));
    let text = "the kernel fetched 64 MiB for these reads, but sda counted 0 B";
    check(&fetched, fixtures::file(), VerdictCode::Unverified, text);
    let cached = charged(device_reads(read(IoPath::Buffered), 0), Some(0), Some(0));
    check(&cached, fixtures::file(), VerdictCode::PageCache, "memory answered 100%");
}
