//! What the page cache holds of a file, and how to drop it. It never decides whether a cache is cold enough.
#![allow(unsafe_code, reason = "cachestat(2), mmap(2) and mincore(2) have no safe wrapper")]

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::mount_type;
use rustix::fs::{Access, Advice, AtFlags, FileType};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Number of `cachestat` in the system call table that all architectures have shared since number 424.
/// The exceptions, alpha and mips, answer `ENOSYS` to it or are not built for.
const SYS_CACHESTAT: libc::c_long = 451;

/// Bytes mapped at a time by the mincore fallback, so that its residency vector stays at 256 KiB (4 KiB pages).
const MINCORE_WINDOW_BYTES: u64 = 1 << 30;

/// Most bytes that the mincore fallback examines. It asks page by page, about 10 ms for each GiB: a whole disk of terabytes
/// would take minutes before each cell, and one of 8 EiB forever (seen on 6.1, 2026-11).
pub const MAX_MINCORE_BYTES: u64 = 16 << 30;

/// State of a range of a file in the page cache. All counts are pages of [`page_size`] bytes. cachestat(2), Linux 6.5 and later, knows
/// every field, mincore(2) only `cached`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStat {
    /// Pages in the cache, dirty and clean.
    pub cached: u64,
    /// Pages changed and not yet handed to the device. `None` when the source cannot say.
    pub dirty: Option<u64>,
    /// Pages being written to the device now. `None` when the source cannot say.
    pub writeback: Option<u64>,
}

impl CacheStat {
    /// Bytes in the cache, in whole pages.
    pub fn cached_bytes(&self) -> u64 {
        self.cached * page_size()
    }

    /// Bytes changed and not yet handed to the device, in whole pages.
    pub fn dirty_bytes(&self) -> Option<u64> {
        self.dirty.map(|pages| pages * page_size())
    }

    /// Bytes on their way to the device, in whole pages.
    pub fn writeback_bytes(&self) -> Option<u64> {
        self.writeback.map(|pages| pages * page_size())
    }
}

/// Size of a page in bytes.
pub fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).expect("a page is smaller than 2^64 bytes")
}

/// Asks what the page cache holds of `len` bytes from `offset` (`len` 0: to the end of the file).
///
/// A page counts when any of its bytes is in the range. Uses cachestat(2); where the kernel lacks it, a sandbox forbids
/// it, or the file lies on an overlay, mincore(2), which needs a descriptor open for reading and knows only `cached`.
///
/// # Errors
/// Those of the calls. `PermissionDenied` where the kernel would hide the answer: it shows the cache state only to
/// those who own the file or may write it, and mincore(2) answers "all resident" to all others, which would be a false
/// figure and is therefore not passed on. `FileTooLarge` where mincore(2) would have to examine more than
/// [`MAX_MINCORE_BYTES`].
pub fn cachestat(fd: impl AsFd, offset: u64, len: u64) -> io::Result<CacheStat> {
    let fd = fd.as_fd();
    match cachestat_call(fd, offset, len) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            mapped(fd, offset, len)
        }
        // An overlay has no pages of its own; the program that has some is none.
        Ok(stat) if stat.cached == 0 && mount_type::is_overlay(fd) => mapped(fd, offset, len),
        other => other,
    }
}

/// The same by mincore(2) alone, which looks at the pages that a mapping of the file would have. On an overlay those
/// are the pages of the file below; cachestat(2) looks at the overlay's own, of which there are none (0 of 256 written
/// pages over tmpfs, Linux 6.18, 2026-11-26).
///
/// # Errors
/// As [`cachestat`].
pub fn mapped(fd: impl AsFd, offset: u64, len: u64) -> io::Result<CacheStat> {
    let fd = fd.as_fd();
    if mincore_tells_the_truth(fd)? {
        cachestat_by_mincore(fd, offset, len)
    } else {
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }
}

