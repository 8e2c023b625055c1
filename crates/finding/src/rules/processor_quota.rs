//! `processor-quota`: the CPU quota of a control group was used up, and the threads that issue the I/O waited for its next period.

use super::prelude::*;
use rdsk_analysis::contention::contention;

pub(super) const RULE: Rule = Rule::new("processor-quota", Severity::Uncertain, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| contention(cell).is_some_and(|contention| contention.is_quota()));
    let text = "A cgroup limits the CPU time of rdsk, and the kernel paused it whenever the quota of a period was spent, even with idle \
                CPUs. The figures are those of the quota as much as of the device.";
    let advice = "repeat the run without the quota (cpu.max of the cgroup, cpu.cfs_quota_us with version 1, --cpus of a container), or quote \
                  the quota with the figure";
    let findings = RULE.about_any(&cells, "the CPU quota was spent", text, cited, advice);
    let waits = cells.iter().filter_map(|cell| contention(cell)?.waited_for_quota);
    let Some(most) = waits.max_by(f64::total_cmp) else { return findings };
    let what = format!(
        "the CPU quota of the cgroup held rdsk back: {}, up to {} of the time",
        how_many(&cells),
        percent(most)
    );
    // Held back all the time, it would have done nothing.
    let factor = (most < 1.0).then(|| 1.0 / (1.0 - most));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, factor, what.clone())).collect()
}

fn cited(cell: &CellRecord) -> String {
    let quota = cell.evidence.processor.and_then(|processor| processor.quota).unwrap_or_default();
    let waited = contention(cell).and_then(|contention| contention.waited_for_quota).unwrap_or(0.0);
    cite(
        cell,
        "held back by the quota",
        format_args!(
            "{} of the time, in {} of {} periods",
            percent(waited),
            grouped(quota.throttled_periods),
            grouped(quota.periods)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::super::processor_contended;
    use super::*;
    use crate::fixtures::{self, disk, record, with};
    use rdsk_model::{IoPath, Op, ProcessorUse, QuotaUse, Record};

    const SECOND: u64 = 1_000_000_000;

    /// A second beside programs that use most of the processors; the quota held rdsk back for so long.
    fn held_back(throttled_ns: u64) -> Record {
        let cell = with(fixtures::cell("c", Op::Read, IoPath::Direct, 4096, 10_000, SECOND), |cell| {
            cell.evidence.processor = Some(ProcessorUse {
                interval_ns: SECOND,
                processors: 2,
                user_ns: 3 * SECOND / 2,
                own_user_ns: SECOND / 10,
                own_wait_ns: Some(3 * SECOND / 4),
                quota: Some(QuotaUse { periods: 10, throttled_periods: 9, throttled_ns }),
                ..ProcessorUse::default()
            });
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_where_the_group_was_held_back_and_not_where_others_were_in_the_way() {
        let held = held_back(3 * SECOND / 4);
        let finding = fires(RULE, &held);
        assert_eq!(
            finding.evidence,
            ["sequential direct 4K reads: held back by the quota = 75.0% of the time, in 9 of 10 periods"]
        );
        assert!(
            finding
                .effect
                .is_some_and(|effect| effect.factor.is_some_and(|factor| (factor - 4.0).abs() < 1e-9))
        );
        silent(processor_contended::RULE, &held);
        let free = held_back(SECOND / 100);
        silent(RULE, &free);
        fires(processor_contended::RULE, &free);
        let mut without = held;
        without.cells[0].evidence.processor.as_mut().unwrap().quota = None;
        silent(RULE, &without);
    }
}
