//! What a device did between two samples of its counters, exactly, or the reason why that cannot be known. It rounds
//! nothing and scales nothing.

use crate::diskstat::{DiskStat, SECTOR_BYTES};

/// A counter that fell: the device was registered anew between the samples, so their difference means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} went back from {before} to {after}: the device was registered anew in between")]
pub struct CountersWentBack {
    /// Name of the field, as in [`DiskStat`].
    pub field: &'static str,
    /// Its value in the first sample.
    pub before: u64,
    /// Its value in the second.
    pub after: u64,
}

/// The growth of each counter of [`DiskStat`] between two samples; `None` where the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of DiskStat, and mean the same")]
pub struct DiskDelta {
    pub read_ios: u64,
    pub read_merges: u64,
    pub read_sectors: u64,
    pub read_ticks_ms: u64,
    pub write_ios: u64,
    pub write_merges: u64,
    pub write_sectors: u64,
    pub write_ticks_ms: u64,
    pub io_ticks_ms: u64,
    pub time_in_queue_ms: u64,
    pub discard_ios: Option<u64>,
    pub discard_merges: Option<u64>,
    pub discard_sectors: Option<u64>,
    pub discard_ticks_ms: Option<u64>,
    pub flush_ios: Option<u64>,
    pub flush_ticks_ms: Option<u64>,
}

impl DiskDelta {
    /// Bytes read.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read_sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Bytes written.
    #[must_use]
    pub fn write_bytes(&self) -> u64 {
        self.write_sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Whether the device completed nothing and merged nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        let none = |field: Option<u64>| field.unwrap_or(0) == 0;
        self.read_ios == 0
            && self.write_ios == 0
            && self.read_sectors == 0
            && self.write_sectors == 0
            && none(self.discard_ios)
            && none(self.flush_ios)
    }

    /// Adds what happened in another stretch of time. A counter that one of the two does not have is unknown in the sum.
    pub fn add(&mut self, more: &Self) {
        let plus = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = sum.zip(more).map(|(a, b)| a.saturating_add(b));
        };
        self.read_ios = self.read_ios.saturating_add(more.read_ios);
        self.read_merges = self.read_merges.saturating_add(more.read_merges);
        self.read_sectors = self.read_sectors.saturating_add(more.read_sectors);
        self.read_ticks_ms = self.read_ticks_ms.saturating_add(more.read_ticks_ms);
        self.write_ios = self.write_ios.saturating_add(more.write_ios);
        self.write_merges = self.write_merges.saturating_add(more.write_merges);
        self.write_sectors = self.write_sectors.saturating_add(more.write_sectors);
        self.write_ticks_ms = self.write_ticks_ms.saturating_add(more.write_ticks_ms);
        self.io_ticks_ms = self.io_ticks_ms.saturating_add(more.io_ticks_ms);
        self.time_in_queue_ms = self.time_in_queue_ms.saturating_add(more.time_in_queue_ms);
        plus(&mut self.discard_ios, more.discard_ios);
        plus(&mut self.discard_merges, more.discard_merges);
        plus(&mut self.discard_sectors, more.discard_sectors);
        plus(&mut self.discard_ticks_ms, more.discard_ticks_ms);
        plus(&mut self.flush_ios, more.flush_ios);
        plus(&mut self.flush_ticks_ms, more.flush_ticks_ms);
    }
}

/// The growth from one sample to a later one of the same device. `in_flight` is a level, not a counter, and has none.
///
/// # Errors
/// A counter that fell, unless it is a time in milliseconds that wrapped at 2³².
pub fn delta(before: &DiskStat, after: &DiskStat) -> Result<DiskDelta, CountersWentBack> {
    let optional = |field: &'static str, grow: Grow, before: Option<u64>, after: Option<u64>| {
        before.zip(after).map(|(before, after)| grow(field, before, after)).transpose()
    };
    Ok(DiskDelta {
        read_ios: count("read_ios", before.read_ios, after.read_ios)?,
        read_merges: count("read_merges", before.read_merges, after.read_merges)?,
        read_sectors: count("read_sectors", before.read_sectors, after.read_sectors)?,
        read_ticks_ms: ticks("read_ticks_ms", before.read_ticks_ms, after.read_ticks_ms)?,
        write_ios: count("write_ios", before.write_ios, after.write_ios)?,
        write_merges: count("write_merges", before.write_merges, after.write_merges)?,
        write_sectors: count("write_sectors", before.write_sectors, after.write_sectors)?,
        write_ticks_ms: ticks("write_ticks_ms", before.write_ticks_ms, after.write_ticks_ms)?,
        io_ticks_ms: ticks("io_ticks_ms", before.io_ticks_ms, after.io_ticks_ms)?,
        time_in_queue_ms: ticks("time_in_queue_ms", before.time_in_queue_ms, after.time_in_queue_ms)?,
        discard_ios: optional("discard_ios", count, before.discard_ios, after.discard_ios)?,
        discard_merges: optional("discard_merges", count, before.discard_merges, after.discard_merges)?,
        discard_sectors: optional("discard_sectors", count, before.discard_sectors, after.discard_sectors)?,
        discard_ticks_ms: optional(
            "discard_ticks_ms",
            ticks,
            before.discard_ticks_ms,
            after.discard_ticks_ms,
        )?,
        flush_ios: optional("flush_ios", count, before.flush_ios, after.flush_ios)?,
        flush_ticks_ms: optional("flush_ticks_ms", ticks, before.flush_ticks_ms, after.flush_ticks_ms)?,
    })
}

