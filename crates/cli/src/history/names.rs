//! The words that name runs of the history, for shells that complete them. It writes nothing, and what cannot be read has none.

use super::{ID_CHARACTERS, Place, moment, place};
use rdsk_store::{Filter, History, RunLine};
use rdsk_units::printable;

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
            && labels.iter().all(|(known, _)| known != label)
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
