//! Notices when this process did not run: it was stopped, its control group was frozen, the machine slept, or a virtual machine did. A
//! thread that should wake every 50 ms keeps the time of its last beat; what is missing between two beats is a gap, unless the thread was
//! ready and waited for a processor. The threads that issue I/O compare their own time with the last beat, since after a stop any of them
//! may be the first to run, and then wait for the next one. It judges nothing and does no I/O.

use crate::clock::{asleep_ns, now_ns};
use rdsk_sys::thread::spawn_without_files;
use rdsk_sys::usage::ThreadWait;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often the thread wakes.
const BEAT_NS: u64 = 50_000_000;

/// Without a beat, or another sign of life, for longer than this the process did not run.
const LONGEST_NS: u64 = 200_000_000;

/// An I/O that took no longer was in flight in no gap.
pub(crate) const SHORT_NS: u64 = LONGEST_NS - BEAT_NS;

/// Who asks waits for the next beat no longer than this. A thread that waits this long for a processor is as good as stopped.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Gaps that are remembered.
const MAX_GAPS: usize = 256;

/// A time in which the process did not run, in readings of the clock: from its last sign of life to the next one, or until what it has
/// opened was judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last sign of life.
    pub begin_ns: u64,
    /// The next one.
    pub end_ns: u64,
    /// Time that the clock does not count, since the machine was suspended.
    pub asleep_ns: u64,
}

/// What has been noticed, shared by all who ask. Its thread ends with the last of them.
#[derive(Clone, Debug, Default)]
pub struct Watchdog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Until this reading of the clock the process is known to have run.
    trusted_until_ns: AtomicU64,
    /// Gaps so far.
    count: AtomicU64,
    state: Mutex<State>,
    /// Notified by each beat.
    beaten: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_started: bool,
    /// The last sign of life.
    beat_ns: u64,
    /// How much less the clock has counted than the one that runs while the machine is suspended.
    asleep_ns: u64,
    gaps: VecDeque<Gap>,
}

impl Watchdog {
    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(&self) -> std::io::Result<()> {
        let mut state = self.0.lock();
        if state.is_started {
            return Ok(());
        }
        let shared = Arc::downgrade(&self.0);
        let builder = std::thread::Builder::new().name("rdsk-watchdog".into()).stack_size(128 << 10);
        spawn_without_files(builder, move || beat(&shared))?;
        state.is_started = true;
        state.asleep_ns = asleep_ns();
        self.0.trust(&mut state, now_ns());
        Ok(())
    }

    /// Gaps noticed so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Whether who has taken notice of so many gaps must [look](Self::look) before it goes on. Two loads, for the hot loops.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64, noticed: u64) -> bool {
        // In this order: who moves the time on has counted the gap before.
        now_ns > self.0.trusted_until_ns.load(Ordering::Acquire)
            || self.0.count.load(Ordering::Acquire) != noticed
    }

    /// A thread looks, whose last two readings of the clock are these; returns how many gaps there were. That it ran a moment ago is a
    /// sign of life itself; otherwise it waits for the next beat, which knows whether the thread of the watchdog waited for a processor.
    #[cold]
    pub(crate) fn look(&self, now_ns: u64, own_ns: u64) -> u64 {
        self.0.look(now_ns, own_ns);
        self.count()
    }

    /// Whether there was a gap between two readings of the clock; the last reading before the second was `own_ns`.
    #[cold]
    pub(crate) fn was_away(&self, begin_ns: u64, end_ns: u64, own_ns: u64) -> bool {
        self.look(end_ns, own_ns);
        !self.gaps(begin_ns, end_ns).is_empty()
    }

    /// The gaps from a reading of the clock to a later one that was just made, also those that reach beyond; after a stop the next beat is
    /// waited for, which knows of it.
    pub fn gaps_until(&self, begin_ns: u64, now_ns: u64) -> Vec<Gap> {
        self.look(now_ns, 0);
        self.gaps(begin_ns, now_ns)
    }

    /// The gaps between two readings of the clock, also those that reach beyond.
    pub(crate) fn gaps(&self, begin_ns: u64, end_ns: u64) -> Vec<Gap> {
        let state = self.0.lock();
        state.gaps.iter().filter(|gap| gap.begin_ns < end_ns && gap.end_ns > begin_ns).copied().collect()
    }

    /// The time of the gaps between two readings of the clock.
    pub(crate) fn away_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let gaps = self.gaps(begin_ns, end_ns);
        gaps.iter().map(|gap| gap.end_ns - gap.begin_ns.max(begin_ns) + gap.asleep_ns).sum()
    }

    /// The last gap goes on until now: what it has opened was judged again since then, and nothing was issued.
    pub(crate) fn extend(&self, now_ns: u64) {
        if let Some(gap) = self.0.lock().gaps.back_mut() {
            gap.end_ns = gap.end_ns.max(now_ns);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, now_ns: u64, own_ns: u64) {
        let mut state = self.lock();
        if now_ns.saturating_sub(state.beat_ns.max(own_ns)) <= LONGEST_NS {
            return self.trust(&mut state, now_ns);
        }
        let is_late = |state: &mut State| state.beat_ns < now_ns;
        let waited = self.beaten.wait_timeout_while(state, MAX_WAIT, is_late);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            self.beat(state, now_ns, 0);
        }
    }

    /// A beat at `now_ns` of a thread that was ready and waited for a processor for so long since the last one.
    fn beat(&self, mut state: MutexGuard<'_, State>, now_ns: u64, waited_ns: u64) {
        let slept_ns = asleep_ns().saturating_sub(state.asleep_ns);
        let late_ns = now_ns.saturating_sub(state.beat_ns).saturating_sub(waited_ns);
        if slept_ns > LONGEST_NS || late_ns > LONGEST_NS {
            state.asleep_ns += slept_ns;
            let asleep_ns = if slept_ns > LONGEST_NS { slept_ns } else { 0 };
            if state.gaps.len() == MAX_GAPS {
                state.gaps.pop_front();
            }
            let begin_ns = state.beat_ns.min(now_ns);
            state.gaps.push_back(Gap { begin_ns, end_ns: now_ns, asleep_ns });
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        self.trust(&mut state, now_ns);
        drop(state);
        self.beaten.notify_all();
    }

    fn trust(&self, state: &mut State, now_ns: u64) {
        state.beat_ns = state.beat_ns.max(now_ns);
        self.trusted_until_ns.store(state.beat_ns + LONGEST_NS, Ordering::Release);
    }
}

