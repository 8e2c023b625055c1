//! Waiting for keys. The library that reads them waits for ever at a terminal that is gone, so it is asked only for what is there.

use crate::watch::wake::{Ending, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::isatty;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// There may be keys, or a new size.
    Look,
    /// A signal came, or the terminal is gone.
    Ended,
}

/// Where keys come from: standard input, or the terminal of the process if that is none.
pub(super) enum Input {
    Standard,
    Controlling(File),
}

impl Input {
    pub(super) fn of_terminal() -> io::Result<Self> {
        if isatty(rustix::stdio::stdin()) {
            return Ok(Self::Standard);
        }
        File::open("/dev/tty").map(Self::Controlling)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Standard => rustix::stdio::stdin(),
            Self::Controlling(file) => file.as_fd(),
        }
    }

    /// Waits for keys, a signal or this time.
    pub(super) fn wait(&self, time: Duration, ending: &Ending) -> io::Result<Waited> {
        let fd = self.fd();
        let mut fds = [PollFd::new(&fd, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(time))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let is_over = fds[0].revents().intersects(gone) || !fds[1].revents().is_empty();
        Ok(if is_over { Waited::Ended } else { Waited::Look })
    }
}
