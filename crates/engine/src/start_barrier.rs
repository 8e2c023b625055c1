//! Where the streams of a run wait for each other and for the start, and where the controller waits for them. A stream
//! that fails or panics never blocks the others. It measures nothing.

use crate::clock::{now_ns, sleep_until};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a stream that starts at a certain time is awake before it.
const AWAKE_NS: u64 = 4_000_000;

/// The start and the end of a run.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
    /// Raised to make every stream submit nothing more.
    halt: AtomicBool,
    /// When the first stream passed the barrier; 0 before.
    start_ns: AtomicU64,
    /// Before this time no stream starts, released or not.
    not_before_ns: AtomicU64,
    /// The turn of the streams that start the run; 0 but where all are delayed.
    first_turn_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    finished: usize,
    release: Option<Release>,
}

/// How the barrier was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// All streams start.
    Start,
    /// Some stream cannot start, so none does.
    Abort,
}

/// A stream in the run. Its end is noticed whichever way it ends.
#[derive(Debug)]
pub(crate) struct Participant<'a>(&'a StartBarrier);

impl StartBarrier {
    pub(crate) fn join(&self) -> Participant<'_> {
        Participant(self)
    }

    /// Waits until every one of `streams` is ready or finished; returns how many are ready.
    pub(crate) fn wait_until_ready(&self, streams: usize) -> usize {
        let waiting = |state: &mut State| state.ready + state.finished < streams;
        self.changed.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner).ready
    }

    /// Sets the earliest turn of any stream, whose streams start the run; to be called before the release.
    pub(crate) fn start_with_turn(&self, turn_ns: u64) {
        self.first_turn_ns.store(turn_ns, Ordering::Relaxed);
    }

    /// Whether a stream with this turn waits for the start of the run, instead of being the one that starts it.
    pub(crate) fn is_started_by_others(&self, turn_ns: u64) -> bool {
        turn_ns > self.first_turn_ns.load(Ordering::Relaxed)
    }

    /// Sets the time before which no stream starts; to be called before the release.
    pub(crate) fn start_not_before(&self, at_ns: u64) {
        self.not_before_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Waits for that time. Each stream does so by itself and awake for the last of it: on a busy machine, to be woken takes milliseconds.
    pub(crate) fn wait_for_time(&self) {
        let at_ns = self.not_before_ns.load(Ordering::Relaxed);
        if at_ns == 0 || !sleep_until(at_ns.saturating_sub(AWAKE_NS), || self.is_halted()) {
            return;
        }
        while now_ns() < at_ns && !self.is_halted() {
            std::thread::yield_now();
        }
    }

    /// Releases the waiting streams. The first release counts.
    pub(crate) fn release(&self, release: Release) {
        self.lock().release.get_or_insert(release);
        self.changed.notify_all();
    }

    /// Waits at most `timeout` for the end of `streams` streams; returns whether all have ended.
    pub(crate) fn wait_finished(&self, streams: usize, timeout: Duration) -> bool {
        let waiting = |state: &mut State| state.finished < streams;
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), timeout, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        state.finished >= streams
    }

    pub(crate) fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// The start of the run: the time at which the first stream called this.
    pub(crate) fn start_at(&self, now_ns: u64) -> u64 {
        match self.start_ns.compare_exchange(0, now_ns.max(1), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now_ns.max(1),
            Err(earlier) => earlier,
        }
    }

    /// Waits until a stream has passed the barrier, or all are halted.
    pub(crate) fn wait_for_start(&self) {
        const LOOK: Duration = Duration::from_micros(100);
        while self.started_ns().is_none() && !self.is_halted() {
            std::thread::sleep(LOOK);
        }
    }

    /// The start of the run; `None` before the first stream passed the barrier.
    pub(crate) fn started_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Relaxed)).filter(|&start_ns| start_ns > 0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Participant<'_> {
    /// Reports that this stream is ready, and waits for the release.
    pub(crate) fn ready(&self) -> Release {
        let changed = &self.0.changed;
        let mut state = self.0.lock();
        state.ready += 1;
        changed.notify_all();
        let waiting = |state: &mut State| state.release.is_none();
        let state = changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.release.expect("the wait ends with the release")
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
        }
        self.0.lock().finished += 1;
        self.0.changed.notify_all();
    }
}

/// Stops the streams if the thread that holds it panics.
#[derive(Debug)]
pub(crate) struct HaltOnPanic<'a>(pub(crate) &'a StartBarrier);

impl Drop for HaltOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
            self.0.release(Release::Abort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_before_the_start_leaves_nobody_waiting() {
        let barrier = StartBarrier::default();
        std::thread::scope(|scope| {
            let good = scope.spawn(|| barrier.join().ready());
            let bad = scope.spawn(|| {
                let _participant = barrier.join();
                panic!("a stream breaks (this is part of the test)");
            });
            assert!(bad.join().is_err());
            assert!(barrier.wait_until_ready(2) < 2);
            barrier.release(Release::Abort);
            assert_eq!(good.join().unwrap(), Release::Abort);
        });
        assert!(barrier.is_halted());
        assert!(barrier.wait_finished(2, Duration::ZERO));
    }

    #[test]
    fn the_first_one_through_sets_the_start() {
        let barrier = StartBarrier::default();
        assert_eq!(barrier.started_ns(), None);
        assert_eq!((barrier.start_at(7), barrier.start_at(9)), (7, 7));
        assert_eq!(barrier.started_ns(), Some(7));
    }
}
