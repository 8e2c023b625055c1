//! What the calls of a cell became in the block layer: the bios that each call submitted and the requests that the device got, by
//! exact size. Known only where BPF programs counted and took times in all of the visits that they followed, which may be some of the
//! cell's; calls and bytes here are of these. Nothing is inferred, and nothing judged.

mod account;

pub use account::{Account, Submitted, Sum};

use crate::metrics;
use rdsk_model::{BpfEvidence, CellRecord, DeviceEvidence, DiskStat, IoPath, Op};
use std::ops::Deref;

/// The largest share of requests that the programs may have missed for their counts to be used at all.
const MOST_MISSED: f64 = 0.01;

/// What BPF counted of one cell, at the devices that count for its targets.
#[derive(Clone, Debug)]
pub struct BlockIo<'a> {
    cell: &'a CellRecord,
    /// The visits that were followed.
    followed: Followed,
    /// The devices that count for the cell.
    pub(crate) devices: Vec<&'a DeviceEvidence>,
    /// Bios and requests at these devices.
    account: Account<'a>,
    /// Whether no request was missed, so that each count is exact; otherwise up to 1 % may lack.
    pub is_exact: bool,
}

impl<'a> Deref for BlockIo<'a> {
    type Target = Account<'a>;

    fn deref(&self) -> &Account<'a> {
        &self.account
    }
}

/// The I/O of the visits that the programs followed.
#[derive(Clone, Copy, Debug)]
struct Followed {
    elapsed_ns: u64,
    ops: u64,
    bytes: u64,
    /// From the return of the last I/O of each visit to the end of its close; `None` where a visit does not say.
    closing_ns: Option<u64>,
    is_all: bool,
}

impl Followed {
    /// `None` where the Record does not hold these visits.
    fn visits(cell: &CellRecord, bpf: &BpfEvidence) -> Option<Self> {
        let result = &cell.result;
        let Some(followed) = &bpf.followed else {
            let [elapsed_ns, ops, bytes] =
                [result.elapsed_ns, result.ops, result.bytes].map(Option::unwrap_or_default);
            let closing_ns = closing_ns(result.to_return_ns, result.to_close_ns);
            return Some(Self { elapsed_ns, ops, bytes, closing_ns, is_all: true });
        };
        let mut sum = Self { elapsed_ns: 0, ops: 0, bytes: 0, closing_ns: Some(0), is_all: false };
        for &index in followed {
            let visit = result.visits.get(index as usize)?;
            sum.elapsed_ns += visit.elapsed_ns;
            sum.ops += visit.ops;
            sum.bytes += visit.bytes;
            let more = closing_ns(visit.to_return_ns, visit.to_close_ns);
            sum.closing_ns = sum.closing_ns.zip(more).map(|(sum, more)| sum + more);
        }
        Some(sum)
    }
}

fn closing_ns(to_return_ns: Option<u64>, to_close_ns: Option<u64>) -> Option<u64> {
    Some(to_close_ns?.saturating_sub(to_return_ns?))
}

/// What was counted all of the time, whatever part of it was timed.
pub(crate) fn counted(cell: &CellRecord) -> Option<BlockIo<'_>> {
    let bpf = cell.evidence.bpf.as_ref().filter(|bpf| bpf.is_whole())?;
    let devices = metrics::devices(cell)?;
    let missed = devices.iter().map(|device| missed(bpf, device)).collect::<Option<Vec<f64>>>()?;
    let worst = missed.into_iter().fold(0.0, f64::max);
    let is_exact = devices.iter().all(|device| bpf.lost_of(device.target, &device.name) == 0) && worst == 0.0;
    let followed = Followed::visits(cell, bpf)?;
    let is_at = |target: u32, name: &str| {
        devices.iter().any(|device| (device.target, device.name.as_str()) == (target, name))
    };
    let account = Account::at(&cell.evidence, is_at);
    (worst <= MOST_MISSED).then_some(BlockIo { cell, followed, devices, account, is_exact })
}

/// Share of a device's requests that one of the two sources missed; `None` if the programs did not observe it.
fn missed(bpf: &BpfEvidence, device: &DeviceEvidence) -> Option<f64> {
    let its =
        bpf.checks.iter().find(|check| (check.target, &check.device) == (device.target, &device.name))?;
    let lost = metrics::ratio(bpf.lost_of(device.target, &device.name), its.sysfs.max(1));
    Some(its.difference().max(lost.min(1.0)))
}

