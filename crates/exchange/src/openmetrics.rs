//! Records as OpenMetrics text that the older Prometheus parser of node_exporter's textfile collector reads too: gauges and
//! summaries only, base units, no timestamps. What was not measured has no sample.

mod loads;

use crate::cells_csv::target_names;
use rdsk_analysis::lasting::{Lasting, lasting_of};
use rdsk_analysis::metrics::seconds;
use rdsk_model::{CellRecord, Estimate, Latency, Record, Untold};
use rdsk_units::printable;
use std::collections::HashSet;

/// A family of a value for each cell: its name, which ends with its unit as both formats want it, the unit, the help, the value.
type Family = (&'static str, &'static str, &'static str, fn(&Labelled<'_>) -> Option<f64>);

/// A rate with its interval, which is three families: its unit, what the help calls it, the rate.
type Rate = (&'static str, &'static str, fn(&CellRecord) -> Option<Estimate>);

const RATES: &[Rate] = &[
    ("bytes_per_second", "bandwidth", |cell| cell.result.bytes_per_s),
    ("ios_per_second", "rate of I/Os", |cell| cell.result.ops_per_s),
];

/// A figure of an estimate: the part of the name that it adds, the help before what it is of, and its value.
type OfEstimate = (&'static str, &'static str, fn(Estimate) -> Option<f64>);

const OF_ESTIMATE: &[OfEstimate] = &[
    ("", "Mean over the measured time of the", |estimate| Some(estimate.mean)),
    ("_low", "Lower end of the 95% interval of the", |estimate| estimate.low),
    ("_high", "Upper end of the 95% interval of the", |estimate| estimate.high),
];

/// The other values of a cell that are numbers.
const FAMILIES: &[Family] = &[
    (
        "rdsk_cell_lasting_bytes_per_second",
        "bytes_per_second",
        "Bandwidth in the later half of a test that wrote on until its rate had settled, or its time was over.",
        |labelled| Some(labelled.lasting()?.bytes_per_s),
    ),
    (
        "rdsk_cell_burst",
        "",
        "1 if the bandwidth of the test is that of a burst, clearly above the lasting one; else 0.",
        |labelled| Some(f64::from(u8::from(labelled.lasting()?.is_burst))),
    ),
    ("rdsk_cell_moved_bytes", "bytes", "Bytes completed.", |labelled| {
        Some(labelled.cell.result.bytes? as f64)
    }),
    ("rdsk_cell_ios", "", "I/Os completed.", |labelled| Some(labelled.cell.result.ops? as f64)),
    ("rdsk_cell_failed_ios", "", "I/Os that failed, the first of each stream.", |labelled| {
        Some(labelled.cell.result.errors.len() as f64)
    }),
    ("rdsk_cell_elapsed_seconds", "seconds", "Time of I/O.", |labelled| {
        labelled.cell.result.elapsed_ns.map(seconds)
    }),
    (
        "rdsk_cell_to_stable_seconds",
        "seconds",
        "Time until everything written was on stable storage.",
        |labelled| labelled.cell.result.to_stable_ns.map(seconds),
    ),
    ("rdsk_cell_in_flight_ios", "ios", "I/Os in flight, mean.", |labelled| {
        labelled.cell.result.in_flight_mean
    }),
    ("rdsk_cell_device_ratio", "ratio", "Bytes that the device moved for each byte completed.", |labelled| {
        labelled.cell.verdict.as_ref()?.device_share
    }),
];

/// A quantile as a summary writes it, and the percentile of a Record that it is.
type Quantile = (&'static str, fn(&Latency) -> Option<u64>);

const QUANTILES: &[Quantile] = &[
    ("0.5", |latency| latency.p50),
    ("0.9", |latency| latency.p90),
    ("0.99", |latency| latency.p99),
    ("0.999", |latency| latency.p999),
    ("0.9999", |latency| latency.p9999),
];

/// The Records as one exposition, with `# EOF` at its end.
///
/// The samples of a single Record have no label of their run, so that a later run of the same goes on with the same series; those
/// of several have its `id`. A cell that occurs twice under the same labels has the samples of the first one only.
pub fn openmetrics(records: &[&Record]) -> String {
    let cells = labelled(records);
    let mut text = String::new();
    runs(&mut text, records);
    head(
        &mut text,
        "rdsk_cell_info",
        "gauge",
        "",
        "What the test did, and what its figure means; the value is 1.",
    );
    for cell in &cells {
        let what = settings(cell.cell);
        sample(&mut text, "rdsk_cell_info", &format!("{},{what}", cell.labels), 1.0);
    }
    for (unit, what, value) in RATES {
        for (part, help, figure) in OF_ESTIMATE {
            let (name, help) = (format!("rdsk_cell_rate{part}_{unit}"), format!("{help} {what}."));
            gauges(&mut text, (&name, unit, &help), &cells, |cell| value(cell.cell).and_then(figure));
        }
    }
    for (name, unit, help, value) in FAMILIES {
        gauges(&mut text, (name, unit, help), &cells, value);
    }
    latencies(&mut text, &cells);
    loads::jobs(&mut text, &cells);
    loads::needs(&mut text, records);
    text.push_str("# EOF\n");
    text
}

/// A family, by its name, unit and help, with a sample for each cell that has the value.
fn gauges(
    text: &mut String,
    (name, unit, help): (&str, &str, &str),
    cells: &[Labelled<'_>],
    value: impl Fn(&Labelled<'_>) -> Option<f64>,
) {
    head(text, name, "gauge", unit, help);
    for cell in cells {
        if let Some(value) = value(cell) {
            sample(text, name, &cell.labels, value);
        }
    }
}

/// A cell with the labels of its samples.
struct Labelled<'a> {
    record: &'a Record,
    cell: &'a CellRecord,
    labels: String,
}

impl Labelled<'_> {
    /// What a visit of it that went on says.
    fn lasting(&self) -> Option<Lasting> {
        lasting_of(self.record, self.cell)
    }
}

fn labelled<'a>(records: &[&'a Record]) -> Vec<Labelled<'a>> {
    let mut series = HashSet::new();
    let mut cells = Vec::new();
    for record in records {
        let id = if records.len() > 1 { format!("{},", label("id", &record.id)) } else { String::new() };
        for cell in &record.cells {
            let target = label("target", &target_names(record, cell));
            let labels = format!("{id}{target},{}", label("cell", &cell.id));
            if series.insert(labels.clone()) {
                cells.push(Labelled { record, cell, labels });
            }
        }
    }
    cells
}

