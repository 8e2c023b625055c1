//! `few-samples`: too few I/Os for the percentile that is asked for, or an interval that stayed wide.

use super::prelude::*;
use rdsk_model::StopReason;

pub(super) const RULE: Rule = Rule::new("few-samples", Severity::Uncertain, Needs::OwnTimes, check);

/// An interval of this margin at the end of the time is worth a word.
const WIDE: f64 = 0.1;
/// I/Os of which a p99 is known.
const MANY: u64 = 1000;
/// Above this margin pages have a word in place of the figure.
const UNSTABLE: f64 = 0.5;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // The operands of a copy say how much it does, and fio's document may lack percentiles that its samples would allow.
    let cells = cells(analysis, |cell| {
        Experiment::PLANNED.contains(&cell.experiment)
            && (lacks_median(cell) || lacks_p99(cell) || is_wide(cell))
    });
    let cited = |cell: &CellRecord| {
        let count = cell.result.latency_ns.as_ref().map_or(0, |latency| latency.count);
        let margin = cell.result.bytes_per_s.and_then(|rate| rate.margin());
        let margin = margin.map_or_else(|| "none".into(), words::plus_minus);
        cite(cell, "I/Os", format_args!("{count}, interval = {margin}"))
    };
    let (varying, few): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| has_many(cell));
    let text = "These tests ended with a margin above ±10%, or with too few I/Os for their percentiles. A p99 needs 1000 I/Os.";
    let of_few = RULE.about_any(&few, "too few samples", text, cited, more_time(&few));
    let text = "The rate differs so much between the repeats of these tests that the margin ended above ±10%. The number of I/Os is not why.";
    let advice = "look for what varies: stalls, other I/O, a cache that fills and empties; longer repeats (--budget) even out what is \
                  shorter than they are";
    let of_varying = RULE.about_any(&varying, "wide margin", text, cited, advice);
    [with_effect(of_few, "too few samples", &few), with_effect(of_varying, "the repeats differ", &varying)]
        .concat()
}

/// Whether a cell has I/Os enough, so that only what varies makes its margin wide.
fn has_many(cell: &CellRecord) -> bool {
    cell.result.latency_ns.as_ref().is_some_and(|latency| latency.count >= MANY)
}

fn with_effect(findings: Vec<Finding>, what: &str, cells: &[&CellRecord]) -> Vec<Finding> {
    let margins = cells.iter().filter_map(|cell| cell.result.bytes_per_s?.margin());
    let Some(widest) = margins.filter(|margin| margin.is_finite()).max_by(f64::total_cmp) else {
        return findings;
    };
    let margins = if widest > UNSTABLE {
        "some of them unstable".to_owned()
    } else {
        format!("with margins up to {}", words::plus_minus(widest))
    };
    let what = format!("{what}: {}, {margins}", how_many(cells));
    findings
        .into_iter()
        .map(|finding| finding.effect(Stake::Cost, Some(1.0 + widest), what.clone()))
        .collect()
}

/// What gives tests more time: a load has no topics to leave out.
pub(super) fn more_time(cells: &[&CellRecord]) -> &'static str {
    if cells.iter().all(|cell| cell.experiment == Experiment::Load) {
        "give more --budget"
    } else {
        "give more --budget, or measure fewer topics with --only"
    }
}

fn lacks_median(cell: &CellRecord) -> bool {
    cell.result.latency_ns.as_ref().is_some_and(|latency| latency.p50.is_none())
}

/// Only where a p99 is the question: the small I/Os of the headline.
fn lacks_p99(cell: &CellRecord) -> bool {
    let workload = &cell.workload;
    cell.experiment == Experiment::Headline
        && (workload.pattern == Pattern::Random || workload.sync == Sync::Dsync)
        && cell.result.latency_ns.as_ref().is_some_and(|latency| latency.p99.is_none())
}

fn is_wide(cell: &CellRecord) -> bool {
    cell.result.stop == StopReason::Budget
        && cell.result.bytes_per_s.and_then(|rate| rate.margin()).is_some_and(|margin| margin > WIDE)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, latency, record, with};
    use rdsk_model::{IoPath, Op, Record};

    fn headline(count: u64, half_width: f64, stop: StopReason) -> Record {
        let cell = with(fixtures::cell("h", Op::Read, IoPath::Direct, 4096, count, 500_000_000), |cell| {
            cell.experiment = Experiment::Headline;
            cell.workload.pattern = Pattern::Random;
            cell.result.latency_ns = Some(latency(count, 1000));
            cell.result.stop = stop;
            let rate = cell.result.bytes_per_s.as_mut().unwrap();
            rate.low = Some(rate.mean * (1.0 - half_width));
            rate.high = Some(rate.mean * (1.0 + half_width));
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_below_a_thousand_samples_and_on_wide_intervals() {
        let finding = fires(RULE, &headline(999, 0.02, StopReason::Budget));
        assert_eq!(finding.evidence, ["random 4K reads at QD1: I/Os = 999, interval = ±2.0%"]);
        let finding = fires(RULE, &headline(999, 0.12, StopReason::Budget));
        assert!(finding.title.starts_with("too few samples"), "{}", finding.title);
    }

    #[test]
    fn many_ios_with_a_wide_margin_are_not_too_few() {
        let finding = fires(RULE, &headline(3_527_689, 0.12, StopReason::Budget));
        assert_eq!(finding.title, "wide margin: random 4K reads at QD1");
        assert!(finding.advice.is_some_and(|advice| advice.starts_with("look for what varies")));
    }

    #[test]
    fn is_silent_on_enough() {
        silent(RULE, &headline(1000, 0.02, StopReason::Precision));
        silent(RULE, &headline(5000, 0.09, StopReason::Budget));
        // A pass of a hundred blocks has no p99, and none is wanted.
        let mut pass = headline(100, 0.02, StopReason::Complete);
        pass.cells[0].experiment = Experiment::Paths;
        silent(RULE, &pass);
    }
}
