//! The result of a cell of `stripe`: the latencies, the members' counters if they were seen, and the kernel's hints, side by
//! side. Derived from a Record.

use super::adaptive_probes::AdaptiveProbes;
use super::answer::{Answer, Figure, SURE, Sample};
use super::conclude;
use super::inference::infer;
use super::member_layout::MemberLayout;
use super::members::{AdaptiveRun, MemberEvidence, infer_from_members, unrest};
use super::sysfs_hints::{Agreement, compare_with_sysfs};
use crate::metrics::{first_device, first_target, is_of_memory};
use rdsk_model::{CellRecord, ChosenIo, Device, Experiment, Op, Record, TargetKind, VerdictCode};

/// The most confidence in latencies that others' I/O may have changed.
const IN_DOUBT: f64 = 0.5;

/// What a cell shows of the geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct StripeResult {
    /// What the latencies say; offsets count from the first byte of the cell's span.
    pub answer: Answer,
    /// What the members' counters say; `None` if they were not seen, or did not move.
    pub counted: Option<MemberLayout>,
    /// How the kernel's hints relate to it; `None` if there are none.
    pub hints: Option<(Agreement, String)>,
    /// Whether the requests reached a device at all; if not, there is no conclusion.
    pub is_of_device: bool,
    /// First byte of the cell's span.
    pub begin_bytes: u64,
    /// Requests made, those to count by included.
    pub requests: usize,
    /// Requests of the sweep, whose latencies were taken; 0 if the counters showed enough.
    pub timed: usize,
    /// Requests planned.
    pub planned: usize,
    /// The smallest request.
    pub smallest_bytes: u64,
    /// The largest request; no full stripe above half of it is seen.
    pub largest_bytes: u64,
}

impl StripeResult {
    /// Whether the latencies say the same as the counters; true if only one of the two speaks.
    pub fn agrees(&self) -> bool {
        let Some(counted) = self.counted.as_ref().filter(|_| self.timed > 0) else { return true };
        let is = |timed: Option<Figure>, bytes: Option<u64>| timed.map(|figure| figure.bytes) == bytes;
        is(self.answer.chunk, counted.chunk_bytes) && is(self.answer.stripe, counted.stripe_bytes)
    }

    /// Chunk in bytes and how sure it is: counted, or inferred.
    pub fn chunk(&self) -> Option<(u64, f64)> {
        match &self.counted {
            Some(counted) => counted.chunk_bytes.map(|bytes| (bytes, sureness(counted))),
            None => self.answer.chunk.map(|figure| (figure.bytes, figure.confidence)),
        }
    }

    /// Full stripe in bytes and how sure it is.
    pub fn stripe(&self) -> Option<(u64, f64)> {
        match &self.counted {
            Some(counted) => counted.stripe_bytes.map(|bytes| (bytes, sureness(counted))),
            None => self.answer.stripe.map(|figure| (figure.bytes, figure.confidence)),
        }
    }

    /// Whether enough was seen for a conclusion, which may be that there is no stripe.
    pub fn is_conclusive(&self) -> bool {
        self.is_of_device && (self.chunk().is_some() || self.none_confidence() > 0.0)
    }

    /// How likely it is that there is no stripe to be seen at all, 0 … 1: counted, or inferred.
    pub fn none_confidence(&self) -> f64 {
        match &self.counted {
            Some(counted) if counted.chunk_bytes.is_some() => 0.0,
            // Reads that all reach one member leave open what the others hold.
            Some(counted) if counted.is_sure() && counted.writes > 0 => 1.0,
            Some(_) => IN_DOUBT,
            None => self.answer.none_confidence,
        }
    }

    /// Whether partial stripes cost reads; `None` when it cannot be told.
    pub fn parity(&self) -> Option<bool> {
        match &self.counted {
            Some(layout) => layout.parity_members.map(|members| members > 0),
            None => self.answer.parity,
        }
    }

    /// What to write, and where, as a sentence.
    pub fn advice(&self) -> String {
        let (Some((chunk, _)), Some((stripe, _))) =
            (self.chunk(), self.stripe().filter(|&(_, sure)| sure >= SURE))
        else {
            return match (&self.counted, self.chunk()) {
                (Some(_), Some((chunk, _))) => conclude::chunk_advice(chunk),
                (Some(_), None) => conclude::NO_ADVICE.to_owned(),
                (None, _) => self.answer.advice.text.clone(),
            };
        };
        conclude::advice(chunk, stripe, self.parity() == Some(true), self.start_offset_bytes())
    }

