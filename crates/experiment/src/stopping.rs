//! How much I/O one visit does, and in which part of its span: limits, growth, the end of its time, or of its rate's settling. No other
//! visit ends because its figures look precise: one that stopped at a lucky moment would be shorter than the others.
//!
//! Through the page cache a visit may use a part of its span only. That is made cold and checked before the visit, which takes as long as
//! it has pages, so that it is small; and it moves on through the same span as the direct cells do: visits over the same bytes each time
//! would soon be answered by a cache below the block layer, and the direct ones beside them would not. It decides from numbers.

use crate::cell_totals::{CellTotals, per_second};
use crate::experiments::question;
use crate::lockstep::Lockstep;
use rdsk_engine::{CacheCheck, Control, Ended, Flow, Limits, Progress, Run};
use rdsk_model::{
    CacheState, Cell, Endurance, Event, Experiment, Extent, IoPath, Op, Pattern, Watch, Workload,
};
use rdsk_stats::{Sustained, sustained};
use std::borrow::Cow;

/// Shortest time for the I/O of a visit, however long preparation took.
pub(crate) const MIN_RUN_NS: u64 = 5_000_000;
/// Bytes of the first visit of a write-behind cell, before the device's rate is known.
const FIRST_WRITE_BEHIND_BYTES: u64 = 1 << 20;

/// Ends a visit when its time is over, and reports the rates of every window.
pub(crate) struct StopPolicy<'a, 'r> {
    /// The other ranks in this turn.
    pub(crate) ranks: &'a mut Lockstep<'r>,
    pub(crate) id: &'a str,
    pub(crate) watch: &'a mut dyn Watch,
    /// Time for the I/O of this visit.
    pub(crate) run_ns: u64,
    /// I/Os below which the visit goes on after that, as long as its limit allows.
    pub(crate) least_ops: u64,
    /// The start of this visit that is kept apart.
    pub(crate) warm_up_ns: u64,
    /// Time left of the budget when the I/O started.
    pub(crate) left_ns: u64,
    /// Elapsed time, bytes and I/Os at the window before.
    pub(crate) last: (u64, u64, u64),
    /// For a visit that goes on until its rate has settled.
    pub(crate) settle: Option<SettleWatch>,
}

impl Control for StopPolicy<'_, '_> {
    fn window(&mut self, progress: &Progress) -> Flow {
        let (elapsed_ns, bytes, ops) = self.last;
        let width_ns = progress.elapsed_ns.saturating_sub(elapsed_ns).max(1);
        self.watch.event(&Event::Window {
            id: self.id,
            bytes_per_s: per_second(progress.bytes - bytes, width_ns),
            ops_per_s: per_second(progress.ops - ops, width_ns),
            left_ns: self.left_ns.saturating_sub(progress.elapsed_ns),
        });
        self.last = (progress.elapsed_ns, progress.bytes, progress.ops);
        let is_over = match &mut self.settle {
            // Otherwise the limit of the visit ends it.
            Some(settle) => settle.is_over(progress),
            None => progress.elapsed_ns >= self.run_ns && progress.ops >= self.least_ops,
        };
        if is_over && progress.ops > 0 { Flow::Stop } else { Flow::Continue }
    }

    fn starts_at_ns(&mut self, is_ready: bool) -> Option<u64> {
        self.ranks.starts_at_ns(is_ready)
    }

    fn ended(&mut self, begin_ns: u64, run: &Run) {
        self.ranks.ended(begin_ns, run);
    }

    fn warm_up_ns(&self) -> u64 {
        self.warm_up_ns
    }
}

