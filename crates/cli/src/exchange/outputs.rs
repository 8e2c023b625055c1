//! The forms of a Record other than its page, and where each goes. Every place is checked before anything is measured.

use crate::cli_args::{Form, JsonPlace};
use crate::html_page;
use crate::json_file::{DocumentKind, JSON, PAGE, Sink};
use rdsk_model::{Problem, Record};
use rdsk_report::Compactness;

impl Form {
    /// How problems call such a document, and which files it may replace.
    pub(super) const fn kind(self) -> DocumentKind {
        match self {
            Self::Json => JSON,
            Self::Csv => DocumentKind {
                code: "csv",
                name: "the CSV",
                flag: "--csv",
                start: "record_id,label,started_at,",
                marks: &[],
            },
            Self::OpenMetrics => DocumentKind {
                code: "openmetrics",
                name: "the OpenMetrics text",
                flag: "--openmetrics",
                start: "#HELPrdsk_run_info",
                marks: &[],
            },
            // Another user's notes may have such a heading; the id of a Record, or the head of our table, they have not.
            Self::Markdown => DocumentKind {
                code: "markdown",
                name: "the Markdown",
                flag: "--markdown",
                start: "###rdsk:",
                marks: &[",record01", "|run|started|label|targets|"],
            },
            Self::Page => PAGE,
        }
    }

    /// The Records as one document; JSON has room for one of them only.
    pub(super) fn document(self, records: &[&Record]) -> String {
        match (self, records) {
            (Self::Json, _) => {
                records.iter().map(|record| rdsk_report::json(record, Compactness::Full)).collect()
            }
            (Self::Csv, _) => rdsk_exchange::csv(records.iter().copied()),
            (Self::OpenMetrics, _) => rdsk_exchange::openmetrics(records),
            (Self::Markdown, [record]) => rdsk_report::markdown(record),
            (Self::Markdown, _) => rdsk_report::markdown_table(records),
            (Self::Page, _) => html_page::page_of(records),
        }
    }
}

/// Places that were found writable, each with the form that goes there.
#[derive(Debug)]
pub(crate) struct Outputs(Vec<(Form, Sink)>);

impl Outputs {
    /// Checks the places, without changing what is there.
    ///
    /// # Errors
    /// As [`Sink::prepare`].
    pub(crate) fn prepare(forms: &[(Form, JsonPlace)], targets: &[String]) -> Result<Self, Problem> {
        let checked =
            |(form, place): &(Form, JsonPlace)| Ok((*form, Sink::prepare(form.kind(), place, targets)?));
        forms.iter().map(checked).collect::<Result<_, Problem>>().map(Self)
    }

    /// Writes each form, all that can be written.
    ///
    /// # Errors
    /// The first that cannot be written.
    pub(crate) fn write(&self, record: &Record) -> Result<(), Problem> {
        // A page of figures needs some.
        let has_figures = !record.cells.is_empty() || !record.copies.is_empty();
        let is_worth = |form: Form| form != Form::Page || has_figures;
        let outputs = self.0.iter().filter(|(form, _)| is_worth(*form));
        let written = outputs.map(|(form, sink)| sink.write(&form.document(&[record])));
        written.fold(Ok(()), Result::and)
    }

    /// Whether none was requested.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them takes the place of the page.
    pub(crate) fn take_stdout(&self) -> bool {
        self.0.iter().any(|(_, sink)| sink.is_stdout())
    }
}
