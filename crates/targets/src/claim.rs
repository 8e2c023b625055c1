//! The Claim: the right to use a target, after it was examined and the access was authorized. Everything that is opened
//! for measuring is opened here, from a handle on the inode that was checked. A Claim for reading is never writable.

use crate::authorize::authorize;
use crate::device_hold::DeviceHold;
use crate::display::shown;
use crate::error::TargetError;
use crate::examine::{Hold, examine_path};
use crate::examined::{Examined, Place};
use crate::machine::Attachment;
use crate::permission::{Access, Permission, Sharing};
use crate::probe;
use crate::recheck::{Recheck, Written};
use crate::roots::Roots;
use crate::sim::Simulated;
use crate::space::fills_up::check_growth;
use crate::testfile::registry::TestFile;
use rdsk_model::{ExtentEvidence, IoPath, Sync, Target};
use rdsk_sys::device_number::DeviceNumber;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a claimed target is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMode {
    /// Reading only, or writing and reading.
    pub access: Access,
    /// `Direct` opens past the page cache, the others through it.
    pub path: IoPath,
    /// `Dsync` adds `O_DSYNC`; the others add nothing.
    pub sync: Sync,
}

impl OpenMode {
    /// Reading through the page cache.
    pub const READ: Self = Self { access: Access::Read, path: IoPath::Buffered, sync: Sync::None };
}

/// A target that was examined, authorized for what the plan does to it, and is held. It is held with `O_PATH`, which
/// does not count as an opener: the last close of a descriptor from [`Claim::open`] is the device's last close.
#[derive(Debug)]
pub struct Claim {
    /// The facts for the Record.
    pub target: Target,
    path: PathBuf,
    access: Access,
    held: Held,
    /// `None` for a file of which only reading was claimed, and for files that rdsk created.
    recheck: Option<Box<Recheck>>,
    test_file: Option<TestFile>,
    /// What keeps other programs from the device, where other processes of this host write to it, too.
    shared: Option<Arc<DeviceHold>>,
}

#[derive(Debug)]
enum Held {
    Node { handle: OwnedFd, node: Expected },
    Sim(Simulated),
}

/// What was checked, to compare with what was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    File { dev: u64, ino: u64 },
    Block { number: DeviceNumber, attachment: Option<Attachment>, sys: PathBuf },
}

impl Expected {
    /// Whether `fd`, which was opened by `path`, is this file or device.
    fn check_inode(&self, fd: impl AsFd, path: &Path) -> Result<(), TargetError> {
        let stat =
            rustix::fs::fstat(fd).map_err(|errno| TargetError::from_io(path, "examined", errno.into()))?;
        let (is_same, what) = match self {
            Self::File { dev, ino } => {
                ((stat.st_dev, stat.st_ino) == (*dev, *ino), "its path leads to another file")
            }
            Self::Block { number, .. } => {
                (DeviceNumber::from_raw(stat.st_rdev) == *number, "its path leads to another device")
            }
        };
        if is_same { Ok(()) } else { Err(TargetError::Changed { path: shown(path), what }) }
    }

    /// Whether it is a device that sysfs no longer lists.
    fn is_gone(&self) -> bool {
        let Self::Block { number, sys, .. } = self else { return false };
        let numbers = sys.join("dev/block");
        numbers.is_dir() && !numbers.join(number.to_string()).exists()
    }

    /// The same, soon: while the kernel removes a disk, it opens it no more and still lists it.
    fn goes(&self) -> bool {
        self.goes_within(REMOVAL_TAKES)
    }

    fn goes_within(&self, limit: Duration) -> bool {
        const INTERVAL: Duration = Duration::from_millis(50);
        let start = Instant::now();
        while !self.is_gone() {
            if !matches!(self, Self::Block { .. }) || start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(INTERVAL);
        }
        true
    }
}

/// So long the kernel may still list a disk that it is removing.
pub const REMOVAL_TAKES: Duration = Duration::from_secs(2);