/// The thread: it ends when no run uses it any more.
fn beat(shared: &Weak<Shared>) {
    let waits = ThreadWait::of_this_thread();
    let wait_ns = || waits.as_ref().and_then(ThreadWait::wait_ns);
    let mut waited_before = wait_ns();
    while let Some(shared) = shared.upgrade() {
        let waited = wait_ns();
        let more_ns = waited.zip(waited_before).map_or(0, |(now, before)| now.saturating_sub(before));
        waited_before = waited;
        let state = shared.lock();
        // Under the lock, so that it is later than the time of every thread that waits for it.
        shared.beat(state, now_ns(), more_ns);
        drop(shared);
        std::thread::sleep(Duration::from_nanos(BEAT_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without its thread, so that time is what the test says.
    fn at(beat_ns: u64) -> Watchdog {
        let watchdog = Watchdog::default();
        let mut state = watchdog.0.lock();
        state.asleep_ns = asleep_ns();
        watchdog.0.trust(&mut state, beat_ns);
        drop(state);
        watchdog
    }

    const S: u64 = 1_000_000_000;

    fn beat_at(watchdog: &Watchdog, now_ns: u64, waited_ns: u64) {
        watchdog.0.beat(watchdog.0.lock(), now_ns, waited_ns);
    }

    #[test]
    fn whoever_runs_first_after_a_stop_waits_for_the_beat_that_notices_it() {
        for own_ns in [0, 10 * S + 20_000_000] {
            let watchdog = at(10 * S);
            assert!(!watchdog.is_due(10 * S + LONGEST_NS, 0));
            // The thread of an I/O that ended after a stop of 5 s, and that of the watchdog.
            assert!(watchdog.is_due(15 * S, 0));
            std::thread::scope(|scope| {
                let first = scope.spawn(|| watchdog.look(15 * S, own_ns));
                beat_at(&watchdog, 15 * S + 3, 0);
                assert_eq!(first.join().unwrap(), 1);
            });
            let gap = Gap { begin_ns: 10 * S, end_ns: 15 * S + 3, asleep_ns: 0 };
            assert_eq!(watchdog.gaps(0, u64::MAX), [gap]);
            assert!(watchdog.is_due(15 * S, 0), "another one has not taken notice");
            assert!(!watchdog.is_due(15 * S, 1));
            assert_eq!(watchdog.look(15 * S + 4, 15 * S), 1, "it is one gap");
            assert!(watchdog.was_away(14 * S, 15 * S, 15 * S) && !watchdog.was_away(16 * S, 17 * S, 17 * S));
            watchdog.extend(15 * S + 7);
            assert_eq!(watchdog.gaps(0, u64::MAX)[0].end_ns, 15 * S + 7);
        }
    }

    /// A busy machine keeps the watchdog's thread waiting while others run, or all of them.
    #[test]
    fn who_waits_for_a_processor_is_not_stopped() {
        let watchdog = at(10 * S);
        assert!(watchdog.is_due(11 * S, 0));
        assert_eq!(watchdog.look(11 * S, 11 * S - 1000), 0);
        assert!(!watchdog.is_due(11 * S, 0));
        beat_at(&watchdog, 13 * S, 2 * S - LONGEST_NS);
        assert_eq!(watchdog.count(), 0);
        beat_at(&watchdog, 15 * S, 2 * S - LONGEST_NS - 1);
        assert_eq!(watchdog.count(), 1);
    }

    #[test]
    fn what_is_remembered_is_limited() {
        let watchdog = at(S);
        for second in 2..1000 {
            beat_at(&watchdog, second * S, 0);
        }
        assert_eq!((watchdog.count(), watchdog.gaps(0, u64::MAX).len()), (998, MAX_GAPS));
    }

    #[test]
    fn the_thread_ends_with_the_last_who_asks() {
        let watchdog = Watchdog::default();
        watchdog.start().unwrap();
        watchdog.start().unwrap();
        let weak = Arc::downgrade(&watchdog.0);
        drop(watchdog);
        let ends = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            weak.strong_count() == 0
        });
        assert!(ends);
    }
}
