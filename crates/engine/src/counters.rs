//! What the streams publish while they run, and what the controller reads: bytes and I/Os so far, and bytes per window.
//! Every stream writes only its own cache lines, with plain relaxed stores; nothing here allocates after the start.

use std::sync::atomic::{AtomicU64, Ordering};

/// Windows of one run. The width is chosen so that the longest allowed run needs half of them, because I/O in flight at
/// the end may complete later.
pub(crate) const WINDOWS: usize = 4096;

/// The counters that one stream publishes, alone on their cache lines (128 bytes: lines are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct SharedCounters {
    bytes: AtomicU64,
    ops: AtomicU64,
    windows: Box<[AtomicU64]>,
}

impl SharedCounters {
    pub(crate) fn new() -> Self {
        let windows = (0..WINDOWS).map(|_| AtomicU64::new(0)).collect();
        Self { bytes: AtomicU64::new(0), ops: AtomicU64::new(0), windows }
    }

    /// Bytes and I/Os completed so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.ops.load(Ordering::Relaxed))
    }

    /// Bytes that completed in a window so far.
    pub(crate) fn window(&self, index: usize) -> u64 {
        self.windows[index].load(Ordering::Relaxed)
    }
}

/// The requested width, doubled until the longest run fits into half the windows.
pub(crate) fn window_width_ns(wanted_ns: u64, max_elapsed_ns: u64) -> u64 {
    let mut width_ns = wanted_ns.max(1);
    while max_elapsed_ns / width_ns >= (WINDOWS / 2) as u64 {
        width_ns *= 2;
    }
    width_ns
}

/// A stream's own side of its shared counters.
#[derive(Debug)]
pub(crate) struct StreamCounters<'a> {
    shared: &'a SharedCounters,
    pub(crate) bytes: u64,
    pub(crate) ops: u64,
    begin_ns: u64,
    width_ns: u64,
    window_index: usize,
    window_end_ns: u64,
    window_bytes: u64,
}

impl<'a> StreamCounters<'a> {
    /// Counters whose windows start at `begin_ns`.
    pub(crate) fn new(shared: &'a SharedCounters, begin_ns: u64, width_ns: u64) -> Self {
        let window_end_ns = begin_ns.saturating_add(width_ns);
        Self { shared, bytes: 0, ops: 0, begin_ns, width_ns, window_index: 0, window_end_ns, window_bytes: 0 }
    }

    /// Counts I/Os that completed at `now_ns`; times must not go backwards.
    #[inline]
    pub(crate) fn add(&mut self, now_ns: u64, bytes: u64, ops: u64) {
        if now_ns >= self.window_end_ns {
            self.next_window(now_ns);
        }
        self.window_bytes += bytes;
        self.bytes += bytes;
        self.ops += ops;
        self.shared.windows[self.window_index].store(self.window_bytes, Ordering::Relaxed);
        self.shared.bytes.store(self.bytes, Ordering::Relaxed);
        self.shared.ops.store(self.ops, Ordering::Relaxed);
    }

    /// Moves on to the window of `now_ns`; the last one takes everything after it.
    #[cold]
    fn next_window(&mut self, now_ns: u64) {
        let index = (now_ns - self.begin_ns) / self.width_ns;
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(WINDOWS - 1);
        if index != self.window_index {
            self.window_index = index;
            self.window_bytes = 0;
        }
        let end = u64::try_from(index + 1).unwrap_or(u64::MAX).saturating_mul(self.width_ns);
        self.window_end_ns = if index == WINDOWS - 1 { u64::MAX } else { self.begin_ns.saturating_add(end) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_double_until_the_run_fits() {
        assert_eq!(window_width_ns(50, 1000), 50);
        assert_eq!(window_width_ns(50, 50 * 2047), 50);
        assert_eq!(window_width_ns(50, 50 * 2048), 100);
        assert!(u64::MAX / window_width_ns(1, u64::MAX) < 2048);
    }

    #[test]
    fn windows_hold_what_completed_in_them() {
        let shared = SharedCounters::new();
        let mut counters = StreamCounters::new(&shared, 1000, 10);
        for (now_ns, bytes) in
            [(1000, 1), (1009, 2), (1010, 4), (1035, 8), (1035, 16), (1_000_000, 32), (2_000_000, 64)]
        {
            counters.add(now_ns, bytes, 1);
        }
        assert_eq!((0..5).map(|index| shared.window(index)).collect::<Vec<_>>(), [3, 4, 0, 24, 0]);
        assert_eq!(shared.window(WINDOWS - 1), 96);
        assert_eq!(shared.totals(), (127, 7));
        assert_eq!((0..WINDOWS).map(|index| shared.window(index)).sum::<u64>(), 127);
    }
}
