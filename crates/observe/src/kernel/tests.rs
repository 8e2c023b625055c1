//! The observer over fake trees whose counters the test changes, and small parts that other tests of this room share.

use super::*;
use crate::last_look::{MAX_RESAMPLES, RESAMPLE_AFTER};
use crate::sum::EvidenceSum;
use rdsk_model::{Device, Filesystem, StopFlag, TargetKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The monotonic clock.
pub(crate) struct RealClock(Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }

    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(self.now_ns())));
    }
}

/// A clock that the test advances.
#[derive(Default)]
struct HandClock(AtomicU64);

impl HandClock {
    fn advance_ms(&self, by_ms: u64) {
        self.0.fetch_add(by_ms * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        self.0.fetch_max(at_ns, Ordering::Relaxed);
    }
}

/// Writes a file of a fake tree, directories included.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A block target on a device.
pub(crate) fn target_on(index: u32, name: &str, major_minor: &str) -> Target {
    let device = Device { name: name.to_owned(), major_minor: major_minor.to_owned(), ..Device::default() };
    Target {
        index,
        name: format!("/dev/{name}"),
        kind: TargetKind::Block,
        path: Some(format!("/dev/{name}")),
        size_bytes: 1 << 20,
        filesystem: None,
        device: Some(device),
        stack: vec![name.to_owned()],
        made_by_rdsk: false,
        other_devices: Vec::new(),
        laid_out: None,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
        dontcache: None,
    }
}

struct Tree {
    root: tempfile::TempDir,
    clock: Arc<HandClock>,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap(), clock: Arc::default() };
        tree.process(0, 0);
        tree
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    fn process(&self, read_bytes: u64, write_bytes: u64) {
        let text = format!("read_bytes: {read_bytes}\nwrite_bytes: {write_bytes}\n");
        write(&self.path("proc/self/io"), &text);
    }

    fn stat(&self, major_minor: &str, text: &str) {
        write(&self.path("sys/dev/block").join(major_minor).join("stat"), text);
    }

    fn observer(&self, targets: &[Target]) -> KernelObserver {
        // The sampler sleeps by this clock, which does not advance: it takes no sample, and the last one ends the series.
        KernelObserver::new(targets, &self.path("sys"), &self.path("proc"), self.clock.clone())
            .with_sample_width_ns(3_600_000_000_000)
    }
}

const IDLE: &str = "100 10 800 50 200 20 1600 400 0 300 450 5 1 40 7 3 2";
const READ_23: &str = "123 10 984 60 200 20 1600 400 0 310 460 5 1 40 7 3 2";
const THEN_WROTE: &str = "123 10 984 60 210 20 1680 410 0 320 470 5 1 40 7 4 3";

#[test]
fn one_visit_from_begin_to_stable() {
    let tree = Tree::new();
    tree.stat("7:3", IDLE);
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3")]);
    observer.begin();
    tree.stat("7:3", READ_23);
    tree.process(94_208, 0);
    tree.clock.advance_ms(500);
    observer.end_io();
    tree.stat("7:3", THEN_WROTE);
    tree.clock.advance_ms(500);
    let visit = observer.end();
    assert_eq!(visit.source, EvidenceSource::Sysfs);
    assert_eq!(visit.process.read_bytes, Some(94_208));
    let mut sum = EvidenceSum::default();
    sum.add(visit);
    let evidence = sum.finish();
    let device = evidence.device_of(0).unwrap();
    assert_eq!((device.name.as_str(), device.reads, device.read_bytes), ("loop3", Some(23), Some(94_208)));
    assert_eq!((device.writes, device.write_bytes), (Some(10), Some(80 * 512)));
    assert_eq!((device.flushes, device.busy_ns), (Some(1), Some(20_000_000)));
    assert_eq!(device.interval_ns, Some(500_000_000));
    let io = device.diskstat.unwrap();
    assert_eq!((io.read_ios, io.write_ios, io.time_in_queue_ms), (23, 0, 10), "they end with the I/O");
    assert_eq!(device.visits, [rdsk_model::IntervalCounters { interval_ns: 500_000_000, diskstat: io }]);
    assert_eq!(device.bytes_series.iter().sum::<u64>(), 94_208 + 80 * 512);
    let described = observer.describe();
    assert_eq!(described.source, EvidenceSource::Sysfs);
    assert_eq!(described.why_not_higher.as_deref(), Some("BPF was not asked for"));
}

