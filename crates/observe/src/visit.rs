//! The trait between the runner and every observer, and what one visit of a cell leaves behind: raw differences, so
//! that visits can be added without error. Plain data; it reads nothing.

use crate::delta::DiskDelta;
use crate::series::Series;
use crate::sim::ModelCounts;
use crate::stack::Stack;
use rdsk_model::{EvidenceSource, Limit, ProcessIo, Request};

/// Somebody who counts beside a visit: begin, end of I/O, end, in this order, visit after visit.
pub trait Observer: Send {
    /// Just before the first I/O.
    fn begin(&mut self);
    /// When the last I/O returned: the iostat row covers the time from `begin` to here.
    fn end_io(&mut self);
    /// When the data is stable: the counters of devices cover the time from `begin` to here.
    fn end(&mut self) -> VisitEvidence;
    /// How the evidence was gathered, over all visits so far.
    fn describe(&self) -> rdsk_model::Observer;
}

/// What was counted during one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitEvidence {
    /// The best source that worked.
    pub source: EvidenceSource,
    /// The targets' own devices first, then the devices below them.
    pub devices: Vec<DeviceVisit>,
    /// What each target stands on; empty where each target is its own device, and that device counts.
    pub stacks: Vec<Stack>,
    /// Requests by direction and exact size; empty where the observer does not tell them apart.
    pub requests: Vec<Request>,
    /// What the kernel charged to the process from `begin` to `end_io`.
    pub process: ProcessIo,
    /// Limits in force at the end.
    pub limits: Vec<Limit>,
}

/// One device during one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceVisit {
    /// Index of the target that the device carries.
    pub target: u32,
    /// Kernel name.
    pub name: String,
    /// What it counted, or why that is not known.
    pub counts: Result<DeviceCounts, String>,
    /// Largest number of requests in flight that a sample saw; `None` without a sample.
    pub in_flight_max: Option<u64>,
    /// Bytes and queue depth by time, from `begin` to `end`.
    pub series: Series,
}

/// The differences that a visit's evidence rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// From `begin` to `end`.
    pub until_stable: DiskDelta,
    /// From `begin` to `end_io`.
    pub during_io: DiskDelta,
    /// Time from `begin` to `end_io`.
    pub io_interval_ns: u64,
    /// What only a simulated host counts.
    pub model: Option<ModelCounts>,
}

impl DeviceCounts {
    /// Adds the counts of another visit.
    pub fn add(&mut self, more: &Self) {
        self.until_stable.add(&more.until_stable);
        self.during_io.add(&more.during_io);
        self.io_interval_ns = self.io_interval_ns.saturating_add(more.io_interval_ns);
        self.model = self.model.zip(more.model).map(|(mut sum, more)| {
            sum.add(&more);
            sum
        });
    }
}
