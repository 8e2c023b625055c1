//! One visit on simulated hosts: prepare, run, settle, each a sequence of the host's own calls.

use super::clock::SimClock;
use super::event_loop::{EIO, EventLoop};
use super::streams::Stream;
use crate::cache_probe::is_in_state;
use crate::counters::fit;
use crate::error::EngineError;
use crate::job::{Control, Ended, Job, Prepared, Run, Session, Settled};
use crate::job_run::JobRun;
use crate::places::{Firsts, Places, largest};
use crate::work::{StreamEnd, ended, since};
use rdsk_disk::{Call, Done, LunId, Operation, Route, Stability};
use rdsk_model::{CacheState, Clock as _, ColdCheck, CpuTime, EngineKind, IoError, Op, PageCacheState, Sync};
use std::sync::Arc;

/// Streams of one open that the hosts' read-ahead can distinguish.
const STREAMS_PER_OPEN: usize = 1 << 16;

/// A session of the simulated engine.
#[derive(Debug)]
pub(super) struct SimSession<'a> {
    pub(super) clock: SimClock,
    pub(super) job: Job<'a>,
    /// Index in the Record and LUN of each used target.
    pub(super) luns: Vec<(u32, LunId)>,
    /// Where first accesses to each are noted, if the visit can make any.
    pub(super) places: Vec<Option<Arc<Places>>>,
    pub(super) page_bytes: u64,
    /// Number of this open among those of the engine.
    pub(super) open: usize,
    pub(super) cached_before: PageCacheState,
    pub(super) begin_ns: Option<u64>,
}

impl<'a> SimSession<'a> {
    fn page_cache(&self) -> PageCacheState {
        let (lab, workload) = (self.clock.lab.lock(), self.job.workload);
        let mut sum = (0, 0);
        for (_, lun) in &self.luns {
            let host = lab.host(lun.host);
            sum.0 += host.cached_bytes(lun.lun, workload.offset_bytes, workload.span_bytes);
            sum.1 += host.dirty_bytes(lun.lun);
        }
        PageCacheState { cached_bytes: Some(sum.0), dirty_bytes: Some(sum.1) }
    }

    /// Makes a call that belongs to no stream, and waits for it.
    fn call(&self, lun: LunId, operation: Operation) -> Done {
        let call = Call {
            operation,
            route: Route::Buffered,
            stability: Stability::Any,
            lun: lun.lun,
            offset_bytes: 0,
            bytes: 0,
            stream: 0,
        };
        self.clock.lab.lock().run(lun.host, call).expect("sync and close are never refused")
    }

    /// Synchronises every target at the end of the I/O; returns the errors.
    fn synchronise(&self) -> Vec<IoError> {
        let failed = |(target, lun): &(u32, LunId)| {
            let fault = self.call(*lun, Operation::Sync).outcome.err()?;
            let message = format!("fdatasync: {fault}");
            Some(IoError { target: *target, stream: None, offset_bytes: 0, errno: EIO, message })
        };
        self.luns.iter().filter_map(failed).collect()
    }

    /// Makes a call on a target after which no written data may be missing.
    fn flush(
        &self,
        action: &'static str,
        operation: Operation,
        target: u32,
        lun: LunId,
    ) -> Result<(), EngineError> {
        if self.call(lun, operation).outcome.is_ok() {
            return Ok(());
        }
        let claim = self.job.claims.get(target as usize);
        let target = claim.map_or_else(String::new, |claim| claim.target.name.clone());
        Err(EngineError::Flush { action, target, source: std::io::Error::from_raw_os_error(EIO) })
    }
}

