//! The streams of a load: exact accounts on a file, and in virtual time the waiting times that queueing theory gives for known servers.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{Watcher, destroying, file_of, job, millis, reading, visit, visit_with, writing};
use rdsk_engine::{Ended, Engine as _, EngineError, JobRun, RealEngine, Run, SimEngine};
use rdsk_model::{
    Arrivals, BlockShare, EngineKind, Flush, FlushCall, IoPath, LoadJob, OffsetRule, Op, Rate, Requests,
    StreamRange, Workload,
};
use rdsk_targets::{Access, Claim, Permission, Roots, claim, examine};
use rdsk_testkit::{LoopDevice, Need, requires};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

const MS: u64 = 1_000_000;

/// A workload of these jobs over a span from 0.
fn load(jobs: Vec<LoadJob>, span_bytes: u64, engine: EngineKind) -> Workload {
    let writes = jobs.iter().any(|job| job.writes.is_some());
    Workload {
        op: if writes { Op::Write } else { Op::Read },
        block_bytes: jobs.iter().map(LoadJob::max_block_bytes).max().unwrap(),
        align_bytes: jobs.iter().map(LoadJob::min_block_bytes).min().unwrap(),
        queue_depth: jobs.iter().map(|job| job.queue_depth).max().unwrap(),
        streams: jobs.iter().map(|job| job.streams).sum(),
        path: jobs[0].path,
        engine,
        jobs,
        ..Workload::sequential_read(span_bytes)
    }
}

fn requests(bytes: u64, offsets: OffsetRule) -> Option<Requests> {
    Some(Requests::new(vec![BlockShare::fixed(bytes)], offsets))
}

/// A mix at depth 8 beside a log that flushes each append: all that was asked is in the accounts of one job or the other.
#[test]
fn the_accounts_of_all_jobs_add_up() {
    let (_directory, path) = file_of(16 << 20);
    let mix = LoadJob {
        writes: requests(8192, OffsetRule::Uniform),
        read_percent: 70,
        path: IoPath::Buffered,
        queue_depth: 8,
        streams: 2,
        max_bytes: Some(4 << 20),
        ..LoadJob::random_reads("mix", 8 << 20)
    };
    let log = LoadJob {
        reads: None,
        writes: requests(2300, OffsetRule::Sequential),
        read_percent: 0,
        path: IoPath::Buffered,
        flush: Some(Flush { every: 10, call: FlushCall::Fdatasync }),
        offset_bytes: 8 << 20,
        max_bytes: Some(230_000),
        ..LoadJob::random_reads("log", 8 << 20)
    };
    let workload = load(vec![mix, log], 16 << 20, EngineKind::Uring);
    let claims = [writing(&path)];
    let (_, run, _) = visit(&job(&workload, &claims, millis(60_000)));
    assert_eq!(run.ended, Ended::Complete, "{:?}", run.errors);
    let [mix, log] = &run.jobs[..] else { panic!("{} jobs", run.jobs.len()) };
    assert_eq!(mix.reads.bytes + mix.writes.bytes, 8 << 20, "two streams of 4 MiB");
    assert_eq!((log.writes.bytes, log.writes.histogram.count()), (230_000, 100));
    assert_eq!(log.flushes.histogram.count(), 10);
    assert_eq!(run.bytes, (8 << 20) + 230_000);
    let ops = |job: &JobRun| job.reads.histogram.count() + job.writes.histogram.count();
    assert_eq!((run.ops, run.histogram.count()), (ops(mix) + ops(log), ops(mix) + ops(log)));
    // Of 1,500 requests or so 70 % are reads: standard deviation 1.2 %.
    let share = mix.reads.histogram.count() as f64 / ops(mix) as f64;
    assert!((share - 0.7).abs() < 0.06, "{share}");
    // The log is there, block after block, and nothing lies behind it.
    let file = std::fs::read(&path).unwrap();
    let (log, rest) = file[8 << 20..].split_at(230_000);
    assert!(log.chunks(2300).all(|block| block.iter().any(|&byte| byte != 0x55)));
    assert!(rest.iter().all(|&byte| byte == 0x55));
}

