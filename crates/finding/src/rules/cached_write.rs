//! `cached-write`: direct writes returned clearly before they were stable, so that their rate is that into a cache below. Every visit
//! ends with a flush and the next one finds that cache empty: no repetition shows the rate behind it, only a longer visit does.

use super::prelude::*;
use rdsk_analysis::settling::Settling;

pub(super) const RULE: Rule = Rule::new("cached-write", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // What stops in the page cache has a finding of its own. The many cells of the align table write a few pages each, and a copy
    // tells its times itself.
    let cells = cells(analysis, |cell| {
        cell.workload.path == IoPath::Direct
            && Experiment::PLANNED.contains(&cell.experiment)
            && cell.experiment != Experiment::Align
            && !metrics::is_of_memory(cell)
            && analysis.settling(cell).is_some()
    });
    let seen = cells.iter().filter_map(|&cell| Some((cell, analysis.settling(cell)?)));
    let Some((cell, worst)) = seen.max_by(|one, other| one.1.factor.total_cmp(&other.1.factor)) else {
        return Vec::new();
    };
    let longer = words::times(worst.factor);
    let text = format!(
        "The rate is that into a cache of the device, or of what is below it: {} wrote {} a visit in {}, and it was stable only \
         after {}, which is {} until then. A flush ends each visit and empties the cache for the next, so that repeating it does \
         not show the rate once it is full.",
        cell.id,
        words::bytes(worst.visit_bytes),
        words::nanos(worst.return_ns),
        words::nanos(worst.stable_ns),
        words::rate(worst.bytes_per_s),
    );
    vec![
        RULE.about(&cells, "written into a cache", text, |cell| cited(cell, analysis.settling(cell)))
            .advice(
                "quote the rate until stable, or let each visit write several times what a cache may hold: --only headline with a \
                 longer --budget, or rdsk stream with --bytes",
            )
            .effect(
                Stake::Figure,
                Some(worst.factor),
                format!("direct writes return from a cache, and it takes up to {longer} as long until they are stable"),
            ),
    ]
}

fn cited(cell: &CellRecord, seen: Option<Settling>) -> String {
    let value = seen.map_or_else(String::new, |seen| {
        format!(
            "{}, to_return = {}, to_stable = {}, rate until stable = {}",
            words::bytes(seen.visit_bytes),
            words::nanos(seen.return_ns),
            words::nanos(seen.stable_ns),
            words::rate(seen.bytes_per_s)
        )
    });
    cite(cell, "written per visit", value)
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
        assert_eq!(finding.title, "written into a cache: w");
        assert_eq!(finding.cells, ["w"]);
        assert_eq!(
            finding.evidence,
            [
                "w: written per visit = 16 MiB, to_return = 100 ms, to_stable = 160 ms, rate until stable = 100.0 MiB/s"
            ]
        );
        assert!(finding.text.contains("w wrote 16 MiB a visit in 100 ms"), "{}", finding.text);
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
