//! The BPF programs over real loop devices, against dd's own counts and the counters of sysfs: the table of what the block layer
//! does with calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use rdsk_model::{Bio, Clock, Device, DiskStat, Evidence, EvidenceSource, Op, Request, StopFlag, Target};
use rdsk_observe::bpf::Attachment;
use rdsk_observe::bpf::{
    BioOrigin, BlockDevice, BlockOp, Counted, Programs, RequestKind, Task, Way, system_call_name,
};
use rdsk_observe::{EvidenceSum, KernelObserver, Observer as _, delta, parse_stat};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{Behaviour, DirectIo, FuseDisk, LoopDevice, Need, Turn, requires, wait_until};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often something is tried that others can disturb.
const ATTEMPTS: usize = 50;

fn directory(device: &LoopDevice) -> PathBuf {
    Path::new("/sys/dev/block").join(device.major_minor())
}

fn block_device(device: &LoopDevice) -> BlockDevice {
    BlockDevice::read(&directory(device)).unwrap()
}

fn stat(device: &LoopDevice) -> DiskStat {
    parse_stat(&std::fs::read_to_string(directory(device).join("stat")).unwrap()).unwrap()
}

fn dd(operands: &str) {
    let mut command = Command::new("dd");
    command.args(operands.split_whitespace()).stderr(Stdio::null());
    assert!(command.status().unwrap().success(), "dd {operands}");
}

/// What a dd made the device do: by the programs, and by sysfs. The kernel passes over an event now and then ([`Turn::Bpf`]). A
/// request that was passed over is reported by its other event, a bio, a merge and a split by nothing. So a dd of which something was
/// missed runs again.
fn counted(device: &LoopDevice, operands: &str) -> (Counted, DiskStat) {
    let _turn = Turn::Bpf.take();
    let mut apart = Vec::new();
    for _ in 0..ATTEMPTS {
        let (counted, stat) = counted_once(device, operands);
        let (its, figures) = (&counted.devices[0], both(&counted, &stat));
        let ends = [its.issued, its.completed, its.latency.count()];
        if figures[0] == figures[1] && ends == [its.issued; 3] {
            return (counted, stat);
        }
        apart.push((figures, ends));
    }
    panic!("{operands}: the programs and sysfs never agreed: {apart:?}");
}

/// Reads, writes, flushes, merges, and what was not counted in whole: by the programs, and by sysfs, which counts all.
fn both(counted: &Counted, stat: &DiskStat) -> [[u64; 5]; 2] {
    let (its, issued) = (&counted.devices[0], |op| counted.issued(0, op));
    let merged = its.merged_bios + its.merged_requests;
    let not_whole = its.lost + its.unseen + its.earlier + its.in_flight_at_end + its.overflowed;
    let writes = issued(BlockOp::Write) + its.empty;
    let by_sysfs =
        [stat.read_ios, stat.write_ios, stat.flush_ios.unwrap(), stat.read_merges + stat.write_merges, 0];
    [[issued(BlockOp::Read), writes, issued(BlockOp::Flush), merged, not_whole], by_sysfs]
}

fn counted_once(device: &LoopDevice, operands: &str) -> (Counted, DiskStat) {
    let programs = Programs::load(&[block_device(device)]).unwrap();
    assert_eq!(programs.way(), Way::TpBtf);
    let (mut first, mut last) = (None, None);
    let before = programs.snapshot().unwrap();
    programs.start(|_| first = Some(stat(device)));
    dd(&operands.replace("DEVICE", &device.path().display().to_string()));
    assert!(wait_until(Duration::from_secs(60), || stat(device).in_flight == 0));
    programs.stop(|_| last = Some(stat(device)));
    let counted = before.until(&programs.snapshot().unwrap());
    (counted, delta(&first.unwrap(), &last.unwrap()).unwrap())
}

