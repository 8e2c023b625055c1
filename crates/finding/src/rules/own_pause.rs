//! `own-pause`: rdsk itself did not run for a while. What its cells leave out is said, and that it says nothing of the device.

use super::prelude::*;
use rdsk_model::OwnGap;

pub(super) const RULE: Rule = Rule::new("own-pause", Severity::Uncertain, Needs::OwnTimes, check);

fn gaps(cell: &CellRecord) -> impl Iterator<Item = &OwnGap> {
    cell.result.visits.iter().flat_map(|visit| &visit.gaps)
}

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| gaps(cell).next().is_some());
    let gaps_ns: Vec<u64> = cells.iter().flat_map(|cell| gaps(cell)).map(|gap| gap.lasts_ns).collect();
    let total_ns: u64 = gaps_ns.iter().sum();
    let cited = |cell: &CellRecord| {
        let lasts_ns: u64 = gaps(cell).map(|gap| gap.lasts_ns).sum();
        cite(cell, "paused", format_args!("{}", words::nanos(lasts_ns)))
    };
    let pauses = words::plural(gaps_ns.len() as u64, "pause");
    let title = format!("rdsk did not run for {}, in {pauses}", words::nanos(total_ns));
    let why =
        "This process was stopped (SIGSTOP), its cgroup was frozen, or the machine was suspended or paused.";
    let is_offered = |cell: &CellRecord| cell.workload.jobs.iter().any(|job| job.rate.is_some());
    let what = if cells.iter().any(|cell| is_offered(cell)) {
        "Latencies, and rates that were not offered, leave this time out; an offered rate keeps it, and what was due was done \
         afterwards or never."
    } else {
        "Rates and latencies leave this time out."
    };
    // A copy goes on as dd does.
    let is_copy = cells.iter().all(|cell| cell.experiment == Experiment::Dd);
    let checked = " Before anything more was written, rdsk checked again that nothing uses the target.";
    let text = &format!("{why} {what}{}", if is_copy { "" } else { checked });
    let advice = "run it again without the pause if an interval is too wide";
    let findings = RULE.about_any(&cells, &title, text, cited, advice);
    let effect = |finding: Finding| finding.effect(Stake::Cost, None, title.clone());
    findings.into_iter().map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{IoPath, Op, Record, Visit};

    fn with_gaps(lasts_ns: &[u64]) -> Record {
        let cell = with(fixtures::cell("w", Op::Write, IoPath::Direct, 4096, 5000, 500_000_000), |cell| {
            let gaps = lasts_ns.iter().map(|&lasts_ns| OwnGap { at_ns: 7, lasts_ns }).collect();
            cell.result.visits = vec![Visit { gaps, ..Visit::default() }];
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn what_was_left_out_is_said() {
        let finding = fires(RULE, &with_gaps(&[5_000_000_000, 1_000_000_000]));
        assert_eq!(finding.title, "rdsk did not run for 6.00 s, in 2 pauses: sequential direct 4K writes");
        assert_eq!(finding.evidence, ["sequential direct 4K writes: paused = 6.00 s"]);
        silent(RULE, &with_gaps(&[]));
    }
}