/// Claims a target. For writing it is examined again here, because it may have changed in the meantime.
///
/// # Errors
/// The refusal; or if the target is a directory, has changed since it was examined, or cannot be opened for reading.
pub fn claim(
    mut examined: Examined,
    access: Access,
    permission: &Permission,
    roots: &Roots,
) -> Result<Claim, TargetError> {
    if access == Access::Write && !matches!(examined.place, Place::Sim(_)) {
        let mut fresh = examine_path(&examined.target.name, examined.path.clone(), roots, Hold::NotYet)?;
        if fresh.place != examined.place && !matches!(fresh.place, Place::Directory { .. }) {
            let what = "its path leads to something else";
            return Err(TargetError::Changed { path: shown(&examined.path), what });
        }
        fresh.target.index = examined.target.index;
        fresh.write_bytes = examined.write_bytes;
        examined = fresh;
    }
    authorize(&examined, access, permission)?;
    if access == Access::Write {
        check_growth(&[&examined])?;
    }
    let node = match &examined.place {
        Place::Directory { .. } => return Err(TargetError::IsDirectory { path: shown(&examined.path) }),
        Place::File { dev, ino, .. } => Expected::File { dev: *dev, ino: *ino },
        Place::Block { major_minor, attachment } => {
            Expected::Block { number: *major_minor, attachment: attachment.clone(), sys: roots.sys.clone() }
        }
        Place::Sim(simulated) => {
            let held = Held::Sim(simulated.clone());
            let (target, path) = (examined.target, examined.path);
            return Ok(Claim { target, path, access, held, recheck: None, test_file: None, shared: None });
        }
    };
    let mut claim = hold(examined.target.clone(), examined.path.clone(), access, node)?;
    if let Sharing::Held(hold) = &permission.sharing
        && examined.place.is_device(hold.number())
    {
        claim.shared = Some(Arc::clone(hold));
    }
    if access == Access::Write || matches!(examined.place, Place::Block { .. }) {
        claim.recheck = Some(Box::new(Recheck::new(examined, permission.sharing.clone(), roots)));
    }
    let path = if claim.target.direct_io == Some(true) { IoPath::Direct } else { IoPath::Buffered };
    if access == Access::Write {
        // Whether it opens for writing is tested first: permissions, immutable files, running programs.
        let open = claim.open(OpenMode { access, path: IoPath::Buffered, sync: Sync::None })?;
        // While no other program can take it, everything is checked once more: a signature may be new.
        let now = examine_path(&claim.target.name, claim.path.clone(), roots, Hold::Ours)?;
        authorize(&now, access, permission)?;
        drop(open);
    }
    let fd = claim.open(OpenMode { path, ..OpenMode::READ })?;
    claim.target.nowait =
        probe::nowait(&fd, claim.target.size_bytes, claim.target.direct_align_bytes.unwrap_or(4096));
    Ok(claim)
}

impl Claim {
    /// What it was claimed for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Bytes that can be read, or written without growing a file.
    pub fn size_bytes(&self) -> u64 {
        self.target.size_bytes
    }

    /// The simulated LUN; `None` for a real target.
    pub fn simulated(&self) -> Option<&Simulated> {
        match &self.held {
            Held::Sim(simulated) => Some(simulated),
            Held::Node { .. } => None,
        }
    }

    /// The path of what is held, symlinks resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all that the kernel has cached of it may be written back and dropped, beyond what is measured: a file that rdsk made, or a
    /// device that is not in use now. The cache of what others use is theirs. Of a device it asks sysfs and procfs, for milliseconds.
    pub fn may_be_dropped_whole(&self) -> bool {
        match &self.held {
            Held::Node { node: Expected::File { .. }, .. } => self.test_file.is_some(),
            Held::Node { node: Expected::Block { .. }, .. } => {
                self.recheck.as_ref().is_some_and(|recheck| recheck.is_unused(self.access))
            }
            Held::Sim(_) => false,
        }
    }

