//! One cell over many runs in the order of time: its figure in each, and whether its level changed. It names no cause.

use crate::compared::began;
use crate::figure::{Metric, figure, step_of};
use crate::matching::is_alike;
use crate::missing::why_of_nothing;
use rdsk_analysis::metrics::ran;
use rdsk_model::{CellRecord, Estimate, Record, VerdictCode};
use rdsk_stats::{ChangeOptions, MIN_PASSES, PassShape, change_points, pass_change};
use std::collections::BTreeSet;
use thiserror::Error;

/// Fewest runs of a course.
const MIN_RUNS: usize = 3;
/// The chance that a course which goes nowhere is said to change.
const FALSE_ALARM: f64 = 0.05;
/// More steps than this are no levels.
const MOST_STEPS: usize = 6;

/// The cell in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point<'a> {
    /// The run.
    pub run: &'a Record,
    /// The figure: bytes per second, or nanoseconds.
    pub value: f64,
    /// Lower end of its 95 % interval within the run; `None` where the run shows none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Who moved the bytes.
    pub verdict: Option<VerdictCode>,
}

/// How a course goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// It has levels: each from this point on, by this factor of the level before.
    Steps(Vec<(usize, f64)>),
    /// It rises or falls all the time, by this factor from the first to the last.
    Slope(f64),
    /// What changes may be chance.
    NothingSeen,
    /// So few runs show no change that is not obvious; this many do.
    TooFewRuns(usize),
}

/// A cell over many runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Course<'a> {
    /// The cell's id in the first run that has it.
    pub id: &'a str,
    /// Which figure.
    pub metric: Metric,
    /// The runs that have the cell, in the order of time.
    pub points: Vec<Point<'a>>,
    /// How it goes.
    pub shape: Shape,
    /// Runs without the cell, in which it asks something else, or in which its figure is that of nothing; with the reason.
    pub left_out: Vec<(&'a Record, LeftOut)>,
}

/// Why a run is no point of a course.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LeftOut {
    /// It was named before.
    #[error("it is the same run again")]
    Again,
    /// It has no such cell.
    #[error("it did not measure the test")]
    NotMeasured,
    /// Its cell is another one of the same name.
    #[error("the test does something else there")]
    AsksElse,
    /// The cell says nothing of the device, for this reason.
    #[error("{0}")]
    OfNothing(&'static str),
    /// The cell lacks the figure.
    #[error("it has no such figure")]
    NoFigure,
}

/// Why there is no course.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum CourseError {
    /// No run has the cell.
    #[error("no run has a test \"{cell}\"")]
    NoCell { cell: String, cells: Vec<String> },
    /// Too few runs have it.
    #[error("{runs} of the runs have that figure of the test \"{cell}\", and a trend needs {MIN_RUNS}")]
    TooFewRuns { cell: String, runs: usize },
}

/// The course of a cell, named by its id or by its id without the target.
///
/// # Errors
/// If fewer than three runs have it.
pub fn course<'a>(runs: &[&'a Record], cell: &str, metric: Metric) -> Result<Course<'a>, CourseError> {
    let mut in_time = runs.to_vec();
    in_time.sort_by_key(|run| (began(run), run.started_at.clone()));
    let named = |run: &'a Record| {
        run.cells
            .iter()
            .find(|candidate| ran(candidate) && (candidate.id == cell || candidate.name() == cell))
    };
    let first = in_time.iter().find_map(|run| Some((*run, named(run)?)));
    let Some((first_run, first_cell)) = first else {
        let cells = in_time
            .first()
            .map_or_else(Vec::new, |run| run.cells.iter().map(|cell| cell.id.clone()).collect());
        return Err(CourseError::NoCell { cell: cell.into(), cells });
    };
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    let mut run_ids = BTreeSet::new();
    for run in in_time {
        if !run_ids.insert(&run.id) {
            left_out.push((run, LeftOut::Again));
            continue;
        }
        match point(run, named(run), (first_run, first_cell), metric) {
            Ok(point) => points.push(point),
            Err(why) => left_out.push((run, why)),
        }
    }
    if points.len() < MIN_RUNS {
        return Err(CourseError::TooFewRuns { cell: cell.into(), runs: points.len() });
    }
    let shape = beyond(
        step_width(&points, metric),
        shape(&points.iter().map(|point| point.value.ln()).collect::<Vec<f64>>()),
    );
    Ok(Course { id: &first_cell.id, metric, points, shape, left_out })
}

