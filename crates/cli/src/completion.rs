//! What a shell offers while a command line is typed: commands, flags, and the words that values can be, such as simulated systems
//! and runs of the history. clap_complete finds out what stands at a place; this knows the words. It changes nothing, not even the
//! history.

use crate::history::{self, Place};
use crate::subcommand::{OwnCommand, SHOW, SIM};
use crate::{exchange, flags, schema};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _, complete,
};
use rdsk_disk::NAMES;
use rdsk_model::Experiment;
use rdsk_targets::SIM_PREFIX;
use std::ffi::{OsStr, OsString};

/// The shells that a script is printed for.
pub(crate) const SHELL_NAMES: &[&str] = &["bash", "elvish", "fish", "powershell", "zsh"];
/// Values that name a file or a directory, as the help calls them.
const PATHS: &[&str] = &["FILE", "DIR", "PLACE"];
/// The operands of dd that name files.
const FILE_OPERANDS: &[&str] = &["if=", "of="];

/// The command with the words that its values can be, which the parsers answer to in words of their own.
pub(crate) fn with_values(whole: Command) -> Command {
    let commands: Vec<&'static str> = whole.get_subcommands().map(|one| kept(one.get_name())).collect();
    whole.mut_subcommands(|one| {
        let name = one.get_name().to_owned();
        one.mut_args(|arg| with_words(&name, &commands, arg))
    })
}

/// clap keeps words for as long as the program runs, which ends after it has answered.
fn kept(word: &str) -> &'static str {
    word.to_owned().leak()
}

fn with_words(command: &str, commands: &[&'static str], arg: Arg) -> Arg {
    let id = arg.get_id().as_str().to_owned();
    let is = |own: OwnCommand| command == own.name();
    let is_path = |arg: &Arg| {
        arg.get_value_names().unwrap_or_default().iter().any(|name| PATHS.contains(&name.as_str()))
    };
    match id.as_str() {
        "TARGET" if command == SIM.name => arg.add(ArgValueCompleter::new(systems_and_acts)),
        "TARGET" if command == SHOW.name => arg.add(ArgValueCompleter::new(runs_and_files)),
        "TARGET" => arg.add(ArgValueCompleter::new(targets)),
        "RUN" if is(OwnCommand::Compare) => arg.add(ArgValueCompleter::new(runs_files_and_systems)),
        "RUN" if is(OwnCommand::Delete) => arg.add(ArgValueCompleter::new(runs)),
        "RUN" | "resume" => arg.add(ArgValueCompleter::new(runs_and_files)),
        "OPERAND" => {
            let words = words_of(&arg);
            arg.add(ArgValueCompleter::new(move |current: &OsStr| operands(&words, current)))
        }
        "label" => arg.add(ArgValueCandidates::new(|| candidates(history::labels()))),
        "experiment" => choice(arg, Experiment::PLANNED.iter().map(|experiment| experiment.as_str())),
        "format" if is(OwnCommand::Export) => choice(arg, exchange::FORMATS.iter().copied()),
        "DOCUMENT" if is(OwnCommand::Schema) => choice(arg, schema::DOCUMENTS.iter().copied()),
        "SHELL" => choice(arg, SHELL_NAMES.iter().copied()),
        "COMMAND" => choice(arg, commands.iter().copied()),
        _ if is_path(&arg) => arg.value_hint(ValueHint::AnyPath),
        name => match flags::words(name) {
            [] => arg,
            words => choice(arg, words.iter().copied()),
        },
    }
}

fn choice(arg: Arg, words: impl Iterator<Item = &'static str>) -> Arg {
    arg.value_parser(PossibleValuesParser::new(words.collect::<Vec<_>>()))
}

/// The words that the parser of this argument lists.
fn words_of(arg: &Arg) -> Vec<String> {
    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
}

/// Words, each with what it is.
fn candidates(words: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    words
        .into_iter()
        .map(|(word, about)| CompletionCandidate::new(word).help((!about.is_empty()).then(|| about.into())))
        .collect()
}

/// Those that begin with what is typed so far.
fn beginning(mut candidates: Vec<CompletionCandidate>, current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.as_encoded_bytes();
    candidates.retain(|candidate| candidate.get_value().as_encoded_bytes().starts_with(typed));
    candidates
}

fn systems(prefix: &str) -> Vec<CompletionCandidate> {
    let about = |name| rdsk_targets::load_system(name).map(|system| system.params.about).unwrap_or_default();
    candidates(NAMES.iter().map(|name| (format!("{prefix}{name}"), about(name))).collect())
}

/// The simulated systems, once the word says that it will be such; until then their prefix.
fn simulated(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_chosen = current.as_encoded_bytes().starts_with(SIM_PREFIX.as_bytes());
    let words = if is_chosen {
        systems(SIM_PREFIX)
    } else {
        candidates(vec![(SIM_PREFIX.to_owned(), "a simulated system".to_owned())])
    };
    beginning(words, current)
}

fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = PathCompleter::any().complete(current);
    words.extend(simulated(current));
    words
}

