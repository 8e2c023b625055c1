//! What was counted while a cell ran: the kernel's counters of each device, the page cache, the process. Raw numbers, from
//! which `analysis` derives rates, means and the columns of iostat.

use crate::block_layer::{Bio, BpfEvidence, Request};
use crate::diskstat::DiskStat;
use crate::latency::Latency;
use crate::processor::ProcessorUse;
use crate::workload_words::{Op, words};
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// Where the evidence of a Record or cell comes from, the best first.
    #[derive(Default)]
    EvidenceSource {
        /// BPF programs in the block layer.
        Bpf = "bpf",
        /// Counters of `/sys/block`.
        Sysfs = "sysfs",
        /// Only what the process knows of itself.
        Process = "process",
        /// The counters of a simulated host.
        Sim = "sim",
        /// Nothing.
        #[default]
        None = "none",
    }
);

/// What a device counted between the first I/O of a visit and the return of its last one, before close and flush: what the
/// `iostat -x` row over the I/O follows from (docs/iostat.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalCounters {
    /// How long that was.
    pub interval_ns: u64,
    /// The growth of the kernel's counters.
    pub diskstat: DiskStat,
}

impl IntervalCounters {
    /// Adds a later visit.
    pub fn add(&mut self, later: &Self) {
        self.interval_ns = self.interval_ns.saturating_add(later.interval_ns);
        self.diskstat.add(&later.diskstat);
    }
}

/// What one device did during a cell, until its data was stable. Sizes count the kernel's 512-byte sectors, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceEvidence {
    /// Index of the target that the device carries.
    pub target: u32,
    /// Kernel name of the device whose counters these are.
    pub name: String,
    /// Completed read requests.
    pub reads: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Completed write requests.
    pub writes: Option<u64>,
    /// Bytes written.
    pub write_bytes: Option<u64>,
    /// Reads merged into a neighbour before they were issued.
    pub read_merges: Option<u64>,
    /// Writes merged likewise.
    pub write_merges: Option<u64>,
    /// I/Os that the block layer cut up; known to BPF and simulated hosts only.
    pub splits: Option<u64>,
    /// Completed flush requests.
    pub flushes: Option<u64>,
    /// Completed discards.
    pub discards: Option<u64>,
    /// Reads that the host made because a write needed the rest of its buffer; known to BPF and simulated hosts only.
    #[serde(default)]
    pub reads_caused_by_writes: Option<u64>,
    /// The most requests at once: in the device, where BPF timed all visits; else the largest number that the sampler saw, and at least
    /// the mean of queue and device together. Of samples see [`DiskStat::in_flight`].
    pub in_flight_max: Option<u64>,
    /// Time with at least one request in flight.
    pub busy_ns: Option<u64>,
    /// The counted visits, in the order of time; empty if one of them was not counted. They are those of the result, but for
    /// a cell that the host refused (one for the attempt) and for a pass that another run resumed (one per run).
    #[serde(default)]
    pub visits: Vec<IntervalCounters>,
    /// Their time, summed: that of the I/O, without the flush after it.
    pub interval_ns: Option<u64>,
    /// Their counters, summed.
    pub diskstat: Option<DiskStat>,
    /// Requests × time of waiting to be given to the device, over the same time; known to simulated hosts only.
    pub waiting_ns: Option<u64>,
    /// Queue depth (kernel counter `inflight`) by time, one sample per `series_width_ns`.
    pub in_flight_series: Vec<u64>,
    /// Bytes moved (both directions) per sample.
    pub bytes_series: Vec<u64>,
    /// Width of one sample of the two series.
    pub series_width_ns: Option<u64>,
}

/// The page cache over the span at one instant. `None` if the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCacheState {
    /// Bytes in pages that are cached.
    pub cached_bytes: Option<u64>,
    /// Bytes in dirty pages and pages under writeback.
    pub dirty_bytes: Option<u64>,
}

/// The page cache before a visit, at its return and once its data was stable, summed over visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCache {
    /// Before the first I/O.
    pub before: PageCacheState,
    /// After the last I/O returned, before close and flush.
    pub after: PageCacheState,
    /// After close and flush, when everything that was written was on stable storage. `None` for reads, and in Records before
    /// it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable: Option<PageCacheState>,
}

impl PageCacheState {
    /// Both together; unknown if one of them is.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        let sum = |mine: Option<u64>, theirs: Option<u64>| mine?.checked_add(theirs?);
        Self {
            cached_bytes: sum(self.cached_bytes, more.cached_bytes),
            dirty_bytes: sum(self.dirty_bytes, more.dirty_bytes),
        }
    }
}

impl PageCache {
    /// Those of two visits, or of two parts of a run, together; unknown where one of them is.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            before: self.before.plus(more.before),
            after: self.after.plus(more.after),
            stable: self.stable.zip(more.stable).map(|(mine, theirs)| mine.plus(theirs)),
        }
    }
}

/// `/proc/self/io`: what the kernel charged to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessIo {
    /// Bytes that were really fetched from storage for this process.
    pub read_bytes: Option<u64>,
    /// Bytes that this process caused to be sent to storage (charged when a page is dirtied).
    pub write_bytes: Option<u64>,
}

/// How the span of a file lies on its filesystem (FIEMAP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtentEvidence {
    /// Bytes in written extents.
    pub mapped_bytes: u64,
    /// Bytes in extents that were reserved and never written; they read as zeros without I/O.
    pub unwritten_bytes: u64,
    /// Bytes in no extent at all.
    pub hole_bytes: u64,
    /// Number of extents.
    pub extents: u64,
}

