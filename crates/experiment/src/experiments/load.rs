//! A load: the jobs that the user asked for, all at once, as one cell per target. It plans and issues nothing.

use crate::context::PlanContext;
use crate::question::{Question, ROUNDS};
use crate::request::{BudgetSource, LoadRuns, PlanOptions};
use rdsk_model::{
    CacheState, Cell, EngineKind, Experiment, Extent, IoPath, LoadJob, Op, Pattern, Requests, StreamRange,
    TargetKind, UNLIMITED_NS,
};
use rdsk_units::{Bytes, Nanos};

/// By how much a phase may outlast its jobs, which end themselves.
const GRACE_NS: u64 = 1_000_000_000;
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

    fn rounds(&self, contexts: &[PlanContext<'_>]) -> u32 {
        if contexts.iter().any(|context| context.options.load_runs == LoadRuns::Once) {
            return 1;
        }
        let rounds = |context: &PlanContext<'_>| {
            let each = context.options.need.iter().flat_map(|need| &need.thresholds);
            let each_ns = each.filter_map(|threshold| threshold.each_ns).min()?;
            u32::try_from(context.options.budget_ns.div_ceil(each_ns)).ok()
        };
        // What holds in each hour is seen in repeats that are no longer.
        contexts.iter().filter_map(rounds).fold(ROUNDS, u32::max)
    }

    fn notes(&self, contexts: &[PlanContext<'_>]) -> Vec<String> {
        contexts.first().map(|context| context.options.load_notes.clone()).unwrap_or_default()
    }
}

/// The cell of one phase; `None` for one without jobs.
fn phase(context: &PlanContext<'_>, asked: &[LoadJob], id: String) -> Option<Cell> {
    let jobs = placed(context, asked);
    let first = jobs.first()?;
    let has_writes = jobs.iter().any(LoadJob::changes_data);
    let op = if has_writes { Op::Write } else { Op::Read };
    let block_bytes = jobs.iter().map(LoadJob::max_block_bytes).max()?;
    let end_bytes = jobs.iter().map(|job| job.offset_bytes + job.span_bytes).max()?;
    let path = if jobs.iter().all(|job| job.path == first.path) { first.path } else { IoPath::Buffered };
    let mut workload =
        context.workload(op, path, block_bytes, end_bytes.saturating_sub(context.options.offset_bytes));
    let in_order = |job: &LoadJob| job.kinds().all(Requests::is_in_order);
    workload.pattern = if jobs.iter().all(in_order) { Pattern::Sequential } else { Pattern::Random };
    // Each job has its own part, and several may share the smallest of them.
    workload.range = StreamRange::Shared;
    workload.align_bytes = jobs.iter().map(LoadJob::min_block_bytes).min()?;
    workload.queue_depth = jobs.iter().map(|job| job.queue_depth).max()?;
    workload.streams = jobs.iter().map(|job| job.streams).sum();
    if workload.engine != EngineKind::Sim {
        workload.engine = if workload.queue_depth > 1 { EngineKind::Uring } else { EngineKind::Sync };
    }
    let extent = match context.options.load_runs {
        LoadRuns::Repeated => Extent::Timed,
        LoadRuns::Once => Extent::Once { most_ns: most_ns(context.options, &jobs) },
    };
    let why_not = why_not(context, &jobs)
        .or_else(|| shortened(context, asked, &jobs))
        .or_else(|| outlasted(context.options, &jobs));
    if jobs.iter().any(|job| job.reads.is_some() && job.path.uses_page_cache()) && extent != Extent::Timed {
        // As before a job of fio: what it reads is not in memory yet.
        workload.cache = CacheState::Cold;
    }
    workload.jobs = jobs;
    let mut cell = context.cell(id, Experiment::Load, workload, extent, 1.0);
    // The jobs say where their requests begin.
    cell.workload.shift_bytes = 0;
    cell.not_applicable = why_not.or(cell.not_applicable);
    Some(cell)
}

