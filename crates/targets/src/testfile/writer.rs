//! Fills a test file with real data until it is large enough or the time is up. It writes only to the descriptor it is
//! given, and counts the flush as part of the time.

use crate::display::shown;
use crate::error::TargetError;
use crate::testfile::data;
use crate::testfile::registry::TestFile;
use rdsk_model::{IoPath, StopFlag};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::time::{Duration, Instant};

pub(crate) const MIB: u64 = 1 << 20;
/// Bytes per write, and the step by which an adaptive file grows.
const CHUNK_BYTES: usize = 1 << 20;
/// An adaptive file grows to this size even after its time is up, until twice the time is used.
pub(crate) const MIN_ADAPTIVE_BYTES: u64 = 16 * MIB;
/// Maximum bytes between two flushes, so that writes into the page cache cannot appear fast for long.
const MAX_UNFLUSHED_BYTES: u64 = 64 * MIB;
/// Alignment that satisfies `O_DIRECT` on every filesystem known.
const ALIGN: usize = 4096;
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// How large a test file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestFileSize {
    /// Exactly this many bytes, or an error.
    Fixed(u64),
    /// As large as the filesystem and the time allow, in whole MiB if possible.
    Adaptive {
        /// At most this many bytes.
        max_bytes: u64,
        /// Growing ends when this is used up, flushes included. Up to 16 MiB may take twice as long.
        max_elapsed_ns: u64,
    },
}

/// How far the creation of the file has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestFileProgress {
    /// Bytes so far.
    pub done_bytes: u64,
    /// Final size in bytes; an adaptive file may end earlier.
    pub total_bytes: u64,
    /// Rate since the start, flushes included.
    pub bytes_per_s: f64,
}

/// The outcome of creating a test file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreatedTestFile {
    /// Size of the file.
    pub bytes: u64,
    /// Until everything was on stable storage.
    pub elapsed_ns: u64,
    /// `bytes` over `elapsed_ns`.
    pub write_bytes_per_s: f64,
    /// Whether it was written with direct I/O.
    pub path: IoPath,
}

#[derive(Clone, Debug)]
pub(crate) struct FillOptions<'a> {
    /// Size of the file unless the time runs out first.
    pub(crate) goal_bytes: u64,
    pub(crate) max_elapsed: Option<Duration>,
    pub(crate) seed: u64,
    /// Checked before every MiB.
    pub(crate) stop: &'a StopFlag,
}

/// Writes and flushes; the file is then exactly as long as what was written.
pub(crate) fn write(
    file: &TestFile,
    options: &FillOptions<'_>,
    watch: &mut dyn FnMut(TestFileProgress),
) -> Result<CreatedTestFile, TargetError> {
    let mut writer = Writer::new(file);
    let goal_bytes = reserve(file, options).map_err(|errno| writer.failed(errno))?;
    let mut storage = vec![0u8; CHUNK_BYTES + ALIGN];
    let skip = storage.as_ptr().align_offset(ALIGN);
    let buffer = &mut storage[skip..skip + CHUNK_BYTES];
    let mut shown_at = Instant::now();
    while writer.done_bytes < goal_bytes {
        if options.stop.is_raised() {
            return Err(TargetError::Interrupted);
        }
        let left = goal_bytes - writer.done_bytes;
        let length = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let chunk = &mut buffer[..length];
        data::fill(options.seed, writer.done_bytes, chunk);
        writer.write(chunk)?;
        writer.flush_in_time(options.max_elapsed)?;
        if shown_at.elapsed() >= PROGRESS_EVERY {
            shown_at = Instant::now();
            watch(writer.progress(goal_bytes));
        }
        if options.max_elapsed.is_some_and(|limit| writer.is_enough(limit)) {
            break;
        }
    }
    // Gives back what was reserved beyond the end.
    rustix::fs::ftruncate(file.fd(), writer.done_bytes).map_err(|errno| writer.failed(errno))?;
    writer.flush()?;
    let made = writer.made();
    watch(writer.progress(made.bytes));
    Ok(made)
}

/// Reserves the file's bytes and returns its size: the goal, or of an adaptive file what a quota or `ulimit -f` leaves of it, a tenth
/// less so that the user can still write elsewhere. One reservation keeps the file contiguous, and it is the quickest way to find
/// out about a quota. It does not change the size, because FAT would first fill a larger size with zeros. Some filesystems have
/// none.
fn reserve(file: &TestFile, options: &FillOptions<'_>) -> Result<u64, Errno> {
    let is_adaptive = options.max_elapsed.is_some();
    let longest = rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX);
    let mut goal_bytes = options.goal_bytes;
    if is_adaptive && goal_bytes > longest {
        goal_bytes = longest / MIB * MIB;
    }
    let mut is_cut = false;
    loop {
        match rustix::fs::fallocate(file.fd(), FallocateFlags::KEEP_SIZE, 0, goal_bytes.max(1)) {
            Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) if is_adaptive && goal_bytes >= 2 * MIB => {
                (goal_bytes, is_cut) = (goal_bytes / 2 / MIB * MIB, true);
            }
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(errno),
            _ if is_cut => return Ok((goal_bytes / 10 * 9 / MIB * MIB).max(MIB)),
            _ if goal_bytes == 0 => return Err(Errno::FBIG),
            _ => return Ok(goal_bytes),
        }
    }
}

