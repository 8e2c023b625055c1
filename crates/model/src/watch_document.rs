//! The documents of `rdsk watch --json`: an object in a line for each device and interval, and one for a command. Raw counts in base
//! units, and beside them the figures of the columns; what is not known is null. They hold data and compute nothing.

use crate::diskstat::DiskStat;
use crate::watch::{BlockGrowth, GrowthState, ProcessCalls};
use crate::workload::Op;
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
    pub block_layer: Option<BlockLayer>,
    /// In words, why programs that count other devices do not count this one; `None` otherwise.
    pub why_no_block_layer: Option<String>,
}

/// What BPF programs counted of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockLayer {
    /// Their interval, which their own reading bounds.
    pub interval_ns: u64,
    /// Reads and writes given to the driver, by exact size.
    pub requests: Vec<SizedRequests>,
    /// Reading and writing bios by system call and task.
    pub bios: Vec<BiosByOrigin>,
    /// From issuing to completion of every request.
    pub device_latency_ns: DeviceLatency,
    /// Requests × time in the device: divided by `interval_ns`, the mean queue depth.
    pub depth_ns: u64,
    /// The most requests in flight at once; `None` where completions were missed.
    pub deepest: Option<u64>,
    /// Bios that were cut.
    pub splits: u64,
    /// Bios and requests that joined another one.
    pub merges: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Requests that make the device write zeroes by itself; the kernel's counters call them writes.
    pub write_zeroes: u64,
    /// Of the writes, those that had to be durable at once (FUA).
    pub fua: u64,
    /// Requests of which the programs missed a part, and events that found a map full.
    pub lost: u64,
}

/// Requests of one direction and one exact size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizedRequests {
    /// Direction.
    pub op: Op,
    /// Exact size.
    pub bytes: u64,
    /// Whether they are done only when they are durable (force unit access).
    pub fua: bool,
    /// How many.
    pub count: u64,
}

/// Bios of one origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BiosByOrigin {
    /// Direction.
    pub op: Op,
    /// Name of the system call that carried them; `None` for threads that make none.
    pub syscall: Option<String>,
    /// `child` (of a watched command), `other` or `kernel`.
    pub task: String,
    /// Whether they fail where they would wait; the kernel then submits them once more without this mark.
    pub nowait: bool,
    /// Whether they read ahead.
    pub read_ahead: bool,
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Times in the device, in nanoseconds. A percentile without enough samples (n < 10/(1−p)) is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are the percentiles that their names say, in nanoseconds")]
pub struct DeviceLatency {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl From<&BlockGrowth> for BlockLayer {
    fn from(block: &BlockGrowth) -> Self {
        let request = |one: &crate::Request| SizedRequests {
            op: one.op,
            bytes: one.bytes,
            fua: one.fua,
            count: one.count,
        };
        let bio = |one: &crate::Bio| BiosByOrigin {
            op: one.op,
            syscall: one.syscall.clone(),
            task: one.task.clone(),
            nowait: one.nowait,
            read_ahead: one.read_ahead,
            count: one.count,
            bytes: one.bytes,
        };
        let latency = &block.latency;
        Self {
            interval_ns: block.interval_ns,
            requests: block.requests.iter().map(request).collect(),
            bios: block.bios.iter().map(bio).collect(),
            device_latency_ns: DeviceLatency {
                count: latency.count(),
                mean: latency.mean(),
                p50: latency.quantile(0.5),
                p99: latency.quantile(0.99),
                max: latency.max(),
            },
            depth_ns: block.depth_ns,
            deepest: block.deepest,
            splits: block.splits,
            merges: block.merges,
            flushes: block.flushes,
            discards: block.discards,
            write_zeroes: block.write_zeroes,
            fua: block.fua,
            lost: block.lost,
        }
    }
}
