//! Whether the zones of a cell whose passes go in shuffled orders come back: found in one half of the passes and held against the
//! other, both ways. What time made in one half is not there in the other. It finds no zones itself.

use super::boundaries::{by_position, cuts, level, spans};
use super::positions::Places;
use rdsk_model::PointRun;
use rdsk_stats::{mean, median, t_tail};

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
fn shows(found: &[PointRun], held: &[PointRun], places: &Places) -> bool {
    let latencies = by_position(found, places);
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
    let seen = pairs(&pattern, &other.iter().map(|all| median(all)).collect::<Vec<_>>());
    let of_pass = |run: &PointRun| {
        let latencies = by_position(std::slice::from_ref(run), places);
        pairs(&pattern, &latencies.iter().map(|all| all.first().copied()).collect::<Vec<_>>())
    };
    let agree = held.iter().filter(|run| correlation(&of_pass(run)) > 0.0).count();
    is_sure(&seen) && agree as f64 >= AGREE * held.len() as f64
}

fn pairs(pattern: &[Option<f64>], latencies: &[Option<f64>]) -> Vec<(f64, f64)> {
    pattern.iter().zip(latencies).filter_map(|(level, seen)| Some(((*level)?, seen.as_ref()?.ln()))).collect()
}

/// Pearson's correlation; 0 where one side does not vary.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (Some(left), Some(right)) = (mean(&first), mean(&second)) else { return 0.0 };
    let both: f64 = pairs.iter().map(|(a, b)| (a - left) * (b - right)).sum();
    let size = |all: &[f64], middle: f64| all.iter().map(|x| (x - middle).powi(2)).sum::<f64>().sqrt();
    let sizes = size(&first, left) * size(&second, right);
    if sizes > 0.0 { both / sizes } else { 0.0 }
}

/// Whether chance gives so large a positive correlation in fewer than [`FALSE_ALARM`] of all halves (Student's t).
fn is_sure(pairs: &[(f64, f64)]) -> bool {
    let freedom = pairs.len() as f64 - 2.0;
    let r = correlation(pairs).min(1.0 - 1e-12);
    freedom >= 1.0 && r > 0.0 && t_tail(r * (freedom / (1.0 - r * r)).sqrt(), freedom) <= FALSE_ALARM
}
