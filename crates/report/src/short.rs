//! The short page of a run: what was measured on what, the headline, what matters most, an answer to each question, and the
//! figures that are not the device's. At most 45 lines at 80 columns; the screens with everything are those of [`crate::text`].

mod answers;
pub(crate) mod matters;
pub(crate) mod not_device;
pub(crate) mod ranking;
mod table;
pub(crate) mod title;

use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::Analysis;

/// Lines of a short page at 80 columns.
pub const MAX_LINES: usize = 45;

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
    /// Lines that name the cells whose figures are not the device's.
    not_device_lines: usize,
}

/// From as much as fits in most runs to as little as fits always: 40 lines with everything that can stand on a page.
const LIMITS: [Limits; 6] = [
    Limits { targets: 4, rows: 12, findings: 5, finding_lines: 3, answer_lines: 2, not_device_lines: 4 },
    Limits { targets: 4, rows: 12, findings: 5, finding_lines: 2, answer_lines: 2, not_device_lines: 3 },
    Limits { targets: 3, rows: 8, findings: 5, finding_lines: 2, answer_lines: 2, not_device_lines: 2 },
    Limits { targets: 2, rows: 8, findings: 4, finding_lines: 2, answer_lines: 2, not_device_lines: 2 },
    Limits { targets: 2, rows: 6, findings: 4, finding_lines: 2, answer_lines: 1, not_device_lines: 2 },
    Limits { targets: 1, rows: 6, findings: 3, finding_lines: 2, answer_lines: 1, not_device_lines: 1 },
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
    /// What the line says, the longest wording first: a command that is cut off could not be copied.
    fn wordings(self) -> Vec<String> {
        match self {
            Self::Here => vec!["More: --details".into()],
            Self::By(command) => {
                vec![format!("More: {command} --details"), "More: rdsk show RUN --details".into()]
            }
            Self::Nowhere => vec!["More: --details, or rdsk show FILE --details of a --json FILE".into()],
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
    not_device::draw(&mut page, analysis, limits);
    page.wordings(Tone::Plain, "", further.wordings(), 1);
    page.render(style)
}

#[cfg(test)]
mod tests;
