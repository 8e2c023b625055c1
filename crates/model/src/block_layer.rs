//! What programs in the block layer count: requests by size, bios by origin, and how that compares with the kernel's own counters.

use crate::workload_words::Op;
use rdsk_units::printable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// System calls whose whole work is to write the data that they are given.
const WRITE_CALLS: [&str; 5] = ["write", "writev", "pwrite64", "pwritev", "pwritev2"];

/// Whether a system call does nothing but write, so that what is read inside it had to be known for the write. Calls that submit
/// reads and writes alike, as `io_uring_enter` and `io_submit` do, are none.
pub fn is_write_call(name: &str) -> bool {
    WRITE_CALLS.contains(&name)
}

/// Calls that submit reads and writes alike: what is written inside them was to be written, but what is read inside them says nothing
/// of a write.
const SUBMISSIONS: [&str; 2] = ["io_uring_enter", "io_submit"];
/// Calls that make earlier writes durable, or write out what is left.
const FLUSHES: [&str; 9] =
    ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync", "close", "exit_group", "umount2"];

/// Who submitted a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin<'a> {
    /// A system call of those whose I/O is measured or watched: rdsk, or a command and what it started.
    Call(&'a str),
    /// A worker thread to which `io_uring` passed a call of rdsk.
    Worker,
    /// A watched command outside of any call: such a worker, or a page of mapped memory that was not there.
    NoCall,
    /// A thread of the kernel, such as that of writeback or a loop device's worker.
    Kernel,
    /// Another process.
    Other,
}

impl Origin<'_> {
    /// Whether it is one of those whose I/O is measured or watched.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Call(_) | Self::Worker | Self::NoCall)
    }

    /// Whether it is a call that does nothing but write: what is read inside it had to be known for the write.
    pub fn is_write_call(self) -> bool {
        matches!(self, Self::Call(call) if is_write_call(call))
    }

    /// Whether what is written inside it was past the page cache, or durable before it returned.
    pub fn submits_writes(self) -> bool {
        self.is_write_call() || matches!(self, Self::Call(call) if SUBMISSIONS.contains(&call))
    }

    /// Whether it is a call that writes out what earlier ones left in memory.
    pub fn flushes(self) -> bool {
        matches!(self, Self::Call(call) if FLUSHES.contains(&call))
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "{}(2)", printable(call)),
            Self::Worker => f.write_str("io_uring's workers"),
            Self::NoCall => f.write_str("no system call"),
            Self::Kernel => f.write_str("the kernel's threads"),
            Self::Other => f.write_str("other processes"),
        }
    }
}

/// Requests of one exact size that a device saw (BPF).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// Index of the target.
    pub target: u32,
    /// Kernel name of the device: the target's own, or one below it; empty for simulated hosts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Direction.
    pub op: Op,
    /// Exact size.
    pub bytes: u64,
    /// Whether they are done only when they are durable (force unit access).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fua: bool,
    /// How many.
    pub count: u64,
}

/// Bios by their origin (BPF).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bio {
    /// Index of the target.
    pub target: u32,
    /// Kernel name of the device at which they arrived: the target's own, or one below it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Direction.
    pub op: Op,
    /// Name of the system call that carried it.
    pub syscall: Option<String>,
    /// `this`, `child` (only where rdsk watches what it started), `other` or `kernel`.
    pub task: String,
    /// Whether they fail where they would wait; the kernel then submits them once more without this mark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nowait: bool,
    /// Whether they read what no call asked for yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_ahead: bool,
    /// Whether they hold no data and ask for a flush.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush: bool,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Request {
    /// Adds these to the others of the same target, direction, size and durability.
    pub fn add_to(self, sum: &mut Vec<Self>) {
        let same = |sum: &&mut Self| {
            (sum.target, sum.op, sum.bytes, sum.fua) == (self.target, self.op, self.bytes, self.fua)
                && sum.device == self.device
        };
        match sum.iter_mut().find(same) {
            Some(sum) => sum.count += self.count,
            None => sum.push(self),
        }
    }
}

impl Bio {
    /// Whether the kernel had to know what a write changes only in part.
    pub fn is_read_in_write(&self) -> bool {
        self.op == Op::Read && self.origin().is_write_call()
    }

    /// Who submitted it.
    pub fn origin(&self) -> Origin<'_> {
        match (self.task.as_str(), self.syscall.as_deref()) {
            ("this" | "child", Some(call)) => Origin::Call(call),
            ("this", None) => Origin::Worker,
            ("child", None) => Origin::NoCall,
            ("kernel", _) => Origin::Kernel,
            _ => Origin::Other,
        }
    }

    /// Adds these to the others of the same origin.
    pub fn add_to(self, sum: &mut Vec<Self>) {
        let same = |sum: &&mut Self| {
            (sum.target, sum.op) == (self.target, self.op)
                && (sum.nowait, sum.read_ahead, sum.flush) == (self.nowait, self.read_ahead, self.flush)
                && (&sum.device, &sum.syscall, &sum.task) == (&self.device, &self.syscall, &self.task)
        };
        match sum.iter_mut().find(same) {
            Some(sum) => (sum.count, sum.bytes) = (sum.count + self.count, sum.bytes + self.bytes),
            None => sum.push(self),
        }
    }
}

