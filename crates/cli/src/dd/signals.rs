//! The two signals that dd knows: SIGINT ends the copy after its counts, SIGUSR1 prints them.

use crate::interrupt::is_ignored;
use rdsk_dd::Signals;
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGINT, SIGUSR1};
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals, and whether the process waits where it cannot notice them.
pub(super) struct Handled {
    pub(super) signals: Signals,
    opening: Arc<AtomicBool>,
}

impl Handled {
    /// Runs what may wait forever, such as the opening of a FIFO that nobody writes: SIGINT ends the process at once.
    pub(super) fn while_opening<T>(&self, open: impl FnOnce() -> T) -> T {
        self.opening.store(true, Ordering::Relaxed);
        let opened = open();
        self.opening.store(false, Ordering::Relaxed);
        opened
    }
}

/// Handles both until the process ends. Without a descriptor to wake it, a copy that waits for a pipe notices them later.
pub(super) fn handled() -> Handled {
    let mut signals = Signals::default();
    let opening = Arc::new(AtomicBool::new(false));
    let number = |signal: i32| usize::try_from(signal).expect("numbers of signals are positive");
    let registered = (|| {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        if !is_ignored(SIGINT) {
            flag::register_conditional_default(SIGINT, Arc::clone(&opening))?;
            flag::register_usize(SIGINT, signals.interrupt.clone(), number(SIGINT))?;
            low_level::pipe::register(SIGINT, write.try_clone()?)?;
        }
        flag::register(SIGUSR1, signals.info.clone())?;
        low_level::pipe::register(SIGUSR1, write)?;
        std::io::Result::Ok(read)
    })();
    signals.wake = registered.ok();
    Handled { signals, opening }
}
