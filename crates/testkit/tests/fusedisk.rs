//! The disk of known behaviour over the real kernel: its content is correct, its log is exact, its faults reach the
//! reader, its times are as programmed, and it leaves nothing behind. The tests of `rdsk` check how well `rdsk` measures it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{MIB, MS, check_programmed_times, open, read, seconds_of_readers};
use rdsk_disk::{Device, Op};
use rdsk_testkit::attempts::{first_right, same};
use rdsk_testkit::fusedisk::{Counts, Extra, RequestOutcome, Served, Stall};
use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, requires, wait_until};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

const FUSE: [Need; 2] = [Need::Root, Need::Fuse];
const LOOP: [Need; 3] = [Need::Root, Need::Fuse, Need::Loop];
const EIO: i32 = 5;
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(200);

/// Bytes that no two places share: each 8 bytes hold a number made of their position and `seed`.
fn pattern(offset: u64, bytes: usize, seed: u64) -> Vec<u8> {
    let first = offset / 8;
    let words = (first..).take(bytes / 8 + 2);
    let all: Vec<u8> = words
        .flat_map(|word| (word.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed).to_le_bytes())
        .collect();
    let skip = usize::try_from(offset % 8).unwrap();
    all[skip..skip + bytes].to_vec()
}

fn open_direct(path: &Path) -> File {
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).unwrap();
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path).unwrap()
}

/// Reads aligned bytes through a loop device past its page cache.
fn read_direct(file: &File, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut storage = vec![0u8; bytes + 4096];
    let skip = storage.as_ptr().align_offset(4096);
    let buffer = &mut storage[skip..skip + bytes];
    file.read_exact_at(buffer, offset)?;
    Ok(buffer.to_vec())
}

fn directory(file: &Path) -> &Path {
    file.parent().expect("a file is in a directory")
}

fn is_mounted(path: &Path) -> bool {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&*path.to_string_lossy())
}

/// Whether a loop device still uses this file.
fn is_attached(file: &Path) -> bool {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let backing =
        |device: std::fs::DirEntry| std::fs::read_to_string(device.path().join("loop/backing_file"));
    devices.filter_map(|device| backing(device).ok()).any(|backing| Path::new(backing.trim()) == file)
}

#[test]
fn content_is_kept_at_any_size_and_place() {
    if !requires(&FUSE) {
        return;
    }
    let disk = FuseDisk::builder().capacity(4 * MIB).mount().unwrap();
    assert_eq!(std::fs::metadata(disk.file()).unwrap().len(), 4 * MIB);
    let file = open(disk.file());
    let mut expected = vec![0; 4 << 20];
    let places = [(0, 1), (4095, 2), (511, 4097), (100_003, 70_001), (MIB - 1, 1 << 20), (4 * MIB - 13, 13)];
    for (seed, (offset, bytes)) in (1..).zip(places) {
        let data = pattern(offset, bytes, seed);
        file.write_all_at(&data, offset).unwrap();
        let start = usize::try_from(offset).unwrap();
        expected[start..start + bytes].copy_from_slice(&data);
    }
    for (offset, bytes) in places.into_iter().chain([(3, 999), (2 * MIB + 7, 3)]) {
        let start = usize::try_from(offset).unwrap();
        assert_eq!(read(&file, offset, bytes).unwrap(), expected[start..start + bytes], "{offset} {bytes}");
    }
    assert!(std::fs::read(disk.file()).unwrap() == expected);
    // The end of the file is not a request, and there is nothing after it.
    assert_eq!(file.read_at(&mut [0; 10], 4 * MIB).unwrap(), 0);
    assert_eq!(file.read_at(&mut [0; 10], 4 * MIB - 4).unwrap(), 4);
    assert!(file.write_all_at(&[1; 8], 4 * MIB - 4).is_err());
    assert!(file.set_len(0).is_err(), "its size is fixed");
}

