//! How far the rates of two zones are apart, with its interval: a factor that is advised on must hold over all of it. It finds no zones.

use super::boundaries::by_position;
use super::positions::{Places, Zone};
use rdsk_model::PointRun;
use rdsk_stats::{mean_interval, median};

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
