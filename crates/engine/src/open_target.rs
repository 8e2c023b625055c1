//! A target while a visit has it open. Closing and flushing report the errors of earlier writes.

use crate::error::EngineError;
use crate::places::Places;
use crate::watchdog::Watchdog;
use crate::write_guard::WriteGuard;
use rdsk_model::TargetKind;
use rdsk_targets::{Access, Claim, OpenMode};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An open target.
#[derive(Debug)]
pub(crate) struct OpenTarget<'a> {
    /// Index of the target, as in the Record.
    pub(crate) index: u32,
    pub(crate) claim: &'a Claim,
    is_writable: bool,
    /// Where first accesses are noted, if the visit can make any.
    pub(crate) places: Option<Arc<Places>>,
    /// `None` once it is closed.
    pub(crate) fd: Option<OwnedFd>,
    /// Whether it may still be written.
    pub(crate) guard: WriteGuard,
}

impl<'a> OpenTarget<'a> {
    pub(crate) fn open(
        index: u32,
        claim: &'a Claim,
        mode: OpenMode,
        watchdog: &Watchdog,
    ) -> Result<Self, EngineError> {
        let is_writable = mode.access == Access::Write;
        let guard = WriteGuard::new(watchdog);
        let fd = Some(claim.open(mode)?);
        Ok(Self { index, claim, is_writable, places: None, fd, guard })
    }

    /// [Judges](WriteGuard::judge) it again where that is needed; whether this thread may go on to write.
    #[cold]
    pub(crate) fn judge(&self, now_ns: u64, own_ns: u64) -> bool {
        let judge_again = || self.claim.judge_again(self.fd());
        self.guard.judge([now_ns, own_ns], &self.claim.target.name, judge_again)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("closed only by settle, which ends the session").as_fd()
    }

    /// Closes the target and returns what the kernel says; a filesystem may report a failed write here.
    pub(crate) fn close(&mut self) -> Result<(), EngineError> {
        let Some(fd) = self.fd.take() else { return Ok(()) };
        if self.is_writable {
            self.claim.released();
        }
        rdsk_sys::io::close(fd).map_err(|error| self.flush_error("close", error))
    }

    /// Flushes the target through a descriptor of its own, which need not be able to write. For a block device this sends
    /// the flush that its last close did not. Returns that descriptor.
    pub(crate) fn make_stable(&self) -> Result<OwnedFd, EngineError> {
        let fd = self.claim.open(OpenMode::READ)?;
        let flushed = match self.claim.target.kind {
            TargetKind::Block => rustix::fs::fsync(&fd),
            TargetKind::File | TargetKind::Sim => rustix::fs::fdatasync(&fd),
        };
        flushed.map_err(|errno| self.flush_error("flush", errno.into()))?;
        Ok(fd)
    }

    fn flush_error(&self, action: &'static str, source: io::Error) -> EngineError {
        EngineError::Flush { action, target: self.claim.target.name.clone(), source }
    }
}
