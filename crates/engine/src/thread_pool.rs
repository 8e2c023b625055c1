//! The threads engine: per stream one thread for each I/O in flight, each with a buffer of its own and blocking system calls,
//! all drawing from the stream's one sequence of offsets, or of requests of a job. For buffered I/O at depth, and if neither rings nor AIO are
//! available. The stream's own thread issues the last, shorter I/O when all others are done.

use crate::arena::{Arena, SlotCycle};
use crate::cache_probe::CacheProbe;
use crate::clock::{now_ns, sleep_until};
use crate::error::{EngineError, errno_text};
use crate::job_run::JobRun;
use crate::load::{self, Request, RequestSource, Trim};
use crate::offsets::{OffsetSource, Offsets};
use crate::start_barrier::HaltOnPanic;
use crate::stream_spec::StreamSpec;
use crate::sync::{self, answer, transfer};
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, StreamOutcome, Work};
use rdsk_model::Op;
use rdsk_sys::usage::thread_wait_ns;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Threads of all streams together. More would only wait for a processor, and few processes may have more.
pub(crate) const MAX_THREADS: usize = 1024;

/// Stack of a thread, which only reads a clock and makes system calls.
const STACK_BYTES: usize = 128 << 10;

/// Threads of each of `streams` streams of this queue depth.
pub(crate) fn size(depth: usize, streams: usize) -> usize {
    depth.min((MAX_THREADS / streams.max(1)).max(1))
}

/// Issues the I/O of one stream with as many threads as the arena is made for. The threads are started first; `start`
/// waits for the other streams and returns the work, or `None` if there is none. The note reports if fewer could be
/// started.
///
/// # Errors
/// [`EngineError::Thread`] when no thread could be started.
pub(crate) fn run<'a>(
    spec: StreamSpec<'a>,
    arena: &mut Arena,
    requests: Option<RequestSource>,
    start: impl FnOnce() -> Option<Work<'a>>,
) -> Result<StreamOutcome, EngineError> {
    let pool = ThreadPool { state: Mutex::new(PoolState::Waiting), changed: Condvar::new() };
    let wanted = arena.depth;
    let (slots, read_slots) = (arena.slots, arena.read_slots);
    let mut buffers = arena.slots_mut();
    let mut for_reads = buffers.by_ref().take(read_slots).collect::<Vec<_>>().into_iter();
    let note = std::thread::scope(|scope| {
        let _closes = CloseOnDrop(&pool);
        let mut note = None;
        for (number, buffer) in (0u32..).zip(buffers.by_ref().take(wanted)) {
            let name = format!("rdsk-io-{}-{number}", spec.stream);
            let pool = &pool;
            let own = OwnBuffers { for_reads: for_reads.next(), other: buffer };
            let started = Builder::new()
                .name(name)
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || pool.work(spec, own, number));
            if let Err(source) = started {
                if number == 0 {
                    return Err(EngineError::Thread { stream: spec.stream, source });
                }
                let text = errno_text(source.raw_os_error().unwrap_or(0));
                note = Some(format!(
                    "only {number} of {wanted} threads could be started ({text}), so only {number} I/Os are in flight"
                ));
                break;
            }
        }
        if let Some(work) = start() {
            *pool.lock() = PoolState::Running(Box::new(SharedWork::new(work, requests, buffers, slots)));
            pool.changed.notify_all();
        }
        Ok(note)
    })?;
    let state = pool.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let PoolState::Running(mut shared) = state else {
        return Ok(StreamOutcome { note, ..StreamOutcome::nothing(now_ns()) });
    };
    let mut end = shared.end.unwrap_or(StreamEnd::Complete);
    shared.keep_job_run();
    if end == StreamEnd::Complete && spec.tail_bytes > 0 {
        end = shared.tail(spec.tail_bytes);
    }
    Ok(StreamOutcome { note, ..shared.work.finish(end) })
}

/// The threads of one stream.
struct ThreadPool<'a> {
    state: Mutex<PoolState<'a>>,
    changed: Condvar,
}

/// What the threads have to do.
enum PoolState<'a> {
    /// Wait: the stream has not started.
    Waiting,
    /// Issue I/O.
    Running(Box<SharedWork<'a>>),
    /// End: there is no work.
    Closed,
}

