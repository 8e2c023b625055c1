//! `direct-vs-buffered`: which of the two paths is faster here, by how much, and what the counters show as the cause.

use super::Rule;
use super::common::{cite, has_verdict};
use super::requests_merged::mean_request;
use crate::{reading, words};
use rdsk_model::{
    CellRecord, Confidence, Estimate, Experiment, Finding, IoPath, Op, Record, Sync, VerdictCode,
};
use rdsk_units::percent;

pub(super) const RULE: Rule = Rule { code: "direct-vs-buffered", check };

/// What a cause must differ by to be named.
const MARKED: f64 = 1.5;
/// Processor time over elapsed time from which copying is named.
const BUSY_CPU: f64 = 0.5;
/// Without an interval, rates within this factor count as equal.
const EQUAL: f64 = 1.1;

fn check(record: &Record) -> Vec<Finding> {
    let measures_path =
        |cell: &&CellRecord| matches!(cell.experiment, Experiment::Paths | Experiment::Stream);
    let direct =
        record.cells.iter().filter(measures_path).filter(|cell| cell.workload.path == IoPath::Direct);
    direct
        .filter_map(|direct| {
            let buffered = record.cells.iter().filter(measures_path).find(|cell| {
                cell.workload.path == IoPath::Buffered
                    && cell.experiment == direct.experiment
                    && direct.workload.differs_only_in_path(&cell.workload)
            })?;
            explain(direct, buffered)
        })
        .collect()
}

fn explain(direct: &CellRecord, buffered: &CellRecord) -> Option<Finding> {
    let (direct_rate, buffered_rate) = (rate(direct)?, rate(buffered)?);
    let op = direct.workload.op;
    let what = match direct.workload.sync {
        Sync::None | Sync::FsyncAtEnd => format!("{op}s"),
        Sync::Dsync => format!("dsync {op}s"),
    };
    let until = if op == Op::Write { ", until stable" } else { "" };
    let (faster, slower, names) = if direct_rate.mean >= buffered_rate.mean {
        ((direct, direct_rate), (buffered, buffered_rate), ("direct", "buffered"))
    } else {
        ((buffered, buffered_rate), (direct, direct_rate), ("buffered", "direct"))
    };
    let (title, text, confidence) = match factor(faster.1, slower.1) {
        None => (
            format!("{what}: direct and buffered are equally fast{until}"),
            equal_text(direct_rate, buffered_rate).into(),
            Confidence::Measured,
        ),
        Some((mean, range)) => {
            let (cause, confidence) = cause(faster.0, slower.0);
            let range =
                range.map_or(String::new(), |(low, high)| format!(" (95 % interval {low:.2} to {high:.2})"));
            (
                format!("{what}: {} is {} as fast as {}{until}", names.0, words::times(mean), names.1),
                format!("The factor is {mean:.2}{range}. {cause}"),
                confidence,
            )
        }
    };
    Some(Finding {
        code: RULE.code.into(),
        title,
        text,
        evidence: vec![counted(direct, direct_rate), counted(buffered, buffered_rate)],
        confidence,
        advice: None,
        cells: vec![direct.id.clone(), buffered.id.clone()],
    })
}

/// The rate that says what the device does: reads as measured, writes until stable. `None` where the cell shows
/// something else than the device, or was not counted.
fn rate(cell: &CellRecord) -> Option<Estimate> {
    use VerdictCode::{Hole, Incomplete, PageCache, Unverified};
    if [Hole, Incomplete, Unverified].iter().any(|&code| has_verdict(cell, code)) {
        return None;
    }
    cell.verdict.as_ref()?;
    match cell.workload.op {
        Op::Read if has_verdict(cell, PageCache) => None,
        Op::Read => cell.result.bytes_per_s,
        Op::Write => {
            let mean = reading::stable_rate(cell)?;
            let (low, high) = spread(cell).unzip();
            Some(Estimate { mean, low, high })
        }
    }
}

