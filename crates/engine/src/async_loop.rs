//! The loop of the asynchronous engines, which keep many I/Os of a stream in flight: fill, submit, reap, with one clock
//! reading per batch. The queue behind it is an `io_uring` or an AIO context. It returns only when nothing is in flight, so
//! that no buffer is freed under an I/O.

use crate::arena::Arena;
use crate::clock::now_ns;
use crate::offsets::{OffsetSource, Offsets};
use crate::ring::{Batcher, WaitBatch};
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, Work};
use rdsk_model::{CacheState, Op};
use std::collections::VecDeque;
use std::io;

/// No wait lasts longer without checking the stop flag and the completions. Longer than the kernel's own tick, so that it
/// is rarely the next timer to expire and costs nothing.
pub(crate) const MAX_WAIT_NS: u32 = 10_000_000;

/// The memory of one I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Its slot of the arena.
    pub(crate) slot: u32,
    pub(crate) pointer: *mut u8,
    pub(crate) len: usize,
}

/// Takes I/Os to the kernel and completions back. It has room for as many in flight as it was created for.
pub(crate) trait IoQueue {
    /// Puts one I/O in line under a number below the depth. Number and slot were free, and the arena outlives its completion.
    fn push<const WRITE: bool>(&mut self, number: u32, memory: Memory, offset: u64);

    /// Submits what is in line and waits for `want` completions, at most [`MAX_WAIT_NS`].
    ///
    /// # Errors
    /// When the queue stopped working; what is in flight may then never complete.
    fn submit_and_wait(&mut self, want: u32, interrupted_calls: &mut u64) -> io::Result<()>;

    /// Passes on every completion: the number of its I/O, and the result that the system returned.
    fn completions(&mut self, each: impl FnMut(u32, i64));
}

/// Issues the whole blocks of a stream, then the shorter one.
///
/// # Errors
/// Those of the queue. I/O may then stay in flight, so the arena must be leaked.
pub(crate) fn run<C: IoQueue>(
    work: &mut Work<'_>,
    arena: &mut Arena,
    queue: &mut C,
    depth: u32,
    wait_batch: WaitBatch,
) -> io::Result<StreamEnd> {
    let state = RingState {
        ios: Ios::new(depth as usize, arena.slots),
        arena,
        queue,
        batcher: Batcher::new(wait_batch, depth),
        now_ns: work.start(),
    };
    match work.spec.offsets {
        Offsets::Sequential(offsets) => with_offsets(work, state, offsets),
        Offsets::Uniform(offsets) => with_offsets(work, state, offsets),
        Offsets::Permuted(offsets) => with_offsets(work, state, offsets),
    }
}

fn with_offsets<C: IoQueue, O: OffsetSource>(
    work: &mut Work<'_>,
    state: RingState<'_, C>,
    offsets: O,
) -> io::Result<StreamEnd> {
    match (work.spec.op, work.spec.check) {
        (Op::Read, None) => issue_blocks::<C, O, false, false>(work, state, offsets),
        (Op::Read, Some(_)) => issue_blocks::<C, O, false, true>(work, state, offsets),
        (Op::Write, None) => issue_blocks::<C, O, true, false>(work, state, offsets),
        (Op::Write, Some(_)) => issue_blocks::<C, O, true, true>(work, state, offsets),
    }
}

fn issue_blocks<C: IoQueue, O: OffsetSource, const WRITE: bool, const CHECK: bool>(
    work: &mut Work<'_>,
    mut state: RingState<'_, C>,
    mut offsets: O,
) -> io::Result<StreamEnd> {
    let spec = work.spec;
    let mut next = || offsets.next_offset();
    let end = state.blocks::<WRITE, CHECK>(work, spec.full_ops, spec.block_bytes, &mut next)?;
    if end != StreamEnd::Complete || spec.tail_bytes == 0 {
        return Ok(end);
    }
    let mut tail = || offsets.tail_offset(spec.tail_bytes as u64);
    state.blocks::<WRITE, CHECK>(work, 1, spec.tail_bytes, &mut tail)
}

