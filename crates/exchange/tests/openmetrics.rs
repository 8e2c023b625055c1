//! The OpenMetrics text as a strict parser reads it: every rule of the format that a scraper may insist on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_exchange::openmetrics;
use rdsk_finding::fixtures;
use rdsk_model::{Need as NeedOfRecord, Record, Statistic, Strength, Subject, Threshold};
use rdsk_testkit::{Need, requires};
use std::collections::{BTreeMap, HashSet};
use std::process::Command;

type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug)]
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

/// The samples of a text that keeps all rules.
fn parsed(text: &str) -> Vec<Sample> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with # EOF");
    let (mut samples, mut families): (Vec<Sample>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    for line in body.lines() {
        assert_eq!(line.trim_end(), line, "no space at the end");
        if let Some(head) = line.strip_prefix("# ") {
            let (what, rest) = head.split_once(' ').unwrap();
            let (name, value) = rest.split_once(' ').unwrap();
            assert!(is_name(name), "{line}");
            match what {
                "HELP" => {
                    assert!(!families.iter().any(|(known, _)| known == name), "{name} comes twice");
                    families.push((name.into(), "none".into()));
                }
                "TYPE" => {
                    // The older format, which node_exporter reads, has no other types in common.
                    assert!(["gauge", "summary"].contains(&value), "{line}");
                    families.last_mut().unwrap().1 = value.into();
                }
                "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                _ => panic!("{line}"),
            }
            assert_eq!(families.last().unwrap().0, name, "heads of one family stand together");
            continue;
        }
        let sample = sample(line);
        let (family, kind) = families.last().unwrap();
        let suffixes: &[&str] = if kind == "summary" { &["", "_sum", "_count"] } else { &[""] };
        assert!(
            suffixes.iter().any(|suffix| sample.name == format!("{family}{suffix}")),
            "{line} is not of {family}"
        );
        let has_quantile = sample.labels.contains_key("quantile");
        assert_eq!(has_quantile, kind == "summary" && sample.name == *family, "{line}");
        assert!(names.insert(format!("{} {:?}", sample.name, sample.labels)), "{line} comes twice");
        samples.push(sample);
    }
    samples
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").unwrap();
            assert!(is_name(label), "{line}");
            let (value, after) = unquoted(value, line);
            assert!(labels.insert(label.into(), value).is_none(), "{line}: {label} twice");
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}').unwrap();
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap();
    assert!(!value.contains(' '), "no timestamp: {line}");
    Sample { name: name.into(), labels, value: value.parse().unwrap() }
}

/// A text up to the quote that ends it, and what follows.
fn unquoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().unwrap().1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => panic!("\\{other} in {line}"),
            },
            c => value.push(c),
        }
    }
    panic!("no end of a label in {line}");
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let is_it = |sample: &&Sample| {
        sample.name == name
            && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|own| own == value))
    };
    let values: Vec<f64> = samples.iter().filter(is_it).map(|sample| sample.value).collect();
    assert!(values.len() <= 1, "{name} {labels:?}: {values:?}");
    values.first().copied()
}

