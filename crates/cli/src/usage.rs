//! Usage errors: one line, and a hint that names something to do. What clap found is said in our words, since its own text takes several
//! lines.

use crate::value::BadValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::error::Error as _;
use std::ffi::OsString;

/// The problem of a line that means nothing.
pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Usage, "usage", message.into(), hint.into())
}

/// The problem that one of clap's errors is, on a line of this grammar.
pub(crate) fn problem(error: &clap::Error, whole: &Command, words: &[OsString]) -> Problem {
    let command = words.get(1).and_then(|word| whole.find_subcommand(word));
    let flag = named(&text(error, ContextKind::InvalidArg).unwrap_or_default());
    match error.kind() {
        ErrorKind::ValueValidation => bad_value(error, &flag),
        ErrorKind::InvalidValue => not_a_word(error, &flag),
        ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => no_value(&flag),
        ErrorKind::UnknownArgument => unknown_argument(error, &flag, whole, command),
        ErrorKind::InvalidSubcommand => unknown_command(error, whole),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => usage(
            "no command is given",
            "rdsk run measures the current directory; rdsk --help lists the commands",
        ),
        ErrorKind::MissingRequiredArgument => missing(error, command),
        ErrorKind::ArgumentConflict => match text(error, ContextKind::PriorArg).map(|prior| named(&prior)) {
            Some(other) if other != flag => conflict(&flag, &other),
            _ => usage(format!("{flag} is given twice"), format!("give {flag} once")),
        },
        ErrorKind::TooManyValues => usage(format!("{flag} takes no value"), format!("write {flag} alone")),
        ErrorKind::InvalidUtf8 => {
            usage("a word of the command line is not UTF-8", "name the target by a symlink with a plain name")
        }
        _ => usage(first_line(&error.to_string()), help_hint(command)),
    }
}

/// Flags that do not go together, and what to do instead; of others one is left out.
const CONFLICTS: &[(&str, &str, &str)] = &[
    (
        "--destroy",
        "--overwrite",
        "--destroy is for a block device, --overwrite for a file; measure them one at a time",
    ),
    ("--points", "--full", "give --full for every block, or --points for some"),
    ("--evidence", "--from", "leave --evidence out: saved files are all that is read"),
    ("--interval", "--from", "leave --interval out: there is one report"),
    ("--interval", "COMMAND", "leave --interval out: there is one report"),
    ("--count", "--from", "leave --count out: there is one report"),
    ("--count", "COMMAND", "leave --count out: there is one report"),
    ("--fail-if", "--trend", "compare two runs, or leave it out"),
];

/// Flags of fio and other tools, and what does the same here.
const OTHER_TOOLS: &[(&[&str], &str)] = &[
    (
        &["direct", "buffered"],
        "I/O is direct unless a topic says otherwise; rdsk paths compares direct with buffered",
    ),
    (
        &["filename", "file", "device", "directory"],
        "write the target without a flag, as in rdsk run /dev/sdb",
    ),
    (&["ioengine"], "write --engine"),
    (&["numjobs", "threads", "jobs"], "write --streams with rdsk stream or rdsk scale"),
    (&["readwrite"], "write --rw read or --rw write; rdsk stream --pattern random for random I/O"),
    (&["blocksize", "block-size"], "write --bs with rdsk stream, paths, scale or align"),
    (&["time", "duration", "timeout"], "write --budget"),
    (&["name", "title"], "write --label"),
    (&["verbose", "all"], "write --details"),
    (&["force", "yes"], "write --overwrite for a file, --destroy IDENTITY for a block device"),
];

/// Two arguments that do not go together, in whichever order they stand.
fn conflict(first: &str, second: &str) -> Problem {
    let given = [first, second];
    let entry =
        CONFLICTS.iter().find(|(left, right, _)| given == [*left, *right] || given == [*right, *left]);
    let &(left, right, hint) = entry.unwrap_or(&(first, second, "leave one of them out"));
    let right = if right == "COMMAND" { "a command" } else { right };
    usage(format!("{left} conflicts with {right}"), hint)
}

fn no_value(flag: &str) -> Problem {
    usage(format!("{flag} has no value"), format!("write a value after {flag}"))
}

/// A value that its parser refused.
fn bad_value(error: &clap::Error, flag: &str) -> Problem {
    let with_flag = |message: &str| match flag.starts_with('-') {
        true => format!("{flag}: {message}"),
        false => message.to_owned(),
    };
    match error.source().and_then(|source| source.downcast_ref::<BadValue>()) {
        Some(bad) => usage(with_flag(&bad.message), bad.hint.clone()),
        None => usage(first_line(&error.to_string()), format!("write another value for {flag}")),
    }
}

/// A value that is none of the words, or none at all.
fn not_a_word(error: &clap::Error, flag: &str) -> Problem {
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let words = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(words)) if !value.is_empty() => words,
        _ => return no_value(flag),
    };
    let message = format!("{flag}: \"{}\" is not one of {}", printable(&value), words.join(", "));
    usage(message, format!("write {}", words.join(" or ")))
}

