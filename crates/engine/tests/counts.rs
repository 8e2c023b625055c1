//! What was requested is what was done, by the engine's count and by the kernel's, on every engine.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{
    self, PAGE, destroying, file_of, job, millis, ops, random, reading, staggered, visit, visit_with, writing,
};
use rdsk_engine::{Ended, Job, Limits, QueueSource, RealEngine, Run};
use rdsk_model::{CacheState, EngineKind, IoPath, Op, Pattern, Sync, Workload};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{DirectIo, LoopDevice, Need, requires};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Fields 1, 3, 5, 7 and 16 of the device's stat: reads, sectors read, writes, sectors written, flushes.
fn stat(device: &LoopDevice) -> [u64; 5] {
    let text = device.sysfs("stat").unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [fields[0], fields[2], fields[4], fields[6], fields[15]]
}

#[test]
fn twenty_three_are_twenty_three() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(16 << 20).create().unwrap();
    let deep = [EngineKind::Threads, EngineKind::Aio, EngineKind::Uring];
    let engines = deep.into_iter().flat_map(|engine| [(engine, 1), (engine, 8)]);
    for (engine, depth) in std::iter::once((EngineKind::Sync, 1)).chain(engines) {
        for op in [Op::Read, Op::Write] {
            let claims = [destroying(device.path(), device.backing_path())];
            let workload = Workload { op, ..random(16 << 20, engine, depth) };
            let visited = |attempt: u32| {
                // Who looks at the device goes on for a while.
                std::thread::sleep(Duration::from_millis(50) * attempt);
                let before = stat(&device);
                let (_, run, settled) = visit(&job(&workload, &claims, ops(23)));
                let after = stat(&device);
                (run, settled, std::array::from_fn::<u64, 5, _>(|field| after[field] - before[field]))
            };
            // The flush that settles a write is an empty write request to the kernel, and counted as such, too.
            let flushes = u64::from(op == Op::Write);
            let sectors = 23 * PAGE / 512;
            let own = match op {
                Op::Read => [23, sectors, 0, 0, 0],
                Op::Write => [0, 0, 23 + flushes, sectors, flushes],
            };
            let mut attempts = 0..;
            first_right(20, || {
                let (run, settled, delta) = visited(attempts.next().expect("there are more numbers"));
                assert_eq!(
                    (run.ops, run.bytes, run.ended),
                    (23, 23 * PAGE, Ended::Complete),
                    "{engine} {op}"
                );
                assert_eq!(run.asked_bytes, 23 * PAGE);
                assert_eq!(run.engine, engine);
                assert_eq!(settled.to_stable_ns.is_some(), op == Op::Write);
                assert!(settled.to_close_ns.unwrap() >= run.to_return_ns);
                // Who looks at the device meanwhile reads it, and the kernel wakes who waits for a request before it counts that.
                same(&format!("{engine} {op} by the kernel's count"), &delta, &own)
            });
        }
    }
}

/// However late a stream begins, as on a machine that is busy, it does something if it was due in time.
#[test]
fn a_stream_that_begins_too_late_does_something() {
    if !requires(&[Need::IoUring]) {
        return;
    }
    let (_directory, path) = file_of(8 << 20);
    let claims = [reading(&path)];
    let limits = Limits { max_bytes: None, max_ops: None, max_elapsed_ns: 1 };
    let deep = [EngineKind::Threads, EngineKind::Aio, EngineKind::Uring];
    let engines = deep.into_iter().flat_map(|engine| [(engine, 1), (engine, 8)]);
    for (engine, depth) in std::iter::once((EngineKind::Sync, 1)).chain(engines) {
        let two = Workload { streams: 2, ..random(8 << 20, engine, depth) };
        let (_, run, _) = visit(&job(&two, &claims, limits));
        assert!(run.streams.iter().all(|stream| stream.ops > 0), "{engine} {depth}: {:?}", run.streams);
        assert!(
            run.ops <= 2 * u64::from(depth) && run.ended == Ended::OutOfTime,
            "{engine} {depth}: {run:?}"
        );
        // The second one is not due before the end.
        let late = Workload { stagger_ns: 1_000_000, ..two };
        let (_, run, _) = visit(&job(&late, &claims, limits));
        assert!(run.streams[1].ops == 0 && run.streams[0].ops > 0, "{engine} {depth}: {:?}", run.streams);
    }
}

