//! `--json -` gives a document that parses and follows the contract, whatever happened; and the checker of the contract,
//! which every other test of faults relies on, finds violations.

use std::collections::BTreeSet;
use std::fs;

use crate::support::checked_run::contract::{self, complaints, exit_complaints};
use crate::support::checked_run::{self, Answer, ask, directory, rdsk, word, written_file};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::schema::{self, Writer};
use rdsk_testkit::{Need, cli, requires};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A short run of everything. On a disk that stands still while the file is made there is no time for more than one short visit.
fn whole() -> Answer {
    let place = directory();
    first_right(5, || {
        let answer = ask(&format!("run {} --size 16M --budget 4s --label night", word(place.path())));
        let answer = answer.expect_code(0);
        let has_interval = answer.cells().iter().any(has_interval);
        ensure(has_interval, || "no cell has an interval".to_owned()).map(|()| answer)
    })
}

fn has_interval(cell: &Value) -> bool {
    cell["result"]["ops"].as_u64() > Some(1) && cell["result"]["bytes_per_s"]["low"].is_number()
}

#[test]
fn a_run_of_everything_keeps_the_contract_and_the_checker_notices_breaches() {
    let answer = whole();
    let record = &answer.record;
    for experiment in ["headline", "paths", "stream", "align", "zones", "scale"] {
        let cells = answer.cells().iter().filter(|cell| cell["experiment"] == experiment);
        assert!(cells.count() > 0, "{experiment}");
    }
    assert_eq!(record["label"], "night");
    assert_eq!(record["command"][1], "run");
    breaches(record);
}

/// The members of a document, as JSON pointers.
fn members(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                found.push(place.clone());
                members(value, &place, found);
            }
        }
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| members(value, &format!("{place}/{index}"), found));
        }
        _ => {}
    }
}

/// The document with the first entry of each list alone, so that each kind of member is there and few of them.
fn thinned(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => object.values_mut().for_each(|value| *value = thinned(value.take())),
        Value::Array(list) => {
            list.truncate(1);
            list.iter_mut().for_each(|value| *value = thinned(value.take()));
        }
        _ => {}
    }
    value
}

/// A document, and each that has a member less, null, or of another type.
fn with_breaches(document: &Value) -> Vec<Value> {
    let mut pointers = Vec::new();
    members(document, "", &mut pointers);
    let mut variants = vec![document.clone()];
    for pointer in &pointers {
        let changed = |value: Value| {
            let mut changed = document.clone();
            *changed.pointer_mut(pointer).expect("a member") = value;
            changed
        };
        let is_text = document.pointer(pointer).is_some_and(Value::is_string);
        let (parent, key) = pointer.rsplit_once('/').expect("a member has a parent");
        let mut less = document.clone();
        let key = key.replace("~1", "/").replace("~0", "~");
        less.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(&key);
        variants.extend([
            less,
            changed(Value::Null),
            changed(if is_text { json!(17) } else { json!("seventeen") }),
        ]);
    }
    variants
}

