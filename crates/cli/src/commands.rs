//! The grammar of the whole command line: every command with its arguments, and what is called for it. A command is one variant here and
//! one module, which holds its arguments, help and examples.

mod delete;
mod for_shells;
mod list;
mod schema;
mod show;
mod sim;

use crate::dd::{self, Dd};
use crate::exchange::{self, Export, Import};
use crate::grammar::{self, Parsed};
use crate::html_page::{self, Report};
use crate::info::{self, Info};
use crate::json_file::{self, JSON, Sink};
use crate::measuring::Measuring;
use crate::watch::{self, Watch};
use crate::{compare, exit, measure, out, panic_hook, ranks, value};
use clap::{ArgMatches, CommandFactory as _, Parser, Subcommand};
use delete::Delete;
pub(crate) use for_shells::COMPLETE;
use for_shells::{Completions, ManPage};
use list::List;
use rdsk_model::Problem;
use schema::Schema;
use show::Show;
use sim::Sim;
use std::ffi::OsString;

const NOTES: &str =
    "TARGET is a directory (a test file is created in it and removed), a file, a block device (by its path, an \
     identity such as vg/lv, or a tag such as PARTUUID=...) or a simulated disk (sim:NAME); the default is the \
     current directory. Files of yours and block devices are only read, unless --overwrite or --destroy allows writing.

Examples:
  rdsk run
      measure the filesystem of the current directory, one minute
  rdsk run /dev/sdb --budget 20s
      measure a block device, only reading
  rdsk info /dev/sdb
      what it is, what would be refused, and why

rdsk COMMAND --help, or rdsk help COMMAND, explains the flags of a command; -h lists them.

Exit codes: 0 done, 1 a condition of rdsk compare is met, 2 usage error, 3 refused or not possible here, \
     4 I/O failed, 130 interrupted";

/// Measure how fast a disk, LUN, array or file really is, and explain why
#[derive(Debug, Parser)]
#[command(
    name = "rdsk",
    version,
    after_help = NOTES,
    subcommand_value_name = "COMMAND",
    subcommand_help_heading = "Commands"
)]
struct Rdsk {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of them in a process")]
enum Command {
    #[command(flatten)]
    Measuring(Measuring),
    Show(Show),
    Info(Info),
    Sim(Sim),
    List(List),
    Compare(compare::Compare),
    Report(Report),
    Export(Export),
    Import(Import),
    Delete(Delete),
    Dd(Dd),
    Watch(Watch),
    Schema(Schema),
    Completions(Completions),
    Man(ManPage),
}

/// The grammar, for texts about it.
pub(crate) fn whole() -> clap::Command {
    grammar::prepared(Rdsk::command())
}

/// Answers the script of a shell, which asks what can stand in the place of the last word.
pub(crate) fn complete(words: &[OsString]) {
    for_shells::complete(whole(), words);
}

/// Does what a command line requests, the program's name first, and gives the exit code.
pub(crate) fn run(words: &[OsString]) -> u8 {
    match grammar::parse::<Rdsk>(words) {
        Ok(Parsed::Text(text)) => {
            let code = ended(out::data(&text).map(|()| exit::DONE));
            if is_dd(words) { dd::exit_code(code) } else { code }
        }
        Ok(Parsed::Line(line, matches)) => {
            ended(panic_hook::catch(|| call(&line.command, &matches, words)).and_then(|done| done))
        }
        Err(problem) => misused(&problem, words),
    }
}

/// Calls the command and gives the exit code.
fn call(command: &Command, matches: &ArgMatches, words: &[OsString]) -> Result<u8, Problem> {
    let done = match command {
        Command::Measuring(measuring) => {
            if let Some(text) = measuring.listing()? {
                return crate::measuring::print_needs(&text).map(|()| exit::DONE);
            }
            let its_matches = matches.subcommand().map_or(matches, |(_, its_matches)| its_matches);
            return Ok(match measuring.clone().measurement(its_matches) {
                Ok(asked) => {
                    let command = texts(words);
                    ranks::measure(&asked, &command)?.unwrap_or_else(|| measure::measure(&asked, command))
                }
                Err(problem) => misused(&problem, words),
            });
        }
        Command::Info(info) => return info::show(info),
        Command::Compare(compare) => return compare::run(compare),
        Command::Watch(watch) => return watch::watch(watch),
        Command::Dd(dd) => return Ok(dd::run(dd, &words[1..], texts(words))),
        Command::Show(show) => show::show(show, texts(words)),
        Command::Sim(sim) => sim::show(sim),
        Command::List(list) => list::list(list),
        Command::Report(report) => html_page::report(report),
        Command::Export(export) => exchange::export(export),
        Command::Import(import) => exchange::import(import),
        Command::Delete(delete) => delete::delete(delete),
        Command::Schema(schema) => schema::show(schema),
        Command::Completions(completions) => for_shells::completions(completions, whole()),
        Command::Man(man) => for_shells::man(man, whole()),
    };
    done.map(|()| exit::DONE)
}

/// The exit code; a problem is printed.
fn ended(code: Result<u8, Problem>) -> u8 {
    code.unwrap_or_else(|problem| out::failure(&problem))
}

/// Reports a usage error, in the document too if one was requested.
fn misused(problem: &Problem, words: &[OsString]) -> u8 {
    if is_dd(words) {
        let json = value::json_place_of(words);
        return dd::exit_code(dd::failure(problem, json.as_ref(), &words[1..], texts(words)));
    }
    let name = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if writes_record(name)
        && let Some(place) = value::json_place_of(words)
        && let Ok(sink) = Sink::prepare(JSON, &place, &[])
    {
        json_file::output_failure(Some(&sink), || match name {
            "info" => info::document(&[], Some(problem)),
            _ => {
                let record = rdsk_experiment::failed_record(texts(words), None, problem.clone());
                rdsk_report::json(&record, rdsk_report::Compactness::Full)
            }
        });
    }
    out::failure(problem)
}

/// dd's exit codes are its own.
fn is_dd(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "dd")
}