#[test]
fn without_series_the_counters_are_the_same() {
    let tree = Tree::new();
    tree.stat("7:3", IDLE);
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3")]).without_series();
    observer.begin();
    tree.stat("7:3", THEN_WROTE);
    tree.clock.advance_ms(500);
    observer.end_io();
    let mut sum = EvidenceSum::default();
    sum.add(observer.end());
    let evidence = sum.finish();
    let device = evidence.device_of(0).unwrap();
    assert_eq!((device.reads, device.writes), (Some(23), Some(10)));
    assert!(device.bytes_series.is_empty() && device.series_width_ns.is_none(), "{device:?}");
    assert_eq!(device.in_flight_max, Some(0), "what the mean depth of 0.04 proves");
}

#[test]
fn counters_that_went_back_are_unknown_and_said() {
    let tree = Tree::new();
    tree.stat("7:3", READ_23);
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3")]);
    observer.begin();
    tree.stat("7:3", "1 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0");
    observer.end_io();
    let visit = observer.end();
    assert_eq!(visit.source, EvidenceSource::Sysfs);
    let why = visit.devices[0].counts.clone().unwrap_err().to_string();
    assert!(why.contains("read_ios went back from 123 to 1"), "{why}");
    assert!(observer.describe().why_not_higher.unwrap().contains(&why));
    let mut sum = EvidenceSum::default();
    sum.add(visit);
    let evidence = sum.finish();
    assert_eq!((evidence.device[0].reads, evidence.device[0].busy_ns), (None, None));
    assert!(evidence.device[0].bytes_series.is_empty());
}

#[test]
fn without_counters_the_process_is_the_source() {
    let tree = Tree::new();
    tree.stat("7:3", IDLE);
    write(&tree.path("sys/dev/block/7:3/queue/iostats"), "0\n");
    let mut memory_file = target_on(1, "none", "0:0");
    memory_file.device = None;
    memory_file.filesystem = Some(Filesystem { kind: "tmpfs".to_owned(), options: String::new() });
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3"), memory_file]);
    observer.begin();
    tree.process(0, 4096);
    observer.end_io();
    let visit = observer.end();
    assert_eq!(visit.source, EvidenceSource::Process);
    assert_eq!(visit.process.write_bytes, Some(4096));
    assert!(visit.devices[0].counts.is_err());
    let why = observer.describe().why_not_higher.unwrap();
    assert!(why.contains("queue/iostats of loop3 is 0"), "{why}");
    assert!(why.contains("no block device is known under target 1 (tmpfs)"), "{why}");
    // Switched on again, the counters are back.
    write(&tree.path("sys/dev/block/7:3/queue/iostats"), "1\n");
    observer.begin();
    assert_eq!(observer.end().source, EvidenceSource::Sysfs);
}

#[test]
fn with_nothing_to_read_there_is_no_source() {
    let nowhere = Path::new("/nonexistent");
    let targets = [target_on(0, "loop3", "7:3")];
    let mut observer = KernelObserver::new(&targets, nowhere, nowhere, Arc::new(HandClock::default()));
    observer.begin();
    observer.end_io();
    let visit = observer.end();
    assert_eq!((visit.source, visit.process), (EvidenceSource::None, ProcessIo::default()));
    let why = observer.describe().why_not_higher.unwrap();
    assert!(why.contains("/nonexistent/dev/block/7:3/stat") && why.contains("/proc/self/io"), "{why}");
}

#[test]
fn devices_below_come_after_the_own_ones() {
    let tree = Tree::new();
    tree.stat("253:0", IDLE);
    tree.stat("7:3", IDLE);
    write(&tree.path("sys/class/block/sda2/stat"), IDLE);
    write(&tree.path("sys/class/block/sda2/partition"), "2\n");
    write(&tree.path("sys/class/block/sda/stat"), IDLE);
    let mut stacked = target_on(0, "dm-0", "253:0");
    stacked.stack = ["dm-0", "sda2", "sda"].map(str::to_owned).to_vec();
    let mut observer = tree.observer(&[stacked, target_on(1, "loop3", "7:3")]);
    observer.begin();
    write(&tree.path("sys/class/block/sda2/stat"), THEN_WROTE);
    write(&tree.path("sys/class/block/sda/stat"), THEN_WROTE);
    let visit = observer.end();
    let names: Vec<_> = visit.devices.iter().map(|device| (device.target, device.name.as_str())).collect();
    assert_eq!(names, [(0, "dm-0"), (1, "loop3"), (0, "sda2"), (0, "sda")]);
    let flushes = |index: usize| visit.devices[index].counts.clone().unwrap().until_stable.flush_ios;
    assert_eq!(flushes(2), None, "the kernel does not count the flushes of a partition");
    assert_eq!(flushes(3), Some(1));
}

