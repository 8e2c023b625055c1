//! Sums up the visits of one cell: bytes, times, windows, rates, and the interval of the mean rate. It holds numbers and
//! issues nothing.

mod estimate;

use crate::counted_part::{is_most, overlap_of, windows_of};
use crate::counted_part::{left_out, windows_between};
use crate::load_totals::{JobTotals, add_jobs};
use rdsk_engine::{Ended, Prepared, Run, Settled};
use rdsk_model::{
    AfterIdle, ColdCheck, CpuTime, EngineKind, IoError, IoPath, Issuing, Overlap, OwnGap, PageCache,
    PointRun, ReadContent, StreamResult, Visit, Windows, Workload,
};
use rdsk_observe::EvidenceSum;
use rdsk_stats::{Histogram, SparseHistogram};
use std::collections::{BTreeMap, VecDeque};

/// What is left out of rate and latencies as warm-up.
#[derive(Clone, Copy, Default)]
pub(crate) struct LeftOut {
    pub(crate) ns: u64,
    pub(crate) bytes: u64,
    pub(crate) ops: u64,
}

#[derive(Default)]
pub(crate) struct CellTotals {
    pub(crate) visits: Vec<Visit>,
    pub(crate) errors: Vec<IoError>,
    pub(crate) notes: Vec<String>,
    pub(crate) evidence: EvidenceSum,
    pub(crate) page_cache: Option<PageCache>,
    pub(crate) ended: Option<Ended>,
    /// When the I/O of the latest visit began, from the start of the run.
    pub(crate) start_ns: u64,
    /// A failure outside single I/Os: the target would not open, close or flush.
    pub(crate) failure: Option<rdsk_model::Problem>,
    /// Rates are those of the part in which all streams ran.
    pub(crate) rates_of_overlap: bool,
    /// Whether the start of the first visit is a ramp, which is left out whatever it was like.
    pub(crate) has_ramp: bool,
    /// Whether in some visit the streams never all ran at once.
    pub(crate) has_no_overlap: bool,
    /// The latencies at chosen positions, one entry per visit.
    pub(crate) positions: Vec<PointRun>,
    /// Visits of the resumed run that are not taken over, but whose offsets are not drawn again.
    pub(crate) visits_before: u32,
    /// Rounds that the resumed run completed.
    pub(crate) skip_rounds: u32,
    /// Indices of the visits that the resumed run started and did not complete; each is continued in turn.
    pub(crate) partial: VecDeque<usize>,
    pub(crate) histogram: Histogram,
    /// The same of every round.
    pub(crate) round_histograms: BTreeMap<u32, SparseHistogram>,
    pub(crate) latency_sum_ns: u128,
    pub(crate) asked_bytes: u64,
    /// The engine that issued the I/O; a visit that fell back to another one marks the whole cell.
    pub(crate) engine: Option<EngineKind>,
    /// How the engine was chosen.
    pub(crate) issuing: Option<Issuing>,
    pub(crate) windows: Windows,
    /// How many of them each visit has.
    pub(crate) windows_of_visits: Vec<usize>,
    /// Bytes per second of every full window after the warm-up.
    pub(crate) samples: Vec<f64>,
    /// Where in these each round that has any begins.
    pub(crate) round_begins: BTreeMap<u32, usize>,
    /// Time for the I/O of the first visit.
    pub(crate) first_run_ns: Option<u64>,
    /// The round of the latest visit.
    pub(crate) round: u32,
    /// Measured bytes and nanoseconds of every round.
    pub(crate) rounds: BTreeMap<u32, (u64, u64)>,
    pub(crate) measured_bytes: u64,
    pub(crate) measured_ns: u64,
    /// The start of the first visit, where it is left out.
    pub(crate) warm_up: LeftOut,
    pub(crate) streams: Vec<StreamResult>,
    pub(crate) cpu: CpuTime,
    pub(crate) interrupted_calls: u64,
    /// What reads returned.
    pub(crate) content: Option<ReadContent>,
    /// Single I/Os after rests.
    pub(crate) after_idle: Vec<AfterIdle>,
    /// The jobs of a load.
    pub(crate) jobs: Vec<JobTotals>,
}

impl CellTotals {
    /// Pages of what reads returned that were looked at.
    pub(crate) fn pages_seen(&self) -> u64 {
        self.content.map_or(0, |content| content.pages)
    }

