//! Questions that only an open descriptor answers: is the device held exclusively, does it support direct I/O, reads that
//! do not wait and pages that are not kept, how large is it, how is the file allocated. Everything here but `open_retrying_busy` opens for
//! reading only.

use crate::space::growth::Rewriting;
use crate::uses::{InUse, UseKind};
use rdsk_model::ExtentEvidence;
pub(crate) use rdsk_sys::extents::Flush;
use rdsk_sys::extents::{extents, summarise};
use rdsk_sys::files::version_of;
use rdsk_sys::io::{FlagSupport, supports_dontcache, supports_nowait};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Flags of every probe: do not wait for a medium, a FIFO's writer or a modem, and do not become any program's terminal.
const PROBE_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// include/uapi/linux/magic.h: OVERLAYFS_SUPER_MAGIC.
const OVERLAY: u64 = 0x794c_7630;

/// How long a device may be busy before it counts as in use.
const BUSY_RETRY_TIME: Duration = Duration::from_millis(250);

/// The same for a file that is open for reading: programs that look at it do so for less.
const READ_RETRY_TIME: Duration = Duration::from_millis(500);

/// Asks the kernel whether any process holds the device, with `O_RDONLY | O_EXCL`. The kernel counts mounts, swap, LVM, md
/// and programs that opened it with `O_EXCL`, on the device, its partitions and its disk, in every namespace.
pub(crate) fn exclusive(path: &Path, usage: &mut InUse) {
    match open_retrying_busy(path, PROBE_FLAGS | OFlags::EXCL) {
        Ok(_) => {}
        Err(Errno::BUSY) => usage.add(UseKind::OpenExclusive, "the kernel says that it is busy"),
        Err(errno) => usage.doubt(format_args!("it cannot be opened to see whether it is in use ({errno})")),
    }
}

/// Opens, and retries for a moment if the device is busy: programs that udev starts (mdadm) hold a device exclusively
/// while they inspect it, and a forked child keeps our own descriptors until it executes another program. A real user
/// holds the device for longer.
pub(crate) fn open_retrying_busy(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let end = Instant::now() + BUSY_RETRY_TIME;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::BUSY) if Instant::now() < end => thread::sleep(BUSY_RETRY_TIME / 50),
            answer => return answer,
        }
    }
}

/// Whether any process has a file open for writing, as far as the kernel shows this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    Some,
    /// No process on this machine has, through the filesystem of the file.
    None,
    /// The file belongs to another user, and this one has no `CAP_LEASE`.
    MayNotBeAsked,
    /// There are no leases on this filesystem, or its server decides about them.
    NotAskable,
}

/// Whether any process has the file open for writing, the kernel itself included: for the clients of a file server, or below a device.
/// Where there is no answer, only procfs shows who does.
pub(crate) fn writers(path: &Path) -> Writers {
    // What may not be read is not written either: a claim opens it for both.
    let Some(fd) = open_itself(path) else {
        return Writers::None;
    };
    let kind = filesystem_type(path);
    let end = Instant::now() + BUSY_RETRY_TIME;
    loop {
        let answer = writers_by(rdsk_sys::openers::has_writers(&fd), kind);
        // A child of ours keeps what we have just closed until it executes another program.
        if answer != Writers::Some || Instant::now() >= end {
            return answer;
        }
        thread::sleep(BUSY_RETRY_TIME / 50);
    }
}

/// Whether a file that no process writes is open anywhere for reading for half a second, as far as the kernel shows this user. Where the
/// filesystem is one of a server, it need not be this machine.
pub(crate) fn has_readers(path: &Path) -> bool {
    let Some(fd) = open_itself(path) else {
        return false;
    };
    let end = Instant::now() + READ_RETRY_TIME;
    let kind = filesystem_type(path);
    while writers_by(rdsk_sys::openers::is_open_elsewhere(&fd), kind) == Writers::Some {
        if Instant::now() >= end {
            return true;
        }
        thread::sleep(READ_RETRY_TIME / 50);
    }
    false
}

/// Whether a write lease is refused for other open files alone, as since Linux 5.3: before, also for a file that is only watched or named.
pub(crate) fn tells_readers() -> bool {
    version_of(&rustix::system::uname().release().to_string_lossy()).is_some_and(|version| version >= (5, 3))
}