type Grow = fn(&'static str, u64, u64) -> Result<u64, CountersWentBack>;

fn count(field: &'static str, before: u64, after: u64) -> Result<u64, CountersWentBack> {
    after.checked_sub(before).ok_or(CountersWentBack { field, before, after })
}

/// The kernel prints times as 32-bit milliseconds: at a queue depth of 256 `time_in_queue` wraps every 4.7 hours. A fall
/// from the upper half of the range to the lower one is such a wrap; any other fall is not time that passed.
fn ticks(field: &'static str, before: u64, after: u64) -> Result<u64, CountersWentBack> {
    const RANGE: u64 = 1 << 32;
    match after.checked_sub(before) {
        Some(grown) => Ok(grown),
        None if (RANGE / 2..RANGE).contains(&before) && after < RANGE / 2 => Ok(RANGE - before + after),
        None => Err(CountersWentBack { field, before, after }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(text: &str) -> DiskStat {
        DiskStat::parse(text).unwrap()
    }

    #[test]
    fn growth_is_exact() {
        let before = stat("100 10 800 50 200 20 1600 400 0 300 450 5 1 40 7 3 2");
        let after = stat("123 10 984 60 200 20 1600 400 5 310 460 5 1 40 7 4 9");
        let delta = delta(&before, &after).unwrap();
        assert_eq!((delta.read_ios, delta.read_bytes()), (23, 94_208));
        assert_eq!((delta.write_ios, delta.write_bytes()), (0, 0));
        assert_eq!((delta.flush_ios, delta.flush_ticks_ms), (Some(1), Some(7)));
        assert!(!delta.is_zero());
        assert!(super::delta(&before, &before).unwrap().is_zero());
    }

    #[test]
    fn fallen_counters_are_no_difference() {
        let before = stat("100 10 800 50 200 20 1600 400 0 300 450 5 1 40 7 3 2");
        let anew = stat("3 0 24 1 0 0 0 0 0 1 1 0 0 0 0 0 0");
        let error = delta(&before, &anew).unwrap_err();
        assert_eq!((error.field, error.before, error.after), ("read_ios", 100, 3));
        assert!(error.to_string().contains("registered anew"));
        // Discards alone show it too.
        let anew = stat("100 10 800 50 200 20 1600 400 0 300 450 0 0 0 0 3 2");
        assert_eq!(delta(&before, &anew).unwrap_err().field, "discard_ios");
        // And a time that fell, but not across 2^32.
        let anew = stat("100 10 800 49 200 20 1600 400 0 300 450 5 1 40 7 3 2");
        assert_eq!(delta(&before, &anew).unwrap_err().field, "read_ticks_ms");
    }

    #[test]
    fn times_wrap_at_32_bits() {
        let before = stat("1 0 8 4294967290 0 0 0 0 0 0 4294967000");
        let after = stat("2 0 16 10 0 0 0 0 0 0 500");
        let delta = delta(&before, &after).unwrap();
        assert_eq!((delta.read_ticks_ms, delta.time_in_queue_ms), (16, 796));
    }

    #[test]
    fn counters_of_an_older_kernel_stay_unknown() {
        let old = stat("1 0 8 1 0 0 0 0 0 0 0");
        let new = stat("2 0 16 1 0 0 0 0 0 0 0 0 0 0 0 0 0");
        let mut delta = delta(&old, &new).unwrap();
        assert_eq!((delta.flush_ios, delta.discard_ios), (None, None));
        delta.add(&super::delta(&new, &new).unwrap());
        assert_eq!(delta.flush_ios, None, "unknown plus zero is unknown");
    }
}
