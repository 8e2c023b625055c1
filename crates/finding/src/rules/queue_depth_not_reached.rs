//! `queue-depth-not-reached`: fewer I/Os were in flight than requested, because the queue never filled, or because the visits were so
//! short that the queue emptied for much of them.

use super::few_samples::more_time;
use super::prelude::*;

pub(super) const RULE: Rule = Rule::new("queue-depth-not-reached", Severity::Cause, Needs::OwnTimes, check);

/// Minimum number of I/Os per visit and queue slot; with fewer, the visit only fills and drains the queue.
const MIN_ROUNDS: u64 = 10;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    // Streams that start one after the other do not fill the queue from the start.
    let is_missed = |cell: &CellRecord| {
        metrics::wanted_depth(&cell.workload) > 1
            && cell.workload.stagger_ns == 0
            && !metrics::has_reached_depth(cell)
    };
    let long = cells(analysis, |cell| is_missed(cell) && !is_short(cell));
    let short = cells(analysis, |cell| is_missed(cell) && is_short(cell) && is_explained(cell));
    [never_filled(analysis, &long), emptied(&short)].concat()
}

/// Whether the visits of a cell have few I/Os for its depth.
fn is_short(cell: &CellRecord) -> bool {
    let enough = MIN_ROUNDS.saturating_mul(metrics::wanted_depth(&cell.workload));
    cell.result.ops.is_none_or(|ops| ops / metrics::visits(cell) < enough)
}

/// Whether the ends of the visits may be all that was missing: at a constant rate they cost half of this, and more where the device is
/// slower with fewer in flight. The rates of streams are those of the part in which all of them ran; and where each I/O completes
/// within its submission, there is no queue that could empty.
fn is_explained(cell: &CellRecord) -> bool {
    let wanted = metrics::wanted_depth(&cell.workload) as f64;
    let missing = metrics::depth_had(cell).map_or(1.0, |had| 1.0 - had / wanted);
    Experiment::PLANNED.contains(&cell.experiment)
        && cell.workload.queue_depth > 1
        && !metrics::is_done_within_submit(cell)
        && missing * ops_per_visit(cell) <= wanted
}

/// I/Os of a visit on average.
fn ops_per_visit(cell: &CellRecord) -> f64 {
    metrics::ratio(cell.result.ops.unwrap_or(0), metrics::visits(cell))
}

/// A visit lasts until its last I/O has completed, and the last ones have ever fewer beside them.
fn emptied(cells: &[&CellRecord]) -> Vec<Finding> {
    let rounds = |cell: &CellRecord| ops_per_visit(cell) / metrics::wanted_depth(&cell.workload) as f64;
    let fewest = cells.iter().copied().min_by(|left, right| rounds(left).total_cmp(&rounds(right)));
    let Some(cell) = fewest else { return Vec::new() };
    let (wanted, ops) = (metrics::wanted_depth(&cell.workload), words::figure(ops_per_visit(cell)));
    let text = format!(
        "Repeats of {ops} I/Os are short for the queue depth of {}. The queue drains at the end of each, so the rate is lower than that of a \
         longer test.",
        words::test(cell)
    );
    let cited = |cell: &CellRecord| {
        let had = metrics::depth_had(cell).map_or_else(|| "unknown".into(), words::figure);
        let wanted = metrics::wanted_depth(&cell.workload);
        cite(
            cell,
            "I/Os per repeat",
            format_args!("{}, QD = {wanted}, mean in flight = {had}", words::figure(ops_per_visit(cell))),
        )
    };
    let what =
        format!("repeats of {ops} I/Os are short for QD{wanted}, which lowers the rate: {}", how_many(cells));
    vec![
        RULE.about(cells, "repeats too short for the queue depth", text, cited)
            .inferred()
            .effect(Stake::Cost, None, what)
            .advice(format!("{}, or lower the queue depth", more_time(cells))),
    ]
}

fn never_filled(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> Vec<Finding> {
    let within = cells.iter().filter(|cell| metrics::is_done_within_submit(cell)).count();

    let advice = if within == cells.len() {
        "use --engine threads or several --streams to have more in flight"
    } else if cells.iter().all(|cell| cell.result.engine == Some(EngineKind::Threads)) {
        "look for a busy CPU: each I/O in flight needs a thread of its own, and there are at most 1024 threads"
    } else {
        "look for a busy CPU, or for a device that completes faster than one thread submits"
    };
    let findings = RULE.about_any(
        cells,
        "queue depth not reached",
        text(within, cells.len()),
        |cell| depth(analysis, cell),
        advice,
    );
    let shares = cells.iter().filter_map(|cell| {
        let (had, wanted) = (metrics::depth_had(cell)?, metrics::wanted_depth(&cell.workload) as f64);
        (had > 0.0).then_some((wanted / had, had, wanted))
    });
    let Some((factor, had, wanted)) = shares.max_by(|left, right| left.0.total_cmp(&right.0)) else {
        return findings;
    };
    let what = format!("queue not full: {}, QD {} of {wanted:.0}", how_many(cells), words::figure(had));
    findings.into_iter().map(|finding| finding.effect(Stake::Figure, Some(factor), what.clone())).collect()
}

/// Why the queue was shorter, where the engine knows.
fn text(within: usize, cell_count: usize) -> &'static str {
    match within {
        0 => {
            "Fewer I/Os were in flight than requested. The figure belongs to the queue depth that was reached."
        }
        _ if within == cell_count => {
            "The device, or a driver above it, completes each I/O within the call that submits it (io_submit). There is no queue, and \
             the figure is that of QD1 per stream."
        }
        _ => {
            "Fewer I/Os were in flight than requested, in some tests because each I/O completed within the call that submits it. The \
             figure belongs to the queue depth that was reached."
        }
    }
}

