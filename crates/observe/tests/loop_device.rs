//! The observer over real loop devices: exact counts, queue depth, limits, and the columns of the installed iostat.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use rdsk_model::{Clock, Device, DiskStat, EvidenceSource, Op, StopFlag, Target, TargetKind};
use rdsk_observe::{EvidenceSum, KernelObserver, Observer as _, VisitEvidence, delta, limits, parse_stat};
use rdsk_testkit::attempts::{ensure, first_right, same};
use rdsk_testkit::{BlkioThrottle, DirectIo, Limits, LoopDevice, Need, requires, wait_until};
use rustix::fs::{Mode, OFlags};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
/// How often something is tried that others can disturb.
const ATTEMPTS: usize = 10;

struct RealClock(Instant);

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }

    fn sleep_until_ns(&self, at_ns: u64, _stop: &StopFlag) {
        std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(self.now_ns())));
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(RealClock(Instant::now()))
}

fn target(device: &LoopDevice) -> Target {
    let path = device.path().display().to_string();
    Target {
        index: 0,
        name: path.clone(),
        kind: TargetKind::Block,
        path: Some(path),
        size_bytes: 64 << 20,
        filesystem: None,
        device: Some(Device {
            name: device.name().to_owned(),
            major_minor: device.major_minor().to_owned(),
            ..Device::default()
        }),
        stack: vec![device.name().to_owned()],
        made_by_rdsk: false,
        other_devices: Vec::new(),
        laid_out: None,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
        dontcache: None,
    }
}

fn observer(device: &LoopDevice) -> KernelObserver {
    KernelObserver::new(&[target(device)], Path::new("/sys"), Path::new("/proc"), clock())
}

fn dd(device: &LoopDevice, direction: &str, operands: &[&str]) -> Command {
    let mut command = Command::new("dd");
    let other = if direction == "if" { "of=/dev/null" } else { "if=/dev/zero" };
    command.arg(format!("{direction}={}", device.path().display())).arg(other).args(operands);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(mut command: Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn inside(throttle: &BlkioThrottle, command: Command) -> Child {
    let mut command = throttle.command(command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn reads_of(visit: &VisitEvidence) -> u64 {
    visit.devices[0].counts.as_ref().unwrap().until_stable.read_ios
}

/// The kernel's counters of a device now.
fn read_stat(device: &LoopDevice) -> DiskStat {
    let path = Path::new("/sys/dev/block").join(device.major_minor()).join("stat");
    parse_stat(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// udev and others read the device right after it appears; they are done when its counters no longer change.
fn quiet_device(size: u64) -> LoopDevice {
    let device = LoopDevice::builder().size(size).direct_io(DirectIo::Off).create().unwrap();
    let stat = || read_stat(&device);
    let mut before = stat();
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(100));
        let now = stat();
        if now == before {
            return device;
        }
        before = now;
    }
    panic!("{} does not come to rest", device.name());
}

#[test]
fn twenty_three_reads_are_twenty_three() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("dd")]) {
        return;
    }
    let device = quiet_device(16 << 20);
    let mut observer = observer(&device);
    let mut sum = EvidenceSum::default();
    let mut observed = || {
        observer.begin();
        run(dd(&device, "if", &["bs=4096", "count=23", "iflag=direct"]));
        observer.end_io();
        observer.end()
    };
    for _ in 0..3 {
        // Who looks at the device meanwhile reads it, and the kernel may count the last read very late; then another visit counts.
        let visit = (0..ATTEMPTS).map(|_| observed()).find(|visit| reads_of(visit) == 23);
        let visit = visit.expect("one was alone");
        let counts = visit.devices[0].counts.clone().unwrap();
        assert_eq!(counts.until_stable.read_ios, 23);
        assert_eq!(counts.during_io.diskstat, counts.until_stable);
        sum.add(visit);
    }
    let evidence = sum.finish();
    assert_eq!(evidence.source, EvidenceSource::Sysfs);
    let seen = evidence.device_of(0).unwrap();
    assert_eq!((seen.reads, seen.read_bytes, seen.read_merges), (Some(69), Some(3 * 94_208), Some(0)));
    assert_eq!((seen.writes, seen.flushes), (Some(0), Some(0)));
    assert_eq!(seen.bytes_series.iter().sum::<u64>(), 3 * 94_208);
    let io = seen.diskstat.unwrap();
    assert_eq!((io.read_ios, io.read_sectors, io.read_merges, io.write_ios), (69, 69 * 8, 0, 0));
    assert_eq!((seen.visits.len(), io.in_flight), (3, 0));
    let interval_ms = seen.interval_ns.unwrap() as f64 / 1e6;
    // One reader that waits for each completion; the kernel's times are in milliseconds.
    assert!(io.time_in_queue_ms as f64 <= 1.05 * interval_ms, "{io:?} in {interval_ms} ms");
}

#[test]
fn a_buffered_write_is_seen_when_it_is_stable() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("dd")]) {
        return;
    }
    let device = quiet_device(16 << 20);
    let mut observer = observer(&device);
    observer.begin();
    run(dd(&device, "of", &["bs=64k", "count=128", "conv=fsync"]));
    observer.end_io();
    let mut sum = EvidenceSum::default();
    sum.add(observer.end());
    let evidence = sum.finish();
    let seen = evidence.device_of(0).unwrap();
    assert_eq!(seen.write_bytes, Some(8 << 20));
    assert!(seen.flushes >= Some(1), "{seen:?}");
    assert!(seen.write_merges.unwrap() + seen.writes.unwrap() >= 1);
}