impl<'a> ThreadPool<'a> {
    fn lock(&self) -> MutexGuard<'_, PoolState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread from start to end. It locks once per I/O, to report the last one and take the next.
    fn work(&self, spec: StreamSpec<'_>, mut own: OwnBuffers<'a>, number: u32) {
        let waiting = |state: &mut PoolState<'a>| matches!(state, PoolState::Waiting);
        let mut state = self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
        let PoolState::Running(shared) = &mut *state else { return };
        let barrier = shared.work.barrier;
        let _halts = HaltOnPanic(barrier);
        let mut stamper = shared.work.stamper.for_thread(number.into());
        let mut cache_probe = CacheProbe::default();
        let mut interrupted_calls = 0;
        let waited_before = thread_wait_ns();
        let mut last_ns = now_ns();
        // When its last I/O might be written.
        let mut allowed_ns = 0;
        loop {
            let PoolState::Running(shared) = &mut *state else { return };
            let Some(request) = shared.draw(last_ns) else {
                shared.buffers.push_back(own.other);
                shared.work.outcome.cache_probe.add(cache_probe);
                shared.work.outcome.interrupted_calls += interrupted_calls;
                let waited =
                    thread_wait_ns().zip(waited_before).map(|(after, before)| after.saturating_sub(before));
                let sum = shared.work.outcome.processor_wait_ns;
                shared.work.outcome.processor_wait_ns = waited.map(|more| sum.unwrap_or(0) + more);
                return;
            };
            let Request { op, offset_bytes: offset, .. } = request;
            let len = usize::try_from(request.bytes).unwrap_or(usize::MAX);
            let write = op == Op::Write;
            let moves = request.trim != Some(Trim::Only);
            if write && moves {
                own.other = shared.swap(own.other);
            }
            let due_ns = shared.due_of(request);
            drop(state);
            let is_halted = || barrier.is_halted();
            if due_ns.is_some_and(|due_ns| due_ns > last_ns && !sleep_until(due_ns, is_halted)) {
                state = self.lock();
                if let PoolState::Running(shared) = &mut *state {
                    shared.give_up(request);
                }
                continue;
            }
            let block = &mut own.of(op)[..len];
            if write && moves {
                stamper.stamp(block, offset);
            }
            if let Some(wanted) = spec.check {
                cache_probe.check(spec.fd, offset, len, wanted);
            }
            let new_places = spec.touch(offset, len);
            let mut begin_ns = now_ns();
            if write {
                if spec.open.guard.is_due(begin_ns) {
                    if !spec.open.judge(begin_ns, allowed_ns) {
                        state = self.lock();
                        if let PoolState::Running(shared) = &mut *state {
                            shared.give_up(request);
                        }
                        continue;
                    }
                    begin_ns = now_ns();
                }
                allowed_ns = begin_ns;
            }
            if request.trim.is_some() {
                let result = load::discard(&spec, offset, request.bytes);
                last_ns = now_ns();
                state = self.lock();
                let PoolState::Running(shared) = &mut *state else { return };
                let goes_on = shared.trimmed(request, &result, (due_ns, begin_ns), last_ns);
                if !moves || !goes_on {
                    continue;
                }
                drop(state);
                begin_ns = last_ns;
            }
            let result = transfer(&spec, op, block, offset, &mut interrupted_calls);
            last_ns = now_ns();
            state = self.lock();
            if let PoolState::Running(shared) = &mut *state {
                shared.done(request, &result, (due_ns, begin_ns), last_ns);
                if result.is_ok() {
                    shared.work.count_first(new_places, begin_ns, last_ns, len as u64);
                }
            }
        }
    }
}

/// The buffers that one thread has.
struct OwnBuffers<'a> {
    /// What reads return beside writes, which is not written.
    for_reads: Option<&'a mut [u8]>,
    other: &'a mut [u8],
}

impl OwnBuffers<'_> {
    fn of(&mut self, op: Op) -> &mut [u8] {
        match (op, &mut self.for_reads) {
            (Op::Read, Some(for_reads)) => for_reads,
            _ => self.other,
        }
    }
}

/// The work of one stream while its threads share it.
struct SharedWork<'a> {
    work: Work<'a>,
    /// The requests of a job's stream and what they were; `None` for a plain workload, which has the offsets.
    requests: Option<(RequestSource, JobRun)>,
    begin_ns: u64,
    offsets: Offsets,
    left: u64,
    end: Option<StreamEnd>,
    /// Those that no thread has. Writes take them in turn: first the one whose data were written longest ago.
    buffers: VecDeque<&'a mut [u8]>,
}

