//! Latencies in the order of time: windows of equal width that grow with the length of a visit. It reads no clock.

use rdsk_stats::{Histogram, SparseHistogram};

/// Width of the windows of a short visit.
const FIRST_WIDTH_NS: u64 = 50_000_000;
/// At so many windows, two become one.
const MAX_WINDOWS: u64 = 16;

/// The latencies of one window.
#[derive(Clone, Debug, Default)]
pub struct WindowRun {
    /// To the width of a bucket.
    pub latencies: SparseHistogram,
    /// The longest, exactly; 0 where there is none.
    pub max_ns: u64,
}

impl WindowRun {
    fn append(&mut self, other: &Self) {
        self.latencies.append(&other.latencies);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Latencies by the window in which they ended: below 16 windows, whose width doubles when there would be more.
///
/// A visit of 2 s: after 0.8 s the 16 windows of 50 ms become 8 of 100 ms, and after 1.6 s these 8 of 200 ms, so that it ends with 10.
///
/// The window that is being filled is a whole histogram, in which recording is one step; of the others the buckets in use are kept.
#[derive(Clone, Debug)]
pub(crate) struct LatencySeries {
    width_ns: u64,
    windows: Vec<WindowRun>,
    filling: Histogram,
    filling_index: u64,
}

impl Default for LatencySeries {
    fn default() -> Self {
        Self { width_ns: FIRST_WIDTH_NS, windows: Vec::new(), filling: Histogram::new(), filling_index: 0 }
    }
}

impl LatencySeries {
    /// Counts a latency that ended at a time, from its start. Times do not go back by more than a window, and what does
    /// counts in the latest.
    #[inline]
    pub(crate) fn record(&mut self, at_ns: u64, latency_ns: u64) {
        if at_ns >= (self.filling_index + 1) * self.width_ns {
            self.advance(at_ns);
        }
        self.filling.record(latency_ns);
    }

    #[cold]
    fn advance(&mut self, at_ns: u64) {
        self.keep();
        while at_ns / self.width_ns >= MAX_WINDOWS {
            self.double();
        }
        self.filling_index = at_ns / self.width_ns;
    }

    /// Adds what was filled to its window.
    fn keep(&mut self) {
        let filled = std::mem::take(&mut self.filling);
        let Some(max_ns) = filled.max() else { return };
        let latencies = SparseHistogram::from(&filled);
        let index = usize::try_from(self.filling_index).unwrap_or(usize::MAX);
        self.window(index).append(&WindowRun { latencies, max_ns });
    }

    fn window(&mut self, index: usize) -> &mut WindowRun {
        if self.windows.len() <= index {
            self.windows.resize_with(index + 1, WindowRun::default);
        }
        &mut self.windows[index]
    }

    /// Makes one window of two; nothing is being filled.
    fn double(&mut self) {
        self.width_ns *= 2;
        let pair = |pair: &[WindowRun]| {
            let mut sum = WindowRun::default();
            pair.iter().for_each(|window| sum.append(window));
            sum
        };
        self.windows = self.windows.chunks(2).map(pair).collect();
    }

    /// Ends it: all windows, and how long each is.
    pub(crate) fn finished(mut self) -> (u64, Vec<WindowRun>) {
        self.keep();
        (self.width_ns, self.windows)
    }

    /// Adds what another stream of the same visit counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.keep();
        let mut other = other.clone();
        other.keep();
        while self.width_ns < other.width_ns {
            self.double();
        }
        while other.width_ns < self.width_ns {
            other.double();
        }
        for (index, window) in other.windows.iter().enumerate() {
            self.window(index).append(window);
        }
        self.filling_index = self.filling_index.max(self.windows.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn counts(series: LatencySeries) -> (u64, Vec<u64>) {
        let (width_ns, windows) = series.finished();
        (width_ns / MS, windows.iter().map(|window| window.latencies.count()).collect())
    }

    #[test]
    fn windows_double_and_lose_nothing() {
        let mut series = LatencySeries::default();
        for at in 0..2000 {
            series.record(at * MS, MS);
        }
        assert_eq!(counts(series), (200, vec![200; 10]));
        let mut gap = LatencySeries::default();
        gap.record(0, MS);
        gap.record(10_000 * MS, 9 * MS);
        let (width_ns, windows) = gap.finished();
        assert_eq!((width_ns, windows.len()), (800 * MS, 13));
        assert_eq!((windows[0].max_ns, windows[1].max_ns, windows[12].max_ns), (MS, 0, 9 * MS));
    }

    #[test]
    fn streams_of_different_lengths_add_up() {
        let (mut short, mut long) = (LatencySeries::default(), LatencySeries::default());
        (0..100).for_each(|at| short.record(at * MS, MS));
        (0..1000).for_each(|at| long.record(at * MS, 2 * MS));
        short.add(&long);
        long.add(&LatencySeries::default());
        assert_eq!(counts(short), (100, [vec![200], vec![100; 9]].concat()));
        assert_eq!(counts(long), (100, vec![100; 10]));
    }
}
