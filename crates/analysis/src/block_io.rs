//! What the calls of a cell became in the block layer: the bios that each call submitted and the requests that the device got, by
//! exact size. Known only where BPF programs counted and took times all of the cell's time; nothing here is inferred, and nothing judged.

use crate::{metrics, words};
use rdsk_model::{Bio, BpfEvidence, CellRecord, DeviceEvidence, IoPath, Op, Sync, is_write_call};
use rdsk_units::{Bytes, printable};

/// The largest share of requests that the programs may have missed for their counts to be used at all.
const MOST_MISSED: f64 = 0.01;
/// How far the number of requests may be from the number of I/Os for each I/O to count as one request.
const ONE_EACH: f64 = 0.05;
/// Sizes of requests that words name.
const NAMED_SIZES: usize = 2;

/// Who submitted a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// A system call of rdsk.
    Call(&'a str),
    /// A worker thread to which `io_uring` passed a call of rdsk.
    Worker,
    /// A thread of the kernel, such as that of writeback.
    Kernel,
    /// Another process.
    Other,
}

impl Origin<'_> {
    /// Whether it is a call of rdsk that does nothing but write.
    pub fn is_write_call(self) -> bool {
        matches!(self, Self::Call(call) if is_write_call(call))
    }
}

/// Bios or requests, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Sum {
    /// Mean size in bytes; `None` of none.
    pub fn mean_bytes(self) -> Option<f64> {
        (self.count > 0).then(|| metrics::ratio(self.bytes, self.count))
    }

    fn plus(self, bio: &Bio) -> Self {
        Self { count: self.count + bio.count, bytes: self.bytes + bio.bytes }
    }
}

/// What BPF counted of one cell, at the devices that count for its targets.
#[derive(Clone, Debug)]
pub struct BlockIo<'a> {
    cell: &'a CellRecord,
    devices: Vec<&'a DeviceEvidence>,
    /// Whether no request was missed, so that each count is exact; otherwise up to 1 % may lack.
    pub is_exact: bool,
}

/// What BPF counted of a cell; `None` where it did not follow all bios and take all times, or missed more than 1 % of the requests.
pub fn block_io(cell: &CellRecord) -> Option<BlockIo<'_>> {
    let is_timed = cell.evidence.bpf.as_ref()?.timed_share().is_none();
    counted(cell).filter(|_| is_timed)
}

/// The requests of one direction in words, where BPF counted them all, but took times and followed bios for a part of the time only;
/// and that part.
pub fn requests_beside_a_part(cell: &CellRecord, op: Op) -> Option<(String, f64)> {
    let part = cell.evidence.bpf.as_ref()?.timed_share()?;
    let sizes = counted(cell)?.sizes_in_words(op);
    (!sizes.is_empty()).then_some((sizes, part))
}

/// What was counted all of the time, whatever part of it was timed.
fn counted(cell: &CellRecord) -> Option<BlockIo<'_>> {
    let bpf = cell.evidence.bpf.as_ref().filter(|bpf| bpf.is_whole())?;
    let devices = metrics::devices(cell)?;
    let missed = devices.iter().map(|device| missed(bpf, device)).collect::<Option<Vec<f64>>>()?;
    let worst = missed.into_iter().fold(0.0, f64::max);
    let is_exact = devices.iter().all(|device| bpf.lost_of(device.target, &device.name) == 0) && worst == 0.0;
    (worst <= MOST_MISSED).then_some(BlockIo { cell, devices, is_exact })
}

/// Share of a device's requests that one of the two sources missed; `None` if the programs did not observe it.
fn missed(bpf: &BpfEvidence, device: &DeviceEvidence) -> Option<f64> {
    let its =
        bpf.checks.iter().find(|check| (check.target, &check.device) == (device.target, &device.name))?;
    let lost = metrics::ratio(bpf.lost_of(device.target, &device.name), its.sysfs.max(1));
    Some(its.difference().max(lost.min(1.0)))
}

impl<'a> BlockIo<'a> {
    /// The bios of one direction; those without data only ask for a flush.
    fn bios(&self, op: Op) -> impl Iterator<Item = (Origin<'a>, &'a Bio)> {
        let is_ours = move |bio: &&Bio| {
            let of = |device: &&DeviceEvidence| (device.target, &device.name) == (bio.target, &bio.device);
            bio.op == op && bio.bytes > 0 && self.devices.iter().any(of)
        };
        self.cell.evidence.bios.iter().filter(is_ours).map(|bio| (origin(bio), bio))
    }

