//! What the commands with parsers of their own share: the parts of their flags, the help, the problem of a wrong line, and how they end.
//! It knows none of them.

use crate::flags::{HISTORY, value};
use crate::history::{self, Place};
use crate::parse::{HELP_WIDTH, bad, usage_problem};
use crate::subcommand::OwnCommand;
use crate::{exit, out, panic_hook};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command, value_parser};
use rdsk_model::Problem;
use std::ffi::OsString;
use std::path::PathBuf;

/// What one command line requests.
#[derive(Debug)]
pub(crate) enum Parsed<T> {
    /// The options of its command, and the history, where the line names one.
    Options(T, Option<PathBuf>),
    /// The help.
    Text(String),
}

/// A command without flags: its name, and its help.
pub(crate) fn base(own: OwnCommand, details: &str, examples: &'static str) -> Command {
    let (name, summary) = (own.name(), own.summary());
    Command::new(name)
        .bin_name(format!("rdsk {name}"))
        .about(summary)
        .long_about(format!("{summary}.\n\n{details}"))
        .after_help(examples)
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
}

/// A flag without a value.
pub(crate) fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// A flag with a value, which may begin with a minus, so that `--count -1` is a bad number and not an unknown flag.
pub(crate) fn one(name: &'static str, value: &'static str, help: impl Into<String>) -> Arg {
    Arg::new(name).long(name).value_name(value).num_args(1).allow_hyphen_values(true).help(help.into())
}

/// A flag with a path, to be read by [`path_of`].
pub(crate) fn path(name: &'static str, value: &'static str, help: impl Into<String>) -> Arg {
    one(name, value, help).value_parser(value_parser!(OsString))
}

/// Words that follow the command.
pub(crate) fn many(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(name).action(ArgAction::Append).num_args(0..).help(help)
}

/// `--history FILE`. [`run`] takes it over.
pub(crate) fn history() -> Arg {
    let (help, default) = HISTORY;
    path("history", "FILE", format!("{help} [default: {default}]"))
}

/// The path after a flag.
///
/// # Errors
/// When it is empty, or another flag stands in its place.
pub(crate) fn path_of(matches: &ArgMatches, flag: &'static str) -> Result<Option<PathBuf>, Problem> {
    // Not every command takes every flag.
    let Ok(Some(path)) = matches.try_get_one::<OsString>(flag) else { return Ok(None) };
    // A name that is no text is neither empty nor a flag.
    path.to_str().map(value::text).transpose().map_err(bad(flag))?;
    Ok(Some(path.into()))
}

/// Parses a command line, whose first word is the command. `options` reads the matches, and refuses what means nothing.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(crate) fn parse<T>(
    command: Command,
    words: &[OsString],
    options: impl FnOnce(&ArgMatches) -> Result<T, Problem>,
) -> Result<Parsed<T>, Problem> {
    let name = command.get_name().to_owned();
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Parsed::Text(error.to_string())),
        Err(error) => return Err(usage_problem(&error, &name)),
    };
    let history = path_of(&matches, "history")?;
    Ok(Parsed::Options(options(&matches)?, history))
}

/// Does what a command line requests, or shows the help, and gives the exit code. A problem, of the line or of what `act` does, is
/// printed.
pub(crate) fn run<T>(parsed: Result<Parsed<T>, Problem>, act: impl FnOnce(&T) -> Result<u8, Problem>) -> u8 {
    let done = parsed.and_then(|parsed| match parsed {
        Parsed::Text(text) => out::data(&text).map(|()| exit::DONE),
        Parsed::Options(options, history) => {
            if let Some(file) = history {
                history::choose(Place::File(file));
            }
            panic_hook::catch(|| act(&options)).and_then(|done| done)
        }
    });
    done.unwrap_or_else(|problem| out::failure(&problem))
}

#[cfg(test)]
pub(crate) mod testing {
    //! The tests that every such command has.

    use super::*;
    use std::fmt::Debug;

    /// How a command parses its lines.
    pub(crate) type Parse<T> = fn(&[OsString]) -> Result<Parsed<T>, Problem>;

    fn words(line: &str) -> Vec<OsString> {
        shlex::split(line).unwrap().into_iter().map(Into::into).collect()
    }

