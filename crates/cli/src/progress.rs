//! The progress line on standard error: a Watch. It shows nothing without a terminal, and never touches standard output.

use crate::cli_args::Verbosity;
use crate::flush_clock::FlushClock;
use crate::out;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rdsk_model::{Event, UNLIMITED_NS, Watch};
use rdsk_units::{Bytes, Rate, count};
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
    /// Time that all tests may take; 0 before it is known, and where they end with their work instead.
    budget_ns: u64,
    /// Share of the work that is done, in percent; it never falls.
    percent: u64,
    /// Shows how long a flush takes, while the run itself waits for it.
    flush: FlushClock,
}

impl Progress {
    /// A line on standard error, if that is a terminal.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let is_shown = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        let line = is_shown.then(line);
        let flush = FlushClock::new((verbosity == Verbosity::Normal).then(|| line.clone()));
        Self { verbosity, line, said: BTreeSet::new(), budget_ns: 0, percent: 0, flush }
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

    /// Counts what is done: by time where the run has a budget, else by repeats, of which more may be planned as it goes on.
    fn count(&mut self, left_ns: u64, repeats: Option<(usize, usize)>) {
        let done = if self.budget_ns > 0 {
            (self.budget_ns.saturating_sub(left_ns), self.budget_ns)
        } else {
            let (begun, planned) = repeats.unwrap_or((1, 0));
            (begun.saturating_sub(1) as u64, planned as u64)
        };
        self.percent =
            self.percent.max((u128::from(done.0) * 100 / u128::from(done.1.max(1))).min(99) as u64);
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

impl Progress {
    /// `paths      43%  25 s left  935 MiB/s  239k IOPS`: the topic under way, and the rates where something completed.
    fn test_line(&self, id: &str, (bytes_per_s, ops_per_s): (f64, f64), left_ns: u64) -> String {
        let mut text = format!("{:<8} {:>3}%", topic(id), self.percent);
        if self.budget_ns > 0 {
            let left_s = left_ns / 1_000_000_000;
            text.push_str(&if left_s == 0 { "  <1 s left".to_owned() } else { format!("  {left_s} s left") });
        }
        if ops_per_s > 0.0 {
            text.push_str(&format!("  {}  {} IOPS", Rate { bytes_per_s }, count(ops_per_s)));
        }
        text
    }
}

impl Watch for Progress {
    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Warning { text } => self.warn(text),
            Event::Started { budget_ns, .. } => {
                self.budget_ns = if budget_ns < UNLIMITED_NS { budget_ns } else { 0 };
            }
            Event::VisitStarted { id, visit, visits, left_ns } => {
                self.count(left_ns, Some((visit, visits)));
                self.show(self.test_line(id, (0.0, 0.0), left_ns));
            }
            Event::Window { id, bytes_per_s, ops_per_s, left_ns } => {
                self.count(left_ns, None);
                self.show(self.test_line(id, (bytes_per_s, ops_per_s), left_ns));
            }
            Event::Creating { done_bytes, total_bytes, bytes_per_s } => {
                self.show(creating_line(done_bytes, total_bytes, bytes_per_s));
            }
            Event::Settling { id, left_ns } => self.flush.begin(topic(id), left_ns),
            Event::Settled => self.flush.end(),
            Event::Planned { .. } | Event::TurnEnded { .. } | Event::CellFinished { .. } => {}
        }
    }
}

fn line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S));
    // `wide_msg` cuts the text at the width of the terminal.
    line.set_style(ProgressStyle::with_template("{wide_msg}").expect("the template is a constant"));
    line
}

/// What a test is part of: the first word of its id.
fn topic(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
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

    fn silent() -> Progress {
        let flush = FlushClock::new(None);
        Progress {
            verbosity: Verbosity::Normal,
            line: None,
            said: BTreeSet::new(),
            budget_ns: 0,
            percent: 0,
            flush,
        }
    }

    #[test]
    fn the_line_shows_topic_share_time_and_rate_in_80_columns() {
        let mut progress = silent();
        progress.event(&Event::Started { cells: 41, budget_ns: 60_000_000_000 });
        let id = "align/write/uncached-buffered/65536";
        progress.event(&Event::VisitStarted { id, visit: 106, visits: 112, left_ns: 42_900_000_000 });
        let line = progress.test_line(id, (9.8e8, 239_257.8), 42_900_000_000);
        assert_eq!(line, "align     28%  42 s left  935 MiB/s  239k IOPS");
        assert_eq!(
            progress.test_line(id, (0.0, 0.0), 900_000_000),
            "align     28%  <1 s left",
            "no rate of 0"
        );
        assert_eq!(
            creating_line(412 << 20, 1 << 30, 2.2e8),
            "creating the test file: 412 MiB of 1 GiB  210 MiB/s"
        );
    }

    #[test]
    fn the_share_never_falls_and_ends_below_all() {
        let mut progress = silent();
        progress.event(&Event::Started { cells: 1, budget_ns: UNLIMITED_NS });
        let mut shares = Vec::new();
        // More repeats are planned as the run goes on.
        for (visit, visits) in [(1, 4), (3, 4), (4, 8), (5, 8), (8, 8), (9, 8)] {
            progress.event(&Event::VisitStarted {
                id: "zones/read/1M",
                visit,
                visits,
                left_ns: UNLIMITED_NS,
            });
            shares.push(progress.percent);
        }
        assert_eq!(shares, [0, 50, 50, 50, 87, 99]);
        assert_eq!(progress.test_line("zones/read/1M", (0.0, 0.0), UNLIMITED_NS), "zones     99%");
    }

    #[test]
    fn a_warning_is_printed_once() {
        let mut progress = silent();
        progress.event(&Event::Warning { text: "a warning of a test" });
        progress.event(&Event::Warning { text: "a warning of a test" });
        assert_eq!(progress.said.len(), 1);
        progress.verbosity = Verbosity::Quiet;
        progress.event(&Event::Warning { text: "another" });
        assert_eq!(progress.said.len(), 1);
    }
}