#[test]
fn standing_still_proves_nothing_where_the_driver_does_not_count() {
    let tree = Tree::new();
    let names = [("1:0", "ram0"), ("259:1", "nvme0n1"), ("259:9", "nvme1n1"), ("9:1", "md1"), ("9:2", "md2")];
    for (number, name) in names {
        tree.stat(number, IDLE);
        write(&tree.path("sys/class/block").join(name).join("dev"), number);
    }
    write(&tree.path("sys/class/block/nvme0c3n1/dev"), "259:2");
    write(&tree.path("sys/class/block/md1/md/level"), "linear\n");
    write(&tree.path("sys/class/block/md2/md/level"), "raid1\n");
    let targets: Vec<Target> =
        (0..).zip(names).map(|(index, (number, name))| target_on(index, name, number)).collect();
    let mut observer = tree.observer(&targets);
    observer.begin();
    let visit = observer.end();
    assert!(visit.devices[0].counts.as_ref().unwrap_err().to_string().contains("ram0 stood still"));
    assert!(visit.devices[1].counts.as_ref().unwrap_err().to_string().contains("multipath"));
    assert!(visit.devices[2].counts.as_ref().unwrap().until_stable.is_idle());
    assert!(visit.devices[3].counts.as_ref().unwrap_err().to_string().contains("md1 stood still"));
    assert!(visit.devices[4].counts.as_ref().unwrap().until_stable.is_idle());
    observer.begin();
    tree.stat("259:1", READ_23);
    assert_eq!(observer.end().devices[1].counts.as_ref().unwrap().until_stable.read_ios, 23);
}

/// From 6.4 the kernel counts what passes an NVMe multipath device, and before what its paths did; of its partitions it counts nothing.
#[test]
fn of_a_partition_of_an_nvme_multipath_device_its_disk_counts() {
    for counting in ["259:1", "259:2"] {
        let tree = Tree::new();
        let devices = [("259:1", "nvme0n1"), ("259:2", "nvme0c3n1"), ("259:3", "nvme0n1p2")];
        for (number, name) in devices {
            tree.stat(number, IDLE);
            let directory = tree.path("sys/class/block").join(name);
            write(&directory.join("dev"), number);
            std::os::unix::fs::symlink(
                tree.path("sys/dev/block").join(number).join("stat"),
                directory.join("stat"),
            )
            .unwrap();
        }
        write(&tree.path("sys/dev/block/259:3/partition"), "2");
        let mut observer = tree.observer(&[target_on(0, "nvme0n1p2", "259:3")]);
        observer.begin();
        tree.stat(counting, READ_23);
        let mut sum = EvidenceSum::default();
        sum.add(observer.end());
        let evidence = sum.finish();
        let counted: Vec<(&str, Option<u64>)> =
            evidence.counters_of(0).iter().map(|device| (device.name.as_str(), device.reads)).collect();
        let expected = if counting == "259:1" { "nvme0n1" } else { "nvme0c3n1" };
        assert_eq!(counted, [(expected, Some(23))]);
        let why = evidence.counted_for(0).unwrap().why.clone().unwrap();
        assert!(why.starts_with("the counters of nvme0n1p2 do not show what it did"), "{why}");
    }
}

#[test]
fn requests_of_others_do_not_hold_up_the_end() {
    let tree = Tree::new();
    tree.stat("7:3", IDLE);
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3")]);
    observer.begin();
    tree.stat("7:3", &READ_23.replace(" 400 0 310 ", " 400 5 310 "));
    let start = Instant::now();
    observer.end_io();
    let visit = observer.end();
    assert!(start.elapsed() >= RESAMPLE_AFTER * MAX_RESAMPLES * 2, "it looked for the last request");
    assert!(start.elapsed() < Duration::from_secs(120), "and gave up");
    assert_eq!(visit.devices[0].counts.as_ref().unwrap().until_stable.read_ios, 23);
    assert_eq!(visit.devices[0].in_flight_max, Some(5), "the last sample counts too");
}

/// A clock at each of whose readings by the thread that made it the device has read 4 KiB more.
struct BusyClock {
    inner: RealClock,
    thread: std::thread::ThreadId,
    stat: PathBuf,
    reads: AtomicU64,
}

