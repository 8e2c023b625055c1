//! `rdsk schema`: the JSON Schemas of what `--json` writes, as they stand in docs/. It makes none: `cargo xtask schema` does.

use crate::{out, value};
use clap::Args;
use rdsk_model::Problem;

/// Each document with its schema; without a word it is that of the first.
const SCHEMAS: &[(&str, &str)] = &[
    ("record", include_str!("../../../../docs/record.schema.json")),
    ("watch", include_str!("../../../../docs/watch.schema.json")),
];

const EXAMPLES: &str = "\
Examples:
  rdsk schema
      the schema of a result
  rdsk schema watch
      that of the lines of rdsk watch --json";

/// Print the JSON Schema of a result or of watch --json.
///
/// The schema goes to standard output (JSON Schema, draft 2020-12). It describes what this version writes, key by key
/// with its unit: record is the document of --json, watch each line of rdsk watch --json. Later versions may add keys and
/// words; a key that is renamed or removed needs a new number in "schema".
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schema {
    /// The document [default: record]
    #[arg(value_name = "DOCUMENT", value_parser = value::words(SCHEMAS))]
    document: Option<&'static str>,
}

/// Prints the schema.
///
/// # Errors
/// When standard output does not take it.
pub(crate) fn show(schema: &Schema) -> Result<(), Problem> {
    out::data(schema.document.unwrap_or(SCHEMAS[0].1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn each_document_has_its_schema() {
        let document = |line: &str| parsed::<Schema>(line).unwrap().document;
        assert_eq!((document(""), document("record")), (None, Some(SCHEMAS[0].1)));
        assert!(SCHEMAS[0].1.contains(rdsk_model::SCHEMA));
        assert!(document("watch").is_some_and(|schema| schema.contains("rdsk.watch-command/1")));
        let lines = [
            ("plan", "DOCUMENT: \"plan\" is not one of record, watch"),
            ("record watch", "unexpected word \"watch\""),
        ];
        refuses(|schema: Schema| Ok(schema), &lines);
    }
}
