//! The `io_uring` engine: per stream one ring, a batch of I/Os submitted and reaped in one system call, one clock reading
//! per batch. It ends only when nothing is in flight any more, so that no buffer goes away under an I/O.
#![allow(unsafe_code, reason = "entries of the submission queue carry addresses")]

use crate::EngineError;
use crate::arena::Arena;
use crate::clock::now_ns;
use crate::lane::{Outcome, Recorder, StreamEnd, Work};
use crate::offsets::{OffsetSource, Offsets};
use crate::ring::{Batcher, Issue, Ring, WaitBatch};
use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{CompletionQueue, SubmissionQueue, Submitter, opcode, squeue};
use rdsk_model::{CacheState, Op};
use std::io;
use std::mem::ManuallyDrop;

/// No wait lasts longer without a look at the stop flag and at what has completed. Longer than the kernel's own tick, so
/// that it is seldom the next timer to expire and costs nothing.
const LONGEST_WAIT_NS: u32 = 10_000_000;

/// Issues the I/O of one stream, the whole blocks first, then the shorter one.
///
/// # Errors
/// [`EngineError::Ring`] when the ring itself stops working. I/O may then be in flight for ever, so the arena is given up.
pub(crate) fn run<R: Recorder>(
    work: Work<'_, R>,
    arena: Arena,
    ring: Ring,
    wait_batch: WaitBatch,
) -> Result<Outcome, EngineError> {
    match work.lane.offsets {
        Offsets::Sequential(offsets) => with_offsets(work, arena, ring, wait_batch, offsets),
        Offsets::Uniform(offsets) => with_offsets(work, arena, ring, wait_batch, offsets),
        Offsets::Permuted(offsets) => with_offsets(work, arena, ring, wait_batch, offsets),
    }
}

fn with_offsets<R: Recorder, O: OffsetSource>(
    work: Work<'_, R>,
    arena: Arena,
    ring: Ring,
    wait_batch: WaitBatch,
    offsets: O,
) -> Result<Outcome, EngineError> {
    match (work.lane.op, work.lane.check) {
        (Op::Read, None) => all::<R, O, false, false>(work, arena, ring, wait_batch, offsets),
        (Op::Read, Some(_)) => all::<R, O, false, true>(work, arena, ring, wait_batch, offsets),
        (Op::Write, None) => all::<R, O, true, false>(work, arena, ring, wait_batch, offsets),
        (Op::Write, Some(_)) => all::<R, O, true, true>(work, arena, ring, wait_batch, offsets),
    }
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
    again: Vec<u32>,
}

