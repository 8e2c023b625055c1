//! The options of `rdsk list` and `rdsk delete`. They parse words and open nothing.

use super::moment;
use crate::flags::value;
use crate::own_command::{self, Parsed, base, many, one, switch};
use crate::parse::{bad, usage};
use crate::subcommand::OwnCommand;
use clap::{ArgMatches, Command};
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
const DELETE_DETAILS: &str = "It asks nothing, and prints what it deleted. A run that goes on is never deleted. Whether one that rdsk \
                              list calls elsewhere goes on, on another machine or in another container, cannot be seen \
                              from here: it is deleted only with --force.";
const DELETE_EXAMPLES: &str = "Examples:
  rdsk delete 01KAP3XM2C
      the run whose id begins so
  rdsk delete --older-than 90d --dry-run
      what would be deleted
  rdsk delete --older-than 90d
      every run that began more than 90 days ago
  rdsk delete --older-than 90d --force
      those of machines and containers that are gone, too";

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

/// What is done with a run whose process cannot be seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    Stays,
    IsDeleted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeleteOptions {
    /// Ids, their beginnings, or labels.
    pub(super) words: Vec<String>,
    /// Every run that began longer ago.
    pub(super) older_than_ns: Option<u64>,
    pub(super) elsewhere: Elsewhere,
    pub(super) act: Act,
}

/// Parses the words after `rdsk`, of which the first is `list`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn list(words: &[OsString]) -> Result<Parsed<ListOptions>, Problem> {
    own_command::parse(list_command(), words, |matches| list_options(matches, moment::now_ns()))
}

/// Parses the words after `rdsk`, of which the first is `delete`.
///
/// # Errors
/// As [`list`].
pub(super) fn delete(words: &[OsString]) -> Result<Parsed<DeleteOptions>, Problem> {
    own_command::parse(delete_command(), words, delete_options)
}

fn list_options(matches: &ArgMatches, now_ns: i64) -> Result<ListOptions, Problem> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let text = |name: &'static str| given(name).map(value::text).transpose().map_err(bad(name));
    let moment = |name: &'static str| {
        given(name).map(|text| moment::moment(text, now_ns)).transpose().map_err(bad(name))
    };
    let words: Vec<&str> = Experiment::ALL.iter().map(|experiment| experiment.as_str()).collect();
    let experiment = given("experiment").map(|text| value::word(text, &words, &words)).transpose();
    let limit = given("limit").map(|text| value::count(text, MAX_LIMIT)).transpose();
    let limit = limit.map_err(bad("limit"))?;
    Ok(ListOptions {
        filter: Filter {
            target: text("target")?.map(str::to_owned),
            label: text("label")?.map(str::to_owned),
            experiment: experiment.map_err(bad("experiment"))?.map(str::to_owned),
            since_ns: moment("since")?,
            until_ns: moment("until")?,
            limit: Some(limit.map_or(DEFAULT_LIMIT, |limit| limit as usize)),
        },
        is_json: matches.get_flag("json"),
    })
}

fn delete_options(matches: &ArgMatches) -> Result<DeleteOptions, Problem> {
    let words: Vec<String> = matches.get_many::<String>("RUN").unwrap_or_default().cloned().collect();
    if words.iter().any(|word| word.trim().is_empty()) {
        return Err(usage("the name of a run is empty", "name a run by its id; rdsk list shows them"));
    }
    let age = matches.get_one::<String>("older-than").map(|text| moment::age_to_delete(text)).transpose();
    let older_than_ns = age.map_err(bad("older-than"))?;
    if words.is_empty() == older_than_ns.is_none() {
        return Err(usage(
            "delete takes either runs or --older-than",
            "name runs by their ids, or an age such as --older-than 90d",
        ));
    }
    let act = if matches.get_flag("dry-run") { Act::Show } else { Act::Delete };
    let elsewhere = if matches.get_flag("force") { Elsewhere::IsDeleted } else { Elsewhere::Stays };
    Ok(DeleteOptions { words, older_than_ns, elsewhere, act })
}

pub(crate) fn list_command() -> Command {
    base(OwnCommand::List, LIST_DETAILS, LIST_EXAMPLES)
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
        .arg(own_command::history())
}

pub(crate) fn delete_command() -> Command {
    base(OwnCommand::Delete, DELETE_DETAILS, DELETE_EXAMPLES)
        .arg(one("older-than", "AGE", "Delete every run that began longer ago, such as 90d"))
        .arg(switch("force", "Delete runs of other machines and containers too"))
        .arg(switch("dry-run", "Only print what would be deleted"))
        .arg(own_command::history())
        .arg(many("RUN", "Runs: ids, beginnings of ids, labels, or the word last"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{history_of, is_well_formed, parsed, refuses};

    #[test]
    fn the_commands_are_well_formed_and_their_examples_parse() {
        is_well_formed(list, OwnCommand::List, list_command(), LIST_EXAMPLES, 3);
        is_well_formed(delete, OwnCommand::Delete, delete_command(), DELETE_EXAMPLES, 4);
    }

    #[test]
    fn filters_are_read() {
        let line = "list --target sd --label 'a b' --experiment zones --since 2026-01-01 --limit 7 --json";
        let options = parsed(list, line).unwrap();
        assert_eq!((options.filter.target.as_deref(), options.filter.limit), (Some("sd"), Some(7)));
        assert_eq!(options.filter.label.as_deref(), Some("a b"));
        assert_eq!(options.filter.since_ns, Some(1_767_225_600_000_000_000));
        assert!(options.is_json && options.filter.until_ns.is_none());
        let options = parsed(list, "list").unwrap();
        assert_eq!(options.filter, Filter { limit: Some(DEFAULT_LIMIT), ..Filter::default() });
        let deletes = |line: &str| parsed(delete, line).unwrap();
        assert_eq!(deletes("delete a b --dry-run").words, ["a", "b"]);
        assert_eq!(deletes("delete --older-than 1d").older_than_ns, Some(86_400_000_000_000));
        for (age, seconds) in
            [("0s", 0), ("1h", 3600), ("90min", 5400), ("1h30m", 5400), ("90d", 90 * 86_400)]
        {
            let options = deletes(&format!("delete --older-than {age}"));
            assert_eq!(options.older_than_ns, Some(seconds * 1_000_000_000), "{age}");
        }
        assert_eq!(deletes("delete a").act, Act::Delete);
        assert_eq!(deletes("delete a").elsewhere, Elsewhere::Stays);
        assert_eq!(deletes("delete --older-than 1d --force").elsewhere, Elsewhere::IsDeleted);
        assert_eq!(history_of(list, "list --history h.db"), Some("h.db".into()));
        assert_eq!(history_of(delete, "delete a --history h.db"), Some("h.db".into()));
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            list,
            &[
                ("list --limit 0", "--limit"),
                ("list --since soon", "--since"),
                ("list --experiment speed", "--experiment"),
                ("list --target ''", "--target"),
                ("list sda", "the word \"sda\" is one too many"),
                ("list --history ''", "--history"),
            ],
        );
        refuses(
            delete,
            &[
                ("delete", "either runs or --older-than"),
                ("delete a --older-than 1d", "either runs or --older-than"),
                ("delete ''", "empty"),
                ("delete --older-than 90", "--older-than"),
                ("delete --older-than 3m", "may mean minutes or months"),
                ("delete --older-than '0.5 m '", "may mean minutes or months"),
            ],
        );
    }
}