/// The same, until these figures are as expected: who looks for a disk meanwhile reads it or holds it open for a moment, a kernel
/// that writes dirty pages does it before dd asks, and a bio that was passed over is missing.
fn counted_as<T: PartialEq + Debug>(
    device: &LoopDevice,
    operands: &str,
    expected: &T,
    figures: impl Fn(&Counted) -> T,
) -> Counted {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let (counted, _) = counted(device, operands);
        let figures = figures(&counted);
        if figures == *expected {
            return counted;
        }
        seen.push(figures);
    }
    panic!("{operands}: never {expected:?}, but {seen:?}")
}

/// Bios that read inside write(2) and that write inside close(2), and all that write: the last close of the device was dd's where
/// the last two are the same.
fn reads_and_writes(counted: &Counted) -> [[u64; 2]; 3] {
    let [read, written] =
        [(BlockOp::Read, "write"), (BlockOp::Write, "close")].map(|(op, call)| bios(counted, op, call));
    [read, written, all_bios(counted, BlockOp::Write)]
}

/// All bios of one direction: count and bytes.
fn all_bios(counted: &Counted, op: BlockOp) -> [u64; 2] {
    let of = |(origin, sum): (&BioOrigin, &[u64; 2])| (origin.op == op).then_some(*sum);
    counted.bios.iter().filter_map(of).fold([0, 0], |sum, more| [sum[0] + more[0], sum[1] + more[1]])
}

/// All bytes of the requests of one direction, and the largest of them.
fn request_bytes(counted: &Counted, op: BlockOp) -> (u64, u32) {
    let of = counted.requests.iter().filter(|(kind, _)| kind.op == op);
    let sum = of.clone().map(|(kind, count)| u64::from(kind.bytes) * count).sum();
    (sum, of.map(|(kind, _)| kind.bytes).max().unwrap_or(0))
}

/// Bios of one direction that a system call of another process carried: count and bytes.
fn bios(counted: &Counted, op: BlockOp, call: &str) -> [u64; 2] {
    let of = |(origin, sum): (&BioOrigin, &[u64; 2])| {
        let name = origin.system_call.map(system_call_name);
        (origin.op == op && origin.task == Task::Other && name.as_deref() == Some(call)).then_some(*sum)
    };
    counted.bios.iter().filter_map(of).fold([0, 0], |sum, more| [sum[0] + more[0], sum[1] + more[1]])
}

/// Requests of one size.
fn of_size(counted: &Counted, op: BlockOp, bytes: u32) -> u64 {
    let of = |(kind, count): (&RequestKind, &u64)| (kind.op == op && kind.bytes == bytes).then_some(*count);
    counted.requests.iter().filter_map(of).sum()
}

fn device_of(size: u64) -> Option<LoopDevice> {
    requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("dd")])
        .then(|| LoopDevice::builder().size(size).direct_io(DirectIo::Off).create().unwrap())
}

const SIZE: u64 = 64 << 20;

struct RealClock(Instant);

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }

    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(self.now_ns())));
    }
}

fn observer_of(device: &LoopDevice, attachment: Attachment) -> KernelObserver {
    let target = Target {
        size_bytes: SIZE,
        device: Some(Device {
            name: device.name().to_owned(),
            major_minor: device.major_minor().to_owned(),
            ..Device::default()
        }),
        stack: vec![device.name().to_owned()],
        ..Target::default()
    };
    let clock = Arc::new(RealClock(Instant::now()));
    KernelObserver::new(&[target], Path::new("/sys"), Path::new("/proc"), clock).with_bpf(attachment)
}

fn read_fifty(device: &LoopDevice) {
    dd(&format!("if={} of=/dev/null bs=64k count=50 iflag=direct", device.path().display()));
}

