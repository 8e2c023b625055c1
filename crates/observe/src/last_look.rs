//! When the counters of devices hold the last request of a visit. The kernel counts a request shortly after it wakes the waiting process,
//! so the counters are read again while requests are in flight. It decides when, and reads nothing itself.

use crate::CountersError;
use rdsk_model::DiskStat;
use std::time::Duration;

/// How often the counters are read again while anything is in flight; no more, because another program may always have requests in flight.
pub(crate) const MAX_RESAMPLES: u32 = 10;
pub(crate) const RESAMPLE_AFTER: Duration = Duration::from_micros(50);
/// Who completes a request may lose its processor before it counts it, for some ms on a busy machine or where the machine itself waits.
/// Then the pauses double up to this one: 51 ms together.
const LONGEST_PAUSE: Duration = Duration::from_micros(25_600);

/// When everything of a visit is stable, each request was waited for, and only what completed just now may be uncounted: one for
/// each processor that waits. More is mostly what the kernel or others write.
const MOST_LATE: u64 = 4;

/// How long requests that were in flight before a visit may hold it up: read-ahead of an earlier one, on a device of a few MB/s.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// One sample of a device, or why there is none; and those of all.
pub(crate) type Sample = Result<DiskStat, CountersError>;
pub(crate) type Samples = Vec<Sample>;

/// Looks until nothing is in flight, or for the last of some attempts.
pub(crate) fn settled(mut look: impl FnMut() -> Samples) -> Samples {
    let mut samples = look();
    for _ in 0..MAX_RESAMPLES {
        if samples.iter().flatten().all(|stat| stat.in_flight == 0) {
            break;
        }
        std::thread::sleep(RESAMPLE_AFTER);
        samples = look();
    }
    samples
}

/// Which last requests of a visit may still be uncounted, and are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Reads, of devices that did nothing else. What is in flight after writes is mostly what the kernel writes by itself, and to wait for
    /// it would be part of the time until the data is stable.
    Reads,
    /// Reads, writes, discards and flushes.
    All,
}

/// The last look at devices, and how many requests of each stayed in flight although they were waited for.
#[derive(Debug, Default)]
pub(crate) struct LastLook {
    in_vain: Vec<u64>,
}

impl LastLook {
    /// Looks as [`settled`] does, and longer where a device did what is awaited since `first`, still has something in flight, and either
    /// counts nothing or has less and less in flight: the last requests of the visit, by all counts. More than was in flight
    /// when this began is of others.
    pub(crate) fn settled(
        &mut self,
        first: &Samples,
        awaited: Awaited,
        mut look: impl FnMut() -> Samples,
    ) -> Samples {
        let early = settled(&mut look);
        let mut samples = early.clone();
        self.in_vain.resize(samples.len(), 0);
        for (in_vain, early) in self.in_vain.iter_mut().zip(&early) {
            *in_vain = (*in_vain).min(early.as_ref().map_or(0, |stat| stat.in_flight));
        }
        let mut pause = 2 * RESAMPLE_AFTER;
        let mut awaited = self.awaited(first, awaited, &samples);
        let mut others = Vec::new();
        while !awaited.is_empty() && pause <= LONGEST_PAUSE {
            std::thread::sleep(pause);
            pause *= 2;
            let next = look();
            // What others did meanwhile on the other devices is no part of the visit.
            awaited.retain(|&index| {
                let may_be_ours = may_be_ours(&early[index], &next[index]);
                let goes_on = may_be_ours && goes_on(&samples[index], &next[index]);
                if may_be_ours || next[index].is_err() {
                    samples[index] = next[index].clone();
                } else {
                    others.push(index);
                }
                goes_on
            });
        }
        // The program that has these in flight has them for longer, or goes on; the next visits do not wait for them again.
        for index in awaited.into_iter().chain(others) {
            self.in_vain[index] = samples[index].as_ref().map_or(0, |stat| stat.in_flight);
        }
        samples
    }

    /// Looks before a visit until nothing is in flight, and longer where a device works off what it had at the first look: read-ahead
    /// that an earlier visit caused and no longer waits for. It takes no longer than [`LONGEST_WAIT`]. A device that completes more than
    /// it had in flight serves other programs, and is not waited for.
    pub(crate) fn drained(&mut self, mut look: impl FnMut() -> Samples) -> Samples {
        let early = settled(&mut look);
        let mut samples = early.clone();
        self.in_vain.resize(samples.len(), 0);
        let in_flight = |sample: &Sample| sample.as_ref().map_or(0, |stat| stat.in_flight);
        let (mut pause, mut waited) = (2 * RESAMPLE_AFTER, Duration::ZERO);
        loop {
            let is_working = |index: usize| {
                in_flight(&samples[index]) > self.in_vain[index]
                    && may_be_ours(&early[index], &samples[index])
            };
            if waited >= LONGEST_WAIT || !(0..samples.len()).any(is_working) {
                break;
            }
            std::thread::sleep(pause);
            waited += pause;
            pause = (2 * pause).min(LONGEST_PAUSE);
            samples = look();
        }
        for (in_vain, sample) in self.in_vain.iter_mut().zip(&samples) {
            *in_vain = in_flight(sample);
        }
        samples
    }

