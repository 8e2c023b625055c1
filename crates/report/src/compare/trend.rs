//! The course of one cell over many runs as text: a curve, what changed since when, what differs between the runs beside the figure,
//! and a row for each run.

use crate::figures::{MISSING, Unit};
use crate::header::whole_seconds;
use crate::page::{Page, Tone};
use crate::spark;
use crate::style::Style;
use rdsk_analysis::metrics::whole;
use rdsk_analysis::words::plural;
use rdsk_compare::{Course, Difference, Metric, Point, Shape};
use rdsk_model::VerdictCode;
use rdsk_units::percent;

/// Bars of the curve.
const CURVE_WIDTH: usize = 60;

/// A smaller change is none: 0.1 %, the last digit that is shown.
const LEAST_CHANGE: f64 = 0.001;
/// Values of a fact that are named, each with how many runs have it.
const MOST_VALUES: usize = 6;

/// The course as text, with what differs between the runs of its points; no line is wider than [`Style::width`].
pub fn course_text(course: &Course<'_>, differences: &[Difference], style: Style) -> String {
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
    draw_runs(&mut page, course, Unit::fit(units, course.points.iter().map(|point| point.value)));
    for (run, why) in &course.left_out {
        page.sentence(Tone::Plain, "  ", format!("{}: left out, {why}", whole_seconds(&run.started_at)));
    }
    draw_differences(&mut page, course, differences);
    page.render(style)
}

/// A row for each run; with the verdicts where one is not `device`.
fn draw_runs(page: &mut Page, course: &Course<'_>, unit: Unit) {
    let are_told = course.points.iter().any(|point| point.verdict != Some(VerdictCode::Device));
    let verdict = |point: &Point<'_>| match point.verdict {
        Some(VerdictCode::Device) => String::new(),
        code => code.map_or("no judgement", VerdictCode::as_str).to_owned(),
    };
    let row = |point: &Point<'_>| {
        let interval = match (point.low, point.high) {
            (Some(low), Some(high)) => format!("{}–{}", unit.figure(low), unit.figure(high)),
            _ => MISSING.into(),
        };
        let figures = [whole_seconds(&point.run.started_at), unit.figure(point.value), interval];
        let verdict = are_told.then(|| verdict(point));
        figures.into_iter().chain(verdict).chain([point.run.label.clone().unwrap_or_default()]).collect()
    };
    let rows: Vec<Vec<String>> = course.points.iter().map(row).collect();
    let heads = ["run", unit.name, "95% within it"].into_iter();
    let heads: Vec<String> =
        heads.chain(are_told.then_some("verdict")).chain(["label"]).map(str::to_owned).collect();
    let in_words: &[usize] = if are_told { &[3, 4] } else { &[3] };
    page.blank();
    page.table_with(&heads, &rows, in_words);
}

/// What may be a reason for a change, or make the runs no course of one thing: another target, another kernel.
fn draw_differences(page: &mut Page, course: &Course<'_>, differences: &[Difference]) {
    // The labels stand beside the figures.
    let differences: Vec<&Difference> =
        differences.iter().filter(|difference| difference.what != "label").collect();
    if differences.is_empty() {
        return;
    }
    page.heading("WHAT DIFFERS BESIDE THE FIGURES");
    for difference in differences {
        page.sentence(
            Tone::Plain,
            format!("  {}: ", difference.what),
            values_in_time(course, &difference.values),
        );
    }
}

/// `6.1 in 3 runs | 7.0 in 2 runs since 2026-03-06`: each value with its runs, and where the values follow each other, since when.
fn values_in_time(course: &Course<'_>, values: &[Option<String>]) -> String {
    let mut value_runs: Vec<(&Option<String>, usize)> = Vec::new();
    for value in values {
        match value_runs.iter_mut().find(|(other, _)| *other == value) {
            Some((_, runs)) => *runs += 1,
            None => value_runs.push((value, 1)),
        }
    }
    let changes = values.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let follow_each_other = changes + 1 == value_runs.len();
    let words = |(place, (value, runs)): (usize, &(&Option<String>, usize))| {
        let first =
            values.iter().position(|other| other == *value).filter(|_| follow_each_other && place > 0);
        let since = first.map_or_else(String::new, |first| format!(" since {}", when(course, first)));
        let value = value.as_deref().unwrap_or(MISSING);
        format!("{value} in {}{since}", plural(*runs as u64, "run"))
    };
    let mut texts: Vec<String> = value_runs.iter().enumerate().take(MOST_VALUES).map(words).collect();
    if value_runs.len() > MOST_VALUES {
        texts.push(format!("and {} other values", value_runs.len() - MOST_VALUES));
    }
    texts.join(" | ")
}

/// When a run began: the day, and the time of day, as its row has it, where another run is of the same day.
fn when(course: &Course<'_>, place: usize) -> String {
    let began = &course.points[place].run.started_at;
    let runs = course.points.iter().filter(|point| day(&point.run.started_at) == day(began)).count();
    if runs > 1 { whole_seconds(began) } else { day(began).to_owned() }
}

fn day(began: &str) -> &str {
    began.split_once('T').map_or(began, |(day, _)| day)
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
    let at = |index: usize| when(course, index);
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
            let factor = course.points[course.points.len() - 1].value / course.points[0].value;
            let (last, alike, first) = match course.metric {
                Metric::Rate => ("the last run", "as fast as", "the first"),
                _ => ("the latency of the last run", "as long as", "that of the first"),
            };
            let how = if (factor - 1.0).abs() < LEAST_CHANGE {
                alike.to_owned()
            } else {
                format!("{} than", change(factor))
            };
            format!("{last} is {how} {first}. Whether anything changed takes {needed} runs.")
        }
    }
}
