//! Reads the fake tree as a program would read the real one, and compares the two if there is a real one.

use super::*;
use crate::requires::{Need, requires};

const GIB: u64 = 1 << 30;

/// Two disks, an array over a partition, a volume on it, and a loop device.
fn machine() -> FakeSys {
    FakeSys::new()
        .disk(FakeDisk::scsi("sda"))
        .partition("sda", 1, 1 << 20, 8 * GIB)
        .partition("sda", 2, 9 * GIB, 100 * GIB)
        .disk(FakeDisk { iostats: false, ..FakeDisk::scsi("sdb") })
        .disk(FakeDisk::nvme("nvme0n1"))
        .partition("nvme0n1", 1, 1 << 20, 50 * GIB)
        .disk(FakeDisk::md("md0", "raid5", 4, 512 << 10, 90 * GIB))
        .disk(FakeDisk::dm("dm-3", "vg0-my home", "LVM-abc", 80 * GIB))
        .disk(FakeDisk::loop_device("loop9", GIB))
        .holder("sda2", "md0")
        .holder("md0", "dm-3")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

#[test]
fn every_way_to_a_disk_ends_in_one_directory() {
    let fake = machine();
    for (name, number) in
        [("sda", "8:0"), ("sdb", "8:16"), ("nvme0n1", "259:0"), ("dm-3", "253:3"), ("loop9", "7:9")]
    {
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
fn drivers_have_files_of_their_own() {
    let fake = machine();
    let block = fake.sys().join("block");
    assert_eq!(read(block.join("dm-3/dm/name")), "vg0-my home\n");
    assert_eq!(read(block.join("dm-3/dm/uuid")), "LVM-abc\n");
    assert_eq!(read(block.join("md0/md/level")), "raid5\n");
    assert_eq!(
        (read(block.join("sda/queue/iostats")), read(block.join("sdb/queue/iostats"))),
        ("1\n".into(), "0\n".into())
    );
    // Drivers that take requests have hardware queues; those that take bios have none.
    assert!(block.join("sda/mq").is_dir() && !block.join("md0/mq").exists());
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
fn counters_and_attributes_change() {
    let fake = machine();
    let stat: [u64; STAT_FIELDS] = std::array::from_fn(|index| index as u64 * 11);
    fake.set_stat("sda", stat);
    let text = read(fake.sys().join("block/sda/stat"));
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    assert_eq!(fields, stat);
    fake.set_attribute("sda", "queue/iostats", "0\n");
    assert_eq!(read(fake.sys().join("block/sda/queue/iostats")), "0\n");
}

#[test]
#[should_panic(expected = "there is no device sdz")]
fn what_is_not_there_cannot_be_cut() {
    let _ = FakeSys::new().partition("sdz", 1, 0, 512);
}

#[test]
#[should_panic(expected = "already")]
fn two_disks_cannot_share_a_number() {
    let _ = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sda"));
}

/// A real loop device beside its fake: every fake file exists on the real one, and both say the same where it does not depend on the
/// machine.
#[test]
fn a_real_loop_device_has_the_same_files() {
    const OF_THE_MACHINE: [&str; 3] = ["stat", "queue/rotational", "mq/0/nr_tags"];
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let real = crate::LoopDevice::builder().size(1 << 20).create().unwrap();
    let fake = FakeSys::new().disk(FakeDisk::loop_device(real.name(), 1 << 20));
    let root = fs::canonicalize(fake.sys().join("block").join(real.name())).unwrap();
    let mut files = 0;
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let attribute = entry.path().strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            files += 1;
            let of_kernel = read(Path::new("/sys/block").join(real.name()).join(&attribute));
            if attribute == "stat" {
                let words = |text: &str| text.split_whitespace().count();
                assert_eq!(words(&of_kernel), words(&read(entry.path())), "{of_kernel}");
            } else if !OF_THE_MACHINE.contains(&attribute.as_str()) {
                assert_eq!(of_kernel, read(entry.path()), "{attribute}");
            }
        }
    }
    assert!(files > 12, "{files} files");
}