    /// The devices, by index, that may still have to count the last requests of the visit.
    fn awaited(&self, first: &Samples, awaited: Awaited, samples: &Samples) -> Vec<usize> {
        let may_be_late = |first: &DiskStat, now: &DiskStat| match awaited {
            Awaited::Reads => has_only_read(first, now),
            Awaited::All => {
                has_only_read(first, now) || (counts(now) != counts(first) && now.in_flight <= MOST_LATE)
            }
        };
        let is_awaited = |index: &usize| match (&first[*index], &samples[*index]) {
            (Ok(first), Ok(now)) => now.in_flight > self.in_vain[*index] && may_be_late(first, now),
            _ => false,
        };
        (0..samples.len()).filter(is_awaited).collect()
    }
}

/// Requests that are counted: reads, writes, discards and flushes.
fn counts(stat: &DiskStat) -> [Option<u64>; 4] {
    [Some(stat.read_ios), Some(stat.write_ios), stat.discard_ios, stat.flush_ios]
}

fn has_only_read(first: &DiskStat, now: &DiskStat) -> bool {
    now.read_ios != first.read_ios && counts(now)[1..] == counts(first)[1..]
}

/// Whether a device completed no more between two looks than it had in flight at the first. A flush is one of the writes, too.
fn may_be_ours(early: &Sample, now: &Sample) -> bool {
    let completed = |stat: &DiskStat| counts(stat)[..3].iter().flatten().sum::<u64>();
    matches!((early, now), (Ok(early), Ok(now)) if completed(now).saturating_sub(completed(early)) <= early.in_flight)
}

