//! The room's own devices, tried on the real kernel. Everything created here must be gone after its owner is dropped.

use super::attach::has_partitions;
use super::*;
use crate::attempts::{first_right, same};
use crate::requires::{Need, requires};

const MIB: u64 = 1 << 20;

fn write_at(path: &Path, bytes: &[u8], offset: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
    file.sync_all().unwrap();
}

fn is_mounted(directory: &Path) -> bool {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&format!(" {} ", directory.display()))
}

#[test]
fn a_device_is_as_described_and_goes_without_a_trace() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(8 * MIB).sector_size(4096).create().unwrap();
    let node = File::open(device.path()).unwrap();
    assert_eq!(rdsk_sys::device::block_device_size(&node).unwrap(), 8 * MIB);
    assert_eq!(rdsk_sys::device::logical_block_size(&node).unwrap(), 4096);
    assert_eq!(device.path(), Path::new("/dev").join(device.name()));
    assert_eq!(device.major_minor(), device.sysfs("dev").unwrap());
    assert!(device.major_minor().starts_with("7:"));
    assert_eq!(device.sysfs("loop/dio").unwrap(), "0");
    assert_eq!(Path::new(&device.sysfs("loop/backing_file").unwrap()), device.backing_path());
    drop(node);

    let (backing, name) = (device.backing_path().to_owned(), device.name().to_owned());
    drop(device);
    assert!(!backing.exists() && !backing.parent().unwrap().exists());
    let attached =
        std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
    assert!(!attached.starts_with(&*backing.to_string_lossy()), "{attached}");
}

#[test]
fn direct_and_read_only_are_what_they_say() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let direct = LoopDevice::builder().size(MIB).direct_io(DirectIo::On).create().unwrap();
    assert_eq!(direct.sysfs("loop/dio").unwrap(), "1");
    let fixed = LoopDevice::builder().size(MIB).read_only().create().unwrap();
    assert_eq!(fixed.sysfs("ro").unwrap(), "1");
    let opened = OpenOptions::new().write(true).open(fixed.path());
    let refused = opened.is_err() || opened.unwrap().write_all_at(&[1; 512], 0).is_err();
    assert!(refused, "a write to a read-only device went through");
}

#[test]
fn another_file_may_stand_below_and_stays() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(2 * MIB).unwrap();
    let device = LoopDevice::builder().over(file.path()).create().unwrap();
    assert_eq!(device.sysfs("size").unwrap(), (2 * MIB / 512).to_string());
    drop(device);
    assert!(file.path().exists());
}

#[test]
fn the_hash_changes_with_one_byte_and_back() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    for direct_io in [DirectIo::On, DirectIo::Off] {
        // A size that is no multiple of the chunk that is hashed at a time.
        let device = LoopDevice::builder().size(3 * MIB + 512).direct_io(direct_io).create().unwrap();
        let empty = device.content_hash().unwrap();
        assert_eq!(device.content_hash().unwrap(), empty);
        write_at(device.path(), &[1], 3 * MIB + 511);
        let changed = device.content_hash().unwrap();
        assert_ne!(changed, empty);
        write_at(device.path(), &[0], 3 * MIB + 511);
        assert_eq!(device.content_hash().unwrap(), empty);
        // The hash includes a write that is still in the page cache.
        OpenOptions::new()
            .write(true)
            .open(device.path())
            .unwrap()
            .write_all_at(&[1], 3 * MIB + 511)
            .unwrap();
        assert_eq!(device.content_hash().unwrap(), changed);
    }
}

#[test]
fn a_truncated_backing_file_gives_io_errors() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(4 * MIB).direct_io(DirectIo::On).create().unwrap();
    assert!(device.content_hash().is_ok());
    device.truncate_backing(2 * MIB).unwrap();
    let error = device.content_hash().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "{error}");
}

#[test]
fn filesystems_are_made_mounted_and_unmounted() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    device.mkfs_ext4("rdsk-test").unwrap();
    let mount = device.mount().unwrap();
    let place = mount.path().to_owned();
    assert!(is_mounted(&place));
    std::fs::write(place.join("file"), "content").unwrap();
    drop(mount);
    assert!(!is_mounted(&place) && !place.exists());
    let again = device.mount().unwrap();
    assert_eq!(std::fs::read_to_string(again.path().join("file")).unwrap(), "content");
}

#[test]
fn xfs_too() {
    if !requires(&[Need::Root, Need::Loop, Need::Xfs]) {
        return;
    }
    let device = LoopDevice::builder().size(300 * MIB).create().unwrap();
    device.mkfs_xfs("rdsk-test").unwrap();
    let mount = device.mount().unwrap();
    let line = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = line.lines().find(|line| line.contains(&*mount.path().to_string_lossy())).unwrap();
    assert!(line.contains(" - xfs "), "{line}");
}