    fn sum(&self, op: Op, is_wanted: impl Fn(Origin<'a>, &Bio) -> bool) -> Sum {
        let wanted = self.bios(op).filter(|(origin, bio)| is_wanted(*origin, bio));
        wanted.fold(Sum::default(), |sum, (_, bio)| sum.plus(bio))
    }

    /// Bios of one direction that rdsk's own calls submitted, themselves or through workers. What must not wait and would have
    /// to is submitted once more, without that mark, so of the two kinds the larger sum has each bio once.
    pub fn own(&self, op: Op) -> Sum {
        let is_own = |origin| matches!(origin, Origin::Call(_) | Origin::Worker);
        let [plain, marked] =
            [false, true].map(|nowait| self.sum(op, |origin, bio| is_own(origin) && bio.nowait == nowait));
        if marked.bytes > plain.bytes { marked } else { plain }
    }

    /// Bios of one direction that workers of `io_uring` submitted for rdsk.
    pub fn by_workers(&self, op: Op) -> Sum {
        self.sum(op, |origin, _| origin == Origin::Worker)
    }

    /// Bios of one direction that other processes submitted.
    pub fn by_others(&self, op: Op) -> Sum {
        self.sum(op, |origin, _| origin == Origin::Other)
    }

    /// Bios of one direction that a system call of rdsk submitted.
    pub fn by_call(&self, op: Op, call: &str) -> Sum {
        self.sum(op, |origin, _| origin == Origin::Call(call))
    }

    /// Reads that rdsk's own calls to write submitted, because they changed a part of what they wrote to; and all reads.
    pub fn reads_in_writes(&self) -> (Sum, Sum) {
        (self.sum(Op::Read, |origin, _| origin.is_write_call()), self.sum(Op::Read, |_, _| true))
    }

    /// All bios of one direction by origin, those with most bytes first.
    pub fn origins(&self, op: Op) -> Vec<(Origin<'a>, Sum)> {
        let mut found: Vec<(Origin<'a>, Sum)> = Vec::new();
        for (origin, bio) in self.bios(op) {
            match found.iter_mut().find(|(known, _)| *known == origin) {
                Some((_, sum)) => *sum = sum.plus(bio),
                None => found.push((origin, Sum::default().plus(bio))),
            }
        }
        found.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
        found
    }

    /// The requests of one direction by exact size: size and count, the size that moved most bytes first.
    pub fn request_sizes(&self, op: Op) -> Vec<(u64, u64)> {
        let mut sizes: Vec<(u64, u64)> = Vec::new();
        for device in &self.devices {
            let is_its = |one: &&rdsk_model::Request| {
                (one.target, &one.device, one.op) == (device.target, &device.name, op) && one.bytes > 0
            };
            for request in self.cell.evidence.requests.iter().filter(is_its) {
                match sizes.iter_mut().find(|(bytes, _)| *bytes == request.bytes) {
                    Some((_, count)) => *count += request.count,
                    None => sizes.push((request.bytes, request.count)),
                }
            }
        }
        sizes.sort_by_key(|&(bytes, count)| std::cmp::Reverse(bytes * count));
        sizes
    }

    /// All requests of one direction that moved data.
    pub fn requests(&self, op: Op) -> Sum {
        let sizes = self.request_sizes(op).into_iter();
        sizes.fold(Sum::default(), |sum, (bytes, count)| Sum {
            count: sum.count + count,
            bytes: sum.bytes + bytes * count,
        })
    }

    /// The largest request of one direction, in bytes.
    pub fn largest(&self, op: Op) -> Option<u64> {
        self.request_sizes(op).into_iter().map(|(bytes, _)| bytes).max()
    }

    /// Bios that were cut because a device takes less in one request.
    pub fn splits(&self) -> Option<u64> {
        self.devices.iter().map(|device| device.splits).sum()
    }

    /// The most requests that were in flight at once on one device.
    pub fn deepest(&self) -> Option<u64> {
        self.devices.iter().filter_map(|device| device.in_flight_max).max()
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

    /// Write requests that were done only when they were durable (FUA), and bios that only asked for a flush.
    pub fn durable(&self) -> (u64, u64) {
        let is_at = |target: u32, name: &String| {
            self.devices.iter().any(|device| (device.target, &device.name) == (target, name))
        };
        let evidence = &self.cell.evidence;
        let is_fua =
            |one: &&rdsk_model::Request| one.fua && one.op == Op::Write && is_at(one.target, &one.device);
        let is_flush = |bio: &&Bio| bio.flush && is_at(bio.target, &bio.device);
        let fua = evidence.requests.iter().filter(is_fua).map(|one| one.count).sum();
        (fua, evidence.bios.iter().filter(is_flush).map(|bio| bio.count).sum())
    }

    /// The calls of rdsk. The programs count the warm-up, and it is among these.
    pub fn calls(&self) -> u64 {
        self.cell.result.ops.unwrap_or(0)
    }

    /// `128 of 512 KiB`, `16 of 660 KiB, 16 of 364 KiB and 3 of other sizes`.
    pub fn sizes_in_words(&self, op: Op) -> String {
        let sizes = self.request_sizes(op);
        let named = sizes.iter().take(NAMED_SIZES);
        let mut parts: Vec<String> = named
            .map(|&(bytes, count)| format!("{} of {}", rdsk_units::grouped(count), Bytes(bytes)))
            .collect();
        let others: u64 = sizes.iter().skip(NAMED_SIZES).map(|(_, count)| count).sum();
        if others > 0 {
            parts.push(format!("{} of other sizes", rdsk_units::grouped(others)));
        }
        words::list(&parts)
    }
}

fn origin(bio: &Bio) -> Origin<'_> {
    match (bio.task.as_str(), bio.syscall.as_deref()) {
        ("this", Some(call)) => Origin::Call(call),
        ("this", None) => Origin::Worker,
        ("kernel", _) => Origin::Kernel,
        _ => Origin::Other,
    }
}

impl std::fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(call) => write!(f, "{}(2)", printable(call)),
            Self::Worker => f.write_str("io_uring's workers"),
            Self::Kernel => f.write_str("the kernel's threads"),
            Self::Other => f.write_str("other processes"),
        }
    }
}

