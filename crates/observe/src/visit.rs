//! The trait between the runner and every observer, and the evidence of one visit of a cell: raw differences, so that
//! visits can be added without error. Plain data; it reads nothing.

use crate::CountersError;
use crate::series::Series;
use crate::stack::Stack;
use rdsk_model::{
    BlockActivity, BpfEvidence, DiskStat, EvidenceSource, IntervalCounters, IoControl, Limit, LoopFile,
    ProcessIo, ProcessorUse,
};

/// Counts while a visit runs: `begin`, `end_io`, `end`, in this order, visit after visit. The one trait that a source of
/// evidence implements.
pub trait Observer: Send {
    /// Whether the visits from here on are to be followed bio by bio, as they are without this call. An observer that always follows
    /// them, or never, does as before.
    fn follow(&mut self, _follows: bool) {}
    /// Before a visit is prepared: waits for a bounded time until the devices have worked off what earlier visits left in flight.
    /// An observer whose devices never do that need not.
    fn wait_until_idle(&mut self) {}
    /// Just before the first I/O.
    fn begin(&mut self);
    /// When the last I/O returned: `during_io` covers the time from `begin` to here.
    fn end_io(&mut self);
    /// When the data is stable: `until_stable` covers the time from `begin` to here.
    fn end(&mut self) -> VisitEvidence;
    /// How the evidence was gathered, over all visits so far.
    fn describe(&self) -> rdsk_model::ObserverFacts;
}

/// What was counted during one visit. An observer starts with [`VisitEvidence::none`] and fills in what it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitEvidence {
    /// The best source that worked.
    pub source: EvidenceSource,
    /// Time from `begin` to `end`, in ns; 0 if the observer does not say.
    pub elapsed_ns: u64,
    /// The targets' own devices first, then the devices below them.
    pub devices: Vec<DeviceVisit>,
    /// The stack of each target; empty if each target is a device of its own that counts.
    pub stacks: Vec<Stack>,
    /// Requests and bios at all devices, and the times of the requests to the targets' own, until stable; `None` if the observer does
    /// not see them, and without what it does not distinguish.
    pub block: Option<BlockActivity>,
    /// How BPF programs counted; `None` without them.
    pub bpf: Option<BpfEvidence>,
    /// Whether there is nothing of BPF because the visit was not to be followed ([`Observer::follow`]).
    pub is_left_out: bool,
    /// What the kernel charged to the process from `begin` to `end_io`.
    pub process: ProcessIo,
    /// Limits in force at the end.
    pub limits: Vec<Limit>,
    /// Controllers in force at the end that may hold the I/O back without a limit.
    pub controls: Vec<IoControl>,
    /// The backing files of the loop devices among the devices.
    pub loops: Vec<LoopFile>,
    /// Who used the processors from `begin` to `end_io`; `None` if it was not counted.
    pub processor: Option<ProcessorUse>,
}

impl VisitEvidence {
    /// Leaves out of the I/O's time what its engine left out, because the process did not run.
    pub fn leave_out(&mut self, ns: u64) {
        for counts in self.devices.iter_mut().filter_map(|device| device.counts.as_mut().ok()) {
            counts.during_io.interval_ns = counts.during_io.interval_ns.saturating_sub(ns);
        }
        if let Some(processor) = &mut self.processor {
            processor.interval_ns = processor.interval_ns.saturating_sub(ns);
        }
    }

    /// Nothing was counted.
    pub fn none() -> Self {
        Self {
            source: EvidenceSource::None,
            elapsed_ns: 0,
            devices: Vec::new(),
            stacks: Vec::new(),
            block: None,
            bpf: None,
            is_left_out: false,
            process: ProcessIo::default(),
            limits: Vec::new(),
            controls: Vec::new(),
            loops: Vec::new(),
            processor: None,
        }
    }
}

/// One device during one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceVisit {
    /// Index of the target on this device.
    pub target: u32,
    /// Kernel name.
    pub name: String,
    /// What it counted, or why that is unknown.
    pub counts: Result<DeviceCounts, CountersError>,
    /// Largest number of requests in flight that a sample saw; `None` without a sample.
    pub in_flight_max: Option<u64>,
    /// Bytes and queue depth over time, from `begin` to `end`.
    pub series: Series,
}

/// The differences that a visit's evidence consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// From `begin` to `end`.
    pub until_stable: DiskStat,
    /// From `begin` to `end_io`.
    pub during_io: IntervalCounters,
    /// I/Os that were split because they were larger than the largest request, until stable.
    pub splits: Option<u64>,
    /// Requests × time that they waited before they went to the device, during the I/O.
    pub waiting_ns: Option<u64>,
    /// Reads that a write caused because it needed the rest of its buffer, until stable.
    pub reads_caused_by_writes: Option<u64>,
    /// The most requests that the device had at once, until stable; known to BPF that timed all of the visit.
    pub deepest: Option<u64>,
}
