//! Whose counters represent a target on stacks of devices, over fake trees whose counters the test changes: device-mapper with
//! `queue/iostats` at 0, arrays whose own counters are switched off, several paths, and btrfs over several devices.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use rdsk_model::{Clock, Device, Evidence, EvidenceSource, Filesystem, Op, StopFlag, Target, TargetKind};
use rdsk_observe::{EvidenceSum, KernelObserver, Observer as _, Stack};
use rdsk_testkit::fakesys::{FakeDisk, FakeSys, STAT_FIELDS};
use std::fs;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// A clock that never advances.
struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        0
    }

    fn sleep_until_ns(&self, _at_ns: u64, _stop: &StopFlag) {}
}

fn target(name: &str, major_minor: (u32, u32), filesystem: Option<&str>) -> Target {
    let (major, minor) = major_minor;
    let device = Device { name: name.into(), major_minor: format!("{major}:{minor}"), ..Device::default() };
    Target {
        index: 0,
        name: name.into(),
        kind: TargetKind::Block,
        path: None,
        size_bytes: 1 << 30,
        filesystem: filesystem.map(|kind| Filesystem { kind: kind.into(), options: String::new() }),
        device: Some(device),
        stack: vec![name.into()],
        made_by_rdsk: false,
        other_devices: Vec::new(),
        laid_out: None,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
        dontcache: None,
    }
}

/// A device whose driver handles bios and switches `queue/iostats` off, as device-mapper does on 6.1.
fn dm(name: &str, mapped: &str, uuid: &str) -> FakeDisk {
    FakeDisk { iostats: false, ..FakeDisk::dm(name, mapped, uuid, 1 << 30) }
}

/// The counters after this many bytes were read and written since the machine started.
fn moved(read_bytes: u64, write_bytes: u64) -> [u64; STAT_FIELDS] {
    let mut stat = [0; STAT_FIELDS];
    (stat[0], stat[2]) = (read_bytes / 4096, read_bytes / 512);
    (stat[4], stat[6]) = (write_bytes / 4096, write_bytes / 512);
    stat
}

/// One visit at the end of which these devices have these counters.
fn visit(fake: &mut FakeSys, target: &Target, after: &[(&str, u64, u64)]) -> (Evidence, KernelObserver) {
    let mut observer =
        KernelObserver::new(std::slice::from_ref(target), &fake.sys(), &fake.proc(), Arc::new(Still));
    let evidence = again(fake, &mut observer, after);
    (evidence, observer)
}

fn again(fake: &mut FakeSys, observer: &mut KernelObserver, after: &[(&str, u64, u64)]) -> Evidence {
    observer.begin();
    for &(device, read_bytes, write_bytes) in after {
        fake.set_stat(device, moved(read_bytes, write_bytes));
    }
    observer.end_io();
    let mut sum = EvidenceSum::default();
    sum.add(observer.end());
    sum.finish()
}

/// What represents the target: devices, and the smallest and largest number of bytes that they write for each byte.
fn counted(evidence: &Evidence) -> Option<(Vec<&str>, f64, Option<f64>)> {
    let counted = evidence.counted_for(0)?;
    let names = counted.devices.iter().map(String::as_str).collect();
    Some((names, counted.written_least, counted.written_most))
}

fn bytes(evidence: &Evidence, op: Op) -> u64 {
    let of = |device: &rdsk_model::DeviceEvidence| match op {
        Op::Read => device.read_bytes,
        Op::Write => device.write_bytes,
    };
    evidence.counters_of(0).into_iter().map(|device| of(device).unwrap()).sum()
}

#[test]
fn counters_that_move_are_trusted_whatever_iostats_says() {
    let mut fake =
        FakeSys::new().disk(FakeDisk::scsi("sda")).disk(dm("dm-0", "lin", "")).holder("sda", "dm-0");
    let target = target("dm-0", (253, 0), None);
    let after = [("dm-0", 8 * MIB, 0), ("sda", 8 * MIB, 0)];
    let (evidence, mut observer) = visit(&mut fake, &target, &after);
    assert_eq!(evidence.source, EvidenceSource::Sysfs);
    assert_eq!(counted(&evidence), Some((vec!["dm-0"], 1.0, Some(1.0))));
    assert_eq!((bytes(&evidence, Op::Read), bytes(&evidence, Op::Write)), (8 * MIB, 0));
    assert_eq!(evidence.counters_of(0)[0].flushes, None, "a driver of bios counts no flushes");
    assert!(!observer.describe().why_not_higher.unwrap().contains("dm-0"));
    // Once the counters have changed, unchanged counters mean that there was no I/O, whatever others do on the disk.
    let evidence = again(&mut fake, &mut observer, &[("sda", 9 * MIB, 5 * MIB)]);
    assert_eq!(counted(&evidence).unwrap().0, ["dm-0"]);
    assert_eq!(bytes(&evidence, Op::Read), 0);
}