/// The backing file of one loop device below a target, over the visits of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopFile {
    /// Index of the target.
    pub target: u32,
    /// Kernel name of the loop device, one of [`Evidence::device`].
    pub device: String,
    /// Path of the file, or of the device that it is; untrusted text.
    pub file: String,
    /// Type of its filesystem as in mountinfo: `ext4`, `tmpfs`; `None` if it is a device, or unknown.
    pub filesystem: Option<String>,
    /// Whether the loop device passes the file's page cache (`loop/dio`).
    pub direct_io: Option<bool>,
    /// Kernel name of the device that carries the file, whose counters are in [`Evidence::device`] too; `None` if the
    /// filesystem has none.
    pub below: Option<String>,
    /// Kernel names of the partitions of the loop device through which the target reaches it, in the order of the stack; empty if
    /// it is the whole device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<String>,
    /// Bytes of the file that the loop device shows, or these partitions of it.
    pub size_bytes: u64,
    /// How these bytes lie on the filesystem at the end of the latest visit, without anything written out for the question;
    /// `None` where FIEMAP is not supported.
    pub extents: Option<ExtentEvidence>,
    /// How much of them was in the page cache, summed over visits.
    pub page_cache: Option<PageCache>,
}

/// A limit that was in force on the device for this process (cgroup `blkio.throttle` or `io.max`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// Index of the target.
    pub target: u32,
    /// File that states it; untrusted text.
    pub source: String,
    /// Kernel name of the device that is limited: the target's own, or one below it; empty in Records of older programs.
    #[serde(default)]
    pub device: String,
    /// Direction.
    pub op: Op,
    /// Bytes per second, where limited.
    pub bytes_per_s: Option<u64>,
    /// I/Os per second, where limited.
    pub ops_per_s: Option<u64>,
}

/// A controller of control groups that may hold back the I/O of this process to a device without a limit of its own: `io.cost`, by a
/// model of what the device can do, or `io.latency`, for the sake of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoControl {
    /// Index of the target.
    pub target: u32,
    /// Kernel name of the device: the target's own, or one below it.
    pub device: String,
    /// File that states it: `io.cost.qos`, `io.cost.model` or `io.latency` of a group; untrusted text.
    pub source: String,
    /// What the file says of the device, without its number: `target=75`; untrusted text.
    pub setting: String,
}

/// Whose counters stand for what a target moved: its own device's; those of every device that its filesystem spreads over;
/// or, where the own counters stand still, those of the devices below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counted {
    /// Index of the target.
    pub target: u32,
    /// Names of the devices, each of them in [`Evidence::device`]. Each byte read comes from one of them.
    pub devices: Vec<String>,
    /// Bytes that they write together, at least, for each byte that the target is asked to write: 2 for two copies.
    pub written_least: f64,
    /// And at most; `None` where it depends on the writes, as with parity.
    pub written_most: Option<f64>,
    /// Why it is these devices and this factor, in words: `btrfs raid1 over vda and vdb`; `None` for the target's own device.
    pub why: Option<String>,
}

/// Everything that was counted beside one cell, summed over its visits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The weakest source of its visits.
    #[serde(alias = "rung")]
    pub source: EvidenceSource,
    /// One entry per device, the targets' own first, then the devices below them.
    pub device: Vec<DeviceEvidence>,
    /// Which of these devices count a target's bytes, one entry per target; no entry where none does. Records of older
    /// programs have none, and there it is the first device.
    #[serde(default)]
    pub counted: Vec<Counted>,
    /// Exact request sizes; empty without BPF.
    pub requests: Vec<Request>,
    /// Origins of bios; empty without BPF.
    pub bios: Vec<Bio>,
    /// Latency inside the device (D2C); BPF only.
    pub device_latency_ns: Option<Latency>,
    /// How the programs counted; `None` without BPF in every visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bpf: Option<BpfEvidence>,
    /// The page cache over the span.
    pub page_cache: Option<PageCache>,
    /// What the kernel charged to the process.
    pub process: ProcessIo,
    /// How the file's span lies on its filesystem; `None` for devices and where FIEMAP is not supported.
    pub extents: Option<ExtentEvidence>,
    /// Limits in force.
    pub limits: Vec<Limit>,
    /// Controllers that may hold the I/O back without a limit, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<IoControl>,
    /// The backing files of the loop devices among the devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopFile>,
    /// Who used the processors during the I/O; `None` where it was not counted, as in simulations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorUse>,
    /// The same for each visit, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processor_visits: Vec<ProcessorUse>,
}

impl Evidence {
    /// Whose counters stand for a target; `None` where the Record does not say.
    pub fn counted_for(&self, target: u32) -> Option<&Counted> {
        self.counted.iter().find(|counted| counted.target == target)
    }

    /// The devices whose counters together are what a target moved; empty where nothing is known of it.
    pub fn counters_of(&self, target: u32) -> Vec<&DeviceEvidence> {
        let Some(counted) = self.counted_for(target) else {
            return self.device_of(target).into_iter().collect();
        };
        let is_one =
            |device: &&DeviceEvidence| device.target == target && counted.devices.contains(&device.name);
        self.device.iter().filter(is_one).collect()
    }

    /// The counters of the device that carries a target directly: the first entry for it.
    pub fn device_of(&self, target: u32) -> Option<&DeviceEvidence> {
        self.device.iter().find(|device| device.target == target)
    }
}
