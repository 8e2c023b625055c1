//! How far the rates of two zones are apart, with its interval: a factor that is advised on must hold over all of it. It finds no zones.

use super::boundaries::by_position;
use super::positions::{Places, Zone};
use rdsk_model::PointRun;
use rdsk_stats::{mean, mean_interval, median, stddev, t_quantile};

/// With fewer passes, their positions are the samples.
const FEW_PASSES: usize = 3;
/// Chance that the factor is outside.
const OUTSIDE: f64 = 0.05;

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
        positions.iter().map(|position| position.median_ns.ln()).collect()
    };
    let (fast, slow) = (logs(fast), logs(slow));
    let variance = |all: &[f64]| Some(stddev(all)?.powi(2) / all.len() as f64);
    let (by, freedom) = (mean(&slow)? - mean(&fast)?, fast.len().min(slow.len()) as f64 - 1.0);
    let half = t_quantile(OUTSIDE, freedom) * (variance(&fast)? + variance(&slow)?).sqrt();
    Some(((by - half).exp(), (by + half).exp()))
}
