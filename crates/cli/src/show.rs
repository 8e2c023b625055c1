//! `rdsk show RUN`: draws a Record again, from the history or a file, short or with all screens. It measures nothing.

use crate::cli_args::{CliArgs, Detail};
use crate::exchange::Outputs;
use crate::json_file::{self, Sink};
use crate::parse::usage;
use crate::{exit, history, out, record_file, screen};
use rdsk_experiment::failed_record;
use rdsk_model::{Experiment, Problem, Record};
use rdsk_report::{Further, Style};

/// Shows the file and gives the exit code. `command` is the command line, for the document of a failure.
pub(crate) fn show(args: &CliArgs, command: Vec<String>) -> u8 {
    if let Some(place) = &args.history {
        history::choose(place.clone());
    }
    let sink = match args.json.as_ref().map(|place| Sink::prepare(place, &args.targets)).transpose() {
        Ok(sink) => sink,
        Err(problem) => return out::failure(&problem),
    };
    let outputs = match Outputs::prepare(&args.forms, &args.targets) {
        Ok(outputs) => outputs,
        Err(problem) => return out::failure(&problem),
    };
    let record = match record(args) {
        Ok(record) => record,
        Err(problem) => {
            json_file::output_failure(sink.as_ref(), || {
                let failed = failed_record(command, None, problem.clone());
                rdsk_report::json(&failed, args.compactness)
            });
            return out::failure(&problem);
        }
    };
    match put(&record, args, sink.as_ref(), &outputs) {
        Ok(()) => exit::DONE,
        Err(problem) => out::failure(&problem),
    }
}

/// Writes the documents, and the page unless one of them takes its place.
fn put(record: &Record, args: &CliArgs, sink: Option<&Sink>, outputs: &Outputs) -> Result<(), Problem> {
    if let Some(sink) = sink {
        sink.write(&rdsk_report::json(record, args.compactness))?;
    }
    outputs.write(record)?;
    if sink == Some(&Sink::Stdout) || outputs.take_stdout() {
        return Ok(());
    }
    out::data(&page(record, args.detail, Further::Here, screen::style(args)))
}

fn record(args: &CliArgs) -> Result<Record, Problem> {
    match &args.targets[..] {
        [file] => record_file::named(file, "show", "no-record"),
        _ => Err(usage(
            "show takes one run",
            "write rdsk show RUN, with an id of rdsk list, last, or a file of --json",
        )),
    }
}

/// A single question has a screen of its own, which says more than a line of the short page.
pub(crate) fn page(record: &Record, detail: Detail, further: Further<'_>, style: Style) -> String {
    let first = record.cells.first().map(|cell| cell.experiment).filter(|one| *one != Experiment::Headline);
    // A copy without storage has no cells.
    let is_single = !record.copies.is_empty()
        || first.is_some_and(|first| record.cells.iter().all(|cell| cell.experiment == first));
    if detail == Detail::Full || is_single {
        rdsk_report::text(record, style)
    } else {
        rdsk_report::short(record, further, style)
    }
}
