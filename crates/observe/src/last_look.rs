//! When the counters of devices hold the last request of a visit. The kernel counts a request shortly after it wakes the waiting process,
//! so the counters are read again while requests are in flight. It decides when, and reads nothing itself.

use rdsk_model::DiskStat;
use std::time::Duration;

/// How often the counters are read again while anything is in flight; no more, because another program may always have requests in flight.
pub(crate) const MAX_RESAMPLES: u32 = 10;
pub(crate) const RESAMPLE_AFTER: Duration = Duration::from_micros(50);
/// Who completes a request may lose its processor before it counts it, for some ms on a busy machine or where the machine itself waits.
/// Then the pauses double up to this one: 51 ms together.
const LONGEST_PAUSE: Duration = Duration::from_micros(25_600);

/// One sample of each device, or why there is none.
pub(crate) type Samples = Vec<Result<DiskStat, String>>;

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

/// The last look at devices, and how many requests of each stayed in flight although they were waited for.
#[derive(Debug, Default)]
pub(crate) struct LastLook {
    in_vain: Vec<u64>,
}

impl LastLook {
    /// Looks as [`settled`] does, and longer where a device only read since `first`, still has something in flight and counts nothing:
    /// the visit's last read, as far as anybody can tell. What is in flight after writes is mostly what the kernel writes by itself, and
    /// to wait for it would be part of the time until the data is stable.
    pub(crate) fn settled(&mut self, first: &Samples, mut look: impl FnMut() -> Samples) -> Samples {
        let mut samples = settled(&mut look);
        self.in_vain.resize(samples.len(), 0);
        let mut pause = 2 * RESAMPLE_AFTER;
        let mut awaited = self.awaited(first, &samples);
        while !awaited.is_empty() && pause <= LONGEST_PAUSE {
            std::thread::sleep(pause);
            pause *= 2;
            let next = look();
            let stands_still = |index: &usize| has_same_counts(&samples[*index], &next[*index]);
            let still = awaited.iter().copied().filter(stands_still).collect();
            // What others did meanwhile on the other devices is no part of the visit.
            for &index in &awaited {
                samples[index] = next[index].clone();
            }
            awaited = still;
        }
        // Whoever has these in flight has them for longer; the next visits do not wait for them again.
        for index in awaited {
            self.in_vain[index] = samples[index].as_ref().map_or(0, |stat| stat.in_flight);
        }
        samples
    }

    /// The devices, by index, that may still have to count the last read of the visit.
    fn awaited(&self, first: &Samples, samples: &Samples) -> Vec<usize> {
        let is_awaited = |index: &usize| match (&first[*index], &samples[*index]) {
            (Ok(first), Ok(now)) => now.in_flight > self.in_vain[*index] && has_only_read(first, now),
            _ => false,
        };
        (0..samples.len()).filter(is_awaited).collect()
    }
}

fn has_only_read(first: &DiskStat, now: &DiskStat) -> bool {
    let others = |stat: &DiskStat| (stat.write_ios, stat.discard_ios, stat.flush_ios);
    now.read_ios != first.read_ios && others(now) == others(first)
}

/// Whether a device completed nothing between two looks and still has something in flight.
fn has_same_counts(before: &Result<DiskStat, String>, now: &Result<DiskStat, String>) -> bool {
    let counts = |stat: &DiskStat| (stat.read_ios, stat.write_ios, stat.discard_ios, stat.flush_ios);
    matches!((before, now), (Ok(before), Ok(now)) if now.in_flight > 0 && counts(before) == counts(now))
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
        let mut looks = 0;
        let samples = last.settled(&vec![Ok(stat(0, 0, 0))], || {
            looks += 1;
            vec![Ok(if looks < change { early } else { late })]
        });
        (samples[0].as_ref().unwrap().read_ios, looks)
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
    fn a_quiet_device_is_looked_at_once() {
        assert_eq!(seen(&mut LastLook::default(), stat(23, 0, 0), stat(24, 0, 0), 2), (23, 1));
        // Nothing tells when a device without counters is done.
        let gone = || vec![Err("gone".to_owned())];
        assert_eq!(LastLook::default().settled(&gone(), gone), gone());
    }

    #[test]
    fn what_the_kernel_writes_and_what_others_do_is_not_waited_for() {
        let (_, looks) = seen(&mut LastLook::default(), stat(23, 1, 1), stat(23, 2, 0), 100);
        assert_eq!(looks, SHORT, "it wrote");
        let (_, looks) = seen(&mut LastLook::default(), stat(0, 0, 1), stat(1, 0, 0), 100);
        assert_eq!(looks, SHORT, "it did nothing yet");
        let seen = seen(&mut LastLook::default(), stat(22, 0, 4), stat(23, 0, 4), SHORT + 2);
        assert_eq!(seen, (23, SHORT + 2), "it goes on counting");
    }

    #[test]
    fn devices_that_are_not_waited_for_keep_their_sample() {
        let (mut looks, nothing) = (0, Ok(stat(0, 0, 0)));
        let samples = LastLook::default().settled(&vec![nothing.clone(), nothing], || {
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
        // One more than that.
        assert_eq!(seen(&mut last, stat(22, 0, 3), stat(23, 0, 2), SHORT + 1), (23, SHORT + 1));
    }
}
