//! `paths`: the same bytes direct ("raw") and buffered ("block"), as the HP-UX report did with dd, and buffered without
//! leaving them in the cache (`RWF_DONTCACHE`), plus the buffered read from a warm cache that is often mistaken for the disk. It
//! plans cells and issues nothing.

use crate::context::PlanContext;
use crate::question::Question;
use rdsk_model::{CacheState, Cell, Experiment, Extent, IoPath, Op};

/// dd's block in the report.
const BLOCK_BYTES: u64 = 1 << 20;
/// The report's 100 MB.
const PASS_BYTES: u64 = 100 << 20;
const WEIGHT: f64 = 2.0;
/// In a whole run a pass may use this share of the budget, estimated from the rate at which the test file was written.
const PASS_SHARE: f64 = 0.012;

pub(crate) struct Paths;

impl Question for Paths {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let sizes = context.options.block_bytes.clone().unwrap_or_else(|| vec![BLOCK_BYTES]);
        let mut cells = Vec::new();
        for &op in &context.ops {
            for &block_bytes in &sizes {
                let span_bytes = context.span_bytes(pass_bytes(context), block_bytes);
                for (column, path, cache) in [
                    ("direct", IoPath::Direct, CacheState::Any),
                    ("buffered", IoPath::Buffered, CacheState::Cold),
                    ("dontcache", IoPath::DontCache, CacheState::Cold),
                    ("cached", IoPath::Buffered, CacheState::Warm),
                ] {
                    let is_unwanted = (column == "cached" && op == Op::Write)
                        || (path == IoPath::DontCache && !context.asks_dontcache());
                    if is_unwanted {
                        continue;
                    }
                    let mut workload = context.workload(op, path, block_bytes, span_bytes);
                    workload.cache = cache;
                    let id = context.id(format!("paths/{op}/{column}"), block_bytes);
                    let extent = match context.options.pass_bytes {
                        None if !context.is_time_free() => Extent::Passes { bytes: span_bytes },
                        _ => Extent::Pass { bytes: span_bytes },
                    };
                    cells.push(context.cell(id, Experiment::Paths, workload, extent, WEIGHT));
                }
            }
        }
        cells
    }
}

/// The bytes of a pass: as requested, else the report's, scaled to the disk in a whole run.
fn pass_bytes(context: &PlanContext<'_>) -> u64 {
    if let Some(bytes) = context.options.pass_bytes {
        return bytes;
    }
    let fits = context.bytes_of_share(PASS_SHARE).unwrap_or(PASS_BYTES);
    (fits - fits % BLOCK_BYTES).clamp(BLOCK_BYTES, PASS_BYTES)
}
