//! Which cells of two Records ask the same: only these are compared. It looks at what was requested, never at what came out.

use crate::parts;
use rdsk_analysis::metrics::{ran, target};
use rdsk_model::{CellRecord, LoadJob, Pattern, Points, Record, Untold, Workload};

/// A span that covers this much of a target is the whole of it: the rest is what does not fill a block.
const WHOLE: f64 = 0.99;

/// The cells of two Records, side by side.
#[derive(Clone, Debug, Default)]
pub struct Matched<'a> {
    /// Those that ask the same, in the order of the baseline.
    pub pairs: Vec<(&'a CellRecord, &'a CellRecord)>,
    /// Cells of the baseline that have no partner.
    pub only_base: Vec<&'a CellRecord>,
    /// Cells of the other run that have none.
    pub only_other: Vec<&'a CellRecord>,
}

/// Pairs the cells that ran: the same experiment and workload. What may differ is who issues the I/O, the seed, and the part
/// of the target that is used where that changes nothing: how far a sequential stream goes, and the size of a target that is
/// used as a whole.
pub fn matching<'a>(base: &'a Record, other: &'a Record) -> Matched<'a> {
    let mut free: Vec<&CellRecord> = other.cells.iter().filter(|cell| ran(cell)).collect();
    let cells: Vec<&CellRecord> = base.cells.iter().filter(|cell| ran(cell)).collect();
    let mut take = |cell: &CellRecord, has_same_id: bool| {
        let is_partner = |other_cell: &&CellRecord| {
            (!has_same_id || other_cell.id == cell.id) && is_alike((base, cell), (other, other_cell))
        };
        free.iter().position(is_partner).map(|place| free.remove(place))
    };
    // Two cells of one experiment may ask the same for different reasons; their ids distinguish them.
    let of_same_id: Vec<Option<&CellRecord>> = cells.iter().map(|cell| take(cell, true)).collect();
    let mut matched = Matched::default();
    for (cell, partner) in cells.into_iter().zip(of_same_id) {
        match partner.or_else(|| take(cell, false)) {
            Some(partner) => matched.pairs.push((cell, partner)),
            None => matched.only_base.push(cell),
        }
    }
    matched.only_other = free;
    matched
}

impl Matched<'_> {
    /// Pairs the cells that are left by their ids: the same question to two configurations that are meant to differ.
    pub(crate) fn by_id(&mut self) {
        let mut left = Vec::new();
        for cell in std::mem::take(&mut self.only_base) {
            match self.only_other.iter().position(|other| other.id == cell.id) {
                Some(place) => self.pairs.push((cell, self.only_other.remove(place))),
                None => left.push(cell),
            }
        }
        self.only_base = left;
    }
}

/// Whether two cells ask the same.
pub(crate) fn is_alike(
    (base_run, base): (&Record, &CellRecord),
    (other_run, other): (&Record, &CellRecord),
) -> bool {
    let (a, b) = (&base.workload, &other.workload);
    base.experiment == other.experiment
        && (a.op, a.pattern, a.path, a.sync, a.cache) == (b.op, b.pattern, b.path, b.sync, b.cache)
        && (a.block_bytes, a.align_bytes, a.shift_bytes) == (b.block_bytes, b.align_bytes, b.shift_bytes)
        && (a.queue_depth, a.streams, a.stagger_ns, a.range)
            == (b.queue_depth, b.streams, b.stagger_ns, b.range)
        // What neither document says may differ.
        && [a, b].iter().all(|workload| workload.untold.iter().all(|&word| word == Untold::Engine))
        && a.targets == b.targets
        && are_points_alike(a.points.as_ref(), b.points.as_ref())
        && are_jobs_alike((base_run, a), (other_run, b))
        && parts::job_and_kind(base) == parts::job_and_kind(other)
        && is_span_alike((base_run, a), (other_run, b))
}

/// As many places of the same sizes, visited in the same way.
fn are_points_alike(a: Option<&Points>, b: Option<&Points>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            (a.len(), &a.block_bytes, a.moves_start) == (b.len(), &b.block_bytes, b.moves_start)
        }
        _ => false,
    }
}

/// The same jobs, whatever they are called.
fn are_jobs_alike((base, a): (&Record, &Workload), (other, b): (&Record, &Workload)) -> bool {
    let are_whole = is_whole(base, a) && is_whole(other, b);
    placed_jobs(a, are_whole) == placed_jobs(b, are_whole)
}

