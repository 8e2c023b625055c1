//! Arguments of the commands that draw Records: the forms of a Record and their places, the look of the page, and the history. It opens
//! nothing.

use crate::cli_args::{ColorWhen, Form, JsonPlace};
use crate::grammar::OUTPUT;
use crate::history::{self, Place};
use crate::same_place::is_same_place;
use crate::usage::usage;
use crate::value;
use clap::Args;
use rdsk_model::Problem;
use rdsk_report::{Charset, Compactness};
use std::path::PathBuf;

const COLORS: &[(&str, ColorWhen)] =
    &[("auto", ColorWhen::Auto), ("always", ColorWhen::Always), ("never", ColorWhen::Never)];

/// Where the history is.
#[derive(Args, Clone, Debug)]
pub(crate) struct HistoryArgs {
    /// The history [default: $RDSK_HISTORY, else rdsk/history.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE", value_parser = value::path())]
    pub(crate) history: Option<PathBuf>,
}

impl HistoryArgs {
    /// Takes the history that the line names, for the whole process.
    pub(crate) fn choose(&self) {
        if let Some(file) = &self.history {
            history::choose(Place::File(file.clone()));
        }
    }
}

/// Which characters a text has.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CharsetArgs {
    /// Use only ASCII characters in the text
    #[arg(long)]
    ascii: bool,
}

impl CharsetArgs {
    pub(crate) const fn charset(self) -> Charset {
        if self.ascii { Charset::Ascii } else { Charset::Unicode }
    }
}

/// Where the JSON of a command goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct JsonArgs {
    /// Write the result as JSON to FILE, or with - to standard output instead of the text
    #[arg(long, value_name = "FILE", value_parser = value::place())]
    pub(crate) json: Option<JsonPlace>,
}

/// The forms of a Record, and how its page looks.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    json: JsonArgs,
    /// Leave windows, series and histograms out of the JSON
    #[arg(long)]
    json_compact: bool,
    /// Write a summary for a ticket or a pull request to FILE, as Markdown
    #[arg(long, value_name = "FILE", value_parser = value::place())]
    markdown: Option<JsonPlace>,
    /// Write a row for each test to FILE, as CSV
    #[arg(long, value_name = "FILE", value_parser = value::place())]
    csv: Option<JsonPlace>,
    /// Write the figures to FILE for node_exporter, as OpenMetrics
    #[arg(long, value_name = "FILE", value_parser = value::place())]
    openmetrics: Option<JsonPlace>,
    #[command(flatten)]
    pub(crate) history: HistoryArgs,
    /// Colour the text [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = value::words(COLORS))]
    color: Option<ColorWhen>,
    #[command(flatten)]
    charset: CharsetArgs,
}

impl OutputArgs {
    pub(crate) const fn json(&self) -> Option<&JsonPlace> {
        self.json.json.as_ref()
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn take_json(&mut self) -> Option<JsonPlace> {
        self.json_compact = false;
        self.json.json.take()
    }

    pub(crate) const fn compactness(&self) -> Compactness {
        if self.json_compact { Compactness::Compact } else { Compactness::Full }
    }

    /// The color and the characters of the page.
    pub(crate) fn look(&self) -> (ColorWhen, Charset) {
        (self.color.unwrap_or(ColorWhen::Auto), self.charset.charset())
    }

    /// The forms beside JSON, with the place of each; `page` is that of a page with figures.
    pub(crate) fn forms(&self, page: Option<&JsonPlace>) -> Vec<(Form, JsonPlace)> {
        let places = [
            (Form::Markdown, self.markdown.as_ref()),
            (Form::Csv, self.csv.as_ref()),
            (Form::OpenMetrics, self.openmetrics.as_ref()),
            (Form::Page, page),
        ];
        places.into_iter().filter_map(|(form, place)| Some((form, place?.clone()))).collect()
    }

    /// Refuses what means nothing together.
    ///
    /// # Errors
    /// When the compact JSON has no place, or two documents have the same.
    pub(crate) fn check(&self, page: Option<&JsonPlace>) -> Result<(), Problem> {
        if self.json_compact && self.json().is_none() {
            let hint = "add --json FILE, or leave --json-compact out";
            return Err(usage("--json-compact needs --json", hint));
        }
        let forms = self.forms(page);
        let places: Vec<&JsonPlace> =
            self.json().into_iter().chain(forms.iter().map(|(_, place)| place)).collect();
        for (index, place) in places.iter().enumerate() {
            if places[..index].iter().any(|other| is_same(other, place)) {
                return Err(two_in_one_place(place));
            }
        }
        Ok(())
    }
}

fn two_in_one_place(place: &JsonPlace) -> Problem {
    match place {
        JsonPlace::Stdout => usage("two documents go to standard output", "give one of them a file"),
        JsonPlace::File(path) => usage(
            format!("two documents go to the same file, {}", path.display()),
            "give each a file of its own",
        ),
    }
}

/// Whether two documents would go to the same place.
fn is_same(left: &JsonPlace, right: &JsonPlace) -> bool {
    match (left, right) {
        (JsonPlace::File(left), JsonPlace::File(right)) => left == right || is_same_place(left, right),
        _ => left == right,
    }
}
