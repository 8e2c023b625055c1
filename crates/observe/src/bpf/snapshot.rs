//! What the programs counted up to one moment, and the difference of two moments. Plain data and arithmetic; it reads nothing.

use crate::bpf::layout::{BioOrigin, BlockOp, COUNTERS, Counter, RequestKind};
use rdsk_stats::Histogram;
use std::collections::BTreeMap;

/// Everything that was counted up to a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When, on the clock of the programs.
    pub at_ns: u64,
    /// In the order in which the devices were named.
    pub devices: Vec<DeviceTotals>,
    /// How many requests of each kind.
    pub requests: BTreeMap<RequestKind, u64>,
    /// How many bios of each origin, and their bytes.
    pub bios: BTreeMap<BioOrigin, [u64; 2]>,
    /// Children whose bios are counted as those of others, because there were too many to follow.
    pub unfollowed: u64,
}

/// The counters of all devices at the moment when the programs stopped taking times, while counting went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// When, on the clock of the programs.
    pub at_ns: u64,
    /// In the order in which the devices were named.
    pub devices: Vec<DeviceTotals>,
}

/// The counters of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTotals {
    pub(super) counters: [u64; COUNTERS],
    pub(super) buckets: Vec<u64>,
    /// Requests in flight at the moment; bios for a bio-based device.
    pub in_flight: u64,
    /// The most that was in flight since counting began, or was forgotten.
    pub deepest: u64,
}

impl Snapshot {
    /// What was counted from this moment, just before counting began, to a later one of the same programs.
    pub fn until(&self, later: &Self) -> Counted {
        let devices = self.devices.iter().zip(&later.devices);
        self.counted(later, devices.map(|(before, after)| before.until(after, later.at_ns)).collect())
    }

    /// The same, where times were taken to an earlier moment only: latencies, depth and the origins of bios are those until then.
    pub fn until_with(&self, timed: &Times, later: &Self) -> Counted {
        let devices = self.devices.iter().zip(&timed.devices).zip(&later.devices);
        let devices = devices.map(|((before, timed_until), after)| {
            let counts = before.until(after, later.at_ns);
            before.until(timed_until, timed.at_ns).with_counts_of(&counts)
        });
        self.counted(later, devices.collect())
    }

    fn counted(&self, later: &Self, devices: Vec<DeviceCounted>) -> Counted {
        let interval_ns = later.at_ns.saturating_sub(self.at_ns);
        let requests = later.requests.iter().filter_map(|(kind, count)| {
            let grown = count.wrapping_sub(self.requests.get(kind).copied().unwrap_or(0));
            (grown > 0).then_some((*kind, grown))
        });
        let bios = later.bios.iter().filter_map(|(origin, [count, bytes])| {
            let [counted, moved] = self.bios.get(origin).copied().unwrap_or([0; 2]);
            let grown = [count.wrapping_sub(counted), bytes.wrapping_sub(moved)];
            (grown[0] > 0).then(|| (origin.clone(), grown))
        });
        Counted { interval_ns, devices, requests: requests.collect(), bios: bios.collect() }
    }
}

impl DeviceTotals {
    /// What was in flight by the counters alone, modulo 2^64. Unlike `in_flight`, which is read a moment later, it fits the sums of
    /// their times; what is issued or completed while the lanes are read may make it one too small or too large.
    pub(crate) fn begun_and_not_ended(&self) -> u64 {
        let total = |counter: Counter| self.counters[counter as usize];
        let left = total(Counter::Completed)
            .wrapping_add(total(Counter::Requeued))
            .wrapping_add(total(Counter::Healed));
        total(Counter::Issued).wrapping_sub(left)
    }

    fn until(&self, later: &Self, to_ns: u64) -> DeviceCounted {
        let grown =
            |counter: Counter| later.counters[counter as usize].wrapping_sub(self.counters[counter as usize]);
        let buckets: Vec<u64> = later
            .buckets
            .iter()
            .zip(&self.buckets)
            .map(|(after, before)| after.wrapping_sub(*before))
            .collect();
        // Each request is in flight from its issuing to its completion or to the end of the interval. All sums are modulo 2^64,
        // their difference is small.
        let entered = grown(Counter::Issued).wrapping_mul(to_ns).wrapping_sub(grown(Counter::IssuedAt));
        let left = grown(Counter::Completed)
            .wrapping_add(grown(Counter::Requeued))
            .wrapping_add(grown(Counter::Healed));
        let left_at = grown(Counter::CompletedAt).wrapping_add(grown(Counter::RequeuedAt));
        let gone = left.wrapping_mul(to_ns).wrapping_sub(left_at);
        DeviceCounted {
            issued: grown(Counter::Issued),
            completed: grown(Counter::Completed),
            latency: Histogram::from_buckets(&buckets, grown(Counter::LatencySum)),
            depth_ns: entered.wrapping_sub(gone),
            deepest: later.deepest,
            in_flight_at_end: later.in_flight,
            merged_bios: grown(Counter::BackMerges) + grown(Counter::FrontMerges),
            merged_requests: grown(Counter::RequestMerges),
            splits: grown(Counter::Splits),
            lost: grown(Counter::Healed),
            unseen: grown(Counter::Unseen),
            earlier: grown(Counter::Earlier),
            earlier_flushes: grown(Counter::EarlierFlushes),
            empty: grown(Counter::Empty),
            flush_bios: grown(Counter::FlushBios),
            overflowed: grown(Counter::Overflow),
        }
    }
}