#[test]
fn content_is_right_through_the_loop_device() {
    if !requires(&LOOP) {
        return;
    }
    let disk = FuseDisk::builder().capacity(16 * MIB).device(Behaviour::parallel(8, 50_000)).mount().unwrap();
    let device = disk.loop_device().unwrap();
    assert_eq!(device.sysfs("loop/dio").unwrap(), "1");
    let data = pattern(0, 16 << 20, 7);
    let node = open(device.path());
    node.write_all_at(&data, 0).unwrap();
    node.sync_all().unwrap();
    assert!(std::fs::read(disk.file()).unwrap() == data, "what the loop device wrote is not in the file");
    open(disk.file()).write_all_at(&pattern(0, 8192, 8), 3 * MIB).unwrap();
    let direct = open_direct(device.path());
    assert_eq!(read_direct(&direct, 3 * MIB, 8192).unwrap(), pattern(0, 8192, 8));
    assert_eq!(read_direct(&direct, 3 * MIB + 8192, 65536).unwrap(), data[3 * (1 << 20) + 8192..][..65536]);
}

#[test]
fn the_log_is_what_was_asked() {
    if !requires(&LOOP) {
        return;
    }
    let disk = FuseDisk::builder().capacity(8 * MIB).device(Behaviour::single(20_000)).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let node = open_direct(device.path());
    // Other programs no longer read the new device.
    let settled = || {
        let before = disk.counts();
        std::thread::sleep(Duration::from_millis(100));
        disk.counts() == before
    };
    let sizes = [512, 4096, 12288, 65536];
    // Who looks at the device meanwhile is in the log too; then another attempt counts.
    let alone = (0..10).find_map(|_| {
        while !settled() {}
        disk.clear_log();
        let begun = disk.counts();
        for index in 0..40_u64 {
            let bytes = sizes[usize::try_from(index % 4).unwrap()];
            read_direct(&node, index * 131_072, bytes).unwrap();
        }
        let log = disk.log();
        let counts = disk.counts();
        node.sync_all().unwrap();
        let flushes = disk.counts().flushes;
        let read_bytes = log.iter().map(|served| served.bytes).sum();
        let expected = Counts { reads: 40, read_bytes, ..Counts::default() };
        let is_alone = (log.len(), begun, counts, flushes) == (40, Counts::default(), expected, 1);
        is_alone.then_some(log)
    });
    let log = alone.unwrap_or_else(|| panic!("never forty reads and one flush: {:?}", disk.counts()));
    for (index, served) in (0_u64..).zip(&log) {
        let bytes = sizes[usize::try_from(index % 4).unwrap()] as u64;
        assert_eq!((served.op, served.offset_bytes, served.bytes), (Op::Read, index * 131_072, bytes));
        assert_eq!(served.outcome, RequestOutcome::Done);
        assert!(served.arrival_ns <= served.start_ns && served.end_ns == served.start_ns + 20_000);
        assert!(served.answered_ns >= served.end_ns, "answered before its time: {served:?}");
    }
}

#[test]
fn bad_bytes_reach_the_reader_and_the_writer() {
    if !requires(&LOOP) {
        return;
    }
    let behaviour = Behaviour { errors: vec![MIB..MIB + 4096; 1], ..Behaviour::single(MS) };
    let disk = FuseDisk::builder().device(behaviour).mount().unwrap();
    let file = open(disk.file());
    assert_eq!(read(&file, MIB + 4000, 1).unwrap_err().raw_os_error(), Some(EIO));
    assert_eq!(file.write_at(&[1; 8192], MIB - 4096).unwrap_err().raw_os_error(), Some(EIO));
    assert_eq!(read(&file, MIB - 4096, 4096).unwrap(), vec![0; 4096], "a failed write left something");
    assert_eq!(disk.log().last().map(|served| served.outcome), Some(RequestOutcome::Done));
    assert_eq!((disk.counts().errors, disk.counts().writes), (2, 1));
    let device = disk.loop_device().unwrap();
    let node = open_direct(device.path());
    let bad = || disk.log().iter().filter(|served| served.outcome == RequestOutcome::Bad(MIB)).count();
    // Who looks at the new device may read there, too.
    let is_logged = (0..10).any(|_| {
        let before = bad();
        assert_eq!(read_direct(&node, MIB, 512).unwrap_err().raw_os_error(), Some(EIO));
        read_direct(&node, MIB + 4096, 512).unwrap();
        bad() == before + 1
    });
    assert!(is_logged, "{:?}", disk.log());
}

