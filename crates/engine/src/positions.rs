//! Chosen positions: which comes next, and what the counters of an array's members show around each I/O. It issues nothing.

use crate::job::Job;
use crate::random::{Permutation, mix, multiply_shift};
use rdsk_model::{
    ChosenFirst, ChosenIo, MemberCounters, MemberIo, NextPosition, Pattern, Points, PositionChooser,
};

/// The positions of one visit in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionSource<'a> {
    points: &'a Points,
    block_bytes: u64,
    order: Option<Permutation>,
    /// Index of the place where a pass in the listed order begins.
    start: u64,
    next: u64,
    pub(crate) members: Option<&'a dyn MemberCounters>,
    /// Chooses positions before those of the list; `None` once it has finished.
    chooser: Option<&'a dyn PositionChooser>,
    /// First byte of the span and the byte after its last.
    span: (u64, u64),
}

/// The counters of an array's members, if it has any: their values before the next I/O, and what every I/O so far added.
#[derive(Debug, Default)]
pub(crate) struct MemberDeltas<'a> {
    members: Option<&'a dyn MemberCounters>,
    before: Vec<MemberIo>,
    after: Vec<MemberIo>,
    seen: Vec<MemberIo>,
}

impl<'a> MemberDeltas<'a> {
    /// Reserves room for so many I/Os and takes the first reading.
    pub(crate) fn of(members: Option<&'a dyn MemberCounters>, ops: usize) -> Self {
        let count = members.map_or(0, MemberCounters::count);
        let before = vec![MemberIo::default(); count];
        let mut deltas =
            Self { members, after: before.clone(), before, seen: Vec::with_capacity(count * ops) };
        deltas.forget();
        deltas
    }

    /// Reads the counters after an I/O; they are also those before the next.
    #[inline]
    pub(crate) fn note(&mut self) {
        let Some(members) = self.members else { return };
        members.read(&mut self.after);
        self.seen.extend(self.after.iter().zip(&self.before).map(|(after, before)| after.since(before)));
        self.before.copy_from_slice(&self.after);
    }

    /// The same after an I/O at a position that was chosen from the counters; returns what it added.
    pub(crate) fn note_chosen(&mut self) -> Vec<MemberIo> {
        let kept = self.seen.len();
        self.note();
        self.seen.split_off(kept)
    }

    /// Reads the counters again just before an I/O, so that I/O of other programs since the last one is not attributed to
    /// it.
    pub(crate) fn renew(&mut self) {
        if let Some(members) = self.members {
            members.read(&mut self.before);
        }
    }

    /// Reads the counters after an I/O that does not count.
    pub(crate) fn forget(&mut self) {
        self.renew();
        self.after.copy_from_slice(&self.before);
    }

    /// One list per I/O.
    pub(crate) fn finish(self) -> Vec<Vec<MemberIo>> {
        self.seen.chunks(self.before.len().max(1)).map(<[MemberIo]>::to_vec).collect()
    }
}

/// One position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Index in the list; `None` for a position chosen from the members' counters.
    pub(crate) index: Option<u32>,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
}

impl<'a> PositionSource<'a> {
    /// The positions of a visit; `None` for a workload without any.
    pub(crate) fn of(job: &Job<'a>) -> Option<Self> {
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
            members: job.members,
            chooser: job.chooser.filter(|_| points.chosen_first.is_some() && job.members.is_some()),
            span: (workload.offset_bytes, workload.offset_bytes.saturating_add(workload.span_bytes)),
        })
    }

    /// The next position chosen from the members' counters, given what the earlier ones showed. One outside the span, or
    /// larger than a block, is not used; the list follows instead.
    fn next_chosen(&mut self, seen: &[ChosenIo]) -> Option<Position> {
        let next = self.chooser?.next(seen);
        match next {
            NextPosition::Ask { offset_bytes, bytes } => {
                let end = offset_bytes.checked_add(bytes);
                let inside = offset_bytes >= self.span.0 && end.is_some_and(|end| end <= self.span.1);
                if inside && bytes > 0 && bytes <= self.block_bytes {
                    return Some(Position { index: None, offset_bytes, bytes });
                }
            }
            NextPosition::Told if self.points.chosen_first == Some(ChosenFirst::Enough) => {
                self.next = self.points.len() as u64;
            }
            NextPosition::Told | NextPosition::Untold => {}
        }
        self.chooser = None;
        None
    }

    pub(crate) fn left(&self) -> usize {
        self.points.len().saturating_sub(usize::try_from(self.next).unwrap_or(usize::MAX))
    }

    /// The next position, given what the chosen ones so far showed; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self, seen: &[ChosenIo]) -> Option<Position> {
        if self.chooser.is_some()
            && let Some(position) = self.next_chosen(seen)
        {
            return Some(position);
        }
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
            members: None,
            chooser: None,
            cache_check: CacheCheck::Span,
            window_ns: 1,
            pin_cpus: &[],
            stop: StopFlag::new(),
        };
        let mut source = PositionSource::of(&job).unwrap();
        std::iter::from_fn(|| source.next(&[])).filter_map(|position| position.index).collect()
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
