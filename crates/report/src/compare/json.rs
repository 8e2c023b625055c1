//! A comparison as JSON, schema `rdsk.compare/1`, and a course, schema `rdsk.trend/1` (docs/compare.md). What is not known is null.

use super::Comparing;
use rdsk_compare::{
    ALPHA, Basis, CellChange, Change, Course, Difference, Judgement, Metric, Missing, OneRun, RunPair, Shape,
};
use rdsk_model::{CellRecord, Record};
use serde_json::{Value, json};

/// The comparison as a document. `records` are the Records of all runs, where they are kept nowhere else.
pub fn compared_json(comparing: &Comparing<'_>, records: &[(&str, &Record)]) -> String {
    let runs = comparing.names.iter().zip(comparing.runs).map(|(name, run)| run_value(name, run));
    let pairs = comparing.compared.pairs.iter().enumerate().map(|(place, pair)| pair_value(place + 1, pair));
    let mut document = json!({
        "rdsk_version": env!("CARGO_PKG_VERSION"),
        "alpha": ALPHA,
        "ratios": comparing.compared.ratios,
        "runs": runs.collect::<Vec<_>>(),
        "differences": differences_value(comparing.differences),
        "comparisons": pairs.collect::<Vec<_>>(),
        "conditions": comparing.judgements.iter().map(judgement_value).collect::<Vec<_>>(),
    });
    if !records.is_empty() {
        let kept = records.iter().map(|(side, record)| json!({ "side": side, "record": record }));
        document["records"] = kept.collect();
    }
    text("rdsk.compare/1", &document)
}

/// The schema comes first: by it a file is known as one that may be replaced.
pub(crate) fn text(schema: &str, document: &Value) -> String {
    let rest = format!("{document:#}");
    format!("{{\n  \"schema\": \"{schema}\",{}", rest.strip_prefix('{').unwrap_or_default())
}

fn run_value(name: &str, run: &Record) -> Value {
    let targets: Vec<&String> = run.targets.iter().map(|target| &target.name).collect();
    json!({ "name": name, "id": run.id, "label": run.label, "started_at": run.started_at, "status": run.status, "targets": targets })
}

fn differences_value(differences: &[Difference]) -> Value {
    differences
        .iter()
        .map(|difference| json!({ "what": difference.what, "values": difference.values }))
        .collect()
}

fn pair_value(other: usize, pair: &RunPair<'_>) -> Value {
    let basis = match pair.basis {
        Basis::OneRunEach { octaves } => json!({ "kind": "one_run_each", "octaves": octaves }),
        Basis::Pairs { pairs, alone } => json!({ "kind": "pairs", "pairs": pairs, "alone": alone }),
    };
    let ids = |cells: &[&CellRecord]| cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>();
    json!({
        "base": 0,
        "other": other,
        "basis": basis,
        "overall": overall_value(pair),
        "cells": pair.cells.iter().map(cell_value).collect::<Vec<_>>(),
        "only_base": ids(&pair.only_base),
        "only_other": ids(&pair.only_other),
        "lost": pair.lost.iter().map(missing_value).collect::<Vec<_>>(),
    })
}

/// What the rates say together.
fn overall_value(pair: &RunPair<'_>) -> Value {
    let overall = pair.overall();
    json!({
        "tests": overall.tests,
        "faster": overall.faster,
        "slower": overall.slower,
        "ratio": overall.average.map(|average| average.ratio),
        "low": overall.average.map(|average| average.low),
        "high": overall.average.map(|average| average.high),
        "biggest": pair.biggest().map(|(cell, _)| cell.base.id.clone()),
    })
}

fn cell_value(cell: &CellChange<'_>) -> Value {
    let verdict = |cell: &CellRecord| cell.verdict.as_ref().map(|verdict| verdict.code);
    json!({
        "id": cell.base.id,
        "other_id": cell.other.id,
        "experiment": cell.base.experiment,
        "workload": cell.base.workload,
        "verdicts": [verdict(cell.base), verdict(cell.other)],
        "engines": [cell.base.result.engine, cell.other.result.engine],
        "remarks": cell.remarks(),
        "changes": cell.changes.iter().map(change_value).collect::<Vec<_>>(),
    })
}

