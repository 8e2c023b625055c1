//! Which block devices there are, and which of them a name means. It reads directories and opens no device: the last close of
//! a block device would write its dirty pages.

use super::Choice;
use crate::ObserveError;
use crate::stack::btrfs_devices;
use crate::sysfs::{MAX_LEVELS, block_path, kernel_name, name_by_number};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{is_numbered, names_in, read_word};
use rdsk_sys::mounts::{Mount, mount_of, mounts_of};
use rustix::fs::{FileType, stat};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Every whole disk, by kernel name.
pub(super) fn whole_disks(sys: &Path) -> Vec<String> {
    names_in(&sys.join("block")).iter().map(|name| kernel_name(name)).collect()
}

/// Whether a disk is shown even while it does nothing: it has a medium, and is neither a loop nor a ram device.
pub(super) fn is_disk_of_its_own(name: &str, sys: &Path) -> bool {
    !is_numbered(name, "loop") && !is_numbered(name, "ram") && has_medium(name, sys)
}

/// The devices that BPF programs can count, each once: those named, or every disk with a medium.
pub(super) fn countable(choice: &Choice, sys: &Path) -> Vec<String> {
    match choice {
        Choice::Named(names) => names.clone(),
        Choice::All => {
            let mut names = whole_disks(sys);
            names.retain(|name| has_medium(name, sys));
            names.sort_by_key(|name| natural(name));
            names
        }
    }
}

/// A device that has just gone has no size either; its last row is that it vanished.
fn has_medium(name: &str, sys: &Path) -> bool {
    read_word(&block_path(sys, name).join("size")).is_none_or(|size| size != "0")
}

/// The key by which names are sorted: `sda` before `sdb`, `loop2` before `loop10`, the letters first, then the number.
pub fn natural(name: &str) -> (String, u64, String) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters.to_owned(), name[letters.len()..].parse().unwrap_or(0), name.to_owned())
}

/// The kernel names of the devices that `name` means: a kernel name, a path of a device or a link to one, or the device
/// below the file or directory of that path; several for one on a btrfs of several devices. `proc` and `sys` are
/// `/proc` and `/sys`.
///
/// # Errors
/// If there is no such path, or no block device below it.
pub fn devices_of(name: &OsStr, sys: &Path, proc: &Path) -> Result<Vec<String>, ObserveError> {
    if let Some(plain) = name.to_str()
        && !plain.is_empty()
        && !plain.contains("..")
        && block_path(sys, plain).join("stat").exists()
    {
        return Ok(vec![plain.to_owned()]);
    }
    let path = Path::new(name);
    let unreadable = |source: io::Error| ObserveError::Read { path: path.to_owned(), source };
    let facts = stat(path).map_err(|error| unreadable(error.into()))?;
    let names = if FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice {
        numbered(facts.st_rdev, sys).into_iter().collect()
    } else {
        // The number goes first: a device may carry the file without being named by a mount that is seen here.
        match numbered(facts.st_dev, sys) {
            Some(device) => vec![device],
            None => mounted_from(&path.canonicalize().map_err(unreadable)?, sys, proc),
        }
    };
    if names.is_empty() { Err(ObserveError::NoDevice { path: path.to_owned() }) } else { Ok(names) }
}

