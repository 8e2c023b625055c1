//! The flags as data: one [`Flag`] each, with its name, value, help and example, the subcommands that take it, and what it
//! sets. A new flag is one entry in a file below and a field in [`CliArgs`]. They parse text and nothing else; which flags
//! conflict is checked in `parse`.

mod duration;
mod issue;
mod output;
mod permission;
mod positions;
pub(crate) mod value;
mod workload;

use crate::cli_args::CliArgs;
use crate::subcommand::{ALL, Subcommand};
use Value::{List, One, Switch};
use clap::{Arg, ArgAction};

pub(crate) use output::{HISTORY, json_place, label, page_place};
pub(crate) use value::BadValue;

pub(crate) struct Flag {
    /// The long name, without dashes.
    pub(crate) name: &'static str,
    short: Option<char>,
    /// What follows the name, and what it sets.
    value: Value,
    /// The words that the value can be; empty when it is no choice of words.
    words: &'static [&'static str],
    uses: &'static [Use],
    /// More for `--help`.
    details: &'static str,
    /// An example of its use, without `rdsk SUBCOMMAND`.
    example: &'static str,
}

/// What a flag does for some subcommands.
struct Use {
    by: &'static [&'static Subcommand],
    help: &'static str,
    /// What happens without the flag; empty when the help says so.
    default: &'static str,
}

/// The value of a flag, by the name that the help gives it, and how it is parsed into the arguments.
enum Value {
    /// None: the flag alone says everything.
    Switch(fn(&mut CliArgs)),
    /// One. It may begin with a minus, so that `--bs -4k` is a bad size and not an unknown flag.
    One(&'static str, fn(&mut CliArgs, &str) -> Result<(), BadValue>),
    /// Several, separated by commas, or the flag repeated.
    List(&'static str, fn(&mut CliArgs, &[&str]) -> Result<(), BadValue>),
}

/// A flag without anything, to be completed.
const SWITCH: Flag =
    Flag { name: "", short: None, value: Switch(|_| ()), words: &[], uses: &[], details: "", example: "" };

const fn on(by: &'static [&'static Subcommand], help: &'static str, default: &'static str) -> Use {
    Use { by, help, default }
}

/// Every flag, in the order of the help.
pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    [workload::FLAGS, positions::FLAGS, issue::FLAGS, duration::FLAGS, permission::FLAGS, output::FLAGS]
        .into_iter()
        .flatten()
}

/// The words that the value of a flag can be; none for one that is no choice of words.
pub(crate) fn words(name: &str) -> &'static [&'static str] {
    all().find(|flag| flag.name == name).map_or(&[], |flag| flag.words)
}

impl Flag {
    pub(crate) fn subcommands(&self) -> impl Iterator<Item = &'static Subcommand> {
        let takes =
            |subcommand: &&'static Subcommand| self.uses.iter().any(|each| each.by.contains(subcommand));
        ALL.iter().copied().filter(takes)
    }

    /// The flag for clap; `None` for a subcommand that does not take it.
    pub(crate) fn arg(&self, subcommand: &Subcommand) -> Option<Arg> {
        let mut help = self.help(subcommand)?;
        let arg = Arg::new(self.name).long(self.name).short(self.short).help(help.clone());
        for more in [self.details, &format!("Example: rdsk {} {}", subcommand.name, self.example)] {
            help.push_str(if more.is_empty() { "" } else { "\n" });
            help.push_str(more);
        }
        let arg = arg.long_help(help);
        let (name, arg) = match self.value {
            Switch(_) => return Some(arg.action(ArgAction::SetTrue)),
            One(name, _) => (name, arg.action(ArgAction::Set)),
            List(name, _) => (name, arg.action(ArgAction::Append).value_delimiter(',')),
        };
        Some(arg.value_name(name).num_args(1).allow_hyphen_values(true))
    }

    fn help(&self, subcommand: &Subcommand) -> Option<String> {
        let Use { help, default, .. } = self.uses.iter().find(|each| each.by.contains(&subcommand))?;
        let mut text = (*help).to_owned();
        for (what, list) in [("possible values", self.words.join(", ").as_str()), ("default", default)] {
            if !list.is_empty() {
                text.push_str(&format!(" [{what}: {list}]"));
            }
        }
        Some(text)
    }

    /// Sets what the flag says. `texts` are its values as typed.
    pub(crate) fn set(&self, args: &mut CliArgs, texts: &[&str]) -> Result<(), BadValue> {
        args.given.push(self.name);
        match self.value {
            Switch(set) => set(args),
            One(_, set) => texts.iter().try_for_each(|text| set(args, text))?,
            List(_, set) => set(args, texts)?,
        }
        Ok(())
    }
}

