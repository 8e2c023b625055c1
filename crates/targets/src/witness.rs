//! What a file, directory or block device is that another program has open: its facts for a Record, and a handle on it that is no opener, to
//! read and flush it after the other has closed it. It authorizes nothing and never opens anything for writing.

use crate::DeviceNumber;
use crate::examine::file_target;
use crate::facts;
use crate::machine::{Machine, mount_of};
use crate::probe;
use crate::roots::Roots;
use crate::uses::InUse;
use rdsk_model::{Device, ExtentEvidence, Target, TargetKind};
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// A regular file, directory or block device that another program opened.
#[derive(Debug)]
pub struct Witness {
    /// Its facts.
    pub target: Target,
    /// `O_PATH`, which does not count as an opener: the other's last close stays the last.
    handle: OwnedFd,
}

impl Witness {
    /// Describes what `fd` has open, which the user called `name`; nothing for pipes, terminals and character devices, and
    /// where `/proc` does not say.
    pub fn of(fd: impl AsFd, name: &str, roots: &Roots) -> Option<Self> {
        let stat = rustix::fs::fstat(&fd).ok()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::BlockDevice) {
            return None;
        }
        let link = link_of(fd);
        let handle = rustix::fs::open(&link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let path = std::fs::read_link(&link).ok()?;
        let machine = Machine::read(roots, &mut InUse::default());
        let mut target = if kind == FileType::BlockDevice {
            block_target(name, &path, DeviceNumber::from_raw(stat.st_rdev), &machine)
        } else {
            let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
            file_target(name, &path, size_bytes, &machine, mount_of(&machine.mounts, &path))
        };
        let logical = target.device.as_ref().and_then(|device| device.logical_block_bytes);
        target.direct_align_bytes = probe::direct_align(&path).or(logical);
        Some(Self { target, handle })
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        Ok(rustix::fs::open(link_of(&self.handle), flags, Mode::empty())?)
    }

    /// How long a file is now, which changes while it is written; `None` for a block device.
    pub fn size_bytes(&self) -> Option<u64> {
        let is_file = self.target.kind == TargetKind::File;
        let stat = rustix::fs::fstat(&self.handle).ok().filter(|_| is_file)?;
        u64::try_from(stat.st_size).ok()
    }

    /// How `len` bytes from `offset` are allocated on the filesystem; dirty pages stay where they are, and count as mapped where
    /// they have no place yet. `None` for a block device and if the filesystem does not report it.
    pub fn allocation(&self, offset: u64, len: u64) -> Option<ExtentEvidence> {
        let is_file = self.target.kind == TargetKind::File;
        is_file.then(|| probe::allocation(self.open().ok()?, offset, len, probe::Flush::Never)).flatten()
    }
}

fn link_of(fd: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()).into()
}

fn block_target(name: &str, path: &Path, number: DeviceNumber, machine: &Machine<'_>) -> Target {
    let node = machine.tree.by_number(number);
    let device = node.map(|node| facts::device(&machine.tree, node, &machine.mapper));
    Target {
        name: name.to_owned(),
        kind: TargetKind::Block,
        path: Some(path.to_string_lossy().into_owned()),
        size_bytes: device.as_ref().and_then(|device| device.size_bytes).unwrap_or(0),
        device: device.map(|device| Device { major_minor: number.to_string(), ..device }),
        stack: node.map(|node| machine.tree.kernel_names(node)).unwrap_or_default(),
        ..Target::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn an_open_file_is_described_and_can_be_read_after_its_close() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let opened = file.reopen().unwrap();
        let witness = Witness::of(&opened, "mine", &Roots::default()).unwrap();
        drop(opened);
        let target = &witness.target;
        assert_eq!((target.name.as_str(), target.kind, target.size_bytes), ("mine", TargetKind::File, 8192));
        assert!(target.filesystem.is_some(), "{target:?}");
        let mut read = [0; 10];
        assert_eq!(rustix::io::pread(witness.open().unwrap(), &mut read, 8190).unwrap(), 2);
        assert_eq!(read[..3], [7, 7, 0]);
    }

    #[test]
    fn what_is_no_storage_is_not_described() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        assert!(Witness::of(reader, "pipe", &Roots::default()).is_none());
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(Witness::of(null, "null", &Roots::default()).is_none());
    }
}
