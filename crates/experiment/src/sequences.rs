//! Where the sequential visits of a run begin: behind what others of the same run have gone through. A visit that began at the start of
//! the span each time would soon be answered by a cache below the block layer, of a hypervisor, an array or a disk, and nothing would
//! tell. It issues nothing.

use rdsk_model::{Cell, Extent, Pattern, StreamResult};
use std::collections::BTreeMap;

/// How far the streams of sequential visits have come.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    /// By target, the bytes that a stream has gone through in all visits; of several streams the most.
    gone_bytes: BTreeMap<u32, u64>,
}

impl Sequences {
    /// How far behind the start of its part each stream of the next visit begins.
    pub(crate) fn begin_bytes(&self, cell: &Cell) -> u64 {
        let gone = |target: &u32| self.gone_bytes.get(target).copied();
        if goes_on(cell) { cell.workload.targets.iter().filter_map(gone).max().unwrap_or(0) } else { 0 }
    }

    /// Adds a visit with these streams.
    pub(crate) fn add(&mut self, cell: &Cell, streams: &[StreamResult]) {
        if !goes_on(cell) {
            return;
        }
        for &target in &cell.workload.targets {
            let of_target = streams.iter().filter(|stream| stream.target == target);
            let most = of_target.map(|stream| stream.bytes).max().unwrap_or(0);
            let gone = self.gone_bytes.entry(target).or_default();
            *gone = gone.saturating_add(most);
        }
    }
}

/// A pass is over the same bytes each time: that is what it is for.
fn goes_on(cell: &Cell) -> bool {
    cell.extent == Extent::Timed && cell.workload.pattern == Pattern::Sequential
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Experiment, Workload};

    fn cell(extent: Extent, pattern: Pattern, targets: &[u32]) -> Cell {
        let workload = Workload { pattern, targets: targets.to_vec(), ..Workload::sequential_read(1 << 30) };
        Cell {
            id: "c".into(),
            experiment: Experiment::Stream,
            workload,
            extent,
            weight: 1.0,
            not_applicable: None,
        }
    }

    fn stream(target: u32, bytes: u64) -> StreamResult {
        StreamResult { target, bytes, ..StreamResult::default() }
    }

    #[test]
    fn a_visit_begins_where_the_others_have_not_been() {
        let timed = cell(Extent::Timed, Pattern::Sequential, &[0]);
        let mut sequences = Sequences::default();
        assert_eq!(sequences.begin_bytes(&timed), 0);
        sequences.add(&timed, &[stream(0, 700), stream(0, 900)]);
        sequences.add(&timed, &[stream(0, 50)]);
        assert_eq!(sequences.begin_bytes(&timed), 950);
        // Another disk was not read, and of two the one that was counts.
        assert_eq!(sequences.begin_bytes(&cell(Extent::Timed, Pattern::Sequential, &[1])), 0);
        assert_eq!(sequences.begin_bytes(&cell(Extent::Timed, Pattern::Sequential, &[1, 0])), 950);
    }

    #[test]
    fn passes_and_random_visits_neither_move_nor_are_moved() {
        let timed = cell(Extent::Timed, Pattern::Sequential, &[0]);
        let others = [
            cell(Extent::Pass { bytes: 4096 }, Pattern::Sequential, &[0]),
            cell(Extent::Timed, Pattern::Random, &[0]),
        ];
        let mut sequences = Sequences::default();
        for other in &others {
            sequences.add(other, &[stream(0, 900)]);
        }
        assert_eq!(sequences.begin_bytes(&timed), 0);
        sequences.add(&timed, &[stream(0, 900)]);
        assert!(others.iter().all(|other| sequences.begin_bytes(other) == 0));
    }
}
