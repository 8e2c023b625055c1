//! The columns of a live view: those of today's iostat, of sysstat before version 11, or of Solaris, and those that only BPF
//! programs can fill. A figure that the counters do not hold is `None`, never 0. It reads nothing.
//!
//! Sources: sysstat's iostat(1) of 2008 for the old columns, Solaris' iostat(1M) for its own. Linux counts a request from the
//! moment when it is allocated, so its counters hold the sum of Solaris' two queues; the part in the device is what BPF programs
//! count between issuing and completion.

use crate::iostat::{self, Iostat, over, row_of};
use rdsk_model::{BlockActivity, DiskStat};

/// A set of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnSet {
    /// `iostat -x` of sysstat 12.
    #[default]
    Iostat,
    /// `iostat -x` of sysstat before version 11, with `svctm`.
    Old,
    /// `iostat -x` of Solaris.
    Solaris,
}

/// The columns of `iostat -x` of sysstat before version 11.
const OLD: [&str; 13] = [
    "rrqm/s", "wrqm/s", "r/s", "w/s", "rsec/s", "wsec/s", "rkB/s", "wkB/s", "avgrq-sz", "avgqu-sz", "await",
    "svctm", "%util",
];
/// The columns of Solaris' `iostat -x`, whose kilobytes are 1024 bytes.
const SOLARIS: [&str; 10] = ["r/s", "w/s", "kr/s", "kw/s", "wait", "actv", "wsvc_t", "asvc_t", "%w", "%b"];

/// The columns that BPF programs fill, after those of the set. Times are milliseconds from issuing to completion; the others are
/// numbers of the interval.
pub const BLOCK: [&str; 8] =
    ["d2c_p50", "d2c_p99", "d2c_max", "qd_mean", "qd_max", "splits", "merges", "flushes"];

impl ColumnSet {
    /// The names of the columns.
    pub fn names(self) -> Vec<&'static str> {
        match self {
            Self::Iostat => iostat::COLUMNS.iter().map(|(name, _)| *name).collect(),
            Self::Old => OLD.to_vec(),
            Self::Solaris => SOLARIS.to_vec(),
        }
    }

    /// The figures of a growth over an interval, one for each name; `None` where its counters do not hold them, as flushes of
    /// partitions and of devices that take bios, where sysstat prints zeros.
    pub fn figures(
        self,
        growth: &DiskStat,
        interval_ns: u64,
        block: Option<&BlockActivity>,
    ) -> Vec<Option<f64>> {
        let row = row_of(growth, interval_ns);
        match self {
            Self::Iostat => {
                let counted = |name: &str| match name {
                    "f/s" | "f_await" => growth.flush_ios.is_some(),
                    "d/s" | "dkB/s" | "drqm/s" | "%drqm" | "d_await" | "dareq-sz" => {
                        growth.discard_ios.is_some()
                    }
                    _ => true,
                };
                let of_row = iostat::COLUMNS.iter();
                of_row.map(|(name, figure)| counted(name).then(|| figure(&row))).collect()
            }
            Self::Old => old(growth, &row).map(Some).to_vec(),
            Self::Solaris => solaris(growth, &row, block).to_vec(),
        }
    }
}

fn old(growth: &DiskStat, row: &Iostat) -> [f64; 13] {
    let (reads, writes) = (&row.reads, &row.writes);
    let ios = growth.read_ios.saturating_add(growth.write_ios);
    let sectors = growth.read_sectors.saturating_add(growth.write_sectors);
    let ticks_ms = growth.read_ticks_ms.saturating_add(growth.write_ticks_ms);
    [
        reads.rqm_s,
        writes.rqm_s,
        reads.ios_s,
        writes.ios_s,
        reads.kb_s * 2.0,
        writes.kb_s * 2.0,
        reads.kb_s,
        writes.kb_s,
        over(sectors as f64, ios as f64),
        row.aqu_sz,
        over(ticks_ms as f64, ios as f64),
        over(growth.io_ticks_ms as f64, ios as f64),
        row.util_percent,
    ]
}

fn solaris(growth: &DiskStat, row: &Iostat, block: Option<&BlockActivity>) -> [Option<f64>; 10] {
    let others = [growth.discard_ios, growth.flush_ios].into_iter().flatten();
    let ios = others.fold(growth.read_ios.saturating_add(growth.write_ios), u64::saturating_add);
    let whole_ms = over(growth.time_in_queue_ms as f64, ios as f64);
    let active = block.and_then(depth_mean);
    let service_ms = block.map(|block| block.latency.mean().map_or(0.0, |ns| ns / 1e6));
    // The two sources end their intervals microseconds apart, and the kernel credits time when a request ends.
    let rest = |whole: f64, part: Option<f64>| part.map(|part| (whole - part).max(0.0));
    [
        Some(row.reads.ios_s),
        Some(row.writes.ios_s),
        Some(row.reads.kb_s),
        Some(row.writes.kb_s),
        rest(row.aqu_sz, active),
        active,
        rest(whole_ms, service_ms),
        service_ms,
        None,
        Some(row.util_percent),
    ]
}