/// What the jobs ask. Where the whole of a target is used, the place of a job on it may differ, and its span as the targets do.
pub(crate) fn placed_jobs(workload: &Workload, is_whole: bool) -> Vec<LoadJob> {
    let is_all = |job: &LoadJob| job.span_bytes as f64 >= WHOLE * workload.span_bytes as f64;
    let placed = |job: &LoadJob| LoadJob {
        name: String::new(),
        offset_bytes: if is_whole { 0 } else { job.offset_bytes },
        span_bytes: if is_whole && is_all(job) { u64::MAX } else { job.span_bytes },
        ..job.clone()
    };
    workload.jobs.iter().map(placed).collect()
}

fn is_span_alike((base, a): (&Record, &Workload), (other, b): (&Record, &Workload)) -> bool {
    let is_sequential = a.pattern == Pattern::Sequential && a.points.is_none();
    // Of two places that are unknown, none is that of the other.
    let is_same_place = a.known_offset_bytes().is_some() && a.offset_bytes == b.offset_bytes;
    let is_same = is_same_place && (is_sequential || a.span_bytes == b.span_bytes);
    is_same || (is_whole(base, a) && is_whole(other, b))
}

/// Whether the span is all of each of its targets.
pub(crate) fn is_whole(record: &Record, workload: &Workload) -> bool {
    workload.offset_bytes == 0
        && workload.targets.iter().all(|&index| {
            // A size of 0 is not known.
            target(record, index)
                .filter(|target| target.size_bytes > 0)
                .is_some_and(|target| workload.span_bytes as f64 >= WHOLE * target.size_bytes as f64)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record};
    use rdsk_analysis::fixtures::with;
    use rdsk_model::{EngineKind, IoPath};

    fn ids(cells: &[&CellRecord]) -> Vec<String> {
        cells.iter().map(|cell| cell.id.clone()).collect()
    }

    fn alike(change: impl FnOnce(&mut Workload)) -> bool {
        let base = record("2026-01-01T00:00:00Z", vec![cell("a")]);
        let other = record("2026-01-01T00:00:00Z", vec![with(cell("a"), |cell| change(&mut cell.workload))]);
        !matching(&base, &other).pairs.is_empty()
    }

    #[test]
    fn only_like_is_compared_with_like() {
        assert!(alike(|_| ()));
        assert!(alike(|workload| workload.seed = 77));
        assert!(alike(|workload| workload.engine = EngineKind::Uring));
        assert!(alike(|workload| workload.span_bytes /= 2), "a sequential stream may go less far");
        assert!(!alike(|workload| workload.offset_bytes = 1 << 20), "but begins at the same place");
        for change in [
            (|workload: &mut Workload| workload.block_bytes = 4096) as fn(&mut Workload),
            |workload| workload.queue_depth = 2,
            |workload| workload.streams = 2,
            |workload| workload.stagger_ns = 5,
            |workload| workload.path = IoPath::Buffered,
            |workload| workload.cache = rdsk_model::CacheState::Warm,
            |workload| workload.sync = rdsk_model::Sync::Dsync,
            |workload| workload.shift_bytes = 512,
            |workload| workload.targets = vec![1],
            |workload| workload.points = Some(Points { offset_bytes: vec![0], ..Points::default() }),
        ] {
            assert!(!alike(change));
        }
    }

    #[test]
    fn random_io_is_compared_over_the_same_span_or_over_whole_targets() {
        let random = |size_bytes: u64, span_bytes: u64| {
            let mut record = record("2026-01-01T00:00:00Z", vec![cell("a")]);
            let workload = &mut record.cells[0].workload;
            (workload.pattern, workload.span_bytes) = (Pattern::Random, span_bytes);
            record.targets[0].size_bytes = size_bytes;
            record
        };
        let pairs = |a: &Record, b: &Record| matching(a, b).pairs.len();
        let (small, large) = (random(1 << 30, 1 << 30), random(4 << 30, 4 << 30));
        assert_eq!(pairs(&small, &large), 1, "both use the whole target");
        assert_eq!(pairs(&small, &random(4 << 30, 1 << 30)), 1, "both use a GiB");
        assert_eq!(pairs(&small, &random(4 << 30, 2 << 30)), 0);
        assert_eq!(pairs(&random(0, 1 << 30), &random(0, 2 << 30)), 0, "nobody knows what is the whole");
    }

    #[test]
    fn places_that_are_not_known_are_not_the_same() {
        let at = |offset_bytes| {
            let cell = with(cell("a"), |cell| cell.workload.offset_bytes = offset_bytes);
            record("2026-01-01T00:00:00Z", vec![cell])
        };
        for (offset_bytes, pairs) in [(0, 1), (1 << 20, 1), (rdsk_model::UNKNOWN_OFFSET, 0)] {
            assert_eq!(matching(&at(offset_bytes), &at(offset_bytes)).pairs.len(), pairs, "{offset_bytes}");
        }
    }

    /// Two loads that ask for different jobs are not compared, and two disks of different size have theirs at different places.
    #[test]
    fn jobs_are_compared_with_the_same_jobs() {
        let job = |name: &str, span_bytes: u64| LoadJob::random_reads(name, span_bytes);
        let of_job = |job: LoadJob| alike_jobs(vec![job]);
        assert!(of_job(job("a", 1 << 20)) && of_job(job("b", 1 << 20)), "whatever it is called");
        assert!(!of_job(LoadJob { queue_depth: 2, ..job("a", 1 << 20) }));
        assert!(!of_job(LoadJob { read_percent: 60, ..job("a", 1 << 20) }));
        assert!(
            !of_job(LoadJob { offset_bytes: 4096, ..job("a", 1 << 20) }),
            "the span is not all of the disk"
        );
        assert!(!alike_jobs(vec![job("a", 1 << 20), job("b", 1 << 20)]) && !alike_jobs(Vec::new()));
        let on = |size_bytes: u64, job: LoadJob| {
            let mut record = record("2026-01-01T00:00:00Z", vec![cell("a")]);
            record.targets[0].size_bytes = size_bytes;
            let workload = &mut record.cells[0].workload;
            (workload.span_bytes, workload.jobs) = (size_bytes, vec![job]);
            record
        };
        let small = on(1 << 30, job("a", 1 << 30));
        assert_eq!(matching(&small, &on(4 << 30, job("a", 4 << 30))).pairs.len(), 1, "each the whole disk");
        assert_eq!(matching(&small, &on(4 << 30, job("a", 1 << 30))).pairs.len(), 0);
        let log = |size_bytes: u64| {
            on(size_bytes, LoadJob { offset_bytes: size_bytes - (1 << 20), ..job("log", 1 << 20) })
        };
        assert_eq!(matching(&log(1 << 30), &log(4 << 30)).pairs.len(), 1, "each at the end of its disk");
    }

    /// Whether a cell with these jobs is compared with one of a single job of random reads.
    fn alike_jobs(jobs: Vec<LoadJob>) -> bool {
        let base = with(cell("a"), |cell| cell.workload.jobs = vec![LoadJob::random_reads("a", 1 << 20)]);
        let other = with(cell("a"), |cell| cell.workload.jobs = jobs);
        let record = |cell| record("2026-01-01T00:00:00Z", vec![cell]);
        !matching(&record(base), &record(other)).pairs.is_empty()
    }

    #[test]
    fn what_is_meant_to_differ_is_paired_by_its_id() {
        let base = record("2026-01-01T00:00:00Z", ["a", "b"].map(cell).into());
        let deeper = |id| with(cell(id), |cell| cell.workload.queue_depth = 8);
        let other = record("2026-01-01T00:00:00Z", ["a", "c"].map(deeper).into());
        let mut matched = matching(&base, &other);
        assert!(matched.pairs.is_empty());
        matched.by_id();
        assert!(matched.pairs.len() == 1 && matched.pairs[0].1.id == "a");
        assert_eq!((ids(&matched.only_base), ids(&matched.only_other)), (vec!["b".into()], vec!["c".into()]));
    }

    #[test]
    fn cells_that_ask_the_same_are_told_apart_by_their_ids_and_the_rest_is_named() {
        let base = record("2026-01-01T00:00:00Z", ["a", "b"].map(cell).into());
        let mut other = record("2026-01-01T00:00:00Z", ["b", "a", "c"].map(cell).into());
        other.cells.push(with(cell("d"), |cell| cell.workload.block_bytes = 512));
        let matched = matching(&base, &other);
        assert!(matched.pairs.iter().all(|(base, other)| base.id == other.id));
        assert_eq!(
            (ids(&matched.only_base), ids(&matched.only_other)),
            (vec![], vec!["c".into(), "d".into()])
        );
    }
}
