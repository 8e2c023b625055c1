//! Documents that fio wrote, as Records: every figure is fio's own, and what fio does not show is null.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use rdsk_exchange::{ImportError, csv, import, openmetrics};
use rdsk_model::{
    CellRecord, EngineKind, Experiment, IoPath, Pattern, Record, Status, StopReason, TargetKind, VerdictCode,
};
use rdsk_stats::Histogram;
use serde_json::Value;

macro_rules! fixtures {
    ($($name:literal),+ $(,)?) => {
        const FIXTURES: &[(&str, &str)] = &[$(($name, include_str!(concat!("fixtures/fio/", $name, ".json")))),+];
    };
}
fixtures!(
    "enospc", "grouped", "lat-percentiles", "libaio-plus", "many", "mixed-uring", "no-latency",
    "no-percentiles", "notes-before", "rated-and-normal", "seqwrite", "split", "timed-samples", "trim-loop",
);

fn text(name: &str) -> &'static str {
    FIXTURES.iter().find(|(other, _)| *other == name).unwrap().1
}

fn record(name: &str) -> Record {
    let mut records = import(text(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(records.len(), 1, "{name}");
    records.remove(0)
}

fn record_of(document: &Value) -> Record {
    import(&document.to_string()).unwrap().remove(0)
}

/// fio's own document, whatever stands around it.
fn document(name: &str) -> Value {
    let from = text(name).find("{\n").unwrap();
    serde_json::Deserializer::from_str(&text(name)[from..]).into_iter().next().unwrap().unwrap()
}

/// The directions of a document that moved anything, in the order of the cells.
fn directions(document: &Value) -> Vec<(Value, &'static str)> {
    let jobs = document["jobs"].as_array().unwrap();
    let directions = jobs.iter().flat_map(|job| ["read", "write"].map(|op| (job[op].clone(), op)));
    directions.filter(|(direction, _)| direction["total_ios"] != 0).collect()
}

fn only(name: &str) -> CellRecord {
    let mut cells = record(name).cells;
    assert_eq!(cells.len(), 1, "{name}");
    cells.remove(0)
}

fn has_note(name: &str, text: &str) {
    let notes = record(name).notes;
    assert!(notes.iter().any(|note| note.contains(text)), "{name}: {text}: {notes:?}");
}

fn about(left: f64, right: f64, tolerance: f64) {
    assert!((left - right).abs() <= tolerance, "{left} is not {right}");
}

#[test]
fn every_figure_is_that_of_fio() {
    for (name, _) in FIXTURES {
        let (record, document) = (record(name), document(name));
        assert_eq!(record.source.as_ref().unwrap().version.as_deref(), document["fio version"].as_str());
        let directions = directions(&document);
        let of_jobs: Vec<&CellRecord> =
            record.cells.iter().filter(|cell| !cell.id.contains("#sum/")).collect();
        // A job that failed before its first I/O has a cell that says so.
        assert_eq!(
            of_jobs.len(),
            directions.len().max(usize::from(record.status == Status::Failed)),
            "{name}"
        );
        for (cell, (direction, op)) in of_jobs.into_iter().zip(&directions) {
            let result = &cell.result;
            assert_eq!(cell.workload.op.as_str(), *op, "{name}");
            assert_eq!(result.bytes, direction["io_bytes"].as_u64(), "{name}");
            assert_eq!(result.ops, direction["total_ios"].as_u64(), "{name}");
            assert_eq!(
                result.elapsed_ns.map(|ns| ns / 1_000_000),
                direction["runtime"].as_u64().filter(|&ms| ms > 0),
                "{name}"
            );
            let (Some(bandwidth), Some(rate)) = (result.bytes_per_s, result.ops_per_s) else {
                assert_eq!((*name, direction["runtime"].as_u64()), ("enospc", Some(0)));
                continue;
            };
            // fio cuts its bandwidth to whole bytes, and prints rates with six decimals.
            about(bandwidth.mean, direction["bw_bytes"].as_f64().unwrap(), 1.0);
            about(rate.mean, direction["iops"].as_f64().unwrap(), 1e-6);
            assert_eq!(
                (bandwidth.low, bandwidth.high, rate.low, rate.high),
                (None, None, None, None),
                "{name}"
            );
            latencies(name, cell, direction);
            samples(cell, direction);
        }
    }
}

/// Each latency is that of `lat_ns` or of `clat_ns`, all of the same one.
fn latencies(name: &str, cell: &CellRecord, direction: &Value) {
    let clock = if name == "lat-percentiles" || name == "no-percentiles" { "lat_ns" } else { "clat_ns" };
    let from = &direction[clock];
    let Some(latency) = &cell.result.latency_ns else {
        assert_eq!((from["N"].as_u64(), name), (Some(0), "no-latency"));
        return;
    };
    assert_eq!(Some(latency.count), from["N"].as_u64(), "{name}");
    assert_eq!(latency.min, from["min"].as_u64(), "{name}");
    assert_eq!(latency.max, from["max"].as_u64(), "{name}");
    assert_eq!(latency.mean, from["mean"].as_f64(), "{name}");
    let needed = [20, 100, 1000, 10_000, 100_000];
    let percentiles = [latency.p50, latency.p90, latency.p99, latency.p999, latency.p9999];
    let keys = ["50.000000", "90.000000", "99.000000", "99.900000", "99.990000"];
    for ((ours, key), needed) in percentiles.into_iter().zip(keys).zip(needed) {
        let expected = from["percentile"][key].as_u64().filter(|_| latency.count >= needed);
        assert_eq!(ours, expected, "{name} {key}");
    }
    match from.get("bins").and_then(Value::as_object) {
        None => assert_eq!(latency.histogram, None, "{name}"),
        Some(bins) => {
            let histogram = Histogram::from_base64(latency.histogram.as_deref().unwrap()).unwrap();
            assert_eq!(histogram.count(), latency.count, "{name}");
            for (ns, _) in bins {
                let ns: u64 = ns.parse().unwrap();
                let up_to: u64 = bins
                    .iter()
                    .filter(|(edge, _)| edge.parse::<u64>().unwrap() <= ns)
                    .map(|(_, n)| n.as_u64().unwrap())
                    .sum();
                assert_eq!(histogram.count_up_to(ns), up_to, "{name} {ns}");
            }
        }
    }
}

fn samples(cell: &CellRecord, direction: &Value) {
    let Some(samples) = cell.result.samples else {
        assert_eq!(
            (direction["bw_samples"].as_u64(), direction["iops_samples"].as_u64()),
            (Some(0), Some(0))
        );
        return;
    };
    let (bandwidth, ios) = (samples.bytes_per_s.unwrap(), samples.ops_per_s.unwrap());
    let kib = |key: &str| direction[key].as_f64().unwrap() * 1024.0;
    let figure = |key: &str| direction[key].as_f64().unwrap();
    assert_eq!(
        (Some(bandwidth.count), bandwidth.mean, bandwidth.stddev, bandwidth.min, bandwidth.max),
        (direction["bw_samples"].as_u64(), kib("bw_mean"), kib("bw_dev"), kib("bw_min"), kib("bw_max"))
    );
    assert_eq!(
        (Some(ios.count), ios.mean, ios.stddev, ios.min, ios.max),
        (
            direction["iops_samples"].as_u64(),
            figure("iops_mean"),
            figure("iops_stddev"),
            figure("iops_min"),
            figure("iops_max")
        )
    );
}

#[test]
fn what_fio_does_not_show_is_null() {
    for (name, _) in FIXTURES {
        let record = record(name);
        assert_eq!(record.host, None, "{name}");
        for cell in &record.cells {
            let document = serde_json::to_value(cell).unwrap();
            for key in [
                "cpu_ns", "windows", "to_return_ns", "to_close_ns", "to_stable_ns", "asked_bytes",
                "warmup_ns",
            ] {
                assert!(document["result"][key].is_null(), "{name} {key}");
            }
            assert_eq!(document["evidence"]["source"], "none", "{name}");
            assert_eq!(document["evidence"]["device"], serde_json::json!([]), "{name}");
            let verdict = cell.verdict.as_ref().unwrap();
            let expected =
                if cell.result.bytes == Some(0) { VerdictCode::Incomplete } else { VerdictCode::Unverified };
            assert_eq!((verdict.code, verdict.device_share), (expected, None), "{name}");
            assert_eq!(cell.experiment, Experiment::Fio);
        }
        for target in &record.targets {
            assert!(serde_json::to_value(target).unwrap()["size_bytes"].is_null(), "{name}");
            assert_eq!(target.device, None);
        }
        let read: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(read, record, "{name}: the Record is read as it was written");
        // Rules that need what is not there say nothing.
        let codes: Vec<&str> = record.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert!(codes.iter().all(|code| ["queue-depth-not-reached"].contains(code)), "{name}: {codes:?}");
    }
}

#[test]
fn workloads_are_those_of_the_options() {
    let libaio = only("libaio-plus").workload;
    assert_eq!(
        (libaio.pattern, libaio.path, libaio.engine),
        (Pattern::Random, IoPath::Direct, EngineKind::Aio)
    );
    assert_eq!((libaio.block_bytes, libaio.queue_depth, libaio.streams), (4096, 16, 1));
    assert_eq!((libaio.offset_bytes, libaio.span_bytes), (0, 4 << 20));

    let [read, write] = &record("mixed-uring").cells[..] else { panic!("two directions") };
    assert_eq!((read.id.as_str(), write.id.as_str()), ("fio/mixed/read", "fio/mixed/write"));
    assert_eq!((read.workload.block_bytes, write.workload.block_bytes), (4096, 8192));
    assert_eq!((read.result.engine, read.workload.path), (Some(EngineKind::Uring), IoPath::Buffered));
    assert_eq!((read.result.in_flight_mean, write.result.in_flight_mean), (None, None));

    assert_eq!(only("grouped").workload.streams, 3);
    assert_eq!(only("grouped").result.in_flight_mean, None);
    let many = record("many");
    let ids: Vec<&str> = many.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["fio/many/read", "fio/many#2/read", "fio/many#sum/read"]);
    assert!(many.cells.iter().map(|cell| cell.workload.streams).eq([1, 1, 2]));
    assert_eq!(many.targets.len(), 1);
    assert_eq!(many.command.iter().filter(|word| *word == "--name=many").count(), 1);

    let [writer, reader] = &record("notes-before").cells[..] else { panic!("two jobs") };
    assert_eq!(writer.workload.block_bytes, 4000, "what fio makes of 4KiB");
    assert_eq!((writer.workload.path, reader.workload.path), (IoPath::Buffered, IoPath::Direct));
    assert_eq!(reader.workload.queue_depth, 1, "psync does one at a time");
    assert_eq!((&reader.workload.targets, reader.workload.pattern), (&vec![0], Pattern::Sequential));

    let trim = record("trim-loop");
    assert_eq!((trim.cells.len(), trim.targets[0].kind), (1, TargetKind::Block));
    let split = only("split");
    let mean = split.result.bytes.unwrap() / split.result.ops.unwrap();
    assert_eq!(split.workload.block_bytes, mean);
}

#[test]
fn figures_that_mislead_have_a_note() {
    for (name, text) in [
        ("libaio-plus", "randread: latencies of its reads are fio's clat"),
        ("mixed-uring", "mixed: reads and writes of the job share its queue"),
        ("notes-before", "writer: fsync=8 takes time that is in the rate"),
        ("notes-before", "reader: psync does one I/O at a time, whatever iodepth=32 says"),
        ("rated-and-normal", "rated: fio held the job back (rate=2m)"),
        ("timed-samples", "timed: fio held the job back (rate_iops=3000)"),
        ("split", "split: its I/Os have several sizes"),
        ("trim-loop", "discard: 64 trims of 4 MiB have no test"),
        (
            "grouped",
            "vda: in the whole run of fio 0 reads and 0 writes of all programs, 0.0% of the time busy",
        ),
    ] {
        has_note(name, text);
    }
    for name in ["grouped", "many", "lat-percentiles"] {
        let notes = record(name).notes;
        assert!(notes.iter().all(|note| !note.contains("clat")), "{name}: {notes:?}");
    }
    let buffered = only("grouped").verdict.unwrap().text;
    assert!(buffered.contains("memory may have served"), "{buffered}");
    let direct = only("libaio-plus").verdict.unwrap().text;
    assert!(!direct.contains("memory"), "{direct}");
}

#[test]
fn a_job_that_failed_is_a_record_that_says_so() {
    let record = record("enospc");
    assert_eq!(record.status, Status::Failed);
    let error = record.error.unwrap();
    assert!(
        error.message.starts_with("fio ended the job full with an error: No space left on device"),
        "{error}"
    );
    let cell = &record.cells[0];
    assert_eq!((cell.id.as_str(), cell.result.stop), ("fio/full/write", StopReason::Error));
    assert_eq!((cell.result.bytes, cell.result.bytes_per_s), (Some(0), None));
}

#[test]
fn times_and_names_follow_from_the_document() {
    let record = record("libaio-plus");
    let document = document("libaio-plus");
    let elapsed = document["jobs"][0]["elapsed"].as_u64().unwrap();
    assert_eq!(record.elapsed_ns, elapsed * 1_000_000_000);
    let ended = i64::try_from(document["timestamp_ms"].as_u64().unwrap() - elapsed * 1000).unwrap();
    assert_eq!(record.started_at.parse::<jiff::Timestamp>().unwrap().as_millisecond(), ended);
    assert_eq!(self::record("libaio-plus").id, record.id, "the same document is the same run");
    assert_ne!(self::record("many").id, record.id);
    assert_eq!(
        record.command,
        [
            "fio", "--name=randread", "--bs=4k", "--direct=1", "--filename=/srv/test/data", "--io_size=24m",
            "--iodepth=16", "--ioengine=libaio", "--rw=randread", "--size=4m"
        ]
    );
    assert_eq!(record.targets[0].name, "/srv/test/data");
    let in_flight = record.cells[0].result.in_flight_mean.unwrap();
    assert!((1.0..=17.0).contains(&in_flight), "{in_flight}");
    assert_eq!(self::record("notes-before").command[..2], ["fio", "--name=global"]);
}

#[test]
fn what_is_not_a_run_of_fio_is_refused_in_words() {
    let said = |change: &dyn Fn(&mut Value)| {
        let mut document = document("grouped");
        change(&mut document);
        import(&document.to_string()).unwrap_err().to_string()
    };
    let old = said(&|document| document["fio version"] = "fio-1.59".into());
    assert_eq!(old, "it is of fio-1.59, and in which units that counts is not known; rdsk reads fio 2 and 3");
    assert_eq!(said(&|document| document["jobs"] = serde_json::json!([])), "it has no jobs");
    let key = said(&|document| document["jobs"][0]["read"]["total_ios"] = "many".into());
    assert!(key.starts_with("fio writes no such document, at jobs[0].read.total_ios: invalid type"), "{key}");
    let many = said(&|document| {
        let job = document["jobs"][0].clone();
        document["jobs"] = vec![job; 4097].into();
    });
    assert_eq!(many, "it has 4097 jobs, and fio runs at most 4096");
    let cut = text("grouped");
    let cut = import(&cut[..cut.len() / 2]).unwrap_err();
    assert!(matches!(cut, ImportError::Json { .. }), "{cut}");
}

/// fio writes a share as it was given, and nowhere how large the target is.
#[test]
fn an_offset_that_is_a_share_is_null_and_not_0() {
    for (offset, expected) in [("1m", Some(1 << 20)), ("50%", None), ("0", Some(0))] {
        let mut document = document("libaio-plus");
        document["jobs"][0]["job options"]["offset"] = offset.into();
        let record = record_of(&document);
        assert_eq!(record.cells[0].workload.known_offset_bytes(), expected, "{offset}");
        let table = csv([&record]);
        let mut lines = table.lines().map(|line| line.split(','));
        let (mut names, mut fields) = (lines.next().unwrap(), lines.next().unwrap());
        let column = names.position(|name| name == "offset_bytes").unwrap();
        let shown = expected.map_or_else(String::new, |offset: u64| offset.to_string());
        assert_eq!(fields.nth(column), Some(shown.as_str()), "{offset}");
        let is_told = record.notes.iter().any(|note| note.contains("offset=50% is no number of bytes"));
        assert_eq!(is_told, expected.is_none(), "{:?}", record.notes);
    }
}

/// One job may name tens of thousands of files, some of them twice.
#[test]
fn each_of_many_names_is_one_target() {
    let names: Vec<String> = (0..30_000).map(|number| format!("f{}", number % 29_999)).collect();
    let mut document = document("libaio-plus");
    document["jobs"][0]["job options"]["filename"] = names.join(":").into();
    let record = record_of(&document);
    assert_eq!(record.targets.len(), 29_999);
    let indices = &record.cells[0].workload.targets;
    assert_eq!((indices.len(), indices[0], indices[29_998], indices[29_999]), (30_000, 0, 29_998, 0));
    assert!(record.targets.iter().zip(0..).all(|(target, index)| target.index == index));
    // As many jobs as fio runs, all alike: each has an id of its own.
    let mut document = self::document("many");
    let job = document["jobs"][0].clone();
    document["jobs"] = vec![job; 4096].into();
    let record = record_of(&document);
    assert_eq!(record.cells[4095].id, "fio/many#4096/read");
    assert_eq!((record.cells.len(), record.cells[4096].workload.streams), (4097, 4096));
}

#[test]
fn what_fio_prints_in_another_format_is_told_by_its_name() {
    for (text, said) in [
        ("3;fio-3.33;randread;0;0;24576;6000000;1464\n", "it is fio's terse output"),
        (
            "randread: (g=0): rw=randread, bs=(R) 4096B-4096B\nfio-3.33\nStarting 1 process\n\n\
             randread: (groupid=0, jobs=1): err= 0: pid=42: Sat Nov 21 09:00:00 2026\n",
            "it is fio's normal output",
        ),
    ] {
        let error = import(text).unwrap_err().to_string();
        assert!(error.starts_with(said) && error.contains("--output-format=json"), "{error}");
        // Beside the JSON, as --output-format=normal,json prints it, it is passed over.
        assert_eq!(import(&format!("{text}{}\n{text}", self::text("grouped"))).unwrap(), [record("grouped")]);
    }
}

#[test]
fn extreme_numbers_are_no_panic() {
    for number in [Value::from(u64::MAX), Value::from(1e300), Value::from(-1), Value::from(0)] {
        for key in ["io_bytes", "total_ios", "runtime", "short_ios", "bw_samples", "bw_mean", "iops_dev"] {
            let mut document = document("timed-samples");
            document["jobs"][0]["read"][key] = number.clone();
            let_it_be_used(&document.to_string());
        }
        for key in ["timestamp_ms", "timestamp"] {
            let mut document = document("timed-samples");
            document[key] = number.clone();
            document["jobs"][0]["elapsed"] = number.clone();
            let_it_be_used(&document.to_string());
        }
        let mut document = document("lat-percentiles");
        document["jobs"][0]["read"]["lat_ns"]["N"] = number.clone();
        document["jobs"][0]["read"]["lat_ns"]["bins"] = serde_json::json!({ "1": number, "2": number });
        let_it_be_used(&document.to_string());
    }
}

/// Whatever was read can be passed on; whatever was not is reported in one line.
fn let_it_be_used(text: &str) {
    match import(text) {
        Ok(records) => {
            let runs: Vec<&Record> = records.iter().collect();
            let documents = serde_json::to_string(&records).unwrap();
            let shown = [csv(runs.iter().copied()), openmetrics(&runs), documents];
            assert!(!records.is_empty() && shown.iter().all(|text| !text.is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_document_is_no_panic(
        which in 0..FIXTURES.len(),
        place in 0.0..1.0_f64,
        length in 0_usize..40,
        put in prop::sample::select(vec!["", "\"", "{", "}", "[", "0", "-1", "1e400", "null", "\\", "é", "99999999999999999999", ",", ": "]),
    ) {
        let text = FIXTURES[which].1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small text")]
        let at = (place * text.len() as f64) as usize;
        prop_assume!(text.is_char_boundary(at));
        let end = (at + length).min(text.len());
        prop_assume!(text.is_char_boundary(end));
        let_it_be_used(&format!("{}{put}{}", &text[..at], &text[end..]));
        let_it_be_used(&text[..at]);
    }
}

/// The document as another fio would have written it.
fn changed(name: &str, change: impl Fn(&mut serde_json::Map<String, Value>)) -> Record {
    let mut document = document(name);
    for job in document["jobs"].as_array_mut().unwrap() {
        change(job.as_object_mut().unwrap());
    }
    record_of(&document)
}

/// fio 3.7 and 3.16 do not say how many latencies there are.
#[test]
fn latencies_without_their_number_are_read() {
    for (name, _) in FIXTURES {
        let old = changed(name, |job| {
            for latencies in
                job.values_mut().filter_map(Value::as_object_mut).flat_map(|direction| direction.values_mut())
            {
                if let Some(latencies) = latencies.as_object_mut() {
                    latencies.remove("N");
                }
            }
        });
        let new = record(name);
        assert_eq!(old.cells.len(), new.cells.len(), "{name}");
        for (old, new) in old.cells.iter().zip(&new.cells) {
            assert_eq!(old.result.latency_ns, new.result.latency_ns, "{name}");
            assert_eq!(old.result.in_flight_mean, new.result.in_flight_mean, "{name}");
        }
        assert_eq!(old.notes, new.notes, "{name}");
    }
}

/// With `group_reporting` fio repeats the options of the first job of a group only.
#[test]
fn the_sum_of_unlike_jobs_is_no_job() {
    const NOTE: &str = "the sum of a group; the options are those of its first job";
    type Map = serde_json::Map<String, Value>;
    fn moved(job: &mut Map) -> &mut Map {
        let op = if job["read"]["total_ios"] == 0 { "write" } else { "read" };
        job[op].as_object_mut().unwrap()
    }
    let told = |record: &Record| record.notes.iter().filter(|note| note.contains(NOTE)).count();
    for (name, _) in FIXTURES {
        assert_eq!(told(&record(name)), 0, "{name}");
    }
    let block_bytes = only("libaio-plus").workload.block_bytes;
    assert!(only("libaio-plus").result.in_flight_mean.is_some());
    // As many I/Os of three times the size more.
    let sizes = changed("libaio-plus", |job| {
        let direction = moved(job);
        let [ios, bytes] = ["total_ios", "io_bytes"].map(|key| direction[key].as_u64().unwrap());
        direction.insert("total_ios".into(), (2 * ios).into());
        direction.insert("io_bytes".into(), (4 * bytes).into());
    });
    assert_eq!((told(&sizes), sizes.cells[0].workload.block_bytes), (1, 2 * block_bytes));
    assert_eq!(sizes.cells[0].result.in_flight_mean, None);
    // After a ramp the bytes of what was in flight are counted, and the I/Os are not.
    let ramp = changed("libaio-plus", |job| {
        let depth: u64 = job["job options"]["iodepth"].as_str().unwrap().parse().unwrap();
        let direction = moved(job);
        let bytes = direction["io_bytes"].as_u64().unwrap();
        direction.insert("io_bytes".into(), (bytes + depth * block_bytes).into());
    });
    assert_eq!((told(&ramp), ramp.cells[0].workload.block_bytes), (0, block_bytes));
    // Ten jobs of the same size in the same time.
    let depths = changed("libaio-plus", |job| {
        let direction = moved(job);
        for key in ["total_ios", "io_bytes"] {
            let value = direction[key].as_u64().unwrap();
            direction.insert(key.into(), (10 * value).into());
        }
        let count = direction["lat_ns"]["N"].as_u64().unwrap();
        direction["lat_ns"]["N"] = (10 * count).into();
    });
    assert_eq!((told(&depths), depths.cells[0].workload.block_bytes), (1, block_bytes));
    assert_eq!(depths.cells[0].result.in_flight_mean, None);
}

/// With `unified_rw_reporting` there is one sum in place of the directions, with `both` it stands beside them.
#[test]
fn a_sum_of_all_directions_is_no_figure_of_one() {
    let unified = |job: &mut serde_json::Map<String, Value>, op: &str| {
        let sum = job.remove(op).unwrap();
        for other in ["read", "write", "trim"] {
            job.remove(other);
        }
        job.insert("mixed".into(), sum);
    };
    let alone = changed("seqwrite", |job| unified(job, "write"));
    let plain = record("seqwrite");
    assert_eq!(alone.cells, plain.cells, "a job that only writes");
    assert!(alone.notes.iter().any(|note| note.contains("one sum of all directions")), "{:?}", alone.notes);
    let both = changed("mixed-uring", |job| unified(job, "read"));
    assert!(both.cells.is_empty(), "{:?}", both.cells);
    let note = "fio gives reads and writes as one sum (unified_rw_reporting), which is no figure of either";
    assert!(both.notes.iter().any(|found| found.ends_with(note)), "{:?}", both.notes);
    let beside = changed("mixed-uring", |job| {
        let sum = job["read"].clone();
        job.insert("mixed".into(), sum);
    });
    assert_eq!(beside.cells, record("mixed-uring").cells);
    assert_eq!(beside.notes, record("mixed-uring").notes);
}
