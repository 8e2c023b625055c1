//! The `io_uring` engine: one ring per stream, a batch of I/Os submitted and reaped in one system call. The loop is in
//! `async_loop`.
#![allow(unsafe_code, reason = "entries of the submission queue carry addresses")]

use crate::arena::Arena;
use crate::async_loop;
use crate::error::EngineError;
use crate::io_queue::{IoQueue, MAX_WAIT_NS, Memory};
use crate::load::RequestSource;
use crate::ring::{Issue, Ring, WaitBatch};
use crate::work::{StreamOutcome, Work};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{CompletionQueue, SubmissionQueue, Submitter, opcode, squeue};
use std::io;
use std::mem::ManuallyDrop;

/// Issues the I/O of one stream, the whole blocks first, then the shorter one.
///
/// # Errors
/// [`EngineError::Ring`] when the ring itself stops working. I/O may then stay in flight, so the arena is leaked.
pub(crate) fn run(
    mut work: Work<'_>,
    arena: Arena,
    mut ring: Ring,
    wait_batch: WaitBatch,
    requests: Option<RequestSource>,
) -> Result<StreamOutcome, EngineError> {
    // Declared in this order so that the ring is dropped before the memory, whichever way this function ends.
    let mut arena = ManuallyDrop::new(arena);
    let spec = work.spec;
    let Ring { file, file_flags, slots_per_buffer: fixed, .. } = ring;
    let depth = u32::try_from(spec.depth).unwrap_or(u32::MAX).min(ring.uring.params().sq_entries());
    let (mut submitter, sq, cq) = ring.uring.split();
    // Without a registered ring every call looks the descriptor up, which is slower but measures the same.
    let _ = submitter.register_ring_fd();
    let flags = match spec.issue {
        Issue::Inline => file_flags,
        Issue::Workers => file_flags | squeue::Flags::ASYNC,
    };
    let longest = Timespec::new().nsec(MAX_WAIT_NS);
    let rw_flags = spec.flags.bits().cast_signed();
    let mut queue = UringQueue { submitter, sq, cq, file, flags, rw_flags, fixed, longest };
    let end = async_loop::run(&mut work, &mut arena, &mut queue, depth, wait_batch, requests)
        .map_err(|source| EngineError::Ring { stream: spec.stream, source })?;
    // A ring is torn down later, by a kernel thread, and would keep the file open until then; this way the close
    // that follows is the last one.
    let _ = queue.submitter.unregister_files();
    let _ = queue.submitter.unregister_buffers();
    drop(queue);
    drop(ring);
    let mut outcome = work.finish(end);
    outcome.look_at(&mut arena, &spec);
    drop(ManuallyDrop::into_inner(arena));
    Ok(outcome)
}

/// A ring in use.
struct UringQueue<'r> {
    submitter: Submitter<'r>,
    sq: SubmissionQueue<'r>,
    cq: CompletionQueue<'r>,
    /// The file of every entry.
    file: Fd,
    /// Flags of every entry.
    flags: squeue::Flags,
    /// Flags of every I/O, as preadv2(2) takes them.
    rw_flags: i32,
    fixed: Option<usize>,
    longest: Timespec,
}

