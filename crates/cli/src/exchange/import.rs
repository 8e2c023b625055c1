//! `rdsk import`: documents of fio, or of rdsk, as Records. Every file is read before anything is shown or written.

use super::options::{Import, Keeping};
use crate::cli_args::ColorWhen;
use crate::json_file::{DocumentKind, JSON, Sink};
use crate::parse::usage;
use crate::{history, out, screen, show};
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_report::{Compactness, Further};
use rdsk_units::{Bytes, printable};
use std::fs::File;
use std::io::Read;

/// A larger file is no document of a run.
const MAX_BYTES: u64 = 256 << 20;
/// The file that stands for standard input.
const STDIN: &str = "-";

/// Reads the files, and shows what each of them holds.
///
/// # Errors
/// When one of them cannot be read or is no document of a run, and when the Record cannot be written.
pub(super) fn import(options: &Import) -> Result<(), Problem> {
    if options.output.is_some() && options.files.len() > 1 {
        return Err(usage(
            "--output takes one Record",
            "import the files one by one, each with an --output of its own",
        ));
    }
    let kind = DocumentKind { flag: "--output", ..JSON };
    let sink =
        options.output.as_ref().map(|place| Sink::prepare_for(kind, place, &options.files)).transpose()?;
    let records: Vec<Record> = options.files.iter().map(|file| read(file)).collect::<Result<_, Problem>>()?;
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

fn read(file: &str) -> Result<Record, Problem> {
    let problem = |why: String| {
        let (message, hint) = (
            format!("import {}: {why}", printable(file)),
            "name a file that fio wrote with --output-format=json, or rdsk with --json",
        );
        Problem::new(ProblemKind::Usage, "no-import", message, hint)
    };
    let document = bytes(file).map_err(|error| problem(error.to_string()))?;
    rdsk_exchange::import(&String::from_utf8_lossy(&document)).map_err(|error| problem(error.to_string()))
}

/// All of the file.
fn bytes(file: &str) -> std::io::Result<Vec<u8>> {
    let mut document = Vec::new();
    if file == STDIN {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut document)?;
        return if document.len() as u64 > MAX_BYTES { Err(too_large()) } else { Ok(document) };
    }
    let facts = std::fs::metadata(file)?;
    // A pipe may never end, and a device holds no document.
    if !facts.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if facts.len() > MAX_BYTES {
        return Err(too_large());
    }
    File::open(file)?.take(MAX_BYTES).read_to_end(&mut document)?;
    Ok(document)
}

fn too_large() -> std::io::Error {
    std::io::Error::other(format!("it is larger than {}, and so no document of a run", Bytes(MAX_BYTES)))
}