/// The most that one visit may do in the time left of its slice.
///
/// A disk that sustains 100 MB/s takes 200 MB of a write-behind cell in 2 s, so that a visit writes 140 MB at most, in blocks of
/// 64 KiB 139,984,896 bytes. Of a span of 100 MiB it writes each byte once, 104,857,600 bytes; of a pass of 1 GiB, the 139,984,896.
/// Before a first flush has said that rate, it writes 1 MiB, or the whole pass.
#[allow(clippy::cast_possible_truncation, reason = "bytes of one visit stay far below 2^53")]
pub(crate) fn limits(cell: &Cell, ops: Option<u64>, left_ns: u64, stable_rate: Option<f64>) -> Limits {
    let block_bytes = cell.workload.block_bytes;
    let pass_bytes = cell.extent.pass_bytes();
    // Memory takes a write-behind cell's data at once, and the flush afterwards takes the time; so the bytes are limited
    // by the rate that the device is known to sustain.
    let allowance_bytes = cell.workload.is_written_behind().then(|| match (stable_rate, pass_bytes) {
        (Some(rate), _) => ((rate * left_ns as f64 / 1e9 * 0.7) as u64).max(block_bytes),
        (None, Some(bytes)) => bytes,
        (None, None) => FIRST_WRITE_BEHIND_BYTES.max(block_bytes),
    });
    let whole_blocks = |bytes: u64| (bytes - bytes % block_bytes).max(block_bytes);
    let max_bytes = match (pass_bytes, allowance_bytes) {
        (Some(pass), Some(allowance)) if allowance < pass => Some(whole_blocks(allowance)),
        (Some(pass), _) => Some(pass),
        // After one round the same pages would be written again while they are dirty, which costs the device nothing.
        (None, allowance) => allowance.map(|bytes| whole_blocks(bytes.min(span_bytes(cell)))),
    };
    Limits { max_bytes, max_ops: ops, max_elapsed_ns: left_ns.max(MIN_RUN_NS) }
}

/// The time for the I/O of the next visit, which has so much left of its slice: as long as the first visit's, and at least a
/// quarter of the slice, however long the preparation took.
///
/// In slices of 4 s, a first visit that was prepared for 1 s has the other 3 s, and no later one has more. One that was prepared for
/// 3.6 s has 1 s instead of the 0.4 s that are left.
pub(crate) fn run_ns(totals: &mut CellTotals, left_ns: u64, slice_ns: u64) -> u64 {
    let run_ns = left_ns.max(slice_ns / 4).max(MIN_RUN_NS);
    run_ns.min(*totals.first_run_ns.get_or_insert(run_ns))
}

/// How many times the I/Os in flight a sequential visit completes at least, if its limit allows. What starts at once on a slow disk
/// completes at once: a visit of eight reads of 1 MiB shows the start of such a group and no more, and six such visits differ by 25% (a
/// simulated disk of 250 GB, 2026-11-28; of 16 and more, by 9%).
const GENERATIONS: u64 = 4;
/// Random I/Os that a visit of the headline completes at least, one after the other, if its limit allows. Seeks of a disk differ by a third: six
/// visits of 15 each leave the mean unsure by 8%, of 24 by 6%.
const SEEKS: u64 = 24;
/// How much longer than its slice a visit may take for them: for those that start together, and for seeks.
const LONGEST_VISIT: u64 = 4;
const LONGEST_SEEKS: u64 = 2;

/// The I/Os below which a visit goes on after its time, and how many times as long it may take for them; `None` where only the time
/// counts.
fn beyond_its_time(cell: &Cell) -> Option<(u64, u64)> {
    let Workload { pattern, queue_depth, jobs, .. } = &cell.workload;
    if cell.extent != Extent::Timed || !jobs.is_empty() || cell.workload.is_written_behind() {
        return None;
    }
    match pattern {
        Pattern::Sequential if *queue_depth > 1 => {
            Some((GENERATIONS * rdsk_analysis::metrics::wanted_depth(&cell.workload), LONGEST_VISIT))
        }
        Pattern::Random if *queue_depth == 1 && cell.experiment == Experiment::Headline => {
            Some((SEEKS, LONGEST_SEEKS))
        }
        _ => None,
    }
}

