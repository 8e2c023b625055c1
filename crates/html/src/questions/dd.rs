//! The copies of `rdsk dd`: where the time of each run went, of one or several Records.

use super::Subject;
use super::parts::{joined, record_name};
use super::rows::{evidence_of_rows, rows};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_model::{CopyRun, Experiment};
use rdsk_report::{Unit, or_missing};
use rdsk_units::{Bytes, printable};

/// A part of a run: its name, and when it begins and ends in ns.
type Part = (&'static str, fn(&CopyRun) -> Option<(u64, u64)>);

/// The parts one after the other. Reads and writes alternate; their sums are drawn.
const PARTS: [Part; 6] = [
    ("in read(2)", |run| Some((0, run.read_ns?))),
    ("in write(2)", |run| Some((run.read_ns?, run.read_ns? + run.write_ns?))),
    ("elsewhere until the last of these returned", |run| {
        let calls = run.read_ns? + run.write_ns?;
        let flush_from = flush_from_ns(run);
        (flush_from > calls).then_some((calls, flush_from))
    }),
    ("flush that the operands ask for", |run| {
        (run.flush_ns > 0).then_some((flush_from_ns(run), run.to_return_ns))
    }),
    ("close", |run| (run.to_close_ns > run.to_return_ns).then_some((run.to_return_ns, run.to_close_ns))),
    ("flush until on disk", |run| {
        let stable_ns = run.to_stable_ns?;
        (stable_ns > run.to_close_ns).then_some((run.to_close_ns, stable_ns))
    }),
];

/// When the flush begins that the operands ask for, or would: it is the last call of the copy.
fn flush_from_ns(run: &CopyRun) -> u64 {
    run.to_return_ns.saturating_sub(run.flush_ns)
}

/// A run with its name, and the place of its result where there are several.
type NamedRun<'s> = (String, Option<usize>, &'s CopyRun);

fn runs<'s>(subjects: &[Subject<'s, '_>]) -> Vec<NamedRun<'s>> {
    let mut named = Vec::new();
    for (result, subject) in subjects.iter().enumerate() {
        let result = (subjects.len() > 1).then_some(result);
        let owner = record_name(subjects, subject).unwrap_or_default();
        let analysis = subject.analysis;
        for copy in &analysis.copies {
            let operands = joined(&owner, &printable(&copy.operands.join(" ")));
            let name = |run: &CopyRun| match copy.runs.len() {
                1 => operands.clone(),
                _ => format!("{operands}, run {}", run.round + 1),
            };
            named.extend(copy.runs.iter().map(|run| (name(run), result, run)));
        }
    }
    named
}

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let runs = runs(subjects);
    if runs.is_empty() {
        return Vec::new();
    }
    let longest =
        runs.iter().map(|(.., run)| run.to_stable_ns.unwrap_or(run.to_close_ns) as f64).reduce(f64::max);
    let unit = Unit::fit(&Unit::TIMES, longest);
    let part = |(kind, (name, times)): (usize, &Part)| {
        let bar = |(row, (_, result, run)): (usize, &NamedRun<'_>)| {
            let (from, to) = times(run)?;
            let point = Point {
                x: unit.scaled(to as f64),
                y: row as f64,
                from: unit.scaled(from as f64),
                interval: None,
            };
            Some((*result, point))
        };
        let series = move |(result, points): (Option<usize>, Vec<Point>)| {
            let owner =
                result.and_then(|result| record_name(subjects, &subjects[result])).unwrap_or_default();
            let look = result.map(|color| Look { color, style: kind });
            Series::new(joined(&owner, name), Shape::Bar { slot: 0, slots: 1 }, points).looking(look)
        };
        by_key(runs.iter().enumerate().filter_map(bar)).into_iter().map(series).collect::<Vec<_>>()
    };
    let cells: Vec<_> = rows(subjects, Experiment::Dd, |cell| cell.id.clone())
        .into_iter()
        .filter(|row| metrics::ran(row.cell))
        .collect();
    let row = |(name, _, run): &NamedRun<'_>| {
        let time = |ns: u64| unit.figure(ns as f64);
        vec![
            name.clone(),
            Bytes(run.written_bytes).approx(),
            or_missing(run.read_ns.map(time)),
            or_missing(run.write_ns.map(time)),
            time(run.flush_ns),
            time(run.to_return_ns),
            time(run.to_close_ns),
            or_missing(run.to_stable_ns.map(time)),
        ]
    };
    let heads = ["in read(2)", "in write(2)", "in the flush", "return", "close", "on disk"]
        .map(|head| format!("{head}, {}", unit.name));
    let plot = Plot::new(
        Axis::from_zero("time", unit.name),
        Axis::rows(runs.iter().map(|(name, ..)| name.clone())),
        PARTS.iter().enumerate().flat_map(part),
    );
    vec![Figure {
        id: "dd-time".into(),
        title: "Where the time of each copy went".into(),
        shows: "One bar for each run, from its first read until the data is on disk. Reads and writes alternate; the \
                first two parts are their sums."
            .into(),
        drawing: Drawing::of(plot, "No run was completed."),
        table: Table::new(["", "written"].map(String::from).into_iter().chain(heads), runs.iter().map(row)),
        evidence: evidence_of_rows(&cells),
    }]
}
