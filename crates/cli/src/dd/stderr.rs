//! Standard error as dd uses it: messages, counts, a line of progress that replaces itself; and the answer below them.

use crate::cli_args::ColorWhen;
use crate::screen::style_on;
use rdsk_dd::Terminal;
use rdsk_report::{Charset, Style};

#[derive(Default)]
pub(super) struct Stderr {
    /// Columns of the line of progress that stands there.
    progress: usize,
    /// Whether something could not be written: a full disk, a closed descriptor. Nothing can say it but the exit code.
    has_failed: bool,
}

impl Stderr {
    /// The exit code of a copy that is done.
    pub(super) fn code(&self) -> u8 {
        if self.has_failed { super::FAILED } else { crate::exit::DONE }
    }

    /// In one write, so that lines of two processes do not mix.
    fn put(&mut self, text: &str) {
        self.has_failed |= crate::out::write_all(rustix::stdio::stderr(), text.as_bytes()).is_err();
    }
}

impl Terminal for Stderr {
    fn say(&mut self, message: &str) {
        self.print(&format!("rdsk dd: {message}\n"));
    }

    fn print(&mut self, lines: &str) {
        if !lines.is_empty() {
            let start = if std::mem::take(&mut self.progress) > 0 { "\n" } else { "" };
            self.put(&format!("{start}{lines}"));
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
