//! Who uses the processors of the machine: readings of `/proc/stat`, `/proc/pressure/cpu`, our own usage and the quotas of our
//! control groups, and their differences. It judges nothing. What a container or a kernel does not show is left out.

use crate::quota::{QuotaFiles, QuotaSample};
use rdsk_model::ProcessorUse;
use rdsk_sys::usage::{Usage, process_usage};
use std::path::{Path, PathBuf};

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1_000;

/// Where the totals are read.
#[derive(Clone, Debug)]
pub(crate) struct Processors {
    proc: PathBuf,
    quotas: QuotaFiles,
}

/// Totals at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessorSample {
    machine: Machine,
    own: Usage,
    pressure_us: Option<u64>,
    quotas: QuotaSample,
}

/// Totals of all processors, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Machine {
    processors: u64,
    user: u64,
    system: u64,
    steal: u64,
}

impl Processors {
    /// Those of this machine, whose procfs is at `proc`; the quotas are those of the groups that `thread` is in now.
    pub(crate) fn new(proc: &Path, thread: &Path) -> Self {
        Self { proc: proc.to_owned(), quotas: QuotaFiles::find(thread) }
    }

    /// One reading; `None` without a readable `stat`.
    pub(crate) fn read(&self) -> Option<ProcessorSample> {
        let machine = machine_of(&std::fs::read_to_string(self.proc.join("stat")).ok()?)?;
        let pressure = std::fs::read_to_string(self.proc.join("pressure/cpu")).ok();
        let pressure_us = pressure.and_then(|text| pressure_of(&text));
        Some(ProcessorSample { machine, own: process_usage().ok()?, pressure_us, quotas: self.quotas.read() })
    }
}

impl ProcessorSample {
    /// What happened from this reading to a later one, `interval_ns` apart. A total that fell, as where a processor was taken
    /// away, counts as no growth.
    pub(crate) fn until(&self, later: &Self, interval_ns: u64) -> ProcessorUse {
        let tick_ns = NS_PER_S / rustix::param::clock_ticks_per_second().max(1);
        let ticks = |before: u64, after: u64| after.saturating_sub(before).saturating_mul(tick_ns);
        let pressure_us = self.pressure_us.zip(later.pressure_us);
        ProcessorUse {
            interval_ns,
            processors: later.machine.processors,
            user_ns: ticks(self.machine.user, later.machine.user),
            system_ns: ticks(self.machine.system, later.machine.system),
            steal_ns: ticks(self.machine.steal, later.machine.steal),
            own_user_ns: later.own.user_ns.saturating_sub(self.own.user_ns),
            own_system_ns: later.own.system_ns.saturating_sub(self.own.system_ns),
            own_wait_ns: None,
            pressure_ns: pressure_us.map(|(before, after)| after.saturating_sub(before) * NS_PER_US),
            quota: self.quotas.until(&later.quotas),
        }
    }
}

/// The line `cpu user nice system idle iowait irq softirq steal …` (proc_stat(5)), and how many processors follow it.
fn machine_of(stat: &str) -> Option<Machine> {
    let total = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = total.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let processors = stat.lines().filter(is_processor).count() as u64;
    (fields.len() >= 4 && processors > 0).then(|| Machine {
        processors,
        user: field(0) + field(1),
        system: field(2) + field(5) + field(6),
        steal: field(7),
    })
}

/// Microseconds of `some … total=N` (Documentation/accounting/psi.rst).
fn pressure_of(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::write;

    const STAT: &str =
        "cpu  100 20 30 4000 5 6 7 8 9 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 5\n";

    #[test]
    fn lines_of_the_kernel() {
        let machine = machine_of(STAT).unwrap();
        assert_eq!(machine, Machine { processors: 2, user: 120, system: 43, steal: 8 });
        // A guest of the machine is in `user` already; kernels before 2.6.11 print no `steal`.
        assert_eq!(machine_of("cpu  1 2 3 4\ncpu0 1 2 3 4\n").unwrap().steal, 0);
        for bad in ["", "cpu  1 2\ncpu0 1 2\n", "cpu  1 2 3 4\n", "cpufreq 1 2 3 4\n"] {
            assert_eq!(machine_of(bad), None, "{bad:?}");
        }
        let pressure =
            "some avg10=51.68 avg60=12.45 avg300=4.49 total=17600730130\nfull avg10=0.00 total=3\n";
        assert_eq!((pressure_of(pressure), pressure_of("full total=3\n")), (Some(17_600_730_130), None));
    }

    #[test]
    fn growth_is_in_nanoseconds_and_a_container_may_hide_a_part() {
        let proc = tempfile::tempdir().unwrap();
        let processors = Processors::new(proc.path(), &proc.path().join("self"));
        assert!(processors.read().is_none());
        write(&proc.path().join("stat"), STAT);
        let before = processors.read().unwrap();
        write(
            &proc.path().join("stat"),
            &STAT.replace("cpu  100 20 30", "cpu  150 20 31").replace(" 8 9 0\n", " 10 9 0\n"),
        );
        let after = processors.read().unwrap();
        let tick_ns = NS_PER_S / rustix::param::clock_ticks_per_second();
        let grown = before.until(&after, 700);
        assert_eq!((grown.interval_ns, grown.processors), (700, 2));
        assert_eq!((grown.user_ns, grown.system_ns, grown.steal_ns), (50 * tick_ns, tick_ns, 2 * tick_ns));
        assert_eq!((grown.pressure_ns, grown.own_wait_ns), (None, None));
        write(&proc.path().join("pressure/cpu"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n");
        let with_pressure = processors.read().unwrap();
        assert_eq!(with_pressure.until(&with_pressure, 1).pressure_ns, Some(0));
        assert_eq!(before.until(&with_pressure, 1).pressure_ns, None, "unknown at one end");
        assert_eq!(after.until(&before, 1).user_ns, 0, "a total that fell");
    }
}
