//! `rdsk import`: documents of fio, or of rdsk, as Records. Every file is read before anything is shown or written.

use super::options::{Import, Keeping};
use crate::cli_args::ColorWhen;
use crate::json_file::{DocumentKind, JSON, Sink};
use crate::parse::usage;
use crate::{history, input_file, out, screen, show};
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_report::{Compactness, Further};
use rdsk_units::printable;
use std::path::Path;

/// The file that stands for standard input.
const STDIN: &str = "-";

/// Reads the files, and shows what each of them holds.
///
/// # Errors
/// When one of them cannot be read or is no document of a run, and when the Record cannot be written.
pub(super) fn import(options: &Import) -> Result<(), Problem> {
    if options.output.is_some() && options.files.len() > 1 {
        return Err(takes_one("--output takes one Record"));
    }
    let kind = DocumentKind { flag: "--output", ..JSON };
    let sink =
        options.output.as_ref().map(|place| Sink::prepare_for(kind, place, &options.files)).transpose()?;
    let records: Vec<Vec<Record>> = options.files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let records = records.concat();
    if options.output.is_some() && records.len() > 1 {
        let count = records.len();
        return Err(takes_one(&format!("--output takes one Record, and the file holds {count} documents")));
    }
    for record in records {
        let label = options.label.clone().or_else(|| record.label.clone());
        take_in(&Record { label, ..record }, options, sink.as_ref(), kind)?;
    }
    Ok(())
}

/// Everything that is done with a Record that was read: it is written where that was requested, kept in the history, and shown.
fn take_in(
    record: &Record,
    options: &Import,
    sink: Option<&Sink>,
    kind: DocumentKind,
) -> Result<(), Problem> {
    if let Some(sink) = sink {
        sink.write_as(kind, &rdsk_report::json(record, Compactness::Full))?;
    }
    if options.keeping == Keeping::InHistory {
        history::keep_imported(record);
    }
    if sink == Some(&Sink::Stdout) {
        return Ok(());
    }
    let style = screen::style_on(&std::io::stdout(), ColorWhen::Auto, options.charset);
    out::data(&show::page(record, options.detail, Further::Here, style))
}

fn takes_one(message: &str) -> Problem {
    usage(message, "import documents one by one, each with an --output of its own")
}

/// The Records of a file's documents.
fn read(file: &str) -> Result<Vec<Record>, Problem> {
    let problem = |why: String| {
        let (message, hint) = (
            format!("import {}: {why}", printable(file)),
            "name a file that fio wrote with --output-format=json, or rdsk with --json",
        );
        Problem::new(ProblemKind::Usage, "no-import", message, hint)
    };
    let document = if file == STDIN { input_file::read_stdin() } else { input_file::read(Path::new(file)) };
    let document = document.map_err(|error| problem(error.to_string()))?;
    rdsk_exchange::import(&document).map_err(|error| problem(error.to_string()))
}
