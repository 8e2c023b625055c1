//! `rdsk completions` and `rdsk man`: the whole command line as text for a shell and for man(1). They only show the grammar.

use crate::usage::usage;
use crate::{completion, man_page, out};
use clap::{Args, Command};
use clap_complete::Shell;
use rdsk_model::Problem;
use rdsk_units::printable;
use std::ffi::OsString;

/// The hidden command by which scripts ask what can stand at a place.
pub(crate) const COMPLETE: &str = "complete";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  rdsk completions bash
      as ~/.local/share/bash-completion/completions/rdsk
  rdsk completions zsh
      as _rdsk in a directory of $fpath
  rdsk completions fish
      as ~/.config/fish/completions/rdsk.fish";
const MAN_EXAMPLES: &str = "\
Examples:
  rdsk man
      the page of rdsk: rdsk man | man -l -
  rdsk man run
      the page of a command";

/// Print what completes the command line in a shell.
///
/// The script goes to standard output. It completes commands, flags, files, experiments, simulated systems (sim:NAME), and
/// the labels and ids of the history; elvish and powershell complete commands and flags only.
#[derive(Args, Clone, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page of rdsk or of a command.
///
/// The page goes to standard output, for man -l - or for a file such as rdsk-run.1. Without a command it is the page of
/// rdsk, which names the others.
#[derive(Args, Clone, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManPage {
    /// The command that the page is about [default: all of rdsk]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Answers a script: the words are those of the line so far, without the program, and the last one is being typed.
pub(crate) fn complete(whole: Command, words: &[OsString]) {
    let line = std::iter::once("rdsk".into()).chain(words.iter().cloned()).collect();
    let text = completion::lines(whole, line);
    if !text.is_empty() {
        // A shell that waits for an answer has no place for a problem.
        let _ = out::data(text.trim_end_matches('\n'));
    }
}

/// Prints the script of a shell.
///
/// # Errors
/// When standard output does not take it.
pub(crate) fn completions(completions: &Completions, whole: Command) -> Result<(), Problem> {
    out::data(&script(completions.shell, whole))
}

/// Prints the page of a command.
///
/// # Errors
/// When there is no such command, or standard output does not take the page.
pub(crate) fn man(man: &ManPage, whole: Command) -> Result<(), Problem> {
    out::data(&page(man.command.as_deref(), whole)?)
}

fn script(shell: Shell, mut whole: Command) -> String {
    match shell {
        Shell::Bash => include_str!("../shells/rdsk.bash").to_owned(),
        Shell::Fish => include_str!("../shells/rdsk.fish").to_owned(),
        Shell::Zsh => include_str!("../shells/rdsk.zsh").to_owned(),
        // These know what the command line is when the script is made, and nothing of the history.
        shell => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut whole, "rdsk", &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

fn page(name: Option<&str>, mut whole: Command) -> Result<String, Problem> {
    whole.build();
    let command = match name {
        None => whole,
        Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
            usage(format!("unknown command \"{}\"", printable(name)), "rdsk --help lists the commands")
        })?,
    };
    Ok(man_page::render(command))
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the test of the whole grammar asks of the texts.

    use super::*;

    pub(crate) fn script(shell: Shell, whole: &Command) -> String {
        super::script(shell, whole.clone())
    }

    pub(crate) fn page(name: Option<&str>, whole: &Command) -> Result<String, Problem> {
        super::page(name, whole.clone())
    }
}