    /// Where the first full stripe of the target begins, in bytes from its start and less than a full stripe; `None` if it
    /// makes no difference or is not known.
    pub fn start_offset_bytes(&self) -> Option<u64> {
        let (stripe, _) = self.stripe()?;
        match &self.counted {
            Some(layout) => layout.start_offset_bytes,
            None => self.answer.start_offset_bytes.map(|start| (self.begin_bytes + start) % stripe),
        }
    }
}

fn sureness(counted: &MemberLayout) -> f64 {
    if counted.is_sure() { 1.0 } else { IN_DOUBT }
}

/// Reads a cell of `stripe`; `None` if none of its requests was made, and of reads that only stand beside the writes of the
/// same target: what those say rests on both.
pub(crate) fn stripe(record: &Record, cell: &CellRecord) -> Option<StripeResult> {
    let workload = &cell.workload;
    let points = workload.points.as_ref()?;
    let mut samples = Vec::new();
    for run in &cell.result.points {
        for (&point, &latency_ns) in run.order.iter().zip(&run.latency_ns) {
            let (offset, bytes) = points.get(point as usize, workload.block_bytes)?;
            let offset_bytes = offset.saturating_sub(workload.offset_bytes);
            samples.push(Sample { offset_bytes, bytes, latency_ns });
        }
    }
    let beside = sibling(record, cell);
    let is_companion =
        workload.op == Op::Read && points.is_empty() && beside.is_some_and(|one| !chosen(one).is_empty());
    let own = chosen(cell);
    if (samples.is_empty() && own.is_empty()) || is_companion {
        return None;
    }
    let sizes = || samples.iter().map(|sample| sample.bytes).chain(own.iter().map(|io| io.bytes));
    let beside_chosen = beside.map_or(0, |one| if own.is_empty() { 0 } else { chosen(one).len() });
    let requests = samples.len() + own.len() + beside_chosen;
    let mut answer = infer(workload.op, &samples);
    if cell.verdict.as_ref().is_some_and(|verdict| verdict.code == VerdictCode::Disturbed) {
        doubt(&mut answer, "other I/O used the device meanwhile, so none of this is certain");
    }
    let device = first_device(record, cell);
    let layout = counted(record, cell, beside);
    doubt_array(&mut answer, device, layout.as_ref());
    // Members that share the data in a way that no layout explains: no latency explains it better.
    if layout.as_ref().is_some_and(|layout| layout.chunk_bytes.is_none()) {
        doubt(&mut answer, "the members' counters show no chunk, so none of this is certain");
    }
    let mut result = StripeResult {
        hints: None,
        answer,
        // Enough was counted: the sweep was not planned to be made any more.
        planned: if samples.is_empty() { requests } else { requests - samples.len() + points.len() },
        counted: layout,
        is_of_device: !is_of_memory(cell),
        begin_bytes: workload.offset_bytes,
        requests,
        timed: samples.len(),
        smallest_bytes: sizes().min().unwrap_or(0),
        largest_bytes: sizes().max().unwrap_or(0),
    };
    result.hints = hints(device, &result);
    Some(result)
}

/// The cell of the other direction on the same target.
fn sibling<'a>(record: &'a Record, cell: &CellRecord) -> Option<&'a CellRecord> {
    record.cells.iter().find(|one| {
        one.experiment == Experiment::Stripe
            && one.workload.op != cell.workload.op
            && one.workload.targets == cell.workload.targets
            && one.workload.points.is_some()
    })
}

/// The requests whose places the counters chose; of the last pass, since each begins anew.
fn chosen(cell: &CellRecord) -> &[ChosenIo] {
    cell.result.points.last().map_or(&[], |run| &run.chosen)
}

