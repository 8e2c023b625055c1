//! The rate of a cell and its 95 % interval, from the windows of its visits, their rounds, and the halves of these. It adds nothing up.

use super::{CellTotals, per_second};
use rdsk_model::{Cell, Estimate, Extent, IoPath, Sync, Workload};
use rdsk_stats::{Halves, TimedSample, mean};

/// Rounds that show by themselves how much a rate scatters: of two, one may be as far off as the other.
const ROUNDS_ENOUGH: usize = 3;

/// How many times a visit has to complete as many I/Os as are in flight for its windows to be samples of one rate. Twice what slow disks
/// are given time for (`stopping`): I/Os that started together complete together for some generations.
const GENERATIONS: f64 = 8.0;

/// Whether windows count each I/O when the device completes it, and have all of the time of the rate: calls through the page cache end
/// together as it is filled, and a flush at the end is in no window.
pub(super) fn counts_each_io(workload: &Workload) -> bool {
    workload.path == IoPath::Direct && workload.sync != Sync::FsyncAtEnd
}

impl CellTotals {
    /// The margin of the interval; `None` before there is one.
    pub(crate) fn margin(&self, cell: &Cell) -> Option<f64> {
        self.estimate_of(cell)?.margin()
    }

    /// The mean rate of a cell in bytes per second over all measured time, with its 95 % interval.
    pub(crate) fn estimate_of(&self, cell: &Cell) -> Option<Estimate> {
        self.estimate(cell.extent, cell.workload.block_bytes, counts_each_io(&cell.workload))
    }

    /// The same of I/Os of `block_bytes`; `each_io` says whether windows count each of them when it ends ([`counts_each_io`]).
    pub(crate) fn estimate(&self, extent: Extent, block_bytes: u64, each_io: bool) -> Option<Estimate> {
        if self.measured_ns == 0 || self.measured_bytes == 0 {
            return None;
        }
        let mean = per_second(self.measured_bytes, self.measured_ns);
        let ops = (self.measured_bytes as f64 / block_bytes as f64).max(1.0);
        // Windows show the scatter within a visit, rounds what changes between them: the wider interval counts.
        let is_sampled = extent == Extent::Timed && self.has_steady_windows(block_bytes);
        let of_windows = if is_sampled { rdsk_stats::batch_interval(&self.samples) } else { None };
        let half_width = [
            of_windows,
            rdsk_stats::rounds_interval(&self.round_rates(), &self.halves(block_bytes, each_io)),
        ]
        .into_iter()
        .flatten()
        // The windows leave out the end of a visit that does not fill one, and the mean of rounds is not that of their bytes: neither
        // interval is narrower than this.
        .map(|interval| ((interval.high - interval.low) / 2.0).max((interval.mean - mean).abs()))
        .reduce(f64::max)
        // The time ends at random between two completions, so every count is uncertain by one I/O.
        .map(|half| half.max(mean / ops));
        Some(Estimate::around(mean, half_width))
    }

    /// Bytes per second of every round that measured anything, and when it began.
    pub(super) fn round_rates(&self) -> Vec<TimedSample> {
        let began = |round: u32| self.visits.iter().find(|visit| visit.round == round);
        let began_ns = |round: u32| began(round).map_or(0, |visit| visit.start_ns) as f64;
        let measured = self.rounds.iter().filter(|&(_, &(_, elapsed_ns))| elapsed_ns > 0);
        measured.map(|(&round, &(bytes, ns))| (began_ns(round), per_second(bytes, ns))).collect()
    }

    /// Whether the windows say how the rate scatters. They do not where a visit is hardly longer than its I/Os: eight reads of 1 MiB that
    /// share a disk complete together at the end of 0.55 s, so that most windows are empty and the last ones full. A few rounds know
    /// better, each as a whole: these differ by 1%, not by 64%.
    fn has_steady_windows(&self, block_bytes: u64) -> bool {
        let ops_per_visit = self.measured_bytes as f64 / block_bytes as f64 / self.visits.len().max(1) as f64;
        self.rounds.len() < ROUNDS_ENOUGH || ops_per_visit >= GENERATIONS * self.in_flight()
    }

    /// Bytes per second of the first and of the second half of each round that has windows, those of all of its visits together:
    /// the rounds are what the interval is of, and the turns of a cell come one after the other. Windows that do not say how the rate
    /// scatters say nothing of halves either: where eight reads complete together, each half of a round has eight.
    pub(super) fn halves(&self, block_bytes: u64, each_io: bool) -> Halves {
        let together = match () {
            () if self.has_steady_windows(block_bytes) => self.in_flight(),
            () if self.completes_evenly(block_bytes) => 1.0,
            () => return Halves::default(),
        };
        let ends = self.round_begins.values().skip(1).copied().chain([self.samples.len()]);
        let of_round = |(&begin, end): (&usize, usize)| {
            let rates = &self.samples[begin..end];
            let half = rates.len() / 2;
            mean(&rates[..half]).zip(mean(&rates[rates.len() - half..]))
        };
        let rates: Vec<_> = self.round_begins.values().zip(ends).filter_map(of_round).collect();
        let half_s = self.measured_ns as f64 / 2e9 / rates.len().max(1) as f64;
        // Where more ends together than that, or the rate has time that no window has, halves say how slow a state is, and explain nothing.
        let step = if each_io { block_bytes as f64 * together / half_s } else { f64::INFINITY };
        Halves { rates, step }
    }

    /// Whether I/Os in flight complete one after the other, however few of them a visit has: no pause is half as long as one before which all
    /// in flight complete together.
    ///
    /// Of 22 random reads in flight on a disk, one completes each 13 ms, and a pause has at most 50 ms, not 140. Eight sequential reads
    /// that share a disk complete within 70 ms, 540 ms after the last ones.
    fn completes_evenly(&self, block_bytes: u64) -> bool {
        let ops = self.measured_bytes as f64 / block_bytes as f64;
        let pauses = self.samples.chunk_by(|window, next| *window == 0.0 && *next == 0.0);
        let longest = pauses.filter(|windows| windows[0] == 0.0).map(<[f64]>::len).max().unwrap_or(0);
        let apart = self.samples.len() as f64 / ops.max(1.0);
        // Of windows as wide as such a pause, none would be empty.
        let pause = apart * self.in_flight();
        pause >= 2.0 && longest as f64 <= pause / 2.0
    }

    /// I/Os that were in flight on average, at least one.
    fn in_flight(&self) -> f64 {
        let elapsed_ns: u64 = self.visits.iter().map(|visit| visit.elapsed_ns).sum();
        (self.latency_sum_ns as f64 / elapsed_ns.max(1) as f64).max(1.0)
    }
}
