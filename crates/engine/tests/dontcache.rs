//! The path `dontcache`: its pages do not stay where the filesystem drops them, what it writes reaches the disk, and it moves
//! the bytes that the other two paths move. What the page cache holds is asked with a system call of this file's own, what the disk saw is in its log.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]
#![allow(unsafe_code, reason = "the truth of these tests comes from cachestat(2) itself")]

use crate::common::{PAGE, file_of, job, ops, visit, writing};
use rdsk_engine::Limits;
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Pattern, Workload};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{FuseDisk, LoopDevice, Need, requires, wait_until};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// The pass of the tests of what stays in the cache.
const PASS: u64 = 64 * MIB;
/// The file of the tests of what moves.
const SPAN: u64 = 16 * MIB;

/// Pages of a file that are cached, by cachestat(2): number 451, `struct cachestat_range` and `struct cachestat` of
/// include/uapi/linux/mman.h as plain numbers.
fn cached_pages(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let (range, mut stat) = ([0_u64; 2], [0_u64; 5]);
    // SAFETY: the kernel reads two and writes five numbers of 64 bits, which live across the call.
    let result = unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    stat[0]
}

/// One I/O in flight: of reads that run into each other, each leaves a few pages that the other one still holds (252 of 16 384
/// at depth 4, Linux 6.18, 2026-11-22).
fn pass(op: Op, path: IoPath, engine: EngineKind, span_bytes: u64) -> Workload {
    Workload { op, path, engine, cache: CacheState::Cold, ..Workload::sequential_read(span_bytes) }
}

/// A directory on an XFS filesystem of its own, where writes drop their pages whatever they replace.
fn on_xfs(test: impl FnOnce(&Path)) {
    let device = LoopDevice::builder().size(512 * MIB).create().unwrap();
    device.mkfs_xfs("path").unwrap();
    test(device.mount().unwrap().path());
}

/// A fully written file of [`PASS`] bytes, none of which is cached dirty.
fn written_file(directory: &Path) -> PathBuf {
    let path = directory.join("pass");
    std::fs::write(&path, vec![0x55; usize::try_from(PASS).unwrap()]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    path
}

/// A pass on every engine, after which less than a hundredth of its pages is cached.
fn leaves_nothing(path: &Path, op: Op) {
    let (claims, pages) = ([writing(path)], PASS / PAGE);
    for engine in [EngineKind::Sync, EngineKind::Threads, EngineKind::Uring] {
        let workload = pass(op, IoPath::DontCache, engine, PASS);
        // Pages that another program holds or locks at the moment of the drop, such as the kernel that takes pages back, stay for good.
        first_right(10, || {
            let (_, run, settled) = visit(&job(&workload, &claims, ops(PASS / MIB)));
            assert_eq!((run.bytes, run.engine), (PASS, engine), "{op}");
            assert_eq!(settled.page_cache.is_some(), op == Op::Write);
            // The end of writeback wakes the flush before it drops the last pages.
            let dropped = wait_until(Duration::from_secs(20), || cached_pages(path) < pages / 100);
            ensure(dropped, || format!("{engine} {op}: {} of {pages} stay", cached_pages(path)))?;
            let told = if op == Op::Read { run.page_cache } else { settled.page_cache.unwrap() };
            ensure(told.cached_bytes.unwrap() < PASS / 100, || format!("{engine} {op}: {told:?}"))
        });
    }
    // The same pass without the flag stays, unless the kernel takes pages back by itself.
    let stays = (0..4).any(|_| {
        let workload = pass(op, IoPath::Buffered, EngineKind::Sync, PASS);
        let (_, run, settled) = visit(&job(&workload, &claims, ops(PASS / MIB)));
        let told = settled.page_cache.unwrap_or(run.page_cache);
        cached_pages(path) == pages && told.cached_bytes == Some(PASS)
    });
    assert!(stays, "{op}");
}

#[test]
fn less_than_a_hundredth_of_what_was_read_stays_cached() {
    if !requires(&[Need::Cachestat, Need::IoUring, Need::DontCache]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    leaves_nothing(&written_file(directory.path()), Op::Read);
}

#[test]
fn less_than_a_hundredth_of_what_was_written_stays_cached() {
    if !requires(&[Need::Root, Need::Loop, Need::Xfs, Need::Cachestat, Need::IoUring, Need::DontCache]) {
        return;
    }
    on_xfs(|directory| leaves_nothing(&written_file(directory), Op::Write));
}

/// Whether a filesystem drops the pages of a write that replaces blocks is its own matter (ext4 of 6.18 does not); what stays is
/// said as it is, and never as more than the kernel has then.
#[test]
fn what_stays_of_a_write_is_told_as_it_is() {
    if !requires(&[Need::Cachestat, Need::DontCache]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = written_file(directory.path());
    let claims = [writing(&path)];
    // The kernel may take pages back, or drop the last ones, between the two questions.
    let agrees = (0..4).any(|_| {
        let workload = pass(Op::Write, IoPath::DontCache, EngineKind::Sync, PASS);
        let (_, _, settled) = visit(&job(&workload, &claims, ops(PASS / MIB)));
        settled.page_cache.unwrap().cached_bytes == Some(cached_pages(&path) * PAGE)
    });
    assert!(agrees);
}

/// An ext4 filesystem without a journal on a disk that logs every request, with a file of [`SPAN`] bytes.
fn on_logged_disk(test: impl FnOnce(&FuseDisk, &Path)) {
    let disk = FuseDisk::builder().capacity(128 * MIB).mount().unwrap();
    let device: LoopDevice = disk.loop_device().unwrap();
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0"])
        .arg(device.path());
    assert!(mkfs.status().unwrap().success());
    let mount = device.mount().unwrap();
    let path = mount.path().join("target");
    std::fs::write(&path, vec![0x55; usize::try_from(SPAN).unwrap()]).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    test(&disk, &path);
}

/// How often the disk moved each page of the file, by the page's number in the file.
fn moved(disk: &FuseDisk, path: &Path, op: rdsk_disk::Op) -> BTreeMap<u64, u64> {
    let extents =
        rdsk_sys::extents::extents(File::open(path).unwrap(), 0, 0, rdsk_sys::extents::Flush::First).unwrap();
    let log = disk.log();
    let mut pages = BTreeMap::new();
    for served in log.iter().filter(|served| served.op == op) {
        for at in (served.offset_bytes..served.offset_bytes + served.bytes).step_by(4096) {
            let holds = |extent: &&rdsk_sys::extents::Extent| {
                (extent.physical..extent.physical + extent.len).contains(&at)
            };
            if let Some(extent) = extents.iter().find(holds) {
                *pages.entry((at - extent.physical + extent.logical) / PAGE).or_default() += 1;
            }
        }
    }
    pages
}

#[test]
fn the_three_paths_move_the_same_bytes_at_the_same_offsets() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Ext4, Need::DontCache]) {
        return;
    }
    on_logged_disk(|disk, path| {
        let claims = [writing(path)];
        let sequential =
            Workload { path: IoPath::Direct, ..pass(Op::Write, IoPath::Direct, EngineKind::Sync, SPAN) };
        let random =
            Workload { pattern: Pattern::Random, block_bytes: PAGE, align_bytes: PAGE, ..sequential.clone() };
        for (shape, count) in [(sequential, SPAN / MIB), (random, 1000)] {
            for (op, served) in [(Op::Write, rdsk_disk::Op::Write), (Op::Read, rdsk_disk::Op::Read)] {
                let seen: Vec<_> = IoPath::ALL
                    .iter()
                    .map(|&io_path| {
                        let workload = Workload { op, path: io_path, ..shape.clone() };
                        disk.clear_log();
                        let (prepared, run, _) = visit(&job(&workload, &claims, ops(count)));
                        assert_eq!((prepared.reached, run.ops), (Some(true), count), "{io_path} {op}");
                        let pages = moved(disk, path, served);
                        let direct = File::options().read(true).open(path).unwrap();
                        rdsk_sys::cache::drop_cached(&direct, 0, 0).unwrap();
                        (pages, std::fs::read(path).unwrap())
                    })
                    .collect();
                let (pages, content) = &seen[0];
                let moved_pages = count * shape.block_bytes / PAGE;
                assert_eq!(pages.len() as u64, moved_pages, "{op}: each page is of one I/O");
                assert!(pages.values().all(|&times| times == 1), "{op}: and moves once");
                assert!(content.iter().any(|&byte| byte != 0x55), "something was written");
                for (other, its_content) in &seen[1..] {
                    assert!(other.keys().eq(pages.keys()), "{op}: other pages");
                    assert!(its_content == content, "{op}: other bytes");
                    // What `dontcache` drops before all of it was read, it reads again.
                    assert!(op == Op::Read || other == pages, "{op}: more than once");
                }
            }
        }
    });
}

