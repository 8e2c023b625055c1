//! How a page may look on this screen: its columns, and whether colour is welcome. It draws nothing.

use crate::cli_args::{CliArgs, ColorWhen};
use anstream::{AutoStream, ColorChoice};
use rdsk_report::{Color, Style};

/// Columns where nobody says how many there are: a page that can be quoted in a mail.
const DEFAULT_WIDTH: usize = 80;

pub(crate) fn style(args: &CliArgs) -> Style {
    let columns = std::env::var("COLUMNS").ok();
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    let color = match args.color {
        ColorWhen::Always => Color::Always,
        ColorWhen::Never => Color::Never,
        // A terminal, unless NO_COLOR, CLICOLOR or TERM refuse.
        ColorWhen::Auto => match AutoStream::choice(&std::io::stdout()) {
            ColorChoice::Never => Color::Never,
            _ => Color::Always,
        },
    };
    Style { width: width(columns.as_deref(), terminal), color, charset: args.charset }
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
