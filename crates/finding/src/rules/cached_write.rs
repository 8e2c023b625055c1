//! `cached-write`: direct writes returned clearly before they were stable, so that their rate is that into a cache below. Every visit
//! ends with a flush and the next one finds that cache empty: no repetition shows the rate behind it, only a longer visit does.

use super::prelude::*;
use rdsk_analysis::settling::Settling;

pub(super) const RULE: Rule = Rule::new("cached-write", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // What stops in the page cache has a finding of its own. The many cells of the align table write a few pages each, and a copy's
    // page has both times.
    let cells = cells(analysis, |cell| {
        cell.workload.path == IoPath::Direct
            && Experiment::PLANNED.contains(&cell.experiment)
            && cell.experiment != Experiment::Align
            && !metrics::is_of_memory(cell)
            && analysis.settling(cell).is_some()
    });
    let settled = cells.iter().filter_map(|&cell| Some((cell, analysis.settling(cell)?)));
    let Some((cell, worst)) = settled.max_by(|left, right| left.1.factor.total_cmp(&right.1.factor)) else {
        return Vec::new();
    };
    let longer = words::times(worst.factor);
    let text = format!(
        "Of {}, each repeat wrote {} in {} into a cache of the device or below it, and had them on disk after {}: {}. A flush empties \
         that cache after each repeat, so only a longer test shows the rate once it is full.",
        words::test(cell),
        words::bytes(worst.visit_bytes),
        words::nanos(worst.return_ns),
        words::nanos(worst.stable_ns),
        words::rate(worst.bytes_per_s),
    );
    vec![
        RULE.about(&cells, "written into a cache of the device", text, |cell| {
            cited(cell, analysis.settling(cell))
        })
        .advice("quote the rate on disk, or write until the rate settles: rdsk run --sustained")
        .effect(
            Stake::Figure,
            Some(worst.factor),
            format!("direct writes return from a cache; on disk they take up to {longer} as long"),
        ),
    ]
}

fn cited(cell: &CellRecord, settling: Option<Settling>) -> String {
    let value = settling.map_or_else(String::new, |settling| {
        format!(
            "{}, to_return = {}, to_stable = {}, rate on disk = {}",
            words::bytes(settling.visit_bytes),
            words::nanos(settling.return_ns),
            words::nanos(settling.stable_ns),
            words::rate(settling.bytes_per_s)
        )
    });
    cite(cell, "written per repeat", value)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, in_visits, make_durable, record, with};
    use rdsk_model::{Op, Record};

    const MS: u64 = 1_000_000;

    /// Ten visits that write 16 MiB in 100 ms each, stable after so long in all.
    fn written(stable_ns: u64, change: impl FnOnce(&mut CellRecord)) -> Record {
        let cell = with(fixtures::cell("w", Op::Write, IoPath::Direct, 1 << 20, 160, 1000 * MS), |cell| {
            cell.experiment = Experiment::Headline;
            cell.result.to_stable_ns = Some(stable_ns);
            cell.result.visits[0].to_stable_ns = Some(stable_ns);
            cell.evidence.device[0].flushes = Some(10);
        });
        record(vec![disk()], vec![with(in_visits(cell, 10), change)])
    }

    #[test]
    fn fires_where_a_flush_had_much_to_write() {
        let finding = fires(RULE, &written(1600 * MS, |_| {}));
        assert_eq!(finding.title, "written into a cache of the device: sequential 1M writes at QD1");
        assert_eq!(finding.cells, ["w"]);
        assert_eq!(
            finding.evidence,
            [
                "sequential 1M writes at QD1: written per repeat = 16 MiB, to_return = 100 ms, to_stable = 160 ms, rate on disk = 100 MiB/s"
            ]
        );
        assert!(finding.text.contains("each repeat wrote 16 MiB in 100 ms"), "{}", finding.text);
        let effect = finding.effect.unwrap();
        assert!(effect.text.contains("1.60x") && effect.text.chars().count() <= 120, "{}", effect.text);
    }

    #[test]
    fn is_silent_where_the_flush_costs_little_and_where_others_speak() {
        silent(RULE, &written(1050 * MS, |_| {}));
        // A device without a volatile cache is sent no flush: what took so long was no cache.
        silent(RULE, &written(1600 * MS, |cell| cell.evidence.device[0].flushes = Some(0)));
        silent(RULE, &written(1600 * MS, |cell| cell.experiment = Experiment::Align));
        silent(RULE, &written(1600 * MS, |cell| cell.experiment = Experiment::Dd));
        silent(RULE, &written(1600 * MS, |cell| cell.workload.path = IoPath::Buffered));
        // The flush takes no longer than two durable writes.
        let mut slow = written(1600 * MS, |_| {});
        let durable = fixtures::cell("d", Op::Write, IoPath::Direct, 4096, 100, 100 * 40 * MS);
        slow.cells.push(with(durable, make_durable));
        silent(RULE, &slow);
    }
}
