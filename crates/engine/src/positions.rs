//! Chosen places: which comes next, and the loop of the sync engine over them, which keeps the latency of each. Over listed
//! places the loop allocates nothing; its memory is taken before it starts. Between places that are chosen one by one it does,
//! outside the time of each.

use crate::EngineError;
use crate::arena::Arena;
use crate::clock::now_ns;
use crate::job::Job;
use crate::random::{Permutation, mix};
use crate::stream_spec::{Outcome, Recorder, StreamEnd, Work};
use crate::sync::transfer;
use rdsk_model::{
    ChosenFirst, ChosenIo, MemberCounters, MemberIo, NextPlace, Op, Pattern, PlaceChooser, PointRun, Points,
    Workload,
};

/// The places of one visit in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionSource<'a> {
    points: &'a Points,
    block_bytes: u64,
    order: Option<Permutation>,
    next: u64,
    members: Option<&'a dyn MemberCounters>,
    /// Who chooses places before those of the list; `None` when nobody does, or no longer.
    chooser: Option<&'a dyn PlaceChooser>,
    /// What may be asked: from the first byte of the span to the last.
    span: (u64, u64),
}

/// The members of an array around each I/O: the counters before it, and what every I/O so far added to them.
#[derive(Debug, Default)]
pub(crate) struct MemberDeltas {
    before: Vec<MemberIo>,
    after: Vec<MemberIo>,
    seen: Vec<MemberIo>,
}

impl MemberDeltas {
    /// Room for so many I/Os, and the first reading.
    pub(crate) fn of(members: Option<&dyn MemberCounters>, ops: usize) -> Self {
        let Some(members) = members else { return Self::default() };
        let count = members.count();
        let mut before = vec![MemberIo::default(); count];
        members.read(&mut before);
        Self { after: before.clone(), before, seen: Vec::with_capacity(count * ops) }
    }

    /// Reads the counters after an I/O, which are those before the next.
    #[inline]
    pub(crate) fn note(&mut self, members: Option<&dyn MemberCounters>) {
        let Some(members) = members else { return };
        members.read(&mut self.after);
        self.seen.extend(self.after.iter().zip(&self.before).map(|(after, before)| after.since(before)));
        self.before.copy_from_slice(&self.after);
    }

    /// The same after an I/O at a place that the counters asked for: what it added is handed back.
    pub(crate) fn note_chosen(&mut self, members: Option<&dyn MemberCounters>) -> Vec<MemberIo> {
        let Some(members) = members else { return Vec::new() };
        members.read(&mut self.after);
        let seen = self.after.iter().zip(&self.before).map(|(after, before)| after.since(before)).collect();
        self.before.copy_from_slice(&self.after);
        seen
    }

    /// Reads the counters again just before an I/O, so that what others did since the last one is not taken for its.
    pub(crate) fn renew(&mut self, members: Option<&dyn MemberCounters>) {
        if let Some(members) = members {
            members.read(&mut self.before);
        }
    }

    /// Reads the counters after an I/O that does not count.
    pub(crate) fn forget(&mut self, members: Option<&dyn MemberCounters>) {
        let Some(members) = members else { return };
        members.read(&mut self.before);
        self.after.copy_from_slice(&self.before);
    }

    /// One list per I/O.
    pub(crate) fn finish(self) -> Vec<Vec<MemberIo>> {
        self.seen.chunks(self.before.len().max(1)).map(<[MemberIo]>::to_vec).collect()
    }
}

/// One place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Position in the list; `None` for a place that the members' counters asked for.
    pub(crate) index: Option<u32>,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
}

impl<'a> PositionSource<'a> {
    /// The places of a visit; `None` for a workload without any.
    pub(crate) fn of(job: &Job<'a>) -> Option<Self> {
        let workload = job.workload;
        let points = workload.points.as_ref()?;
        let order = (workload.pattern == Pattern::Random)
            .then(|| Permutation::new(points.len() as u64, mix(workload.seed, u64::from(job.visit))));
        Some(Self {
            points,
            block_bytes: workload.block_bytes,
            order,
            next: u64::from(job.first_position),
            members: job.members,
            chooser: job.chooser.filter(|_| points.chosen_first.is_some() && job.members.is_some()),
            span: (workload.offset_bytes, workload.offset_bytes.saturating_add(workload.span_bytes)),
        })
    }

