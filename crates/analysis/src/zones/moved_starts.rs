//! Whether the zones of a cell whose passes go in ascending order come back. Neighbours in such a pass are neighbours in time, so that a
//! noise that lasts looks like zones; but each pass began elsewhere, and where the zones lie at the same positions all the
//! same, the positions make them. It finds no zones itself.

use super::Steps;
use super::positions::Places;
use rdsk_model::{CellRecord, PointRun};
use rdsk_stats::{agreement, mean};

/// Chance of passes that agree as much from random starts if positions make no difference. A page shows up to four block
/// sizes.
const FALSE_ALARM: f64 = 0.002;
/// Parts of a pass that are compared, at most, and passes.
const MAX_PARTS: usize = 512;
const MAX_PASSES: usize = 12;
/// The share of the passes that must go with the others.
const AGREE: f64 = 0.8;

/// What at least two passes in ascending order, at least one of them whole, say of steps along the positions.
pub(super) fn steps(cell: &CellRecord, places: &Places) -> Steps {
    let points = cell.workload.points.as_ref();
    let count = points.map_or(0, rdsk_model::Points::len);
    // Those of older Records all begin at the first position.
    if !points.is_some_and(|points| points.moves_start) {
        return Steps::Untold;
    }
    let is_whole = |run: &&PointRun| run.order.len() + run.failed.len() == count;
    let whole = cell.result.points.iter().filter(is_whole).take(MAX_PASSES);
    let series: Vec<Vec<f64>> = whole.map(|run| parts(run, places)).collect();
    let Some(found) = agreement(&series) else { return Steps::Untold };
    match found {
        found if found.least_p_value > FALSE_ALARM => Steps::Untold,
        found if found.p_value > FALSE_ALARM => Steps::None,
        found if (found.agreeing as f64) < AGREE * series.len() as f64 => Steps::None,
        _ => Steps::Shown,
    }
}

/// The mean logarithm of the latencies of each part of a pass, by position; that of the whole pass where all of a part
/// failed.
fn parts(run: &PointRun, places: &Places) -> Vec<f64> {
    let positions = places.positions.len();
    let count = positions.min(MAX_PARTS);
    let mut parts = vec![Vec::new(); count];
    for (&point, &latency_ns) in run.order.iter().zip(&run.latency_ns) {
        if let Some(position) = places.position_of.get(point as usize).copied().flatten() {
            parts[position * count / positions].push((latency_ns.max(1) as f64).ln());
        }
    }
    let all = mean(&parts.concat()).unwrap_or(0.0);
    parts.iter().map(|part| mean(part).unwrap_or(all)).collect()
}