/// Bytes that writes of a cell made the kernel read: of its own calls where BPF told them apart, else what the kernel charged to
/// the process.
pub fn read_by_writes(cell: &CellRecord) -> Option<u64> {
    let told = block_io(cell).map(|seen| seen.reads_in_writes().0.bytes);
    told.or_else(|| metrics::process_bytes(cell, Op::Read))
}

/// How long an I/O took, and how much of that its request was in the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InDevice {
    /// Mean time of the call, in ns.
    pub call_ns: f64,
    /// Mean time from the issuing of the request to its completion, in ns.
    pub device_ns: f64,
}

impl InDevice {
    /// Time of an I/O before its request was given to the device and after it was done.
    pub fn outside_ns(&self) -> f64 {
        (self.call_ns - self.device_ns).max(0.0)
    }
}

/// Both times of a cell with one direct I/O at a time, each of them one request; `None` for all other cells, where the two cannot
/// be compared: requests overlap, wait for each other or are flushes.
pub fn in_device(cell: &CellRecord) -> Option<InDevice> {
    let workload = &cell.workload;
    let is_simple = workload.path == IoPath::Direct
        && workload.sync == Sync::None
        && workload.targets.len() == 1
        && metrics::wanted_depth(workload) == 1;
    let seen = block_io(cell).filter(|_| is_simple)?;
    let device = cell.evidence.device_of(*workload.targets.first()?)?;
    // The latencies are those of the target's own device, of all its requests.
    let is_own = seen.devices.len() == 1 && std::ptr::eq(seen.devices[0], device);
    let latency = cell.evidence.device_latency_ns.as_ref().filter(|_| is_own)?;
    let calls = seen.calls() as f64;
    let is_near = |count: u64| (count as f64 / calls - 1.0).abs() <= ONE_EACH;
    let is_one_each = calls > 0.0 && is_near(latency.count) && is_near(seen.requests(workload.op).count);
    let call_ns = cell.result.latency_ns.as_ref()?.mean.filter(|_| is_one_each)?;
    Some(InDevice { call_ns, device_ns: latency.mean? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, with};
    use fixtures::bios::{bio, counted, request};

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
        let seen = block_io(&cell).unwrap();
        assert!(seen.is_exact);
        let (inside, all) = seen.reads_in_writes();
        assert_eq!((inside, all.count), (Sum { count: 256, bytes: 1 << 20 }, 259));
        assert_eq!(seen.by_others(Op::Read).count, 2);
        let origins: Vec<String> =
            seen.origins(Op::Write).iter().map(|(who, sum)| format!("{who} {}", sum.count)).collect();
        assert_eq!(origins, ["fsync(2) 200", "the kernel's threads 56"]);
        assert_eq!(seen.own(Op::Write).count, 200);
        assert_eq!(seen.sizes_in_words(Op::Write), "2 of 512 KiB");
        assert_eq!(seen.requests(Op::Write), Sum { count: 2, bytes: 1 << 20 });
        assert_eq!(read_by_writes(&cell), Some(1 << 20));
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
        let (requests, part) = requests_beside_a_part(&in_part, Op::Write).expect("counted throughout");
        assert_eq!((requests.as_str(), part), ("2 of 512 KiB", 0.1));
        assert_eq!(requests_beside_a_part(&small_writes(), Op::Write), None);
        let missed = change(|bpf| (bpf.timed_ns, bpf.lost) = (Some(1), 200));
        assert_eq!(requests_beside_a_part(&missed, Op::Write), None);
        let one = change(|bpf| bpf.lost = 1);
        assert!(block_io(&one).is_some_and(|seen| !seen.is_exact && seen.missed() == ["sda"]));
        // What was missed of a device that does not carry this target's figure makes its counts no worse.
        let of = |device: &str, lost| rdsk_model::CountedDevice {
            device: device.into(),
            lost: Some(lost),
            ..rdsk_model::CountedDevice::default()
        };
        let mut other = small_writes();
        let bpf = other.evidence.bpf.as_mut().unwrap();
        (bpf.lost, bpf.devices) = (200, vec![of("sda", 0), of("sdb", 200)]);
        assert!(block_io(&other).is_some_and(|seen| seen.is_exact && seen.missed().is_empty()));
        let without = with(small_writes(), |cell| {
            cell.evidence.bpf = None;
            cell.evidence.process.read_bytes = Some(77);
        });
        assert!(block_io(&without).is_none());
        assert_eq!(read_by_writes(&without), Some(77));
    }

    #[test]
    fn a_bio_that_was_submitted_again_counts_once() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 1_000_000_000);
        let marked =
            rdsk_model::Bio { nowait: true, ..bio(Op::Read, "this", Some("io_uring_enter"), 1000, 4096) };
        let again = bio(Op::Read, "this", None, 40, 4096);
        let cell = counted(cell, vec![marked, again], vec![request(Op::Read, 4096, 1000)]);
        let seen = block_io(&cell).unwrap();
        assert_eq!((seen.own(Op::Read).count, seen.by_workers(Op::Read).count), (1000, 40));
    }

    /// `ops` has the I/Os of the warm-up already, and the programs count each of them once.
    #[test]
    fn calls_have_the_warm_up_once() {
        let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)];
        let cell = counted(cell, bios, vec![request(Op::Read, 4096, 1000)]);
        let cell = with(cell, |cell| {
            (cell.result.warmup_ns, cell.result.warmup_ops) = (Some(500_000_000), Some(200));
            cell.evidence.device_latency_ns = Some(fixtures::latency(1000, 1_000_000));
        });
        assert_eq!(block_io(&cell).unwrap().calls(), 1000);
        assert!(in_device(&cell).is_some(), "each I/O is one request");
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
        let seen = block_io(&cell).unwrap();
        assert_eq!(seen.sizes_in_words(Op::Read), "64 of 660 KiB, 64 of 364 KiB and 5 of other sizes");
        assert_eq!(seen.largest(Op::Read), Some(675_840));
    }

    #[test]
    fn the_two_times_are_compared_where_each_io_is_one_request() {
        let cell = |requests: u64| {
            let cell = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
            let cell = counted(
                cell,
                vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)],
                vec![request(Op::Read, 4096, requests)],
            );
            with(cell, |cell| {
                cell.evidence.device_latency_ns = Some(fixtures::latency(requests, 1_000_000));
            })
        };
        let times = in_device(&cell(1000)).unwrap();
        assert!((times.call_ns - 4e6).abs() < 1.0 && (times.outside_ns() - 3e6).abs() < 1.0, "{times:?}");
        assert!(in_device(&cell(1100)).is_none(), "others' requests are among them");
        let deep = with(cell(1000), |cell| cell.workload.queue_depth = 2);
        assert!(in_device(&deep).is_none());
        let durable = with(cell(1000), |cell| cell.workload.sync = Sync::Dsync);
        assert!(in_device(&durable).is_none());
    }
}