/// I/Os below which a visit goes on after its time.
pub(crate) fn least_ops(cell: &Cell) -> u64 {
    beyond_its_time(cell).map_or(1, |(ops, _)| ops)
}

/// The time after which a visit with a slice of `ns` ends, whatever it has completed.
///
/// A slice of 250 ms and eight I/Os in flight that take 500 ms: the visit goes on until 32 have completed, or 1 s is over.
pub(crate) fn longest_ns(cell: &Cell, ns: u64) -> u64 {
    beyond_its_time(cell).map_or(ns, |(_, times)| ns.saturating_mul(times))
}

/// Whether a cell needs no further visit in this slice.
pub(crate) fn is_enough(cell: &Cell, ended: Ended) -> bool {
    match cell.extent {
        Extent::Pass { .. } | Extent::Sustained(_) | Extent::Once { .. } => true,
        Extent::Timed => ended != Ended::Complete,
        Extent::Passes { .. } | Extent::Samples { .. } => false,
    }
}

/// I/Os of the next visit of samples: twice as many while the I/O takes a small part of the visit. Direct writes grow as
/// long as the time allows: every visit ends with a flush and so starts with an empty cache in the device, and only a long
/// one shows what the device does when that cache is full.
///
/// With 4 s left, 64 cold reads that took 50 ms of a visit of 300 ms, the rest of which made them cold, become 128. If these take 100 of
/// 350 ms, more than a quarter, the next visit has 128 as well. Direct writes would be doubled until a visit takes 1 s of 4.
pub(crate) fn next_ops(cell: &Cell, ops: u64, totals: &CellTotals, visit_ns: u64, left_ns: u64) -> u64 {
    let io_ns = totals.visits.last().map_or(0, |visit| visit.elapsed_ns);
    let fills_a_cache = cell.workload.op == Op::Write && cell.workload.path == IoPath::Direct;
    let worth_it =
        if fills_a_cache { visit_ns < left_ns / 4 } else { io_ns < visit_ns / 4 && visit_ns < left_ns / 8 };
    if worth_it { ops.saturating_mul(2) } else { ops }
}

pub(crate) fn cache_check(cell: &Cell) -> CacheCheck {
    match (cell.extent, cell.workload.cache) {
        (Extent::Samples { .. }, CacheState::Cold | CacheState::Warm) => CacheCheck::EachRange,
        _ => CacheCheck::Span,
    }
}

/// Windows of 50 ms, or of a half, a quarter … of that if the slice is too short for an interval. The slices of one cell
/// differ, and windows can only be joined if the wider ones are multiples of the narrower ones.
pub(crate) fn window_ns(slice_ns: u64) -> u64 {
    const WIDEST_NS: u64 = 50_000_000;
    const HALVINGS: u32 = 5;
    (0..HALVINGS)
        .map(|halvings| WIDEST_NS >> halvings)
        .find(|&width_ns| width_ns <= slice_ns / 40)
        .unwrap_or(WIDEST_NS >> HALVINGS)
}

/// The workload of a visit that begins so far behind the start of the span, and where in that workload it begins. Near the end of the
/// span the part is the last one that it has.
pub(crate) fn of_visit(cell: &Cell, begin_bytes: u64) -> (Cow<'_, Workload>, u64) {
    let workload = &cell.workload;
    let span_bytes = span_bytes(cell);
    if span_bytes >= workload.span_bytes {
        return (Cow::Borrowed(workload), begin_bytes);
    }
    let step_bytes = workload.block_bytes.max(1).checked_next_multiple_of(workload.align_bytes.max(1));
    let whole_steps = |bytes: u64| bytes - bytes % step_bytes.unwrap_or(u64::MAX);
    let begin_bytes = whole_steps(begin_bytes % workload.span_bytes);
    let part_bytes = begin_bytes.min(whole_steps(workload.span_bytes - span_bytes));
    let offset_bytes = workload.offset_bytes.saturating_add(part_bytes);
    (Cow::Owned(Workload { offset_bytes, span_bytes, ..workload.clone() }), begin_bytes - part_bytes)
}

