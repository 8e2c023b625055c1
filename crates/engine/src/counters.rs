//! What the streams publish while they run, and what the controller reads: bytes and I/Os so far, and bytes per window.
//! Every stream writes only its own cache lines, with plain relaxed stores; nothing here allocates after the start. The windows are
//! read when the streams have ended.

use std::sync::atomic::{AtomicU64, Ordering};

/// Windows of one run. The width is chosen so that the longest allowed run needs half of them, because I/O in flight at
/// the end may complete later; where it completes so much later that they do not reach, they are merged in pairs.
pub(crate) const WINDOWS: usize = 4096;

/// The counters that one stream publishes, alone on their cache lines (128 bytes: lines are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct SharedCounters {
    bytes: AtomicU64,
    ops: AtomicU64,
    width_ns: AtomicU64,
    windows: Box<[AtomicU64]>,
}

impl SharedCounters {
    /// Counters whose windows are so wide at first.
    pub(crate) fn new(width_ns: u64) -> Self {
        let windows = (0..WINDOWS).map(|_| AtomicU64::new(0)).collect();
        let width_ns = AtomicU64::new(width_ns.max(1));
        Self { bytes: AtomicU64::new(0), ops: AtomicU64::new(0), width_ns, windows }
    }

    /// Bytes and I/Os completed so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.ops.load(Ordering::Relaxed))
    }

    fn width_ns(&self) -> u64 {
        self.width_ns.load(Ordering::Relaxed)
    }

    fn window(&self, index: usize) -> u64 {
        self.windows[index].load(Ordering::Relaxed)
    }

    /// Merges the windows in pairs, and so doubles their width. Only the stream itself may call it.
    fn fold(&self) {
        let half = WINDOWS / 2;
        for index in 0..half {
            let bytes = self.window(2 * index) + self.window(2 * index + 1);
            self.windows[index].store(bytes, Ordering::Relaxed);
        }
        self.windows[half..].iter().for_each(|window| window.store(0, Ordering::Relaxed));
        self.width_ns.store(self.width_ns() * 2, Ordering::Relaxed);
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

/// The width, doubled until a time since the start lies in one of the windows.
pub(crate) fn widened_to(mut width_ns: u64, at_ns: u64) -> u64 {
    while at_ns / width_ns >= WINDOWS as u64 {
        width_ns *= 2;
    }
    width_ns
}

/// When the window ends in which a time since the start lies.
pub(crate) fn window_end_ns(width_ns: u64, at_ns: u64) -> u64 {
    let width_ns = widened_to(width_ns.max(1), at_ns);
    (at_ns / width_ns + 1).saturating_mul(width_ns)
}

/// The windows of streams that have ended, the last of them after so long, and their width: as many as began until then, all of them
/// as wide as those of the stream with the widest.
pub(crate) fn windows_of(counters: &[SharedCounters], to_return_ns: u64) -> (u64, Vec<u64>) {
    let widest_ns = counters.iter().map(SharedCounters::width_ns).max().unwrap_or(1);
    let width_ns = widened_to(widest_ns, to_return_ns.saturating_sub(1));
    let mut windows = vec![0; WINDOWS];
    for shared in counters {
        let factor = usize::try_from(width_ns / shared.width_ns()).unwrap_or(usize::MAX);
        for index in 0..WINDOWS {
            windows[index / factor] += shared.window(index);
        }
    }
    fit(&mut windows, width_ns, to_return_ns);
    (width_ns, windows)
}

/// Makes the windows of a visit as many as began until its last return. What lies behind these completed just as the last of them ended,
/// and belongs to it.
pub(crate) fn fit(windows: &mut Vec<u64>, width_ns: u64, to_return_ns: u64) {
    let needed = usize::try_from(to_return_ns.div_ceil(width_ns)).unwrap_or(usize::MAX);
    let behind: u64 = windows.iter().skip(needed).sum();
    windows.resize(needed, 0);
    match windows.last_mut() {
        Some(last) => *last += behind,
        None if behind > 0 => windows.push(behind),
        None => (),
    }
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
    /// Counters that have not begun.
    pub(crate) fn new(shared: &'a SharedCounters) -> Self {
        let width_ns = shared.width_ns();
        Self {
            shared,
            bytes: 0,
            ops: 0,
            begin_ns: 0,
            width_ns,
            window_index: 0,
            window_end_ns: width_ns,
            window_bytes: 0,
        }
    }

    /// The windows start at `begin_ns`; nothing may have been counted before.
    pub(crate) fn begin(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
        self.window_end_ns = begin_ns.saturating_add(self.width_ns);
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

    /// Moves on to the window of `now_ns`; where there is none, all become wide enough.
    #[cold]
    fn next_window(&mut self, now_ns: u64) {
        let at_ns = now_ns - self.begin_ns;
        let width_ns = widened_to(self.width_ns, at_ns);
        while self.width_ns < width_ns {
            self.shared.fold();
            self.width_ns *= 2;
        }
        self.window_index = usize::try_from(at_ns / width_ns).expect("below the number of windows");
        self.window_bytes = self.shared.window(self.window_index);
        self.window_end_ns = self.begin_ns.saturating_add(window_end_ns(width_ns, at_ns));
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

    /// A stream whose windows are 10 ns wide and begin at 1000 ns, after these completions: time and bytes.
    fn stream(completed: &[(u64, u64)]) -> SharedCounters {
        let shared = SharedCounters::new(10);
        let mut counters = StreamCounters::new(&shared);
        counters.begin(1000);
        for &(now_ns, bytes) in completed {
            counters.add(now_ns, bytes, 1);
        }
        shared
    }

    #[test]
    fn windows_hold_what_completed_in_them() {
        let shared = stream(&[(1000, 1), (1009, 2), (1010, 4), (1035, 8), (1035, 16)]);
        assert_eq!(shared.totals(), (31, 5));
        let counters = [shared];
        assert_eq!(windows_of(&counters, 35), (10, vec![3, 4, 0, 24]));
        assert_eq!(windows_of(&counters, 55), (10, vec![3, 4, 0, 24, 0, 0]), "nothing completed at the end");
        assert_eq!(windows_of(&counters, 30), (10, vec![3, 4, 24]), "the last one takes what lies behind");
        assert_eq!(windows_of(&[stream(&[])], 0), (10, Vec::new()));
        assert_eq!(windows_of(&[stream(&[(1000, 7)])], 0), (10, vec![7]));
    }

    /// However much later than planned an I/O completes, no time before it is missing.
    #[test]
    fn windows_reach_as_far_as_the_run() {
        const LAST: u64 = 10 * WINDOWS as u64;
        for (hung_ns, width_ns) in [(LAST - 2, 10), (LAST, 20), (2 * LAST, 40), (10 * LAST, 160)] {
            let at_ns = 1000 + hung_ns;
            let counters = [
                stream(&[(1000, 1), (1019, 2), (at_ns, 4), (at_ns + 1, 8)]),
                stream(&[(1005, 16), (1170, 32)]),
            ];
            let (width, windows) = windows_of(&counters, hung_ns + 1);
            assert_eq!(width, width_ns);
            assert_eq!(windows.len() as u64, (hung_ns + 1).div_ceil(width_ns), "{hung_ns}");
            assert_eq!(windows.iter().sum::<u64>(), 63);
            assert_eq!(windows.last(), Some(&12));
            let before = (0..).zip(&windows[..windows.len() - 1]);
            let busy: Vec<u64> = before.filter(|(_, bytes)| **bytes > 0).map(|(index, _)| index).collect();
            let mut earlier: Vec<u64> = [0, 19, 170].map(|at_ns| at_ns / width_ns).to_vec();
            earlier.dedup();
            assert_eq!(busy, earlier, "{hung_ns}: nothing completed between");
        }
        // An I/O that failed after so long counts nothing, and its time is there.
        let (width, windows) = windows_of(&[stream(&[(1000, 1)])], 3 * LAST);
        assert_eq!((width, windows.len(), windows[0]), (40, 3 * WINDOWS / 4, 1));
    }

    /// No thread that waits for the end of a window spins, however long the run becomes.
    #[test]
    fn there_are_few_windows_in_any_time() {
        let (mut at_ns, mut ends) = (0, 0);
        while at_ns < 1 << 40 {
            let end_ns = window_end_ns(1, at_ns);
            assert!(end_ns > at_ns);
            (at_ns, ends) = (end_ns, ends + 1);
        }
        assert!(ends <= WINDOWS + WINDOWS / 2 * 30, "{ends}");
    }
}
