//! Reads the fake tree as a program would read the real one, and compares the two if there is a real one.

use super::*;
use crate::requires::{Need, requires};
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// Two disks, a RAID 1 of partitions, an encrypted volume on it, swap, and a loop device.
fn machine() -> FakeSys {
    FakeSys::new()
        .disk(FakeDisk { links: vec!["disk/by-id/ata-DISK_A".into()], ..FakeDisk::scsi("sda") })
        .partition("sda", 1, 1 << 20, 8 * GIB)
        .partition("sda", 2, 9 * GIB, 100 * GIB)
        .disk(FakeDisk { serial: Some("OTHER".into()), ro: true, ..FakeDisk::scsi("sdb") })
        .disk(FakeDisk::nvme("nvme0n1"))
        .partition("nvme0n1", 1, 1 << 20, 50 * GIB)
        .disk(FakeDisk::virtio("vda"))
        .disk(FakeDisk {
            uuid: Some("e86d0cbf-5890-89d5-95b8-8c7d998c76ef".into()),
            ..FakeDisk::md("md0", "raid5", 4, 512 << 10, 90 * GIB)
        })
        .disk(FakeDisk::dm("dm-3", "vg0-my home", "LVM-abc", 80 * GIB))
        .disk(FakeDisk::loop_device("loop9", GIB))
        .holder("sda2", "md0")
        .holder("md0", "dm-3")
        .mount_nodev("tmpfs", "/tmp")
        .mount("nvme0n1p1", "/", "xfs")
        .mount("dm-3", "/home/my files", "ext4")
        .swap("sda1")
        .loop_backing("loop9", "/var/lib/a file.img")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

#[test]
fn every_way_to_a_disk_ends_in_one_directory() {
    let fake = machine();
    for (name, number) in [
        ("sda", "8:0"),
        ("sdb", "8:16"),
        ("nvme0n1", "259:0"),
        ("vda", "254:0"),
        ("dm-3", "253:3"),
        ("loop9", "7:9"),
    ] {
        let by_name = fs::canonicalize(fake.sys().join("block").join(name)).unwrap();
        let by_class = fs::canonicalize(fake.sys().join("class/block").join(name)).unwrap();
        let by_number = fs::canonicalize(fake.sys().join("dev/block").join(number)).unwrap();
        assert_eq!(by_name, by_class);
        assert_eq!(by_name, by_number);
        assert_eq!(read(by_name.join("dev")), format!("{number}\n"));
        assert!(by_name.starts_with(fs::canonicalize(fake.sys().join("devices")).unwrap()));
    }
    // Links are relative, so that the tree works in any place.
    assert!(fs::read_link(fake.sys().join("block/sda")).unwrap().starts_with("../devices"));
    assert!(
        fs::canonicalize(fake.sys().join("block/loop9")).unwrap().to_string_lossy().contains("virtual/block")
    );
}

#[test]
fn partitions_lie_in_their_disk_and_not_beside_it() {
    let fake = machine();
    let partition = fs::canonicalize(fake.sys().join("dev/block/8:2")).unwrap();
    assert_eq!(partition.parent().unwrap(), fs::canonicalize(fake.sys().join("block/sda")).unwrap());
    assert_eq!(read(partition.join("partition")), "2\n");
    assert_eq!(read(partition.join("start")), format!("{}\n", 9 * GIB / 512));
    assert_eq!(read(partition.join("size")), format!("{}\n", 100 * GIB / 512));
    assert!(!fake.sys().join("block/sda2").exists());
    assert!(fake.sys().join("class/block/nvme0n1p1").exists());
    assert!(!partition.join("queue").exists() && !partition.join("slaves").exists());
}

#[test]
fn identity_is_where_each_driver_puts_it() {
    let fake = machine();
    let block = fake.sys().join("block");
    assert_eq!(read(block.join("sda/device/model")), "ST4000NM0035-1V4\n");
    assert_eq!(fs::read(block.join("sda/device/vpd_pg80")).unwrap(), b"\0\x80\0\x08ZC1A2B3C");
    assert_eq!(read(block.join("sda/device/wwid")), "naa.5000c500a1b2c3d4\n");
    assert_eq!(read(block.join("nvme0n1/device/serial")).trim_end(), "S5GXNX0T123456A");
    assert_eq!(read(block.join("nvme0n1/wwid")), "eui.002538ba11b2c3d4\n");
    assert_eq!(read(block.join("vda/serial")), "virtio-disk-0");
    assert_eq!(read(block.join("dm-3/dm/name")), "vg0-my home\n");
    assert_eq!(read(block.join("dm-3/dm/uuid")), "LVM-abc\n");
    assert_eq!(read(block.join("md0/md/level")), "raid5\n");
    assert_eq!(read(block.join("md0/md/uuid")), "e86d0cbf-5890-89d5-95b8-8c7d998c76ef\n");
    assert_eq!(read(block.join("nvme0n1/nsid")), "1\n");
    assert!(!block.join("nvme0n1/uuid").exists());
    assert!(read(block.join("sda/sda2/uevent")).ends_with("DEVNAME=sda2\nDEVTYPE=partition\nPARTN=2\n"));
    assert_eq!(read(block.join("md0/queue/optimal_io_size")), format!("{}\n", 3 * (512 << 10)));
    assert_eq!(read(block.join("loop9/loop/backing_file")), "/var/lib/a file.img\n");
    assert_eq!(read(block.join("sdb/ro")), "1\n");
    assert!(!block.join("dm-3/device").exists());
}

#[test]
fn stacking_is_seen_from_both_ends() {
    let fake = machine();
    let class = fake.sys().join("class/block");
    let real = |path: PathBuf| fs::canonicalize(path).unwrap();
    assert_eq!(real(class.join("sda2/holders/md0")), real(class.join("md0")));
    assert_eq!(real(class.join("md0/slaves/sda2")), real(class.join("sda2")));
    assert_eq!(real(class.join("md0/holders/dm-3/slaves/md0")), real(class.join("md0")));
    assert_eq!(fs::read_dir(class.join("sdb/holders")).unwrap().count(), 0);
}

#[test]
fn proc_says_the_same() {
    let fake = machine();
    let mountinfo = read(fake.proc().join("self/mountinfo"));
    assert_eq!(
        mountinfo.lines().collect::<Vec<_>>(),
        [
            "22 1 0:40 / /tmp rw,relatime shared:22 - tmpfs tmpfs rw",
            "23 1 259:1 / / rw,relatime shared:23 - xfs /dev/nvme0n1p1 rw",
            "24 1 253:3 / /home/my\\040files rw,relatime shared:24 - ext4 /dev/mapper/vg0-my\\040home rw",
        ]
    );
    let mounts = read(fake.proc().join("mounts"));
    assert!(mounts.contains("/dev/nvme0n1p1 / xfs rw,relatime 0 0\n"), "{mounts}");
    let swaps = read(fake.proc().join("swaps"));
    let swap: Vec<&str> = swaps.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(swap, ["/dev/sda1", "partition", "8388604", "0", "-2"]);
    assert_eq!(swaps.lines().count(), 2);
}

#[test]
fn nodes_and_links_are_in_dev() {
    let fake = machine();
    let real = |path: &str| fs::canonicalize(fake.dev().join(path)).unwrap();
    assert_eq!(real("disk/by-id/ata-DISK_A"), real("sda"));
    assert_eq!(real("mapper/vg0-my home"), real("dm-3"));
    assert!(real("sda1").is_file());
}

#[test]
fn counters_change_in_both_places() {
    let mut fake = machine();
    let stat: [u64; STAT_FIELDS] = std::array::from_fn(|index| index as u64 * 11);
    fake.set_stat("sda", stat);
    let in_sysfs: Vec<u64> = read(fake.sys().join("block/sda/stat"))
        .split_whitespace()
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!(in_sysfs, stat);
    let diskstats = read(fake.proc().join("diskstats"));
    let line = diskstats.lines().find(|line| line.contains(" sda ")).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields[..3], ["8", "0", "sda"]);
    assert_eq!(fields[3..].iter().map(|field| field.parse().unwrap()).collect::<Vec<u64>>(), stat);
    fake.set_attribute("sda", "queue/iostats", "0\n");
    assert_eq!(read(fake.sys().join("block/sda/queue/iostats")), "0\n");
    fake.remove_attribute("sda", "queue/fua");
    fake.remove_attribute("sda", "holders");
    assert!(
        !fake.sys().join("block/sda/queue/fua").exists() && !fake.sys().join("block/sda/holders").exists()
    );
}

