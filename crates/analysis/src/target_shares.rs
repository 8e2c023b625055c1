//! What each target of a cell gave: the streams of its visits, added up by target, each over its own time.

use crate::metrics;
use rdsk_model::{CellRecord, StreamResult, Visit};

/// What one target gave, over all visits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TargetShare {
    /// Index of the target.
    pub target: u32,
    /// Streams on it.
    pub streams: usize,
    /// Bytes of its streams.
    pub bytes: u64,
    /// I/Os of its streams.
    pub ops: u64,
    /// From the first start of its streams to their last end.
    pub elapsed_ns: u64,
    /// Bytes over that time, per second.
    pub bytes_per_s: f64,
    /// The part of that time in which its device was busy; `None` if no counters reach it.
    pub busy_share: Option<f64>,
}

/// The streams of a visit; a single one is the visit itself.
pub(crate) fn of_visit(visit: &Visit, cell: &CellRecord) -> Vec<StreamResult> {
    if !visit.streams.is_empty() {
        return visit.streams.clone();
    }
    let target = cell.workload.targets.first().copied().unwrap_or(0);
    let (end_ns, bytes, ops) = (visit.elapsed_ns, visit.bytes, visit.ops);
    vec![StreamResult { index: 0, target, start_ns: 0, end_ns, bytes, ops, active_ns: None }]
}

/// Bytes per second; 0 without any time.
pub(crate) fn per_second(bytes: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { bytes as f64 * 1e9 / elapsed_ns as f64 }
}

/// What each target of a cell gave over all visits, each over its own time.
pub(crate) fn targets(cell: &CellRecord) -> Vec<TargetShare> {
    let visits: Vec<Vec<StreamResult>> =
        cell.result.visits.iter().map(|visit| of_visit(visit, cell)).collect();
    let used = cell.workload.targets.iter().take(cell.workload.streams as usize);
    used.map(|&target| {
        let mut share = TargetShare { target, ..TargetShare::default() };
        for streams in &visits {
            let its: Vec<&StreamResult> = streams.iter().filter(|stream| stream.target == target).collect();
            share.streams = share.streams.max(its.len());
            share.bytes += its.iter().map(|stream| stream.bytes).sum::<u64>();
            share.ops = its.iter().map(|stream| stream.ops).fold(share.ops, u64::saturating_add);
            let first = its.iter().map(|stream| stream.start_ns).min().unwrap_or(0);
            let last = its.iter().map(|stream| stream.end_ns).max().unwrap_or(0);
            share.elapsed_ns += last.saturating_sub(first);
        }
        share.bytes_per_s = per_second(share.bytes, share.elapsed_ns);
        share.busy_share = busy_share(cell, target, share.elapsed_ns);
        share
    })
    .collect()
}

/// Busy time during the I/O over the time in which the target had streams: a target whose first stream began late was idle
/// before for a reason that is not its own.
fn busy_share(cell: &CellRecord, target: u32, elapsed_ns: u64) -> Option<f64> {
    let busy_ns = cell
        .evidence
        .counters_of(target)
        .into_iter()
        .map(|device| Some(metrics::busy_share(cell, device)? * device.interval_ns? as f64))
        .try_fold(None, |busiest: Option<f64>, busy| Some(Some(busiest.unwrap_or(0.0).max(busy?))))??;
    (elapsed_ns > 0).then_some((busy_ns / elapsed_ns as f64).min(1.0))
}
