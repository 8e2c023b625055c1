//! `scale-knee`: beyond some number of streams, more of them gain next to nothing, and the counters show the limit.

use super::prelude::*;
use rdsk_analysis::scale::{Grid, Limit, Line, Stop};

pub(super) const RULE: Rule = Rule::new("scale-knee", Severity::Cause, Needs::Counters, check);

/// A change of the rate over the whole step of less than this is called nothing.
const NOTHING: f64 = 0.05;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    analysis.scale().iter().flat_map(of_grid).collect()
}

/// One finding for all block sizes with the same knee and the same limit.
fn of_grid(grid: &Grid<'_>) -> Vec<Finding> {
    let stops = grid.lines.iter().filter_map(|line| {
        // A rule of its own reports that one target of several is the limit.
        let stop = line.knee.as_ref().filter(|stop| !matches!(stop.limit, Limit::SomeTargets(_)))?;
        Some(((stop.streams, stop.limit.word(), &stop.limit.cause()?.targets), (line, stop)))
    });
    by_key(stops).iter().filter_map(|(_, group)| finding(grid.op, group)).collect()
}

fn finding(op: Op, group: &[(&Line<'_>, &Stop)]) -> Option<Finding> {
    let mut group = group.to_vec();
    // By what is said of them, so that chance does not choose among equal ones.
    let shown = |stop: &Stop| (gain(stop) * 1000.0).round();
    group.sort_by(|(_, left), (_, right)| shown(right).total_cmp(&shown(left)));
    let (line, stop) = *group.first()?;
    let cause = stop.limit.cause()?;
    let sizes: Vec<String> = group.iter().map(|(line, _)| words::fio_size(line.block_bytes)).collect();
    let evidence = group.iter().flat_map(|(line, stop)| {
        let test = line.points.get(stop.knee.index).map_or_else(String::new, |point| words::test(point.cell));
        let per_doubling = format!(
            "{test}: gain per doubling up to {} streams = {} ({} to {})",
            stop.next_streams,
            percent(stop.knee.gain),
            percent(stop.knee.least_gain),
            percent(stop.knee.most_gain)
        );
        std::iter::once(per_doubling)
            .chain(stop.limit.cause().map(|cause| cause.evidence.clone()).unwrap_or_default())
    });
    let text = format!(
        "Limit: {}. From {} to {} at {}, the rate changes by {} per doubling (95% interval: {} to {}).",
        cause.text,
        words::plural(u64::from(stop.streams), "stream"),
        stop.next_streams,
        words::fio_size(line.block_bytes),
        percent(stop.knee.gain),
        percent(stop.knee.least_gain),
        percent(stop.knee.most_gain),
    );
    let text = match &sizes[..] {
        [_] => text,
        _ => format!("{text} The same holds at {}.", words::list(&sizes[1..])),
    };
    let mut causes = group.iter().filter_map(|(_, stop)| stop.limit.cause());
    let is_sure = causes.all(|cause| cause.confidence == Confidence::Measured);
    let title = format!("{op}s {}: {}", gained(stop), reason(&stop.limit));
    Some(
        RULE.finding(title, text)
            .evidence(evidence.take(MAX_CITED))
            .confidence(if is_sure { Confidence::Measured } else { Confidence::Inferred })
            .advice(advice(&stop.limit))
            .cells(group.iter().filter_map(|(line, stop)| Some(line.points.get(stop.knee.index)?.cell))),
    )
}

/// The share that the whole step from the knee to the next number of streams gains; below 0 for a loss.
fn gain(stop: &Stop) -> f64 {
    let doublings = (f64::from(stop.next_streams) / f64::from(stop.streams)).log2();
    (1.0 + stop.knee.gain).powf(doublings) - 1.0
}

/// The same in words. Less than 10 % per doubling may be much over a step of several.
fn gained(stop: &Stop) -> String {
    let streams = words::plural(u64::from(stop.streams), "stream");
    match gain(stop) {
        gain if gain >= NOTHING => {
            format!("gain {} from {} to {} streams", percent(gain), stop.streams, stop.next_streams)
        }
        gain if gain <= -NOTHING && stop.knee.most_gain < 0.0 => format!("lose beyond {streams}"),
        _ => format!("stop scaling at {streams}"),
    }
}

fn reason(limit: &Limit) -> &'static str {
    match limit {
        Limit::Throttled(_) => "limited by a cgroup",
        Limit::DeviceBusy(_) | Limit::SomeTargets(_) => "the device is busy",
        Limit::SharedPath(_) => "the targets share a path",
        Limit::QueueFull(_) => "the queue is full",
        Limit::Cpu(_) => "CPU bound",
        Limit::Source(_) => "generating the data is the limit",
        Limit::Unknown => "the reason is unknown",
    }
}

fn advice(limit: &Limit) -> &'static str {
    match limit {
        Limit::Throttled(_) => "raise the limit, or measure outside the limited cgroup",
        Limit::DeviceBusy(_) | Limit::SomeTargets(_) => {
            "use no more streams than that: more of them mostly wait; more targets or larger blocks may help"
        }
        Limit::SharedPath(_) => "put the targets on separate controllers and measure again",
        Limit::QueueFull(_) => {
            "use no more streams than that, or raise the number of requests that the device accepts"
        }
        Limit::Cpu(_) => "use larger blocks (--bs), which take less CPU time per byte",
        Limit::Source(_) | Limit::Unknown => "measure reads, which need no generated data",
    }
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, disk, estimate, in_rounds, record, with, without_counters};
    use rdsk_model::{CellRecord, Experiment, IoPath, Limit as GroupLimit, Overlap};

    const MIB: u64 = 1 << 20;

    fn scale(size: u64, streams: u32, rate: u64) -> CellRecord {
        let id = format!("scale/read/{size}/{streams}");
        let whole = cell(&id, Op::Read, IoPath::Direct, size, rate * 2 * MIB / size, 2_000_000_000);
        in_rounds(with(whole, |cell| {
            cell.experiment = Experiment::Scale;
            cell.workload.streams = streams;
            cell.result.bytes_per_s = Some(estimate((rate * MIB) as f64));
            let visit = &mut cell.result.visits[0];
            let (end_ns, bytes) = (visit.elapsed_ns, visit.bytes);
            visit.overlap = Some(Overlap { start_ns: 0, end_ns, bytes, covered_ns: end_ns });
        }))
    }

    #[test]
    fn fires_where_more_streams_give_no_more() {
        let cells = vec![scale(MIB, 1, 40), scale(MIB, 4, 42), scale(2 * MIB, 1, 60), scale(2 * MIB, 4, 60)];
        let finding = fires(RULE, &record(vec![disk()], cells.clone()));
        assert_eq!(finding.title, "reads gain 5.0% from 1 to 4 streams: the device is busy");
        assert_eq!(finding.cells, [cells[0].id.as_str(), cells[2].id.as_str()]);
        assert!(
            finding.text.contains("/dev/sda was busy 96.0%") && finding.text.contains("at 2M."),
            "{}",
            finding.text
        );
        assert!(
            finding.text.contains("the rate changes by 2.5% per doubling (95% interval: 2.1% to 2.9%)"),
            "{}",
            finding.text
        );
        let held = cells[..2].iter().map(|cell| {
            with(cell.clone(), |cell| {
                cell.evidence.limits = vec![GroupLimit {
                    target: 0,
                    device: "sda".into(),
                    source: "x/io.max".into(),
                    op: Op::Read,
                    bytes_per_s: Some(42 * MIB),
                    ops_per_s: None,
                }];
            })
        });
        let finding = fires(RULE, &record(vec![disk()], held.collect()));
        assert!(finding.text.contains("io.max") && finding.text.contains("/dev/sda"), "{}", finding.text);
    }

    /// A step of many doublings may gain or lose much, although each of them does not.
    #[test]
    fn the_title_says_what_the_whole_step_gains() {
        let title = |first: u64, tenth: u64| {
            fires(RULE, &record(vec![disk()], vec![scale(MIB, 1, first), scale(MIB, 10, tenth)])).title
        };
        assert!(title(100, 130).starts_with("reads gain 30."), "{}", title(100, 130));
        assert!(
            title(100, 130).ends_with("% from 1 to 10 streams: the device is busy"),
            "{}",
            title(100, 130)
        );
        assert_eq!(title(100, 101), "reads stop scaling at 1 stream: the device is busy");
        assert_eq!(title(100, 98), "reads stop scaling at 1 stream: the device is busy");
        assert_eq!(title(100, 76), "reads lose beyond 1 stream: the device is busy");
        // Of several block sizes it has the one that gains most.
        let sizes =
            vec![scale(MIB, 1, 100), scale(MIB, 10, 101), scale(2 * MIB, 1, 100), scale(2 * MIB, 10, 120)];
        let both = fires(RULE, &record(vec![disk()], sizes));
        assert!(both.title.starts_with("reads gain 20."), "{}", both.title);
        assert!(
            both.text.contains("From 1 stream to 10 at 2M") && both.text.ends_with("The same holds at 1M."),
            "{}",
            both.text
        );
    }

    /// A device without an arm may serve more, however busy it is.
    #[test]
    fn of_a_device_that_may_serve_several_at_once_it_is_inferred() {
        let found = |rotational: bool| {
            let mut flash = disk();
            flash.device.as_mut().unwrap().rotational = Some(rotational);
            let cells = vec![scale(MIB, 1, 40), scale(MIB, 4, 42)];
            fires(RULE, &record(vec![flash], cells))
        };
        let (arm, flash) = (found(true), found(false));
        assert_eq!((arm.confidence, flash.confidence), (Confidence::Measured, Confidence::Inferred));
        assert!(!arm.text.contains("inferred"), "{}", arm.text);
        assert!(
            flash.text.contains("(inferred: a device that serves several requests at once"),
            "{}",
            flash.text
        );
    }

    #[test]
    fn is_silent_where_more_streams_help_and_where_nothing_was_counted() {
        silent(RULE, &record(vec![disk()], vec![scale(MIB, 1, 40), scale(MIB, 4, 80)]));
        silent(RULE, &record(vec![disk()], vec![scale(MIB, 1, 40)]));
        let short = |streams| with(scale(MIB, streams, 40), |cell| cell.result.visits.truncate(2));
        silent(RULE, &record(vec![disk()], vec![short(1), short(4)]));
        let blind = [1, 4].map(|streams| without_counters(scale(MIB, streams, 40)));
        silent(RULE, &record(vec![disk()], blind.into()));
    }
}