/// Arguments that a command needs; the help of the first says what it is.
fn missing(error: &clap::Error, command: Option<&Command>) -> Problem {
    let names: Vec<String> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().map(|name| named(name)).collect(),
        _ => Vec::new(),
    };
    let name = |arg: &Arg| match arg.get_long() {
        Some(long) => format!("--{long}"),
        None => arg.get_value_names().unwrap_or_default().concat(),
    };
    let is_first = |arg: &&Arg| names.first().is_some_and(|missing| name(arg) == *missing);
    let arg = command.and_then(|command| command.get_arguments().find(is_first));
    let help = arg.and_then(Arg::get_help).map(|help| format!("{}: {help}; ", names[0]));
    let are = if names.len() == 1 { "is" } else { "are" };
    let hint = help.unwrap_or_default() + &help_hint(command);
    usage(format!("{} {are} missing", names.join(" and ")), hint)
}

fn unknown_argument(error: &clap::Error, flag: &str, whole: &Command, command: Option<&Command>) -> Problem {
    let shown = printable(flag);
    if !flag.starts_with('-') {
        return usage(format!("unexpected word \"{shown}\""), help_hint(command));
    }
    let bare = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    if let Some(choice) = command.and_then(|command| choice(command, bare)) {
        let hint = format!("write {choice}");
        let name = command.map_or("", Command::get_name);
        return usage(format!("{shown} does not apply to rdsk {name}"), hint);
    }
    let takes = |taker: &&Command| taker.get_arguments().any(|arg| arg.get_long() == Some(bare));
    let takers: Vec<String> =
        whole.get_subcommands().filter(takes).map(|taker| format!("rdsk {}", taker.get_name())).collect();
    if !takers.is_empty() {
        let hint = format!("{shown} applies to {}", takers.join(", "));
        return match command {
            Some(command) => usage(format!("{shown} does not apply to rdsk {}", command.get_name()), hint),
            None => usage(format!("{shown} comes after a command"), hint),
        };
    }
    let hint = help_hint(command);
    if let Some((_, instead)) = OTHER_TOOLS.iter().find(|(flags, _)| flags.contains(&bare)) {
        return usage(format!("unknown flag {shown}"), format!("{instead}; {hint}"));
    }
    let takes_targets = |command: &Command| command.get_arguments().any(|arg| arg.get_id() == "targets");
    // A flag that begins with another letter is seldom meant: clap's nearest to --direct is --quiet.
    let is_near = |near: &String| near.trim_start_matches('-').starts_with(|first| bare.starts_with(first));
    let hint = match text(error, ContextKind::SuggestedArg).filter(is_near) {
        Some(suggested) => format!("did you mean {}? {hint}", named(&suggested)),
        None if command.is_some_and(takes_targets) => {
            format!("{hint}; a target that begins with - comes after --")
        }
        None => hint,
    };
    usage(format!("unknown flag {shown}"), hint)
}

/// The flag of a command whose value can be this word: `--format csv` for `--csv`.
fn choice(command: &Command, word: &str) -> Option<String> {
    let is_word = |arg: &&Arg| arg.get_possible_values().iter().any(|value| value.matches(word, false));
    let flag = command.get_arguments().filter(|arg| !arg.is_positional()).find(is_word)?;
    Some(format!("--{} {word}", flag.get_long()?))
}

fn unknown_command(error: &clap::Error, whole: &Command) -> Problem {
    let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let shown = printable(&name);
    // clap takes words of three letters for too short to be near anything.
    let mut names = whole.get_subcommands().map(|command| command.get_name().to_owned());
    let same_letters = names.find(|other| letters(other) == letters(&name));
    let hint = match same_letters.or_else(|| text(error, ContextKind::SuggestedSubcommand)) {
        _ if name.contains('/') || name == "." => format!("rdsk run {shown} measures it"),
        Some(suggested) => format!("did you mean rdsk {suggested}? {}", help_hint(None)),
        None => help_hint(None),
    };
    usage(format!("unknown command \"{shown}\""), hint)
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

fn help_hint(command: Option<&Command>) -> String {
    match command {
        Some(command) => format!("rdsk {} --help lists the flags", command.get_name()),
        None => "rdsk --help lists the commands".to_owned(),
    }
}

/// `--bs` from clap's `--bs <SIZE,...>`, `RUN` from `<RUN>...`, or the word that clap did not accept.
fn named(text: &str) -> String {
    match text.strip_prefix("--") {
        Some(_) => text.split_whitespace().next().unwrap_or_default().to_owned(),
        None => text.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned(),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    printable(line.strip_prefix("error: ").unwrap_or(line))
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // Of several suggestions clap puts the likeliest last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_reads_the_same_in_either_order() {
        for (left, right, hint) in CONFLICTS {
            let problem = conflict(right, left);
            assert_eq!(problem.message, conflict(left, right).message);
            assert!(problem.message.starts_with(left), "{problem}");
            assert_eq!(problem.hint.as_deref(), Some(*hint));
        }
        let other = conflict("--plain", "--json");
        assert_eq!(other.hint.as_deref(), Some("leave one of them out"));
    }
}