struct Writer<'file> {
    file: &'file TestFile,
    path: IoPath,
    start: Instant,
    done_bytes: u64,
    unflushed_bytes: u64,
    /// Bytes between flushes: few at first, because only a flush shows how slow the disk is.
    flush_every_bytes: u64,
    last_flush: Duration,
    flushed_at: Instant,
}

impl<'file> Writer<'file> {
    fn new(file: &'file TestFile) -> Self {
        let direct = rustix::fs::fcntl_setfl(file.fd(), OFlags::DIRECT);
        let path = if direct.is_ok() { IoPath::Direct } else { IoPath::Buffered };
        let now = Instant::now();
        Self {
            file,
            path,
            start: now,
            done_bytes: 0,
            unflushed_bytes: 0,
            flush_every_bytes: MIB,
            last_flush: Duration::ZERO,
            flushed_at: now,
        }
    }

    fn failed(&self, errno: Errno) -> TargetError {
        let path = &self.file.path;
        match TargetError::from_io(path, "written", errno.into()) {
            TargetError::NoSpace { source, .. } => {
                let directory = path.parent().unwrap_or(path);
                TargetError::NoSpace { path: shown(directory), done_bytes: self.done_bytes, source }
            }
            error => error,
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), TargetError> {
        let end = self.done_bytes + bytes_in(chunk);
        let mut rest = chunk;
        while !rest.is_empty() {
            // The last piece of an odd size cannot be written with direct I/O.
            if self.path == IoPath::Direct && !rest.len().is_multiple_of(ALIGN) {
                self.go_buffered()?;
            }
            match rustix::io::pwrite(self.file.fd(), rest, end - bytes_in(rest)) {
                Ok(0) => return Err(self.failed(Errno::NOSPC)),
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                // Some filesystems accept the flag and then refuse the write.
                Err(Errno::INVAL) if self.path == IoPath::Direct => self.go_buffered()?,
                Err(errno) => return Err(self.failed(errno)),
            }
        }
        self.done_bytes = end;
        self.unflushed_bytes += bytes_in(chunk);
        Ok(())
    }

    fn go_buffered(&mut self) -> Result<(), TargetError> {
        self.path = IoPath::Buffered;
        rustix::fs::fcntl_setfl(self.file.fd(), OFlags::empty()).map_err(|errno| self.failed(errno))
    }

    fn flush_in_time(&mut self, limit: Option<Duration>) -> Result<(), TargetError> {
        if self.unflushed_bytes < self.flush_every_bytes {
            return Ok(());
        }
        let since = self.flushed_at;
        self.flush()?;
        // The next interval may be twice as long if this one took only a small part of the time.
        if limit.is_none_or(|limit| since.elapsed() < limit / 8) {
            self.flush_every_bytes = (2 * self.flush_every_bytes).min(MAX_UNFLUSHED_BYTES);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TargetError> {
        let before = Instant::now();
        rustix::fs::fdatasync(self.file.fd()).map_err(|errno| self.failed(errno))?;
        self.flushed_at = Instant::now();
        self.last_flush = self.flushed_at - before;
        self.unflushed_bytes = 0;
        Ok(())
    }

    /// Whether the next chunk and the last flush would take more time than there is.
    fn is_enough(&self, limit: Duration) -> bool {
        let elapsed = self.start.elapsed();
        let chunks = u32::try_from(self.done_bytes / MIB).unwrap_or(u32::MAX).max(1);
        let expected = elapsed + elapsed / chunks + self.last_flush;
        let limit = if self.done_bytes < MIN_ADAPTIVE_BYTES { 2 * limit } else { limit };
        expected >= limit
    }

    fn progress(&self, total_bytes: u64) -> TestFileProgress {
        let made = self.made();
        TestFileProgress { done_bytes: self.done_bytes, total_bytes, bytes_per_s: made.write_bytes_per_s }
    }

    fn made(&self) -> CreatedTestFile {
        let elapsed = self.start.elapsed();
        // A file that is created in no measurable time has no rate; a nanosecond keeps the figure finite.
        let seconds = elapsed.as_secs_f64().max(1e-9);
        CreatedTestFile {
            bytes: self.done_bytes,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            write_bytes_per_s: self.done_bytes as f64 / seconds,
            path: self.path,
        }
    }
}

fn bytes_in(chunk: &[u8]) -> u64 {
    // A slice is never longer than an address space, which fits.
    chunk.len() as u64
}

#[cfg(test)]
mod tests;
