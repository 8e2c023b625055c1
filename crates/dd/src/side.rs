//! One end of a copy: an open file, its name, where it stands, and what was done to it. Errors are the kernel's.

use crate::no_cache::Gathered;
use crate::quote::{self, Charset};
use crate::stamps::{Stamp, Stamps, TickRate, span_ns};
use crate::wait;
use rdsk_stats::Histogram;
use rdsk_sys::start::Standard;
use rustix::event::PollFlags;
use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The input or the output of a copy.
#[derive(Debug)]
pub struct Side {
    file: OpenFile,
    /// Its name in messages.
    pub name: OsString,
    charset: Charset,
    /// Position in the file, or why it has none: a pipe, a descriptor that is closed.
    pub(crate) offset: Result<u64, Errno>,
    /// Whether the kernel writes at the end of the file, wherever it stands: `O_APPEND` of a regular file.
    is_appended: bool,
    /// Whether a transfer may wait for somebody else: a pipe, a socket, a terminal.
    pub(crate) waits: bool,
    /// What the page cache was not told to drop yet.
    pub(crate) gathered: Gathered,
    pub(crate) calls: Calls,
    pub(crate) recent: Recent,
}

/// How long the last calls took that are not among [`Calls`] yet. Each block of a copy drives most of what a processor's first cache
/// holds out of it, so that a histogram is touched once for many blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    pub(crate) rate: Option<TickRate>,
    count: usize,
    spans: [Stamp; RECENT],
}

/// Two cache lines.
const RECENT: usize = 14;

/// Whose file it is.
#[derive(Debug)]
pub enum OpenFile {
    /// Opened for this copy, which closes it.
    Own(OwnedFd),
    /// Standard input or output, which the process had from the start. It is closed at the end, too: whoever reads a pipe is
    /// not to wait for more, and a filesystem may tell only here that a write failed.
    Inherited(Standard, BorrowedFd<'static>),
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) => fd.as_fd(),
            Self::Inherited(_, fd) => *fd,
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
    /// How long they took; `None` if that is not known.
    pub times: Option<CallTimes>,
    /// The first error that the kernel returned: its position and its number.
    pub error: Option<(u64, i32)>,
}

/// How long the calls of one end took.
#[derive(Clone, Debug, Default)]
pub struct CallTimes {
    /// Time in all calls, those at the end of the input and those that failed included.
    pub spent: Duration,
    /// Times of the calls that moved bytes, in nanoseconds.
    pub latency_ns: Histogram,
}

impl Side {
    /// An open file with its name in messages, and the characters that these may hold.
    pub fn new(file: OpenFile, name: OsString, charset: Charset) -> Self {
        let offset = rustix::fs::seek(&file, SeekFrom::Current(0));
        let flags = rustix::fs::fcntl_getfl(&file);
        let is_blocking = flags.is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        let has_append = flags.is_ok_and(|flags| flags.contains(OFlags::APPEND));
        let is_appended = has_append && length_of(file.as_fd()).is_some();
        let waits = is_blocking && waits_for_others(file.as_fd());
        Self {
            file,
            name,
            charset,
            offset,
            is_appended,
            waits,
            gathered: Gathered::default(),
            calls: Calls { times: Some(CallTimes::default()), ..Calls::default() },
            recent: Recent::default(),
        }
    }

    /// The open file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where the first read of a copy takes place that skips so many bytes.
    pub fn first_read(&self, skipped_bytes: u64) -> u64 {
        self.offset.unwrap_or(0).saturating_add(skipped_bytes)
    }

    /// Where the first write of a copy takes place that seeks so many bytes further.
    pub fn first_write(&self, sought_bytes: u64) -> u64 {
        let end = length_of(self.fd()).filter(|_| self.is_appended);
        end.unwrap_or_else(|| self.first_read(sought_bytes))
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
        self.offset = self.offset.and_then(|offset| offset.checked_add(bytes).ok_or(Errno::OVERFLOW));
    }

