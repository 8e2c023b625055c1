//! What one stream knows and what it hands back: its target, its offsets, its limits; its counts, its first error. Plain
//! data and the small steps that both engines share; it issues nothing.

use crate::arena::Stamper;
use crate::counters::StreamCounters;
use crate::offsets::Offsets;
use crate::positions::PositionSource;
use crate::ring::Issue;
use crate::start_barrier::StartBarrier;
use rdsk_model::{CacheState, IoError, Op, PointRun};
use rdsk_stats::Histogram;
use std::os::fd::BorrowedFd;

/// What one stream has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamSpec<'a> {
    pub(crate) stream: u32,
    /// Index of the target, as in the Record.
    pub(crate) target: u32,
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) op: Op,
    pub(crate) offsets: Offsets,
    /// Chosen places instead of the offsets.
    pub(crate) positions: Option<PositionSource<'a>>,
    /// I/Os of a whole block; `u64::MAX` without a limit.
    pub(crate) full_ops: u64,
    /// Length of one last, shorter I/O; 0 for none.
    pub(crate) tail_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) depth: usize,
    /// State that the range of every I/O must be in; `None` to not look.
    pub(crate) check: Option<CacheState>,
    pub(crate) seed: u64,
    pub(crate) visit: u32,
    pub(crate) issue: Issue,
    /// Alignment that direct I/O needs, for the words of an error; `None` for buffered I/O.
    pub(crate) direct_align_bytes: Option<u64>,
}

/// When a stream stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) barrier: &'a StartBarrier,
    /// No submission at or after this time.
    pub(crate) deadline_ns: u64,
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It did all it was asked for.
    Complete,
    /// The time was up.
    OutOfTime,
    /// It was told to stop.
    Halted,
    /// An I/O failed.
    Failed,
}

/// What one stream did. Times are readings of the clock.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: StreamEnd,
    pub(crate) error: Option<IoError>,
    /// Places that could not be read or written while the others went on.
    pub(crate) missed: Vec<IoError>,
    pub(crate) latencies: Latencies,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) asked_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) ops: u64,
    pub(crate) interrupted_calls: u64,
    pub(crate) cache_probe: CacheProbe,
    /// The latencies at chosen places.
    pub(crate) points: Option<PointRun>,
    /// I/Os that were complete when the call that submitted them returned; `None` where an engine cannot tell.
    pub(crate) within_submit: Option<u64>,
}

impl Outcome {
    /// A stream that never started.
    pub(crate) fn nothing(now_ns: u64) -> Self {
        Self {
            end: StreamEnd::Halted,
            error: None,
            missed: Vec::new(),
            latencies: Latencies::default(),
            start_ns: now_ns,
            end_ns: now_ns,
            asked_bytes: 0,
            bytes: 0,
            ops: 0,
            interrupted_calls: 0,
            cache_probe: CacheProbe::default(),
            points: None,
            within_submit: None,
        }
    }
}

/// Takes the latency of every completed I/O.
pub(crate) trait Recorder: Default {
    /// Takes one.
    fn record(&mut self, latency_ns: u64);
    /// Everything that was taken.
    fn finish(self) -> Latencies;
}

/// Latencies in a histogram, and their exact sum.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) histogram: Histogram,
    pub(crate) sum_ns: u64,
}

impl Recorder for Latencies {
    #[inline]
    fn record(&mut self, latency_ns: u64) {
        self.histogram.record(latency_ns);
        self.sum_ns += latency_ns;
    }

    fn finish(self) -> Latencies {
        self
    }
}

/// Takes nothing: what recording costs is measured against this.
#[derive(Debug, Default)]
pub(crate) struct NoLatencies;

impl Recorder for NoLatencies {
    #[inline]
    fn record(&mut self, _latency_ns: u64) {}

    fn finish(self) -> Latencies {
        Latencies::default()
    }
}

/// Looks at the page cache right before an I/O.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheProbe {
    pub(crate) checked: u64,
    pub(crate) wrong: u64,
}

impl CacheProbe {
    /// Adds what another thread saw.
    pub(crate) fn add(&mut self, more: Self) {
        self.checked += more.checked;
        self.wrong += more.wrong;
    }

