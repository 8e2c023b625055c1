//! What a shell offers while a command line is typed: commands, flags, and the words that values can be, such as simulated systems
//! and runs of the history. clap_complete finds out what stands at a place; this knows the words. It changes nothing, not even the
//! history.

use crate::history::{self, Place};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _, complete};
use rdsk_disk::NAMES;
use rdsk_targets::SIM_PREFIX;
use std::ffi::{OsStr, OsString};

/// Values that name a file or a directory, as the help calls them.
const PATHS: &[&str] = &["FILE", "DIR", "PLACE"];
/// The operands of dd that name files.
const FILE_OPERANDS: &[&str] = &["if=", "of="];

/// The grammar with paths, and with the names of commands where one is a value.
fn with_values(whole: Command) -> Command {
    // clap keeps words for as long as the program runs, which ends after it has answered.
    let commands: Vec<&'static str> =
        whole.get_subcommands().map(|command| &*command.get_name().to_owned().leak()).collect();
    let is_path = |arg: &Arg| {
        arg.get_value_names().unwrap_or_default().iter().any(|name| PATHS.contains(&name.as_str()))
    };
    let with_hint = move |arg: Arg| if is_path(&arg) { arg.value_hint(ValueHint::AnyPath) } else { arg };
    let is_command = |arg: Arg| arg.value_parser(PossibleValuesParser::new(commands));
    whole
        .mut_subcommands(move |command| command.mut_args(with_hint))
        .mut_subcommand("man", |man| man.mut_arg("command", is_command))
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

pub(crate) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = PathCompleter::any().complete(current);
    words.extend(simulated(current));
    words
}

pub(crate) fn systems_and_acts(current: &OsStr) -> Vec<CompletionCandidate> {
    let acts = [("list", "every system, a line each"), ("show", "the parameters of one")];
    let mut words = candidates(acts.map(|(act, about)| (act.to_owned(), about.to_owned())).into());
    words.extend(systems(""));
    beginning(words, current)
}

pub(crate) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(candidates(history::names()), current)
}

pub(crate) fn runs_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = runs(current);
    // Nothing typed asks for the runs; a directory may hold many files.
    if words.is_empty() || !current.is_empty() {
        words.extend(PathCompleter::file().complete(current));
    }
    words
}

pub(crate) fn runs_files_and_systems(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut words = runs_and_files(current);
    words.extend(simulated(current));
    words
}

/// The labels of the history.
/// The needs that are built in.
pub(crate) fn needs() -> Vec<CompletionCandidate> {
    ["list", "show"].iter().chain(rdsk_loads::NAMES).map(|name| CompletionCandidate::new(*name)).collect()
}

pub(crate) fn labels() -> Vec<CompletionCandidate> {
    candidates(history::labels())
}

/// Operands of dd, of which these are all.
pub(crate) fn operands(words: &[&str], current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_str().unwrap_or_default();
    let file = FILE_OPERANDS.iter().find_map(|operand| Some((operand, typed.strip_prefix(operand)?)));
    if let Some((operand, path)) = file {
        let paths = PathCompleter::any().complete(path.as_ref());
        return paths.into_iter().map(|candidate| candidate.add_prefix(*operand)).collect();
    }
    let words = words.iter().map(|word| ((*word).to_owned(), String::new()));
    beginning(candidates(words.collect()), current)
}

/// What can stand in the place of the last word of a line, whose first word is the program: a line each, the word and, after a tab,
/// what it is.
pub(crate) fn lines(whole: Command, words: Vec<OsString>) -> String {
    let Some(last) = words.len().checked_sub(1) else { return String::new() };
    let current = words[last].clone();
    if let Some(file) = named_history(&words[..last]) {
        history::choose(Place::File(file.into()));
    }
    let mut whole = with_values(whole);
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