    /// The next place that the members' counters ask for, given what those before showed. One out of the span, or larger
    /// than a block, is never asked: the list goes on instead.
    fn next_chosen(&mut self, seen: &[ChosenIo]) -> Option<Position> {
        let next = self.chooser?.next(seen);
        match next {
            NextPlace::Ask { offset_bytes, bytes } => {
                let end = offset_bytes.checked_add(bytes);
                let inside = offset_bytes >= self.span.0 && end.is_some_and(|end| end <= self.span.1);
                if inside && bytes > 0 && bytes <= self.block_bytes {
                    return Some(Position { index: None, offset_bytes, bytes });
                }
            }
            NextPlace::Told if self.points.chosen_first == Some(ChosenFirst::Enough) => {
                self.next = self.points.len() as u64;
            }
            NextPlace::Told | NextPlace::Untold => {}
        }
        self.chooser = None;
        None
    }

    /// Places that are left.
    pub(crate) fn left(&self) -> usize {
        self.points.len().saturating_sub(usize::try_from(self.next).unwrap_or(usize::MAX))
    }

    /// Who reads the members' counters.
    pub(crate) fn members(&self) -> Option<&'a dyn MemberCounters> {
        self.members
    }

    /// The next place, given what the chosen ones so far showed; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self, seen: &[ChosenIo]) -> Option<Position> {
        if self.chooser.is_some()
            && let Some(position) = self.next_chosen(seen)
        {
            return Some(position);
        }
        if self.next >= self.points.len() as u64 {
            return None;
        }
        let index = self.order.map_or(self.next, |order| order.apply(self.next));
        self.next += 1;
        let position = usize::try_from(index).ok()?;
        let (offset_bytes, bytes) = self.points.get(position, self.block_bytes)?;
        Some(Position { index: Some(u32::try_from(index).ok()?), offset_bytes, bytes })
    }
}

/// What no engine can do with chosen places.
pub(crate) fn check(workload: &Workload) -> Result<(), EngineError> {
    let Some(points) = &workload.points else { return Ok(()) };
    let invalid = |why: &str| Err(EngineError::Workload { why: format!("its chosen places {why}") });
    if workload.streams != 1 || workload.queue_depth != 1 {
        return invalid("take one stream with one I/O in flight");
    }
    if (points.is_empty() && points.chosen_first.is_none()) || u32::try_from(points.len()).is_err() {
        return invalid("are none, or more than 2^32");
    }
    if !points.block_bytes.is_empty() && points.block_bytes.len() != points.offset_bytes.len() {
        return invalid("and their sizes are not the same number");
    }
    let end = workload.offset_bytes.saturating_add(workload.span_bytes);
    for index in 0..points.len() {
        let Some((offset, bytes)) = points.get(index, workload.block_bytes) else { continue };
        let inside = offset >= workload.offset_bytes
            && offset.checked_add(bytes).is_some_and(|last| last <= end)
            && bytes <= workload.block_bytes
            && bytes > 0;
        if !inside {
            return invalid("reach out of the span, or are larger than the block size");
        }
    }
    Ok(())
}

/// Places one after the other that may fail before the pass is given up: then it is the device that fails, not the place.
const FAILED_IN_A_ROW: u32 = 4;
/// Places of a pass that may fail in all.
const MAX_MISSED: usize = 64;

/// Whether an error is that of a place on the medium: a bad sector, or a part of a stack that answers none. A device that
/// went away, or a request that it does not take, fails everywhere.
fn is_of_this_place(result: &std::io::Result<usize>) -> bool {
    let errno = result.as_ref().err().and_then(std::io::Error::raw_os_error);
    errno.is_some_and(|errno| [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO].contains(&errno))
}

/// A run that has seen nothing yet.
fn with_room_for(places: usize) -> PointRun {
    PointRun {
        order: Vec::with_capacity(places),
        latency_ns: Vec::with_capacity(places),
        failed: Vec::new(),
        members: Vec::new(),
        chosen: Vec::new(),
    }
}

