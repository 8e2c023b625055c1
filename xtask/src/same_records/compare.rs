//! Compares two Records leaf by leaf, apart from what a table allows to differ. Pure functions of the documents.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How far a value that was computed again may be from the stored one, as a share of it: the order of the operations may
/// differ, nothing else.
const MAX_ROUNDING: f64 = 1e-9;

/// What may differ. A path is written as `cells[].result.ops`.
pub(super) struct Changes<'a> {
    /// Never compared.
    pub(super) ignored: &'a [&'a str],
    /// Old path and new path.
    pub(super) renamed: &'a [(&'a str, &'a str)],
    /// Only the new document has them.
    pub(super) added: &'a [&'a str],
    /// Only the old document has them; the new one has what they are computed from.
    pub(super) derived: &'a [Derived<'a>],
    /// Texts whose wording may differ. They are counted.
    pub(super) words: &'a [&'a str],
    /// Texts whose wording may differ, but not the numbers in them.
    pub(super) words_with_numbers: &'a [&'a str],
}

/// A key that is no longer stored.
pub(super) struct Derived<'a> {
    /// Path of the objects that had it.
    pub(super) within: &'a str,
    /// The key.
    pub(super) key: &'a str,
    /// Its value, computed from the rest of the object; null if the raw values are unknown.
    pub(super) compute: fn(&Map<String, Value>) -> Value,
}

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Values, as `path: old, new`.
    pub(super) values: Vec<String>,
    /// Paths of texts with the same meaning in other words.
    pub(super) words: Vec<String>,
}

/// Compares two documents.
pub(super) fn documents(mut old: Value, mut new: Value, changes: &Changes<'_>) -> Comparison {
    for derived in changes.derived {
        for document in [&mut old, &mut new] {
            each_object(document, derived.within, &mut |object| derived.restore(object));
        }
    }
    let (old, new) = (leaves(&old, changes), leaves(&new, changes));
    let mut found = Comparison::default();
    for (path, value) in &old {
        match new.get(path) {
            Some(other) if !same(path, value, other, changes) => {
                let is_text = |value: &Value| value.is_string();
                let words = matches_any(path, changes.words)
                    || (matches_any(path, changes.words_with_numbers) && numbers(value) == numbers(other));
                if words && is_text(value) && is_text(other) {
                    found.words.push(path.clone());
                } else {
                    found.values.push(format!("{path}: {value}, now {other}"));
                }
            }
            Some(_) => {}
            None => found.values.push(format!("{path}: {value}, now missing")),
        }
    }
    let is_unexpected = |path: &str| !old.contains_key(path) && !matches_any(path, changes.added);
    let unexpected = new.iter().filter(|(path, _)| is_unexpected(path));
    found.values.extend(unexpected.map(|(path, value)| format!("{path}: new, {value}")));
    found
}

impl Derived<'_> {
    fn restore(&self, object: &mut Map<String, Value>) {
        if !object.contains_key(self.key) {
            object.insert(self.key.to_owned(), (self.compute)(object));
        }
    }

    fn covers(&self, path: &str) -> bool {
        starts_with(&pattern(path), &format!("{}.{}", self.within, self.key))
    }
}

fn same(path: &str, old: &Value, new: &Value, changes: &Changes<'_>) -> bool {
    match (old.as_f64(), new.as_f64()) {
        (Some(before), Some(now)) if changes.derived.iter().any(|derived| derived.covers(path)) => {
            (before - now).abs() <= MAX_ROUNDING * before.abs().max(now.abs())
        }
        _ => old == new,
    }
}

/// Every value that is no list and no object, and every empty one, by its path under the new names.
fn leaves(document: &Value, changes: &Changes<'_>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect(document, String::new(), &mut |path, value| {
        if !matches_any(&path, changes.ignored) {
            found.insert(renamed(path, changes.renamed), value.clone());
        }
    });
    found
}

fn collect(value: &Value, path: String, found: &mut impl FnMut(String, &Value)) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                collect(value, format!("{path}{dot}{key}"), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{path}[{index}]"), found);
            }
        }
        leaf => found(path, leaf),
    }
}

/// Calls `visit` on each object at a path.
fn each_object(value: &mut Value, path: &str, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(object) = value.as_object_mut() else { return };
    if path.is_empty() {
        return visit(object);
    }
    let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
    match segment.strip_suffix("[]") {
        Some(key) => {
            let list = object.get_mut(key).and_then(Value::as_array_mut);
            list.into_iter().flatten().for_each(|value| each_object(value, rest, visit));
        }
        None => object.get_mut(segment).into_iter().for_each(|value| each_object(value, rest, visit)),
    }
}

/// `cells[].id` of `cells[3].id`.
fn pattern(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| before + "[" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn matches_any(path: &str, patterns: &[&str]) -> bool {
    let path = pattern(path);
    patterns.iter().any(|prefix| starts_with(&path, prefix))
}

/// Whether a path is the one named or lies below it.
fn starts_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The path under its new name, with the same positions in lists.
fn renamed(path: String, table: &[(&str, &str)]) -> String {
    let of_path = pattern(&path);
    let Some((old, new)) = table.iter().find(|(old, _)| starts_with(&of_path, old)) else { return path };
    let mut positions = path.split('[').skip(1).filter_map(|part| part.split(']').next());
    let mut with_positions = |pattern: &str| {
        let mut parts = pattern.split("[]");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| format!("{before}[{}]{part}", positions.next().unwrap_or_default()))
    };
    let start = with_positions(new);
    let mut rest = with_positions(&of_path[old.len()..]);
    rest.insert_str(0, &start);
    rest
}