    /// Looks whether the pages of a range are in the wanted state. A range that cannot be looked at is not counted.
    pub(crate) fn check(&mut self, fd: BorrowedFd<'_>, offset_bytes: u64, len: usize, wanted: CacheState) {
        let len = len as u64;
        let Ok(state) = rdsk_sys::cache::cachestat(fd, offset_bytes, len) else { return };
        let page = rdsk_sys::cache::page_size();
        let pages = (offset_bytes + len).div_ceil(page) - offset_bytes / page;
        let right = match wanted {
            CacheState::Cold => state.cached == 0,
            CacheState::Warm => state.cached >= pages,
            CacheState::Any => true,
        };
        self.checked += 1;
        self.wrong += u64::from(!right);
    }
}

/// What lies between two I/Os, and what every engine counts.
#[derive(Debug)]
pub(crate) struct Work<'a, R> {
    pub(crate) spec: StreamSpec<'a>,
    pub(crate) bounds: Bounds<'a>,
    pub(crate) counters: StreamCounters<'a>,
    pub(crate) latencies: R,
    pub(crate) stamper: Stamper,
    pub(crate) cache_probe: CacheProbe,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) asked_bytes: u64,
    pub(crate) interrupted_calls: u64,
    pub(crate) within_submit: Option<u64>,
    pub(crate) error: Option<IoError>,
    pub(crate) missed: Vec<IoError>,
}

impl<'a, R: Recorder> Work<'a, R> {
    pub(crate) fn new(
        spec: StreamSpec<'a>,
        bounds: Bounds<'a>,
        counters: StreamCounters<'a>,
        now_ns: u64,
    ) -> Self {
        Self {
            spec,
            bounds,
            counters,
            latencies: R::default(),
            stamper: Stamper::new(spec.seed, spec.visit, spec.stream),
            cache_probe: CacheProbe::default(),
            start_ns: now_ns,
            end_ns: now_ns,
            asked_bytes: 0,
            interrupted_calls: 0,
            within_submit: None,
            error: None,
            missed: Vec::new(),
        }
    }

    pub(crate) fn finish(self, end: StreamEnd) -> Outcome {
        Outcome {
            end,
            error: self.error,
            missed: self.missed,
            latencies: self.latencies.finish(),
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            asked_bytes: self.asked_bytes,
            bytes: self.counters.bytes,
            ops: self.counters.ops,
            interrupted_calls: self.interrupted_calls,
            cache_probe: self.cache_probe,
            points: None,
            within_submit: self.within_submit,
        }
    }

    /// Keeps the first error of the stream. `result` is the system's answer: a negative errno, or the bytes of a transfer
    /// that was shorter than asked.
    #[cold]
    pub(crate) fn fail(&mut self, offset_bytes: u64, wanted: usize, result: i64) {
        if self.error.is_none() {
            self.error = Some(self.error_of(offset_bytes, wanted, result));
        }
    }

    /// Keeps the error of one place, where the others go on.
    #[cold]
    pub(crate) fn miss(&mut self, offset_bytes: u64, wanted: usize, result: i64) {
        let error = self.error_of(offset_bytes, wanted, result);
        self.missed.push(error);
    }

    fn error_of(&self, offset_bytes: u64, wanted: usize, result: i64) -> IoError {
        let (errno, message) = match i32::try_from(-result) {
            Ok(errno) if errno > 0 => (errno, self.errno_message(errno)),
            _ => {
                let verb = if self.spec.op == Op::Read { "read" } else { "write" };
                (0, format!("short {verb}: {result} of {wanted} bytes"))
            }
        };
        let (target, stream) = (self.spec.target, Some(self.spec.stream));
        IoError { target, stream, offset_bytes, errno, message }
    }

    fn errno_message(&self, errno: i32) -> String {
        let text = errno_text(errno);
        match self.spec.direct_align_bytes {
            Some(align) if errno == libc::EINVAL => format!(
                "{text}: direct I/O needs block sizes and offsets that are multiples of {align} bytes here"
            ),
            _ => text,
        }
    }
}

/// The system's words for an error number, without the number.
pub(crate) fn errno_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
