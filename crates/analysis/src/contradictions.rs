//! Counters of a device that contradict each other, in words: columns that follow from them are no figures of a device. It corrects
//! nothing, since which of two counters is wrong is not known.

use crate::words::{figure, nanos, plural};
use rdsk_model::DiskStat;

/// What two readings of a clock that counts jiffies of up to 10 ms may be apart.
const CLOCKS_MS: f64 = 20.0;
/// What the lengths of the two intervals may be apart beside that: the counters are not read at one moment.
const INTERVALS: f64 = 0.02;
/// Kernels before 5.0 count the time of each request in whole jiffies.
const JIFFY_MS: f64 = 10.0;
/// Later ones cut four sums to whole milliseconds.
const SUMS_MS: f64 = 8.0;
/// A level below zero, in 32 or 64 bits.
const BELOW_ZERO: u64 = 1 << 31;
const NS_PER_MS: f64 = 1e6;

/// A sentence for each contradiction in the growth of a device's counters over an interval.
pub fn contradictions(growth: &DiskStat, interval_ns: u64) -> Vec<String> {
    let interval_ms = interval_ns as f64 / NS_PER_MS;
    let below_zero = || "the kernel's number of requests in flight is below zero".to_owned();
    let below_zero = (growth.in_flight >= BELOW_ZERO).then(below_zero);
    [busy_longer(growth, interval_ms), queue(growth, interval_ms), below_zero].into_iter().flatten().collect()
}

fn busy_longer(growth: &DiskStat, interval_ms: f64) -> Option<String> {
    let busy_ms = growth.io_ticks_ms as f64;
    (busy_ms > interval_ms * (1.0 + INTERVALS) + CLOCKS_MS).then(|| {
        format!(
            "%util is no share: the kernel counts {} of busy time in {} (Linux before 6.10 can count too much)",
            time(busy_ms),
            time(interval_ms)
        )
    })
}

/// The time in the queue against the times of the requests: since 5.0 the kernel prints their sum, before the integral of the number
/// in flight, which also holds those that have not completed.
fn queue(growth: &DiskStat, interval_ms: f64) -> Option<String> {
    let others_ms = [growth.discard_ticks_ms, growth.flush_ticks_ms].into_iter().flatten().sum::<u64>();
    let requests_ms =
        (growth.read_ticks_ms.saturating_add(growth.write_ticks_ms).saturating_add(others_ms)) as f64;
    let others = [growth.discard_ios, growth.flush_ios].into_iter().flatten().sum::<u64>();
    let ios = growth.read_ios.saturating_add(growth.write_ios).saturating_add(others);
    let queue_ms = growth.time_in_queue_ms as f64;
    let is_sum = growth.flush_ios.is_some();
    let slack_ms = if is_sum { SUMS_MS } else { CLOCKS_MS + JIFFY_MS * ios as f64 };
    let in_flight = if growth.in_flight < BELOW_ZERO { growth.in_flight } else { 0 };
    let open_ms = if is_sum { 0.0 } else { in_flight as f64 * interval_ms };
    let (surplus_ms, aqu_sz) = (queue_ms - requests_ms, queue_ms / interval_ms.max(1.0));
    let what = || {
        let count = plural(ios, "request");
        format!("aqu-sz {} against {count} of {} together", figure(aqu_sz), time(requests_ms))
    };
    if surplus_ms > slack_ms + open_ms {
        return Some(format!("{}: the kernel's time in the queue is not that of its requests", what()));
    }
    if is_sum && -surplus_ms > slack_ms {
        return Some(format!("{}: the kernel's time in the queue is too short for its requests", what()));
    }
    // Half of it is more than what is under way at the ends of an interval.
    (surplus_ms > slack_ms && surplus_ms > queue_ms / 2.0).then(|| {
        format!(
            "{}: the rest is of {} in flight that did not complete, or that the kernel has miscounted",
            what(),
            plural(in_flight, "request")
        )
    })
}

fn time(ms: f64) -> String {
    nanos(crate::metrics::whole((ms * NS_PER_MS).round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// What an old kernel counts: two reads of 1 ms.
    fn two_reads() -> DiskStat {
        DiskStat { read_ios: 2, read_ticks_ms: 2, io_ticks_ms: 2, time_in_queue_ms: 2, ..DiskStat::default() }
    }

    fn new_kernel() -> DiskStat {
        DiskStat {
            discard_ios: Some(0),
            discard_ticks_ms: Some(0),
            flush_ios: Some(3),
            flush_ticks_ms: Some(9),
            time_in_queue_ms: 11,
            ..two_reads()
        }
    }

    #[test]
    fn counters_that_agree_have_no_note() {
        let full = DiskStat { io_ticks_ms: 1030, ..two_reads() };
        let deep = DiskStat {
            read_ios: 32_000,
            read_ticks_ms: 32_000,
            io_ticks_ms: 1000,
            time_in_queue_ms: 32_500,
            in_flight: 32,
            ..two_reads()
        };
        for growth in [DiskStat::default(), two_reads(), new_kernel(), full, deep] {
            assert_eq!(contradictions(&growth, SECOND), [""; 0], "{growth:?}");
        }
        assert_eq!(contradictions(&DiskStat::default(), 0), [""; 0]);
    }

    #[test]
    fn counters_that_do_not_agree_say_so() {
        let busy = DiskStat { io_ticks_ms: 1400, ..two_reads() };
        let queue = DiskStat { time_in_queue_ms: 47_000, ..two_reads() };
        let open = DiskStat { in_flight: 47, ..queue };
        let new = DiskStat { time_in_queue_ms: 47_000, in_flight: 47, ..new_kernel() };
        let short = DiskStat { time_in_queue_ms: 0, read_ticks_ms: 500, ..new_kernel() };
        let negative = DiskStat { in_flight: u64::from(u32::MAX), ..two_reads() };
        for (growth, begin, end) in [
            (busy, "%util is no share: the kernel counts 1.40 s of busy time in 1.00 s", "too much)"),
            (queue, "aqu-sz 47.0 against 2 requests of 2.00 ms together", "is not that of its requests"),
            (
                open,
                "aqu-sz 47.0 against 2 requests of 2.00 ms together",
                "47 requests in flight that did not complete, or that the kernel has miscounted",
            ),
            (new, "aqu-sz 47.0 against 5 requests of 11.0 ms together", "is not that of its requests"),
            (short, "aqu-sz 0.00 against 5 requests of 509 ms together", "is too short for its requests"),
            (negative, "the kernel's number of requests in flight", "is below zero"),
        ] {
            let said = contradictions(&growth, SECOND);
            assert!(said.len() == 1 && said[0].starts_with(begin) && said[0].ends_with(end), "{said:?}");
        }
    }
}
