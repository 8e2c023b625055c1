//! Whether a document keeps its JSON Schema (docs/*.schema.json), by the keywords that these files use; an unknown
//! keyword panics, so that no rule is passed over. Here a schema is closed: a key that it does not name is wrong, too.

use regex_lite::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static RECORD: LazyLock<Value> = LazyLock::new(|| parsed(include_str!("../../../docs/record.schema.json")));
static WATCH: LazyLock<Value> = LazyLock::new(|| parsed(include_str!("../../../docs/watch.schema.json")));

/// Who wrote a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The program that was built with these tests.
    Current,
    /// An older one, which knew fewer keys.
    Older,
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("cargo xtask schema writes JSON")
}

/// Everything in a document that its schema does not allow, each with its place; the Records in a comparison count. Empty for a
/// document that has no schema.
pub fn complaints(document: &Value, writer: Writer) -> Vec<String> {
    let schema = document["schema"].as_str();
    let root = match schema.and_then(|name| name.split_once('/')).map(|(name, _)| name) {
        Some("rdsk.record") if schema == Some("rdsk.record/1") && writer == Writer::Older => {
            return complaints(&without_what_has_gone(document), writer);
        }
        Some("rdsk.record") => &RECORD,
        Some("rdsk.watch" | "rdsk.watch-command") => &WATCH,
        Some("rdsk.compare") => {
            let records = document["records"].as_array().into_iter().flatten();
            return records.flat_map(|kept| complaints(&kept["record"], writer)).collect();
        }
        _ => return Vec::new(),
    };
    Schemas { root, writer }.complaints(root, document)
}

/// A Record of `rdsk.record/1` without the keys that it alone has.
fn without_what_has_gone(document: &Value) -> Value {
    let mut record = document.clone();
    record["schema"] = "rdsk.record/2".into();
    let without = |node: Option<&mut Value>, keys: &[&str]| {
        if let Some(Value::Object(node)) = node {
            keys.iter().for_each(|key| drop(node.remove(*key)));
        }
    };
    for cell in record.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
        without(cell.pointer_mut("/workload/points"), &["chosen_first"]);
        let runs = cell.pointer_mut("/result/points").and_then(Value::as_array_mut);
        runs.into_iter().flatten().for_each(|run| without(Some(run), &["members", "chosen"]));
    }
    record
}

struct Schemas<'s> {
    root: &'s Value,
    writer: Writer,
}

impl Schemas<'_> {
    fn complaints(&self, schema: &Value, value: &Value) -> Vec<String> {
        let Some(schema) = schema.as_object() else {
            assert_eq!(*schema, true, "a schema is an object, or allows everything");
            return Vec::new();
        };
        schema.iter().flat_map(|(keyword, rule)| self.by_keyword(keyword, rule, schema, value)).collect()
    }

    fn by_keyword(
        &self,
        keyword: &str,
        rule: &Value,
        schema: &Map<String, Value>,
        value: &Value,
    ) -> Vec<String> {
        let at_least = |size: Option<f64>| size.zip(rule.as_f64()).is_none_or(|(size, least)| size >= least);
        let at_most = |size: Option<f64>| size.zip(rule.as_f64()).is_none_or(|(size, most)| size <= most);
        let entries = value.as_array().map(|list| list.len() as f64);
        let holds = match keyword {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" | "required" => true,
            "$ref" => return self.complaints(self.definition(rule), value),
            "anyOf" | "oneOf" => return self.by_choice(rule, value),
            "items" => return self.by_items(rule, value),
            "properties" => return self.by_keys(schema, value),
            "additionalProperties" if schema.contains_key("properties") => true,
            "additionalProperties" => return self.by_keys(schema, value),
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(value, kind)),
                kind => is_a(value, kind),
            },
            "const" => value == rule,
            "minimum" => at_least(value.as_f64()),
            "minItems" => at_least(entries),
            "maxItems" => at_most(entries),
            "minLength" => at_least(value.as_str().map(|text| text.chars().count() as f64)),
            "pattern" => value.as_str().is_none_or(|text| pattern(rule).is_match(text)),
            _ => panic!("the schemas use {keyword}, which is not checked"),
        };
        if holds { Vec::new() } else { vec![format!(" is {}, and its {keyword} {rule}", shown(value))] }
    }

    fn definition(&self, reference: &Value) -> &Value {
        let pointer =
            reference.as_str().and_then(|text| text.strip_prefix('#')).expect("references stay in the file");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    /// One choice must hold. Of several that do not, the one that comes closest has the complaints.
    fn by_choice(&self, choices: &Value, value: &Value) -> Vec<String> {
        let choices = choices.as_array().expect("a list of choices");
        if let Some(words) = choices.iter().map(|choice| choice["const"].as_str()).collect::<Option<Vec<_>>>()
        {
            let is_listed = value.as_str().is_some_and(|word| words.contains(&word));
            let complaint = || format!(" is {}, none of {}", shown(value), words.join(", "));
            return if is_listed { Vec::new() } else { vec![complaint()] };
        }
        let mut by_choice = Vec::new();
        for choice in choices {
            let complaints = self.complaints(choice, value);
            if complaints.is_empty() {
                return complaints;
            }
            by_choice.push(complaints);
        }
        // What is wrong deep inside a value shows that it is of this kind.
        let depth = |complaint: &String| {
            complaint.split(" is ").next().map_or(0, |place| place.matches(['/', '[']).count())
        };
        by_choice.into_iter().max_by_key(|complaints| complaints.iter().map(depth).max()).unwrap_or_default()
    }

    fn by_items(&self, rule: &Value, value: &Value) -> Vec<String> {
        let list = value.as_array().into_iter().flatten().enumerate();
        let in_item = |(index, item)| {
            let complaints = self.complaints(rule, item);
            complaints.into_iter().map(move |what| format!("[{index}]{what}"))
        };
        list.flat_map(in_item).collect()
    }

    fn by_keys(&self, schema: &Map<String, Value>, value: &Value) -> Vec<String> {
        let Some(object) = value.as_object() else { return Vec::new() };
        let mut wrong = Vec::new();
        for (key, value) in object {
            let named = schema.get("properties").and_then(|keys| keys.get(key));
            match named.or_else(|| schema.get("additionalProperties")) {
                Some(rule) => {
                    let below = self.complaints(rule, value);
                    wrong.extend(below.into_iter().map(|what| format!("/{key}{what}")));
                }
                None => wrong.push(format!("/{key} is no key of the schema")),
            }
        }
        if self.writer == Writer::Current {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let missing = required.filter_map(Value::as_str).filter(|key| !object.contains_key(*key));
            wrong.extend(missing.map(|key| format!("/{key} is missing")));
        }
        wrong
    }
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => panic!("{kind} is no type"),
    }
}

