//! The options of `rdsk export` and `rdsk import`. They parse words and open nothing.

use crate::cli_args::{Detail, Form, JsonPlace};
use crate::flags::{self, value};
use crate::own_command::{self, Parsed, base, many, one, switch};
use crate::parse::{bad, usage};
use crate::subcommand::OwnCommand;
use clap::{ArgMatches, Command};
use rdsk_model::Problem;
use rdsk_report::Charset;
use std::ffi::OsString;

const EXPORT_DETAILS: &str = "CSV has a row for each cell, OpenMetrics is for node_exporter's textfile collector, and Markdown is a summary of \
                              one Record or a table of several. Figures are those of the Record, to the last digit; what was \
                              not measured is left empty or left out.";
const EXPORT_EXAMPLES: &str = r"Examples:
  rdsk export last --format csv
      a row for each cell of the newest run, to standard output
  rdsk export monday.json friday.json --format markdown -o runs.md
      a table of two runs
  rdsk export result.json --format openmetrics \
      -o /var/lib/node_exporter/disk.prom
      replaced in one step, so that a collector never reads half of it";

const IMPORT_DETAILS: &str = "Of fio 2 and 3 it reads the JSON (--output-format=json or json+), also within logs and of fio --client. Each job and \
                              direction becomes a cell. What fio cannot show, such as whether the device moved the bytes, \
                              stays empty, and the page says so.";
const IMPORT_EXAMPLES: &str = "Examples:
  rdsk import fio.json
      what a run of fio says, and what it does not; rdsk list has it from now on
  rdsk import fio.json -o record.json
      the same as a Record, which rdsk show and rdsk export read
  fio --output-format=json+ job.fio | rdsk import -
      without a file in between";

pub(crate) const FORMATS: &[&str] = &["json", "csv", "openmetrics", "markdown"];

/// What a command line of `rdsk export` requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    /// What names each Record.
    pub(super) words: Vec<String>,
    pub(super) form: Form,
    /// Standard output if there is none.
    pub(super) output: Option<JsonPlace>,
}

/// Whether what is read becomes a run of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    InHistory,
    Off,
}

/// What a command line of `rdsk import` requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Paths, or `-`.
    pub(super) files: Vec<String>,
    /// Where the Record goes, if anywhere.
    pub(super) output: Option<JsonPlace>,
    pub(super) label: Option<String>,
    pub(super) keeping: Keeping,
    pub(super) detail: Detail,
    pub(super) charset: Charset,
}

/// Parses the words after `rdsk`, of which the first is `export`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn export(words: &[OsString]) -> Result<Parsed<Export>, Problem> {
    let is_flag = |format: &&&str| words.iter().any(|word| *word == *format!("--{format}"));
    if let Some(format) = FORMATS.iter().find(is_flag) {
        // Other commands have such a flag.
        let hint = format!("write --format {format}, and -o FILE for another place than standard output");
        return Err(usage(format!("--{format} does not apply to rdsk export"), hint));
    }
    own_command::parse(export_command(), words, |matches| {
        let format = matches.get_one::<String>("format").ok_or_else(|| {
            usage("export needs a --format", format!("write --format with one of {}", FORMATS.join(", ")))
        })?;
        let forms = [Form::Json, Form::Csv, Form::OpenMetrics, Form::Markdown];
        let form = value::word(format, FORMATS, &forms).map_err(bad("format"))?;
        let words = names(matches, "RUN", "name a run of rdsk list, or a file that rdsk wrote with --json")?;
        Ok(Export { words, form, output: output(matches)? })
    })
}

/// Parses the words after `rdsk`, of which the first is `import`.
///
/// # Errors
/// As [`export`].
pub(super) fn import(words: &[OsString]) -> Result<Parsed<Import>, Problem> {
    own_command::parse(import_command(), words, |matches| {
        let label = matches.get_one::<String>("label").map(|text| flags::label(text)).transpose();
        let is_off = matches.get_flag("no-history");
        if is_off && matches.contains_id("history") {
            return Err(usage("--history conflicts with --no-history", "leave one of them out"));
        }
        Ok(Import {
            files: names(matches, "FILE", "name a file of fio, as in rdsk import fio.json")?,
            output: output(matches)?,
            label: label.map_err(bad("label"))?,
            keeping: if is_off { Keeping::Off } else { Keeping::InHistory },
            detail: if matches.get_flag("details") { Detail::Full } else { Detail::Short },
            charset: if matches.get_flag("ascii") { Charset::Ascii } else { Charset::Unicode },
        })
    })
}

