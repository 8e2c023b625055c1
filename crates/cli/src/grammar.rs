//! What all commands have in common: how their help is laid out, how a line is parsed with clap, and the sections of the help. It knows
//! no command.

use crate::usage;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, Parser};
use rdsk_model::Problem;
use std::ffi::OsString;

/// Width of every help text, whatever the terminal, so that it can be quoted and compared.
const HELP_WIDTH: usize = 80;

/// The sections of the help of a command that measures, in their order.
pub(crate) const COMMON: &str = "Common";
pub(crate) const WHAT: &str = "What is measured";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const EXPERT: &str = "Expert";

/// What a command line is.
#[derive(Debug)]
pub(crate) enum Parsed<G> {
    /// Words of the grammar, and which of them were given.
    Line(G, ArgMatches),
    /// A request for a text: the help or the version.
    Text(String),
}

/// Parses a command line, the program's name first.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(crate) fn parse<G: Parser>(words: &[OsString]) -> Result<Parsed<G>, Problem> {
    let whole = prepared(G::command());
    let parsed = whole
        .clone()
        .try_get_matches_from(words)
        .and_then(|matches| G::from_arg_matches(&matches).map(|line| Parsed::Line(line, matches)));
    parsed.or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Parsed::Text(error.to_string())),
        _ => Err(usage::problem(&error, &whole, words)),
    })
}

/// The grammar as it parses, explains itself and is completed.
pub(crate) fn prepared(whole: Command) -> Command {
    let prepared = |arg: Arg| {
        // Paragraphs of the help are lines: one each is enough.
        let arg = match arg.get_long_help().map(|help| help.to_string().replace("\n\n", "\n")) {
            Some(help) => arg.long_help(help),
            None => arg,
        };
        // The value of a flag may begin with a minus, so that `--bs -4k` is a bad size and not an unknown flag.
        let takes_minus = !arg.is_positional() && arg.get_action().takes_values();
        if takes_minus { arg.allow_hyphen_values(true) } else { arg }
    };
    whole.color(ColorChoice::Never).term_width(HELP_WIDTH).mut_subcommands(|command| {
        let command = command.mut_args(prepared);
        if command.get_arguments().all(|arg| arg.get_help_heading() != Some(COMMON)) {
            return command;
        }
        let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help_heading(COMMON);
        command.disable_help_flag(true).arg(help.help("Print help: -h in short, --help with all details"))
    })
}

/// Says in the help of a flag what holds without it, for a command that shares the flag with others.
pub(crate) fn default(value: &'static str) -> impl FnOnce(Arg) -> Arg {
    move |arg| {
        let help =
            format!("{} [default: {value}]", arg.get_help().map(ToString::to_string).unwrap_or_default());
        with_help(arg, help)
    }
}

/// Says in the help of a flag what it is for a command that shares the flag with others.
pub(crate) fn help(text: &'static str) -> impl FnOnce(Arg) -> Arg {
    move |arg| with_help(arg, text.to_owned())
}

/// The argument with another short help, which the long one begins with.
fn with_help(arg: Arg, help: String) -> Arg {
    let old = arg.get_help().map(ToString::to_string).unwrap_or_default();
    match arg.get_long_help().map(|long| long.to_string().replacen(&old, &help, 1)) {
        Some(long) => arg.help(help).long_help(long),
        None => arg.help(help),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! The tests that every command has.

    use super::*;
    use clap::Args;
    use std::fmt::Debug;

    /// A command by itself, for the tests of its module.
    #[derive(Debug, Parser)]
    #[command(name = "rdsk")]
    struct Alone<A: Args + Debug> {
        #[command(subcommand)]
        command: Only<A>,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Only<A: Args + Debug> {
        It(A),
    }

    /// What the words after `rdsk COMMAND` are understood as.
    pub(crate) fn parsed<A: Args + Debug>(line: &str) -> Result<A, Problem> {
        let words = shlex::split(&format!("rdsk it {line}")).unwrap();
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        match parse::<Alone<A>>(&words)? {
            Parsed::Line(Alone { command: Only::It(args) }, _) => Ok(args),
            Parsed::Text(text) => panic!("{text}"),
        }
    }

    /// Asserts that `act` refuses each line in one line that says so much, and a hint.
    pub(crate) fn refuses<A: Args + Debug, T: Debug>(
        act: impl Fn(A) -> Result<T, Problem>,
        lines: &[(&str, &str)],
    ) {
        for (line, said) in lines {
            let problem = parsed(line).and_then(&act).expect_err(line);
            assert_eq!(problem.kind, rdsk_model::ProblemKind::Usage, "{line}");
            assert!(problem.message.contains(said), "{line}: {problem}");
            let hint = problem.hint.unwrap_or_default();
            assert!(!hint.is_empty() && !hint.contains('\n') && !problem.message.contains('\n'), "{line}");
        }
    }
}
