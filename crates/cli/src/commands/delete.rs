//! `rdsk delete`: removes runs from the history, and says which.

use super::list;
use crate::cli_args::ColorWhen;
use crate::history::{self, Place, moment, problem};
use crate::output_args::HistoryArgs;
use crate::usage::usage;
use crate::{completion, out, screen, value};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_model::{Problem, ProblemKind};
use rdsk_report::Charset;
use rdsk_store::{Filter, Found, History, RunLine, State};
use rdsk_units::printable;

const EXAMPLES: &str = "Examples:
  rdsk delete 01KAP3XM2C
      the run whose id begins so
  rdsk delete --older-than 90d --dry-run
      what would be deleted
  rdsk delete --older-than 90d
      every run that began more than 90 days ago
  rdsk delete --older-than 90d --force
      those of machines and containers that are gone, too";

/// Delete runs from the history.
///
/// It asks nothing, and prints what it deleted. A run that goes on is never deleted. Whether one that rdsk list calls
/// elsewhere goes on, on another machine or in another container, cannot be seen from here: it is deleted only with
/// --force.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Delete {
    /// Delete every run that began longer ago, such as 90d
    #[arg(long, value_name = "AGE", value_parser = moment::age_to_delete)]
    older_than: Option<u64>,
    /// Delete runs of other machines and containers too
    #[arg(long)]
    force: bool,
    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    history: HistoryArgs,
    /// Runs: ids, beginnings of ids, labels, or the word last
    #[arg(
        value_name = "RUN",
        value_parser = value::name("run", "name a run by its id; rdsk list shows them"),
        add = ArgValueCompleter::new(completion::runs)
    )]
    runs: Vec<String>,
}

/// Deletes the runs.
///
/// # Errors
/// When none is named, or one cannot be deleted; then all stay.
pub(crate) fn delete(delete: &Delete) -> Result<(), Problem> {
    check(delete)?;
    delete.history.choose();
    if history::place() == Place::Off {
        return Err(problem::nowhere("RDSK_HISTORY is empty"));
    }
    let Some(mut history) = history::open()? else {
        return Err(problem::nowhere("nothing was kept so far"));
    };
    let runs = chosen(&history, delete)?;
    if !delete.dry_run {
        history.delete(&runs).map_err(|error| problem::of_store(&error))?;
    }
    let width = screen::style_on(&std::io::stdout(), ColorWhen::Never, Charset::Ascii).width;
    let mut text: String = runs.iter().map(|run| list::line(run, width) + "\n").collect();
    let count = match runs.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    text.push_str(&format!("{count} {}deleted", if delete.dry_run { "would be " } else { "" }));
    out::data(&text)
}

fn check(delete: &Delete) -> Result<(), Problem> {
    if delete.runs.is_empty() == delete.older_than.is_none() {
        return Err(usage(
            "delete takes either runs or --older-than",
            "name runs by their ids, or an age such as --older-than 90d",
        ));
    }
    Ok(())
}

/// The runs that the words mean, each once, or those that are old enough and have ended.
fn chosen(history: &History, delete: &Delete) -> Result<Vec<RunLine>, Problem> {
    if let Some(age_ns) = delete.older_than {
        let until_ns = moment::now_ns().saturating_sub(i64::try_from(age_ns).unwrap_or(i64::MAX));
        let filter = Filter { until_ns: Some(until_ns), ..Filter::default() };
        let mut runs = history.list(&filter).map_err(|error| problem::of_store(&error))?;
        runs.retain(|run| run.state != State::Running);
        if !delete.force {
            let count = runs.len();
            runs.retain(|run| run.state != State::Elsewhere);
            tell_staying(count - runs.len());
        }
        return Ok(runs);
    }
    let mut runs: Vec<RunLine> = Vec::new();
    for word in &delete.runs {
        let run = named(history, word)?;
        if run.state == State::Running {
            let message = format!("run {} is still running, and is kept again at its end", run.id);
            return Err(Problem::new(
                ProblemKind::Refused,
                "running",
                message,
                "delete it when it has ended",
            ));
        }
        if run.state == State::Elsewhere && !delete.force {
            let message = format!(
                "run {} began on another machine or in another container; this machine cannot see whether it still runs",
                run.id
            );
            let hint = "delete it there, or with --force if that machine or container is gone";
            return Err(Problem::new(ProblemKind::Refused, "elsewhere", message, hint));
        }
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    Ok(runs)
}

fn tell_staying(count: usize) {
    let (runs, stay) = match count {
        0 => return,
        1 => (
            "1 run of another machine or container".to_owned(),
            "stays: this machine cannot see whether it still runs",
        ),
        count => (
            format!("{count} runs of other machines or containers"),
            "stay: this machine cannot see whether they still run",
        ),
    };
    out::warning(&format!("{runs} {stay}; --force deletes what is gone"));
}

fn named(history: &History, word: &str) -> Result<RunLine, Problem> {
    let refused = |message, hint| Problem::new(ProblemKind::Usage, "no-run", message, hint);
    match history.find(word).map_err(|error| problem::of_store(&error))? {
        Found::Run(run) => Ok(*run),
        Found::Several(runs) => {
            let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
            let message = format!("{} begins the ids of several runs: {}", printable(word), ids.join(", "));
            Err(refused(message, "write more of the id; nothing was deleted"))
        }
        Found::Nothing => {
            let message = format!("there is no run {} in the history", printable(word));
            Err(refused(message, "rdsk list shows the runs; nothing was deleted"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn runs_or_an_age_are_deleted() {
        let parsed = |line: &str| parsed::<Delete>(line).unwrap();
        assert_eq!(parsed("a b --dry-run").runs, ["a", "b"]);
        for (age, seconds) in
            [("0s", 0), ("1h", 3600), ("90min", 5400), ("1h30m", 5400), ("90d", 90 * 86_400)]
        {
            assert_eq!(
                parsed(&format!("--older-than {age}")).older_than,
                Some(seconds * 1_000_000_000),
                "{age}"
            );
        }
        let lines = [
            ("", "either runs or --older-than"),
            ("a --older-than 1d", "either runs or --older-than"),
            ("''", "empty"),
            ("--older-than 90", "--older-than"),
            ("--older-than 3m", "may mean minutes or months"),
            ("--older-than '0.5 m '", "may mean minutes or months"),
        ];
        refuses(|delete: Delete| check(&delete), &lines);
    }
}
