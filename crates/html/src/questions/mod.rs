//! The figures of a Record, a file per question, and of several Records over each other. Each is a pure function of the Analysis; none
//! of them draws.

mod align;
mod dd;
mod fio;
mod load;
mod parts;
mod paths;
mod percentiles;
mod rates;
mod rows;
mod scale;
mod stream;
mod stripe;
mod sweep;
mod workloads;
mod zones;

use crate::figure::Figure;
use rdsk_analysis::Analysis;
use rdsk_model::Experiment;
use rdsk_report::about;

/// A Record with the name that distinguishes it from the others of a page; untrusted text.
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
    /// Its answer in a sentence, as the short page of a single result has it; empty where there is none.
    pub answer: String,
    /// Its figures, the one that answers first; never empty.
    pub figures: Vec<Figure>,
}

/// The figures in the order of the questions: all of a single Record, and of several those that compare, with a line or a bar for each
/// of them. No section for what was not measured.
pub fn sections(subjects: &[Subject<'_, '_>]) -> Vec<Section> {
    let section = |experiment| Section {
        experiment,
        title: title(experiment),
        answer: answer(experiment, subjects),
        figures: figures(experiment, subjects),
    };
    Experiment::ALL.iter().copied().map(section).filter(|section| !section.figures.is_empty()).collect()
}

fn answer(experiment: Experiment, subjects: &[Subject<'_, '_>]) -> String {
    match subjects {
        [subject] => about::answer(subject.analysis, experiment).unwrap_or_default(),
        _ => String::new(),
    }
}

fn figures(experiment: Experiment, subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    match (experiment, subjects) {
        (Experiment::Headline, _) => workloads::figures(subjects, experiment),
        (Experiment::Paths, _) => paths::figures(subjects),
        (Experiment::Stream, _) => stream::figures(subjects),
        (Experiment::Align, [subject]) => align::figures(subject),
        (Experiment::Align, _) => align::overlay(subjects),
        (Experiment::Zones, _) => zones::figures(subjects),
        (Experiment::Scale, _) => scale::figures(subjects),
        (Experiment::Stripe, _) => stripe::figures(subjects),
        (Experiment::Load, _) => load::figures(subjects),
        (Experiment::Dd, _) => dd::figures(subjects),
        (Experiment::Fio, _) => fio::figures(subjects),
    }
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
        Experiment::Load => "Load: jobs that were described",
        Experiment::Dd => "Copies",
        Experiment::Fio => "fio: jobs that it measured",
    }
}

#[cfg(test)]
mod tests;
