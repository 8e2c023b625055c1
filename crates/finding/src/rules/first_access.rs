//! `first-access`: the first access of each place of a target takes longer than later ones, shown by visits, by I/Os, by the layout of
//! the test file, or by the first run of a copy. It says both rates, and names no cause.

use super::prelude::*;
use rdsk_analysis::contention::contention;
use rdsk_analysis::copy::{self, first_apart, is_warmed};
use rdsk_analysis::first_access::{FirstCost, ShownBy};
use rdsk_model::Copy;

pub(super) const RULE: Rule = Rule::new("first-access", Severity::Uncertain, Needs::OwnTimes, check);

const CAUSES: &str = "A volume restored from a snapshot fetches each place once, a thin disk allocates it, and a cache below the device keeps it.";

/// How many times as long the first run takes at least beside programs that leave no processor free: they delay any run.
const BESIDE_OTHERS: f64 = 10.0;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let costs = analysis.first_costs().iter();
    let of_targets =
        by_key(costs.map(|(cell, cost)| ((&cell.workload.targets, cell.workload.op), (*cell, *cost))));
    let planned = of_targets.iter().map(|((_, op), costs)| of_cells(*op, costs));
    planned.chain(analysis.copies.iter().filter_map(|copy| of_copy(analysis, copy))).collect()
}

fn of_cells(op: Op, costs: &[(&CellRecord, FirstCost)]) -> Finding {
    let (head, cost) = &costs[0];
    let (first, later) = (words::rate(cost.first_bytes_per_s), words::rate(cost.later_bytes_per_s));
    let place = words::bytes(cost.place_bytes);
    let (what, mixed) = match cost.shown_by {
        ShownBy::Layout => ("Laying out the test file, the first write of each place, ran at", ""),
        _ => ("The first access of each place ran at", " The figure of the test mixes both."),
    };
    let text = format!(
        "{what} {first}, later {op}s at {later} ({}, places of {place}).{mixed} {CAUSES}",
        words::test(head)
    );
    let factor = cost.factor();
    RULE.finding(format!("first {op} of a place: {first}, later ones {later}"), text)
        .evidence(costs.iter().take(MAX_CITED).map(|(cell, cost)| cited(cell, cost)))
        .effect(
            Stake::Figure,
            Some(factor),
            format!("the first {op} of each {place} runs at {first}, later ones at {later}: {} as fast", words::times(factor)),
        )
        .advice(
            "quote both rates; to measure the warmed volume alone, read or write all of it once before, as with \
             rdsk stream --rw read --bs 1M over the whole target",
        )
        .cells(costs.iter().map(|(cell, _)| *cell))
}

fn cited(cell: &CellRecord, cost: &FirstCost) -> String {
    let by = match cost.shown_by {
        ShownBy::Visits => "repeats of first accesses",
        ShownBy::Ios => "first I/Os of their places",
        ShownBy::Layout => "layout",
    };
    cite(
        cell,
        by,
        format_args!(
            "{} ({} I/Os), later = {} ({} I/Os)",
            words::rate(cost.first_bytes_per_s),
            rdsk_units::grouped(cost.first_ops),
            words::rate(cost.later_bytes_per_s),
            rdsk_units::grouped(cost.later_ops)
        ),
    )
}

