//! The schemas as schemars makes them of the types of `model`, in the words of the documents. It reads and writes no file.

use super::SchemaFile;
use rdsk_model::{Record, WatchCommand, WatchLine};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// A line of `rdsk watch --json`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum WatchDocument {
    Device(Box<WatchLine>),
    Command(Box<WatchCommand>),
}

/// Every file.
pub(super) fn files() -> [SchemaFile; 2] {
    let versions = "It describes what this version of rdsk writes. Keys and words may be added under the same number, so that readers \
                    ignore keys that they do not know; documents of older versions lack the keys that were added since.";
    [
        SchemaFile {
            path: "docs/record.schema.json",
            constants: "SCHEMA of crates/model/src/lib.rs",
            schema: schema::<Record>(
                "Record of rdsk",
                &format!("One run, as --json writes it (docs/record.md). {versions}"),
            ),
        },
        SchemaFile {
            path: "docs/watch.schema.json",
            constants: "WATCH_SCHEMA or WATCH_COMMAND_SCHEMA of crates/model/src/watch_document.rs",
            schema: schema::<WatchDocument>(
                "Lines of rdsk watch --json",
                &format!(
                    "A line of a device, or of a command, as --json writes it (docs/watch.md). {versions}"
                ),
            ),
        },
    ]
}

fn schema<T: JsonSchema>(title: &str, description: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    in_words_of_documents(&mut schema, Absence::Null);
    schema["title"] = title.into();
    schema["description"] = description.into();
    schema
}

/// What a document has where a type has `None`, or an empty list that is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    Null,
    LeftOut,
}

/// Turns docstrings into descriptions: what `None` is in the document, and names without the paths of types.
fn in_words_of_documents(schema: &mut Value, absence: Absence) {
    let Some(node) = schema.as_object_mut() else { return };
    if let Some(Value::String(text)) = node.get_mut("description") {
        *text = description(text, absence);
    }
    if absence == Absence::LeftOut {
        without_null(node);
    }
    let required = node.get("required").cloned().unwrap_or_default();
    let is_required = |key: &str| required.as_array().is_some_and(|keys| keys.iter().any(|name| name == key));
    for (key, value) in node.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, value) in properties {
                    let absence = if is_required(name) { Absence::Null } else { Absence::LeftOut };
                    in_words_of_documents(value, absence);
                }
            }
            ("$defs", Value::Object(types)) => each(types),
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                choices.iter_mut().for_each(|choice| in_words_of_documents(choice, Absence::Null));
            }
            ("items" | "additionalProperties", value) => in_words_of_documents(value, Absence::Null),
            _ => {}
        }
    }
}

fn each(types: &mut Map<String, Value>) {
    types.values_mut().for_each(|schema| in_words_of_documents(schema, Absence::Null));
}

/// What is left out where there is none is never null.
fn without_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = node.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &mut kinds[..] {
            let kind = kind.take();
            node.insert("type".into(), kind);
        }
    }
    if let Some(Value::Array(choices)) = node.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(choice)] = &mut choices[..] {
            let choice = std::mem::take(choice);
            node.remove("anyOf");
            node.extend(choice);
        }
    }
}

fn description(docstring: &str, absence: Absence) -> String {
    let lines: Vec<&str> = docstring.split_whitespace().collect();
    let mut text = without_paths(&lines.join(" "));
    // What stands for null in a type is nothing to a reader of documents.
    if let Some((before, after)) = text.split_once(" in memory)") {
        text = format!("{}{after}", before.rsplit_once(" (").map_or(before, |(before, _)| before));
    }
    let (word, start) = match absence {
        Absence::Null => ("null", "Null"),
        Absence::LeftOut => ("left out", "Left out"),
    };
    text = text.replace(". `None`", &format!(". {start}")).replace("`None`", word);
    if absence == Absence::LeftOut {
        text = text.replace("; empty ", "; left out ");
    }
    text
}

/// Links of rustdoc as words: ``[`Visit::sitting`]`` is `sitting`.
fn without_paths(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("`]") {
            Some((path, rest)) => {
                let name = path.rsplit("::").next().unwrap_or(path);
                plain.push_str(&format!("`{name}`{rest}"));
            }
            None => plain.push_str(&format!("[`{part}")),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn descriptions_are_of_the_document() {
        let text = "Time; `None` where\nnobody counted. `None` in [`crate::Visit::sitting`] is [0, 1].";
        assert_eq!(
            description(text, Absence::Null),
            "Time; null where nobody counted. Null in `sitting` is [0, 1]."
        );
        assert!(
            description(text, Absence::LeftOut)
                .starts_with("Time; left out where nobody counted. Left out in")
        );
        assert_eq!(description("Those; empty where none.", Absence::LeftOut), "Those; left out where none.");
        assert_eq!(
            description("Null where unknown ([`crate::X`] in memory).", Absence::Null),
            "Null where unknown."
        );
    }

    #[test]
    fn what_is_left_out_is_not_null() {
        let mut schema = json!({ "properties": {
            "a": { "type": ["integer", "null"] },
            "b": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
            "c": { "type": ["integer", "null"] },
        }, "required": ["c"] });
        in_words_of_documents(&mut schema, Absence::Null);
        assert_eq!(
            schema["properties"],
            json!({
                "a": { "type": "integer" },
                "b": { "$ref": "#/$defs/B" },
                "c": { "type": ["integer", "null"] },
            })
        );
    }
}
