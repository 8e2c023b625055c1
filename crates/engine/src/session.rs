//! One visit of the real engine: prepare the open targets, run, settle. It closes every target before it flushes.

use crate::at_once::at_once;
use crate::clock::now_ns;
use crate::controller::run_streams;
use crate::engine_choice::fewer_threads;
use crate::error::EngineError;
use crate::job::{Control, Job, Prepared, Run, Session, Settled};
use crate::open_target::OpenTarget;
use crate::prepare::{self, SpanOnly};
use crate::stream::RunConfig;
use crate::stream_spec::StreamSpec;
use rdsk_model::{EngineKind, Issuing, Op, Sync};
use std::os::fd::{AsFd as _, OwnedFd};

/// A session of the real engine.
#[derive(Debug)]
pub(crate) struct RealSession<'a> {
    pub(crate) config: RunConfig,
    /// How the engine of `config` was chosen.
    pub(crate) issuing: Issuing,
    pub(crate) job: Job<'a>,
    pub(crate) targets: Vec<OpenTarget<'a>>,
    pub(crate) prepared: Prepared,
    /// What earlier sessions of the engine learnt about emptying the cache.
    pub(crate) span_only: &'a mut SpanOnly,
    /// The clock at the first submission.
    pub(crate) begin_ns: Option<u64>,
}

impl RealSession<'_> {
    /// Notes about the engine that issued the I/O.
    fn notes(&self, engine: EngineKind) -> Vec<String> {
        match engine {
            EngineKind::Uring => {
                let slow = self.targets.iter().filter(|target| target.claim.target.nowait == Some(false));
                slow.map(|target| {
                    format!(
                        "{} does not support RWF_NOWAIT: the kernel issues its requests from worker threads, which costs \
                         processor time and may reorder them",
                        target.claim.target.name
                    )
                })
                .collect()
            }
            EngineKind::Threads => fewer_threads(self.job.workload).into_iter().collect(),
            EngineKind::Sync | EngineKind::Aio | EngineKind::Sim => Vec::new(),
        }
    }
}

impl Session for RealSession<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        self.prepared = prepare::prepare(self.job.workload, &self.targets, self.span_only, &self.job.stop)?;
        Ok(self.prepared)
    }

    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError> {
        let job = &self.job;
        let workload = job.workload;
        let specs: Vec<_> = (0..workload.streams)
            .map(|stream| StreamSpec::new(job, stream, &self.targets))
            .collect::<Result<_, _>>()?;
        let sync_targets = match workload.sync {
            Sync::FsyncAtEnd => &self.targets[..],
            Sync::None | Sync::Dsync => &[],
        };
        let (mut run, begin_ns) =
            run_streams(&self.config, &specs, job.pin_cpus, sync_targets, &job.stop, control)?;
        run.page_cache = prepare::page_cache(workload, self.targets.iter().map(OpenTarget::fd));
        run.check.cached_bytes = self.prepared.page_cache.cached_bytes;
        // A choice among available engines is not a fallback and needs no note.
        if self.issuing.trials.is_empty() {
            run.notes.extend(self.issuing.why.clone());
        }
        run.notes.extend(self.notes(run.engine));
        run.issuing = Issuing { within_submit: run.issuing.within_submit, ..self.issuing.clone() };
        if run.issuing.why.is_none() && run.engine != workload.engine {
            run.issuing.why = run.notes.first().cloned();
        }
        self.begin_ns = Some(begin_ns);
        Ok(run)
    }

    fn settle(mut self: Box<Self>) -> Result<Settled, EngineError> {
        // Of several targets at once: each time is that of the slowest, as if each were closed and flushed by its own program.
        let closed = at_once(self.targets.iter_mut().collect(), OpenTarget::close);
        closed.into_iter().collect::<Result<(), _>>()?;
        let Some(begin_ns) = self.begin_ns else { return Ok(Settled::default()) };
        let to_close_ns = Some(now_ns().saturating_sub(begin_ns));
        if self.job.workload.op == Op::Read {
            return Ok(Settled { to_close_ns, ..Settled::default() });
        }
        let flushed = at_once(self.targets.iter().collect(), OpenTarget::make_stable);
        let stable: Vec<OwnedFd> = flushed.into_iter().collect::<Result<_, _>>()?;
        let to_stable_ns = Some(now_ns().saturating_sub(begin_ns));
        let page_cache = Some(prepare::page_cache(self.job.workload, stable.iter().map(OwnedFd::as_fd)));
        Ok(Settled { to_close_ns, to_stable_ns, page_cache })
    }
}
