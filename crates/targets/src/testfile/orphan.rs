//! Finds and removes test files that a killed rdsk left behind. A file is one only if everything matches: the exact
//! name, a regular file, the user whom new files get here, one link, the mark, and no lock. It never follows a link and never
//! waits. A file that has the name and no lock, and stays all the same, is reported.

use crate::error::TargetError;
use crate::testfile::registry::{MARK_NAME, MARK_VALUE, TestFile, TestFileLeft, is_file_name};
use rdsk_model::Filesystem;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A test file that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedOrphan {
    /// Where it was.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// What became of the files in a directory that have the name of a test file and that no process holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Those that were removed.
    pub removed: Vec<RemovedOrphan>,
    /// Those that stay: they could not be removed, or are not surely ours.
    pub left: Vec<TestFileLeft>,
}

/// Removes the orphans in `directory`, which lies on `filesystem`. A file that any process still holds locked stays.
///
/// # Errors
/// If the directory cannot be read.
pub fn remove_orphans(directory: &Path, filesystem: Option<&Filesystem>) -> Result<Orphans, TargetError> {
    let failed = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENOTDIR) => TargetError::NotDirectory { path: crate::display::shown(directory) },
        _ => TargetError::from_io(directory, "read", error),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(directory, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let entries = std::fs::read_dir(directory).map_err(failed)?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // All names first: a file that shows the owner must not be among them.
    let names: Vec<String> = names.filter(|name| is_file_name(name)).collect();
    let place = Looked { directory, parent, filesystem, owner: OnceCell::new() };
    let mut orphans = Orphans::default();
    for name in names {
        let path = directory.join(&name);
        match place.remove(&name) {
            Fate::Removed(bytes) => orphans.removed.push(RemovedOrphan { path, bytes }),
            Fate::Left(reason) => orphans.left.push(TestFileLeft { path, reason }),
            Fate::Passed => {}
        }
    }
    Ok(orphans)
}

/// What became of a file with the name of a test file.
enum Fate {
    /// It was an orphan of this size.
    Removed(u64),
    /// No process holds it, and it stays, for this reason.
    Left(String),
    /// It is in use, gone, another program's, or no file.
    Passed,
}

/// A directory that is looked through.
struct Looked<'a> {
    directory: &'a Path,
    parent: OwnedFd,
    filesystem: Option<&'a Filesystem>,
    /// The user whom a new file gets here; `None` where none can be created.
    owner: OnceCell<Option<u32>>,
}

impl Looked<'_> {
    /// Removes the file if it is an orphan.
    fn remove(&self, name: &str) -> Fate {
        // Opening something else than a file for writing can do something.
        let named = rustix::fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let Some(named) = named.ok().filter(is_file) else { return Fate::Passed };
        let is_ours = self.is_ours(&named);
        // NFS locks only what is open for writing. rdsk may write whatever it created.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.parent, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(errno) if is_ours && errno != Errno::NOENT => return Fate::Left(errno.to_string()),
            Err(_) => return Fate::Passed,
        };
        let Some(stat) = rustix::fs::fstat(&file).ok().filter(is_file) else { return Fate::Passed };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Fate::Passed,
            Err(errno) => return Fate::Left(format!("it cannot be locked: {errno}")),
        }
        if let Some(reason) = self.doubt(&file, &stat) {
            return Fate::Left(reason);
        }
        // Under the lock the name must still lead to the locked file.
        let named = rustix::fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW);
        if !named.is_ok_and(|named| (named.st_dev, named.st_ino) == (stat.st_dev, stat.st_ino)) {
            return Fate::Passed;
        }
        match rustix::fs::unlinkat(&self.parent, name, AtFlags::empty()) {
            Ok(()) => Fate::Removed(u64::try_from(stat.st_size).unwrap_or(0)),
            Err(Errno::NOENT) => Fate::Passed,
            Err(errno) => Fate::Left(errno.to_string()),
        }
    }

    /// Why a file that is locked for us is not surely an orphan.
    fn doubt(&self, file: &OwnedFd, stat: &Stat) -> Option<String> {
        if !self.is_ours(stat) {
            return Some(format!("it belongs to user {}", stat.st_uid));
        }
        if stat.st_nlink != 1 {
            return Some("it has another name, too".to_owned());
        }
        if !is_marked(file, stat) {
            return Some("it lacks the mark of a test file".to_owned());
        }
        let keeps_locks = self.filesystem.is_some_and(keeps_locks_to_host);
        keeps_locks.then(|| "its filesystem does not show whether another host uses it".to_owned())
    }

    /// Whether a file belongs to the user whom a new file gets here. That is the user of this process unless the mount gives all
    /// files one owner, or a server maps users; there, an empty test file of our own says it, which is gone at once.
    fn is_ours(&self, stat: &Stat) -> bool {
        let user = rustix::process::geteuid().as_raw();
        let new_user = || {
            let own = TestFile::create(self.directory).ok()?;
            Some(rustix::fs::fstat(own.fd()).ok()?.st_uid)
        };
        stat.st_uid == user || *self.owner.get_or_init(new_user) == Some(stat.st_uid)
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether locks may exclude only the processes of this host on a filesystem that others may use, too: nfs(5), mount.cifs(8), and those
/// that pass no locks on, as far as is known: 9P, virtiofs, most that are served by a program (sshfs, rclone), shared folders of virtual machines.
fn keeps_locks_to_host(filesystem: &Filesystem) -> bool {
    const OPTIONS: [&str; 6] =
        ["local_lock=flock", "local_lock=all", "nolock", "nobrl", "localflock", "localflocks"];
    const KINDS: [&str; 6] = ["9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "fuse"];
    let kind = filesystem.kind.as_str();
    let mut options = filesystem.options.split(',');
    kind.starts_with("fuse.") || KINDS.contains(&kind) || options.any(|option| OPTIONS.contains(&option))
}

/// A file without the mark on a filesystem that supports marks is not ours, unless it was left before it was marked,
/// and then it is empty. Without support for marks the exact name decides.
fn is_marked(file: impl AsFd, stat: &Stat) -> bool {
    let mut value = [0u8; 8];
    match rustix::fs::fgetxattr(file, MARK_NAME, &mut value) {
        Ok(length) => value.get(..length) == Some(MARK_VALUE),
        Err(Errno::NODATA) => stat.st_size == 0,
        Err(Errno::OPNOTSUPP) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_mounts_keep_locks_to_the_host() {
        let keeps = |kind: &str, options: &str| {
            keeps_locks_to_host(&Filesystem { kind: kind.to_owned(), options: options.to_owned() })
        };
        assert!(keeps("nfs", "rw,relatime,vers=3,nolock,local_lock=all"));
        assert!(keeps("nfs4", "rw,vers=4.2,local_lock=flock"));
        assert!(keeps("cifs", "rw,nobrl"));
        for kind in ["fuse.sshfs", "fuse.rclone", "virtiofs", "9p", "vboxsf"] {
            assert!(keeps(kind, "rw"), "{kind}");
        }
        assert!(keeps("gfs2", "rw,localflocks") && !keeps("fuseblk", "rw"));
        assert!(!keeps("nfs4", "rw,vers=4.2,local_lock=none"));
        assert!(!keeps("nfs", "rw,vers=3,local_lock=posix"));
        assert!(!keeps("vfat", "rw,uid=1000"));
    }
}
