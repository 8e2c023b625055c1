//! `rdsk completions` and `rdsk man`: the whole command line as text for a shell and for man(1). The parsers stay what they are; this
//! only tells of them.

use crate::flags::ENGINES;
use crate::own_command::{self, Parsed, base};
use crate::parse::{usage, whole_command};
use crate::subcommand::{OWN, OwnCommand};
use crate::{compare, dd, exchange, exit, history, html_page, man_page, out, schema, watch};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use rdsk_model::Problem;
use rdsk_units::printable;
use std::ffi::OsString;

const SHELLS: [(&str, Shell); 5] = [
    ("bash", Shell::Bash),
    ("elvish", Shell::Elvish),
    ("fish", Shell::Fish),
    ("powershell", Shell::PowerShell),
    ("zsh", Shell::Zsh),
];

const COMPLETIONS_DETAILS: &str = "The script goes to standard output. It completes commands, flags, names of files, and the words that \
     --engine, --format and operands of dd take.";
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

/// Runs a command line whose first word is `man`.
pub(crate) fn man(words: &[OsString]) -> u8 {
    own_command::run(parse_man(words), |name| out::data(&page(name.as_deref())?).map(|()| exit::DONE))
}

fn parse_completions(words: &[OsString]) -> Result<Parsed<Shell>, Problem> {
    own_command::parse(completions_command(), words, |matches| {
        let word = word(matches, "SHELL").unwrap_or_default();
        let shell = SHELLS.iter().find(|(name, _)| *name == word).map(|(_, shell)| *shell);
        let names: Vec<&str> = SHELLS.iter().map(|(name, _)| *name).collect();
        let what = if word.is_empty() {
            "no shell is named".into()
        } else {
            format!("unknown shell \"{}\"", printable(&word))
        };
        shell.ok_or_else(|| usage(what, format!("name one of {}", names.join(", "))))
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
fn command() -> Command {
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

/// The same with the words that some values are, which the parsers answer to in words of their own.
fn completed() -> Command {
    // clap keeps words for as long as the program runs, which ends after the script.
    fn choice(words: Vec<String>) -> impl FnOnce(Arg) -> Arg {
        let words = words.into_iter().map(|word| -> &'static str { word.leak() });
        let words: Vec<&'static str> = words.collect();
        move |arg| arg.value_parser(PossibleValuesParser::new(words))
    }
    fn all(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }
    let whole = command();
    let commands: Vec<String> = whole.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let shells = SHELLS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let issues = |one: &&Command| one.get_arguments().any(|arg| arg.get_id() == "engine");
    let issuing: Vec<String> =
        whole.get_subcommands().filter(issues).map(|one| one.get_name().to_owned()).collect();
    let whole = issuing.into_iter().fold(whole, |whole, name| {
        whole.mut_subcommand(name, |one| one.mut_arg("engine", choice(all(ENGINES))))
    });
    whole
        .mut_subcommand(OwnCommand::Export.name(), |one| {
            one.mut_arg("format", choice(all(exchange::FORMATS)))
        })
        .mut_subcommand(OwnCommand::Schema.name(), |one| {
            one.mut_arg("DOCUMENT", choice(all(schema::DOCUMENTS)))
        })
        .mut_subcommand(OwnCommand::Completions.name(), |one| one.mut_arg("SHELL", choice(shells)))
        .mut_subcommand(OwnCommand::Man.name(), |one| one.mut_arg("COMMAND", choice(commands)))
}

/// An operand of dd goes on after its `=`, where bash would put a space.
const BASH_OPERANDS: &str = "
_rdsk_words() {
    _rdsk \"$@\"
    case \"${COMPREPLY[0]-}\" in
        *=) compopt -o nospace ;;
    esac
}
complete -F _rdsk_words -o bashdefault -o default rdsk
";

fn script(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut completed(), "rdsk", &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if shell == Shell::Bash {
        text.push_str(BASH_OPERANDS);
    }
    text
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
    fn every_command_and_flag_is_in_the_script_of_every_shell_and_on_its_page() {
        let names = || ALL.iter().map(|one| one.name).chain(OWN.iter().map(|own| own.name()));
        for (name, shell) in SHELLS {
            let script = script(shell);
            assert!(names().all(|command| script.contains(command)), "{name}");
            for flag in ["budget", "older-than", "fail-if", "explain"] {
                assert!(script.contains(flag), "{name}: {flag}");
            }
        }
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