    pub(crate) fn add_visit(&mut self, prepared: &Prepared, run: &Run, settled: &Settled) {
        let before_ns: u64 = self.visits.iter().map(|visit| visit.elapsed_ns).sum();
        let overlap = overlap_of(run);
        match overlap.filter(|_| self.rates_of_overlap && !(self.has_ramp && run.warm_up.is_some())) {
            Some(overlap) if overlap.covered_ns > 0 => self.add_overlap(run, &overlap),
            // If the streams hardly overlapped, the rate over the whole time would mostly count waiting.
            Some(overlap) if !is_most(run, &overlap) => self.has_no_overlap = true,
            _ => self.add_rates(run),
        }
        self.add_windows(Windows { width_ns: run.window_ns, bytes: run.windows.clone() });
        self.add_streams(run, before_ns);
        self.add_latencies(run);
        self.latency_sum_ns += run.latency_sum_ns;
        self.asked_bytes += run.asked_bytes;
        if self.engine.is_none_or(|engine| run.engine < engine) {
            self.engine = Some(run.engine);
        }
        self.add_issuing(&run.issuing);
        self.cpu.user += run.cpu.user;
        self.cpu.system += run.cpu.system;
        self.interrupted_calls += run.interrupted_calls;
        self.content = self.content.into_iter().chain(run.content).reduce(ReadContent::plus);
        // Each pass hits the same bad position again.
        add_new(&mut self.errors, &run.errors);
        add_new(&mut self.notes, &run.notes);
        let cache =
            PageCache { before: prepared.page_cache, after: run.page_cache, stable: settled.page_cache };
        self.page_cache = Some(self.page_cache.map_or(cache, |sum| sum.plus(cache)));
        self.ended = Some(run.ended);
        self.visits.push(Visit {
            round: self.round,
            sitting: 0,
            start_ns: self.start_ns,
            elapsed_ns: run.elapsed_ns,
            bytes: run.bytes,
            ops: run.ops,
            to_return_ns: Some(run.to_return_ns),
            to_close_ns: settled.to_close_ns,
            to_stable_ns: settled.to_stable_ns,
            cache: prepared
                .reached
                .map(|_| ColdCheck { cached_bytes: prepared.page_cache.cached_bytes, ..run.check }),
            streams: if run.streams.len() > 1 { run.streams.clone() } else { Vec::new() },
            overlap,
            first: run.first,
            gaps: run.gaps.iter().copied().chain(gap_after(run, settled)).collect(),
        });
        self.positions.extend(run.positions.clone());
        add_jobs(&mut self.jobs, self.round, &run.jobs);
        self.join_partial();
    }

    /// Appends the last visit to the part of the same pass that the resumed run did.
    fn join_partial(&mut self) {
        let Some(position) = self.partial.pop_front() else { return };
        let (Some(more), Some(mut rest)) = (self.visits.pop(), self.positions.pop()) else { return };
        let visit = &mut self.visits[position];
        visit.elapsed_ns += more.elapsed_ns;
        visit.bytes += more.bytes;
        visit.ops += more.ops;
        let sum = |then: Option<u64>, now: Option<u64>| then.zip(now).map(|(then, now)| then + now);
        visit.to_return_ns = sum(visit.to_return_ns, more.to_return_ns);
        visit.to_close_ns = sum(visit.to_close_ns, more.to_close_ns);
        visit.to_stable_ns = sum(visit.to_stable_ns, more.to_stable_ns);
        visit.gaps.extend(more.gaps);
        let run = &mut self.positions[position];
        run.order.append(&mut rest.order);
        run.latency_ns.append(&mut rest.latency_ns);
        run.failed.append(&mut rest.failed);
    }

    /// Keeps the first reason and the first trials; adds up what completed within submissions, which is unknown if it is
    /// unknown for one visit.
    fn add_issuing(&mut self, more: &Issuing) {
        let Some(sum) = &mut self.issuing else {
            self.issuing = Some(more.clone());
            return;
        };
        sum.why = sum.why.take().or_else(|| more.why.clone());
        sum.within_submit = sum.within_submit.zip(more.within_submit).map(|(sum, more)| sum + more);
        if sum.trials.is_empty() {
            sum.trials.clone_from(&more.trials);
        }
    }

    /// Adds what counts for the rate.
    pub(crate) fn add_measured(&mut self, round: u32, bytes: u64, elapsed_ns: u64) {
        self.measured_bytes += bytes;
        self.measured_ns += elapsed_ns;
        let (bytes_before, ns_before) = self.rounds.entry(round).or_default();
        *bytes_before += bytes;
        *ns_before += elapsed_ns;
    }

    /// Adds what all streams did together; the ramp and the end stay out.
    fn add_overlap(&mut self, run: &Run, overlap: &Overlap) {
        self.add_measured(self.round, overlap.bytes, overlap.covered_ns);
        self.add_samples(&run.windows[windows_of(run, overlap)], run.window_ns);
    }

