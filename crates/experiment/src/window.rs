//! The part of its span that one visit through the page cache may use. Such a part is made cold and checked before the visit, which takes
//! as long as it has pages, so that it is small; and it moves on through the same span as the direct cells do: visits over the same
//! bytes each time would soon be answered by a cache below the block layer, and the direct ones beside them would not. It issues nothing.

use crate::registry::question;
use rdsk_model::{Cell, Extent, Pattern, Workload};
use std::borrow::Cow;

/// The workload of a visit that begins so far behind the start of the span, or of the part of each stream, and where in that workload
/// it begins.
pub(crate) fn of_visit(cell: &Cell, begin_bytes: u64) -> (Cow<'_, Workload>, u64) {
    let workload = &cell.workload;
    let span_bytes = span_bytes(cell);
    if span_bytes >= workload.span_bytes {
        return (Cow::Borrowed(workload), begin_bytes);
    }
    // Each stream has gone so far in a part of its own; behind so many parts none of them has been.
    let gone_bytes = begin_bytes.saturating_mul(u64::from(workload.streams));
    let step_bytes = workload.block_bytes.max(1).checked_next_multiple_of(workload.align_bytes.max(1));
    let begin_bytes = gone_bytes % (workload.span_bytes - span_bytes);
    let begin_bytes = begin_bytes - begin_bytes % step_bytes.unwrap_or(u64::MAX);
    let offset_bytes = workload.offset_bytes.saturating_add(begin_bytes);
    (Cow::Owned(Workload { offset_bytes, span_bytes, ..workload.clone() }), 0)
}

/// Bytes of the span that a visit of a cell may use.
pub(crate) fn span_bytes(cell: &Cell) -> u64 {
    let workload = &cell.workload;
    let moves = cell.extent == Extent::Timed
        && workload.pattern == Pattern::Sequential
        && workload.points.is_none()
        && workload.path.uses_page_cache();
    let window_bytes = question(cell.experiment).window_bytes().filter(|_| moves);
    let window_bytes = window_bytes.unwrap_or(u64::MAX).min(workload.span_bytes);
    // Each stream needs a block of its own.
    let least_bytes = workload.block_bytes.saturating_mul(u64::from(workload.streams).saturating_add(1));
    if window_bytes < least_bytes { workload.span_bytes } else { whole_blocks(workload, window_bytes) }
}

fn whole_blocks(workload: &Workload, bytes: u64) -> u64 {
    if bytes == workload.span_bytes { bytes } else { bytes - bytes % workload.block_bytes.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Experiment, IoPath};

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
        // Round the span, and never beyond its end.
        assert_eq!(part(&buffered, 99 * GIB), (1 << 20, GIB, 0));
        let last = part(&buffered, 99 * GIB - 1);
        assert_eq!(last, ((1 << 20) + 99 * GIB - (1 << 14), GIB, 0));
        let mut two = buffered;
        two.workload.streams = 2;
        assert_eq!(part(&two, 5 * GIB), ((1 << 20) + 10 * GIB, GIB, 0));
    }

    #[test]
    fn direct_and_short_cells_passes_and_other_questions_have_their_span() {
        let whole = |cell: &Cell| assert_eq!(part(cell, 7), (1 << 20, cell.workload.span_bytes, 7));
        whole(&cell(IoPath::Direct, 100 * GIB));
        whole(&cell(IoPath::Buffered, GIB));
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
}
