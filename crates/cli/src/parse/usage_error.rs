//! Usage errors that clap found, as one line with a hint. It never shows clap's own text, which takes several lines.

use super::{named, usage};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use rdsk_model::Problem;
use rdsk_units::printable;

/// The problem that one of clap's errors is, on a line of this command; `None` where the line names none that there is.
pub(super) fn problem(error: &clap::Error, command: Option<&str>) -> Problem {
    let flag = flag_name(error);
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            usage(format!("{flag} has no value"), format!("write a value after {flag}"))
        }
        ErrorKind::UnknownArgument => unknown_argument(error, &flag, command),
        ErrorKind::InvalidSubcommand => unknown_command(error),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => usage(
            "no command is given",
            "rdsk run measures the current directory; rdsk --help lists the commands",
        ),
        ErrorKind::ArgumentConflict => usage(format!("{flag} is given twice"), format!("give {flag} once")),
        ErrorKind::TooManyValues => usage(format!("{flag} takes no value"), format!("write {flag} alone")),
        ErrorKind::InvalidUtf8 => {
            usage("a word of the command line is not UTF-8", "name the target by a symlink with a plain name")
        }
        _ => usage(first_line(&error.to_string()), help_hint(command)),
    }
}

fn unknown_argument(error: &clap::Error, flag: &str, command: Option<&str>) -> Problem {
    let shown = printable(flag);
    if !flag.starts_with('-') {
        return usage(format!("the word \"{shown}\" is one too many"), help_hint(command));
    }
    let bare = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let elsewhere = crate::flags::all().find(|known| known.name == bare);
    if let Some(known) = elsewhere {
        let takers: Vec<String> = known.subcommands().map(|taker| format!("rdsk {}", taker.name)).collect();
        let hint = format!("{shown} applies to {}", takers.join(", "));
        return match command {
            Some(command) => usage(format!("{shown} does not apply to rdsk {command}"), hint),
            None => usage(format!("{shown} comes after a command"), hint),
        };
    }
    let hint = help_hint(command);
    let hint = match (text(error, ContextKind::SuggestedArg), command.and_then(named)) {
        (Some(suggested), _) => format!("did you mean {}? {hint}", first_word(&suggested)),
        // The commands with parsers of their own take no targets there.
        (None, Some(_)) => format!("{hint}; a target that begins with - comes after --"),
        (None, None) => hint,
    };
    usage(format!("unknown flag {shown}"), hint)
}

fn unknown_command(error: &clap::Error) -> Problem {
    let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let shown = printable(&name);
    let hint = match text(error, ContextKind::SuggestedSubcommand) {
        _ if name == "help" => {
            "rdsk --help lists the commands, and rdsk COMMAND --help explains one".to_owned()
        }
        _ if name.contains('/') || name == "." => format!("rdsk run {shown} measures it"),
        Some(suggested) => format!("did you mean rdsk {suggested}? {}", help_hint(None)),
        None => help_hint(None),
    };
    usage(format!("unknown command \"{shown}\""), hint)
}

fn help_hint(command: Option<&str>) -> String {
    match command {
        Some(command) => format!("rdsk {command} --help lists the flags"),
        None => "rdsk --help lists the commands".to_owned(),
    }
}

/// `--bs` from clap's `--bs <SIZE,...>`, or the word that clap did not accept.
fn flag_name(error: &clap::Error) -> String {
    let name = text(error, ContextKind::InvalidArg).unwrap_or_default();
    match name.strip_prefix("--") {
        Some(_) => first_word(&name),
        None => name,
    }
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
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
    use crate::flags::testing::parsed;

    fn check(line: &[&str], message: &str, hint: &str) {
        let problem = parsed(line).expect_err(&format!("{line:?} was accepted"));
        assert_eq!(problem.message, message, "{line:?}");
        let said = problem.hint.expect("every usage error has a hint");
        assert!(said.contains(hint), "{line:?}: {said}");
    }

    #[test]
    fn every_usage_error_is_one_line_and_a_hint() {
        check(&[], "no command is given", "rdsk run");
        check(&["--dry-run"], "--dry-run comes after a command", "rdsk run, rdsk paths");
        check(&["load"], "unknown command \"load\"", "rdsk --help");
        check(&["rum"], "unknown command \"rum\"", "did you mean rdsk run?");
        check(&["lsit"], "unknown command \"lsit\"", "did you mean rdsk list?");
        check(&["help"], "unknown command \"help\"", "rdsk COMMAND --help explains one");
        check(&["/dev/sdb"], "unknown command \"/dev/sdb\"", "rdsk run /dev/sdb");
        check(
            &["run", "--bs", "4k"],
            "--bs does not apply to rdsk run",
            "rdsk paths, rdsk stream, rdsk zones",
        );
        check(&["info", "--destroy", "x"], "--destroy does not apply to rdsk info", "rdsk run");
        check(&["run", "--bugdet", "4"], "unknown flag --bugdet", "did you mean --budget?");
        check(&["run", "-x"], "unknown flag -x", "after --");
        check(&["run", "--budget"], "--budget has no value", "write a value after --budget");
        check(&["run", "--seed", "1", "--seed", "2"], "--seed is given twice", "give --seed once");
        check(&["run", "--dry-run=yes"], "--dry-run takes no value", "write --dry-run alone");
        check(&["paths", "--bs", "-4k"], "--bs: size \"-4k\" is negative", "write 4k");
        check(&["paths", "--bs", "99999999T"], "--bs: size \"99999999T\" is too large", "write");
        check(&["run", "--\u{1b}[31m"], "unknown flag --\\x1b[31m", "--help");
    }
}
