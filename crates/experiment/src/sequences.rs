//! Where the sequential visits of a run begin: behind what others of the same run have gone through. A visit that began at the start of
//! the span each time would soon be answered by a cache below the block layer, of a hypervisor, an array or a disk, and nothing would
//! say. And which targets may hold the same blocks: several paths lead to one LUN, and a partition or an array lies on a disk that is a
//! target, too. It issues nothing.

use rdsk_model::{Cell, Extent, Pattern, StreamResult, Target, TargetKind, Visit};
use std::collections::BTreeMap;

/// How far the streams of sequential visits have come.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    /// The first of the targets that may hold the same blocks as each target: several paths lead to one LUN.
    mediums: Vec<u32>,
    /// By that one, the bytes that a stream has gone through in all visits; of several streams the most.
    gone_bytes: BTreeMap<u32, u64>,
}

impl Sequences {
    /// Those of a run on these targets that goes on with these visits of cells, in any order: an earlier run's, or none.
    pub(crate) fn after<'a>(targets: &[Target], earlier: &[(&'a Cell, &'a [Visit])]) -> Self {
        let mut sequences = Self { mediums: mediums(targets), gone_bytes: BTreeMap::new() };
        // Passes first: rather too far behind than over what was read.
        for does_move in [false, true] {
            for (cell, visits) in earlier.iter().filter(|(cell, _)| moves(cell) == does_move) {
                sequences.add_earlier(cell, visits);
            }
        }
        sequences
    }

    /// How far behind the start of its part each stream of the next visit begins.
    pub(crate) fn begin_bytes(&self, cell: &Cell) -> u64 {
        if !moves(cell) {
            return 0;
        }
        let gone = |&target: &u32| self.gone_bytes.get(&self.medium(target)).copied();
        cell.workload.targets.iter().filter_map(gone).max().unwrap_or(0)
    }

    /// Adds a visit with these streams.
    pub(crate) fn add(&mut self, cell: &Cell, streams: &[StreamResult]) {
        if !is_sequence(cell) {
            return;
        }
        for &target in &cell.workload.targets {
            let of_target = streams.iter().filter(|stream| stream.target == target);
            let most = of_target.map(|stream| stream.bytes).max().unwrap_or(0);
            let gone = self.gone_bytes.entry(self.medium(target)).or_default();
            let passed = if moves(cell) { most } else { left_of_pass(cell, most, *gone) };
            *gone = gone.saturating_add(passed);
        }
    }

    fn add_earlier(&mut self, cell: &Cell, visits: &[Visit]) {
        let target = cell.workload.targets.first().copied().unwrap_or(0);
        for visit in visits {
            // A visit of a single stream does not list it.
            let alone = [StreamResult { target, bytes: visit.bytes, ..StreamResult::default() }];
            self.add(cell, if visit.streams.is_empty() { &alone } else { &visit.streams });
        }
    }

    fn medium(&self, target: u32) -> u32 {
        self.mediums.get(target as usize).copied().unwrap_or(target)
    }
}

fn is_sequence(cell: &Cell) -> bool {
    cell.workload.pattern == Pattern::Sequential && cell.workload.points.is_none()
}

/// How much of a pass over the first bytes of a part lies behind the place that was reached in it.
fn left_of_pass(cell: &Cell, pass_bytes: u64, gone_bytes: u64) -> u64 {
    let workload = &cell.workload;
    let targets = u64::try_from(workload.targets.len()).unwrap_or(u64::MAX).max(1);
    let part_bytes = workload.span_bytes / u64::from(workload.streams).div_ceil(targets).max(1);
    pass_bytes.saturating_sub(gone_bytes.checked_rem(part_bytes).unwrap_or(0))
}

/// A pass is over the same bytes each time: that is what it is for.
fn moves(cell: &Cell) -> bool {
    is_sequence(cell) && cell.extent == Extent::Timed
}

/// For each target, the first one of those that hold the same blocks, itself or through others.
pub(crate) fn mediums(targets: &[Target]) -> Vec<u32> {
    let mut mediums: Vec<u32> = targets.iter().map(|target| target.index).collect();
    for (here, target) in targets.iter().enumerate() {
        for there in 0..here {
            if share_blocks(target, &targets[there]) {
                let (kept, other) = (mediums[here].min(mediums[there]), mediums[here].max(mediums[there]));
                mediums.iter_mut().filter(|medium| **medium == other).for_each(|medium| *medium = kept);
            }
        }
    }
    mediums
}

/// How many of the targets before the one at a position are of its medium.
pub(crate) fn twins_before(mediums: &[u32], position: usize) -> u32 {
    let twins = mediums[..position].iter().filter(|&&medium| medium == mediums[position]);
    u32::try_from(twins.count()).unwrap_or(u32::MAX)
}