    /// Says that a writable descriptor is about to be closed, which kept others from making anything on the device until now, and
    /// through which the target may have been written. Without this word the next opening looks for labels where it need not, and
    /// refuses who reads what was written.
    pub fn released(&self) {
        if let Some(recheck) = &self.recheck {
            recheck.released();
        }
    }

    /// Opens what is held. A writable descriptor of a block device is exclusive (`O_EXCL`): no process can mount the device while it is open,
    /// and a second one is not available, so streams share it; where ranks share the device, their common hold is the exclusive one. Once it is open, the uses of the target are checked again, so that no process
    /// who came in the meantime is overlooked, and its labels where the last opening for writing was a while ago. Errors:
    /// [`TargetError::ReadOnlyClaim`] for a write by a Claim for reading; a refusal if the device has come into use (`EBUSY`);
    /// [`TargetError::Changed`] if the path leads to something else; [`TargetError::DirectUnsupported`]; [`TargetError::NotOpenable`] for a
    /// simulated target.
    pub fn open(&self, mode: OpenMode) -> Result<OwnedFd, TargetError> {
        let Held::Node { handle, node } = &self.held else {
            return Err(TargetError::NotOpenable { name: shown(&self.path) });
        };
        let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
        match (mode.access, self.access) {
            (Access::Write, Access::Read) => {
                return Err(TargetError::ReadOnlyClaim { path: shown(&self.path) });
            }
            (Access::Write, Access::Write) => {
                flags |= OFlags::RDWR;
                if matches!(node, Expected::Block { .. }) && self.shared.is_none() {
                    flags |= OFlags::EXCL;
                }
            }
            (Access::Read, _) => flags |= OFlags::RDONLY,
        }
        if mode.path == IoPath::Direct {
            flags |= OFlags::DIRECT;
        }
        if mode.sync == Sync::Dsync {
            flags |= OFlags::DSYNC;
        }
        // The link leads to the held inode itself, wherever its path leads to by now.
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let fd = probe::open_retrying_busy(Path::new(&link), flags).map_err(|errno| match errno {
            Errno::INVAL if mode.path == IoPath::Direct => {
                TargetError::DirectUnsupported { path: shown(&self.path) }
            }
            // What is held cannot be missing; the way to it can.
            Errno::NOENT | Errno::NOTDIR if !Path::new("/proc/self/fd").exists() => TargetError::NoProc,
            Errno::NXIO | Errno::NODEV if node.goes() => {
                TargetError::Gone { path: shown(&self.path), source: errno.into() }
            }
            errno => TargetError::from_io(&self.path, "opened", errno.into()),
        })?;
        self.check(&fd, node)?;
        if mode.access == Access::Write {
            self.check_length(&fd, node)?;
        }
        if let Some(recheck) = self.recheck.as_deref().filter(|_| mode.access == Access::Write) {
            recheck.authorize(&fd, Written::IfReleased)?;
        }
        Ok(fd)
    }

    /// Judges again whether what `fd` has open for writing may be written: this process has not run for a while, and
    /// who came in the meantime found nothing in the way.
    ///
    /// # Errors
    /// The refusal, or [`TargetError::Changed`].
    pub fn judge_again(&self, fd: impl AsFd) -> Result<(), TargetError> {
        self.judge_written(fd, Written::Maybe)
    }

    /// The same of a device to which a part of what the user copies was written: a label on it may be that of the copy,
    /// and none counts.
    ///
    /// # Errors
    /// As [`Claim::judge_again`].
    pub fn judge_copied_again(&self, fd: impl AsFd) -> Result<(), TargetError> {
        self.judge_written(fd, Written::Copied)
    }

    fn judge_written(&self, fd: impl AsFd, written: Written) -> Result<(), TargetError> {
        if let Held::Node { node, .. } = &self.held {
            self.check(&fd, node)?;
            self.check_length(&fd, node)?;
        }
        self.recheck.as_deref().map_or(Ok(()), |recheck| recheck.authorize(fd, written))
    }