    /// One read(2); `EINTR` also where `wake` ended the wait for something to read. The wait is part of its time.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        stamps: &mut Stamps,
        wake: Option<&OwnedFd>,
    ) -> Result<usize, Errno> {
        let began = stamps.begin();
        let is_ready = !self.waits || wait::is_ready(self.fd(), PollFlags::IN, wake);
        let result = if is_ready { rustix::io::read(self.fd(), buffer) } else { Err(Errno::INTR) };
        self.count(stamps.end().saturating_sub(began), result, Self::stands)
    }

    /// One write(2); `EINTR` also where `wake` ended the wait for room. The wait is part of its time.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        stamps: &mut Stamps,
        wake: Option<&OwnedFd>,
    ) -> Result<usize, Errno> {
        let began = stamps.begin();
        let is_ready = !self.waits || wait::is_ready(self.fd(), PollFlags::OUT, wake);
        let result = if is_ready { rustix::io::write(self.fd(), bytes) } else { Err(Errno::INTR) };
        self.count(stamps.end().saturating_sub(began), result, Self::wrote_at)
    }

    fn stands(&self, _moved: usize) -> Option<u64> {
        self.offset.ok()
    }

    /// Where a write has moved so many bytes, or none. Of what is appended the kernel knows it: others may append, too.
    fn wrote_at(&self, moved: usize) -> Option<u64> {
        match moved {
            _ if !self.is_appended => self.offset.ok(),
            0 => length_of(self.fd()),
            _ => rustix::fs::seek(self.fd(), SeekFrom::Current(0)).ok()?.checked_sub(moved as u64),
        }
    }

    /// Counts a call; `place` tells where it was, and is asked of the first call and of the first error.
    #[inline]
    fn count(
        &mut self,
        span: Stamp,
        result: Result<usize, Errno>,
        place: fn(&Self, usize) -> Option<u64>,
    ) -> Result<usize, Errno> {
        if let Ok(moved) = result
            && moved > 0
            && self.calls.count == 0
        {
            self.calls.start = place(self, moved);
        }
        let calls = &mut self.calls;
        match result {
            Ok(moved) if moved > 0 => {
                calls.count += 1;
                calls.bytes += moved as u64;
                if self.recent.count == RECENT {
                    self.recent.join(calls);
                }
                self.recent.spans[self.recent.count] = span;
                self.recent.count += 1;
            }
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => calls.spend(span_ns(self.recent.rate, span)),
            Err(errno) => {
                calls.spend(span_ns(self.recent.rate, span));
                if calls.error.is_none() {
                    let at = place(self, 0).unwrap_or(0);
                    self.calls.error = Some((at, errno.raw_os_error()));
                }
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

    pub(crate) fn is_direct(&self) -> bool {
        rustix::fs::fcntl_getfl(self.fd()).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    pub(crate) fn turn_off_direct(&self) -> Result<(), Errno> {
        let flags = rustix::fs::fcntl_getfl(self.fd())?;
        rustix::fs::fcntl_setfl(self.fd(), flags - OFlags::DIRECT)
    }

    /// Closes the file; the last close of a block device writes its dirty pages. Gives what was done to it.
    pub(crate) fn close(mut self) -> (Calls, Result<(), Errno>) {
        self.recent.join(&mut self.calls);
        let closed = match self.file {
            OpenFile::Own(fd) => rdsk_sys::io::close(fd),
            OpenFile::Inherited(standard, _) => rdsk_sys::start::close(standard),
        };
        (self.calls, closed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }
}

impl Recent {
    /// Puts them among the others.
    #[cold]
    fn join(&mut self, calls: &mut Calls) {
        for &span in &self.spans[..self.count] {
            let ns = span_ns(self.rate, span);
            calls.spend(ns);
            if let Some(times) = &mut calls.times {
                times.latency_ns.record(ns);
            }
        }
        self.count = 0;
    }
}

impl Calls {
    fn spend(&mut self, ns: u64) {
        if let Some(times) = &mut self.times {
            times.spent += Duration::from_nanos(ns);
        }
    }
}

/// How long a regular file is.
fn length_of(fd: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| u64::try_from(stat.st_size).ok()).flatten()
}

fn waits_for_others(fd: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => true,
        Ok(FileType::CharacterDevice) => rustix::termios::isatty(fd),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt as _;

    fn side(path: &std::path::Path, append: OFlags) -> Side {
        let flags = i32::try_from(append.bits()).expect("flags of open(2)");
        let file = std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = OpenFile::Own(file.expect("a file").into());
        Side::new(file, "file".into(), Charset::Ascii)
    }

    #[test]
    fn what_is_appended_begins_at_the_end_of_the_file() {
        let directory = tempfile::tempdir().expect("a place for files");
        let path = directory.path().join("file");
        std::fs::write(&path, [7; 100]).expect("a file");
        let mut stamps = Stamps::new(true, None);
        let mut appended = side(&path, OFlags::APPEND);
        assert_eq!((appended.first_write(8), appended.first_read(8)), (100, 8));
        assert_eq!(appended.write(b"more", &mut stamps, None), Ok(4));
        assert_eq!(appended.write(b"more", &mut stamps, None), Ok(4));
        assert_eq!((appended.calls.start, appended.calls.bytes), (Some(100), 8));
        let mut read = side(&path, OFlags::APPEND);
        assert_eq!(read.read(&mut [0; 8], &mut stamps, None), Ok(8));
        assert_eq!(read.calls.start, Some(0), "reads begin where the file stands");
        let mut written = side(&path, OFlags::empty());
        assert_eq!(written.first_write(8), 8);
        assert_eq!(written.write(b"more", &mut stamps, None), Ok(4));
        assert_eq!(written.calls.start, Some(0));
    }
}
