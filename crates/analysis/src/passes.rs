//! Passes of a cell: which of its visits did a whole one, and what totals are for one. A pass that was cut short gives no
//! time for a whole one. And how much of its span a visit may use. It judges nothing.

use crate::metrics::{ratio, visits};
use rdsk_model::{CellRecord, Experiment, STREAM_WINDOW_BYTES, Visit};

/// The visits that did a whole pass; all visits of a cell that does not know how large one is.
pub fn whole_passes(cell: &CellRecord) -> impl Iterator<Item = &Visit> {
    let least_bytes = cell.result.pass_bytes.unwrap_or(0);
    cell.result.visits.iter().filter(move |visit| visit.bytes >= least_bytes)
}

/// Whether the cell transfers passes and its time did not suffice for one.
pub fn has_no_whole_pass(cell: &CellRecord) -> bool {
    cell.result.pass_bytes.is_some()
        && cell.result.errors.is_empty()
        && !cell.result.visits.is_empty()
        && whole_passes(cell).next().is_none()
}

/// What a count or a time over all visits is for one whole pass; `None` where there was none. Passes that were cut short
/// count for as much as they did: to leave them out would leave out the slow ones.
pub fn per_pass(cell: &CellRecord, count: u64) -> Option<f64> {
    whole_passes(cell).next()?;
    let passes = match (cell.result.pass_bytes, cell.result.bytes) {
        (Some(pass), Some(moved)) if pass > 0 && moved > 0 => ratio(moved, pass),
        _ => visits(cell) as f64,
    };
    Some(count as f64 / passes)
}

/// Bytes of the span that one visit may use, on each target: a part of it, which moves, for a sequential visit of `stream` through the
/// page cache.
pub fn visit_span_bytes(cell: &CellRecord) -> u64 {
    let is_timed = cell.result.pass_bytes.is_none();
    let window_bytes = (cell.experiment == Experiment::Stream && is_timed).then_some(STREAM_WINDOW_BYTES);
    cell.workload.part_bytes(window_bytes.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, in_visits, with};
    use rdsk_model::{IoPath, Op};

    /// Two visits of 50 I/Os of 1 KiB and 5 ms each; a whole pass has so many bytes.
    fn passes_of(bytes: u64) -> CellRecord {
        let two = in_visits(cell("p", Op::Read, IoPath::Direct, 1024, 100, 10_000_000), 2);
        with(two, |cell| cell.result.pass_bytes = Some(bytes))
    }

    #[test]
    fn without_a_whole_pass_nothing_is_said_of_one() {
        let whole = passes_of(50 << 10);
        assert!(!has_no_whole_pass(&whole));
        assert_eq!(per_pass(&whole, 100), Some(50.0));
        let cut = passes_of((50 << 10) + 1);
        assert!(has_no_whole_pass(&cut));
        assert_eq!(per_pass(&cut, 100), None);
    }

    /// One whole pass and the half of another have one and a half times the requests of a pass.
    #[test]
    fn a_part_counts_as_a_part() {
        let mixed = with(passes_of(50 << 10), |cell| {
            cell.result.bytes = Some(75 << 10);
            cell.result.visits[1].bytes = 25 << 10;
        });
        assert_eq!(per_pass(&mixed, 75), Some(50.0));
        assert!(!has_no_whole_pass(&mixed));
    }

    #[test]
    fn a_cell_without_passes_has_its_visits() {
        let visits = with(passes_of(1), |cell| cell.result.pass_bytes = None);
        assert_eq!((per_pass(&visits, 100), has_no_whole_pass(&visits)), (Some(50.0), false));
    }
}
