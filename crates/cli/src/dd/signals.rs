//! The two signals that dd knows: SIGINT ends the copy after its counts, SIGUSR1 prints them.

use crate::interrupt::is_ignored;
use rdsk_dd::Signals;
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGINT, SIGUSR1};
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals, and whether a further one ends the process.
pub(super) struct Handled {
    pub(super) signals: Signals,
    is_ending: Arc<AtomicBool>,
}

impl Handled {
    /// Runs what may wait forever, such as the opening of a FIFO that no process writes. If the first SIGINT comes just before the
    /// wait, a second one ends the process.
    pub(super) fn while_opening<T>(&self, open: impl FnOnce() -> T) -> T {
        let armed = (!is_ignored(SIGINT)).then(|| flag::register(SIGINT, Arc::clone(&self.is_ending)));
        let opened = open();
        if let Some(Ok(armed)) = armed {
            low_level::unregister(armed);
        }
        self.is_ending.store(false, Ordering::Relaxed);
        opened
    }
}

/// Handles both until the process ends. Calls that wait return, so that dd hears of a signal at once. Without a descriptor to wake
/// it, a copy that waits for a pipe may notice one later.
pub(super) fn handled() -> Handled {
    let mut signals = Signals::default();
    let is_ending = Arc::new(AtomicBool::new(false));
    let number = |signal: i32| usize::try_from(signal).expect("numbers of signals are positive");
    let registered = (|| {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        if !is_ignored(SIGINT) {
            flag::register_conditional_default(SIGINT, Arc::clone(&is_ending))?;
            flag::register_usize(SIGINT, signals.interrupt.clone(), number(SIGINT))?;
            low_level::pipe::register(SIGINT, write.try_clone()?)?;
            rdsk_sys::signal::interrupt_calls(SIGINT)?;
        }
        flag::register(SIGUSR1, signals.info.clone())?;
        low_level::pipe::register(SIGUSR1, write)?;
        rdsk_sys::signal::interrupt_calls(SIGUSR1)?;
        std::io::Result::Ok(read)
    })();
    signals.wake = registered.ok();
    Handled { signals, is_ending }
}