/// However the requests of a rate meet the end, each that arrived before it was sent or is counted as never sent.
#[test]
fn an_open_loop_keeps_its_rate_and_counts_what_it_owes() {
    let (_directory, path) = file_of(4 << 20);
    use EngineKind::{Threads, Uring};
    for (engine, queue_depth, arrivals) in [
        (Uring, 1, Arrivals::Constant),
        (Uring, 16, Arrivals::Constant),
        (Uring, 16, Arrivals::Poisson),
        (Threads, 16, Arrivals::Constant),
    ] {
        let rate = Some(Rate { per_s: 2000.0, arrivals });
        let path_word = if queue_depth == 1 { IoPath::Buffered } else { IoPath::Direct };
        let reads = LoadJob { rate, queue_depth, path: path_word, ..LoadJob::random_reads("r", 4 << 20) };
        let workload = load(vec![reads], 4 << 20, engine);
        let claims = [reading(&path)];
        let (_, run, _) = visit(&job(&workload, &claims, millis(500)));
        if queue_depth > 1 && engine == Threads {
            assert_eq!(run.engine, Threads);
        }
        let job = &run.jobs[0];
        let due = job.lag.count() + job.unsent;
        match arrivals {
            Arrivals::Constant => assert_eq!(due, 1000, "{queue_depth}"),
            // Standard deviation 32.
            Arrivals::Poisson => assert!(due.abs_diff(1000) < 160, "{due}"),
        }
        assert_eq!(job.reads.histogram.count(), job.lag.count());
    }
}

/// What completes in the ramp is in the totals of the visit and in no figure of a job, whatever issues it.
#[test]
fn a_job_is_counted_after_its_ramp() {
    use EngineKind::{Sync, Threads, Uring};
    let (_directory, path) = file_of(4 << 20);
    let claims = [writing(&path)];
    let ramp_ns = 60 * MS;
    for (engine, queue_depth, rate) in [
        (Sync, 1, None),
        (Uring, 8, None),
        (Threads, 8, None),
        (Uring, 8, Some(4000.0)),
        (Sync, 1, Some(4000.0)),
    ] {
        let mix = LoadJob {
            writes: requests(4096, OffsetRule::Uniform),
            read_percent: 50,
            path: IoPath::Buffered,
            queue_depth,
            rate: rate.map(|per_s| Rate { per_s, arrivals: Arrivals::Constant }),
            lasts_ns: Some(90 * MS),
            ..LoadJob::random_reads("mix", 4 << 20)
        };
        let workload = load(vec![mix], 4 << 20, engine);
        let watcher = &mut Watcher { warm_up_ns: ramp_ns, ..Watcher::default() };
        let (_, run, _) =
            visit_with(RealEngine::default(), &job(&workload, &claims, millis(60_000)), watcher).unwrap();
        let (mix, warm_up) = (&run.jobs[0], run.warm_up.as_ref().unwrap());
        let counted = mix.reads.histogram.count() + mix.writes.histogram.count();
        assert_eq!((warm_up.until_ns, warm_up.ops + counted), (ramp_ns, run.ops), "{engine} {rate:?}");
        assert!(warm_up.ops > 0 && counted > 0 && run.histogram.count() == counted, "{engine} {rate:?}");
        assert_eq!(mix.reads.bytes + mix.writes.bytes + warm_up.bytes, run.bytes);
        if rate.is_none() {
            assert_eq!(run.to_return_ns, ramp_ns + mix.elapsed_ns, "{engine}");
        }
    }
}

