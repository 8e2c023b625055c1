//! Whether what is open for writing may still be written: after a time in which this process did not run, its Claim is judged again
//! before the next byte. It opens nothing and issues no I/O.

use crate::clock;
use crate::watchdog::Watchdog;
use rdsk_targets::TargetError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A process that is stopped this often while it judges one target gives up.
const MAX_JUDGEMENTS: u32 = 16;

/// What is known of one open target, shared by all threads that write it.
///
/// A process that is stopped for 5 s between two writes: the watchdog counts a second gap, so that [`WriteGuard::is_due`] is true of the
/// next write; [`WriteGuard::judge`] looks who uses the target by now, and that write, and every later one, is refused if anything does.
/// In numbers: `judged` is 1 and the watchdog has counted 2 gaps, so that a write is due to be judged. While that takes 0.3 s, the process
/// is stopped once more: the watchdog counts 3, `judged` becomes 2, and it is judged again, until both are 3.
#[derive(Debug)]
pub struct WriteGuard {
    pub(crate) watchdog: Watchdog,
    /// The number of gaps noticed when the target was last judged.
    judged: AtomicU64,
    /// Why nothing more may be written to it.
    refusal: Mutex<Option<TargetError>>,
}

impl WriteGuard {
    /// To be made before the target is opened: what happens while the process is stopped in between is not overlooked then.
    pub fn new(watchdog: &Watchdog) -> Self {
        let judged = AtomicU64::new(watchdog.count());
        Self { watchdog: watchdog.clone(), judged, refusal: Mutex::default() }
    }

    /// Whether the claim must be [judged](Self::judge) again before anything is written at `now_ns`: this process has not run for a while,
    /// and another program may have taken the target. Two loads, for the hot loops.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.watchdog.is_due(now_ns, self.judged.load(Ordering::Relaxed))
    }

    /// Judges the target called `name` again where that is needed, for a thread whose last two readings of the clock are these, the later
    /// one first; whether it may go on to write.
    #[cold]
    pub fn judge(
        &self,
        [mut now_ns, mut own_ns]: [u64; 2],
        name: &str,
        judge_again: impl Fn() -> Result<(), TargetError>,
    ) -> bool {
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..MAX_JUDGEMENTS {
            if refusal.is_some() {
                return false;
            }
            let gaps = self.watchdog.look(now_ns, own_ns);
            if self.judged.load(Ordering::Relaxed) >= gaps {
                return true;
            }
            own_ns = clock::now_ns();
            *refusal = judge_again().err();
            now_ns = clock::now_ns();
            self.watchdog.extend(now_ns);
            self.judged.store(gaps, Ordering::Relaxed);
        }
        let what = "this process is stopped again and again, and its use cannot be judged meanwhile";
        refusal.get_or_insert(TargetError::Changed { path: name.to_owned(), what });
        false
    }

    /// Why nothing more may be written; said once.
    pub fn take_refusal(&self) -> Option<TargetError> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