#[test]
fn a_part_of_a_page_is_written_after_a_read_of_all_of_it() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::Ext4, Need::DontCache]) {
        return;
    }
    on_logged_disk(|disk, path| {
        let claims = [writing(path)];
        let workload = Workload {
            pattern: Pattern::Random,
            block_bytes: 512,
            align_bytes: 512,
            ..pass(Op::Write, IoPath::DontCache, EngineKind::Sync, SPAN)
        };
        disk.clear_log();
        let (_, run, _) = visit(&job(&workload, &claims, ops(500)));
        assert_eq!((run.ops, run.bytes), (500, 500 * 512));
        let (read, written) =
            (moved(disk, path, rdsk_disk::Op::Read), moved(disk, path, rdsk_disk::Op::Write));
        assert_eq!(written.len(), 500, "each write has a page of its own");
        assert!(written.keys().all(|page| read.contains_key(page)), "and each page was read");
        assert_eq!(read.len(), 500, "nothing else was");
    });
}

/// One byte more than a sector, on a path that takes any size: the last, shorter I/O of a pass, too.
#[test]
fn any_size_goes() {
    if !requires(&[Need::IoUring, Need::DontCache]) {
        return;
    }
    let (_directory, path) = file_of(MIB);
    let claims = [writing(&path)];
    for engine in [EngineKind::Sync, EngineKind::Uring] {
        for op in [Op::Write, Op::Read] {
            let workload =
                Workload { block_bytes: 513, align_bytes: 513, ..pass(op, IoPath::DontCache, engine, MIB) };
            let limits = Limits { max_bytes: Some(10_000), max_ops: None, max_elapsed_ns: 600_000_000_000 };
            let (_, run, _) = visit(&job(&workload, &claims, limits));
            assert_eq!((run.bytes, run.ops), (10_000, 20), "{engine} {op}");
            assert!(run.errors.is_empty(), "{:?}", run.errors);
        }
    }
}
