//! Who used the processors while a cell's I/O ran, as the kernel counts it. Raw times; it judges nothing.

use serde::{Deserialize, Serialize};

/// Processor time between the first I/O of a visit and the return of its last one, of the machine and of this process. The
/// machine's times are whole clock ticks (10 ms on most kernels), the process's are exact. `None` is what the kernel or the
/// container does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorUse {
    /// How long it was.
    pub interval_ns: u64,
    /// Processors of the machine, as `/proc/stat` lists them.
    pub processors: u64,
    /// Time of all processors in user mode, of all programs (`user` and `nice`).
    pub user_ns: u64,
    /// And in the kernel, interrupts included (`system`, `irq`, `softirq`).
    pub system_ns: u64,
    /// Time in which a hypervisor ran something else although this machine had work (`steal`).
    pub steal_ns: u64,
    /// This process in user mode, all its threads.
    pub own_user_ns: u64,
    /// And in the kernel.
    pub own_system_ns: u64,
    /// Time in which threads of ours that issue the I/O were ready to run and waited for a processor
    /// (`/proc/thread-self/schedstat`), summed over them.
    pub own_wait_ns: Option<u64>,
    /// Time in which any task of the machine waited for a processor (`some` of `/proc/pressure/cpu`).
    pub pressure_ns: Option<u64>,
    /// What a CPU quota did to the control groups of this process; `None` where none has one, or where the kernel does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
}

/// What the kernel did to keep a control group within its CPU quota (`cpu.stat`); of several groups above each other, the one that
/// was held back longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaUse {
    /// Periods of the quota that ended meanwhile and in which the group had work.
    pub periods: u64,
    /// Of these, periods in which it had used up its quota and had to wait for the next one.
    pub throttled_periods: u64,
    /// Time for which it was held back, summed over the processors on which it was.
    pub throttled_ns: u64,
}

impl QuotaUse {
    /// Both together.
    fn plus(self, later: Self) -> Self {
        Self {
            periods: self.periods.saturating_add(later.periods),
            throttled_periods: self.throttled_periods.saturating_add(later.throttled_periods),
            throttled_ns: self.throttled_ns.saturating_add(later.throttled_ns),
        }
    }
}

impl ProcessorUse {
    /// Adds a later visit; what is unknown for one of them is unknown in the sum.
    pub fn add(&mut self, later: &Self) {
        let both = |mine: Option<u64>, theirs: Option<u64>| mine?.checked_add(theirs?);
        self.interval_ns = self.interval_ns.saturating_add(later.interval_ns);
        self.processors = self.processors.max(later.processors);
        self.user_ns = self.user_ns.saturating_add(later.user_ns);
        self.system_ns = self.system_ns.saturating_add(later.system_ns);
        self.steal_ns = self.steal_ns.saturating_add(later.steal_ns);
        self.own_user_ns = self.own_user_ns.saturating_add(later.own_user_ns);
        self.own_system_ns = self.own_system_ns.saturating_add(later.own_system_ns);
        self.own_wait_ns = both(self.own_wait_ns, later.own_wait_ns);
        self.pressure_ns = both(self.pressure_ns, later.pressure_ns);
        // In a visit in which no period of it ended, a quota cannot be seen.
        self.quota = match (self.quota, later.quota) {
            (Some(quota), Some(later)) => Some(quota.plus(later)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_plus_known_is_unknown() {
        let known = ProcessorUse {
            interval_ns: 100,
            processors: 2,
            user_ns: 7,
            own_wait_ns: Some(5),
            pressure_ns: Some(9),
            ..ProcessorUse::default()
        };
        let mut sum = known;
        sum.add(&known);
        assert_eq!((sum.interval_ns, sum.processors, sum.user_ns, sum.own_wait_ns), (200, 2, 14, Some(10)));
        sum.add(&ProcessorUse { own_wait_ns: None, ..known });
        assert_eq!((sum.own_wait_ns, sum.pressure_ns), (None, Some(27)));
    }

    #[test]
    fn a_visit_too_short_for_a_period_leaves_the_quota_known() {
        let quota = QuotaUse { periods: 5, throttled_periods: 4, throttled_ns: 300 };
        let mut sum = ProcessorUse::default();
        sum.add(&ProcessorUse { quota: Some(quota), ..ProcessorUse::default() });
        sum.add(&ProcessorUse { quota: Some(quota), ..ProcessorUse::default() });
        sum.add(&ProcessorUse::default());
        assert_eq!(sum.quota, Some(QuotaUse { periods: 10, throttled_periods: 8, throttled_ns: 600 }));
    }
}
