//! `unfair-streams`: streams with the same workload get unequal shares.

use super::prelude::*;
use rdsk_analysis::comparison::Evenness;
use rdsk_analysis::scale::{Point, name};

pub(super) const RULE: Rule = Rule::new("unfair-streams", Severity::Cause, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let grids = analysis.scale();
    let points = grids.iter().flat_map(|grid| &grid.lines).flat_map(|line| &line.points);
    let unfair: Vec<(&Point<'_>, Evenness)> =
        points.filter_map(|point| Some((point, unfairness(point)?))).collect();
    let Some((worst, jain)) = unfair.iter().min_by(|left, right| left.1.mean.total_cmp(&right.1.mean)) else {
        return Vec::new();
    };
    let by_target = worst.targets.len() > 1 && jain.is_fair_on_each_target();
    let why = if by_target { of_targets(analysis, worst) } else { OF_STREAMS.to_owned() };
    let Evenness { slowest, fastest, .. } = *jain;
    vec![
        RULE.finding(
            format!("streams get unequal shares: evenness down to {:.2}", jain.mean),
            format!(
                "Of {}, the fastest stream reaches {} and the slowest {}, on average over the repeats. {why}",
                words::test(worst.cell),
                words::rate(fastest),
                words::rate(slowest)
            ),
        )
        .effect(
            Stake::Cost,
            (slowest > 0.0).then_some(fastest / slowest),
            if slowest > 0.0 {
                format!(
                    "the fastest of {} streams gets {} as much as the slowest",
                    worst.count(),
                    words::times(fastest / slowest)
                )
            } else {
                format!("one of {} streams gets nothing in each repeat", worst.count())
            },
        )
        .evidence(unfair.iter().take(MAX_CITED).map(|(point, jain)| {
            let Evenness { mean, low, high, slowest, fastest, .. } = *jain;
            let (slowest, fastest) = (words::rate(slowest), words::rate(fastest));
            let range = format!("{mean:.2} ({low:.2} to {high:.2}), slowest {slowest}, fastest {fastest}");
            cite(point.cell, "evenness (Jain's index)", range)
        }))
        .advice(if by_target {
            "distribute the streams so that each target has the same number, or use targets of the same speed"
        } else {
            "look at each stream (rdsk show --json), since the total hides the slowest"
        })
        .cells(unfair.iter().map(|(point, _)| point.cell)),
    ]
}

/// Jain's index when it is low because of the device, and not because some streams started earlier.
fn unfairness(point: &Point<'_>) -> Option<Evenness> {
    point.fairness.filter(|fairness| !fairness.has_ramp && reached_device(point.cell))?;
    let is_worth_it = |evenness: &Evenness| evenness.fastest >= MIN_EFFECT * evenness.slowest;
    point.evenness.filter(|evenness| evenness.is_unfair() && is_worth_it(evenness))
}

const OF_STREAMS: &str = "Streams on the same target differ: some are served before others.";

/// The targets make the difference: how many streams each has.
fn of_targets(analysis: &Analysis<'_>, point: &Point<'_>) -> String {
    let has_several = point.targets.iter().any(|share| share.streams > 1);
    let each: Vec<String> = point
        .targets
        .iter()
        .map(|share| {
            let streams = words::plural(share.streams as u64, "stream");
            format!("{streams} on {}", name(analysis, share.target))
        })
        .collect();
    let differ = if has_several {
        "Streams on the same target get equal shares, but the targets differ"
    } else {
        "The targets differ"
    };
    format!("{differ}: {}.", words::list(&each))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, in_rounds, record, with};
    use rdsk_model::{Experiment, IoPath, Op, Record, StreamResult, Visit};

    fn of(rates: &[u64], step_ns: u64) -> Record {
        let total: u64 = rates.iter().sum();
        let one =
            with(cell("scale/read/1M/n", Op::Read, IoPath::Direct, 1 << 20, total, 1_000_000_000), |cell| {
                cell.experiment = Experiment::Scale;
                cell.workload.streams = u32::try_from(rates.len()).unwrap();
                let stream = |(index, &rate): (usize, &u64)| {
                    let index = u32::try_from(index).unwrap();
                    let start_ns = step_ns * u64::from(index);
                    StreamResult {
                        index,
                        target: 0,
                        start_ns,
                        end_ns: 1_000_000_000,
                        bytes: rate << 20,
                        ops: rate,
                        ..StreamResult::default()
                    }
                };
                cell.result.visits[0].streams = rates.iter().enumerate().map(stream).collect();
            });
        record(vec![disk()], vec![in_rounds(one)])
    }

    #[test]
    fn fires_where_one_has_most_of_it() {
        let finding = fires(RULE, &of(&[10, 40], 0));
        assert_eq!(finding.title, "streams get unequal shares: evenness down to 0.74");
        assert!(
            finding.text.starts_with("Of sequential 1M reads by 2 streams, the fastest"),
            "{}",
            finding.text
        );
        assert!(finding.text.contains("40.0 MiB/s and the slowest 10.0 MiB/s"), "{}", finding.text);
    }

    /// Eight rounds of two streams on each of two targets, with these rates in even and in odd rounds.
    fn on_two_targets(even: [u64; 4], odd: [u64; 4]) -> Record {
        let mut made = of(&even, 0);
        let cell = &mut made.cells[0];
        cell.workload.targets = vec![0, 1];
        let one = cell.result.visits[0].clone();
        cell.result.visits = (0..8_u32)
            .map(|round| {
                let rates = if round % 2 == 0 { even } else { odd };
                let mut visit = Visit { round, bytes: rates.iter().sum::<u64>() << 17, ..one.clone() };
                for (index, (stream, rate)) in visit.streams.iter_mut().zip(rates).enumerate() {
                    stream.target = u32::from(index >= 2);
                    (stream.bytes, stream.start_ns, stream.end_ns) = (rate << 17, 0, 125_000_000);
                }
                visit
            })
            .collect();
        made.targets.push(disk());
        made.targets[1].name = "/dev/sdb".into();
        made
    }

    #[test]
    fn streams_that_take_turns_on_one_target_are_unfair_there_and_targets_that_differ_are_named() {
        let turns = fires(RULE, &on_two_targets([30, 10, 30, 10], [10, 30, 10, 30]));
        assert_eq!(turns.title, "streams get unequal shares: evenness down to 0.80");
        assert!(turns.text.contains("Streams on the same target differ"), "{}", turns.text);
        assert!(turns.text.contains("30.0 MiB/s and the slowest 10.0 MiB/s"), "{}", turns.text);
        let effect = turns.effect.as_ref().unwrap();
        assert_eq!(effect.factor, Some(3.0));
        assert_eq!(effect.text, "the fastest of 4 streams gets 3.00x as much as the slowest");
        assert!(
            turns.evidence[0].ends_with("slowest 10.0 MiB/s, fastest 30.0 MiB/s"),
            "{:?}",
            turns.evidence
        );

        let targets = fires(RULE, &on_two_targets([30, 30, 10, 10], [30, 30, 10, 10]));
        assert!(
            targets.text.contains("equal shares, but the targets differ: 2 streams on "),
            "{}",
            targets.text
        );
        // Even where they change places from round to round.
        let targets = fires(RULE, &on_two_targets([30, 30, 10, 10], [10, 10, 30, 30]));
        assert!(targets.text.contains("but the targets differ: 2 streams on "), "{}", targets.text);
        assert!(targets.text.contains("30.0 MiB/s and the slowest 10.0 MiB/s"), "{}", targets.text);
    }

    #[test]
    fn is_silent_where_shares_are_alike_or_a_ramp_made_them() {
        silent(RULE, &of(&[30, 40], 0));
        silent(RULE, &of(&[40], 0));
        silent(RULE, &of(&[10, 40], 200_000_000));
        let mut short = of(&[10, 40], 0);
        short.cells[0].result.visits.truncate(2);
        silent(RULE, &short);
    }
}