#[test]
#[should_panic(expected = "there is no device sdz")]
fn what_is_not_there_cannot_be_mounted() {
    let _ = FakeSys::new().mount("sdz", "/", "ext4");
}

#[test]
#[should_panic(expected = "already")]
fn two_disks_cannot_share_a_number() {
    let _ = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sda"));
}

#[test]
fn the_tree_goes_when_dropped() {
    let fake = machine();
    let root = fake.root().to_owned();
    assert!(root.exists());
    drop(fake);
    assert!(!root.exists());
}

/// A real loop device beside its fake: every fake file exists on the real one, and both report the same facts.
#[test]
fn a_real_loop_device_has_the_same_files() {
    const SAME: [&str; 11] = [
        "size",
        "dev",
        "ro",
        "removable",
        "hidden",
        "alignment_offset",
        "inflight",
        "queue/logical_block_size",
        "queue/write_cache",
        "queue/zoned",
        "loop/backing_file",
    ];
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let real = crate::LoopDevice::builder().size(1 << 20).create().unwrap();
    let fake = FakeSys::new()
        .disk(FakeDisk::loop_device(real.name(), 1 << 20))
        .loop_backing(real.name(), real.backing_path());
    let (mut seen, mut lacking) = (0, Vec::new());
    let fake_root = fs::canonicalize(fake.sys().join("block").join(real.name())).unwrap();
    let mut open = vec![fake_root.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let attribute = entry.path().strip_prefix(&fake_root).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else if attribute != "subsystem" {
                seen += 1;
                let of_kernel = Path::new("/sys/block").join(real.name()).join(&attribute);
                // Who looks for labels has something in flight for a moment.
                let is_same = || fs::read_to_string(&of_kernel).is_ok_and(|raw| raw == read(entry.path()));
                if attribute == "inflight" {
                    crate::tool::wait_until(Duration::from_secs(60), is_same);
                }
                match fs::read_to_string(&of_kernel) {
                    Err(_) => lacking.push(attribute),
                    Ok(raw) if SAME.contains(&attribute.as_str()) => {
                        assert_eq!(raw, read(entry.path()), "{attribute}");
                    }
                    Ok(raw) => {
                        let words = |text: &str| text.split_whitespace().count();
                        if attribute == "stat" {
                            assert_eq!(words(&raw), words(&read(entry.path())), "{raw}");
                        }
                    }
                }
            }
        }
    }
    assert!(seen > 30, "{seen} files");
    assert!(lacking.is_empty(), "the kernel has no {lacking:?}");
}
