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
        let is_blocking = rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK));
        let waits = is_blocking && waits_for_others(file.as_fd());
        Self {
            file,
            name,
            charset,
            offset,
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
        self.count(stamps.end().saturating_sub(began), result)
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
        self.count(stamps.end().saturating_sub(began), result)
    }

    #[inline]
    fn count(&mut self, span: Stamp, result: Result<usize, Errno>) -> Result<usize, Errno> {
        let calls = &mut self.calls;
        match result {
            Ok(moved) if moved > 0 => {
                if calls.count == 0 {
                    calls.start = self.offset.ok();
                }
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

fn waits_for_others(fd: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => true,
        Ok(FileType::CharacterDevice) => rustix::termios::isatty(fd),
        _ => false,
    }
}
