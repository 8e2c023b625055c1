//! `cargo xtask schema`: the JSON Schemas of docs/, made from the types of `model`, which the program includes. With `--check` the
//! files are compared instead. A change that readers of a version would notice needs another version.

mod changes;
#[cfg(feature = "schema")]
mod generated;

#[cfg(feature = "schema")]
use crate::options;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::Path;

/// One file of schemas.
pub(crate) struct SchemaFile {
    /// From the root of the workspace.
    path: &'static str,
    /// Where the names and numbers of its documents stand.
    constants: &'static str,
    schema: Value,
}

/// Writes the files, or compares them with `--check`.
///
/// # Errors
/// When a file differs, and when a version would mean something else than before.
#[cfg(feature = "schema")]
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let is_check = options::is_check(arguments)?;
    for file in generated::files() {
        settle(root, &file, is_check)?;
    }
    Ok(())
}

/// Brings one file to what the types give, or says how it differs.
fn settle(root: &Path, file: &SchemaFile, is_check: bool) -> Result<()> {
    let path = root.join(file.path);
    let mut text = format!("{:#}", file.schema);
    text.push('\n');
    let there = match std::fs::read_to_string(&path) {
        Ok(there) => there,
        Err(_) if !is_check => String::new(),
        Err(error) => return Err(error).context(file.path),
    };
    if there == text {
        println!("{} is what the types give", file.path);
        return Ok(());
    }
    if !there.is_empty() {
        let before = serde_json::from_str(&there).context(file.path)?;
        let noticed = changes::noticed(&before, &file.schema);
        ensure!(
            noticed.is_empty(),
            "readers of {} notice what changed:\n  {}\nraise the number in {}, then run cargo xtask schema",
            file.path,
            noticed.join("\n  "),
            file.constants
        );
    }
    ensure!(!is_check, "{} is not what the types give: run cargo xtask schema and commit", file.path);
    crate::write(&path, &text)?;
    println!("wrote {}", file.path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(version: &str, more: &Value) -> SchemaFile {
        let mut properties = json!({ "schema": { "const": version }, "bytes": { "type": "integer" } });
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        SchemaFile {
            path: "a.schema.json",
            constants: "SCHEMA in model",
            schema: json!({ "type": "object", "properties": properties, "required": ["schema", "bytes"] }),
        }
    }

    #[test]
    fn a_file_takes_what_readers_do_not_notice_and_else_another_version() {
        let root = tempfile::tempdir().unwrap();
        let settle = |file: &SchemaFile, is_check| {
            settle(root.path(), file, is_check).map_err(|error| format!("{error:#}"))
        };
        let (first, wider) = (file("a/1", &json!({})), file("a/1", &json!({ "ops": {} })));
        let text = json!({ "bytes": { "type": "string" } });
        assert!(settle(&first, true).unwrap_err().contains("a.schema.json"), "there is none yet");
        for is_check in [false, true] {
            settle(&first, is_check).unwrap();
        }
        assert!(settle(&wider, true).unwrap_err().contains("run cargo xtask schema and commit"));
        settle(&wider, false).unwrap();
        for is_check in [false, true] {
            let refused = settle(&file("a/1", &text), is_check).unwrap_err();
            assert!(
                refused.contains("/bytes") && refused.contains("raise the number in SCHEMA"),
                "{refused}"
            );
        }
        settle(&file("a/2", &text), false).unwrap();
        settle(&file("a/2", &text), true).unwrap();
    }
}