/// Requests that took more than half of a stall, of reads one after the other for a while.
fn stalled(disk: &FuseDisk, stall: Stall) -> Vec<Served> {
    let half_ns = stall.lasts_ns / 2;
    disk.log().into_iter().filter(|served| served.end_ns - served.arrival_ns > half_ns).collect()
}

#[test]
fn stalls_come_when_they_should() {
    if !requires(&FUSE) {
        return;
    }
    let stall = Stall { every_ns: 200 * MS, lasts_ns: 80 * MS };
    let behaviour = Behaviour { stall: Some(stall), ..Behaviour::single(MS) };
    let disk = FuseDisk::builder().device(behaviour).mount().unwrap();
    let file = open(disk.file());
    let mut longest = Duration::ZERO;
    // A reader that loses its processor may miss one, so it reads until it has met four.
    let met_four = wait_until(LONG, || {
        let before = Instant::now();
        read(&file, 0, 4096).unwrap();
        longest = longest.max(before.elapsed());
        stalled(&disk, stall).len() >= 4
    });
    let stalled = stalled(&disk, stall);
    assert!(met_four, "{stalled:?}");
    assert!(stalled.iter().all(|served| served.end_ns % stall.every_ns <= 2 * MS), "{stalled:?}");
    // One at a time waits for each stall.
    assert!(
        stalled.windows(2).all(|pair| pair[1].end_ns >= pair[0].end_ns + stall.every_ns - 2 * MS),
        "{stalled:?}"
    );
    let served_ns = stalled.iter().map(|served| served.end_ns - served.arrival_ns).max().unwrap();
    assert!(longest.as_nanos() >= u128::from(served_ns), "the reader waited {longest:?} at most");
}

#[test]
fn every_tenth_request_costs_more() {
    if !requires(&FUSE) {
        return;
    }
    let behaviour = Behaviour { extra: Some(Extra { every: 10, costs_ns: 3 * MS }), ..Behaviour::single(MS) };
    let disk = FuseDisk::builder().device(behaviour).mount().unwrap();
    let file = open(disk.file());
    (0..30).for_each(|index| drop(read(&file, index * 4096, 4096).unwrap()));
    let times: Vec<u64> = disk.log().iter().map(|served| served.end_ns - served.start_ns).collect();
    let expected: Vec<u64> = (1..=30).map(|number| if number % 10 == 0 { 4 * MS } else { MS }).collect();
    assert_eq!(times, expected);
}

#[test]
fn no_time_is_shorter_than_was_programmed() {
    if !requires(&FUSE) {
        return;
    }
    // How close the times come is in timing.rs.
    check_programmed_times(|seen_ns, truth_ns| assert!(seen_ns >= truth_ns, "{seen_ns} for {truth_ns}"));
}

#[test]
fn as_many_at_once_as_programmed() {
    if !requires(&FUSE) {
        return;
    }
    for (behaviour, servers, rounds) in
        [(Behaviour::single(5 * MS), 1, 80.0), (Behaviour::parallel(4, 5 * MS), 4, 20.0)]
    {
        // Readers without a processor leave servers idle.
        first_right(10, || {
            let disk = FuseDisk::builder().device(behaviour.clone()).mount().unwrap();
            let seconds = seconds_of_readers(&disk, 8, 10);
            let truth = rounds * 0.005;
            assert!(seconds >= truth, "{seconds} s, {truth} s were programmed");
            // At the start of each one, as many are under way as there are servers, and never more.
            let log = disk.log();
            let at_once =
                |at_ns: u64| log.iter().filter(|one| (one.start_ns..one.end_ns).contains(&at_ns)).count();
            let most = log.iter().map(|served| at_once(served.start_ns)).max();
            assert!(most <= Some(servers), "{most:?} at once");
            assert!(log.iter().all(|served| served.end_ns - served.start_ns == 5 * MS));
            same("most at once", &most, &Some(servers))
        });
    }
}

