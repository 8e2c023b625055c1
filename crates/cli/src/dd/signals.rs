//! The two signals that dd knows: SIGINT ends the copy after its counts, SIGUSR1 prints them.

use crate::interrupt::is_ignored;
use rdsk_dd::Signals;
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGINT, SIGUSR1};
use signal_hook::{flag, low_level};

/// Handles both until the process ends. Without a descriptor to wake it, a copy that waits for a pipe notices them later.
pub(super) fn handled() -> Signals {
    let mut signals = Signals::default();
    let number = |signal: i32| usize::try_from(signal).expect("numbers of signals are positive");
    let registered = (|| {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        if !is_ignored(SIGINT) {
            flag::register_usize(SIGINT, signals.interrupt.clone(), number(SIGINT))?;
            low_level::pipe::register(SIGINT, write.try_clone()?)?;
        }
        flag::register(SIGUSR1, signals.info.clone())?;
        low_level::pipe::register(SIGUSR1, write)?;
        std::io::Result::Ok(read)
    })();
    signals.wake = registered.ok();
    signals
}