/// The numbers that a text holds, in their order.
fn numbers(value: &Value) -> Vec<String> {
    let text = value.as_str().unwrap_or_default();
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|number| number.trim_matches('.').to_owned())
        .filter(|number| !number.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOTHING: Changes<'static> =
        Changes { ignored: &[], renamed: &[], added: &[], derived: &[], words: &[], words_with_numbers: &[] };

    fn compare(old: Value, new: Value, changes: &Changes<'_>) -> (Vec<String>, usize) {
        let found = documents(old, new, changes);
        (found.values, found.words.len())
    }

    #[test]
    fn values_missing_and_new_keys_are_named_with_their_path() {
        let old = json!({"cells": [{"ops": 1, "gone": null, "empty": []}, {"ops": 2}]});
        let new = json!({"cells": [{"ops": 1, "more": 1.5, "empty": [7]}, {"ops": 3}]});
        assert!(compare(old.clone(), old.clone(), &NOTHING).0.is_empty());
        let (values, words) = compare(old, new, &NOTHING);
        assert_eq!(
            values,
            [
                "cells[0].empty: [], now missing",
                "cells[0].gone: null, now missing",
                "cells[1].ops: 2, now 3",
                "cells[0].empty[0]: new, 7",
                "cells[0].more: new, 1.5",
            ]
        );
        assert_eq!(words, 0);
    }

    #[test]
    fn null_and_zero_are_different() {
        assert_eq!(compare(json!({"a": null}), json!({"a": 0}), &NOTHING).0.len(), 1);
        assert_eq!(compare(json!({"a": 1.0}), json!({"a": 1.000_000_000_1}), &NOTHING).0.len(), 1);
    }

    #[test]
    fn ignored_and_added_keys_cover_what_lies_below_them_and_no_longer_name() {
        let changes = Changes { ignored: &["host"], added: &["cells[].raw"], ..NOTHING };
        let old = json!({"host": {"kernel": "a"}, "hostess": 1, "cells": [{}]});
        let new = json!({"host": {"kernel": "b"}, "hostess": 2, "cells": [{"raw": {"x": [1]}, "raws": 1}]});
        let found = compare(old, new, &changes).0;
        let paths: Vec<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(paths, ["cells[0]", "hostess", "cells[0].raws"]);
    }

    #[test]
    fn a_renamed_key_is_compared_under_its_new_name() {
        let changes = Changes { renamed: &[("cells[].a[].b", "cells[].x[].y")], ..NOTHING };
        let old = json!({"cells": [{"a": [{"b": [1, 2]}]}, {"a": [{"b": [3]}, {"b": [4]}]}]});
        let mut new = json!({"cells": [{"x": [{"y": [1, 2]}]}, {"x": [{"y": [3]}, {"y": [4]}]}]});
        assert!(compare(old.clone(), new.clone(), &changes).0.is_empty());
        assert!(compare(old.clone(), old.clone(), &changes).0.is_empty());
        new["cells"][1]["x"][1]["y"][0] = json!(5);
        assert_eq!(compare(old, new, &changes).0, ["cells[1].x[1].y[0]: 4, now 5"]);
    }

    #[test]
    fn a_removed_key_is_computed_again_from_the_raw_values() {
        fn rate(device: &Map<String, Value>) -> Value {
            let number = |key| device.get(key).and_then(Value::as_f64);
            let per_s = number("reads").zip(number("seconds")).map(|(reads, seconds)| reads / seconds);
            per_s.map_or(Value::Null, |per_s| json!({"r/s": per_s}))
        }
        let derived = [Derived { within: "cells[].device[]", key: "iostat", compute: rate }];
        let changes = Changes { derived: &derived, added: &["cells[].device[].seconds"], ..NOTHING };
        let device = |value: Value| json!({"cells": [{"device": [value]}]});
        let old = device(json!({"reads": 10, "iostat": {"r/s": 3.333_333_333_333}}));
        let new = device(json!({"reads": 10, "seconds": 3}));
        assert!(compare(old.clone(), new, &changes).0.is_empty());
        let wrong = device(json!({"reads": 10, "seconds": 4}));
        assert_eq!(
            compare(old.clone(), wrong, &changes).0,
            ["cells[0].device[0].iostat.r/s: 3.333333333333, now 2.5"]
        );
        assert_eq!(
            compare(old, device(json!({"reads": 10})), &changes).0,
            [
                "cells[0].device[0].iostat.r/s: 3.333333333333, now missing",
                "cells[0].device[0].iostat: new, null"
            ]
        );
        let unknown = device(json!({"reads": null, "iostat": null}));
        assert!(compare(unknown, device(json!({"reads": null})), &changes).0.is_empty());
    }

    #[test]
    fn texts_may_be_worded_differently_and_numbers_in_evidence_may_not() {
        let changes = Changes {
            words: &["findings[].title"],
            words_with_numbers: &["findings[].evidence[]"],
            ..NOTHING
        };
        let finding = |code: &str, title: &str, evidence: &str| json!({"findings": [{"code": code, "title": title, "evidence": [evidence]}]});
        let old = finding("a", "the disk turns", "told = 1.5 of 30 %.");
        assert_eq!(
            compare(old.clone(), finding("a", "it rotates", "seen = 1.5 of 30 %"), &changes),
            (vec![], 2)
        );
        let (values, words) =
            compare(old.clone(), finding("b", "it rotates", "told = 1.6 of 30 %."), &changes);
        assert_eq!((values.len(), words), (2, 1), "{values:?}");
        let none = json!({"findings": [{"code": "a", "title": null, "evidence": []}]});
        assert_eq!(compare(old, none, &changes).0.len(), 3);
    }
}