/// What the members' counters say: of writes together with the reads beside them, of reads alone if nothing was written.
fn counted(record: &Record, cell: &CellRecord, beside: Option<&CellRecord>) -> Option<MemberLayout> {
    let of = |op: Op| {
        let is_it = |one: &&CellRecord| one.workload.op == op && !chosen(one).is_empty();
        let cell = [Some(cell), beside].into_iter().flatten().find(is_it)?;
        cell.workload.points.as_ref()?.chosen_first?;
        Some(AdaptiveRun { probes: AdaptiveProbes::of(&cell.workload), chosen: chosen(cell) })
    };
    if chosen(cell).is_empty() {
        return None;
    }
    let device = first_device(record, cell);
    let hints =
        device.and_then(|device| Some((device.minimum_io_bytes?, device.optimal_io_bytes.unwrap_or(0))));
    let words = device.and_then(|device| device.array.as_ref());
    let below = device.map_or(&[][..], |device| &device.arrays_below);
    // Only a target that is its device, and no file on it, begins with it.
    let target = first_target(record, cell);
    let device = target.filter(|target| target.kind != TargetKind::File).and(device);
    let device = device.map(|device| device.name.as_str());
    let (reads, writes) = (of(Op::Read), of(Op::Write));
    infer_from_members(&MemberEvidence { reads, writes, words, below, hints, device })
}

/// Latencies of an array whose members cannot be followed, that lacks some, or that is busy with itself, are sure of nothing:
/// its cache answers, or all members do.
fn doubt_array(answer: &mut Answer, device: Option<&Device>, layout: Option<&MemberLayout>) {
    let Some(array) = device.and_then(|device| device.array.as_ref()) else { return };
    if layout.is_none() && array.source != "sim" {
        doubt(answer, "no member's counters followed these requests, so none of this is certain");
    }
    for why in device.iter().flat_map(|device| device.arrays()).flat_map(unrest) {
        doubt(answer, &format!("{why}, so none of this is certain"));
    }
}

/// What others' I/O does to latencies no inference can take out again, so nothing stays sure.
fn doubt(answer: &mut Answer, why: &str) {
    for figure in [&mut answer.chunk, &mut answer.stripe].into_iter().flatten() {
        figure.confidence = figure.confidence.min(IN_DOUBT);
    }
    answer.none_confidence = answer.none_confidence.min(IN_DOUBT);
    answer.evidence.push(why.to_owned());
}