/// Issues the I/O of one stream over chosen places. A place that cannot be read is kept as an error, and the others go on.
pub(crate) fn run<R: Recorder>(
    mut work: Work<'_, R>,
    arena: &mut Arena,
    mut source: PositionSource<'_>,
) -> Outcome {
    let spec = work.spec;
    let buffer = arena.slot(0, spec.block_bytes);
    let mut seen = with_room_for(source.left());
    let mut member_deltas = MemberDeltas::of(source.members(), source.left());
    work.start_ns = now_ns();
    work.end_ns = work.start_ns;
    let mut failed_in_a_row = 0;
    let end = loop {
        if work.bounds.barrier.is_halted() {
            break StreamEnd::Halted;
        }
        if work.end_ns >= work.bounds.deadline_ns {
            break StreamEnd::OutOfTime;
        }
        let Some(position) = source.next(&seen.chosen) else { break StreamEnd::Complete };
        let Ok(len) = usize::try_from(position.bytes) else { break StreamEnd::Failed };
        let buffer = &mut buffer[..len];
        if spec.op == Op::Write {
            work.stamper.stamp(buffer, position.offset_bytes);
        }
        if let Some(wanted) = spec.check {
            work.cache_probe.check(spec.fd, position.offset_bytes, len, wanted);
        }
        work.asked_bytes += position.bytes;
        if position.index.is_none() {
            member_deltas.renew(source.members());
        }
        let begin_ns = now_ns();
        let result = match spec.op {
            Op::Read => {
                transfer::<false>(spec.fd, buffer, position.offset_bytes, &mut work.interrupted_calls)
            }
            Op::Write => {
                transfer::<true>(spec.fd, buffer, position.offset_bytes, &mut work.interrupted_calls)
            }
        };
        let end_ns = now_ns();
        work.end_ns = end_ns;
        match result {
            Ok(moved) if moved == len => {}
            other => {
                failed_in_a_row += 1;
                let may_go_on = is_of_this_place(&other)
                    && failed_in_a_row < FAILED_IN_A_ROW
                    && work.missed.len() < MAX_MISSED;
                // A place that the counters asked for has no answer then, and none can be chosen after it.
                let Some(index) = position.index.filter(|_| may_go_on) else {
                    crate::sync::fail(&mut work, position.offset_bytes, len, &other);
                    break StreamEnd::Failed;
                };
                work.miss(position.offset_bytes, len, crate::sync::answer(&other));
                seen.failed.push(index);
                member_deltas.forget(source.members());
                continue;
            }
        }
        failed_in_a_row = 0;
        work.latencies.record(end_ns - begin_ns);
        work.counters.add(end_ns, position.bytes, 1);
        let Some(index) = position.index else {
            let Position { offset_bytes, bytes, .. } = position;
            let members = member_deltas.note_chosen(source.members());
            seen.chosen.push(ChosenIo { offset_bytes, bytes, latency_ns: end_ns - begin_ns, members });
            continue;
        };
        seen.order.push(index);
        seen.latency_ns.push(end_ns - begin_ns);
        member_deltas.note(source.members());
    };
    seen.members = member_deltas.finish();
    Outcome { points: Some(seen), ..work.finish(end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{CacheCheck, Limits, Pinning};
    use rdsk_model::StopFlag;

    fn workload(pattern: Pattern, sizes: Vec<u64>) -> Workload {
        let offset_bytes = (0..100).map(|index| index * 8192).collect();
        let points = Points { offset_bytes, block_bytes: sizes, chosen_first: None };
        Workload { pattern, block_bytes: 4096, points: Some(points), ..Workload::sequential_read(1 << 20) }
    }

    fn order(workload: &Workload, visit: u32, first_position: u32) -> Vec<u32> {
        let job = Job {
            workload,
            claims: &[],
            limits: Limits { max_bytes: None, max_ops: None, max_elapsed_ns: 1 },
            visit,
            first_position,
            members: None,
            chooser: None,
            cache_check: CacheCheck::Span,
            window_ns: 1,
            pinning: Pinning::Free,
            stop: StopFlag::new(),
        };
        let mut source = PositionSource::of(&job).unwrap();
        std::iter::from_fn(|| source.next(&[])).filter_map(|position| position.index).collect()
    }

    #[test]
    fn every_place_is_visited_once_in_its_own_order_per_visit() {
        let shuffled = workload(Pattern::Random, Vec::new());
        let (first, second) = (order(&shuffled, 0, 0), order(&shuffled, 1, 0));
        assert_ne!(first, second);
        for run in [&first, &second] {
            let mut sorted = run.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        }
        assert_eq!(order(&shuffled, 0, 40), first[40..], "a run that goes on takes the same order up again");
        assert_eq!(order(&workload(Pattern::Sequential, Vec::new()), 3, 0), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn places_outside_the_span_are_refused() {
        assert!(check(&workload(Pattern::Random, Vec::new())).is_ok());
        assert!(check(&workload(Pattern::Random, vec![4096; 99])).is_err());
        assert!(check(&workload(Pattern::Random, vec![8192; 100])).is_err(), "larger than the buffer");
        let short = Workload { span_bytes: 8192 * 99, ..workload(Pattern::Random, Vec::new()) };
        assert!(check(&short).is_err());
        let deep = Workload { queue_depth: 2, ..workload(Pattern::Random, Vec::new()) };
        assert!(check(&deep).is_err());
    }
}
