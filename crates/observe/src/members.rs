//! The members of an array and their counters, read between two I/Os: the kernel's counters of the devices directly below
//! it, or those of a simulated array. It does not interpret the figures.

use crate::diskstat::StatFile;
use crate::stack::{Share, below_in};
use crate::sysfs::{MAX_LEVELS, name_of};
use rdsk_disk::{LunId, SharedLab};
use rdsk_model::{MemberCounters, MemberIo, Target};
use std::path::{Path, PathBuf};

/// The devices directly below an array, with their `stat` files open.
#[derive(Debug)]
pub struct KernelMembers {
    files: Vec<StatFile>,
}

impl KernelMembers {
    /// The members of the array that the target is, lies on, or is a partition of: those that carry data, not the volumes
    /// and disks that hold metadata or a journal, and not the paths of one device. `None` if no device below it has
    /// several members, or if a member's counters cannot be read.
    pub fn of(target: &Target, sys: &Path) -> Option<Self> {
        let device = target.device.as_ref()?;
        let mut directory = sys.join("dev/block").join(&device.major_minor);
        for _ in 0..MAX_LEVELS {
            let (holder, name) = holder_of(&directory)?;
            let below = below_in(target, &name, &holder, sys)?;
            match (below.share, below.directories.as_slice()) {
                // All paths lead to one device, so they are not members. If that device is an array, its members are
                // not visible.
                (Share::Paths, _) | (_, []) => return None,
                (Share::Members, [only]) => directory.clone_from(only),
                (Share::Members, many) => {
                    let files = many.iter().map(|member| StatFile::open(member.join("stat")));
                    return files.collect::<Result<Vec<_>, _>>().ok().map(|files| Self { files });
                }
            }
        }
        None
    }
}

/// The directory and name of the device that has others below it; for a partition, those of its disk.
fn holder_of(directory: &Path) -> Option<(PathBuf, String)> {
    let own = directory.canonicalize().ok()?;
    let holder = if own.join("partition").exists() { own.parent()?.to_owned() } else { own };
    let name = name_of(&holder)?;
    Some((holder, name))
}

impl MemberCounters for KernelMembers {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn read(&self, into: &mut [MemberIo]) {
        for (file, into) in self.files.iter().zip(into) {
            let Ok(stat) = file.read() else { continue };
            *into = MemberIo {
                reads: stat.read_ios,
                read_bytes: stat.read_bytes(),
                writes: stat.write_ios,
                write_bytes: stat.write_bytes(),
            };
        }
    }
}

/// The members of a simulated array.
#[derive(Debug)]
pub struct SimMembers {
    lab: SharedLab,
    lun: LunId,
    count: usize,
}

impl SimMembers {
    /// The members of a LUN that is an array; `None` for any other device.
    pub fn of(lab: SharedLab, lun: LunId) -> Option<Self> {
        let count = lab.lock().host(lun.host).paths().device(lun.lun).member_counts().len();
        (count > 1).then_some(Self { lab, lun, count })
    }
}

impl MemberCounters for SimMembers {
    fn count(&self) -> usize {
        self.count
    }

    fn read(&self, into: &mut [MemberIo]) {
        let lab = self.lab.lock();
        let counts = lab.host(self.lun.host).paths().device(self.lun.lun).member_counts();
        for (count, into) in counts.iter().zip(into) {
            *into = MemberIo {
                reads: count.reads,
                read_bytes: count.read_bytes,
                writes: count.writes,
                write_bytes: count.write_bytes,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{ArrayFacts, Device, TargetKind};
    use std::fs;
    use std::os::unix::fs::symlink;

    fn target(major_minor: &str) -> Target {
        Target {
            index: 0,
            name: "array".into(),
            kind: TargetKind::Block,
            path: None,
            size_bytes: 1 << 30,
            filesystem: None,
            device: Some(Device { major_minor: major_minor.into(), ..Device::default() }),
            stack: Vec::new(),
            made_by_rdsk: false,
            other_devices: Vec::new(),
            laid_out: None,
            direct_io: Some(true),
            direct_align_bytes: None,
            nowait: None,
            dontcache: None,
        }
    }

    /// A volume group on an array with a partition: dm-0 on md0p1 of md0 of sda, sdb and sdc.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path();
        let disks = ["sda", "sdb", "sdc"];
        for (number, disk) in disks.iter().enumerate() {
            let directory = sys.join("devices").join(disk);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("stat"), format!("{number} 0 8 0 5 0 16 0 0 0 0\n")).unwrap();
        }
        for (name, number) in [("md0", "9:0"), ("md0/md0p1", "259:0"), ("dm-0", "253:0"), ("sda", "8:0")] {
            let directory = sys.join("devices").join(name);
            fs::create_dir_all(directory.join("slaves")).unwrap();
            fs::create_dir_all(sys.join("dev/block")).unwrap();
            symlink(&directory, sys.join("dev/block").join(number)).unwrap();
        }
        for disk in disks {
            symlink(sys.join("devices").join(disk), sys.join("devices/md0/slaves").join(disk)).unwrap();
        }
        fs::write(sys.join("devices/md0/md0p1/partition"), "1\n").unwrap();
        fs::remove_dir(sys.join("devices/md0/md0p1/slaves")).unwrap();
        symlink(sys.join("devices/md0/md0p1"), sys.join("devices/dm-0/slaves/md0p1")).unwrap();
        root
    }

    #[test]
    fn the_members_are_found_below_volumes_and_partitions() {
        let root = tree();
        for device in ["9:0", "259:0", "253:0"] {
            let members = KernelMembers::of(&target(device), root.path()).expect(device);
            assert_eq!(members.count(), 3, "{device}");
            let mut seen = vec![MemberIo::default(); 3];
            members.read(&mut seen);
            assert_eq!(seen[2], MemberIo { reads: 2, read_bytes: 4096, writes: 5, write_bytes: 8192 });
        }
        assert!(KernelMembers::of(&target("8:0"), root.path()).is_none(), "a disk is no array");
        assert!(KernelMembers::of(&target("1:99"), root.path()).is_none());
    }

    /// As dmsetup makes it, whose devices have no UUID.
    #[test]
    fn paths_of_one_device_are_no_members() {
        let root = tree();
        let mut target = target("253:0");
        let slaves = root.path().join("devices/dm-0/slaves");
        fs::remove_file(slaves.join("md0p1")).unwrap();
        for disk in ["sda", "sdb"] {
            symlink(root.path().join("devices").join(disk), slaves.join(disk)).unwrap();
        }
        assert_eq!(KernelMembers::of(&target, root.path()).map(|members| members.count()), Some(2));
        let facts =
            ArrayFacts { device: "dm-0".into(), level: Some("multipath".into()), ..ArrayFacts::default() };
        target.device.as_mut().unwrap().array = Some(facts);
        assert!(KernelMembers::of(&target, root.path()).is_none());
    }

    #[test]
    fn a_reading_follows_the_counters() {
        let root = tree();
        let members = KernelMembers::of(&target("9:0"), root.path()).unwrap();
        let mut seen = vec![MemberIo::default(); 3];
        members.read(&mut seen);
        let before = seen.clone();
        fs::write(root.path().join("devices/sda/stat"), "1 0 16 0 6 0 24 0 0 0 0\n").unwrap();
        members.read(&mut seen);
        assert_eq!(
            seen[0].since(&before[0]),
            MemberIo { reads: 1, read_bytes: 4096, writes: 1, write_bytes: 4096 }
        );
        assert_eq!(seen[1].since(&before[1]), MemberIo::default());
    }
}
