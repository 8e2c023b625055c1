//! Where the rate steps along the positions, which of these steps every pass has, and how far the rates of two zones are apart, with its
//! interval: a factor that is advised on must hold over all of it. It does not ask whether time made the steps.

use super::positions::{Places, Position, Zone};
use super::{BOUNDARY_FALSE_ALARM, MIN_STEP};
use rdsk_model::PointRun;
use rdsk_stats::{ChangeOptions, change_points, mean, mean_interval, median, pass_steps, stddev, t_tail};

/// Fewest positions of a zone.
const MIN_POSITIONS: usize = 3;
/// With fewer positions, their medians show a step only near the middle, if at all: the ranks of twelve are never sure enough.
const FEW_POSITIONS: usize = 24;
/// Most boundaries; a slope has as many steps as one wants to see.
const MAX_BOUNDARIES: usize = 31;
/// Probability, over the passes, of a step that has the direction of its boundary although there is none.
const IN_PASSES: f64 = 0.05;

/// Where the medians of the positions step.
pub(super) fn cuts(medians: &[f64]) -> Vec<usize> {
    let options =
        ChangeOptions { false_alarm: BOUNDARY_FALSE_ALARM, min_samples: MIN_POSITIONS, most: MAX_BOUNDARIES };
    without_small(change_points(medians, &options).iter().map(|step| step.index).collect(), medians)
}

/// Where all passes that visited every one of a few positions step, each ranked by itself. The medians alone cannot show it.
pub(super) fn cuts_of_passes(medians: &[f64], runs: &[PointRun], places: &Places) -> Vec<usize> {
    if medians.len() >= FEW_POSITIONS {
        return Vec::new();
    }
    let of_pass = |run: &PointRun| {
        let latencies = by_position(std::slice::from_ref(run), places);
        latencies.iter().map(|at_position| at_position.first().copied()).collect::<Option<Vec<f64>>>()
    };
    let passes: Vec<Vec<f64>> = runs.iter().filter_map(of_pass).collect();
    without_small(pass_steps(&passes, BOUNDARY_FALSE_ALARM, MIN_POSITIONS), medians)
}

/// Takes the smallest steps back as long as they are too small to matter.
fn without_small(mut cuts: Vec<usize>, medians: &[f64]) -> Vec<usize> {
    let level_of = |cuts: &[usize], zone: usize| {
        let from = if zone == 0 { 0 } else { cuts[zone - 1] };
        level(&medians[from..cuts.get(zone).copied().unwrap_or(medians.len())]).ln()
    };
    // One more level than cuts; only that of the two zones that become one changes.
    let mut levels: Vec<f64> = (0..=cuts.len()).map(|zone| level_of(&cuts, zone)).collect();
    loop {
        let sizes = levels.windows(2).map(|pair| (pair[0] - pair[1]).abs());
        match sizes.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, step)) if step < MIN_STEP => {
                cuts.remove(at);
                levels.remove(at);
                levels[at] = level_of(&cuts, at);
            }
            _ => return cuts,
        }
    }
}

/// Those boundaries at which the passes step in the same direction, by Student's t over the passes; without the others their zones
/// are one. Of a single pass all stay: nothing can be held against it.
pub(super) fn in_each_pass(mut cuts: Vec<usize>, runs: &[PointRun], places: &Places) -> Vec<usize> {
    if runs.len() < 2 {
        return cuts;
    }
    let passes: Vec<Vec<Vec<f64>>> =
        runs.iter().map(|run| by_position(std::slice::from_ref(run), places)).collect();
    let level_of = |pass: &Vec<Vec<f64>>, cuts: &[usize], zone: usize| {
        let from = if zone == 0 { 0 } else { cuts[zone - 1] };
        let to = cuts.get(zone).copied().unwrap_or(pass.len());
        median(&pass[from..to].iter().flatten().copied().collect::<Vec<f64>>()).map(f64::ln)
    };
    let mut levels: Vec<Vec<Option<f64>>> = passes
        .iter()
        .map(|pass| (0..=cuts.len()).map(|zone| level_of(pass, &cuts, zone)).collect())
        .collect();
    loop {
        let chance_at = |at: usize| {
            let steps: Vec<f64> =
                levels.iter().filter_map(|zones| Some(zones[at + 1]? - zones[at]?)).collect();
            chance(&steps)
        };
        let worst = (0..cuts.len()).map(|at| (at, chance_at(at))).max_by(|a, b| a.1.total_cmp(&b.1));
        match worst {
            Some((at, chance)) if chance > IN_PASSES => {
                cuts.remove(at);
                for (pass, zones) in passes.iter().zip(&mut levels) {
                    zones.remove(at);
                    zones[at] = level_of(pass, &cuts, at);
                }
            }
            _ => return cuts,
        }
    }
}