    fn add_samples(&mut self, windows: &[u64], window_ns: u64) {
        let rates: Vec<f64> = windows.iter().map(|&bytes| per_second(bytes, window_ns)).collect();
        if !rates.is_empty() {
            self.round_begins.entry(self.round).or_insert(self.samples.len());
        }
        self.samples.extend(rates);
    }

    /// Adds what counts for the rate of a visit whose streams need no common time. Its warm-up is the cell's.
    fn add_rates(&mut self, run: &Run) {
        let mut cut_ns = 0;
        let start = if self.has_ramp { run.warm_up.as_ref() } else { left_out(run) };
        if let Some(warm_up) = start {
            cut_ns = warm_up.until_ns.min(run.elapsed_ns);
            self.warm_up = LeftOut { ns: cut_ns, bytes: warm_up.bytes, ops: warm_up.ops };
        }
        let cut_bytes = if cut_ns > 0 { self.warm_up.bytes } else { 0 };
        self.add_measured(self.round, run.bytes - cut_bytes, run.elapsed_ns - cut_ns);
        self.add_samples(windows_between(run, cut_ns, run.to_return_ns), run.window_ns);
    }

    /// Adds the latencies of what counts for the rate: without the warm-up if that is left out.
    fn add_latencies(&mut self, run: &Run) {
        let is_left_out = self.visits.is_empty() && self.warm_up.ns > 0;
        let warm_up = run.warm_up.as_ref().filter(|_| !is_left_out);
        let of_round = self.round_histograms.entry(self.round).or_default();
        for part in std::iter::once(&run.histogram).chain(warm_up.map(|warm_up| &warm_up.histogram)) {
            self.histogram.merge(part);
            of_round.merge(part);
        }
    }

    /// Appends those of a visit; the narrower of two widths is folded until both agree, since engines only ever double it.
    fn add_windows(&mut self, mut more: Windows) {
        let mut count = [more.bytes.len()];
        if self.windows.bytes.is_empty() {
            self.windows.width_ns = more.width_ns;
        }
        while self.windows.width_ns < more.width_ns {
            fold(&mut self.windows, &mut self.windows_of_visits);
        }
        while more.width_ns < self.windows.width_ns {
            fold(&mut more, &mut count);
        }
        self.windows.bytes.extend(more.bytes);
        self.windows_of_visits.extend(count);
    }

    fn add_streams(&mut self, run: &Run, before_ns: u64) {
        for stream in &run.streams {
            let end_ns = before_ns + stream.end_ns;
            let active_ns = stream.end_ns.saturating_sub(stream.start_ns);
            match self.streams.iter_mut().find(|total| total.index == stream.index) {
                Some(total) => {
                    total.end_ns = end_ns;
                    total.bytes += stream.bytes;
                    total.ops += stream.ops;
                    total.active_ns = total.active_ns.map(|earlier_ns| earlier_ns + active_ns);
                }
                None => self.streams.push(StreamResult {
                    start_ns: before_ns + stream.start_ns,
                    end_ns,
                    active_ns: Some(active_ns),
                    ..stream.clone()
                }),
            }
        }
    }

    /// Bytes per second until stable over all visits; `None` before any data was settled.
    pub(crate) fn stable_rate(&self) -> Option<f64> {
        let bytes: u64 = self.visits.iter().map(|visit| visit.bytes).sum();
        let stable_ns = self.sum_of(|visit| visit.to_stable_ns)?;
        (bytes > 0 && stable_ns > 0).then(|| per_second(bytes, stable_ns))
    }

    /// A time summed over all visits; unknown if one visit does not know it.
    pub(crate) fn sum_of(&self, time: impl Fn(&Visit) -> Option<u64>) -> Option<u64> {
        self.visits.iter().try_fold(0, |sum, visit| Some(sum + time(visit)?))
    }

    /// Whether only some positions of a pass failed while the others went on, so that later passes make sense.
    pub(crate) fn goes_on_after_errors(&self, workload: &Workload) -> bool {
        workload.points.is_some() && self.ended != Some(Ended::Failed) && self.failure.is_none()
    }

    /// Whether the first I/O ended with the error by which the kernel refuses the path here: `EINVAL` for direct I/O of a size
    /// or offset that is not possible, `EOPNOTSUPP` for `RWF_DONTCACHE` without support. That is the report's "n/a".
    pub(crate) fn is_refused_by_kernel(&self, workload: &Workload) -> bool {
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        let refusal = match workload.path {
            IoPath::Direct => EINVAL,
            IoPath::DontCache => EOPNOTSUPP,
            IoPath::Buffered => return false,
        };
        let nothing_done = self.visits.iter().all(|visit| visit.ops == 0);
        nothing_done && self.errors.first().is_some_and(|error| error.errno == refusal)
    }
}

