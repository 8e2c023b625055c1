//! The windows of a cell that show how it goes on where nothing hangs. An I/O that hangs for most of a cell's time leaves most of its
//! windows empty, and an empty one is not the ordinary one for that. It shows no stalls and names no cause.

use crate::metrics::typical_ns;
use rdsk_model::CellRecord;

/// Without a completion for this long, and for 20 median latencies, an I/O hangs: what fills and empties in turn, as a cache does, is the
/// ordinary way of a device, and takes less ...
const HANGS_NS: u64 = 5_000_000_000;
pub(crate) const LONG_LATENCIES: u64 = 20;
/// ... if one waited for at least this share of that time; otherwise the program had requested nothing.
pub(crate) const WAITED: f64 = 0.5;

/// The windows of a cell, given by visit, without those of the times in which an I/O hung, if these are most of them; else all.
pub(crate) fn ordinary<'a>(
    cell: &CellRecord,
    width_ns: u64,
    visits: impl Iterator<Item = &'a [u64]>,
) -> Vec<u64> {
    let visits: Vec<&[u64]> = visits.collect();
    let others: Vec<u64> = visits.iter().flat_map(|windows| not_hung(cell, width_ns, windows)).collect();
    let all: usize = visits.iter().map(|windows| windows.len()).sum();
    if others.is_empty() || others.len() * 2 >= all { visits.concat() } else { others }
}

fn not_hung(cell: &CellRecord, width_ns: u64, windows: &[u64]) -> Vec<u64> {
    let latency = cell.result.latency_ns.as_ref();
    let Some((typical_ns, max_ns)) = latency.and_then(|latency| Some((typical_ns(latency)?, latency.max?)))
    else {
        return windows.to_vec();
    };
    let least_ns = HANGS_NS.max(LONG_LATENCIES.saturating_mul(typical_ns));
    let hangs = |run: &[u64]| {
        let lasts_ns = width_ns.saturating_mul(run.len() as u64);
        run[0] == 0 && lasts_ns >= least_ns && max_ns as f64 >= WAITED * lasts_ns as f64
    };
    let runs = windows.chunk_by(|one, next| (*one == 0) == (*next == 0));
    runs.filter(|run| !hangs(run)).flatten().copied().collect()
}
