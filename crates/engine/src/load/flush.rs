//! When a stream flushes, and the call.

use rdsk_model::{FlushCall, LoadJob};
use std::io;
use std::os::fd::BorrowedFd;

/// Counts the writes from one flush to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushCounter {
    every: u32,
    left: u32,
    call: FlushCall,
}

impl FlushCounter {
    pub(crate) fn of(job: &LoadJob) -> Option<Self> {
        job.flush.map(|flush| Self { every: flush.every, left: flush.every, call: flush.call })
    }

    /// Notes a write that was issued.
    #[inline]
    pub(crate) fn note_write(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether the writes since the last flush are as many as lie between two.
    #[inline]
    pub(crate) const fn is_due(&self) -> bool {
        self.left == 0
    }

    /// Makes what was written durable.
    pub(crate) fn flush(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.left = self.every;
        match self.call {
            FlushCall::Fdatasync => Ok(rustix::fs::fdatasync(fd)?),
            FlushCall::Fsync => Ok(rustix::fs::fsync(fd)?),
        }
    }

    /// Starts counting anew, for an engine that makes the call itself.
    pub(crate) const fn restart(&mut self) {
        self.left = self.every;
    }
}