/// The runs themselves: what they were, when they began, how long they took.
fn runs(text: &mut String, records: &[&Record]) {
    let mut ids = HashSet::new();
    let runs: Vec<&Record> = records.iter().copied().filter(|record| ids.insert(&record.id)).collect();
    head(text, "rdsk_run_info", "gauge", "", "A run of rdsk, or one of another program; the value is 1.");
    for run in &runs {
        let (tool, version) = match &run.source {
            Some(source) => (source.tool.as_str(), source.version.as_deref().unwrap_or("")),
            None => ("rdsk", run.rdsk_version.as_str()),
        };
        let kernel = run.host.as_ref().map_or("", |host| host.kernel.as_str());
        let facts = [
            ("id", run.id.as_str()),
            ("label", run.label.as_deref().unwrap_or("")),
            ("tool", tool),
            ("version", version),
            ("kernel", kernel),
            ("status", run.status.as_str()),
        ];
        sample(text, "rdsk_run_info", &labels(&facts), 1.0);
    }
    let of_run = |run: &Record| if records.len() > 1 { label("id", &run.id) } else { String::new() };
    head(text, "rdsk_run_start_seconds", "gauge", "seconds", "When the run began, in Unix time.");
    for run in &runs {
        if let Ok(start) = run.started_at.parse::<jiff::Timestamp>() {
            sample(text, "rdsk_run_start_seconds", &of_run(run), start.as_millisecond() as f64 / 1e3);
        }
    }
    head(text, "rdsk_run_duration_seconds", "gauge", "seconds", "How long the whole run took.");
    // A run that was killed or goes on has no end yet, and for some runs of other programs it is unknown.
    for run in runs.iter().filter(|run| run.elapsed_ns > 0) {
        sample(text, "rdsk_run_duration_seconds", &of_run(run), seconds(run.elapsed_ns));
    }
}

fn latencies(text: &mut String, cells: &[Labelled<'_>]) {
    const NAME: &str = "rdsk_cell_latency_seconds";
    head(text, NAME, "summary", "seconds", "Latency from just before submission to completion seen.");
    for Labelled { cell, labels, .. } in cells {
        let Some(latency) = cell.result.latency_ns.as_ref().filter(|latency| latency.count > 0) else {
            continue;
        };
        summary(text, NAME, labels, latency);
    }
}

/// The samples of one summary.
fn summary(text: &mut String, name: &str, labels: &str, latency: &Latency) {
    for (quantile, value) in QUANTILES {
        if let Some(ns) = value(latency) {
            sample(text, name, &format!("{labels},quantile=\"{quantile}\""), seconds(ns));
        }
    }
    if let Some(mean) = latency.mean {
        sample(text, &format!("{name}_sum"), labels, mean * latency.count as f64 / 1e9);
    }
    sample(text, &format!("{name}_count"), labels, latency.count as f64);
}

fn settings(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    // An empty label is as one that is not there.
    let count = |count: u32| if count > 0 { count.to_string() } else { String::new() };
    labels(&[
        ("experiment", cell.experiment.as_str()),
        ("op", workload.direction()),
        ("pattern", workload.word(Untold::Pattern).unwrap_or_default()),
        ("path", workload.word(Untold::Path).unwrap_or_default()),
        ("sync", workload.word(Untold::Sync).unwrap_or_default()),
        ("block_bytes", &workload.block_bytes.to_string()),
        ("queue_depth", &count(workload.queue_depth)),
        ("streams", &count(workload.streams)),
        ("verdict", cell.verdict.as_ref().map_or("", |verdict| verdict.code.as_str())),
    ])
}

/// TYPE, UNIT and HELP. What they say is ours and holds nothing that needs an escape.
fn head(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    if !unit.is_empty() {
        text.push_str(&format!("# UNIT {name} {unit}\n"));
    }
}

/// One sample; a value that is no number has none.
fn sample(text: &mut String, name: &str, labels: &str, value: f64) {
    if value.is_finite() {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        text.push_str(&format!("{name}{labels} {value}\n"));
    }
}

fn labels(facts: &[(&str, &str)]) -> String {
    facts.iter().map(|(name, value)| label(name, value)).collect::<Vec<_>>().join(",")
}

/// `target="/dev/sda"`, whatever the name of the target is.
fn label(name: &str, value: &str) -> String {
    let escaped = printable(value).replace('\\', "\\\\").replace('"', "\\\"");
    format!("{name}=\"{escaped}\"")
}
