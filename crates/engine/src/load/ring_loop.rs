//! The loop of a job's stream with many requests in flight: what is due is put in line and submitted, completions are counted by what
//! they were. It returns only when nothing is in flight.

use super::{FlushCounter, RequestSource};
use crate::arena::Arena;
use crate::clock::{now_ns, sleep_until};
use crate::io_queue::{IoQueue, MAX_WAIT_NS, Memory};
use crate::job_run::JobRun;
use crate::ring::{Batcher, WaitBatch};
use crate::stream_spec::LoadSpec;
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, Work};
use rdsk_model::Op;
use std::collections::VecDeque;
use std::io;

/// Issues the requests of one stream, at most `depth` at once, and leaves what it counted in the work.
///
/// # Errors
/// Those of the queue. I/O may then stay in flight, so the arena must be leaked.
pub(crate) fn run<C: IoQueue>(
    work: &mut Work<'_>,
    arena: &mut Arena,
    queue: &mut C,
    depth: u32,
    wait_batch: WaitBatch,
    load: LoadSpec<'_>,
    source: RequestSource,
) -> io::Result<StreamEnd> {
    let slots = u32::try_from(arena.slots).unwrap_or(u32::MAX);
    let read_slots = u32::try_from(arena.read_slots).unwrap_or(u32::MAX);
    let mut stream = QueueStream {
        begin_ns: 0,
        counts_from_ns: 0,
        now_ns: 0,
        load,
        source,
        flush: FlushCounter::of(load.job),
        run: JobRun::default(),
        arena,
        queue,
        batcher: Batcher::new(wait_batch, depth),
        in_flight: vec![InFlight::default(); depth as usize],
        free: (0..depth).rev().collect(),
        slots: (read_slots..slots).collect(),
        owed: depth,
        resubmit: Vec::with_capacity(depth as usize),
    };
    let begin_ns = work.start();
    let counts_from_ns = work.counts_from_ns(begin_ns);
    work.deadline_ns = load.job.deadline_ns(counts_from_ns, work.deadline_ns);
    (stream.begin_ns, stream.counts_from_ns, stream.now_ns) = (begin_ns, counts_from_ns, begin_ns);
    let end = stream.until_over(work)?;
    let QueueStream { mut run, mut source, now_ns, .. } = stream;
    let until_ns = work.deadline_ns.min(now_ns);
    source.end(&mut run, (begin_ns, counts_from_ns), work.outcome.end_ns, until_ns);
    work.keep_job_run(run);
    Ok(end)
}

/// One request in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    op: Op,
    /// What its latency counts from.
    from_ns: u64,
    offset_bytes: u64,
    slot: u32,
    len: usize,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { op: Op::Read, from_ns: 0, offset_bytes: 0, slot: 0, len: 0 }
    }
}

struct QueueStream<'s, 'a, C> {
    begin_ns: u64,
    /// When its figures begin.
    counts_from_ns: u64,
    /// The last reading of the clock.
    now_ns: u64,
    load: LoadSpec<'a>,
    source: RequestSource,
    flush: Option<FlushCounter>,
    run: JobRun,
    arena: &'s mut Arena,
    queue: &'s mut C,
    batcher: Batcher,
    in_flight: Vec<InFlight>,
    /// Numbers that nothing in flight has.
    free: Vec<u32>,
    /// Slots of writes that nothing in flight has, first the one whose data were written longest ago. A read has the slot of its number,
    /// which nothing else is written from.
    slots: VecDeque<u32>,
    /// Requests that may still be issued after the end.
    owed: u32,
    /// Requests that returned EAGAIN or EINTR, to be submitted again.
    resubmit: Vec<u32>,
}

impl<C: IoQueue> QueueStream<'_, '_, C> {
    fn until_over(&mut self, work: &mut Work<'_>) -> io::Result<StreamEnd> {
        let mut end = None;
        loop {
            if end.is_none() {
                end = work.must_stop(self.now_ns);
            }
            match end {
                None => end = self.fill(work, u64::MAX),
                // What arrived before the end is owed, but no more than a queue of it.
                Some(StreamEnd::OutOfTime) if self.owed > 0 => {
                    let _ = self.fill(work, work.deadline_ns);
                }
                Some(_) => {}
            }
            while let Some(number) = self.resubmit.pop() {
                self.push(number);
            }
            if self.free.len() == self.in_flight.len() {
                // Nothing is in flight.
                if let Some(end) = end {
                    return Ok(end);
                }
                if self.flush.is_some_and(|flush| flush.is_due()) {
                    end = self.flush(work);
                } else {
                    self.sleep_until_due(work);
                }
                continue;
            }
            let in_flight = u32::try_from(self.in_flight.len() - self.free.len()).unwrap_or(u32::MAX);
            let want = self.wait(end.is_some(), in_flight);
            self.queue.submit_and_wait(want, &mut work.outcome.interrupted_calls)?;
            if self.reap(work) == StreamEnd::Failed {
                end = Some(StreamEnd::Failed);
            }
        }
    }

    /// How many completions to wait for, and how long at most: no longer than until the next arrival that has room.
    fn wait(&mut self, is_over: bool, in_flight: u32) -> u32 {
        let mut longest_ns = MAX_WAIT_NS;
        let mut want = self.batcher.want().min(in_flight);
        if !is_over
            && !self.free.is_empty()
            && !self.flush.is_some_and(|flush| flush.is_due())
            && let Some(due_ns) = self.source.next_due_ns()
        {
            let left_ns = self.begin_ns.saturating_add(due_ns).saturating_sub(self.now_ns);
            longest_ns = u32::try_from(left_ns).unwrap_or(u32::MAX).clamp(1, MAX_WAIT_NS);
            want = 1;
        }
        self.queue.wait_at_most(longest_ns);
        want
    }

