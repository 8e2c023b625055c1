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
/// So many I/Os of a visit are followed before that ends early: its percentiles up to the 99th rest on them.
const FOLLOWED: u64 = 1000;
/// The first look at the rate, and the longest time between two looks.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(80);

/// For how long the programs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// To the end of a visit, unless its devices make more than 100 000 I/Os per second; then for its first 2 ms and 1000
    /// I/Os at least.
    #[default]
    Windowed,
    /// To the end of every visit. Above 100 000 I/Os per second, only its first 2 ms and 1000 I/Os at least are timed and followed
    /// to the calls that they came from: that costs most of what the programs cost. From then on a single look at each I/O counts it.
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
    stats: Vec<Option<DiskStat>>,
}

/// The beginning or the end of counting, between two looks at the kernel's counters.
struct Around {
    before: Vec<Option<DiskStat>>,
    after: Moment,
}

/// A visit that has begun.
pub(super) struct Visit {
    before: Snapshot,
    began: Around,
    stop: Sender<()>,
    thread: Option<JoinHandle<Option<Early>>>,
}

/// What ended before the visit did.
enum Early {
    /// Counting.
    Counting(Around),
    /// Timing, at this moment.
    Timing(Instant, Times),
}

/// What a visit gave.
pub(super) struct Ended {
    pub(super) counted: Counted,
    /// The kernel's counters when counting began and ended.
    pub(super) stats: [Vec<Option<DiskStat>>; 2],
    /// The same, just before.
    pub(super) just_before: [Vec<Option<DiskStat>>; 2],
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
        Self::begin_at(FAST_PER_S, programs, stats, attachment)
    }

    /// The same, where so many I/Os per second are fast.
    fn begin_at(
        fast_per_s: f64,
        programs: &Shared,
        stats: &Stats,
        attachment: Attachment,
    ) -> Result<Self, BpfError> {
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
                    .spawn(move || end_if_fast(fast_per_s, &programs, &stats, attachment, &stopped))
                    .ok()
            }
        };
        Ok(Self { before, began, stop, thread })
    }

    /// Counting ends, if it has not ended before.
    pub(super) fn end(self, programs: &Shared, stats: &[Option<StatFile>]) -> Result<Ended, BpfError> {
        let whole = self.began.after.at.elapsed();
        drop(self.stop);
        let early = self.thread.and_then(|thread| thread.join().ok()).flatten();
        let programs = locked(programs);
        let since_begin = |at: Instant| at.saturating_duration_since(self.began.after.at);
        let before = &self.before;
        let (counted, [observed, timed], stop) = match early {
            Some(Early::Counting(stop)) => {
                (before.until(&programs.snapshot()?), [since_begin(stop.after.at); 2], stop)
            }
            Some(Early::Timing(at, times)) => {
                let ended = stopped_at(&programs, stats);
                let counted = before.until_with(&times, &programs.snapshot()?);
                (counted, [whole, since_begin(at)], ended)
            }
            None => {
                let ended = stopped_at(&programs, stats);
                (before.until(&programs.snapshot()?), [whole; 2], ended)
            }
        };
        let just_before = [self.began.before, stop.before];
        let stats = [self.began.after.stats, stop.after.stats];
        Ok(Ended { counted, stats, just_before, observed, timed, whole })
    }
}

fn started(programs: &Programs, stats: &[Option<StatFile>]) -> Around {
    around(stats, |at| programs.start(at))
}

fn stopped_at(programs: &Programs, stats: &[Option<StatFile>]) -> Around {
    around(stats, |at| programs.stop(at))
}

/// Reads the counters of all devices, and of each again as soon as it is counted, or is no more.
fn around(stats: &[Option<StatFile>], act: impl FnOnce(&mut dyn FnMut(usize))) -> Around {
    let before = (0..stats.len()).map(|index| read(stats, index)).collect();
    let mut stats_after = Vec::with_capacity(stats.len());
    act(&mut |index| stats_after.push(read(stats, index)));
    Around { before, after: Moment { at: Instant::now(), stats: stats_after } }
}

fn read(stats: &[Option<StatFile>], index: usize) -> Option<DiskStat> {
    stats.get(index)?.as_ref()?.read().ok()
}

