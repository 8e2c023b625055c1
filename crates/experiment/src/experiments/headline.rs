//! The headline: the few figures wanted first. It plans cells and issues nothing.

use crate::context::{PAGE_BYTES, PlanContext, device_path};
use crate::question::Question;
use rdsk_model::{
    BufferPages, CacheState, Cell, Experiment, Extent, IoPath, Op, Pattern, Sync, TargetKind, Workload,
};

/// I/Os in flight in the sequential cells: enough for a disk that needs several requests to stream.
const SEQUENTIAL_DEPTH: u32 = 8;
/// I/Os in flight in the deep random cells unless `--iodepth` says otherwise.
const RANDOM_DEPTH: u32 = 32;
const SEQUENTIAL_BYTES: u64 = 1 << 20;
const RANDOM_BYTES: u64 = 4096;
const WEIGHT: f64 = 3.0;
/// Of what only says how much the memory of buffers matters.
const CONTIGUOUS_WEIGHT: f64 = 1.0;

pub(crate) struct Headline;

impl Question for Headline {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let deep = context.options.queue_depth.unwrap_or(RANDOM_DEPTH);
        let mut cells = Vec::new();
        for &op in &context.ops {
            // A target smaller than 1 MiB is streamed in the largest blocks that it holds.
            let holds_bytes = 1 << context.room_bytes().max(1).ilog2();
            let block_bytes = SEQUENTIAL_BYTES.min(holds_bytes).max(RANDOM_BYTES);
            let sequential =
                cell(context, op, Pattern::Sequential, block_bytes, SEQUENTIAL_DEPTH, Sync::None);
            let contiguous = contiguous(context, &sequential);
            cells.push(sequential);
            cells.extend(contiguous);
            cells.push(cell(context, op, Pattern::Random, RANDOM_BYTES, 1, Sync::None));
            if deep > 1 {
                cells.push(cell(context, op, Pattern::Random, RANDOM_BYTES, deep, Sync::None));
            }
            if op == Op::Write {
                cells.push(cell(context, op, Pattern::Sequential, RANDOM_BYTES, 1, Sync::Dsync));
            }
        }
        cells
    }

    fn is_repeated_after_rests(&self, workload: &Workload) -> bool {
        (workload.op, workload.pattern, workload.queue_depth) == (Op::Read, Pattern::Random, 1)
    }

    /// All writes but those that memory takes at once.
    fn is_sustained(&self, cell: &Cell) -> bool {
        cell.workload.op == Op::Write && !cell.workload.is_written_behind()
    }
}

/// The same reads from buffers that lie in one piece, where a device takes too few segments for a block of ordinary pages and so
/// gets it in several requests.
fn contiguous(context: &PlanContext<'_>, sequential: &Cell) -> Option<Cell> {
    let mut workload = sequential.workload.clone();
    let segments = context.target.device.as_ref()?.max_segments?;
    let is_cut = segments.saturating_mul(PAGE_BYTES) < workload.block_bytes;
    let is_asked = workload.op == Op::Read
        && workload.path == IoPath::Direct
        && workload.buffers == Some(BufferPages::Ordinary);
    if !(is_cut && is_asked) {
        return None;
    }
    workload.buffers = Some(BufferPages::Huge);
    workload.seed = context.options.seed();
    let id = format!("{}-huge", sequential.id);
    Some(context.cell(id, Experiment::Headline, workload, Extent::Timed, CONTIGUOUS_WEIGHT))
}

fn cell(
    context: &PlanContext<'_>,
    op: Op,
    pattern: Pattern,
    block_bytes: u64,
    depth: u32,
    sync: Sync,
) -> Cell {
    let span_bytes = context.span_bytes(u64::MAX, block_bytes);
    let mut workload = context.workload(op, device_path(context.target), block_bytes, span_bytes);
    workload.pattern = pattern;
    workload.queue_depth =
        if context.options.engine == Some(rdsk_model::EngineKind::Sync) && pattern == Pattern::Sequential {
            1
        } else {
            depth
        };
    workload.sync = sync;
    // Without direct I/O only a cold cache shows the disk; the models of hosts begin cold.
    if workload.path.uses_page_cache() && op == Op::Read && context.target.kind != TargetKind::Sim {
        workload.cache = CacheState::Cold;
    }
    let id = match (pattern, sync) {
        (Pattern::Sequential, Sync::None) => format!("headline/{op}/sequential"),
        (Pattern::Random, Sync::None) => format!("headline/{op}/random-qd{depth}"),
        _ => format!("headline/{op}/durable"),
    };
    context.cell(id, Experiment::Headline, workload, Extent::Timed, WEIGHT)
}
