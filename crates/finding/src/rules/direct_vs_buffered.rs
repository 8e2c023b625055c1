//! `direct-vs-buffered`: which of the two paths is faster, by how much, and which cause the counters show.

use super::common::{cite, has_verdict};
use super::path_cause::{self as cause, depth, request_bytes};
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{
    CacheState, CellRecord, Confidence, Estimate, Experiment, Finding, IoPath, Op, Severity, Sync,
    VerdictCode,
};

pub(super) const RULE: Rule =
    Rule::new("direct-vs-buffered", Severity::Cause, Needs::Counters, check).shown_on(Experiment::Paths);

/// Rates within this factor count as equal when their intervals overlap.
const EQUAL: f64 = 1.1;
/// Rates within this factor count as equal even when their intervals do not overlap: 5 % decides nothing.
const SAME: f64 = 1.05;
/// Relative half-width above which an interval is too wide to call two rates equal.
const WIDE: f64 = 0.1;

/// Without intervals, a factor that is not chance: single passes differed by up to 1.6 on a busy machine.
const PLAIN: f64 = 2.0;

/// How two rates compare.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    /// The same within the precision of the figures.
    Equal,
    /// The intervals overlap and are too wide, or the means too far apart, to call them equal.
    Unclear,
    /// One is `mean` times as fast; the range follows from the two intervals.
    Faster { mean: f64, range: Option<(f64, f64)> },
}

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let measures_path =
        |cell: &&CellRecord| matches!(cell.experiment, Experiment::Paths | Experiment::Stream);
    let direct =
        analysis.cells.iter().filter(measures_path).filter(|cell| cell.workload.path == IoPath::Direct);
    direct
        .filter_map(|direct| {
            let buffered = analysis.cells.iter().filter(measures_path).find(|cell| {
                // The warm cell measures memory and is not comparable.
                cell.workload.path == IoPath::Buffered
                    && cell.workload.cache != CacheState::Warm
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
    let (title, text, confidence) = match compare(faster.1, slower.1) {
        Comparison::Equal => (
            format!("{what}: direct and buffered are equally fast{until}"),
            equal_text(direct_rate, buffered_rate).into(),
            Confidence::Measured,
        ),
        Comparison::Unclear => (
            format!("{what}: direct and buffered cannot be told apart{until}"),
            unclear_text(direct_rate, buffered_rate),
            Confidence::Measured,
        ),
        Comparison::Faster { mean, range } => {
            let (cause, confidence) = cause::of(faster.0, slower.0);
            let range = range.map_or(String::new(), |(low, high)| {
                format!("The 95 % interval is {} to {}. ", words::figure(low), words::figure(high))
            });
            (
                format!("{what}: {} is {} as fast as {}{until}", names.0, words::times(mean), names.1),
                format!("{range}{cause}"),
                confidence,
            )
        }
    };
    Some(
        RULE.finding(title, text)
            .evidence([counted(direct, direct_rate), counted(buffered, buffered_rate)])
            .confidence(confidence)
            .cells([direct, buffered])
            .shown_on(direct.experiment),
    )
}

/// The rate of the device: reads as measured, writes until stable. `None` when the cell did not measure the device, or was
/// not counted.
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
            let mean = metrics::stable_rate(cell)?;
            let (low, high) = spread(cell, mean).unzip();
            Some(Estimate { mean, low, high })
        }
    }
}

/// The 95 % interval of the mean rate until stable. If the data was stable when the last write returned, it is as wide as
/// that of the windows; otherwise it comes from the passes and needs at least two.
fn spread(cell: &CellRecord, mean: f64) -> Option<(f64, f64)> {
    let result = &cell.result;
    let is_stable_at_return =
        metrics::ratio(result.to_stable_ns?, result.to_return_ns.filter(|&ns| ns > 0)?) <= SAME;
    let of_windows = result.bytes_per_s.and_then(|rate| rate.half_width()).filter(|_| is_stable_at_return);
    let of_passes = || {
        let rate =
            |ns: Option<u64>, bytes: u64| Some(bytes as f64 / metrics::seconds(ns.filter(|&ns| ns > 0)?));
        let rates: Option<Vec<f64>> =
            result.visits.iter().map(|visit| rate(visit.to_stable_ns, visit.bytes)).collect();
        Some(rdsk_stats::mean_interval(&rates?)?.half_width_rel())
    };
    let half_width = of_windows.or_else(of_passes).filter(|half| half.is_finite())?;
    Some((mean * (1.0 - half_width).max(0.0), mean * (1.0 + half_width)))
}

fn equal_text(a: Estimate, b: Estimate) -> &'static str {
    match (a.low, a.high, b.low, b.high) {
        (Some(a_low), Some(a_high), Some(b_low), Some(b_high)) if a_low <= b_high && b_low <= a_high => {
            "The intervals of the two rates overlap."
        }
        (Some(_), Some(_), Some(_), Some(_)) => "The two rates differ by less than 5 %.",
        _ => "The two rates differ by less than 10 %, and one pass each cannot resolve less.",
    }
}

