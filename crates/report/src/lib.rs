//! A Record drawn: terminal text by page, and JSON. It returns text and never prints, reads nothing but the Record and
//! measures nothing; every figure on a page can be found in the JSON.

mod align;
mod cells;
mod chart;
mod document;
mod engine;
mod figures;
mod findings;
mod header;
mod headline;
mod page;
mod paths;
mod plan;
mod scale;
mod spark;
mod stream;
mod stripe;
mod style;
mod zones;

pub use document::{Compactness, json};
pub use plan::plan_text;
pub use style::{Charset, Color, Style};

use findings::Which;
use page::Page;
use rdsk_model::{Experiment, Record};

/// The whole Record as one text: what was measured, the headline, a page per experiment, the findings, the notes. Ends
/// with a line feed; no line is wider than [`Style::width`].
#[must_use]
pub fn text(record: &Record, style: Style) -> String {
    let mut page = Page::default();
    header::draw(&mut page, record);
    header::draw_status(&mut page, record);
    for &experiment in Experiment::ALL {
        if cells::of(record, experiment).next().is_some() {
            draw(&mut page, record, experiment);
        }
    }
    findings::draw(&mut page, record, Which::NotYetShown);
    header::draw_end(&mut page, record);
    page.render(style)
}

/// One experiment's page alone; says so when the Record has no cells of it.
#[must_use]
pub fn experiment(record: &Record, experiment: Experiment, style: Style) -> String {
    let mut page = Page::default();
    if cells::of(record, experiment).next().is_some() {
        draw(&mut page, record, experiment);
    } else {
        page.line(format!("No cell of the experiment {experiment} was measured."));
    }
    page.render(style)
}

/// The headline: the few figures that everybody asks for first.
#[must_use]
pub fn headline(record: &Record, style: Style) -> String {
    experiment(record, Experiment::Headline, style)
}

/// Direct against buffered.
#[must_use]
pub fn paths(record: &Record, style: Style) -> String {
    experiment(record, Experiment::Paths, style)
}

/// One stream, watched by iostat.
#[must_use]
pub fn stream(record: &Record, style: Style) -> String {
    experiment(record, Experiment::Stream, style)
}

/// Write latency by size and alignment.
#[must_use]
pub fn align(record: &Record, style: Style) -> String {
    experiment(record, Experiment::Align, style)
}

/// The findings alone.
#[must_use]
pub fn findings(record: &Record, style: Style) -> String {
    let mut page = Page::default();
    findings::draw(&mut page, record, Which::All);
    page.render(style)
}

fn draw(page: &mut Page, record: &Record, experiment: Experiment) {
    if let Some(why) = cells::nothing_completed(record, experiment) {
        page.blank();
        let name = experiment.as_str().to_uppercase();
        page.sentence(page::Tone::Heading, format!("{name}: "), format!("nothing completed: {why}"));
        return;
    }
    match experiment {
        Experiment::Headline => headline::draw(page, record),
        Experiment::Paths => paths::draw(page, record),
        Experiment::Stream => stream::draw(page, record),
        Experiment::Align => align::draw(page, record),
        Experiment::Zones => zones::draw(page, record),
        Experiment::Scale => scale::draw(page, record),
        Experiment::Stripe => stripe::draw(page, record),
    }
}

#[cfg(test)]
mod tests;
