//! The row of `iostat -x` for one device and one interval, column by column as sysstat 12 computes it. It derives from
//! differences only and reads nothing.
//!
//! What each column is (checked on 2026-11-20 against sysstat 12.6.1 fed with chosen counters and a chosen uptime):
//! rates are differences over the interval; kB are 1024 bytes; `%rrqm` is merges over merges and requests, 100 when
//! there were merges only; `*_await` and `*areq-sz` are per completed request, 0 without any; `aqu-sz` is the growth of
//! `time_in_queue` over the interval; `%util` is the growth of `io_ticks` over it and is not held to 100. Two
//! differences remain: sysstat measures the interval in hundredths of a second and we in nanoseconds, and where a
//! counter went back sysstat prints a huge number and we give no row.

use crate::delta::{CountersWentBack, DiskDelta, delta};
use crate::diskstat::DiskStat;
use rdsk_model::Iostat;

const NS_PER_S: f64 = 1e9;
const MS_PER_S: f64 = 1e3;
const SECTORS_PER_KB: f64 = 2.0;

/// The row between two samples that are `interval_ns` apart.
///
/// # Errors
/// A counter went back between the samples.
pub fn iostat_row(before: &DiskStat, after: &DiskStat, interval_ns: u64) -> Result<Iostat, CountersWentBack> {
    Ok(row_of(&delta(before, after)?, interval_ns))
}

/// The row of a known growth over `interval_ns`. Every column is finite and not negative; without an interval the rates
/// are 0, and a counter that the kernel does not have counts as 0, as in sysstat.
#[must_use]
pub fn row_of(delta: &DiskDelta, interval_ns: u64) -> Iostat {
    let per_s = |count: u64| over(float(count) * NS_PER_S, float(interval_ns));
    let read = Direction {
        ios: delta.read_ios,
        merges: delta.read_merges,
        sectors: delta.read_sectors,
        ticks_ms: delta.read_ticks_ms,
    };
    let write = Direction {
        ios: delta.write_ios,
        merges: delta.write_merges,
        sectors: delta.write_sectors,
        ticks_ms: delta.write_ticks_ms,
    };
    let discard = Direction {
        ios: delta.discard_ios.unwrap_or(0),
        merges: delta.discard_merges.unwrap_or(0),
        sectors: delta.discard_sectors.unwrap_or(0),
        ticks_ms: delta.discard_ticks_ms.unwrap_or(0),
    };
    let flush_ios = delta.flush_ios.unwrap_or(0);
    Iostat {
        r_s: per_s(read.ios),
        rkb_s: per_s(read.sectors) / SECTORS_PER_KB,
        rrqm_s: per_s(read.merges),
        rrqm_percent: read.merged_percent(),
        r_await: read.await_ms(),
        rareq_sz: read.request_kb(),
        w_s: per_s(write.ios),
        wkb_s: per_s(write.sectors) / SECTORS_PER_KB,
        wrqm_s: per_s(write.merges),
        wrqm_percent: write.merged_percent(),
        w_await: write.await_ms(),
        wareq_sz: write.request_kb(),
        d_s: per_s(discard.ios),
        dkb_s: per_s(discard.sectors) / SECTORS_PER_KB,
        drqm_s: per_s(discard.merges),
        drqm_percent: discard.merged_percent(),
        d_await: discard.await_ms(),
        dareq_sz: discard.request_kb(),
        f_s: per_s(flush_ios),
        f_await: over(float(delta.flush_ticks_ms.unwrap_or(0)), float(flush_ios)),
        aqu_sz: per_s(delta.time_in_queue_ms) / MS_PER_S,
        util_percent: per_s(delta.io_ticks_ms) / MS_PER_S * 100.0,
    }
}

/// One direction's counters, because the columns of all three are computed alike.
struct Direction {
    ios: u64,
    merges: u64,
    sectors: u64,
    ticks_ms: u64,
}

impl Direction {
    fn merged_percent(&self) -> f64 {
        over(float(self.merges) * 100.0, float(self.merges) + float(self.ios))
    }

    fn await_ms(&self) -> f64 {
        over(float(self.ticks_ms), float(self.ios))
    }

    fn request_kb(&self) -> f64 {
        over(float(self.sectors) / SECTORS_PER_KB, float(self.ios))
    }
}

