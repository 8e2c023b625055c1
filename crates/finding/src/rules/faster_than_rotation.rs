//! `faster-than-rotation`: the kernel calls the disk rotational, and yet it answers random reads, or takes random writes that it is said
//! not to keep in a volatile cache, much sooner than a turn of a platter takes.

use super::prelude::*;
use rdsk_analysis::medium;

pub(super) const RULE: Rule = Rule::new("faster-than-rotation", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let reads = sooner(analysis, Op::Read);
    // Of one write at a time, nothing was put in order, and of what a volatile cache takes `write-cache-volatile` speaks.
    let mut writes = sooner(analysis, Op::Write);
    writes.retain(|cell| {
        let cache = metrics::first_device(analysis, cell).and_then(|device| device.write_cache.as_deref());
        let is_said = reads.iter().any(|read| read.workload.targets == cell.workload.targets);
        !is_said
            && metrics::wanted_depth(&cell.workload) == 1
            && cache.is_some_and(|cache| cache != "write back")
    });
    let findings = [finding(analysis, &reads, &READS), finding(analysis, &writes, &WRITES)];
    findings.into_iter().flatten().collect()
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
    title: "reads too fast for a rotating disk",
    text: "A rotating disk takes milliseconds for a random read. A cache (of the disk, a controller or the host of a virtual machine) \
           answered these, or the device does not rotate, whatever its driver reports.",
    advice: "read a span larger than every cache, or ask the provider of the device what is behind it; correct a wrong flag in \
             queue/rotational",
    effect: "too fast for the rotating disk that the device says it is: random reads take",
};

const WRITES: Said = Said {
    title: "writes too fast for a rotating disk",
    text: "A rotating disk takes milliseconds for a random write. A cache that the kernel does not report as volatile (of a controller, \
           an array, a USB bridge or the host of a virtual machine) took these, or the device does not rotate.",
    advice: "write until the rate settles (rdsk run --sustained) and quote that rate; correct a wrong flag in queue/rotational",
    effect: "too fast for the rotating disk that the device says it is: random writes take",
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
        assert_eq!(
            finding.evidence,
            ["random direct 4K reads: median of random reads = 30.0 µs, sda queue/rotational = 1"]
        );
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
        assert_eq!(
            finding.evidence,
            ["random direct 4K writes: median of random writes = 60.0 µs, sda queue/rotational = 1"]
        );
        assert!(finding.title.starts_with("writes too fast"), "{}", finding.title);
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
        assert!(fires(RULE, &both).title.starts_with("reads too fast"), "the reads say more");
    }
}
