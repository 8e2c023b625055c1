//! What BPF programs counted in the block layer for the visit of a cell, a copy, a watched command, or everything that uses a device.
//! Raw counts; reading them is `observe`'s, and what they say is `analysis`'.

use crate::block_layer::{Bio, Request};
use crate::workload_words::Op;
use rdsk_stats::Histogram;
use serde::{Serialize, Serializer};

// Also of several devices over the same interval, where `deepest` is that of one of them.
/// What BPF programs counted of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BlockLayer"))]
pub struct BlockActivity {
    /// Their interval, which their own reading bounds.
    pub interval_ns: u64,
    /// Reads and writes given to the driver, by exact size.
    #[serde(serialize_with = "each_as::<_, SizedRequests, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SizedRequests>"))]
    pub requests: Vec<Request>,
    /// Reading and writing bios by system call and task.
    #[serde(serialize_with = "each_as::<_, BiosByOrigin, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<BiosByOrigin>"))]
    pub bios: Vec<Bio>,
    /// From issuing to completion of every request.
    #[serde(rename = "device_latency_ns", serialize_with = "times")]
    #[cfg_attr(feature = "schema", schemars(with = "DeviceLatency"))]
    pub latency: Histogram,
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

impl BlockActivity {
    /// This and that of another device over the same interval.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        other.requests.into_iter().for_each(|request| request.add_to(&mut self.requests));
        other.bios.into_iter().for_each(|bio| bio.add_to(&mut self.bios));
        self.latency.merge(&other.latency);
        let sums = [
            (&mut self.flushes, other.flushes),
            (&mut self.discards, other.discards),
            (&mut self.write_zeroes, other.write_zeroes),
            (&mut self.fua, other.fua),
            (&mut self.depth_ns, other.depth_ns),
            (&mut self.splits, other.splits),
            (&mut self.merges, other.merges),
            (&mut self.lost, other.lost),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.deepest = self.deepest.zip(other.deepest).map(|(deepest, more)| deepest.max(more));
        self.interval_ns = self.interval_ns.max(other.interval_ns);
        self
    }

    /// Whether the programs saw nothing.
    pub fn is_idle(&self) -> bool {
        let counts = [self.flushes, self.discards, self.write_zeroes, self.splits, self.merges, self.lost];
        self.requests.is_empty()
            && self.bios.is_empty()
            && self.latency.count() == 0
            && counts.iter().all(|&count| count == 0)
    }
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

impl From<&Request> for SizedRequests {
    fn from(request: &Request) -> Self {
        Self { op: request.op, bytes: request.bytes, fua: request.fua, count: request.count }
    }
}

impl From<&Bio> for BiosByOrigin {
    fn from(bio: &Bio) -> Self {
        Self {
            op: bio.op,
            syscall: bio.syscall.clone(),
            task: bio.task.clone(),
            nowait: bio.nowait,
            read_ahead: bio.read_ahead,
            count: bio.count,
            bytes: bio.bytes,
        }
    }
}

/// Without the names of target and device, which stand beside the whole.
fn each_as<T, D, S>(items: &[T], serializer: S) -> Result<S::Ok, S::Error>
where
    D: for<'a> From<&'a T> + Serialize,
    S: Serializer,
{
    serializer.collect_seq(items.iter().map(D::from))
}

fn times<S: Serializer>(latency: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    let of_them = DeviceLatency {
        count: latency.count(),
        mean: latency.mean(),
        p50: latency.quantile(0.5),
        p99: latency.quantile(0.99),
        max: latency.max(),
    };
    of_them.serialize(serializer)
}
