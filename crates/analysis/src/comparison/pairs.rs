//! Which cells of a Record are compared with which, and for what. Only cells whose figure is that of the device take part.

use super::{Kind, Measure};
use crate::metrics::{is_of_memory, page_bytes, ran, reached_device};
use rdsk_model::{
    BufferPages, CacheState, CellRecord, Experiment, IoPath, Op, Pattern, Record, Sync, VerdictCode, Workload,
};
use rdsk_stats::enough_ratio;

/// Two cells, and what is asked of them.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) kind: Kind,
    pub(super) cell: &'a CellRecord,
    pub(super) base: &'a CellRecord,
    pub(super) measure: Measure,
    /// The ratio of which is asked whether the true one differs from it.
    pub(super) against: f64,
}

/// The pairs of one experiment.
pub(super) fn pairs(record: &Record, experiment: Experiment) -> Vec<Pair<'_>> {
    let cells: Vec<&CellRecord> =
        record.cells.iter().filter(|cell| cell.experiment == experiment && ran(cell)).collect();
    let page_bytes = page_bytes(record);
    match experiment {
        // The runs of two copies are compared in `copy`; jobs of fio have no rounds by which they could be.
        Experiment::Dd | Experiment::Fio => Vec::new(),
        Experiment::Scale => streams(&cells),
        _ => [
            of_paths(&cells, Kind::Paths, IoPath::Direct, &[IoPath::Buffered]),
            of_paths(&cells, Kind::DontCache, IoPath::DontCache, &[IoPath::Buffered, IoPath::Direct]),
            durable(&cells),
            shifts(&cells, page_bytes),
            targets(&cells),
            memory(&cells),
        ]
        .concat(),
    }
}

impl<'a> Pair<'a> {
    fn new(kind: Kind, cell: &'a CellRecord, base: &'a CellRecord, measure: Measure) -> Self {
        Self { kind, cell, base, measure, against: 1.0 }
    }
}

/// The cells of one path, each with those that differ from it in nothing but that they are on another one.
fn of_paths<'a>(cells: &[&'a CellRecord], kind: Kind, path: IoPath, others: &[IoPath]) -> Vec<Pair<'a>> {
    let of_device: Vec<&CellRecord> = cells.iter().copied().filter(|cell| measures_path(cell)).collect();
    let on = |path: IoPath| of_device.iter().copied().filter(move |cell| cell.workload.path == path);
    let pair = |cell: &'a CellRecord, other: IoPath| {
        let is_twin = |base: &&CellRecord| {
            // The warm cell measures memory and is not comparable.
            base.workload.cache != CacheState::Warm
                && cell.workload.differs_only_in_path(&over_span_of(&base.workload, &cell.workload))
        };
        Some(Pair::new(kind, cell, on(other).find(is_twin)?, Measure::UntilStable))
    };
    on(path).flat_map(|cell| others.iter().filter_map(move |&other| pair(cell, other))).collect()
}

/// Whether a cell of `paths` or `stream` has a figure of the device.
fn measures_path(cell: &CellRecord) -> bool {
    use VerdictCode::{Hole, Incomplete, PageCache, Unverified};
    let Some(verdict) = &cell.verdict else { return false };
    matches!(cell.experiment, Experiment::Paths | Experiment::Stream)
        && ![Hole, Incomplete, Unverified].contains(&verdict.code)
        && (cell.workload.op == Op::Write || verdict.code != PageCache)
        && (cell.workload.op == Op::Read || cell.result.to_stable_ns.is_some())
}

fn durable<'a>(cells: &[&'a CellRecord]) -> Vec<Pair<'a>> {
    let is_direct_write = |cell: &&&CellRecord| {
        cell.workload.op == Op::Write && cell.workload.path == IoPath::Direct && reached_device(cell)
    };
    let durable = cells.iter().filter(is_direct_write).filter(|cell| cell.workload.sync == Sync::Dsync);
    let pair = |durable: &&'a CellRecord| {
        let wanted = Workload { sync: Sync::None, ..durable.workload.clone() };
        let plain = cells.iter().filter(is_direct_write).find(|cell| is_like(&cell.workload, &wanted))?;
        Some(Pair::new(Kind::Durable, plain, durable, Measure::Elapsed))
    };
    durable.filter_map(pair).collect()
}

fn shifts<'a>(cells: &[&'a CellRecord], page_bytes: u64) -> Vec<Pair<'a>> {
    let shifted = cells.iter().filter(|cell| {
        cell.workload.op == Op::Write && !cell.workload.shift_bytes.is_multiple_of(page_bytes)
    });
    let pair = |shifted: &&'a CellRecord| {
        let aligned = cells.iter().find(|cell| {
            let align_bytes = cell.workload.align_bytes;
            let wanted = Workload { shift_bytes: 0, align_bytes, ..shifted.workload.clone() };
            is_like(&cell.workload, &wanted) && stays_in_its_pages(&cell.workload, page_bytes)
        })?;
        Some(Pair::new(Kind::Shift, aligned, shifted, Measure::Elapsed))
    };
    shifted.filter_map(pair).collect()
}

