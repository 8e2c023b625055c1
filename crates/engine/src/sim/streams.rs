//! One stream of a simulated visit: what it still has to do and what it did. It makes no call itself.

use crate::error::EngineError;
use crate::job::Job;
use crate::job_run::JobRun;
use crate::load::{FlushCounter, Request, RequestSource};
use crate::offsets::{OffsetSource as _, Offsets, placement_of};
use crate::places::Places;
use crate::positions::{Position, PositionSource};
use crate::stream_spec::{LoadSpec, Quota};
use crate::work::StreamEnd;
use rdsk_disk::LunId;
use rdsk_model::{IoError, LoadJob, StreamResult};
use std::sync::Arc;

/// What a stream of a job has beside other streams.
#[derive(Debug)]
pub(super) struct LoadStream<'a> {
    pub(super) job: &'a LoadJob,
    pub(super) job_index: usize,
    source: RequestSource,
    pub(super) flush: Option<FlushCounter>,
    pub(super) in_flight: u32,
    /// No request before this time, which a rest after the last one sets.
    pub(super) rests_until_ns: u64,
    /// Completions until the next rest.
    until_rest: u32,
    pub(super) run: JobRun,
    /// When its last call completed, in the lab's time.
    pub(super) last_end_ns: u64,
}

/// What a stream of a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextCall {
    /// A request, and when it arrived, where the job has a rate.
    Request(Request, Option<u64>),
    /// A flush.
    Flush,
    /// Nothing before this time.
    At(u64),
    /// Nothing before something completes.
    AfterCompletion,
    /// Nothing any more.
    Over,
}

impl<'a> LoadStream<'a> {
    fn of(job: &Job<'a>, stream: u32) -> Result<Option<Self>, EngineError> {
        let workload = job.workload;
        let Some(spec) = LoadSpec::of(&workload.jobs, stream) else { return Ok(None) };
        let source = RequestSource::new(spec.job, workload.seed, job.visit, spec.stream_of_job)?;
        Ok(Some(Self {
            job: spec.job,
            job_index: spec.job_index,
            source,
            flush: FlushCounter::of(spec.job),
            in_flight: 0,
            rests_until_ns: 0,
            until_rest: spec.job.think_every,
            run: JobRun::default(),
            last_end_ns: 0,
        }))
    }

    /// What to do at a time, for a stream that began at another and is counted after a ramp; times in the lab's.
    pub(super) fn next_call(&mut self, began_ns: u64, ramp_ns: u64, now_ns: u64) -> NextCall {
        if now_ns >= self.job.deadline_ns(began_ns.saturating_add(ramp_ns), u64::MAX) {
            return NextCall::Over;
        }
        if self.flush.is_some_and(|flush| flush.is_due()) {
            return if self.in_flight == 0 { NextCall::Flush } else { NextCall::AfterCompletion };
        }
        if self.in_flight >= self.job.queue_depth {
            return NextCall::AfterCompletion;
        }
        let due_ns = self.source.next_due_ns().map(|due_ns| began_ns.saturating_add(due_ns));
        let at_ns = due_ns.unwrap_or(0).max(self.rests_until_ns);
        if at_ns > now_ns {
            return NextCall::At(at_ns);
        }
        match self.source.next(self.job.fresh_space) {
            Some(request) => NextCall::Request(request, due_ns),
            None => NextCall::Over,
        }
    }

    /// Notes a completion, after which the stream may have to rest; a rest before a flush begins behind it.
    pub(super) const fn note_completion(&mut self, is_request: bool, end_ns: u64) {
        if is_request {
            self.until_rest = if self.until_rest <= 1 { self.job.think_every } else { self.until_rest - 1 };
        }
        if self.until_rest == self.job.think_every {
            self.rests_until_ns = end_ns + self.job.think_ns;
        }
    }

