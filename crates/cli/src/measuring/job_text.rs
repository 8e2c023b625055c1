//! The texts of files that describe jobs. It knows none of their words.

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
