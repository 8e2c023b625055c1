//! `direct-vs-buffered`: which of the two paths is faster, by how much, and which cause the counters show.

use super::path_cause::{self as cause, depth, request_bytes};
use super::prelude::*;

pub(super) const RULE: Rule =
    Rule::new("direct-vs-buffered", Severity::Cause, Needs::Counters, check).shown_on(Experiment::Paths);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    analysis.comparisons(Kind::Paths).filter_map(explain).collect()
}

fn explain(comparison: &Comparison<'_>) -> Option<Finding> {
    let (direct, buffered) = (comparison.cell, comparison.base);
    let rates = (rate(direct)?, rate(buffered)?);
    let op = direct.workload.op;
    let what = match direct.workload.sync {
        Sync::None | Sync::FsyncAtEnd => format!("{op}s"),
        Sync::Dsync => format!("sync {op}s"),
    };
    let until = if op == Op::Write { ", on disk" } else { "" };
    let (title, text, confidence) = match comparison.ratio {
        Err(why) => (
            match why {
                NoRatio::Burst => format!("{what}: bursts, so direct and buffered are not compared"),
                NoRatio::Sittings => {
                    format!("{what}: direct and buffered are not compared: measured in two runs")
                }
                _ => format!("{what}: too few to compare direct and buffered"),
            },
            no_ratio_text(rates, why),
            Confidence::Measured,
        ),
        Ok(ratio) => match ratio.outcome() {
            Outcome::Equal => (
                format!("{what}: direct and buffered are equally fast{until}"),
                ratio_text(ratio),
                Confidence::Measured,
            ),
            Outcome::Unclear => (
                format!("{what}: no clear difference between direct and buffered{until}"),
                unclear_text(rates, ratio),
                Confidence::Measured,
            ),
            Outcome::Faster => faster(&what, until, ("direct", direct), ("buffered", buffered), ratio),
            Outcome::Slower => {
                faster(&what, until, ("buffered", buffered), ("direct", direct), ratio.turned())
            }
        },
    };
    Some(
        RULE.finding(title, text)
            .evidence([counted(direct, rates.0), counted(buffered, rates.1)])
            .confidence(confidence)
            .cells([direct, buffered])
            .shown_on(direct.experiment),
    )
}

/// Title, text and confidence where one of the two is faster, by the ratio of its rate to the other.
fn faster(
    what: &str,
    until: &str,
    fast: (&str, &CellRecord),
    slow: (&str, &CellRecord),
    ratio: Ratio,
) -> (String, String, Confidence) {
    let (cause, confidence) = cause::explain(fast.1, slow.1);
    let times = words::times(ratio.mean);
    (
        format!("{what}: {} is {times} as fast as {}{until}", fast.0, slow.0),
        format!("{} {cause}", words::interval(ratio.low, ratio.high)),
        confidence,
    )
}

/// The rate of the device: reads as measured, writes until stable.
fn rate(cell: &CellRecord) -> Option<f64> {
    match cell.workload.op {
        Op::Read => cell.result.bytes_per_s.map(|rate| rate.mean),
        Op::Write => metrics::stable_rate(cell),
    }
}

/// `Repeat by repeat, direct is 1.02x as fast as buffered. The 95% interval is 0.99 to 1.05.` The mean of the repeats'
/// ratios is not the ratio of the means: without the first words the figures beside it would seem to disagree.
fn ratio_text(ratio: Ratio) -> String {
    let (times, interval) = (words::times(ratio.mean), words::interval(ratio.low, ratio.high));
    format!("Repeat by repeat, direct is {times} as fast as buffered. {interval}")
}

/// `106 against 485 MiB/s`.
fn figures((direct, buffered): (f64, f64)) -> String {
    let mebibytes = |rate: f64| words::figure(rate / f64::from(1 << 20));
    format!("{} against {} MiB/s", mebibytes(direct), mebibytes(buffered))
}

fn unclear_text(rates: (f64, f64), ratio: Ratio) -> String {
    let may_be_one = ratio.low <= 1.0 && 1.0 <= ratio.high;
    let why = if may_be_one {
        "Only more repeats can separate them."
    } else {
        "Among all comparisons of this experiment, such a ratio may be chance."
    };
    format!("{}. {} {why}", figures(rates), ratio_text(ratio))
}

fn no_ratio_text(rates: (f64, f64), why: NoRatio) -> String {
    let joint = if matches!(why, NoRatio::Burst | NoRatio::Sittings) { "but" } else { "from" };
    format!("{} {joint} {}.", figures(rates), why.words())
}

