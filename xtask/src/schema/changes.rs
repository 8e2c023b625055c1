//! What a reader of a document notices when its schema changes: a key that is gone, is now left out or may be null, has another type
//! or range, a word that is gone. Keys and words that were added are no such change. Pure functions of two schemas.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

type Node = Map<String, Value>;

/// A sentence for each change that a reader of a version notices. Documents of which only one schema has the version do not count.
pub(super) fn noticed(before: &Value, after: &Value) -> Vec<String> {
    let mut comparison = Comparison { before, after, met: BTreeSet::new(), noticed: Vec::new() };
    let later = versions(after);
    for (version, node) in versions(before) {
        if let Some(&later) = later.get(&version) {
            comparison.object(node, later, &version);
        }
    }
    comparison.noticed
}

/// The documents of a file of schemas by their names and numbers.
fn versions(root: &Value) -> BTreeMap<String, &Node> {
    let version =
        |node: &Node| node.get("properties")?.get("schema")?.get("const")?.as_str().map(str::to_owned);
    alternatives(root, root).into_iter().filter_map(|node| Some((version(node)?, node))).collect()
}

/// What a value may be, without references and choices.
fn alternatives<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Node> {
    let Some(node) = schema.as_object() else { return Vec::new() };
    if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#'));
        return target.map_or_else(Vec::new, |target| alternatives(root, target));
    }
    match node.get("anyOf").or_else(|| node.get("oneOf")).and_then(Value::as_array) {
        Some(choices) => choices.iter().flat_map(|choice| alternatives(root, choice)).collect(),
        None => vec![node],
    }
}

/// The names of the types that a value may have.
fn kinds(nodes: &[&Node]) -> BTreeSet<String> {
    let kinds_of_node = |node: &&Node| match node.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(kind)) => vec![kind.clone()],
        _ if node.contains_key("const") || node.contains_key("enum") => vec!["string".to_owned()],
        _ => vec!["anything".to_owned()],
    };
    match nodes {
        // `true`, which is a schema without a word.
        [] => BTreeSet::from(["anything".to_owned()]),
        _ => nodes.iter().flat_map(kinds_of_node).collect(),
    }
}

/// The words that a text may be; `None` where it may be any.
fn words(nodes: &[&Node]) -> Option<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for node in nodes {
        match (node.get("const"), node.get("enum").and_then(Value::as_array)) {
            (Some(Value::String(word)), _) => drop(words.insert(word.clone())),
            (None, Some(list)) => words.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
            _ => {}
        }
    }
    (!words.is_empty()).then_some(words)
}

struct Comparison<'s> {
    before: &'s Value,
    after: &'s Value,
    /// Pairs that were compared, or are being compared: a layer has layers below it.
    met: BTreeSet<(*const Value, *const Value)>,
    noticed: Vec<String>,
}

impl<'s> Comparison<'s> {
    fn say(&mut self, place: &str, what: &str) {
        self.noticed.push(format!("{place} {what}"));
    }

    fn object(&mut self, before: &'s Node, after: &'s Node, place: &str) {
        let keys = |node: &'s Node| node.get("properties").and_then(Value::as_object);
        let is_sure = |node: &Node, key: &str| {
            let sure = node.get("required").and_then(Value::as_array);
            sure.is_some_and(|sure| sure.iter().any(|name| name == key))
        };
        for (key, value) in keys(before).into_iter().flatten() {
            let place = format!("{place}/{key}");
            let Some(later) = keys(after).and_then(|keys| keys.get(key)) else {
                self.say(&place, "is gone");
                continue;
            };
            if is_sure(before, key) && !is_sure(after, key) {
                self.say(&place, "may be left out now");
            }
            self.value(value, later, &place);
        }
    }

    fn value(&mut self, before: &'s Value, after: &'s Value, place: &str) {
        if !self.met.insert((ptr::from_ref(before), ptr::from_ref(after))) {
            return;
        }
        let (old, new) = (alternatives(self.before, before), alternatives(self.after, after));
        let (old_kinds, new_kinds) = (kinds(&old), kinds(&new));
        for kind in new_kinds.difference(&old_kinds).filter(|_| !old_kinds.contains("anything")) {
            self.say(place, &format!("may be of type {kind} now"));
        }
        match (words(&old), words(&new)) {
            (Some(old), Some(new)) => {
                for word in old.difference(&new) {
                    self.say(place, &format!("is never \"{word}\" now"));
                }
            }
            (Some(_), None) if new_kinds.contains("string") => self.say(place, "may be any text now"),
            _ => {}
        }
        // Choices keep their order, in which they were declared.
        for (old, new) in old.iter().zip(&new) {
            self.limits(old, new, place);
            self.object(old, new, place);
            for (key, step) in [("items", "[]"), ("additionalProperties", "/*")] {
                if let Some((old, new)) = old.get(key).zip(new.get(key)) {
                    self.value(old, new, &format!("{place}{step}"));
                }
            }
        }
    }