/// What each job of a load did after the ramp: its streams together, for a visit that began and ended at these times of the lab, and was to
/// end at the last.
fn jobs_of(
    streams: &mut [Stream<'_>],
    ramp_ns: u64,
    begin_ns: u64,
    end_ns: u64,
    deadline_ns: u64,
) -> Vec<JobRun> {
    let mut jobs: Vec<JobRun> = Vec::new();
    for load in streams.iter_mut().filter_map(|stream| stream.load.as_mut()) {
        if jobs.len() <= load.job_index {
            jobs.resize_with(load.job_index + 1, JobRun::default);
        }
        let job_index = load.job_index;
        let run = load.finish(begin_ns + load.job.delay_ns, ramp_ns, end_ns, deadline_ns);
        jobs[job_index].add(run);
    }
    jobs
}

impl Session for SimSession<'_> {
    fn prepare(&mut self) -> Result<Prepared, EngineError> {
        let workload = self.job.workload;
        let mut reached = None;
        for &(target, lun) in &self.luns {
            if workload.cache == CacheState::Any {
                continue;
            }
            self.flush("flush", Operation::Sync, target, lun)?;
            let mut lab = self.clock.lab.lock();
            let host = lab.host_mut(lun.host);
            let (begin, len) = (workload.offset_bytes, workload.span_bytes);
            match workload.cache {
                CacheState::Warm => host.fill_cache(lun.lun, begin, len),
                CacheState::Cold | CacheState::Any => host.drop_cache(lun.lun, begin, len),
            }
            let this = is_in_state(workload.cache, host.cached_bytes(lun.lun, begin, len), len);
            reached = Some(reached.unwrap_or(true) && this);
        }
        self.cached_before = self.page_cache();
        Ok(Prepared { page_cache: self.cached_before, reached })
    }

    fn run(&mut self, control: &mut dyn Control) -> Result<Run, EngineError> {
        let new_stream = |index| Stream::new(&self.job, index, &self.luns, &self.places, self.page_bytes);
        let streams: Vec<_> = (0..self.job.workload.streams).map(new_stream).collect::<Result<_, _>>()?;
        let (true_begin_ns, cpu_before_ns) = {
            let lab = self.clock.lab.lock();
            (lab.now_ns(), lab.cpu_ns())
        };
        let first_reader = self.open * STREAMS_PER_OPEN;
        let mut events = EventLoop::new(&self.clock, &self.job, first_reader, true_begin_ns, streams);
        let halted = events.run(control);
        let EventLoop { mut streams, mut totals, .. } = events;
        let begin_ns = self.clock.reading_ns(true_begin_ns);
        self.begin_ns = Some(begin_ns);
        let last_ns =
            streams.iter().filter(|stream| stream.asked_bytes > 0).map(|stream| stream.result.end_ns).max();
        let end_ns = self.clock.lab.lock().now_ns();
        let deadline_ns = true_begin_ns.saturating_add(self.job.limits.max_elapsed_ns);
        let jobs = jobs_of(&mut streams, totals.ramp_ns(), true_begin_ns, end_ns, deadline_ns);
        // A rate goes on until its end, whether or not anything arrives.
        let offered_ns = jobs.iter().map(|job| job.over_ns.saturating_sub(true_begin_ns)).max().unwrap_or(0);
        let to_return_ns = (last_ns.unwrap_or(begin_ns) - begin_ns).max(offered_ns);
        let mut errors: Vec<IoError> = streams.iter().filter_map(|stream| stream.error.clone()).collect();
        let ends = streams.iter().map(|stream| stream.ended.unwrap_or(StreamEnd::Complete));
        let ended = ended(&ends, halted);
        let mut elapsed_ns = to_return_ns;
        if self.job.workload.sync == Sync::FsyncAtEnd && ended != Ended::Failed {
            errors.extend(self.synchronise());
            elapsed_ns = self.clock.now_ns() - begin_ns;
        }
        fit(&mut totals.windows, totals.width_ns, to_return_ns);
        let cpu_ns = self.clock.lab.lock().cpu_ns() - cpu_before_ns;
        let mut run = Run {
            elapsed_ns,
            to_return_ns,
            asked_bytes: streams.iter().map(|stream| stream.asked_bytes).sum(),
            bytes: streams.iter().map(|stream| stream.result.bytes).sum(),
            ops: streams.iter().map(|stream| stream.result.ops).sum(),
            histogram: totals.histogram,
            warm_up: totals.warm_up,
            latency_sum_ns: totals.latency_sum_ns,
            windows: totals.windows,
            window_ns: totals.width_ns,
            positions: self.job.workload.points.is_some().then_some(totals.positions),
            jobs,
            streams: streams.into_iter().map(|stream| since(begin_ns, stream.until_over())).collect(),
            errors,
            cpu: CpuTime { user: 0, system: cpu_ns },
            page_cache: self.page_cache(),
            check: ColdCheck {
                cached_bytes: self.cached_before.cached_bytes,
                ranges_checked: totals.cache_probe.checked,
                ranges_wrong: totals.cache_probe.wrong,
            },
            ..Run::without_io(ended, EngineKind::Sim)
        };
        run.first = Firsts::of_visit(
            std::iter::once(&totals.firsts),
            &run,
            largest(self.places.iter().flatten().map(Arc::as_ref)),
        );
        Ok(run)
    }

    fn settle(self: Box<Self>) -> Result<Settled, EngineError> {
        for &(target, lun) in &self.luns {
            self.flush("close", Operation::Close, target, lun)?;
        }
        let Some(begin_ns) = self.begin_ns else { return Ok(Settled::default()) };
        let to_close_ns = Some(self.clock.now_ns() - begin_ns);
        if self.job.workload.op == Op::Read {
            return Ok(Settled { to_close_ns, ..Settled::default() });
        }
        for &(target, lun) in &self.luns {
            self.flush("flush", Operation::Sync, target, lun)?;
        }
        let to_stable_ns = Some(self.clock.now_ns() - begin_ns);
        Ok(Settled { to_close_ns, to_stable_ns, page_cache: Some(self.page_cache()), away_ns: 0 })
    }
}
