//! Cold is cold and warm is warm, as the kernel reports it; and on a block device the last close flushes.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{PAGE, destroying, file_of, job, ops, random, reading, visit};
use rdsk_engine::CacheCheck;
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Workload};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, requires};

const SPAN: u64 = 4 << 20;

fn buffered(cache: CacheState, engine: EngineKind, queue_depth: u32) -> Workload {
    Workload { path: IoPath::Buffered, cache, ..random(SPAN, engine, queue_depth) }
}

/// A kernel that reclaims cold pages on its own (DAMON's pageout, every few seconds) may reclaim some of these at once; so
/// some attempts may leave fewer pages than I/Os, but none may leave more.
#[test]
fn cold_is_cold_and_every_range_was_checked() {
    const ATTEMPTS: usize = 4;
    if !requires(&[Need::Cachestat, Need::IoUring]) {
        return;
    }
    let (_directory, path) = file_of(SPAN);
    let claims = [reading(&path)];
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Threads, 4), (EngineKind::Uring, 4)] {
        let left = std::iter::repeat_with(|| {
            std::fs::read(&path).unwrap();
            let workload = buffered(CacheState::Cold, engine, queue_depth);
            let mut job = job(&workload, &claims, ops(1000));
            job.cache_check = CacheCheck::EachRange;
            let (prepared, run, _) = visit(&job);
            assert_eq!((prepared.reached, prepared.page_cache.cached_bytes), (Some(true), Some(0)));
            assert_eq!((run.check.ranges_checked, run.check.ranges_wrong), (1000, 0), "{engine}");
            let left = run.page_cache.cached_bytes.unwrap();
            assert!(left <= 1000 * PAGE, "{engine}: no I/O brought in more than its own page: {left}");
            left
        });
        let left: Vec<u64> = left.take(ATTEMPTS).collect();
        assert!(left.contains(&(1000 * PAGE)), "{engine}: each I/O brought in its own page: {left:?}");
    }
}

/// A page that a program has mapped stays, and then the rest of a file that we did not make is not dropped for it.
#[test]
fn what_others_have_cached_beyond_the_span_stays() {
    const PART: u64 = 1 << 20;
    if !requires(&[Need::Cachestat]) {
        return;
    }
    let (_directory, path) = file_of(SPAN);
    let claims = [reading(&path)];
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mapped = rdsk_sys::memory::SharedWords::new(&file, 512).unwrap();
    let workload =
        Workload { path: IoPath::Buffered, cache: CacheState::Cold, ..random(PART, EngineKind::Sync, 1) };
    let seen = std::iter::repeat_with(|| {
        std::fs::read(&path).unwrap();
        assert_eq!(mapped[0].load(std::sync::atomic::Ordering::Relaxed), 0x5555_5555_5555_5555);
        let (prepared, _, _) = visit(&job(&workload, &claims, ops(1)));
        let beyond = rdsk_sys::cache::cachestat(&file, SPAN / 2, 0).unwrap().cached_bytes();
        (prepared.reached, beyond)
    });
    let seen: Vec<_> = seen.take(4).collect();
    // The kernel may take pages back by itself, but not all of them in each of a few attempts.
    assert!(seen.iter().any(|&(reached, beyond)| reached == Some(false) && beyond > 0), "{seen:?}");
}

#[test]
fn a_device_is_made_cold_too() {
    if !requires(&[Need::Root, Need::Loop, Need::Cachestat]) {
        return;
    }
    let device = LoopDevice::builder().size(SPAN).create().unwrap();
    let claims = [reading(device.path())];
    let _held_open = std::fs::File::open(device.path()).unwrap();
    std::fs::read(device.path()).unwrap();
    let workload = buffered(CacheState::Cold, EngineKind::Sync, 1);
    // Who looks at the device meanwhile brings pages in, and the kernel may take some back.
    let left = std::iter::repeat_with(|| {
        let (prepared, run, _) = visit(&job(&workload, &claims, ops(100)));
        (prepared.reached, prepared.page_cache.cached_bytes, run.page_cache.cached_bytes)
    });
    let left: Vec<_> = left.take(4).collect();
    assert!(left.contains(&(Some(true), Some(0), Some(100 * PAGE))), "{left:?}");
}

