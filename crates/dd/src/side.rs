//! One end of a copy: an open file, its name, where it stands, and what was done to it. Errors are the kernel's.

use crate::signals::Signals;
use rdsk_model::Clock;
use rdsk_stats::Histogram;
use rustix::event::PollFlags;
use rustix::fs::{Advice, FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Two cache lines of times.
const RECENT: usize = 14;
/// A call that took no longer was in flight in no pause of the process that shows ([`LongCall`]).
const LONG_NS: u64 = 150_000_000;
/// Bytes that are gathered before the page cache is asked to drop them.
const DROP_BYTES: u64 = 128 << 10;

/// The input or the output of a copy.
#[derive(Debug)]
pub struct Side {
    file: OwnedFd,
    /// Its name in messages; untrusted text.
    pub name: String,
    /// Position in the file; `None` for what has none, such as a pipe.
    pub(crate) offset: Option<u64>,
    /// Whether the kernel writes at the end of the file, wherever it stands: `O_APPEND` of a regular file.
    is_appended: bool,
    /// Whether a transfer may wait for another program: a pipe, a socket, a terminal.
    pub(crate) waits: bool,
    /// What was transferred, and which the page cache was not asked to drop.
    undropped_bytes: u64,
    pub(crate) calls: Calls,
    /// How long the last calls took that are not in the histogram yet. Each block of a copy drives most of what a processor's first
    /// cache holds out of it, so that the histogram is touched once for many blocks.
    recent_ns: [u64; RECENT],
    recent: usize,
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
    /// Time in all calls but the long ones, those at the end of the input and those that failed included.
    pub spent_ns: u64,
    /// Times of the calls that moved bytes, in nanoseconds, but for the long ones.
    pub latency_ns: Histogram,
    /// Calls in whose time the process may have been paused.
    pub long: Vec<LongCall>,
    /// The first error that the kernel returned: its position and its number.
    pub error: Option<(u64, i32)>,
}

/// A call that took so long that the process may have been paused meanwhile: whether it was, this room does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongCall {
    /// By the clock of the copy.
    pub begin_ns: u64,
    /// Likewise.
    pub end_ns: u64,
    /// Whether it moved bytes.
    pub has_moved: bool,
}

impl Side {
    /// An open file with its name in messages.
    pub fn new(file: OwnedFd, name: String) -> Self {
        let offset = rustix::fs::seek(&file, SeekFrom::Current(0)).ok();
        let flags = rustix::fs::fcntl_getfl(&file).unwrap_or(OFlags::empty());
        let is_appended = flags.contains(OFlags::APPEND) && length_of(file.as_fd()).is_some();
        let waits = !flags.contains(OFlags::NONBLOCK) && waits_for_others(file.as_fd());
        Self {
            file,
            name,
            offset,
            is_appended,
            waits,
            undropped_bytes: 0,
            calls: Calls::default(),
            recent_ns: [0; RECENT],
            recent: 0,
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

    /// The name for a message, whatever it holds.
    pub(crate) fn shown(&self) -> String {
        rdsk_units::printable(&self.name)
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.and_then(|offset| offset.checked_add(bytes));
    }

    /// One read(2); `EINTR` also where a signal ended the wait for something to read. The wait is part of its time.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        timer: &mut Timer<'_>,
        signals: &Signals,
    ) -> Result<usize, Errno> {
        let begin_ns = timer.begin();
        let is_ready = !self.waits || signals.let_wait(self.fd(), PollFlags::IN);
        let result = if is_ready { rustix::io::read(self.fd(), buffer) } else { Err(Errno::INTR) };
        self.count((begin_ns, timer.end()), result, |side, _| side.offset)
    }

    /// One write(2); `EINTR` also where a signal ended the wait for room. The wait is part of its time.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        timer: &mut Timer<'_>,
        signals: &Signals,
    ) -> Result<usize, Errno> {
        let begin_ns = timer.begin();
        let is_ready = !self.waits || signals.let_wait(self.fd(), PollFlags::OUT);
        let result = if is_ready { rustix::io::write(self.fd(), bytes) } else { Err(Errno::INTR) };
        self.count((begin_ns, timer.end()), result, Self::wrote_at)
    }