/// Opens what `path` leads to for reading, without waiting.
pub(crate) fn open_for_reading(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, PROBE_FLAGS, Mode::empty()).ok()
}

/// The same of what `path` is itself, if that is no symlink.
fn open_itself(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, PROBE_FLAGS | OFlags::NOFOLLOW, Mode::empty()).ok()
}

/// What the answer to a lease says. It is given to the owner of the file and to `CAP_LEASE` (fcntl(2)), and on every filesystem
/// only while no process writes through it (`generic_setlease` in fs/locks.c). 9P, Ceph, GFS2 and NFS 3 have no leases, FUSE none since
/// Linux 7.0, and neither has any filesystem whose developers did not ask for them.
fn writers_by(lease: std::io::Result<bool>, filesystem: Option<u64>) -> Writers {
    /// include/uapi/linux/magic.h, and the source of SMB: NFS 4 gives no lease without a delegation (`nfs4_add_lease`), SMB none without
    /// a lease or oplock of its server (`cifs_setlease`), whether any process writes or not.
    const TYPES_OF_SERVERS: [u64; 3] = [0x6969, 0xff53_4d42, 0xfe53_4d42];
    let is_of_server = filesystem.is_none_or(|kind| TYPES_OF_SERVERS.contains(&kind));
    match lease {
        Ok(false) => Writers::None,
        Ok(true) if !is_of_server => Writers::Some,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Writers::MayNotBeAsked,
        Ok(true) | Err(_) => Writers::NotAskable,
    }
}

/// Whether direct I/O opens, and is direct; `None` if opening fails for another reason.
pub(crate) fn direct_io(path: &Path) -> Option<bool> {
    let opened = rustix::fs::open(path, PROBE_FLAGS | OFlags::DIRECT, Mode::empty());
    is_direct(opened.map(drop), told_align(path))
}

/// What opening with `O_DIRECT` and statx(2) say together. A file whose alignment is reported as 0 has no direct I/O (statx(2)): it opens,
/// and goes through the page cache, as encrypted, compressed and data-journalled files of ext4 and f2fs do.
fn is_direct(opened: Result<(), Errno>, told_align: Option<u64>) -> Option<bool> {
    match opened {
        Ok(()) => Some(told_align != Some(0)),
        Err(Errno::INVAL) => Some(false),
        Err(_) => None,
    }
}

/// Alignment in bytes that direct I/O requires; `None` if it is not reported, or there is no direct I/O.
pub(crate) fn direct_align(path: &Path) -> Option<u64> {
    told_align(path).filter(|&bytes| bytes > 0)
}

/// What statx(2) says of the alignment of direct I/O (Linux 6.1 and later): 0 where there is none, `None` if it is not reported.
fn told_align(path: &Path) -> Option<u64> {
    let answer = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN).ok()?;
    let is_told = StatxFlags::from_bits_retain(answer.stx_mask).contains(StatxFlags::DIOALIGN);
    is_told.then_some(u64::from(answer.stx_dio_offset_align))
}

/// Some bytes of a file or device, of which one page is read; `None` if they cannot be read.
pub(crate) fn read_at<const BYTES: usize>(path: &Path, offset: u64) -> Option<[u8; BYTES]> {
    let fd = open_itself(path)?;
    // Without it the kernel reads ahead. A filesystem that takes no advice reads more.
    let _ = rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::Random);
    let mut bytes = [0; BYTES];
    let read = rustix::io::pread(&fd, &mut bytes, offset).ok()?;
    (read == BYTES).then_some(bytes)
}

/// Whether reads of the first bytes, direct or not, support `RWF_NOWAIT`; `None` if that cannot be tried.
pub(crate) fn nowait(fd: impl AsFd, size_bytes: u64, align_bytes: u64) -> Option<bool> {
    const MAX_ALIGN: usize = 1 << 16;
    let length = usize::try_from(align_bytes).ok()?.next_power_of_two().clamp(4096, MAX_ALIGN);
    if size_bytes < u64::try_from(length).ok()? {
        return None;
    }
    let mut storage = vec![0u8; 2 * length];
    let skip = storage.as_ptr().align_offset(length);
    is_supported(supports_nowait(fd, storage.get_mut(skip..skip + length)?, 0))
}