/// A visit that is not to be followed has nothing of BPF, and the next one that is has its own reads only. Who asks for BPF gets it in
/// every visit.
#[test]
fn a_visit_that_is_left_out_is_counted_by_sysfs() {
    let Some(device) = device_of(SIZE) else { return };
    let _turn = Turn::Bpf.take();
    let four_visits = |attachment| {
        let mut observer = observer_of(&device, attachment);
        let mut sum = EvidenceSum::default();
        for follows in [true, false, true, false] {
            observer.follow(follows);
            observer.begin();
            read_fifty(&device);
            observer.end_io();
            let seen = observer.end();
            assert_eq!(seen.is_left_out, !follows && attachment == Attachment::Windowed);
            assert_eq!(seen.is_left_out, seen.bpf.is_none() && seen.block.is_none());
            sum.add(seen);
        }
        let facts = observer.describe();
        assert_eq!(facts.source, EvidenceSource::Bpf, "the last visit takes nothing from those before");
        let told = facts.why_not_higher;
        let is_told = told.as_ref().is_some_and(|why| why.contains("some repeats"));
        assert_eq!(is_told, attachment == Attachment::Windowed, "{told:?}");
        sum.finish()
    };
    for (attachment, followed, reads) in
        [(Attachment::Windowed, Some(vec![0, 2]), 100), (Attachment::Throughout, None, 200)]
    {
        let mut apart = Vec::new();
        let mut is_one = |seen: &Evidence| {
            let size = |request: &&Request| (request.op, request.bytes) == (Op::Read, 64 << 10);
            let bpf = seen.bpf.as_ref().unwrap();
            assert_eq!((seen.source, &bpf.followed), (EvidenceSource::Bpf, &followed));
            let figures = (bpf.lost, seen.requests.iter().find(size).map(|request| request.count));
            let all = seen.device[0].reads;
            apart.push((figures, all));
            // The last read of a visit may be counted very late.
            figures == (0, Some(reads)) && all.is_some_and(|all| all >= 200)
        };
        let seen = (0..ATTEMPTS).map(|_| four_visits(attachment)).find(|seen| is_one(seen));
        let seen =
            seen.unwrap_or_else(|| panic!("{attachment:?}: never {reads} and none lost, but {apart:?}"));
        assert_eq!((seen.device[0].visits.len(), seen.device[0].splits), (4, Some(0)));
    }
}

/// Others' requests that are under way when a visit begins, and when it ends, are no loss: reads, and the flushes of who syncs.
#[test]
fn what_others_have_under_way_at_either_end_is_not_missed() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Fuse, Need::Tool("dd")]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let slow = Behaviour::parallel(2, 100_000_000);
    let disk = FuseDisk::builder().device(slow).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let mut observer = observer_of(&device, Attachment::Throughout);
    let is_busy = || stat(&device).in_flight > 0;
    let read = format!("if={} of=/dev/null bs=4k count=1 iflag=direct", device.path().display());
    let write = format!("if=/dev/zero of={} bs=4k count=1 conv=notrunc,fdatasync", device.path().display());
    for operands in [&read, &write] {
        // Whether it was seen under way: we may be too late for that.
        let is_under_way = |work: &std::thread::ScopedJoinHandle<'_, ()>| {
            let mut is_seen = false;
            assert!(wait_until(Duration::from_secs(60), || {
                is_seen = is_busy();
                is_seen || work.is_finished()
            }));
            is_seen
        };
        first_right(ATTEMPTS, || {
            let (both, seen) = std::thread::scope(|scope| {
                let first = scope.spawn(|| dd(operands));
                let at_begin = is_under_way(&first);
                observer.begin();
                first.join().unwrap();
                let second = scope.spawn(|| dd(operands));
                let at_end = is_under_way(&second);
                observer.end_io();
                let seen = observer.end();
                second.join().unwrap();
                (at_begin && at_end, seen.bpf.unwrap())
            });
            ensure(both, || format!("{operands}: seen at one end only, or at none"))?;
            let is_whole = (seen.lost, seen.checks[0].difference()) == (0, 0.0);
            ensure(is_whole, || format!("{operands}: {seen:?}"))
        });
    }
}