impl<'a> BlockIo<'a> {
    /// Requests of one direction that were merged into a neighbour, in the same visits; `None` where that is not known.
    pub fn merges(&self, op: Op) -> Option<u64> {
        let merges = |stat: &DiskStat| op.select(stat.read_merges, stat.write_merges);
        if self.followed.is_all { metrics::merges(self.cell, op) } else { self.by_sysfs(merges) }
    }

    /// Flushes of the devices in the same visits; `None` where that is not known.
    pub fn flushes(&self) -> Option<u64> {
        if self.followed.is_all {
            return metrics::flushes(self.cell);
        }
        // Those of several devices may be the same flush.
        let [device] = self.devices.as_slice() else { return None };
        device.diskstat?.flush_ios?;
        self.by_sysfs(|stat| stat.flush_ios.unwrap_or(0))
    }

    /// A counter of sysfs in the followed visits. It is known of the time in which the I/O ran, and what memory held is written later.
    fn by_sysfs(&self, counter: impl Fn(&DiskStat) -> u64) -> Option<u64> {
        let followed = self.cell.evidence.bpf.as_ref()?.followed.as_ref()?;
        let is_direct = self.cell.workload.path == IoPath::Direct;
        let sum_of = |device: &DeviceEvidence| {
            let counters = |index: &u32| Some(counter(&device.visits.get(*index as usize)?.diskstat));
            followed.iter().map(counters).sum::<Option<u64>>()
        };
        let sum = self.devices.iter().map(|device| sum_of(device)).sum::<Option<u64>>();
        sum.filter(|_| is_direct)
    }

    /// Bios that were cut because a device takes less in one request.
    pub fn splits(&self) -> Option<u64> {
        self.devices.iter().map(|device| device.splits).sum()
    }

    /// The most requests that were in flight at once on one device; `None` where some visits were not followed, of which only samples
    /// are known.
    pub fn deepest(&self) -> Option<u64> {
        self.devices.iter().filter(|_| self.followed.is_all).filter_map(|device| device.in_flight_max).max()
    }

    /// Write requests that were done only when they were durable (FUA) per write of rdsk, at all devices of the cell's targets, since
    /// drivers without requests of their own pass them on. `None` without calls.
    pub fn fua_per_write(&self) -> Option<f64> {
        let fua = self.cell.evidence.requests.iter().filter(|request| request.fua && request.op == Op::Write);
        (self.calls() > 0).then(|| metrics::ratio(fua.map(|request| request.count).sum(), self.calls()))
    }

    /// The share of the visits' time in which bios were followed and times taken, where it is not all of it.
    pub fn timed_share(&self) -> Option<f64> {
        self.cell.evidence.bpf.as_ref()?.timed_share()
    }

    /// The devices of which some requests were missed, so that their counts may be up to 1 % too low.
    pub fn missed(&self) -> Vec<&'a str> {
        let Some(bpf) = &self.cell.evidence.bpf else { return Vec::new() };
        let is_missed = |device: &&&DeviceEvidence| {
            bpf.lost_of(device.target, &device.name) > 0
                || missed(bpf, device).is_none_or(|share| share > 0.0)
        };
        self.devices.iter().filter(is_missed).map(|device| device.name.as_str()).collect()
    }

    /// The calls of rdsk. The programs count the warm-up, and it is among these.
    pub fn calls(&self) -> u64 {
        self.followed.ops
    }

    /// What these calls moved, in bytes.
    pub fn bytes(&self) -> u64 {
        self.followed.bytes
    }

    /// Time of the closes of these visits, in ns; `None` where it is not known.
    pub fn closing_ns(&self) -> Option<u64> {
        self.followed.closing_ns
    }

    /// Whether these are all visits of the cell.
    pub fn is_of_all_visits(&self) -> bool {
        self.followed.is_all
    }

    /// ` in 1 of 6 repeats`, where it is not all of them; else nothing.
    pub fn part_in_words(&self) -> String {
        part_in_words(self.cell)
    }

    /// How much longer an I/O of the followed visits took than one of all, one at a time and after the warm-up, which the mean of the
    /// latencies leaves out; 1 where all visits were followed.
    pub(crate) fn slower_than_all(&self) -> Option<f64> {
        let Followed { elapsed_ns, ops, is_all, .. } = self.followed;
        if is_all {
            return Some(1.0);
        }
        let result = &self.cell.result;
        let all_ns = result.elapsed_ns?.saturating_sub(result.warmup_ns.unwrap_or(0));
        let all_ops = result.ops?.saturating_sub(result.warmup_ops.unwrap_or(0));
        (ops > 0 && all_ops > 0 && all_ns > 0)
            .then(|| metrics::ratio(elapsed_ns, ops) / metrics::ratio(all_ns, all_ops))
    }
}