#[test]
fn the_sampler_sees_the_queue_and_its_course() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::Tool("dd")]) {
        return;
    }
    let device = quiet_device(64 << 20);
    // Large writes keep the queue filled, and a throttled reader adds a few reads.
    let limits = Limits { read_bps: Some(4 << 20), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let mut observer = observer(&device).with_sample_width_ns(5_000_000);
    // Who looks at the device after a write reads it, and a sampler without a processor sees little; then another visit counts.
    first_right(ATTEMPTS, || {
        observer.begin();
        let mut reader = inside(&throttle, dd(&device, "if", &["bs=64k", "count=32", "iflag=direct"]));
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(600) {
            run(dd(&device, "of", &["bs=1M", "count=64", "oflag=direct", "conv=notrunc"]));
        }
        assert!(reader.wait().unwrap().success());
        observer.end_io();
        let visit = observer.end();
        let seen = &visit.devices[0];
        let in_flight_max = seen.in_flight_max.unwrap();
        assert!(in_flight_max < 10_000, "{in_flight_max}");
        ensure(in_flight_max > 0, || "no queue was seen".to_owned())?;
        let slots = seen.series.slots().len();
        ensure(slots >= 50, || format!("{slots} slots in 0.6 s of 5 ms"))?;
        let counts = seen.counts.clone().unwrap();
        let moved = counts.until_stable.read_bytes() + counts.until_stable.write_bytes();
        assert_eq!(seen.series.bytes().iter().sum::<u64>(), moved);
        same("bytes read", &counts.until_stable.read_bytes(), &(2 << 20))
    });
    let cost_ns = observer.describe().cost_ns_per_io.unwrap();
    assert!(cost_ns > 0.0);
}

/// The kernel counts a request after it wakes the reader, so the last request of a visit could be missed.
#[test]
fn the_last_read_is_never_missed() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    const BLOCK: usize = 4096;
    let device = quiet_device(16 << 20);
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let disk = rustix::fs::open(device.path(), flags, Mode::empty()).unwrap();
    let mut storage = [0u8; 2 * BLOCK];
    let skip = storage.as_ptr().align_offset(BLOCK);
    let buffer = &mut storage[skip..skip + BLOCK];
    let mut observer = observer(&device);
    let mut observed = || {
        observer.begin();
        for block in 0..23 {
            assert_eq!(rustix::io::pread(&disk, &mut *buffer, block * BLOCK as u64).unwrap(), BLOCK);
        }
        observer.end_io();
        observer.end()
    };
    // A processor that is taken away for longer than the last look waits may hide one.
    let evidence = first_right(3, || {
        let start = Instant::now();
        let mut sum = EvidenceSum::default();
        for _ in 0..300 {
            // More than 23 are those of a program that looks at the device meanwhile.
            let visit =
                (0..5).map(|_| observed()).find(|visit| reads_of(visit) <= 23).expect("one was alone");
            same("reads", &visit.devices[0].counts.as_ref().unwrap().during_io.diskstat.read_ios, &23)?;
            sum.add(visit);
        }
        println!("300 visits of 23 reads took {:?}", start.elapsed());
        Ok(sum.finish())
    });
    assert_eq!(evidence.device[0].reads, Some(300 * 23));
    // The other tests run in this process too, and what they read is charged to it.
    assert!(evidence.process.read_bytes >= Some(300 * 94_208), "{:?}", evidence.process);
    assert_eq!(evidence.device[0].bytes_series.iter().sum::<u64>(), 300 * 94_208);
}

