//! How much of its span a visit of a cell may use. It judges nothing.

use rdsk_model::{CellRecord, Experiment, Pattern, STREAM_WINDOW_BYTES};

/// Bytes of the span that one visit may use, on each target: a part of it, which moves, for a sequential visit of `stream` through the
/// page cache.
pub fn visit_span_bytes(cell: &CellRecord) -> u64 {
    let workload = &cell.workload;
    let moves = cell.experiment == Experiment::Stream
        && cell.result.pass_bytes.is_none()
        && workload.pattern == Pattern::Sequential
        && workload.streams == 1
        && workload.path.uses_page_cache();
    if moves { workload.span_bytes.min(STREAM_WINDOW_BYTES) } else { workload.span_bytes }
}
