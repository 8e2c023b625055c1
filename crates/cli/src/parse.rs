//! From the words of the command line to [`CliArgs`], with clap. It refuses conflicting flags, and reports every usage
//! error as one line and a hint. It opens nothing and looks at no target.

mod conflicts;
mod usage_error;

use crate::cli_args::{CliArgs, JsonPlace};
use crate::flags::{BadValue, Flag};
use crate::subcommand::{ALL, OWN, Subcommand};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, ValueHint};
use rdsk_model::{Problem, ProblemKind};
use std::ffi::{OsStr, OsString};

/// Width of every help text, whatever the terminal, so that it can be quoted and compared.
pub(crate) const HELP_WIDTH: usize = 80;

#[derive(Debug)]
pub(crate) enum Parsed {
    Args(Box<CliArgs>),
    /// A text to show: the help or the version.
    Text(String),
}

/// Parses a command line, the program's name first.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(crate) fn parse(words: &[OsString]) -> Result<Parsed, Problem> {
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Parsed::Text(error.to_string()));
        }
        Err(error) => {
            let command = subcommand_of(words).map(|subcommand| subcommand.name);
            return Err(usage_error::problem(&error, command));
        }
    };
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let subcommand = named(name).expect("clap only knows these subcommands");
    let mut args = CliArgs::new(subcommand);
    for flag in crate::flags::all().filter(|flag| is_given(matches, flag)) {
        let texts: Vec<&str> =
            matches.get_raw(flag.name).into_iter().flatten().filter_map(OsStr::to_str).collect();
        flag.set(&mut args, &texts).map_err(bad(flag.name))?;
    }
    args.targets = targets(matches)?;
    conflicts::check(&args)?;
    Ok(Parsed::Args(Box::new(args)))
}

fn is_given(matches: &ArgMatches, flag: &Flag) -> bool {
    let is_taken = matches.try_contains_id(flag.name).unwrap_or(false);
    is_taken && matches.value_source(flag.name) == Some(ValueSource::CommandLine)
}

/// Where a command line with a usage error wants its JSON, so that the error can be reported there too.
pub(crate) fn json_place(words: &[OsString]) -> Option<JsonPlace> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (index, word) = words[..end]
        .iter()
        .enumerate()
        .find(|(_, word)| **word == "--json" || word.starts_with("--json="))?;
    let value = word.strip_prefix("--json=").or_else(|| words.get(index + 1).copied())?;
    crate::flags::json_place(value).ok()
}

/// The subcommand of a command line, even of one with a usage error.
pub(crate) fn subcommand_of(words: &[OsString]) -> Option<&'static Subcommand> {
    named(words.get(1)?.to_str()?)
}

pub(crate) fn named(name: &str) -> Option<&'static Subcommand> {
    ALL.iter().copied().find(|subcommand| subcommand.name == name)
}

pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Usage, "usage", message.into(), hint.into())
}

/// The problem that a bad value of this flag is.
pub(crate) fn bad(flag: &'static str) -> impl Fn(BadValue) -> Problem {
    move |bad| usage(format!("--{flag}: {}", bad.message), bad.hint)
}

/// The problem that one of clap's errors is, for a command with a parser of its own.
pub(crate) fn usage_problem(error: &clap::Error, command: &str) -> Problem {
    usage_error::problem(error, Some(command))
}

fn targets(matches: &ArgMatches) -> Result<Vec<String>, Problem> {
    let targets: Vec<String> =
        matches.get_many::<String>("TARGET").map(|names| names.cloned().collect()).unwrap_or_default();
    if targets.iter().any(String::is_empty) {
        return Err(usage("the name of a target is empty", "name a directory, a file or a block device"));
    }
    Ok(targets)
}

fn command() -> Command {
    // Only for the list: their words never come here.
    whole_command(OWN.iter().map(|own| Command::new(own.name()).about(own.summary())))
}

/// All of rdsk, with these as the commands that have parsers of their own.
pub(crate) fn whole_command(own: impl Iterator<Item = Command>) -> Command {
    Command::new("rdsk")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measure how fast a disk, LUN, array or file really is, and explain why")
        .after_help(
            "TARGET is a directory (a test file is created in it and removed), a file, a block device (by its path, an \
             identity such as vg/lv, or a tag such as PARTUUID=...) or a simulated disk (sim:NAME); the default is the \
             current directory. Files of yours and block devices are only read, unless --overwrite \
             or --destroy allows writing.\n\nExamples:\n  rdsk run\n      measure the filesystem of the current directory, one minute\n  \
             rdsk run /dev/sdb --budget 20s\n      measure a block device, only reading\n  rdsk info /dev/sdb\n      what \
             it is, what would be refused, and why\n\nrdsk COMMAND --help explains the flags of a command.\n\nExit \
             codes: 0 done, 1 a condition of rdsk compare is met, 2 usage error, 3 refused or not possible here, 4 I/O failed, 130 interrupted",
        )
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("COMMAND")
        .subcommand_help_heading("Commands")
        .subcommands(ALL.iter().copied().map(clap_subcommand))
        .subcommands(own)
}

fn clap_subcommand(subcommand: &'static Subcommand) -> Command {
    let Subcommand { name, summary, details, targets: (targets, help), .. } = subcommand;
    Command::new(name)
        .about(summary)
        .long_about(format!("{summary}.\n\n{details}"))
        .after_help(subcommand.examples_text())
        .args(crate::flags::all().filter_map(|flag| flag.arg(subcommand)))
        .arg(
            Arg::new("TARGET")
                .value_name(targets)
                .value_hint(ValueHint::AnyPath)
                .action(ArgAction::Append)
                .num_args(0..)
                .help(help),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::testing::parsed;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(Into::into).collect()
    }

    #[test]
    fn the_command_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn targets_are_kept_in_order() {
        assert_eq!(parsed(&["run", "b", "a", "--", "-c"]).unwrap().targets, ["b", "a", "-c"]);
        assert_eq!(parsed(&["info"]).unwrap().targets, [] as [&str; 0]);
        assert!(parsed(&["run", ""]).unwrap_err().message.contains("empty"));
    }

    #[test]
    fn the_place_of_the_document_is_found_on_wrong_lines() {
        let place = |line: &[&str]| json_place(&words(line));
        assert_eq!(place(&["rdsk", "run", "--bs", "--json", "-"]), Some(JsonPlace::Stdout));
        assert_eq!(place(&["rdsk", "run", "--json=x", "--bs"]), Some(JsonPlace::File("x".into())));
        assert_eq!(place(&["rdsk", "run", "--", "--json", "x"]), None);
        assert_eq!(place(&["rdsk", "run", "--json"]), None);
    }

    #[test]
    fn help_and_version_are_texts() {
        for line in [&["rdsk", "--version"][..], &["rdsk", "--help"], &["rdsk", "run", "-h"], &["rdsk", "-V"]]
        {
            assert!(matches!(parse(&words(line)), Ok(Parsed::Text(_))), "{line:?}");
        }
    }
}
