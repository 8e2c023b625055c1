//! One end of a copy: an open file, its name, where it stands, and what was done to it. Errors are the kernel's.

use crate::quote::{self, Charset};
use crate::stamps::Stamps;
use rdsk_stats::Histogram;
use rustix::fs::{Advice, FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Bytes that are gathered before the page cache is told to drop them.
const DROP_BYTES: u64 = 128 << 10;

/// The input or the output of a copy.
#[derive(Debug)]
pub struct Side {
    file: OpenFile,
    /// Its name in messages.
    pub name: OsString,
    charset: Charset,
    /// Position in the file; `None` if it has none, as a pipe.
    pub(crate) offset: Option<u64>,
    /// Whether a transfer may wait for somebody else: a pipe, a socket, a terminal.
    pub(crate) waits: bool,
    /// Position up to which the page cache was told to drop what was transferred.
    dropped_to: u64,
    pub(crate) calls: Calls,
}

/// Whose file it is.
#[derive(Debug)]
pub enum OpenFile {
    /// Opened for this copy, which closes it.
    Own(OwnedFd),
    /// Standard input or output, which the process had from the start.
    Inherited(BorrowedFd<'static>),
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Inherited(fd) => *fd,
        }
    }
}

/// The calls that transferred the data of one end.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Position of the first transfer; `None` if the file has no positions.
    pub start: Option<u64>,
    /// Calls that moved bytes.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Time in all calls, those at the end of the input and those that failed included.
    pub spent: Duration,
    /// Times of the calls that moved bytes, in nanoseconds.
    pub latency_ns: Histogram,
    /// The first error that the kernel returned: its position and its number.
    pub error: Option<(u64, i32)>,
}

impl Side {
    /// An open file with its name in messages, and the characters that these may hold.
    pub fn new(file: OpenFile, name: OsString, charset: Charset) -> Self {
        let offset = rustix::fs::seek(&file, SeekFrom::Current(0)).ok();
        let is_blocking = rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        let waits = is_blocking && waits_for_others(file.as_fd());
        Self { file, name, charset, offset, waits, dropped_to: offset.unwrap_or(0), calls: Calls::default() }
    }

    /// The open file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// `'name'`.
    pub(crate) fn quoted(&self) -> String {
        quote::file(self.name.as_bytes(), self.charset)
    }

    /// The name, quoted only if a shell would need it.
    pub(crate) fn plain(&self) -> String {
        quote::file_if_needed(self.name.as_bytes(), self.charset)
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.and_then(|offset| offset.checked_add(bytes));
    }

    /// One read(2).
    pub(crate) fn read(&mut self, buffer: &mut [u8], stamps: &mut Stamps) -> Result<usize, Errno> {
        let began = stamps.begin();
        let result = rustix::io::read(self.file.as_fd(), buffer);
        self.count(stamps.end() - began, result)
    }

    /// One write(2).
    pub(crate) fn write(&mut self, bytes: &[u8], stamps: &mut Stamps) -> Result<usize, Errno> {
        let began = stamps.begin();
        let result = rustix::io::write(self.file.as_fd(), bytes);
        self.count(stamps.end() - began, result)
    }

    fn count(&mut self, spent: Duration, result: Result<usize, Errno>) -> Result<usize, Errno> {
        let calls = &mut self.calls;
        calls.spent += spent;
        match result {
            Ok(0) | Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(moved) => {
                if calls.count == 0 {
                    calls.start = self.offset;
                }
                calls.count += 1;
                calls.bytes += moved as u64;
                calls.latency_ns.record(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX));
            }
            Err(errno) => {
                let at = self.offset.unwrap_or(0);
                calls.error.get_or_insert((at, errno.raw_os_error()));
            }
        }
        result
    }

    pub(crate) fn seek_by(&self, bytes: u64) -> Result<u64, Errno> {
        let bytes = i64::try_from(bytes).map_err(|_| Errno::OVERFLOW)?;
        rustix::fs::seek(self.fd(), SeekFrom::Current(bytes))
    }

    pub(crate) fn is_seekable_to_end(&self) -> bool {
        rustix::fs::seek(self.fd(), SeekFrom::End(0)).is_ok()
    }

    /// Tells the page cache to drop what was transferred since the last time; all that is left if `is_last`.
    pub(crate) fn drop_cache(&mut self, is_last: bool) -> Result<(), Errno> {
        let Some(offset) = self.offset else { return Err(Errno::SPIPE) };
        let bytes = offset.saturating_sub(self.dropped_to);
        if bytes < DROP_BYTES && !is_last {
            return Ok(());
        }
        let (from, length) = (self.dropped_to, NonZeroU64::new(bytes).filter(|_| !is_last));
        self.dropped_to = offset;
        // No length means up to the end of the file.
        rustix::fs::fadvise(self.fd(), from, length, Advice::DontNeed)
    }

    pub(crate) fn is_direct(&self) -> bool {
        rustix::fs::fcntl_getfl(self.fd()).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    pub(crate) fn turn_off_direct(&self) -> Result<(), Errno> {
        let flags = rustix::fs::fcntl_getfl(self.fd())?;
        rustix::fs::fcntl_setfl(self.fd(), flags - OFlags::DIRECT)
    }

    /// Closes what was opened for the copy; the last close of a block device writes its dirty pages. Gives what was done to
    /// it.
    pub(crate) fn close(self) -> (Calls, Result<(), Errno>) {
        let closed = match self.file {
            OpenFile::Own(fd) => {
                rdsk_sys::io::close(fd).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
            OpenFile::Inherited(_) => Ok(()),
        };
        (self.calls, closed)
    }
}

fn waits_for_others(fd: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => true,
        Ok(FileType::CharacterDevice) => rustix::termios::isatty(fd),
        _ => false,
    }
}
