//! Asks the kernel what it may never answer, as of a disk or a server that hangs, and waits no longer than a limit. It does not know
//! what is asked.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Why there is no answer; the subject stands before it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("cannot be read ({0})")]
    NoThread(io::Error),
    #[error("gave no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
}

/// The answer of `ask`, if it comes in time. The thread that waits for a later one is left to itself.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let (sender, receiver) = mpsc::channel();
    // Who waits has given up if no process receives it.
    thread::Builder::new().spawn(move || drop(sender.send(ask()))).map_err(NoAnswer::NoThread)?;
    receiver.recv_timeout(limit).map_err(|_| NoAnswer::TooSlow(limit))
}
