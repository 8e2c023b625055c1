//! Positioned reads and writes with the per-call flags of preadv2(2) and pwritev2(2). One call, no allocation, no
//! retry: a short transfer, EINTR and EAGAIN are the caller's to handle. And close(2) with its result, and writing
//! out a part of a file.
#![allow(
    unsafe_code,
    reason = "close(2) by number, to see its result; sync_file_range(2) has no safe wrapper"
)]

use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};

use rustix::io::Errno;
/// The `RWF_*` flags of one transfer; without any it is a plain pread(2) or pwrite(2).
pub use rustix::io::ReadWriteFlags as Flags;

/// `RWF_DONTCACHE` (Linux 6.14): buffered I/O whose pages are dropped from the cache when it is done with them.
pub const DONTCACHE: Flags = Flags::from_bits_retain(0x80);

/// Whether the kernel takes a flag for I/O on an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSupport {
    /// It does.
    Yes,
    /// It refuses (`EOPNOTSUPP`).
    No,
    /// The probe failed with another error and shows nothing.
    Unknown {
        /// The error's number, see errno(3).
        errno: i32,
    },
}

/// Reads up to `buffer.len()` bytes at `offset`; returns the bytes read, 0 at the end of the file.
///
/// # Errors
/// Those of preadv2(2): among them `EAGAIN` with NOWAIT, `EOPNOTSUPP` for a flag the file does not support, `EINVAL`
/// for a direct read that is not aligned, `EINTR`.
#[inline]
pub fn pread2(fd: impl AsFd, buffer: &mut [u8], offset: u64, flags: Flags) -> io::Result<usize> {
    if flags.is_empty() {
        return Ok(rustix::io::pread(fd, buffer, offset)?);
    }
    Ok(rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, flags)?)
}

/// Writes up to `buffer.len()` bytes at `offset`; returns the bytes written.
///
/// # Errors
/// Those of pwritev2(2): among them `EAGAIN` with NOWAIT, `EOPNOTSUPP` for a flag the file does not support, `EINVAL`
/// for a direct write that is not aligned, `ENOSPC`, `EINTR`.
#[inline]
pub fn pwrite2(fd: impl AsFd, buffer: &[u8], offset: u64, flags: Flags) -> io::Result<usize> {
    if flags.is_empty() {
        return Ok(rustix::io::pwrite(fd, buffer, offset)?);
    }
    Ok(rustix::io::pwritev2(fd, &[IoSlice::new(buffer)], offset, flags)?)
}

/// Closes a descriptor.
///
/// # Errors
/// What the kernel says: a filesystem may report here that an earlier write failed. The descriptor is closed
/// nevertheless.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned here and is given up; nothing else knows its number.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Linux has closed it, and nothing is wrong.
        error if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        error => Err(error),
    }
}

/// A part of writing out a range of a file; see sync_file_range(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOut {
    /// Hands the dirty pages to the device.
    Start,
    /// Waits until the device has those that were handed to it.
    Wait,
}

/// Writes out `len` bytes from `offset` (`len` 0: to the end), without metadata and without flushing the device's
/// cache.
///
/// # Errors
/// Those of sync_file_range(2): among them `EIO` for a write that failed, `ESPIPE` for what is no file and no block
/// device.
pub fn write_out(fd: impl AsFd, offset: u64, len: u64, part: WriteOut) -> io::Result<()> {
    let flags = match part {
        WriteOut::Start => libc::SYNC_FILE_RANGE_WRITE,
        WriteOut::Wait => libc::SYNC_FILE_RANGE_WAIT_BEFORE,
    };
    sync_file_range(fd.as_fd(), (offset, len), flags)
}

/// sync_file_range(2) of a part of a file.
pub(crate) fn sync_file_range(
    fd: BorrowedFd<'_>,
    (offset, len): (u64, u64),
    flags: libc::c_uint,
) -> io::Result<()> {
    let number = |value: u64| i64::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    let (offset, len) = (number(offset)?, number(len)?);
    // SAFETY: the call takes numbers only and touches no memory of this process.
    if unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, flags) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Tries one read with NOWAIT at `offset`, which must lie inside the file. Where the kernel refuses it, io_uring hands each
/// I/O to a worker thread.
///
/// `buffer` must satisfy the descriptor's alignment when it is open with `O_DIRECT`. The probe may start a read of that
/// many bytes on the device, so do it before a measurement, not during one.
pub fn supports_nowait(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> FlagSupport {
    support(rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, Flags::NOWAIT))
}

/// Whether I/O through the page cache of an open file takes [`DONTCACHE`]: a read at `end`, the size of the file or device,
/// where there is nothing to read. The kernel looks at the flag first, so that no page is read or dropped.
pub fn supports_dontcache(fd: impl AsFd, end: u64) -> FlagSupport {
    support(rustix::io::preadv2(fd, &mut [IoSliceMut::new(&mut [0])], end, DONTCACHE))
}