impl<'a> SharedWork<'a> {
    fn new(
        mut work: Work<'a>,
        requests: Option<RequestSource>,
        free: impl Iterator<Item = &'a mut [u8]>,
        slots: usize,
    ) -> Self {
        let mut buffers = VecDeque::with_capacity(slots);
        buffers.extend(free);
        let begin_ns = work.start();
        if let Some(load) = work.spec.load {
            work.deadline_ns = load.job.deadline_ns(begin_ns, work.deadline_ns);
        }
        let requests = requests.map(|source| (source, JobRun::default()));
        let (left, offsets) = (work.spec.full_ops, work.spec.offsets);
        Self { work, requests, begin_ns, left, offsets, end: None, buffers }
    }

    /// The next buffer in turn for the one that a thread has.
    fn swap(&mut self, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let Some(next) = self.buffers.pop_front() else { return buffer };
        self.buffers.push_back(buffer);
        next
    }

    /// The next I/O; `None` when the stream has ended.
    fn draw(&mut self, now_ns: u64) -> Option<Request> {
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
    fn due_of(&self, request: Request) -> Option<u64> {
        let load = self.work.spec.load?;
        load.job.rate.map(|_| self.begin_ns.saturating_add(request.due_ns))
    }

    /// Keeps what the requests of a job were. A rate goes on until the end, whether or not anything arrives.
    fn keep_job_run(&mut self) {
        let Some((mut source, mut run)) = self.requests.take() else { return };
        let Self { begin_ns, work, .. } = self;
        if self.end == Some(StreamEnd::OutOfTime) {
            sleep_until(work.deadline_ns, || work.barrier.is_halted());
        }
        let until_ns = work.deadline_ns.min(now_ns());
        run.unsent = source.due_before(until_ns.saturating_sub(*begin_ns));
        run.elapsed_ns = source.over_ns(work.outcome.end_ns, until_ns).saturating_sub(*begin_ns);
        work.keep_job_run(run);
    }

    /// Takes back what was drawn last: the target is refused by now.
    fn give_up(&mut self, request: Request) {
        self.work.barrier.halt();
        if request.trim != Some(Trim::Only) {
            self.work.outcome.asked_bytes -= request.bytes;
        }
        self.end.get_or_insert(StreamEnd::Halted);
    }

    fn done(
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
            self.work.count(now_ns, latency_ns, bytes);
            if let Some((_, run)) = &mut self.requests {
                if latency_ns <= SHORT_NS || !self.work.was_away(from_ns, end_ns, begin_ns) {
                    run.kind(op).count(now_ns.saturating_sub(self.begin_ns), latency_ns, bytes);
                    due_ns.iter().for_each(|due_ns| run.lag.record(begin_ns.saturating_sub(*due_ns)));
                } else {
                    run.kind(op).bytes += bytes;
                }
            }
        } else {
            self.work.fail(offset, len, answer(result));
            self.end = Some(StreamEnd::Failed);
        }
    }

    /// Counts a trim; whether the stream goes on.
    fn trimmed(
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
        let due_ns = due_ns.filter(|_| request.trim == Some(Trim::Only));
        let latency_ns = end_ns.saturating_sub(due_ns.unwrap_or(begin_ns));
        if latency_ns <= SHORT_NS || !self.work.was_away(end_ns - latency_ns, end_ns, begin_ns) {
            run.trims.count(now_ns.saturating_sub(self.begin_ns), latency_ns, request.bytes);
            due_ns.iter().for_each(|due_ns| run.lag.record(begin_ns.saturating_sub(*due_ns)));
        } else {
            run.trims.bytes += request.bytes;
        }
        true
    }

    /// The last, shorter I/O, issued by the stream's own thread.
    fn tail(&mut self, len: usize) -> StreamEnd {
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

/// Ends threads that still wait, whether or not the start succeeded.
struct CloseOnDrop<'c, 'a>(&'c ThreadPool<'a>);

impl Drop for CloseOnDrop<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, PoolState::Waiting) {
            *state = PoolState::Closed;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Stamper;

    #[test]
    fn threads_are_limited_over_all_streams() {
        for (depth, streams, expected) in
            [(1, 1, 1), (32, 1, 32), (4096, 1, 1024), (32, 64, 16), (8, 4096, 1), (0, 1, 0)]
        {
            assert_eq!(size(depth, streams), expected, "{depth} × {streams}");
        }
    }

    #[test]
    fn threads_never_write_the_same_stamp() {
        let stamper = Stamper::new(1, 0, 0);
        let mut pages = std::collections::HashSet::new();
        for thread in 0..32 {
            let mut own = stamper.for_thread(thread);
            for _ in 0..4 {
                let mut page = vec![0u8; 4096];
                own.stamp(&mut page, 8192);
                assert!(pages.insert(page));
            }
        }
    }
}