fn depth(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let reached = metrics::depth_had(cell).map_or_else(|| "unknown".into(), words::figure);
    let device =
        metrics::row(cell).map_or(String::new(), |row| format!(", aqu-sz = {}", words::figure(row.aqu_sz)));
    let wanted = metrics::wanted_depth(&cell.workload);
    let issuing = cell.result.issuing.as_ref();
    let within = match (issuing.and_then(|issuing| issuing.within_submit), cell.result.ops) {
        (Some(within), Some(ops)) => format!(", done within their submission = {within} of {ops}"),
        _ => String::new(),
    };
    let deepest = analysis.block_io(cell).and_then(BlockIo::deepest);
    let deepest = deepest.map_or(String::new(), |depth| format!(", deepest queue = {depth}"));
    cite(cell, "mean in flight", format_args!("{reached} of {wanted}{device}{deepest}{within}"))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{cell, deepen, disk, in_visits, record, with};
    use rdsk_model::{IoPath, Op, Record};

    #[test]
    fn the_advice_for_threads_does_not_blame_one_submitting_thread() {
        let mut record = at(Some(16.0));
        record.cells[0].result.engine = Some(EngineKind::Threads);
        let advice = check(&Analysis::of(&record)).remove(0).advice.unwrap();
        assert!(advice.contains("1024 threads") && !advice.contains("one thread submits"), "{advice}");
    }

    fn at(in_flight_mean: Option<f64>) -> Record {
        let cell = with(cell("q", Op::Read, IoPath::Direct, 4096, 10_000, 500_000_000), |cell| {
            deepen(cell, 32, in_flight_mean.unwrap_or(0.0));
            cell.result.in_flight_mean = in_flight_mean;
        });
        record(vec![disk()], vec![cell])
    }

    #[test]
    fn fires_where_each_io_is_done_within_its_submission() {
        let mut record = at(Some(32.0));
        record.cells[0].result.issuing =
            Some(rdsk_model::Issuing { within_submit: Some(9_990), ..rdsk_model::Issuing::default() });
        let finding = fires(RULE, &record);
        assert_eq!(
            finding.evidence,
            [
                "random direct 4K reads at QD32: mean in flight = 1.00 of 32, aqu-sz = 32.0, done within their submission = 9990 of 10000"
            ]
        );
        assert!(finding.text.contains("within the call that submits it"));
        record.cells[0].result.issuing =
            Some(rdsk_model::Issuing { within_submit: Some(4_000), ..rdsk_model::Issuing::default() });
        silent(RULE, &record);
    }

    #[test]
    fn bios_show_the_deepest_queue() {
        let mut record = at(Some(16.0));
        let bios = vec![bio(Op::Read, "this", Some("io_uring_enter"), 10_000, 4096)];
        let cell = counted(record.cells.remove(0), bios, vec![request(Op::Read, 4096, 10_000)]);
        record.cells.push(with(cell, |cell| cell.evidence.device[0].in_flight_max = Some(19)));
        let finding = fires(RULE, &record);
        assert_eq!(
            finding.evidence,
            [
                "random direct 4K reads at QD32: mean in flight = 16.0 of 32, aqu-sz = 16.0, deepest queue = 19"
            ]
        );
    }

    /// 1280 reads at depth 32, in so many visits.
    #[test]
    fn short_visits_are_told_from_a_queue_that_never_filled() {
        let read = |visits: u64, had: f64| {
            let whole = with(cell("q", Op::Read, IoPath::Direct, 4096, 1280, 1_000_000_000), |cell| {
                deepen(cell, 32, had);
            });
            record(vec![disk()], vec![in_visits(whole, visits)])
        };
        let finding = fires(RULE, &read(20, 24.0));
        assert_eq!(finding.title, "repeats too short for the queue depth: random direct 4K reads at QD32");
        assert_eq!(
            finding.evidence,
            ["random direct 4K reads at QD32: I/Os per repeat = 64.0, QD = 32, mean in flight = 24.0"]
        );
        assert!(
            finding.text.starts_with(
                "Repeats of 64.0 I/Os are short for the queue depth of random direct 4K reads at QD32"
            ),
            "{}",
            finding.text
        );
        assert_eq!(
            fires(RULE, &read(4, 24.0)).title,
            "queue depth not reached: random direct 4K reads at QD32"
        );
        silent(RULE, &read(20, 30.0));
        // The ends of visits of 256 explain an eighth of the depth at most.
        fires(RULE, &read(5, 28.2));
        silent(RULE, &read(5, 24.0));
        let mut within = read(20, 32.0);
        within.cells[0].result.issuing =
            Some(rdsk_model::Issuing { within_submit: Some(1280), ..rdsk_model::Issuing::default() });
        silent(RULE, &within);
    }

    #[test]
    fn fires_below_nine_tenths() {
        let finding = fires(RULE, &at(Some(28.7)));
        assert_eq!(
            finding.evidence,
            ["random direct 4K reads at QD32: mean in flight = 28.7 of 32, aqu-sz = 28.7"]
        );
        silent(RULE, &at(Some(28.9)));
        silent(RULE, &at(None));
    }
}
