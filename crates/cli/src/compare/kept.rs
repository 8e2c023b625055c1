//! Where the documents of runs in turn go: one file for all, or a directory with a file for each run. All of its places are checked
//! before the first run, and what an earlier comparison left there is never taken for part of this one.

use super::COMPARISON;
use super::runs::Runs;
use crate::cli_args::JsonPlace;
use crate::json_file::{JSON, Sink};
use crate::out;
use rdsk_analysis::words::list;
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What the files of both sides begin with.
const SIDES: [&str; 2] = ["a", "b"];
/// Files that a message names.
const MOST_NAMED: usize = 4;

/// Where the documents go.
pub(super) enum Kept {
    /// One document has everything, or there is none.
    Together(Option<Sink>),
    /// One document for each run, and one for the comparison.
    Apart(Directory),
}

/// A directory and the files that it will have.
pub(super) struct Directory {
    path: PathBuf,
    /// A place for each run of both sides, in their order.
    runs: [Vec<Sink>; 2],
    pub(super) comparison: Sink,
}

impl Kept {
    /// Checks all places that so many pairs of runs need.
    ///
    /// # Errors
    /// When one cannot be written or holds something else, or when a directory has runs with higher numbers.
    pub(super) fn prepare(place: Option<&JsonPlace>, pairs: u32) -> Result<Self, Problem> {
        let path = match place {
            Some(JsonPlace::File(path)) if path.is_dir() => path,
            place => return Ok(Self::Together(Sink::wanted(COMPARISON, place, &[])?)),
        };
        let comparison = Sink::prepare(COMPARISON, &JsonPlace::File(path.join("compare.json")), &[])?;
        let count = usize::try_from(pairs).expect("a number of pairs fits the memory of its runs");
        let left = beyond(path, [count; 2]).map_err(|error| unreadable(path, &error))?;
        if !left.is_empty() {
            return Err(Problem::new(
                ProblemKind::Refused,
                "json-left-over",
                format!(
                    "refusing to write the JSON to {}: it holds {} of a comparison of more pairs",
                    shown(path),
                    named(&left)
                ),
                "remove them, or name another directory after --json",
            ));
        }
        let of_side = |side: &str| -> Result<Vec<Sink>, Problem> {
            let place = |number: usize| JsonPlace::File(path.join(file_name(side, number)));
            (1..=count).map(|number| Sink::prepare(JSON, &place(number), &[])).collect()
        };
        let [a, b] = SIDES.map(of_side);
        Ok(Self::Apart(Directory { path: path.clone(), runs: [a?, b?], comparison }))
    }
}

impl Directory {
    /// Writes `a-1.json`, `b-1.json` and so on, and says which files are not of these runs.
    ///
    /// # Errors
    /// The first that came up; the other files are written all the same.
    pub(super) fn write(&self, runs: &Runs) -> Result<(), Problem> {
        let mut written = Ok(());
        for (sinks, records) in self.runs.iter().zip(&runs.sides) {
            for (sink, record) in sinks.iter().zip(records) {
                let this = sink.write(&rdsk_report::json(record, rdsk_report::Compactness::Full));
                written = written.and(this);
            }
        }
        let counts = runs.sides.each_ref().map(Vec::len);
        match beyond(&self.path, counts) {
            Ok(left) if left.is_empty() => {}
            Ok(left) => {
                let (names, place) = (named(&left), shown(&self.path));
                out::warning(&format!("left in {place} from an earlier comparison: {names}"));
            }
            Err(error) => written = written.and(Err(unreadable(&self.path, &error))),
        }
        written
    }
}

fn file_name(side: &str, number: usize) -> String {
    format!("{side}-{number}.json")
}

/// The files of runs with a higher number than their side has, in order.
fn beyond(path: &Path, counts: [usize; 2]) -> io::Result<Vec<String>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        for (place, side) in SIDES.into_iter().enumerate() {
            let number = name.strip_prefix(side).and_then(|rest| rest.strip_prefix('-'));
            let number = number.and_then(|rest| rest.strip_suffix(".json")?.parse::<usize>().ok());
            if let Some(number) = number
                && number > counts[place]
                && name == file_name(side, number)
            {
                numbers.push((place, number));
            }
        }
    }
    numbers.sort_unstable();
    Ok(numbers.into_iter().map(|(place, number)| file_name(SIDES[place], number)).collect())
}

fn named(names: &[String]) -> String {
    let mut some: Vec<String> = names.iter().take(MOST_NAMED).cloned().collect();
    if names.len() > MOST_NAMED {
        some.push(format!("{} more", names.len() - MOST_NAMED));
    }
    list(&some)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(
        ProblemKind::Refused,
        "json-unreadable",
        format!("cannot list {}: {error}", shown(path)),
        "name a directory that you may read after --json",
    )
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_names_are_no_runs() {
        let scratch = tempfile::tempdir().unwrap();
        for name in ["a-1.json", "a-10.json", "b-3.json", "a-03.json", "c-9.json", "a-x.json", "b-4.json~"] {
            fs::write(scratch.path().join(name), "").unwrap();
        }
        assert_eq!(beyond(scratch.path(), [2, 2]).unwrap(), ["a-10.json", "b-3.json"]);
        assert_eq!(beyond(scratch.path(), [0, 3]).unwrap(), ["a-1.json", "a-10.json"]);
        assert!(beyond(scratch.path(), [10, 3]).unwrap().is_empty());
    }
}