/// Whether it still has something in flight, and completed nothing between two looks or got less to do than it completed.
fn goes_on(before: &Sample, now: &Sample) -> bool {
    matches!((before, now), (Ok(before), Ok(now))
        if now.in_flight > 0 && (counts(before) == counts(now) || now.in_flight < before.in_flight))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device after this many reads and writes, with so many requests in flight.
    fn stat(read_ios: u64, write_ios: u64, in_flight: u64) -> DiskStat {
        DiskStat { read_ios, write_ios, in_flight, ..DiskStat::default() }
    }

    /// What is seen of one device that shows `early`, and from look number `change` on `late`; and the number of looks.
    fn seen(last: &mut LastLook, early: DiskStat, late: DiskStat, change: u32) -> (u64, u32) {
        let (stat, looks) = seen_of(last, Awaited::Reads, early, late, change);
        (stat.read_ios, looks)
    }

    fn seen_of(
        last: &mut LastLook,
        awaited: Awaited,
        early: DiskStat,
        late: DiskStat,
        change: u32,
    ) -> (DiskStat, u32) {
        let mut looks = 0;
        let samples = last.settled(&vec![Ok(stat(0, 0, 0))], awaited, || {
            looks += 1;
            vec![Ok(if looks < change { early } else { late })]
        });
        (*samples[0].as_ref().unwrap(), looks)
    }

    /// The first look, and the same again as often as anything is in flight.
    const SHORT: u32 = 1 + MAX_RESAMPLES;
    /// Those whose pauses double, from 0.1 ms to 25.6 ms.
    const LONG: u32 = 9;

    #[test]
    fn a_read_that_is_counted_late_is_waited_for() {
        for change in [1, 5, SHORT, SHORT + 1, SHORT + LONG] {
            let seen = seen(&mut LastLook::default(), stat(22, 0, 1), stat(23, 0, 0), change);
            assert_eq!(seen, (23, change));
        }
    }

    #[test]
    fn reads_that_are_counted_late_one_after_the_other_are_waited_for() {
        let mut looks = 0_u64;
        let samples = LastLook::default().settled(&vec![Ok(stat(0, 0, 0))], Awaited::Reads, || {
            looks += 1;
            let done = looks.saturating_sub(SHORT.into()).min(3);
            vec![Ok(stat(20 + done, 0, 3 - done))]
        });
        assert_eq!(samples, [Ok(stat(23, 0, 0))]);
    }

    #[test]
    fn a_write_that_is_counted_late_is_waited_for_when_all_is_stable() {
        for change in [1, SHORT + 1, SHORT + LONG] {
            let late = stat(0, 23, 0);
            let seen = seen_of(&mut LastLook::default(), Awaited::All, stat(0, 22, 1), late, change);
            assert_eq!(seen, (late, change));
        }
        let flush = |count| DiskStat { flush_ios: Some(count), ..stat(0, 22 + count, 1 - count) };
        let seen = seen_of(&mut LastLook::default(), Awaited::All, flush(0), flush(1), SHORT + 1);
        assert_eq!(seen, (flush(1), SHORT + 1));
        let many = seen_of(&mut LastLook::default(), Awaited::All, stat(0, 22, 5), stat(0, 27, 0), 100);
        assert_eq!(many, (stat(0, 22, 5), SHORT), "that is what the kernel writes");
        let idle = stat(0, 0, 1);
        let (_, looks) = seen_of(&mut LastLook::default(), Awaited::All, idle, stat(0, 1, 0), 100);
        assert_eq!(looks, SHORT, "it did nothing yet");
    }

    #[test]
    fn a_quiet_device_is_looked_at_once() {
        assert_eq!(seen(&mut LastLook::default(), stat(23, 0, 0), stat(24, 0, 0), 2), (23, 1));
        // Nothing says when a device without counters is done.
        let gone = || vec![Err(CountersError::SwitchedOff { device: "sda".into() })];
        assert_eq!(LastLook::default().settled(&gone(), Awaited::All, gone), gone());
    }

    /// What a device shows before a visit, look by look, and how many looks there were.
    fn drained(last: &mut LastLook, of_look: impl Fn(u64) -> DiskStat) -> (DiskStat, u64) {
        let mut looks = 0;
        let samples = last.drained(|| {
            looks += 1;
            vec![Ok(of_look(looks))]
        });
        (*samples[0].as_ref().unwrap(), looks)
    }

    /// Two requests of read-ahead on a slow device: they are done long after the short looks.
    #[test]
    fn a_visit_begins_when_the_read_ahead_of_the_one_before_is_done() {
        let slow = |look: u64| match look {
            ..=15 => stat(40, 0, 2),
            16..=30 => stat(41, 0, 1),
            _ => stat(42, 0, 0),
        };
        assert_eq!(drained(&mut LastLook::default(), slow), (stat(42, 0, 0), 31));
        let idle = drained(&mut LastLook::default(), |_| stat(42, 0, 0));
        assert_eq!(idle, (stat(42, 0, 0), 1), "an idle device costs one look");
    }

    #[test]
    fn a_visit_does_not_wait_for_other_programs_nor_twice_for_what_never_ends() {
        let busy = |look: u64| stat(10 * look, 0, 4);
        let (_, looks) = drained(&mut LastLook::default(), busy);
        assert_eq!(looks, u64::from(SHORT) + 1, "it has completed more than it had in flight");
        let mut last = LastLook::default();
        let (_, looks) = drained(&mut last, |_| stat(5, 0, 1));
        let longest = LONGEST_WAIT.as_micros().div_ceil(LONGEST_PAUSE.as_micros());
        assert!(u128::from(looks) <= u128::from(SHORT + LONG) + longest, "{looks} looks");
        assert_eq!(drained(&mut last, |_| stat(5, 0, 1)).1, u64::from(SHORT));
    }

    #[test]
    fn what_the_kernel_writes_and_what_others_do_is_not_waited_for() {
        let (_, looks) = seen(&mut LastLook::default(), stat(23, 1, 1), stat(23, 2, 0), 100);
        assert_eq!(looks, SHORT, "it wrote");
        let (_, looks) = seen(&mut LastLook::default(), stat(0, 0, 1), stat(1, 0, 0), 100);
        assert_eq!(looks, SHORT, "it did nothing yet");
        let once = seen(&mut LastLook::default(), stat(22, 0, 4), stat(23, 0, 4), SHORT + 2);
        assert_eq!(once, (23, SHORT + 2), "it goes on counting");
        let more = seen(&mut LastLook::default(), stat(22, 0, 4), stat(27, 0, 3), SHORT + 2);
        assert_eq!(more, (22, SHORT + 2), "others have the device");
    }

    #[test]
    fn devices_that_are_not_waited_for_keep_their_sample() {
        let (mut looks, nothing) = (0, Ok(stat(0, 0, 0)));
        let samples = LastLook::default().settled(&vec![nothing.clone(), nothing], Awaited::Reads, || {
            looks += 1;
            vec![Ok(stat(22, 0, u64::from(looks <= SHORT))), Ok(stat(u64::from(looks), 0, 0))]
        });
        let reads: Vec<u64> = samples.iter().map(|stat| stat.as_ref().unwrap().read_ios).collect();
        assert_eq!(reads, [22, SHORT.into()]);
    }

    #[test]
    fn what_was_waited_for_in_vain_is_not_waited_for_again() {
        let mut last = LastLook::default();
        assert_eq!(seen(&mut last, stat(23, 0, 2), stat(23, 0, 2), 1), (23, SHORT + LONG));
        assert_eq!(seen(&mut last, stat(23, 0, 2), stat(23, 0, 2), 1), (23, SHORT));
        // They have gone, and others come.
        assert_eq!(seen(&mut last, stat(23, 0, 0), stat(23, 0, 0), 1), (23, 1));
        assert_eq!(seen(&mut last, stat(22, 0, 2), stat(23, 0, 1), SHORT + 1), (23, SHORT + LONG));
        // One more than those.
        assert_eq!(seen(&mut last, stat(22, 0, 3), stat(23, 0, 0), SHORT + 1), (23, SHORT + 1));
    }
}
