//! `faster-than-rotation`: the kernel calls the disk rotational, and yet it answers random reads much sooner than a turn of a
//! platter takes.

use super::common::{cells, cite, has_verdict, is_simulated};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Confidence, Finding, IoPath, Op, Pattern, Severity, Stake, VerdictCode};

pub(super) const RULE: Rule = Rule::new("faster-than-rotation", Severity::Cause, Needs::OwnTimes, check);

/// The mean wait for the sector alone is 2 ms at 15,000 turns per minute, without moving the heads: half of all random reads
/// take longer. A quarter of that leaves room for short spans and clever scheduling.
const TOO_SOON_NS: u64 = 500_000;
/// Reads from which the median counts.
const MIN_READS: u64 = 100;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        let workload = &cell.workload;
        (workload.op, workload.pattern, workload.path) == (Op::Read, Pattern::Random, IoPath::Direct)
            && has_verdict(cell, VerdictCode::Device)
            && !is_simulated(analysis, cell)
            && metrics::first_device(analysis, cell).is_some_and(|device| device.rotational == Some(true))
            && median_ns(cell).is_some_and(|median_ns| median_ns < TOO_SOON_NS)
    });
    let cited = |cell: &CellRecord| {
        let name = metrics::first_device(analysis, cell)
            .map_or_else(String::new, |device| rdsk_units::printable(&device.name));
        let median = median_ns(cell).map_or_else(|| "unknown".into(), words::nanos);
        cite(cell, "median of random reads", format_args!("{median}, {name} queue/rotational = 1"))
    };
    let text = "A disk with turning platters takes milliseconds for a random read. These were answered by a cache (of the disk, \
                a controller, or the host of a virtual machine), or the device is not a disk with platters, whatever its driver \
                says.";
    let advice = "read a span larger than every cache, or ask whoever provides the device what is behind it; a wrong flag is \
                  set right in queue/rotational";
    let found = RULE.about_any(&cells, "answered by a cache, or not a disk", text, cited, advice);
    let Some(soonest_ns) = cells.iter().filter_map(|cell| median_ns(cell)).min() else { return found };
    let what = format!(
        "a cache answered, or it is no disk with platters: random reads in {}",
        words::nanos(soonest_ns)
    );
    let factor = metrics::ratio(TOO_SOON_NS, soonest_ns.max(1));
    found
        .into_iter()
        .map(|finding| {
            finding.confidence(Confidence::Inferred).effect(Stake::Figure, Some(factor), what.clone())
        })
        .collect()
}

fn median_ns(cell: &CellRecord) -> Option<u64> {
    let latency = cell.result.latency_ns.as_ref().filter(|latency| latency.count >= MIN_READS)?;
    latency.p50
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, latency, record, with};
    use rdsk_model::Target;

    fn random(reads: u64, median_ns: u64) -> CellRecord {
        with(fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 10_000, 1_000_000_000), |cell| {
            cell.workload.pattern = Pattern::Random;
            cell.result.latency_ns = Some(latency(reads, median_ns));
        })
    }

    fn solid() -> Target {
        let mut target = disk();
        target.device.as_mut().unwrap().rotational = Some(false);
        target
    }

    #[test]
    fn fires_on_a_disk_that_needs_no_turn_and_is_silent_on_one_that_does() {
        let finding = fires(RULE, &record(vec![disk()], vec![random(10_000, 30_000)]));
        assert_eq!(finding.evidence, ["r: median of random reads = 30.0 µs, sda queue/rotational = 1"]);
        assert_eq!(finding.confidence, Confidence::Inferred);
        silent(RULE, &record(vec![disk()], vec![random(10_000, 8_000_000)]));
        silent(RULE, &record(vec![disk()], vec![random(99, 30_000)]));
        silent(RULE, &record(vec![solid()], vec![random(10_000, 30_000)]));
        let sequential = with(random(10_000, 30_000), |cell| cell.workload.pattern = Pattern::Sequential);
        silent(RULE, &record(vec![disk()], vec![sequential]));
    }
}
