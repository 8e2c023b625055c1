//! `rdsk import`: documents of fio, or of rdsk, as Records. Every file is read before anything is shown or written.

use crate::cli_args::{ColorWhen, Detail, JsonPlace};
use crate::history::Place;
use crate::json_file::{DocumentKind, JSON, Sink};
use crate::output_args::{CharsetArgs, HistoryArgs};
use crate::usage::usage;
use crate::{completion, history, out, record_file, screen, value};
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_report::{Compactness, Further};
use rdsk_units::printable;
use std::path::Path;

/// The file that stands for standard input.
const STDIN: &str = "-";

const EXAMPLES: &str = "Examples:
  rdsk import fio.json
      what a run of fio says, and what it does not; rdsk list has it from now on
  rdsk import fio.json -o record.json
      the same as a result of rdsk, which rdsk show and rdsk export read
  fio --output-format=json+ job.fio | rdsk import -
      without a file in between";

/// Read what fio measured, or a result of rdsk, and explain it.
///
/// Of fio 2 and 3 it reads the JSON (--output-format=json or json+), also within logs and of fio --client. Each job and
/// direction is a test. What fio cannot show, such as whether the device moved the bytes, stays empty, and the page
/// says so.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// Write the result to FILE; with - to standard output, instead of the page
    #[arg(long, short, value_name = "FILE", value_parser = value::place())]
    output: Option<JsonPlace>,
    /// Name for the run, stored in the result
    #[arg(long, value_name = "TEXT", value_parser = value::label, add = ArgValueCandidates::new(completion::labels))]
    label: Option<String>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Do not keep what was read in the history
    #[arg(long, conflicts_with = "history")]
    no_history: bool,
    /// Print the screens of all topics, of a run of rdsk
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    charset: CharsetArgs,
    /// Documents of fio, or results of rdsk; - is standard input
    #[arg(
        value_name = "FILE",
        required = true,
        value_parser = value::name("file", "name a file of fio, as in rdsk import fio.json"),
        value_hint = ValueHint::AnyPath
    )]
    files: Vec<String>,
}

/// Reads the files, and shows what each of them holds.
///
/// # Errors
/// When one of them cannot be read or is no document of a run, and when the Record cannot be written.
pub(crate) fn import(options: &Import) -> Result<(), Problem> {
    if options.output.is_some() && options.files.len() > 1 {
        return Err(takes_one("--output takes one Record"));
    }
    options.history.choose();
    if options.no_history {
        history::choose(Place::Off);
    }
    let kind = DocumentKind { flag: "--output", ..JSON };
    let sink = Sink::wanted(kind, options.output.as_ref(), &options.files)?;
    let records: Vec<Vec<Record>> = options.files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let records = records.concat();
    if options.output.is_some() && records.len() > 1 {
        let count = records.len();
        return Err(takes_one(&format!("--output takes one Record, and the file holds {count} documents")));
    }
    for record in records {
        let label = options.label.clone().or_else(|| record.label.clone());
        take_in(&Record { label, ..record }, options, sink.as_ref())?;
    }
    Ok(())
}

/// Everything that is done with a Record that was read: it is written where that was requested, kept in the history, and shown.
fn take_in(record: &Record, options: &Import, sink: Option<&Sink>) -> Result<(), Problem> {
    if let Some(sink) = sink {
        sink.write(&rdsk_report::json(record, Compactness::Full))?;
    }
    history::keep_imported(record);
    if sink.is_some_and(Sink::is_stdout) {
        return Ok(());
    }
    let detail = if options.details { Detail::Full } else { Detail::Short };
    let style = screen::style_on(&std::io::stdout(), ColorWhen::Auto, options.charset.charset());
    out::data(&screen::page(record, detail, Further::Here, style))
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
    let document =
        if file == STDIN { record_file::read_stdin() } else { record_file::read_document(Path::new(file)) };
    let document = document.map_err(|error| problem(error.to_string()))?;
    rdsk_exchange::import(&document).map_err(|error| problem(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn files_are_needed() {
        let import: Import = parsed("a - --label night --ascii --history h.db").unwrap();
        assert_eq!(
            (import.files, import.label.as_deref()),
            (vec!["a".to_owned(), "-".into()], Some("night"))
        );
        assert_eq!(import.history.history, Some("h.db".into()));
        refuses(
            |import: Import| Ok(import),
            &[
                ("", "FILE is missing"),
                ("''", "the name of a file is empty"),
                ("a --label ''", "--label"),
                ("a --format json", "--format"),
                ("a --history h.db --no-history", "--history conflicts with --no-history"),
            ],
        );
    }
}
