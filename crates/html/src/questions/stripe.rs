//! Chunk and full stripe: what requests cost by size, and at boundaries of each candidate, of one or several Records.

use super::Subject;
use super::parts::{Group, evidence, joined, noun, size_ticks};
use super::rows::{NamedCell, Whose, rows};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::metrics;
use rdsk_analysis::stripe::{BoundaryStep, SizePoint, StripeResult};
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_report::Unit;
use rdsk_units::{Bytes, percent};

/// A cell with what was found; the owner is empty if there is no other.
struct Swept<'s> {
    owner: String,
    whose: Whose,
    cell: &'s CellRecord,
    result: &'s StripeResult,
}

/// Both figures: reads and writes of all results, and of one result for each of its targets.
pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let sweeps = swept(subjects);
    match subjects {
        [subject] => {
            let by_targets =
                by_key(sweeps.into_iter().map(|swept| (swept.cell.workload.targets.clone(), swept)));
            let of_targets = |(_, sweeps): (_, Vec<Swept<'_>>)| {
                both(&Group::of_cell(subject.analysis, sweeps[0].cell), &sweeps)
            };
            by_targets.into_iter().flat_map(of_targets).collect()
        }
        _ if sweeps.is_empty() => Vec::new(),
        _ => both(&Group::default(), &sweeps).into(),
    }
}

fn both(group: &Group, sweeps: &[Swept<'_>]) -> [Figure; 2] {
    [by_size(group, sweeps), by_offset(group, sweeps)]
}

/// The cells with their answers. Reads and writes have names of their own where there are both.
fn swept<'s>(subjects: &[Subject<'s, '_>]) -> Vec<Swept<'s>> {
    let rows = rows(subjects, Experiment::Stripe, |_| String::new());
    let has_both = noun(rows.iter().map(|row| row.cell)) == "I/O";
    let read = |row: NamedCell<'s>| {
        let result =
            subjects[row.whose.result()].analysis.stripe(row.cell).filter(|_| metrics::ran(row.cell))?;
        let owner = if subjects.len() > 1 { row.owner } else { String::new() };
        let direction = if has_both { row.cell.workload.op.as_str() } else { "" };
        let owner = [owner.as_str(), direction]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ");
        Some(Swept { owner, whose: row.whose, cell: row.cell, result })
    };
    rows.into_iter().filter_map(read).collect()
}

