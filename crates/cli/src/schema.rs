//! `rdsk schema`: the JSON Schemas of what `--json` writes, as they stand in docs/. It makes none: `cargo xtask schema` does.

use crate::own_command::{self, Parsed, base};
use crate::parse::usage;
use crate::subcommand::OwnCommand;
use crate::{exit, out};
use clap::{Arg, Command};
use rdsk_model::Problem;
use rdsk_units::printable;
use std::ffi::OsString;

/// Each document with its schema; without a word it is that of the first.
const SCHEMAS: [(&str, &str); 2] = [
    ("record", include_str!("../../../docs/record.schema.json")),
    ("watch", include_str!("../../../docs/watch.schema.json")),
];

/// The words that name a document.
pub(crate) const DOCUMENTS: &[&str] = &[SCHEMAS[0].0, SCHEMAS[1].0];

const DETAILS: &str = "The schema goes to standard output (JSON Schema, draft 2020-12). It describes what this version writes, key by key with \
     its unit: record is the document of --json, watch each line of rdsk watch --json. Later versions may add keys and words; a key that \
     is renamed or removed needs a new number in \"schema\".";
const EXAMPLES: &str = "\
Examples:
  rdsk schema
      the schema of a Record
  rdsk schema watch
      that of the lines of rdsk watch --json";

/// Runs a command line whose first word is `schema`.
pub(crate) fn run(words: &[OsString]) -> u8 {
    own_command::run(parse(words), |schema| out::data(schema).map(|()| exit::DONE))
}

pub(crate) fn command() -> Command {
    let document = Arg::new("DOCUMENT").help("record or watch [default: record]");
    base(OwnCommand::Schema, DETAILS, EXAMPLES).arg(document)
}

fn parse(words: &[OsString]) -> Result<Parsed<&'static str>, Problem> {
    own_command::parse(command(), words, |matches| {
        let word = matches.get_one::<String>("DOCUMENT").map_or(DOCUMENTS[0], String::as_str);
        let schema = SCHEMAS.iter().find(|(name, _)| *name == word).map(|(_, schema)| *schema);
        schema.ok_or_else(|| {
            usage(
                format!("there is no schema of \"{}\"", printable(word)),
                format!("name one of {}", DOCUMENTS.join(", ")),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{is_well_formed, parsed, refuses};

    #[test]
    fn each_document_has_its_schema() {
        is_well_formed(parse, OwnCommand::Schema, command(), EXAMPLES, 2);
        let (record, watch) = (parsed(parse, "schema").unwrap(), parsed(parse, "schema watch").unwrap());
        assert_eq!(parsed(parse, "schema record").unwrap(), record);
        assert!(record.contains(rdsk_model::SCHEMA) && watch.contains("rdsk.watch-command/1"));
        refuses(
            parse,
            &[
                ("schema plan", "there is no schema of \"plan\""),
                ("schema record watch", "the word \"watch\" is one too many"),
            ],
        );
    }
}