/// The values of a list without repetitions, in the order given.
fn unique<T: PartialEq>(
    texts: &[&str],
    parse: impl Fn(&str) -> Result<T, BadValue>,
) -> Result<Vec<T>, BadValue> {
    let mut unique: Vec<T> = Vec::new();
    for text in texts {
        let value = parse(text)?;
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    Ok(unique)
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
        for flag in all() {
            assert!(!flag.name.is_empty() && names.insert(flag.name.to_owned()), "{} twice", flag.name);
            assert!(flag.short.is_none_or(|short| names.insert(short.to_string())), "{}", flag.name);
            assert!(
                flag.uses.iter().all(|each| !each.help.is_empty() && !each.by.is_empty()),
                "{}",
                flag.name
            );
            let by: Vec<_> = flag.uses.iter().flat_map(|each| each.by).collect();
            assert_eq!(by.len(), flag.subcommands().count(), "{}: a subcommand twice, or none", flag.name);
            assert!(!by.is_empty());
        }
    }

    #[test]
    fn every_missing_value_is_one_line_and_a_hint() {
        for flag in all().filter(|flag| !matches!(flag.value, Switch(_))) {
            let subcommand = flag.subcommands().next().unwrap().name;
            let dashed = format!("--{}", flag.name);
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

    fn help_of(subcommand: &Subcommand, how: &str) -> String {
        match crate::parse::parse(&["rdsk".into(), subcommand.name.into(), how.into()]).unwrap() {
            crate::parse::Parsed::Text(text) => text,
            crate::parse::Parsed::Args(_) => panic!("{how} is no help"),
        }
    }

    #[test]
    fn a_flag_stands_in_the_help_of_its_subcommands_and_nowhere_else() {
        for &subcommand in ALL {
            for how in ["-h", "--help"] {
                let help = help_of(subcommand, how);
                let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
                for flag in all() {
                    let dashed = format!("--{}", flag.name);
                    let lines = help.lines().map(|line| line.trim_start().trim_start_matches("-q, "));
                    let names = lines.filter(|line| line.split(' ').next() == Some(&dashed)).count();
                    let is_taken = flag.subcommands().any(|takes| takes == subcommand);
                    assert_eq!(names, usize::from(is_taken), "{dashed} in rdsk {} {how}", subcommand.name);
                    if is_taken {
                        assert!(words.contains(&flag.help(subcommand).unwrap()), "{dashed}: {words}");
                        let example = format!("Example: rdsk {} {}", subcommand.name, flag.example);
                        assert_eq!(words.contains(&example), how == "--help", "{example}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_example_of_a_flag_is_a_command_line_with_the_flag() {
        for flag in all() {
            for subcommand in flag.subcommands() {
                let line = [subcommand.name].into_iter().chain(flag.example.split(' ')).collect::<Vec<_>>();
                let args = testing::parsed(&line).unwrap_or_else(|problem| panic!("{line:?}: {problem}"));
                assert!(args.has(flag.name), "{line:?}");
            }
        }
    }

    #[test]
    fn a_flag_takes_each_of_its_words_and_names_them_when_it_gets_another() {
        for flag in all().filter(|flag| !flag.words.is_empty()) {
            let mut args = CliArgs::new(&crate::subcommand::RUN);
            for word in flag.words {
                flag.set(&mut args, &[word]).unwrap();
            }
            let bad = flag.set(&mut args, &["nonsense"]).unwrap_err();
            assert!(bad.message.contains(&flag.words.join(", ")), "{bad:?}");
        }
    }
}