    /// Where a write has moved so many bytes, or none. Of what is appended the kernel knows it: others may append, too.
    fn wrote_at(&self, moved: usize) -> Option<u64> {
        match moved {
            _ if !self.is_appended => self.offset,
            0 => length_of(self.fd()),
            _ => rustix::fs::seek(self.fd(), SeekFrom::Current(0)).ok()?.checked_sub(moved as u64),
        }
    }

    /// Counts a call; `place` says where it was, and is asked of the first call and of the first error.
    #[inline]
    fn count(
        &mut self,
        (begin_ns, end_ns): (u64, u64),
        result: Result<usize, Errno>,
        place: fn(&Self, usize) -> Option<u64>,
    ) -> Result<usize, Errno> {
        let moved = result.unwrap_or(0);
        if moved > 0 {
            if self.calls.count == 0 {
                self.calls.start = place(self, moved);
            }
            self.calls.count += 1;
            self.calls.bytes += moved as u64;
        }
        let span_ns = end_ns.saturating_sub(begin_ns);
        if span_ns > LONG_NS {
            self.calls.long.push(LongCall { begin_ns, end_ns, has_moved: moved > 0 });
        } else {
            self.calls.spent_ns += span_ns;
            if moved > 0 {
                if self.recent == RECENT {
                    self.record_recent();
                }
                self.recent_ns[self.recent] = span_ns;
                self.recent += 1;
            }
        }
        if let Err(errno) = result
            && !matches!(errno, Errno::INTR | Errno::AGAIN)
            && self.calls.error.is_none()
        {
            self.calls.error = Some((place(self, 0).unwrap_or(0), errno.raw_os_error()));
        }
        result
    }

    #[cold]
    fn record_recent(&mut self) {
        for &ns in &self.recent_ns[..self.recent] {
            self.calls.latency_ns.record(ns);
        }
        self.recent = 0;
    }

    pub(crate) fn seek_by(&self, bytes: i64) -> Result<u64, Errno> {
        rustix::fs::seek(self.fd(), SeekFrom::Current(bytes))
    }

    pub(crate) fn is_direct(&self) -> bool {
        rustix::fs::fcntl_getfl(self.fd()).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }

    pub(crate) fn turn_off_direct(&self) -> Result<(), Errno> {
        rustix::fs::fcntl_setfl(self.fd(), rustix::fs::fcntl_getfl(self.fd())? - OFlags::DIRECT)
    }

    /// So many bytes were transferred up to here; the page cache is to drop whole units of them.
    pub(crate) fn drop_behind(&mut self, moved: u64) {
        self.undropped_bytes += moved;
        let rest = self.undropped_bytes % DROP_BYTES;
        if let Some(whole) = NonZeroU64::new(self.undropped_bytes - rest) {
            self.drop_from(self.undropped_bytes, Some(whole));
            self.undropped_bytes = rest;
        }
    }

    /// The page cache is to drop what is left, `to_end` of the file where nothing is read or written behind it.
    pub(crate) fn drop_rest(&mut self, to_end: bool) {
        let rest = NonZeroU64::new(self.undropped_bytes);
        if to_end || rest.is_some() {
            self.drop_from(self.undropped_bytes, if to_end { None } else { rest });
        }
    }

    /// It is advice: whether the kernel takes it is not asked.
    fn drop_from(&self, before: u64, length: Option<NonZeroU64>) {
        let Some(from) = self.offset.and_then(|offset| offset.checked_sub(before)) else { return };
        // Of a page that begins earlier, the part before was transferred, too.
        let from = if length.is_none() { from - from % rustix::param::page_size() as u64 } else { from };
        let _ = rustix::fs::fadvise(self.fd(), from, length, Advice::DontNeed);
    }