/// `106 against 485 MiB/s, ±90 %`: the wider of the two intervals.
fn unclear_text(direct: Estimate, buffered: Estimate) -> String {
    let mebibytes = |rate: Estimate| words::figure(rate.mean / f64::from(1 << 20));
    let (direct_figure, buffered_figure) = (mebibytes(direct), mebibytes(buffered));
    match direct.half_width().zip(buffered.half_width()) {
        Some((one, other)) => format!(
            "{direct_figure} against {buffered_figure} MiB/s, {}: the intervals overlap, and only more passes can tell \
             them apart.",
            words::plus_minus(one.max(other))
        ),
        None => format!(
            "{direct_figure} against {buffered_figure} MiB/s from too few passes for an interval: the difference may be \
             chance."
        ),
    }
}

fn compare(faster: Estimate, slower: Estimate) -> Comparison {
    let mean = faster.mean / slower.mean;
    let is_wide = |rate: Estimate| rate.half_width().is_some_and(|half| half > WIDE);
    match (faster.low, faster.high, slower.low, slower.high) {
        (Some(low), Some(high), Some(slow_low), Some(slow_high)) => {
            if low > slow_high && mean < SAME {
                Comparison::Equal
            } else if low > slow_high && slow_low > 0.0 {
                Comparison::Faster { mean, range: Some((low / slow_high, high / slow_low)) }
            } else if mean >= EQUAL || is_wide(faster) || is_wide(slower) {
                Comparison::Unclear
            } else {
                Comparison::Equal
            }
        }
        _ if mean >= PLAIN => Comparison::Faster { mean, range: None },
        _ if mean >= EQUAL => Comparison::Unclear,
        _ => Comparison::Equal,
    }
}

fn counted(cell: &CellRecord, rate: Estimate) -> String {
    let op = cell.workload.op;
    let requests =
        metrics::device_requests(cell, op).map_or_else(|| "unknown".into(), |count| count.to_string());
    let size = request_bytes(cell)
        .map_or(String::new(), |bytes| format!(" of {} KiB", words::figure(bytes / 1024.0)));
    let depth = depth(cell).map_or(String::new(), |depth| format!(", aqu-sz = {}", words::figure(depth)));
    let more = cause::counted(cell);
    cite(cell, "rate", format_args!("{}, requests = {requests}{size}{depth}{more}", words::rate(rate.mean)))
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
        let buffered = with(buffered, |cell| crate::fixtures::set_depth(&mut cell.evidence.device[0], 2.85));
        let finding = fires(RULE, &record(vec![file()], vec![direct, buffered]));
        assert_eq!(finding.title, "reads: buffered is 2.00 × as fast as direct");
        assert_eq!(
            finding.text,
            "The 95 % interval is 1.96 to 2.04. It keeps 3.00 × as many requests in flight: readahead fetches the \
             next blocks before the program requests them."
        );
        assert_eq!(finding.confidence, Confidence::Measured);
        assert_eq!(
            finding.evidence[1],
            "b: rate = 256.0 MiB/s, requests = 64 of 1024 KiB, aqu-sz = 2.85, cpu per MiB = 234 µs, %util = 96.0"
        );
    }

    #[test]
    fn rates_are_equal_unclear_or_apart() {
        let of = |mean: f64, half: f64| Estimate {
            mean,
            low: Some(mean - mean * half),
            high: Some(mean + mean * half),
        };
        let bare = |mean| Estimate { mean, low: None, high: None };
        assert_eq!(compare(of(101.0, 0.02), of(100.0, 0.02)), Comparison::Equal);
        assert_eq!(compare(of(104.0, 0.001), of(100.0, 0.001)), Comparison::Equal);
        assert_eq!(compare(of(485.0, 0.9), of(106.0, 0.9)), Comparison::Unclear);
        assert_eq!(compare(of(101.0, 0.5), of(100.0, 0.02)), Comparison::Unclear);
        assert!(matches!(
            compare(of(120.0, 0.02), of(100.0, 0.02)),
            Comparison::Faster { range: Some(_), .. }
        ));
        assert_eq!(compare(bare(111.0), bare(100.0)), Comparison::Unclear);
        assert!(matches!(compare(bare(210.0), bare(100.0)), Comparison::Faster { range: None, .. }));
        assert_eq!(compare(bare(109.0), bare(100.0)), Comparison::Equal);
    }

    #[test]
    fn wide_intervals_are_not_called_equal() {
        let wide = |cell| {
            with(cell, |cell: &mut CellRecord| {
                let rate = cell.result.bytes_per_s.as_mut().unwrap();
                (rate.low, rate.high) = (Some(rate.mean * 0.1), Some(rate.mean * 1.9));
            })
        };
        let [direct, buffered] = cells(Op::Read, 604_000_000, 132_000_000);
        let unclear = fires(RULE, &record(vec![file()], vec![wide(direct), wide(buffered)]));
        assert_eq!(unclear.title, "reads: direct and buffered cannot be told apart");
        assert!(unclear.text.starts_with("106 against 485 MiB/s, ±90.0 %"), "{}", unclear.text);
        let equal = fires(RULE, &record(vec![file()], cells(Op::Read, 500_000_000, 495_000_000).into()));
        assert!(equal.title.contains("equally fast"), "{}", equal.title);
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
        let passes = with(memory.clone(), |cell| {
            cell.experiment = Experiment::Paths;
            cell.result.visits = vec![rdsk_model::Visit::default(); 4];
        });
        let direct_passes = with(direct.clone(), |cell| cell.experiment = Experiment::Paths);
        let finding = fires(RULE, &record(vec![file()], vec![direct_passes, passes]));
        assert!(finding.text.contains("read 8 MiB first in each pass"), "{}", finding.text);
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
