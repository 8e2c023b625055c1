//! What programs in the block layer count: requests by size, bios by origin, and how that compares with the kernel's own counters.

use crate::workload::Op;
use serde::{Deserialize, Serialize};

/// Requests of one exact size that a device saw (BPF).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Whether they read what nobody asked for yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_ahead: bool,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Request {
    /// Adds these to the others of the same target, direction, size and durability.
    pub fn add_to(self, sum: &mut Vec<Self>) {
        let same = |known: &&mut Self| {
            (known.target, known.op, known.bytes, known.fua) == (self.target, self.op, self.bytes, self.fua)
                && known.device == self.device
        };
        match sum.iter_mut().find(same) {
            Some(known) => known.count += self.count,
            None => sum.push(self),
        }
    }
}

impl Bio {
    /// Adds these to the others of the same origin.
    pub fn add_to(self, sum: &mut Vec<Self>) {
        let same = |known: &&mut Self| {
            (known.target, known.op) == (self.target, self.op)
                && (known.nowait, known.read_ahead) == (self.nowait, self.read_ahead)
                && (&known.device, &known.syscall, &known.task) == (&self.device, &self.syscall, &self.task)
        };
        match sum.iter_mut().find(same) {
            Some(known) => (known.count, known.bytes) = (known.count + self.count, known.bytes + self.bytes),
            None => sum.push(self),
        }
    }
}

/// What BPF programs counted, over the visits of a cell, and what sysfs counted meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BpfEvidence {
    /// Time during which the programs were attached; less than the visits where so many I/Os per second were made that the
    /// programs would have slowed them down, and then requests, bios and latencies are those of this time only.
    pub observed_ns: u64,
    /// Time of the visits, until stable.
    pub visits_ns: u64,
    /// Each device, counted twice.
    pub checks: Vec<CrossCheck>,
    /// Requests of which the programs missed the beginning or the end, and events that found a map full.
    pub lost: u64,
    /// The devices that were counted, and which of them carry the data of which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<CountedDevice>,
}

/// One counted device among those below a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Requests of one device by two sources over the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Adds a later visit.
    pub fn add(&mut self, later: Self) {
        self.observed_ns = self.observed_ns.saturating_add(later.observed_ns);
        self.visits_ns = self.visits_ns.saturating_add(later.visits_ns);
        self.lost = self.lost.saturating_add(later.lost);
        for device in later.devices {
            let is_it =
                |known: &CountedDevice| (known.target, &known.device) == (device.target, &device.device);
            if !self.devices.iter().any(is_it) {
                self.devices.push(device);
            }
        }
        for check in later.checks {
            let same =
                |known: &&mut CrossCheck| (known.target, &known.device) == (check.target, &check.device);
            match self.checks.iter_mut().find(same) {
                Some(known) => (known.bpf, known.sysfs) = (known.bpf + check.bpf, known.sysfs + check.sysfs),
                None => self.checks.push(check),
            }
        }
    }

    /// Whether the programs were attached all the time.
    pub fn is_whole(&self) -> bool {
        self.observed_ns >= self.visits_ns
    }
}
