//! Chunk and full stripe: what requests cost by size, and at boundaries of each candidate.

use super::parts::{evidence, on_target, ran, size_ticks, targets_slug};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::Analysis;
use rdsk_analysis::stripe::StripeResult;
use rdsk_model::{CellRecord, Experiment};
use rdsk_report::{Unit, or_missing};
use rdsk_units::{Bytes, percent};

pub(super) fn figures(analysis: &Analysis<'_>) -> Vec<Figure> {
    let cells = ran(analysis, Experiment::Stripe).filter_map(|cell| Some((cell, analysis.stripe(cell)?)));
    cells
        .flat_map(|(cell, result)| [by_size(analysis, cell, result), by_offset(analysis, cell, result)])
        .collect()
}

/// What was found, in a sentence.
fn answer(result: &StripeResult) -> String {
    let sure = |confidence: f64| {
        if result.counted.is_some() { String::new() } else { format!(" ({})", percent(confidence)) }
    };
    match (result.chunk(), result.stripe()) {
        (Some((chunk, one)), Some((stripe, other))) => {
            format!(
                "The chunk is {}{}, the full stripe {}{}.",
                Bytes(chunk),
                sure(one),
                Bytes(stripe),
                sure(other)
            )
        }
        (Some((chunk, one)), None) => {
            format!("The chunk is {}{}; the full stripe is not known.", Bytes(chunk), sure(one))
        }
        (None, _) => "No chunk was found.".into(),
    }
}

const COUNTED: &str = "The members' counters showed the geometry before latencies were needed, so none were taken over sizes and offsets.";

fn by_size(analysis: &Analysis<'_>, cell: &CellRecord, result: &StripeResult) -> Figure {
    let sizes = &result.answer.sizes;
    let all = sizes.iter().flat_map(|size| [size.aligned_median_ns, size.other_median_ns]).flatten();
    let unit = Unit::fit(&Unit::TIMES, all);
    let line = |name: &str, of: fn(&rdsk_analysis::stripe::SizePoint) -> Option<f64>| {
        let points = sizes.iter().filter_map(|size| Some(Point::at(size.bytes as f64, unit.of(of(size)?))));
        Series::new(name, Shape::Line, points.collect())
    };
    let aligned = if result.chunk().is_some() { "full stripes" } else { "aligned requests" };
    let plot = Plot {
        x: Axis::log("size, from", "").with_ticks(size_ticks(sizes.iter().map(|size| size.bytes))),
        y: Axis::log("median cost", unit.name),
        series: vec![
            line(aligned, |size| size.aligned_median_ns),
            line("other requests", |size| size.other_median_ns),
        ],
    };
    let row = |size: &rdsk_analysis::stripe::SizePoint| {
        vec![
            Bytes(size.bytes).to_string(),
            size.aligned_count.to_string(),
            unit.figure_or_missing(size.aligned_median_ns),
            size.other_count.to_string(),
            unit.figure_or_missing(size.other_median_ns),
        ]
    };
    let cost = format!("median, {}", unit.name);
    let heads = ["size, from", aligned, &cost, "others", &cost];
    Figure {
        id: format!("stripe-size-{}{}", cell.workload.op, targets_slug(analysis, cell)),
        title: format!("Cost over size, {}s{}", cell.workload.op, on_target(analysis, cell)),
        shows: format!(
            "The median time of one request by its size, both axes logarithmic. {}",
            answer(result)
        ),
        drawing: Drawing::of(plot, COUNTED),
        table: Table {
            heads: heads.map(String::from).to_vec(),
            rows: sizes.iter().map(row).collect(),
            ..Table::default()
        },
        evidence: reasons(cell, result),
    }
}

fn by_offset(analysis: &Analysis<'_>, cell: &CellRecord, result: &StripeResult) -> Figure {
    let profile = &result.answer.boundary_profile;
    let all = profile.iter().flat_map(|step| [step.after_median_ns, step.across_median_ns]);
    let unit = Unit::fit(&Unit::TIMES, all);
    let line = |name: &str, of: fn(&rdsk_analysis::stripe::BoundaryStep) -> f64| {
        let points = profile.iter().map(|step| Point::at(step.boundary_bytes as f64, unit.of(of(step))));
        Series::new(name, Shape::Line, points.collect())
    };
    let plot = Plot {
        x: Axis::log("odd multiples of", "")
            .with_ticks(size_ticks(profile.iter().map(|step| step.boundary_bytes))),
        y: Axis::from_zero("median cost", unit.name),
        series: vec![
            line("starts at the boundary", |step| step.after_median_ns),
            line("crosses the boundary", |step| step.across_median_ns),
        ],
    };
    let row = |step: &rdsk_analysis::stripe::BoundaryStep| {
        let chunk = result.chunk().is_some_and(|(chunk, _)| chunk == step.boundary_bytes);
        vec![
            Bytes(step.boundary_bytes).to_string(),
            step.count.to_string(),
            unit.figure(step.after_median_ns),
            unit.figure(step.across_median_ns),
            or_missing(chunk.then(|| "the chunk".into())).replace('–', ""),
        ]
    };
    let (starts, crosses) = (format!("starts there, {}", unit.name), format!("crosses it, {}", unit.name));
    let heads = ["odd multiples of", "requests", &starts, &crosses, ""];
    Figure {
        id: format!("stripe-offset-{}{}", cell.workload.op, targets_slug(analysis, cell)),
        title: format!("Cost over offset, {}s{}", cell.workload.op, on_target(analysis, cell)),
        shows: format!(
            "The median time of small requests at odd multiples of each size: where it steps, two neighbours lie on different \
             members. {}",
            answer(result)
        ),
        drawing: Drawing::of(
            plot,
            if result.counted.is_some() { COUNTED } else { "There were too few requests around boundaries." },
        ),
        table: Table {
            heads: heads.map(String::from).to_vec(),
            rows: profile.iter().map(row).collect(),
            ..Table::default()
        },
        evidence: reasons(cell, result),
    }
}

fn reasons(cell: &CellRecord, result: &StripeResult) -> Vec<String> {
    let mut lines = evidence([cell], |cell| cell.id.clone());
    let counted =
        result.counted.iter().flat_map(|layout| &layout.evidence).map(|reason| format!("Counted: {reason}."));
    let timed =
        result.answer.evidence.iter().filter(|_| result.timed > 0).map(|reason| format!("Timed: {reason}."));
    lines.extend(counted.chain(timed).map(|line| rdsk_units::printable(&line)));
    lines
}
