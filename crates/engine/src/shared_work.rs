//! The work of one stream while the threads of a pool share it: what is next, whose turn a buffer has, and what was done. It issues only the
//! last, shorter I/O.

use crate::arena::SlotCycle;
use crate::clock::{now_ns, sleep_until};
use crate::job_run::JobRun;
use crate::load::{Request, RequestSource, Trim};
use crate::offsets::{OffsetSource, Offsets};
use crate::stream_spec::StreamSpec;
use crate::sync::{self, answer};
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, Work};
use rdsk_model::Op;
use rdsk_sys::usage::thread_wait_ns;
use std::collections::VecDeque;
use std::io;

/// The work of one stream while its threads share it.
pub(crate) struct SharedWork<'a> {
    pub(crate) work: Work<'a>,
    /// The requests of a job's stream and what they were; `None` for a plain workload, which has the offsets.
    requests: Option<(RequestSource, JobRun)>,
    begin_ns: u64,
    /// When the figures of a job begin.
    counts_from_ns: u64,
    offsets: Offsets,
    left: u64,
    pub(crate) end: Option<StreamEnd>,
    /// Those that no thread has. Writes take them in turn: first the one whose data were written longest ago.
    pub(crate) buffers: VecDeque<&'a mut [u8]>,
}

impl<'a> SharedWork<'a> {
    pub(crate) fn new(
        mut work: Work<'a>,
        requests: Option<RequestSource>,
        free: impl Iterator<Item = &'a mut [u8]>,
        slots: usize,
    ) -> Self {
        let mut buffers = VecDeque::with_capacity(slots);
        buffers.extend(free);
        let requests = requests.map(|source| (source, JobRun::default()));
        let begin_ns = work.start();
        let counts_from_ns = work.counts_from_ns(begin_ns);
        if let Some(load) = work.spec.load {
            work.deadline_ns = load.job.deadline_ns(counts_from_ns, work.deadline_ns);
        }
        let (left, offsets) = (work.spec.full_ops, work.spec.offsets);
        Self { work, requests, begin_ns, counts_from_ns, left, offsets, end: None, buffers }
    }

    /// Takes back the buffer of a thread that ends, and adds for how long it waited for a processor since a reading of that time.
    pub(crate) fn part_with(&mut self, buffer: &'a mut [u8], waited_before: Option<u64>) {
        self.buffers.push_back(buffer);
        let waited = thread_wait_ns().zip(waited_before).map(|(after, before)| after.saturating_sub(before));
        let sum = self.work.outcome.processor_wait_ns;
        self.work.outcome.processor_wait_ns = waited.map(|more| sum.unwrap_or(0) + more);
    }

    /// The next buffer in turn for the one that a thread has.
    pub(crate) fn swap(&mut self, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let Some(next) = self.buffers.pop_front() else { return buffer };
        self.buffers.push_back(buffer);
        next
    }

    /// The next I/O; `None` when the stream has ended.
    pub(crate) fn draw(&mut self, now_ns: u64) -> Option<Request> {
        if self.end.is_none() {
            self.end = self.work.must_stop(now_ns).or((self.left == 0).then_some(StreamEnd::Complete));
        }
        if self.end.is_some() {
            return None;
        }
        let request = match (&mut self.requests, self.work.spec.load) {
            (Some((source, _)), Some(load)) => {
                let due_ns = source.next_due_ns().map(|due_ns| self.begin_ns.saturating_add(due_ns));
                if due_ns.is_some_and(|due_ns| due_ns >= self.work.deadline_ns) {
                    self.end = Some(StreamEnd::OutOfTime);
                    return None;
                }
                source.next(load.job.fresh_space)
            }
            _ => {
                self.left -= 1;
                let StreamSpec { op, block_bytes, .. } = self.work.spec;
                Some(Request {
                    op,
                    trim: None,
                    offset_bytes: self.offsets.next_offset(),
                    bytes: block_bytes as u64,
                    due_ns: 0,
                })
            }
        };
        match &request {
            Some(Request { trim: Some(Trim::Only), .. }) => {}
            Some(request) => self.work.outcome.asked_bytes += request.bytes,
            None => self.end = Some(StreamEnd::Complete),
        }
        request
    }

    /// When a request is due; `None` in a closed loop.
    pub(crate) fn due_of(&self, request: Request) -> Option<u64> {
        let load = self.work.spec.load?;
        load.job.rate.map(|_| self.begin_ns.saturating_add(request.due_ns))
    }

