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
use rdsk_model::{EngineKind, IoPath, Issuing, Op, Sync, Target, Workload};
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
    /// Why a job writes over blocks that were written before, where it asked for fresh space.
    pub(crate) unallocated: Option<String>,
    /// What earlier sessions of the engine learnt about emptying the cache.
    pub(crate) span_only: &'a mut SpanOnly,
    /// The clock at the first submission, and so much later as nothing was done between the last completion and the close.
    pub(crate) begin_ns: Option<u64>,
    /// The clock when the I/O was over and the close not yet begun.
    pub(crate) returned_ns: u64,
}

impl RealSession<'_> {
    /// Notes about the engine that issued the I/O.
    fn notes(&self, engine: EngineKind) -> Vec<String> {
        match engine {
            EngineKind::Uring => {
                let facts = self.targets.iter().map(|target| &target.claim.target);
                facts.filter_map(|target| of_ring(self.job.workload, target, &self.issuing)).collect()
            }
            EngineKind::Threads => fewer_threads(self.job.workload).into_iter().collect(),
            EngineKind::Sync | EngineKind::Aio | EngineKind::Sim => Vec::new(),
        }
    }
}

/// How many of the open targets are different ones: the jobs of a load have all opened the same.
const fn distinct(workload: &Workload, open: usize) -> usize {
    if workload.jobs.is_empty() { open } else { 1 }
}

/// What the user should know where a ring issues the I/O to a target. Where it only may be held to one write at a time, trials have shown
/// that it is none the slower for it.
fn of_ring(workload: &Workload, target: &Target, issuing: &Issuing) -> Option<String> {
    let is_deep_write =
        workload.op == Op::Write && workload.path == IoPath::Direct && workload.queue_depth > 1;
    let may_serialise = is_deep_write && target.may_be_written_one_at_a_time();
    let name = &target.name;
    if target.nowait == Some(false) {
        let writes = if may_serialise {
            "; of the writes of a stream to a file they do one at a time, however many are in flight"
        } else {
            ""
        };
        return Some(format!(
            "{name} does not support RWF_NOWAIT: the kernel issues its requests from worker threads, which costs processor \
             time and may reorder them{writes}"
        ));
    }
    (may_serialise && issuing.trials.is_empty()).then(|| {
        format!(
            "of the writes of a stream to {name}, io_uring may do one at a time, however many are in flight: those that cannot be \
             submitted without waiting, as on btrfs, go to worker threads, which do them one after the other"
        )
    })
}

impl Session for RealSession<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        let workload = self.job.workload;
        for (load, target) in workload.jobs.iter().zip(&self.targets) {
            if load.fresh_space {
                self.unallocated = prepare::allocate_anew(target, load)?;
            }
        }
        let targets = &self.targets[..distinct(workload, self.targets.len())];
        self.prepared = prepare::prepare(workload, targets, self.span_only, &self.job.stop)?;
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
        let returned_ns = now_ns();
        control.ended(begin_ns, &run);
        let targets = &self.targets[..distinct(workload, self.targets.len())];
        run.page_cache = prepare::page_cache(workload, targets.iter().map(OpenTarget::fd));
        run.check.cached_bytes = self.prepared.page_cache.cached_bytes;
        // A choice among available engines is not a fallback and needs no note.
        if self.issuing.trials.is_empty() {
            run.notes.extend(self.issuing.why.clone());
        }
        run.notes.extend(self.notes(run.engine));
        run.notes.extend(self.unallocated.take());
        run.issuing = Issuing { within_submit: run.issuing.within_submit, ..self.issuing.clone() };
        if run.issuing.why.is_none() && run.engine != workload.engine {
            run.issuing.why = run.notes.first().cloned();
        }
        // A look at the page cache takes tens of milliseconds where the kernel has mincore(2) only; neither it nor a wait for other ranks is part of a flush.
        self.begin_ns = Some(begin_ns + run.left_out_ns + now_ns().saturating_sub(returned_ns));
        self.returned_ns = now_ns();
        Ok(run)
    }

    fn settle(mut self: Box<Self>) -> Result<Settled, EngineError> {
        // Of several targets at once: each time is that of the slowest, as if each were closed and flushed by its own program.
        let returned_ns = self.returned_ns;
        let watchdog = self.targets.first().map(|target| target.guard.watchdog.clone()).unwrap_or_default();
        // How long something took during which this process did not run is not known.
        let is_known = |now_ns: u64| !watchdog.was_away(returned_ns, now_ns, 0);
        let closed = at_once(self.targets.iter_mut().collect(), OpenTarget::close);
        closed.into_iter().collect::<Result<(), _>>()?;
        let Some(begin_ns) = self.begin_ns else { return Ok(Settled::default()) };
        let closed_ns = now_ns();
        let to_close_ns = is_known(closed_ns).then(|| closed_ns.saturating_sub(begin_ns));
        if self.job.workload.op == Op::Read {
            let away_ns = watchdog.away_ns(returned_ns, closed_ns);
            return Ok(Settled { to_close_ns, away_ns, ..Settled::default() });
        }
        let flushed = at_once(self.targets.iter().collect(), OpenTarget::make_stable);
        let stable: Vec<OwnedFd> = flushed.into_iter().collect::<Result<_, _>>()?;
        let stable_ns = now_ns();
        let to_stable_ns = is_known(stable_ns).then(|| stable_ns.saturating_sub(begin_ns));
        let stable = &stable[..distinct(self.job.workload, stable.len())];
        let page_cache = Some(prepare::page_cache(self.job.workload, stable.iter().map(OwnedFd::as_fd)));
        let away_ns = watchdog.away_ns(returned_ns, stable_ns);
        Ok(Settled { to_close_ns, to_stable_ns, page_cache, away_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Filesystem, TargetKind, Trial};

    #[test]
    fn a_ring_that_may_write_one_at_a_time_is_noted() {
        let on = |kind: &str, nowait| Target {
            kind: TargetKind::File,
            filesystem: Some(Filesystem { kind: kind.into(), options: String::new() }),
            nowait: Some(nowait),
            ..Target::default()
        };
        let write = Workload { op: Op::Write, queue_depth: 32, ..Workload::sequential_read(1 << 30) };
        let read = Workload { op: Op::Read, ..write.clone() };
        let buffered = Workload { path: IoPath::Buffered, ..write.clone() };
        let requested = Issuing::default();
        let says = |workload: &Workload, target: &Target, issuing: &Issuing| {
            of_ring(workload, target, issuing).is_some_and(|note| note.contains("one at a time"))
        };
        assert!(says(&write, &on("btrfs", true), &requested) && says(&write, &on("fuse", false), &requested));
        for workload in [&read, &buffered, &Workload { queue_depth: 1, ..write.clone() }] {
            assert!(!says(workload, &on("btrfs", true), &requested));
        }
        assert!(!says(&write, &on("ext4", true), &requested));
        let trial = Trial {
            engine: EngineKind::Uring,
            ops: 1000,
            elapsed_ns: 4_000_000,
            cpu_ns: 1,
            within_submit: None,
        };
        let fastest = Issuing { trials: vec![trial], ..Issuing::default() };
        assert!(!says(&write, &on("btrfs", true), &fastest), "a trial has shown the opposite");
        assert!(says(&write, &on("fuse", false), &fastest), "its threads do all of it");
        assert!(of_ring(&read, &on("fuse", false), &requested).is_some());
    }
}
