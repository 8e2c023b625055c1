//! `faster-than-rotation`: the kernel calls the disk rotational, and yet it answers random reads, or takes random writes that it is said
//! not to keep in a volatile cache, much sooner than a turn of a platter takes.

use super::prelude::*;
use rdsk_analysis::medium;

pub(super) const RULE: Rule = Rule::new("faster-than-rotation", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let reads = sooner(analysis, Op::Read);
    // Of one write at a time, nothing was put in order, and what a volatile cache takes `write-cache-volatile` tells.
    let mut writes = sooner(analysis, Op::Write);
    writes.retain(|cell| {
        let cache = metrics::first_device(analysis, cell).and_then(|device| device.write_cache.as_deref());
        let is_told = reads.iter().any(|read| read.workload.targets == cell.workload.targets);
        !is_told
            && metrics::wanted_depth(&cell.workload) == 1
            && cache.is_some_and(|cache| cache != "write back")
    });
    let found = [finding(analysis, &reads, &READS), finding(analysis, &writes, &WRITES)];
    found.into_iter().flatten().collect()
}

/// The cells whose device is said to rotate and did not wait for it.
fn sooner<'a>(analysis: &'a Analysis<'_>, op: Op) -> Vec<&'a CellRecord> {
    cells(analysis, |cell| {
        cell.workload.op == op
            && metrics::first_device(analysis, cell).is_some_and(|device| device.rotational == Some(true))
            && medium::sooner_than_platters_ns(cell).is_some()
    })
}

/// What is said of cells that did not wait for platters.
struct Said {
    title: &'static str,
    text: &'static str,
    advice: &'static str,
    /// Before the median.
    effect: &'static str,
}

const READS: Said = Said {
    title: "answered by a cache, or not a disk",
    text: "A disk with turning platters takes milliseconds for a random read. These were answered by a cache (of the disk, \
           a controller, or the host of a virtual machine), or the device is not a disk with platters, whatever its driver \
           says.",
    advice: "read a span larger than every cache, or ask whoever provides the device what is behind it; a wrong flag is \
             set right in queue/rotational",
    effect: "a cache answered, or it is no disk with platters: random reads in",
};

const WRITES: Said = Said {
    title: "taken by a cache, or not a disk",
    text: "A disk with turning platters takes milliseconds for a random write. These were taken by a cache that the kernel does \
           not know of, or that is said to survive a power failure (of a controller, an array, a USB bridge or the host of a \
           virtual machine), or the device is not a disk with platters. If it is a cache, writes become many times slower \
           once it is full.",
    advice: "write for longer than the cache lasts (--budget), and quote the rate of the last part; a wrong flag is set \
             right in queue/rotational",
    effect: "a cache took the writes, or it is no disk with platters: random writes in",
};

fn finding(analysis: &Analysis<'_>, cells: &[&CellRecord], said: &Said) -> Option<Finding> {
    let soonest_ns = cells.iter().filter_map(|cell| medium::sooner_than_platters_ns(cell)).min()?;
    let effect = format!("{} {}", said.effect, words::nanos(soonest_ns));
    let factor = metrics::ratio(medium::SOONER_THAN_PLATTERS_NS, soonest_ns.max(1));
    let cited = |cell: &CellRecord| cited(analysis, cell);
    let finding = RULE.about(cells, said.title, said.text, cited).advice(said.advice);
    Some(finding.confidence(Confidence::Inferred).effect(Stake::Figure, Some(factor), effect))
}

fn cited(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let name = metrics::first_device(analysis, cell)
        .map_or_else(String::new, |device| rdsk_units::printable(&device.name));
    let median = medium::sooner_than_platters_ns(cell).map_or_else(|| "unknown".into(), words::nanos);
    let what = format!("median of random {}s", cell.workload.op);
    cite(cell, &what, format_args!("{median}, {name} queue/rotational = 1"))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, disk, latency, record, with};
    use rdsk_model::{IoPath, Pattern, Target};

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

    #[test]
    fn fires_on_writes_that_a_lasting_cache_took() {
        let cached = |cache: Option<&str>| {
            let mut target = disk();
            target.device.as_mut().unwrap().write_cache = cache.map(Into::into);
            target
        };
        let write = |depth: u32, median_ns: u64| {
            with(fixtures::cell("w", Op::Write, IoPath::Direct, 4096, 10_000, 1_000_000_000), |cell| {
                (cell.workload.pattern, cell.workload.queue_depth) = (Pattern::Random, depth);
                cell.result.latency_ns = Some(latency(10_000, median_ns));
            })
        };
        let finding = fires(RULE, &record(vec![cached(Some("write through"))], vec![write(1, 60_000)]));
        assert_eq!(finding.evidence, ["w: median of random writes = 60.0 µs, sda queue/rotational = 1"]);
        assert!(finding.title.starts_with("taken by a cache"), "{}", finding.title);
        for (cache, depth, median_ns) in [
            (Some("write back"), 1, 60_000),
            (None, 1, 60_000),
            (Some("write through"), 32, 60_000),
            (Some("write through"), 1, 4_000_000),
        ] {
            silent(RULE, &record(vec![cached(cache)], vec![write(depth, median_ns)]));
        }
        let both =
            record(vec![cached(Some("write through"))], vec![random(10_000, 30_000), write(1, 60_000)]);
        assert!(fires(RULE, &both).title.starts_with("answered by a cache"), "the reads say more");
    }
}
