//! The figures of a load: the latencies of its jobs, and what a promise on latency allows: reached rate and latency over the rate that
//! arrived.

use super::rows::rows;
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::promise::{Promised, Step};
use rdsk_model::Experiment;
use rdsk_report::{Unit, or_missing};

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let mut jobs = rows(subjects, Experiment::Load, |cell| cell.id.clone());
    jobs.retain(|row| rdsk_analysis::metrics::ran(row.cell));
    let searches: Vec<(&str, Promised)> = subjects
        .iter()
        .filter_map(|subject| Some((subject.name, Promised::of(subject.analysis)?)))
        .filter(|(_, promised)| !promised.steps.is_empty())
        .collect();
    let mut figures: Vec<Figure> = curve(&searches).into_iter().collect();
    figures.extend(percentiles::figure("load-latency", "Latency by percentile", &jobs));
    figures
}

/// Latency over the rate that arrived, a line for each result.
fn curve(searches: &[(&str, Promised)]) -> Option<Figure> {
    let (_, first) = searches.first()?;
    let name = first.promise.name();
    let steps = || searches.iter().flat_map(|(_, promised)| &promised.steps);
    let times: Vec<f64> = steps().filter_map(|step| step.p50_ns).map(|ns| ns as f64).collect();
    let time = Unit::fit(&Unit::TIMES, rdsk_stats::median(&times));
    let line = |(index, (result, promised)): (usize, &(&str, Promised)), style: usize| {
        let ns = |step: &Step| if style == 0 { step.held_ns } else { step.p50_ns };
        let point = |step: &Step| {
            Some(Point { x: step.offered_per_s, y: time.of(ns(step)? as f64), ..Point::default() })
        };
        let what = if style == 0 { name.clone() } else { "p50".to_owned() };
        let legend = if searches.len() > 1 { format!("{result}: {what}") } else { what };
        Series {
            name: legend.clone(),
            legend,
            look: Some(Look { color: index, style }),
            shape: Shape::Line,
            is_right: false,
            points: promised.steps.iter().filter_map(point).collect(),
            labels: Vec::new(),
        }
    };
    let series = (0..2).flat_map(|style| searches.iter().enumerate().map(move |search| (search, style)));
    let series: Vec<Series> = series.map(|(search, style)| line(search, style)).collect();
    let plot = Plot::new(
        Axis::from_zero("requests per second that arrived", ""),
        Axis::log("latency", time.name),
        series,
    );
    let most = rdsk_units::Nanos(first.promise.at_most_ns);
    let row = |result: &str, step: &Step| {
        vec![
            rdsk_units::printable(result),
            format!("{:.0}", step.offered_per_s),
            format!("{:.0}", step.reached_per_s),
            or_missing(step.p50_ns.map(|ns| format!("{:.3}", ns as f64 / 1e6))),
            or_missing(step.held_ns.map(|ns| format!("{:.3}", ns as f64 / 1e6))),
        ]
    };
    let rows =
        searches.iter().flat_map(|(result, promised)| promised.steps.iter().map(|step| row(result, step)));
    let heads =
        ["result".to_owned(), "offered/s".into(), "reached/s".into(), "p50 ms".into(), format!("{name} ms")];
    Some(Figure {
        id: "load-promise".into(),
        title: "Latency over offered rate".into(),
        shows: format!(
            "Each rate that was tried, in an open loop; {name} has to stay within {most}. Latencies count from the arrival."
        ),
        drawing: Drawing::Plot(plot),
        table: Table::new(heads, rows),
        evidence: Vec::new(),
    })
}
