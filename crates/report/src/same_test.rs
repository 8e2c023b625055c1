//! What the tests of two topics give that ask the same of the device: each has repeats of its own length, so one screen would show two
//! speeds of one disk without a word. It names no cause.

use crate::cells;
use crate::figures::rate;
use crate::page::{Page, Tone};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Experiment, VerdictCode, Workload};

/// Rates that differ by more than this share are two figures.
const DIFFERS: f64 = 0.05;

/// Below the tables of a topic: its figures for which a topic before it has another one.
pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>, experiment: Experiment) {
    for cell in cells::of_experiment(analysis, experiment) {
        let before = analysis.cells.iter().take_while(|other| other.experiment != experiment);
        let same = before.filter(|other| asks_same(&cell.workload, &other.workload)).last();
        if let Some(text) = same.and_then(|other| sentence(analysis, cell, other)) {
            page.sentence(Tone::Plain, "  ", text);
        }
    }
}

/// Whether two workloads ask the same of the same place, but for how much of it and with which seed.
fn asks_same(left: &Workload, right: &Workload) -> bool {
    let is_stream = |workload: &Workload| workload.points.is_none() && workload.jobs.is_empty();
    let asked = |workload: &Workload| Workload { span_bytes: 0, seed: 0, ..workload.clone() };
    is_stream(left) && is_stream(right) && asked(left) == asked(right)
}

/// `Sequential 1M reads: 49.9 MiB/s in repeats of 85.1 ms; 56.0 MiB/s in paths, in repeats of 453 ms.`
fn sentence(analysis: &Analysis<'_>, cell: &CellRecord, other: &CellRecord) -> Option<String> {
    let rate_of = |cell: &CellRecord| {
        let is_of_device = metrics::has_verdict(cell, VerdictCode::Device);
        cell.result.bytes_per_s.map(|rate| rate.mean).filter(|_| is_of_device)
    };
    let repeats = |cell: &CellRecord| {
        let ns = cell.result.elapsed_ns? / metrics::visits(cell);
        Some(format!("in repeats of {}", words::nanos(ns)))
    };
    let (here, there) = (rate_of(cell)?, rate_of(other)?);
    if (here - there).abs() <= DIFFERS * here.max(there) {
        return None;
    }
    let target = cells::target_name(analysis, cell).map_or_else(String::new, |name| format!("{name}: "));
    let (here, there) = (rate(here), rate(there));
    let (mine, theirs) = (repeats(cell)?, repeats(other)?);
    let test = words::sentence(&words::test(cell));
    let test = test.trim_end_matches('.');
    Some(format!("{target}{test}: {here} {mine}; {there} in {}, {theirs}.", other.experiment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures::{cell, disk, record, with};
    use rdsk_model::{IoPath, Op};

    #[test]
    fn two_speeds_of_one_test_are_named_together() {
        let of = |experiment: Experiment, ops: u64| {
            with(cell(experiment.as_str(), Op::Read, IoPath::Direct, 1 << 20, ops, 1_000_000_000), |cell| {
                cell.experiment = experiment;
            })
        };
        let text = |ops: u64| {
            let cells = vec![of(Experiment::Paths, 56), of(Experiment::Scale, ops)];
            let record = record(vec![disk()], cells);
            let analysis = Analysis::of(&record);
            let mut page = Page::default();
            draw(&mut page, &analysis, Experiment::Scale);
            draw(&mut page, &analysis, Experiment::Paths);
            page.render(crate::Style::default())
        };
        assert_eq!(
            text(50),
            "  Sequential 1M reads: 50.0 MiB/s in repeats of 1.00 s; 56.0 MiB/s in paths, in\n  repeats of 1.00 s.\n"
        );
        assert_eq!(text(55), "");
    }
}
