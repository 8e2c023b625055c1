//! Which page a Record gets, and how it may look on this screen: its columns, and whether colour is welcome. It prints nothing.

use crate::cli_args::{ColorWhen, Detail};
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use rdsk_model::{Experiment, Record};
use rdsk_report::{Charset, Color, Further, Style};
use std::os::fd::AsFd;

/// Columns where nothing says how many there are: a page that can be quoted in a mail.
const DEFAULT_WIDTH: usize = 80;

/// The style of a page on standard output.
pub(crate) fn style((color, charset): (ColorWhen, Charset)) -> Style {
    style_on(&std::io::stdout(), color, charset)
}

/// Columns of a page on standard output that has no style, at least 40.
pub(crate) fn columns() -> usize {
    style_on(&std::io::stdout(), ColorWhen::Never, Charset::Ascii).width.max(40)
}

/// The same, at most the 80 that can be quoted in a mail.
pub(crate) fn page_columns() -> usize {
    columns().min(DEFAULT_WIDTH)
}

/// The style of a page on one of the standard streams.
pub(crate) fn style_on<S: RawStream + AsFd>(stream: &S, color: ColorWhen, charset: Charset) -> Style {
    let columns = std::env::var("COLUMNS").ok();
    let terminal = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    let color = match color {
        ColorWhen::Always => Color::Always,
        ColorWhen::Never => Color::Never,
        // A terminal, unless NO_COLOR, CLICOLOR or TERM refuse.
        ColorWhen::Auto => match AutoStream::choice(stream) {
            ColorChoice::Never => Color::Never,
            _ => Color::Always,
        },
    };
    Style { width: width(columns.as_deref(), terminal), color, charset }
}

/// A single question has a screen of its own, which says more than a line of the short page.
pub(crate) fn page(record: &Record, detail: Detail, further: Further<'_>, style: Style) -> String {
    let first =
        record.cells.first().map(|cell| cell.experiment).filter(|first| *first != Experiment::Headline);
    // A copy without storage has no cells.
    let is_single = !record.copies.is_empty()
        || first.is_some_and(|first| record.cells.iter().all(|cell| cell.experiment == first));
    let analysis = rdsk_analysis::Analysis::of(record);
    match detail {
        Detail::Full => rdsk_report::text(&analysis, style),
        Detail::Short if is_single => rdsk_report::topic(&analysis, further, style),
        Detail::Short => rdsk_report::short(&analysis, further, style),
    }
}

/// What the environment asks for, else what the terminal has.
fn width(columns: Option<&str>, terminal: Option<usize>) -> usize {
    let asked = columns.and_then(|columns| columns.trim().parse().ok()).filter(|&columns| columns > 0);
    asked.or(terminal.filter(|&columns| columns > 0)).unwrap_or(DEFAULT_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn columns_come_before_the_terminal_and_nonsense_counts_for_nothing() {
        for (columns, terminal, expected) in [
            (None, None, 80),
            (None, Some(100), 100),
            (Some("60"), Some(100), 60),
            (Some(" 120 "), None, 120),
            (Some("0"), Some(100), 100),
            (Some("wide"), None, 80),
            (Some("-3"), Some(0), 80),
        ] {
            assert_eq!(width(columns, terminal), expected, "{columns:?}, {terminal:?}");
        }
    }
}