#[test]
fn nothing_anywhere_is_nothing() {
    let mut fake =
        FakeSys::new().disk(FakeDisk::scsi("sda")).disk(dm("dm-0", "lin", "")).holder("sda", "dm-0");
    let (evidence, _) = visit(&mut fake, &target("dm-0", (253, 0), None), &[]);
    assert_eq!(counted(&evidence).unwrap().0, ["dm-0"], "the disk below stood still too");
    assert_eq!((bytes(&evidence, Op::Read), evidence.source), (0, EvidenceSource::Sysfs));
}

#[test]
fn a_disk_that_is_switched_off_counts_nothing() {
    let mut fake = FakeSys::new().disk(FakeDisk { iostats: false, ..FakeDisk::scsi("sda") });
    let (evidence, observer) = visit(&mut fake, &target("sda", (8, 0), None), &[]);
    assert_eq!((evidence.source, counted(&evidence)), (EvidenceSource::None, None));
    let why = observer.describe().why_not_higher.unwrap();
    assert!(why.starts_with("queue/iostats of sda is 0, and its counters stood still"), "{why}");
}

/// An array of the disks sda, sdb, …, with its own counters switched off.
fn array(level: &str, members: u32) -> FakeSys {
    let mut fake = FakeSys::new()
        .disk(FakeDisk { iostats: false, ..FakeDisk::md("md0", level, members, 65536, 1 << 30) });
    for member in ["sda", "sdb", "sdc", "sdd"].iter().take(members as usize) {
        fake = fake.disk(FakeDisk::scsi(member)).holder(member, "md0");
        fake.set_attribute("md0", &format!("md/dev-{member}/slot"), "0\n");
    }
    fake.set_attribute("md0", "md/degraded", "0\n");
    fake
}

#[test]
fn members_are_counted_where_the_array_counts_nothing() {
    let levels: [(&str, u32, f64, Option<f64>); 6] = [
        ("linear", 2, 1.0, Some(1.0)),
        ("raid0", 3, 1.0, Some(1.0)),
        ("raid1", 2, 2.0, Some(2.0)),
        ("raid10", 4, 2.0, Some(2.0)),
        ("raid5", 3, 1.5, None),
        ("raid6", 4, 2.0, None),
    ];
    for (level, members, least, most) in levels {
        let mut fake = array(level, members);
        let names: Vec<&str> = ["sda", "sdb", "sdc", "sdd"].into_iter().take(members as usize).collect();
        let after: Vec<(&str, u64, u64)> = names.iter().map(|name| (*name, MIB, 2 * MIB)).collect();
        let (evidence, observer) = visit(&mut fake, &target("md0", (9, 0), None), &after);
        assert_eq!(counted(&evidence), Some((names, least, most)), "{level}");
        assert_eq!(bytes(&evidence, Op::Write), u64::from(members) * 2 * MIB);
        let why = evidence.counted_for(0).unwrap().why.clone().unwrap();
        let those = format!("so those of the devices below it ({level}) are used");
        assert_eq!(why, format!("the counters of md0 do not show what it did, {those}"));
        assert!(!observer.describe().why_not_higher.unwrap().contains("md0"), "others stand for it");
    }
}