/// Files and partitions share their disk, but no block of it.
fn share_blocks(target: &Target, other: &Target) -> bool {
    let (Some(a), Some(b)) = (&target.device, &other.device) else { return false };
    if (target.kind, other.kind) != (TargetKind::Block, TargetKind::Block) {
        return false;
    }
    if target.stack.contains(&b.name) || other.stack.contains(&a.name) {
        return true;
    }
    let are_of_one_disk = target.stack.last().is_some_and(|disk| other.stack.last() == Some(disk));
    !are_of_one_disk && a.serial.is_some() && a.serial == b.serial && target.size_bytes == other.size_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Device, Experiment, Points, Workload};

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
    fn a_visit_begins_behind_passes_which_always_begin_at_the_start() {
        let timed = cell(Extent::Timed, Pattern::Sequential, &[0]);
        let pass = cell(Extent::Pass { bytes: 800 }, Pattern::Sequential, &[0]);
        let mut sequences = Sequences::default();
        sequences.add(&pass, &[stream(0, 800)]);
        sequences.add(&pass, &[stream(0, 800)]);
        assert_eq!((sequences.begin_bytes(&timed), sequences.begin_bytes(&pass)), (800, 0));
        sequences.add(&timed, &[stream(0, 900)]);
        sequences.add(&pass, &[stream(0, 800)]);
        assert_eq!((sequences.begin_bytes(&timed), sequences.begin_bytes(&pass)), (1700, 0));
        // Round the span, it comes to the start again, which the next pass reads.
        sequences.add(&timed, &[stream(0, (1 << 30) - 1600)]);
        assert_eq!(sequences.begin_bytes(&timed), (1 << 30) + 100);
        sequences.add(&pass, &[stream(0, 800)]);
        assert_eq!(sequences.begin_bytes(&timed), (1 << 30) + 800);
    }

    #[test]
    fn random_visits_and_chosen_positions_neither_move_nor_are_moved() {
        let timed = cell(Extent::Timed, Pattern::Sequential, &[0]);
        let mut chosen = cell(Extent::Pass { bytes: 4096 }, Pattern::Sequential, &[0]);
        chosen.workload.points = Some(Points::default());
        let others = [cell(Extent::Timed, Pattern::Random, &[0]), chosen];
        let mut sequences = Sequences::default();
        for other in &others {
            sequences.add(other, &[stream(0, 900)]);
        }
        assert_eq!(sequences.begin_bytes(&timed), 0);
        sequences.add(&timed, &[stream(0, 900)]);
        assert!(others.iter().all(|other| sequences.begin_bytes(other) == 0));
    }

    #[test]
    fn what_an_earlier_run_has_read_is_not_read_again() {
        let timed = cell(Extent::Timed, Pattern::Sequential, &[2]);
        let pass = cell(Extent::Pass { bytes: 70 }, Pattern::Sequential, &[2]);
        let visit =
            |bytes, streams: &[StreamResult]| Visit { bytes, streams: streams.to_vec(), ..Visit::default() };
        let visits = [visit(500, &[]), visit(90, &[stream(2, 60), stream(2, 30)])];
        let of_pass = [visit(70, &[])];
        let sequences = Sequences::after(&[], &[(&timed, &visits), (&pass, &of_pass)]);
        assert_eq!(sequences.begin_bytes(&timed), 630);
    }

    /// Paths of one LUN.
    #[test]
    fn targets_with_the_same_blocks_go_on_together() {
        let cell_of = |index| cell(Extent::Timed, Pattern::Sequential, &[index]);
        let mut sequences = Sequences { mediums: vec![0, 0, 2], ..Sequences::default() };
        sequences.add(&cell_of(1), &[stream(1, 900)]);
        assert_eq!([0, 1, 2].map(|index| sequences.begin_bytes(&cell_of(index))), [900, 900, 0]);
    }

    fn target(index: u32, stack: &[&str], serial: Option<&str>, size_bytes: u64) -> Target {
        let device = Device { name: stack[0].into(), serial: serial.map(Into::into), ..Device::default() };
        let stack = stack.iter().copied().map(Into::into).collect();
        let (kind, device) = (TargetKind::Block, Some(device));
        Target { index, kind, device, stack, size_bytes, ..Target::default() }
    }

    #[test]
    fn paths_of_one_lun_are_one_medium_and_luns_and_partitions_of_one_disk_are_not() {
        let targets = [
            target(0, &["sda"], Some("L1"), 10),
            target(1, &["sdb"], Some("L1"), 10),
            target(2, &["sdc"], Some("L2"), 10),
            // A controller's number, which all of its namespaces have.
            target(3, &["nvme0n1"], Some("C"), 10),
            target(4, &["nvme0n2"], Some("C"), 20),
            target(5, &["sdd1", "sdd"], Some("L3"), 5),
            target(6, &["sdd2", "sdd"], Some("L3"), 5),
            target(7, &["sde"], None, 10),
            target(8, &["sdf"], None, 10),
        ];
        let of_targets = mediums(&targets);
        assert_eq!(of_targets, [0, 0, 2, 3, 4, 5, 6, 7, 8]);
        let twins: Vec<u32> =
            (0..targets.len()).map(|position| twins_before(&of_targets, position)).collect();
        assert_eq!(twins, [0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut files = [targets[5].clone(), targets[5].clone()];
        files[1].index = 1;
        files.iter_mut().for_each(|file| file.kind = TargetKind::File);
        assert_eq!(mediums(&files), [5, 1]);
    }

    #[test]
    fn what_lies_on_another_target_shares_its_medium_also_through_a_third() {
        let disk = target(0, &["sda"], None, 10);
        let partition = target(1, &["sda1", "sda"], None, 5);
        assert_eq!(mediums(&[disk, partition]), [0, 0]);
        let [first, second] = [target(0, &["sda1", "sda"], None, 5), target(1, &["sdb1", "sdb"], None, 5)];
        let array = target(2, &["md0", "sda1", "sda", "sdb1", "sdb"], None, 10);
        assert_eq!(mediums(&[first, second, array]), [0, 0, 0]);
    }
}
