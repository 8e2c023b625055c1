//! The log of the disk: one entry per request, and their sums, in memory only.

use rdsk_disk::Op;
use std::collections::VecDeque;

/// Entries kept; older ones are dropped. [`Counts`] cover all.
pub const LOG_ENTRIES: usize = 1 << 21;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Successfully.
    Done,
    /// With EIO, because a byte could not be read or written; the first such byte.
    Bad(u64),
}

/// One request that was answered. Times are in ns since the disk was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// What it did.
    pub op: Op,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Size; 0 for a flush.
    pub bytes: u64,
    /// When it reached the disk.
    pub arrival_ns: u64,
    /// When the device started it.
    pub start_ns: u64,
    /// When the reply was due.
    pub end_ns: u64,
    /// When it was answered. The difference is the delay of the machine.
    pub answered_ns: u64,
    /// How it ended.
    pub outcome: RequestOutcome,
}

/// Sums over the requests that were answered, those that failed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Bytes that they requested.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that they wrote.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// How many of all these failed.
    pub errors: u64,
}

/// The log itself.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) entries: VecDeque<Served>,
    pub(crate) counts: Counts,
}

impl Log {
    pub(crate) fn add(&mut self, served: Served) {
        if self.entries.len() == LOG_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(served);
        match served.op {
            Op::Read => {
                self.counts.reads += 1;
                self.counts.read_bytes += served.bytes;
            }
            Op::Write => {
                self.counts.writes += 1;
                self.counts.write_bytes += served.bytes;
            }
            Op::Flush => self.counts.flushes += 1,
        }
        self.counts.errors += u64::from(served.outcome != RequestOutcome::Done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_all_that_was_answered() {
        let read = Served {
            op: Op::Read,
            offset_bytes: 8,
            bytes: 4,
            arrival_ns: 1,
            start_ns: 2,
            end_ns: 3,
            answered_ns: 4,
            outcome: RequestOutcome::Bad(9),
        };
        let mut log = Log::default();
        log.add(read);
        log.add(Served { op: Op::Write, bytes: 16, outcome: RequestOutcome::Done, ..read });
        log.add(Served { op: Op::Flush, bytes: 0, outcome: RequestOutcome::Done, ..read });
        let counts = Counts { reads: 1, read_bytes: 4, writes: 1, write_bytes: 16, flushes: 1, errors: 1 };
        assert_eq!((log.counts, log.entries.len()), (counts, 3));
    }
}
