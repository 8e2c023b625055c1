//! The short page of a run: what was measured on what, the headline, what to know, and a line per topic. At most 30 lines at
//! 80 columns of what most runs show, and 40 with everything that can stand on it; the screens with everything are those of [`crate::text`].

mod answers;
mod marks;
pub(crate) mod matters;
pub(crate) mod not_device;
pub(crate) mod ranking;
mod row;
mod table;
mod target_rows;
pub(crate) mod title;

pub use marks::remark_of;
pub use row::RateTexts;
pub use table::workload_label;

use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::Analysis;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Experiment};

/// Lines of a short page at 80 columns.
pub const MAX_LINES: usize = 40;

/// How much of each part is drawn.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Targets that are named, and targets that are compared with the first.
    targets: usize,
    /// Rows of the headline, of all its tables together.
    rows: usize,
    findings: usize,
    /// Lines of each finding.
    finding_lines: usize,
    /// Lines of the answer to each question.
    answer_lines: usize,
}

/// From as much as fits in most runs to as little as fits always: 40 lines with everything that can stand on a page.
const LIMITS: [Limits; 8] = [
    Limits { targets: 4, rows: 12, findings: 4, finding_lines: 2, answer_lines: 2 },
    Limits { targets: 4, rows: 12, findings: 4, finding_lines: 2, answer_lines: 1 },
    Limits { targets: 3, rows: 8, findings: 4, finding_lines: 2, answer_lines: 1 },
    Limits { targets: 2, rows: 8, findings: 3, finding_lines: 2, answer_lines: 1 },
    Limits { targets: 2, rows: 6, findings: 3, finding_lines: 1, answer_lines: 1 },
    Limits { targets: 1, rows: 6, findings: 2, finding_lines: 1, answer_lines: 1 },
    // On a narrow page reads stand above writes, so that each row takes two lines.
    Limits { targets: 1, rows: 4, findings: 2, finding_lines: 1, answer_lines: 1 },
    Limits { targets: 1, rows: 2, findings: 1, finding_lines: 1, answer_lines: 1 },
];

/// Where the other screens of a run are: the last line of its short page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Further<'a> {
    /// The same command line shows them, with `--details`.
    Here,
    /// This command line shows them, with `--details`: it names the run where it is kept.
    By(&'a str),
    /// Nothing keeps the run.
    Nowhere,
}

impl Further<'_> {
    /// Draws the last line of a page.
    pub(crate) fn draw(self, page: &mut Page) {
        page.blank();
        page.wordings(Tone::Plain, "", self.wordings(), 1);
    }

    /// What the line says, the longest wording first: a command that is cut off could not be copied.
    fn wordings(self) -> Vec<String> {
        match self {
            Self::Here => vec!["Details: the same command with --details".into()],
            Self::By(command) => {
                let details = format!("Details: {command} --details");
                let page = command.replacen(" show ", " report ", 1);
                vec![
                    // Spaces that no wrapping takes for one.
                    format!("{details} \u{a0}\u{a0}\u{a0}Page: {page} --open"),
                    details,
                    "Details: rdsk show RUN --details".into(),
                ]
            }
            Self::Nowhere => vec![
                "Details: --details, or --json FILE and rdsk show FILE --details".into(),
                "Details: --details".into(),
            ],
        }
    }
}

/// The Record on one screen: at most [`MAX_LINES`] lines at 80 columns, whatever it holds. Ends with a line feed; no line is
/// wider than [`Style::width`].
pub fn short(analysis: &Analysis<'_>, further: Further<'_>, style: Style) -> String {
    let mut text = String::new();
    for limits in &LIMITS {
        text = drawn(analysis, further, style, limits);
        if text.lines().count() <= MAX_LINES {
            break;
        }
    }
    text
}

fn drawn(analysis: &Analysis<'_>, further: Further<'_>, style: Style, limits: &Limits) -> String {
    let mut page = Page::default();
    title::draw(&mut page, analysis, limits);
    table::draw(&mut page, analysis, style, limits);
    page.blank();
    matters::draw(&mut page, analysis, limits);
    answers::draw(&mut page, analysis, limits);
    let has_topic = |cell: &CellRecord| Experiment::PLANNED.contains(&cell.experiment);
    if !analysis.cells.is_empty() && !analysis.cells.iter().any(has_topic) {
        page.line(format!("{} measured", plural(analysis.cells.len() as u64, "test")));
    }
    further.draw(&mut page);
    page.render(style)
}

#[cfg(test)]
mod tests;
