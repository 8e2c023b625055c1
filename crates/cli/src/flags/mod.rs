//! The flags, one struct each: name, help, the commands where it has a meaning, and how its value is read. They parse
//! text and nothing else; what contradicts what is checked in `args`.

mod allow;
mod duration;
mod how;
mod output;
mod place;
mod value;
mod what;

use crate::cli_args::CliArgs;
use crate::subcommand::Subcommand;
use clap::{Arg, ArgAction, ArgMatches};

pub(crate) use output::json_place;
pub(crate) use value::BadValue;

/// One flag.
pub(crate) trait Flag: Sync {
    /// The long name, without dashes.
    fn name(&self) -> &'static str;
    /// The commands that take it.
    fn subcommands(&self) -> &'static [Subcommand];
    /// Everything clap needs to know, help included.
    fn arg(&self) -> Arg;
    /// Moves the value, where one was given, into what is args.
    fn read(&self, matches: &ArgMatches, args: &mut CliArgs);
}

/// Every flag, in the order of the help.
pub(crate) static FLAGS: &[&dyn Flag] = &[
    &what::Only,
    &what::Rw,
    &what::Bs,
    &what::Bytes,
    &what::Size,
    &what::Offset,
    &what::Pattern,
    &place::Points,
    &place::Full,
    &place::Runs,
    &place::Order,
    &place::Resume,
    &how::Iodepth,
    &how::Streams,
    &place::Stagger,
    &place::SharedRange,
    &how::Engine,
    &how::Pin,
    &how::Seed,
    &duration::Budget,
    &duration::Runtime,
    &duration::Precision,
    &allow::Destroy,
    &allow::OverwriteFile,
    &output::Json,
    &output::JsonCompact,
    &output::DryRun,
    &output::Label,
    &output::Quiet,
    &output::Color,
    &output::Ascii,
];

/// A flag with a value. A value may begin with a minus, so that `--bs -4k` is a bad size and not an unknown flag.
fn valued(name: &'static str, value_name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value_name)
        .help(help)
        .action(ArgAction::Set)
        .num_args(1)
        .allow_hyphen_values(true)
}

/// A flag whose value is a list: separated by commas, or the flag repeated.
fn listed(name: &'static str, value_name: &'static str, help: &'static str) -> Arg {
    valued(name, value_name, help).action(ArgAction::Append).value_delimiter(',')
}

/// A flag without a value.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// The one value of a flag.
fn one<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    matches.get_one::<T>(name).cloned()
}

/// The values of a list without repetitions, in the order given.
fn many<T: Clone + Send + Sync + PartialEq + 'static>(matches: &ArgMatches, name: &str) -> Option<Vec<T>> {
    let mut unique: Vec<T> = Vec::new();
    for value in matches.get_many::<T>(name)? {
        if !unique.contains(value) {
            unique.push(value.clone());
        }
    }
    Some(unique)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Parsing a command line as the tool does, for the test of each flag.

    use crate::cli_args::CliArgs;
    use crate::parse::{Parsed, parse};
    use rdsk_model::Problem;

    /// What a command line (without the program's name) is understood as.
    pub(crate) fn parsed(line: &[&str]) -> Result<CliArgs, Problem> {
        let words: Vec<_> = std::iter::once("rdsk").chain(line.iter().copied()).map(Into::into).collect();
        match parse(&words)? {
            Parsed::Args(args) => Ok(*args),
            Parsed::Text(text) => panic!("{line:?} printed {text}"),
        }
    }

    /// Asserts that each value of a flag is refused, naming the flag, in one line, with a hint.
    pub(crate) fn refuses(subcommand: &str, flag: &str, values: &[&str]) {
        for value in values {
            let problem =
                parsed(&[subcommand, flag, value]).expect_err(&format!("{flag} {value:?} was accepted"));
            assert_eq!(problem.kind, rdsk_model::ProblemKind::Usage, "{flag} {value:?}");
            assert!(problem.message.contains(flag), "{flag} {value:?}: {}", problem.message);
            let hint = problem.hint.expect("every bad value has a hint");
            assert!(!hint.is_empty() && !hint.contains('\n') && !problem.message.contains('\n'), "{hint}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_flag_has_one_name_one_help_and_a_command() {
        let mut names = BTreeSet::new();
        for flag in FLAGS {
            let arg = flag.arg();
            assert_eq!(arg.get_long(), Some(flag.name()));
            assert!(names.insert(flag.name()), "{} twice", flag.name());
            assert!(arg.get_help().is_some(), "{} has no help", flag.name());
            assert!(!flag.subcommands().is_empty());
        }
    }

    #[test]
    fn every_flag_with_a_value_misses_it_in_one_line() {
        for flag in FLAGS.iter().filter(|flag| flag.arg().get_action().takes_values()) {
            let subcommand = flag.subcommands()[0].name();
            let dashed = format!("--{}", flag.name());
            for line in [
                vec![subcommand, &dashed],
                vec![subcommand, &dashed, "--quiet"],
                vec![subcommand, &dashed, ""],
            ] {
                let problem = testing::parsed(&line).expect_err(&format!("{line:?} was accepted"));
                assert!(problem.message.contains(&dashed), "{line:?}: {}", problem.message);
                assert!(problem.hint.is_some(), "{line:?}");
            }
        }
    }
}
