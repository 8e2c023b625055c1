//! Whether the zones of a cell come back, which what time made does not. Of passes in shuffled orders they are found in one half and held
//! against the other, both ways. Neighbours in a pass in ascending order are neighbours in time, so that a noise that lasts looks like
//! zones; but each such pass began elsewhere, and where the zones lie at the same positions all the same, the positions make them. It
//! finds no zones itself.

use super::Steps;
use super::boundaries::{by_position, cuts, level, spans};
use super::positions::Places;
use rdsk_model::{CellRecord, PointRun};
use rdsk_stats::{agreement, mean, median, t_tail};

/// Probability of a pattern that seems to come back in a half by chance.
const FALSE_ALARM: f64 = 0.01;
/// The share of the passes of a half that must have the pattern, each by itself.
const AGREE: f64 = 0.8;

/// Whether the steps of the rate are there in the first and in the second half of at least two passes.
pub(super) fn reappears(runs: &[PointRun], places: &Places) -> bool {
    let (first, second) = runs.split_at(runs.len() / 2);
    shows(first, second, places) && shows(second, first, places)
}

/// Whether the steps that one half of the passes has are in the other half, too.
fn shows(shown_by: &[PointRun], held: &[PointRun], places: &Places) -> bool {
    let latencies = by_position(shown_by, places);
    let visited: Vec<usize> =
        (0..latencies.len()).filter(|&position| !latencies[position].is_empty()).collect();
    let medians: Vec<f64> = visited.iter().filter_map(|&position| median(&latencies[position])).collect();
    let cuts = cuts(&medians);
    if cuts.is_empty() {
        return false;
    }
    // The latency that the zones of this half predict at each position.
    let mut pattern = vec![None; latencies.len()];
    for (from, to) in spans(&cuts, medians.len()) {
        let level = level(&medians[from..to]).ln();
        for &position in &visited[from..to] {
            pattern[position] = Some(level);
        }
    }
    let other = by_position(held, places);
    let levels = pairs(&pattern, &other.iter().map(|latencies| median(latencies)).collect::<Vec<_>>());
    let of_pass = |run: &PointRun| {
        let latencies = by_position(std::slice::from_ref(run), places);
        pairs(&pattern, &latencies.iter().map(|at_position| at_position.first().copied()).collect::<Vec<_>>())
    };
    let agree = held.iter().filter(|run| correlation(&of_pass(run)) > 0.0).count();
    is_sure(&levels) && agree as f64 >= AGREE * held.len() as f64
}

fn pairs(pattern: &[Option<f64>], latencies: &[Option<f64>]) -> Vec<(f64, f64)> {
    pattern
        .iter()
        .zip(latencies)
        .filter_map(|(level, latency)| Some(((*level)?, latency.as_ref()?.ln())))
        .collect()
}

/// Pearson's correlation; 0 where one side does not vary.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (Some(left), Some(right)) = (mean(&first), mean(&second)) else { return 0.0 };
    let both: f64 = pairs.iter().map(|(a, b)| (a - left) * (b - right)).sum();
    let size = |values: &[f64], middle: f64| values.iter().map(|x| (x - middle).powi(2)).sum::<f64>().sqrt();
    let sizes = size(&first, left) * size(&second, right);
    if sizes > 0.0 { both / sizes } else { 0.0 }
}

/// Whether chance gives so large a positive correlation in fewer than [`FALSE_ALARM`] of all halves (Student's t).
fn is_sure(pairs: &[(f64, f64)]) -> bool {
    let freedom = pairs.len() as f64 - 2.0;
    let r = correlation(pairs).min(1.0 - 1e-12);
    freedom >= 1.0 && r > 0.0 && t_tail(r * (freedom / (1.0 - r * r)).sqrt(), freedom) <= FALSE_ALARM
}

/// Chance of passes that agree as much from random starts if positions make no difference. A page shows up to four block
/// sizes.
const FALSE_ALARM_OF_STARTS: f64 = 0.002;
/// Parts of a pass that are compared, at most, and passes.
const MAX_PARTS: usize = 512;
const MAX_PASSES: usize = 12;
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
    let Some(agreed) = agreement(&series) else { return Steps::Untold };
    match agreed {
        agreed if agreed.least_p_value > FALSE_ALARM_OF_STARTS => Steps::Untold,
        agreed if agreed.p_value > FALSE_ALARM_OF_STARTS => Steps::None,
        agreed if (agreed.agreeing as f64) < AGREE * series.len() as f64 => Steps::None,
        _ => Steps::Shown,
    }
}

/// The mean logarithm of the latencies of each part of a pass, by position; that of the whole pass where all of a part
/// failed.
fn parts(run: &PointRun, places: &Places) -> Vec<f64> {
    let positions = places.positions.len();
    let count = positions.min(MAX_PARTS);
    let mut parts = vec![Vec::new(); count];
    for (position, latency_ns) in places.of_pass(run) {
        parts[position * count / positions].push((latency_ns.max(1) as f64).ln());
    }
    let whole = mean(&parts.concat()).unwrap_or(0.0);
    parts.iter().map(|part| mean(part).unwrap_or(whole)).collect()
}
