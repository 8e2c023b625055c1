//! The commands that measure, and what a line of theirs requests: a module for each, which holds its arguments, help and examples. It
//! opens nothing and looks at no target.

mod align;
mod check;
mod checks;
mod common;
mod fio;
mod job_text;
mod load;
mod passes;
mod paths;
mod run;
mod scale;
mod stream;
mod stripe;
mod zones;

use crate::cli_args::Detail;
use crate::grammar::{self, Parsed};
pub(crate) use check::print as print_needs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, Subcommand};
use common::Common;
pub(crate) use common::SOURCES;
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, OUTPUT_FLAGS, OUTPUT_SWITCHES, Problem};
use std::ffi::OsString;

/// A command that measures.
#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of them in a process")]
pub(crate) enum Measuring {
    Run(run::Run),
    Paths(paths::Paths),
    Stream(stream::Stream),
    Zones(zones::Zones),
    Scale(scale::Scale),
    Align(align::Align),
    Stripe(stripe::Stripe),
    Load(load::Load),
    Check(check::Check),
}

/// A line of such a command alone, as another line quotes it or a Record holds it.
#[derive(Debug, Parser)]
#[command(name = "rdsk", disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    measuring: Measuring,
}

/// What a line requests, checked.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// The name of the command.
    pub(crate) command: &'static str,
    pub(crate) experiments: Vec<Experiment>,
    pub(crate) options: PlanOptions,
    pub(crate) common: Common,
    pub(crate) detail: Detail,
    /// Whether the line says what is measured, and not only what becomes of it.
    pub(crate) says_what: bool,
}

impl Measuring {
    /// What the line requests. `matches` are those of its command.
    ///
    /// # Errors
    /// When its flags conflict with each other.
    pub(crate) fn measurement(self, matches: &ArgMatches) -> Result<Measurement, Problem> {
        let asked = match self {
            Self::Run(run) => run.measurement(),
            Self::Paths(paths) => paths.measurement(),
            Self::Stream(stream) => stream.measurement(),
            Self::Zones(zones) => zones.measurement(),
            Self::Scale(scale) => scale.measurement(),
            Self::Align(align) => align.measurement(),
            Self::Stripe(stripe) => stripe.measurement(),
            Self::Load(load) => load.measurement()?,
            Self::Check(check) => check.measurement()?,
        };
        let rw = matches
            .try_get_raw("rw")
            .ok()
            .flatten()
            .map(|words| words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(","));
        checks::check(&asked, rw.as_deref())?;
        Ok(Measurement { says_what: says_what(asked.command, matches), ..asked })
    }
}

impl Measuring {
    /// What the line shows instead of measuring; `None` where it measures.
    ///
    /// # Errors
    /// When it asks for something that is not there.
    pub(crate) fn listing(&self) -> Result<Option<String>, Problem> {
        match self {
            Self::Check(check) => check.listing(),
            Self::Load(load) => load.listing(),
            _ => Ok(None),
        }
    }
}

impl Measurement {
    /// An experiment with nothing but the arguments that all have. A single question has a screen of its own.
    fn new(experiment: Experiment, common: Common) -> Self {
        let mut options = PlanOptions::default();
        common.set(&mut options);
        let (command, experiments) = (experiment.as_str(), vec![experiment]);
        Self { command, experiments, options, common, detail: Detail::Full, says_what: true }
    }
}

/// Whether an argument was given that is no flag of output.
fn says_what(command: &str, matches: &ArgMatches) -> bool {
    let whole = Measuring::augment_subcommands(clap::Command::new("rdsk"));
    let is_of_output = |name: &str| OUTPUT_FLAGS.contains(&name) || OUTPUT_SWITCHES.contains(&name);
    whole.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments).any(|arg| {
        matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            && !arg.get_long().is_some_and(is_of_output)
    })
}

/// Parses the line of a command that measures, the program's name first.
///
/// # Errors
/// As [`grammar::parse`], and when flags conflict.
pub(crate) fn parse(words: &[OsString]) -> Result<Parsed<Measurement>, Problem> {
    Ok(match grammar::parse::<Line>(words)? {
        Parsed::Text(text) => Parsed::Text(text),
        Parsed::Line(line, matches) => {
            let its_matches = matches.subcommand().map_or(&matches, |(_, its_matches)| its_matches);
            Parsed::Line(line.measuring.measurement(its_matches)?, matches.clone())
        }
    })
}

/// The names of these commands.
pub(crate) fn names() -> Vec<String> {
    let whole = Measuring::augment_subcommands(clap::Command::new("rdsk"));
    whole.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests;
