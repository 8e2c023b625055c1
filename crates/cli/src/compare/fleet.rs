//! The runs of a fleet: many files, or directories of them. Each is reduced to its figures when it is read, so that hundreds need no more
//! memory than one.

use super::options::Compare;
use super::style;
use crate::json_file::{self, DocumentKind, JSON, Sink};
use crate::ranks::parts;
use crate::usage::usage;
use crate::{out, record_file};
use rdsk_compare::fleet::{Fleet, Gathering};
use rdsk_model::Problem;
use rdsk_report::compare::Extent;
use rdsk_report::fleet::{fleet_json, fleet_text};
use rdsk_units::printable;
use std::fs;
use std::path::{Path, PathBuf};

/// Up to this number, runs are compared with the first one; more of them are a fleet.
const MOST_PAIRS: usize = 8;
/// Files of a directory that are warned of, each by itself.
const MOST_WARNINGS: usize = 3;
const FLEET: DocumentKind = DocumentKind { start: "{\"schema\":\"rdsk.fleet/", ..JSON };

/// Whether this is a directory of runs, each in a file of its own, and not of the parts of a single run.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir() && !parts::is_directory(path)
}

/// Whether these runs are those of a fleet: a directory, or more than pages of pairs can show. A condition is about pairs.
pub(super) fn is_fleet(options: &Compare) -> bool {
    options.asks_nothing_of_pairs()
        && (options.runs.iter().any(|word| is_directory(Path::new(word)))
            || options.runs.len() > MOST_PAIRS && !options.runs.iter().any(|word| word.starts_with("sim:")))
}

/// Shows the fleet that `rdsk compare` was given.
///
/// # Errors
/// When a run that is named cannot be read, or the document cannot be written.
pub(super) fn run(options: &Compare) -> Result<(), Problem> {
    let sink = Sink::wanted(FLEET, options.json.as_ref(), &[])?;
    let fleet = fleet(&options.runs, "compare")?;
    json_file::output(
        sink.as_ref(),
        || fleet_json(&fleet),
        || fleet_text(&fleet, options.extent(), style(options)),
    )
}

/// The page of a fleet as another command shows it.
///
/// # Errors
/// As [`run`].
pub(crate) fn page(words: &[String], asked: &str, style: rdsk_report::Style) -> Result<String, Problem> {
    Ok(fleet_text(&fleet(words, asked)?, Extent::Short, style))
}

/// Reads all runs, one after the other.
fn fleet(words: &[String], asked: &str) -> Result<Fleet, Problem> {
    let mut gathering = Gathering::default();
    for word in words {
        let path = Path::new(word);
        if is_directory(path) {
            add_directory(&mut gathering, path, asked)?;
        } else {
            gathering.add(&name(path), &record_file::named(word, asked, "no-record")?);
        }
    }
    Ok(gathering.judge())
}

/// Reads the JSON files of a directory. What is no result there may be a document of another kind, and is left out with a warning.
fn add_directory(gathering: &mut Gathering, directory: &Path, asked: &str) -> Result<(), Problem> {
    let files = json_files(directory).map_err(|error| {
        let shown = printable(&directory.to_string_lossy());
        usage(format!("{asked} {shown}: {error}"), "name a directory that you may read")
    })?;
    if files.is_empty() {
        let shown = printable(&directory.to_string_lossy());
        let message = format!("{asked} {shown}: the directory has no file that ends in .json");
        return Err(usage(message, "name a directory with files that rdsk wrote with --json"));
    }
    let mut unread = Vec::new();
    for path in &files {
        match record_file::read(path, asked, "no-record") {
            Ok(record) => gathering.add(&name(path), &record),
            Err(problem) => unread.push(problem.message),
        }
    }
    for message in unread.iter().take(MOST_WARNINGS) {
        out::warning(&format!("left out: {message}"));
    }
    if unread.len() > MOST_WARNINGS {
        out::warning(&format!("left out: {} more files that are no results", unread.len() - MOST_WARNINGS));
    }
    Ok(())
}

/// The files that end in `.json`, by name.
fn json_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// What a host is called whose run has neither a host's name nor a label.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.to_string_lossy(), |stem| stem.to_string_lossy()).into_owned()
}
