//! `cargo xtask same-records OTHER_RDSK`: measures every built-in system with every experiment and the same seed by two
//! programs and compares their Records. A change of structure or words must leave every value as it was; this shows it.

mod compare;

use crate::options::{self, Options};
use crate::programs;
use anyhow::{Context as _, Result, bail, ensure};
use compare::{Change, Comparison};
use rdsk_analysis::iostat::{COLUMNS, iostat_row, waiting_mean};
use rdsk_model::{DeviceEvidence, Experiment};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Paths that are shown of one pair of Records; the rest is counted.
const MAX_SHOWN: usize = 5;

/// What may differ: facts of one run, texts, and the keys that changed since the last release, which go with the next one.
const CHANGES: &[(&str, Change)] = &[
    ("id", Change::Ignored),
    ("command", Change::Ignored),
    ("rdsk_version", Change::Ignored),
    ("started_at", Change::Ignored),
    ("elapsed_ns", Change::Ignored),
    ("observer.rung", Change::RenamedTo("source")),
    ("cells[].evidence.rung", Change::RenamedTo("source")),
    ("cells[]", Change::NewElements("id")),
    ("findings[]", Change::NewElements("code")),
    ("sustained[]", Change::Added),
    ("targets[].dontcache", Change::Added),
    ("cells[].evidence.page_cache.stable", Change::Added),
    ("cells[].evidence.device[].visits", Change::Added),
    ("cells[].evidence.device[].diskstat", Change::Added),
    ("cells[].evidence.device[].waiting_ns", Change::Added),
    ("findings[].severity", Change::Added),
    ("findings[].experiment", Change::Added),
    ("findings[].covers_verdicts", Change::Added),
    ("findings[].effect", Change::Added),
    ("cells[].evidence.device[].iostat", Change::Derived(iostat)),
    (
        "cells[].evidence.device[].in_flight_mean",
        Change::Derived(|device| {
            evidence(device).and_then(|one| iostat_row(&one)).map(|row| row.aqu_sz).into()
        }),
    ),
    (
        "cells[].evidence.device[].waiting_mean",
        Change::Derived(|device| evidence(device).and_then(|one| waiting_mean(&one)).into()),
    ),
    ("targets[].device.model", Change::Words),
    ("notes[]", Change::Words),
    ("schema", Change::Words),
    ("error.message", Change::Words),
    ("error.hint", Change::Words),
    ("observer.why_not_higher", Change::Words),
    ("cells[].result.why", Change::Words),
    ("cells[].result.issuing.why", Change::Words),
    ("cells[].evidence.counted[].why", Change::Words),
    ("cells[].verdict.text", Change::Words),
    ("findings[].title", Change::Words),
    ("findings[].text", Change::Words),
    ("findings[].advice", Change::Words),
    ("findings[].evidence[]", Change::WordsButNoNumbers),
];

/// Compares all Records, prints a line for each, and sums up. Arguments: `OTHER_RDSK`, `--this RDSK` instead of the program
/// that is built from these sources, `--only TEXT` for the lines that contain the text.
///
/// # Errors
/// When a program cannot be built or started, or a value differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let (other, options) = parse(arguments)?;
    let this = options.get("--this").map_or_else(|| programs::rdsk(root), |path| Ok(PathBuf::from(path)))?;
    let mut cases = cases();
    cases.retain(|case| options.get("--only").is_none_or(|only| case.contains(only)));
    ensure!(!cases.is_empty(), "no system and experiment contain this text");
    let (mut different, mut reworded) = (0, 0);
    for (case, compared) in cases.iter().zip(compare_all(&cases, &other, &this)) {
        let compared = compared.with_context(|| case.clone())?;
        different += usize::from(!compared.values.is_empty());
        reworded += compared.words.len();
        println!("{}", describe(case, &compared));
    }
    println!(
        "{} Records compared: {different} differ in values, {reworded} texts are worded differently",
        cases.len()
    );
    ensure!(different == 0, "{different} Records have other values than before");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(PathBuf, Options)> {
    let (paths, options) = options::parse(arguments, &["--this", "--only"])?;
    let [other] = &paths[..] else { bail!("cargo xtask same-records takes the path of one other rdsk") };
    Ok((PathBuf::from(other), options))
}

