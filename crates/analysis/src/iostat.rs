//! The row of `iostat -x` for one device and one interval, column by column as sysstat 12 computes it. It derives from
//! differences only and reads nothing.
//!
//! What each column is (checked on 2026-11-20 against sysstat 12.6.1 fed with chosen counters and a chosen uptime):
//! rates are differences over the interval; kB are 1024 bytes; `%rrqm` is merges over merges and requests, 100 when
//! there were merges only; `*_await` and `*areq-sz` are per completed request, 0 without any; `aqu-sz` is the growth of
//! `time_in_queue` over the interval; `%util` is the growth of `io_ticks` over it and is not held to 100. Two
//! differences remain: sysstat measures the interval in hundredths of a second and we in nanoseconds, and if a
//! counter went back sysstat prints a huge number and we give no row.

use rdsk_model::{DeviceEvidence, DiskStat, Op};

const NS_PER_S: f64 = 1e9;
const MS_PER_S: f64 = 1e3;
const SECTORS_PER_KB: f64 = 2.0;

/// One row of `iostat -x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "each field is the column that COLUMNS states; docs/iostat.md explains them")]
pub struct Iostat {
    pub reads: Direction,
    pub writes: Direction,
    pub discards: Direction,
    pub f_s: f64,
    pub f_await: f64,
    pub aqu_sz: f64,
    pub util_percent: f64,
}

/// The columns that reads, writes and discards have alike: `r_s` is `reads.ios_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "as in Iostat")]
pub struct Direction {
    pub ios_s: f64,
    pub kb_s: f64,
    pub rqm_s: f64,
    pub rqm_percent: f64,
    pub await_ms: f64,
    pub areq_sz: f64,
}

impl Iostat {
    /// The columns of one direction.
    pub fn direction(&self, op: Op) -> &Direction {
        op.select(&self.reads, &self.writes)
    }
}