fn names(matches: &ArgMatches, name: &str, hint: &str) -> Result<Vec<String>, Problem> {
    let names: Vec<String> = matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
    if names.is_empty() || names.iter().any(String::is_empty) {
        return Err(usage(format!("no {} is named", name.to_lowercase()), hint));
    }
    Ok(names)
}

fn output(matches: &ArgMatches) -> Result<Option<JsonPlace>, Problem> {
    let place = matches.get_one::<String>("output").map(|text| flags::json_place(text)).transpose();
    place.map_err(bad("output"))
}

pub(crate) fn export_command() -> Command {
    base(OwnCommand::Export, EXPORT_DETAILS, EXPORT_EXAMPLES)
        .arg(one("format", "FORMAT", "The form [possible values: json, csv, openmetrics, markdown]"))
        .arg(
            one("output", "FILE", "Write to FILE, replaced in one step [default: standard output]")
                .short('o'),
        )
        .arg(own_command::history())
        .arg(many("RUN", "Runs of rdsk list, or files that rdsk wrote with --json"))
}

pub(crate) fn import_command() -> Command {
    base(OwnCommand::Import, IMPORT_DETAILS, IMPORT_EXAMPLES)
        .arg(
            one("output", "FILE", "Write the Record to FILE; with - to standard output, instead of the page")
                .short('o'),
        )
        .arg(one("label", "TEXT", "Name for the run, stored in the Record"))
        .arg(own_command::history())
        .arg(switch("no-history", "Do not keep what was read in the history"))
        .arg(switch("details", "Print the screens of all questions, of a run of rdsk"))
        .arg(switch("ascii", "Use only ASCII characters"))
        .arg(many("FILE", "Documents of fio, or Records; - is standard input"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{history_of, is_well_formed, parsed, refuses};

    #[test]
    fn the_commands_are_well_formed_and_their_examples_parse() {
        is_well_formed(export, OwnCommand::Export, export_command(), EXPORT_EXAMPLES, 3);
        is_well_formed(import, OwnCommand::Import, import_command(), IMPORT_EXAMPLES, 3);
    }

    #[test]
    fn words_and_flags() {
        let output = Some(JsonPlace::File("c".into()));
        assert_eq!(
            parsed(export, "export a b --format=csv -o c").unwrap(),
            Export { words: vec!["a".into(), "b".into()], form: Form::Csv, output }
        );
        let found = parsed(import, "import a - --label night --ascii").unwrap();
        assert_eq!((found.files, found.label.as_deref()), (vec!["a".to_owned(), "-".into()], Some("night")));
        assert_eq!((found.charset, found.detail), (Charset::Ascii, Detail::Short));
        assert_eq!(found.keeping, Keeping::InHistory);
        assert_eq!(history_of(import, "import a --history h.db"), Some("h.db".into()));
        assert_eq!(history_of(export, "export a --format csv --history h.db"), Some("h.db".into()));
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            export,
            &[
                ("export a", "--format"),
                ("export --format csv", "no run is named"),
                ("export a --format xml", "--format"),
                ("export a --format csv --format json", "--format is given twice"),
                ("export a --format csv -o ''", "--output"),
                ("export a --format csv --bs 4k", "--bs"),
                ("export a --csv a.csv", "--csv does not apply to rdsk export"),
            ],
        );
        refuses(
            import,
            &[
                ("import", "no file is named"),
                ("import ''", "no file is named"),
                ("import a --label ''", "--label"),
                ("import a --format json", "--format"),
                ("import a --history h.db --no-history", "--history conflicts with --no-history"),
            ],
        );
    }
}
