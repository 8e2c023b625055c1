//! Compares two Records leaf by leaf, apart from what a table allows to differ. Pure functions of the documents.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How far a value that was computed again may be from the stored one, as a share of it: the order of the operations may
/// differ, nothing else.
const MAX_ROUNDING: f64 = 1e-9;

/// How a value and everything below it may differ. A table names it by its path, with `[]` for any element of a list:
/// `cells[].result.ops`.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Never compared.
    Ignored,
    /// The key that the new document has instead.
    RenamedTo(&'static str),
    /// Only the new document has it.
    Added,
    /// Elements of a list of the top that only the new document has, told apart by this key. They are counted and left out;
    /// the others are compared in their order.
    NewElements(&'static str),
    /// Only the old document has it. The function computes it from the object that had it; null if its raw values are unknown.
    Derived(fn(&Map<String, Value>) -> Value),
    /// A text whose wording may differ. They are counted.
    Words,
    /// A text whose wording may differ, but not the numbers in it.
    WordsButNoNumbers,
}

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Values, as `path: old, new`.
    pub(super) values: Vec<String>,
    /// Paths of texts with the same meaning in other words.
    pub(super) words: Vec<String>,
    /// Elements that only the new document has.
    pub(super) new_elements: usize,
}

/// Compares two documents.
pub(super) fn documents(mut old: Value, mut new: Value, changes: &[(&str, Change)]) -> Comparison {
    let mut found = Comparison::default();
    for (path, change) in changes {
        if let Change::NewElements(key) = change {
            found.new_elements += leave_out_new(&old, &mut new, path.trim_end_matches("[]"), key);
        }
        let (within, key) = path.rsplit_once('.').unwrap_or(("", path));
        for document in [&mut old, &mut new] {
            each_object(document, within, &mut |object| change.apply(object, key));
        }
    }
    let (old, new) = (leaves(&old), leaves(&new));
    for path in old.keys().chain(new.keys().filter(|path| !old.contains_key(*path))) {
        let pattern = pattern(path);
        let is_of_path = |(prefix, change): &&(&str, Change)| {
            starts_with(&pattern, prefix) && !matches!(change, Change::NewElements(_))
        };
        let change = changes.iter().find(is_of_path).map(|(_, change)| change);
        match (old.get(path), new.get(path)) {
            _ if matches!(change, Some(Change::Ignored)) => {}
            (Some(before), Some(now)) if before == now => {}
            (Some(before), Some(now)) => match change {
                Some(Change::Derived(_)) if is_rounded(before, now) => {}
                Some(change) if change.allows_words(before, now) => found.words.push(path.clone()),
                _ => found.values.push(format!("{path}: {before}, now {now}")),
            },
            (Some(before), None) => found.values.push(format!("{path}: {before}, now missing")),
            (None, _) if matches!(change, Some(Change::Added)) => {}
            (None, _) => found.values.push(format!("{path}: new, {}", new[path])),
        }
    }
    found
}

impl Change {
    /// Gives an object the key that it would have in the other document.
    fn apply(self, object: &mut Map<String, Value>, key: &str) {
        match self {
            Self::RenamedTo(name) => {
                if let Some(value) = object.remove(key) {
                    object.insert(name.to_owned(), value);
                }
            }
            Self::Derived(compute) if !object.contains_key(key) => {
                object.insert(key.to_owned(), compute(object));
            }
            _ => {}
        }
    }

    fn allows_words(self, before: &Value, now: &Value) -> bool {
        before.is_string()
            && now.is_string()
            && match self {
                Self::Words => true,
                Self::WordsButNoNumbers => numbers(before) == numbers(now),
                _ => false,
            }
    }
}

/// Takes the elements out of a list that the old document does not have, and says how many there were.
fn leave_out_new(old: &Value, new: &mut Value, list: &str, key: &str) -> usize {
    let known: Vec<&Value> =
        old[list].as_array().into_iter().flatten().map(|element| &element[key]).collect();
    let Some(elements) = new.get_mut(list).and_then(Value::as_array_mut) else { return 0 };
    let before = elements.len();
    elements.retain(|element| known.contains(&&element[key]));
    before - elements.len()
}