    /// Closes the file; the last close of a block device writes its dirty pages. Gives what was done to it.
    pub(crate) fn close(mut self) -> (Calls, Result<(), Errno>) {
        self.record_recent();
        let closed = rdsk_sys::io::close(self.file);
        (self.calls, closed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }
}

/// How long a regular file is.
pub(crate) fn length_of(fd: BorrowedFd<'_>) -> Option<u64> {
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

/// The times of the calls of one copy. A plain copy does nothing between two calls, so that the end of one is the beginning of the next
/// and the clock is read once for each.
pub(crate) struct Timer<'a> {
    clock: &'a dyn Clock,
    /// Whether nothing is done between two calls.
    is_plain: bool,
    last_ns: Option<u64>,
}

impl<'a> Timer<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, is_plain: bool) -> Self {
        Self { clock, is_plain, last_ns: None }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&mut self) -> u64 {
        self.last_ns.take().unwrap_or_else(|| self.clock.now_ns())
    }

    /// It has ended.
    #[inline]
    pub(crate) fn end(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        self.last_ns = Some(now_ns).filter(|_| self.is_plain);
        now_ns
    }

    /// Something else was done since, such as printing.
    pub(crate) fn forget(&mut self) {
        self.last_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::StopFlag;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Each reading is so much later than the one before.
    struct Steps(AtomicU64, u64);

    impl Clock for Steps {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(self.1, Ordering::Relaxed)
        }

        fn sleep_until_ns(&self, _at_ns: u64, _stop: &StopFlag) {}
    }

    fn side(path: &std::path::Path, append: OFlags) -> Side {
        let flags = i32::try_from(append.bits()).expect("flags of open(2)");
        let file = std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        Side::new(file.expect("a file").into(), "file".into())
    }

    #[test]
    fn what_is_appended_begins_at_the_end_of_the_file() {
        let directory = tempfile::tempdir().expect("a place for files");
        let path = directory.path().join("file");
        std::fs::write(&path, [7; 100]).expect("a file");
        let clock = Steps(AtomicU64::new(0), 5);
        let (mut timer, signals) = (Timer::new(&clock, true), Signals::default());
        let mut appended = side(&path, OFlags::APPEND);
        assert_eq!((appended.first_write(8), appended.first_read(8)), (100, 8));
        assert_eq!(appended.write(b"more", &mut timer, &signals), Ok(4));
        assert_eq!(appended.write(b"more", &mut timer, &signals), Ok(4));
        assert_eq!((appended.calls.start, appended.calls.bytes), (Some(100), 8));
        assert_eq!(appended.calls.spent_ns, 10, "the end of a call is the beginning of the next");
        let mut read = side(&path, OFlags::APPEND);
        assert_eq!(read.read(&mut [0; 8], &mut timer, &signals), Ok(8));
        assert_eq!(read.calls.start, Some(0), "reads begin where the file stands");
        let mut written = side(&path, OFlags::empty());
        assert_eq!(written.first_write(8), 8);
        assert_eq!(written.write(b"more", &mut timer, &signals), Ok(4));
        assert_eq!(written.calls.start, Some(0));
    }

    #[test]
    fn a_call_in_which_the_process_may_have_stood_still_is_kept_apart() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let clock = Steps(AtomicU64::new(0), LONG_NS + 1);
        let (mut timer, signals) = (Timer::new(&clock, true), Signals::default());
        let mut output = side(file.path(), OFlags::empty());
        assert_eq!(output.write(b"more", &mut timer, &signals), Ok(4));
        let (calls, closed) = output.close();
        assert_eq!((closed, calls.count, calls.spent_ns, calls.latency_ns.count()), (Ok(()), 1, 0, 0));
        assert_eq!(calls.long, [LongCall { begin_ns: 0, end_ns: LONG_NS + 1, has_moved: true }]);
    }
}