/// The time after the I/O in which this process did not run.
fn gap_after(run: &Run, settled: &Settled) -> Option<OwnGap> {
    (settled.away_ns > 0).then_some(OwnGap { at_ns: run.elapsed_ns, lasts_ns: settled.away_ns })
}

/// Appends what is not in the list yet.
pub(crate) fn add_new<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

pub(crate) fn per_second(bytes: u64, elapsed_ns: u64) -> f64 {
    bytes as f64 * 1e9 / elapsed_ns as f64
}

/// Doubles the width of the windows of visits with so many each. None is of two visits.
fn fold(windows: &mut Windows, counts: &mut [usize]) {
    windows.width_ns *= 2;
    let mut rest = windows.bytes.as_slice();
    let mut folded = Vec::with_capacity(rest.len());
    for count in counts {
        let (visit, others) = rest.split_at(*count);
        folded.extend(visit.chunks(2).map(|pair| pair.iter().sum::<u64>()));
        (rest, *count) = (others, count.div_ceil(2));
    }
    windows.bytes = folded;
}

#[cfg(test)]
mod tests {
    use super::estimate::counts_each_io;
    use super::*;
    use rdsk_model::Extent;
    use rdsk_stats::Halves;
    use rdsk_stats::rng::SplitMix64;

    const WIDTH_NS: u64 = 50_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// Six rounds of so many visits, each of the windows that `windows` gives for its round.
    fn totals(visits: usize, windows: &mut dyn FnMut(u32) -> Vec<u64>) -> CellTotals {
        let mut totals = CellTotals::default();
        for round in 0..6 {
            totals.round = round;
            totals.visits.push(Visit {
                round,
                start_ns: u64::from(round) * 10_000_000_000,
                ..Visit::default()
            });
            for _ in 0..visits {
                let windows = windows(round);
                totals.add_measured(round, windows.iter().sum(), windows.len() as u64 * WIDTH_NS);
                totals.add_samples(&windows, WIDTH_NS);
            }
        }
        totals
    }