    /// What a line is understood as, the command first.
    pub(crate) fn parsed<T>(parse: Parse<T>, line: &str) -> Result<T, Problem> {
        match parse(&words(line))? {
            Parsed::Options(options, _) => Ok(options),
            Parsed::Text(text) => panic!("{text}"),
        }
    }

    /// Asserts that the command is well formed, that its help is narrow, and that so many examples of it parse.
    pub(crate) fn is_well_formed<T>(
        parse: Parse<T>,
        own: OwnCommand,
        command: Command,
        examples: &str,
        count: usize,
    ) {
        command.debug_assert();
        let start = format!("rdsk {}", own.name());
        // What an example does stands below it, further in.
        let is_line = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        assert!(examples.lines().all(|line| line.chars().count() <= HELP_WIDTH), "{examples}");
        let examples = examples.replace("\\\n", " ");
        let lines = examples.lines().filter(is_line).filter_map(|line| Some(&line[line.find(&start)?..]));
        let lines: Vec<&str> = lines.map(|line| line.split(" | ").next().unwrap_or(line)).collect();
        assert_eq!(lines.len(), count, "{examples}");
        for line in lines {
            parsed(parse, line.strip_prefix("rdsk ").unwrap()).unwrap_or_else(|why| panic!("{line}: {why}"));
        }
        for how in ["-h", "--help"] {
            let line = format!("{} {how}", own.name());
            let Ok(Parsed::Text(text)) = parse(&words(&line)) else { panic!("{line} is no help") };
            assert!(text.contains(&format!("Usage: {start} ")), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= HELP_WIDTH), "{text}");
        }
    }

    /// Asserts that each line is refused in one line that says so much, and a hint.
    pub(crate) fn refuses<T: Debug>(parse: Parse<T>, lines: &[(&str, &str)]) {
        for (line, said) in lines {
            let problem = parsed(parse, line).expect_err(line);
            assert_eq!(problem.kind, rdsk_model::ProblemKind::Usage, "{line}");
            assert!(problem.message.contains(said), "{line}: {problem}");
            let hint = problem.hint.unwrap_or_default();
            assert!(!hint.is_empty() && !hint.contains('\n') && !problem.message.contains('\n'), "{line}");
        }
    }

    /// The history that a line names.
    pub(crate) fn history_of<T>(parse: Parse<T>, line: &str) -> Option<PathBuf> {
        match parse(&words(line)) {
            Ok(Parsed::Options(_, history)) => history,
            Ok(Parsed::Text(text)) => panic!("{text}"),
            Err(problem) => panic!("{line}: {problem}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{history_of, refuses};
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    fn listed(words: &[OsString]) -> Result<Parsed<Option<PathBuf>>, Problem> {
        let command =
            base(OwnCommand::List, "Details.", "").arg(history()).arg(path("svg", "DIR", "A place"));
        parse(command, words, |matches| path_of(matches, "svg"))
    }

    #[test]
    fn a_path_is_a_name_and_no_flag() {
        assert_eq!(history_of(listed, "list --history -h.db"), Some("-h.db".into()));
        assert_eq!(history_of(listed, "list"), None);
        refuses(
            listed,
            &[
                ("list --history ''", "--history: the value is empty"),
                ("list --svg ''", "--svg: the value is empty"),
                ("list --svg --history", "--svg: a value is missing before \"--history\""),
                ("list --svg", "--svg has no value"),
                ("list --history a --history b", "--history is given twice"),
                ("list --histroy a", "unknown flag --histroy"),
            ],
        );
        let bytes = OsString::from_vec(vec![b'h', 0xff]);
        let Ok(Parsed::Options(_, history)) = listed(&["list".into(), "--history".into(), bytes.clone()])
        else {
            panic!("a name need not be text")
        };
        assert_eq!(history, Some(bytes.into()));
    }

    #[test]
    fn the_end_of_what_is_done_is_the_exit_code() {
        let done = |act: fn(&()) -> Result<u8, Problem>| run(Ok(Parsed::Options((), None)), act);
        assert_eq!(done(|()| Ok(7)), 7);
        assert_eq!(done(|()| Err(crate::parse::usage("no", "yes"))), 2);
        assert_eq!(done(|()| panic!("the test's own")), exit::FAILED);
    }
}
