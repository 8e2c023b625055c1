//! What to know: the findings that decide, each with its figure and what to do. It adds nothing to them; `--details` has the others.

use super::{LIMITS, Limits, ranking};
use crate::findings::about;
use crate::page::{Page, Tone};
use rdsk_analysis::words::{figure, sentence};
use rdsk_model::{Confidence, Finding, Record, Stake};

/// Before each bullet.
const BULLET: &str = " • ";

pub(super) fn draw(page: &mut Page, record: &Record, limits: &Limits) {
    let ranked = ranking::ranked(record);
    if ranked.is_empty() {
        return;
    }
    page.heading("What to know");
    for finding in ranked.iter().take(limits.findings) {
        let tone = if finding.stake() == Stake::Figure { Tone::Warning } else { Tone::Plain };
        page.wordings(tone, BULLET, wordings(record, finding), limits.finding_lines);
    }
}

/// The bullets where there is room for all of their words.
pub(crate) fn bullets(record: &Record) -> Vec<String> {
    let ranked = ranking::ranked(record).into_iter().take(LIMITS[0].findings);
    ranked.filter_map(|finding| wordings(record, finding).into_iter().next()).collect()
}

/// The clause with its figure, then the advice: whole, its first part, or none of it.
fn wordings(record: &Record, finding: &Finding) -> Vec<String> {
    let what = sentence(&clause(finding));
    // With several targets, the name of the one that it is about stands before what is said of it.
    let target = about(record, finding);
    let what = if target.is_empty() { what } else { format!("{target}: {what}") };
    let Some(advice) = &finding.advice else { return vec![what] };
    let first = advice.split("; ").next().unwrap_or(advice);
    vec![format!("{what} {}", sentence(advice)), format!("{what} {}", sentence(first)), what]
}

/// `misaligned writes take up to 32.3 × as long (29.3–35.7)`.
pub(crate) fn clause(finding: &Finding) -> String {
    let inferred = if finding.confidence == Confidence::Inferred { " (inferred)" } else { "" };
    let Some(effect) = &finding.effect else { return format!("{}{inferred}", finding.title) };
    let interval = match (effect.low, effect.high) {
        (Some(low), Some(high)) if low.is_finite() && high.is_finite() => {
            format!(" ({}–{})", figure(low), figure(high))
        }
        _ => String::new(),
    };
    format!("{}{interval}{inferred}", effect.text)
}
