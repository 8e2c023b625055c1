//! `rdsk check`: whether a target is good enough for something.

use super::Measurement;
use super::common::Common;
use super::load;
use crate::info::rows::name_list;
use crate::usage::usage;
use crate::{completion, out, screen};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use rdsk_experiment::BudgetSource;
use rdsk_loads::{LoadError, NAMES, NeedDocument, built_in};
use rdsk_model::{Experiment, LoadJob, Problem, Statistic, Subject, Threshold};

const EXAMPLES: &str = "Examples:
  rdsk check etcd /var/lib/etcd
      is this filesystem good enough for etcd?
  rdsk check list
      all needs that are known, a line each
  rdsk check show etcd
      its workload, thresholds and where they are from, as a file
  rdsk check ./mine.toml --budget 5m
      a need of your own
  rdsk check postgres --commits 500
      500 commits per second of one session";

/// Check whether a target is good enough for etcd, a database, a camera: yes, no, or not sure.
///
/// Each need has the workload and the threshold that its makers published. PASS and FAIL take the whole 95% interval on
/// one side of the threshold; UNSURE says what would settle it. The exit code is 0, 1 or 5. A figure that is the page
/// cache's, a burst's or a lying flush's never passes.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The name of a need, a TOML file with one, list, or show NAME
    #[arg(value_name = "NEED", add = ArgValueCandidates::new(completion::needs))]
    need: String,
    #[command(flatten)]
    common: Common,
    /// Commits per second of one session, each of which waits for one flush (postgres)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    commits: Option<u32>,
}

impl Check {
    /// What the line shows instead of measuring; `None` where it measures.
    ///
    /// # Errors
    /// When there is no such need.
    pub(crate) fn listing(&self) -> Result<Option<String>, Problem> {
        match (self.need.as_str(), self.common.targets.as_slice()) {
            ("list", []) => Ok(Some(list()?)),
            ("show", [name]) => match rdsk_loads::text(name) {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(unknown(name)),
            },
            ("show", _) => Err(usage("show needs the name of a need", "rdsk check list shows the names")),
            _ => Ok(None),
        }
    }

    /// # Errors
    /// When there is no such need, or a file describes none.
    pub(super) fn measurement(self) -> Result<Measurement, Problem> {
        let NeedDocument { mut need, phases } = if self.need.ends_with(".toml") {
            let text = super::job_text::text_of(&self.need)?;
            let name = self.need.trim_end_matches(".toml").rsplit('/').next().unwrap_or("mine");
            rdsk_loads::need(name, &text).map_err(|error| not_a_need(&self.need, &error))?
        } else {
            let document = built_in(&self.need).ok_or_else(|| unknown(&self.need))?;
            document.map_err(|error| not_a_need(&self.need, &error))?
        };
        match (need.name.as_str(), self.commits) {
            ("postgres", Some(commits)) => {
                need.thresholds = vec![mean_flush_within(commits)];
                need.only_fails.clear();
            }
            (_, Some(_)) => {
                return Err(usage("--commits is for postgres", "leave it out, or check postgres"));
            }
            (_, None) => {}
        }
        super::job_text::refuse_as_targets(&self.common.targets, |name| {
            format!("a need stands before the target: rdsk check {name} TARGET")
        })?;
        if self.common.targets.len() > 1 {
            return Err(usage("a need is checked on one target", "check each target by itself"));
        }
        let mut asked = Measurement::new(Experiment::Load, self.common);
        if asked.options.budget_source == BudgetSource::Default {
            asked.options.budget_ns = asked.options.budget_ns.max(least_budget_ns(&phases));
        }
        load::set(&mut asked, phases);
        asked.options.need = Some(need);
        Ok(Measurement { command: "check", ..asked })
    }
}

/// The budget of which the first of six repeats has its ramp and as much time again.
fn least_budget_ns(phases: &[Vec<LoadJob>]) -> u64 {
    const REPEATS: u64 = 6;
    let ramp_ns = phases.iter().flatten().map(|job| job.ramp_ns).max().unwrap_or(0);
    ramp_ns.saturating_mul(2 * REPEATS).saturating_mul(phases.len() as u64)
}

/// What is wrong with the file of a need.
fn not_a_need(name: &str, error: &LoadError) -> Problem {
    let hint = "rdsk check show etcd has a need as a file, and rdsk load --help names the words of a job";
    Problem { hint: Some(hint.into()), ..load::problem(name, error) }
}

/// One session commits no faster than its flushes return.
fn mean_flush_within(commits: u32) -> Threshold {
    let threshold = Threshold::new("wal", Subject::Flushes, Statistic::Mean);
    Threshold { at_most: Some(1e9 / f64::from(commits)), ..threshold }
}

fn list() -> Result<String, Problem> {
    let widest = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    let mut listed = Vec::new();
    for name in NAMES {
        let Some(document) = built_in(name) else { continue };
        let need = document.map_err(|error| not_a_need(name, &error))?.need;
        listed.push((*name, format!("{} ({})", need.title, need.strength)));
    }
    // Names begin the line, for scripts.
    Ok(name_list(&listed, widest, 0, screen::page_columns()))
}

/// Prints a list or a file.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    out::data(text)
}

fn unknown(name: &str) -> Problem {
    let hint = "rdsk check list shows the names; a file of your own ends with .toml";
    usage(format!("there is no need \"{}\"", rdsk_units::printable(name)), hint)
}