/// Each cell that only says how much the memory of buffers matters, with the one that it is like but for that.
fn memory<'a>(cells: &[&'a CellRecord]) -> Vec<Pair<'a>> {
    let of_device: Vec<&CellRecord> = cells.iter().copied().filter(|cell| reached_device(cell)).collect();
    let pair = |cell: &&'a CellRecord| {
        Some(Pair::new(Kind::Memory, cell, twin_on_pages(&of_device, cell)?, Measure::Elapsed))
    };
    of_device.iter().filter_map(pair).collect()
}

/// The cell on ordinary pages that one with contiguous buffers is like but for that.
pub(super) fn twin_on_pages<'a>(cells: &[&'a CellRecord], cell: &CellRecord) -> Option<&'a CellRecord> {
    let is_contiguous = cell.workload.buffers == Some(BufferPages::Huge);
    let wanted = Workload { buffers: Some(BufferPages::Ordinary), ..cell.workload.clone() };
    let is_twin =
        |base: &&&CellRecord| base.experiment == cell.experiment && is_like(&base.workload, &wanted);
    cells.iter().filter(|_| is_contiguous).find(is_twin).copied()
}

/// Each cell of a further target with the same cell of the first: what both were asked for in turn, wherever the bytes came
/// from, as long as a program moved them and memory was not asked for.
fn targets<'a>(cells: &[&'a CellRecord]) -> Vec<Pair<'a>> {
    let target = |cell: &CellRecord| cell.workload.targets.first().copied();
    let first = cells.iter().filter_map(|cell| target(cell)).min();
    let moves_bytes = |cell: &&&CellRecord| {
        let code = cell.verdict.as_ref().map(|verdict| verdict.code);
        let is_nothing = matches!(code, None | Some(VerdictCode::Hole | VerdictCode::Incomplete));
        // Writes that stopped in memory are compared until stable.
        let is_memory = is_of_memory(cell) && cell.result.to_stable_ns.is_none();
        let is_warm = cell.workload.cache == CacheState::Warm;
        !is_nothing && !is_memory && !is_warm && cell.result.bytes_per_s.is_some()
    };
    let pair = |cell: &&'a CellRecord| {
        let is_twin = |other: &&&CellRecord| target(other) == first && other.name() == cell.name();
        let base = cells.iter().filter(moves_bytes).find(is_twin)?;
        Some(Pair::new(Kind::Targets, cell, base, Measure::UntilStable))
    };
    cells.iter().filter(moves_bytes).filter(|cell| target(cell) != first).filter_map(pair).collect()
}

/// Whether a workload is the wanted one but for its seed.
fn is_like(workload: &Workload, wanted: &Workload) -> bool {
    over_span_of(workload, wanted) == Workload { seed: workload.seed, ..wanted.clone() }
}

/// A sequential workload as if its span were that of another: both go on from the same offset, and a slower one may have
/// been given fewer bytes. Random I/O over another span has other seeks, so its span stays.
fn over_span_of(workload: &Workload, other: &Workload) -> Workload {
    let is_sequential = workload.pattern == Pattern::Sequential && workload.points.is_none();
    let span_bytes = if is_sequential { other.span_bytes } else { workload.span_bytes };
    Workload { span_bytes, ..workload.clone() }
}

/// Whether no write touches more pages than its size needs.
fn stays_in_its_pages(workload: &Workload, page_bytes: u64) -> bool {
    let align = workload.align_bytes;
    align.is_multiple_of(page_bytes)
        || (align > 0 && page_bytes.is_multiple_of(align) && workload.block_bytes <= align)
}

/// Each number of streams with the next larger one of the same block size and targets, against a gain that is worth it. A cell in which a
/// stream failed had fewer of them, so its rate belongs to no count.
fn streams<'a>(cells: &[&'a CellRecord]) -> Vec<Pair<'a>> {
    let is_whole = |cell: &&&CellRecord| {
        let has_failed = cell.result.errors.iter().any(|error| error.stream.is_some());
        !has_failed && cell.result.bytes_per_s.is_some()
    };
    let keyed = cells.iter().filter(is_whole).map(|cell| {
        let workload = &cell.workload;
        ((workload.op, workload.targets.clone(), workload.block_bytes), *cell)
    });
    let step = |pair: &[&'a CellRecord]| {
        let against = enough_ratio(pair[0].workload.streams, pair[1].workload.streams);
        Pair { against, ..Pair::new(Kind::Streams, pair[1], pair[0], Measure::Together) }
    };
    let of_line = |(_, mut cells): (_, Vec<&'a CellRecord>)| {
        cells.sort_by_key(|cell| cell.workload.streams);
        cells.windows(2).map(step).collect::<Vec<_>>()
    };
    crate::groups::by_key(keyed).into_iter().flat_map(of_line).collect()
}
