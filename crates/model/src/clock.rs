//! Time as a thing that is handed in: real engines bring the monotonic clock, the sim engine a virtual one. It never
//! reads a clock itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A monotonic clock. Nothing above the engines may read time in any other way.
pub trait Clock: Send + std::marker::Sync {
    /// Nanoseconds since an arbitrary fixed instant; never goes backwards.
    fn now_ns(&self) -> u64;
    /// Returns when `now_ns()` has reached `at_ns`, or earlier when `stop` was raised.
    fn sleep_until_ns(&self, at_ns: u64, stop: &StopFlag);
}

/// A request to stop that signals, panics and callers raise and that every loop reads. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is down.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every thread that holds a clone to stop; there is no way back.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested. A relaxed load: cheap enough for a hot loop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