/// One of the I/Os that may be in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Io {
    begin_ns: u64,
    offset: u64,
    /// Its slot of the arena.
    slot: u32,
    /// Places of the target that it reaches first.
    new_places: u64,
}

/// The I/Os by number, and a stack of the free numbers. Entries of the stack above `free` were filled last.
#[derive(Debug)]
struct Ios {
    ios: Vec<Io>,
    stack: Vec<u32>,
    free: usize,
    in_flight: u32,
    /// The free slots in the order in which writes take them: first the one whose data were written longest ago. Reads have
    /// the slot of their number, since the slot that was free last is in the processor's cache.
    slots: VecDeque<u32>,
    /// I/Os that returned EAGAIN or EINTR, to be submitted again.
    resubmit: Vec<u32>,
}

impl Ios {
    /// For `depth` I/Os in flight and at least as many slots.
    fn new(depth: usize, slots: usize) -> Self {
        let numbers = |count| 0..u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            ios: vec![Io::default(); depth],
            stack: numbers(depth).rev().collect(),
            free: depth,
            in_flight: 0,
            slots: numbers(slots).collect(),
            resubmit: Vec::with_capacity(depth),
        }
    }

    #[inline]
    fn take<const WRITE: bool>(&mut self, offset: u64, begin_ns: u64, new_places: u64) -> (u32, u32) {
        self.free -= 1;
        self.in_flight += 1;
        let number = self.stack[self.free];
        let slot = if WRITE { self.slots.pop_front() } else { Some(number) };
        let slot = slot.expect("at least as many slots as I/Os in flight");
        self.ios[number as usize] = Io { begin_ns, offset, slot, new_places };
        (number, slot)
    }

    /// Takes back what was taken last and never issued. What it would have written is of no use any more, nor are the slots.
    #[cold]
    fn untake(&mut self, count: usize) {
        self.free += count;
        self.in_flight -= u32::try_from(count).unwrap_or(0);
    }

    #[inline]
    fn give_back<const WRITE: bool>(&mut self, number: u32) {
        if WRITE {
            self.slots.push_back(self.ios[number as usize].slot);
        }
        self.stack[self.free] = number;
        self.free += 1;
    }
}

/// The state of a stream while it issues I/O.
struct RingState<'r, C> {
    arena: &'r mut Arena,
    queue: &'r mut C,
    ios: Ios,
    batcher: Batcher,
    /// The last reading of the clock: end of one batch, start of the next.
    now_ns: u64,
}