/// What a mix writes is its own data, and never what its reads returned: a target of zeros would else be written with zeros, which some
/// devices store as nothing.
#[test]
fn a_mix_writes_nothing_that_it_has_read() {
    for (engine, queue_depth) in [(EngineKind::Sync, 1), (EngineKind::Uring, 8), (EngineKind::Threads, 8)] {
        let (_directory, path) = file_of(4 << 20);
        let mix = LoadJob {
            writes: requests(4096, OffsetRule::Once),
            reads: requests(4096, OffsetRule::Uniform),
            read_percent: 80,
            path: IoPath::Buffered,
            queue_depth,
            max_bytes: Some(8 << 20),
            ..LoadJob::random_reads("mix", 4 << 20)
        };
        let workload = load(vec![mix], 4 << 20, engine);
        let (_, run, _) = visit(&job(&workload, &[writing(&path)], millis(60_000)));
        assert_eq!((run.ended, run.engine), (Ended::Complete, engine), "{:?}", run.errors);
        let [mix] = &run.jobs[..] else { panic!("{} jobs", run.jobs.len()) };
        assert_eq!(mix.reads.bytes + mix.writes.bytes, 8 << 20);
        let file = std::fs::read(&path).unwrap();
        let unlike = |block: &&[u8]| block.iter().any(|&byte| byte != 0x55);
        let written: Vec<&[u8]> = file.chunks(4096).filter(unlike).collect();
        assert_eq!(written.len() as u64, mix.writes.histogram.count(), "each place once");
        let old = written.iter().map(|block| block.iter().filter(|&&byte| byte == 0x55).count()).max();
        // Of random bytes 16 in a block are 0x55: standard deviation 4.
        assert!(old.unwrap() < 100, "{engine}: {old:?} of 4096 bytes are as they were");
    }
}

#[test]
fn fresh_space_is_only_made_in_files_of_our_own() {
    let (_directory, path) = file_of(4 << 20);
    let before = std::fs::read(&path).unwrap();
    let log = LoadJob {
        reads: None,
        writes: requests(4096, OffsetRule::Sequential),
        read_percent: 0,
        path: IoPath::Buffered,
        fresh_space: true,
        offset_bytes: 1 << 20,
        max_bytes: Some(8192),
        ..LoadJob::random_reads("log", 1 << 20)
    };
    let workload = load(vec![log], 4 << 20, EngineKind::Sync);
    let claims = [writing(&path)];
    let (_, run, _) = visit(&job(&workload, &claims, millis(60_000)));
    assert!(run.notes.iter().any(|note| note.contains("no test file of rdsk")), "{:?}", run.notes);
    let after = std::fs::read(&path).unwrap();
    let changed: Vec<usize> = (0..after.len()).filter(|&at| after[at] != before[at]).collect();
    let inside = (1 << 20)..(1 << 20) + 8192;
    assert!(!changed.is_empty() && changed.iter().all(|at| inside.contains(at)), "only what was written");
}

#[test]
fn a_load_that_contradicts_itself_or_has_no_room_is_refused() {
    let (_directory, path) = file_of(4 << 20);
    let refused = |load_job: LoadJob| {
        let workload = load(vec![load_job], 4 << 20, EngineKind::Sync);
        let claims = [reading(&path)];
        let mut engine = rdsk_engine::RealEngine::default();
        engine.open(&job(&workload, &claims, millis(10))).err().expect("it is refused")
    };
    let no_room = refused(LoadJob { offset_bytes: 0, ..LoadJob::random_reads("r", 4095) });
    assert!(matches!(no_room, EngineError::Span { .. }), "{no_room}");
    let apart =
        LoadJob { streams: 1024, range: StreamRange::Disjoint, ..LoadJob::random_reads("r", 1 << 20) };
    assert!(matches!(refused(apart), EngineError::Span { .. }));
    let flush = Some(Flush { every: 1, call: FlushCall::Fsync });
    let reads = refused(LoadJob { flush, ..LoadJob::random_reads("r", 1 << 20) });
    assert!(reads.to_string().contains("writes nothing"), "{reads}");
    let trims = refused(trims(4 << 20, OffsetRule::Sequential, 1));
    assert!(trims.to_string().contains("only in test files of rdsk"), "{trims}");
}

