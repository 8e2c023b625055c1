//! `rdsk show RUN`: draws a Record again, from the history or a file, short or with all screens. It measures nothing.

use crate::cli_args::Detail;
use crate::completion;
use crate::exchange::Outputs;
use crate::grammar::OUTPUT;
use crate::json_file::{self, JSON, Sink};
use crate::output_args::OutputArgs;
use crate::{out, record_file, screen};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_experiment::failed_record;
use rdsk_model::Problem;
use rdsk_report::Further;

const EXAMPLES: &str = "Examples:
  rdsk show last
      the newest run in the history
  rdsk show result.json
      the short page of a run
  rdsk show result.json --details
      all screens
  rdsk show result.json --json small.json --json-compact
      a copy without the series";

/// Draw an earlier run again, from the history or from its JSON.
///
/// A run is shown on one screen, or with --details on the screens of all topics. The result of a single topic is shown on the
/// screen of that topic.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    /// An id of rdsk list, its beginning, a label, the word last, or a file of --json
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(completion::runs_and_files))]
    run: String,
    #[command(flatten)]
    output: OutputArgs,
    /// Print the screens of all topics instead of the short page
    #[arg(long, help_heading = OUTPUT)]
    details: bool,
}

/// Shows the run. `command` is the command line, for the document of a failure.
///
/// # Errors
/// When there is no such Record, or a document or the page cannot be written.
pub(crate) fn show(show: &Show, command: Vec<String>) -> Result<(), Problem> {
    show.output.check(None)?;
    show.output.history.choose();
    let words = std::slice::from_ref(&show.run);
    let sink = Sink::wanted(JSON, show.output.json(), words)?;
    let outputs = Outputs::prepare(&show.output.forms(None), words)?;
    let record = record_file::named(&show.run, "show", "no-record").inspect_err(|problem| {
        json_file::output_failure(sink.as_ref(), || {
            let failed = failed_record(command, None, problem.clone());
            rdsk_report::json(&failed, show.output.compactness())
        });
    })?;
    if let Some(sink) = &sink {
        sink.write(&rdsk_report::json(&record, show.output.compactness()))?;
    }
    outputs.write(&record)?;
    if sink.as_ref().is_some_and(Sink::is_stdout) || outputs.take_stdout() {
        return Ok(());
    }
    let detail = if show.details { Detail::Full } else { Detail::Short };
    out::data(&screen::page(&record, detail, Further::Here, screen::style(show.output.look())))
}