/// ` in 1 of 6 repeats`, where BPF did not follow all of a cell's; else nothing.
pub fn part_in_words(cell: &CellRecord) -> String {
    let followed = cell.evidence.bpf.as_ref().and_then(|bpf| bpf.followed.as_ref());
    followed.map_or_else(String::new, |followed| {
        format!(" in {} of {} repeats", followed.len(), cell.result.visits.len())
    })
}

/// Bytes that a write of a cell made the kernel read, on average.
pub(crate) fn read_per_write(cell: &CellRecord, block_io: Option<&BlockIo<'_>>) -> Option<f64> {
    let (read, writes) = match block_io {
        Some(block_io) => (block_io.reads_in_writes().0.bytes, block_io.calls()),
        None => (metrics::process_bytes(cell, Op::Read)?, cell.result.ops?),
    };
    (writes > 0).then(|| metrics::ratio(read, writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, with};
    use fixtures::bios::{bio, counted, request};
    use rdsk_model::Origin;

    fn block_io(cell: &CellRecord) -> Option<BlockIo<'_>> {
        super::counted(cell).filter(|block_io| block_io.timed_share().is_none())
    }

    /// 2048 buffered writes of 512 bytes, as BPF counts them on a block device.
    fn small_writes() -> CellRecord {
        let cell = fixtures::cell("w", Op::Write, IoPath::Buffered, 512, 2048, 1_000_000_000);
        let cell = with(cell, |cell| {
            cell.evidence.device[0].writes = Some(2);
            cell.evidence.device[0].reads = Some(256);
        });
        counted(
            cell,
            vec![
                bio(Op::Read, "this", Some("pwrite64"), 256, 4096),
                bio(Op::Read, "other", Some("pwrite64"), 2, 4096),
                bio(Op::Read, "this", Some("io_uring_enter"), 1, 4096),
                bio(Op::Write, "kernel", None, 56, 4096),
                bio(Op::Write, "this", Some("fsync"), 200, 4096),
                bio(Op::Write, "this", Some("fdatasync"), 1, 0),
            ],
            vec![request(Op::Read, 4096, 259), request(Op::Write, 524_288, 2)],
        )
    }

    #[test]
    fn bios_are_told_apart_by_who_submitted_them() {
        let cell = small_writes();
        let activity = block_io(&cell).unwrap();
        assert!(activity.is_exact);
        let (inside, writes_with) = activity.reads_in_writes();
        assert_eq!((inside, writes_with.count), (Sum { count: 256, bytes: 1 << 20 }, 259));
        assert_eq!(activity.by(Op::Read, |origin| origin == Origin::Other).count, 2);
        let origins: Vec<String> =
            activity.origins(Op::Write).iter().map(|(who, sum)| format!("{who} {}", sum.count)).collect();
        assert_eq!(origins, ["fsync(2) 200", "the kernel's threads 56"]);
        assert_eq!(activity.own(Op::Write).count, 200);
        assert_eq!(activity.sizes_in_words(Op::Write), "2 of 512 KiB");
        assert_eq!(activity.requests(Op::Write), Sum { count: 2, bytes: 1 << 20 });
        assert_eq!(read_per_write(&cell, Some(&activity)), Some(512.0));
    }

    #[test]
    fn what_was_not_counted_throughout_is_not_used() {
        let change = |change: fn(&mut BpfEvidence)| {
            with(small_writes(), |cell| change(cell.evidence.bpf.as_mut().unwrap()))
        };
        assert!(block_io(&change(|bpf| bpf.observed_ns -= 1)).is_none());
        assert!(block_io(&change(|bpf| bpf.checks.clear())).is_none());
        assert!(block_io(&change(|bpf| bpf.checks[0].sysfs *= 2)).is_none());
        assert!(block_io(&change(|bpf| bpf.lost = 200)).is_none());
        let in_part = change(|bpf| bpf.timed_ns = Some(bpf.observed_ns / 10));
        assert!(block_io(&in_part).is_none() && block_io(&small_writes()).is_some());
        let beside_a_part = super::counted(&in_part).expect("counted throughout");
        assert_eq!(beside_a_part.sizes_in_words(Op::Write), "2 of 512 KiB");
        assert_eq!(beside_a_part.timed_share(), Some(0.1));
        assert!(super::counted(&change(|bpf| (bpf.timed_ns, bpf.lost) = (Some(1), 200))).is_none());
        let lost_one = change(|bpf| bpf.lost = 1);
        assert!(block_io(&lost_one).is_some_and(|seen| !seen.is_exact && seen.missed() == ["sda"]));
        // What was missed of a device that does not carry this target's figure makes its counts no worse.
        let counted_device = |device: &str, lost| rdsk_model::CountedDevice {
            device: device.into(),
            lost: Some(lost),
            ..rdsk_model::CountedDevice::default()
        };
        let mut other = small_writes();
        let bpf = other.evidence.bpf.as_mut().unwrap();
        (bpf.lost, bpf.devices) = (200, vec![counted_device("sda", 0), counted_device("sdb", 200)]);
        assert!(block_io(&other).is_some_and(|seen| seen.is_exact && seen.missed().is_empty()));
        let without = with(small_writes(), |cell| {
            cell.evidence.bpf = None;
            cell.evidence.process.read_bytes = Some(77);
        });
        assert!(block_io(&without).is_none());
        assert_eq!(read_per_write(&without, None), Some(77.0 / 2048.0));
    }

    #[test]
    fn calls_bytes_and_merges_are_of_the_visits_that_were_followed() {
        let reads = |path: IoPath| {
            let cell = fixtures::cell("r", Op::Read, path, 4096, 1, 1_000_000_000);
            let bios = vec![bio(Op::Read, "this", Some("pread64"), 250, 4096)];
            let cell = counted(cell, bios, vec![request(Op::Read, 4096, 250)]);
            fixtures::bios::followed(cell, &[(100, 5), (400, 5), (150, 5)], &[0, 2])
        };
        let direct = reads(IoPath::Direct);
        let activity = block_io(&direct).unwrap();
        assert_eq!(
            (activity.calls(), activity.bytes(), activity.own(Op::Read).count),
            (250, 250 * 4096, 250)
        );
        assert_eq!((activity.merges(Op::Read), activity.flushes()), (Some(25), Some(250)));
        assert_eq!((activity.part_in_words().as_str(), activity.is_exact), (" in 2 of 3 repeats", true));
        // What memory held may move after the part of a visit that sysfs says.
        let buffered = reads(IoPath::Buffered);
        let activity = block_io(&buffered).unwrap();
        assert_eq!((activity.calls(), activity.merges(Op::Read), activity.flushes()), (250, None, None));
        let unfollowed = with(direct.clone(), |cell| cell.evidence.bpf.as_mut().unwrap().followed = None);
        let activity = block_io(&unfollowed).unwrap();
        assert_eq!(
            (activity.calls(), activity.bytes(), activity.part_in_words().as_str()),
            (650, 650 * 4096, "")
        );
        let wrong = with(direct, |cell| cell.evidence.bpf.as_mut().unwrap().followed = Some(vec![0, 3]));
        assert!(block_io(&wrong).is_none(), "there is no fourth visit");
    }

    #[test]
    fn a_bio_that_was_submitted_again_counts_once() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 1_000_000_000);
        let marked =
            rdsk_model::Bio { nowait: true, ..bio(Op::Read, "this", Some("io_uring_enter"), 1000, 4096) };
        let again = bio(Op::Read, "this", None, 40, 4096);
        let cell = counted(cell, vec![marked, again], vec![request(Op::Read, 4096, 1000)]);
        let activity = block_io(&cell).unwrap();
        assert_eq!(
            (activity.own(Op::Read).count, activity.by(Op::Read, |origin| origin == Origin::Worker).count),
            (1000, 40)
        );
    }

    /// `ops` has the I/Os of the warm-up already, and the programs count each of them once.
    #[test]
    fn calls_have_the_warm_up_once() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)];
        let cell = counted(cell, bios, vec![request(Op::Read, 4096, 1000)]);
        let cell = with(cell, |cell| {
            (cell.result.warmup_ns, cell.result.warmup_ops) = (Some(500_000_000), Some(200));
        });
        assert_eq!(block_io(&cell).unwrap().calls(), 1000);
    }

    #[test]
    fn sizes_beyond_the_second_are_summed() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 1 << 20, 64, 1_000_000_000);
        let sizes = vec![
            request(Op::Read, 372_736, 64),
            request(Op::Read, 675_840, 64),
            request(Op::Read, 4096, 3),
            request(Op::Read, 512, 2),
        ];
        let cell = counted(cell, vec![bio(Op::Read, "this", Some("pread64"), 64, 1 << 20)], sizes);
        let activity = block_io(&cell).unwrap();
        assert_eq!(activity.sizes_in_words(Op::Read), "64 of 660 KiB, 64 of 364 KiB and 5 of other sizes");
        assert_eq!(activity.largest(Op::Read), Some(675_840));
    }
}
