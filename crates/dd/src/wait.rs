//! Waits for a pipe or a terminal in such a way that a signal ends the wait.

use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Waits until a transfer may go on; false if a signal came first.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, for_what: PollFlags, wake: Option<&OwnedFd>) -> bool {
    let Some(wake) = wake else { return true };
    let mut watched = [PollFd::from_borrowed_fd(fd, for_what), PollFd::new(wake, PollFlags::IN)];
    if poll(&mut watched, None).is_err() {
        return false;
    }
    let is_woken = !watched[1].revents().is_empty();
    if is_woken {
        // Empties it; what the signal asked for stands elsewhere.
        let _ = rustix::io::read(wake, &mut [0; 64]);
    }
    // An error or a hang-up is for the transfer itself to tell.
    !watched[0].revents().is_empty()
}
