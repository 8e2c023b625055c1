//! How much of its span a visit of a cell may use. It judges nothing.

use rdsk_model::{CellRecord, Experiment, STREAM_WINDOW_BYTES};

/// Bytes of the span that one visit may use, on each target: a part of it, which moves, for a sequential visit of `stream` through the
/// page cache.
pub fn visit_span_bytes(cell: &CellRecord) -> u64 {
    let is_timed = cell.result.pass_bytes.is_none();
    let window_bytes = (cell.experiment == Experiment::Stream && is_timed).then_some(STREAM_WINDOW_BYTES);
    cell.workload.part_bytes(window_bytes.unwrap_or(u64::MAX))
}
