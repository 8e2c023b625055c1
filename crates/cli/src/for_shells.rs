//! `rdsk completions` and `rdsk man`: the whole command line as text for a shell and for man(1). The parsers stay what they are; this
//! only tells of them.

use crate::completion::SHELL_NAMES;
use crate::own_command::{self, Parsed, base};
use crate::parse::{usage, whole_command};
use crate::subcommand::{OWN, OwnCommand};
use crate::{compare, completion, dd, exchange, exit, history, html_page, man_page, out, schema, watch};
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use rdsk_model::Problem;
use rdsk_units::printable;
use std::ffi::OsString;

/// The hidden command by which scripts ask what can stand at a place.
pub(crate) const COMPLETE: &str = "complete";

/// In the order of their names.
const SHELLS: &[Shell] = &[Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh];

const COMPLETIONS_DETAILS: &str = "The script goes to standard output. It completes commands, flags, files, experiments, simulated systems \
     (sim:NAME), and the labels and ids of the history; elvish and powershell complete commands and flags only.";
const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  rdsk completions bash
      as ~/.local/share/bash-completion/completions/rdsk
  rdsk completions zsh
      as _rdsk in a directory of $fpath
  rdsk completions fish
      as ~/.config/fish/completions/rdsk.fish";
const MAN_DETAILS: &str = "The page goes to standard output, for man -l - or for a file such as rdsk-run.1. Without a command it is the page of rdsk, which \
     names the others.";
const MAN_EXAMPLES: &str = "\
Examples:
  rdsk man
      the page of rdsk: rdsk man | man -l -
  rdsk man run
      the page of a command";

/// Runs a command line whose first word is `completions`.
pub(crate) fn completions(words: &[OsString]) -> u8 {
    own_command::run(parse_completions(words), |shell| out::data(&script(*shell)).map(|()| exit::DONE))
}

/// Answers a script: the words are those of the line so far, without the program, and the last one is being typed.
pub(crate) fn complete(words: &[OsString]) -> u8 {
    let line = std::iter::once("rdsk".into()).chain(words.iter().cloned()).collect();
    let text = completion::lines(completion::with_values(command()), line);
    if !text.is_empty() {
        // A shell that waits for an answer has no place for a problem.
        let _ = out::data(text.trim_end_matches('\n'));
    }
    exit::DONE
}

/// Runs a command line whose first word is `man`.
pub(crate) fn man(words: &[OsString]) -> u8 {
    own_command::run(parse_man(words), |name| out::data(&page(name.as_deref())?).map(|()| exit::DONE))
}

fn parse_completions(words: &[OsString]) -> Result<Parsed<Shell>, Problem> {
    own_command::parse(completions_command(), words, |matches| {
        let word = word(matches, "SHELL").unwrap_or_default();
        let shell = SHELL_NAMES.iter().position(|name| *name == word).map(|place| SHELLS[place]);
        let what = if word.is_empty() {
            "no shell is named".into()
        } else {
            format!("unknown shell \"{}\"", printable(&word))
        };
        shell.ok_or_else(|| usage(what, format!("name one of {}", SHELL_NAMES.join(", "))))
    })
}

fn parse_man(words: &[OsString]) -> Result<Parsed<Option<String>>, Problem> {
    own_command::parse(man_command(), words, |matches| Ok(word(matches, "COMMAND")))
}

fn word(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

fn completions_command() -> Command {
    let shell = Arg::new("SHELL").help("bash, elvish, fish, powershell or zsh");
    base(OwnCommand::Completions, COMPLETIONS_DETAILS, COMPLETIONS_EXAMPLES).arg(shell)
}

fn man_command() -> Command {
    let command = Arg::new("COMMAND").help("The command that the page is about [default: all of rdsk]");
    base(OwnCommand::Man, MAN_DETAILS, MAN_EXAMPLES).arg(command)
}

/// All of rdsk, with the flags of every command.
pub(crate) fn command() -> Command {
    whole_command(OWN.iter().map(|own| match own {
        OwnCommand::List => history::list_command(),
        OwnCommand::Delete => history::delete_command(),
        OwnCommand::Compare => compare::command(),
        OwnCommand::Report => html_page::command(),
        OwnCommand::Export => exchange::export_command(),
        OwnCommand::Import => exchange::import_command(),
        OwnCommand::Dd => dd::command(),
        OwnCommand::Watch => watch::command(),
        OwnCommand::Schema => schema::command(),
        OwnCommand::Completions => completions_command(),
        OwnCommand::Man => man_command(),
    }))
}

fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => include_str!("shells/rdsk.bash").to_owned(),
        Shell::Fish => include_str!("shells/rdsk.fish").to_owned(),
        Shell::Zsh => include_str!("shells/rdsk.zsh").to_owned(),
        // These know what the command line is when the script is made, and nothing of the history.
        shell => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut completion::with_values(command()), "rdsk", &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

fn page(name: Option<&str>) -> Result<String, Problem> {
    let mut whole = command();
    whole.build();
    let of = match name {
        None => whole,
        Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
            usage(format!("unknown command \"{}\"", printable(name)), "rdsk --help lists the commands")
        })?,
    };
    Ok(man_page::render(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{is_well_formed, parsed};
    use crate::subcommand::ALL;

    #[test]
    fn the_commands_are_well_formed() {
        let examples = COMPLETIONS_EXAMPLES;
        is_well_formed(parse_completions, OwnCommand::Completions, completions_command(), examples, 3);
        is_well_formed(parse_man, OwnCommand::Man, man_command(), MAN_EXAMPLES, 2);
        command().debug_assert();
        for line in ["completions", "completions tcsh", "completions bash zsh"] {
            assert!(parsed(parse_completions, line).is_err(), "{line}");
        }
        assert_eq!(parsed(parse_completions, "completions zsh").unwrap(), Shell::Zsh);
        assert_eq!(parsed(parse_man, "man run").unwrap().as_deref(), Some("run"));
    }

    #[test]
    fn every_command_is_in_the_script_of_every_shell_and_on_its_page() {
        let names = || ALL.iter().map(|one| one.name).chain(OWN.iter().map(|own| own.name()));
        for shell in [Shell::Elvish, Shell::PowerShell] {
            let script = script(shell);
            assert!(names().all(|command| script.contains(command)), "{shell}");
            for flag in ["budget", "older-than", "fail-if", "explain"] {
                assert!(script.contains(flag), "{shell}: {flag}");
            }
        }
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            assert!(script(shell).contains(&format!(" {COMPLETE} ")), "{shell}");
        }
        assert!(SHELL_NAMES.iter().zip(SHELLS).all(|(name, shell)| *name == shell.to_string()));
        for name in names() {
            let page = page(Some(name)).unwrap();
            let title = format!(".TH rdsk-{name} 1  \"rdsk {}\"", env!("CARGO_PKG_VERSION"));
            assert!(page.contains(&title), "{page}");
            assert!(page.contains("\n.SH EXAMPLES\n.TP\n"), "{name}");
            assert!(!page.contains("EXTRA") && !page.contains("Possible values:"), "{name}");
            assert!(page.contains("\n.SH SYNOPSIS\n\\fBrdsk "), "{page}");
        }
        assert!(page(None).unwrap().contains("rdsk\\-watch"));
        assert!(page(Some("nothing")).is_err());
    }
}