/// Where all that is dirty of what `name` means can be flushed: the filesystems mounted from that device or from a partition of it, each
/// once; the node of a device that carries none; of a file or directory its own path.
pub fn flush_places(name: &OsStr, sys: &Path, proc: &Path) -> Vec<PathBuf> {
    let is_device = |path: &Path| {
        stat(path).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice)
    };
    let is_kernel_name = name.to_str().is_some_and(|plain| block_path(sys, plain).join("stat").exists());
    if !is_kernel_name && !is_device(Path::new(name)) {
        let path = Path::new(name);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        return vec![if path.is_dir() { path } else { parent.unwrap_or(Path::new(".")) }.to_owned()];
    }
    let mounts = mounts_of(&proc.join("self"));
    let places = |device: String| {
        let is_on = |mount: &&Mount| {
            let carrier = name_by_number(sys, mount.number).or_else(|| of_source(&mount.source, sys));
            carrier
                .is_some_and(|carrier| carrier == device || block_path(sys, &device).join(&carrier).is_dir())
        };
        let mut on_it: Vec<&Mount> = mounts.iter().filter(is_on).collect();
        on_it.sort_by_key(|mount| mount.number);
        on_it.dedup_by_key(|mount| mount.number);
        let node = Path::new("/dev").join(device.replace('!', "/"));
        let points: Vec<PathBuf> = on_it.into_iter().map(|mount| mount.point.clone()).collect();
        if points.is_empty() { vec![node] } else { points }
    };
    devices_of(name, sys, proc).unwrap_or_default().into_iter().flat_map(places).collect()
}

/// The name of the device with this number of stat(2).
fn numbered(raw: u64, sys: &Path) -> Option<String> {
    name_by_number(sys, DeviceNumber::from_raw(raw))
}

/// The devices of a filesystem whose files have no device's number: each subvolume of btrfs has one of its own, which no mount
/// shows either, and an overlay's files lie in its upper directory. `path` has no symlinks.
fn mounted_from(path: &Path, sys: &Path, proc: &Path) -> Vec<String> {
    let mounts = mounts_of(&proc.join("self"));
    let mut path = path.to_owned();
    for _ in 0..MAX_LEVELS {
        let Some(mount) = mount_of(&mounts, &path) else { return Vec::new() };
        // bcachefs names all that it lies on: `/dev/sda:/dev/sdb`.
        let sources =
            mount.source.as_os_str().as_bytes().split(|&byte| byte == b':' && mount.kind == "bcachefs");
        let mut names: Vec<String> =
            sources.filter_map(|source| of_source(Path::new(OsStr::from_bytes(source)), sys)).collect();
        if let Some((_, members)) = names.first().and_then(|device| btrfs_devices(device, sys)) {
            names = members;
        }
        let Some(upper) = mount.super_option("upperdir").filter(|_| names.is_empty()) else { return names };
        let device = stat(&upper).ok().and_then(|facts| numbered(facts.st_dev, sys));
        match (device, upper.canonicalize()) {
            (Some(device), _) => return vec![device],
            (None, Ok(upper)) => path = upper,
            (None, Err(_)) => return Vec::new(),
        }
    }
    Vec::new()
}

