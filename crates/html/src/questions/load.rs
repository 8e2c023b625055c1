//! The figures of a load: the latencies of its jobs, and what a promise on latency allows: reached rate and latency over the rate that
//! arrived.

use super::rows::{NamedCell, rows};
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::promise::{Promised, Step};
use rdsk_model::{CellRecord, Experiment, JobResult, KindResult, LatencyWindow};
use rdsk_report::{Unit, or_missing};

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let mut jobs = rows(subjects, Experiment::Load, label);
    jobs.retain(|row| rdsk_analysis::metrics::ran(row.cell));
    let searches: Vec<(&str, Promised)> = subjects
        .iter()
        .filter_map(|subject| Some((subject.name, Promised::of(subject.analysis)?)))
        .filter(|(_, promised)| !promised.steps.is_empty())
        .collect();
    let mut figures: Vec<Figure> = curve(&searches).into_iter().collect();
    if searches.is_empty() {
        figures.extend(by_time(&jobs, subjects.len() > 1));
    }
    figures.extend(percentiles::figure("load-latency", "Latency by percentile", &jobs));
    figures
}

/// What a load is: the rate that it was offered while the highest one was looked for, else its number.
fn label(cell: &CellRecord) -> String {
    match cell.workload.jobs.as_slice() {
        [job] if cell.id.split('/').count() > 2 => {
            job.offered_per_s().map_or_else(|| cell.id.clone(), |rate| format!("{rate:.0}/s offered"))
        }
        _ => cell.id.clone(),
    }
}

/// Latencies of each kind of request over the time of its job; `None` where no window has a median.
fn by_time(rows: &[NamedCell<'_>], has_several: bool) -> Option<Figure> {
    let lines: Vec<(usize, String, &KindResult)> = rows
        .iter()
        .enumerate()
        .flat_map(|(index, row)| {
            let kinds = row.cell.result.jobs.iter().flat_map(named_kinds);
            let name = move |kind: &str| {
                if has_several { format!("{}, {kind}", row.name()) } else { kind.to_owned() }
            };
            kinds.map(move |(kind, result)| (index, name(&kind), result))
        })
        .collect();
    let windows = || lines.iter().flat_map(|(.., kind)| &kind.windows);
    let times: Vec<f64> = windows().filter_map(|window| Some(window.p50_ns? as f64)).collect();
    let time = Unit::fit(&Unit::TIMES, rdsk_stats::median(&times));
    let point = |window: &LatencyWindow| {
        let median = time.scaled(window.p50_ns? as f64);
        let seconds = (window.begin_ns + window.lasts_ns / 2) as f64 / 1e9;
        let most = window.p99_ns.or(window.max_ns).map_or(median, |ns| time.scaled(ns as f64));
        Some(Point { x: seconds, y: median, interval: Some((median, most)), ..Point::default() })
    };
    let series = lines.iter().enumerate().map(|(style, (index, name, kind))| {
        let points = kind.windows.iter().filter_map(point).collect();
        let look = if has_several { Look { color: *index, style } } else { Look { color: style, style: 0 } };
        Series::new(name.as_str(), Shape::Course, points).looking(Some(look))
    });
    let plot = Plot::new(Axis::from_zero("time of the load", "s"), Axis::log("latency", time.name), series);
    let row = |name: &str, window: &LatencyWindow| {
        let cell = |ns: Option<u64>| or_missing(ns.map(|ns| format!("{:.3}", ns as f64 / 1e6)));
        let begin = format!("{:.2}", window.begin_ns as f64 / 1e9);
        let ops = window.ops.to_string();
        vec![
            rdsk_units::printable(name),
            begin,
            ops,
            cell(window.p50_ns),
            cell(window.p99_ns),
            cell(window.max_ns),
        ]
    };
    let rows =
        lines.iter().flat_map(|(_, name, kind)| kind.windows.iter().map(move |window| row(name, window)));
    let table = Table::new(["requests", "from s", "completed", "p50 ms", "p99 ms", "max ms"], rows);
    (!times.is_empty()).then(|| Figure {
        id: "load-by-time".into(),
        title: "Latency over time".into(),
        shows: "Latencies of the requests that completed in each window: the line is their median, the band reaches up to \
                their p99, or to the longest where a window has too few."
            .into(),
        drawing: Drawing::Plot(plot),
        table,
        evidence: Vec::new(),
    })
}

/// The kinds of requests of a job with their names.
fn named_kinds(job: &JobResult) -> impl Iterator<Item = (String, &KindResult)> {
    job.kinds().map(|(word, kind)| (format!("{} {word}", job.name), kind))
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
            Some(Point { x: step.offered_per_s, y: time.scaled(ns(step)? as f64), ..Point::default() })
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
            step.unsent.to_string(),
        ]
    };
    let rows =
        searches.iter().flat_map(|(result, promised)| promised.steps.iter().map(|step| row(result, step)));
    let held = format!("{name} ms");
    let heads =
        ["result", "offered/s", "reached/s", "p50 ms", held.as_str(), "never sent"].map(str::to_owned);
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
