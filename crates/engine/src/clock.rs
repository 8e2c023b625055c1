//! The monotonic clock of the real engine, and what is known about it: source, resolution, cost. It never sets a clock
//! and never reads the wall clock.

use rdsk_model::{Clock, ClockFacts, StopFlag};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How often a sleep checks whether it has to end.
const STOP_POLL_NS: u64 = 5_000_000;

/// Readings that the facts are based on; 10 000 take less than a millisecond.
const READINGS: usize = 10_000;

/// `CLOCK_MONOTONIC`, read without a system call if the kernel's clock source allows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn sleep_until_ns(&self, at_ns: u64, stop: &StopFlag) {
        sleep_until(at_ns, || stop.is_raised());
    }
}

/// Sleeps until a time; false if it ended before because it was halted.
pub(crate) fn sleep_until(at_ns: u64, is_halted: impl Fn() -> bool) -> bool {
    loop {
        if is_halted() {
            return false;
        }
        let now = now_ns();
        if now >= at_ns {
            return true;
        }
        std::thread::sleep(Duration::from_nanos((at_ns - now).min(STOP_POLL_NS)));
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at zero and counts up")]
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How much less [`now_ns`] has counted than the clock that runs on while the machine is suspended (`CLOCK_BOOTTIME`).
#[expect(clippy::cast_sign_loss, reason = "the clock starts at zero and counts up")]
pub(crate) fn asleep_ns() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    (boot.tv_sec as u64 * 1_000_000_000 + boot.tv_nsec as u64).saturating_sub(now_ns())
}

/// Measures the clock: the kernel's source (`tsc`, `hpet`, …; `unknown` if sysfs is hidden), the smallest step between two
/// different readings, and the median cost of a reading.
pub fn measure_clock() -> ClockFacts {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source =
        std::fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned());
    let mut readings = vec![0u64; READINGS];
    for reading in &mut readings {
        *reading = now_ns();
    }
    facts_of(source, &readings)
}

/// The facts from consecutive readings. The cost is the median over runs of readings, because a single step is no
/// finer than the resolution.
fn facts_of(source: String, readings: &[u64]) -> ClockFacts {
    let steps = readings.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let resolution_ns = steps.filter(|&step| step > 0).min().unwrap_or(0);
    let mut runs: Vec<u64> =
        readings.chunks_exact(100).map(|run| run[99].saturating_sub(run[0]).div_ceil(99)).collect();
    runs.sort_unstable();
    let read_cost_ns = runs.get(runs.len() / 2).copied().unwrap_or(0);
    ClockFacts { source, resolution_ns, read_cost_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_clock_that_ticks_every_ten_readings() {
        // 5 ns a reading, but only every tenth reading shows a new value.
        let readings: Vec<u64> = (0..1000u64).map(|index| index / 10 * 50).collect();
        let facts = facts_of("test".into(), &readings);
        assert_eq!(facts.resolution_ns, 50);
        assert_eq!(facts.read_cost_ns, 5);
    }

    #[test]
    fn the_real_clock_has_facts() {
        let facts = measure_clock();
        assert!(!facts.source.is_empty());
        assert!(facts.resolution_ns > 0 && facts.resolution_ns < 10_000_000, "{facts:?}");
        assert!(facts.read_cost_ns > 0 && facts.read_cost_ns < 100_000, "{facts:?}");
    }

    #[test]
    fn sleeping_ends_at_the_time_or_at_the_flag() {
        let clock = MonotonicClock;
        let begin = clock.now_ns();
        clock.sleep_until_ns(begin + 3_000_000, &StopFlag::new());
        assert!(clock.now_ns() >= begin + 3_000_000);
        let stop = StopFlag::new();
        stop.raise();
        clock.sleep_until_ns(u64::MAX, &stop);
    }
}
