//! A fleet as JSON, schema `rdsk.fleet/1` (docs/fleet.md). What is not known is null.

use crate::compare::document;
use rdsk_compare::fleet::{ComparedWith, Fleet, Group, MIN_ALIKE, MIN_FACTOR, Outlier, Series};
use rdsk_compare::{ALPHA, Metric};
use serde_json::{Value, json};

/// The fleet as a document.
pub fn fleet_json(fleet: &Fleet) -> String {
    let document_value = json!({
        "rdsk_version": env!("CARGO_PKG_VERSION"),
        "alpha": ALPHA,
        "least_factor": MIN_FACTOR,
        "least_alike": MIN_ALIKE,
        "hosts": fleet.hosts,
        "disks": fleet.disks.len(),
        "compared": fleet.compared,
        "replaced": fleet.replaced,
        "without_figures": fleet.without_figures,
        "outliers": fleet.outliers.iter().map(|outlier| outlier_value(fleet, outlier)).collect::<Vec<_>>(),
        "reference": fleet.reference.map(|place| series_value(&fleet.series[place])),
        "groups": fleet.groups.iter().map(group_value).collect::<Vec<_>>(),
    });
    document("rdsk.fleet/1", &document_value)
}

fn outlier_value(fleet: &Fleet, outlier: &Outlier) -> Value {
    let disk = &fleet.disks[outlier.disk];
    json!({
        "host": disk.host,
        "target": disk.target,
        "device": disk.device,
        "model": disk.model,
        "firmware": disk.firmware,
        "serial": disk.serial,
        "run": disk.run,
        "started_at": disk.started_at,
        "worst": series_value(fleet.series_of(outlier.worst)),
        "value": outlier.worst.value,
        "median": outlier.median,
        "factor": outlier.factor,
        "verdict": outlier.worst.verdict,
        "slower": outlier.slower,
        "compared": outlier.compared,
        "p_adjusted": outlier.p_adjusted,
    })
}

fn series_value(series: &Series) -> Value {
    let unit = if series.metric == Metric::Rate { "bytes_per_s" } else { "ns" };
    json!({ "test": series.id, "figure": series.metric.as_str(), "unit": unit })
}

fn group_value(group: &Group) -> Value {
    json!({
        "model": group.model,
        "firmware": group.firmware,
        "disks": group.disks,
        "median": group.rate.map(|(median, ..)| median),
        "low": group.rate.map(|(_, low, _)| low),
        "high": group.rate.map(|(.., high)| high),
        "outliers": group.outliers,
        "compared_with": match group.compared_with {
            ComparedWith::Firmware => Some("firmware"),
            ComparedWith::Model => Some("model"),
            ComparedWith::None => None,
        },
    })
}