/// Writes back `len` bytes from `offset` (`len` 0: to the end) and asks the kernel to drop their cached pages.
///
/// The write-back covers the whole file, because a dirty page is not dropped. The kernel may keep pages: those only
/// partly in the range, those that others map or lock, and, where the filesystem caches in large folios, the whole
/// folio that extends beyond the range. On ext4 of Linux 6.18 a 256 KiB write became one folio of 64 pages, and
/// dropping its first 16 pages dropped none. Check with [`cachestat`] afterwards, or drop the whole file.
///
/// # Errors
/// Those of fdatasync(2), except that the filesystem has none, and of posix_fadvise(2); `InvalidInput` when a range
/// exceeds 2^63 bytes.
pub fn drop_cached(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let fd = fd.as_fd();
    match rustix::fs::fdatasync(fd) {
        // A filesystem that is only read (iso9660, squashfs, EROFS) has nothing to write back, and no fsync(2).
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    rustix::fs::fadvise(fd, offset, NonZeroU64::new(len), Advice::DontNeed)?;
    Ok(())
}

/// Writes back what is dirty in `len` bytes from `offset` (`len` 0: to the end) and asks the kernel to drop their
/// cached pages. Unlike [`drop_cached`] it leaves the rest of the file and the disk's own cache as they are, and makes
/// nothing stable; so it is for what others write. An overlay has no pages of its own to write back, so there it does
/// all that [`drop_cached`] does.
///
/// # Errors
/// Those of sync_file_range(2) and of posix_fadvise(2); `InvalidInput` when a range exceeds 2^63 bytes.
pub fn drop_cached_range(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let fd = fd.as_fd();
    if mount_type::is_overlay(fd) {
        return drop_cached(fd, offset, len);
    }
    crate::io::sync_file_range(
        fd,
        (offset, len),
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER,
    )?;
    rustix::fs::fadvise(fd, offset, NonZeroU64::new(len), Advice::DontNeed)?;
    Ok(())
}

/// Writes back and drops everything the kernel caches of a block device (`BLKFLSBUF`).
///
/// # Errors
/// `EACCES` without `CAP_SYS_ADMIN`; `ENOTTY` when `fd` is no block device.
pub fn drop_block_device(fd: impl AsFd) -> io::Result<()> {
    const BLKFLSBUF: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 97);
    // SAFETY: BLKFLSBUF takes no argument and touches no memory of this process.
    unsafe { rustix::ioctl::ioctl(fd, rustix::ioctl::NoArg::<BLKFLSBUF>::new()) }?;
    Ok(())
}

/// `struct cachestat_range` of include/uapi/linux/mman.h.
#[repr(C)]
struct RawRange {
    off: u64,
    len: u64,
}

/// `struct cachestat` of include/uapi/linux/mman.h.
#[repr(C)]
#[derive(Default)]
struct RawStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted_and_recently_evicted: [u64; 2],
}

fn cachestat_call(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<CacheStat> {
    let range = RawRange { off: offset, len };
    let mut raw = RawStat::default();
    // SAFETY: both structures live across the call and have the layout the kernel reads and writes; flags are 0.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut raw, 0 as libc::c_uint)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CacheStat { cached: raw.cached, dirty: Some(raw.dirty), writeback: Some(raw.writeback) })
}

/// Whether the kernel gives this process the true residency of the file: the rule of `can_do_mincore()` in
/// mm/mincore.c (since 5.2), without `CAP_FOWNER`, which errs on the side of no answer.
fn mincore_tells_the_truth(fd: BorrowedFd<'_>) -> io::Result<bool> {
    if rustix::fs::fstat(fd)?.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(true);
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::accessat(rustix::fs::CWD, path.as_str(), Access::WRITE_OK, AtFlags::EACCESS).is_ok())
}

