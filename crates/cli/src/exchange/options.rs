//! The options of `rdsk export` and `rdsk import`. They parse words and open nothing.

use super::summary::{EXPORT, IMPORT};
use crate::cli_args::{Detail, Form, JsonPlace};
use crate::flags::{self, BadValue, value};
use crate::parse::{HELP_WIDTH, usage, usage_problem};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command};
use rdsk_model::Problem;
use rdsk_report::Charset;
use std::ffi::OsString;

const EXPORT_DETAILS: &str = "CSV has a row for each cell, OpenMetrics is for node_exporter's textfile collector, and Markdown is a summary of \
                              one Record or a table of several. Figures are those of the Record, to the last digit; what was \
                              not measured is left empty or left out.";
const EXPORT_EXAMPLES: &str = "Examples:
  rdsk export result.json --format csv
      a row for each cell, to standard output
  rdsk export monday.json friday.json --format markdown -o runs.md
      a table of two runs
  rdsk export result.json --format openmetrics -o /var/lib/node_exporter/disk.prom
      replaced in one step, so that a collector never reads half of it";

const IMPORT_DETAILS: &str = "Of fio it reads the JSON of version 3 (--output-format=json or json+), also between other lines. Each job and \
                              direction becomes a cell. What fio cannot show, such as whether the device moved the bytes, \
                              stays empty, and the page says so.";
const IMPORT_EXAMPLES: &str = "Examples:
  rdsk import fio.json
      what a run of fio says, and what it does not; rdsk list has it from now on
  rdsk import fio.json -o record.json
      the same as a Record, which rdsk show and rdsk export read
  fio --output-format=json+ job.fio | rdsk import -
      without a file in between";

const FORMATS: &[&str] = &["json", "csv", "openmetrics", "markdown"];

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

#[derive(Debug)]
pub(super) enum Parsed {
    Export(Export),
    Import(Import),
    /// The help.
    Text(String),
}

/// Parses the words after `rdsk`, of which the first is `export`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse_export(words: &[OsString]) -> Result<Parsed, Problem> {
    let matches = match matches(export_command(), words)? {
        Ok(matches) => matches,
        Err(text) => return Ok(Parsed::Text(text)),
    };
    let format = matches.get_one::<String>("format").ok_or_else(|| {
        usage("export needs a --format", format!("write --format with one of {}", FORMATS.join(", ")))
    })?;
    let forms = [Form::Json, Form::Csv, Form::OpenMetrics, Form::Markdown];
    let form = value::word(format, FORMATS, &forms).map_err(|bad| told("format", bad))?;
    let words =
        names(&matches, "RECORD", "name the file of a Record, as in rdsk export result.json --format csv")?;
    Ok(Parsed::Export(Export { words, form, output: output(&matches)? }))
}

/// Parses the words after `rdsk`, of which the first is `import`.
///
/// # Errors
/// As [`parse_export`].
pub(super) fn parse_import(words: &[OsString]) -> Result<Parsed, Problem> {
    let matches = match matches(import_command(), words)? {
        Ok(matches) => matches,
        Err(text) => return Ok(Parsed::Text(text)),
    };
    let label = matches.get_one::<String>("label").map(|text| flags::label(text)).transpose();
    Ok(Parsed::Import(Import {
        files: names(&matches, "FILE", "name a file of fio, as in rdsk import fio.json")?,
        output: output(&matches)?,
        label: label.map_err(|bad| told("label", bad))?,
        keeping: if matches.get_flag("no-history") { Keeping::Off } else { Keeping::InHistory },
        detail: if matches.get_flag("details") { Detail::Full } else { Detail::Short },
        charset: if matches.get_flag("ascii") { Charset::Ascii } else { Charset::Unicode },
    }))
}

