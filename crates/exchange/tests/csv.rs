//! The CSV as other programs read it: a reader of its own crate, Python's, and that of pandas.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_analysis::fixtures::rates::{falling, laid_out, steady};
use rdsk_exchange::{COLUMNS, csv, openmetrics};
use rdsk_finding::fixtures;
use rdsk_model::{Op, Record};
use rdsk_testkit::{Need, requires};
use serde_json::Value;
use std::process::Command;

/// Columns of numbers, and where a cell of the Record has them.
const NUMBERS: &[(&str, &str)] = &[
    ("block_bytes", "/workload/block_bytes"),
    ("align_bytes", "/workload/align_bytes"),
    ("shift_bytes", "/workload/shift_bytes"),
    ("queue_depth", "/workload/queue_depth"),
    ("streams", "/workload/streams"),
    ("offset_bytes", "/workload/offset_bytes"),
    ("span_bytes", "/workload/span_bytes"),
    ("elapsed_ns", "/result/elapsed_ns"),
    ("bytes", "/result/bytes"),
    ("ops", "/result/ops"),
    ("bytes_per_s", "/result/bytes_per_s/mean"),
    ("bytes_per_s_low", "/result/bytes_per_s/low"),
    ("bytes_per_s_high", "/result/bytes_per_s/high"),
    ("ops_per_s", "/result/ops_per_s/mean"),
    ("ops_per_s_low", "/result/ops_per_s/low"),
    ("ops_per_s_high", "/result/ops_per_s/high"),
    ("latency_count", "/result/latency_ns/count"),
    ("latency_min_ns", "/result/latency_ns/min"),
    ("latency_mean_ns", "/result/latency_ns/mean"),
    ("latency_p50_ns", "/result/latency_ns/p50"),
    ("latency_p90_ns", "/result/latency_ns/p90"),
    ("latency_p99_ns", "/result/latency_ns/p99"),
    ("latency_p999_ns", "/result/latency_ns/p999"),
    ("latency_p9999_ns", "/result/latency_ns/p9999"),
    ("latency_max_ns", "/result/latency_ns/max"),
    ("to_return_ns", "/result/to_return_ns"),
    ("to_close_ns", "/result/to_close_ns"),
    ("to_stable_ns", "/result/to_stable_ns"),
    ("in_flight_mean", "/result/in_flight_mean"),
    ("cpu_user_ns", "/result/cpu_ns/user"),
    ("cpu_system_ns", "/result/cpu_ns/system"),
    ("device_reads", "/evidence/device/0/reads"),
    ("device_read_bytes", "/evidence/device/0/read_bytes"),
    ("device_writes", "/evidence/device/0/writes"),
    ("device_write_bytes", "/evidence/device/0/write_bytes"),
    ("device_flushes", "/evidence/device/0/flushes"),
    ("device_share", "/verdict/device_share"),
];
/// Columns of words.
const WORDS: &[(&str, &str)] = &[
    ("cell", "/id"),
    ("experiment", "/experiment"),
    ("op", "/workload/op"),
    ("pattern", "/workload/pattern"),
    ("path", "/workload/path"),
    ("sync", "/workload/sync"),
    ("cache", "/workload/cache"),
    ("engine", "/result/engine"),
    ("stop", "/result/stop"),
    ("evidence", "/evidence/source"),
    ("verdict", "/verdict/code"),
];

/// Rows by the name of their columns.
fn rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let row = |row: Result<csv::StringRecord, csv::Error>| {
        head.iter().cloned().zip(row.unwrap().iter().map(str::to_owned)).collect()
    };
    reader.records().map(row).collect()
}

fn field<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    &row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no column {name}")).1
}

/// A run in which one figure needs all its digits.
fn record() -> Record {
    let mut record = fixtures::run();
    let rate = record.cells[0].result.bytes_per_s.as_mut().unwrap();
    rate.mean = 123_456_789.123_456_79;
    rate.low = Some(1.0 / 3.0);
    record
}