/// The device that a mount names as its source, which may also be any word.
fn of_source(source: &Path, sys: &Path) -> Option<String> {
    let facts = stat(source.starts_with("/dev").then_some(source)?).ok()?;
    let is_device = FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice;
    is_device.then(|| numbered(facts.st_rdev, sys))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::{FakeDisk, FakeSys, Need, requires};
    use rustix::fs::{CWD, Mode, makedev, mknodat};
    use std::fs;

    #[test]
    fn names_paths_and_directories_lead_to_a_device() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).partition("sda", 1, 1 << 20, 1 << 20);
        let of = |name: &str| devices_of(OsStr::new(name), &fake.sys(), &fake.proc());
        assert_eq!(of("sda").unwrap(), ["sda"]);
        assert_eq!(of("sda1").unwrap(), ["sda1"]);
        assert!(matches!(of("sdz"), Err(ObserveError::Read { .. })));
        assert!(matches!(of("../sda"), Err(ObserveError::Read { .. })));
        // No device of the fake tree carries the test's own directory.
        assert!(matches!(of(env!("CARGO_MANIFEST_DIR")), Err(ObserveError::NoDevice { .. })));
        let found = stat(env!("CARGO_MANIFEST_DIR")).unwrap();
        let number = DeviceNumber::from_raw(found.st_dev).to_string();
        let link = fake.sys().join("dev/block").join(number);
        std::os::unix::fs::symlink(fake.sys().join("class/block/sda"), link).unwrap();
        assert_eq!(of(env!("CARGO_MANIFEST_DIR")).unwrap(), ["sda"]);
        assert_eq!(of(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap(), ["sda"]);
    }

    /// A filesystem whose files have a number that neither a device nor a mount has. The mount's source is a node of our own below /dev,
    /// since any other may go meanwhile; the fake tree has a disk for its number.
    #[test]
    fn files_of_a_subvolume_lead_to_the_devices_of_their_filesystem() {
        if !requires(&[Need::Root]) {
            return;
        }
        let nodes = tempfile::tempdir_in("/dev/shm").unwrap();
        let node = nodes.path().join("of-a-test");
        let number = makedev(240, 17);
        mknodat(CWD, &node, FileType::BlockDevice, Mode::empty(), number).unwrap();
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).disk(FakeDisk::scsi("sdb"));
        let link = fake.sys().join("dev/block").join(DeviceNumber::from_raw(number).to_string());
        std::os::unix::fs::symlink(fake.sys().join("class/block/sdb"), link).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap().join("a b/over/upper");
        fs::create_dir_all(&place).unwrap();
        let escaped = |path: &Path| path.display().to_string().replace(' ', "\\040");
        let (upper, over) = (escaped(&place), escaped(place.parent().unwrap()));
        let of = |mounts: &str| {
            fs::write(fake.proc().join("self/mountinfo"), mounts).unwrap();
            devices_of(place.as_os_str(), &fake.sys(), &fake.proc())
        };
        let source = node.display();
        let btrfs = format!("30 1 0:40 /@ {over} rw shared:1 - btrfs {source} rw,subvol=/@\n");
        assert_eq!(of(&btrfs).unwrap(), ["sdb"]);
        let of_several = fake.sys().join("fs/btrfs/5a/devices");
        fs::create_dir_all(&of_several).unwrap();
        for name in ["sda", "sdb"] {
            std::os::unix::fs::symlink(fake.sys().join("class/block").join(name), of_several.join(name))
                .unwrap();
        }
        assert_eq!(of(&btrfs).unwrap(), ["sdb", "sda"]);
        let overlay = format!("31 30 0:41 / {upper} rw - overlay overlay rw,lowerdir=/l,upperdir={over}\n");
        assert_eq!(
            of(&format!("{btrfs}{overlay}")).unwrap(),
            ["sdb", "sda"],
            "the upper directory is on a subvolume"
        );
        assert!(
            matches!(of(&overlay), Err(ObserveError::NoDevice { .. })),
            "no mount has the upper directory"
        );
        let memory = format!("{btrfs}32 30 0:42 / {upper} rw - tmpfs tmpfs rw\n");
        assert!(matches!(of(&memory), Err(ObserveError::NoDevice { .. })));
        let both = format!("30 1 0:40 / {over} rw - bcachefs {source}:/dev/none rw\n");
        fs::remove_dir_all(fake.sys().join("fs/btrfs")).unwrap();
        assert_eq!(of(&both).unwrap(), ["sdb"]);
    }

    #[test]
    fn loop_and_ram_devices_and_empty_drives_are_no_disks_of_their_own() {
        let empty = FakeDisk { size_bytes: 0, ..FakeDisk::scsi("sr0") };
        let fake = FakeSys::new()
            .disk(FakeDisk::scsi("sda"))
            .disk(FakeDisk::loop_device("loop0", 4096))
            .disk(FakeDisk { major_minor: (11, 0), ..empty });
        let shown = |name: &str| is_disk_of_its_own(name, &fake.sys());
        assert!(shown("sda") && shown("ramdisk"));
        assert!(!shown("loop0") && !shown("ram3") && !shown("sr0"));
        assert_eq!(countable(&Choice::All, &fake.sys()), ["loop0", "sda"]);
    }

    #[test]
    fn numbers_are_in_order() {
        let mut names = ["loop10", "sdb", "loop2", "sda", "nvme0n1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["loop2", "loop10", "nvme0n1", "sda", "sdb"]);
    }
}
