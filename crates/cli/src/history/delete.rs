//! `rdsk delete`: removes runs from the history, and says which.

use super::options::{Act, DeleteOptions, Elsewhere};
use super::{Place, list, moment, pick, place, problem};
use crate::cli_args::ColorWhen;
use crate::{out, screen};
use rdsk_model::{Problem, ProblemKind};
use rdsk_report::Charset;
use rdsk_store::{Filter, Found, History, RunLine, State};
use rdsk_units::printable;

pub(super) fn delete(options: &DeleteOptions) -> Result<(), Problem> {
    if place::place() == Place::Off {
        return Err(problem::nowhere("RDSK_HISTORY is empty"));
    }
    let Some(mut history) = pick::open()? else { return Err(problem::nowhere("nothing was kept so far")) };
    let runs = chosen(&history, options)?;
    if options.act == Act::Delete {
        history.delete(&runs).map_err(|error| problem::of(&error))?;
    }
    let width = screen::style_on(&std::io::stdout(), ColorWhen::Never, Charset::Ascii).width;
    let mut text: String = runs.iter().map(|run| list::line(run, width) + "\n").collect();
    let count = match runs.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    text.push_str(&match options.act {
        Act::Delete => format!("{count} deleted"),
        Act::Show => format!("{count} would be deleted"),
    });
    out::data(&text)
}

/// The runs that the words mean, each once, or those that are old enough and have ended.
fn chosen(history: &History, options: &DeleteOptions) -> Result<Vec<RunLine>, Problem> {
    if let Some(age_ns) = options.older_than_ns {
        let until_ns = moment::now_ns().saturating_sub(i64::try_from(age_ns).unwrap_or(i64::MAX));
        let filter = Filter { until_ns: Some(until_ns), ..Filter::default() };
        let mut runs = history.list(&filter).map_err(|error| problem::of(&error))?;
        runs.retain(|run| run.state != State::Running);
        if options.elsewhere == Elsewhere::Stays {
            let count = runs.len();
            runs.retain(|run| run.state != State::Elsewhere);
            tell_staying(count - runs.len());
        }
        return Ok(runs);
    }
    let mut runs: Vec<RunLine> = Vec::new();
    for word in &options.words {
        let run = one(history, word)?;
        if run.state == State::Running {
            let message = format!("run {} goes on, and would be kept again at its end", run.id);
            return Err(Problem::new(
                ProblemKind::Refused,
                "running",
                message,
                "delete it when it has ended",
            ));
        }
        if run.state == State::Elsewhere && options.elsewhere == Elsewhere::Stays {
            let message = format!(
                "run {} began on another machine or in another container, and nobody here can see whether it goes on",
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
            "stays, since nobody here can see whether it goes on",
        ),
        count => (
            format!("{count} runs of other machines or containers"),
            "stay, since nobody here can see whether they go on",
        ),
    };
    out::warning(&format!("{runs} {stay}; --force deletes what is gone"));
}

fn one(history: &History, word: &str) -> Result<RunLine, Problem> {
    let refused = |message, hint| Problem::new(ProblemKind::Usage, "no-run", message, hint);
    match history.find(word).map_err(|error| problem::of(&error))? {
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