/// What was found, in a sentence for each.
fn answers(sweeps: &[Swept<'_>]) -> String {
    sweeps.iter().map(|swept| joined(&swept.owner, &answer(swept.result))).collect::<Vec<_>>().join(" ")
}

fn answer(result: &StripeResult) -> String {
    let sure = |confidence: f64| {
        if result.described.is_some() { String::new() } else { format!(" ({})", percent(confidence)) }
    };
    match (result.chunk(), result.stripe()) {
        (Some((chunk, chunk_confidence)), Some((stripe, stripe_confidence))) => {
            format!(
                "The chunk is {}{}, the full stripe {}{}.",
                Bytes(chunk),
                sure(chunk_confidence),
                Bytes(stripe),
                sure(stripe_confidence)
            )
        }
        (Some((chunk, chunk_confidence)), None) => {
            format!("The chunk is {}{}; the full stripe is not known.", Bytes(chunk), sure(chunk_confidence))
        }
        (None, _) => "No chunk was found.".into(),
    }
}

const DESCRIBED: &str = "The kernel describes the array, so no boundaries were looked for.";

/// Why there is nothing to draw of these.
fn why_not(sweeps: &[Swept<'_>], otherwise: &'static str) -> &'static str {
    if sweeps.iter().all(|swept| swept.result.described.is_some()) { DESCRIBED } else { otherwise }
}

/// A kind of line: its name, and what gives its points.
type Kind<'k, T> = (&'k str, &'k dyn Fn(&T) -> Option<Point>);

/// Two lines for each owner.
fn lines<'s, T: 's>(
    sweeps: &[Swept<'s>],
    points_of: impl Fn(&Swept<'s>) -> &'s [T],
    kinds: [Kind<'_, T>; 2],
) -> Vec<Series> {
    let of_swept = |swept: &Swept<'s>| {
        let has_both = noun(sweeps.iter().map(|swept| swept.cell)) == "I/O";
        let direction = if has_both && swept.cell.workload.op == Op::Write { 2 } else { 0 };
        [0, 1].map(|kind| {
            let (name, point) = kinds[kind];
            let points = points_of(swept).iter().filter_map(point).collect();
            let look = swept.whose.kind(direction + kind);
            Series::new(joined(&swept.owner, name), Shape::Line, points).looking(look)
        })
    };
    sweeps.iter().flat_map(of_swept).filter(|series| !series.points.is_empty()).collect()
}

fn by_size(group: &Group, sweeps: &[Swept<'_>]) -> Figure {
    let sizes = || sweeps.iter().flat_map(|swept| &swept.result.sizes);
    let costs = sizes().flat_map(|size| [size.aligned_median_ns, size.other_median_ns]).flatten();
    let unit = Unit::fit(&Unit::TIMES, costs);
    let has_chunk = sweeps.iter().all(|swept| swept.result.chunk().is_some());
    let aligned = if has_chunk { "full stripes" } else { "aligned requests" };
    let at = |size: &SizePoint, ns: Option<f64>| Some(Point::at(size.bytes as f64, unit.scaled(ns?)));
    let plot = Plot::new(
        Axis::log("size, from", "").with_ticks(size_ticks(sizes().map(|size| size.bytes))),
        Axis::log("median cost", unit.name),
        lines(
            sweeps,
            |swept| &swept.result.sizes,
            [
                (aligned, &|size| at(size, size.aligned_median_ns)),
                ("other requests", &|size| at(size, size.other_median_ns)),
            ],
        ),
    );
    let row = |owner: &str, size: &SizePoint| {
        vec![
            joined(owner, &Bytes(size.bytes).to_string()),
            size.aligned_count.to_string(),
            unit.figure_or_missing(size.aligned_median_ns),
            size.other_count.to_string(),
            unit.figure_or_missing(size.other_median_ns),
        ]
    };
    let rows = sweeps
        .iter()
        .flat_map(|swept| swept.result.sizes.iter().map(|size| row(&swept.owner, size)).collect::<Vec<_>>());
    let cost = format!("median, {}", unit.name);
    let heads = ["size, from", aligned, &cost, "others", &cost];
    Figure {
        id: group.id("stripe-size"),
        title: format!("Cost over size, {}s{}", noun(sweeps.iter().map(|swept| swept.cell)), group.title_end),
        shows: format!(
            "The median time of one request by its size, both axes logarithmic. {}",
            answers(sweeps)
        ),
        drawing: Drawing::of(plot, "No request of these sizes was measured."),
        table: Table::new(heads, rows),
        evidence: sweeps.iter().flat_map(reasons).collect(),
    }
}

fn by_offset(group: &Group, sweeps: &[Swept<'_>]) -> Figure {
    let steps = || sweeps.iter().flat_map(|swept| &swept.result.boundary_profile);
    let unit =
        Unit::fit(&Unit::TIMES, steps().flat_map(|step| [step.after_median_ns, step.across_median_ns]));
    let at = |step: &BoundaryStep, ns: f64| Some(Point::at(step.boundary_bytes as f64, unit.scaled(ns)));
    let plot = Plot::new(
        Axis::log("odd multiples of", "").with_ticks(size_ticks(steps().map(|step| step.boundary_bytes))),
        Axis::from_zero("median cost", unit.name),
        lines(
            sweeps,
            |swept| &swept.result.boundary_profile,
            [
                ("starts at the boundary", &|step| at(step, step.after_median_ns)),
                ("crosses the boundary", &|step| at(step, step.across_median_ns)),
            ],
        ),
    );
    let row = |swept: &Swept<'_>, step: &BoundaryStep| {
        let is_chunk = swept.result.chunk().is_some_and(|(chunk, _)| chunk == step.boundary_bytes);
        vec![
            joined(&swept.owner, &Bytes(step.boundary_bytes).to_string()),
            step.count.to_string(),
            unit.figure(step.after_median_ns),
            unit.figure(step.across_median_ns),
            if is_chunk { "the chunk".into() } else { String::new() },
        ]
    };
    let rows = sweeps.iter().flat_map(|swept| {
        swept.result.boundary_profile.iter().map(|step| row(swept, step)).collect::<Vec<_>>()
    });
    let (starts, crosses) = (format!("starts there, {}", unit.name), format!("crosses it, {}", unit.name));
    let heads = ["odd multiples of", "requests", &starts, &crosses, ""];
    Figure {
        id: group.id("stripe-offset"),
        title: format!(
            "Cost over offset, {}s{}",
            noun(sweeps.iter().map(|swept| swept.cell)),
            group.title_end
        ),
        shows: format!(
            "The median time of small requests at odd multiples of each size: where it steps, two neighbours lie on different \
             members. {}",
            answers(sweeps)
        ),
        drawing: Drawing::of(plot, why_not(sweeps, "There were too few requests around boundaries.")),
        table: Table::new(heads, rows),
        evidence: sweeps.iter().flat_map(reasons).collect(),
    }
}

/// What the answer rests on.
fn reasons(swept: &Swept<'_>) -> Vec<String> {
    let Swept { owner, cell, result, .. } = swept;
    let mut lines = evidence([(joined(owner, cell.name()), *cell)]);
    let how = if result.described.is_some() { "Kernel" } else { "Timed" };
    let reasons = result.evidence.iter().map(|reason| format!("{how}: {reason}."));
    lines.extend(reasons.map(|line| rdsk_units::printable(&joined(owner, &line))));
    lines
}