    /// Puts every request in line that is due, arrived before a time, and has room; the reason when the stream is over.
    fn fill(&mut self, work: &mut Work<'_>, until_ns: u64) -> Option<StreamEnd> {
        while !self.free.is_empty() && !self.flush.is_some_and(|flush| flush.is_due()) {
            let due_ns = self.source.next_due_ns().map(|due_ns| self.begin_ns.saturating_add(due_ns));
            if due_ns.is_some_and(|due_ns| due_ns > self.now_ns) {
                return None;
            }
            if until_ns != u64::MAX {
                if self.owed == 0 || due_ns.is_none_or(|due_ns| due_ns >= until_ns) {
                    return None;
                }
                self.owed -= 1;
            }
            let Some(request) = self.source.next(self.load.job.fresh_space) else {
                return Some(StreamEnd::Complete);
            };
            let len = usize::try_from(request.bytes).unwrap_or(usize::MAX);
            let number = self.free.pop().expect("one is free");
            let slot = match request.op {
                Op::Write => self.slots.pop_front().expect("at least as many slots as requests in flight"),
                Op::Read => number,
            };
            if request.op == Op::Write {
                work.stamper.stamp(self.arena.slot(slot as usize, len), request.offset_bytes);
                self.now_ns = now_ns();
                let Some(at_ns) = work.may_write(self.now_ns) else {
                    self.free.push(number);
                    return Some(StreamEnd::Halted);
                };
                self.now_ns = at_ns;
                if let Some(flush) = &mut self.flush {
                    flush.note_write();
                }
            }
            if let Some(due_ns) = due_ns {
                // What is sent after the ramp is counted, though nothing has completed since.
                work.enter_job(self.now_ns, &mut self.run);
                self.run.lag.record(self.now_ns - due_ns);
            }
            let from_ns = due_ns.unwrap_or(self.now_ns);
            self.in_flight[number as usize] =
                InFlight { op: request.op, from_ns, offset_bytes: request.offset_bytes, slot, len };
            work.outcome.asked_bytes += request.bytes;
            self.push(number);
        }
        None
    }

    #[inline]
    fn push(&mut self, number: u32) {
        let InFlight { op, offset_bytes, slot, len, .. } = self.in_flight[number as usize];
        let memory = Memory { slot, pointer: self.arena.slot_pointer(slot as usize), len };
        match op {
            Op::Write => self.queue.push::<true>(number, memory, offset_bytes),
            Op::Read => self.queue.push::<false>(number, memory, offset_bytes),
        }
    }

    /// Sleeps until the next arrival, where nothing is in flight.
    fn sleep_until_due(&mut self, work: &Work<'_>) {
        if let Some(due_ns) = self.source.next_due_ns() {
            let until_ns = self.begin_ns.saturating_add(due_ns).min(work.deadline_ns);
            sleep_until(until_ns, || work.barrier.is_halted());
        }
        self.now_ns = now_ns();
    }

    /// Makes durable what was written, where nothing is in flight; the reason when that fails.
    fn flush(&mut self, work: &mut Work<'_>) -> Option<StreamEnd> {
        let flush = self.flush.as_mut()?;
        let begin_ns = now_ns();
        let result = flush.flush(work.spec.fd);
        self.now_ns = now_ns();
        work.outcome.end_ns = self.now_ns;
        if let Err(error) = result {
            work.fail(0, 0, -i64::from(error.raw_os_error().unwrap_or(libc::EIO)));
            return Some(StreamEnd::Failed);
        }
        work.enter_job(self.now_ns, &mut self.run);
        let latency_ns = self.now_ns - begin_ns;
        if latency_ns <= SHORT_NS || !work.was_away(begin_ns, self.now_ns, begin_ns) {
            self.run.flushes.count(self.now_ns.saturating_sub(self.counts_from_ns), latency_ns, 0);
        } else {
            self.run.flushes.count_away(0);
        }
        None
    }

    /// Counts every completion. `Failed` if one of them is not a success.
    fn reap(&mut self, work: &mut Work<'_>) -> StreamEnd {
        let before_ns = self.now_ns;
        let now_ns = now_ns();
        self.now_ns = now_ns;
        if now_ns - before_ns > SHORT_NS {
            work.spec.open.guard.watchdog.look(now_ns, before_ns);
        }
        work.enter_job(now_ns, &mut self.run);
        let (mut good, mut bytes, mut completions) = (0u64, 0u64, 0u32);
        let mut end = StreamEnd::Complete;
        let at_ns = now_ns.saturating_sub(self.counts_from_ns);
        let Self { in_flight, free, slots, resubmit, run, .. } = self;
        self.queue.completions(|number, result| {
            completions += 1;
            let request = in_flight[number as usize];
            if [-i64::from(libc::EINTR), -i64::from(libc::EAGAIN)].contains(&result) {
                resubmit.push(number);
                work.outcome.interrupted_calls += 1;
                return;
            }
            if request.op == Op::Write {
                slots.push_back(request.slot);
            }
            free.push(number);
            if usize::try_from(result) != Ok(request.len) {
                work.fail(request.offset_bytes, request.len, result);
                end = StreamEnd::Failed;
                return;
            }
            let len = request.len as u64;
            let latency_ns = now_ns - request.from_ns;
            if latency_ns <= SHORT_NS || !work.was_away(request.from_ns, now_ns, before_ns) {
                run.kind(request.op).count(at_ns, latency_ns, len);
            } else {
                run.kind(request.op).count_away(len);
            }
            good += 1;
            bytes += len;
        });
        if completions > 0 {
            self.batcher.observe(now_ns - before_ns, completions);
            work.outcome.end_ns = now_ns;
            work.counters.add(now_ns, bytes, good);
        }
        end
    }
}
