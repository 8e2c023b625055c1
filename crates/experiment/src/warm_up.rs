//! The warm-up of a cell: the start of its first visit, left out of rate and latencies alike where it was different. The
//! engine keeps the first fifth apart; afterwards it is decided here whether that is left out. It issues nothing.

use rdsk_engine::{Run, WarmUp};
use rdsk_model::{Cell, Extent};

/// The part of the first visit that may be left out as its warm-up: a fifth.
const DIVISOR: u64 = 5;

/// From the half-width of Student's 95 % interval of the mean of four parts to the distance that 99 % of single ones keep from
/// it: √5 · 5.84 / 3.18, from the quantiles of t with three degrees of freedom.
const ODD: f64 = 4.1;

/// How much of the start of a visit of `run_ns`, of which the cell had some before, is kept apart: whole windows, at most a
/// fifth of it. Only the first visit of a timed cell has a warm-up: a pass counts as a whole, and every sample starts anew.
pub(crate) fn candidate_ns(cell: &Cell, visits_before: usize, run_ns: u64, window_ns: u64) -> u64 {
    // The jobs of a load are judged by all that they did.
    let may_have_one =
        cell.extent == Extent::Timed && visits_before == 0 && cell.workload.jobs.is_empty();
    if may_have_one { run_ns / DIVISOR / window_ns.max(1) * window_ns } else { 0 }
}

/// The start that is left out: where its rate was different. None if the visit ended so early that it is more than a fifth.
pub(crate) fn left_out(run: &Run) -> Option<&WarmUp> {
    let warm_up = run.warm_up.as_ref()?;
    if warm_up.ops == 0 || warm_up.until_ns.saturating_mul(DIVISOR) > run.to_return_ns {
        return None;
    }
    let start = windows_between(run, 0, warm_up.until_ns);
    let rest = windows_between(run, warm_up.until_ns, run.to_return_ns);
    let bytes = |windows: &[u64]| windows.iter().map(|&bytes| bytes as f64).collect::<Vec<f64>>();
    differs(&bytes(start), &bytes(rest)).then_some(warm_up)
}

/// Whether the windows at the start are unlike the rest: the intervals of their means lie apart, and so far that chance does
/// not explain it. Not so if nothing completed in most of the rest, since the start is then most of the I/O itself.
fn differs(start: &[f64], rest: &[f64]) -> bool {
    let busy = rest.iter().filter(|&&bytes| bytes > 0.0).count();
    let intervals = rdsk_stats::batch_interval(start).zip(rdsk_stats::batch_interval(rest));
    let lie_apart = intervals.is_some_and(|(start, rest)| start.high < rest.low || rest.high < start.low);
    busy * 2 >= rest.len() && lie_apart && is_odd(start, rest).unwrap_or(false)
}

/// Whether the start is further from the mean of the parts of its length that follow than a further one of them would be in
/// 99 % of all cases. A fifth of a visit has too few windows to show that the rate wanders slowly; the other fifths show it.
fn is_odd(start: &[f64], rest: &[f64]) -> Option<bool> {
    let means: Vec<f64> = rest.chunks_exact(start.len().max(1)).filter_map(rdsk_stats::mean).collect();
    let interval = rdsk_stats::mean_interval(&means)?;
    Some((rdsk_stats::mean(start)? - interval.mean).abs() > ODD * (interval.high - interval.low) / 2.0)
}

/// The windows of a visit that lie wholly between two times.
pub(crate) fn windows_between(run: &Run, from_ns: u64, until_ns: u64) -> &[u64] {
    let width_ns = run.window_ns.max(1);
    let window = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(run.windows.len());
    run.windows.get(window(from_ns.div_ceil(width_ns))..window(until_ns / width_ns)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_stats::rng::SplitMix64;

    /// Windows of a rate round 100 that wanders by 10 %, with this correlation of neighbours.
    fn wandering(rng: &mut SplitMix64, windows: usize, rho: f64) -> Vec<f64> {
        let mut state = rng.normal();
        (0..windows)
            .map(|_| {
                state = rho * state + (1.0 - rho * rho).sqrt() * rng.normal();
                100.0 + 10.0 * state
            })
            .collect()
    }

    /// In how many of 400 visits of so many windows the start is left out, when its rate is `factor` of the others'.
    fn left_out_of_400(windows: usize, rho: f64, factor: f64) -> usize {
        let is_left_out = |seed: &u64| {
            let mut series = wandering(&mut SplitMix64::new(*seed), windows, rho);
            let (start, rest) = series.split_at_mut(windows / 5);
            start.iter_mut().for_each(|bytes| *bytes *= factor);
            differs(start, rest)
        };
        (0..400).filter(is_left_out).count()
    }

    #[test]
    fn a_start_is_left_out_where_it_differs_and_not_where_the_rate_wanders() {
        for (windows, rho) in
            [(40, 0.0), (40, 0.9), (60, 0.0), (60, 0.9), (60, 0.99), (300, 0.9), (300, 0.99)]
        {
            let cut = left_out_of_400(windows, rho, 1.0);
            assert!(cut <= 12, "{cut} of 400 at {rho} in {windows} windows, none of which is a warm-up");
        }
        for (windows, rho) in [(60, 0.0), (60, 0.5), (300, 0.9)] {
            let cut = left_out_of_400(windows, rho, 0.5);
            assert!(cut >= 360, "{cut} of 400 warm-ups at half the rate, {rho} in {windows} windows");
        }
    }

    #[test]
    fn a_burst_before_silence_is_no_warm_up() {
        let start = vec![100.0; 10];
        assert!(!differs(&start, &[vec![0.0; 39], vec![8.0]].concat()));
        assert!(differs(&start, &[50.0; 40]));
        assert!(!differs(&start, &[100.0; 40]) && !differs(&start, &[]) && !differs(&[], &start));
    }
}