#[test]
fn every_figure_is_that_of_the_record() {
    let record = fixtures::run();
    let samples = parsed(&openmetrics(&[&record]));
    for cell in &record.cells {
        let value_of = |name: &str| value(&samples, name, &[("cell", &cell.id)]);
        let rate = cell.result.bytes_per_s;
        assert_eq!(value_of("rdsk_cell_rate_bytes_per_second"), rate.map(|rate| rate.mean));
        assert_eq!(value_of("rdsk_cell_rate_low_bytes_per_second"), rate.and_then(|rate| rate.low));
        assert_eq!(value_of("rdsk_cell_rate_high_bytes_per_second"), rate.and_then(|rate| rate.high));
        assert_eq!(value_of("rdsk_cell_rate_ios_per_second"), cell.result.ops_per_s.map(|rate| rate.mean));
        assert_eq!(value_of("rdsk_cell_moved_bytes"), cell.result.bytes.map(|bytes| bytes as f64));
        assert_eq!(value_of("rdsk_cell_ios"), cell.result.ops.map(|ops| ops as f64));
        assert_eq!(value_of("rdsk_cell_failed_ios"), Some(cell.result.errors.len() as f64));
        assert_eq!(
            value_of("rdsk_cell_device_ratio"),
            cell.verdict.as_ref().and_then(|verdict| verdict.device_share)
        );
        let elapsed = value_of("rdsk_cell_elapsed_seconds").map(|seconds| (seconds * 1e9).round());
        assert_eq!(elapsed, cell.result.elapsed_ns.map(|ns| ns as f64));
        let latency = cell.result.latency_ns.as_ref().filter(|latency| latency.count > 0);
        let quantile = |which: &str| {
            let shown =
                value(&samples, "rdsk_cell_latency_seconds", &[("cell", &cell.id), ("quantile", which)]);
            shown.map(|seconds| (seconds * 1e9).round())
        };
        for (which, ns) in [
            ("0.5", latency.and_then(|latency| latency.p50)),
            ("0.9", latency.and_then(|latency| latency.p90)),
            ("0.99", latency.and_then(|latency| latency.p99)),
            ("0.999", latency.and_then(|latency| latency.p999)),
            ("0.9999", latency.and_then(|latency| latency.p9999)),
        ] {
            assert_eq!(quantile(which), ns.map(|ns| ns as f64), "{which} of {}", cell.id);
        }
        let count = value_of("rdsk_cell_latency_seconds_count");
        assert_eq!(count, latency.map(|latency| latency.count as f64));
        let verdict = cell.verdict.as_ref().map_or("", |verdict| verdict.code.as_str());
        let info = [("cell", cell.id.as_str()), ("verdict", verdict), ("op", cell.workload.op.as_str())];
        assert_eq!(value(&samples, "rdsk_cell_info", &info), Some(1.0));
    }
    assert_eq!(value(&samples, "rdsk_run_start_seconds", &[]), Some(1_767_323_045.0), "2026-01-02T03:04:05Z");
    assert_eq!(value(&samples, "rdsk_run_duration_seconds", &[]), Some(61.0));
    assert_eq!(value(&samples, "rdsk_run_info", &[("id", &record.id), ("tool", "rdsk")]), Some(1.0));
}

#[test]
fn jobs_and_needs_have_series_of_their_own() {
    let mut record = fixtures::load();
    let threshold = |of: Subject, statistic: Statistic, at_most: f64| Threshold {
        at_most: Some(at_most),
        ..Threshold::new("log", of, statistic)
    };
    record.need = Some(NeedOfRecord {
        name: "etcd".into(),
        title: "a log".into(),
        source: "here".into(),
        strength: Strength::Own,
        job_is_ours: false,
        remark: String::new(),
        only_fails: String::new(),
        lasts_ns: 0,
        outlasts_bytes: 0,
        // The longest flush takes 14.4 ms, and no range of the p99 is known.
        thresholds: vec![
            threshold(Subject::Flushes, Statistic::Max, 1e7),
            Threshold { job: "database".into(), ..threshold(Subject::Writes, Statistic::Max, 1e9) },
            threshold(Subject::Flushes, Statistic::P99, 1e7),
        ],
    });
    let samples = parsed(&openmetrics(&[&record]));
    for (job, kind, ops) in
        [("database", "reads", 10_500.0), ("database", "writes", 4_500.0), ("log", "flushes", 12_000.0)]
    {
        let labels = [("cell", "load/1"), ("job", job), ("kind", kind)];
        assert_eq!(value(&samples, "rdsk_job_requests", &labels), Some(ops));
        assert_eq!(value(&samples, "rdsk_job_latency_seconds_count", &labels), Some(ops));
    }
    // Its rate is that of reads and writes together.
    assert_eq!(value(&samples, "rdsk_cell_info", &[("cell", "load/1"), ("op", "mixed")]), Some(1.0));
    let p99 = [("job", "log"), ("kind", "flushes"), ("quantile", "0.99")];
    assert_eq!(value(&samples, "rdsk_job_latency_seconds", &p99), Some(0.0048));
    assert_eq!(value(&samples, "rdsk_job_unsent_requests", &[("job", "database")]), Some(0.0));
    assert_eq!(value(&samples, "rdsk_need_info", &[("need", "etcd"), ("answer", "FAIL")]), Some(1.0));
    let met = |of: &str, statistic: &str| {
        value(&samples, "rdsk_need_threshold_met", &[("need", "etcd"), ("of", of), ("statistic", statistic)])
    };
    assert_eq!(
        (met("flushes", "max"), met("writes", "max"), met("flushes", "p99")),
        (Some(0.0), Some(1.0), None)
    );
}

