//! Finds and removes test files that a killed rdsk left behind. A file is one only if everything matches: the exact
//! name, a regular file, our user, one link, the mark, and no lock. It never follows a link and never waits.

use crate::error::TargetError;
use crate::registry::{MARK_NAME, MARK_VALUE, is_file_name};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
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

/// Removes the orphans in `directory`. A file that any process still holds locked stays.
///
/// # Errors
/// If the directory cannot be read. A file that cannot be checked or removed is left, silently.
pub fn remove_orphans(directory: &Path) -> Result<Vec<RemovedOrphan>, TargetError> {
    let failed = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENOTDIR) => TargetError::NotDirectory { path: crate::display::shown(directory) },
        _ => TargetError::from_io(directory, "read", error),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(directory, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)?.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if let Some(bytes) = is_file_name(&name).then(|| remove(&parent, &name)).flatten() {
            removed.push(RemovedOrphan { path: directory.join(&name), bytes });
        }
    }
    Ok(removed)
}

/// Removes the file if it is an orphan, and then returns its size.
fn remove(parent: &OwnedFd, name: &str) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if !may_be_ours(&stat) || !is_marked(&file, &stat) {
        return None;
    }
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Under the lock the name must still lead to the locked file.
    let named = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if (named.st_dev, named.st_ino, named.st_nlink) != (stat.st_dev, stat.st_ino, 1) {
        return None;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::empty()).ok()?;
    u64::try_from(stat.st_size).ok()
}

fn may_be_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_nlink == 1
        && stat.st_uid == rustix::process::geteuid().as_raw()
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