/// The chance of steps that go so far the same way although there is none: Student's t, one-sided, since the boundary has its
/// direction from the same passes.
fn chance(steps: &[f64]) -> f64 {
    let (Some(by), Some(deviation)) = (mean(steps), stddev(steps)) else { return 1.0 };
    let count = steps.len() as f64;
    match deviation {
        0.0 => f64::from(u8::from(by == 0.0)),
        deviation => t_tail(by.abs() / (deviation / count.sqrt()), count - 1.0),
    }
}

/// The latencies of these passes by position, in the order of the passes.
pub(super) fn by_position(runs: &[PointRun], places: &Places) -> Vec<Vec<f64>> {
    let mut latencies = vec![Vec::new(); places.positions.len()];
    for run in runs {
        for (position, latency_ns) in places.of_pass(run) {
            latencies[position].push(latency_ns.max(1) as f64);
        }
    }
    latencies
}

/// First position of each zone and the one after its last.
pub(super) fn spans(cuts: &[usize], positions: usize) -> Vec<(usize, usize)> {
    let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([positions]).collect();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The median of the medians of positions, in ns.
pub(super) fn level(medians: &[f64]) -> f64 {
    median(medians).unwrap_or(1.0)
}

/// The zones between these boundaries.
pub(super) fn zones_of(
    positions: &[Position],
    medians: &[f64],
    cuts: &[usize],
    block_bytes: u64,
) -> Vec<Zone> {
    spans(cuts, positions.len())
        .into_iter()
        .map(|(from, to)| Zone {
            first: from,
            positions: to - from,
            begin_bytes: positions[from].offset_bytes,
            end_bytes: positions[to - 1].offset_bytes + block_bytes,
            bytes_per_s: block_bytes as f64 * 1e9 / level(&medians[from..to]),
        })
        .collect()
}

/// With fewer passes, their positions are the samples.
const FEW_PASSES: usize = 3;
/// Positions of a zone that are compared with those of another at most.
const MOST_POSITIONS: usize = 500;
/// How many deviations to either side hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

/// The interval of the factor between the rates of two zones; `None` where a zone is too small for one. Passes are independent samples of
/// it; of one or two, the medians of the positions are.
pub(super) fn factor(runs: &[PointRun], places: &Places, fast: &Zone, slow: &Zone) -> Option<(f64, f64)> {
    let of_zone = |zone: &Zone, latencies: &[Vec<f64>]| {
        median(&latencies[zone.first..zone.first + zone.positions].concat()).map(f64::ln)
    };
    let of_pass = |run: &PointRun| {
        let latencies = by_position(std::slice::from_ref(run), places);
        Some(of_zone(slow, &latencies)? - of_zone(fast, &latencies)?)
    };
    let steps: Vec<f64> = runs.iter().filter_map(of_pass).collect();
    if steps.len() >= FEW_PASSES {
        let interval = mean_interval(&steps)?;
        return Some((interval.low.exp(), interval.high.exp()));
    }
    let logs = |zone: &Zone| -> Vec<f64> {
        let positions = &places.positions[zone.first..zone.first + zone.positions];
        let every = positions.len().div_ceil(MOST_POSITIONS).max(1);
        positions.iter().step_by(every).map(|position| position.median_ns.ln()).collect()
    };
    shift(&logs(fast), &logs(slow)).map(|(low, high)| (low.exp(), high.exp()))
}

/// The interval of how much higher the second samples lie than the first: that of Hodges and Lehmann, from the differences of all pairs and
/// the normal approximation of Mann and Whitney's statistic (Hollander and Wolfe, Nonparametric Statistical Methods, ch. 4). I/Os in a band
/// beside the others move it little.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
fn shift(low: &[f64], high: &[f64]) -> Option<(f64, f64)> {
    let mut by: Vec<f64> = high.iter().flat_map(|high| low.iter().map(move |low| high - low)).collect();
    by.sort_unstable_by(f64::total_cmp);
    let (count, samples) = (by.len() as f64, (low.len() + high.len()) as f64);
    let half = NORMAL_95 * (count * (samples + 1.0) / 12.0).sqrt();
    let rank = (count / 2.0 - half).floor().max(0.0) as usize;
    Some((*by.get(rank)?, *by.get(by.len().checked_sub(rank + 1)?)?))
}