/// The observer of a run takes both sources, and they agree.
#[test]
fn a_visit_has_what_the_programs_counted() {
    let Some(device) = device_of(SIZE) else { return };
    let _turn = Turn::Bpf.take();
    let mut observer = observer_of(&device, Attachment::Throughout);
    let mut three_visits = || {
        let mut sum = EvidenceSum::default();
        for _ in 0..3 {
            observer.begin();
            read_fifty(&device);
            observer.end_io();
            sum.add(observer.end());
        }
        sum.finish()
    };
    let is_read =
        |bio: &Bio| (bio.op, bio.syscall.as_deref(), bio.task.as_str()) == (Op::Read, Some("read"), "other");
    let is_whole = |evidence: &Evidence| {
        let bpf = evidence.bpf.as_ref().unwrap();
        assert_eq!(bpf.checks[0].device, device.name(), "{bpf:?}");
        same("requests", &bpf.checks[0].bpf, &bpf.checks[0].sysfs)?;
        ensure(bpf.lost == 0 && bpf.is_whole(), || format!("{bpf:?}"))?;
        let size = |request: &&Request| (request.op, request.bytes) == (Op::Read, 64 << 10);
        let count = evidence.requests.iter().find(size).map(|request| request.count);
        same("reads of 64 KiB", &count, &Some(150))?;
        let bio = evidence.bios.iter().find(|bio| is_read(bio));
        let is_all = bio.is_some_and(|bio| bio.count >= 150 && bio.bytes >= 150 * (64 << 10));
        ensure(is_all, || format!("{:?}", evidence.bios))?;
        let latency = &evidence.device_latency_ns;
        ensure(latency.as_ref().is_some_and(|latency| latency.count >= 150), || format!("{latency:?}"))
    };
    let evidence = first_right(ATTEMPTS, || {
        let evidence = three_visits();
        is_whole(&evidence).map(|()| evidence)
    });
    let facts = observer.describe();
    assert_eq!((facts.source, facts.why_not_higher), (EvidenceSource::Bpf, None));
    assert_eq!(evidence.device[0].splits, Some(0));
}

#[test]
fn direct_reads_are_counted_one_by_one() {
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=DEVICE of=/dev/null bs=4096 count=200 iflag=direct";
    counted_as(&device, operands, &Ok(()), |counted| {
        same("bios", &bios(counted, BlockOp::Read, "read"), &[200, 200 * 4096])?;
        ensure(of_size(counted, BlockOp::Read, 4096) >= 200, || format!("{:?}", counted.requests))?;
        let its = &counted.devices[0];
        // The mean depth over all latencies: the integral over time is their sum, to a bucket of the histogram.
        let latencies = its.latency.mean().unwrap() * its.issued as f64;
        let is_integral = (its.depth_ns as f64 / latencies - 1.0).abs() < 0.001;
        ensure(is_integral, || format!("{} and {latencies}", its.depth_ns))?;
        ensure(its.deepest >= 1, || format!("{its:?}"))
    });
}

#[test]
fn small_buffered_writes_read_inside_write_and_are_written_at_close() {
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=/dev/zero of=DEVICE bs=512 count=2048 conv=notrunc";
    counted_as(&device, operands, &Ok(()), |counted| {
        same("bios", &reads_and_writes(counted), &[[256, 256 * 4096]; 3])?;
        same("the last close flushes nothing", &counted.issued(0, BlockOp::Flush), &0)?;
        // Measured on 6.18: 2 requests of 512 KiB, as many segments as the device takes; contiguous pages make fewer.
        let is_few = (1..=2).contains(&counted.issued(0, BlockOp::Write));
        ensure(is_few, || format!("{:?}", counted.requests))?;
        same("bytes of the writes", &request_bytes(counted, BlockOp::Write).0, &(1 << 20))
    });
}

#[test]
fn writes_of_whole_blocks_read_nothing() {
    let Some(odd) = device_of(SIZE + 512) else { return };
    let (small, _) = counted(&odd, "if=/dev/zero of=DEVICE bs=512 count=2048 conv=notrunc");
    assert_eq!(bios(&small, BlockOp::Read, "write"), [0, 0], "blocks of 512 bytes: {:?}", small.bios);
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=/dev/zero of=DEVICE bs=4k count=256 conv=notrunc";
    let expected = [[0, 0], [256, 1 << 20], [256, 1 << 20]];
    let whole = counted_as(&device, operands, &expected, |counted| {
        let reads = bios(counted, BlockOp::Read, "write");
        assert_eq!(reads, [0, 0], "{:?}", counted.bios);
        reads_and_writes(counted)
    });
    assert_eq!(whole.devices[0].splits, 0);
}

