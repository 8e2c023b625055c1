//! The answer below dd's own line: what a copy really measured, in one sentence, and what that rests on: where the time went,
//! what each end's device saw, the verdicts. Several runs are summed up, and two copies compared.

mod answer;
mod evidence;
mod runs;

pub(crate) use answer::sentence;

use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::Analysis;
use rdsk_analysis::copy::{Inside, Parts, cell, parts};
use rdsk_model::{Copy, Finding, Op, Severity, StableBy, Verdict};
use rdsk_units::Nanos;

/// Parts of the time below this share are left out.
const MIN_SHARE: f64 = 0.005;
/// Findings that are shown; all are in the Record.
const MAX_FINDINGS: usize = 2;
/// Columns of the words before each line.
const LEAD: usize = 8;

/// Why the times of the calls are missing.
const UNKNOWN: &str =
    "read and write are not known, because the processor's counter and the kernel's clock went apart";

/// The answer about the copies of a Record, to be printed below dd's lines.
pub fn copies(analysis: &Analysis<'_>, style: Style) -> String {
    let mut page = Page::default();
    draw_all(&mut page, analysis);
    page.render(style)
}

/// The same as a part of the whole page.
pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    page.heading("DD: what the copy measured");
    draw_all(page, analysis);
}

fn draw_all(page: &mut Page, analysis: &Analysis<'_>) {
    for (index, copy) in analysis.copies.iter().enumerate() {
        if analysis.copies.len() > 1 {
            page.heading(format!("{}  {}", index + 1, copy.operands.join(" ")));
        }
        line(page, Tone::Heading, "rdsk", answer::sentence(analysis, copy));
        let Some(parts) = parts(copy).filter(|_| answer::has_copied(copy)) else { continue };
        if copy.runs.len() > 1 {
            runs::draw(page, analysis, copy);
        }
        line(page, Tone::Plain, "time", time(&parts));
        for (op, name) in [(Op::Read, "input"), (Op::Write, "output")] {
            line(page, Tone::Plain, name, evidence::of_end(analysis, copy, op));
        }
        for (op, name) in [(Op::Read, "reads"), (Op::Write, "writes")] {
            if let Some(verdict) = cell(analysis, copy, op).and_then(|cell| cell.verdict.as_ref()) {
                line(page, Tone::Plain, name, verdict_line(verdict));
            }
        }
    }
    if let [first, second] = &analysis.copies[..] {
        runs::draw_comparison(page, analysis, first, second);
    }
    // What makes a figure invalid stands in its verdict.
    let further = |finding: &&Finding| {
        matches!(finding.severity, Severity::Uncertain | Severity::Cause | Severity::Cost)
    };
    for finding in analysis.findings.iter().filter(further).take(MAX_FINDINGS) {
        let advice = finding.advice.as_ref().map_or_else(String::new, |advice| format!("; {advice}"));
        line(page, Tone::Plain, "also", format!("{}{advice}", finding.title));
    }
}

/// `page-cache: memory took the data: …`.
pub(crate) fn verdict_line(verdict: &Verdict) -> String {
    format!("{}: {}", verdict.code, verdict.text)
}

fn line(page: &mut Page, tone: Tone, lead: &str, text: String) {
    page.sentence(tone, format!("{lead:LEAD$}"), text);
}

/// Where the time went; what took none is left out.
fn time(parts: &Parts) -> String {
    let share = |ns: f64| if parts.total_ns > 0.0 { ns / parts.total_ns } else { 0.0 };
    let inside = |part: fn(Inside) -> f64| parts.inside.map_or(0.0, part);
    let named = [
        ("read", inside(|inside| inside.read_ns)),
        ("write", inside(|inside| inside.write_ns)),
        ("flush", parts.flush_ns),
        ("close", parts.close_ns),
        ("dd itself", inside(|inside| inside.other_ns)),
    ];
    let unknown = parts.inside.is_none().then(|| UNKNOWN.to_owned());
    let named = named
        .into_iter()
        .filter(|&(_, ns)| share(ns) >= MIN_SHARE)
        .map(|(name, ns)| format!("{name} {} ({})", nanos(ns), rdsk_units::percent(share(ns))));
    let of_total: Vec<String> = named.chain(unknown).collect();
    let stable = match (parts.later_ns, parts.stable_by) {
        (Some(_), StableBy::Operands) => "; the data was stable then, as the operands ask".into(),
        (Some(later), _) => format!("; stable {} later, by an fdatasync of rdsk", nanos(later)),
        (None, _) => String::new(),
    };
    let (total, open) = (nanos(parts.total_ns), nanos(parts.open_ns));
    format!("{total}: {}{stable}; opening both ends took {open} before", of_total.join(", "))
}

fn nanos(ns: f64) -> String {
    Nanos(rdsk_analysis::metrics::whole(ns.round())).to_string()
}

/// The name of the device behind an end, or of the filesystem that keeps the file in memory.
fn storage_name(analysis: &Analysis<'_>, copy: &Copy, op: Op) -> Option<String> {
    let cell = cell(analysis, copy, op)?;
    let target = rdsk_analysis::metrics::first_target(analysis, cell)?;
    let device = target.device.as_ref().map(|device| device.name.clone());
    device.or_else(|| target.filesystem.as_ref().map(|filesystem| filesystem.kind.clone()))
}

#[cfg(test)]
mod tests;
