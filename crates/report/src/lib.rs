//! A Record drawn: terminal text by page, and JSON. It returns text and never prints, reads nothing but the Record and
//! measures nothing; every figure on a page can be found in the JSON.

mod align;
mod block_io;
mod cells;
mod certainty;
mod chart;
pub mod compare;
mod dd;
mod document;
mod engine;
mod figures;
mod findings;
mod fio;
mod header;
mod headline;
mod lasting;
mod markdown;
mod page;
mod paths;
mod plan;
mod replaced;
mod scale;
mod short;
mod spark;
mod stream;
mod stripe;
mod style;
mod table;
mod targets;
pub mod watch;
pub mod words;
mod zones;

pub use block_io::tree;
pub use dd::copies;
pub use document::{Compactness, json};
pub use figures::{MISSING, Unit, or_missing, significant};
pub use markdown::{MAX_LINES as MAX_MARKDOWN_LINES, markdown, markdown_table};
pub use plan::plan_text;
pub use short::{Further, MAX_LINES, short};
pub use style::{Charset, Color, Style, ascii};

use page::Page;
use rdsk_analysis::Analysis;
use rdsk_model::{Experiment, Record};

/// The whole Record as one text: what was measured, the headline, a page per experiment, the findings, the notes. Ends
/// with a line feed; no line is wider than [`Style::width`].
pub fn text(record: &Record, style: Style) -> String {
    let analysis = &Analysis::of(record);
    let mut page = Page::default();
    header::draw(&mut page, analysis);
    header::draw_status(&mut page, analysis);
    for &experiment in Experiment::PLANNED {
        if cells::of(analysis, experiment).next().is_some() {
            draw(&mut page, analysis, experiment);
        }
    }
    // A copy without storage has no cells.
    if !record.copies.is_empty() {
        dd::draw(&mut page, analysis);
    }
    if cells::of(analysis, Experiment::Fio).next().is_some() {
        draw(&mut page, analysis, Experiment::Fio);
    }
    findings::draw(&mut page, analysis);
    header::draw_end(&mut page, analysis);
    page.render(style)
}

/// One experiment's page alone; says so when the Record has no cells of it.
pub fn experiment(analysis: &Analysis<'_>, experiment: Experiment, style: Style) -> String {
    let mut page = Page::default();
    if cells::of(analysis, experiment).next().is_some() {
        draw(&mut page, analysis, experiment);
    } else {
        page.line(format!("No cell of the experiment {experiment} was measured."));
    }
    page.render(style)
}

fn draw(page: &mut Page, analysis: &Analysis<'_>, experiment: Experiment) {
    if let Some(why) = cells::nothing_completed(analysis, experiment) {
        page.blank();
        let name = experiment.as_str().to_uppercase();
        page.sentence(page::Tone::Heading, format!("{name}: "), format!("nothing completed: {why}"));
        return;
    }
    match experiment {
        Experiment::Headline => headline::draw(page, analysis),
        Experiment::Paths => paths::draw(page, analysis),
        Experiment::Stream => stream::draw(page, analysis),
        Experiment::Align => align::draw(page, analysis),
        Experiment::Zones => zones::draw(page, analysis),
        Experiment::Scale => scale::draw(page, analysis),
        Experiment::Stripe => stripe::draw(page, analysis),
        Experiment::Dd => dd::draw(page, analysis),
        Experiment::Fio => fio::draw(page, analysis),
    }
    // The headline draws them below each of its tables.
    if experiment != Experiment::Headline {
        certainty::draw_stalls_of(page, analysis, experiment);
    }
    targets::draw(page, analysis, experiment);
}

#[cfg(test)]
mod tests;