    /// A limit that held must still hold.
    fn limits(&mut self, old: &Node, new: &Node, place: &str) {
        for key in ["pattern", "format", "minItems", "maxItems", "minLength", "maximum", "minimum"] {
            if let Some(limit) = old.get(key).filter(|limit| new.get(key) != Some(limit)) {
                self.say(place, &format!("no longer has the {key} {limit}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A schema with this layer, which is a cell's and has layers below it.
    fn schema(version: &str, layer: &Value) -> Value {
        json!({
            "type": "object",
            "properties": {
                "schema": { "type": "string", "const": version },
                "cells": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/Layer" }, { "type": "null" }] } },
            },
            "required": ["schema", "cells"],
            "$defs": { "Layer": layer },
        })
    }

    fn layer() -> Value {
        json!({
            "type": "object",
            "properties": {
                "bytes": { "type": "integer", "minimum": 0 },
                "mean": { "type": ["number", "null"] },
                "op": { "oneOf": [{ "const": "read", "type": "string" }, { "const": "write", "type": "string" }] },
                "below": { "type": "array", "items": { "$ref": "#/$defs/Layer" } },
            },
            "required": ["bytes", "mean", "op"],
        })
    }

    /// What is noticed of a layer after this change.
    fn after(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut changed = layer();
        change(&mut changed);
        noticed(&schema("a/1", &layer()), &schema("a/1", &changed))
    }

    #[test]
    fn what_is_added_or_described_is_not_noticed() {
        assert_eq!(after(|_| ()), [""; 0]);
        let added = after(|layer| {
            layer["properties"]["ops"] = json!({ "type": "integer" });
            let discard = json!({ "const": "discard", "type": "string" });
            layer["properties"]["op"]["oneOf"].as_array_mut().unwrap().push(discard);
            layer["required"] = json!(["bytes", "mean", "op", "ops", "below"]);
            layer["description"] = json!("Another text.");
            layer["properties"]["mean"]["type"] = json!("number");
        });
        assert_eq!(added, [""; 0]);
    }

    #[test]
    fn what_is_gone_or_wider_is_noticed() {
        type Change = fn(&mut Value);
        let changes: [(Change, &str); 9] = [
            (
                |layer| drop(layer["properties"].as_object_mut().unwrap().remove("mean")),
                "a/1/cells[]/mean is gone",
            ),
            (|layer| layer["required"] = json!(["bytes", "op"]), "a/1/cells[]/mean may be left out now"),
            (
                |layer| layer["properties"]["bytes"]["type"] = json!("string"),
                "/bytes may be of type string now",
            ),
            (
                |layer| layer["properties"]["bytes"]["type"] = json!(["integer", "null"]),
                "/bytes may be of type null now",
            ),
            (
                |layer| layer["properties"]["bytes"]["minimum"] = json!(-1),
                "/bytes no longer has the minimum 0",
            ),
            (|layer| layer["properties"]["mean"] = json!(true), "/mean may be"),
            (
                |layer| layer["properties"]["op"]["oneOf"][1]["const"] = json!("Write"),
                "/op is never \"write\" now",
            ),
            (|layer| layer["properties"]["op"] = json!({ "type": "string" }), "/op may be any text now"),
            (
                |layer| layer["properties"]["below"]["items"] = json!({ "type": "null" }),
                "/below[] may be of type null now",
            ),
        ];
        for (change, expected) in changes {
            let noticed = after(change);
            assert!(noticed.iter().any(|one| one.contains(expected)), "{expected}: {noticed:?}");
        }
    }

    #[test]
    fn another_version_may_be_anything() {
        let other = json!({ "type": "string" });
        assert_eq!(noticed(&schema("a/1", &layer()), &schema("a/2", &other)), [""; 0]);
        let both = |first: &str, layer: &Value| {
            json!({ "anyOf": [schema(first, layer), {
            "type": "object", "properties": { "schema": { "const": "b/1" }, "end": { "type": "string" } },
        }] })
        };
        let mut changed = both("a/2", &layer());
        changed["anyOf"][1]["properties"].as_object_mut().unwrap().remove("end");
        assert_eq!(noticed(&both("a/1", &layer()), &changed), ["b/1/end is gone"]);
    }
}