fn hints(device: Option<&Device>, result: &StripeResult) -> Option<(Agreement, String)> {
    let device = device?;
    let bytes = |figure: Option<(u64, f64)>| figure.map(|(bytes, _)| bytes);
    let seen = (bytes(result.chunk()), bytes(result.stripe()));
    let physical_block_bytes = device.physical_block_bytes.unwrap_or(0);
    let optimal_io_bytes = device.optimal_io_bytes.unwrap_or(0);
    Some(compare_with_sysfs(seen, physical_block_bytes, device.minimum_io_bytes?, optimal_io_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::stripe::{array, counted, counted_as, single};
    use crate::stripe::{Level, Rotation};
    use rdsk_model::{ArrayFacts, MemberIo};

    #[test]
    fn counters_of_writes_that_are_never_whole_tell_the_stripe_all_the_same() {
        // Chunks of 512 KiB on three members of data: no request of the sweep is as large as a stripe.
        let seen = of(&counted(512 << 10, 3));
        assert_eq!((seen.chunk(), seen.stripe()), (Some((512 << 10, 1.0)), Some((1536 << 10, 1.0))));
        assert_eq!((seen.parity(), seen.start_offset_bytes()), (Some(true), Some(0)));
    }

    #[test]
    fn counters_that_follow_nothing_are_sure_of_nothing() {
        let mut record = counted(64 << 10, 3);
        // A disk that is scrubbed meanwhile.
        for cell in &mut record.cells {
            for io in &mut cell.result.points[0].chosen {
                io.members[0] = MemberIo { read_bytes: 1 << 20, write_bytes: 1 << 20, ..io.members[0] };
            }
        }
        let seen = of(&record);
        assert!(!seen.counted.as_ref().unwrap().is_sure(), "{:?}", seen.counted);
        assert!(seen.chunk().is_none_or(|(_, sure)| sure < SURE) && seen.none_confidence() < SURE);
    }

    #[test]
    fn reads_beside_writes_are_no_answer_of_their_own_and_stand_alone_without_them() {
        let mut record = counted(64 << 10, 3);
        assert!(stripe(&record, &record.cells[1]).is_none());
        record.cells.remove(0);
        // Parity that moves to the right shows in who is read.
        let seen = of(&record);
        assert_eq!((seen.chunk(), seen.parity()), (Some((64 << 10, 1.0)), Some(true)), "{:?}", seen.counted);
        assert_eq!(seen.stripe(), Some((192 << 10, 1.0)));
    }

    #[test]
    fn an_array_at_work_is_sure_of_nothing() {
        for (activity, degraded) in [("resync", 0), ("idle", 1)] {
            for mut record in [counted(64 << 10, 3), array(64 << 10, 3), single()] {
                record.targets[0].device.as_mut().unwrap().array = Some(ArrayFacts {
                    source: "md".into(),
                    activity: Some(activity.into()),
                    degraded: Some(degraded),
                    ..ArrayFacts::default()
                });
                let seen = of(&record);
                let sure = |figure: Option<(u64, f64)>| figure.is_some_and(|(_, sure)| sure >= SURE);
                assert!(
                    !sure(seen.chunk()) && !sure(seen.stripe()) && seen.none_confidence() < SURE,
                    "{seen:?}"
                );
            }
        }
    }

    fn of(record: &Record) -> StripeResult {
        stripe(record, &record.cells[0]).unwrap()
    }

    fn facts(device: &str, level: &str, chunk_bytes: Option<u64>) -> ArrayFacts {
        let (device, source) = (device.into(), "md".into());
        ArrayFacts { device, source, level: Some(level.into()), chunk_bytes, ..ArrayFacts::default() }
    }

    /// What is said of a target whose requests reach these members, by their place.
    fn over(array: &ArrayFacts, below: &[ArrayFacts], reached: impl Fn(u64) -> Vec<bool>) -> StripeResult {
        let mut record = counted_as(reached);
        let device = record.targets[0].device.as_mut().unwrap();
        (device.array, device.arrays_below) = (Some(array.clone()), below.to_vec());
        of(&record)
    }

    /// RAID 50, and RAID 10 of md's own making; the members of the first level are arrays.
    #[test]
    fn a_stripe_over_arrays_with_parity_is_not_without_it_and_one_over_mirrors_is_sure() {
        let by_turns = |offset: u64| [0, 1].map(|member| offset / (64 << 10) % 2 == member).to_vec();
        let top = facts("md0", "raid0", Some(64 << 10));
        let mirrors = [facts("md1", "raid1", None), facts("md2", "raid1", None)];
        let seen = over(&top, &mirrors, by_turns);
        assert_eq!((seen.stripe(), seen.parity()), (Some((128 << 10, 1.0)), Some(false)), "{seen:?}");
        let parities = [facts("md1", "raid5", Some(512 << 10)), facts("md2", "raid5", Some(512 << 10))];
        let seen = over(&top, &parities, by_turns);
        assert_eq!((seen.chunk(), seen.parity()), (Some((64 << 10, IN_DOUBT)), None), "{seen:?}");
        let layout = seen.counted.as_ref().unwrap();
        assert_eq!(
            layout.doubts,
            ["md1 and md2 below are raid5 with chunks of 512 KiB, which these counts do not show"]
        );
        assert!(!layout.is_sure() && seen.stripe().unwrap().1 < SURE);
    }

    #[test]
    fn members_with_stripes_of_their_own_are_not_no_stripe() {
        let in_a_row = |offset: u64| [0, 1].map(|member| offset / (512 << 20) == member).to_vec();
        let both = |_: u64| vec![true; 2];
        for (level, below, reached) in [
            ("linear", "raid5", &in_a_row as &dyn Fn(u64) -> Vec<bool>),
            ("raid1", "raid0", &both),
            ("linear", "raid6", &|_| vec![true, false]),
        ] {
            let below = [facts("md1", below, Some(64 << 10)), facts("md2", below, Some(64 << 10))];
            let seen = over(&facts("dm-0", level, None), &below, reached);
            assert_eq!(seen.chunk(), None, "{seen:?}");
            assert!(seen.none_confidence() < SURE && seen.is_conclusive(), "{seen:?}");
            assert_eq!(over(&facts("dm-0", level, None), &[], reached).none_confidence(), 1.0, "{level}");
        }
    }

    #[test]
    fn a_cache_has_no_level() {
        for level in ["cache", "writecache", "bcache", "integrity"] {
            // Writes that go through to both, and those that stay in the cache.
            for second in [true, false] {
                let seen = over(&facts("dm-0", level, None), &[], |_| vec![true, second]);
                let layout = seen.counted.as_ref().unwrap();
                assert_eq!(
                    (layout.level, layout.copies, seen.parity()),
                    (None, None, None),
                    "{level}: {seen:?}"
                );
                assert!(seen.none_confidence() < SURE && !layout.is_sure());
                assert_eq!(layout.doubts.len(), 1, "{:?}", layout.doubts);
            }
        }
    }

    #[test]
    fn counters_go_before_latencies() {
        let seen = of(&counted(64 << 10, 3));
        assert_eq!((seen.chunk(), seen.stripe()), (Some((64 << 10, 1.0)), Some((192 << 10, 1.0))));
        let layout = seen.counted.unwrap();
        assert_eq!((layout.members, layout.parity_members), (4, Some(1)));
        assert_eq!((layout.level, layout.rotation), (Some(Level::Raid5), Some(Rotation::RightSymmetric)));
        let inferred = of(&array(64 << 10, 3));
        assert_eq!(inferred.counted, None);
        assert_eq!(inferred.stripe().map(|(bytes, _)| bytes), Some(192 << 10));
        assert!(inferred.stripe().unwrap().1 < 1.0);
        assert_eq!((inferred.parity(), inferred.start_offset_bytes()), (Some(true), Some(0)));
    }

    /// An array that does not work as the shapes of the fit suppose (it reads and writes no more rows than it must, and its
    /// parity only follows) may stay unclear, but nothing wrong may be said for sure.
    #[test]
    fn an_array_of_another_make_is_not_misread_for_sure() {
        let mut recovered = 0;
        for chunk_bytes in [16 << 10, 32 << 10, 64 << 10, 128 << 10] {
            for data in 2..=7 {
                let stripe_bytes = chunk_bytes * data;
                let seen = of(&array(chunk_bytes, data));
                let is_surely_not = |figure: Option<(u64, f64)>, bytes: u64| {
                    figure.is_some_and(|(seen, confidence)| seen != bytes && confidence >= SURE)
                };
                assert!(
                    !is_surely_not(seen.chunk(), chunk_bytes),
                    "{chunk_bytes} × {data}: {:?}",
                    seen.chunk()
                );
                if stripe_bytes <= 512 << 10 {
                    assert!(
                        !is_surely_not(seen.stripe(), stripe_bytes),
                        "{chunk_bytes} × {data}: {:?}",
                        seen.stripe()
                    );
                    recovered += usize::from(seen.stripe().is_some_and(|(seen, _)| seen == stripe_bytes));
                }
            }
        }
        assert!(recovered >= 12, "{recovered} of 19 full stripes");
    }

    #[test]
    fn offsets_count_from_the_span() {
        let mut record = array(64 << 10, 3);
        let workload = &mut record.cells[0].workload;
        workload.offset_bytes = 4 << 20;
        workload.points.as_mut().unwrap().offset_bytes.iter_mut().for_each(|offset| *offset += 4 << 20);
        let seen = of(&record);
        assert_eq!(seen.stripe().map(|(bytes, _)| bytes), Some(192 << 10));
        // The first stripe begins with the span, 64 KiB into one of those that would begin with the target.
        assert_eq!(seen.start_offset_bytes(), Some(64 << 10));
        assert!(seen.advice().contains("64 KiB"), "{}", seen.advice());
    }

    #[test]
    fn memory_tells_nothing_and_a_disturbed_device_nothing_for_sure() {
        let judged = |code: VerdictCode| {
            let mut record = array(64 << 10, 3);
            record.cells[0].verdict.as_mut().unwrap().code = code;
            record
        };
        for code in [VerdictCode::Hole, VerdictCode::PageCache] {
            let record = judged(code);
            assert!(!of(&record).is_conclusive());
        }
        let disturbed = of(&judged(VerdictCode::Disturbed));
        assert!(
            disturbed.is_conclusive()
                && disturbed.stripe().unwrap().1 < SURE
                && disturbed.chunk().unwrap().1 < SURE
        );
    }

    #[test]
    fn too_few_requests_tell_nothing() {
        let mut record = array(64 << 10, 3);
        let run = &mut record.cells[0].result.points[0];
        run.order.truncate(100);
        run.latency_ns.truncate(100);
        assert!(!of(&record).is_conclusive());
    }

    #[test]
    fn a_cell_without_requests_says_nothing() {
        let mut record = array(64 << 10, 3);
        record.cells[0].result.points.clear();
        assert!(stripe(&record, &record.cells[0]).is_none());
    }
}