#[test]
fn a_busy_mount_is_left_lazily() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(16 * MIB).create().unwrap();
    device.mkfs_ext4("busy").unwrap();
    let mount = device.mount().unwrap();
    let place = mount.path().to_owned();
    let open = File::create(place.join("open")).unwrap();
    drop(mount);
    assert!(!is_mounted(&place) && !place.exists());
    drop(open);
}

#[test]
fn partitions_appear_can_be_mounted_and_go() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Tool("partx"), Need::Tool("addpart")]) {
        return;
    }
    for sector_size in [512, 4096] {
        let device = LoopDevice::builder().size(32 * MIB).sector_size(sector_size).create().unwrap();
        // Partitions that a program left on the number: one that is larger, and one in the way of the second.
        for (number, start, sectors) in [("1", "2048", "40000"), ("2", "50000", "2048")] {
            let mut add = Command::new("addpart");
            output_of(add.arg(device.path()).args([number, start, sectors])).unwrap();
        }
        let nodes = device.partition_gpt().unwrap();
        assert_eq!(nodes.len(), 2);
        for (node, start_mib) in nodes.iter().zip([1, 16]) {
            let open = File::open(node).unwrap();
            assert_eq!(rdsk_sys::device::block_device_size(&open).unwrap(), 15 * MIB);
            let name = node.file_name().unwrap().to_string_lossy();
            assert_eq!(device.sysfs(&format!("{name}/start")).unwrap(), (start_mib * MIB / 512).to_string());
        }
        mkfs_ext4(&nodes[1], "part2").unwrap();
        let mount = device.mount_node(&nodes[1]).unwrap();
        assert!(is_mounted(mount.path()));
        drop(mount);
        let (file, name) = (device.backing_path().display().to_string(), device.name().to_owned());
        drop(device);
        // Another program may have the number by now, and partitions on it.
        let is_of_another = || {
            let attached = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
            attached.is_ok_and(|other| !other.starts_with(&file))
        };
        assert!(nodes.iter().all(|node| !node.exists()) || is_of_another(), "{nodes:?} stayed");
    }
}

#[test]
fn a_panic_leaves_nothing_attached() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = std::thread::spawn(move || {
        let device = LoopDevice::builder().size(MIB).create().unwrap();
        sender.send(device.backing_path().to_owned()).unwrap();
        panic!("on purpose, to see what stays behind");
    })
    .join();
    assert!(panicked.is_err());
    let backing = receiver.recv().unwrap();
    let listed = output_of(Command::new("losetup").arg("--list").arg("--noheadings")).unwrap();
    assert!(!listed.contains(&*backing.to_string_lossy()), "{listed}");
    assert!(!backing.exists());
}

#[test]
fn many_at_once_get_devices_of_their_own() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let threads: Vec<_> = (0..6)
        .map(|_| {
            std::thread::spawn(|| {
                (0..3).map(|_| LoopDevice::builder().size(MIB).create().unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    let devices: Vec<LoopDevice> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let names: std::collections::BTreeSet<&str> = devices.iter().map(LoopDevice::name).collect();
    assert_eq!(names.len(), 18);
    assert!(devices.iter().all(LoopDevice::is_attached));
}

#[test]
fn nonsense_is_an_error_with_losetups_words() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let error = LoopDevice::builder().over("/nonexistent/file").create().unwrap_err();
    assert!(error.to_string().contains("/nonexistent/file"), "{error}");
}

#[test]
fn in_memory_is_in_memory_as_long_as_it_fits() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let free = rustix::fs::statvfs("/dev/shm").unwrap();
    let is_in_memory = |size: u64| {
        let device = LoopDevice::builder().in_memory().size(size).create().unwrap();
        device.backing_path().starts_with("/dev/shm")
    };
    assert_eq!(is_in_memory(MIB), free.f_bavail * free.f_frsize >= MIB);
    assert!(!is_in_memory((free.f_blocks + 1) * free.f_frsize), "more than there is");
}

/// The kernel keeps some of what was set for one file with the number, for the next one.
#[test]
fn what_a_killed_test_left_with_the_number_is_forgotten() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("partx"), Need::Tool("addpart")]) {
        return;
    }
    let largest = |device: &LoopDevice| device.sysfs("queue/max_sectors_kb").unwrap();
    let usual = largest(&LoopDevice::builder().create().unwrap());
    // Another test may take the number, and what was left, in between.
    first_right(20, || {
        let killed = LoopDevice::builder().create().unwrap();
        output_of(Command::new("addpart").arg(killed.path()).args(["1", "2048", "40000"])).unwrap();
        std::fs::write(format!("/sys/block/{}/queue/max_sectors_kb", killed.name()), "64").unwrap();
        assert!(has_partitions(killed.path()).unwrap() && largest(&killed) == "64");
        output_of(Command::new("losetup").arg("--detach").arg(killed.path())).unwrap();
        assert!(wait_until(LONG, || !killed.is_attached()));
        let next = LoopDevice::builder().size(MIB).create().unwrap();
        same("the number", &next.name(), &killed.name())?;
        assert!(!has_partitions(next.path()).unwrap());
        assert_eq!(largest(&next), usual);
        Ok(())
    });
}
