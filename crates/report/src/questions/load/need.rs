//! The answer to a need: PASS, FAIL or UNSURE for each threshold, with the figure, its interval and what would settle it.

use super::sizes;
use crate::figures;
use crate::page::{Page, Tone};
use rdsk_analysis::need::{Judged, Outcome, judge, outcome as outcome_of};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{Need, Statistic, Subject, Threshold};
use rdsk_units::{Nanos, count, grouped, percent};

/// The answer to a need, threshold by threshold.
pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, need: &Need) {
    let judged = judge(analysis);
    page.blank();
    let outcome = outcome_of(&judged);
    let tone = match outcome {
        Outcome::Exempt | Outcome::Pass => Tone::Plain,
        Outcome::Unsure => Tone::Warning,
        Outcome::Fail => Tone::Error,
    };
    page.sentence(tone, format!("{} ", outcome.as_str()), format!("{}: {}", need.name, need.title));
    let shared = shared_doubt(&judged).map(str::to_owned);
    for mut judged in judged {
        if shared.is_some() {
            judged.doubt = None;
        }
        page.sentence(Tone::Plain, format!("  {:<7} ", judged.outcome.as_str()), answer(&judged));
    }
    if let Some(doubt) = shared {
        page.sentence(Tone::Plain, "  Of all of these: ", doubt);
    }
    let ours = if need.job_is_ours { "; the job is rdsk's choice" } else { "" };
    page.sentence(Tone::Plain, "  Source ", format!("({}{ours}): {}", need.strength, need.source));
    if !need.remark.is_empty() {
        page.sentence(Tone::Plain, "  Note: ", need.remark.clone());
    }
}

/// What makes every one of several thresholds unsure.
fn shared_doubt<'a>(judged: &'a [Judged<'_>]) -> Option<&'a str> {
    let (first, others) = judged.split_first()?;
    let is_shared = !others.is_empty() && others.iter().all(|judged| judged.doubt == first.doubt);
    first.doubt.as_deref().filter(|_| is_shared)
}

/// One threshold, its figure and what it rests on.
fn answer(judged: &Judged<'_>) -> String {
    let Threshold { statistic, of: subject, job, .. } = judged.threshold;
    let name = match judged.threshold.statistic {
        Statistic::ShareOver => {
            let over = judged.threshold.over_ns.map_or(String::new(), |ns| Nanos(ns).to_string());
            format!(
                "share of {} above {over}{}",
                subject_in_words(judged, *subject),
                period(judged.threshold)
            )
        }
        Statistic::TimeOver => {
            let over = judged.threshold.over_ns.map_or(String::new(), |ns| Nanos(ns).to_string());
            format!(
                "sum of the {} above {over}{}",
                subject_in_words(judged, *subject),
                period(judged.threshold)
            )
        }
        Statistic::OpsPerS => format!("{} per second", subject_in_words(judged, *subject)),
        Statistic::LowestBytesPerS => {
            format!("bandwidth of {} in the worst {}", subject_in_words(judged, *subject), shortest(judged))
        }
        Statistic::BytesPerS => format!("bandwidth of {}", subject_in_words(judged, *subject)),
        Statistic::Size => "size of the device".to_owned(),
        Statistic::Max => format!("longest of the {}", subject_in_words(judged, *subject)),
        Statistic::Mean | Statistic::P50 | Statistic::P99 | Statistic::P999 => {
            format!("{statistic} of {}", subject_in_words(judged, *subject))
        }
    };
    let mark = match (judged.threshold.at_most, judged.threshold.at_least) {
        (Some(most), _) => format!("≤ {}", published(*statistic, most)),
        (None, Some(least)) => format!("≥ {}", published(*statistic, least)),
        (None, None) => String::new(),
    };
    if *statistic == Statistic::Size {
        let size = judged.figure.as_ref().map(|figure| amount(*statistic, figure.value));
        return format!("{name} {mark}: {}", size.or(judged.doubt.clone()).unwrap_or_default());
    }
    let mut text = format!("{name} {mark} ({job})");
    if let Some(figure) = &judged.figure {
        text.push_str(&format!(": {}", amount(*statistic, figure.value)));
        if let (Some(low), Some(high)) = (figure.low, figure.high) {
            text.push_str(&format!(" ({}–{})", amount(*statistic, low), amount(*statistic, high)));
        }
        text.push_str(&format!(", {} {subject}", grouped(figure.ops)));
        if let Some(requests) =
            judged.job.and_then(|job| job.writes.as_ref()).filter(|_| *subject != Subject::Reads)
        {
            text.push_str(&format!(" of {}", sizes(requests)));
        }
    }
    if let Some(doubt) = &judged.doubt {
        text.push_str(&format!("; {doubt}"));
    }
    if let Some(factor) = judged.longer {
        text.push_str(&format!("; {factor:.0} times the --budget would settle it"));
    }
    text
}

/// How often a threshold holds.
fn period(threshold: &Threshold) -> String {
    threshold.each_ns.map_or(String::new(), |ns| format!(" in each {}", Nanos(ns)))
}

/// What the lowest bandwidth is of.
fn shortest(judged: &Judged<'_>) -> &'static str {
    if judged.is_by_second { "second" } else { "tenth of the time" }
}

fn subject_in_words(judged: &Judged<'_>, subject: Subject) -> String {
    match (subject, judged.job.and_then(|job| job.flush)) {
        (Subject::Flushes, Some(flush)) => format!("{} calls", flush.call),
        _ => subject.to_string(),
    }
}

/// A threshold in the units of those who published it: a bandwidth of whole megabytes as such.
fn published(statistic: Statistic, value: f64) -> String {
    let is_bandwidth = matches!(statistic, Statistic::BytesPerS | Statistic::LowestBytesPerS);
    if is_bandwidth && value % 1e5 == 0.0 {
        return format!("{} MB/s ({})", value / 1e6, words::rate(value));
    }
    amount(statistic, value)
}

/// A value of a statistic with its unit.
fn amount(statistic: Statistic, value: f64) -> String {
    match statistic {
        Statistic::OpsPerS => format!("{}/s", count(value)),
        Statistic::BytesPerS | Statistic::LowestBytesPerS => words::rate(value),
        Statistic::Size => format!("{} GB", figures::significant(value / 1e9)),
        Statistic::ShareOver => percent(value),
        Statistic::Mean
        | Statistic::P50
        | Statistic::P99
        | Statistic::P999
        | Statistic::Max
        | Statistic::TimeOver => words::mean_nanos(value),
    }
}

/// The answer in a sentence, with the threshold that decides.
pub(super) fn sentence(analysis: &Analysis<'_>, need: &Need) -> Option<String> {
    let judged = judge(analysis);
    let outcome = outcome_of(&judged);
    let decides = judged.iter().find(|judged| judged.outcome == outcome)?;
    Some(format!("{}: {}: {}", outcome.as_str(), need.title, answer(decides)))
}
