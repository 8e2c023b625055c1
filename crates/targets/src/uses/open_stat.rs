//! stat(2) of what other processes have open, by its link in procfs, without asking a server: a dead one would not answer. It opens
//! nothing.

use rdsk_sys::device_number::DeviceNumber;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file beyond its name: `st_dev` and `st_ino`.
pub(crate) type Inode = (u64, u64);

/// What stat(2) says, as far as it is needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: FileType,
    pub(crate) inode: Inode,
    pub(crate) size_bytes: u64,
    /// That of a device node.
    pub(crate) device: DeviceNumber,
}

impl Stat {
    fn of_statx(stat: &Statx) -> Self {
        Self {
            kind: FileType::from_raw_mode(u32::from(stat.stx_mode)),
            inode: (rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino),
            size_bytes: stat.stx_size,
            device: DeviceNumber { major: stat.stx_rdev_major, minor: stat.stx_rdev_minor },
        }
    }

    /// The answer of stat(2), which asks a server.
    fn of_any(link: &Path) -> Option<Self> {
        let meta = fs::metadata(link).ok()?;
        Some(Self {
            kind: FileType::from_raw_mode(meta.mode()),
            inode: (meta.dev(), meta.ino()),
            size_bytes: meta.len(),
            device: DeviceNumber::from_raw(meta.rdev()),
        })
    }
}

/// Of a file that is likely to be the one looked for, by its number or name.
pub(crate) fn stat_likely(link: &Path) -> Option<Stat> {
    either(statx(link), || Stat::of_any(link))
}

/// Of what may be a device node. `place` is where the link leads to.
pub(crate) fn stat_node(link: &Path, place: &Path) -> Option<Stat> {
    either(statx(link), || is_among_nodes(place).then(|| Stat::of_any(link)).flatten())
}

fn statx(link: &Path) -> Result<Stat, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE;
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(CWD, link, flags, wanted).map(|stat| Stat::of_statx(&stat))
}

/// The answer of statx(2), or that of stat(2) where there is none: before Linux 4.11, and under a filter of system calls that is older
/// than statx(2) and forbids what it does not know.
fn either(statx: Result<Stat, Errno>, stat: impl FnOnce() -> Option<Stat>) -> Option<Stat> {
    match statx {
        Err(Errno::NOSYS | Errno::PERM) => stat(),
        statx => statx.ok(),
    }
}

/// Whether a place is below a `dev`, that of another root directory included. Servers that may be dead have no nodes there.
fn is_among_nodes(place: &Path) -> bool {
    place.parent().is_some_and(|parent| parent.iter().any(|name| name == "dev"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_statx_stat_tells_the_same() {
        let null = Path::new("/dev/null");
        let stat = Stat::of_any(null).unwrap();
        assert_eq!(stat.kind, FileType::CharacterDevice);
        assert_eq!((stat.device.major, stat.device.minor), (1, 3));
        if let Ok(told) = statx(null) {
            assert_eq!(told, stat);
        }
        for refused in [Errno::NOSYS, Errno::PERM] {
            assert_eq!(either(Err(refused), || Some(stat)), Some(stat), "{refused}");
        }
        assert_eq!(either(Err(Errno::NOENT), || Some(stat)), None, "it has gone");
        assert_eq!(either(Ok(stat), || None), Some(stat));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "text").unwrap();
        let stat = Stat::of_any(file.path()).unwrap();
        assert_eq!((stat.kind, stat.size_bytes), (FileType::RegularFile, 4));
        assert_eq!(stat_likely(file.path()), Some(stat));
    }

    #[test]
    fn only_what_may_be_a_node_is_asked_for_without_statx() {
        for node in ["/dev/sdb", "/dev/mapper/vg-lv", "/srv/root/dev/sdb", "/dev/disk/by-id/x (deleted)"] {
            assert!(is_among_nodes(Path::new(node)), "{node}");
        }
        for file in ["/net/dead/home/x", "/dev", "/net/dead/dev", "", "/"] {
            assert!(!is_among_nodes(Path::new(file)), "{file}");
        }
    }
}