/// A quotient that is 0 where sysstat prints 0: without anything to divide by.
fn over(value: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { value / divisor } else { 0.0 }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counters above 2^53 would lose less than the two decimals shown"
)]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Prints as `iostat -o JSON` does, in its order of columns.
    fn printed(row: &Iostat) -> String {
        let columns = [
            row.r_s,
            row.w_s,
            row.d_s,
            row.f_s,
            row.rkb_s,
            row.wkb_s,
            row.dkb_s,
            row.rrqm_s,
            row.wrqm_s,
            row.drqm_s,
            row.rrqm_percent,
            row.wrqm_percent,
            row.drqm_percent,
            row.r_await,
            row.w_await,
            row.d_await,
            row.f_await,
            row.rareq_sz,
            row.wareq_sz,
            row.dareq_sz,
            row.aqu_sz,
            row.util_percent,
        ];
        columns.map(|column| format!("{column:.2}")).join(" ")
    }

    fn row(before: &str, after: &str, interval_ns: u64) -> Iostat {
        iostat_row(&DiskStat::parse(before).unwrap(), &DiskStat::parse(after).unwrap(), interval_ns).unwrap()
    }

    const FIRST: &str = "100 10 800 50 200 20 1600 400 0 300 450 5 1 40 7 3 2";

    /// The right-hand sides are what sysstat 12.6.1 printed for these counters, three seconds apart.
    #[test]
    fn as_sysstat_prints_them() {
        let every_column = "345 67 9012 1234 777 333 8888 4567 3 2500 9876 15 4 400 77 13 22";
        assert_eq!(
            printed(&row(FIRST, every_column, 3_000_000_000)),
            "81.67 192.33 3.33 3.33 1368.67 1214.67 60.00 19.00 104.33 1.00 18.87 35.17 23.08 4.83 7.22 7.00 2.00 \
             16.76 6.32 18.00 3.14 73.33"
        );
        let merges_without_requests = "100 67 9012 1234 200 333 8888 4567 3 2500 9876 5 4 400 77 3 22";
        assert_eq!(
            printed(&row(FIRST, merges_without_requests, 3_000_000_000)),
            "0.00 0.00 0.00 0.00 1368.67 1214.67 60.00 19.00 104.33 1.00 100.00 100.00 100.00 0.00 0.00 0.00 0.00 \
             0.00 0.00 0.00 3.14 73.33"
        );
        let busier_than_time = "345 67 9012 1234 777 333 8888 4567 3 9999 9876 15 4 400 77 13 22";
        assert_eq!(format!("{:.2}", row(FIRST, busier_than_time, 3_000_000_000).util_percent), "323.30");
        let wrapped_before = "100 10 800 50 200 20 1600 400 0 300 4294967000 5 1 40 4294967290 3 2";
        let wrapped_after = "345 67 9012 1234 777 333 8888 4567 3 2500 500 15 4 400 77 13 22";
        let wrapped = row(wrapped_before, wrapped_after, 3_000_000_000);
        assert_eq!(format!("{:.2} {:.2}", wrapped.aqu_sz, wrapped.d_await), "0.27 8.30");
        let old_kernel = row(
            "100 10 800 50 200 20 1600 400 0 300 450",
            "345 67 9012 1234 777 333 8888 4567 3 2500 9876",
            3_000_000_000,
        );
        assert_eq!((old_kernel.d_s, old_kernel.f_s, old_kernel.f_await), (0.0, 0.0, 0.0));
        assert_eq!(format!("{:.2}", old_kernel.wrqm_percent), "35.17");
    }

    /// Pairs of lines that stood in /proc/diskstats around real work on a loop device (23 direct reads; a buffered write
    /// with fsync; a discard and large reads), and what sysstat 12.6.1 printed for them over two seconds.
    #[test]
    fn real_work_as_sysstat_prints_it() {
        let lines = DiskStat::parse_diskstats(include_str!("../tests/fixtures/loop-work.txt")).unwrap();
        let expected = include_str!("../tests/fixtures/loop-work.expected");
        let rows = lines
            .chunks_exact(2)
            .map(|pair| printed(&iostat_row(&pair[0].stat, &pair[1].stat, 2_000_000_000).unwrap()));
        assert_eq!(rows.collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn no_interval_gives_no_rate() {
        let row = row(FIRST, "101 10 808 53 200 20 1600 400 0 300 450 5 1 40 7 3 2", 0);
        assert_eq!((row.r_s, row.aqu_sz, row.util_percent), (0.0, 0.0, 0.0));
        assert_eq!((row.r_await, row.rareq_sz), (3.0, 4.0));
    }

    proptest! {
        #[test]
        fn columns_are_finite_and_not_negative(
            counters in proptest::array::uniform17(any::<u64>()),
            interval_ns in any::<u64>(),
        ) {
            let text = counters.map(|counter| counter.to_string()).join(" ");
            let row = row_of(&delta(&DiskStat::default_with_all(), &DiskStat::parse(&text).unwrap()).unwrap(), interval_ns);
            for column in printed(&row).split(' ') {
                let value: f64 = column.parse().unwrap();
                prop_assert!(value.is_finite() && value >= 0.0, "{column} of {row:?}");
            }
            prop_assert!(row.rrqm_percent <= 100.0 && row.wrqm_percent <= 100.0 && row.drqm_percent <= 100.0);
        }
    }

    impl DiskStat {
        fn default_with_all() -> Self {
            Self::parse("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0").expect("seventeen zeros are counters")
        }
    }
}