    /// Keeps what the requests of a job were. A rate goes on until the end, whether or not anything arrives.
    pub(crate) fn keep_job_run(&mut self) {
        let Some((mut source, mut run)) = self.requests.take() else { return };
        let Self { begin_ns, counts_from_ns, work, .. } = self;
        if self.end == Some(StreamEnd::OutOfTime) {
            sleep_until(work.deadline_ns, || work.barrier.is_halted());
        }
        let until_ns = work.deadline_ns.min(now_ns());
        source.end(&mut run, (*begin_ns, *counts_from_ns), work.outcome.end_ns, until_ns);
        work.keep_job_run(run);
    }

    /// Takes back what was drawn last: the target is refused by now.
    pub(crate) fn give_up(&mut self, request: Request) {
        self.work.barrier.halt();
        if request.trim != Some(Trim::Only) {
            self.work.outcome.asked_bytes -= request.bytes;
        }
        self.end.get_or_insert(StreamEnd::Halted);
    }

    pub(crate) fn done(
        &mut self,
        request: Request,
        result: &io::Result<usize>,
        (due_ns, begin_ns): (Option<u64>, u64),
        end_ns: u64,
    ) {
        let Request { op, offset_bytes: offset, bytes, .. } = request;
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Threads arrive here in another order than they read the clock; the stream's time must not go backwards.
        let now_ns = end_ns.max(self.work.outcome.end_ns);
        self.work.outcome.end_ns = now_ns;
        if result.as_ref().is_ok_and(|&moved| moved == len) {
            let from_ns = due_ns.unwrap_or(begin_ns);
            let latency_ns = end_ns.saturating_sub(from_ns);
            if let Some((_, run)) = &mut self.requests {
                self.work.enter_job(now_ns, run);
            }
            self.work.count(now_ns, latency_ns, bytes);
            if let Some((_, run)) = &mut self.requests {
                if latency_ns <= SHORT_NS || !self.work.was_away(from_ns, end_ns, begin_ns) {
                    run.kind(op).count(now_ns.saturating_sub(self.counts_from_ns), latency_ns, bytes);
                    due_ns.iter().for_each(|due_ns| run.lag.record(begin_ns.saturating_sub(*due_ns)));
                } else {
                    run.kind(op).count_away(bytes);
                }
            }
        } else {
            self.work.fail(offset, len, answer(result));
            self.end = Some(StreamEnd::Failed);
        }
    }

    /// Counts a trim; whether the stream goes on.
    pub(crate) fn trimmed(
        &mut self,
        request: Request,
        result: &io::Result<()>,
        (due_ns, begin_ns): (Option<u64>, u64),
        end_ns: u64,
    ) -> bool {
        let now_ns = end_ns.max(self.work.outcome.end_ns);
        self.work.outcome.end_ns = now_ns;
        if let Err(error) = result {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            self.work.fail(request.offset_bytes, 0, -i64::from(errno));
            self.end = Some(StreamEnd::Failed);
            return false;
        }
        let Some((_, run)) = &mut self.requests else { return true };
        self.work.enter_job(now_ns, run);
        let due_ns = due_ns.filter(|_| request.trim == Some(Trim::Only));
        let latency_ns = end_ns.saturating_sub(due_ns.unwrap_or(begin_ns));
        if latency_ns <= SHORT_NS || !self.work.was_away(end_ns - latency_ns, end_ns, begin_ns) {
            run.trims.count(now_ns.saturating_sub(self.counts_from_ns), latency_ns, request.bytes);
            due_ns.iter().for_each(|due_ns| run.lag.record(begin_ns.saturating_sub(*due_ns)));
        } else {
            run.trims.count_away(request.bytes);
        }
        true
    }

    /// The last, shorter I/O, issued by the stream's own thread.
    pub(crate) fn tail(&mut self, len: usize) -> StreamEnd {
        let buffer = self.buffers.pop_front().expect("the threads gave theirs back");
        let buffers = &mut SlotCycle::of_one(buffer);
        let mut next = || self.offsets.tail_offset(len as u64);
        let work = &mut self.work;
        match (work.spec.op, work.spec.check) {
            (Op::Read, None) => sync::blocks::<false, false>(work, buffers, len, 1, &mut next),
            (Op::Read, Some(_)) => sync::blocks::<false, true>(work, buffers, len, 1, &mut next),
            (Op::Write, None) => sync::blocks::<true, false>(work, buffers, len, 1, &mut next),
            (Op::Write, Some(_)) => sync::blocks::<true, true>(work, buffers, len, 1, &mut next),
        }
    }
}
