//! What the tests of the engine share: claims on files and loop devices, and a visit from open to settle.
#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use rdsk_engine::{
    CacheCheck, Control, Engine as _, EngineError, Flow, Job, Limits, Prepared, Progress, RealEngine, Run,
    Settled,
};
use rdsk_model::{EngineKind, IoPath, Pattern, StopFlag, Workload};
use rdsk_targets::{Access, Claim, Overwrite, Permission, Roots, TargetError, claim, examine};
use rdsk_testkit::{BlkioThrottle, LoopDevice};
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

pub(crate) const PAGE: u64 = 4096;

/// A claim that may read.
pub(crate) fn reading(path: &Path) -> Claim {
    claimed(path, Access::Read, &Permission::default())
}

/// A claim that may write a file of the test's own.
pub(crate) fn writing(path: &Path) -> Claim {
    claimed(
        path,
        Access::Write,
        &Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() },
    )
}

/// A claim that may write a loop device of the test's own, which its backing file identifies.
pub(crate) fn destroying(path: &Path, backing: &Path) -> Claim {
    let destroy = Some(backing.to_str().unwrap().to_owned());
    claimed(
        path,
        Access::Write,
        &Permission { destroy, overwrite: Overwrite::Refused, ..Permission::default() },
    )
}

/// A program that another test starts keeps our descriptors for a moment before it executes, and so holds what was just closed.
fn claimed(path: &Path, access: Access, permission: &Permission) -> Claim {
    let roots = Roots::default();
    for _ in 0..3000 {
        match claim(examine(path.to_str().unwrap(), &roots).unwrap(), access, permission, &roots) {
            Err(TargetError::Refused(refusal)) if refusal.code == "in-use" => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other.unwrap(),
        }
    }
    panic!("{} stays in use", path.display());
}

/// A fully written file in a temporary directory.
pub(crate) fn file_of(bytes: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("target");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut left = bytes;
    while left > 0 {
        let chunk = left.min(1 << 20);
        file.write_all(&vec![0x55; usize::try_from(chunk).unwrap()]).unwrap();
        left -= chunk;
    }
    file.sync_all().unwrap();
    (directory, path)
}

/// Random 4 KiB I/O over a span from 0, direct.
pub(crate) fn random(span_bytes: u64, engine: EngineKind, queue_depth: u32) -> Workload {
    Workload {
        pattern: Pattern::Random,
        block_bytes: PAGE,
        align_bytes: PAGE,
        engine,
        queue_depth,
        ..Workload::sequential_read(span_bytes)
    }
}

/// Three streams of buffered reads that start one after the other, so far apart.
pub(crate) fn staggered(stagger_ns: u64) -> Workload {
    let path = IoPath::Buffered;
    Workload { path, streams: 3, stagger_ns, ..random(4 << 20, EngineKind::Sync, 1) }
}

/// Limits in I/Os, with ten minutes as a net.
pub(crate) fn ops(count: u64) -> Limits {
    Limits { max_bytes: None, max_ops: Some(count), max_elapsed_ns: 600_000_000_000 }
}

/// Limits in time.
pub(crate) fn millis(count: u64) -> Limits {
    Limits { max_bytes: None, max_ops: None, max_elapsed_ns: count * 1_000_000 }
}

pub(crate) fn job<'a>(workload: &'a Workload, claims: &'a [Claim], limits: Limits) -> Job<'a> {
    Job {
        begin_bytes: 0,
        first_position: 0,
        workload,
        claims,
        limits,
        visit: 0,
        cache_check: CacheCheck::Span,
        window_ns: 10_000_000,
        pin_cpus: &[],
        stop: StopFlag::new(),
    }
}

/// Lets a visit run, and keeps what it was shown.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    pub(crate) calls: usize,
    /// Bytes that were complete at the last call.
    pub(crate) bytes: u64,
    pub(crate) stop_after: Option<usize>,
    pub(crate) warm_up_ns: u64,
}

