//! A document of fio (version 2 or 3, `--output-format=json` or `json+`) as a Record: one cell for each job and direction. What fio does
//! not show is null, and what a reader would take for something else is said in the notes. docs/import.md has the whole list.

mod document;
mod entries;
mod explain;
mod interval;
mod job;
mod latency;
mod notes;
mod options;
mod run;
mod version;

pub(crate) use document::VERSION;
pub(crate) use interval::whole_runs;
pub(crate) use run::record;
pub(crate) use version::other_format;
