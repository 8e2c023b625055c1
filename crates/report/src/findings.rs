//! The findings: what the counters explain, with the figures they rest on. It adds nothing to them; what does not fit a
//! few lines stands in the JSON and on the finding's page of the documentation.

use crate::page::{Page, Tone};
use rdsk_finding::REMARKS;
use rdsk_model::{Confidence, Finding, Record};

/// Citations shown per finding; the JSON has them all.
const MAX_SHOWN: usize = 2;
/// Characters of explanation, about two lines: whole sentences as long as they fit, the first in any case.
const MAX_TEXT: usize = 150;

/// The code of the finding that the pages of the experiments show beside their tables.
const COMPARISON: &str = "direct-vs-buffered";

/// Which findings are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Without the comparisons, which stand on the pages above.
    NotYetShown,
}

pub(crate) fn draw(page: &mut Page, record: &Record, which: Which) {
    let is_drawn = |finding: &&Finding| which == Which::All || finding.code != COMPARISON;
    let (remarks, findings): (Vec<&Finding>, Vec<&Finding>) =
        record.findings.iter().filter(is_drawn).partition(|finding| REMARKS.contains(&finding.code.as_str()));
    if findings.is_empty() && remarks.is_empty() {
        return;
    }
    page.heading("FINDINGS (docs/findings/CODE.md explains each; all evidence is in --json)");
    for finding in &findings {
        draw_one(page, finding);
    }
    for (index, finding) in remarks.into_iter().enumerate() {
        let lead = if index == 0 { "  also: " } else { "        " };
        page.sentence(Tone::Plain, lead, headed(finding));
    }
}

/// The comparisons of direct and buffered whose cells all satisfy a condition, a sentence or two each.
pub(crate) fn draw_comparisons(page: &mut Page, record: &Record, is_shown: impl Fn(&str) -> bool) {
    let is_ours =
        |finding: &&Finding| finding.code == COMPARISON && finding.cells.iter().all(|id| is_shown(id));
    for finding in record.findings.iter().filter(is_ours) {
        page.sentence(Tone::Plain, "  ", format!("{}. {}", capital(&finding.title), finding.text));
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// `the rate changed on the way: 2 cells [drift]`.
fn headed(finding: &Finding) -> String {
    let inferred = if finding.confidence == Confidence::Inferred { ", inferred" } else { "" };
    format!("{} [{}{inferred}]", finding.title, finding.code)
}

fn draw_one(page: &mut Page, finding: &Finding) {
    page.sentence(Tone::Heading, "  ", headed(finding));
    page.sentence(Tone::Plain, "    ", first_sentences(&finding.text));
    for line in finding.evidence.iter().take(MAX_SHOWN) {
        page.line(format!("    | {line}"));
    }
    if let Some(advice) = &finding.advice {
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