/// What BPF programs counted, over the visits of a cell that they followed, and what sysfs counted meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BpfEvidence {
    /// Which of the cell's visits were followed, as indices into `result.visits`; `None` where it is all of them. At some thousand
    /// I/Os per second following each of them takes more than 0.5 % of their time, and then some visits are left out: requests,
    /// bios, device latencies, splits and the reads inside writes are those of the followed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Vec<u32>>,
    /// Time during which the programs were attached; less than the visits where so many I/Os per second were made that the
    /// programs would have slowed them down, and then requests, bios and latencies are those of this time only.
    pub observed_ns: u64,
    /// Of that time, the part in which they took times and followed bios to their calls, too: device latencies and bios are those of
    /// this part. `None` in older Records, where it is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_ns: Option<u64>,
    /// Time of the followed visits, until stable.
    pub visits_ns: u64,
    /// Each device, counted twice.
    pub checks: Vec<CrossCheck>,
    /// Requests of which the programs missed the beginning or the end, and events that found a map full, of all devices. What others had
    /// under way when counting began or ended is not missed.
    pub lost: u64,
    /// The devices that were counted, and which of them carry the data of which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<CountedDevice>,
}

/// One counted device among those below a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedDevice {
    /// Index of the target.
    pub target: u32,
    /// Kernel name.
    pub device: String,
    /// What it makes of the devices below, in words such as `raid5`; `None` if it is none or the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether its driver takes bios, as those of md, device mapper and zram do; then these stand where another device has requests.
    pub takes_bios: bool,
    /// Kernel names of the counted devices directly below it that carry its data.
    pub below: Vec<String>,
    /// Of [`BpfEvidence::lost`], those of this device; `None` in older Records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// Requests of one device by two sources over the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrossCheck {
    /// Index of the target.
    pub target: u32,
    /// Kernel name.
    pub device: String,
    /// Reads and writes by the programs.
    pub bpf: u64,
    /// Reads and writes by sysfs.
    pub sysfs: u64,
}

impl CrossCheck {
    /// How far the sources are apart, as a share of the larger count; 0 where neither counted.
    pub fn difference(&self) -> f64 {
        self.bpf.abs_diff(self.sysfs) as f64 / self.bpf.max(self.sysfs).max(1) as f64
    }
}

impl BpfEvidence {
    /// Adds a later visit. Which visits were followed stays as it is: the caller that has their indices sets it.
    pub fn add(&mut self, later: Self) {
        let timed_ns = self.timed_ns().saturating_add(later.timed_ns());
        self.timed_ns = (self.timed_ns.is_some() || later.timed_ns.is_some()).then_some(timed_ns);
        self.observed_ns = self.observed_ns.saturating_add(later.observed_ns);
        self.visits_ns = self.visits_ns.saturating_add(later.visits_ns);
        self.lost = self.lost.saturating_add(later.lost);
        for device in later.devices {
            let is_it =
                |sum: &&mut CountedDevice| (sum.target, &sum.device) == (device.target, &device.device);
            match self.devices.iter_mut().find(is_it) {
                Some(sum) => {
                    let both = sum.lost.zip(device.lost);
                    sum.lost = both.map(|(mine, theirs)| mine.saturating_add(theirs));
                }
                None => self.devices.push(device),
            }
        }
        for check in later.checks {
            let same = |sum: &&mut CrossCheck| (sum.target, &sum.device) == (check.target, &check.device);
            match self.checks.iter_mut().find(same) {
                Some(sum) => (sum.bpf, sum.sysfs) = (sum.bpf + check.bpf, sum.sysfs + check.sysfs),
                None => self.checks.push(check),
            }
        }
    }

    /// What was lost of one device of a target; of all devices where an older Record does not distinguish them.
    pub fn lost_of(&self, target: u32, device: &str) -> u64 {
        let is_it = |sum: &&CountedDevice| (sum.target, sum.device.as_str()) == (target, device);
        self.devices.iter().find(is_it).and_then(|sum| sum.lost).unwrap_or(self.lost)
    }

    /// Time in which latencies and the queue depth were seen.
    pub fn timed_ns(&self) -> u64 {
        self.timed_ns.unwrap_or(self.observed_ns)
    }

    /// Of the time of the visits, the part whose latencies and depth were seen, where that is not all of it.
    pub fn timed_share(&self) -> Option<f64> {
        let timed_ns = self.timed_ns();
        (timed_ns < self.visits_ns).then(|| timed_ns as f64 / self.visits_ns as f64)
    }

    /// Whether the programs were attached all the time.
    pub fn is_whole(&self) -> bool {
        self.observed_ns >= self.visits_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_kept_for_each_device() {
        let visit = |lost: [Option<u64>; 2]| BpfEvidence {
            lost: lost.into_iter().flatten().sum(),
            devices: ["sda", "sdb"]
                .into_iter()
                .zip(lost)
                .map(|(device, lost)| CountedDevice {
                    device: device.into(),
                    lost,
                    ..CountedDevice::default()
                })
                .collect(),
            ..BpfEvidence::default()
        };
        let mut sum = visit([Some(3), Some(0)]);
        sum.add(visit([Some(4), Some(0)]));
        assert_eq!((sum.lost, sum.lost_of(0, "sda"), sum.lost_of(0, "sdb")), (7, 7, 0));
        sum.add(BpfEvidence { lost: 5, ..visit([None, None]) });
        assert_eq!(
            (sum.lost_of(0, "sda"), sum.lost_of(0, "sdb")),
            (12, 12),
            "an older one told one number only"
        );
        assert_eq!(sum.lost_of(1, "sda"), 12);
    }

    #[test]
    fn calls_that_may_read_are_no_write_calls() {
        assert!(["write", "pwrite64", "pwritev2"].into_iter().all(is_write_call));
        for name in ["io_uring_enter", "io_submit", "read", "pread64", "fsync", "close", "write2", ""] {
            assert!(!is_write_call(name), "{name}");
        }
    }
}
