//! The findings: what the counters explain, with the figures they rest on. It adds nothing to them.

use crate::page::{Page, Tone};
use rdsk_model::{Confidence, Finding, Record};

/// Citations shown per finding; the JSON has them all.
const MAX_SHOWN: usize = 3;

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
    let findings: Vec<&Finding> = record.findings.iter().filter(is_drawn).collect();
    if findings.is_empty() {
        return;
    }
    page.heading("FINDINGS");
    for (index, finding) in findings.into_iter().enumerate() {
        if index > 0 {
            page.blank();
        }
        draw_one(page, finding);
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

fn draw_one(page: &mut Page, finding: &Finding) {
    let inferred = if finding.confidence == Confidence::Inferred { ", inferred" } else { "" };
    page.sentence(Tone::Heading, "  ", format!("{} [{}{inferred}]", finding.title, finding.code));
    page.sentence(Tone::Plain, "    ", &finding.text);
    for line in finding.evidence.iter().take(MAX_SHOWN) {
        page.sentence(Tone::Plain, "    | ", line);
    }
    if finding.evidence.len() > MAX_SHOWN {
        page.line(format!("    | and {} more in the JSON", finding.evidence.len() - MAX_SHOWN));
    }
    if let Some(advice) = &finding.advice {
        page.sentence(Tone::Plain, "    Advice: ", format!("{advice}."));
    }
}
