//! How much I/O one visit does: limits, growth, the end of its time. No visit ends because its figures look precise: one
//! that stopped at a lucky moment would be shorter than the others. It decides from numbers and issues nothing.

use crate::cell_totals::{CellTotals, per_second};
use crate::settle::SettleWatch;
use crate::window::span_bytes;
use rdsk_engine::{CacheCheck, Control, Ended, Flow, Limits, Progress};
use rdsk_model::{CacheState, Cell, Event, Extent, IoPath, Op, Watch};

/// Shortest time for the I/O of a visit, however long preparation took.
pub(crate) const MIN_RUN_NS: u64 = 5_000_000;
/// Bytes of the first visit of a write-behind cell, before the device's rate is known.
const FIRST_WRITE_BEHIND_BYTES: u64 = 1 << 20;

/// Ends a visit when its time is over, and reports the rates of every window.
pub(crate) struct StopPolicy<'a> {
    pub(crate) id: &'a str,
    pub(crate) watch: &'a mut dyn Watch,
    /// Time for the I/O of this visit.
    pub(crate) run_ns: u64,
    /// The start of this visit that is kept apart.
    pub(crate) warm_up_ns: u64,
    /// Time left of the budget when the I/O started.
    pub(crate) left_ns: u64,
    /// Elapsed time, bytes and I/Os at the window before.
    pub(crate) last: (u64, u64, u64),
    /// For a visit that goes on until its rate has settled.
    pub(crate) settle: Option<SettleWatch>,
}

impl Control for StopPolicy<'_> {
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
            None => progress.elapsed_ns >= self.run_ns,
        };
        if is_over && progress.ops > 0 { Flow::Stop } else { Flow::Continue }
    }

    fn warm_up_ns(&self) -> u64 {
        self.warm_up_ns
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bytes of one visit stay far below 2^53"
)]
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
pub(crate) fn run_ns(totals: &mut CellTotals, left_ns: u64, slice_ns: u64) -> u64 {
    let run_ns = left_ns.max(slice_ns / 4).max(MIN_RUN_NS);
    run_ns.min(*totals.first_run_ns.get_or_insert(run_ns))
}

/// Whether a cell needs no further visit in this slice.
pub(crate) fn is_enough(cell: &Cell, ended: Ended) -> bool {
    match cell.extent {
        Extent::Pass { .. } | Extent::Sustained(_) => true,
        Extent::Timed => ended != Ended::Complete,
        Extent::Passes { .. } | Extent::Samples { .. } => false,
    }
}

/// I/Os of the next visit of samples: twice as many while the I/O takes a small part of the visit. Direct writes grow as
/// long as the time allows: every visit ends with a flush and so starts with an empty cache in the device, and only a long
/// one shows what the device does when that cache is full.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_widths_divide_each_other() {
        let slices = (0..3_000_u64).map(|step| step * 1_000_003);
        let mut widths: Vec<u64> = slices.map(window_ns).collect();
        widths.dedup();
        assert_eq!(widths, [1_562_500, 3_125_000, 6_250_000, 12_500_000, 25_000_000, 50_000_000]);
        assert!(widths.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{widths:?}");
    }
}
