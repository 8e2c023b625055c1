//! `unfair-streams`: streams with the same workload get unequal shares.

use super::common::{MAX_CITED, cite, reached_device};
use super::{Needs, Rule};
use rdsk_analysis::comparison::{Evenness, UNFAIR};
use rdsk_analysis::scale::{Point, StreamShare, name};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{Finding, Severity, Stake};

pub(super) const RULE: Rule = Rule::new("unfair-streams", Severity::Cause, Needs::Counters, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let grids = analysis.scale();
    let points = grids.iter().flat_map(|grid| &grid.lines).flat_map(|line| &line.points);
    let unfair: Vec<(&Point<'_>, Evenness)> =
        points.filter_map(|point| Some((point, unfairness(point)?))).collect();
    let Some((worst, jain)) = unfair.iter().min_by(|one, other| one.1.mean.total_cmp(&other.1.mean)) else {
        return Vec::new();
    };
    let (slow, fast) = ends(worst);
    let by_target =
        worst.targets.len() > 1 && worst.targets.iter().all(|share| is_fair_on(worst, share.target));
    let why = if by_target {
        let each: Vec<String> = worst
            .targets
            .iter()
            .map(|share| {
                format!(
                    "{} on {}",
                    words::plural(share.streams as u64, "stream"),
                    name(analysis, share.target)
                )
            })
            .collect();
        format!(
            "Streams on the same target get equal shares, but the targets differ: {}.",
            words::list(&each)
        )
    } else {
        "Streams on the same target differ: some are served before others.".to_owned()
    };
    vec![
        RULE.finding(
            format!("streams get unequal shares: Jain's index down to {:.2}", jain.mean),
            format!(
                "{} In {} the fastest stream reaches {} and the slowest {}. {why}",
                words::interval(jain.low, jain.high),
                worst.cell.id,
                words::rate(fast),
                words::rate(slow)
            ),
        )
        .effect(
            Stake::Cost,
            Some(fast / slow),
            if slow > 0.0 {
                format!(
                    "the fastest of {} streams gets {} as much as the slowest",
                    worst.count(),
                    words::times(fast / slow)
                )
            } else {
                format!("one of {} streams gets nothing", worst.count())
            },
        )
        .evidence(unfair.iter().take(MAX_CITED).map(|(point, jain)| {
            let (slow, fast) = ends(point);
            let (slow, fast) = (words::rate(slow), words::rate(fast));
            let Evenness { mean, low, high, .. } = jain;
            let range = format!("{mean:.2} ({low:.2} to {high:.2}), slowest {slow}, fastest {fast}");
            cite(point.cell, "Jain's index", range)
        }))
        .advice(if by_target {
            "distribute the streams so that each target has the same number, or use targets of the same speed"
        } else {
            "the total says nothing about the slowest stream; look at the streams in the Record"
        })
        .cells(unfair.iter().map(|(point, _)| point.cell)),
    ]
}

/// Jain's index when it is low because of the device, and not because some streams started earlier.
fn unfairness(point: &Point<'_>) -> Option<Evenness> {
    point.fairness.filter(|fairness| !fairness.has_ramp && reached_device(point.cell))?;
    point.evenness.filter(Evenness::is_unfair)
}

fn whole<'a>(point: &'a Point<'_>) -> impl Iterator<Item = &'a StreamShare> {
    point.streams.iter().filter(|stream| !point.failed.contains(&stream.index))
}

/// The slowest and the fastest rate.
fn ends(point: &Point<'_>) -> (f64, f64) {
    whole(point).fold((f64::INFINITY, 0.0), |(slow, fast), stream| {
        (stream.bytes_per_s.min(slow), stream.bytes_per_s.max(fast))
    })
}

fn is_fair_on(point: &Point<'_>, target: u32) -> bool {
    let rates: Vec<f64> =
        whole(point).filter(|stream| stream.target == target).map(|stream| stream.bytes_per_s).collect();
    rates.len() < 2 || rdsk_stats::jain(&rates) >= UNFAIR
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, in_rounds, record, with};
    use rdsk_model::{Experiment, IoPath, Op, Record, StreamResult};

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
                    }
                };
                cell.result.visits[0].streams = rates.iter().enumerate().map(stream).collect();
            });
        record(vec![disk()], vec![in_rounds(one)])
    }

    #[test]
    fn fires_where_one_has_most_of_it() {
        let finding = fires(RULE, &of(&[10, 40], 0));
        assert_eq!(finding.title, "streams get unequal shares: Jain's index down to 0.74");
        assert!(finding.text.starts_with("The 95 % interval is 0.74 to 0.74. In scale"), "{}", finding.text);
        assert!(finding.text.contains("40.0 MiB/s and the slowest 10.0 MiB/s"), "{}", finding.text);
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
