//! The loop of a job's stream with one request in flight: wait until it is due, issue it, flush where that is due, rest. It allocates
//! nothing.

use super::{FlushCounter, Request, RequestSource, Trim, discard};
use crate::arena::{Arena, SlotCycle};
use crate::clock::{now_ns, sleep_until};
use crate::job_run::JobRun;
use crate::stream_spec::LoadSpec;
use crate::sync::{answer, transfer};
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, StreamOutcome, Work};
use rdsk_model::Op;

/// Issues the requests of one stream.
pub(crate) fn run(
    mut work: Work<'_>,
    arena: &mut Arena,
    load: LoadSpec<'_>,
    mut source: RequestSource,
) -> StreamOutcome {
    let mut buffers = arena.cycles();
    let run = JobRun::default();
    let begin_ns = work.start();
    let counts_from_ns = work.counts_from_ns(begin_ns);
    work.deadline_ns = load.job.deadline_ns(counts_from_ns, work.deadline_ns);
    let until_rest = load.job.think_every;
    let flush = FlushCounter::of(load.job);
    let mut stream = SyncStream { begin_ns, counts_from_ns, load, flush, until_rest, owed: 1, run };
    let end = loop {
        if let Some(end) = stream.step(&mut work, &mut source, &mut buffers) {
            break end;
        }
    };
    let mut run = stream.run;
    let until_ns = work.deadline_ns.min(now_ns());
    source.end(&mut run, (begin_ns, counts_from_ns), work.outcome.end_ns, until_ns);
    work.keep_job_run(run);
    work.finish(end)
}

struct SyncStream<'a> {
    /// When the stream began, which arrivals count from.
    begin_ns: u64,
    /// When its figures begin.
    counts_from_ns: u64,
    load: LoadSpec<'a>,
    flush: Option<FlushCounter>,
    /// Requests until the next rest.
    until_rest: u32,
    /// Requests that may still be issued after the end.
    owed: u32,
    run: JobRun,
}