impl Control for Watcher {
    fn window(&mut self, progress: &Progress) -> Flow {
        self.calls += 1;
        assert!(progress.bytes >= self.bytes);
        self.bytes = progress.bytes;
        if self.stop_after.is_some_and(|calls| self.calls >= calls) { Flow::Stop } else { Flow::Continue }
    }

    fn warm_up_ns(&self) -> u64 {
        self.warm_up_ns
    }
}

/// A whole visit.
pub(crate) fn visit(job: &Job<'_>) -> (Prepared, Run, Settled) {
    visit_with(RealEngine::default(), job, &mut Watcher::default()).unwrap()
}

pub(crate) fn visit_with(
    mut engine: RealEngine,
    job: &Job<'_>,
    control: &mut dyn Control,
) -> Result<(Prepared, Run, Settled), EngineError> {
    let began = Instant::now();
    let mut session = loop {
        match engine.open(job) {
            Err(error) if is_in_use(&error) && began.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(100));
            }
            opened => break opened?,
        }
    };
    let prepared = session.prepare()?;
    let run = session.run(control)?;
    let settled = session.settle()?;
    assert_sound(&run);
    Ok((prepared, run, settled))
}

/// Whether a program uses the target, as a program that another test starts does, which has our descriptors until it executes.
fn is_in_use(error: &EngineError) -> bool {
    matches!(error, EngineError::Target(TargetError::Refused(refusal)) if refusal.code == "in-use")
}

/// What must hold of every Run.
fn assert_sound(run: &Run) {
    assert_eq!(run.windows.iter().sum::<u64>(), run.bytes, "windows add up");
    assert_eq!(run.windows.len() as u64, run.to_return_ns.div_ceil(run.window_ns), "they cover the time");
    assert_eq!(run.streams.iter().map(|stream| stream.bytes).sum::<u64>(), run.bytes, "streams add up");
    let early = run.warm_up.as_ref().map_or(0, |warm_up| warm_up.ops);
    assert_eq!(run.histogram.count() + early, run.ops, "every latency is recorded");
    if let Some(warm_up) = &run.warm_up {
        assert_eq!(warm_up.histogram.count(), warm_up.ops);
    }
    assert!(run.asked_bytes >= run.bytes);
    assert!(run.elapsed_ns >= run.to_return_ns);
    // A stream whose turn never came ends when that is known.
    let mut that_ran = run.streams.iter().filter(|stream| stream.ops > 0);
    assert!(that_ran.all(|stream| stream.end_ns <= run.to_return_ns));
}

/// Says when the first I/O is complete.
struct FirstIo(Option<Sender<()>>);

impl Control for FirstIo {
    fn window(&mut self, progress: &Progress) -> Flow {
        if progress.ops > 0
            && let Some(said) = self.0.take()
        {
            // None listens any more where the flag is raised without it.
            let _ = said.send(());
        }
        Flow::Continue
    }
}

/// A visit of random reads within a limit of 16 per second, stopped by the flag 600 ms after the first of them; and how long it went
/// on then.
pub(crate) fn stopped_in_a_throttled_wait(engine: EngineKind, queue_depth: u32) -> (Run, Duration) {
    let device = LoopDevice::builder().size(16 << 20).create().unwrap();
    let limits = rdsk_testkit::Limits { read_iops: Some(16), ..rdsk_testkit::Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let claims = [reading(device.path())];
    let workload = random(16 << 20, engine, queue_depth);
    let job = job(&workload, &claims, millis(600_000));
    let inside = throttle.enter_current_thread().unwrap();
    let stop = job.stop.clone();
    let (said, first) = channel();
    let raiser = std::thread::spawn(move || {
        // A busy machine may be late with it; without any the visit ends all the same.
        let _ = first.recv_timeout(Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(600));
        stop.raise();
        Instant::now()
    });
    let (_, run, _) = visit_with(RealEngine::default(), &job, &mut FirstIo(Some(said))).unwrap();
    drop(inside);
    (run, raiser.join().unwrap().elapsed())
}
