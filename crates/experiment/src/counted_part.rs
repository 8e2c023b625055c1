//! The part of a visit that counts: that in which all streams ran, without the ramp before it and the end after it; and of a cell's first
//! visit without the warm-up, its start, left out of rate and latencies alike where it was different. The engine keeps the first fifth
//! apart; afterwards it is decided here whether that is left out. Pure computation.

use rdsk_engine::{Run, WarmUp};
use rdsk_model::{Cell, Extent, Overlap, StreamResult};

/// The windows that lie wholly in the overlap, as indices into the run's list, without the time of one I/O at its start: an
/// I/O counts when it completes, so until the last stream has completed its first one, the windows miss what is in flight.
pub(crate) fn windows_of(run: &Run, overlap: &Overlap) -> std::ops::Range<usize> {
    let width_ns = run.window_ns.max(1);
    let end = position(run, overlap.end_ns / width_ns);
    let settled = position(run, overlap.start_ns.saturating_add(mean_latency_ns(run)).div_ceil(width_ns));
    // An overlap that is hardly longer than one I/O has no steady part.
    let from = if settled < end { settled } else { position(run, overlap.start_ns.div_ceil(width_ns)) };
    from..end.max(from)
}

fn position(run: &Run, window: u64) -> usize {
    usize::try_from(window).unwrap_or(usize::MAX).min(run.windows.len())
}

fn mean_latency_ns(run: &Run) -> u64 {
    u64::try_from(run.latency_sum_ns / u128::from(run.ops.max(1))).unwrap_or(u64::MAX)
}

/// Whether all streams ran for most of the time of a run, so that the whole run may replace an overlap that is too short
/// for windows.
pub(crate) fn is_most(run: &Run, overlap: &Overlap) -> bool {
    (overlap.end_ns - overlap.start_ns) as f64 >= MOST_OF_TIME * run.elapsed_ns as f64
}

/// Windows that an overlap needs for a rate of its own.
const MIN_WINDOWS: u64 = 4;

/// The share that counts as most of the time.
const MOST_OF_TIME: f64 = 0.8;

/// The overlap of a run of several streams. It excludes streams that failed and starts when the last of them has ended,
/// because the windows would count their bytes too. It needs at least two streams that did not fail.
pub(crate) fn overlap_of(run: &Run) -> Option<Overlap> {
    let has_failed = |index: u32| run.errors.iter().any(|error| error.stream == Some(index));
    let (failed, whole): (Vec<_>, Vec<_>) = run.streams.iter().partition(|stream| has_failed(stream.index));
    let whole: Vec<_> = whole.into_iter().filter(|stream| stream.ops > 0).collect();
    if whole.len() < 2 {
        return None;
    }
    let all_started_ns = whole.iter().map(|stream| stream.start_ns).max()?;
    let first_ended_ns = whole.iter().map(|stream| stream.end_ns).min()?;
    let end_ns = first_ended_ns.max(all_started_ns);
    let all_failed_ns = failed.iter().map(|stream| stream.end_ns).max().unwrap_or(0);
    let start_ns = all_started_ns.max(all_failed_ns).min(end_ns);
    let overlap = Overlap { start_ns, end_ns, bytes: 0, covered_ns: 0 };
    let spread_ns = all_started_ns - whole.iter().map(|stream| stream.start_ns).min()?
        + (whole.iter().map(|stream| stream.end_ns).max()? - first_ended_ns);
    let whole_time = failed.is_empty()
        && spread_ns <= mean_latency_ns(run).saturating_mul(2).max((end_ns - start_ns) / SHORT_SPREAD)
        && run.window_ns <= end_ns - start_ns;
    Some(if whole_time { of_whole_streams(&whole, overlap) } else { of_windows(run, overlap) })
}

/// Starts and ends that differ by at most this part of the overlap, or by two I/Os, are no ramp.
const SHORT_SPREAD: u64 = 20;

