//! `rdsk export`: Records in the form that another program reads. Every Record is read before anything is written.

use super::options::Export;
use crate::cli_args::{Form, JsonPlace};
use crate::json_file::{DocumentKind, Sink};
use crate::parse::usage;
use crate::record_file;
use rdsk_model::{Problem, Record};

/// Writes the Records.
///
/// # Errors
/// When a word names no Record, or the document cannot be written.
pub(super) fn export(options: &Export) -> Result<(), Problem> {
    let Export { words, form, output } = options;
    if *form == Form::Json && words.len() > 1 {
        return Err(usage(
            "--format json takes one Record",
            "export them one by one, or all of them as csv, openmetrics or markdown",
        ));
    }
    let kind = DocumentKind { flag: "--output", ..form.kind() };
    let place = output.as_ref().unwrap_or(&JsonPlace::Stdout);
    // The files that are read are never the one that is written.
    let sink = Sink::prepare_for(kind, place, words)?;
    let records = words.iter().map(|word| record_file::named(word, "export", "no-record"));
    let records: Vec<Record> = records.collect::<Result<_, Problem>>()?;
    sink.write_as(kind, &form.document(&records.iter().collect::<Vec<_>>()))
}
