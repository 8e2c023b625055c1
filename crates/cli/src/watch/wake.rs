//! The signals that end watching, in a form that ends a wait at once. It installs handlers and touches nothing else.

use crate::forwarding::no_signals;
use crate::interrupt::is_ignored;
use rdsk_model::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::pipe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Signals that ask a program to end.
const TO_END: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];
/// Signals that end a program which does not expect them.
const UNEXPECTED: [i32; 3] = [SIGUSR1, SIGUSR2, SIGALRM];

/// Readable from the first signal on.
pub(super) struct Ending(OwnedFd);

impl Ending {
    /// SIGINT, SIGQUIT, SIGTERM and SIGHUP, until the process ends. Those that were ignored at the start stay so, as under nohup.
    ///
    /// # Errors
    /// When the kernel gives no pipe or takes no handler.
    pub(super) fn new() -> Result<Self, Problem> {
        Self::by(TO_END).map_err(|error| no_signals(&error))
    }

    /// And SIGUSR1, SIGUSR2 and SIGALRM, which would leave the terminal in the mode of a screen.
    ///
    /// # Errors
    /// As [`Ending::new`].
    pub(super) fn of_screen() -> Result<Self, Problem> {
        Self::by(TO_END.into_iter().chain(UNEXPECTED)).map_err(|error| no_signals(&error))
    }

    fn by(signals: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        for signal in signals.into_iter().filter(|&signal| !is_ignored(signal)) {
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
    // Longer than a day no program waits at once.
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}
