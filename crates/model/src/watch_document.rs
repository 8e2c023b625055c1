//! The documents of `rdsk watch --json`: an object in a line for each device and interval, and one for a command. Raw counts in base
//! units, and beside them the figures of the columns; what is not known is null. They hold data and compute nothing.

use crate::block_activity::BlockActivity;
use crate::diskstat::DiskStat;
use crate::watch::{CommandFlush, CommandVerdict, GrowthState, ProcessCalls};
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema name that every line of a device carries; a renamed or removed key needs a new number.
pub const WATCH_SCHEMA: &str = "rdsk.watch/1";
/// The same of the line of a command.
pub const WATCH_COMMAND_SCHEMA: &str = "rdsk.watch-command/1";

/// One device over one interval, as a line of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchLine {
    /// Name and number of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = WATCH_SCHEMA)))]
    pub schema: &'static str,
    /// End of the interval by the wall clock (RFC 3339, UTC); `None` with `--from`.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time", "pattern" = crate::TIME_PATTERN)))]
    pub at: Option<String>,
    /// The device.
    #[serde(flatten)]
    pub device: DeviceInterval,
}

/// What the I/O of a command became.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchCommand {
    /// Name and number of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = WATCH_COMMAND_SCHEMA)))]
    pub schema: &'static str,
    /// The command and its arguments; untrusted text.
    pub command: Vec<String>,
    /// How it ended, in words: `exit code 0`, `signal 9`.
    pub end: String,
    /// From its start to its end.
    pub elapsed_ns: u64,
    /// Its read and write calls, with those of the children that it waited for; `None` where the kernel does not say.
    pub calls: Option<ProcessCalls>,
    /// Each device from the command's start until its I/O was done, or until watching ended.
    pub devices: Vec<DeviceInterval>,
    /// The part of that after the command's end.
    pub after: Vec<DeviceInterval>,
    /// Processes of the command that could not be followed; their I/O counts as that of others.
    pub unfollowed: u64,
    /// By how much the dirty pages of the whole machine had grown at the end; `None` where they had not, or where that is unknown.
    pub dirty_left_bytes: Option<u64>,
    /// Why nothing was counted that only BPF programs can count; `None` where they did.
    pub why_no_bpf: Option<String>,
    /// What its I/O measured, in each direction of which that can be said.
    pub verdicts: Vec<CommandVerdict>,
    /// The flush after its end; `None` without `--sync`.
    pub flush: Option<CommandFlush>,
}

/// One device over one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceInterval {
    /// Kernel name; untrusted text.
    pub device: String,
    /// Length of the interval.
    pub interval_ns: u64,
    /// Whether the growth of the kernel's counters is known.
    pub state: GrowthState,
    /// Why it is not known, in words; `None` where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Growth of the kernel's counters; `in_flight` is the number at the end. `None` where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diskstat: Option<DiskStat>,
    /// The figures of the columns by their names, null where the counters do not hold them. `None` where the growth is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<BTreeMap<&'static str, Option<f64>>>,
    /// Sentences on counters that contradict each other. `None` where the growth is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Vec<String>>,
    /// What BPF programs counted; `None` where none were attached for this device.
    pub block_layer: Option<BlockActivity>,
    /// In words, why programs that count other devices do not count this one; `None` otherwise.
    pub why_no_block_layer: Option<String>,
}
