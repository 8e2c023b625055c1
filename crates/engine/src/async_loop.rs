//! The I/O of one stream by an engine that keeps many in flight: fill, submit, reap, with one clock reading per batch. Who
//! carries the I/O to the kernel is the Carrier's business (a ring, an AIO context). It ends only when nothing is in flight
//! any more, so that no buffer goes away under an I/O.

use crate::arena::Arena;
use crate::clock::now_ns;
use crate::offsets::{OffsetSource, Offsets};
use crate::ring::{Batcher, WaitBatch};
use crate::work::{Recorder, StreamEnd, Work};
use rdsk_model::{CacheState, Op};
use std::io;

/// No wait lasts longer without a look at the stop flag and at what has completed. Longer than the kernel's own tick, so
/// that it is seldom the next timer to expire and costs nothing.
pub(crate) const MAX_WAIT_NS: u32 = 10_000_000;

/// Carries I/Os to the kernel and completions back. At most as many are in flight as it was made for.
pub(crate) trait IoQueue {
    /// Puts one I/O in line. Its slot was free, and the arena outlives its completion.
    fn push<const WRITE: bool>(&mut self, slot: u32, pointer: *mut u8, offset: u64, len: usize);

    /// Submits what is in line and waits for `want` completions, at most [`LONGEST_WAIT_NS`].
    ///
    /// # Errors
    /// When it stopped working; what is in flight may then never complete.
    fn submit_and_wait(&mut self, want: u32, interrupted_calls: &mut u64) -> io::Result<()>;

    /// Hands over every completion there is: its slot, and the system's answer.
    fn completions(&mut self, each: impl FnMut(u32, i64));
}

/// Issues the whole blocks of a stream, then its shorter one.
///
/// # Errors
/// Those of the carrier. I/O may then be in flight for ever, so the arena must be given up.
pub(crate) fn run<R: Recorder, C: IoQueue>(
    work: &mut Work<'_, R>,
    arena: &mut Arena,
    queue: &mut C,
    depth: u32,
    wait_batch: WaitBatch,
) -> io::Result<StreamEnd> {
    let state = RingState {
        arena,
        queue,
        slots: Slots::new(depth as usize),
        batcher: Batcher::new(wait_batch, depth),
        now_ns: now_ns(),
    };
    work.start_ns = state.now_ns;
    work.end_ns = state.now_ns;
    match work.spec.offsets {
        Offsets::Sequential(offsets) => with_offsets(work, state, offsets),
        Offsets::Uniform(offsets) => with_offsets(work, state, offsets),
        Offsets::Permuted(offsets) => with_offsets(work, state, offsets),
    }
}

fn with_offsets<R: Recorder, C: IoQueue, O: OffsetSource>(
    work: &mut Work<'_, R>,
    state: RingState<'_, C>,
    offsets: O,
) -> io::Result<StreamEnd> {
    match (work.spec.op, work.spec.check) {
        (Op::Read, None) => all::<R, C, O, false, false>(work, state, offsets),
        (Op::Read, Some(_)) => all::<R, C, O, false, true>(work, state, offsets),
        (Op::Write, None) => all::<R, C, O, true, false>(work, state, offsets),
        (Op::Write, Some(_)) => all::<R, C, O, true, true>(work, state, offsets),
    }
}

fn all<R: Recorder, C: IoQueue, O: OffsetSource, const WRITE: bool, const CHECK: bool>(
    work: &mut Work<'_, R>,
    mut state: RingState<'_, C>,
    mut offsets: O,
) -> io::Result<StreamEnd> {
    let spec = work.spec;
    let mut next = || offsets.next_offset();
    let end = state.blocks::<R, WRITE, CHECK>(work, spec.full_ops, spec.block_bytes, &mut next)?;
    if end != StreamEnd::Complete || spec.tail_bytes == 0 {
        return Ok(end);
    }
    let mut tail = || offsets.tail_offset(spec.tail_bytes as u64);
    state.blocks::<R, WRITE, CHECK>(work, 1, spec.tail_bytes, &mut tail)
}

/// One slot of the arena: what is or was in flight in it.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    begin_ns: u64,
    offset: u64,
}

/// The slots, and a stack of those that are free. Entries of the stack above `free` are those filled last.
#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    stack: Vec<u32>,
    free: usize,
    in_flight: u32,
    /// I/Os that the kernel gave back undone, to be submitted again.
    resubmit: Vec<u32>,
}

impl Slots {
    fn new(depth: usize) -> Self {
        let numbers = 0..u32::try_from(depth).unwrap_or(u32::MAX);
        Self {
            slots: vec![Slot::default(); depth],
            stack: numbers.rev().collect(),
            free: depth,
            in_flight: 0,
            resubmit: Vec::with_capacity(depth),
        }
    }

    #[inline]
    fn take(&mut self) -> u32 {
        self.free -= 1;
        self.in_flight += 1;
        self.stack[self.free]
    }

