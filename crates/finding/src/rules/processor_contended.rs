//! `processor-contended`: other programs used the processors, and the threads that issue the I/O waited for one.

use super::common::{cells, cite, how_many};
use super::{Needs, Rule};
use rdsk_analysis::Analysis;
use rdsk_analysis::contention::contention;
use rdsk_model::{CellRecord, Finding, Severity, Stake};
use rdsk_units::percent;

pub(super) const RULE: Rule = Rule::new("processor-contended", Severity::Uncertain, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| contention(cell).is_some_and(|contention| contention.is_much()));
    let text = "The threads that issue the I/O were ready to go on and waited for a processor that other programs, or other \
                virtual machines, were using. An I/O is then noticed later than it completes and the next one issued later, so \
                the figures are worse than those of the device, most of all at depth 1.";
    let advice = "stop what else computes and repeat the run, or pin rdsk to processors of its own";
    let found = RULE.about_any(&cells, "the processors were shared", text, cited, advice);
    let waits = cells.iter().filter_map(|cell| contention(cell)?.waited_for_others);
    let Some(most) = waits.max_by(f64::total_cmp) else { return found };
    let what = format!(
        "other programs took the processors: {}, which waited up to {} of the time",
        how_many(&cells),
        percent(most)
    );
    found
        .into_iter()
        .map(|finding| finding.effect(Stake::Figure, Some(1.0 / (1.0 - most)), what.clone()))
        .collect()
}

fn cited(cell: &CellRecord) -> String {
    let Some(seen) = contention(cell) else { return cite(cell, "processors", "not counted") };
    let waited = seen.waited.map(|share| format!("{} of the time of our threads", percent(share)));
    let pressure =
        seen.pressure.map(|share| format!(", tasks waited (PSI) = {} of the time", percent(share)));
    let steal = if seen.steal > 0.0 { format!(", steal = {}", percent(seen.steal)) } else { String::new() };
    let others = percent(seen.others);
    cite(
        cell,
        "waited for a processor",
        format_args!(
            "{}, used by others = {others} of all processors{steal}{}",
            waited.unwrap_or_else(|| "not counted".into()),
            pressure.unwrap_or_default()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{IoPath, Op, ProcessorUse};

    const SECOND: u64 = 1_000_000_000;

    fn read(others_ns: u64, wait_ns: u64) -> CellRecord {
        with(fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
            cell.evidence.processor = Some(ProcessorUse {
                interval_ns: SECOND,
                processors: 2,
                user_ns: others_ns + SECOND / 10,
                own_user_ns: SECOND / 10,
                own_wait_ns: Some(wait_ns),
                pressure_ns: Some(wait_ns),
                ..ProcessorUse::default()
            });
        })
    }

    #[test]
    fn fires_beside_busy_loops_and_is_silent_on_an_idle_machine() {
        let finding = fires(RULE, &record(vec![disk()], vec![read(3 * SECOND / 2, SECOND / 5)]));
        assert_eq!(
            finding.evidence,
            [
                "c: waited for a processor = 20.0 % of the time of our threads, used by others = 75.0 % of all processors, \
              tasks waited (PSI) = 20.0 % of the time"
            ]
        );
        silent(RULE, &record(vec![disk()], vec![read(0, SECOND / 5)]));
        silent(RULE, &record(vec![disk()], vec![read(3 * SECOND / 2, SECOND / 1000)]));
    }
}
