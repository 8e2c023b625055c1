//! The texts of files that describe jobs, and such files where a target stands. It knows none of their words.

use crate::record_file;
use crate::usage::usage;
use rdsk_model::Problem;
use rdsk_units::printable;
use std::path::Path;

/// The text of a file that describes jobs.
pub(super) fn text_of(name: &str) -> Result<String, Problem> {
    let read = record_file::read_document(Path::new(name)).map_err(|error| error.to_string());
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no text".to_owned()));
    let cannot = |why| format!("cannot read {}: {why}", printable(name));
    text.map_err(|why| {
        usage(cannot(why), "name a TOML file with [[job]] tables, whose words rdsk load --help names, or a job file of fio behind --fio")
    })
}

/// Refuses a file of jobs in the place of a target: its blocks are not meant to be measured. The hint is made of its name.
///
/// # Errors
/// A usage error for a file whose name ends as a TOML file's, or a job file's of fio.
pub(super) fn refuse_as_targets(targets: &[String], hint: impl Fn(&str) -> String) -> Result<(), Problem> {
    let is_of_jobs = |name: &&String| {
        let path = Path::new(name.as_str());
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("toml" | "fio")) && path.is_file()
    };
    match targets.iter().find(is_of_jobs) {
        Some(name) => Err(usage(
            format!("{} is a file of jobs, and no target", printable(name)),
            hint(&printable(name)),
        )),
        None => Ok(()),
    }
}