/// Streams that ran together from first to last: the sum of the rates of their targets, each over the time from its first
/// start to its last completion, so that a device that was never idle does not look faster than it is. It needs no
/// windows, which miss what is in flight at their ends: ten streams that take turns, or a throttle that admits the I/O of a
/// tenth of a second at once, complete in bursts, and it is random whether one more burst falls into the windows.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a time between those of the targets, positive and far below 2^53"
)]
fn of_whole_streams(streams: &[&StreamResult], overlap: Overlap) -> Overlap {
    let bytes: u64 = streams.iter().map(|stream| stream.bytes).sum();
    let mut targets: Vec<u32> = streams.iter().map(|stream| stream.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let bytes_per_ns: f64 = targets
        .iter()
        .map(|&target| {
            let its = || streams.iter().filter(|stream| stream.target == target);
            let first_ns = its().map(|stream| stream.start_ns).min().unwrap_or(0);
            let last_ns = its().map(|stream| stream.end_ns).max().unwrap_or(0);
            let bytes: u64 = its().map(|stream| stream.bytes).sum();
            bytes as f64 / last_ns.saturating_sub(first_ns).max(1) as f64
        })
        .sum();
    Overlap { bytes, covered_ns: (bytes as f64 / bytes_per_ns).round() as u64, ..overlap }
}

/// Streams that started or ended one after the other: what the windows count, up to and including the completion that ended
/// the first of them. The overlap starts after a completion, so it must end with one.
fn of_windows(run: &Run, overlap: Overlap) -> Overlap {
    let windows = windows_of(run, &overlap);
    let width_ns = run.window_ns.max(1);
    // The whole window in which the first stream ended is counted, so it must be a small part.
    if windows.is_empty() || overlap.end_ns - overlap.start_ns < MIN_WINDOWS * width_ns {
        return overlap;
    }
    let end = position(run, overlap.end_ns.div_ceil(width_ns)).max(windows.end);
    let end_ns = (end as u64 * width_ns).min(run.elapsed_ns.max(overlap.end_ns));
    let covered_ns = end_ns.saturating_sub(windows.start as u64 * width_ns);
    Overlap { bytes: run.windows[windows.start..end].iter().sum(), covered_ns, ..overlap }
}

/// The part of the first visit that may be left out as its warm-up: a fifth.
const DIVISOR: u64 = 5;

/// From the half-width of Student's 95 % interval of the mean of four parts to the distance that 99 % of single ones keep from
/// it: √5 · 5.84 / 3.18, from the quantiles of t with three degrees of freedom.
const ODD: f64 = 4.1;

/// How much of the start of a visit of `run_ns`, of which the cell had some before, is kept apart: the ramp of a load; else whole windows,
/// at most a fifth of it. Only the first visit of a timed cell has a warm-up: a pass counts as a whole, and every sample starts anew.
pub(crate) fn candidate_ns(cell: &Cell, visits_before: usize, run_ns: u64, window_ns: u64) -> u64 {
    if visits_before == 0 && ramp_ns(cell) > 0 {
        return ramp_ns(cell);
    }
    // The jobs of a load are judged by all that they did after it.
    let may_have_one = cell.extent == Extent::Timed && visits_before == 0 && cell.workload.jobs.is_empty();
    if may_have_one { run_ns / DIVISOR / window_ns.max(1) * window_ns } else { 0 }
}

/// The ramp of a load, which all of its jobs have; 0 without one.
pub(crate) fn ramp_ns(cell: &Cell) -> u64 {
    cell.workload.jobs.first().map_or(0, |job| job.ramp_ns)
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
    use rdsk_engine::Ended;
    use rdsk_model::{EngineKind, IoError, StreamResult};
    use rdsk_stats::rng::SplitMix64;

    const MS: u64 = 1_000_000;

    /// Streams with start and end in ms, windows of 10 ms and 100 bytes, I/Os of `latency_ms`.
    fn run(streams: &[(u64, u64)], failed: &[u32], windows: usize, latency_ms: u64) -> Run {
        let stream = |(index, &(start, end)): (usize, &(u64, u64))| StreamResult {
            index: u32::try_from(index).unwrap(),
            target: 0,
            start_ns: start * MS,
            end_ns: end * MS,
            bytes: 1000,
            ops: 10,
            active_ns: None,
        };
        let error = |&stream: &u32| IoError {
            target: 0,
            stream: Some(stream),
            offset_bytes: 0,
            errno: 5,
            message: "Input/output error".into(),
        };
        let ops = 10 * streams.len() as u64;
        Run {
            elapsed_ns: windows as u64 * 10 * MS,
            to_return_ns: windows as u64 * 10 * MS,
            asked_bytes: ops * 100,
            bytes: ops * 100,
            ops,
            latency_sum_ns: u128::from(ops * latency_ms * MS),
            windows: vec![100; windows],
            window_ns: 10 * MS,
            streams: streams.iter().enumerate().map(stream).collect(),
            errors: failed.iter().map(error).collect(),
            ..Run::without_io(Ended::OutOfTime, EngineKind::Sync)
        }
    }

    #[test]
    fn from_the_last_start_to_the_first_end() {
        let overlap = overlap_of(&run(&[(0, 100), (20, 100), (41, 88)], &[], 10, 0)).unwrap();
        assert_eq!((overlap.start_ns, overlap.end_ns), (41 * MS, 88 * MS));
        // The windows from 50 to 80 ms lie wholly in it; the one from 80 holds what ended the first.
        assert_eq!((overlap.covered_ns, overlap.bytes), (40 * MS, 400));
        assert_eq!(windows_of(&run(&[(0, 100), (41, 88)], &[], 10, 0), &overlap), 5..8);
    }

    #[test]
    fn the_time_of_the_first_io_is_left_out() {
        let staggered = [(0, 100), (20, 100)];
        let overlap = overlap_of(&run(&staggered, &[], 10, 5)).unwrap();
        assert_eq!((overlap.start_ns, overlap.covered_ns, overlap.bytes), (20 * MS, 70 * MS, 700));
        let long = Overlap { start_ns: 20 * MS, end_ns: 100 * MS, bytes: 0, covered_ns: 0 };
        assert_eq!(windows_of(&run(&staggered, &[], 10, 85), &long), 2..10, "nothing would be left");
    }

    #[test]
    fn a_stream_that_failed_is_no_part_of_it() {
        let overlap = overlap_of(&run(&[(0, 100), (10, 32), (20, 90)], &[1], 10, 0)).unwrap();
        assert_eq!((overlap.start_ns, overlap.end_ns, overlap.covered_ns), (32 * MS, 90 * MS, 50 * MS));
        assert_eq!(overlap_of(&run(&[(0, 100), (0, 30)], &[1], 10, 0)), None);
    }

    #[test]
    fn streams_that_never_ran_together_have_none_of_it() {
        let overlap = overlap_of(&run(&[(0, 20), (50, 100)], &[], 10, 0)).unwrap();
        assert_eq!((overlap.start_ns, overlap.covered_ns, overlap.bytes), (50 * MS, 0, 0));
    }

    /// Streams in lockstep, an I/O of 30 ms each: the windows between would hold two bursts of three, or all.
    #[test]
    fn streams_that_ran_together_count_whole() {
        let mut together = run(&[(0, 90), (0, 90), (0, 89)], &[], 9, 30);
        together.windows = vec![0, 0, 300, 0, 0, 300, 0, 0, 300];
        for stream in &mut together.streams {
            (stream.bytes, stream.ops) = (300, 3);
        }
        let overlap = overlap_of(&together).unwrap();
        assert_eq!((overlap.bytes, overlap.covered_ns), (900, 90 * MS));
        // Two targets, one of which ended later: 600 bytes in 90 ms and 300 in 60.
        together.streams[1].target = 1;
        (together.streams[1].end_ns, together.latency_sum_ns) = (60 * MS, u128::from(together.ops * 30 * MS));
        let overlap = overlap_of(&together).unwrap();
        assert_eq!((overlap.bytes, overlap.covered_ns), (900, 77_142_857));
    }

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

    /// In how many of 400 visits with `windows` windows the start is left out, when its rate is `factor` of the others'.
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
