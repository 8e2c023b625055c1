//! One visit under the programs: counting begins, a thread looks how many I/Os there are and ends counting or timing early where
//! the programs would slow them down, and the kernel's own counters are read at the same moments. It draws no conclusions.

use crate::bpf::error::BpfError;
use crate::bpf::programs::Programs;
use crate::bpf::snapshot::{Counted, Snapshot, Times};
use crate::diskstat::StatFile;
use rdsk_model::DiskStat;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Above this rate the programs cost more than a percent or two, and a part of a visit has thousands of requests.
const FAST_PER_S: f64 = 100_000.0;
/// The first look at the rate, and the longest time between two looks.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(80);

/// For how long the programs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// To the end of a visit, unless its devices make more than 100 000 I/Os per second; then for its first 10 ms at least.
    #[default]
    Windowed,
    /// To the end of every visit. Above 100 000 I/Os per second, only the first 10 ms or more of it are timed: the clocks and the ends
    /// of I/Os cost most, and so many I/Os are a sample of thousands.
    Throughout,
    /// To the end of every visit, which is timed throughout at any rate; no thread looks meanwhile. A process of one thread makes
    /// its system calls quicker.
    Timed,
}

/// The programs, shared with the thread of a visit.
pub(super) type Shared = Arc<Mutex<Programs>>;
/// The counters of the devices in sysfs, in the order of the programs.
pub(super) type Stats = Arc<Vec<Option<StatFile>>>;

/// A moment at which counting began or ended.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    at: Instant,
    /// What the kernel had counted for each device; `None` where it could not be read.
    pub(super) stats: Vec<Option<DiskStat>>,
}

/// A visit that has begun.
pub(super) struct Visit {
    before: Snapshot,
    began: Moment,
    stop: Sender<()>,
    thread: Option<JoinHandle<Option<Early>>>,
}

/// What ended before the visit did.
enum Early {
    /// Counting.
    Counting(Moment),
    /// Timing, at this moment.
    Timing(Instant, Times),
}

/// What a visit gave.
pub(super) struct Ended {
    pub(super) counted: Counted,
    /// The kernel's counters when counting began and ended.
    pub(super) stats: [Vec<Option<DiskStat>>; 2],
    /// How long the programs counted, how long they took times, and the whole visit.
    pub(super) observed: Duration,
    pub(super) timed: Duration,
    pub(super) whole: Duration,
}

/// The programs; a thread that panicked has left them usable.
pub(super) fn locked(programs: &Shared) -> MutexGuard<'_, Programs> {
    programs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Visit {
    /// Counting begins.
    pub(super) fn begin(programs: &Shared, stats: &Stats, attachment: Attachment) -> Result<Self, BpfError> {
        let (before, began) = {
            let mut programs = locked(programs);
            programs.attach()?;
            let before = programs.snapshot()?;
            (before, started(&programs, stats))
        };
        let (stop, stopped) = channel();
        let thread = match attachment {
            Attachment::Timed => None,
            Attachment::Windowed | Attachment::Throughout => {
                let (programs, stats) = (Arc::clone(programs), Arc::clone(stats));
                std::thread::Builder::new()
                    .name("rdsk-bpf".to_owned())
                    .spawn(move || end_if_fast(&programs, &stats, attachment, &stopped))
                    .ok()
            }
        };
        Ok(Self { before, began, stop, thread })
    }

    /// Counting ends, if it has not ended before.
    pub(super) fn end(self, programs: &Shared, stats: &[Option<StatFile>]) -> Result<Ended, BpfError> {
        let whole = self.began.at.elapsed();
        drop(self.stop);
        let early = self.thread.and_then(|thread| thread.join().ok()).flatten();
        let programs = locked(programs);
        let since_begin = |at: Instant| at.saturating_duration_since(self.began.at);
        let before = &self.before;
        let (counted, [observed, timed], last) = match early {
            Some(Early::Counting(moment)) => {
                (before.until(&programs.snapshot()?), [since_begin(moment.at); 2], moment.stats)
            }
            Some(Early::Timing(at, times)) => {
                let ended = stopped_at(&programs, stats);
                let counted = before.until_with(&times, &programs.snapshot()?);
                (counted, [whole, since_begin(at)], ended.stats)
            }
            None => {
                let ended = stopped_at(&programs, stats);
                (before.until(&programs.snapshot()?), [whole; 2], ended.stats)
            }
        };
        Ok(Ended { counted, stats: [self.began.stats, last], observed, timed, whole })
    }
}

fn started(programs: &Programs, stats: &[Option<StatFile>]) -> Moment {
    let mut seen = Vec::with_capacity(stats.len());
    programs.start(|index| seen.push(read(stats, index)));
    Moment { at: Instant::now(), stats: seen }
}

fn stopped_at(programs: &Programs, stats: &[Option<StatFile>]) -> Moment {
    let mut seen = Vec::with_capacity(stats.len());
    programs.stop(|index| seen.push(read(stats, index)));
    Moment { at: Instant::now(), stats: seen }
}

fn read(stats: &[Option<StatFile>], index: usize) -> Option<DiskStat> {
    stats.get(index)?.as_ref()?.read().ok()
}

/// Looks at the rate until the visit ends; where it is high, ends the counting and detaches the programs, or ends the timing and
/// detaches those for it. The rate is that of all observed devices together, since each event costs.
fn end_if_fast(
    programs: &Shared,
    stats: &[Option<StatFile>],
    attachment: Attachment,
    stopped: &Receiver<()>,
) -> Option<Early> {
    let mut last = (Instant::now(), locked(programs).completed());
    let mut pause = FIRST_LOOK;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let mut programs = locked(programs);
        let now = (Instant::now(), programs.completed());
        let rate = now.1.wrapping_sub(last.1) as f64 / now.0.duration_since(last.0).as_secs_f64();
        if rate > FAST_PER_S {
            if attachment == Attachment::Windowed {
                let moment = stopped_at(&programs, stats);
                programs.detach();
                return Some(Early::Counting(moment));
            }
            programs.stop_timing();
            let (at, times) = (Instant::now(), programs.times());
            programs.detach_timing();
            return Some(Early::Timing(at, times));
        }
        (last, pause) = (now, (pause * 2).min(LONGEST_LOOK));
    }
    None
}