/// Whether I/O through the page cache takes `RWF_DONTCACHE` on a file or device of this size; `None` if it cannot be opened.
/// Nothing is read.
pub(crate) fn dontcache(path: &Path, size_bytes: u64) -> Option<bool> {
    is_supported(supports_dontcache(open_for_reading(path)?, size_bytes))
}

fn is_supported(support: FlagSupport) -> Option<bool> {
    match support {
        FlagSupport::Yes => Some(true),
        FlagSupport::No => Some(false),
        FlagSupport::Unknown { .. } => None,
    }
}

/// `f_type` of the filesystem at `path`: positive and at most 32 bits, whatever integer the architecture gives it in.
pub(crate) fn filesystem_type(path: &Path) -> Option<u64> {
    Some(rustix::fs::statfs(path).ok()?.f_type as u64 & 0xffff_ffff)
}

/// Whether the filesystem at `path` keeps its files in memory.
pub(crate) fn is_in_memory(path: &Path) -> bool {
    /// include/uapi/linux/magic.h: tmpfs, ramfs, hugetlbfs.
    const MEMORY_TYPES: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    filesystem_type(path).is_some_and(|kind| MEMORY_TYPES.contains(&kind))
}

/// Whether `path` lies on an overlay of layers.
pub(crate) fn is_overlay(path: &Path) -> bool {
    filesystem_type(path) == Some(OVERLAY)
}

/// What the filesystem at `path` does with what a file has already when it is overwritten. f2fs has the old block back with each new
/// one.
pub(crate) fn rewriting(path: &Path) -> Rewriting {
    filesystem_type(path).map_or(Rewriting::InPlace, rewriting_of)
}

fn rewriting_of(kind: u64) -> Rewriting {
    /// include/uapi/linux/magic.h, and the sources of bcachefs and OpenZFS: btrfs, bcachefs, zfs.
    const COPYING_TYPES: [u64; 3] = [0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1];
    /// nilfs2, whose cleaner leaves what is younger than an hour (nilfs_cleanerd.conf(5), `protection_period`).
    const KEEPING_TYPE: u64 = 0x3434;
    match kind {
        KEEPING_TYPE => Rewriting::Keeps,
        kind if COPYING_TYPES.contains(&kind) => Rewriting::Copies,
        _ => Rewriting::InPlace,
    }
}

/// Whether files at `path` may be neither changed nor removed, or only be added to: the attributes of chattr(1).
pub(crate) fn protection(path: &Path) -> Option<&'static str> {
    let answer = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::TYPE).ok()?;
    let has = |attribute: StatxAttributes| {
        answer.stx_attributes_mask.contains(attribute) && answer.stx_attributes.contains(attribute)
    };
    if has(StatxAttributes::IMMUTABLE) {
        Some("it is immutable: see lsattr and chattr -i")
    } else if has(StatxAttributes::APPEND) {
        Some("it is append-only: see lsattr and chattr -a")
    } else {
        None
    }
}

/// Size of the block device at `path` in bytes; `None` if it cannot be opened.
pub(crate) fn block_size(path: &Path) -> Option<u64> {
    rdsk_sys::device::block_device_size(open_for_reading(path)?).ok()
}

/// Bytes that the zones of the block device at `path` hold; `None` if it has none, or cannot be asked.
pub(crate) fn zone_written_bytes(path: &Path) -> Option<u64> {
    rdsk_sys::device::zone_written_bytes(open_for_reading(path)?).ok()
}

/// How a file is allocated on its filesystem; `None` if that is not known. Dirty pages of the program that writes to it stay where they are:
/// what has no place yet counts as data.
pub(crate) fn allocation_of(path: &Path, offset: u64, len: u64) -> Option<ExtentEvidence> {
    let fd = open_itself(path)?;
    allocation(fd, offset, len, Flush::Never)
}

/// How many of the first `size_bytes` of a file lie in blocks that other files have too; 0 where the filesystem does not say, all of
/// them if they lie in too many pieces to be listed.
pub(crate) fn shared_bytes(path: &Path, size_bytes: u64) -> u64 {
    let Some(fd) = open_itself(path) else { return 0 };
    match extents(fd, 0, size_bytes, Flush::Never) {
        Ok(list) => rdsk_sys::extents::shared_bytes(&list),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => size_bytes,
        Err(_) => 0,
    }
}