/// Trims of a span, each 4 KiB; all of it once.
fn trims(span_bytes: u64, offsets: OffsetRule, queue_depth: u32) -> LoadJob {
    LoadJob {
        reads: None,
        trims: requests(4096, offsets),
        trim_percent: 100,
        read_percent: 0,
        queue_depth,
        max_bytes: Some(span_bytes),
        ..LoadJob::random_reads("trims", span_bytes)
    }
}

/// Discards and sectors discarded, and writes, as the kernel counts them for a device.
fn device_counts(device: &LoopDevice) -> [u64; 3] {
    let text = device.sysfs("stat").unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [fields[11], fields[13], fields[4]]
}

/// Each trim is one discard of the device, and takes its bytes out of the file below; one before a write leaves the file whole.
#[test]
fn trims_are_as_many_as_the_device_counts() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    const SPAN: u64 = 2 << 20;
    for queue_depth in [1, 4] {
        let device = LoopDevice::builder().size(8 << 20).create().unwrap();
        std::fs::write(device.path(), vec![0x77; 8 << 20]).unwrap();
        let claims = [destroying(device.path(), device.backing_path())];
        let allocated = || std::fs::metadata(device.backing_path()).unwrap().blocks() * 512;
        let run = |load_job: LoadJob| {
            let before = device_counts(&device);
            let workload = load(vec![load_job], 8 << 20, EngineKind::Uring);
            let (_, run, _) = visit(&job(&workload, &claims, millis(60_000)));
            assert_eq!(run.ended, Ended::Complete, "{:?}", run.errors);
            let after = device_counts(&device);
            (run, std::array::from_fn::<u64, 3, _>(|field| after[field] - before[field]))
        };
        let whole_bytes = allocated();
        let (trimmed, [discards, sectors, _]) = run(trims(SPAN, OffsetRule::Once, queue_depth));
        let job = &trimmed.jobs[0];
        assert_eq!((job.trims.histogram.count(), job.trims.bytes), (512, SPAN));
        assert_eq!((trimmed.ops, trimmed.bytes, trimmed.asked_bytes), (0, 0, 0), "nothing moved");
        assert_eq!((discards, sectors), (512, SPAN / 512), "depth {queue_depth}");
        assert_eq!(whole_bytes - allocated(), SPAN);
        let writes = LoadJob {
            trims: None,
            trim_percent: 0,
            writes: requests(4096, OffsetRule::Once),
            trims_before_writes: true,
            ..trims(SPAN, OffsetRule::Once, queue_depth)
        };
        let (written, [discards, sectors, _]) = run(writes);
        let job = &written.jobs[0];
        assert_eq!((job.trims.histogram.count(), job.writes.histogram.count()), (512, 512));
        assert_eq!((job.trims.bytes, job.writes.bytes, written.bytes), (SPAN, SPAN, SPAN));
        assert_eq!((discards, sectors), (512, SPAN / 512), "depth {queue_depth}");
        assert_eq!(allocated(), whole_bytes, "all was written again");
        let content = std::fs::read(device.path()).unwrap();
        let unlike = |block: &[u8]| block.iter().any(|&byte| byte != 0x77 && byte != 0);
        assert!(content[..2 << 20].chunks(4096).all(unlike));
        assert!(content[2 << 20..].iter().all(|&byte| byte == 0x77), "nothing else was touched");
    }
}

