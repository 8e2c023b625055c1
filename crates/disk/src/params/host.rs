//! The parameters of a host: its buffers, its queues and what its calls cost. It computes nothing.

use super::{Checker, MAX_REQUEST_BYTES, Wrong};
use serde::{Deserialize, Serialize};

/// Most buffers of a cache; each takes about a hundred bytes of memory here.
const MAX_BUFFERS: u64 = 1 << 22;

/// Most requests in a queue.
const MAX_REQUESTS: u64 = 1 << 20;

/// When a buffered write reads its buffer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partial {
    /// Always, unless the buffer is in the cache (HP-UX block devices).
    ReadAlways,
    /// Only when the write leaves a part of the buffer as it is.
    ReadIfPartial,
    /// Never: there is nothing behind a new file's end to read.
    Never,
}

/// What the last close does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseAction {
    /// Nothing: a file's data stays in the cache.
    Nothing,
    /// Writes everything out and forgets it: a block device.
    FlushAndInvalidate,
}

/// What calls cost the processor. All in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostParams {
    /// Each buffered call.
    pub buffered_call_ns: f64,
    /// Each direct call.
    pub direct_call_ns: f64,
    /// Each byte of a direct call: what the program does with it (a buffer filled from elsewhere, its pages made and
    /// pinned); spent before the first request.
    #[serde(default)]
    pub direct_byte_ns: f64,
    /// Largest random addition to a direct call, uniformly distributed: scheduling, the start of a program.
    #[serde(default)]
    pub direct_chance_ns: f64,
    /// Before each read or write, outside its time: a script starts a program for every block, and the program's own clock
    /// starts after that.
    #[serde(default)]
    pub program_start_ns: f64,
    /// Largest random addition to that, uniformly distributed.
    #[serde(default)]
    pub program_start_chance_ns: f64,
    /// Each byte copied to or from the cache.
    pub byte_ns: f64,
    /// Each cache line touched in a buffer of the cache, until the prefetcher takes over.
    pub line_ns: f64,
    /// Lines after which the prefetcher takes over.
    pub prefetch_lines: u64,
    /// Each buffer newly put into the cache: found, cleared, entered.
    pub new_buffer_ns: f64,
}

/// A host: its cache, its queues and its costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostParams {
    /// Buffer of the cache (a page, or a block device's buffer): the unit of buffered I/O.
    pub buffer_bytes: u64,
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Largest request that neighbouring buffers are merged into; the buffer's size for no merging.
    pub merge_bytes: u64,
    /// Largest request of direct I/O; larger calls are split. 0: the system has no direct I/O.
    pub direct_request_bytes: u64,
    /// Requests of one direct call in flight at once.
    pub direct_in_flight: usize,
    /// What direct offsets and sizes must be multiples of.
    pub sector_bytes: u64,
    /// When a buffered write reads first.
    pub partial_write: Partial,
    /// How far buffered sequential reads run ahead; 0 for none.
    pub read_ahead_bytes: u64,
    /// Requests in the queue, waiting and active, at which write-behind pauses (`nr_requests`; ZFS: its own limit per device).
    pub queue_limit: usize,
    /// How many requests it may add beyond that after it resumed (batching); 0 for none.
    #[serde(default)]
    pub queue_batch: usize,
    /// Requests given to a device at once (`ssd_max_throttle`, the device's queue).
    pub active_limit: usize,
    /// Dirty bytes at which write-behind starts.
    pub write_behind_bytes: u64,
    /// Age of dirty data at which it starts anyway, in ns.
    pub write_behind_ns: u64,
    /// Dirty bytes, those being written included, at which writers wait.
    pub dirty_limit_bytes: u64,
    /// Step of the clock that programs read, in ns; 1 by default.
    #[serde(default = "finest_clock_ns")]
    pub clock_resolution_ns: u64,
    /// What the last close does.
    pub close: CloseAction,
    /// Costs.
    pub cost: CostParams,
}

fn finest_clock_ns() -> u64 {
    1
}

impl HostParams {
    pub(super) fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        c.sectors("buffer_bytes", self.buffer_bytes)?;
        c.sectors("sector_bytes", self.sector_bytes)?;
        for (key, bytes) in [
            ("buffer_bytes", self.buffer_bytes),
            ("sector_bytes", self.sector_bytes),
            ("merge_bytes", self.merge_bytes),
            ("direct_request_bytes", self.direct_request_bytes),
            ("read_ahead_bytes", self.read_ahead_bytes),
        ] {
            c.at_most(key, bytes, MAX_REQUEST_BYTES)?;
        }
        for (key, bytes) in [("merge_bytes", self.merge_bytes), ("dirty_limit_bytes", self.dirty_limit_bytes)]
        {
            c.require(key, bytes >= self.buffer_bytes, "is less than one buffer")?;
        }
        let (cache_bytes, limit_bytes) = (self.cache_bytes, self.dirty_limit_bytes);
        c.require("cache_bytes", cache_bytes >= limit_bytes, "is less than dirty_limit_bytes")?;
        let too_many = format_args!("is more than {MAX_BUFFERS} buffers");
        c.require("cache_bytes", cache_bytes / self.buffer_bytes <= MAX_BUFFERS, too_many)?;
        let forever = "must be below dirty_limit_bytes, or writers wait forever";
        c.require("write_behind_bytes", self.write_behind_bytes < limit_bytes, forever)?;
        let (request_bytes, sector_bytes) = (self.direct_request_bytes, self.sector_bytes);
        let is_enough = request_bytes == 0 || request_bytes >= sector_bytes;
        c.require("direct_request_bytes", is_enough, "is less than one sector")?;
        let is_whole = request_bytes.is_multiple_of(sector_bytes);
        c.require("direct_request_bytes", is_whole, "is no multiple of sector_bytes")?;
        c.positive("clock_resolution_ns", self.clock_resolution_ns)?;
        c.time("clock_resolution_ns", self.clock_resolution_ns)?;
        c.span("write_behind_ns", self.write_behind_ns)?;
        c.at_most("queue_batch", self.queue_batch as u64, MAX_REQUESTS)?;
        for (key, count) in [
            ("direct_in_flight", self.direct_in_flight),
            ("queue_limit", self.queue_limit),
            ("active_limit", self.active_limit),
        ] {
            c.count(key, count as u64, MAX_REQUESTS)?;
        }
        let cost = &self.cost;
        c.within("cost", |c| {
            for (key, value) in [
                ("buffered_call_ns", cost.buffered_call_ns),
                ("direct_call_ns", cost.direct_call_ns),
                ("direct_byte_ns", cost.direct_byte_ns),
                ("direct_chance_ns", cost.direct_chance_ns),
                ("program_start_ns", cost.program_start_ns),
                ("program_start_chance_ns", cost.program_start_chance_ns),
                ("byte_ns", cost.byte_ns),
                ("line_ns", cost.line_ns),
                ("new_buffer_ns", cost.new_buffer_ns),
            ] {
                c.cost(key, value)?;
            }
            Ok(())
        })
    }
}