/// A limit of a queue, which outlives the loop device; it is what it was when this goes away.
struct Limit {
    path: PathBuf,
    was: String,
}

impl Limit {
    fn of(device: &LoopDevice) -> Self {
        let path = directory(device).join("queue/max_sectors_kb");
        Self { was: std::fs::read_to_string(&path).unwrap(), path }
    }

    fn set(&self, kib: u32) {
        std::fs::write(&self.path, kib.to_string()).unwrap();
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // A panic while another unwinds would hide the first.
        let _ = std::fs::write(&self.path, self.was.trim());
    }
}

#[test]
fn large_direct_reads_are_split_by_the_limit() {
    let Some(device) = device_of(SIZE) else { return };
    let limit = Limit::of(&device);
    for (kib, parts) in [(512, 2), (128, 8), (64, 16)] {
        limit.set(kib);
        let expected = (64 * parts, 64 * (parts - 1));
        let operands = "if=DEVICE of=/dev/null bs=1M count=64 iflag=direct";
        counted_as(&device, operands, &Ok(()), |counted| {
            let its = &counted.devices[0];
            assert!(its.splits <= expected.1, "{kib}: {}", its.splits);
            same(
                "requests and splits",
                &(of_size(counted, BlockOp::Read, kib * 1024), its.splits),
                &expected,
            )?;
            ensure((2..=parts).contains(&its.deepest), || format!("{kib}: {} deep", its.deepest))
        });
    }
}

/// Above what 128 segments of one page hold, the pages of the buffer decide where a read is cut: sums are exact, sizes are not.
#[test]
fn larger_direct_reads_are_split_by_segments() {
    let Some(device) = device_of(SIZE) else { return };
    let limit = Limit::of(&device);
    limit.set(1280);
    let operands = "if=DEVICE of=/dev/null bs=1M count=64 iflag=direct";
    counted_as(&device, operands, &Ok(()), |counted| {
        let [own, all] = [bios(counted, BlockOp::Read, "read"), all_bios(counted, BlockOp::Read)];
        // A request for each bio, and one more for each cut.
        let requests = own[0] + counted.devices[0].splits;
        let sums = (own[1], all[1] - own[1], requests.abs_diff(counted.issued(0, BlockOp::Read)));
        same("own bytes, others', and requests apart", &sums, &(SIZE, 0, 0))?;
        let (bytes, largest) = request_bytes(counted, BlockOp::Read);
        ensure(bytes == SIZE && largest <= 1 << 20, || format!("{:?}", counted.requests))
    });
}

#[test]
fn one_direct_writer_has_one_request_in_flight() {
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=/dev/zero of=DEVICE bs=4k count=200 conv=notrunc oflag=direct";
    counted_as(&device, operands, &([0, 0], [200, 200 * 4096], 200, 1), |counted| {
        let [reads, writes] = [all_bios(counted, BlockOp::Read), bios(counted, BlockOp::Write, "write")];
        (reads, writes, of_size(counted, BlockOp::Write, 4096), counted.devices[0].deepest)
    });
}

#[test]
fn buffered_writes_to_a_device_are_merged() {
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=/dev/zero of=DEVICE bs=16k count=64 conv=notrunc";
    // A bio for each page, all of them by dd's close, and a request for each that joined no other.
    let (pages, bytes) = (1 << 20 >> 12, 1 << 20);
    let expected = ([[0, 0], [pages, bytes], [pages, bytes]], pages);
    counted_as(&device, operands, &Ok(()), |counted| {
        let its = &counted.devices[0];
        let requests = counted.issued(0, BlockOp::Write) + its.merged_bios + its.merged_requests;
        let sums = (reads_and_writes(counted), requests.saturating_sub(its.splits));
        same("bios and what became of them", &sums, &expected)?;
        same("bytes of the writes", &request_bytes(counted, BlockOp::Write).0, &bytes)?;
        // Measured on 6.18: 2 requests of 512 KiB (128 segments of a page); contiguous pages make fewer.
        ensure(counted.issued(0, BlockOp::Write) <= 2, || format!("{:?}", counted.requests))
    });
}