#[test]
fn models_of_real_devices_run_in_real_time() {
    if !requires(&LOOP) {
        return;
    }
    let system = rdsk_disk::load("wd2500").unwrap();
    let model = Device::of_lun(&system.params.luns[0], 1);
    let capacity = model.capacity_bytes();
    let mut twin = model.clone();
    let disk = FuseDisk::builder().device(model).mount().unwrap();
    assert_eq!(disk.capacity_bytes(), capacity);
    let device = disk.loop_device().unwrap();
    let node = open_direct(device.path());
    let mut place = 1_u64;
    for _ in 0..30 {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        read_direct(&node, place % (capacity / 4096 - 1) * 4096, 4096).unwrap();
    }
    // With the same arrivals, the model in virtual time gives the same times. The log is in the order of the answers.
    let mut log = disk.log();
    log.sort_by_key(|served| served.arrival_ns);
    for served in &log {
        let request = match served.op {
            Op::Read => rdsk_disk::Request::read(served.offset_bytes, served.bytes),
            Op::Write => rdsk_disk::Request::write(served.offset_bytes, served.bytes),
            Op::Flush => rdsk_disk::Request::flush(),
        };
        let done = twin.submit(served.arrival_ns, request);
        assert_eq!((done.start_ns, done.end_ns), (served.start_ns, served.end_ns), "{served:?}");
    }
    // How late the answers come is in timing.rs.
    assert!(log.iter().all(|served| served.answered_ns >= served.end_ns));
}

/// A disk with its loop device, and the places where they could leave traces.
fn made() -> (FuseDisk, LoopDevice) {
    let disk = FuseDisk::builder().device(Behaviour::single(MS)).mount().unwrap();
    let device = disk.loop_device().unwrap();
    assert!(is_mounted(directory(disk.file())) && is_attached(disk.file()));
    (disk, device)
}

fn assert_gone(file: &Path) {
    assert!(!is_attached(file), "a loop device still stands on {}", file.display());
    assert!(!is_mounted(directory(file)), "{} is still mounted", file.display());
    assert!(!directory(file).exists(), "the directory of {} is still there", file.display());
}

#[test]
fn nothing_is_left_whichever_goes_first() {
    if !requires(&LOOP) {
        return;
    }
    let (disk, device) = made();
    let file = disk.file().to_owned();
    drop(device);
    assert!(is_mounted(directory(&file)) && !is_attached(&file));
    drop(disk);
    assert_gone(&file);

    let (disk, device) = made();
    let file = disk.file().to_owned();
    drop(disk);
    read_direct(&open_direct(device.path()), 0, 4096).expect("the loop device keeps the disk");
    drop(device);
    assert_gone(&file);
}

#[test]
fn nothing_is_left_after_a_panic() {
    if !requires(&LOOP) {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let (disk, device) = made();
        sender.send(disk.file().to_owned()).unwrap();
        read_direct(&open_direct(device.path()), 0, 4096).unwrap();
        panic!("on purpose");
    });
    let file = receiver.recv().unwrap();
    assert!(thread.join().is_err());
    assert_gone(&file);
}

#[test]
fn an_open_file_delays_the_end_and_does_not_hang_it() {
    if !requires(&FUSE) {
        return;
    }
    let disk = FuseDisk::builder().mount().unwrap();
    let path = disk.file().to_owned();
    let file = open(&path);
    file.write_all_at(b"still here", 0).unwrap();
    drop(disk);
    assert_gone(&path);
    assert_eq!(read(&file, 0, 10).unwrap(), b"still here");
}

#[test]
fn impossible_sizes_are_refused() {
    for bytes in [0, 1, 513] {
        let refused = FuseDisk::builder().capacity(bytes).mount().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{bytes}");
    }
    let model = Device::of_lun(&rdsk_disk::load("wd2500").unwrap().params.luns[0], 1);
    let beyond = model.capacity_bytes() + 512;
    assert!(FuseDisk::builder().device(model).capacity(beyond).mount().is_err());
}