/// Every engine says whether data came back or zeros, and nothing of writes.
#[test]
fn what_reads_bring_back_is_looked_at() {
    if !requires(&[Need::IoUring]) {
        return;
    }
    let (_directory, path) = file_of(8 << 20);
    let (_other, zeros) = file_of(8 << 20);
    std::fs::write(&zeros, vec![0; 8 << 20]).unwrap();
    let engines =
        [(EngineKind::Sync, 1), (EngineKind::Threads, 4), (EngineKind::Aio, 4), (EngineKind::Uring, 4)];
    for (engine, depth) in engines {
        let content = |path: &std::path::Path, op| {
            let claims = [if op == Op::Read { reading(path) } else { writing(path) }];
            let workload = Workload { op, ..random(8 << 20, engine, depth) };
            visit(&job(&workload, &claims, ops(64))).1.content
        };
        // The end of a pass stands for nothing else: it is often empty.
        let claims = [reading(&zeros)];
        let pass = Workload { pattern: Pattern::Sequential, ..random(8 << 20, engine, depth) };
        assert_eq!(visit(&job(&pass, &claims, ops(2048))).1.content, None, "{engine}");
        // Nor do the last blocks of what one stream read from the start on; of several streams each has its place.
        let timed = Limits { max_bytes: None, max_ops: None, max_elapsed_ns: 50_000_000 };
        assert_eq!(visit(&job(&pass, &claims, timed)).1.content, None, "{engine}");
        let two = Workload { streams: 2, ..pass };
        assert!(visit(&job(&two, &claims, timed)).1.content.is_some(), "{engine}");
        let data = content(&path, Op::Read).expect("it was looked at");
        assert!(data.pages > 0 && data.zero_pages == 0, "{engine}: {data:?}");
        let nothing = content(&zeros, Op::Read).expect("it was looked at");
        assert!(nothing.pages > 0 && nothing.zero_pages == nothing.pages, "{engine}: {nothing:?}");
        assert_eq!(content(&zeros, Op::Write), None, "{engine}");
        std::fs::write(&zeros, vec![0; 8 << 20]).unwrap();
    }
}

/// Offset → how often it was written, from the stamps that the writes left: bytes 8..16 of a page are the sequence number
/// of the last write, bytes 16..24 its own offset.
fn stamps(path: &std::path::Path) -> BTreeMap<u64, u64> {
    let content = std::fs::read(path).unwrap();
    let word = |page: &[u8], at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    let pages = content.chunks_exact(4096).zip((0u64..).step_by(4096));
    pages
        .filter(|(page, _)| !page.iter().all(|&byte| byte == 0x55))
        .map(|(page, offset)| {
            assert_eq!(word(page, 16), offset, "the page holds what was meant for it");
            (offset, word(page, 8))
        })
        .collect()
}

#[test]
fn all_engines_do_the_same_work() {
    if !requires(&[Need::IoUring]) {
        return;
    }
    let shapes = [
        (Pattern::Random, CacheState::Any, 1),
        (Pattern::Random, CacheState::Warm, 1),
        (Pattern::Random, CacheState::Cold, 3),
        (Pattern::Sequential, CacheState::Any, 3),
    ];
    for (pattern, cache, streams) in shapes {
        let mut seen = Vec::new();
        for (engine, queue_depth) in
            [(EngineKind::Sync, 1), (EngineKind::Threads, 16), (EngineKind::Uring, 16)]
        {
            let (_directory, path) = file_of(8 << 20);
            let claims = [writing(&path)];
            let workload = Workload {
                op: Op::Write,
                pattern,
                cache,
                path: IoPath::Buffered,
                streams,
                seed: 77,
                ..random(8 << 20, engine, queue_depth)
            };
            let (_, run, _) = visit(&job(&workload, &claims, ops(500)));
            assert_eq!((run.ops, run.bytes), (500, 500 * PAGE));
            seen.push(stamps(&path));
        }
        assert!(seen[0].len() > 400, "{} pages", seen[0].len());
        for other in &seen[1..] {
            assert!(seen[0].keys().eq(other.keys()), "{pattern} {cache}: other offsets");
        }
        // Threads number their own writes.
        if streams == 1 && cache == CacheState::Warm {
            assert_eq!(seen[0], seen[2], "the same offsets in the same order");
        }
    }
}

/// Whether this kernel counts how long threads wait for a processor.
fn counts_waits() -> bool {
    rdsk_sys::usage::thread_wait_ns().is_some()
}

