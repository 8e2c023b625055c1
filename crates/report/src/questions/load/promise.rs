//! The highest rate that keeps a promise on latency, and the rates that were tried.

use super::{asked, draw_verdict};
use crate::cells;
use crate::page::{Page, Tone};
use rdsk_analysis::promise::{Held, Promised, Step};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Experiment, LoadJob, Promise, VerdictCode};
use rdsk_units::{Nanos, count, grouped};

/// The rate that keeps a promise; what is not the device's is said first.
pub(super) fn promise_sentence(analysis: &Analysis<'_>, promised: &Promised) -> String {
    let cell = cells::of_experiment(analysis, Experiment::Load).find(is_not_the_devices);
    let source = cell.map_or(String::new(), |cell| format!("{}: ", cells::verdict_word(cell)));
    format!("{source}{}", highest_rate(promised))
}

fn is_not_the_devices(cell: &&CellRecord) -> bool {
    cell.verdict.as_ref().is_some_and(|verdict| verdict.code != VerdictCode::Device)
}

fn highest_rate(promised: &Promised) -> String {
    let (name, most) = (promised.promise.name(), Nanos(promised.promise.at_most_ns));
    let closed =
        promised.closed_per_s.map_or(String::new(), |rate| format!("closed-loop maximum {}/s", count(rate)));
    match (promised.best_per_s(), promised.limit_per_s()) {
        (Some(best), Some(limit)) => {
            format!(
                "{}/s is the most with {name} ≤ {most} (open loop; limit {}/s, {closed})",
                count(best),
                count(limit)
            )
        }
        (Some(best), None) => {
            format!("{name} ≤ {most} holds at {}/s, the most that was tried ({closed})", count(best))
        }
        (None, _) if promised.steps.is_empty() => "no rate was tried, since no request completed".into(),
        (None, limit) if promised.steps.iter().any(|step| step.held == Held::Unknown) => match limit {
            Some(least) => format!(
                "{name} is above {most} at {}/s, and lower rates have too few requests for one ({closed}): give more --budget",
                count(least)
            ),
            None => format!(
                "too few requests for a {name} at the rates that were tried ({closed}): give more --budget"
            ),
        },
        (None, _) => format!("{name} ≤ {most} holds at no rate that was tried ({closed})"),
    }
}

/// The highest rate at which a promise holds, and the rates that were tried.
pub(super) fn draw_promise(page: &mut Page, analysis: &Analysis<'_>, promised: &Promised) {
    page.blank();
    let name = promised.promise.name();
    page.sentence(Tone::Heading, "", promise_sentence(analysis, promised));
    let time = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), words::nanos);
    let row = |step: &Step| {
        vec![
            format!("{}/s", count(step.offered_per_s)),
            format!("{}/s", count(step.reached_per_s)),
            time(step.p50_ns),
            time(step.held_ns),
            why_not(step, promised.promise),
        ]
    };
    let rows: Vec<Vec<String>> = promised.steps.iter().map(row).collect();
    page.table_with(&["offered", "reached", "p50", name.as_str(), ""], &rows, &[4]);
    if let Some(job) =
        cells::of_experiment(analysis, Experiment::Load).find_map(|cell| cell.workload.jobs.first())
    {
        page.sentence(
            Tone::Plain,
            "  ",
            asked(&LoadJob { rate: None, ..job.clone() }).replace(", closed loop", ""),
        );
    }
    let counted = "Latencies count from the arrival of a request, which may wait before it is sent.";
    page.sentence(Tone::Plain, "  ", counted);
    if let Some(cell) = cells::of_experiment(analysis, Experiment::Load).find(is_not_the_devices) {
        draw_verdict(page, cell);
    }
}

/// Why a promise does not hold at a rate; empty where it holds.
fn why_not(step: &Step, promise: Promise) -> String {
    match (step.held, step.held_ns) {
        (Held::Yes, _) => String::new(),
        (Held::Unknown, _) => "too few requests".into(),
        (Held::No, Some(ns)) if ns <= promise.at_most_ns => {
            // With those that waited until the end, the percentile is beyond it.
            format!("{} never sent", grouped(step.unsent))
        }
        (Held::No, _) => "above the target".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_does_not_hold_has_a_reason_that_fits_its_figures() {
        let promise = Promise { percent: 99.0, at_most_ns: 5_000_000 };
        let step = |held_ns, unsent, held| Step {
            offered_per_s: 3450.0,
            reached_per_s: 3410.0,
            p50_ns: Some(161_000),
            held_ns,
            unsent,
            held,
        };
        let cases = [
            (step(Some(3_540_000), 1234, Held::No), "1,234 never sent"),
            (step(Some(5_900_000), 3, Held::No), "above the target"),
            (step(None, 0, Held::No), "above the target"),
            (step(None, 3, Held::Unknown), "too few requests"),
            (step(Some(3_540_000), 3, Held::Yes), ""),
        ];
        for (step, expected) in cases {
            assert_eq!(why_not(&step, promise), expected, "{step:?}");
        }
    }
}
