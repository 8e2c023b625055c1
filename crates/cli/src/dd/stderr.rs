//! Standard error as dd uses it: messages, counts, a line of progress that replaces itself; and the answer below them.

use crate::cli_args::ColorWhen;
use crate::screen::style_on;
use rdsk_dd::Terminal;
use rdsk_report::{Charset, Style};

/// Whether the counts at the end of a copy are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Counts {
    #[default]
    Shown,
    /// Those of each run would hide what the runs have in common.
    Hidden,
}

#[derive(Default)]
pub(super) struct Stderr {
    /// Columns of the line of progress that stands there.
    progress: usize,
    pub(super) counts: Counts,
    /// The counts that were hidden last.
    hidden: String,
    /// Whether something could not be written: a full disk, a closed descriptor. Nobody can be told, but the exit code says so.
    has_failed: bool,
}

impl Stderr {
    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let start = if std::mem::take(&mut self.progress) > 0 { "\n" } else { "" };
        self.put(&format!("{start}{text}"));
    }

    /// Prints the counts of the last run, if they were hidden.
    pub(super) fn show_hidden(&mut self) {
        let hidden = std::mem::take(&mut self.hidden);
        self.write(&hidden);
    }

    /// The exit code of a copy that is done.
    pub(super) fn code(&self) -> u8 {
        if self.has_failed { super::FAILED } else { crate::exit::DONE }
    }

    /// Prints the answer, below a line of progress that still stands there.
    pub(super) fn answer(&mut self, text: &str) {
        self.write(text);
    }

    /// In one write, so that lines of two processes do not mix.
    fn put(&mut self, text: &str) {
        self.has_failed |= crate::out::write_all(rustix::stdio::stderr(), text.as_bytes()).is_err();
    }
}

impl Terminal for Stderr {
    fn say(&mut self, message: &str) {
        self.write(&format!("rdsk dd: {message}\n"));
    }

    fn print(&mut self, lines: &str) {
        self.write(lines);
    }

    fn print_last(&mut self, lines: &str) {
        match self.counts {
            Counts::Shown => self.write(lines),
            Counts::Hidden => lines.clone_into(&mut self.hidden),
        }
    }

    fn progress(&mut self, line: &str) {
        let width = self.progress.max(line.len());
        self.progress = line.len();
        self.put(&format!("\r{line:width$}"));
    }
}

/// The style of the answer.
pub(super) fn style() -> Style {
    style_on(&std::io::stderr(), ColorWhen::Auto, Charset::Unicode)
}
