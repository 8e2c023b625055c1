//! How a copy may end badly, what signals ask of it, and waits that they end. Handlers are the caller's.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How a copy ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error, which the terminal has heard of.
    Failed,
    /// A signal.
    Interrupted(usize),
    /// The output is a pipe that has no reader.
    BrokenPipe,
    /// The output may no longer be written: its gate is closed, which knows why.
    Refused,
}

/// The outcome of a step of a copy.
pub(crate) type Done<T> = Result<T, Failure>;

/// What signals ask for; a handler sets it.
#[derive(Debug, Default)]
pub struct Signals {
    /// The number of a signal that ends the copy; 0 for none.
    pub interrupt: Arc<AtomicUsize>,
    /// Whether the counts are to be printed once.
    pub info: Arc<AtomicBool>,
    /// Becomes readable with every signal, so that waiting for a pipe or a terminal ends.
    pub wake: Option<OwnedFd>,
}

impl Signals {
    /// Lets the counts be printed if a signal asked for them, and fails if one asked for the end.
    #[inline]
    pub(crate) fn answer(&self, print: impl FnOnce()) -> Done<()> {
        let signal = self.interrupt.load(Ordering::Relaxed);
        if signal != 0 {
            return Err(Failure::Interrupted(signal));
        }
        if self.info.load(Ordering::Relaxed) && self.info.swap(false, Ordering::Relaxed) {
            print();
        }
        Ok(())
    }

    /// Waits until a transfer may go on; false if a signal came first, even just before.
    pub(crate) fn let_wait(&self, fd: BorrowedFd<'_>, for_what: PollFlags) -> bool {
        let Some(wake) = &self.wake else { return true };
        let mut watched = [PollFd::from_borrowed_fd(fd, for_what), PollFd::new(wake, PollFlags::IN)];
        if poll(&mut watched, None).is_err() {
            return false;
        }
        if !watched[1].revents().is_empty() {
            // Empties it; what the signal asked for stands elsewhere.
            let _ = rustix::io::read(wake, &mut [0; 64]);
        }
        // An error or a hang-up is for the transfer itself to say.
        !watched[0].revents().is_empty()
    }
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
