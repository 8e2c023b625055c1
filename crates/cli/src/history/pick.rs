//! The Record of a run that a word names in the history.

use super::{PROC, Place, place, problem};
use rdsk_model::{Problem, Record};
use rdsk_store::{Found, History, RunLine, State};
use std::path::{Path, PathBuf};

/// What the history holds under a word.
#[derive(Debug)]
pub(crate) enum Picked {
    Record(Box<Record>),
    /// The word begins several ids; they are given.
    Several(Vec<String>),
    /// No such run in this file.
    Nothing(PathBuf),
    /// There is no history here.
    NoHistory,
}

/// The open history of this process, if there is one; killed runs are noted in it.
pub(crate) fn open() -> Result<Option<History>, Problem> {
    let Place::File(path) = place::place() else { return Ok(None) };
    let Some(mut history) = History::open_existing(&path).map_err(|error| problem::of(&error))? else {
        return Ok(None);
    };
    // A file that can only be read shows such runs as running, and everything else as it is.
    let _ = history.note_killed(Path::new(PROC));
    Ok(Some(history))
}

/// The run that a word means.
///
/// # Errors
/// When the history cannot be used.
pub(crate) fn pick(word: &str) -> Result<Picked, Problem> {
    let Some(mut history) = open()? else { return Ok(Picked::NoHistory) };
    Ok(match history.find(word).map_err(|error| problem::of(&error))? {
        Found::Nothing => Picked::Nothing(history.path().to_owned()),
        Found::Several(runs) => Picked::Several(runs.into_iter().map(|run| run.id).collect()),
        Found::Run(run) => Picked::Record(Box::new(record(&mut history, &run)?)),
    })
}

fn record(history: &mut History, run: &RunLine) -> Result<Record, Problem> {
    let kept = history.record(run).map_err(|error| problem::of(&error))?;
    Ok(match kept.state {
        State::Killed | State::Running | State::Elsewhere => rdsk_experiment::concluded(kept.record),
        State::Complete | State::Interrupted | State::Failed => kept.record,
    })
}
