//! `processor-contended`: other programs used the processors, and the threads that issue the I/O waited for one.

use super::prelude::*;
use rdsk_analysis::contention::{Contention, contention};

pub(super) const RULE: Rule = Rule::new("processor-contended", Severity::Uncertain, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| contention(cell).is_some_and(|contention| contention.is_much()));
    let is_of_programs =
        cells.iter().any(|cell| contention(cell).is_some_and(|contention| contention.is_waited_for()));
    let (cause, advice) = if is_of_programs {
        (
            "The threads that issue the I/O waited for a CPU that other programs or virtual machines were using.",
            "stop other CPU load and repeat the run, or pin rdsk to CPUs of its own",
        )
    } else {
        (
            "The hypervisor took the CPUs of this virtual machine away for a part of the time (steal).",
            "repeat the run when the host is less busy, or on a machine whose CPUs are its own",
        )
    };
    let text = format!(
        "{cause} Each completion is noticed late and the next I/O issued late, so the figures are worse than the device's, most of all \
         at QD1."
    );
    let findings = RULE.about_any(&cells, "busy CPU", text, cited, advice);
    let Some((most, what)) = most(&cells) else { return findings };
    // Without a processor all the time, it would have done nothing.
    let factor = (most < 1.0).then(|| 1.0 / (1.0 - most));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, factor, what.clone())).collect()
}

/// The largest share of the time that is lost, and who took it; `None` where what was lost is not counted.
fn most(cells: &[&CellRecord]) -> Option<(f64, String)> {
    let contentions: Vec<Contention> = cells.iter().filter_map(|cell| contention(cell)).collect();
    let waited = contentions
        .iter()
        .filter(|contention| contention.is_waited_for())
        .filter_map(|contention| contention.waited_for_others);
    let stolen =
        contentions.iter().filter(|contention| contention.is_stolen()).map(|contention| contention.steal);
    let many = how_many(cells);
    match (waited.max_by(f64::total_cmp), stolen.max_by(f64::total_cmp)) {
        (Some(waited), stolen) => {
            let taken = stolen.map(|share| format!("; the hypervisor took up to {}", percent(share)));
            let what = format!(
                "busy CPU: {many}, waiting up to {} of the time{}",
                percent(waited),
                taken.unwrap_or_default()
            );
            Some((stolen.map_or(waited, |stolen| waited.max(stolen)), what))
        }
        (None, Some(stolen)) => {
            let share = percent(stolen);
            Some((stolen, format!("busy CPU: the hypervisor took it up to {share} of the time, {many}")))
        }
        (None, None) => None,
    }
}

fn cited(cell: &CellRecord) -> String {
    let Some(contention) = contention(cell) else { return cite(cell, "CPUs", "not counted") };
    let waited = contention.waited.map(|share| format!("{} of the time of our threads", percent(share)));
    let pressure =
        contention.pressure.map(|share| format!(", tasks waited (PSI) = {} of the time", percent(share)));
    let steal = if contention.steal > 0.0 {
        format!(", steal = {}", percent(contention.steal))
    } else {
        String::new()
    };
    let others = percent(contention.others);
    cite(
        cell,
        "waited for a CPU",
        format_args!(
            "{}, used by other programs = {others} of all CPUs{steal}{}",
            waited.unwrap_or_else(|| "not counted".into()),
            pressure.unwrap_or_default()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
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
                "sequential direct 4K reads: waited for a CPU = 20.0% of the time of our threads, used by other programs = 75.0% of all CPUs, tasks waited (PSI) = 20.0% of the time"
            ]
        );
        let effect = finding.effect.unwrap();
        assert!(effect.text.contains(", waiting up to 18."), "{}", effect.text);
        silent(RULE, &record(vec![disk()], vec![read(0, SECOND / 5)]));
        silent(RULE, &record(vec![disk()], vec![read(3 * SECOND / 2, SECOND / 1000)]));
    }

    /// No thread waited by the count of the virtual machine's kernel, and no program of it was in the way.
    #[test]
    fn what_a_hypervisor_took_is_not_put_on_other_programs() {
        let stolen = |share: u64, others_ns: u64, wait_ns: u64| {
            let cell = with(read(others_ns, wait_ns), |cell| {
                cell.evidence.processor.as_mut().unwrap().steal_ns = 2 * SECOND / 100 * share;
            });
            let finding = fires(RULE, &record(vec![disk()], vec![cell]));
            assert_eq!(finding.text.starts_with("The hypervisor took"), wait_ns == 0, "{}", finding.text);
            finding.effect.unwrap()
        };
        let alone = stolen(8, 0, 0);
        assert_eq!(
            alone.text,
            "busy CPU: the hypervisor took it up to 8.0% of the time, sequential direct 4K reads"
        );
        assert!(alone.factor.is_some_and(|factor| (factor - 1.0 / 0.92).abs() < 1e-9), "{alone:?}");
        assert_eq!(stolen(100, 0, 0).factor, None, "it took all of it");
        let both = stolen(8, 3 * SECOND / 2, SECOND / 5);
        assert!(both.text.starts_with("busy CPU: sequential direct 4K reads, waiting"), "{both:?}");
        assert!(both.text.ends_with("; the hypervisor took up to 8.0%"), "{both:?}");
    }
}
