//! A target while a visit has it open. Closing and flushing report the errors of earlier writes.

use crate::clock;
use crate::error::EngineError;
use crate::places::Places;
use crate::watchdog::Watchdog;
use rdsk_model::TargetKind;
use rdsk_targets::{Access, Claim, OpenMode, TargetError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A process that is stopped this often while it judges one target gives up.
const MAX_JUDGEMENTS: u32 = 16;

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
    pub(crate) watchdog: Watchdog,
    /// The number of gaps noticed when the target was last judged.
    judged: AtomicU64,
    /// Why nothing more may be written to it.
    refusal: Mutex<Option<TargetError>>,
}

impl<'a> OpenTarget<'a> {
    pub(crate) fn open(
        index: u32,
        claim: &'a Claim,
        mode: OpenMode,
        watchdog: &Watchdog,
    ) -> Result<Self, EngineError> {
        let is_writable = mode.access == Access::Write;
        // Before it is judged: what happens while the process is stopped in between is not overlooked.
        let judged = AtomicU64::new(watchdog.count());
        let fd = Some(claim.open(mode)?);
        Ok(Self {
            index,
            claim,
            is_writable,
            places: None,
            fd,
            watchdog: watchdog.clone(),
            judged,
            refusal: Mutex::default(),
        })
    }

    /// Whether the claim must be judged again before anything more is written: this process has not run for a while, and somebody else
    /// may have taken the target.
    #[inline]
    pub(crate) fn must_be_judged(&self, now_ns: u64) -> bool {
        self.watchdog.is_due(now_ns, self.judged.load(Ordering::Relaxed))
    }

    /// Judges it again where that is needed, for a thread whose last two readings of the clock are these; whether it may go on to write.
    #[cold]
    pub(crate) fn judge(&self, now_ns: u64, own_ns: u64) -> bool {
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut now_ns, mut own_ns) = (now_ns, own_ns);
        for _ in 0..MAX_JUDGEMENTS {
            if refusal.is_some() {
                return false;
            }
            let gaps = self.watchdog.look(now_ns, own_ns);
            if self.judged.load(Ordering::Relaxed) >= gaps {
                return true;
            }
            own_ns = clock::now_ns();
            *refusal = self.claim.judge_again(self.fd()).err();
            now_ns = clock::now_ns();
            self.watchdog.extend(now_ns);
            self.judged.store(gaps, Ordering::Relaxed);
        }
        let what = "this process is stopped again and again, and its use cannot be judged meanwhile";
        let path = self.claim.target.name.clone();
        refusal.get_or_insert(TargetError::Changed { path, what });
        false
    }

    /// Why nothing more may be written to it; told once.
    pub(crate) fn take_refusal(&self) -> Option<TargetError> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
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