/// A number that no device has: only the process's own counters are left, and the reason names the file.
#[test]
fn a_device_that_is_gone_is_said_to_be() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = quiet_device(1 << 20);
    let mut gone = target(&device);
    gone.device.as_mut().unwrap().major_minor = "7:1048575".to_owned();
    let mut observer = KernelObserver::new(&[gone], Path::new("/sys"), Path::new("/proc"), clock());
    observer.begin();
    observer.end_io();
    let visit = observer.end();
    assert_eq!(visit.source, EvidenceSource::Process);
    assert!(visit.devices[0].counts.as_ref().unwrap_err().to_string().contains("7:1048575"));
}

#[test]
fn a_real_throttle_is_listed() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::Tool("sleep")]) {
        return;
    }
    let device = quiet_device(1 << 20);
    let wanted = Limits { read_bps: Some(1 << 20), write_iops: Some(256), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), wanted).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    let mut sleeper = inside(&throttle, sleep);
    let process = Path::new("/proc").join(sleeper.id().to_string());
    let targets = [target(&device)];
    // The shell needs a moment to enter the group.
    let start = Instant::now();
    let mut found = Vec::new();
    while found.is_empty() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
        found = limits(&process, Path::new("/sys"), &targets, &[], &[]);
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let short: Vec<_> = found.iter().map(|limit| (limit.op, limit.bytes_per_s, limit.ops_per_s)).collect();
    assert_eq!(short, [(Op::Read, Some(1 << 20), None), (Op::Write, None, Some(256))]);
    assert!(found[0].source.starts_with(&throttle.path().display().to_string()), "{found:?}");
    let outside = limits(Path::new("/proc/self"), Path::new("/sys"), &targets, &[], &[]);
    assert!(outside.is_empty(), "{outside:?}");
    // This thread's own group, as the observer sees it.
    let entered = throttle.enter_current_thread().unwrap();
    let mut observer = observer(&device);
    observer.begin();
    assert_eq!(observer.end().limits, found);
    drop(entered);
    observer.begin();
    assert!(observer.end().limits.is_empty());
}

/// iostat and the observer sample the same busy device: columns that do not depend on the exact time must agree.
#[test]
fn the_installed_iostat_agrees() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::Tool("iostat"), Need::Tool("dd")]) {
        return;
    }
    let device = quiet_device(64 << 20);
    // 200 reads of 16 KiB a second, for far longer than iostat runs.
    let limits = Limits { read_iops: Some(200), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let _reader =
        UntilDropped(inside(&throttle, dd(&device, "if", &["bs=16k", "count=100000", "iflag=direct"])));
    let stat = || read_stat(&device);
    let idle = stat();
    assert!(wait_until(LONG, || stat().read_ios > idle.read_ios + 20), "dd does not read");
    // Who looks at the device reads other sizes; then another look of iostat counts.
    first_right(ATTEMPTS, || iostat_agrees(&device));
}

/// A program that goes on until its test ends, however that ends.
struct UntilDropped(Child);

impl Drop for UntilDropped {
    fn drop(&mut self) {
        // A panic while another unwinds would hide the first.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether three seconds of iostat are what the kernel counted around them.
fn iostat_agrees(device: &LoopDevice) -> Result<(), String> {
    let before = read_stat(device);
    let output = Command::new("iostat")
        .args(["-x", "-d", "-k", "-y", "-o", "JSON", device.name(), "3", "1"])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let grown = delta(&before, &read_stat(device)).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let theirs = &document["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let column = |name: &str| theirs[name].as_f64().unwrap_or_else(|| panic!("no {name} in {theirs}"));
    same("sectors read", &grown.read_sectors, &(32 * grown.read_ios))?;
    ensure((column("rareq-sz") - 16.0).abs() < 1e-9, || format!("{theirs}"))?;
    // How close the rates are is in timing.rs: here each looked at another time, on a busy machine much later.
    for (name, ours) in [("r/s", grown.read_ios), ("rkB/s", grown.read_sectors)] {
        ensure(ours > 0 && column(name) > 0.0, || format!("{name}: {ours} against {}", column(name)))?;
    }
    let flushes = grown.flush_ios.unwrap_or(0);
    for (name, ours) in [
        ("w/s", grown.write_ios),
        ("wkB/s", grown.write_sectors),
        ("rrqm", grown.read_merges),
        ("f/s", flushes),
    ] {
        let is_none = ours == 0 && column(name).abs() < 1e-9;
        ensure(is_none, || format!("{name}: {ours} against {}", column(name)))?;
    }
    Ok(())
}