/// Slowest and fastest of the visits, each until stable; `None` with fewer than two.
fn spread(cell: &CellRecord) -> Option<(f64, f64)> {
    let rates: Option<Vec<f64>> = cell
        .result
        .visits
        .iter()
        .map(|visit| Some(visit.bytes as f64 / reading::seconds(visit.to_stable_ns.filter(|&ns| ns > 0)?)))
        .collect();
    let rates = rates.filter(|rates| rates.len() >= 2)?;
    Some((rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max)))
}

fn equal_text(a: Estimate, b: Estimate) -> &'static str {
    if a.low.is_some() && b.low.is_some() {
        "The difference lies within the intervals of the two rates: the device decides, not the path."
    } else {
        "The two rates differ by less than 10 %, and one pass each allows no finer answer."
    }
}

/// How many times as fast, with the range that the two intervals allow; `None` when the two are equal.
fn factor(faster: Estimate, slower: Estimate) -> Option<(f64, Option<(f64, f64)>)> {
    let mean = faster.mean / slower.mean;
    match (faster.low, faster.high, slower.low, slower.high) {
        (Some(low), Some(high), Some(slow_low), Some(slow_high)) if slow_low > 0.0 => {
            (low > slow_high).then_some((mean, Some((low / slow_high, high / slow_low))))
        }
        _ => (mean >= EQUAL).then_some((mean, None)),
    }
}

/// The first difference between the two that explains the rate.
fn cause(faster: &CellRecord, slower: &CellRecord) -> (String, Confidence) {
    let more = |of: fn(&CellRecord) -> Option<f64>| {
        Some(of(faster)? / of(slower)?).filter(|factor| *factor >= MARKED)
    };
    let reads = (slower.workload.op == Op::Write).then(|| caused_reads(slower)).flatten();
    if let Some(reads) = reads {
        return (
            format!("The slower path made the device read {} first.", words::bytes(reads)),
            Confidence::Measured,
        );
    }
    let depth = more(depth);
    let size = more(mean_request);
    let ahead = match (faster.workload.path, faster.workload.op) {
        (IoPath::Buffered, Op::Read) => "readahead asks for the next blocks before the program does",
        (IoPath::Buffered, Op::Write) => "writeback sends many blocks at once while the program goes on",
        (IoPath::Direct, _) => {
            "its large blocks go to the device whole or in parts that are in flight together"
        }
    };
    match (depth, size) {
        (Some(depth), size) => {
            let larger =
                size.map_or(String::new(), |size| format!(", in requests {} as large", words::times(size)));
            let text =
                format!("It keeps {} as many requests in flight{larger}: {ahead}.", words::times(depth));
            (text, Confidence::Measured)
        }
        (None, Some(size)) => {
            (format!("Its requests are {} as large: {ahead}.", words::times(size)), Confidence::Measured)
        }
        (None, None) => match cpu_share(slower).filter(|&share| share >= BUSY_CPU) {
            Some(share) => {
                let text = format!(
                    "The requests are alike, but the slower path keeps the processor busy {} of the time: the page \
                     cache copies every byte.",
                    percent(share)
                );
                (text, Confidence::Inferred)
            }
            None => (
                "The requests that the device saw are alike; these counters do not show the cause.".into(),
                Confidence::Inferred,
            ),
        },
    }
}

fn depth(cell: &CellRecord) -> Option<f64> {
    cell.evidence.device.first()?.in_flight_mean.filter(|&depth| depth > 0.0)
}

/// Reads during a write cell, when they are more than a tenth of what was written.
fn caused_reads(cell: &CellRecord) -> Option<u64> {
    let read = cell.evidence.process.read_bytes?;
    (reading::ratio(read, cell.result.bytes.filter(|&bytes| bytes > 0)?) > 0.1).then_some(read)
}

fn cpu_share(cell: &CellRecord) -> Option<f64> {
    Some(reading::ratio(reading::cpu_ns(cell)?, cell.result.elapsed_ns.filter(|&ns| ns > 0)?))
}

