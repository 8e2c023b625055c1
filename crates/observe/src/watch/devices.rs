//! Which block devices there are, and which of them a name means. It reads directories and opens no device: the last close of
//! a block device would write its dirty pages.

use super::Choice;
use crate::ObserveError;
use crate::sysfs::{block_path, is_number, name_of};
use crate::{read_text, read_trimmed};
use rustix::fs::{FileType, major, minor, stat};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Every whole disk, by kernel name.
pub(super) fn whole_disks(sys: &Path) -> Vec<String> {
    let entries = fs::read_dir(sys.join("block")).into_iter().flatten().flatten();
    entries.filter_map(|entry| name_of(&entry.path())).collect()
}

/// Whether a disk is shown even while it does nothing: it has a medium, and is neither a loop nor a ram device.
pub(super) fn is_disk_of_its_own(name: &str, sys: &Path) -> bool {
    let is_numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(is_number);
    !is_numbered("loop") && !is_numbered("ram") && has_medium(name, sys)
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
    read_trimmed(&block_path(sys, name).join("size")).is_none_or(|size| size != "0")
}

/// The key by which names are sorted: `sda` before `sdb`, `loop2` before `loop10`, the letters first, then the number.
pub fn natural(name: &str) -> (String, u64, String) {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (letters.to_owned(), name[letters.len()..].parse().unwrap_or(0), name.to_owned())
}

/// The kernel name of the device that `name` means: a kernel name, a path of a device or a link to one, or the device below
/// the file or directory of that path. `proc` and `sys` are `/proc` and `/sys`.
///
/// # Errors
/// If there is no such path, or no block device below it.
pub fn device_of(name: &OsStr, sys: &Path, proc: &Path) -> Result<String, ObserveError> {
    if let Some(plain) = name.to_str()
        && !plain.is_empty()
        && !plain.contains("..")
        && block_path(sys, plain).join("stat").exists()
    {
        return Ok(plain.to_owned());
    }
    let path = Path::new(name);
    let found =
        stat(path).map_err(|error| ObserveError::Read { path: path.to_owned(), source: error.into() })?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    let number = if is_device { found.st_rdev } else { found.st_dev };
    let none = || ObserveError::NoDevice { path: path.to_owned() };
    let number = (major(number), minor(number));
    numbered(number, sys).or_else(|| mounted_from(number, sys, proc)).ok_or_else(none)
}

/// The name of the device with this number.
fn numbered((major, minor): (u32, u32), sys: &Path) -> Option<String> {
    let directory = fs::canonicalize(sys.join("dev/block").join(format!("{major}:{minor}"))).ok()?;
    name_of(&directory)
}

/// The device from which a filesystem without a device number of its own is mounted, as btrfs is.
fn mounted_from((major, minor): (u32, u32), sys: &Path, proc: &Path) -> Option<String> {
    let number = format!("{major}:{minor}");
    let mounts = read_text(&proc.join("self/mountinfo")).ok()?;
    let source = mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        (mount.split(' ').nth(2)? == number).then(|| filesystem.split(' ').nth(1))?
    })?;
    let source = PathBuf::from(OsStr::from_bytes(source.as_bytes()));
    let found = stat(source.starts_with("/dev").then_some(source)?).ok()?;
    let is_device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
    is_device.then(|| numbered((rustix::fs::major(found.st_rdev), rustix::fs::minor(found.st_rdev)), sys))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::{FakeDisk, FakeSys};

    #[test]
    fn names_paths_and_directories_lead_to_a_device() {
        let fake = FakeSys::new().disk(FakeDisk::scsi("sda")).partition("sda", 1, 1 << 20, 1 << 20);
        let of = |name: &str| device_of(OsStr::new(name), &fake.sys(), &fake.proc());
        assert_eq!(of("sda").unwrap(), "sda");
        assert_eq!(of("sda1").unwrap(), "sda1");
        assert!(matches!(of("sdz"), Err(ObserveError::Read { .. })));
        assert!(matches!(of("../sda"), Err(ObserveError::Read { .. })));
        // No device of the fake tree carries the test's own directory.
        assert!(matches!(of(env!("CARGO_MANIFEST_DIR")), Err(ObserveError::NoDevice { .. })));
        let found = stat(env!("CARGO_MANIFEST_DIR")).unwrap();
        let number = format!("{}:{}", major(found.st_dev), minor(found.st_dev));
        let link = fake.sys().join("dev/block").join(number);
        std::os::unix::fs::symlink(fake.sys().join("class/block/sda"), link).unwrap();
        assert_eq!(of(env!("CARGO_MANIFEST_DIR")).unwrap(), "sda");
        assert_eq!(of(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap(), "sda");
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
