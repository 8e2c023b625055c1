//! From words to what is args: the one place that knows clap. It checks what contradicts what, and says every mistake
//! as one line and a hint. It opens nothing and looks at no target.

mod conflicts;
mod usage_error;

use crate::cli_args::{CliArgs, JsonPlace};
use crate::flags::FLAGS;
use crate::subcommand::Subcommand;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command};
use rdsk_model::{Problem, ProblemKind};
use std::ffi::OsString;

/// Width of every help text, whatever the terminal: it can be quoted and compared.
const HELP_WIDTH: usize = 80;

/// What a command line is.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Something to do.
    Args(Box<CliArgs>),
    /// A text to show: the help or the version.
    Text(String),
}

/// Reads a command line, the program's name first.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(crate) fn parse(words: &[OsString]) -> Result<Parsed, Problem> {
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Parsed::Text(error.to_string()));
        }
        Err(error) => return Err(usage_error::problem(&error, words)),
    };
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let subcommand = *Subcommand::ALL
        .iter()
        .find(|subcommand| subcommand.name() == name)
        .expect("clap only knows the commands of Subcommand::ALL");
    let mut args = CliArgs::new(subcommand);
    for flag in flags_of(subcommand) {
        flag.read(matches, &mut args);
    }
    args.targets = targets(matches)?;
    conflicts::check(matches, &args)?;
    Ok(Parsed::Args(Box::new(args)))
}

/// Where a command line that is wrong elsewhere wants its JSON, so that the mistake can be told there too.
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

/// The command that a command line names, even one that is wrong elsewhere.
pub(crate) fn subcommand(words: &[OsString]) -> Option<Subcommand> {
    let name = words.get(1)?.to_str()?;
    Subcommand::ALL.iter().copied().find(|subcommand| subcommand.name() == name)
}

/// A problem of the command line.
pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Usage, "usage", message.into(), hint.into())
}

/// The flags that a command takes.
fn flags_of(subcommand: Subcommand) -> impl Iterator<Item = &'static &'static dyn crate::flags::Flag> {
    FLAGS.iter().filter(move |flag| flag.subcommands().contains(&subcommand))
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
    let mut command = Command::new("rdsk")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Tell how fast a disk, LUN, array or file really is, and why")
        .after_help(
            "TARGET is a directory (a test file is made in it and removed), a file, a block device (by its path, \
             an identity such as vg/lv, or a tag such as PARTUUID=...) or a \
             simulated disk (sim:NAME); without one, the current directory. Files that are not rdsk's own and block devices are only read, unless \
             writing is allowed.\n\nExamples:\n  rdsk run\n      measure the filesystem of the current directory, \
             one minute\n  rdsk run /dev/sdb --budget 20s\n      measure a block device, only reading\n  rdsk info \
             /dev/sdb\n      what it is, and what would be refused and why\n\nExit codes: 0 done, 2 usage, 3 refused \
             or environment, 4 I/O failed, 130 interrupted",
        )
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("COMMAND")
        .subcommand_help_heading("Commands");
    for &subcommand in Subcommand::ALL {
        command = command.subcommand(clap_subcommand(subcommand));
    }
    command
}

fn clap_subcommand(subcommand: Subcommand) -> Command {
    let help = match subcommand {
        Subcommand::Info => "Directories, files, block devices, sim:NAME [default: every block device and .]",
        Subcommand::Sim => "list, or show NAME [default: list]",
        _ => "Directories, files, block devices, sim:NAME [default: .]",
    };
    Command::new(subcommand.name())
        .about(subcommand.about())
        .long_about(subcommand.details())
        .after_help(subcommand.examples_text())
        .args(flags_of(subcommand).map(|flag| flag.arg()))
        .arg(Arg::new("TARGET").action(ArgAction::Append).num_args(0..).help(help))
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