/// A share of trims beside reads and writes.
#[test]
fn a_mix_has_its_share_of_trims() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(8 << 20).create().unwrap();
    std::fs::write(device.path(), vec![0x77; 8 << 20]).unwrap();
    let mix = LoadJob {
        reads: requests(4096, OffsetRule::Uniform),
        writes: requests(4096, OffsetRule::Uniform),
        trims: requests(4096, OffsetRule::Uniform),
        trim_percent: 20,
        read_percent: 50,
        queue_depth: 8,
        max_bytes: Some(16 << 20),
        ..LoadJob::random_reads("mix", 8 << 20)
    };
    let workload = load(vec![mix], 8 << 20, EngineKind::Uring);
    let claims = [destroying(device.path(), device.backing_path())];
    let before = device_counts(&device);
    let (_, run, _) = visit(&job(&workload, &claims, millis(60_000)));
    let after = device_counts(&device);
    assert_eq!(run.ended, Ended::Complete, "{:?}", run.errors);
    let job = &run.jobs[0];
    let counts = [&job.reads, &job.writes, &job.trims].map(|kind| kind.histogram.count());
    assert_eq!(counts.iter().sum::<u64>(), 4096);
    assert_eq!((run.ops, run.bytes), (counts[0] + counts[1], (counts[0] + counts[1]) * 4096));
    assert_eq!(after[0] - before[0], counts[2]);
    // 20% of 4,096 requests are trims (standard deviation 26), 40% each are reads and writes (29): five of these.
    assert!(counts[2].abs_diff(819) < 130 && counts[0].abs_diff(counts[1]) < 300, "{counts:?}");
}

/// A device of so many servers that each take 1 ms for a request, behind a host that costs nothing.
fn servers(count: u32) -> (tempfile::NamedTempFile, Claim) {
    let text = format!(
        "extends = \"ssd-slc\"\n[host.cost]\ndirect_call_ns = 0\n[[luns]]\n[luns.device.ram]\ncapacity_bytes = 1073741824\n\
         read_command_ns = 1000000\nwrite_command_ns = 1000000\nread_bytes_per_s = 1e15\nwrite_bytes_per_s = 1e15\n\
         servers = {count}\n"
    );
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let roots = Roots::default();
    let name = format!("sim:{}", file.path().display());
    let claim =
        claim(examine(&name, &roots).unwrap(), Access::Write, &Permission::default(), &roots).unwrap();
    (file, claim)
}

/// A load on it for so long, in virtual time.
fn simulated(claim: Claim, jobs: Vec<LoadJob>, limit_ms: u64) -> Run {
    simulated_after(claim, jobs, limit_ms, 0)
}

/// The same with a ramp.
fn simulated_after(claim: Claim, jobs: Vec<LoadJob>, limit_ms: u64, warm_up_ns: u64) -> Run {
    let workload = load(jobs, 1 << 30, EngineKind::Sim);
    let claims = [claim];
    let mut engine = SimEngine::new(&claims, 1).unwrap();
    let mut session = engine.open(&job(&workload, &claims, millis(limit_ms))).unwrap();
    session.prepare().unwrap();
    session.run(&mut Watcher { warm_up_ns, ..Watcher::default() }).unwrap()
}

fn reads_at(per_s: f64, arrivals: Arrivals) -> LoadJob {
    let rate = Some(Rate { per_s, arrivals });
    LoadJob { rate, queue_depth: 512, ..LoadJob::random_reads("r", 1 << 30) }
}