impl IoQueue for UringQueue<'_> {
    #[inline]
    fn push<const WRITE: bool>(&mut self, number: u32, memory: Memory, offset: u64) {
        let Memory { slot, pointer, len } = memory;
        // A slot is at most as long as a block, and blocks over 1 GiB are refused when the job is opened.
        let len = u32::try_from(len).expect("blocks are shorter than 4 GiB");
        let entry: squeue::Entry = match (self.fixed, WRITE) {
            (Some(per_buffer), true) => {
                opcode::WriteFixed::new(self.file, pointer, len, buffer(slot, per_buffer))
                    .offset(offset)
                    .rw_flags(self.rw_flags)
                    .build()
            }
            (Some(per_buffer), false) => {
                opcode::ReadFixed::new(self.file, pointer, len, buffer(slot, per_buffer))
                    .offset(offset)
                    .rw_flags(self.rw_flags)
                    .build()
            }
            (None, true) => {
                opcode::Write::new(self.file, pointer, len).offset(offset).rw_flags(self.rw_flags).build()
            }
            (None, false) => {
                opcode::Read::new(self.file, pointer, len).offset(offset).rw_flags(self.rw_flags).build()
            }
        };
        // SAFETY: the slot was free, so nothing else is in flight in it, and the arena is dropped only after the last
        // completion. The queue has at least as many entries as there are I/Os in flight.
        unsafe { self.sq.push(&entry.flags(self.flags).user_data(u64::from(number))) }
            .expect("a ring entry for every I/O in flight");
    }

    #[inline]
    fn wait_at_most(&mut self, longest_ns: u32) {
        self.longest = Timespec::new().nsec(longest_ns.min(MAX_WAIT_NS));
    }

    #[inline]
    fn submit_and_wait(&mut self, want: u32, interrupted_calls: &mut u64) -> io::Result<()> {
        let args = SubmitArgs::new().timespec(&self.longest);
        self.sq.sync();
        let result = self.submitter.submit_with_args(want as usize, &args);
        self.sq.sync();
        let Err(error) = result else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EINTR) => *interrupted_calls += 1,
            // The wait timed out: check the flags. Or the kernel is short of a resource; reaping frees it.
            Some(libc::ETIME | libc::EAGAIN | libc::EBUSY) => {}
            _ => return Err(error),
        }
        Ok(())
    }

    #[inline]
    fn completions(&mut self, mut each: impl FnMut(u32, i64)) {
        self.cq.sync();
        for completion in &mut self.cq {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the number of an I/O went in, and comes back"
            )]
            let number = completion.user_data() as u32;
            each(number, i64::from(completion.result()));
        }
        // Taking them moves only our own head. The kernel counts what it thinks unread for the next wait, which would return
        // at once, with nothing.
        self.cq.sync();
    }
}

/// The registered buffer that contains a slot.
#[inline]
fn buffer(slot: u32, slots_per_buffer: usize) -> u16 {
    u16::try_from(slot as usize / slots_per_buffer).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Fill;
    use crate::ring::{self, QueueSource};
    use rdsk_testkit::{Need, requires};
    use std::os::fd::{AsFd as _, AsRawFd as _};

    /// Otherwise each wait returns at once for the completion before, and every I/O costs two system calls. A file that could not be
    /// registered is read all the same.
    #[test]
    fn the_kernel_learns_at_once_which_completions_were_taken() {
        if !requires(&[Need::IoUring]) {
            return;
        }
        let target = tempfile::tempfile().unwrap();
        target.set_len(8192).unwrap();
        for is_registered in [true, false] {
            let arena = Arena::new(rdsk_model::BufferPages::Ordinary, 2, 4096, Fill::Touched).unwrap();
            let mut ring = ring::make(QueueSource::Kernel, 2, Issue::Inline, &arena, target.as_fd()).unwrap();
            let Ring { file, file_flags, slots_per_buffer: fixed, .. } = ring;
            assert_eq!(file_flags, squeue::Flags::FIXED_FILE);
            let (file, flags) = if is_registered {
                (file, file_flags)
            } else {
                (Fd(target.as_raw_fd()), squeue::Flags::empty())
            };
            let (submitter, sq, cq) = ring.uring.split();
            let longest = Timespec::new().nsec(MAX_WAIT_NS);
            let mut queue = UringQueue { submitter, sq, cq, file, flags, rw_flags: 0, fixed, longest };
            read_by_twos(&arena, &mut queue);
        }
    }

    fn read_by_twos(arena: &Arena, queue: &mut UringQueue<'_>) {
        for _ in 0..20 {
            for number in 0..2 {
                let memory = Memory { slot: number, pointer: arena.slot_pointer(number as usize), len: 4096 };
                queue.push::<false>(number, memory, u64::from(number) * 4096);
            }
            let mut seen = 0;
            while seen < 2 {
                queue.submit_and_wait(1, &mut 0).unwrap();
                queue.completions(|_, result| {
                    assert_eq!(result, 4096);
                    seen += 1;
                });
            }
            // SAFETY: it is used while the ring is there, and nothing else is done with the queue meanwhile.
            let kernels_view = unsafe { queue.cq.status() };
            assert!(kernels_view.is_empty(), "the kernel believes that completions are left to be read");
        }
    }
}
