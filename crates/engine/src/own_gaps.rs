//! Cuts the time in which this process did not run out of what a visit counted: whole windows in which nothing completed, and the times
//! that they lie before. It reads no clock and issues nothing.

use crate::job::Run;
use crate::job_run::JobRun;
use crate::watchdog::Gap;
use rdsk_model::OwnGap;

/// Cuts the gaps out of a visit that began at `begin_ns`, whose `fdatasync` at the end, if any, ended `run.elapsed_ns` later. What completed
/// in the first and in the last window of a gap stays, with its time.
///
/// A worked example: windows of 1 s, and the process was stopped from 2.3 s to 5.4 s of a visit of 8 s. The windows 3 (3 s to 4 s) and 4 lie
/// within the gap, and nothing completed in them: they are cut. A stream that ended at 8 s ended at 6 s, the visit took 6 s, and 2 s are
/// left out; the gap stands at 2.3 s and lasts 3.1 s. Windows 2 and 5, which lie in it in part, stay whole and look slow.
///
/// Of a visit with a rate that was offered only jobs without one are cut: what was due meanwhile is done afterwards, and
/// its time belongs to it.
pub(crate) fn cut_out(run: &mut Run, begin_ns: u64, gaps: &[Gap]) {
    let gaps: Vec<(u64, u64, u64)> = gaps
        .iter()
        .map(|gap| {
            (gap.begin_ns.saturating_sub(begin_ns), gap.end_ns.saturating_sub(begin_ns), gap.asleep_ns)
        })
        .collect();
    let width_ns = run.window_ns.max(1);
    let is_cut = |(index, &bytes): (u64, &u64)| {
        let (from_ns, until_ns) = (index * width_ns, (index + 1) * width_ns);
        bytes == 0 && gaps.iter().any(|&(begin_ns, end_ns, _)| begin_ns <= from_ns && until_ns <= end_ns)
    };
    let paused: Vec<bool> = (0..).zip(&run.windows).map(is_cut).collect();
    let cut =
        if run.jobs.iter().any(JobRun::is_offered) { vec![false; paused.len()] } else { paused.clone() };
    // A time of the visit without what is cut before it.
    let without = |at_ns: u64| {
        let cut = (0..).zip(&cut).filter(|&(_, &is_cut)| is_cut);
        let before = cut.map(|(index, _): (u64, _)| at_ns.saturating_sub(index * width_ns).min(width_ns));
        at_ns - before.sum::<u64>()
    };
    let flushing_ns = run.elapsed_ns - run.to_return_ns;
    let in_flush = |&(begin_ns, end_ns, _): &(u64, u64, u64)| {
        end_ns.min(run.elapsed_ns).saturating_sub(begin_ns.max(run.to_return_ns))
    };
    let in_flush_ns: u64 = gaps.iter().map(in_flush).sum();
    let gap = |&(begin_ns, end_ns, asleep_ns): &(u64, u64, u64)| OwnGap {
        at_ns: without(begin_ns),
        lasts_ns: end_ns - begin_ns + asleep_ns,
    };
    run.gaps = gaps.iter().map(gap).collect();
    for stream in &mut run.streams {
        (stream.start_ns, stream.end_ns) = (without(stream.start_ns), without(stream.end_ns));
    }
    for job in run.jobs.iter_mut().filter(|job| !job.is_offered()) {
        // Its time begins after its delay and the ramp.
        let from_ns = job.from_ns.unwrap_or(begin_ns).saturating_sub(begin_ns);
        let of_job = |ns: u64| ns.saturating_sub(from_ns).min(job.elapsed_ns);
        let pauses = (0..)
            .zip(&paused)
            .filter(|&(_, &is_paused)| is_paused)
            .map(|(index, _): (u64, _)| of_job(index * width_ns)..of_job((index + 1) * width_ns));
        job.left_out = pauses.filter(|pause| pause.start < pause.end).collect();
        job.elapsed_ns = job.without_pauses(job.elapsed_ns);
    }
    if let Some(warm_up) = &mut run.warm_up {
        warm_up.until_ns = without(warm_up.until_ns);
    }
    let whole_ns = run.elapsed_ns;
    run.to_return_ns = without(run.to_return_ns);
    run.elapsed_ns = run.to_return_ns + flushing_ns.saturating_sub(in_flush_ns);
    run.left_out_ns = whole_ns - run.elapsed_ns;
    let mut kept = cut.iter();
    run.windows.retain(|_| kept.next() == Some(&false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Ended, WarmUp};
    use rdsk_model::{EngineKind, StreamResult};
    use rdsk_stats::Histogram;

    /// A visit of windows of 50 ns that began at 1000 and returned at the end of the last one; its flush took 7 ns more.
    fn run(windows: &[u64]) -> Run {
        let to_return_ns = 50 * windows.len() as u64;
        let bytes = windows.iter().sum();
        Run {
            elapsed_ns: to_return_ns + 7,
            to_return_ns,
            asked_bytes: bytes,
            bytes,
            ops: 1,
            warm_up: Some(WarmUp { until_ns: 100, bytes: 0, ops: 0, histogram: Histogram::new() }),
            windows: windows.to_vec(),
            window_ns: 50,
            streams: vec![StreamResult { start_ns: 0, end_ns: to_return_ns, ..StreamResult::default() }],
            ..Run::without_io(Ended::Complete, EngineKind::Sync)
        }
    }

    fn gap(begin_ns: u64, end_ns: u64) -> Gap {
        Gap { begin_ns: 1000 + begin_ns, end_ns: 1000 + end_ns, asleep_ns: 0 }
    }

    #[test]
    fn the_windows_of_a_stop_go_and_those_around_it_stay() {
        let mut run = run(&[9, 9, 9, 4, 0, 0, 0, 2, 9, 0, 9]);
        cut_out(&mut run, 1000, &[gap(170, 360)]);
        assert_eq!(run.windows, [9, 9, 9, 4, 2, 9, 0, 9], "what the device did not do elsewhere stays");
        assert_eq!((run.to_return_ns, run.elapsed_ns, run.left_out_ns), (400, 407, 150));
        assert_eq!(run.gaps, [OwnGap { at_ns: 170, lasts_ns: 190 }]);
        assert_eq!((run.streams[0].start_ns, run.streams[0].end_ns), (0, 400));
        assert_eq!(run.warm_up.unwrap().until_ns, 100);
    }

    #[test]
    fn a_stop_before_the_warm_up_is_over_makes_it_shorter() {
        let mut run = run(&[9, 0, 9, 9]);
        cut_out(&mut run, 1000, &[gap(40, 110)]);
        assert_eq!((run.windows.len(), run.to_return_ns, run.warm_up.unwrap().until_ns), (3, 150, 50));
    }

    #[test]
    fn a_stop_in_the_flush_and_sleep_are_left_out() {
        let mut slept = run(&[9, 9]);
        cut_out(&mut slept, 1000, &[Gap { asleep_ns: 5000, ..gap(60, 61) }, gap(103, 200)]);
        assert_eq!(
            (slept.windows.as_slice(), slept.to_return_ns, slept.elapsed_ns),
            ([9, 9].as_slice(), 100, 103)
        );
        assert_eq!(slept.gaps.iter().map(|gap| gap.lasts_ns).collect::<Vec<_>>(), [5001, 97]);
    }

    #[test]
    fn the_time_of_a_job_is_cut_as_that_of_its_visit_is_and_a_rate_keeps_it() {
        let with_jobs = || Run {
            warm_up: None,
            jobs: vec![JobRun { elapsed_ns: 390, ..JobRun::default() }],
            ..run(&[9, 9, 9, 4, 0, 0, 0, 2])
        };
        let mut closed = with_jobs();
        cut_out(&mut closed, 1000, &[gap(170, 360)]);
        assert_eq!((closed.jobs[0].elapsed_ns, closed.to_return_ns), (240, 250), "150 ns of a pause");
        let at = [0, 200, 250, 350, 390].map(|at_ns| closed.jobs[0].without_pauses(at_ns));
        assert_eq!(at, [0, 200, 200, 200, 240]);
        // A job that began after 250 ns lost half of the pause, and one that began after it nothing.
        let mut late = with_jobs();
        late.jobs = [1250, 1350]
            .map(|from_ns| JobRun { from_ns: Some(from_ns), elapsed_ns: 150, ..JobRun::default() })
            .into();
        cut_out(&mut late, 1000, &[gap(170, 360)]);
        assert_eq!((late.jobs[0].elapsed_ns, late.jobs[1].elapsed_ns), (50, 150));
        let mut offered = with_jobs();
        offered.jobs[0].over_ns = 1390;
        cut_out(&mut offered, 1000, &[gap(170, 360)]);
        assert_eq!((offered.jobs[0].elapsed_ns, offered.to_return_ns, offered.left_out_ns), (390, 400, 0));
        assert_eq!(offered.gaps, [OwnGap { at_ns: 170, lasts_ns: 190 }]);
    }

    /// Others ran, and only the watchdog's thread waited.
    #[test]
    fn what_completed_in_a_gap_keeps_its_time() {
        let mut busy = run(&[9, 9, 9, 9]);
        cut_out(&mut busy, 1000, &[gap(0, 200)]);
        assert_eq!((busy.windows.len(), busy.to_return_ns), (4, 200));
    }
}
