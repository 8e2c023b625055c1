//! The runs of the history that words name: the Record of one, and all such words for shells that complete them.

use super::{ID_CHARACTERS, PROC, Place, moment, place, problem};
use rdsk_model::{Problem, Record};
use rdsk_store::{Filter, Found, History, RunLine, State};
use rdsk_units::printable;
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
    let Some(mut history) = History::open_existing(&path).map_err(|error| problem::of_store(&error))? else {
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
    Ok(match history.find(word).map_err(|error| problem::of_store(&error))? {
        Found::Nothing => Picked::Nothing(history.path().to_owned()),
        Found::Several(runs) => Picked::Several(runs.into_iter().map(|run| run.id).collect()),
        Found::Run(run) => Picked::Record(Box::new(record(&mut history, &run)?)),
    })
}

fn record(history: &mut History, run: &RunLine) -> Result<Record, Problem> {
    let kept = history.record(run).map_err(|error| problem::of_store(&error))?;
    Ok(match kept.state {
        State::Killed | State::Running | State::Elsewhere => rdsk_experiment::concluded(kept.record),
        State::Complete | State::Interrupted | State::Failed => kept.record,
    })
}

/// Runs offered, the newest: a longer list is no help.
const MAX_RUNS: usize = 100;

/// Each word that names a run, with when it began and what it measured: the word last, labels, ids.
pub(crate) fn names() -> Vec<(String, String)> {
    let runs = runs();
    let newest = runs.first().map(|run| ("last".to_owned(), about(run)));
    let ids = runs.iter().map(|run| (run.id.chars().take(ID_CHARACTERS).collect(), about(run)));
    newest.into_iter().chain(labelled(&runs)).chain(ids).collect()
}

/// Each label, with the newest run that has it.
pub(crate) fn labels() -> Vec<(String, String)> {
    labelled(&runs())
}

fn labelled(runs: &[RunLine]) -> Vec<(String, String)> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for run in runs {
        if let Some(label) = &run.label
            && labels.iter().all(|(earlier, _)| earlier != label)
        {
            labels.push((label.clone(), about(run)));
        }
    }
    labels
}

fn about(run: &RunLine) -> String {
    printable(&format!("{} {}", moment::shown(run.started_ns), run.targets.join(", ")))
}

fn runs() -> Vec<RunLine> {
    let Place::File(path) = place::place() else { return Vec::new() };
    let history = History::open_existing(&path).ok().flatten();
    let filter = Filter { limit: Some(MAX_RUNS), ..Filter::default() };
    history.and_then(|history| history.list(&filter).ok()).unwrap_or_default()
}
