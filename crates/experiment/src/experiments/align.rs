//! `align`: latency by size and by alignment, cached and uncached, direct and buffered; then by offset at a fixed size,
//! which the report names and did not measure. It plans cells and issues nothing.

use crate::context::{PAGE_BYTES, PlanContext, Scope};
use crate::question::Question;
use rdsk_model::{CacheState, Cell, Experiment, Extent, IoPath, Op, Pattern};

/// The report's sizes, and three that are whole pages.
const SIZES: [u64; 8] = [1, 27, 512, 2048, 4096, 8192, 16384, 65536];
/// Sizes in a whole run: below a page, a page, and above.
const SIZES_IN_RUN: [u64; 3] = [512, 4096, 16384];
/// The report's file.
const SPAN_BYTES: u64 = 64 << 20;
/// Smallest span on a slow disk, as part of a whole run: 1024 pages to choose from.
const MIN_SPAN_BYTES: u64 = 4 << 20;
/// I/Os of the first visit; the runner grows it while preparing and settling are cheap.
const FIRST_OPS: u64 = 32;
const WEIGHT: f64 = 0.4;
/// Reading a span into the cache may take this share of the budget of a whole run, estimated from the rate at which the
/// test file was written.
const WARM_SHARE: f64 = 0.001;

/// Pages that are cached already stay so on the path `dontcache`, which then is the buffered one: it has no column of its own.
const COLUMNS: [(&str, CacheState, IoPath); 5] = [
    ("cached-buffered", CacheState::Warm, IoPath::Buffered),
    ("cached-direct", CacheState::Warm, IoPath::Direct),
    ("uncached-buffered", CacheState::Cold, IoPath::Buffered),
    ("uncached-dontcache", CacheState::Cold, IoPath::DontCache),
    ("uncached-direct", CacheState::Cold, IoPath::Direct),
];

/// Shifts of the offset: by a sector, by a byte, and so that a block crosses a page; the first one in a whole run.
const SHIFTS: [u64; 3] = [512, 1, PAGE_BYTES / 2];

pub(crate) struct Align;

impl Question for Align {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let in_run = context.scope == Scope::WholeRun;
        let default_sizes = if in_run { &SIZES_IN_RUN[..] } else { &SIZES[..] };
        let shifts = if in_run { &SHIFTS[..1] } else { &SHIFTS[..] };
        let sizes = context.options.block_bytes.clone().unwrap_or_else(|| default_sizes.to_vec());
        let is_wanted = |(_, _, path): &&(&str, CacheState, IoPath)| {
            *path != IoPath::DontCache || context.asks_dontcache()
        };
        let columns: Vec<_> = COLUMNS.iter().filter(is_wanted).copied().collect();
        let mut cells = Vec::new();
        for op in directions(context) {
            let span_bytes = span_bytes(context);
            for &block_bytes in &sizes {
                for &column in &columns {
                    cells.push(cell(context, op, column, block_bytes, 0, span_bytes));
                }
            }
            let moved_bytes = sizes.iter().copied().find(|&size| size == PAGE_BYTES).unwrap_or(sizes[0]);
            for &shift_bytes in shifts {
                for &column in columns.iter().filter(|(_, cache, _)| *cache == CacheState::Cold) {
                    cells.push(cell(context, op, column, moved_bytes, shift_bytes, span_bytes));
                }
            }
        }
        cells
    }

    // Every visit begins with an empty cache in the device: only a long one has its full price.
    fn free_cell_ns(&self) -> u64 {
        120_000_000_000
    }
}

/// Writes, or reads if nothing may be written; both if both are requested.
fn directions(context: &PlanContext<'_>) -> Vec<Op> {
    match (&context.options.ops, context.ops.contains(&Op::Write)) {
        (None, true) => vec![Op::Write],
        _ => context.ops.clone(),
    }
}

fn cell(
    context: &PlanContext<'_>,
    op: Op,
    (column, cache, path): (&str, CacheState, IoPath),
    block_bytes: u64,
    shift_bytes: u64,
    span_bytes: u64,
) -> Cell {
    let mut workload = context.workload(op, path, block_bytes, span_bytes);
    workload.pattern = Pattern::Random;
    workload.cache = cache;
    workload.shift_bytes = shift_bytes;
    if span_bytes < block_bytes + shift_bytes {
        workload.span_bytes = 0;
    }
    let id = if shift_bytes == 0 {
        format!("align/{op}/{column}/{block_bytes}")
    } else {
        format!("align/{op}/{column}/{block_bytes}+{shift_bytes}")
    };
    context.cell(id, Experiment::Align, workload, Extent::Samples { first_ops: FIRST_OPS }, WEIGHT)
}

fn span_bytes(context: &PlanContext<'_>) -> u64 {
    let fits = || context.bytes_of_share(WARM_SHARE).map(|bytes| bytes.clamp(MIN_SPAN_BYTES, SPAN_BYTES));
    let wish_bytes = context.options.pass_bytes.or_else(fits).unwrap_or(SPAN_BYTES);
    let room_bytes = context.room_bytes().min(wish_bytes);
    if room_bytes >= PAGE_BYTES { room_bytes - room_bytes % PAGE_BYTES } else { room_bytes }
}
