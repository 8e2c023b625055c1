//! The options of `rdsk list` and `rdsk delete`. They parse words and open nothing.

use super::{DELETE, LIST, Place, choose, moment};
use crate::flags::{BadValue, value};
use crate::parse::{HELP_WIDTH, usage, usage_problem};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command};
use rdsk_model::{Experiment, Problem};
use rdsk_store::Filter;
use std::ffi::OsString;

const LIST_DETAILS: &str = "A line is the beginning of the id, when the run began, how it ended, the highest rate of a reading and of \
                            a writing cell whose bytes the device moved, and the targets. The id, its beginning, the label or \
                            the word last name the run to rdsk show. Times are UTC.";
const LIST_EXAMPLES: &str = "Examples:
  rdsk list
      the newest runs
  rdsk list --target /srv --since 7d
      the runs of a week on targets with /srv in their name
  rdsk list --experiment zones --limit 5 --json
      five runs with all columns, for programs
  rdsk show last
      the newest run again";
const DELETE_DETAILS: &str =
    "It asks nothing, and prints what it deleted. A run that goes on is never deleted.";
const DELETE_EXAMPLES: &str = "Examples:
  rdsk delete 01KAP3XM2C
      the run whose id begins so
  rdsk delete --older-than 90d --dry-run
      what would be deleted
  rdsk delete --older-than 90d
      every run that began more than 90 days ago";

/// Runs that are listed unless more are wanted.
const DEFAULT_LIMIT: usize = 30;
const MAX_LIMIT: u32 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListOptions {
    pub(super) filter: Filter,
    pub(super) is_json: bool,
}

/// What is done with the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    /// Only say which they are.
    Show,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeleteOptions {
    /// Ids, their beginnings, or labels.
    pub(super) words: Vec<String>,
    /// Every run that began longer ago.
    pub(super) older_than_ns: Option<u64>,
    pub(super) act: Act,
}

/// What one command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List(ListOptions),
    Delete(DeleteOptions),
}

#[derive(Debug)]
pub(super) enum Parsed {
    Asked(Asked),
    /// The help.
    Text(String),
}

/// Parses the words after `rdsk`, of which the first is `list` or `delete`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed, Problem> {
    let is_list = words.first().is_some_and(|word| word == "list");
    let (name, command) = if is_list { ("list", list_command()) } else { ("delete", delete_command()) };
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Parsed::Text(error.to_string()));
        }
        Err(error) => return Err(usage_problem(&error, name)),
    };
    if let Some(file) = matches.get_one::<OsString>("history") {
        if file.is_empty() {
            return Err(usage("--history: the value is empty", "name a file after --history"));
        }
        choose(Place::File(file.into()));
    }
    let asked = if is_list {
        Asked::List(list_options(&matches, moment::now_ns())?)
    } else {
        Asked::Delete(delete_options(&matches)?)
    };
    Ok(Parsed::Asked(asked))
}

fn list_options(matches: &ArgMatches, now_ns: i64) -> Result<ListOptions, Problem> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let text =
        |name: &'static str| given(name).map(value::text).transpose().map_err(|bad| refused(name, bad));
    let moment = |name: &'static str| {
        given(name).map(|text| moment::moment(text, now_ns)).transpose().map_err(|bad| refused(name, bad))
    };
    let words: Vec<&str> = Experiment::ALL.iter().map(|experiment| experiment.as_str()).collect();
    let experiment = given("experiment").map(|text| value::word(text, &words, &words)).transpose();
    let limit = given("limit").map(|text| value::count(text, MAX_LIMIT)).transpose();
    let limit = limit.map_err(|bad| refused("limit", bad))?;
    Ok(ListOptions {
        filter: Filter {
            target: text("target")?.map(str::to_owned),
            label: text("label")?.map(str::to_owned),
            experiment: experiment.map_err(|bad| refused("experiment", bad))?.map(str::to_owned),
            since_ns: moment("since")?,
            until_ns: moment("until")?,
            limit: Some(limit.map_or(DEFAULT_LIMIT, |limit| limit as usize)),
        },
        is_json: matches.get_flag("json"),
    })
}

fn delete_options(matches: &ArgMatches) -> Result<DeleteOptions, Problem> {
    let words: Vec<String> = matches.get_many::<String>("ID").unwrap_or_default().cloned().collect();
    if words.iter().any(|word| word.trim().is_empty()) {
        return Err(usage("the name of a run is empty", "name a run by its id; rdsk list shows them"));
    }
    let age = matches.get_one::<String>("older-than").map(|text| moment::age(text)).transpose();
    let older_than_ns = age.map_err(|bad| refused("older-than", bad))?;
    if words.is_empty() == older_than_ns.is_none() {
        return Err(usage(
            "delete takes either runs or --older-than",
            "name runs by their ids, or an age such as --older-than 90d",
        ));
    }
    let act = if matches.get_flag("dry-run") { Act::Show } else { Act::Delete };
    Ok(DeleteOptions { words, older_than_ns, act })
}