/// The longest time of jobs that run once: until the last of those that end by the clock, or as long as the others need, within the
/// budget where one was requested.
fn most_ns(options: &PlanOptions, jobs: &[LoadJob]) -> u64 {
    let of_job =
        |job: &LoadJob| job.lasts_ns.map(|ns| ns.saturating_add(job.delay_ns).saturating_add(job.ramp_ns));
    let all_ns: Option<Vec<u64>> = jobs.iter().map(of_job).collect();
    let longest_ns = all_ns.and_then(|all_ns| all_ns.into_iter().max());
    let by_clock_ns = longest_ns.map_or(UNLIMITED_NS, |ns| ns.saturating_add(GRACE_NS).min(UNLIMITED_NS));
    match options.budget_source {
        BudgetSource::Requested => by_clock_ns.min(options.budget_ns / options.phases.len().max(1) as u64),
        BudgetSource::Default => by_clock_ns,
    }
}

/// Why jobs that are repeated cannot be: their ramp leaves hardly any time of the first repeat.
fn outlasted(options: &PlanOptions, jobs: &[LoadJob]) -> Option<String> {
    let ramp_ns = jobs.first()?.ramp_ns;
    let repeat_ns = options.budget_ns / options.phases.len().max(1) as u64 / u64::from(ROUNDS);
    let is_too_long = options.load_runs == LoadRuns::Repeated && ramp_ns > repeat_ns / 2;
    is_too_long.then(|| {
        let (ramp, repeat) = (Nanos(ramp_ns), Nanos(repeat_ns));
        format!("a ramp of {ramp} leaves too little of repeats of {repeat}: give more --budget")
    })
}

/// Why jobs that run once cannot: one of them has less room than it names.
fn shortened(context: &PlanContext<'_>, asked: &[LoadJob], jobs: &[LoadJob]) -> Option<String> {
    let is_once = context.options.load_runs == LoadRuns::Once;
    let mut pairs = asked.iter().zip(jobs).filter(|_| is_once);
    let (asked, job) = pairs.find(|(asked, job)| job.span_bytes < asked.span_bytes)?;
    let (wants, has) = (Bytes(asked.span_bytes).approx(), Bytes(job.span_bytes).approx());
    Some(format!("job {} has {has} here of the {wants} that it uses", job.name))
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
        if job.changes_data() && !context.ops.contains(&Op::Write) {
            Some(format!("job {} writes, and this target is only read", job.name))
        } else if let Some(why) = rdsk_engine::why_not_trimmed(job, context.target) {
            Some(format!("job {} trims: {why}", job.name))
        } else if job.path == IoPath::Direct && no_direct {
            Some(format!("job {} asks for direct I/O, which this target does not have", job.name))
        } else if let Some(why) = late(context, job) {
            Some(why)
        } else if job.span_bytes < job.max_block_bytes() {
            Some(format!("job {} has no room for one block of {}", job.name, Bytes(job.max_block_bytes())))
        } else if job.fresh_space && context.target.kind == TargetKind::Block {
            Some(format!("job {} allocates space of a filesystem, and this target is a device", job.name))
        } else {
            None
        }
    })
}

/// Why a job would have no time of its own: each repeat begins with its delay.
fn late(context: &PlanContext<'_>, job: &LoadJob) -> Option<String> {
    let phases = context.options.phases.len().max(1) as u64;
    let repeat_ns = context.options.budget_ns / phases / u64::from(ROUNDS);
    let is_late = context.options.load_runs == LoadRuns::Repeated && job.delay_ns > repeat_ns / 2;
    is_late.then(|| {
        format!(
            "job {} begins {} after the others in each repeat, and a repeat lasts about {}: give more --budget, or write \
             repeat = false above the jobs, which then run once",
            job.name,
            Nanos(job.delay_ns),
            Nanos(repeat_ns)
        )
    })
}