/// Bytes of the span that a visit of a cell may use.
fn span_bytes(cell: &Cell) -> u64 {
    let window_bytes = question(cell.experiment).window_bytes().filter(|_| cell.extent == Extent::Timed);
    cell.workload.part_bytes(window_bytes.unwrap_or(u64::MAX))
}

/// Shortest time after which a rate may be called settled.
const MIN_NS: u64 = 10_000_000_000;
/// Points that are kept at most; every second one is dropped when there are more.
const MAX_POINTS: usize = 4096;
/// The whole series is looked at again when its time has grown by one part in this number.
const LOOK_GROWS: u64 = 20;
/// A level of at most this share of the rate that shorter visits had has fallen from there.
pub(crate) const FALLEN: f64 = 0.8;

/// The progress of such a visit.
#[derive(Debug)]
pub(crate) struct SettleWatch {
    endurance: Endurance,
    /// Seconds and bytes.
    points: Vec<(f64, f64)>,
    /// Windows that stand for one point, and those since the last one.
    every: u32,
    since: u32,
    next_look_ns: u64,
}

impl SettleWatch {
    /// For a visit of this cell; `None` where its end does not depend on its rate.
    pub(crate) fn for_cell(cell: &Cell) -> Option<Self> {
        let Extent::Sustained(endurance) = cell.extent else { return None };
        Some(Self { endurance, points: Vec::new(), every: 1, since: 0, next_look_ns: MIN_NS })
    }

    /// Takes the progress at the end of a window; whether the visit has gone on for long enough.
    pub(crate) fn is_over(&mut self, progress: &Progress) -> bool {
        self.since += 1;
        if self.since >= self.every {
            self.since = 0;
            self.points.push((progress.elapsed_ns as f64 / 1e9, progress.bytes as f64));
        }
        if self.points.len() > MAX_POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.every *= 2;
        }
        if progress.elapsed_ns < self.next_look_ns || progress.bytes < self.endurance.least_bytes {
            return false;
        }
        self.next_look_ns = progress.elapsed_ns + progress.elapsed_ns / LOOK_GROWS;
        let Some(settled) = sustained(&self.points).filter(Sustained::is_clearly_settled) else {
            return false;
        };
        let expected = self.endurance.expected_bytes_per_s as f64;
        let has_fallen = settled.fall.is_some() || settled.rate <= FALLEN * expected;
        let has_held =
            progress.elapsed_ns >= self.endurance.least_ns || progress.ops >= self.endurance.least_ops;
        has_fallen || has_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Experiment;