fn counted(cell: &CellRecord, rate: Estimate) -> String {
    let op = cell.workload.op;
    let requests =
        reading::device_requests(cell, op).map_or_else(|| "unknown".into(), |count| count.to_string());
    let size = mean_request(cell)
        .map_or(String::new(), |bytes| format!(" of {} KiB", words::figure(bytes / 1024.0)));
    let depth = depth(cell).map_or(String::new(), |depth| format!(", aqu-sz = {}", words::figure(depth)));
    cite(cell, "rate", format_args!("{}, requests = {requests}{size}{depth}", words::rate(rate.mean)))
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, file, kept_in_memory, read_from_memory, record, with};

    fn cells(op: Op, direct_ns: u64, buffered_ns: u64) -> [CellRecord; 2] {
        let cell = |id, path, ns| fixtures::cell(id, op, path, 1 << 20, 64, ns);
        [cell("d", IoPath::Direct, direct_ns), cell("b", IoPath::Buffered, buffered_ns)]
    }

    #[test]
    fn names_the_faster_path_and_the_depth() {
        let [direct, buffered] = cells(Op::Read, 500_000_000, 250_000_000);
        let buffered = with(buffered, |cell| cell.evidence.device[0].in_flight_mean = Some(2.85));
        let finding = fires(RULE, &record(vec![file()], vec![direct, buffered]));
        assert_eq!(finding.title, "reads: buffered is 2.00 × as fast as direct");
        assert_eq!(
            finding.text,
            "The factor is 2.00 (95 % interval 1.96 to 2.04). It keeps 3.00 × as many requests in flight: readahead \
             asks for the next blocks before the program does."
        );
        assert_eq!(finding.confidence, Confidence::Measured);
        assert_eq!(finding.evidence[1], "b: rate = 256.0 MiB/s, requests = 64 of 1024 KiB, aqu-sz = 2.85");
    }

    #[test]
    fn says_when_they_are_equal_or_the_cause_is_hidden() {
        let equal = fires(RULE, &record(vec![file()], cells(Op::Read, 500_000_000, 495_000_000).into()));
        assert!(equal.title.contains("equally fast"), "{}", equal.title);
        let hidden = fires(RULE, &record(vec![file()], cells(Op::Read, 500_000_000, 700_000_000).into()));
        assert!(hidden.text.contains("do not show the cause"), "{}", hidden.text);
        assert_eq!(hidden.confidence, Confidence::Inferred);
        let [direct, buffered] = cells(Op::Read, 500_000_000, 700_000_000);
        let copying = with(buffered, |cell| {
            cell.result.cpu_ns = Some(rdsk_model::CpuTime { user: 0, system: 420_000_000 });
        });
        let copied = fires(RULE, &record(vec![file()], vec![direct, copying]));
        assert!(copied.text.contains("60.0 %"), "{}", copied.text);
    }

    #[test]
    fn compares_writes_until_stable() {
        let [direct, buffered] = cells(Op::Write, 500_000_000, 500_000_000);
        let memory = with(kept_in_memory(buffered, 20_000_000, 1_000_000_000), |cell| {
            cell.evidence.process.read_bytes = Some(32 << 20);
        });
        let finding = fires(RULE, &record(vec![file()], vec![direct.clone(), memory.clone()]));
        assert_eq!(finding.title, "writes: direct is 2.00 × as fast as buffered, until stable");
        assert!(finding.text.contains("read 32 MiB first"), "{}", finding.text);
        let unknown = with(memory, |cell| cell.result.to_stable_ns = None);
        silent(RULE, &record(vec![file()], vec![direct, unknown]));
    }

    #[test]
    fn is_silent_on_figures_of_memory_and_without_a_twin() {
        let [direct, buffered] = cells(Op::Read, 500_000_000, 250_000_000);
        silent(RULE, &record(vec![file()], vec![direct.clone(), read_from_memory(buffered.clone())]));
        silent(RULE, &record(vec![file()], vec![direct.clone()]));
        let larger = with(buffered, |cell| cell.workload.block_bytes = 2 << 20);
        silent(RULE, &record(vec![file()], vec![direct, larger]));
    }
}
