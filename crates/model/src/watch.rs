//! What a live view shows: block devices over one interval, and what the I/O of one command became. Plain data in raw counts;
//! reading them is `observe`'s, columns and explanations are `analysis`'.

use crate::block_activity::BlockActivity;
use crate::cell::Verdict;
use crate::diskstat::DiskStat;
use crate::workload_words::{Op, words};
use serde::{Deserialize, Serialize};
use std::fmt;

/// All watched devices over one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchInterval {
    /// Its length: by the monotonic clock, or by the uptimes of two saved trees.
    pub interval_ns: u64,
    /// In the order in which they are shown.
    pub devices: Vec<WatchedDevice>,
}

/// One device over one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedDevice {
    /// Kernel name; untrusted text.
    pub name: String,
    /// The growth of the kernel's counters, or why it is unknown.
    pub growth: Result<DiskStat, Uncounted>,
    /// What BPF programs counted; `None` where none were attached for this device.
    pub block: Option<BlockActivity>,
    /// In words, why BPF programs that count others do not count this device.
    pub why_no_block: Option<String>,
}

impl WatchedDevice {
    /// A device of which the kernel's counters are all.
    pub fn by_counters(name: impl Into<String>, growth: Result<DiskStat, Uncounted>) -> Self {
        Self { name: name.into(), growth, block: None, why_no_block: None }
    }
}

words!(
    /// Whether the growth of a device's counters over an interval is known.
    GrowthState {
        /// It is.
        Counted = "counted",
        /// The device was not there at the beginning of the interval.
        Appeared = "appeared",
        /// It was not there at the end.
        Vanished = "vanished",
        /// It was registered anew in between, so that its counters fell.
        Restarted = "restarted",
        /// Its counters cannot be read.
        Unreadable = "unreadable",
        /// Its counters stood still, which proves nothing for such a device.
        Unknown = "unknown",
    }
);

/// Why there is no growth of a device's counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncounted {
    /// It was not there at the beginning of the interval.
    Appeared,
    /// It was not there at the end.
    Vanished,
    /// It was registered anew in between, so that its counters fell; which one, in words.
    Restarted(String),
    /// Its counters cannot be read; why, in words.
    Unreadable(String),
    /// Its counters stood still, which proves nothing for such a device; why, in words.
    Unknown(String),
}

impl Uncounted {
    /// The word for it in JSON.
    pub fn state(&self) -> GrowthState {
        match self {
            Self::Appeared => GrowthState::Appeared,
            Self::Vanished => GrowthState::Vanished,
            Self::Restarted(_) => GrowthState::Restarted,
            Self::Unreadable(_) => GrowthState::Unreadable,
            Self::Unknown(_) => GrowthState::Unknown,
        }
    }
}

impl fmt::Display for Uncounted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Appeared => formatter.write_str("appeared; counted from now on"),
            Self::Vanished => formatter.write_str("vanished"),
            Self::Restarted(why) | Self::Unreadable(why) | Self::Unknown(why) => formatter.write_str(why),
        }
    }
}

/// What the I/O of one command became.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandRun {
    /// The command and its arguments; untrusted text.
    pub words: Vec<String>,
    /// How it ended, in words: `exit code 0`, `signal 9`.
    pub end: String,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// Its read and write calls, with those of the children that it waited for; `None` where the kernel does not say.
    pub calls: Option<ProcessCalls>,
    /// From its start until its I/O was done, or until watching ended.
    pub whole: WatchInterval,
    /// The part of it after the command's end.
    pub after: WatchInterval,
    /// Processes of the command that could not be followed; their I/O counts as that of others.
    pub unfollowed: u64,
    /// By how much the dirty pages of the whole machine had grown at the end, in bytes; `None` where they had not, or nothing
    /// knows.
    pub dirty_left_bytes: Option<u64>,
    /// Why nothing counted what only BPF programs can count; `None` where they did.
    pub why_no_bpf: Option<String>,
    /// What its I/O measured, reconciled with the block layer, in each direction of which that can be said.
    pub verdicts: Vec<CommandVerdict>,
    /// The flush after its end; `None` where none was requested.
    pub flush: Option<CommandFlush>,
}

/// What the I/O of a command in one direction measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandVerdict {
    /// Reads or writes.
    pub op: Op,
    /// The verdict, as a cell has it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The flush of what a command had left in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandFlush {
    /// From the command's end until all that it wrote was on disk; `None` where the flush failed or was cut short.
    pub took_ns: Option<u64>,
    /// The filesystems and devices that were flushed; untrusted text.
    pub places: Vec<String>,
    /// Why not all of it is on disk; `None` where no flush failed.
    pub error: Option<String>,
}

/// Read and write calls of one process and of the children that it waited for (`/proc/PID/io` of a process that has ended).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessCalls {
    /// Calls that read.
    pub reads: u64,
    /// Bytes that they returned, from files, pipes and terminals alike.
    pub read_bytes: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes that they took.
    pub written_bytes: u64,
}