/// Looks at the rate until the visit ends; where it is high, ends the counting and detaches the programs, or ends the timing and
/// detaches those for it. The rate is that of all observed devices together, since each event costs.
fn end_if_fast(
    fast_per_s: f64,
    programs: &Shared,
    stats: &[Option<StatFile>],
    attachment: Attachment,
    stopped: &Receiver<()>,
) -> Option<Early> {
    let first = locked(programs).completed();
    let mut last = (Instant::now(), first);
    let mut pause = FIRST_LOOK;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let mut programs = locked(programs);
        let now = (Instant::now(), programs.completed());
        let rate = now.1.wrapping_sub(last.1) as f64 / now.0.duration_since(last.0).as_secs_f64();
        if rate > fast_per_s && now.1.wrapping_sub(first) >= FOLLOWED {
            if attachment == Attachment::Windowed {
                let stop = stopped_at(&programs, stats);
                programs.detach();
                return Some(Early::Counting(stop));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::check::{Takes, by_both, lost_of};
    use crate::bpf::device::BlockDevice;
    use crate::bpf::layout::{BlockOp, Task};
    use rdsk_testkit::{LoopDevice, Need, Turn, ZramDevice, requires, wait_until};
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    use std::path::Path;

    const SIZE: usize = 16 << 20;
    /// Reads after the programs have ended what they end early.
    const LATER: u64 = 500;
    /// The kernel may pass over an event of a program that runs already.
    const ATTEMPTS: usize = 50;
    const LONG: Duration = Duration::from_secs(120);

    fn read_one(file: &File, index: u64) {
        let mut memory = [0_u8; 8192];
        let start = memory.as_ptr().align_offset(4096);
        file.read_exact_at(&mut memory[start..start + 4096], index % 4096 * 4096).unwrap();
    }

    /// One visit in which every rate is a fast one; the reads that were made in it.
    fn visit(programs: &Shared, stats: &Stats, attachment: Attachment, file: &File) -> (Ended, u64) {
        let visit = Visit::begin_at(0.0, programs, stats, attachment).unwrap();
        let thread = visit.thread.as_ref().unwrap();
        let (began, mut reads) = (Instant::now(), 0);
        while !thread.is_finished() {
            assert!(began.elapsed() < LONG, "{reads} reads, and nothing ended early");
            read_one(file, reads);
            reads += 1;
        }
        (0..LATER).for_each(|index| read_one(file, index));
        assert!(wait_until(LONG, || read(stats, 0).is_some_and(|stat| stat.in_flight == 0)));
        (visit.end(programs, stats).unwrap(), reads + LATER)
    }

    fn own_bios(counted: &Counted) -> u64 {
        let is_own = |origin: &crate::bpf::BioOrigin| (origin.task, origin.op) == (Task::This, BlockOp::Read);
        counted.bios.iter().filter(|(origin, _)| is_own(origin)).map(|(_, [count, _])| count).sum()
    }

    /// Whether nothing was passed over and no other program read, so that counts are exact; whatever the visit says must be true.
    fn is_exact(attachment: Attachment, driver: Takes, (ended, reads): &(Ended, u64)) -> bool {
        let its = &ended.counted.devices[0];
        let (bpf, sysfs) = by_both(ended, 0, driver).unwrap();
        let (issued, own) = (ended.counted.issued(0, BlockOp::Read), own_bios(&ended.counted));
        assert!(ended.timed < ended.whole, "{its:?}");
        assert!(its.completed >= FOLLOWED, "{its:?} of {reads}");
        let is_counted = match attachment {
            Attachment::Throughout => {
                assert_eq!(ended.observed, ended.whole);
                lost_of(ended, 0, driver) == 0
                    && bpf == sysfs
                    && (issued, sysfs) == (*reads, *reads)
                    && own + LATER <= issued
            }
            _ => {
                assert_eq!(ended.observed, ended.timed);
                lost_of(ended, 0, driver) == 0 && issued == own && issued < *reads && bpf.abs_diff(sysfs) <= 1
            }
        };
        // An event that was passed over may be one whose time is then missing.
        is_counted && its.latency.count() == its.completed
    }

    /// The thread of a visit ends timing, or all counting, once it has seen enough; what is counted throughout is what sysfs counts,
    /// to the last read.
    #[test]
    fn what_ends_early_is_told_and_the_rest_is_exact() {
        if !requires(&[Need::Root, Need::Loop, Need::Zram, Need::Bpf]) {
            return;
        }
        let _turn = Turn::Bpf.take();
        let (disk, zram) =
            (LoopDevice::builder().size(SIZE as u64).create().unwrap(), ZramDevice::create(SIZE).unwrap());
        for (node, driver) in [(disk.path(), Takes::Requests), (zram.path(), Takes::Bios)] {
            let directory = Path::new("/sys/class/block").join(node.file_name().unwrap());
            let flag = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
            let file = OpenOptions::new().read(true).custom_flags(flag).open(node).unwrap();
            let programs = Programs::load(&[BlockDevice::read(&directory).unwrap()]).unwrap();
            let programs = Arc::new(Mutex::new(programs));
            let stats = Arc::new(vec![StatFile::open(directory.join("stat")).ok()]);
            for attachment in [Attachment::Throughout, Attachment::Windowed, Attachment::Throughout] {
                let mut visits = (0..ATTEMPTS).map(|_| visit(&programs, &stats, attachment, &file));
                assert!(
                    visits.any(|seen| is_exact(attachment, driver, &seen)),
                    "{attachment:?} at {}",
                    node.display()
                );
            }
        }
    }
}