    fn half_width(totals: &CellTotals, halves: &Halves) -> f64 {
        rdsk_stats::rounds_interval(&totals.round_rates(), halves).unwrap().half_width_rel()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates far above 0")]
    fn around(mean: f64, by: f64) -> u64 {
        (mean + by).round() as u64
    }

    /// Where an engine doubled its width, the windows of the other visits follow, and none is of two visits.
    #[test]
    fn each_visit_keeps_its_windows_when_widths_differ() {
        let mut totals = CellTotals::default();
        let mut add = |width_ns: u64, windows: &[u64]| {
            totals.add_windows(Windows { width_ns, bytes: windows.to_vec() });
            (totals.windows.width_ns, totals.windows.bytes.clone(), totals.windows_of_visits.clone())
        };
        assert_eq!(add(10, &[1, 2, 3]), (10, vec![1, 2, 3], vec![3]));
        assert_eq!(add(10, &[4, 5, 6]), (10, vec![1, 2, 3, 4, 5, 6], vec![3, 3]));
        assert_eq!(add(20, &[7, 8]), (20, vec![3, 3, 9, 6, 7, 8], vec![2, 2, 2]));
        assert_eq!(add(10, &[1, 1, 1]), (20, vec![3, 3, 9, 6, 7, 8, 2, 1], vec![2, 2, 2, 2]));
        assert_eq!(add(80, &[]), (80, vec![6, 15, 15, 3], vec![1, 1, 1, 1, 0]));
        assert_eq!(add(80, &[9]), (80, vec![6, 15, 15, 3, 9], vec![1, 1, 1, 1, 0, 1]));
    }

    /// Eight I/Os that share a device end together, at the end of each visit.
    #[test]
    fn ios_that_end_together_leave_a_steady_rate_steady() {
        const MIB: u64 = 1 << 20;
        let of_rounds = |rounds: u32| {
            let mut totals = CellTotals::default();
            for round in 0..rounds {
                totals.round = round;
                let (start_ns, elapsed_ns) = (u64::from(round) * SECOND, 551_000_000);
                totals.visits.push(Visit { round, start_ns, elapsed_ns, ..Visit::default() });
                totals.latency_sum_ns += 8 * 530_000_000;
                let late_ns = [0, 8_000_000, 5_000_000, 1_000_000, 2_000_000, 19_000_000][round as usize];
                totals.add_measured(round, 8 * MIB, 551_000_000 + late_ns);
                totals.add_samples(&[0, 0, 0, 0, 0, MIB, MIB, 0, MIB, 2 * MIB, 3 * MIB], WIDTH_NS);
            }
            totals.estimate(Extent::Timed, MIB, true).unwrap().margin().unwrap()
        };
        assert!(of_rounds(6) < 0.05, "{}", of_rounds(6));
        assert!(of_rounds(3) < 0.05, "{}", of_rounds(3));
        assert!(of_rounds(2) > 0.3, "two rounds show no scatter: {}", of_rounds(2));
    }

    /// Of 22 in flight one completes at a time, so that halves of a visit say how the rate scatters; of eight that end together they do not.
    #[test]
    fn few_ios_in_flight_that_complete_one_by_one_have_halves() {
        const KIB: u64 = 1 << 10;
        let halves_of = |in_flight: u64, windows: &[u64]| {
            let mut totals = CellTotals::default();
            for round in 0..6 {
                totals.round = round;
                let elapsed_ns = windows.len() as u64 * WIDTH_NS;
                totals.visits.push(Visit { round, elapsed_ns, ..Visit::default() });
                totals.latency_sum_ns += u128::from(in_flight * elapsed_ns);
                totals.add_measured(round, windows.iter().sum(), elapsed_ns);
                totals.add_samples(windows, WIDTH_NS);
            }
            totals.halves(KIB, true)
        };
        let evenly =
            halves_of(22, &[4 * KIB, 0, 5 * KIB, 3 * KIB, 4 * KIB, 4 * KIB, 0, 6 * KIB, 4 * KIB, 3 * KIB]);
        assert_eq!(evenly.rates.len(), 6);
        // One I/O in half of half a second.
        assert!((evenly.step - 4.0 * KIB as f64).abs() < 1e-6, "{}", evenly.step);
        let together = halves_of(8, &[0, 0, 0, 0, 8 * KIB, 0, 0, 0, 0, 8 * KIB]);
        assert_eq!(together, Halves::default());
    }

    /// Visits of a round that change from one to the next outlast nothing, however steady each is within itself.
    #[test]
    fn a_state_that_lasts_for_a_visit_is_none_that_outlasts_a_round() {
        let mut noise = SplitMix64::new(7);
        let totals = totals(12, &mut |_| vec![around(1e6, 1e5 * noise.normal()); 2]);
        assert_eq!(totals.halves(1, true).rates.len(), 6);
        assert!(half_width(&totals, &totals.halves(1, true)) < half_width(&totals, &Halves::default()));
    }

    /// Found by a review: halves at the speed of the page cache denied what a flush at the end of each visit showed.
    #[test]
    fn halves_that_lack_a_part_of_the_time_deny_nothing() {
        let direct = Workload { path: IoPath::Direct, ..Workload::sequential_read(1 << 20) };
        assert!(counts_each_io(&direct));
        assert!(!counts_each_io(&Workload { sync: rdsk_model::Sync::FsyncAtEnd, ..direct.clone() }));
        assert!(!counts_each_io(&Workload { path: IoPath::Buffered, ..direct }));
        let halves = [(10, 10), (10, 12), (12, 10), (12, 12), (14, 12), (12, 14)];
        let totals = totals(1, &mut |round| {
            let (first, second) = halves[round as usize];
            vec![first * 100_000, second * 100_000]
        });
        let unknown = half_width(&totals, &Halves::default());
        assert!(half_width(&totals, &totals.halves(1, true)) < unknown);
        assert_eq!(half_width(&totals, &totals.halves(1, false)), unknown);
    }

    /// A state that differs from round to round is seen through the noise within its visits.
    #[test]
    fn a_state_that_outlasts_a_round_is_seen_whatever_its_visits_do() {
        let levels = [1e6, 1.2e6, 0.8e6, 1.2e6, 1e6, 0.8e6];
        let mut noise = SplitMix64::new(7);
        let totals = totals(12, &mut |round| {
            (0..2).map(|_| around(levels[round as usize], 1e5 * noise.normal())).collect()
        });
        assert!(half_width(&totals, &totals.halves(1, true)) > 1.2 * half_width(&totals, &Halves::default()));
    }

    /// One visit a round, as `run` has: its own halves.
    #[test]
    fn the_halves_of_a_round_of_one_visit_are_its_own() {
        let totals = totals(1, &mut |_| vec![100, 300, 500, 700, 900]);
        let mib = |bytes: u64| per_second(bytes, WIDTH_NS);
        assert_eq!(totals.halves(1, true).rates, vec![(mib(200), mib(800)); 6]);
    }
}