/// Of an I/O over the end of a chunk, RAID 0 of Linux 5.14 to 6.5 may count the rest only. What members do beyond their array is of
/// others on newer kernels.
#[test]
fn members_are_counted_where_raid0_counts_a_part() {
    let counted_with = |release: &str, level: &str, own_bytes: u64| {
        let mut fake = array(level, 2);
        fake.set_attribute("md0", "queue/iostats", "1\n");
        fs::create_dir_all(fake.proc().join("sys/kernel")).unwrap();
        fs::write(fake.proc().join("sys/kernel/osrelease"), release).unwrap();
        let after = [("md0", own_bytes, 0), ("sda", MIB, 0), ("sdb", MIB, 0)];
        let (evidence, observer) = visit(&mut fake, &target("md0", (9, 0), None), &after);
        let why = observer.describe().why_not_higher.unwrap();
        let is_told = why.contains("md0 counted less than its members moved");
        (counted(&evidence).unwrap().0.join(" "), bytes(&evidence, Op::Read), is_told)
    };
    let old = "6.1.0-12-amd64\n";
    assert_eq!(counted_with(old, "raid0", MIB), ("sda sdb".to_owned(), 2 * MIB, true));
    assert_eq!(counted_with(old, "raid0", 2 * MIB), ("md0".to_owned(), 2 * MIB, false));
    assert_eq!(counted_with(old, "raid1", MIB), ("md0".to_owned(), MIB, false));
    assert_eq!(counted_with("6.12.1\n", "raid0", MIB), ("md0".to_owned(), MIB, false));
}

#[test]
fn a_member_that_is_missing_writes_no_copy() {
    let mut fake = array("raid1", 2);
    fake.set_attribute("md0", "md/degraded", "1\n");
    fake.set_attribute("md0", "md/dev-sdb/slot", "none\n");
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &[("sda", 0, MIB)]);
    assert_eq!(counted(&evidence), Some((vec!["sda"], 1.0, Some(1.0))), "sdb is a spare");
    let mut fake = array("raid5", 3);
    fake.set_attribute("md0", "md/degraded", "1\n");
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &[("sda", 0, MIB)]);
    assert_eq!(counted(&evidence).unwrap().1, 1.0, "what the missing one would hold is written nowhere");
    // Three copies of which one was taken out; and two, of which one is rebuilt and written where it holds data already.
    let mut fake = array("raid1", 3);
    fake.set_attribute("md0", "md/raid_disks", "3\n");
    fake.set_attribute("md0", "md/degraded", "1\n");
    fake.set_attribute("md0", "md/dev-sdc/slot", "none\n");
    let after = [("sda", 0, MIB), ("sdb", 0, MIB)];
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &after);
    assert_eq!(counted(&evidence), Some((vec!["sda", "sdb"], 2.0, Some(2.0))));
    let mut fake = array("raid1", 2);
    fake.set_attribute("md0", "md/raid_disks", "2\n");
    fake.set_attribute("md0", "md/degraded", "1\n");
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &after);
    assert_eq!(counted(&evidence), Some((vec!["sda", "sdb"], 1.0, Some(2.0))));
}

#[test]
fn near_and_far_copies_of_raid10_multiply() {
    let mut fake = array("raid10", 4);
    // drivers/md/raid10.c: the lowest byte counts near copies, the next far ones.
    fake.set_attribute("md0", "md/layout", "513\n");
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &[("sda", 0, MIB)]);
    assert_eq!(counted(&evidence).unwrap().1, 2.0);
    fake.set_attribute("md0", "md/layout", "259\n");
    let (evidence, _) = visit(&mut fake, &target("md0", (9, 0), None), &[("sda", 0, 2 * MIB)]);
    assert_eq!(counted(&evidence).unwrap().1, 3.0);
}

#[test]
fn a_level_that_counts_nothing_is_left_for_the_one_below() {
    let mut fake = array("raid1", 2).disk(dm("dm-0", "vg-lv", "LVM-x")).holder("md0", "dm-0");
    let after = [("sda", 0, MIB), ("sdb", 0, MIB)];
    let (evidence, _) = visit(&mut fake, &target("dm-0", (253, 0), None), &after);
    let (names, least, most) = counted(&evidence).unwrap();
    assert_eq!(
        (names, least, most),
        (vec!["sda", "sdb"], 2.0, None),
        "dm says nothing of its tables in sysfs"
    );
    // With md0's own counters there is no need for the disks.
    fake.set_attribute("md0", "queue/iostats", "1\n");
    let (evidence, _) = visit(&mut fake, &target("dm-0", (253, 0), None), &[("md0", 0, MIB)]);
    assert_eq!(counted(&evidence).unwrap().0, ["md0"]);
}