impl SyncStream<'_> {
    /// One request, with its flush and its rest; the reason when the stream is over.
    fn step<'a>(
        &mut self,
        work: &mut Work<'_>,
        source: &mut RequestSource,
        (reads, others): &mut (Option<SlotCycle<'a>>, SlotCycle<'a>),
    ) -> Option<StreamEnd> {
        let due_ns = source.next_due_ns().map(|due_ns| self.begin_ns.saturating_add(due_ns));
        if let Some(due_ns) = due_ns
            && due_ns > work.outcome.end_ns
        {
            let until_ns = due_ns.min(work.deadline_ns);
            sleep_until(until_ns, || work.barrier.is_halted());
        }
        let now_ns = now_ns();
        if let Some(end) = work.must_stop(now_ns) {
            // What arrived before the end is owed, but no more than a queue of it.
            let is_owed =
                end == StreamEnd::OutOfTime && source.is_owed(work.deadline_ns.saturating_sub(self.begin_ns));
            if !is_owed || self.owed == 0 {
                return Some(end);
            }
            self.owed -= 1;
        }
        let Some(request) = source.next(self.load.job.fresh_space) else { return Some(StreamEnd::Complete) };
        let len = usize::try_from(request.bytes).unwrap_or(usize::MAX);
        // What a read returned is not written.
        let buffers = reads.as_mut().filter(|_| request.op == Op::Read).unwrap_or(others);
        let buffer = buffers.next(len);
        if request.op == Op::Write {
            if request.trim != Some(Trim::Only) {
                work.stamper.stamp(buffer, request.offset_bytes);
            }
            if work.may_write(now_ns).is_none() {
                return Some(StreamEnd::Halted);
            }
        }
        if request.trim.is_some()
            && let Err(end) = self.trim(work, request, due_ns)
        {
            return Some(end);
        }
        if request.trim != Some(Trim::Only) {
            work.outcome.asked_bytes += request.bytes;
            if let Err(end) = self.issue(work, buffer, request, due_ns) {
                return Some(end);
            }
        }
        if request.op == Op::Write
            && request.trim != Some(Trim::Only)
            && let Some(flush) = &mut self.flush
        {
            flush.note_write();
        }
        if self.flush.is_some_and(|flush| flush.is_due())
            && let Err(end) = self.flush(work)
        {
            return Some(end);
        }
        if self.load.job.think_ns > 0 {
            self.rest(work);
        }
        None
    }

    /// Rests where as many requests were made as lie between two rests.
    fn rest(&mut self, work: &Work<'_>) {
        self.until_rest -= 1;
        if self.until_rest == 0 {
            self.until_rest = self.load.job.think_every;
            let until_ns = work.outcome.end_ns.saturating_add(self.load.job.think_ns).min(work.deadline_ns);
            sleep_until(until_ns, || work.barrier.is_halted());
        }
    }

    /// Discards what the target holds where the request goes; of one that also writes, from its call on.
    fn trim(&mut self, work: &mut Work<'_>, request: Request, due_ns: Option<u64>) -> Result<(), StreamEnd> {
        let begin_ns = now_ns();
        let result = discard(&work.spec, request.offset_bytes, request.bytes);
        let end_ns = now_ns();
        work.outcome.end_ns = end_ns;
        work.enter_job(end_ns, &mut self.run);
        if let Err(error) = result {
            work.fail(request.offset_bytes, 0, -i64::from(error.raw_os_error().unwrap_or(libc::EIO)));
            return Err(StreamEnd::Failed);
        }
        let due_ns = due_ns.filter(|_| request.trim == Some(Trim::Only));
        let from_ns = due_ns.unwrap_or(begin_ns);
        if end_ns - from_ns <= SHORT_NS || !work.was_away(from_ns, end_ns, begin_ns) {
            self.run.trims.count(end_ns.saturating_sub(self.counts_from_ns), end_ns - from_ns, request.bytes);
            due_ns.iter().for_each(|due_ns| self.run.lag.record(begin_ns.saturating_sub(*due_ns)));
        } else {
            self.run.trims.count_away(request.bytes);
        }
        Ok(())
    }

    fn issue(
        &mut self,
        work: &mut Work<'_>,
        buffer: &mut [u8],
        request: Request,
        due_ns: Option<u64>,
    ) -> Result<(), StreamEnd> {
        let begin_ns = now_ns();
        let interrupted_calls = &mut work.outcome.interrupted_calls;
        let result = transfer(&work.spec, request.op, buffer, request.offset_bytes, interrupted_calls);
        let end_ns = now_ns();
        work.outcome.end_ns = end_ns;
        match result {
            Ok(moved) if moved == buffer.len() => {}
            other => {
                work.fail(request.offset_bytes, buffer.len(), answer(&other));
                return Err(StreamEnd::Failed);
            }
        }
        let from_ns = due_ns.unwrap_or(begin_ns);
        work.enter_job(end_ns, &mut self.run);
        work.counters.add(end_ns, request.bytes, 1);
        if end_ns - from_ns <= SHORT_NS || !work.was_away(from_ns, end_ns, begin_ns) {
            let at_ns = end_ns.saturating_sub(self.counts_from_ns);
            self.run.kind(request.op).count(at_ns, end_ns - from_ns, request.bytes);
            if let Some(due_ns) = due_ns {
                self.run.lag.record(begin_ns.saturating_sub(due_ns));
            }
        } else {
            self.run.kind(request.op).count_away(request.bytes);
        }
        Ok(())
    }

    fn flush(&mut self, work: &mut Work<'_>) -> Result<(), StreamEnd> {
        let Some(flush) = &mut self.flush else { return Ok(()) };
        let begin_ns = work.outcome.end_ns;
        let result = flush.flush(work.spec.fd);
        let end_ns = now_ns();
        work.outcome.end_ns = end_ns;
        work.enter_job(end_ns, &mut self.run);
        if let Err(error) = result {
            work.fail(0, 0, -i64::from(error.raw_os_error().unwrap_or(libc::EIO)));
            return Err(StreamEnd::Failed);
        }
        if end_ns - begin_ns <= SHORT_NS || !work.was_away(begin_ns, end_ns, begin_ns) {
            self.run.flushes.count(end_ns.saturating_sub(self.counts_from_ns), end_ns - begin_ns, 0);
        } else {
            self.run.flushes.count_away(0);
        }
        Ok(())
    }
}