/// The mean number of requests in the device; `None` over no time.
fn depth_mean(block: &BlockActivity) -> Option<f64> {
    (block.interval_ns > 0).then(|| block.depth_ns as f64 / block.interval_ns as f64)
}

/// The figures of [`BLOCK`]. A percentile needs ten values above it.
pub fn block_figures(block: &BlockActivity) -> [Option<f64>; 8] {
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    [
        ms(block.latency.quantile(0.5)),
        ms(block.latency.quantile(0.99)),
        ms(block.latency.max()),
        depth_mean(block),
        block.deepest.map(|deepest| deepest as f64),
        Some(block.splits as f64),
        Some(block.merges as f64),
        Some(block.flushes as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_stats::Histogram;

    const SETS: [ColumnSet; 3] = [ColumnSet::Iostat, ColumnSet::Old, ColumnSet::Solaris];

    fn growth() -> DiskStat {
        DiskStat {
            read_ios: 100,
            read_sectors: 800,
            read_ticks_ms: 300,
            write_ios: 300,
            write_merges: 60,
            write_sectors: 2400,
            write_ticks_ms: 900,
            io_ticks_ms: 1000,
            time_in_queue_ms: 1200,
            flush_ios: Some(0),
            ..DiskStat::default()
        }
    }

    fn figure(set: ColumnSet, name: &str, block: Option<&BlockActivity>) -> Option<f64> {
        let index = set.names().iter().position(|column| *column == name).unwrap();
        set.figures(&growth(), 2_000_000_000, block)[index]
    }

    #[test]
    fn each_name_has_its_figure() {
        for set in SETS {
            assert_eq!(set.names().len(), set.figures(&growth(), 1, None).len(), "{set:?}");
        }
        assert_eq!(figure(ColumnSet::Iostat, "w_await", None), Some(3.0));
        assert_eq!(figure(ColumnSet::Iostat, "f/s", None), Some(0.0));
        let uncounted = DiskStat { flush_ios: None, discard_ios: Some(0), ..growth() };
        let of_uncounted = ColumnSet::Iostat.figures(&uncounted, 2_000_000_000, None);
        let at = |name: &str| {
            of_uncounted[ColumnSet::Iostat.names().iter().position(|column| *column == name).unwrap()]
        };
        assert_eq!([at("f/s"), at("f_await"), at("d/s")], [None, None, Some(0.0)]);
        for (name, expected) in [
            ("r/s", 50.0),
            ("wsec/s", 1200.0),
            ("wkB/s", 600.0),
            ("avgrq-sz", 8.0),
            ("avgqu-sz", 0.6),
            ("await", 3.0),
            ("svctm", 2.5),
            ("%util", 50.0),
        ] {
            assert_eq!(figure(ColumnSet::Old, name, None), Some(expected), "{name}");
        }
    }

    #[test]
    fn without_bpf_the_two_queues_of_solaris_are_not_told_apart() {
        for name in ["wait", "actv", "wsvc_t", "asvc_t", "%w"] {
            assert_eq!(figure(ColumnSet::Solaris, name, None), None, "{name}");
        }
        assert_eq!(figure(ColumnSet::Solaris, "%b", None), Some(50.0));
        let mut latency = Histogram::new();
        (0..400).for_each(|_| latency.record(1_000_000));
        let block = BlockActivity {
            interval_ns: 2_000_000_000,
            latency,
            depth_ns: 400_000_000,
            ..BlockActivity::default()
        };
        let value_of = |name| figure(ColumnSet::Solaris, name, Some(&block)).unwrap();
        assert_eq!((value_of("actv"), value_of("asvc_t"), value_of("wsvc_t")), (0.2, 1.0, 2.0));
        assert!((value_of("wait") - 0.4).abs() < 1e-9);
        assert_eq!(figure(ColumnSet::Solaris, "%w", Some(&block)), None);
    }

    #[test]
    fn percentiles_need_values_and_an_idle_device_has_zeros() {
        let idle = block_figures(&BlockActivity { deepest: Some(0), ..BlockActivity::default() });
        assert_eq!(&idle[..4], &[None, None, None, None]);
        assert_eq!(&idle[4..], &[Some(0.0); 4]);
        let mut block =
            BlockActivity { interval_ns: 1, splits: 3, merges: 4, flushes: 5, ..BlockActivity::default() };
        (0..20).for_each(|_| block.latency.record(1000));
        let [p50, p99, max, _, deepest, splits, merges, flushes] = block_figures(&block);
        assert_eq!((p50, p99, max), (Some(0.001), None, Some(0.001)));
        assert_eq!((deepest, splits, merges, flushes), (None, Some(3.0), Some(4.0), Some(5.0)));
        let zeros = ColumnSet::Solaris.figures(&DiskStat::default(), 0, None);
        assert!(zeros.into_iter().flatten().all(|figure| figure == 0.0));
    }
}
