//! A test file under a name that several processes know, on one host or many: one of them makes it, and the others see by its content that
//! it is the same. It never takes the place of a file that is there, and is removed as every test file is, by the process that made it; where
//! that one is killed, by a guard that waits for its end.

use crate::display::shown;
use crate::error::TargetError;
use crate::examine::{Hold, examine_path};
use crate::roots::Roots;
use crate::testfile::registry::TestFile;
use crate::testfile::writer::TestFileProgress;
use crate::testfile::{Name, TestFileOptions, data, made_in};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So long another host may keep the knowledge that a directory has no such file: the longest by default of nfs(5), `acdirmax`.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
const LOOKS_APART: Duration = Duration::from_millis(50);
/// Bytes that are compared at either end.
const END_BYTES: u64 = 4096;

/// A file that this process has laid out for others; removed when dropped.
#[derive(Debug)]
pub struct SharedFile {
    file: TestFile,
    bytes: u64,
}

impl SharedFile {
    /// Creates the file and writes all of it, until it is on stable storage. `guard` is read by [`remove_after`] in another process, and
    /// open for as long as this one lives.
    ///
    /// # Errors
    /// Where a file is there; as [`crate::create_test_file`].
    pub fn lay_out(
        path: &Path,
        options: &TestFileOptions,
        roots: &Roots,
        guard: &mut dyn Write,
        watch: &mut dyn FnMut(TestFileProgress),
    ) -> Result<Self, TargetError> {
        let (directory, name) = place_of(path)?;
        let examined = examine_path(&directory.to_string_lossy(), directory.clone(), roots, Hold::NotYet)?;
        let mut tell = |file: &TestFile| {
            let path = file.path.as_os_str().as_encoded_bytes();
            let length = u64::try_from(path.len()).unwrap_or(0);
            let head = [file.inode.0, file.inode.1, length].map(u64::to_le_bytes).concat();
            let told = guard.write_all(&[&head[..], path].concat()).and_then(|()| guard.flush());
            told.map_err(|error| TargetError::from_io(&file.path, "guarded", error))
        };
        let (file, made) = made_in(&examined, Name::Users(&name, &mut tell), options, roots, watch)?;
        // Its own lock would show to the others as that of a user.
        let _ = rustix::fs::flock(file.fd(), FlockOperation::Unlock);
        Ok(Self { file, bytes: made.bytes })
    }

    /// Its size.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

/// Waits until the process that has laid out a file is gone, and removes the file if it is still there under its name. `told` is what
/// that process writes to its guard.
///
/// # Errors
/// Where nothing was told, or the file cannot be removed.
pub fn remove_after(mut told: impl Read) -> io::Result<()> {
    let mut word = || {
        let mut bytes = [0; 8];
        told.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    };
    let (inode, length) = ((word()?, word()?), word()?);
    let mut path = vec![0; usize::try_from(length).unwrap_or(0)];
    told.read_exact(&mut path)?;
    let path = Path::new(OsStr::from_bytes(&path));
    // While it is open here, no other file gets its number.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let inode_of = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    if inode_of(rustix::fs::fstat(&file)?) != inode {
        return Ok(());
    }
    io::copy(&mut told, &mut io::sink())?;
    match rustix::fs::lstat(path) {
        Ok(stat) if inode_of(stat) == inode => Ok(rustix::fs::unlink(path)?),
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether there is nothing under this name, in a directory that is there.
pub fn may_be_laid_out(path: &Path) -> bool {
    let is_missing = |path: &Path| rustix::fs::lstat(path).is_err_and(|errno| errno == Errno::NOENT);
    is_missing(path) && place_of(path).is_ok()
}

/// Waits until a file shows that another process has laid out with this seed and size, and compares its size and both ends.
///
/// # Errors
/// Where it does not show in a minute, or is another one.
pub fn await_laid_out(path: &Path, bytes: u64, options: &TestFileOptions) -> Result<(), TargetError> {
    let began = Instant::now();
    loop {
        let error = match is_laid_out(path, bytes, options.seed) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if options.stop.is_raised() {
            return Err(TargetError::Interrupted);
        }
        if began.elapsed() > APPEARS_WITHIN {
            return Err(error);
        }
        std::thread::sleep(LOOKS_APART);
    }
}

fn is_laid_out(path: &Path, bytes: u64, seed: u64) -> Result<(), TargetError> {
    let failed = |errno: Errno| TargetError::from_io(path, "read", errno.into());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    let differs = |what| TargetError::Changed { path: shown(path), what };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || u64::try_from(stat.st_size) != Ok(bytes)
    {
        return Err(differs("it has not the size that rank 0 gave it"));
    }
    // Its data is made of words of 8 bytes.
    let last = bytes.saturating_sub(END_BYTES) / 8 * 8;
    for (offset, length) in [(0, END_BYTES.min(bytes)), (last, bytes - last)] {
        let mut wanted = vec![0; usize::try_from(length).unwrap_or(0)];
        data::fill(seed, offset, &mut wanted);
        let mut there = vec![0; wanted.len()];
        let count = rustix::io::pread(&file, &mut there, offset).map_err(failed)?;
        if there[..count] != wanted[..] {
            return Err(differs("it has not the content that rank 0 gave it"));
        }
    }
    Ok(())
}

/// The directory of a path, symlinks resolved, and the name in it.
fn place_of(path: &Path) -> Result<(PathBuf, String), TargetError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = parent.canonicalize().map_err(|error| TargetError::from_io(parent, "found", error))?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name =
        name.filter(|_| directory.is_dir()).ok_or_else(|| TargetError::NotDirectory { path: shown(path) })?;
    Ok((directory, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_file_by_its_size_and_both_ends() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("shared");
        for bytes in [1_u64, 4095, 4096, 12_345, 1 << 20] {
            let mut content = vec![0; usize::try_from(bytes).unwrap()];
            data::fill(7, 0, &mut content);
            std::fs::write(&path, &content).unwrap();
            is_laid_out(&path, bytes, 7).unwrap();
            assert!(is_laid_out(&path, bytes, 8).is_err(), "{bytes}: another seed");
            assert!(is_laid_out(&path, bytes + 1, 7).is_err(), "{bytes}: another size");
            *content.last_mut().unwrap() ^= 1;
            std::fs::write(&path, &content).unwrap();
            assert!(is_laid_out(&path, bytes, 7).is_err(), "{bytes}: another end");
        }
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("shared", &link).unwrap();
        assert!(is_laid_out(&link, 1 << 20, 7).is_err(), "a link is not followed");
        assert!(is_laid_out(&scratch.path().join("none"), 1, 7).is_err());
        let stop = rdsk_model::StopFlag::new();
        stop.raise();
        let size = crate::testfile::writer::TestFileSize::Fixed(1);
        let options = TestFileOptions { size, seed: 7, is_rewritten: false, stop };
        let waited = await_laid_out(&scratch.path().join("none"), 1, &options);
        assert!(matches!(waited, Err(TargetError::Interrupted)), "{waited:?}");
    }
}
