//! What matters most: the weightiest findings, each with its figure and what to do. It adds nothing to them, and says how
//! many it leaves out.

use super::{Limits, ranking};
use crate::findings::advice;
use crate::page::{Page, Tone};
use rdsk_analysis::words::{figure, sentence};
use rdsk_model::{Confidence, Finding, Record, Stake};

pub(super) fn draw(page: &mut Page, record: &Record, limits: &Limits) {
    if record.findings.is_empty() {
        return;
    }
    page.heading("What matters here");
    let ranked = ranking::ranked(record);
    let shown = ranked.len().min(limits.findings);
    for (index, finding) in ranked[..shown].iter().enumerate() {
        let tone = if finding.stake() == Stake::Figure { Tone::Warning } else { Tone::Plain };
        page.wordings(tone, format!("{} ", index + 1), wordings(record, finding), limits.finding_lines);
    }
    let answers = record.findings.iter().filter(|finding| ranking::is_answer(finding)).count();
    let others = record.findings.len() - shown - answers;
    match (shown, others) {
        (_, 0) => {}
        (0, _) => page.line(format!("  nothing; {others} remarks: --details")),
        _ => page.line(format!("  and {others} more: --details")),
    }
}

/// The clause with its figure, then the advice: whole, its first part, or none of it.
fn wordings(record: &Record, finding: &Finding) -> Vec<String> {
    let what = sentence(&clause(finding));
    let (Some(advice), Some(named)) = (&finding.advice, advice(record, finding)) else { return vec![what] };
    // The name of a target keeps its spelling.
    let name = named.strip_suffix(advice.as_str()).unwrap_or_default();
    let first = advice.split("; ").next().unwrap_or(advice);
    vec![format!("{what} {name}{}", sentence(advice)), format!("{what} {name}{}", sentence(first)), what]
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