fn pattern(rule: &Value) -> Regex {
    let text = rule.as_str().expect("a pattern is a text");
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Asserts that every document in the output of a program keeps its schema: the whole output is one, or lines are.
///
/// # Panics
/// When one does not.
pub fn assert_kept(output: &str) {
    if !output.contains("\"schema\"") {
        return;
    }
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let documents = match parsed(output) {
        Some(document) => vec![document],
        None => output.lines().filter(|line| line.starts_with('{')).filter_map(parsed).collect(),
    };
    let wrong: Vec<String> =
        documents.iter().flat_map(|document| complaints(document, Writer::Current)).collect();
    assert!(
        wrong.is_empty(),
        "a document does not keep its schema (cargo xtask schema writes that of changed types):\n{}",
        wrong.join("\n")
    );
}

/// The start of a value.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(schema: &Value, value: &Value) -> Vec<String> {
        Schemas { root: schema, writer: Writer::Current }.complaints(schema, value)
    }

    #[test]
    fn every_keyword_is_kept_or_complained_of() {
        for (schema, right, bad) in [
            (json!({ "type": "integer" }), json!(1), json!(1.5)),
            (json!({ "type": ["number", "null"] }), json!(null), json!("1")),
            (json!({ "type": "boolean" }), json!(true), json!(0)),
            (json!({ "const": "a/1" }), json!("a/1"), json!("a/2")),
            (json!({ "minimum": 0 }), json!(0), json!(-1)),
            (json!({ "minLength": 1 }), json!("ä"), json!("")),
            (json!({ "minItems": 2, "maxItems": 2 }), json!([1, 2]), json!([1])),
            (json!({ "minItems": 2, "maxItems": 2 }), json!([1, 2]), json!([1, 2, 3])),
            (json!({ "pattern": "^[a-z]+$" }), json!("ab"), json!("a b")),
            (json!({ "items": { "type": "string" } }), json!(["a"]), json!(["a", 1])),
            (json!({ "oneOf": [{ "const": "read" }, { "const": "write" }] }), json!("read"), json!("trim")),
            (json!({ "additionalProperties": { "type": "null" } }), json!({ "a": null }), json!({ "a": 1 })),
            (json!({ "properties": { "a": true } }), json!({ "a": 1 }), json!({ "b": 1 })),
            (json!({ "properties": { "a": true }, "required": ["a"] }), json!({ "a": 1 }), json!({})),
        ] {
            assert_eq!(wrong(&schema, &right), [""; 0], "{schema}");
            assert_eq!(wrong(&schema, &bad).len(), 1, "{schema}");
        }
    }

    #[test]
    fn a_complaint_says_where_and_is_of_the_kind_that_comes_closest() {
        let schema = json!({
            "$defs": { "Layer": {
                "properties": { "below": { "items": { "$ref": "#/$defs/Layer" } }, "name": { "type": "string" } },
                "required": ["name"],
            } },
            "anyOf": [{ "$ref": "#/$defs/Layer" }, { "type": "null" }],
        });
        let layer = json!({ "name": "md0", "below": [{ "name": "sda" }, { "name": 7 }] });
        assert_eq!(wrong(&schema, &layer), ["/below[1]/name is 7, and its type \"string\""]);
        assert_eq!(wrong(&schema, &json!({ "below": [] })), ["/name is missing"]);
        let older = Schemas { root: &schema, writer: Writer::Older };
        assert_eq!(
            older.complaints(&schema, &json!({ "below": [] })),
            [""; 0],
            "an older one knew fewer keys"
        );
    }

    #[test]
    #[should_panic(expected = "uniqueItems")]
    fn a_keyword_that_is_not_checked_does_not_pass() {
        wrong(&json!({ "uniqueItems": true }), &json!([]));
    }

    #[test]
    #[should_panic(expected = "/cells is missing")]
    fn a_document_in_an_output_is_checked() {
        assert_kept("talk\n{ \"schema\": \"rdsk.other/1\" }\n");
        assert_kept("talk\n{ \"schema\": \"rdsk.record/2\" }\n");
    }
}
