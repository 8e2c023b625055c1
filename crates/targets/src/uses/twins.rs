//! A file that a filesystem shows of another one, under another device number: a directory passed through by FUSE (bindfs, mergerfs,
//! sshfs), a directory that this machine serves to itself (NFS, 9p, SMB), a layer of an overlay. Who uses the file there is not found by
//! its numbers here, so what has its size, and its inode number or its name, counts as it. It reads procfs and stat(2) and opens nothing.

use crate::display::shown;
use crate::machine::Machine;
use crate::probe;
use crate::uses::processes::{Descriptor, Inode, writers_of};
use crate::uses::{InUse, UseKind};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// include/uapi/linux/magic.h, and the sources of SMB, 9p and Ceph: filesystems that may show files of others. FUSE, NFS, overlay,
/// eCryptfs, 9p, SMB 1 and 2, AFS, Ceph.
const SHOWING_TYPES: [u64; 9] = [
    0x6573_5546, 0x6969, 0x794c_7630, 0xf15f, 0x0102_1997, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x00c3_6400,
];

/// What is the same of a file wherever it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown<'path> {
    path: &'path Path,
    inode: Inode,
    size_bytes: u64,
}

impl<'path> Shown<'path> {
    /// The file, if its filesystem may show it of another one.
    fn new(path: &'path Path) -> Option<Self> {
        let meta = fs::metadata(path).ok().filter(Metadata::is_file)?;
        shows_others(path).then(|| Self { path, inode: (meta.dev(), meta.ino()), size_bytes: meta.len() })
    }

    /// Whether a file of another filesystem may be this one.
    fn may_be(&self, path: &Path, (device, number): Inode, size_bytes: u64) -> bool {
        let is_alike = number == self.inode.1 || path.file_name() == self.path.file_name();
        device != self.inode.0 && size_bytes == self.size_bytes && is_alike
    }

    fn may_be_at(&self, path: &Path) -> bool {
        let is_it = |meta: &Metadata| self.may_be(path, (meta.dev(), meta.ino()), meta.len());
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && is_it(&meta)) && !shows_others(path)
    }
}

/// Whether the file at `path` may be one of another filesystem. Two of these are not compared with each other: equal names on two
/// servers are no evidence, and the program that serves them has the files below open.
fn shows_others(path: &Path) -> bool {
    probe::filesystem_type(path).is_some_and(|kind| SHOWING_TYPES.contains(&kind))
}

/// Adds what the kernel uses that may be the file at `path`: files below loop devices, swap files, mounted files.
pub(crate) fn find(machine: &Machine<'_>, path: &Path, usage: &mut InUse) {
    let Some(file) = Shown::new(path) else { return };
    let may_show = |what: &Path| format!("{}, which may be this file", shown(what));
    for node in machine.tree.nodes() {
        if let Some(backing) = node.backing_file.as_deref().filter(|backing| file.may_be_at(backing)) {
            let text = format!("{} keeps its data in {}", node.name, may_show(backing));
            usage.add(UseKind::BackingFile, &text);
        }
    }
    for swap in machine.swaps.iter().filter(|swap| file.may_be_at(swap)) {
        usage.add(UseKind::Swap, &may_show(swap));
    }
    let is_file = |source: &Path| source.is_absolute() && file.may_be_at(source);
    for mount in machine.mounts.iter().filter(|mount| mount.kind != "autofs" && is_file(&mount.source)) {
        usage.add(UseKind::Mounted, &format!("{}, from {}", mount.point.display(), may_show(&mount.source)));
    }
}

/// Adds the processes that have a file open for writing that may be the one at `path`. While this process has it open itself, the program
/// behind a filesystem in user space has, too.
pub(crate) fn find_writers(proc: &Path, path: &Path, usage: &mut InUse) {
    let Some(file) = Shown::new(path) else { return };
    let is_it = |open: &Descriptor<'_>| {
        let is_likely =
            open.inode_number == Some(file.inode.1) || open.path.file_name() == file.path.file_name();
        let is_it = |(inode, size_bytes)| file.may_be(open.path, inode, size_bytes);
        is_likely && open.stat().is_some_and(is_it) && !shows_others(open.link)
    };
    writers_of(proc, is_it, usage);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_size_and_its_number_or_name() {
        let file = Shown { path: Path::new("/pool/disk.img"), inode: (39, 77), size_bytes: 1 << 20 };
        let of = |path: &str, inode, size_bytes| file.may_be(Path::new(path), inode, size_bytes);
        assert!(of("/srv/disk.img", (8, 77), 1 << 20), "its number and its name");
        assert!(of("/srv/other", (8, 77), 1 << 20), "its number");
        assert!(of("/srv/disk.img", (8, 5), 1 << 20), "its name: some filesystems have numbers of their own");
        assert!(!of("/srv/other", (8, 5), 1 << 20));
        assert!(!of("/srv/disk.img", (8, 77), 1 << 19));
        assert!(!of("/pool/b/disk.img", (39, 5), 1 << 20), "another file of the same filesystem");
    }

    #[test]
    fn files_of_local_filesystems_are_only_what_they_are() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_overlay = probe::is_overlay(file.path());
        assert_eq!(Shown::new(file.path()).is_some(), is_overlay);
        assert_eq!(Shown::new(Path::new("/nonexistent")), None);
    }
}
