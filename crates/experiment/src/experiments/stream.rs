//! `stream`: one reader and one writer at one block size, on every path and with every kind of sync, shown in the columns
//! of iostat. It plans cells and issues nothing.

use crate::context::PlanContext;
use crate::question::Question;
use crate::request::PlanOptions;
use rdsk_model::{CacheState, Cell, Experiment, Extent, IoPath, Op, Pattern, STREAM_WINDOW_BYTES, Sync};

/// dd's block in the report.
const BLOCK_BYTES: u64 = 16 << 10;
const WEIGHT: f64 = 2.0;

/// Bytes after which a write of `--end-fsync` is flushed, as much as a pass of `paths` writes.
const FSYNC_PASS_BYTES: u64 = 100 << 20;

const WRITES: [(&str, IoPath, Sync); 6] = [
    ("buffered", IoPath::Buffered, Sync::None),
    ("dontcache", IoPath::DontCache, Sync::None),
    ("fsync", IoPath::Buffered, Sync::FsyncAtEnd),
    ("direct", IoPath::Direct, Sync::None),
    ("dsync", IoPath::Buffered, Sync::Dsync),
    ("direct-dsync", IoPath::Direct, Sync::Dsync),
];

pub(crate) struct Stream;

impl Question for Stream {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let sizes = context.options.block_bytes.clone().unwrap_or_else(|| vec![BLOCK_BYTES]);
        let mut cells = Vec::new();
        for &op in &context.ops {
            for &block_bytes in &sizes {
                for (mode, path, sync) in WRITES {
                    let is_unwanted = (sync == Sync::FsyncAtEnd && !context.options.end_fsync)
                        || (path == IoPath::DontCache && !context.asks_dontcache());
                    if is_unwanted || (op == Op::Read && sync != Sync::None) {
                        continue;
                    }
                    let free_bytes = context.is_time_free().then(|| free_pass_bytes(op, path, sync));
                    let pass_bytes = context.options.pass_bytes.or(free_bytes);
                    let is_narrow = context.options.pattern == Pattern::Random
                        // Passes are over the same bytes each time.
                        || sync == Sync::FsyncAtEnd
                        // The parts of the streams are as far apart on all paths.
                        || self.max_streams(context.options) > 1;
                    let widest_bytes = if is_narrow { STREAM_WINDOW_BYTES } else { u64::MAX };
                    let wish_bytes = pass_bytes.unwrap_or(widest_bytes);
                    let span_bytes = context.span_bytes(wish_bytes, block_bytes);
                    let mut workload = context.workload(op, path, block_bytes, span_bytes);
                    workload.sync = sync;
                    workload.pattern = context.options.pattern;
                    workload.streams = self.max_streams(context.options);
                    if path == IoPath::Direct {
                        workload.queue_depth = context.options.queue_depth.unwrap_or(1);
                    }
                    // Reads and random I/O must find no cached pages, or they would measure memory; RWF_DONTCACHE leaves
                    // those alone that it finds, so there would be nothing to drop.
                    let needs_cold =
                        op == Op::Read || workload.pattern == Pattern::Random || path == IoPath::DontCache;
                    if path.uses_page_cache() && needs_cold {
                        workload.cache = CacheState::Cold;
                    }
                    let id = context.id(format!("stream/{op}/{mode}"), block_bytes);
                    let extent = match pass_bytes {
                        Some(_) => Extent::Pass { bytes: span_bytes },
                        // Only a whole visit has the fsync in its rate; windows within it do not.
                        None if sync == Sync::FsyncAtEnd => {
                            Extent::Passes { bytes: context.span_bytes(FSYNC_PASS_BYTES, block_bytes) }
                        }
                        None => Extent::Timed,
                    };
                    cells.push(context.cell(id, Experiment::Stream, workload, extent, WEIGHT));
                }
            }
        }
        cells
    }

    fn window_bytes(&self) -> Option<u64> {
        Some(STREAM_WINDOW_BYTES)
    }

    fn max_streams(&self, options: &PlanOptions) -> u32 {
        options.stream_counts.as_ref().and_then(|counts| counts.first().copied()).unwrap_or(1)
    }
}

/// Bytes of a pass whose time costs nothing: buffered writes go on far beyond the memory that takes them at first.
fn free_pass_bytes(op: Op, path: IoPath, sync: Sync) -> u64 {
    match (op, path, sync) {
        (_, _, Sync::Dsync) => 16 << 20,
        (Op::Write, IoPath::Buffered | IoPath::DontCache, _) => 4 << 30,
        _ => 256 << 20,
    }
}