fn systems_and_acts(current: &OsStr) -> Vec<CompletionCandidate> {
    let acts = [("list", "every system, a line each"), ("show", "the parameters of one")];
    let mut words = candidates(acts.map(|(act, about)| (act.to_owned(), about.to_owned())).into());
    words.extend(systems(""));
    beginning(words, current)
}

fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(candidates(history::names()), current)
}

fn runs_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = runs(current);
    // Nothing typed asks for the runs; a directory may hold many files.
    if words.is_empty() || !current.is_empty() {
        words.extend(PathCompleter::file().complete(current));
    }
    words
}

fn runs_files_and_systems(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = runs_and_files(current);
    words.extend(simulated(current));
    words
}

fn operands(words: &[String], current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_str().unwrap_or_default();
    let file = FILE_OPERANDS.iter().find_map(|operand| Some((operand, typed.strip_prefix(operand)?)));
    if let Some((operand, path)) = file {
        let paths = PathCompleter::any().complete(path.as_ref());
        return paths.into_iter().map(|candidate| candidate.add_prefix(*operand)).collect();
    }
    let words = words.iter().map(|word| (word.clone(), String::new()));
    beginning(candidates(words.collect()), current)
}

/// What can stand in the place of the last word of a line, whose first word is the program: a line each, the word and, after a tab,
/// what it is.
pub(crate) fn lines(mut whole: Command, words: Vec<OsString>) -> String {
    let Some(last) = words.len().checked_sub(1) else { return String::new() };
    let current = words[last].clone();
    if let Some(file) = named_history(&words[..last]) {
        history::choose(Place::File(file.into()));
    }
    let directory = std::env::current_dir().ok();
    // A line that means nothing has no continuation.
    let mut candidates = complete(&mut whole, words, last, directory.as_deref()).unwrap_or_default();
    let is_flag =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    // Flags are offered where one was begun, or nothing else can stand.
    if current.is_empty() && !candidates.iter().all(is_flag) {
        candidates.retain(|candidate| !is_flag(candidate));
    }
    candidates.iter().filter_map(line).collect()
}

/// Names that no shell could take as a line are left out.
fn line(candidate: &CompletionCandidate) -> Option<String> {
    let value = candidate.get_value().to_str().filter(|value| !value.contains(char::is_control))?;
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let about = rdsk_units::printable(help.lines().next().unwrap_or_default());
    Some(format!("{value}\t{about}\n"))
}

fn named_history(words: &[OsString]) -> Option<&OsString> {
    words.windows(2).find(|pair| pair[0] == "--history").map(|pair| &pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::for_shells;

    fn values(line: &str) -> Vec<String> {
        let words = line.split(' ').map(OsString::from).collect();
        let text = lines(with_values(for_shells::command()), words);
        text.lines().filter_map(|line| Some(line.split_once('\t')?.0.to_owned())).collect()
    }

    #[test]
    fn each_place_has_its_words() {
        for (line, expected) in [
            ("rdsk compa", &["compare"][..]),
            ("rdsk run --only hea", &["headline"]),
            ("rdsk run --only headline,pa", &["headline,paths"]),
            ("rdsk run sim:wd2500-", &["sim:wd2500-4kn"]),
            ("rdsk run --budget 5s sim:wd2500-", &["sim:wd2500-4kn"]),
            ("rdsk sim show ssd-s", &["ssd-slc"]),
            ("rdsk sim sho", &["show"]),
            ("rdsk list --experiment stri", &["stripe"]),
            ("rdsk list --lim", &["--limit"]),
            ("rdsk run --engine io", &["io_uring"]),
            ("rdsk export --format c", &["csv"]),
            ("rdsk dd status=no", &["status=none", "status=noxfer"]),
            ("rdsk dd bs=4k cou", &["count="]),
            ("rdsk man wat", &["watch"]),
            ("rdsk schema r", &["record"]),
            ("rdsk completions z", &["zsh"]),
            ("rdsk nothing x", &[]),
        ] {
            assert_eq!(values(line), expected, "{line}");
        }
        assert!(values("rdsk run sim:").len() == NAMES.len(), "every system");
        assert!(values("rdsk list ").iter().all(|word| word.starts_with('-')), "nothing but flags");
        assert!(!values("rdsk run ").iter().any(|word| word.starts_with('-')), "targets");
    }

    #[test]
    fn paths_are_completed_where_they_stand() {
        for line in [
            "rdsk run Cargo.to",
            "rdsk run --json Cargo.to",
            "rdsk import Cargo.to",
            "rdsk list --history Cargo.to",
        ] {
            assert_eq!(values(line), ["Cargo.toml"], "{line}");
        }
        assert_eq!(values("rdsk dd if=Cargo.to"), ["if=Cargo.toml"]);
    }
}