impl<C: IoQueue> RingState<'_, C> {
    /// The hot loop: fill, submit, reap. Returns with nothing in flight.
    #[inline]
    fn blocks<const WRITE: bool, const CHECK: bool>(
        &mut self,
        work: &mut Work<'_>,
        ops: u64,
        len: usize,
        next_offset: &mut impl FnMut() -> u64,
    ) -> io::Result<StreamEnd> {
        let mut left = ops;
        let mut end = None;
        loop {
            if end.is_none() {
                end = self.reason_to_stop(work, left);
            }
            if end.is_none() {
                match self.fill::<WRITE, CHECK>(work, left, len, next_offset) {
                    Some(filled) => left -= filled,
                    None => end = Some(StreamEnd::Halted),
                }
            }
            if self.ios.in_flight == 0 {
                return Ok(end.unwrap_or(StreamEnd::Complete));
            }
            let want = self.batcher.want().min(self.ios.in_flight);
            self.queue.submit_and_wait(want, &mut work.outcome.interrupted_calls)?;
            if self.reap::<WRITE>(work, len) == StreamEnd::Failed {
                end = Some(StreamEnd::Failed);
            }
        }
    }

    #[inline]
    fn reason_to_stop(&self, work: &Work<'_>, left: u64) -> Option<StreamEnd> {
        let is_complete = left == 0 && self.ios.resubmit.is_empty();
        work.must_stop(self.now_ns).or(is_complete.then_some(StreamEnd::Complete))
    }

    /// Puts an I/O in line for every free number and returns how many; `None` if nothing may be written any more. Stamping and checking the
    /// cache happen before the clock is read; the latency of plain reads starts with the reading that ended the last batch.
    #[inline]
    fn fill<const WRITE: bool, const CHECK: bool>(
        &mut self,
        work: &mut Work<'_>,
        left: u64,
        len: usize,
        next_offset: &mut impl FnMut() -> u64,
    ) -> Option<u64> {
        let mut taken = 0;
        while self.ios.free > 0 && taken < left {
            let offset = next_offset();
            let (number, slot) = self.ios.take::<WRITE>(offset, self.now_ns, work.spec.touch(offset, len));
            if WRITE {
                work.stamper.stamp(self.arena.slot(slot as usize, len), offset);
            }
            if CHECK {
                let wanted = work.spec.check.unwrap_or(CacheState::Any);
                work.outcome.cache_probe.check(work.spec.fd, offset, len, wanted);
            }
            if !WRITE {
                self.push::<WRITE>(number, len);
            }
            taken += 1;
        }
        let taken_here = usize::try_from(taken).unwrap_or(0);
        let mut begin_ns = self.now_ns;
        if WRITE || CHECK {
            begin_ns = now_ns();
        }
        if WRITE {
            // As late as can be: what is in line is submitted next.
            let Some(at_ns) = work.may_write(begin_ns) else {
                self.ios.untake(taken_here);
                return None;
            };
            begin_ns = at_ns;
        }
        while let Some(number) = self.ios.resubmit.pop() {
            self.ios.in_flight += 1;
            self.push::<WRITE>(number, len);
        }
        if WRITE || CHECK {
            // The last one taken is on top.
            for index in (self.ios.free..self.ios.free + taken_here).rev() {
                let number = self.ios.stack[index];
                self.ios.ios[number as usize].begin_ns = begin_ns;
                if WRITE {
                    self.push::<WRITE>(number, len);
                }
            }
        }
        work.outcome.asked_bytes += taken * len as u64;
        Some(taken)
    }

    #[inline]
    fn push<const WRITE: bool>(&mut self, number: u32, len: usize) {
        let Io { offset, slot, .. } = self.ios.ios[number as usize];
        let pointer = self.arena.slot_pointer(slot as usize);
        self.queue.push::<WRITE>(number, Memory { slot, pointer, len }, offset);
    }

    /// Takes every completion. `Failed` if one of them is not a success.
    #[inline]
    fn reap<const WRITE: bool>(&mut self, work: &mut Work<'_>, len: usize) -> StreamEnd {
        let before_ns = self.now_ns;
        let now_ns = now_ns();
        self.now_ns = now_ns;
        if now_ns - before_ns > SHORT_NS {
            // Between two readings of the clock in this loop there are 10 ms: a longer time is a stop.
            work.spec.open.guard.watchdog.look(now_ns, before_ns);
        }
        work.enter(now_ns);
        let mut good = 0u32;
        let mut completed = 0u32;
        let mut end = StreamEnd::Complete;
        let ios = &mut self.ios;
        self.queue.completions(|number, result| {
            completed += 1;
            let io = ios.ios[number as usize];
            if usize::try_from(result) == Ok(len) {
                let latency_ns = now_ns - io.begin_ns;
                if latency_ns <= SHORT_NS || !work.was_away(io.begin_ns, now_ns, before_ns) {
                    work.outcome.latencies.record(latency_ns);
                    work.count_first(io.new_places, io.begin_ns, now_ns, len as u64);
                }
                ios.give_back::<WRITE>(number);
                good += 1;
            } else if should_resubmit(result) {
                ios.resubmit.push(number);
                work.outcome.interrupted_calls += 1;
            } else {
                ios.give_back::<WRITE>(number);
                work.fail(io.offset, len, result);
                end = StreamEnd::Failed;
            }
        });
        if completed > 0 {
            self.ios.in_flight -= completed;
            self.batcher.observe(now_ns - before_ns, completed);
            work.outcome.end_ns = now_ns;
            work.counters.add(now_ns, u64::from(good) * len as u64, u64::from(good));
        }
        end
    }
}

/// Whether the kernel returned an I/O with EAGAIN or EINTR, not done.
#[inline]
fn should_resubmit(result: i64) -> bool {
    result == -i64::from(libc::EINTR) || result == -i64::from(libc::EAGAIN)
}
