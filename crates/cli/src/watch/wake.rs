//! The signals that end watching, in a form that ends a wait at once. It installs handlers and touches nothing else.

use crate::interrupt::is_ignored;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Readable from the first SIGINT, SIGQUIT, SIGTERM or SIGHUP on.
pub(super) struct Ending(OwnedFd);

impl Ending {
    /// Handles the signals until the process ends. Those that were ignored at the start stay so, as under nohup.
    ///
    /// # Errors
    /// When the kernel gives no pipe or takes no handler.
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)) {
            pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self(read))
    }

    /// Waits until `at`; whether a signal came before. A signal that came earlier counts, too.
    pub(super) fn comes_before(&self, at: Instant) -> bool {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) if left.is_zero() => return false,
                // A poll may end a little early; interrupted, it is made again.
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                _ => return true,
            }
        }
    }
}

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) fn timespec(time: Duration) -> Timespec {
    // Longer than a day nobody waits at once.
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}
