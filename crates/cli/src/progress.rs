//! The progress line on standard error: a Watch. It shows nothing without a terminal, and never touches standard output.

use crate::cli_args::Verbosity;
use crate::flush_clock::FlushClock;
use crate::out;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rdsk_model::{Event, Watch};
use rdsk_units::{Bytes, Nanos, Rate, count};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;

/// Redraws per second; more would be unreadable and disturb the measurement.
const REDRAWS_PER_S: u8 = 10;

#[derive(Debug)]
pub(crate) struct Progress {
    verbosity: Verbosity,
    /// The line; `None` without a terminal, or when none is wanted.
    line: Option<ProgressBar>,
    /// Warnings that were printed; each is printed once.
    said: BTreeSet<String>,
    /// The visit under way, as `3/46`.
    visit: String,
    /// Shows how long a flush takes, while the run itself waits for it.
    flush: FlushClock,
}

impl Progress {
    /// A line on standard error, if that is a terminal.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let is_shown = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        let line = is_shown.then(line);
        let flush = FlushClock::new((verbosity == Verbosity::Normal).then(|| line.clone()));
        Self { verbosity, line, said: BTreeSet::new(), visit: String::new(), flush }
    }

    /// Removes the line, for good.
    pub(crate) fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }

    fn show(&self, text: String) {
        if let Some(line) = &self.line {
            line.set_message(text);
        }
    }

    fn warn(&mut self, text: &str) {
        if self.verbosity != Verbosity::Quiet && self.said.insert(text.to_owned()) {
            self.tell(text);
        }
    }

    /// Prints a warning, wanted or not: that something is lost.
    pub(crate) fn tell(&self, text: &str) {
        match &self.line {
            Some(line) => line.suspend(|| out::warning(text)),
            None => out::warning(text),
        }
    }
}

impl Watch for Progress {
    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Warning { text } => self.warn(text),
            Event::VisitStarted { id, visit, visits, left_ns } => {
                self.visit = format!("{visit}/{visits}");
                self.show(visit_line(id, &self.visit, None, left_ns));
            }
            Event::Window { id, bytes_per_s, ops_per_s, left_ns } => {
                self.show(visit_line(id, &self.visit, Some((bytes_per_s, ops_per_s)), left_ns));
            }
            Event::Creating { done_bytes, total_bytes, bytes_per_s } => {
                self.show(creating_line(done_bytes, total_bytes, bytes_per_s));
            }
            Event::Settling { id, left_ns } => self.flush.begin(id, left_ns),
            Event::Settled => self.flush.end(),
            Event::Planned { .. }
            | Event::Started { .. }
            | Event::TurnEnded { .. }
            | Event::CellFinished { .. } => {}
        }
    }
}

fn line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S));
    // `wide_msg` cuts the text at the width of the terminal.
    line.set_style(ProgressStyle::with_template("{wide_msg}").expect("the template is a constant"));
    line
}

fn visit_line(id: &str, visit: &str, rates: Option<(f64, f64)>, left_ns: u64) -> String {
    let left = Nanos(left_ns - left_ns % 1_000_000_000);
    let left = if left.0 == 0 { "<1 s".to_owned() } else { format!("{} s", left.0 / 1_000_000_000) };
    match rates {
        Some((bytes_per_s, ops_per_s)) => {
            format!("{id:<30} {visit}  {left} left  {}  {} IOPS", Rate { bytes_per_s }, count(ops_per_s))
        }
        None => format!("{id:<30} {visit}  {left} left"),
    }
}

fn creating_line(done_bytes: u64, total_bytes: u64, bytes_per_s: f64) -> String {
    format!(
        "creating the test file: {} of {}  {}",
        Bytes(done_bytes).approx(),
        Bytes(total_bytes).approx(),
        Rate { bytes_per_s }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_cell_visit_time_and_rate_in_80_columns() {
        let line = visit_line(
            "align/write/uncached-buffered/65536",
            "106/112",
            Some((9.8e8, 239_257.8)),
            42_900_000_000,
        );
        assert!(line.chars().count() < 80);
        assert_eq!(line, "align/write/uncached-buffered/65536 106/112  42 s left  934.6 MiB/s  239k IOPS");
        let first = visit_line("paths/read/direct", "1/46", None, 900_000_000);
        assert_eq!(first, "paths/read/direct              1/46  <1 s left");
        assert_eq!(
            creating_line(412 << 20, 1 << 30, 2.2e8),
            "creating the test file: 412 MiB of 1 GiB  209.8 MiB/s"
        );
    }

    #[test]
    fn a_warning_is_printed_once() {
        let mut progress = Progress {
            verbosity: Verbosity::Normal,
            line: None,
            said: BTreeSet::new(),
            visit: String::new(),
            flush: FlushClock::new(None),
        };
        progress.event(&Event::Warning { text: "a warning of a test" });
        progress.event(&Event::Warning { text: "a warning of a test" });
        assert_eq!(progress.said.len(), 1);
        progress.verbosity = Verbosity::Quiet;
        progress.event(&Event::Warning { text: "another" });
        assert_eq!(progress.said.len(), 1);
    }
}
