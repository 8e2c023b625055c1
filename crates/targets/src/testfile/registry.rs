//! The test files of this process, so that they are removed however it ends: when a Claim is dropped, when a panic
//! unwinds, and by the signal watchdog. It removes a name only while it still leads to the file that was created.

use crate::display::shown;
use crate::error::TargetError;
use crate::id::new_id;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ulid::Ulid;

/// The extended attribute that marks a test file, where supported. The content cannot: the tests overwrite it.
pub(crate) const MARK_NAME: &str = "user.rdsk.test-file";
pub(crate) const MARK_VALUE: &[u8] = b"1";
/// Attempts to create a file. Each fails only if another process cleans up at the very same moment.
const ATTEMPTS: usize = 8;

static FILES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
static LEFT: Mutex<Vec<TestFileLeft>> = Mutex::new(Vec::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A file to be removed. The directory is kept open, so that it is found after a `chdir` or a rename.
#[derive(Debug)]
struct Entry {
    id: u64,
    directory: OwnedFd,
    name: String,
    path: PathBuf,
    inode: (u64, u64),
}

impl Entry {
    fn remove(&self) {
        let named = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let removed = match named {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.inode => {
                rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
            }
            // Another file has the name, or none does: ours is gone.
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        };
        // On a filesystem that has turned read-only it stays; the next run there finds it as an orphan.
        if let Err(errno) = removed {
            let left = TestFileLeft { path: self.path.clone(), reason: errno.to_string() };
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
    }
}

/// A test file that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFileLeft {
    /// Where it was created.
    pub path: PathBuf,
    /// Why it was not removed, in the kernel's words.
    pub reason: String,
}

/// The test files of this process that could not be removed so far, to be reported to the user.
pub fn test_files_left() -> Vec<TestFileLeft> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A test file of this process: open for writing, locked, and removed when dropped.
#[derive(Debug)]
pub(crate) struct TestFile {
    id: u64,
    pub(crate) path: PathBuf,
    pub(crate) inode: (u64, u64),
    /// Carries the lock that shows the next run that the file is in use.
    file: OwnedFd,
}

impl TestFile {
    pub(crate) fn create(directory: &Path) -> Result<Self, TargetError> {
        for _ in 0..ATTEMPTS {
            if let Some(file) = Self::try_create(directory, file_name(new_id()))? {
                return Ok(file);
            }
        }
        let path = shown(directory);
        Err(TargetError::Changed { path, what: "another process removes the test files as they are created" })
    }

    /// One of this name, which no file has.
    pub(crate) fn create_as(directory: &Path, name: &str) -> Result<Self, TargetError> {
        let path = directory.join(name);
        if rustix::fs::lstat(&path).is_ok() {
            return Err(TargetError::Changed { path: shown(&path), what: "a file of this name is there" });
        }
        let what = "another process removes it as it is created";
        Self::try_create(directory, name.to_owned())?.ok_or(TargetError::Changed { path: shown(&path), what })
    }

    fn try_create(directory: &Path, name: String) -> Result<Option<Self>, TargetError> {
        let failed = |errno: Errno| TargetError::from_io(directory, "written to", errno.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(directory, flags, Mode::empty()).map_err(failed)?;
        let path = directory.join(&name);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, inode) = {
            // Held while the file is created, so that a signal finds it in the list or finds no file.
            let mut files = files();
            let file = rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
            let stat = rustix::fs::fstat(&file).map_err(failed)?;
            let inode = (stat.st_dev, stat.st_ino);
            files.push(Entry { id, directory: parent, name, path: path.clone(), inode });
            (file, inode)
        };
        let test_file = Self { id, path, inode, file };
        // On a filesystem without locks the next run gets none either, and then leaves the file alone.
        let locked = rustix::fs::flock(&test_file.file, FlockOperation::NonBlockingLockExclusive);
        let links = rustix::fs::fstat(&test_file.file).map_err(failed)?.st_nlink;
        if locked == Err(Errno::WOULDBLOCK) || links == 0 {
            return Ok(None);
        }
        // Without attributes only the name identifies the file.
        let _ = rustix::fs::fsetxattr(&test_file.file, MARK_NAME, MARK_VALUE, XattrFlags::empty());
        Ok(Some(test_file))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let mut files = files();
        if let Some(index) = files.iter().position(|entry| entry.id == self.id) {
            files.swap_remove(index).remove();
        }
    }
}

/// Removes every test file that this process still has. For the signal watchdog: it may be called from any thread and
/// more than once. Open descriptors stay usable until they are closed.
pub fn remove_all_test_files_now() {
    for entry in files().drain(..) {
        entry.remove();
    }
}

/// The name of a test file: the 26 characters of a ULID between a fixed prefix and suffix.
pub(crate) fn file_name(id: Ulid) -> String {
    format!(".rdsk-test-{id}.tmp")
}

/// Whether a name is exactly one that [`file_name`] gives.
pub(crate) fn is_file_name(name: &str) -> bool {
    let id = name.strip_prefix(".rdsk-test-").and_then(|rest| rest.strip_suffix(".tmp"));
    id.and_then(|id| Ulid::from_string(id).ok()).is_some_and(|id| file_name(id) == name)
}

fn files() -> MutexGuard<'static, Vec<Entry>> {
    // A panic elsewhere leaves the list intact, and the files must be removed anyway.
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        assert!(is_file_name(&file_name(new_id())));
        assert!(is_file_name(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp"));
        for name in [
            ".rdsk-test-notes.tmp",
            ".rdsk-test-.tmp",
            ".rdsk-test-01arz3ndektsv4rrffq69g5fav.tmp",
            ".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp.bak",
            "rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp",
            ".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FA.tmp",
            ".rdsk-test-81ARZ3NDEKTSV4RRFFQ69G5FAV.tmp",
        ] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
