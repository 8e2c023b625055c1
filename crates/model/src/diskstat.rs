//! The kernel's seventeen counters of a block device, by the kernel's names and in the kernel's units: as totals, or as
//! their growth over an interval. It holds and adds them; reading them is `observe`'s, the columns of iostat `analysis`'.

use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// The kernel's sector in every counter, whatever the device's block size.
pub const SECTOR_BYTES: u64 = 512;

/// The fields of `/sys/block/*/stat` in its order (Documentation/admin-guide/iostats.rst, Documentation/block/stat.rst).
///
/// Totals since the device was registered, or their growth between two samples. They move when a request *completes*. The
/// `ticks` are milliseconds. `io_ticks_ms` grows by whole jiffies, so short intervals and fast devices show it coarsely.
/// `None` means that the kernel does not count it: discards before 4.18, flushes before 5.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskStat {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads merged into a neighbour before they were issued.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Time that reads took, summed over reads.
    pub read_ticks_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes merged into a neighbour before they were issued.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Time that writes took, summed over writes.
    pub write_ticks_ms: u64,
    /// Requests in flight: the one field that also falls, so of an interval it is the number at its end. They are those that the driver
    /// has; from 6.10 on all that were made, also those that still wait in a plug or a scheduler ("block: fix that util can be greater
    /// than 100%").
    pub in_flight: u64,
    /// Time with at least one request in flight.
    pub io_ticks_ms: u64,
    /// Time that all requests took, summed; since 5.0 it is the sum of the four `ticks` of completed requests.
    pub time_in_queue_ms: u64,
    /// Discards completed.
    pub discard_ios: Option<u64>,
    /// Discards merged.
    pub discard_merges: Option<u64>,
    /// Sectors discarded.
    pub discard_sectors: Option<u64>,
    /// Time that discards took.
    pub discard_ticks_ms: Option<u64>,
    /// Flush requests completed; the kernel does not count them for partitions.
    pub flush_ios: Option<u64>,
    /// Time that flushes took.
    pub flush_ticks_ms: Option<u64>,
}

impl DiskStat {
    /// Fields that every kernel since 2.6.25 prints; 4.18 added four for discards, 5.5 two for flushes.
    pub const MIN_FIELDS: usize = 11;
    /// All fields that are known here.
    pub const MAX_FIELDS: usize = 17;

    /// From the numbers of a `stat` file in its order; those after the 17th are left alone, and fewer than 11 are no
    /// counters.
    pub fn from_fields(fields: &[u64]) -> Option<Self> {
        if fields.len() < Self::MIN_FIELDS {
            return None;
        }
        // The kernel added the four fields of discards at once, and the two of flushes at once.
        let discard = |index: usize| fields.get(14).and(fields.get(index)).copied();
        let flush = |index: usize| fields.get(16).and(fields.get(index)).copied();
        Some(Self {
            read_ios: fields[0],
            read_merges: fields[1],
            read_sectors: fields[2],
            read_ticks_ms: fields[3],
            write_ios: fields[4],
            write_merges: fields[5],
            write_sectors: fields[6],
            write_ticks_ms: fields[7],
            in_flight: fields[8],
            io_ticks_ms: fields[9],
            time_in_queue_ms: fields[10],
            discard_ios: discard(11),
            discard_merges: discard(12),
            discard_sectors: discard(13),
            discard_ticks_ms: discard(14),
            flush_ios: flush(15),
            flush_ticks_ms: flush(16),
        })
    }

    /// Joins two samples of one device, or two growths, counter by counter: `each` gets the name of a counter and its
    /// two values. A counter that one of the two does not have is unknown; `in_flight` is a level, and the later one
    /// counts.
    ///
    /// # Errors
    /// The first of `each`.
    pub fn join<E>(
        &self,
        later: &Self,
        each: impl Fn(&'static str, u64, u64) -> Result<u64, E>,
    ) -> Result<Self, E> {
        macro_rules! joined {
            ($($always:ident),+; $($maybe:ident),+) => {
                Ok(Self {
                    $($always: each(stringify!($always), self.$always, later.$always)?,)+
                    in_flight: later.in_flight,
                    $($maybe: match (self.$maybe, later.$maybe) {
                        (Some(before), Some(after)) => Some(each(stringify!($maybe), before, after)?),
                        _ => None,
                    },)+
                })
            };
        }
        joined!(
            read_ios, read_merges, read_sectors, read_ticks_ms, write_ios, write_merges, write_sectors,
            write_ticks_ms, io_ticks_ms, time_in_queue_ms;
            discard_ios, discard_merges, discard_sectors, discard_ticks_ms, flush_ios, flush_ticks_ms
        )
    }

    /// Adds the growth over a later interval. A counter that one of the two does not have is unknown in the sum.
    pub fn add(&mut self, later: &Self) {
        let Ok(sum) = self.join(later, |_, mine, theirs| Ok::<_, Infallible>(mine.saturating_add(theirs)));
        *self = sum;
    }

    /// Bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.read_sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Bytes written.
    pub fn write_bytes(&self) -> u64 {
        self.write_sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Bytes discarded; 0 where the kernel does not count them.
    pub fn discard_bytes(&self) -> u64 {
        self.discard_sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES)
    }

    /// Bytes read and written.
    pub fn moved_bytes(&self) -> u64 {
        self.read_sectors.saturating_add(self.write_sectors).saturating_mul(SECTOR_BYTES)
    }

    /// Whether nothing was completed: a growth of zero.
    pub fn is_idle(&self) -> bool {
        let none = |field: Option<u64>| field.unwrap_or(0) == 0;
        self.read_ios == 0
            && self.write_ios == 0
            && self.read_sectors == 0
            && self.write_sectors == 0
            && none(self.discard_ios)
            && none(self.flush_ios)
    }
}