    /// What the stream adds to its job; it began, the load ended, and was to end at these times, and is counted after a ramp.
    pub(super) fn finish(&mut self, began_ns: u64, ramp_ns: u64, end_ns: u64, deadline_ns: u64) -> &JobRun {
        let counts_from_ns = began_ns.saturating_add(ramp_ns);
        let deadline_ns = self.job.deadline_ns(counts_from_ns, deadline_ns);
        let end_ns = self.job.deadline_ns(counts_from_ns, end_ns);
        self.run.unsent += self.source.due_before(end_ns.min(deadline_ns).saturating_sub(began_ns));
        // What completes later than the job was to end counts, and so does its time.
        let last_ns = self.last_end_ns.max(began_ns);
        let over_ns = if self.source.is_over() { last_ns } else { last_ns.max(end_ns) };
        self.run.elapsed_ns = over_ns.saturating_sub(counts_from_ns);
        self.run.from_ns = Some(counts_from_ns);
        self.run.over_ns = if self.source.has_rate() { over_ns } else { 0 };
        &self.run
    }
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// What it did so far; times are readings of the clock.
    pub(super) result: StreamResult,
    pub(super) lun: LunId,
    pub(super) places: Option<Arc<Places>>,
    offsets: Offsets,
    /// Chosen positions instead of the offsets.
    positions: Option<PositionSource<'a>>,
    block_bytes: u64,
    /// The stream of a job instead of all that; `None` for a plain workload.
    pub(super) load: Option<LoadStream<'a>>,
    /// Whole blocks that are left.
    full_ops: u64,
    /// Length of the last, shorter call; 0 for none.
    tail_bytes: u64,
    /// When it may start, from the start of the visit.
    pub(super) turn_ns: u64,
    pub(super) ended: Option<StreamEnd>,
    pub(super) error: Option<IoError>,
    pub(super) asked_bytes: u64,
}

impl<'a> Stream<'a> {
    /// What it did, until the end of its rate where it has one.
    pub(super) fn until_over(self) -> StreamResult {
        let over_ns = self.load.as_ref().map_or(0, |load| load.run.over_ns);
        StreamResult { end_ns: self.result.end_ns.max(over_ns), ..self.result }
    }

    pub(super) fn new(
        job: &Job<'a>,
        index: u32,
        luns: &[(u32, LunId)],
        places: &[Option<Arc<Places>>],
        page_bytes: u64,
    ) -> Result<Self, EngineError> {
        let workload = job.workload;
        let load = LoadStream::of(job, index)?;
        let placement = match load {
            Some(_) => placement_of(workload, 0)?,
            None => placement_of(workload, index)?,
        };
        let (target, lun) = luns[placement.target_position];
        let offsets = Offsets::new(workload, job.visit, index, page_bytes)?.beginning_at(job.begin_bytes);
        let Quota { full_ops, tail_bytes } = Quota::new(job, index, &offsets)?;
        Ok(Self {
            result: StreamResult { index, target, ..StreamResult::default() },
            lun,
            places: places.get(placement.target_position).cloned().flatten(),
            offsets,
            positions: PositionSource::new(job),
            block_bytes: workload.block_bytes,
            full_ops,
            tail_bytes,
            turn_ns: match &load {
                Some(load) => load.job.delay_ns,
                None => workload.stagger_ns.saturating_mul(u64::from(index)),
            },
            load,
            ended: None,
            error: None,
            asked_bytes: 0,
        })
    }

    pub(super) fn start(&mut self, now_ns: u64) {
        (self.result.start_ns, self.result.end_ns) = (now_ns, now_ns);
    }

    /// The next call; `None` when the stream has ended.
    pub(super) fn next(&mut self) -> Option<Position> {
        if self.is_over() {
            return None;
        }
        let next = match &mut self.positions {
            Some(positions) => positions.next(),
            None => self.next_of_span(),
        };
        if next.is_none() {
            self.ended = Some(StreamEnd::Complete);
        }
        next
    }

    fn next_of_span(&mut self) -> Option<Position> {
        if self.full_ops > 0 {
            self.full_ops -= 1;
            return Some(Position {
                index: None,
                offset_bytes: self.offsets.next_offset(),
                bytes: self.block_bytes,
            });
        }
        let bytes = std::mem::take(&mut self.tail_bytes);
        (bytes > 0).then(|| Position { index: None, offset_bytes: self.offsets.tail_offset(bytes), bytes })
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the stream, unless it has ended for another reason.
    pub(super) fn end(&mut self, end: StreamEnd) {
        self.ended.get_or_insert(end);
    }

    /// Ends the stream with its first error.
    pub(super) fn fail(&mut self, offset_bytes: u64, errno: i32, message: String, now_ns: u64) {
        self.result.end_ns = now_ns;
        self.ended = Some(StreamEnd::Failed);
        let (target, stream) = (self.result.target, Some(self.result.index));
        self.error.get_or_insert(IoError { target, stream, offset_bytes, errno, message });
    }
}