fn support(answer: rustix::io::Result<usize>) -> FlagSupport {
    match answer {
        Ok(_) | Err(Errno::AGAIN) => FlagSupport::Yes,
        // A kernel without the call knows no flag.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => FlagSupport::No,
        Err(errno) => FlagSupport::Unknown { errno: errno.raw_os_error() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};

    const BLOCK: usize = 4096;

    /// A block-aligned window of a larger buffer, as direct I/O wants it.
    fn aligned(storage: &mut [u8; 2 * BLOCK]) -> &mut [u8] {
        let skip = storage.as_ptr().align_offset(BLOCK);
        &mut storage[skip..skip + BLOCK]
    }

    #[test]
    fn what_is_written_is_read_with_and_without_flags() {
        let file = tempfile::tempfile().unwrap();
        for (index, flags) in
            [Flags::empty(), Flags::DSYNC, Flags::SYNC, Flags::DSYNC | Flags::SYNC].into_iter().enumerate()
        {
            let offset = u64::try_from(index * 1000).unwrap();
            let text = [u8::try_from(index).unwrap() + 1; 100];
            assert_eq!(pwrite2(&file, &text, offset, flags).unwrap(), 100);
            let mut back = [0; 100];
            assert_eq!(pread2(&file, &mut back, offset, Flags::empty()).unwrap(), 100);
            assert_eq!(back, text);
        }
        let mut beyond = [0; 10];
        assert_eq!(pread2(&file, &mut beyond, 1 << 30, Flags::empty()).unwrap(), 0);
        assert_eq!(
            pread2(&file, &mut beyond, 3095, Flags::empty()).unwrap(),
            5,
            "a short read is reported as such"
        );
    }

    #[test]
    fn nowait_does_not_wait_for_an_uncached_page() {
        let file = tempfile::tempfile().unwrap();
        pwrite2(&file, &[7; BLOCK], 0, Flags::empty()).unwrap();
        let mut buffer = [0; BLOCK];
        assert_eq!(
            pread2(&file, &mut buffer, 0, Flags::NOWAIT).unwrap(),
            BLOCK,
            "a cached page needs no wait"
        );
        // The kernel starts the read before it declines to wait, and on a fast disk it may be done by then. A filesystem
        // in memory drops nothing.
        let results = (0..100).filter_map(|_| {
            crate::cache::drop_cached(&file, 0, 0).unwrap();
            let cold = crate::cache::cachestat(&file, 0, 0).unwrap().cached == 0;
            cold.then(|| pread2(&file, &mut buffer, 0, Flags::NOWAIT))
        });
        let would_block = |result: &io::Result<usize>| {
            result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        let results: Vec<_> = results.collect();
        assert!(results.is_empty() || results.iter().any(would_block), "an uncached page is not waited for");
        assert_eq!(supports_nowait(&file, &mut buffer, 0), FlagSupport::Yes);
    }

    #[test]
    fn probe_tells_other_errors_apart() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut buffer = [0; 16];
        assert_eq!(supports_nowait(&reader, &mut buffer, 0), FlagSupport::Unknown { errno: libc::ESPIPE });
        // procfs has no NOWAIT.
        let uptime = std::fs::File::open("/proc/uptime").unwrap();
        assert_eq!(supports_nowait(&uptime, &mut buffer, 0), FlagSupport::No);
        assert_eq!(supports_dontcache(&uptime, 0), FlagSupport::No, "nor this");
    }

    #[test]
    fn dontcache_leaves_nothing_cached_or_is_refused() {
        let file = tempfile::tempfile().unwrap();
        // The kernel drops the page a moment after it wakes who waits for its data, and leaves one that a program holds.
        let is_dropped = |_| {
            let file = tempfile::tempfile().unwrap();
            pwrite2(&file, &[1; BLOCK], 0, DONTCACHE | Flags::DSYNC).unwrap();
            (0..1000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                crate::cache::cachestat(&file, 0, 0).unwrap().cached == 0
            })
        };
        match pwrite2(&file, &[1; BLOCK], 0, DONTCACHE | Flags::DSYNC) {
            Ok(written) => {
                assert_eq!(written, BLOCK);
                assert!((0..10).any(is_dropped), "it stays in the page cache");
                assert_eq!(supports_dontcache(&file, BLOCK as u64), FlagSupport::Yes);
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
                assert_eq!(supports_dontcache(&file, 0), FlagSupport::No);
            }
        }
    }

    #[test]
    fn the_probe_for_dontcache_leaves_the_cache_as_it_is() {
        let file = tempfile::tempfile().unwrap();
        pwrite2(&file, &[1; BLOCK], 0, Flags::DSYNC).unwrap();
        let cached = || crate::cache::cachestat(&file, 0, 0).unwrap().cached;
        let before = cached();
        supports_dontcache(&file, BLOCK as u64);
        assert!(cached() <= before, "nothing is read");
    }

    #[test]
    fn direct_transfers_need_alignment_and_work_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("direct");
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::DIRECT;
        let Ok(file) = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)) else {
            eprintln!("SKIPPED direct_transfers: the temporary directory has no O_DIRECT");
            return;
        };
        let mut storage = [3; 2 * BLOCK];
        let buffer = aligned(&mut storage);
        assert_eq!(pwrite2(&file, buffer, 0, Flags::DSYNC).unwrap(), BLOCK);
        assert_eq!(pread2(&file, buffer, 0, Flags::empty()).unwrap(), BLOCK);
        assert_eq!(supports_nowait(&file, buffer, 0), FlagSupport::Yes);
        let error = pread2(&file, &mut buffer[..100], 0, Flags::empty()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn flags_join() {
        let both = Flags::DSYNC | Flags::NOWAIT;
        assert!(both.contains(Flags::DSYNC) && both.contains(Flags::NOWAIT) && !both.contains(Flags::HIPRI));
        assert!(Flags::empty().is_empty() && !both.is_empty());
    }
}
