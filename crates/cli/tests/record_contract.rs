//! `--json -` gives a document that parses and follows the contract, whatever happened; and the checker of the contract,
//! which every other test of faults relies on, finds violations.

use std::fs;

use crate::support::checked_run::contract::{self, Shape, complaints, exit_complaints};
use crate::support::checked_run::{self, Answer, ask, directory, rdsk, word, written_file};
use rdsk_model::{
    BpfEvidence, CountedDevice, CrossCheck, ExtentEvidence, LoopFile, PageCache, PageCacheState,
    ProcessorUse, QuotaUse,
};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::cli;
use serde_json::{Value, json};

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

fn wrong_for(shape: &Shape) -> Value {
    match shape {
        Shape::Text | Shape::Word(_) | Shape::List(_) => json!(17),
        Shape::Whole | Shape::Signed | Shape::Number | Shape::Flag | Shape::Object(_) => json!("seventeen"),
        Shape::OrNull(inner) | Shape::LeftOut(inner) => wrong_for(inner),
    }
}

#[test]
fn a_run_of_everything_keeps_the_contract_and_the_checker_notices_each_breach() {
    let answer = whole();
    let record = &answer.record;
    for experiment in ["headline", "paths", "stream", "align", "zones", "scale"] {
        let cells = answer.cells().iter().filter(|cell| cell["experiment"] == experiment);
        assert!(cells.count() > 0, "{experiment}");
    }
    assert_eq!(record["label"], "night");
    assert_eq!(record["command"][1], "run");
    let pointers = contract::pointers(record, &contract::RECORD, "");
    // All of record.md is reached: the document, a target with a device, a cell with its evidence, a finding.
    for expected in [
        "/host/clock/read_cost_ns",
        "/targets/0/stack",
        "/cells/0/result/latency_ns/p99",
        "/findings/0/advice",
    ] {
        assert!(pointers.iter().any(|(pointer, _)| pointer == expected), "{expected} is not reached");
    }
    pointers.iter().for_each(|(pointer, shape)| notices(record, pointer, shape));
    breaches(record);
}

/// The checker notices a member that is missing, of another type, or null.
fn notices(record: &Value, pointer: &str, shape: &Shape) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a parent");
    let name = name.replace("~1", "/").replace("~0", "~");
    if !matches!(shape, Shape::LeftOut(_)) {
        let mut missing = record.clone();
        let object =
            missing.pointer_mut(parent).and_then(Value::as_object_mut).expect("the parent is an object");
        assert!(object.remove(&name).is_some(), "{pointer}");
        assert!(!complaints(&missing).is_empty(), "{pointer} may be missing");
    }
    let mut wrong = record.clone();
    *wrong.pointer_mut(pointer).expect("the member is there") = wrong_for(shape);
    assert!(!complaints(&wrong).is_empty(), "{pointer} may be of another type");
    if !matches!(shape, Shape::OrNull(_)) {
        *wrong.pointer_mut(pointer).expect("the member is there") = Value::Null;
        assert!(!complaints(&wrong).is_empty(), "{pointer} may be null");
    }
}

/// Evidence that a run has only where loop devices, processors or BPF programs were counted. Every field is spelled out, so that a
/// new one needs its place here and in the contract.
#[test]
fn evidence_that_is_not_everywhere_is_in_the_contract() {
    let place = directory();
    let line = format!("paths {} --size 4M --bytes 1M --runtime 50ms --rw read", word(place.path()));
    let mut record = ask(&line).expect_code(0).record;
    let state = PageCacheState { cached_bytes: Some(1), dirty_bytes: Some(2) };
    let extents = ExtentEvidence { mapped_bytes: 1, unwritten_bytes: 2, hole_bytes: 3, extents: 4 };
    let file = LoopFile {
        target: 0,
        device: "loop0".into(),
        file: "/srv/a.img".into(),
        filesystem: Some("ext4".into()),
        direct_io: Some(true),
        below: Some("sda".into()),
        partitions: vec!["loop0p1".into()],
        size_bytes: 5,
        extents: Some(extents),
        page_cache: Some(PageCache { before: state, after: state, stable: Some(state) }),
    };
    let processor = ProcessorUse {
        interval_ns: 1,
        processors: 2,
        user_ns: 3,
        system_ns: 4,
        steal_ns: 5,
        own_user_ns: 6,
        own_system_ns: 7,
        own_wait_ns: Some(8),
        pressure_ns: Some(9),
        quota: Some(QuotaUse { periods: 10, throttled_periods: 11, throttled_ns: 12 }),
    };
    let check = CrossCheck { target: 0, device: "sda".into(), bpf: 1, sysfs: 2 };
    let counted = CountedDevice {
        target: 0,
        device: "md0".into(),
        kind: Some("raid5".into()),
        takes_bios: true,
        below: vec!["sda".into()],
        lost: Some(3),
    };
    let bpf = BpfEvidence {
        followed: Some(vec![0]),
        observed_ns: 2,
        timed_ns: Some(1),
        visits_ns: 3,
        checks: vec![check],
        lost: 3,
        devices: vec![counted],
    };
    let evidence = record["cells"][0]["evidence"].as_object_mut().unwrap();
    for (name, value) in [
        ("extents", json!(extents)),
        ("loops", json!([file])),
        ("processor", json!(processor)),
        ("processor_visits", json!([processor])),
        ("bpf", json!(bpf)),
    ] {
        evidence.insert(name.into(), value);
    }
    assert_eq!(complaints(&record), [""; 0]);
    let pointers = contract::pointers(&record, &contract::RECORD, "");
    for name in ["extents", "loops", "processor", "processor_visits", "bpf"] {
        let place = format!("/cells/0/evidence/{name}");
        let own = pointers.iter().filter(|(pointer, _)| pointer.starts_with(&format!("{place}/")));
        assert!(own.clone().count() >= 4, "{name}");
        own.for_each(|(pointer, shape)| notices(&record, pointer, shape));
        let unnamed = contract::unnamed(&record, &contract::RECORD, "");
        let of_it: Vec<&String> =
            unnamed.iter().filter(|member| member.contains(&format!("/{name}/"))).collect();
        assert!(of_it.is_empty(), "the contract does not name {of_it:?}");
    }
}

/// What the types allow and the meaning does not.
fn breaches(record: &Value) {
    let measured =
        contract::list(&record["cells"]).iter().position(has_interval).expect("some cell has an interval");
    let at = |rest: &str| format!("/cells/{measured}{rest}");
    let second = record["cells"][1]["id"].clone();
    for (pointer, value) in [
        ("/schema".to_owned(), json!("rdsk.record/2")),
        ("/status".into(), json!("done")),
        ("/started_at".into(), json!("yesterday")),
        ("/error".into(), json!({"code": "x", "message": "x", "hint": null})),
        ("/targets/0/index".into(), json!(1)),
        ("/cells/0/id".into(), second),
        (at("/experiment"), json!("load")),
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
        &plan,
        &plan["plan"],
        &plan["plan"]["cells"][0],
        &info,
        &info["targets"][0],
        &info["targets"][0]["writing"],
    ] {
        for key in object.as_object().unwrap().keys() {
            assert!(words.contains(&key.as_str()), "{key} is not described");
        }
    }
}
