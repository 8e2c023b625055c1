//! A load: the jobs that the user asked for, all at once, as one cell per target. It plans and issues nothing.

use crate::context::PlanContext;
use crate::question::Question;
use crate::request::PlanOptions;
use rdsk_model::{
    Cell, EngineKind, Experiment, Extent, IoPath, LoadJob, OffsetRule, Op, Pattern, TargetKind,
};
use rdsk_units::Bytes;

/// Newly allocated space begins and ends at multiples of this, which every filesystem can give back.
const GRAIN_BYTES: u64 = 1 << 20;

pub(crate) struct Load;

impl Question for Load {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let phases = &context.options.phases;
        (1..)
            .zip(phases)
            .filter_map(|(number, jobs)| phase(context, jobs, format!("load/{number}")))
            .collect()
    }

    fn max_streams(&self, options: &PlanOptions) -> u32 {
        let streams = |jobs: &Vec<LoadJob>| jobs.iter().map(|job| job.streams).sum();
        options.phases.iter().map(streams).max().unwrap_or(1)
    }
}

/// The cell of one phase; `None` for one without jobs.
fn phase(context: &PlanContext<'_>, jobs: &[LoadJob], id: String) -> Option<Cell> {
    let jobs = placed(context, jobs);
    let first = jobs.first()?;
    let has_writes = jobs.iter().any(|job| job.writes.is_some());
    let op = if has_writes { Op::Write } else { Op::Read };
    let block_bytes = jobs.iter().map(LoadJob::max_block_bytes).max()?;
    let end_bytes = jobs.iter().map(|job| job.offset_bytes + job.span_bytes).max()?;
    let path = if jobs.iter().all(|job| job.path == first.path) { first.path } else { IoPath::Buffered };
    let mut workload =
        context.workload(op, path, block_bytes, end_bytes.saturating_sub(context.options.offset_bytes));
    let in_order = |job: &LoadJob| {
        job.reads.iter().chain(&job.writes).all(|requests| requests.offsets == OffsetRule::Sequential)
    };
    workload.pattern = if jobs.iter().all(in_order) { Pattern::Sequential } else { Pattern::Random };
    workload.align_bytes = jobs.iter().map(LoadJob::min_block_bytes).min()?;
    workload.queue_depth = jobs.iter().map(|job| job.queue_depth).max()?;
    workload.streams = jobs.iter().map(|job| job.streams).sum();
    if workload.engine != EngineKind::Sim {
        workload.engine = if workload.queue_depth > 1 { EngineKind::Uring } else { EngineKind::Sync };
    }
    let why_not = why_not(context, &jobs);
    workload.jobs = jobs;
    let mut cell = context.cell(id, Experiment::Load, workload, Extent::Timed, 1.0);
    // The jobs say where their requests begin.
    cell.workload.shift_bytes = 0;
    cell.not_applicable = why_not.or(cell.not_applicable);
    Some(cell)
}

/// The jobs on their parts of the target. Those that write into newly allocated space have theirs at its end, so that no other job meets
/// space that was never written; a span of 0 bytes is all that is left before it.
fn placed(context: &PlanContext<'_>, jobs: &[LoadJob]) -> Vec<LoadJob> {
    let whole_bytes = context.room_bytes();
    let fresh = || jobs.iter().filter(|job| job.fresh_space);
    let without_size = fresh().filter(|job| job.span_bytes == 0).count() as u64;
    // What names no size shares a quarter of the target.
    let each_bytes = (whole_bytes / 4).checked_div(without_size).unwrap_or(0) / GRAIN_BYTES * GRAIN_BYTES;
    let needs_bytes = |job: &LoadJob| {
        let bytes = if job.span_bytes == 0 { each_bytes } else { job.span_bytes };
        bytes.next_multiple_of(GRAIN_BYTES)
    };
    let mut fresh_bytes = whole_bytes / GRAIN_BYTES * GRAIN_BYTES;
    let room_bytes = fresh_bytes.saturating_sub(fresh().map(needs_bytes).sum());
    let others_bytes = if fresh().next().is_some() { room_bytes } else { whole_bytes };
    let place = |job: &LoadJob| {
        let (begin_bytes, span_bytes) = if job.fresh_space {
            fresh_bytes = fresh_bytes.saturating_sub(needs_bytes(job));
            (fresh_bytes, if job.span_bytes == 0 { each_bytes } else { job.span_bytes })
        } else {
            let begin_bytes = job.offset_bytes.min(others_bytes);
            let left_bytes = others_bytes - begin_bytes;
            (begin_bytes, if job.span_bytes == 0 { left_bytes } else { job.span_bytes.min(left_bytes) })
        };
        let span_bytes = span_bytes.min(whole_bytes.saturating_sub(begin_bytes));
        LoadJob { offset_bytes: context.options.offset_bytes + begin_bytes, span_bytes, ..job.clone() }
    };
    jobs.iter().map(place).collect()
}

/// Why the load cannot run on this target at all.
fn why_not(context: &PlanContext<'_>, jobs: &[LoadJob]) -> Option<String> {
    let no_direct = context.target.direct_io == Some(false);
    let memory = context.target.filesystem.as_ref().map(|filesystem| filesystem.kind.as_str());
    if let Some(kind @ ("tmpfs" | "ramfs")) = memory.filter(|_| context.options.need.is_some()) {
        return Some(format!("{kind} is memory, which shows nothing of a disk"));
    }
    jobs.iter().find_map(|job| {
        if job.writes.is_some() && !context.ops.contains(&Op::Write) {
            Some(format!("job {} writes, and this target is only read", job.name))
        } else if job.path == IoPath::Direct && no_direct {
            Some(format!("job {} asks for direct I/O, which this target does not have", job.name))
        } else if job.span_bytes < job.max_block_bytes() {
            Some(format!("job {} has no room for one block of {}", job.name, Bytes(job.max_block_bytes())))
        } else if job.fresh_space && context.target.kind == TargetKind::Block {
            Some(format!("job {} allocates space of a filesystem, and this target is a device", job.name))
        } else {
            None
        }
    })
}
