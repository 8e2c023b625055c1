//! What the first screen of a page says: of one result its headline and what to know, of several which is faster and by how much. It
//! draws nothing.

use crate::questions::{Section, Subject};
use rdsk_analysis::words::{plural, times};
use rdsk_compare::{Answer, CellChange, Change, Metric, RunPair, compare};
use rdsk_model::Record;
use rdsk_report::about;
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
    let runs: Vec<&Record> = others.iter().map(|subject| &**subject.analysis).collect();
    let compared = compare(first.analysis, &runs);
    if compared.pairs.iter().all(|pair| rates_of(pair).is_empty()) {
        return vec!["The results have no test with a rate in common.".into()];
    }
    let sentence = |(subject, pair): (&Subject<'_, '_>, &RunPair<'_>)| {
        format!("{} against {}: {}.", printable(subject.name), printable(first.name), changes(pair))
    };
    others.iter().zip(&compared.pairs).map(sentence).collect()
}

/// How the rate of each test changed that both results have.
fn rates_of<'c>(pair: &'c RunPair<'_>) -> Vec<&'c Change> {
    pair.cells.iter().filter_map(|cell: &CellChange<'_>| cell.of(Metric::Rate)).collect()
}

/// `faster in 36 of 41 tests, slower in none; 1.22x on average`.
fn changes(pair: &RunPair<'_>) -> String {
    let rates = rates_of(pair);
    let count = |answer: Answer| rates.iter().filter(|change| change.answer() == answer).count();
    let (faster, slower, unknown) = (count(Answer::Faster), count(Answer::Slower), count(Answer::TooFewData));
    let tests = plural(rates.len() as u64, "test");
    if rates.is_empty() {
        return "no rate in common".into();
    }
    if unknown == rates.len() {
        return format!("too few repeats to compare {tests}");
    }
    if faster + slower == 0 {
        return format!("no clear difference in {tests}");
    }
    let number = |count: usize| if count == 0 { "none".into() } else { count.to_string() };
    let counts = format!("faster in {} of {tests}, slower in {}", number(faster), number(slower));
    if faster > 0 && slower > 0 {
        // A mean of both would be that of neither.
        return counts;
    }
    let logs: Vec<f64> =
        rates.iter().map(|change| change.ratio().ln()).filter(|log| log.is_finite()).collect();
    let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    format!("{counts}; {} on average", times(mean))
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