fn point<'a>(
    run: &'a Record,
    cell: Option<&'a CellRecord>,
    first: (&Record, &CellRecord),
    metric: Metric,
) -> Result<Point<'a>, LeftOut> {
    let cell = cell.ok_or(LeftOut::NotMeasured)?;
    if !is_alike(first, (run, cell)) {
        return Err(LeftOut::AsksElse);
    }
    if let Some(why) = why_of_nothing(cell) {
        return Err(LeftOut::OfNothing(why));
    }
    let Estimate { mean, low, high } =
        figure(cell, metric).filter(|figure| figure.mean > 0.0).ok_or(LeftOut::NoFigure)?;
    let verdict = cell.verdict.as_ref().map(|verdict| verdict.code);
    Ok(Point { run, value: mean, low, high, verdict })
}

/// How much of a change the buckets may be that percentiles are read from, as a difference of logarithms: the widest of them.
fn step_width(points: &[Point<'_>], metric: Metric) -> f64 {
    if metric == Metric::Rate {
        return 0.0;
    }
    // The figures show the last nanosecond of a bucket, which ends with it.
    points.iter().map(|point| step_of(point.value).width()).fold(0.0, f64::max) * 1.01
}

/// The shape without what is no more than this: it is unknown whether that much has changed.
fn beyond(width: f64, shape: Shape) -> Shape {
    match shape {
        Shape::Steps(mut steps) => {
            steps.retain(|(_, factor)| factor.ln().abs() > width);
            if steps.is_empty() { Shape::NothingSeen } else { Shape::Steps(steps) }
        }
        Shape::Slope(factor) if factor.ln().abs() <= width => Shape::NothingSeen,
        shape => shape,
    }
}

/// The levels of the logarithms: by their ranks, else by Student's t, which fewer runs suffice for where the step is clear.
fn shape(logs: &[f64]) -> Shape {
    if logs.len() < MIN_PASSES {
        return Shape::TooFewRuns(MIN_PASSES);
    }
    let options = ChangeOptions { false_alarm: FALSE_ALARM / 2.0, min_samples: 2, most: MOST_STEPS };
    let steps: Vec<(usize, f64)> = change_points(logs, &options)
        .into_iter()
        .map(|step| (step.index, (step.after - step.before).exp()))
        .collect();
    let change = pass_change(logs, FALSE_ALARM / 2.0);
    match change.map(|change| (change.shape, change.by.exp())) {
        // A slope comes out of the ranks as a staircase.
        Some((PassShape::Trend, factor)) => Shape::Slope(factor),
        _ if !steps.is_empty() => Shape::Steps(steps),
        Some((PassShape::Step(index), factor)) => Shape::Steps(vec![(index, factor)]),
        None => Shape::NothingSeen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record, with_rates};
    use rdsk_stats::rng::SplitMix64;

    fn runs(rates: &[f64]) -> Vec<Record> {
        let run_of_day = |(day, rate): (usize, &f64)| {
            let started_at = format!("2026-03-{:02}T10:00:00Z", day + 1);
            let cells = vec![with_rates(cell("a"), &[*rate, rate * 1.01, rate * 0.99])];
            Record { id: format!("run {day}"), ..record(&started_at, cells) }
        };
        rates.iter().enumerate().map(run_of_day).collect()
    }

    fn shape_of(rates: &[f64]) -> Shape {
        let runs = runs(rates);
        let runs: Vec<&Record> = runs.iter().rev().collect();
        let course = course(&runs, "a", Metric::Rate).unwrap();
        assert!(course.points.windows(2).all(|pair| pair[0].run.started_at < pair[1].run.started_at));
        course.shape
    }

    fn noisy(levels: &[f64], seed: u64) -> Vec<f64> {
        let mut noise = SplitMix64::new(seed);
        levels.iter().map(|level| level * (1.0 + 0.01 * noise.normal())).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        for (before, after) in [(4, 4), (6, 6), (10, 10)] {
            let levels = [vec![100.0; before], vec![85.0; after]].concat();
            let drift = shape_of(&noisy(&levels, 3));
            let Shape::Steps(steps) = &drift else { panic!("{before}: {drift:?}") };
            assert!(steps.len() == 1 && steps[0].0 == before, "{steps:?}");
            assert!((steps[0].1 - 0.85).abs() < 0.02, "{steps:?}");
        }
    }

    #[test]
    fn noise_has_no_steps_and_seven_runs_are_too_few() {
        let alarms =
            (0..100).filter(|&seed| shape_of(&noisy(&[100.0; 12], seed)) != Shape::NothingSeen).count();
        assert!(alarms <= 8, "{alarms} of 100");
        assert_eq!(shape_of(&[100.0; 7]), Shape::TooFewRuns(8));
    }

    #[test]
    fn a_slow_fall_is_a_slope() {
        let levels: Vec<f64> = (0..12).map(|day| 100.0 - 2.0 * f64::from(day)).collect();
        let drift = shape_of(&noisy(&levels, 1));
        assert!(matches!(drift, Shape::Slope(factor) if (factor - 0.78).abs() < 0.05), "{drift:?}");
    }

    /// A sparse file is read ten times as fast as the disk below it, by no disk.
    #[test]
    fn runs_of_nothing_are_left_out_with_the_reason() {
        let mut course_runs = runs(&[100.0, 101.0, 99.0, 100.0, 1000.0, 1000.0, 1000.0, 1000.0]);
        let codes = [VerdictCode::Hole, VerdictCode::Incomplete, VerdictCode::Hole];
        for (run, code) in course_runs[4..].iter_mut().zip(codes) {
            run.cells[0].verdict.as_mut().unwrap().code = code;
        }
        course_runs[7].cells[0].verdict = None;
        course_runs[3].cells[0].verdict.as_mut().unwrap().code = VerdictCode::PageCache;
        let found_course = course(&course_runs.iter().collect::<Vec<_>>(), "a", Metric::Rate).unwrap();
        assert_eq!((found_course.points.len(), &found_course.shape), (4, &Shape::TooFewRuns(8)));
        let why: Vec<String> = found_course.left_out.iter().map(|(_, why)| why.to_string()).collect();
        let hole = "the test read unallocated blocks there, which no device answers";
        assert_eq!(why, [hole, "the test was cut off there", hole, "the test has no judgement there"]);
        let verdicts: Vec<_> = found_course.points.iter().map(|point| point.verdict).collect();
        let device = Some(VerdictCode::Device);
        assert_eq!(verdicts, [device, device, device, Some(VerdictCode::PageCache)]);
    }

    /// A median that goes from just below the edge of a bucket to just above it has not changed by as much as the buckets are wide.
    #[test]
    fn a_bucket_is_no_change_and_several_are() {
        let shape_of = |late_ns: u64| {
            let mut course_runs = runs(&[100.0; 12]);
            for (place, run) in course_runs.iter_mut().enumerate() {
                let ns = if place < 6 { 79_871 } else { late_ns };
                run.cells[0].result.latency_ns.as_mut().unwrap().p50 = Some(ns);
            }
            course(&course_runs.iter().collect::<Vec<_>>(), "a", Metric::P50).unwrap().shape
        };
        assert_eq!((shape_of(80_383), shape_of(79_359)), (Shape::NothingSeen, Shape::NothingSeen));
        let shown = shape_of(81_407);
        assert!(matches!(&shown, Shape::Steps(steps) if steps.len() == 1 && steps[0].0 == 6), "{shown:?}");
    }

    #[test]
    fn runs_without_the_cell_are_named() {
        let mut course_runs = runs(&[1.0, 2.0, 3.0, 4.0]);
        course_runs[1].cells[0].id = "b".into();
        course_runs[2].cells[0].workload.block_bytes = 512;
        let once: Vec<&Record> = course_runs.iter().collect();
        // The same runs named twice are no more runs.
        let course_runs = [&once[..], &once[..]].concat();
        let error = course(&course_runs, "a", Metric::Rate).unwrap_err();
        assert_eq!(error, CourseError::TooFewRuns { cell: "a".into(), runs: 2 });
        assert!(error.to_string().contains("2 of the runs"));
        let error = course(&course_runs, "x", Metric::Rate).unwrap_err();
        assert_eq!(error, CourseError::NoCell { cell: "x".into(), cells: vec!["a".into()] });
    }
}
