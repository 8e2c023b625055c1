//! What a device did between two samples of its counters, exactly, or why that is unknown. It neither rounds nor scales.

use rdsk_model::DiskStat;

/// A counter that fell: the kernel registered the device again between the samples, so their difference means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} went back from {before} to {after}: the device was registered anew in between")]
#[allow(missing_docs, reason = "the fields are what the message says; `field` is one of `DiskStat`")]
pub struct CountersWentBack {
    pub field: &'static str,
    pub before: u64,
    pub after: u64,
}

/// The growth from one sample to a later one of the same device. `in_flight` is a level, not a counter: the result has
/// that of the later sample.
///
/// # Errors
/// A counter that fell, unless it is a time in milliseconds that wrapped at 2³².
pub fn delta(before: &DiskStat, after: &DiskStat) -> Result<DiskStat, CountersWentBack> {
    before.join(after, |field, before, after| {
        let grow = if field.ends_with("_ms") { ticks } else { count };
        grow(field, before, after)
    })
}

fn count(field: &'static str, before: u64, after: u64) -> Result<u64, CountersWentBack> {
    after.checked_sub(before).ok_or(CountersWentBack { field, before, after })
}

/// The kernel prints times as 32-bit milliseconds: at a queue depth of 256, `time_in_queue` wraps every 4.7 hours. A fall
/// from the upper half of the range to the lower half is such a wrap; any other fall is an error.
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
    use crate::diskstat::parse_stat;

    fn stat(text: &str) -> DiskStat {
        parse_stat(text).unwrap()
    }

    #[test]
    fn growth_is_exact() {
        let before = stat("100 10 800 50 200 20 1600 400 0 300 450 5 1 40 7 3 2");
        let after = stat("123 10 984 60 200 20 1600 400 5 310 460 5 1 40 7 4 9");
        let delta = delta(&before, &after).unwrap();
        assert_eq!((delta.read_ios, delta.read_bytes()), (23, 94_208));
        assert_eq!((delta.write_ios, delta.write_bytes()), (0, 0));
        assert_eq!((delta.flush_ios, delta.flush_ticks_ms), (Some(1), Some(7)));
        assert!(!delta.is_idle());
        assert!(super::delta(&before, &before).unwrap().is_idle());
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
        // So does a time that fell without wrapping at 2^32.
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