#[test]
fn nvme_paths_add_up_to_the_device() {
    let hidden =
        |name: &str, minor| FakeDisk { major_minor: (259, minor), ..FakeDisk::loop_device(name, 1 << 30) };
    let mut fake = FakeSys::new()
        .disk(FakeDisk::nvme("nvme0n1"))
        .disk(hidden("nvme0c0n1", 7))
        .disk(hidden("nvme0c1n1", 8));
    let after = [("nvme0c0n1", MIB, 0), ("nvme0c1n1", 3 * MIB, 0)];
    let target = target("nvme0n1", (259, 0), None);
    let (evidence, _) = visit(&mut fake, &target, &after);
    assert_eq!(counted(&evidence), Some((vec!["nvme0c0n1", "nvme0c1n1"], 1.0, Some(1.0))));
    assert_eq!(bytes(&evidence, Op::Read), 4 * MIB);
}

/// A mounted btrfs over these devices, with these data profiles.
fn btrfs(fake: &FakeSys, devices: &[&str], profiles: &[&str]) {
    let filesystem = fake.sys().join("fs/btrfs/0f7e");
    for device in devices {
        fs::create_dir_all(filesystem.join("devices").join(device)).unwrap();
    }
    for profile in profiles {
        fs::create_dir_all(filesystem.join("allocation/data").join(profile)).unwrap();
    }
    fs::create_dir_all(fake.sys().join("fs/btrfs/features")).unwrap();
}

#[test]
fn btrfs_counts_all_its_devices() {
    let profiles: [(&[&str], f64, Option<f64>); 6] = [
        (&["single"], 1.0, Some(1.0)),
        (&["raid1"], 2.0, Some(2.0)),
        (&["raid1c3"], 3.0, Some(3.0)),
        (&["raid5"], 1.5, None),
        // A conversion that did not finish.
        (&["single", "raid1"], 1.0, Some(2.0)),
        (&[], 1.0, None),
    ];
    for (profiles, least, most) in profiles {
        let mut fake = ["sda", "sdb", "sdc"]
            .into_iter()
            .fold(FakeSys::new(), |fake, disk| fake.disk(FakeDisk::scsi(disk)));
        btrfs(&fake, &["sda", "sdb", "sdc"], profiles);
        let target = target("sdb", (8, 16), Some("btrfs"));
        let (evidence, _) = visit(&mut fake, &target, &[("sda", 0, MIB), ("sdc", 0, MIB)]);
        assert_eq!(counted(&evidence), Some((vec!["sdb", "sda", "sdc"], least, most)), "{profiles:?}");
        assert_eq!(bytes(&evidence, Op::Write), 2 * MIB);
    }
    // Another filesystem's devices are not this one's, and a single copy on one device needs no words.
    let mut fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
    btrfs(&fake, &["sda"], &["single"]);
    for (name, number) in [("sda", (8, 0)), ("sdb", (8, 16))] {
        let (evidence, _) = visit(&mut fake, &target(name, number, Some("btrfs")), &[]);
        assert_eq!(counted(&evidence).unwrap().0, [name]);
        assert_eq!(evidence.counted_for(0).unwrap().why, None);
    }
}

/// Mounted without a device: the copies that would be on it are not written.
#[test]
fn a_degraded_btrfs_writes_fewer_copies() {
    let spread = |devices: &[&str], profile: &str, missing: &[(&str, &str)]| {
        let mut fake = ["sda", "sdb", "sdc"]
            .into_iter()
            .fold(FakeSys::new(), |fake, disk| fake.disk(FakeDisk::scsi(disk)));
        btrfs(&fake, devices, &[profile]);
        for (device, text) in missing {
            let directory = fake.sys().join("fs/btrfs/0f7e/devinfo").join(device);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("missing"), format!("{text}\n")).unwrap();
        }
        let (evidence, _) = visit(&mut fake, &target("sda", (8, 0), Some("btrfs")), &[("sda", 0, MIB)]);
        let why = evidence.counted_for(0).unwrap().why.clone().unwrap_or_default();
        assert_eq!(why.contains("degraded"), why.contains("raid") && counted(&evidence).unwrap().1 < 1.4);
        let (_, least, most) = counted(&evidence).unwrap();
        (least, most)
    };
    let two = &["sda", "sdb"];
    assert_eq!(spread(two, "raid1", &[("1", "0"), ("2", "0")]), (2.0, Some(2.0)));
    assert_eq!(spread(&["sda"], "raid1", &[]), (1.0, Some(2.0)), "before Linux 5.6 only the list tells");
    assert_eq!(spread(&["sda"], "raid1", &[("1", "0"), ("2", "1")]), (1.0, Some(2.0)));
    assert_eq!(spread(&["sda"], "dup", &[]), (2.0, Some(2.0)));
    assert_eq!(spread(two, "raid1", &[("1", "0"), ("2", "0"), ("3", "1")]), (1.0, Some(2.0)));
    assert_eq!(spread(two, "raid1c3", &[]), (1.0, Some(3.0)));
    assert_eq!(spread(two, "raid5", &[("3", "1")]), (1.0, None));
    assert_eq!(spread(&["sda", "sdb", "sdc"], "raid5", &[("3", "0")]), (1.5, None));
}