#[test]
fn a_ramp_in_virtual_time_leaves_out_what_arrives_in_it() {
    let rate = Some(Rate { per_s: 1000.0, arrivals: Arrivals::Constant });
    let reads = LoadJob { rate, lasts_ns: Some(700 * MS), ..LoadJob::random_reads("r", 4 << 20) };
    let (_file, claim) = servers(1);
    let run = simulated_after(claim, vec![reads], 60_000, 300 * MS);
    let [job] = &run.jobs[..] else { panic!("{} jobs", run.jobs.len()) };
    let due = job.lag.count() + job.unsent;
    assert_eq!((due, job.elapsed_ns / MS, run.ops), (700, 700, 1000));
    // The one that arrives at 299 ms completes at the end of the ramp.
    assert_eq!(
        (run.warm_up.as_ref().map(|warm_up| warm_up.ops), job.reads.histogram.count()),
        (Some(299), 701)
    );
    let (width_ns, windows) = job.reads.windows();
    assert!(width_ns * windows.len() as u64 <= 750 * MS, "the time series begins behind the ramp");
    // One that ends in the ramp has no figures.
    let short = LoadJob { max_bytes: Some(100 * 4096), ..LoadJob::random_reads("r", 4 << 20) };
    let (_file, claim) = servers(1);
    let run = simulated_after(claim, vec![short], 60_000, 1000 * 1000 * MS);
    assert_eq!((run.ops, run.jobs[0].reads.histogram.count(), run.jobs[0].elapsed_ns), (100, 0, 0));
}

/// M/D/1 and D/D/1: the mean time in the system is S (1 + ρ / (2 (1 − ρ))), and S where arrivals are equally spaced (Pollaczek and
/// Khinchine).
#[test]
fn one_server_has_the_waiting_time_of_the_formula() {
    for load_share in [0.3, 0.7, 0.9] {
        let (_file, claim) = servers(1);
        let run = simulated(claim, vec![reads_at(1000.0 * load_share, Arrivals::Poisson)], 400_000);
        let expected = 1.0 + load_share / (2.0 * (1.0 - load_share));
        let mean = run.jobs[0].reads.histogram.mean().unwrap() / MS as f64;
        assert!((mean / expected - 1.0).abs() < 0.05, "{load_share}: {mean} ms, {expected} by the formula");
        assert_eq!(run.jobs[0].unsent, 0);
    }
    let (_file, claim) = servers(1);
    let run = simulated(claim, vec![reads_at(900.0, Arrivals::Constant)], 20_000);
    let latency = &run.jobs[0].reads.histogram;
    // The one at the very end is before it or not, as the gap rounds.
    assert!(latency.count().abs_diff(18_000) <= 1, "{}", latency.count());
    assert_eq!(latency.quantile(0.99).unwrap() / MS, 1);
}

/// Four servers finish four times as much, and more than they finish waits without end, which is counted.
#[test]
fn what_servers_cannot_finish_is_never_sent() {
    let (_file, claim) = servers(4);
    let run = simulated(claim, vec![reads_at(3000.0, Arrivals::Poisson)], 20_000);
    assert_eq!(run.jobs[0].unsent, 0);
    let busy_share = run.jobs[0].reads.histogram.count() as f64 / 20.0 / 4000.0;
    assert!((busy_share - 0.75).abs() < 0.02, "{busy_share}");
    let (_file, claim) = servers(4);
    let run = simulated(claim, vec![reads_at(5000.0, Arrivals::Constant)], 20_000);
    let job = &run.jobs[0];
    // 100,000 arrive, 80,000 are finished, 512 are in the queue.
    assert_eq!(job.lag.count() + job.unsent, 100_000);
    assert!(job.unsent.abs_diff(100_000 - 80_000 - 512) < 20, "{}", job.unsent);
}

/// A flush waits for the writes before it, and rests lie between requests.
#[test]
fn flushes_and_rests_take_their_time() {
    let (_file, claim) = servers(1);
    let log = LoadJob {
        reads: None,
        writes: requests(4096, OffsetRule::Sequential),
        read_percent: 0,
        flush: Some(Flush { every: 2, call: FlushCall::Fsync }),
        think_ns: 3 * MS,
        ..LoadJob::random_reads("log", 1 << 30)
    };
    let run = simulated(claim, vec![log], 4000);
    let job = &run.jobs[0];
    let writes = job.writes.histogram.count();
    assert_eq!(job.flushes.histogram.count(), writes / 2);
    // Each write takes 1 ms and rests for 3 ms, and every second one is followed by a flush, which also rests.
    assert!((650..=1000).contains(&writes), "{writes}");
}