fn change_value(change: &Change) -> Value {
    let certainty = change.certainty.ok();
    json!({
        "figure": change.metric.as_str(),
        "unit": unit(change.metric),
        "base": change.base,
        "other": change.other,
        "ratio": change.ratio(),
        "pairs": change.pairs.map(|(having, _)| having),
        "low": certainty.and_then(|certainty| end(certainty.interval.0)),
        "high": certainty.and_then(|certainty| end(certainty.interval.1)),
        "low_corrected": certainty.and_then(|certainty| end(certainty.corrected.0)),
        "high_corrected": certainty.and_then(|certainty| end(certainty.corrected.1)),
        "p_value": certainty.map(|certainty| certainty.p_value),
        "p_adjusted": certainty.map(|certainty| certainty.p_adjusted),
        "answer": change.answer().as_str(),
        "why": change.certainty.err().map(rdsk_compare::Unknown::words),
    })
}

/// An end of an interval of ratios; one that is not known is 0 or infinite.
fn end(ratio: f64) -> Option<f64> {
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

const fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "bytes_per_s",
        Metric::P50 | Metric::P99 => "ns",
    }
}

fn judgement_value(judgement: &Judgement<'_>) -> Value {
    let entries = |changes: &[(usize, &CellChange<'_>, &Change)]| {
        let entry = |(pair, cell, change): &(usize, &CellChange<'_>, &Change)| json!({ "other": pair + 1, "cell": cell.base.id, "ratio": change.ratio(), "blind_within": change.blind_within() });
        changes.iter().map(entry).collect::<Vec<_>>()
    };
    json!({
        "condition": judgement.condition.text,
        "judged": judgement.judged,
        "met": entries(&judgement.met),
        "unsure": entries(&judgement.unsure),
        "missing": judgement.missing.iter().map(missing_value).collect::<Vec<_>>(),
    })
}

fn missing_value(missing: &Missing<'_>) -> Value {
    let run = missing.run.map(|run| match run {
        OneRun::Base(number) => json!({ "side": "a", "number": number }),
        OneRun::Other(number) => json!({ "side": "b", "number": number }),
    });
    let (cell, figure) = (&missing.cell.id, missing.metric.as_str());
    json!({ "other": missing.pair + 1, "run": run, "cell": cell, "figure": figure, "why": missing.why.words() })
}

/// The course as a document; `differences` are those of the runs of its points.
pub fn course_json(course: &Course<'_>, differences: &[Difference]) -> String {
    let point = |point: &rdsk_compare::Point<'_>| {
        json!({
            "id": point.run.id,
            "label": point.run.label,
            "started_at": point.run.started_at,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "verdict": point.verdict,
        })
    };
    let shape = match &course.shape {
        Shape::Steps(steps) => {
            let steps = steps.iter().map(|(index, factor)| json!({ "from": index, "factor": factor }));
            json!({ "kind": "steps", "steps": steps.collect::<Vec<_>>() })
        }
        Shape::Slope(factor) => json!({ "kind": "slope", "factor": factor }),
        Shape::NothingSeen => json!({ "kind": "nothing_seen" }),
        Shape::TooFewRuns(needed) => json!({ "kind": "too_few_runs", "needed": needed }),
    };
    let left_out = course.left_out.iter().map(|(run, why)| json!({ "id": run.id, "why": why.to_string() }));
    let document = json!({
        "rdsk_version": env!("CARGO_PKG_VERSION"),
        "cell": course.id,
        "figure": course.metric.as_str(),
        "unit": unit(course.metric),
        "runs": course.points.iter().map(point).collect::<Vec<_>>(),
        "differences": differences_value(differences),
        "shape": shape,
        "left_out": left_out.collect::<Vec<_>>(),
    });
    text("rdsk.trend/1", &document)
}
