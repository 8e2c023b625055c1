//! A Record drawn: terminal text by page, and JSON. It returns text and never prints, reads nothing but the Record and
//! measures nothing; every figure on a page can be found in the JSON.

pub mod about;
mod block_io;
mod cells;
mod certainty;
mod chart;
pub mod compare;
mod decision;
mod document;
mod engine;
mod figures;
mod findings;
pub mod fleet;
mod header;
mod lasting;
mod markdown;
mod page;
mod plan;
mod questions;
mod ranks;
mod replaced;
mod same_test;
mod short;
mod spark;
mod style;
mod table;
mod targets;
pub mod watch;

pub use block_io::tree;
pub use cells::{is_bandwidth, verdict_word, which_device};
pub use document::{Compactness, json};
pub use figures::{MISSING, Unit, or_missing, plus_minus, significant};
pub use markdown::{MAX_LINES as MAX_MARKDOWN_LINES, markdown, markdown_table};
pub use plan::plan_text;
pub use questions::{copies, mode, path_column, place, writes_against_reads};
pub use short::{Further, MAX_LINES, RateTexts, remark_of, short, workload_label};
pub use style::{Charset, Color, Style, ascii};

use page::Page;
use questions::Plots;
use rdsk_analysis::Analysis;
use rdsk_model::Experiment;

/// The whole Record as one text: what was measured, the headline, a page per experiment, the findings, the notes. Ends
/// with a line feed; no line is wider than [`Style::width`].
pub fn text(analysis: &Analysis<'_>, style: Style) -> String {
    drawn(analysis, Plots::Drawn).render(style)
}

/// The Record of a single topic as a screen: the same without plots of characters, and where they are.
pub fn topic(analysis: &Analysis<'_>, further: Further<'_>, style: Style) -> String {
    let mut page = drawn(analysis, Plots::LeftOut);
    if further != Further::Nowhere {
        further.draw(&mut page);
    }
    page.render(style)
}

fn drawn(analysis: &Analysis<'_>, plots: Plots) -> Page {
    let mut page = Page::default();
    header::draw(&mut page, analysis);
    header::draw_status(&mut page, analysis);
    ranks::draw(&mut page, analysis);
    for &experiment in Experiment::PLANNED {
        if cells::of_experiment(analysis, experiment).next().is_some() {
            questions::draw(&mut page, analysis, experiment, plots);
        }
    }
    // A copy without storage has no cells.
    if !analysis.copies.is_empty() {
        questions::draw_copies(&mut page, analysis);
    }
    if cells::of_experiment(analysis, Experiment::Fio).next().is_some() {
        questions::draw(&mut page, analysis, Experiment::Fio, plots);
    }
    targets::draw_answers(&mut page, analysis);
    findings::draw(&mut page, analysis);
    header::draw_end(&mut page, analysis);
    page
}

#[cfg(test)]
mod tests;