#[test]
fn every_figure_reads_back_as_it_is_in_the_record() {
    let record = record();
    let rows = rows(&csv([&record]));
    assert_eq!(rows.len(), record.cells.len());
    for (row, cell) in rows.iter().zip(&record.cells) {
        let cell = serde_json::to_value(cell).unwrap();
        for (column, pointer) in NUMBERS {
            let text = field(row, column);
            match cell.pointer(pointer).unwrap_or(&Value::Null) {
                Value::Null => assert_eq!(text, "", "{column} of {}", cell["id"]),
                number if number.is_u64() => {
                    assert_eq!(text.parse::<u64>().ok(), number.as_u64(), "{column} of {}", cell["id"]);
                }
                number => assert_eq!(text.parse::<f64>().ok(), number.as_f64(), "{column} of {}", cell["id"]),
            }
        }
        for (column, pointer) in WORDS {
            let word = cell.pointer(pointer).and_then(Value::as_str).unwrap_or("");
            assert_eq!(field(row, column), word, "{column}");
        }
        assert_eq!(field(row, "record_id"), record.id);
        assert_eq!(field(row, "target"), record.targets[0].name);
    }
    let columns = NUMBERS.len() + WORDS.len();
    assert_eq!(COLUMNS.len(), columns + 17, "a new column has its line above, or is one of those of the run");
}

/// A write that began in a cache, beside one whose rate lasts, and one that no visit went on with.
#[test]
fn a_burst_has_the_rate_that_lasts_beside_it() {
    let mut record = fixtures::run();
    let write = |id: &str, rates: Vec<f64>| laid_out(id, Op::Write, &[rates]);
    record.cells = ["falls", "lasts", "short"].map(|id| write(id, steady(60, 800.0))).into();
    record.sustained =
        vec![write("falls", falling(200, 400, 800.0, 100.0)), write("lasts", steady(600, 800.0))];
    let rows = rows(&csv([&record]));
    let metrics = openmetrics(&[&record]);
    let expected = [
        ("falls", "burst", Some(100.0), "1"),
        ("lasts", "lasting", Some(800.0), "0"),
        ("short", "", None, ""),
    ];
    for (row, (id, rate_is, mib_per_s, is_burst)) in rows.iter().zip(expected) {
        assert_eq!((field(row, "cell"), field(row, "rate_is")), (id, rate_is));
        let rate = field(row, "lasting_bytes_per_s").parse::<f64>().ok();
        assert_eq!(rate.map(|rate| (rate / (1 << 20) as f64).round()), mib_per_s, "{id}");
        let sample = |name: &str| {
            let is_of = |line: &&str| {
                line.starts_with(&format!("{name}{{")) && line.contains(&format!("cell=\"{id}\""))
            };
            metrics.lines().find(is_of).and_then(|line| line.rsplit(' ').next()).unwrap_or("").to_owned()
        };
        assert_eq!(sample("rdsk_cell_burst"), is_burst, "{id}");
        assert_eq!(sample("rdsk_cell_lasting_bytes_per_second").parse::<f64>().ok(), rate, "{id}");
    }
}