impl Slots {
    fn new(depth: usize) -> Self {
        let numbers = 0..u32::try_from(depth).unwrap_or(u32::MAX);
        Self {
            slots: vec![Slot::default(); depth],
            stack: numbers.rev().collect(),
            free: depth,
            in_flight: 0,
            again: Vec::with_capacity(depth),
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

fn all<R: Recorder, O: OffsetSource, const WRITE: bool, const CHECK: bool>(
    mut work: Work<'_, R>,
    arena: Arena,
    mut ring: Ring,
    wait_batch: WaitBatch,
    mut offsets: O,
) -> Result<Outcome, EngineError> {
    // Declared in this order so that the ring goes away before the memory, whichever way this function ends.
    let mut arena = ManuallyDrop::new(arena);
    let lane = work.lane;
    let fixed = ring.slots_per_buffer;
    let depth = u32::try_from(lane.depth).unwrap_or(u32::MAX).min(ring.uring.params().sq_entries());
    let (mut submitter, sq, cq) = ring.uring.split();
    // Without a registered ring every call looks the descriptor up, which is slower and measures the same.
    let _ = submitter.register_ring_fd();
    let mut flight = Flight {
        arena: &mut arena,
        submitter,
        sq,
        cq,
        slots: Slots::new(depth as usize),
        batcher: Batcher::new(wait_batch, depth),
        flags: match lane.issue {
            Issue::Inline => squeue::Flags::empty(),
            Issue::Workers => squeue::Flags::ASYNC,
        },
        fixed,
        now_ns: now_ns(),
    };
    work.start_ns = flight.now_ns;
    work.end_ns = flight.now_ns;
    let mut next = || offsets.next_offset();
    let mut result = flight.blocks::<R, WRITE, CHECK>(&mut work, lane.full_ops, lane.block_bytes, &mut next);
    if matches!(result, Ok(StreamEnd::Complete)) && lane.tail_bytes > 0 {
        let mut tail = || offsets.tail_offset(lane.tail_bytes as u64);
        result = flight.blocks::<R, WRITE, CHECK>(&mut work, 1, lane.tail_bytes, &mut tail);
    }
    let end = result.map_err(|source| EngineError::Ring { stream: lane.stream, source })?;
    // A ring is torn down later, by a kernel thread, and would keep the file open until then; this way the close
    // that follows is the last one.
    let _ = flight.submitter.unregister_files();
    let _ = flight.submitter.unregister_buffers();
    drop(flight);
    drop(ring);
    drop(ManuallyDrop::into_inner(arena));
    Ok(work.finish(end))
}

/// A ring at work.
struct Flight<'r> {
    arena: &'r mut Arena,
    submitter: Submitter<'r>,
    sq: SubmissionQueue<'r>,
    cq: CompletionQueue<'r>,
    slots: Slots,
    batcher: Batcher,
    /// Flags of every entry.
    flags: squeue::Flags,
    fixed: Option<usize>,
    /// The last reading of the clock: end of one batch, start of the next.
    now_ns: u64,
}

impl Flight<'_> {
    /// The hot loop: fill, enter, reap. Returns with nothing in flight.
    #[inline]
    fn blocks<R: Recorder, const WRITE: bool, const CHECK: bool>(
        &mut self,
        work: &mut Work<'_, R>,
        ops: u64,
        len: usize,
        next_offset: &mut impl FnMut() -> u64,
    ) -> io::Result<StreamEnd> {
        let longest = Timespec::new().nsec(LONGEST_WAIT_NS);
        let args = SubmitArgs::new().timespec(&longest);
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
            self.sq.sync();
            let want = self.batcher.want().min(self.slots.in_flight);
            match self.submitter.submit_with_args(want as usize, &args) {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // The wait was over: time to look at the flags.
                    Some(libc::ETIME) => {}
                    Some(libc::EINTR) => work.interrupted_calls += 1,
                    // The kernel is short of something; reaping gives it back.
                    Some(libc::EAGAIN | libc::EBUSY) => {}
                    _ => return Err(error),
                },
            }
            self.sq.sync();
            if self.reap(work, len) == StreamEnd::Failed {
                end = Some(StreamEnd::Failed);
            }
        }
    }

    #[inline]
    fn reason_to_stop<R: Recorder>(&self, work: &Work<'_, R>, left: u64) -> Option<StreamEnd> {
        if work.bounds.gate.is_halted() {
            return Some(StreamEnd::Halted);
        }
        if self.now_ns >= work.bounds.deadline_ns {
            return Some(StreamEnd::OutOfTime);
        }
        (left == 0 && self.slots.again.is_empty()).then_some(StreamEnd::Complete)
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
        while let Some(number) = self.slots.again.pop() {
            let offset = self.slots.slots[number as usize].offset;
            self.push::<WRITE>(number, offset, len);
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
                work.look.at(work.lane.fd, offset, len, work.lane.check.unwrap_or(CacheState::Any));
            }
            self.slots.slots[number as usize] = Slot { begin_ns: self.now_ns, offset };
            self.push::<WRITE>(number, offset, len);
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

    #[inline]
    fn push<const WRITE: bool>(&mut self, number: u32, offset: u64, len: usize) {
        let pointer = self.arena.slot_pointer(number as usize);
        // A slot is at most as long as a block, and blocks of 4 GiB and more are refused when the job is opened.
        let len = u32::try_from(len).expect("blocks are shorter than 4 GiB");
        let entry: squeue::Entry = match (self.fixed, WRITE) {
            (Some(per_buffer), true) => {
                opcode::WriteFixed::new(Fixed(0), pointer, len, buffer(number, per_buffer))
                    .offset(offset)
                    .build()
            }
            (Some(per_buffer), false) => {
                opcode::ReadFixed::new(Fixed(0), pointer, len, buffer(number, per_buffer))
                    .offset(offset)
                    .build()
            }
            (None, true) => opcode::Write::new(Fixed(0), pointer, len).offset(offset).build(),
            (None, false) => opcode::Read::new(Fixed(0), pointer, len).offset(offset).build(),
        };
        // SAFETY: the slot was free, so nothing else is in flight in it, and the arena is dropped only after the last
        // completion. The queue has at least as many entries as there are slots.
        unsafe { self.sq.push(&entry.flags(self.flags).user_data(u64::from(number))) }
            .expect("a ring entry for every slot");
    }

    /// Takes every completion there is. `Failed` when one of them is no success.
    #[inline]
    fn reap<R: Recorder>(&mut self, work: &mut Work<'_, R>, len: usize) -> StreamEnd {
        let before_ns = self.now_ns;
        let now_ns = now_ns();
        self.now_ns = now_ns;
        self.cq.sync();
        let mut good = 0u32;
        let mut seen = 0u32;
        let mut end = StreamEnd::Complete;
        for completion in &mut self.cq {
            seen += 1;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the number of a slot went in, and comes back"
            )]
            let number = completion.user_data() as u32;
            let slot = self.slots.slots[number as usize];
            let result = i64::from(completion.result());
            if usize::try_from(result) == Ok(len) {
                work.latencies.record(now_ns - slot.begin_ns);
                self.slots.give_back(number);
                good += 1;
            } else if again(result) {
                self.slots.again.push(number);
                work.interrupted_calls += 1;
            } else {
                self.slots.give_back(number);
                work.fail(slot.offset, len, result);
                end = StreamEnd::Failed;
            }
        }
        if seen > 0 {
            self.slots.in_flight -= seen;
            self.batcher.observe(now_ns - before_ns, seen);
            work.end_ns = now_ns;
            work.tally.add(now_ns, u64::from(good) * len as u64, u64::from(good));
        }
        end
    }
}

/// Whether the kernel gave an I/O back undone.
#[inline]
fn again(result: i64) -> bool {
    result == -i64::from(libc::EINTR) || result == -i64::from(libc::EAGAIN)
}

/// The registered buffer that a slot lies in.
#[inline]
fn buffer(number: u32, slots_per_buffer: usize) -> u16 {
    u16::try_from(number as usize / slots_per_buffer).unwrap_or(u16::MAX)
}
