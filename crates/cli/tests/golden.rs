//! Records that were written once and must be read for good: one of every experiment, for every number of the schema. New ones
//! are added and none is written again: `rdsk COMMAND sim:linux-disk --seed 1 --json FILE --json-compact`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::rdsk;
use rdsk_analysis::Analysis;
use rdsk_model::{Experiment, Record};
use rdsk_report::{Further, Style, markdown, markdown_table, short, text};
use rdsk_testkit::schema::{self, Writer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The schemas that were ever written.
const SCHEMAS: &[&str] = &["rdsk.record/1", "rdsk.record/2"];

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn documents() -> Vec<(PathBuf, Value)> {
    let read = |path: PathBuf| {
        let document = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path, document)
    };
    files().into_iter().map(read).collect()
}

fn record(path: &Path, document: &Value) -> Record {
    serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What one schema has, every one has.
#[test]
fn there_is_one_of_every_experiment_and_schema() {
    let documents = documents();
    let experiments = |schema: &str| -> Vec<Experiment> {
        let of_schema = documents.iter().filter(|(_, document)| document["schema"] == *schema);
        let records: Vec<Record> = of_schema.map(|(path, document)| record(path, document)).collect();
        let has_it = |experiment: &&Experiment| {
            records.iter().flat_map(|record| &record.cells).any(|cell| cell.experiment == **experiment)
        };
        Experiment::ALL.iter().filter(has_it).copied().collect()
    };
    let first = experiments(SCHEMAS[0]);
    assert!(first.len() >= 9, "{first:?}");
    for schema in SCHEMAS {
        assert!(first.iter().all(|experiment| experiments(schema).contains(experiment)), "{schema}");
    }
}

/// A key that was written once is never renamed or removed within its schema; those that came later may be missing.
#[test]
fn the_schema_of_today_names_every_key_of_each() {
    for (path, document) in documents() {
        assert_eq!(schema::complaints(&document, Writer::Older), [""; 0], "{}", path.display());
    }
}

#[test]
fn every_one_is_drawn_and_leaves_in_every_form() {
    let mut records = Vec::new();
    for (path, document) in documents() {
        let name = path.display();
        let record = record(&path, &document);
        for page in [
            short(&Analysis::of(&record), Further::Here, Style::default()),
            text(&Analysis::of(&record), Style::default()),
            markdown(&record),
        ] {
            assert!(page.contains(&record.targets[0].name), "{name}: {page}");
            assert!(page.lines().count() > 3 && !page.contains("NaN"), "{name}: {page}");
        }
        let json = rdsk_report::json(&record, rdsk_report::Compactness::Full);
        // What is written is of today's schema, whatever was read.
        let record = Record { schema: rdsk_model::SCHEMA.into(), ..record };
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record, "{name}");
        assert_eq!(rdsk_exchange::import(&json).unwrap(), std::slice::from_ref(&record), "{name}");
        assert_eq!(rdsk_exchange::csv([&record]).lines().count(), 1 + record.cells.len(), "{name}");
        let samples = rdsk_exchange::openmetrics(&[&record]);
        let infos = samples.lines().filter(|line| line.starts_with("rdsk_cell_info{")).count();
        assert_eq!(infos, record.cells.len(), "{name}");
        records.push(record);
    }
    let runs: Vec<&Record> = records.iter().collect();
    let table = markdown_table(&runs);
    assert!(table.starts_with(&format!("### rdsk: {} runs", records.len())), "{table}");
    assert_eq!(
        rdsk_exchange::csv(runs.iter().copied()).lines().count(),
        1 + records.iter().map(|record| record.cells.len()).sum::<usize>()
    );
}

/// A later version may add keys anywhere.
#[test]
fn keys_of_the_future_change_nothing() {
    for (path, document) in documents() {
        let mut later = document.clone();
        add_keys(&mut later);
        assert_ne!(later, document);
        assert_eq!(record(&path, &later), record(&path, &document), "{}", path.display());
    }
}

fn add_keys(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(add_keys);
            members.insert("key_of_the_future".into(), json!({ "figures": [1, null, "x"] }));
        }
        Value::Array(values) => values.iter_mut().for_each(add_keys),
        _ => {}
    }
}

#[test]
fn the_program_shows_each_of_them() {
    for path in files() {
        for details in [&[][..], &["--details"]] {
            let mut line = vec!["show", path.to_str().unwrap()];
            line.extend(details);
            let run = rdsk(&line);
            assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{}", run.command);
            assert!(run.stdout.lines().count() > 5, "{}", run.stdout);
        }
    }
}
