//! `one-target-limits`: some of several targets are busy all the time or limited by a control group, while the others could
//! do more.

use super::prelude::*;
use rdsk_analysis::scale::{Cause, Limit, Point, name, of_point};

pub(super) const RULE: Rule = Rule::new("one-target-limits", Severity::Cause, Needs::Counters, check);

/// A cell in which some targets were the limit.
struct Hit<'a> {
    op: Op,
    point: &'a Point<'a>,
    cause: Cause,
}

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let points = analysis
        .scale()
        .iter()
        .flat_map(|grid| grid.lines.iter().flat_map(|line| &line.points).map(|point| (grid.op, point)));
    let hits = points.filter_map(|(op, point)| match of_point(analysis, point) {
        Limit::SomeTargets(cause) => Some(((op, cause.targets.clone()), Hit { op, point, cause })),
        _ => None,
    });
    by_key(hits).iter().filter_map(|(_, group)| finding(analysis, group)).collect()
}

/// One finding for the cells of one direction with the same targets; its text is that of the last.
fn finding(record: &Record, group: &[Hit<'_>]) -> Option<Finding> {
    let Hit { op, point, cause } = group.last()?;
    let names: Vec<String> = cause.targets.iter().map(|&target| name(record, target)).collect();
    let what = if names.len() == 1 { "one target is".into() } else { format!("{} targets are", names.len()) };
    Some(RULE
            .finding(
                format!("{what} the limit of {op}s by several streams"),
                format!(
                    "{} can do no more: with {} at {}, {}. Streams on the other targets do not make up for it.",
                    words::list(&names),
                    words::plural(u64::from(point.count()), "stream"),
                    words::fio_size(point.cell.workload.block_bytes),
                    cause.text
                ),
            )
            .evidence(group.iter().flat_map(|hit| hit.cause.evidence.clone()).take(MAX_CITED))
            .confidence(cause.confidence)
            .advice("move more of the load to the other targets, or give this one its own controller or a higher limit")
            .cells(group.iter().map(|hit| hit.point.cell)))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, record, with};
    use rdsk_model::{CellRecord, Confidence, Experiment, IoPath, StreamResult, Target};

    fn pair(busy: [f64; 2]) -> Record {
        let both: CellRecord =
            with(cell("scale/read/1M/2", Op::Read, IoPath::Direct, 1 << 20, 80, 2_000_000_000), |cell| {
                cell.experiment = Experiment::Scale;
                cell.workload.streams = 2;
                cell.workload.targets = vec![0, 1];
                let (bytes, ops) = (40 << 20, 40);
                let stream = |index| StreamResult {
                    index,
                    target: index,
                    start_ns: 0,
                    end_ns: 2_000_000_000,
                    bytes,
                    ops,
                    active_ns: None,
                };
                cell.result.visits[0].streams = vec![stream(0), stream(1)];
                let device = cell.evidence.device.remove(0);
                for (target, busy) in [0, 1].into_iter().zip(busy) {
                    let mut one = device.clone();
                    (one.target, one.name, one.reads, one.read_bytes) =
                        (target, format!("sd{target}"), Some(ops), Some(bytes));
                    crate::fixtures::set_busy(&mut one, busy);
                    cell.evidence.device.push(one);
                }
            });
        let targets = (0..2).map(|index| Target { index, name: format!("/dev/sd{index}"), ..disk() });
        record(targets.collect(), vec![both])
    }

    #[test]
    fn fires_on_one_of_two_and_names_it() {
        let finding = fires(RULE, &pair([0.4, 0.99]));
        assert!(finding.text.starts_with("/dev/sd1 can do no more"), "{}", finding.text);
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn of_a_device_that_may_serve_several_at_once_it_is_inferred() {
        let mut record = pair([0.4, 0.99]);
        assert_eq!(fires(RULE, &record).confidence, Confidence::Measured);
        record.targets[1].device.as_mut().unwrap().rotational = Some(false);
        let finding = fires(RULE, &record);
        assert_eq!(finding.confidence, Confidence::Inferred);
        assert!(finding.text.contains("(inferred: a device that serves several"), "{}", finding.text);
    }

    #[test]
    fn is_silent_where_all_are_alike_or_nearly() {
        silent(RULE, &pair([0.99, 0.98]));
        silent(RULE, &pair([0.4, 0.5]));
        silent(RULE, &pair([0.9, 0.99]));
    }
}