/// Whether `--json` of this command names a file for one document, or there is no such command.
fn writes_record(name: &str) -> bool {
    let names_file = |arg: &clap::Arg| {
        arg.get_long() == Some("json")
            && arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
    };
    whole().find_subcommand(name).is_none_or(|command| command.get_arguments().any(names_file))
}

/// The command line as text, for the Record.
pub(crate) fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::Shell;

    fn words(line: &[&str]) -> Vec<OsString> {
        std::iter::once("rdsk").chain(line.iter().copied()).map(Into::into).collect()
    }

    fn parsed(line: &[&str]) -> Result<Parsed<Rdsk>, Problem> {
        grammar::parse::<Rdsk>(&words(line))
    }

    fn names() -> Vec<String> {
        whole().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn every_command_is_well_formed_and_its_examples_parse() {
        whole().debug_assert();
        for command in whole().get_subcommands() {
            let name = command.get_name();
            let text = command.get_after_help().unwrap_or_else(|| panic!("{name}")).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let (_, examples) = text.split_once("Examples:\n").unwrap();
            let examples = examples.replace("\\\n", " ");
            // What an example does stands below it, further in.
            let lines = examples.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
            let mut count = 0;
            for line in lines {
                let Some(start) = line.find(&format!("rdsk {name}")) else { continue };
                let line = line[start..].split(" | ").next().unwrap();
                let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(Into::into).collect();
                match name {
                    "dd" => assert_eq!(words[1], "dd"),
                    _ => drop(grammar::parse::<Rdsk>(&words).unwrap_or_else(|why| panic!("{line}: {why}"))),
                }
                count += 1;
            }
            assert!(count > 0, "{name}");
        }
    }

    #[test]
    fn help_is_narrow_in_both_lengths_and_by_the_word_help() {
        let text = |line: &[&str]| match parsed(line) {
            Ok(Parsed::Text(text)) => text,
            other => panic!("{line:?}: {other:?}"),
        };
        for name in names() {
            for how in ["-h", "--help"] {
                let help = text(&[&name, how]);
                assert!(help.contains(&format!("Usage: rdsk {name} ")), "{help}");
                assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
            }
            assert_eq!(text(&["help", &name]), text(&[&name, "--help"]));
        }
        assert_eq!(text(&["-V"]), text(&["--version"]));
        assert_eq!(text(&["help"]), text(&["--help"]));
    }

    #[test]
    fn every_command_is_in_the_script_of_every_shell_and_on_its_page() {
        for shell in [Shell::Elvish, Shell::PowerShell] {
            let script = for_shells::testing::script(shell, &whole());
            assert!(names().iter().all(|command| script.contains(command)), "{shell}");
            for flag in ["budget", "older-than", "fail-if", "explain"] {
                assert!(script.contains(flag), "{shell}: {flag}");
            }
        }
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let script = for_shells::testing::script(shell, &whole());
            assert!(script.contains(&format!(" {} ", for_shells::COMPLETE)), "{shell}");
        }
        for name in names() {
            let page = for_shells::testing::page(Some(&name), &whole()).unwrap();
            let title = format!(".TH rdsk-{name} 1  \"rdsk {}\"", env!("CARGO_PKG_VERSION"));
            assert!(page.contains(&title), "{page}");
            assert!(page.contains("\n.SH EXAMPLES\n.nf\n"), "{name}");
            assert!(!page.contains("EXTRA"), "{name}");
            assert!(page.contains("\n.SH SYNOPSIS\n\\fBrdsk "), "{page}");
        }
        assert!(for_shells::testing::page(None, &whole()).unwrap().contains("rdsk\\-watch"));
        assert!(for_shells::testing::page(Some("nothing"), &whole()).is_err());
    }

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
        check(&["erase"], "unknown command \"erase\"", "rdsk --help");
        check(&["rum"], "unknown command \"rum\"", "did you mean rdsk run?");
        check(&["lsit"], "unknown command \"lsit\"", "did you mean rdsk list?");
        check(&["rnu"], "unknown command \"rnu\"", "did you mean rdsk run?");
        check(&["run", "--direct"], "unknown flag --direct", "rdsk paths compares direct with buffered");
        check(&["run", "--filename=x"], "unknown flag --filename", "as in rdsk run /dev/sdb");
        check(&["export", "last", "--csv"], "--csv does not apply to rdsk export", "write --format csv");
        check(&["export", "last"], "--format is missing", "--format: The form");
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

    fn values(line: &str) -> Vec<String> {
        let words = line.split(' ').map(OsString::from).collect();
        let text = crate::completion::lines(whole(), words);
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
        assert!(values("rdsk run sim:").len() == rdsk_disk::NAMES.len(), "every system");
        assert!(values("rdsk list ").iter().all(|word| word.starts_with('-')), "nothing but flags");
        assert!(!values("rdsk run ").iter().any(|word| word.starts_with('-')), "targets");
    }

    #[test]
    fn paths_are_completed_where_they_stand() {
        for line in [
            "rdsk run Cargo.to", "rdsk run --json Cargo.to", "rdsk import Cargo.to",
            "rdsk list --history Cargo.to",
        ] {
            assert_eq!(values(line), ["Cargo.toml"], "{line}");
        }
        assert_eq!(values("rdsk dd if=Cargo.to"), ["if=Cargo.toml"]);
    }
}
