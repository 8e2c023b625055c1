//! `cargo xtask same-records OTHER_RDSK`: measures every built-in system with every experiment and the same seed by two
//! programs and compares their Records, value by value. A change of structure or words must leave every value as it was; this
//! shows it.

use crate::options::{self, Options};
use crate::programs;
use anyhow::{Context as _, Result, bail, ensure};
use rdsk_model::Experiment;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Paths that are shown of one pair of Records; the rest is counted.
const MAX_SHOWN: usize = 5;

/// How a value and everything below it may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freedom {
    /// It is of one run.
    Any,
    /// A text; those that differ are counted.
    Words,
    /// A text, but not the numbers in it.
    WordsButNoNumbers,
}

/// What may differ, by its path, with `[]` for any element of a list.
const FREE: &[(&str, Freedom)] = &[
    ("id", Freedom::Any),
    ("command", Freedom::Any),
    ("rdsk_version", Freedom::Any),
    ("started_at", Freedom::Any),
    ("elapsed_ns", Freedom::Any),
    ("schema", Freedom::Words),
    ("notes[]", Freedom::Words),
    ("error.message", Freedom::Words),
    ("error.hint", Freedom::Words),
    ("observer.why_not_higher", Freedom::Words),
    ("targets[].device.model", Freedom::Words),
    ("cells[].result.why", Freedom::Words),
    ("cells[].result.issuing.why", Freedom::Words),
    ("cells[].evidence.counted[].why", Freedom::Words),
    ("cells[].verdict.text", Freedom::Words),
    ("findings[].title", Freedom::Words),
    ("findings[].text", Freedom::Words),
    ("findings[].advice", Freedom::Words),
    ("findings[].evidence[]", Freedom::WordsButNoNumbers),
];

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    /// Values, as `path: old, now new`.
    values: Vec<String>,
    /// Texts with the same meaning in other words.
    reworded: usize,
}

/// Compares all Records, prints a line for each, and sums up. Arguments: `OTHER_RDSK`, `--this RDSK` instead of the
/// program that is built from these sources, `--only TEXT` for the lines that contain the text.
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
        reworded += compared.reworded;
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
    let of_system = |system| {
        Experiment::PLANNED.iter().map(move |experiment| format!("{} sim:{system}", command(experiment)))
    };
    rdsk_disk::NAMES.iter().flat_map(of_system).collect()
}

/// Compares every case, as many at once as there are processors, and gives the answers in the order of the cases.
fn compare_all(cases: &[String], other: &Path, this: &Path) -> Vec<Result<Comparison>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let compare = |case: &String| Ok(compare(&record(other, case)?, &record(this, case)?));
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

fn compare(old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    let (old, new) = (leaves(old), leaves(new));
    for path in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let (before, now) = (old.get(path), new.get(path));
        let is_same_text = |freedom| match (before, now) {
            (Some(Value::String(before)), Some(Value::String(now))) => {
                freedom == Freedom::Words || numbers(before) == numbers(now)
            }
            _ => false,
        };
        let shown = |value: Option<&&Value>| value.map_or_else(|| "missing".to_owned(), ToString::to_string);
        match freedom(path) {
            Some(Freedom::Any) => {}
            _ if before == now => {}
            Some(freedom) if is_same_text(freedom) => comparison.reworded += 1,
            _ => comparison.values.push(format!("{path}: {}, now {}", shown(before), shown(now))),
        }
    }
    comparison
}

/// What is said of a path, such as `cells[3].verdict.text`, or of one that it lies below.
fn freedom(path: &str) -> Option<Freedom> {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    let pattern = parts
        .fold(first, |before, part| before + "[" + part.trim_start_matches(|c: char| c.is_ascii_digit()));
    let is_within = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let free = FREE.iter().find(|(prefix, _)| pattern.strip_prefix(prefix).is_some_and(is_within));
    free.map(|(_, freedom)| *freedom)
}