impl BusyClock {
    fn write(&self) {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        std::fs::write(&self.stat, format!("{reads} 0 {} 0 0 0 0 0 0 0 0", reads * 8)).unwrap();
    }
}

impl Clock for BusyClock {
    fn now_ns(&self) -> u64 {
        if std::thread::current().id() == self.thread {
            self.write();
            // So that the sampler sees it.
            std::thread::sleep(Duration::from_millis(2));
        }
        self.inner.now_ns()
    }

    fn sleep_until_ns(&self, at_ns: u64, stop: &StopFlag) {
        self.inner.sleep_until_ns(at_ns, stop);
    }
}

#[test]
fn no_sample_is_later_than_the_last_look() {
    let tree = Tree::new();
    let stat = tree.path("sys/dev/block/7:3/stat");
    tree.stat("7:3", IDLE);
    let (thread, reads) = (std::thread::current().id(), AtomicU64::new(0));
    let clock = Arc::new(BusyClock { inner: RealClock::default(), thread, stat, reads });
    clock.write();
    let targets = [target_on(0, "loop3", "7:3")];
    let mut observer =
        KernelObserver::new(&targets, &tree.path("sys"), &tree.path("proc"), clock).with_sample_width_ns(1);
    for _ in 0..20 {
        observer.begin();
        observer.end_io();
        let visit = observer.end();
        let (device, slots) = (&visit.devices[0], visit.devices[0].series.slots());
        let counted = device.counts.as_ref().unwrap().until_stable.moved_bytes();
        assert_eq!(slots.iter().map(|slot| slot.bytes).sum::<u64>(), counted);
        assert_eq!(slots.iter().map(|slot| slot.covered_ns).sum::<u64>(), visit.elapsed_ns);
    }
}

#[test]
fn an_end_without_a_beginning_is_no_evidence() {
    let tree = Tree::new();
    let mut observer = tree.observer(&[]);
    observer.end_io();
    assert_eq!(observer.end().source, EvidenceSource::None);
    observer.begin();
    observer.begin();
    assert_eq!(observer.end().source, EvidenceSource::Process);
}

/// Two visits beside programs that use 30 and 20 ticks of the processors; the loop device's file is a sparse one of 1 MiB.
#[test]
fn processors_and_backing_files_are_in_the_evidence() {
    let tree = Tree::new();
    let processors = |user: u64| {
        write(&tree.path("proc/stat"), &format!("cpu  {user} 0 5 9 0 0 0 0\ncpu0 1 0 5 9\ncpu1 1 0 5 9\n"));
    };
    let file = tree.path("backing");
    std::fs::File::create(&file).unwrap().set_len(1 << 20).unwrap();
    tree.stat("7:3", IDLE);
    tree.stat("8:0", IDLE);
    let class = tree.path("sys/class/block");
    std::fs::create_dir_all(&class).unwrap();
    std::os::unix::fs::symlink(tree.path("sys/dev/block/7:3"), class.join("loop3")).unwrap();
    write(&tree.path("sys/dev/block/7:3/loop/backing_file"), &format!("{}\n", file.display()));
    write(&tree.path("sys/dev/block/7:3/loop/dio"), "0\n");
    write(&tree.path("sys/dev/block/7:3/size"), "2048\n");
    let mut observer = tree.observer(&[target_on(0, "loop3", "7:3")]);
    let mut sum = EvidenceSum::default();
    for (before, after) in [(100, 130), (200, 220)] {
        processors(before);
        observer.begin();
        processors(after);
        tree.clock.advance_ms(500);
        observer.end_io();
        let mut visit = observer.end();
        visit.processor.as_mut().unwrap().own_wait_ns = Some(7);
        sum.add(visit);
    }
    let evidence = sum.finish();
    let seen = evidence.processor.unwrap();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!((seen.processors, seen.user_ns, seen.interval_ns), (2, 50 * tick_ns, 1_000_000_000));
    assert_eq!((seen.own_wait_ns, seen.pressure_ns), (Some(14), None));
    assert_eq!(
        evidence.processor_visits.iter().map(|visit| visit.user_ns / tick_ns).collect::<Vec<_>>(),
        [30, 20]
    );
    let [one] = &evidence.loops[..] else { panic!("{:?}", evidence.loops) };
    assert_eq!((one.device.as_str(), one.direct_io, one.size_bytes), ("7:3", Some(false), 1 << 20));
    assert_eq!(one.file, file.display().to_string());
    assert_eq!(one.page_cache.map(|cache| cache.before.cached_bytes), Some(Some(0)));
}