/// A column: sysstat's name and the figure.
pub type Column = (&'static str, fn(&Iostat) -> f64);

/// The columns of `iostat -x`, in sysstat's order of `iostat -x` with one direction after the other.
pub const COLUMNS: [Column; 22] = [
    ("r/s", |row| row.reads.ios_s),
    ("rkB/s", |row| row.reads.kb_s),
    ("rrqm/s", |row| row.reads.rqm_s),
    ("%rrqm", |row| row.reads.rqm_percent),
    ("r_await", |row| row.reads.await_ms),
    ("rareq-sz", |row| row.reads.areq_sz),
    ("w/s", |row| row.writes.ios_s),
    ("wkB/s", |row| row.writes.kb_s),
    ("wrqm/s", |row| row.writes.rqm_s),
    ("%wrqm", |row| row.writes.rqm_percent),
    ("w_await", |row| row.writes.await_ms),
    ("wareq-sz", |row| row.writes.areq_sz),
    ("d/s", |row| row.discards.ios_s),
    ("dkB/s", |row| row.discards.kb_s),
    ("drqm/s", |row| row.discards.rqm_s),
    ("%drqm", |row| row.discards.rqm_percent),
    ("d_await", |row| row.discards.await_ms),
    ("dareq-sz", |row| row.discards.areq_sz),
    ("f/s", |row| row.f_s),
    ("f_await", |row| row.f_await),
    ("aqu-sz", |row| row.aqu_sz),
    ("%util", |row| row.util_percent),
];

/// The row of a device over the I/O of a cell; `None` if its counters are not known, and over no time: a row of zeros
/// would claim that nothing happened. `%util` ends at 100 here: the kernel counts a whole clock tick (up to 10 ms) as busy when a
/// request starts in it, and each visit begins with one, so that short visits add up to more time than they took.
pub fn iostat_row(device: &DeviceEvidence) -> Option<Iostat> {
    let interval_ns = device.interval_ns.filter(|&interval_ns| interval_ns > 0)?;
    let row = row_of(&device.diskstat?, interval_ns);
    Some(Iostat { util_percent: row.util_percent.min(100.0), ..row })
}

/// Mean number of requests that waited for a place in the device, over the I/O of a cell; `None` if it was not counted.
pub fn waiting_mean(device: &DeviceEvidence) -> Option<f64> {
    Some(device.waiting_ns? as f64 / device.interval_ns.filter(|&interval_ns| interval_ns > 0)? as f64)
}

/// The row of a known growth over `interval_ns`. Every column is finite and not negative; without an interval the rates
/// are 0, and a counter that the kernel does not have counts as 0, as in sysstat.
pub fn row_of(delta: &DiskStat, interval_ns: u64) -> Iostat {
    let per_s = |count: u64| over(count as f64 * NS_PER_S, interval_ns as f64);
    let direction = |[ios, merges, sectors, ticks_ms]: [u64; 4]| Direction {
        ios_s: per_s(ios),
        kb_s: per_s(sectors) / SECTORS_PER_KB,
        rqm_s: per_s(merges),
        rqm_percent: over(merges as f64 * 100.0, merges as f64 + ios as f64),
        await_ms: over(ticks_ms as f64, ios as f64),
        areq_sz: over(sectors as f64 / SECTORS_PER_KB, ios as f64),
    };
    let discards = [delta.discard_ios, delta.discard_merges, delta.discard_sectors, delta.discard_ticks_ms];
    let flush_ios = delta.flush_ios.unwrap_or(0);
    Iostat {
        reads: direction([delta.read_ios, delta.read_merges, delta.read_sectors, delta.read_ticks_ms]),
        writes: direction([delta.write_ios, delta.write_merges, delta.write_sectors, delta.write_ticks_ms]),
        discards: direction(discards.map(|count| count.unwrap_or(0))),
        f_s: per_s(flush_ios),
        f_await: over(delta.flush_ticks_ms.unwrap_or(0) as f64, flush_ios as f64),
        aqu_sz: per_s(delta.time_in_queue_ms) / MS_PER_S,
        util_percent: per_s(delta.io_ticks_ms) / MS_PER_S * 100.0,
    }
}

/// A quotient that is 0 where sysstat prints 0: without anything to divide by.
pub(crate) fn over(value: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { value / divisor } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Prints as `iostat -o JSON` does, in its order of columns.
    fn printed(row: &Iostat) -> String {
        let columns = [
            row.reads.ios_s, row.writes.ios_s, row.discards.ios_s, row.f_s, row.reads.kb_s, row.writes.kb_s,
            row.discards.kb_s, row.reads.rqm_s, row.writes.rqm_s, row.discards.rqm_s, row.reads.rqm_percent,
            row.writes.rqm_percent, row.discards.rqm_percent, row.reads.await_ms, row.writes.await_ms,
            row.discards.await_ms, row.f_await, row.reads.areq_sz, row.writes.areq_sz, row.discards.areq_sz,
            row.aqu_sz, row.util_percent,
        ];
        columns.map(|column| format!("{column:.2}")).join(" ")
    }

    fn fields(text: &str) -> Vec<u64> {
        text.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    /// The row between two samples; a time that fell has wrapped at 2³².
    fn row(before: &str, after: &str, interval_ns: u64) -> Iostat {
        let grown = |(before, after): (u64, u64)| {
            if after < before { (1 << 32) - before + after } else { after - before }
        };
        let delta: Vec<u64> = fields(before).into_iter().zip(fields(after)).map(grown).collect();
        row_of(&DiskStat::from_fields(&delta).unwrap(), interval_ns)
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
        assert_eq!(format!("{:.2} {:.2}", wrapped.aqu_sz, wrapped.discards.await_ms), "0.27 8.30");
        let old_kernel = row(
            "100 10 800 50 200 20 1600 400 0 300 450",
            "345 67 9012 1234 777 333 8888 4567 3 2500 9876",
            3_000_000_000,
        );
        assert_eq!((old_kernel.discards.ios_s, old_kernel.f_s, old_kernel.f_await), (0.0, 0.0, 0.0));
        assert_eq!(format!("{:.2}", old_kernel.writes.rqm_percent), "35.17");
    }

    /// Pairs of lines that stood in /proc/diskstats around real work on a loop device (23 direct reads; a buffered write
    /// with fsync; a discard and large reads), and what sysstat 12.6.1 printed for them over two seconds.
    #[test]
    fn real_work_as_sysstat_prints_it() {
        let lines: Vec<&str> = include_str!("../tests/fixtures/loop-work.txt").lines().collect();
        let expected = include_str!("../tests/fixtures/loop-work.expected");
        let counters = |line: &'static str| line.split_once("loop").unwrap().1.split_once(' ').unwrap().1;
        let rows = lines
            .chunks_exact(2)
            .map(|pair| printed(&row(counters(pair[0]), counters(pair[1]), 2_000_000_000)));
        assert_eq!(rows.collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn no_interval_gives_no_rate() {
        let row = row(FIRST, "101 10 808 53 200 20 1600 400 0 300 450 5 1 40 7 3 2", 0);
        assert_eq!((row.reads.ios_s, row.aqu_sz, row.util_percent), (0.0, 0.0, 0.0));
        assert_eq!((row.reads.await_ms, row.reads.areq_sz), (3.0, 4.0));
    }

    proptest! {
        #[test]
        fn columns_are_finite_and_not_negative(
            counters in proptest::array::uniform17(any::<u64>()),
            interval_ns in any::<u64>(),
        ) {
            let row = row_of(&DiskStat::from_fields(&counters).unwrap(), interval_ns);
            for column in printed(&row).split(' ') {
                let value: f64 = column.parse().unwrap();
                prop_assert!(value.is_finite() && value >= 0.0, "{column} of {row:?}");
            }
            prop_assert!(row.reads.rqm_percent <= 100.0 && row.writes.rqm_percent <= 100.0 && row.discards.rqm_percent <= 100.0);
        }
    }

    #[test]
    fn a_device_without_counters_or_time_has_no_row() {
        let device =
            |interval_ns, diskstat| DeviceEvidence { interval_ns, diskstat, ..DeviceEvidence::default() };
        let read = DiskStat { read_ios: 5, ..DiskStat::default() };
        assert_eq!(iostat_row(&device(Some(500_000_000), Some(read))).map(|row| row.reads.ios_s), Some(10.0));
        for (interval_ns, diskstat) in [(Some(0), Some(read)), (None, Some(read)), (Some(1), None)] {
            assert_eq!(iostat_row(&device(interval_ns, diskstat)), None);
        }
        // Ticks of the clock may add up to more than the time; the row of a cell does not say so.
        let busy = DiskStat { io_ticks_ms: 120, ..read };
        assert_eq!(
            iostat_row(&device(Some(100_000_000), Some(busy))).map(|row| row.util_percent),
            Some(100.0)
        );
        assert_eq!(row_of(&busy, 100_000_000).util_percent, 120.0);
        let mut waited = device(Some(1_000), Some(read));
        assert_eq!(waiting_mean(&waited), None);
        waited.waiting_ns = Some(2_500);
        assert_eq!(waiting_mean(&waited), Some(2.5));
    }
}