fn cachestat_by_mincore(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<CacheStat> {
    let stat = rustix::fs::fstat(fd)?;
    let size = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => crate::device::block_device_size(fd)?,
        _ => u64::try_from(stat.st_size).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?,
    };
    let wanted_end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
    let end = wanted_end.min(size);
    let page = page_size();
    let mut at = offset - offset % page;
    if end.saturating_sub(at) > MAX_MINCORE_BYTES {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let mut cached = 0;
    while at < end {
        let step = (end - at).min(MINCORE_WINDOW_BYTES);
        cached += resident_pages(fd, at, step)?;
        at += step;
    }
    Ok(CacheStat { cached, dirty: None, writeback: None })
}

/// Counts the resident pages of `len` > 0 bytes from the page-aligned `offset`.
fn resident_pages(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<u64> {
    let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let len_usize = usize::try_from(len).map_err(too_long)?;
    let pages = usize::try_from(len.div_ceil(page_size())).map_err(too_long)?;
    let mut residency = vec![0u8; pages];
    // SAFETY: a new mapping at an address the kernel chooses aliases nothing, and no byte of it is ever accessed,
    // so a file that shrinks meanwhile cannot raise SIGBUS.
    let map = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), len_usize, ProtFlags::READ, MapFlags::SHARED, fd, offset)
    }?;
    // SAFETY: the mapping spans `len_usize` bytes and `residency` has one byte for each of its pages.
    let result = unsafe { libc::mincore(map, len_usize, residency.as_mut_ptr()) };
    let outcome = if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: the range is exactly the mapping made above, and nothing refers to it.
    unsafe { rustix::mm::munmap(map, len_usize) }?;
    outcome?;
    Ok(residency.iter().map(|byte| u64::from(byte & 1)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write as _;

    const PAGES: u64 = 64;

    /// A temporary file of [`PAGES`] pages, just written and not synchronised.
    fn written_file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        let len = usize::try_from(PAGES * page_size()).unwrap();
        file.write_all(&vec![0xa5; len]).unwrap();
        file
    }

    /// As on filesystems that are only read; files of procfs have no fsync(2) either.
    #[test]
    fn what_cannot_be_written_back_can_be_dropped() {
        let file = File::open("/proc/self/status").unwrap();
        assert_eq!(rustix::fs::fdatasync(&file), Err(Errno::INVAL));
        drop_cached(&file, 0, 0).unwrap();
    }

    #[test]
    fn mincore_looks_at_no_more_than_it_can() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MAX_MINCORE_BYTES + page_size()).unwrap();
        let error = cachestat_by_mincore(file.as_fd(), 0, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
        assert!(cachestat_by_mincore(file.as_fd(), MAX_MINCORE_BYTES, 0).is_ok(), "the last page alone");
    }

    /// One of some attempts holds: the kernel may take clean pages away at any moment.
    fn once(attempt: impl FnMut(u32) -> bool) {
        assert!((0..20).any(attempt), "in none of twenty attempts");
    }

    #[test]
    fn follows_a_file_from_dirty_to_clean_to_dropped() {
        let file = written_file();
        let after_write = cachestat(&file, 0, 0).unwrap();
        assert_eq!(after_write.cached, PAGES);
        assert_eq!(after_write.cached_bytes(), PAGES * page_size());
        if let Some(dirty) = after_write.dirty {
            // The kernel's own flusher may already have begun, but not have finished, within this instant.
            assert!(dirty + after_write.writeback.unwrap() > 0, "{after_write:?}");
        }

        once(|_| {
            let file = written_file();
            file.sync_all().unwrap();
            let after_sync = cachestat(&file, 0, 0).unwrap();
            if after_sync.dirty.is_some() {
                assert_eq!((after_sync.dirty_bytes(), after_sync.writeback_bytes()), (Some(0), Some(0)));
            }
            assert!(after_sync.cached <= PAGES);
            after_sync.cached == PAGES
        });
        drop_cached(&file, 0, 0).unwrap();
        assert_eq!(cachestat(&file, 0, 0).unwrap().cached, 0);
    }

    #[test]
    fn drops_and_counts_only_the_range() {
        let page = page_size();
        once(|_| {
            let mut file = tempfile::tempfile().unwrap();
            // Page by page, because one large write may become one large folio, which is dropped whole or not at all.
            for _ in 0..PAGES {
                file.write_all(&vec![0x5a; usize::try_from(page).unwrap()]).unwrap();
            }
            drop_cached(&file, 0, 16 * page).unwrap();
            assert_eq!(cachestat(&file, 0, 16 * page).unwrap().cached, 0);
            assert_eq!(cachestat(&file, PAGES * page, 0).unwrap().cached, 0);
            cachestat(&file, 16 * page, 0).unwrap().cached == PAGES - 16
        });
    }

    #[test]
    fn drop_writes_back_first() {
        let file = written_file();
        drop_cached(&file, 0, 0).unwrap();
        assert_eq!(cachestat(&file, 0, 0).unwrap().cached, 0);
    }

    #[test]
    fn a_range_is_written_back_and_dropped_alone() {
        let page = page_size();
        once(|_| {
            let mut file = tempfile::tempfile().unwrap();
            // As above, page by page.
            for _ in 0..PAGES {
                file.write_all(&vec![0x5a; usize::try_from(page).unwrap()]).unwrap();
            }
            drop_cached_range(&file, 0, 16 * page).unwrap();
            // A filesystem may have to do with a page for a moment after it was written.
            let left = cachestat(&file, 0, 16 * page).unwrap().cached;
            left == 0 && cachestat(&file, 16 * page, 0).unwrap().cached == PAGES - 16
        });
        assert_eq!(
            drop_cached_range(written_file(), u64::MAX, 1).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[test]
    fn mincore_agrees_with_cachestat() {
        let file = written_file();
        file.sync_all().unwrap();
        let page = page_size();
        for (offset, len) in [(0, 0), (0, 3 * page), (page + 1, page), (7 * page, 0), (PAGES * page, 0)] {
            let by_mincore = cachestat_by_mincore(file.as_fd(), offset, len).unwrap();
            assert_eq!(by_mincore.dirty, None);
            once(|_| {
                let by_mincore = cachestat_by_mincore(file.as_fd(), offset, len).unwrap();
                cachestat_call(file.as_fd(), offset, len)
                    .map_or(true, |by_call| by_mincore.cached == by_call.cached)
            });
        }
        drop_cached(&file, 0, 0).unwrap();
        assert_eq!(cachestat_by_mincore(file.as_fd(), 0, 0).unwrap().cached, 0);
    }

    #[test]
    fn owner_may_trust_mincore() {
        assert!(mincore_tells_the_truth(written_file().as_fd()).unwrap());
    }

    #[test]
    fn a_regular_file_is_no_block_device() {
        let error = drop_block_device(written_file()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