fn counted(cell: &CellRecord, rate: f64) -> String {
    let op = cell.workload.op;
    let requests =
        metrics::device_requests(cell, op).map_or_else(|| "unknown".into(), |count| count.to_string());
    let size = request_bytes(cell)
        .map_or(String::new(), |bytes| format!(" of {} KiB", words::figure(bytes / 1024.0)));
    let depth = depth(cell).map_or(String::new(), |depth| format!(", aqu-sz = {}", words::figure(depth)));
    let more = cause::counted(cell);
    cite(cell, "rate", format_args!("{}, requests = {requests}{size}{depth}{more}", words::rate(rate)))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{self, file, in_rounds, kept_in_memory, read_from_memory, record, with};
    use rdsk_model::IoPath;

    fn cells(op: Op, direct_ns: u64, buffered_ns: u64) -> [CellRecord; 2] {
        let cell = |id, path, ns| in_rounds(fixtures::cell(id, op, path, 1 << 20, 64, ns));
        [cell("d", IoPath::Direct, direct_ns), cell("b", IoPath::Buffered, buffered_ns)]
    }

    #[test]
    fn names_the_faster_path_and_the_depth() {
        let [direct, buffered] = cells(Op::Read, 500_000_000, 250_000_000);
        let buffered = with(buffered, |cell| crate::fixtures::set_depth(&mut cell.evidence.device[0], 2.85));
        let finding = fires(RULE, &record(vec![file()], vec![direct, buffered]));
        assert_eq!(finding.title, "reads: buffered is 2.00x as fast as direct");
        assert_eq!(
            finding.text,
            "The 95% interval is 1.97 to 2.03. It keeps 3.00x as many requests in flight: readahead fetches the \
             next blocks before the program requests them."
        );
        assert_eq!(finding.confidence, Confidence::Measured);
        assert_eq!(
            finding.evidence[1],
            "sequential buffered 1M reads: rate = 256 MiB/s, requests = 64 of 1024 KiB, aqu-sz = 2.85, cpu per MiB = 234 µs, %util = 96.0"
        );
    }

    #[test]
    fn rates_are_equal_unclear_or_apart() {
        let of = |low: f64, high: f64, p_adjusted| Ratio {
            mean: (low * high).sqrt(),
            low,
            high,
            rounds: 6,
            p_adjusted,
        };
        for (low, high, p_adjusted, expected) in [
            (0.98, 1.04, 0.3, Outcome::Equal),
            // Certain, but 4 % decide nothing.
            (1.039, 1.041, 0.001, Outcome::Equal),
            (0.96, 0.962, 0.001, Outcome::Equal),
            (1.06, 1.08, 0.001, Outcome::Faster),
            (1.15, 1.25, 0.01, Outcome::Faster),
            (0.8, 0.9, 0.01, Outcome::Slower),
            (0.4, 40.0, 0.2, Outcome::Unclear),
            (0.5, 2.0, 1.0, Outcome::Unclear),
            (0.95, 1.12, 0.3, Outcome::Unclear),
            // Its own interval excludes 1, but it is one of many.
            (1.02, 1.25, 0.12, Outcome::Unclear),
        ] {
            assert_eq!(of(low, high, p_adjusted).outcome(), expected, "{low} to {high}, p {p_adjusted}");
        }
        let many = unclear_text((1.2e8, 1e8), of(1.02, 1.25, 0.12));
        assert!(many.contains("The 95% interval is 1.02 to 1.25. Among all comparisons"), "{many}");
    }

    #[test]
    fn wide_intervals_are_not_called_equal() {
        let uneven = |cell| {
            with(cell, |cell: &mut CellRecord| {
                for (visit, factor) in cell.result.visits.iter_mut().zip([1, 9, 2, 7, 1, 3]) {
                    visit.elapsed_ns *= factor;
                }
            })
        };
        let [direct, buffered] = cells(Op::Read, 604_000_000, 132_000_000);
        let unclear = fires(RULE, &record(vec![file()], vec![direct.clone(), uneven(buffered)]));
        assert_eq!(unclear.title, "reads: no clear difference between direct and buffered");
        let expected = "106 against 485 MiB/s. Repeat by repeat, direct is 0.59x as fast as buffered. The 95% interval is 0.1";
        assert!(unclear.text.starts_with(expected), "{}", unclear.text);
        assert!(unclear.text.ends_with("Only more repeats can separate them."), "{}", unclear.text);
        // What both share makes no interval wide.
        let shared = record(vec![file()], cells(Op::Read, 604_000_000, 132_000_000).map(uneven).into());
        assert_eq!(fires(RULE, &shared).title, "reads: buffered is 4.58x as fast as direct");
        let equal = fires(RULE, &record(vec![file()], cells(Op::Read, 500_000_000, 495_000_000).into()));
        assert!(equal.title.contains("equally fast"), "{}", equal.title);
        assert!(
            equal.text.starts_with("Repeat by repeat, direct is 0.99x as fast as buffered. The 95% interval"),
            "{}",
            equal.text
        );
    }

    #[test]
    fn too_few_rounds_or_ios_compare_nothing() {
        for (rounds, ops, why) in [(2, 64, "from 2 repeats on both sides"), (6, 3, "from 3 I/Os on one side")]
        {
            let short = cells(Op::Read, 604_000_000, 132_000_000).map(|cell| {
                with(cell, |cell| {
                    cell.result.visits.truncate(rounds);
                    cell.result.ops = Some(ops);
                })
            });
            let finding = fires(RULE, &record(vec![file()], short.into()));
            assert_eq!(finding.title, "reads: too few to compare direct and buffered");
            assert!(
                finding.text.starts_with("106 against 485 MiB/s") && finding.text.contains(why),
                "{}",
                finding.text
            );
        }
    }

    #[test]
    fn compares_writes_until_stable() {
        let [direct, buffered] = cells(Op::Write, 500_000_000, 500_000_000);
        let whole = kept_in_memory(buffered, 20_000_000, 1_000_000_000);
        let memory = with(in_rounds(whole), |cell| {
            cell.evidence.process.read_bytes = Some(u64::from(fixtures::ROUNDS) * (32 << 20));
        });
        let finding = fires(RULE, &record(vec![file()], vec![direct.clone(), memory.clone()]));
        assert_eq!(finding.title, "writes: direct is 2.00x as fast as buffered, on disk");
        assert!(finding.text.contains("read 32 MiB first in each repeat"), "{}", finding.text);
        let passes = with(memory.clone(), |cell| {
            cell.experiment = Experiment::Paths;
            cell.evidence.process.read_bytes = Some(u64::from(fixtures::ROUNDS) * (8 << 20));
        });
        let direct_passes = with(direct.clone(), |cell| cell.experiment = Experiment::Paths);
        let finding = fires(RULE, &record(vec![file()], vec![direct_passes, passes]));
        assert!(finding.text.contains("read 8 MiB first in each repeat"), "{}", finding.text);
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
