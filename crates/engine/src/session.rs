//! One visit: the open targets, then prepare, run, settle. It knows when the last close must be the last.
#![allow(unsafe_code, reason = "close(2) by number, to see its answer")]

use crate::EngineError;
use crate::clock::now_ns;
use crate::controller::{SyncTarget, run_streams};
use crate::counters::window_width_ns;
use crate::engine_choice::{self, EngineChoice};
use crate::job::{Control, Job, Pinning, Prepared, Run, Session, Settled};
use crate::real::{RealEngine, stream_spec};
use crate::start_barrier::StartBarrier;
use crate::stream::RunConfig;
use crate::{prepare, thread_pool};
use rdsk_model::{EngineKind, IoPath, Issuing, Op, PageCacheState, Sync, TargetKind};
use rdsk_targets::{Access, Claim, OpenMode};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

/// A target of a visit.
#[derive(Debug)]
pub(crate) struct OpenTarget<'a> {
    /// Index of the target, as in the Record.
    pub(crate) index: u32,
    pub(crate) claim: &'a Claim,
    /// `None` once it is closed.
    pub(crate) fd: Option<OwnedFd>,
}

impl OpenTarget<'_> {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("closed only by settle, which ends the session").as_fd()
    }
}

/// A session of the real engines.
#[derive(Debug)]
pub(crate) struct RealSession<'a> {
    engine: RealEngine,
    choice: EngineChoice,
    job: Job<'a>,
    targets: Vec<OpenTarget<'a>>,
    prepared: Prepared,
    /// The clock at the first submission.
    begin_ns: Option<u64>,
}

impl<'a> RealSession<'a> {
    pub(crate) fn new(
        engine: RealEngine,
        choice: EngineChoice,
        job: &Job<'a>,
        targets: Vec<OpenTarget<'a>>,
    ) -> Self {
        Self { engine, choice, job: job.clone(), targets, prepared: Prepared::default(), begin_ns: None }
    }

    /// The page cache over the span now, summed over targets; unknown when it is unknown for one of them.
    fn page_cache(&self) -> PageCacheState {
        prepare::page_cache(self.job.workload, self.targets.iter().map(OpenTarget::fd))
    }

    /// What is to be said of the engine that really issued the I/O.
    fn notes(&self, engine: EngineKind) -> Vec<String> {
        match engine {
            EngineKind::Uring => {
                let slow = self.targets.iter().filter(|target| target.claim.target.nowait == Some(false));
                slow.map(|target| {
                    format!(
                        "{} takes no requests without waiting (RWF_NOWAIT): the kernel issues them on worker threads, \
                         which costs processor time and order",
                        target.claim.target.name
                    )
                })
                .collect()
            }
            EngineKind::Threads => engine_choice::fewer_threads(self.job.workload).into_iter().collect(),
            EngineKind::Sync | EngineKind::Aio | EngineKind::Sim => Vec::new(),
        }
    }
}

impl Session for RealSession<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        self.prepared = prepare::prepare(self.job.workload, &self.targets, &self.job.stop)?;
        Ok(self.prepared)
    }

    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError> {
        let job = &self.job;
        let workload = job.workload;
        let targets: Vec<_> =
            self.targets.iter().map(|target| (target.index, target.claim, target.fd())).collect();
        let specs: Vec<_> = (0..workload.streams)
            .map(|stream| stream_spec(job, stream, &targets))
            .collect::<Result<_, _>>()?;
        let sync_targets: Vec<_> = match workload.sync {
            Sync::FsyncAtEnd => targets.iter().map(|&(target, _, fd)| SyncTarget { target, fd }).collect(),
            Sync::None | Sync::Dsync => Vec::new(),
        };
        let config = RunConfig {
            barrier: StartBarrier::default(),
            engine: self.choice.engine,
            path: workload.path,
            pool_threads: thread_pool::size(workload.queue_depth as usize, workload.streams as usize),
            ring_source: self.engine.ring_source,
            aio_source: self.engine.aio_source,
            contexts: self.engine.contexts.clone(),
            tuning: self.engine.tuning,
            recording: self.engine.recording,
            window_ns: window_width_ns(job.window_ns, job.limits.max_elapsed_ns),
            max_elapsed_ns: job.limits.max_elapsed_ns,
            stagger_ns: workload.stagger_ns,
        };
        let cpus: &[usize] = match &job.pinning {
            Pinning::Free => &[],
            Pinning::Cpus(cpus) => cpus,
        };
        let (mut run, begin_ns) = run_streams(&config, &specs, cpus, &sync_targets, &job.stop, control)?;
        run.page_cache = self.page_cache();
        run.check.cached_bytes = self.prepared.page_cache.cached_bytes;
        let choice = &self.choice.issuing;
        // A choice among engines that are all to be had is no fallback, and needs no note.
        if choice.trials.is_empty() {
            run.notes.extend(choice.why.clone());
        }
        run.notes.extend(self.notes(run.engine));
        run.issuing = Issuing { within_submit: run.issuing.within_submit, ..choice.clone() };
        if run.issuing.why.is_none() && run.engine != workload.engine {
            run.issuing.why = run.notes.first().cloned();
        }
        self.begin_ns = Some(begin_ns);
        Ok(run)
    }

    fn settle(mut self: Box<Self>) -> Result<Settled, EngineError> {
        for target in &mut self.targets {
            if let Some(fd) = target.fd.take() {
                close(fd).map_err(|source| flush_error("close", target.claim, source))?;
            }
        }
        let Some(begin_ns) = self.begin_ns else { return Ok(Settled::default()) };
        let to_close_ns = Some(now_ns().saturating_sub(begin_ns));
        if self.job.workload.op == Op::Read {
            return Ok(Settled { to_close_ns, to_stable_ns: None });
        }
        for target in &self.targets {
            make_stable(target.claim)?;
        }
        Ok(Settled { to_close_ns, to_stable_ns: Some(now_ns().saturating_sub(begin_ns)) })
    }
}

/// Closes, and hands on what the kernel says; a filesystem may report a failed write here.
fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned here and is given up; nothing else knows its number.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Linux has closed it all the same.
        error if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        error => Err(error),
    }
}

/// Flushes a target through a descriptor of its own, which need not be able to write. For a block device this sends the
/// flush that its last close did not.
fn make_stable(claim: &Claim) -> Result<(), EngineError> {
    let fd = claim.open(OpenMode { access: Access::Read, path: IoPath::Buffered, sync: Sync::None })?;
    let flushed = match claim.target.kind {
        TargetKind::Block => rustix::fs::fsync(&fd),
        TargetKind::File | TargetKind::Sim => rustix::fs::fdatasync(&fd),
    };
    flushed.map_err(|errno| flush_error("flush", claim, errno.into()))
}

fn flush_error(action: &'static str, claim: &Claim, source: io::Error) -> EngineError {
    EngineError::Flush { action, target: claim.target.name.clone(), source }
}
