//! Where the loops of the asynchronous engines put their I/Os: an `io_uring` or an AIO context.

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

    /// Makes every later wait end after so long, at most [`MAX_WAIT_NS`], which is the length of a wait otherwise.
    fn wait_at_most(&mut self, longest_ns: u32);

    /// Submits what is in line and waits for `want` completions, as long as a wait may take.
    ///
    /// # Errors
    /// When the queue stopped working; what is in flight may then never complete.
    fn submit_and_wait(&mut self, want: u32, interrupted_calls: &mut u64) -> io::Result<()>;

    /// Passes on every completion: the number of its I/O, and the result that the system returned.
    fn completions(&mut self, each: impl FnMut(u32, i64));
}