/// Another program takes the schemas, and judges documents and what differs from them by one member as these tests do.
#[test]
fn another_validator_takes_the_schemas_and_judges_alike() {
    const SCRIPT: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
def validator(path):
    schema = json.load(open(path))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
validators = [validator(path) for path in sys.argv[2:]]
for index, (of, document, holds) in enumerate(json.load(open(sys.argv[1]))):
    if validators[of].is_valid(document) != holds:
        print(index, next(validators[of].iter_errors(document), "valid"))
"#;
    if !requires(&[
        Need::Tool("python3"),
        Need::Tool("/usr/lib/python3/dist-packages/jsonschema/__init__.py"),
    ]) {
        return;
    }
    let record = |line: &str| thinned(cli::json(&cli::run(rdsk(line), checked_run::LIMIT)));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let [before, after] = ["before", "after"].map(|side| tests.join("fixtures/watch").join(side));
    let watch = format!("watch --json --from {} --to {}", word(&before), word(&after));
    let lines = cli::run(rdsk(&watch), checked_run::LIMIT).stdout;
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let mut judged = Vec::new();
    for (name, document) in [
        (0, record("stream sim:linux-disk --seed 1 --budget 2s --json -")),
        (0, record("run /nonexistent --json -")),
        (1, line),
    ] {
        for changed in with_breaches(&document) {
            // Another kind of document has another schema, or none.
            if changed["schema"] == document["schema"] {
                let holds = schema::complaints(&changed, Writer::Current).is_empty();
                judged.push(json!([name, changed, holds]));
            }
        }
    }
    let breaches = judged.iter().filter(|case| case[2] == false).count();
    assert!(judged.len() > 500 && breaches > 300, "{breaches} of {}", judged.len());
    let place = directory();
    let cases = place.path().join("cases.json");
    fs::write(&cases, json!(judged).to_string()).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).arg(&cases);
    python.args(["record", "watch"].map(|name| tests.join(format!("../../../docs/{name}.schema.json"))));
    let run = cli::run(python, checked_run::LIMIT);
    assert_eq!((run.status_code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
}

/// What the types allow and the meaning does not.
fn breaches(record: &Value) {
    let measured =
        contract::list(&record["cells"]).iter().position(has_interval).expect("some cell has an interval");
    let at = |rest: &str| format!("/cells/{measured}{rest}");
    let second = record["cells"][1]["id"].clone();
    for (pointer, value) in [
        ("/schema".to_owned(), json!("rdsk.record/3")),
        ("/status".into(), json!("done")),
        ("/started_at".into(), json!("yesterday")),
        ("/error".into(), json!({"code": "x", "message": "x", "hint": null})),
        ("/targets/0/index".into(), json!(1)),
        ("/cells/0/id".into(), second),
        (at("/experiment"), json!("warm-up")),
        (at("/verdict/code"), json!("fast")),
        (at("/verdict"), Value::Null),
        (at("/result/stop"), json!("tired")),
        (at("/result/bytes"), json!(1)),
        (at("/result/ops"), json!(0)),
        (at("/result/bytes_per_s/low"), json!(1e300)),
        (at("/result/latency_ns/max"), json!(0)),
        (at("/result/latency_ns/count"), json!(3)),
        (at("/result/to_return_ns"), json!(u64::MAX)),
        (at("/result/windows/bytes"), json!([1])),
        (at("/workload/targets"), json!([7])),
        ("/findings/0/evidence".into(), json!([])),
        ("/findings/0/cells".into(), json!(["no/such/cell"])),
    ] {
        let mut broken = record.clone();
        *broken.pointer_mut(&pointer).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
        assert!(!complaints(&broken).is_empty(), "{pointer} may be {value}");
    }
}

#[test]
fn status_and_exit_code_belong_together() {
    let with = |status: &str, kind: Value| json!({"status": status, "error": {"kind": kind}, "cells": []});
    for (record, code) in [
        (with("complete", Value::Null), 0),
        (with("interrupted", json!("interrupted")), 130),
        (with("failed", json!("usage")), 2),
        (with("failed", json!("refused")), 3),
        (with("failed", json!("io")), 4),
    ] {
        for other in [0, 1, 2, 3, 4, 101, 130] {
            assert_eq!(exit_complaints(&record, other).is_empty(), other == code, "{record} and {other}");
        }
    }
    let failed_cell = json!({"status": "complete", "cells": [{"result": {"errors": [{}]}}]});
    assert!(!exit_complaints(&failed_cell, 0).is_empty());
}

#[test]
fn every_command_gives_a_document_in_every_kind_of_failure() {
    let place = directory();
    let empty = place.path().join("empty");
    let file = place.path().join("file");
    fs::write(&empty, "").unwrap();
    written_file(&file, 1 << 20);
    for verb in ["run", "paths", "stream", "align"] {
        for (rest, code) in [
            ("--bugdet 1s".to_owned(), 2),
            ("--budget soon".into(), 2),
            ("--size 0".into(), 2),
            ("/nonexistent/disk".into(), 3),
            (word(&empty).into(), 3),
            (format!("{} --rw write", word(&file)), 3),
            (format!("{} /dev/null", word(&file)), 3),
        ] {
            let answer = ask(&format!("{verb} {rest}")).expect_code(code);
            assert_eq!(answer.record["status"], "failed");
            assert!(answer.cells().is_empty());
            let (error, hint) = answer.error_and_hint();
            assert_eq!(
                (&answer.record["error"]["message"], &answer.record["error"]["hint"]),
                (&error.into(), &hint.into())
            );
        }
    }
    checked_run::assert_nothing_left(place.path());
}

#[test]
fn ids_are_unique_and_sort_by_time() {
    let first = ask("run /nonexistent");
    let second = ask("run /nonexistent");
    let [first, second] = [&first, &second].map(|answer| answer.record["id"].as_str().unwrap().to_owned());
    assert!(first < second, "{first} is not before {second}");
}

#[test]
fn a_compact_document_leaves_out_series_and_nothing_else() {
    let both = |line: &str| {
        [line.to_owned(), format!("{line} --json-compact")].map(|line| {
            let run = cli::run(rdsk(&format!("{line} --json -")), checked_run::LIMIT);
            assert_eq!(run.status_code, Some(0), "{}", run.stderr);
            (cli::json(&run), run.stdout.len())
        })
    };
    // A simulated run repeats exactly, so that both documents have the same visits.
    let [(_, full_bytes), (_, compact_bytes)] = both("stream sim:linux-disk --seed 1 --budget 2s");
    assert!(compact_bytes < full_bytes, "{compact_bytes} bytes against {full_bytes}");
    let place = directory();
    let [full, compact] = both(&format!("stream {} --size 4M --runtime 500ms", word(place.path())));
    let has_histogram = |record: &Value| record["cells"][0]["result"]["latency_ns"]["histogram"].is_string();
    assert!(has_histogram(&full.0) && !has_histogram(&compact.0));
    assert_eq!(complaints(&full.0), [""; 0]);
    assert_eq!(complaints(&compact.0), [""; 0]);
    // What was measured is still there.
    for name in ["bytes", "ops", "bytes_per_s", "latency_ns", "streams", "cpu_ns"] {
        for cell in contract::list(&compact.0["cells"]) {
            assert!(!cell["result"][name].is_null(), "{name} in {cell:#}");
        }
    }
}

#[test]
fn a_file_gets_the_same_document() {
    let place = directory();
    let documents = directory();
    let document = documents.path().join("record.json");
    for _ in 0..2 {
        let line = format!("paths {} --size 4M --bytes 1M --runtime 50ms", word(place.path()));
        let run = cli::run(rdsk(&format!("{line} --json {}", word(&document))), checked_run::LIMIT);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        assert!(run.stdout.lines().count() > 3, "no page beside the document: {}", run.stdout);
        let record: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
        assert_eq!(complaints(&record), [""; 0]);
    }
    // A failure does not replace what was measured, and says so, lest the old figures be taken for new ones.
    let run = cli::run(rdsk(&format!("run /nonexistent --json {}", word(&document))), checked_run::LIMIT);
    assert_eq!(run.status_code, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains("a measured run"), "{}", run.stderr);
    let status = || {
        let record: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
        assert_eq!(complaints(&record), [""; 0]);
        record["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(), "complete");
    // What was not measured is replaced.
    fs::remove_file(&document).unwrap();
    for missing in ["/nonexistent/one", "/nonexistent/other"] {
        let run = cli::run(rdsk(&format!("run {missing} --json {}", word(&document))), checked_run::LIMIT);
        assert_eq!(run.status_code, Some(3), "{}", run.stderr);
        assert!(status() == "failed" && fs::read_to_string(&document).unwrap().contains(missing));
    }
    assert_eq!(fs::read_dir(documents.path()).unwrap().count(), 1, "an unfinished document is left");
}

#[test]
fn the_plan_is_a_document_of_its_own_and_makes_nothing() {
    let place = directory();
    let run = cli::run(rdsk(&format!("run {} --dry-run --json -", word(place.path()))), checked_run::LIMIT);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let plan = cli::json(&run);
    assert_eq!(plan["schema"], "rdsk.plan/1");
    assert!(contract::list(&plan["plan"]["cells"]).len() > 20, "{plan:#}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// The names of all keys of a file of schemas.
fn keys(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            found.extend(properties.into_iter().flatten().map(|(key, _)| key.clone()));
            object.values().for_each(|value| keys(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_schemas_is_described() {
    let record = include_str!("../../../docs/record.md");
    for (page, schema) in [
        (record.to_owned(), include_str!("../../../docs/record.schema.json")),
        // The counters are those of the Record.
        (
            format!("{}{record}", include_str!("../../../docs/watch.md")),
            include_str!("../../../docs/watch.schema.json"),
        ),
    ] {
        let words: BTreeSet<&str> = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        let mut named = BTreeSet::new();
        keys(&serde_json::from_str(schema).unwrap(), &mut named);
        let missing: Vec<&String> = named.iter().filter(|key| !words.contains(key.as_str())).collect();
        assert!(named.len() > 30 && missing.is_empty(), "not described: {missing:?}");
    }
}

/// docs/record.md names every key of the documents that are no Records.
#[test]
fn the_other_documents_are_described() {
    let page = include_str!("../../../docs/record.md");
    let (_, page) = page.split_once("## The other documents").unwrap();
    let words: Vec<&str> = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let place = directory();
    let document = |line: String| cli::json(&cli::run(rdsk(&line), checked_run::LIMIT));
    let plan = document(format!("paths {} --dry-run --json -", word(place.path())));
    let info = document(format!("info {} --json -", word(place.path())));
    for object in [
        &plan, &plan["plan"], &plan["plan"]["cells"][0], &info, &info["targets"][0],
        &info["targets"][0]["writing"],
    ] {
        for key in object.as_object().unwrap().keys() {
            assert!(words.contains(&key.as_str()), "{key} is not described");
        }
    }
}
