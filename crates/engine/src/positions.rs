//! Chosen positions: which comes next. It issues nothing.

use crate::job::Job;
use crate::random::{Permutation, mix, multiply_shift};
use rdsk_model::{Pattern, Points};

/// The positions of one visit in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionSource<'a> {
    points: &'a Points,
    block_bytes: u64,
    order: Option<Permutation>,
    /// Index of the place where a pass in the listed order begins.
    start: u64,
    next: u64,
}

/// One position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Index in the list; `None` for a position of a span.
    pub(crate) index: Option<u32>,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
}

impl<'a> PositionSource<'a> {
    /// The positions of a visit; `None` for a workload without any.
    pub(crate) fn new(job: &Job<'a>) -> Option<Self> {
        let workload = job.workload;
        let points = workload.points.as_ref()?;
        let (count, of_visit) = (points.len() as u64, mix(workload.seed, u64::from(job.visit)));
        let order = (workload.pattern == Pattern::Random).then(|| Permutation::new(count, of_visit));
        let is_moved = points.moves_start && job.visit > 0;
        Some(Self {
            points,
            block_bytes: workload.block_bytes,
            order,
            start: if is_moved { multiply_shift(of_visit, count) } else { 0 },
            next: u64::from(job.first_position),
        })
    }

    pub(crate) fn left(&self) -> usize {
        self.points.len().saturating_sub(usize::try_from(self.next).unwrap_or(usize::MAX))
    }

    /// The next position; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Position> {
        let count = self.points.len() as u64;
        if self.next >= count {
            return None;
        }
        let listed = self.start + self.next;
        let listed = if listed < count { listed } else { listed - count };
        let index = self.order.map_or(listed, |order| order.apply(self.next));
        self.next += 1;
        let position = usize::try_from(index).ok()?;
        let (offset_bytes, bytes) = self.points.get(position, self.block_bytes)?;
        Some(Position { index: Some(u32::try_from(index).ok()?), offset_bytes, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{CacheCheck, Limits};
    use rdsk_model::{StopFlag, Workload};

    fn workload(pattern: Pattern, sizes: Vec<u64>) -> Workload {
        let offset_bytes = (0..100).map(|index| index * 8192).collect();
        let points = Points { offset_bytes, block_bytes: sizes, ..Points::default() };
        Workload { pattern, block_bytes: 4096, points: Some(points), ..Workload::sequential_read(1 << 20) }
    }

    fn order(workload: &Workload, visit: u32, first_position: u32) -> Vec<u32> {
        let job = Job {
            workload,
            claims: &[],
            limits: Limits { max_bytes: None, max_ops: None, max_elapsed_ns: 1 },
            visit,
            begin_bytes: 0,
            first_position,
            cache_check: CacheCheck::Span,
            window_ns: 1,
            pin_cpus: &[],
            stop: StopFlag::new(),
        };
        let mut source = PositionSource::new(&job).unwrap();
        std::iter::from_fn(|| source.next()).filter_map(|position| position.index).collect()
    }

    #[test]
    fn every_position_is_visited_once_in_its_own_order_per_visit() {
        let shuffled = workload(Pattern::Random, Vec::new());
        let (first, second) = (order(&shuffled, 0, 0), order(&shuffled, 1, 0));
        assert_ne!(first, second);
        for run in [&first, &second] {
            let mut sorted = run.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        }
        assert_eq!(order(&shuffled, 0, 40), first[40..], "a resumed run continues the same order");
        assert_eq!(order(&workload(Pattern::Sequential, Vec::new()), 3, 0), (0..100).collect::<Vec<_>>());
    }

    /// Passes in the listed order that begin elsewhere go round to where they began.
    #[test]
    fn a_pass_that_begins_elsewhere_goes_round() {
        let mut moved = workload(Pattern::Sequential, Vec::new());
        moved.points.as_mut().unwrap().moves_start = true;
        assert_eq!(order(&moved, 0, 0), (0..100).collect::<Vec<_>>());
        let starts: Vec<u32> = (1..40).map(|visit| order(&moved, visit, 0)[0]).collect();
        for (visit, &start) in (1..40).zip(&starts) {
            let round: Vec<u32> = (0..100).map(|step| (start + step) % 100).collect();
            assert_eq!(order(&moved, visit, 0), round);
            assert_eq!(order(&moved, visit, 30), round[30..], "a resumed run continues the same order");
        }
        let far = |start: &&u32| (25..75).contains(*start);
        assert!((10..30).contains(&starts.iter().filter(far).count()), "{starts:?}");
    }
}
