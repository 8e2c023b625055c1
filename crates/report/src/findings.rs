//! The findings: what the counters explain, with the figures they rest on. It adds nothing to them; what does not fit in
//! a few lines is in the JSON and on the documentation page of the finding.

use crate::cells;
use crate::page::{Page, Tone};
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words::sentence;
use rdsk_model::{CellRecord, Confidence, Experiment, Finding, Record, Severity};

/// Citations shown per finding; the JSON has them all.
const MAX_SHOWN: usize = 2;
/// Characters of explanation, about two lines: whole sentences as long as they fit, and always the first.
const MAX_TEXT: usize = 150;

/// The pages that draw their findings beside their tables.
const DRAWING_THEIR_OWN: [Option<Experiment>; 2] = [Some(Experiment::Paths), Some(Experiment::Stream)];

/// The findings that no page above has drawn: in full, and the remarks by their titles.
pub(crate) fn draw(page: &mut Page, record: &Record) {
    let is_drawn = |finding: &&Finding| !DRAWING_THEIR_OWN.contains(&finding.experiment);
    let (remarks, findings): (Vec<&Finding>, Vec<&Finding>) =
        record.findings.iter().filter(is_drawn).partition(|finding| finding.severity == Severity::Remark);
    if findings.is_empty() && remarks.is_empty() {
        return;
    }
    page.heading("FINDINGS (docs/findings/CODE.md explains each; all evidence is in --json)");
    for finding in &findings {
        draw_one(page, record, finding);
    }
    for (index, finding) in remarks.into_iter().enumerate() {
        let lead = if index == 0 { "  also: " } else { "        " };
        page.sentence(Tone::Plain, lead, headed(finding));
    }
}

/// The findings of a page that speak of these cells only, a sentence or two each.
pub(crate) fn draw_beside(page: &mut Page, record: &Record, cells: &[&CellRecord]) {
    let is_shown = |id: &String| cells.iter().any(|cell| cell.id == *id);
    let is_ours = |finding: &&Finding| {
        DRAWING_THEIR_OWN.contains(&finding.experiment) && finding.cells.iter().all(is_shown)
    };
    for finding in record.findings.iter().filter(is_ours) {
        page.sentence(Tone::Plain, "  ", format!("{} {}", sentence(&finding.title), finding.text));
    }
}

/// `the rate changed over time: 2 cells [drift]`.
fn headed(finding: &Finding) -> String {
    let inferred = if finding.confidence == Confidence::Inferred { ", inferred" } else { "" };
    format!("{} [{}{inferred}]", finding.title, finding.code)
}

/// The advice of a finding; where there are several targets and it speaks of one of them only, behind that one's name.
pub(crate) fn advice(record: &Record, finding: &Finding) -> Option<String> {
    let advice = finding.advice.as_deref()?;
    Some(match about(record, finding) {
        name if name.is_empty() => advice.to_owned(),
        name => format!("{name}: {advice}"),
    })
}

/// The name of the only target that a finding is about, where there are several; else empty.
pub(crate) fn about(record: &Record, finding: &Finding) -> String {
    let named = finding.cells.iter().filter_map(|id| record.cell(id));
    let targets = distinct(named.map(|cell| (cells::target_name(record, cell), cell.workload.targets.len())));
    match targets.as_slice() {
        [(Some(name), 1)] => name.clone(),
        _ => String::new(),
    }
}

fn draw_one(page: &mut Page, record: &Record, finding: &Finding) {
    page.sentence(Tone::Heading, "  ", headed(finding));
    page.sentence(Tone::Plain, "    ", first_sentences(&finding.text));
    for line in finding.evidence.iter().take(MAX_SHOWN) {
        page.sentence(Tone::Plain, "    | ", line);
    }
    if let Some(advice) = advice(record, finding) {
        page.sentence(Tone::Plain, "    > ", advice);
    }
}

fn first_sentences(text: &str) -> String {
    let mut shown = String::new();
    for sentence in text.split_inclusive(". ") {
        if !shown.is_empty() && shown.chars().count() + sentence.trim_end().chars().count() > MAX_TEXT {
            break;
        }
        shown.push_str(sentence);
    }
    shown.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sentences_fill_two_lines() {
        assert_eq!(first_sentences("One. Two."), "One. Two.");
        let long = "x".repeat(149);
        assert_eq!(first_sentences(&format!("{long}. Two.")), format!("{long}."));
        assert_eq!(first_sentences(&format!("One. {long}.")), "One.");
        assert_eq!(first_sentences(""), "");
    }
}
