//! What the first screen of a page says: of one result its headline and what to know, of several which is faster and by how much. It
//! draws nothing.

use crate::questions::{Section, Subject};
use rdsk_compare::{RunPair, compare, with_parts};
use rdsk_model::Record;
use rdsk_report::about;
use rdsk_report::compare::decision;
use rdsk_units::printable;

/// Bullets of the first screen.
const MAX_BULLETS: usize = 4;

/// The sentences of a page: those of the headline, or the answer to its first question; of several results how each further one
/// compares with the first.
pub(crate) fn verdict(subjects: &[Subject<'_, '_>], sections: &[Section]) -> Vec<String> {
    let [first, others @ ..] = subjects else { return Vec::new() };
    if others.is_empty() {
        let headlines = about::headlines(first.analysis);
        let answer =
            sections.first().map(|section| section.answer.clone()).filter(|answer| !answer.is_empty());
        return if headlines.is_empty() { answer.into_iter().collect() } else { headlines };
    }
    let runs: Vec<&Record> = subjects.iter().map(|subject| &**subject.analysis).collect();
    let runs = with_parts(&runs);
    let runs: Vec<&Record> = runs.iter().map(|run| &**run).collect();
    let compared = compare(runs[0], &runs[1..]);
    if compared.pairs.iter().all(|pair| pair.cells.is_empty()) {
        return vec!["The results have no test in common.".into()];
    }
    // Of two results the other one is what it is compared with.
    let lead = match others {
        [_] => String::new(),
        _ => format!("Against {}: ", printable(first.name)),
    };
    let sentence = |(subject, pair): (&Subject<'_, '_>, &RunPair<'_>)| {
        format!("{lead}{}", decision(pair, &printable(first.name), &printable(subject.name)))
    };
    others.iter().zip(&compared.pairs).map(sentence).collect()
}

/// What to know, at most four bullets: of several results the weightiest of each first, with its name.
pub(crate) fn bullets(subjects: &[Subject<'_, '_>]) -> Vec<String> {
    let each: Vec<Vec<String>> = subjects.iter().map(|subject| about::bullets(subject.analysis)).collect();
    let named = |(subject, bullets): (&Subject<'_, '_>, &Vec<String>), rank: usize| {
        let text = bullets.get(rank)?;
        let name = if subjects.len() > 1 { format!("{}: ", printable(subject.name)) } else { String::new() };
        Some(format!("{name}{text}"))
    };
    let by_rank = (0..MAX_BULLETS)
        .flat_map(|rank| subjects.iter().zip(&each).filter_map(move |pair| named(pair, rank)));
    by_rank.take(MAX_BULLETS).collect()
}