#[test]
fn warm_is_warm() {
    if !requires(&[Need::Cachestat]) {
        return;
    }
    let (_directory, path) = file_of(SPAN);
    let claims = [reading(&path)];
    let workload = buffered(CacheState::Warm, EngineKind::Sync, 1);
    let file = std::fs::File::open(&path).unwrap();
    // The kernel may take pages back by itself, but not in each of a few attempts.
    let seen = std::iter::repeat_with(|| {
        rdsk_sys::cache::drop_cached(&file, 0, 0).unwrap();
        let mut job = job(&workload, &claims, ops(3000));
        job.cache_check = CacheCheck::EachRange;
        let (prepared, run, _) = visit(&job);
        assert_eq!(run.check.ranges_checked, 3000);
        (prepared.reached, prepared.page_cache.cached_bytes, run.check.ranges_wrong)
    });
    let seen: Vec<_> = seen.take(4).collect();
    assert!(seen.contains(&(Some(true), Some(SPAN), 0)), "{seen:?}");
}

#[test]
fn an_unspecified_cache_state_is_only_checked() {
    let (_directory, path) = file_of(SPAN);
    let claims = [reading(&path)];
    let workload = buffered(CacheState::Any, EngineKind::Sync, 1);
    let (prepared, _, _) = visit(&job(&workload, &claims, ops(1)));
    assert_eq!(prepared.reached, None);
}

/// A loop device's flush writes the backing file back, which takes as long as the disk below takes; so that disk is one
/// that logs when it served what.
#[test]
fn the_close_of_a_block_device_is_the_last_and_flushes() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse, Need::IoUring]) {
        return;
    }
    const WRITE_NS: u64 = 4_000_000;
    const FLUSH_NS: u64 = 100_000_000;
    let behaviour = Behaviour { flush_ns: FLUSH_NS, ..Behaviour::single(WRITE_NS) };
    let disk = FuseDisk::builder().capacity(32 << 20).device(behaviour).mount().unwrap();
    let device = disk.loop_device().unwrap();
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Uring, 8)] {
        let claims = [destroying(device.path(), device.backing_path())];
        let workload = Workload {
            op: Op::Write,
            path: IoPath::Buffered,
            engine,
            queue_depth,
            ..Workload::sequential_read(32 << 20)
        };
        // Where another program has the device open at that moment, the close is not the last, and the kernel may write a part before.
        first_right(10, || {
            disk.clear_log();
            let (_, run, settled) = visit(&job(&workload, &claims, ops(32)));
            assert_eq!(run.bytes, 32 << 20);
            let counts = disk.counts();
            assert_eq!((counts.write_bytes, counts.errors), (32 << 20, 0), "{engine}: written once");
            let (close_ns, stable_ns) = (settled.to_close_ns.unwrap(), settled.to_stable_ns.unwrap());
            assert!(
                stable_ns - close_ns >= FLUSH_NS,
                "{engine}: the device's own flush comes after the close: {close_ns} ns, {stable_ns} ns"
            );
            let log = disk.log();
            let last =
                |op| log.iter().filter(|served| served.op == op).map(|served| served.answered_ns).max();
            assert!(
                last(rdsk_disk::Op::Write) < last(rdsk_disk::Op::Flush),
                "{engine}: and is the last that the disk sees"
            );
            let is_dirty = run.page_cache.dirty_bytes.is_none_or(|dirty| dirty > 0);
            ensure(is_dirty, || format!("{engine}: {:?}", run.page_cache))?;
            ensure(close_ns >= counts.writes * WRITE_NS, || {
                format!("{engine}: the close did not wait for every write, {counts:?}: {close_ns} ns")
            })
        });
    }
}
