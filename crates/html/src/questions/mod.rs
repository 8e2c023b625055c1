//! The figures of a Record, a file per question, and of several Records over each other. Each is a pure function of the Analysis; none
//! of them draws.

mod align;
mod dd;
mod fio;
mod headline;
mod parts;
mod paths;
mod percentiles;
mod rows;
mod scale;
mod stream;
mod stripe;
mod zones;

use crate::figure::Figure;
use rdsk_analysis::Analysis;
use rdsk_model::Experiment;

/// A Record with the name that tells it from the others of a page; untrusted text.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s, 'r> {
    /// Its name; unused where there is one Record only.
    pub name: &'s str,
    /// What it means in numbers.
    pub analysis: &'s Analysis<'r>,
}

/// The figures of one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The question.
    pub experiment: Experiment,
    /// Its heading.
    pub title: &'static str,
    /// Its figures; never empty.
    pub figures: Vec<Figure>,
}

/// All figures of one Record, in the order of the questions; no section for what was not measured.
pub fn of_record(analysis: &Analysis<'_>) -> Vec<Section> {
    let subject = Subject { name: "", analysis };
    sections(|experiment| match experiment {
        Experiment::Headline => headline::figures(&[subject]),
        Experiment::Paths => paths::figures(&[subject]),
        Experiment::Stream => stream::figures(&subject),
        Experiment::Align => align::figures(&subject),
        Experiment::Zones => zones::figures(analysis),
        Experiment::Scale => scale::figures(&[subject]),
        Experiment::Stripe => stripe::figures(&subject),
        Experiment::Dd => dd::figures(&[subject]),
        Experiment::Fio => fio::figures(&[subject]),
    })
}

fn sections(figures: impl Fn(Experiment) -> Vec<Figure>) -> Vec<Section> {
    let section = |experiment| Section { experiment, title: title(experiment), figures: figures(experiment) };
    Experiment::ALL.iter().copied().map(section).filter(|section| !section.figures.is_empty()).collect()
}

/// The figures that lay several Records over each other: of each question those that compare, with a line or a bar for each Record.
pub fn of_several(subjects: &[Subject<'_, '_>]) -> Vec<Section> {
    sections(|experiment| match experiment {
        Experiment::Headline => headline::figures(subjects),
        Experiment::Paths => paths::figures(subjects),
        Experiment::Stream => stream::overlay(subjects),
        Experiment::Align => align::overlay(subjects),
        Experiment::Zones => zones::overlay(subjects),
        Experiment::Scale => scale::figures(subjects),
        Experiment::Stripe => stripe::overlay(subjects),
        Experiment::Dd => dd::figures(subjects),
        Experiment::Fio => fio::figures(subjects),
    })
}

fn title(experiment: Experiment) -> &'static str {
    match experiment {
        Experiment::Headline => "Headline",
        Experiment::Paths => "Paths: direct against buffered",
        Experiment::Stream => "Stream: one stream, watched by iostat",
        Experiment::Align => "Align: size and alignment",
        Experiment::Zones => "Zones: speed by position",
        Experiment::Scale => "Scale: block size, streams and targets",
        Experiment::Stripe => "Stripe: chunk and full stripe",
        Experiment::Dd => "Copies",
        Experiment::Fio => "fio: jobs that it measured",
    }
}

#[cfg(test)]
mod tests;