    #[inline]
    fn give_back(&mut self, number: u32) {
        self.stack[self.free] = number;
        self.free += 1;
    }
}

/// A stream at work.
struct RingState<'r, C> {
    arena: &'r mut Arena,
    queue: &'r mut C,
    slots: Slots,
    batcher: Batcher,
    /// The last reading of the clock: end of one batch, start of the next.
    now_ns: u64,
}

impl<C: IoQueue> RingState<'_, C> {
    /// The hot loop: fill, enter, reap. Returns with nothing in flight.
    #[inline]
    fn blocks<R: Recorder, const WRITE: bool, const CHECK: bool>(
        &mut self,
        work: &mut Work<'_, R>,
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
                left -= self.fill::<R, WRITE, CHECK>(work, left, len, next_offset);
            }
            if self.slots.in_flight == 0 {
                return Ok(end.unwrap_or(StreamEnd::Complete));
            }
            let want = self.batcher.want().min(self.slots.in_flight);
            self.queue.submit_and_wait(want, &mut work.interrupted_calls)?;
            if self.reap(work, len) == StreamEnd::Failed {
                end = Some(StreamEnd::Failed);
            }
        }
    }

    #[inline]
    fn reason_to_stop<R: Recorder>(&self, work: &Work<'_, R>, left: u64) -> Option<StreamEnd> {
        if work.bounds.barrier.is_halted() {
            return Some(StreamEnd::Halted);
        }
        if self.now_ns >= work.bounds.deadline_ns {
            return Some(StreamEnd::OutOfTime);
        }
        (left == 0 && self.slots.resubmit.is_empty()).then_some(StreamEnd::Complete)
    }

    /// Puts an I/O into every free slot; says how many. Stamping and looking at the cache happen before the clock is
    /// read for them; plain reads begin with the reading that ended the last batch.
    #[inline]
    fn fill<R: Recorder, const WRITE: bool, const CHECK: bool>(
        &mut self,
        work: &mut Work<'_, R>,
        left: u64,
        len: usize,
        next_offset: &mut impl FnMut() -> u64,
    ) -> u64 {
        while let Some(number) = self.slots.resubmit.pop() {
            let offset = self.slots.slots[number as usize].offset;
            self.queue.push::<WRITE>(number, self.arena.slot_pointer(number as usize), offset, len);
            self.slots.in_flight += 1;
        }
        let mut pushed = 0;
        while self.slots.free > 0 && pushed < left {
            let offset = next_offset();
            let number = self.slots.take();
            if WRITE {
                work.stamper.stamp(self.arena.slot(number as usize, len), offset);
            }
            if CHECK {
                work.cache_probe.check(work.spec.fd, offset, len, work.spec.check.unwrap_or(CacheState::Any));
            }
            self.slots.slots[number as usize] = Slot { begin_ns: self.now_ns, offset };
            self.queue.push::<WRITE>(number, self.arena.slot_pointer(number as usize), offset, len);
            pushed += 1;
        }
        if WRITE || CHECK {
            let begin_ns = now_ns();
            let filled = self.slots.free..self.slots.free + usize::try_from(pushed).unwrap_or(0);
            for index in filled {
                let number = self.slots.stack[index];
                self.slots.slots[number as usize].begin_ns = begin_ns;
            }
        }
        work.asked_bytes += pushed * len as u64;
        pushed
    }

    /// Takes every completion there is. `Failed` when one of them is no success.
    #[inline]
    fn reap<R: Recorder>(&mut self, work: &mut Work<'_, R>, len: usize) -> StreamEnd {
        let before_ns = self.now_ns;
        let now_ns = now_ns();
        self.now_ns = now_ns;
        let mut good = 0u32;
        let mut seen = 0u32;
        let mut end = StreamEnd::Complete;
        let slots = &mut self.slots;
        self.queue.completions(|number, result| {
            seen += 1;
            let slot = slots.slots[number as usize];
            if usize::try_from(result) == Ok(len) {
                work.latencies.record(now_ns - slot.begin_ns);
                slots.give_back(number);
                good += 1;
            } else if should_resubmit(result) {
                slots.resubmit.push(number);
                work.interrupted_calls += 1;
            } else {
                slots.give_back(number);
                work.fail(slot.offset, len, result);
                end = StreamEnd::Failed;
            }
        });
        if seen > 0 {
            self.slots.in_flight -= seen;
            self.batcher.observe(now_ns - before_ns, seen);
            work.end_ns = now_ns;
            work.counters.add(now_ns, u64::from(good) * len as u64, u64::from(good));
        }
        end
    }
}

/// Whether the kernel gave an I/O back undone.
#[inline]
fn should_resubmit(result: i64) -> bool {
    result == -i64::from(libc::EINTR) || result == -i64::from(libc::EAGAIN)
}
