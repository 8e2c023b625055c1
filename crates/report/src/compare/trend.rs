//! The course of one cell over many runs as text: a curve, what changed since when, and a row for each run.

use crate::figures::{MISSING, Unit};
use crate::header::whole_seconds;
use crate::page::{Page, Tone};
use crate::spark;
use crate::style::Style;
use rdsk_analysis::metrics::whole;
use rdsk_analysis::words::plural;
use rdsk_compare::{Course, Metric, Shape};
use rdsk_units::percent;

/// Bars of the curve.
const CURVE_WIDTH: usize = 60;

/// The course as text; no line is wider than [`Style::width`].
pub fn course_text(course: &Course<'_>, style: Style) -> String {
    let mut page = Page::default();
    let (units, what): (&[Unit], _) = match course.metric {
        Metric::Rate => (&Unit::RATES, "rate"),
        Metric::P50 => (&Unit::TIMES, "median latency"),
        Metric::P99 => (&Unit::TIMES, "99th percentile of the latency"),
    };
    let runs = plural(course.points.len() as u64, "run");
    page.heading(format!("TREND: {} of {} over {runs}", what, course.id));
    let values: Vec<u64> = course.points.iter().map(|point| whole(point.value)).collect();
    page.line(format!("  {}", spark::line(&values, CURVE_WIDTH)));
    page.sentence(Tone::Plain, "  ", shape_words(course));
    let unit = Unit::fit(units, course.points.iter().map(|point| point.value));
    let rows: Vec<Vec<String>> = course
        .points
        .iter()
        .map(|point| {
            let interval = match (point.low, point.high) {
                (Some(low), Some(high)) => format!("{}–{}", unit.figure(low), unit.figure(high)),
                _ => MISSING.into(),
            };
            let label = point.run.label.clone().unwrap_or_default();
            vec![whole_seconds(&point.run.started_at), unit.figure(point.value), interval, label]
        })
        .collect();
    page.blank();
    page.table_with(
        &["run".to_owned(), unit.name.into(), "95 % within it".into(), "label".into()],
        &rows,
        &[3],
    );
    for (run, why) in &course.left_out {
        page.sentence(Tone::Plain, "  ", format!("{}: left out, {why}", whole_seconds(&run.started_at)));
    }
    page.render(style)
}

/// What changed, since when.
fn shape_words(course: &Course<'_>) -> String {
    let change = |factor: f64| {
        let (share, is_more) = if factor > 1.0 { (factor - 1.0, true) } else { (1.0 - factor, false) };
        let word = match (course.metric, is_more) {
            (Metric::Rate, true) => "faster",
            (Metric::Rate, false) => "slower",
            (_, true) => "longer",
            (_, false) => "shorter",
        };
        format!("{} {word}", percent(share))
    };
    let at = |index: usize| {
        let began = &course.points[index].run.started_at;
        began.split_once('T').map_or(began.as_str(), |(day, _)| day).to_owned()
    };
    match &course.shape {
        Shape::Steps(steps) => {
            let each: Vec<String> = steps
                .iter()
                .map(|(index, factor)| format!("since {} {}", at(*index), change(*factor)))
                .collect();
            format!("{} than before.", each.join(" than before; "))
        }
        Shape::Slope(factor) => {
            format!(
                "all the time a little: from {} to {} {} in all.",
                at(0),
                at(course.points.len() - 1),
                change(*factor)
            )
        }
        Shape::NothingSeen => "no change seen: what differs from run to run may be chance.".into(),
        Shape::TooFewRuns(needed) => {
            let last = course.points[course.points.len() - 1].value / course.points[0].value;
            format!(
                "the last run is {} than the first. Whether that is more than chance takes {needed} runs.",
                change(last)
            )
        }
    }
}