#[test]
fn a_run_without_an_end_has_no_duration() {
    let samples = parsed(&openmetrics(&[&Record { elapsed_ns: 0, ..fixtures::run() }]));
    assert_eq!(value(&samples, "rdsk_run_duration_seconds", &[]), None);
    assert!(value(&samples, "rdsk_run_start_seconds", &[]).is_some());
}

#[test]
fn one_run_has_lasting_series_and_several_are_told_apart() {
    let (first, mut other) = (fixtures::run(), fixtures::run());
    let alone = parsed(&openmetrics(&[&first]));
    assert!(alone.iter().all(|sample| sample.name == "rdsk_run_info" || !sample.labels.contains_key("id")));
    other.id = "01JD8W3Q5Z0000000000000001".into();
    let both = parsed(&openmetrics(&[&first, &other]));
    assert!(both.iter().all(|sample| sample.labels.contains_key("id")));
    assert_eq!(both.len(), alone.len() * 2);
    // The same run twice is one run.
    assert_eq!(parsed(&openmetrics(&[&first, &first])).len(), alone.len());
}

#[test]
fn names_are_only_text() {
    for name in ["a\"} 1\nrdsk_fake 2", "back\\slash\\", "é 日本 \u{202e}", "", "x{y=\"z\"}"] {
        let mut record = fixtures::run();
        record.targets[0].name = name.into();
        record.label = Some(name.into());
        record.cells.truncate(2);
        record.cells[1].id = record.cells[0].id.clone();
        let samples = parsed(&openmetrics(&[&record]));
        let shown = rdsk_units::printable(name);
        assert_eq!(value(&samples, "rdsk_run_info", &[("label", &shown)]), Some(1.0), "{name:?}");
        assert!(value(&samples, "rdsk_cell_ios", &[("target", &shown)]).is_some(), "{name:?}");
    }
}

#[test]
fn nothing_measured_has_no_samples() {
    let mut record: Record = fixtures::run();
    record.cells.clear();
    record.started_at = "yesterday".into();
    let samples = parsed(&openmetrics(&[&record]));
    assert!(samples.iter().all(|sample| sample.name.starts_with("rdsk_run_")), "{samples:?}");
    assert_eq!(value(&samples, "rdsk_run_start_seconds", &[]), None, "a time that is none");
    assert_eq!(parsed(&openmetrics(&[])).len(), 0);
}

/// docs/export.md has a line for each family.
#[test]
fn the_document_lists_every_family() {
    let page = include_str!("../../../docs/export.md");
    let section = page.split("\n## ").find(|section| section.starts_with("OpenMetrics\n")).unwrap();
    let text = openmetrics(&[]);
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let listed: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(listed, families);
}

/// The parsers of Prometheus's own client library: that of OpenMetrics, which is strict, and that of the older format, which
/// node_exporter's textfile collector reads.
#[test]
fn the_parsers_of_prometheus_read_the_same_samples() {
    if !requires(&[Need::Tool("/usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py")]) {
        return;
    }
    let (first, mut other) = (fixtures::run(), fixtures::run());
    other.id = "01JD8W3Q5Z0000000000000001".into();
    other.label = Some("say \"hi\" \\ {x}".into());
    let text = openmetrics(&[&first, &other]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rdsk.prom");
    std::fs::write(&path, &text).unwrap();
    let expected = parsed(&text).into_iter().map(|sample| (sample.name, sample.labels, sample.value));
    let expected: Vec<(String, Labels, f64)> = expected.collect();
    for parser in ["prometheus_client.openmetrics.parser", "prometheus_client.parser"] {
        let script = format!(
            "import json, sys\nfrom {parser} import text_string_to_metric_families as families\n\
             print(json.dumps([(s.name, s.labels, s.value) for f in families(open(sys.argv[1]).read()) for s in f.samples]))"
        );
        let output = Command::new("/usr/bin/python3").args(["-c", &script]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{parser}: {}", String::from_utf8_lossy(&output.stderr));
        let samples: Vec<(String, Labels, f64)> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(samples, expected, "{parser}");
    }
}