fn refused(flag: &str, bad: BadValue) -> Problem {
    usage(format!("--{flag}: {}", bad.message), bad.hint)
}

fn list_command() -> Command {
    with_history(base("rdsk list", LIST, LIST_DETAILS, LIST_EXAMPLES))
        .arg(one("target", "TEXT", "Only runs with this text in the name of a target"))
        .arg(one("label", "TEXT", "Only runs with this label"))
        .arg(one("experiment", "NAME", "Only runs with cells of this experiment"))
        .arg(one(
            "since",
            "TIME",
            "Only runs that began at this time or later: a date, a time, or an age such as 7d",
        ))
        .arg(one("until", "TIME", "Only runs that began before this time"))
        .arg(one("limit", "N", "At most N runs [default: 30]"))
        .arg(switch("json", "Print all columns as JSON"))
}

fn delete_command() -> Command {
    with_history(base("rdsk delete", DELETE, DELETE_DETAILS, DELETE_EXAMPLES))
        .arg(one("older-than", "AGE", "Delete every run that began longer ago, such as 90d"))
        .arg(switch("dry-run", "Only print what would be deleted"))
        .arg(
            Arg::new("ID")
                .value_name("ID")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("Runs: ids, beginnings of ids, labels, or the word last"),
        )
}

fn base(name: &'static str, summary: &'static str, details: &str, examples: &'static str) -> Command {
    Command::new(name)
        .no_binary_name(false)
        .bin_name(name)
        .about(summary)
        .long_about(format!("{summary}.\n\n{details}"))
        .after_help(examples)
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
}

fn with_history(command: Command) -> Command {
    let help =
        "The history [default: $RDSK_HISTORY, else rdsk/history.db in $XDG_DATA_HOME or ~/.local/share]";
    command.arg(one("history", "FILE", help).value_parser(clap::value_parser!(OsString)))
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn one(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).num_args(1).allow_hyphen_values(true).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, Problem> {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(Into::into).collect();
        match parse(&words)? {
            Parsed::Asked(asked) => Ok(asked),
            Parsed::Text(text) => panic!("{text}"),
        }
    }

    fn deletes(line: &str) -> DeleteOptions {
        match parsed(line).unwrap() {
            Asked::Delete(options) => options,
            Asked::List(options) => panic!("{options:?}"),
        }
    }

    #[test]
    fn the_commands_are_well_formed_and_their_examples_parse() {
        list_command().debug_assert();
        delete_command().debug_assert();
        for (examples, name, count) in [(LIST_EXAMPLES, "list", 3), (DELETE_EXAMPLES, "delete", 3)] {
            let start = format!("  rdsk {name}");
            let lines: Vec<&str> = examples.lines().filter(|line| line.starts_with(&start)).collect();
            assert_eq!(lines.len(), count);
            lines.iter().for_each(|line| drop(parsed(line.trim().strip_prefix("rdsk ").unwrap()).unwrap()));
            for how in ["-h", "--help"] {
                let Ok(Parsed::Text(text)) = parse(&[name.into(), how.into()]) else { panic!("{how}") };
                assert!(text.lines().all(|line| line.chars().count() <= HELP_WIDTH), "{text}");
            }
        }
    }

    #[test]
    fn filters_are_read() {
        let line = "list --target sd --label 'a b' --experiment zones --since 2026-01-01 --limit 7 --json";
        let Asked::List(options) = parsed(line).unwrap() else { panic!("it lists") };
        assert_eq!((options.filter.target.as_deref(), options.filter.limit), (Some("sd"), Some(7)));
        assert_eq!(options.filter.label.as_deref(), Some("a b"));
        assert_eq!(options.filter.since_ns, Some(1_767_225_600_000_000_000));
        assert!(options.is_json && options.filter.until_ns.is_none());
        let Asked::List(options) = parsed("list").unwrap() else { panic!("it lists") };
        assert_eq!(options.filter, Filter { limit: Some(DEFAULT_LIMIT), ..Filter::default() });
        assert_eq!(deletes("delete a b --dry-run").words, ["a", "b"]);
        assert_eq!(deletes("delete --older-than 1d").older_than_ns, Some(86_400_000_000_000));
        assert_eq!(deletes("delete a").act, Act::Delete);
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        for (line, said) in [
            ("list --limit 0", "--limit"),
            ("list --since soon", "--since"),
            ("list --experiment speed", "--experiment"),
            ("list --target ''", "--target"),
            ("list sda", "sda"),
            ("list --history ''", "--history"),
            ("delete", "either runs or --older-than"),
            ("delete a --older-than 1d", "either runs or --older-than"),
            ("delete ''", "empty"),
            ("delete --older-than 90", "--older-than"),
        ] {
            let problem = parsed(line).expect_err(line);
            assert!(problem.message.contains(said), "{line}: {problem}");
            assert!(problem.hint.is_some() && !problem.message.contains('\n'), "{line}");
        }
    }
}
