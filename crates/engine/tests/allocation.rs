//! The hot loops allocate nothing: a run of many I/Os allocates no more than a run of few.
#![allow(unsafe_code, reason = "a counting allocator")]
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod common;

use common::{Watcher, file_of, job, ops, random, reading, writing};
use rdsk_engine::{Engine as _, RealEngine};
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Workload};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(workload: &Workload, path: &std::path::Path, count: u64) -> u64 {
    let claims = [writing(path)];
    let mut job = job(workload, &claims, ops(count));
    // One window for all, so that only the I/Os differ.
    job.window_ns = 60_000_000_000;
    // Opening for writing checks every process of the machine, whose number changes.
    let mut engine = RealEngine::default();
    let mut session = engine.open(&job).unwrap();
    session.prepare().unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let run = session.run(&mut Watcher { warm_up_ns: 1, ..Watcher::default() }).unwrap();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    session.settle().unwrap();
    assert_eq!(run.ops, count);
    after - before
}

// The only test of this file: another one would allocate at the same time.
#[test]
fn allocations_do_not_grow_with_the_number_of_ios() {
    let (_directory, path) = file_of(4 << 20);
    // AIO is for direct I/O, which the directory of temporary files may not have.
    let has_direct = reading(&path).target.direct_io == Some(true);
    let engines =
        [(EngineKind::Sync, 1), (EngineKind::Threads, 32), (EngineKind::Aio, 32), (EngineKind::Uring, 32)];
    for (engine, queue_depth) in engines {
        let (io_path, states) = match engine {
            EngineKind::Aio if !has_direct => continue,
            EngineKind::Aio => (IoPath::Direct, &[CacheState::Any][..]),
            _ => (IoPath::Buffered, &[CacheState::Any, CacheState::Warm][..]),
        };
        for op in [Op::Read, Op::Write] {
            for &cache in states {
                let workload = Workload { op, path: io_path, cache, ..random(4 << 20, engine, queue_depth) };
                allocations(&workload, &path, 100);
                let few = allocations(&workload, &path, 100);
                // Direct I/O takes as long as the disk does.
                let count = if io_path == IoPath::Direct { 5_000 } else { 50_000 };
                let many = allocations(&workload, &path, count);
                assert!(many <= few + 8, "{engine} {op} {cache}: {few} for 100 I/Os, {many} for {count}");
            }
        }
    }
}