/// Threads that all want the one processor wait for it, and their waits are summed over them.
#[test]
fn threads_on_one_processor_wait_for_it() {
    let (_directory, path) = file_of(4 << 20);
    std::fs::read(&path).unwrap();
    let claims = [reading(&path)];
    for (engine, streams, queue_depth) in [(EngineKind::Sync, 4, 1), (EngineKind::Threads, 1, 4)] {
        let workload = Workload {
            pattern: Pattern::Random,
            path: IoPath::Buffered,
            block_bytes: PAGE,
            align_bytes: PAGE,
            engine,
            streams,
            queue_depth,
            ..Workload::sequential_read(4 << 20)
        };
        let cpus = [rdsk_sys::affinity::allowed_cpus()[0]];
        let pinned = Job { pin_cpus: &cpus, ..job(&workload, &claims, millis(300)) };
        let (_, run, _) = visit(&pinned);
        assert_eq!(run.processor_wait_ns.is_some(), counts_waits(), "{engine}");
        // Four busy threads share one processor, so that three of them wait at any time; half of that is enough.
        if engine == EngineKind::Sync {
            assert!(run.processor_wait_ns.is_none_or(|ns| ns > run.elapsed_ns), "{run:?}");
        }
    }
}

#[test]
fn the_queue_is_no_deeper_than_requested() {
    if !requires(&[Need::Root, Need::Loop, Need::IoUring]) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).direct_io(DirectIo::On).create().unwrap();
    std::fs::write(device.path(), vec![0x77; 64 << 20]).unwrap();
    let claims = [reading(device.path())];
    for engine in [EngineKind::Uring, EngineKind::Aio] {
        let workload = random(64 << 20, engine, 32);
        // A stream that gets no processor for most of the time has little in flight.
        first_right(10, || {
            let (_, run, _) = visit(&job(&workload, &claims, millis(500)));
            assert_eq!((run.ended, run.engine), (Ended::OutOfTime, engine));
            #[expect(clippy::cast_precision_loss, reason = "a ratio of sums of nanoseconds")]
            let in_flight = run.latency_sum_ns as f64 / run.elapsed_ns as f64;
            assert!(in_flight <= 32.001, "{engine}: {in_flight} in flight");
            assert_eq!(run.processor_wait_ns.is_some(), counts_waits(), "{engine}");
            ensure(in_flight > 1.0, || format!("{engine}: {in_flight} in flight"))
        });
    }
}

#[test]
fn bytes_that_are_no_multiple_of_the_block_end_in_one_shorter_write() {
    let (_directory, path) = file_of((1 << 20) + 1000);
    for streams in [1, 2] {
        let claims = [writing(&path)];
        let workload = Workload {
            op: Op::Write,
            path: IoPath::Buffered,
            block_bytes: 65536,
            align_bytes: 65536,
            streams,
            ..Workload::sequential_read((1 << 20) + 1000)
        };
        let limits = Limits { max_bytes: Some((1 << 20) + 1000), max_ops: None, ..ops(0) };
        let (_, run, _) = visit(&job(&workload, &claims, limits));
        assert_eq!((run.ops, run.bytes, run.ended), (17, (1 << 20) + 1000, Ended::Complete));
        assert_eq!(run.streams.len(), streams as usize);
        let content = std::fs::read(&path).unwrap();
        assert!(content.chunks(4096).all(|page| page.iter().any(|&byte| byte != 0x55)), "a gap is left");
    }
}

#[test]
fn a_forbidden_ring_is_replaced_and_said() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let ring = "io_uring is forbidden here (Operation not permitted)";
    let aio = "Linux AIO is forbidden here (Operation not permitted)";
    let cases = [
        (IoPath::Buffered, QueueSource::Kernel, EngineKind::Threads, format!("{ring}: threads issue")),
        (IoPath::Direct, QueueSource::Kernel, EngineKind::Aio, format!("{ring}: Linux AIO issues")),
        (
            IoPath::Direct,
            QueueSource::Forbidden,
            EngineKind::Threads,
            format!("{ring}, and {aio}: threads issue"),
        ),
    ];
    for (io_path, aio_source, expected, said) in cases {
        if io_path == IoPath::Direct && claims[0].target.direct_io != Some(true) {
            eprintln!("SKIPPED in part: no direct I/O in the directory of temporary files");
            continue;
        }
        let workload = Workload { path: io_path, ..random(1 << 20, EngineKind::Uring, 32) };
        let ring_source = QueueSource::Forbidden;
        let engine = RealEngine { ring_source, aio_source, ..RealEngine::default() };
        let job = job(&workload, &claims, ops(100));
        let (_, run, _) = visit_with(engine, &job, &mut common::Watcher::default()).unwrap();
        assert_eq!((run.ops, run.engine), (100, expected), "{io_path}");
        let [note] = run.notes.as_slice() else { panic!("{:?}", run.notes) };
        assert!(note.starts_with(&said), "{note}");
        assert_eq!(run.issuing.why.as_ref(), Some(note));
    }
}