/// A copy whose first run took longer at one of its ends, unless the page cache had the input from then on.
fn of_copy(analysis: &Analysis<'_>, copy: &Copy) -> Option<Finding> {
    let apart = first_apart(copy)?;
    let op = apart.longer_at?;
    let cell = copy::cell(analysis, copy, op)?;
    let is_beside_others =
        contention(cell).is_some_and(|contention| contention.is_much() || contention.is_crowded());
    if (op == Op::Read && is_warmed(copy, cell)) || (is_beside_others && apart.factor() < BESIDE_OTHERS) {
        return None;
    }
    let rate = |ns: f64| words::rate(apart.first.written_bytes as f64 * 1e9 / ns.max(1.0));
    let (first_ns, later) = (apart.first.to_close_ns as f64, rate(apart.later_ns));
    let first = rate(first_ns);
    let text = format!(
        "The first run took {}, later ones {} on average, because its {op}s took longer: they were the first of their places. {CAUSES}",
        words::nanos(apart.first.to_close_ns),
        words::mean_nanos(apart.later_ns),
    );
    let title = format!("first {op} of a place: {first}, later ones {later}");
    let effect = format!("the first run, which {op}s each place first, reaches {first}, later ones {later}");
    Some(
        RULE.finding(title, text)
            .evidence([cite(cell, "copies[].runs[].to_close_ns", format_args!("{first} first, then {later}"))])
            .effect(Stake::Figure, Some(apart.factor()), effect)
            .advice("quote both rates: the first for fresh places, the later one for a warmed volume; the mean is that of the later runs")
            .cells([cell]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::copies;
    use rdsk_analysis::fixtures::rates::{laid_out, steady};
    use rdsk_model::{FirstAccess, ProcessorUse, Record};

    const MIB: u64 = 1 << 20;

    /// Six visits of blocks of 1 MiB, the first two of which are at new places.
    fn run(first: f64, later: f64) -> Record {
        let visits: Vec<Vec<f64>> =
            (0..6).map(|index| steady(20, if index < 2 { first } else { later })).collect();
        let cell = with(laid_out("headline/read/sequential", Op::Read, &visits), |cell| {
            cell.workload.block_bytes = MIB;
            for visit in &mut cell.result.visits {
                visit.ops = visit.bytes / MIB;
            }
            for visit in &mut cell.result.visits[..2] {
                let (ops, bytes) = (visit.ops, visit.bytes);
                let p50_ns = 20_000_000;
                visit.first = Some(FirstAccess {
                    place_bytes: MIB,
                    places: ops,
                    ops,
                    bytes,
                    latency_ns: ops * p50_ns,
                    p50_ns,
                    later_p50_ns: None,
                });
            }
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_on_a_volume_that_is_fetched_place_by_place_and_not_on_a_steady_one() {
        let finding = fires(RULE, &run(49.0, 3072.0));
        assert_eq!(finding.title, "first read of a place: 48.9 MiB/s, later ones 3.00 GiB/s");
        assert!(finding.text.contains("later reads at 3.00 GiB/s"), "{}", finding.text);
        assert!(finding.effect.unwrap().factor.is_some_and(|factor| (factor - 62.7).abs() < 0.2));
        silent(RULE, &run(3000.0, 3072.0));
        silent(RULE, &run(3072.0, 49.0));
    }

    /// Three runs of a copy, beside busy loops on both processors or not.
    #[test]
    fn the_first_run_of_a_copy_has_another_cause_beside_busy_loops() {
        let copied = |times_ns: &[u64], user_ns: u64| {
            let output = with(laid_out("dd/write", Op::Write, &[steady(20, 100.0)]), |cell| {
                cell.evidence.processor = Some(ProcessorUse {
                    interval_ns: 1_000_000_000,
                    processors: 2,
                    user_ns,
                    ..ProcessorUse::default()
                });
            });
            let mut record = record(vec![disk()], vec![output]);
            record.copies = vec![copies::to_file(times_ns)];
            record
        };
        let (five, twenty) =
            ([500_000_000, 100_000_000, 101_000_000], [2_000_000_000, 100_000_000, 101_000_000]);
        fires(RULE, &copied(&five, 0));
        silent(RULE, &copied(&five, 1_900_000_000));
        fires(RULE, &copied(&twenty, 1_900_000_000));
    }

    /// The other explanations of the same rates are not said.
    #[test]
    fn what_first_accesses_explain_has_no_other_finding() {
        let codes = |record: &Record| {
            let of_time = ["drift", "slow-start", "fast-start", "slows-down", "stalls", "passes-differ"];
            let all = crate::findings(&Analysis::of(record));
            let codes: Vec<String> = all.into_iter().map(|finding| finding.code).collect();
            codes
                .into_iter()
                .filter(|code| code == RULE.code || of_time.contains(&code.as_str()))
                .collect::<Vec<_>>()
        };
        assert_eq!(codes(&run(49.0, 3072.0)), [RULE.code]);
    }
}
