//! The part of its span that one visit through the page cache may use. Such a part is made cold and checked before the visit, which takes
//! as long as it has pages, so that it is small; and it moves on through the same span as the direct cells do: visits over the same
//! bytes each time would soon be answered by a cache below the block layer, and the direct ones beside them would not. It issues nothing.

use crate::experiments::question;
use rdsk_model::{Cell, Extent, Workload};
use std::borrow::Cow;

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
pub(crate) fn span_bytes(cell: &Cell) -> u64 {
    let window_bytes = question(cell.experiment).window_bytes().filter(|_| cell.extent == Extent::Timed);
    cell.workload.part_bytes(window_bytes.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Experiment, IoPath, Pattern};

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
}