/// What was counted between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Time between them.
    pub interval_ns: u64,
    /// In the order in which the devices were named.
    pub devices: Vec<DeviceCounted>,
    /// Requests of each kind that were issued.
    pub requests: BTreeMap<RequestKind, u64>,
    /// Bios of each origin that arrived while times were taken, and their bytes.
    pub bios: BTreeMap<BioOrigin, [u64; 2]>,
}

impl Counted {
    /// Bytes of the reads and writes that a device was given.
    pub fn begun_bytes(&self, device: usize) -> u64 {
        let is_data =
            |kind: &RequestKind| kind.device == device && matches!(kind.op, BlockOp::Read | BlockOp::Write);
        let data = self.requests.iter().filter(|(kind, _)| is_data(kind));
        data.map(|(kind, count)| u64::from(kind.bytes).saturating_mul(*count)).sum()
    }

    /// Requests that a device was given, of one kind of operation.
    pub fn issued(&self, device: usize, op: BlockOp) -> u64 {
        let count_of =
            |(kind, count): (&RequestKind, &u64)| (kind.device == device && kind.op == op).then_some(*count);
        self.requests.iter().filter_map(count_of).sum()
    }
}

impl DeviceCounted {
    /// What needs no times is that of another, longer interval.
    fn with_counts_of(self, counts: &Self) -> Self {
        Self {
            merged_bios: counts.merged_bios,
            merged_requests: counts.merged_requests,
            splits: counts.splits,
            flush_bios: counts.flush_bios,
            overflowed: counts.overflowed,
            ..self
        }
    }
}

/// One device between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceCounted {
    /// Requests given to the driver; bios that arrived for a bio-based device.
    pub issued: u64,
    /// Of them and of earlier ones, those that are done.
    pub completed: u64,
    /// From issuing to completion, of those.
    pub latency: Histogram,
    /// Requests × time in flight, in nanoseconds: divided by the interval, the mean queue depth.
    pub depth_ns: u64,
    /// The most that was in flight at once.
    pub deepest: u64,
    /// In flight at the end.
    pub in_flight_at_end: u64,
    /// Bios that joined a waiting request.
    pub merged_bios: u64,
    /// Waiting requests that joined another.
    pub merged_requests: u64,
    /// Bios that were cut.
    pub splits: u64,
    /// Requests whose place another one took although their completion was never seen.
    pub lost: u64,
    /// Completions of what was not seen to begin; at a device that takes bios, those that began before counting are among them.
    pub unseen: u64,
    /// Completions of requests that were made before counting began: none of them was missed.
    pub earlier: u64,
    /// Those of them that are flushes.
    pub earlier_flushes: u64,
    /// Requests without data that asked for a flush: sysfs counts them as writes, and the flush as a flush.
    pub empty: u64,
    /// Bios without data that ask for a flush, at a device that takes requests, whose driver is not given them.
    pub flush_bios: u64,
    /// Events that were not counted because a map was full.
    pub overflowed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The live word and the counters are read one after the other, and only the counters fit the sums of their times.
    #[test]
    fn what_the_counters_say_is_in_flight_does_not_follow_the_live_word() {
        let mut counters = [0; COUNTERS];
        for (counter, count) in
            [(Counter::Issued, 10), (Counter::Completed, 5), (Counter::Requeued, 1), (Counter::Healed, 1)]
        {
            counters[counter as usize] = count;
        }
        let mut totals = DeviceTotals { counters, buckets: Vec::new(), in_flight: 7, deepest: 7 };
        assert_eq!(totals.begun_and_not_ended(), 3);
        totals.counters[Counter::Completed as usize] = 9;
        assert_eq!(totals.begun_and_not_ended(), u64::MAX, "one completion was seen before its issuing");
    }

    /// Counting went on after the last time was taken: nothing of it joins latencies or depth.
    #[test]
    fn times_end_before_counts_where_they_were_taken_for_a_part() {
        let totals = |counts: &[(Counter, u64)]| {
            let mut counters = [0; COUNTERS];
            counts.iter().for_each(|(counter, count)| counters[*counter as usize] = *count);
            DeviceTotals { counters, buckets: Vec::new(), in_flight: 0, deepest: 3 }
        };
        let at = |at_ns, devices, requests: u64| Snapshot {
            at_ns,
            devices,
            requests: [(RequestKind::from([1 << 31, 4096]), requests)].into(),
            bios: BTreeMap::new(),
            unfollowed: 0,
        };
        let before = at(1000, vec![totals(&[])], 0);
        let timed = [
            (Counter::Issued, 2),
            (Counter::IssuedAt, 1100 + 1200),
            (Counter::Completed, 2),
            (Counter::CompletedAt, 1150 + 1270),
        ];
        let counted =
            [&timed[..], &[(Counter::Splits, 9), (Counter::BackMerges, 4), (Counter::FlushBios, 3)]].concat();
        let (until, after) =
            (Times { at_ns: 1300, devices: vec![totals(&timed)] }, at(9000, vec![totals(&counted)], 500));
        let seen = before.until_with(&until, &after);
        let its = &seen.devices[0];
        assert_eq!((seen.interval_ns, seen.issued(0, BlockOp::Read)), (8000, 500));
        assert_eq!((its.issued, its.completed, its.depth_ns, its.deepest), (2, 2, 50 + 70, 3));
        assert_eq!((its.splits, its.merged_bios, its.flush_bios), (9, 4, 3));
    }
}