    #[test]
    fn any_two_widths_divide_each_other() {
        let slices = (0..3_000_u64).map(|step| step * 1_000_003);
        let mut widths: Vec<u64> = slices.map(window_ns).collect();
        widths.dedup();
        assert_eq!(widths, [1_562_500, 3_125_000, 6_250_000, 12_500_000, 25_000_000, 50_000_000]);
        assert!(widths.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{widths:?}");
    }

    const GIB: u64 = 1 << 30;

    fn cell(path: IoPath, span_bytes: u64) -> Cell {
        Cell {
            id: "c".into(),
            experiment: Experiment::Stream,
            workload: Workload {
                path,
                block_bytes: 1 << 14,
                align_bytes: 1 << 14,
                offset_bytes: 1 << 20,
                ..Workload::sequential_read(span_bytes)
            },
            extent: Extent::Timed,
            weight: 1.0,
            not_applicable: None,
        }
    }

    /// Where a visit begins: offset and length of what it may use, and its start in that.
    fn part(cell: &Cell, begin_bytes: u64) -> (u64, u64, u64) {
        let (workload, begin_bytes) = of_visit(cell, begin_bytes);
        (workload.offset_bytes, workload.span_bytes, begin_bytes)
    }

    #[test]
    fn a_buffered_visit_goes_on_behind_the_others_in_a_part_of_the_span() {
        let buffered = cell(IoPath::Buffered, 100 * GIB);
        assert_eq!(part(&buffered, 0), (1 << 20, GIB, 0));
        assert_eq!(part(&buffered, 5 * GIB + 100), ((1 << 20) + 5 * GIB, GIB, 0), "in whole blocks");
        // Never beyond the end of the span, and round it.
        let last = (1 << 20) + 99 * GIB;
        assert_eq!(part(&buffered, 99 * GIB), (last, GIB, 0));
        assert_eq!(part(&buffered, 100 * GIB - (1 << 20)), (last, GIB, GIB - (1 << 20)));
        assert_eq!(part(&buffered, 101 * GIB), ((1 << 20) + GIB, GIB, 0));
        // In a span that is hardly larger the visits move on as those of others do.
        let close = cell(IoPath::Buffered, GIB + (1 << 14));
        let begins = [0, 1 << 14, GIB / 2, GIB].map(|begin_bytes| part(&close, begin_bytes));
        let at = |part_bytes: u64, begin_bytes: u64| ((1 << 20) + part_bytes, GIB, begin_bytes);
        assert_eq!(
            begins,
            [at(0, 0), at(1 << 14, 0), at(1 << 14, GIB / 2 - (1 << 14)), at(1 << 14, GIB - (1 << 14))]
        );
    }

    #[test]
    fn direct_and_short_cells_passes_and_other_questions_have_their_span() {
        let whole = |cell: &Cell| assert_eq!(part(cell, 7), (1 << 20, cell.workload.span_bytes, 7));
        whole(&cell(IoPath::Direct, 100 * GIB));
        whole(&cell(IoPath::Buffered, GIB));
        let mut two = cell(IoPath::Buffered, 100 * GIB);
        two.workload.streams = 2;
        whole(&two);
        whole(&Cell { extent: Extent::Passes { bytes: 1 << 20 }, ..cell(IoPath::Buffered, 100 * GIB) });
        whole(&Cell { experiment: Experiment::Headline, ..cell(IoPath::Buffered, 100 * GIB) });
        let mut random = cell(IoPath::Buffered, 100 * GIB);
        random.workload.pattern = Pattern::Random;
        whole(&random);
        // A window would have no room for two of these blocks.
        let mut large = cell(IoPath::Buffered, 100 * GIB);
        large.workload.block_bytes = GIB;
        whole(&large);
    }

    #[test]
    fn a_visit_with_many_in_flight_goes_on_until_they_completed_some_times() {
        let of_depth = |queue_depth: u32, path: IoPath| {
            let mut cell = cell(path, GIB);
            cell.workload.queue_depth = queue_depth;
            (least_ops(&cell), longest_ns(&cell, 250))
        };
        assert_eq!(of_depth(1, IoPath::Direct), (1, 250));
        assert_eq!(of_depth(8, IoPath::Direct), (32, 1000));
        let pass = Cell { extent: Extent::Pass { bytes: GIB }, ..cell(IoPath::Direct, GIB) };
        assert_eq!((least_ops(&pass), longest_ns(&pass, 250)), (1, 250));
    }

    #[test]
    fn a_visit_of_the_headline_goes_on_until_its_seeks_differ_less() {
        let random = |experiment: Experiment, queue_depth: u32| {
            let mut cell = Cell { experiment, ..cell(IoPath::Direct, GIB) };
            (cell.workload.pattern, cell.workload.queue_depth) = (Pattern::Random, queue_depth);
            (least_ops(&cell), longest_ns(&cell, 250))
        };
        assert_eq!(random(Experiment::Headline, 1), (24, 500));
        // Of more in flight, more complete in the same time; other questions compare short visits.
        assert_eq!(random(Experiment::Headline, 32), (1, 250));
        assert_eq!(random(Experiment::Align, 1), (1, 250));
    }

    struct Silent;

    impl Watch for Silent {
        fn event(&mut self, _event: &Event<'_>) {}
    }

    #[test]
    fn time_ends_a_visit_only_once_it_has_its_ios() {
        let mut watch = Silent;
        let mut alone = None;
        let mut policy = StopPolicy {
            ranks: &mut Lockstep::new(&mut alone, "c"),
            id: "c",
            watch: &mut watch,
            run_ns: 1_000_000_000,
            least_ops: 32,
            warm_up_ns: 0,
            left_ns: 0,
            last: (0, 0, 0),
            settle: None,
        };
        let mut flow = |ms: u64, ops: u64| {
            policy.window(&Progress { elapsed_ns: ms * 1_000_000, bytes: ops << 20, ops })
        };
        assert_eq!(flow(950, 8), Flow::Continue);
        assert_eq!(flow(1050, 31), Flow::Continue);
        assert_eq!(flow(1100, 32), Flow::Stop);
    }

    const FOREVER: Endurance = Endurance {
        least_bytes: 0,
        least_ns: u64::MAX,
        least_ops: u64::MAX,
        most_ops: u64::MAX,
        expected_bytes_per_s: 0,
    };

    /// The second in which a visit with this progress is over; `None` if it is not over within 1000 s.
    fn over_s(endurance: Endurance, done: impl Fn(f64) -> f64) -> Option<f64> {
        let cell = Cell {
            id: "c".into(),
            experiment: Experiment::Headline,
            workload: Workload::sequential_read(1 << 30),
            extent: Extent::Sustained(endurance),
            weight: 1.0,
            not_applicable: None,
        };
        let mut watch = SettleWatch::for_cell(&cell).unwrap();
        assert!(SettleWatch::for_cell(&Cell { extent: Extent::Timed, ..cell }).is_none());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a test")]
        let progress = |window: u64| {
            let bytes = done(window as f64 * 0.05) as u64;
            Progress { elapsed_ns: window * 50_000_000, bytes, ops: bytes / 4096 }
        };
        (1..20_000).find(|&window| watch.is_over(&progress(window))).map(|window| window as f64 * 0.05)
    }

    #[test]
    fn a_burst_is_over_when_the_level_after_it_lasted_as_long() {
        let burst = |s: f64| (900e6 * s).min(18e9 + 30e6 * s);
        let over = over_s(FOREVER, burst).unwrap();
        assert!((40.0..50.0).contains(&over), "the burst is over after 20.7 s: {over}");
        // One that ends at once is followed for as long as anything.
        assert_eq!(over_s(FOREVER, |s| (900e6 * s).min(1e8 + 30e6 * s)), Some(10.0));
    }

    #[test]
    fn a_level_goes_on_for_as_long_as_it_must() {
        assert_eq!(over_s(FOREVER, |s| 1e8 * s), None, "until its time is over");
        let held = |endurance: Endurance| over_s(endurance, |s| 1e8 * s).unwrap();
        assert!((60.0..63.1).contains(&held(Endurance { least_ns: 60_000_000_000, ..FOREVER })));
        assert!((20.0..21.1).contains(&held(Endurance { least_ops: 488_000, ..FOREVER })));
        // Far below what shorter visits had, it has fallen before.
        let below = Endurance { expected_bytes_per_s: 200_000_000, ..FOREVER };
        assert_eq!(over_s(below, |s| 1e8 * s), Some(10.0));
        let more = Endurance { least_bytes: 5_000_000_000, ..below };
        assert!((50.0..50.1).contains(&over_s(more, |s| 1e8 * s).unwrap()));
        assert_eq!(over_s(Endurance { least_ns: 0, ..FOREVER }, |s| 1e8 * s * s), None, "it never settles");
    }
}
