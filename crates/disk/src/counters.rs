//! The counters of a host for one LUN: the evidence of a simulated run. They are running totals; windows are differences.

use std::collections::BTreeMap;

use crate::request::Op;

/// Running totals of one LUN up to `at_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Until when everything is counted, in ns.
    pub at_ns: u64,
    /// Read requests completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Time from creation to completion of the completed reads, summed, in ns.
    pub read_ns: u128,
    /// The same of the writes.
    pub write_ns: u128,
    /// The same of the flushes.
    pub flush_ns: u128,
    /// Buffers that joined another's read request.
    pub read_merges: u64,
    /// Buffers that joined another's write request.
    pub write_merges: u64,
    /// Splits of direct calls that are larger than a request may be.
    pub splits: u64,
    /// Reads made because a write needed the rest of its buffer.
    pub reads_caused_by_writes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Completed reads and writes by operation and exact size.
    pub sizes: BTreeMap<(Op, u64), u64>,
    /// Time that requests spent waiting to be given to the device, summed over time: requests × ns.
    pub waiting_ns: u128,
    /// Time that requests spent at the device, summed over time: requests × ns.
    pub active_ns: u128,
    /// Time with at least one request waiting.
    pub wait_busy_ns: u64,
    /// Time with at least one request at the device.
    pub busy_ns: u64,
    /// Most requests at once, waiting and active.
    pub queue_max: usize,
    /// Most requests at the device at once.
    pub active_max: usize,
}

impl Counters {
    /// What happened since an earlier count. The two maxima remain those of the whole run.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let sizes = self.sizes.iter().filter_map(|(key, count)| {
            let more = count - earlier.sizes.get(key).copied().unwrap_or(0);
            (more > 0).then_some((*key, more))
        });
        Counters {
            at_ns: self.at_ns - earlier.at_ns,
            reads: self.reads - earlier.reads,
            read_bytes: self.read_bytes - earlier.read_bytes,
            writes: self.writes - earlier.writes,
            write_bytes: self.write_bytes - earlier.write_bytes,
            flushes: self.flushes - earlier.flushes,
            read_ns: self.read_ns - earlier.read_ns,
            write_ns: self.write_ns - earlier.write_ns,
            flush_ns: self.flush_ns - earlier.flush_ns,
            read_merges: self.read_merges - earlier.read_merges,
            write_merges: self.write_merges - earlier.write_merges,
            splits: self.splits - earlier.splits,
            reads_caused_by_writes: self.reads_caused_by_writes - earlier.reads_caused_by_writes,
            errors: self.errors - earlier.errors,
            sizes: sizes.collect(),
            waiting_ns: self.waiting_ns - earlier.waiting_ns,
            active_ns: self.active_ns - earlier.active_ns,
            wait_busy_ns: self.wait_busy_ns - earlier.wait_busy_ns,
            busy_ns: self.busy_ns - earlier.busy_ns,
            queue_max: self.queue_max,
            active_max: self.active_max,
        }
    }

    /// Adds up to `now_ns` the time that `waiting` and `active` requests spent.
    pub(crate) fn spend(&mut self, now_ns: u64, waiting: usize, active: usize) {
        let spent_ns = now_ns.saturating_sub(self.at_ns);
        if spent_ns == 0 {
            return;
        }
        self.at_ns = now_ns;
        self.waiting_ns += u128::from(spent_ns) * waiting as u128;
        self.active_ns += u128::from(spent_ns) * active as u128;
        self.wait_busy_ns += if waiting > 0 { spent_ns } else { 0 };
        self.busy_ns += if active > 0 { spent_ns } else { 0 };
    }
}