/// Every value that is no list and no object, and every empty one, by its path.
fn leaves(document: &Value) -> BTreeMap<String, &Value> {
    let mut leaves = BTreeMap::new();
    let mut open = vec![(String::new(), document)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let dot = if path.is_empty() { "" } else { "." };
                open.extend(object.iter().map(|(key, value)| (format!("{path}{dot}{key}"), value)));
            }
            Value::Array(list) if !list.is_empty() => {
                let elements = list.iter().enumerate();
                open.extend(elements.map(|(index, value)| (format!("{path}[{index}]"), value)));
            }
            leaf => _ = leaves.insert(path, leaf),
        }
    }
    leaves
}

/// The numbers that a text holds, in their order.
fn numbers(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.map(|number| number.trim_matches('.')).filter(|number| !number.is_empty()).collect()
}

fn describe(name: &str, compared: &Comparison) -> String {
    let words = match compared.reworded {
        0 => String::new(),
        count => format!(", {count} texts worded differently"),
    };
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
    use serde_json::json;

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
    fn values_missing_and_new_keys_are_named_with_their_path() {
        let old = json!({"cells": [{"ops": 1, "gone": null, "empty": []}, {"ops": 2}]});
        let new = json!({"cells": [{"ops": 1, "more": 1.5, "empty": [7]}, {"ops": 3}]});
        assert_eq!(compare(&old, &old), Comparison::default());
        let comparison = compare(&old, &new);
        let values = [
            "cells[0].empty: [], now missing",
            "cells[0].empty[0]: missing, now 7",
            "cells[0].gone: null, now missing",
            "cells[0].more: missing, now 1.5",
            "cells[1].ops: 2, now 3",
        ];
        assert_eq!((comparison.values, comparison.reworded), (values.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn null_and_zero_are_different() {
        assert_eq!(compare(&json!({"a": null}), &json!({"a": 0})).values.len(), 1);
        assert_eq!(compare(&json!({"a": 1.0}), &json!({"a": 1.000_000_000_1})).values.len(), 1);
    }

    #[test]
    fn what_may_differ_covers_what_lies_below_it_and_no_longer_name() {
        assert_eq!(freedom("command[3]"), Some(Freedom::Any));
        assert_eq!(freedom("commander"), None);
        assert_eq!(freedom("cells[12].verdict.text"), Some(Freedom::Words));
        assert_eq!(freedom("cells[12].verdict"), None);
    }

    #[test]
    fn texts_may_be_worded_differently_and_numbers_in_evidence_may_not() {
        let finding = |code: &str, title: &str, evidence: &str| json!({"findings": [{"code": code, "title": title, "evidence": [evidence]}]});
        let old = finding("a", "the disk turns", "told = 1.5 of 30%.");
        let reworded = compare(&old, &finding("a", "it rotates", "seen = 1.5 of 30%"));
        assert_eq!((reworded.values.len(), reworded.reworded), (0, 2));
        let other = compare(&old, &finding("b", "it rotates", "told = 1.6 of 30%."));
        assert_eq!((other.values.len(), other.reworded), (2, 1), "{:?}", other.values);
        let none = json!({"findings": [{"code": "a", "title": null, "evidence": []}]});
        assert_eq!(compare(&old, &none).values.len(), 3);
    }

    #[test]
    fn a_long_list_of_differences_is_cut() {
        let values = (0..MAX_SHOWN + 2).map(|n| format!("path{n}")).collect();
        let shown = describe("run sim:x", &Comparison { values, reworded: 1 });
        assert!(
            shown.starts_with("run sim:x: 7 values differ, 1 texts worded differently\n  path0\n"),
            "{shown}"
        );
        assert!(shown.ends_with("  path4\n  and 2 more"), "{shown}");
        assert_eq!(describe("run sim:x", &Comparison::default()), "run sim:x: equal");
    }
}