fn is_rounded(before: &Value, now: &Value) -> bool {
    let pair = before.as_f64().zip(now.as_f64());
    pair.is_some_and(|(before, now)| (before - now).abs() <= MAX_ROUNDING * before.abs().max(now.abs()))
}

/// Every value that is no list and no object, and every empty one, by its path.
fn leaves(document: &Value) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    let mut open = vec![(String::new(), document)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let dot = if path.is_empty() { "" } else { "." };
                open.extend(object.iter().map(|(key, value)| (format!("{path}{dot}{key}"), value)));
            }
            Value::Array(list) if !list.is_empty() => {
                open.extend(
                    list.iter().enumerate().map(|(index, value)| (format!("{path}[{index}]"), value)),
                );
            }
            leaf => _ = found.insert(path, leaf),
        }
    }
    found
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

/// Whether a path is the one named or lies below it.
fn starts_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
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

    fn compare(old: Value, new: Value, changes: &[(&str, Change)]) -> (Vec<String>, usize) {
        let found = documents(old, new, changes);
        (found.values, found.words.len())
    }

    #[test]
    fn values_missing_and_new_keys_are_named_with_their_path() {
        let old = json!({"cells": [{"ops": 1, "gone": null, "empty": []}, {"ops": 2}]});
        let new = json!({"cells": [{"ops": 1, "more": 1.5, "empty": [7]}, {"ops": 3}]});
        assert!(compare(old.clone(), old.clone(), &[]).0.is_empty());
        let (values, words) = compare(old, new, &[]);
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
    fn new_elements_are_counted_and_the_others_compared_in_their_order() {
        let changes = [("cells[]", Change::NewElements("id"))];
        let old = json!({"cells": [{"id": "a", "ops": 1}, {"id": "b", "ops": 2}]});
        let new = json!({"cells": [{"id": "a", "ops": 1}, {"id": "n"}, {"id": "b", "ops": 3}, {"id": "m"}]});
        let found = documents(old.clone(), new, &changes);
        assert_eq!((found.values, found.new_elements), (vec!["cells[1].ops: 2, now 3".to_owned()], 2));
        let fewer = documents(old, json!({"cells": [{"id": "b", "ops": 2}]}), &changes);
        assert!(!fewer.values.is_empty(), "a missing one is a difference");
    }

    #[test]
    fn null_and_zero_are_different() {
        assert_eq!(compare(json!({"a": null}), json!({"a": 0}), &[]).0.len(), 1);
        assert_eq!(compare(json!({"a": 1.0}), json!({"a": 1.000_000_000_1}), &[]).0.len(), 1);
    }

    #[test]
    fn ignored_and_added_keys_cover_what_lies_below_them_and_no_longer_name() {
        let changes = [("host", Change::Ignored), ("cells[].raw", Change::Added)];
        let old = json!({"host": {"kernel": "a"}, "hostess": 1, "cells": [{}]});
        let new = json!({"host": {"kernel": "b"}, "hostess": 2, "cells": [{"raw": {"x": [1]}, "raws": 1}]});
        let found = compare(old, new, &changes).0;
        let paths: Vec<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(paths, ["cells[0]", "hostess", "cells[0].raws"]);
    }

    #[test]
    fn a_renamed_key_is_compared_under_its_new_name() {
        let changes = [("cells[].a", Change::RenamedTo("x")), ("cells[].x[].b", Change::RenamedTo("y"))];
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
        let changes =
            [("cells[].device[].iostat", Change::Derived(rate)), ("cells[].device[].seconds", Change::Added)];
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
        let changes =
            [("findings[].title", Change::Words), ("findings[].evidence[]", Change::WordsButNoNumbers)];
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
