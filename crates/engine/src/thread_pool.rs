//! The threads engine: per stream one thread for each I/O in flight, each with a buffer of its own and blocking system calls,
//! all drawing from the stream's one sequence of offsets, or of requests of a job. For buffered I/O at depth, and if neither rings nor AIO are
//! available. The stream's own thread issues the last, shorter I/O when all others are done.

use crate::arena::Arena;
use crate::cache_probe::CacheProbe;
use crate::clock::{now_ns, sleep_until};
use crate::error::{EngineError, errno_text};
use crate::load::{self, Request, RequestSource, Trim};
use crate::shared_work::SharedWork;
use crate::start_barrier::HaltOnPanic;
use crate::stream_spec::StreamSpec;
use crate::sync::transfer;
use crate::work::{StreamEnd, StreamOutcome, Work};
use rdsk_model::Op;
use rdsk_sys::usage::thread_wait_ns;
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

    /// Takes back what a thread has drawn and cannot issue any more.
    fn give_up(&self, request: Request) -> MutexGuard<'_, PoolState<'a>> {
        let mut state = self.lock();
        if let PoolState::Running(shared) = &mut *state {
            shared.give_up(request);
        }
        state
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
                shared.work.outcome.cache_probe.add(cache_probe);
                shared.work.outcome.interrupted_calls += interrupted_calls;
                return shared.part_with(own.other, waited_before);
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
                state = self.give_up(request);
                continue;
            }
            let block = &mut own.buffer_for(op)[..len];
            if write && moves {
                stamper.stamp(block, offset);
            }
            if let Some(wanted) = spec.check {
                cache_probe.check(spec.fd, offset, len, wanted);
            }
            let new_places = spec.touch(offset, len);
            let mut begin_ns = now_ns();
            if write {
                let Some(at_ns) = may_write(&spec, begin_ns, allowed_ns) else {
                    state = self.give_up(request);
                    continue;
                };
                (begin_ns, allowed_ns) = (at_ns, at_ns);
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

/// When a thread may write what is ready at a time, if its last write might be made at another: at once, or when the claim has been judged
/// again; `None` if it is refused.
fn may_write(spec: &StreamSpec<'_>, now: u64, allowed_ns: u64) -> Option<u64> {
    if !spec.open.guard.is_due(now) {
        return Some(now);
    }
    spec.open.judge(now, allowed_ns).then(now_ns)
}

/// The buffers that one thread has.
struct OwnBuffers<'a> {
    /// What reads return beside writes, which is not written.
    for_reads: Option<&'a mut [u8]>,
    other: &'a mut [u8],
}

impl OwnBuffers<'_> {
    fn buffer_for(&mut self, op: Op) -> &mut [u8] {
        match (op, &mut self.for_reads) {
            (Op::Read, Some(for_reads)) => for_reads,
            _ => self.other,
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
    use crate::stamper::Stamper;

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