    /// How `len` bytes from `offset` are allocated on the filesystem now, dirty pages written out first; `None` for a
    /// block device and if the filesystem does not report it.
    pub fn allocation(&self, offset: u64, len: u64) -> Option<ExtentEvidence> {
        match self.held {
            Held::Node { node: Expected::File { .. }, .. } => {
                probe::allocation(self.open(OpenMode::READ).ok()?, offset, len, probe::Flush::First)
            }
            Held::Node { node: Expected::Block { .. }, .. } | Held::Sim(_) => None,
        }
    }

    /// Holds a file that rdsk has just created. `target` describes it except for what only an open file reports.
    pub(crate) fn of_test_file(mut target: Target, file: TestFile) -> Result<Self, TargetError> {
        let (path, (dev, ino)) = (file.path.clone(), file.inode);
        target.direct_io = probe::direct_io(&path);
        target.dontcache = probe::dontcache(&path, target.size_bytes);
        target.direct_align_bytes = probe::direct_align(&path).or(target.direct_align_bytes);
        let align = target.direct_align_bytes.unwrap_or(4096);
        let mut claim = hold(target, path, Access::Write, Expected::File { dev, ino })?;
        claim.target.nowait = probe::nowait(claim.open(OpenMode::READ)?, claim.target.size_bytes, align);
        claim.test_file = Some(file);
        Ok(claim)
    }

    /// Whether a file that is written is as long as it was: writes behind its end would give it the old length again, in blocks that were
    /// never allocated. A read that finds no more says so itself.
    fn check_length(&self, fd: impl AsFd, node: &Expected) -> Result<(), TargetError> {
        let length = rustix::fs::fstat(&fd).map_or(u64::MAX, |stat| stat.st_size.unsigned_abs());
        if matches!(node, Expected::File { .. }) && length < self.target.size_bytes {
            return Err(TargetError::Changed { path: shown(&self.path), what: "it has become shorter" });
        }
        Ok(())
    }

    /// Compares what was opened with what was checked, after opening: an open device can no longer be replaced.
    fn check(&self, fd: impl AsFd, node: &Expected) -> Result<(), TargetError> {
        node.check_inode(&fd, &self.path)?;
        let Expected::Block { attachment, sys, .. } = node else { return Ok(()) };
        let changed = |what| Err(TargetError::Changed { path: shown(&self.path), what });
        if !attachment.as_ref().is_none_or(|then| then.is_still(sys)) {
            return changed(
                "its medium, its backing file or its place on the disk has changed, or another device has its number",
            );
        }
        // The handle may be a node in a tree that sysfs does not describe; the ioctl is authoritative.
        match rdsk_sys::device::block_device_size(&fd) {
            Ok(size) if size != self.target.size_bytes => changed("its size has changed"),
            _ => Ok(()),
        }
    }
}

fn hold(target: Target, path: PathBuf, access: Access, node: Expected) -> Result<Claim, TargetError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let handle = rustix::fs::open(&path, flags, Mode::empty())
        .map_err(|errno| TargetError::from_io(&path, "opened", errno.into()))?;
    node.check_inode(&handle, &path)?;
    Ok(Claim {
        target,
        path,
        access,
        held: Held::Node { handle, node },
        recheck: None,
        test_file: None,
        shared: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_being_removed_goes_soon() {
        let directory = tempfile::tempdir().unwrap();
        let sys = directory.path().to_owned();
        let listed = sys.join("dev/block/8:16");
        std::fs::create_dir_all(&listed).unwrap();
        let node = |minor| Expected::Block {
            number: DeviceNumber { major: 8, minor },
            attachment: None,
            sys: sys.clone(),
        };
        assert!(node(32).goes(), "it has gone");
        assert!(!node(16).goes(), "it stays");
        std::thread::scope(|scope| {
            let goes = scope.spawn(|| node(16).goes_within(Duration::from_secs(600)));
            std::thread::sleep(Duration::from_millis(100));
            std::fs::remove_dir(&listed).unwrap();
            assert!(goes.join().unwrap());
        });
        assert!(!Expected::File { dev: 1, ino: 1 }.goes());
    }
}