#[test]
fn aio_leaves_buffered_io_to_threads_and_reports_it() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, ..random(1 << 20, EngineKind::Aio, 8) };
    let (_, run, _) = visit(&job(&workload, &claims, ops(100)));
    assert_eq!((run.ops, run.engine), (100, EngineKind::Threads));
    assert!(run.notes[0].starts_with("io_submit blocks on buffered I/O"), "{:?}", run.notes);
}

#[test]
fn the_limit_of_threads_is_reported() {
    let (_directory, path) = file_of(1 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, ..random(1 << 20, EngineKind::Threads, 1200) };
    let (_, run, _) = visit(&job(&workload, &claims, ops(5000)));
    assert_eq!((run.ops, run.bytes, run.engine), (5000, 5000 * PAGE, EngineKind::Threads));
    assert!(run.notes[0].contains("at most 1024 threads"), "{:?}", run.notes);
}

#[test]
fn synchronising_at_the_end_is_in_the_time_and_not_in_the_return() {
    let (_directory, path) = file_of(8 << 20);
    let claims = [writing(&path)];
    let workload = Workload {
        op: Op::Write,
        path: IoPath::Buffered,
        sync: Sync::FsyncAtEnd,
        ..Workload::sequential_read(8 << 20)
    };
    let (_, run, settled) = visit(&job(&workload, &claims, ops(8)));
    assert!(run.elapsed_ns > run.to_return_ns, "{} and {}", run.elapsed_ns, run.to_return_ns);
    assert!(settled.to_stable_ns.unwrap() >= run.elapsed_ns);
    assert_eq!(run.page_cache.dirty_bytes.unwrap_or(0), 0, "nothing is dirty after fdatasync");
}

/// Never earlier than they should; how much later is in timing.rs.
#[test]
fn staggered_streams_start_one_after_the_other() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = staggered(50_000_000);
    let mut visits = std::iter::repeat_with(|| visit(&job(&workload, &claims, millis(200))).1).take(50);
    let is_apart = |run: &Run| {
        let mut streams = (0..).zip(&run.streams);
        let are_apart =
            streams.all(|(index, one)| one.ops > 0 && one.start_ns + 25_000_000 >= index * 50_000_000);
        are_apart && run.windows.len() >= 20
    };
    assert!(visits.any(|run| is_apart(&run)), "in one of fifty visits they start one after the other");
}

#[test]
fn a_stream_whose_turn_comes_after_the_end_issues_nothing() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = staggered(600_000_000_000);
    let began = Instant::now();
    // On a busy machine the first one may come too late, too.
    let mut visits = std::iter::repeat_with(|| visit(&job(&workload, &claims, millis(300))).1).take(5);
    let run =
        visits.find(|run| run.ops > 0).expect("in one of five visits the first stream issues something");
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}: none is waited for", began.elapsed());
    let ops: Vec<u64> = run.streams.iter().map(|stream| stream.ops).collect();
    assert_eq!(ops, [run.ops, 0, 0]);
}

#[test]
fn the_control_sees_windows_and_stops() {
    let (_directory, path) = file_of(4 << 20);
    let claims = [reading(&path)];
    let workload = Workload { path: IoPath::Buffered, ..random(4 << 20, EngineKind::Sync, 1) };
    // A stream without a processor may complete nothing in three windows, and a control without one may come at the end only.
    let mut seen = (0..10).map(|_| {
        let mut watcher = common::Watcher { stop_after: Some(3), ..common::Watcher::default() };
        let (_, run, _) =
            visit_with(RealEngine::default(), &job(&workload, &claims, millis(60_000)), &mut watcher)
                .unwrap();
        assert_eq!(run.ended, Ended::Stopped);
        (watcher.calls, watcher.bytes, run.windows.len())
    });
    // How soon is in timing.rs.
    let is_seen = |&(calls, bytes, windows): &(usize, u64, usize)| calls == 3 && windows >= 3 && bytes > 0;
    let mut last = None;
    let is_one = seen.any(|one| is_seen(last.insert(one)));
    assert!(is_one, "{last:?}");
}
