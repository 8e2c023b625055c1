//! `rdsk export`: Records in the form that another program reads. Every Record is read before anything is written.

use crate::cli_args::{Form, JsonPlace};
use crate::json_file::{DocumentKind, Sink};
use crate::output_args::HistoryArgs;
use crate::usage::usage;
use crate::{completion, record_file, value};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_model::{Problem, Record};

const FORMATS: &[(&str, Form)] = &[
    ("json", Form::Json),
    ("csv", Form::Csv),
    ("openmetrics", Form::OpenMetrics),
    ("markdown", Form::Markdown),
];

const EXAMPLES: &str = r"Examples:
  rdsk export last --format csv
      a row for each test of the newest run, to standard output
  rdsk export monday.json friday.json --format markdown -o runs.md
      a table of two runs
  rdsk export result.json --format openmetrics \
      -o /var/lib/node_exporter/disk.prom
      replaced in one step, so that a collector never reads half of it";

/// Write results as CSV, OpenMetrics, Markdown or JSON.
///
/// CSV has a row for each test, OpenMetrics is for node_exporter's textfile collector, and Markdown is a summary of one
/// result or a table of several. Figures are those of the result, to the last digit; what was not measured is left empty
/// or left out.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// The form
    #[arg(long, value_name = "FORMAT", required = true, value_parser = value::words(FORMATS))]
    format: Form,
    /// Write to FILE, replaced in one step [default: standard output]
    #[arg(long, short, value_name = "FILE", value_parser = value::place())]
    output: Option<JsonPlace>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Runs of rdsk list, or files that rdsk wrote with --json
    #[arg(
        value_name = "RUN",
        required = true,
        value_parser = value::name("run", "name a run of rdsk list, or a file that rdsk wrote with --json"),
        add = ArgValueCompleter::new(completion::runs_and_files)
    )]
    runs: Vec<String>,
}

/// Writes the Records.
///
/// # Errors
/// When a word names no Record, or the document cannot be written.
pub(crate) fn export(export: &Export) -> Result<(), Problem> {
    let Export { runs, format, output, history } = export;
    if *format == Form::Json && runs.len() > 1 {
        return Err(usage(
            "--format json takes one Record",
            "export them one by one, or all of them as csv, openmetrics or markdown",
        ));
    }
    history.choose();
    let kind = DocumentKind { flag: "--output", ..format.kind() };
    let place = output.as_ref().unwrap_or(&JsonPlace::Stdout);
    // The files that are read are never the one that is written.
    let sink = Sink::prepare(kind, place, runs)?;
    let records = runs.iter().map(|run| record_file::named(run, "export", "no-record"));
    let records: Vec<Record> = records.collect::<Result<_, Problem>>()?;
    sink.write(&format.document(&records.iter().collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn a_form_and_runs_are_needed() {
        let export: Export = parsed("a b --format=csv -o c").unwrap();
        assert_eq!((export.runs, export.format), (vec!["a".into(), "b".into()], Form::Csv));
        assert_eq!(export.output, Some(JsonPlace::File("c".into())));
        refuses(
            |export: Export| Ok(export),
            &[
                ("a", "--format is missing"),
                ("--format csv", "RUN is missing"),
                ("a --format xml", "--format"),
                ("a --format csv --format json", "--format is given twice"),
                ("a --format csv -o ''", "--output"),
                ("a --format csv --bs 4k", "--bs"),
            ],
        );
    }
}