/// What clap makes of the words: its matches, or the help.
fn matches(command: Command, words: &[OsString]) -> Result<Result<ArgMatches, String>, Problem> {
    let name = command.get_name().to_owned();
    match command.try_get_matches_from(words) {
        Ok(matches) => Ok(Ok(matches)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(usage_problem(&error, name.trim_start_matches("rdsk "))),
    }
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
    place.map_err(|bad| told("output", bad))
}

fn told(flag: &str, bad: BadValue) -> Problem {
    usage(format!("--{flag}: {}", bad.message), bad.hint)
}

fn command(name: &'static str, about: &'static str, details: &str, examples: &'static str) -> Command {
    Command::new(name)
        .bin_name(name)
        .about(about)
        .long_about(format!("{about}.\n\n{details}"))
        .after_help(examples)
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
}

fn one(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).num_args(1).allow_hyphen_values(true).help(help)
}

fn many(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(name).action(ArgAction::Append).num_args(0..).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn export_command() -> Command {
    command("rdsk export", EXPORT, EXPORT_DETAILS, EXPORT_EXAMPLES)
        .arg(one("format", "FORMAT", "The form [possible values: json, csv, openmetrics, markdown]"))
        .arg(
            one("output", "FILE", "Write to FILE, replaced in one step [default: standard output]")
                .short('o'),
        )
        .arg(many("RECORD", "Runs of rdsk list, or files that rdsk wrote with --json"))
}

fn import_command() -> Command {
    command("rdsk import", IMPORT, IMPORT_DETAILS, IMPORT_EXAMPLES)
        .arg(
            one("output", "FILE", "Write the Record to FILE; with - to standard output, instead of the page")
                .short('o'),
        )
        .arg(one("label", "TEXT", "Name for the run, stored in the Record"))
        .arg(switch("no-history", "Do not keep what was read in the history"))
        .arg(switch("details", "Print the screens of all questions, of a run of rdsk"))
        .arg(switch("ascii", "Use only ASCII characters"))
        .arg(many("FILE", "Documents of fio, or Records; - is standard input"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Parsed, Problem> {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(Into::into).collect();
        if line.starts_with("export") { parse_export(&words) } else { parse_import(&words) }
    }

    #[test]
    fn the_commands_are_well_formed_and_their_examples_parse() {
        export_command().debug_assert();
        import_command().debug_assert();
        for examples in [EXPORT_EXAMPLES, IMPORT_EXAMPLES] {
            let lines = examples.lines().filter_map(|line| {
                line.split_once("rdsk ")
                    .filter(|(before, _)| before.starts_with("  ") && !before.starts_with("   "))
            });
            let lines: Vec<&str> = lines.map(|(_, line)| line).collect();
            assert_eq!(lines.len(), 3, "{examples}");
            lines.iter().for_each(|line| drop(parse(line).unwrap()));
        }
        for line in ["export -h", "export --help", "import -h", "import --help"] {
            let Ok(Parsed::Text(text)) = parse(line) else { panic!("{line}") };
            assert!(text.lines().all(|line| line.chars().count() <= HELP_WIDTH), "{text}");
        }
    }

    #[test]
    fn words_and_flags() {
        let Ok(Parsed::Export(export)) = parse("export a b --format=csv -o c") else { panic!("no export") };
        let output = Some(JsonPlace::File("c".into()));
        assert_eq!(export, Export { words: vec!["a".into(), "b".into()], form: Form::Csv, output });
        let Ok(Parsed::Import(import)) = parse("import a - --label night --ascii") else {
            panic!("no import")
        };
        assert_eq!(
            (import.files, import.label.as_deref()),
            (vec!["a".to_owned(), "-".into()], Some("night"))
        );
        assert_eq!((import.charset, import.detail), (Charset::Ascii, Detail::Short));
        assert_eq!(import.keeping, Keeping::InHistory);
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        for (line, said) in [
            ("export a", "--format"),
            ("export --format csv", "no record is named"),
            ("export a --format xml", "--format"),
            ("export a --format csv --format json", "--format is given twice"),
            ("export a --format csv -o ''", "--output"),
            ("export a --format csv --bs 4k", "--bs"),
            ("import", "no file is named"),
            ("import ''", "no file is named"),
            ("import a --label ''", "--label"),
            ("import a --format json", "--format"),
        ] {
            let problem = parse(line).expect_err(line);
            assert!(problem.message.contains(said), "{line}: {problem}");
            assert!(problem.hint.is_some() && !problem.message.contains('\n'), "{line}");
        }
    }
}