#[test]
fn what_holds_metadata_is_no_member() {
    // A raid1 of LVM: rimage holds data, rmeta does not. A thin volume: tdata does, tmeta does not.
    let mut fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
    let parts = [
        ("dm-1", "vg-lv_rmeta_0"),
        ("dm-2", "vg-lv_rimage_0"),
        ("dm-3", "vg-lv_rmeta_1"),
        ("dm-4", "vg-lv_rimage_1"),
    ];
    for (name, mapped) in parts {
        let disk = if name < "dm-3" { "sda" } else { "sdb" };
        fake = fake.disk(dm(name, mapped, &format!("LVM-{name}"))).holder(disk, name);
    }
    fake = fake.disk(dm("dm-0", "vg-lv", "LVM-top"));
    for (name, _) in parts {
        fake = fake.holder(name, "dm-0");
    }
    let stack = Stack::read(&target("dm-0", (253, 0), None), &fake.sys()).unwrap();
    assert_eq!(stack.below["dm-0"].names, ["dm-2", "dm-4"]);
    let fake = FakeSys::new()
        .disk(dm("dm-0", "vg-pool_tmeta", "LVM-a-tmeta"))
        .disk(dm("dm-1", "vg-pool_tdata", "LVM-b-tdata"))
        .disk(dm("dm-2", "vg-pool-tpool", "LVM-c-tpool"))
        .disk(dm("dm-3", "vg-thin", "LVM-d"))
        .holder("dm-0", "dm-2")
        .holder("dm-1", "dm-2")
        .holder("dm-2", "dm-3");
    let stack = Stack::read(&target("dm-3", (253, 3), None), &fake.sys()).unwrap();
    assert_eq!(stack.lower(), ["dm-2", "dm-1"]);
}

#[test]
fn paths_of_one_lun_write_each_byte_once() {
    let fake = FakeSys::new()
        .disk(FakeDisk::scsi("sda"))
        .disk(FakeDisk::scsi("sdb"))
        .disk(dm("dm-0", "mpatha", "mpath-3600"))
        .holder("sda", "dm-0")
        .holder("sdb", "dm-0");
    let target = target("dm-0", (253, 0), None);
    let below = &Stack::read(&target, &fake.sys()).unwrap().below["dm-0"];
    assert_eq!(
        (below.names.as_slice(), below.spread.most),
        (&["sda".to_owned(), "sdb".to_owned()][..], Some(1.0))
    );
}

/// As dmsetup makes it, whose devices have no UUID.
#[test]
fn paths_are_known_by_their_table_too() {
    let fake = FakeSys::new()
        .disk(FakeDisk::scsi("sda"))
        .disk(FakeDisk::scsi("sdb"))
        .disk(dm("dm-0", "paths", ""))
        .holder("sda", "dm-0")
        .holder("sdb", "dm-0");
    let mut target = target("dm-0", (253, 0), None);
    let most = |target: &Target| Stack::read(target, &fake.sys()).unwrap().below["dm-0"].spread.most;
    assert_eq!(most(&target), None, "they may be members");
    let level = Some("multipath".into());
    target.device.as_mut().unwrap().array =
        Some(rdsk_model::ArrayFacts { device: "dm-0".into(), level, ..rdsk_model::ArrayFacts::default() });
    assert_eq!(most(&target), Some(1.0));
}