/// The command lines of every experiment on every simulated system.
fn cases() -> Vec<String> {
    let command = |experiment: &Experiment| match experiment {
        Experiment::Headline => "run",
        other => other.as_str(),
    };
    let of_system =
        |system| Experiment::PLANNED.iter().map(move |one| format!("{} sim:{system}", command(one)));
    rdsk_disk::NAMES.iter().flat_map(of_system).collect()
}

/// Compares every case, as many at once as there are processors, and gives the answers in the order of the cases.
fn compare_all(cases: &[String], other: &Path, this: &Path) -> Vec<Result<Comparison>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let compare = |case: &String| Ok(compare::documents(record(other, case)?, record(this, case)?, CHANGES));
    std::thread::scope(|scope| {
        let parts = cases.chunks(cases.len().div_ceil(workers));
        let running: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(compare).collect::<Vec<_>>())).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("comparing does not panic")).collect()
    })
}

/// The Record that a program writes, with its exit code under a key of its own.
fn record(program: &Path, case: &str) -> Result<Value> {
    let (mut record, status) = programs::record(program, &format!("{case} --seed 1"))?;
    record["exit_code"] = status.code().into();
    Ok(record)
}

/// The row of iostat, which is no longer stored because it follows from the counters.
fn iostat(device: &Map<String, Value>) -> Value {
    let Some(row) = evidence(device).and_then(|device| iostat_row(&device)) else { return Value::Null };
    COLUMNS.iter().map(|(name, column)| ((*name).to_owned(), Value::from(column(&row)))).collect()
}

fn evidence(device: &Map<String, Value>) -> Option<DeviceEvidence> {
    serde_json::from_value(Value::Object(device.clone())).ok()
}

fn describe(name: &str, compared: &Comparison) -> String {
    let mut words = match compared.words.len() {
        0 => String::new(),
        count => format!(", {count} texts worded differently"),
    };
    if compared.new_elements > 0 {
        words.push_str(&format!(", {} new cells", compared.new_elements));
    }
    if compared.values.is_empty() {
        return format!("{name}: equal{words}");
    }
    let mut lines = vec![format!("{name}: {} values differ{words}", compared.values.len())];
    lines.extend(compared.values.iter().take(MAX_SHOWN).map(|line| format!("  {line}")));
    if let Some(more @ 1..) = compared.values.len().checked_sub(MAX_SHOWN) {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_read() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let (other, options) = parse(&words("old --only raid5 --this new")).unwrap();
        assert_eq!((other, options["--this"].as_str()), (PathBuf::from("old"), "new"));
        assert_eq!(options["--only"], "raid5");
        for bad in ["", "old other", "old --this", "old --seed 1"] {
            assert!(parse(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_system_is_measured_by_every_command() {
        let cases = cases();
        assert_eq!(cases.len(), rdsk_disk::NAMES.len() * Experiment::PLANNED.len());
        assert!(cases.iter().any(|case| case == "run sim:raid5"));
        assert!(cases.iter().any(|case| case == "stripe sim:hpux-k460"));
    }

    #[test]
    fn a_long_list_of_differences_is_cut() {
        let values = (0..MAX_SHOWN + 2).map(|n| format!("path{n}")).collect();
        let shown =
            describe("run sim:x", &Comparison { values, words: vec!["w".to_owned()], new_elements: 3 });
        assert!(
            shown.starts_with(
                "run sim:x: 7 values differ, 1 texts worded differently, 3 new cells\n  path0\n"
            ),
            "{shown}"
        );
        assert!(shown.ends_with("  path4\n  and 2 more"), "{shown}");
        assert_eq!(describe("run sim:x", &Comparison::default()), "run sim:x: equal");
    }
}
