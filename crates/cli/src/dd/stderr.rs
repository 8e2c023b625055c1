//! Standard error as dd uses it: messages, counts, a line of progress that replaces itself; and the answer below them.

use crate::cli_args::ColorWhen;
use crate::screen::style_on;
use rdsk_dd::Terminal;
use rdsk_report::{Charset, Style};
use std::io::Write as _;

/// Whether dd's counts are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Counts {
    #[default]
    Shown,
    Hidden,
}

#[derive(Default)]
pub(super) struct Stderr {
    /// Columns of the line of progress that stands there.
    progress: usize,
    pub(super) counts: Counts,
}

impl Stderr {
    fn write(&mut self, text: &str) {
        let start = if std::mem::take(&mut self.progress) > 0 { "\n" } else { "" };
        put(&format!("{start}{text}"));
    }
}

impl Terminal for Stderr {
    fn say(&mut self, message: &str) {
        self.write(&format!("rdsk dd: {message}\n"));
    }

    fn print(&mut self, lines: &str) {
        if self.counts == Counts::Shown {
            self.write(lines);
        }
    }

    fn progress(&mut self, line: &str) {
        if self.counts == Counts::Shown {
            let width = self.progress.max(line.len());
            self.progress = line.len();
            put(&format!("\r{line:width$}"));
        }
    }
}

/// Prints the answer.
pub(super) fn answer(text: &str) {
    put(text);
}

/// The style of the answer.
pub(super) fn style() -> Style {
    style_on(&std::io::stderr(), ColorWhen::Auto, Charset::Unicode)
}

/// In one write, so that lines of two processes do not mix. If standard error is closed, nobody can be told.
fn put(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