/// Sums up FIEMAP. Data stored inline or not yet placed are data, not a hole, so they count as mapped.
pub(crate) fn allocation(fd: impl AsFd, offset: u64, len: u64, flush: Flush) -> Option<ExtentEvidence> {
    let list = extents(fd, offset, len, flush).ok()?;
    let sum = summarise(&list, offset, len);
    Some(ExtentEvidence {
        mapped_bytes: sum.mapped_bytes + sum.inline_or_delalloc_bytes,
        unwritten_bytes: sum.unwritten_bytes,
        hole_bytes: sum.hole_bytes,
        extents: sum.extents,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    #[test]
    fn filesystems_rewrite_in_three_ways() {
        assert_eq!(rewriting_of(0xef53), Rewriting::InPlace);
        assert_eq!(rewriting_of(0x9123_683e), Rewriting::Copies);
        assert_eq!(rewriting_of(0x3434), Rewriting::Keeps);
        let taken = |way: Rewriting| [0, 4].map(|again| way.taken_bytes(10, again));
        assert_eq!(taken(Rewriting::InPlace), [10, 10]);
        assert_eq!(taken(Rewriting::Copies), [10, 14]);
        assert_eq!(taken(Rewriting::Keeps), [10, u64::MAX]);
    }

    #[test]
    fn a_lease_that_may_not_be_asked_is_no_answer() {
        const EXT4: Option<u64> = Some(0xef53);
        const ZFS: Option<u64> = Some(0x2fc1_2fc1);
        let failed = |errno: Errno| writers_by(Err(errno.into()), EXT4);
        for local in [EXT4, ZFS, Some(0x4d44), Some(0x2011_bab0), Some(0x3153_464a)] {
            assert_eq!(writers_by(Ok(true), local), Writers::Some);
            assert_eq!(writers_by(Ok(false), local), Writers::None);
        }
        for of_server in [Some(0x6969), Some(0xff53_4d42), Some(0xfe53_4d42), None] {
            assert_eq!(writers_by(Ok(true), of_server), Writers::NotAskable, "{of_server:x?}");
            assert_eq!(writers_by(Ok(false), of_server), Writers::None, "{of_server:x?}");
        }
        assert_eq!([Errno::ACCESS, Errno::PERM].map(failed), [Writers::MayNotBeAsked; 2]);
        assert_eq!(failed(Errno::INVAL), Writers::NotAskable, "a filesystem without leases");
        assert_eq!(writers(Path::new("/nonexistent")), Writers::None);
        let file = tempfile::NamedTempFile::new().unwrap();
        if rdsk_sys::openers::has_writers(fs::File::open(file.path()).unwrap()).is_ok() {
            assert_eq!(writers(file.path()), Writers::Some, "whatever filesystem it is");
        }
    }

    #[test]
    fn what_opens_directly_need_not_be_direct() {
        assert_eq!(is_direct(Ok(()), None), Some(true), "before Linux 6.1");
        assert_eq!(is_direct(Ok(()), Some(512)), Some(true));
        assert_eq!(is_direct(Ok(()), Some(0)), Some(false));
        assert_eq!(is_direct(Err(Errno::INVAL), None), Some(false));
        assert_eq!(is_direct(Err(Errno::ACCESS), Some(512)), None);
    }

    #[test]
    fn a_file_answers() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 8192]).unwrap();
        file.as_file().sync_all().unwrap();
        assert!(direct_io(file.path()).is_some());
        assert_eq!(nowait(file.as_file(), 8192, 512), Some(true));
        assert_eq!(nowait(file.as_file(), 100, 512), None, "too small to try");
        assert!(dontcache(file.path(), 8192).is_some());
        assert_eq!(direct_io(Path::new("/nonexistent")), None);
        assert_eq!(dontcache(Path::new("/nonexistent"), 0), None);
        assert_eq!(direct_align(Path::new("/nonexistent")), None);
        if let Some(align) = direct_align(file.path()) {
            assert!(align.is_power_of_two());
        }
    }
}