#[test]
fn names_are_quoted_and_calculate_nothing() {
    for (name, shown) in [
        ("a,b", "a,b"),
        ("say \"hi\"", "say \"hi\""),
        ("=1+1", "'=1+1"),
        ("  =HYPERLINK(\"x\")", "'  =HYPERLINK(\"x\")"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-5 °C", "'-5 °C"),
        ("+49", "'+49"),
        ("'quoted", "''quoted"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\t=1", "\\x09=1"),
        ("plain = text", "plain = text"),
        ("", ""),
    ] {
        let mut record = fixtures::run();
        record.label = Some(name.into());
        record.targets[0].name = name.into();
        record.cells.truncate(1);
        let rows = rows(&csv([&record]));
        assert_eq!((field(&rows[0], "label"), field(&rows[0], "target")), (shown, shown), "{name:?}");
        assert_eq!(rows.len(), 1, "{name:?}");
    }
}

#[test]
fn several_records_are_one_table_and_none_is_the_head() {
    let (first, mut other) = (fixtures::run(), fixtures::run());
    other.id = "01JD8W3Q5Z0000000000000001".into();
    let rows = rows(&csv([&first, &other]));
    assert_eq!(rows.len(), first.cells.len() * 2);
    assert_eq!(field(rows.last().unwrap(), "record_id"), other.id);
    let head = csv([] as [&Record; 0]);
    assert_eq!(head.lines().count(), 1);
    assert!(head.starts_with("record_id,label,started_at,"), "what rdsk replaces begins so: {head}");
}

#[test]
fn numbers_that_are_none_are_empty() {
    let mut record = fixtures::run();
    record.cells.truncate(1);
    record.cells[0].result.in_flight_mean = Some(f64::NAN);
    assert_eq!(field(&rows(&csv([&record]))[0], "in_flight_mean"), "");
}

/// docs/export.md has a line for each column, in the order of the file.
#[test]
fn the_document_lists_every_column() {
    let page = include_str!("../../../docs/export.md");
    let section = page.split("\n## ").find(|section| section.starts_with("CSV\n")).unwrap();
    let listed: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(listed, COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>());
}

#[test]
fn python_reads_the_same_figures() {
    if !requires(&[Need::Tool("python3")]) {
        return;
    }
    let record = record();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cells.csv");
    std::fs::write(&path, csv([&record])).unwrap();
    let script = "import csv, json, sys\nprint(json.dumps([[r['cell'], float(r['bytes_per_s'] or 'nan'), int(r['ops'] or -1)] \
                  for r in csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8'))]))";
    let output = Command::new("python3").args(["-c", script]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Python writes a number that is none as NaN, which no JSON has.
    let text = String::from_utf8(output.stdout).unwrap().replace("NaN", "null");
    let read: Vec<(String, Option<f64>, i64)> = serde_json::from_str(&text).unwrap();
    let expected: Vec<_> = record
        .cells
        .iter()
        .map(|cell| {
            let ops = cell.result.ops.map_or(-1, |ops| i64::try_from(ops).unwrap());
            (cell.id.clone(), cell.result.bytes_per_s.map(|rate| rate.mean), ops)
        })
        .collect();
    assert_eq!(read, expected);
}

/// Every column of numbers and of words, as a data frame has it without being given types.
#[test]
fn pandas_reads_the_same_table() {
    if !requires(&[Need::Tool("/usr/lib/python3/dist-packages/pandas/__init__.py")]) {
        return;
    }
    let record = record();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cells.csv");
    std::fs::write(&path, csv([&record])).unwrap();
    let script = "import json, pandas, sys\n\
                  table = pandas.read_csv(sys.argv[1], float_precision='round_trip')\n\
                  plain = lambda v: None if pandas.isna(v) else v.item() if hasattr(v, 'item') else v\n\
                  print(json.dumps([{c: plain(v) for c, v in zip(table.columns, row)} for row in table.values.tolist()]))";
    let output = Command::new("/usr/bin/python3").args(["-c", script]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), record.cells.len());
    for (row, cell) in rows.iter().zip(&record.cells) {
        let cell = serde_json::to_value(cell).unwrap();
        for (column, pointer) in NUMBERS {
            let expected = cell.pointer(pointer).and_then(Value::as_f64);
            assert_eq!(row[column].as_f64(), expected, "{column} of {}", cell["id"]);
        }
        for (column, pointer) in WORDS {
            assert_eq!(row[column].as_str(), cell.pointer(pointer).and_then(Value::as_str), "{column}");
        }
        assert_eq!(row.as_object().unwrap().len(), COLUMNS.len());
    }
}