/// Two requests of 1 ms and a rest of 3 ms, for a second of four.
#[test]
fn a_job_rests_after_several_requests_and_ends_by_the_clock() {
    let (_file, claim) = servers(1);
    let short = LoadJob {
        think_ns: 3 * MS,
        think_every: 2,
        lasts_ns: Some(1000 * MS),
        ..LoadJob::random_reads("short", 1 << 30)
    };
    let late = LoadJob { name: "late".into(), lasts_ns: None, delay_ns: 2000 * MS, ..short.clone() };
    let run = simulated(claim, vec![short, late], 4000);
    let reads: Vec<u64> = run.jobs.iter().map(|job| job.reads.histogram.count()).collect();
    assert_eq!(reads, [400, 800], "two in 5 ms, for one second and for two");
    assert_eq!(run.jobs[0].elapsed_ns, 1000 * MS);
    // 32 in flight at its end complete later, and take that time: a server of 1 ms does 1000 a second.
    let deep = LoadJob { queue_depth: 32, lasts_ns: Some(10 * MS), ..LoadJob::random_reads("deep", 1 << 30) };
    let (_file, claim) = servers(1);
    let run = simulated(claim, vec![deep], 4000);
    let (count, elapsed_ns) = (run.jobs[0].reads.histogram.count(), run.jobs[0].elapsed_ns);
    assert!(count >= 32 && elapsed_ns / MS == count, "{count} in {elapsed_ns} ns");
    let (_directory, path) = file_of(4 << 20);
    let timed =
        LoadJob { path: IoPath::Buffered, lasts_ns: Some(50 * MS), ..LoadJob::random_reads("r", 4 << 20) };
    for queue_depth in [1, 4] {
        let timed = LoadJob { queue_depth, ..timed.clone() };
        let engine = if queue_depth == 1 { EngineKind::Sync } else { EngineKind::Uring };
        let workload = load(vec![timed], 4 << 20, engine);
        let claims = [reading(&path)];
        let (_, run, _) = visit(&job(&workload, &claims, millis(600_000)));
        assert_eq!(run.ended, Ended::OutOfTime, "a minute was allowed");
        assert!(run.jobs[0].reads.histogram.count() > 0);
    }
}

/// Where all jobs are delayed, no stream starts the run at once for the others.
#[test]
fn jobs_that_are_all_delayed_begin_one_after_the_other() {
    let (_directory, path) = file_of(4 << 20);
    for (queue_depth, engine) in [(1, EngineKind::Sync), (4, EngineKind::Uring)] {
        let first = LoadJob {
            path: IoPath::Buffered,
            queue_depth,
            delay_ns: 30 * MS,
            lasts_ns: Some(50 * MS),
            ..LoadJob::random_reads("first", 4 << 20)
        };
        let second = LoadJob { name: "second".into(), delay_ns: 60 * MS, ..first.clone() };
        for jobs in [vec![first.clone()], vec![first, second]] {
            let workload = load(jobs, 4 << 20, engine);
            let claims = [reading(&path)];
            let (_, run, _) = visit(&job(&workload, &claims, millis(600_000)));
            assert!(run.jobs.iter().all(|job| job.reads.histogram.count() > 0), "{engine:?}");
            // Not when they end: a processor that others have after the last I/O leaves the end of that I/O as theirs.
            let starts_ns: Vec<u64> = run.streams.iter().map(|stream| stream.start_ns).collect();
            let delays_ns = [30 * MS, 60 * MS];
            assert!(starts_ns.iter().zip(delays_ns).all(|(start, delay)| *start >= delay), "{starts_ns:?}");
            assert!(run.elapsed_ns > starts_ns[starts_ns.len() - 1], "{} ns, {starts_ns:?}", run.elapsed_ns);
        }
    }
}
