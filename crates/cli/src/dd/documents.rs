//! Where the Record of a copy goes beside the history. A document never lies where the copy reads or writes.

use super::options::{Dd, is_standard_output};
use crate::cli_args::{Form, JsonPlace};
use crate::exchange::Outputs;
use crate::json_file::{self, JSON, Sink};
use crate::same_place::is_same_place;
use rdsk_experiment::failed_record;
use rdsk_model::{Problem, Record};
use rdsk_report::Compactness;
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(super) struct Documents {
    json: Option<Sink>,
    page: Outputs,
}

impl Documents {
    /// Checks the places; `names` are those of both ends of every line.
    ///
    /// # Errors
    /// What is wrong with a place, and whether the other document may say so.
    pub(super) fn prepare(options: &Dd, names: &[String]) -> Result<Self, (Problem, bool)> {
        let page: Vec<_> = options.report.iter().map(|place| (Form::Page, place.clone())).collect();
        // A place that is not fit for the document gets none.
        let with_place = |problem: Problem| {
            let has_place = !problem.code.starts_with(JSON.code);
            (problem, has_place)
        };
        Ok(Self {
            json: Sink::wanted(JSON, options.json.as_ref(), names).map_err(with_place)?,
            page: Outputs::prepare(&page, names).map_err(with_place)?,
        })
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.json.is_some() || !self.page.is_empty()
    }

    /// Writes all that can be written: whether the Record is in the JSON, and what went wrong first.
    pub(super) fn write(&self, record: &Record) -> (bool, Result<(), Problem>) {
        let json = self.json.as_ref();
        let written = json.map_or(Ok(()), |sink| sink.write(&rdsk_report::json(record, Compactness::Full)));
        (json.is_some() && written.is_ok(), written.and(self.page.write(record)))
    }
}

/// Writes the document of a line that copies nothing, if its place is none of those that the words name as ends of a copy, and not
/// standard output unless they all name another output: its reader waits for the copy, and may write it to a disk.
pub(super) fn output_failure(
    json: Option<&JsonPlace>,
    words: &[OsString],
    command: Vec<String>,
    problem: Problem,
) {
    let operands = operands_among(words);
    let is_end = |path: &Path| operands.iter().any(|(_, value)| is_same_place(path, Path::new(value)));
    let mut outputs = operands.iter().filter(|(name, _)| name == "of").peekable();
    let is_copied_to_stdout =
        outputs.peek().is_none() || outputs.any(|(_, value)| is_standard_output(OsStr::new(value)));
    let place = json.filter(|place| match place {
        JsonPlace::Stdout => !is_copied_to_stdout,
        JsonPlace::File(path) => {
            !(is_end(path) || (is_copied_to_stdout && is_standard_output(path.as_os_str())))
        }
    });
    let names: Vec<String> = operands.iter().map(|(_, value)| value.clone()).collect();
    let Some(Ok(sink)) = place.map(|place| Sink::prepare(JSON, place, &names)) else { return };
    json_file::output_failure(Some(&sink), || {
        rdsk_report::json(&failed_record(command, None, problem), Compactness::Full)
    });
}

/// The operands among the words, and among those of each word, since `--compare` takes a whole line as one.
fn operands_among(words: &[OsString]) -> Vec<(String, String)> {
    let texts = words.iter().filter_map(|word| word.to_str());
    let lines = texts.flat_map(|text| shlex::split(text).unwrap_or_else(|| vec![text.to_owned()]));
    let operands = lines.filter(|text| !text.starts_with("--"));
    operands
        .filter_map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}
