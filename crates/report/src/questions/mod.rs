//! A file, or a folder, per question: its page, and beside it the line or two that the short page has of it. Each is derived from the
//! [`Analysis`] of a Record, and says so where there is nothing to say.

mod align;
pub(crate) mod dd;
mod fio;
pub(crate) mod headline;
pub(crate) mod load;
mod paths;
mod scale;
mod stream;
mod stripe;
mod zones;

pub use align::place;
pub use dd::copies;
pub(crate) use dd::draw as draw_copies;
pub use paths::column as path_column;
pub use scale::writes_against_reads;
pub use stream::mode;

use crate::page::{Page, Tone};
use crate::{cells, certainty, same_test, targets};
use rdsk_analysis::Analysis;
use rdsk_model::Experiment;

/// Whether a page has its evidence drawn as a plot of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plots {
    /// With `--details`.
    Drawn,
    /// On the screen of one topic.
    LeftOut,
}

/// The page of an experiment, or why it has none.
pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>, experiment: Experiment, plots: Plots) {
    if let Some(why) = cells::nothing_completed(analysis, experiment) {
        page.blank();
        let name = experiment.as_str().to_uppercase();
        page.sentence(Tone::Heading, format!("{name}: "), format!("nothing completed: {why}"));
        return;
    }
    match experiment {
        Experiment::Headline => headline::draw(page, analysis),
        Experiment::Paths => paths::draw(page, analysis),
        Experiment::Stream => stream::draw(page, analysis),
        Experiment::Align => align::draw(page, analysis),
        Experiment::Zones => zones::draw(page, analysis, plots),
        Experiment::Scale => scale::draw(page, analysis, plots),
        Experiment::Stripe => stripe::draw(page, analysis),
        Experiment::Load => load::draw(page, analysis),
        Experiment::Dd => dd::draw(page, analysis),
        Experiment::Fio => fio::draw(page, analysis),
    }
    // The headline draws them below each of its tables.
    if experiment != Experiment::Headline {
        certainty::draw_stalls_of(page, analysis, experiment);
    }
    same_test::draw(page, analysis, experiment);
    targets::draw(page, analysis, experiment);
}

/// The answer, first of all below the heading of a topic: what its tables are the evidence of.
fn draw_answer(page: &mut Page, analysis: &Analysis<'_>, experiment: Experiment) {
    // Of a single path or size there is no answer, and the table says what was measured.
    let answer = answer(analysis, experiment);
    if let Some(text) = answer.first().filter(|text| !text.starts_with("nothing to compare")) {
        page.sentence(Tone::Heading, "  ", format!("{}.", text.trim_end_matches('.')));
        page.blank();
    }
}

/// The wordings of an answer, the longest first.
pub(crate) fn answer(analysis: &Analysis<'_>, experiment: Experiment) -> Vec<String> {
    match experiment {
        // The headline has a table of its own, and a copy and jobs of fio pages of their own.
        Experiment::Headline | Experiment::Load | Experiment::Dd | Experiment::Fio => Vec::new(),
        Experiment::Paths | Experiment::Stream => paths::answer(analysis, experiment),
        Experiment::Align => align::answer(analysis),
        Experiment::Zones => zones::answer(analysis),
        Experiment::Scale => scale::answer(analysis),
        Experiment::Stripe => stripe::answer(analysis),
    }
}