/// The same on a filesystem: the page cache holds large folios, so the bios are large and there is little left to merge.
#[test]
fn buffered_writes_to_a_file_are_large_bios() {
    for kind in [Need::Ext4, Need::Xfs] {
        if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("dd"), kind]) {
            continue;
        }
        // mkfs.xfs takes no less than 300 MiB.
        let device = LoopDevice::builder().size(768 << 20).create().unwrap();
        let made = if kind == Need::Xfs { device.mkfs_xfs("table") } else { device.mkfs_ext4("table") };
        made.unwrap();
        let mount = device.mount().unwrap();
        let file = mount.path().join("file").display().to_string();
        let operands = format!("if=/dev/zero of={file} bs=16k count=4096 conv=notrunc,fsync");
        counted_as(&device, &operands, &Ok(()), |counted| {
            let [count, bytes] = bios(counted, BlockOp::Write, "fsync");
            // Measured on 6.18: 16 bios of 4 MiB on both, and each cut to 1280 KiB three times and 256 KiB.
            let is_large = bytes >= 64 << 20 && bytes / count >= 512 << 10;
            ensure(is_large, || format!("{}: {:?}", kind.name(), counted.bios))?;
            let its = &counted.devices[0];
            let merged = its.merged_bios + its.merged_requests;
            ensure(merged < count.max(32), || format!("{}: {its:?}", kind.name()))
        });
        drop(mount);
    }
}

#[test]
fn fsync_carries_the_bios_and_one_flush() {
    let Some(device) = device_of(SIZE) else { return };
    let operands = "if=/dev/zero of=DEVICE bs=4k count=256 conv=notrunc,fsync";
    counted_as(&device, operands, &(1 << 20, 1), |counted| {
        (bios(counted, BlockOp::Write, "fsync")[1], counted.issued(0, BlockOp::Flush))
    });
}

#[test]
fn each_synchronous_write_has_its_flush() {
    let Some(device) = device_of(SIZE) else { return };
    let issued = |counted: &Counted| [BlockOp::Write, BlockOp::Flush].map(|op| counted.issued(0, op));
    counted_as(&device, "if=/dev/zero of=DEVICE bs=4k count=16 conv=notrunc oflag=dsync", &[16, 16], issued);
    // Without FUA the kernel flushes after the write, and the file's own sync flushes again.
    let direct = "if=/dev/zero of=DEVICE bs=4k count=16 conv=notrunc oflag=direct,dsync";
    counted_as(&device, direct, &[16, 32], issued);
}

/// Overwriting a file on ext4: the write, and one flush of the file's own sync.
#[test]
fn a_synchronous_overwrite_of_a_file_has_one_flush() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf, Need::Tool("dd"), Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(768 << 20).create().unwrap();
    device.mkfs_ext4("table").unwrap();
    let mount = device.mount().unwrap();
    let file = mount.path().join("file").display().to_string();
    dd(&format!("if=/dev/zero of={file} bs=4k count=16 conv=fsync"));
    // A commit of the journal, every five seconds, brings writes and flushes of its own. Each write has a bio with its data, and one
    // without data that asks for the flush.
    let operands = format!("if=/dev/zero of={file} bs=4k count=16 conv=notrunc oflag=direct,dsync");
    counted_as(&device, &operands, &(16, 16, [32, 16 * 4096]), |counted| {
        let [writes, flushes] = [BlockOp::Write, BlockOp::Flush].map(|op| counted.issued(0, op));
        (writes, flushes, bios(counted, BlockOp::Write, "write"))
    });
}
