//! The page of jobs that fio measured: rate and latency of each, what each did, and how far the samples lie apart. It adds no
//! interval, since the order of the samples is not known.

use crate::cells;
use crate::figures::{Unit, iops, or_missing, significant, whole};
use crate::page::{Page, Tone};
use crate::table::shortened;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Experiment, Latency, RateSamples, Record, Sync};
use rdsk_units::{Bytes, printable};

pub(crate) fn draw(page: &mut Page, record: &Record) {
    let all: Vec<&CellRecord> = cells::of(record, Experiment::Fio).collect();
    page.blank();
    let count = plural(all.len() as u64, "figure");
    page.sentence(
        Tone::Heading,
        "FIO: ",
        format!("{count} of fio's jobs; fio shows nothing below its own calls"),
    );
    draw_figures(page, &all);
    draw_workloads(page, record, &all);
    draw_samples(page, &all);
    cells::draw_whys(page, record, &all, |cell| label(cell).to_owned());
}

/// Columns for the name of a job in a table.
const NAME_WIDTH: usize = 26;

/// The label as a table has it.
fn short_label(cell: &CellRecord) -> String {
    shortened(&printable(label(cell)), NAME_WIDTH)
}

/// The id without the word that all of them begin with.
fn label(cell: &CellRecord) -> &str {
    cell.id.strip_prefix("fio/").unwrap_or(&cell.id)
}

fn draw_figures(page: &mut Page, all: &[&CellRecord]) {
    let latency = |cell: &CellRecord, which: fn(&Latency) -> Option<f64>| {
        cell.result.latency_ns.as_ref().and_then(which)
    };
    let means = all.iter().filter_map(|cell| latency(cell, |latency| latency.mean));
    let unit = Unit::fit(&Unit::TIMES, means);
    let percentiles: [fn(&Latency) -> Option<f64>; 4] = [
        |latency| latency.mean,
        |latency| latency.p50.map(|ns| ns as f64),
        |latency| latency.p99.map(|ns| ns as f64),
        |latency| latency.p999.map(|ns| ns as f64),
    ];
    let row = |cell: &&CellRecord| {
        let rate = cell.result.bytes_per_s.map(|rate| rate.mean);
        let mut row = vec![
            short_label(cell),
            Unit::MIB_PER_S.figure_or_missing(rate),
            or_missing(cell.result.ops_per_s.map(|rate| iops(rate.mean))),
        ];
        row.extend(percentiles.map(|which| unit.figure_or_missing(latency(cell, which))));
        row
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heads = ["mean", "p50", "p99", "p99.9"].map(|name| format!("{name} {}", unit.name));
    let heads = ["", Unit::MIB_PER_S.name, "I/Os per s", &heads[0], &heads[1], &heads[2], &heads[3]];
    page.table(&heads, &rows);
}

fn draw_workloads(page: &mut Page, record: &Record, all: &[&CellRecord]) {
    let row = |cell: &&CellRecord| {
        let workload = &cell.workload;
        let target = cells::target_name(record, cell).unwrap_or_default();
        vec![
            short_label(cell),
            what(cell),
            whole(Some(workload.queue_depth.into())),
            whole(Some(workload.streams.into())),
            whole(cell.result.ops),
            target,
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    page.blank();
    page.table_with(&["", "I/O", "depth", "jobs", "I/Os", ""], &rows, &[1, 5]);
}

/// `random read, 4 KiB, direct`.
fn what(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let sync = if workload.sync == Sync::Dsync { ", durable" } else { "" };
    let (pattern, op, block, path) =
        (workload.pattern, workload.op, Bytes(workload.block_bytes), workload.path);
    format!("{pattern} {op}, {}, {path}{sync}", block.approx())
}

fn draw_samples(page: &mut Page, all: &[&CellRecord]) {
    let row = |cell: &&CellRecord| {
        let RateSamples { count, mean, stddev, min, max } = cell.result.samples?.bytes_per_s?;
        let figure = |value: f64| Unit::MIB_PER_S.figure(value);
        let sigma = (mean > 0.0).then(|| significant(stddev / mean * 100.0));
        let row = [
            short_label(cell),
            whole(Some(count)),
            figure(min),
            figure(mean),
            figure(max),
            or_missing(sigma),
        ];
        Some(Vec::from(row))
    };
    let rows: Vec<Vec<String>> = all.iter().filter_map(row).collect();
    if rows.is_empty() {
        return;
    }
    page.blank();
    page.table(&["rate by fio's samples, MiB/s", "samples", "min", "mean", "max", "σ %"], &rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use rdsk_finding::fixtures;
    use rdsk_model::{IoPath, Op, Samples, Source, Verdict, VerdictCode};

    #[test]
    fn jobs_have_their_figures_and_no_interval() {
        let cell = fixtures::cell("fio/job/read", Op::Read, IoPath::Direct, 4096, 20_000, 2_000_000_000);
        let cell = fixtures::with(cell, |cell| {
            cell.experiment = Experiment::Fio;
            let mib = 1_048_576.0;
            let bytes_per_s = Some(RateSamples {
                count: 4,
                mean: 40.0 * mib,
                stddev: 2.0 * mib,
                min: 30.0 * mib,
                max: 50.0 * mib,
            });
            cell.result.samples = Some(Samples { bytes_per_s, ops_per_s: None });
        });
        let mut record = fixtures::record(vec![fixtures::disk()], vec![cell]);
        let text = "fio counts no bytes".into();
        record.cells[0].verdict = Some(Verdict { code: VerdictCode::Unverified, device_share: None, text });
        record.source = Some(Source { tool: "fio".into(), version: Some("fio-3.33".into()) });
        let page = crate::text(&record, Style::default());
        for line in [
            "fio-3.33, read by rdsk 0.1.0  2026-01-02T03:04:05Z",
            "  target      /dev/sda: fio tells no more of it",
            "FIO: 1 figure of fio's jobs; fio shows nothing below its own calls",
            "  job/read: fio counts no bytes",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}: {page}");
        }
        let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split_whitespace().collect()).collect();
        let row = |words: &[&str]| assert!(rows.iter().any(|row| row == words), "{words:?}: {page}");
        row(&["job/read", "39.1", "10,000", "100", "100", "200", "300"]);
        row(&["job/read", "sequential", "read,", "4", "KiB,", "direct", "1", "1", "20,000"]);
        row(&["job/read", "4", "30.0", "40.0", "50.0", "5.00"]);
        assert!(!page.contains('±'), "{page}");
    }

    #[test]
    fn a_long_job_name_costs_no_figure() {
        let id = format!("fio/{}/read", "job".repeat(30));
        let cell = fixtures::cell(&id, Op::Read, IoPath::Direct, 4096, 20_000, 2_000_000_000);
        let cell = fixtures::with(cell, |cell| cell.experiment = Experiment::Fio);
        let mut record = fixtures::record(vec![fixtures::disk()], vec![cell]);
        record.source = Some(Source { tool: "fio".into(), version: None });
        let page = crate::text(&record, Style::default());
        let figures = ["39.1", "10,000", "100", "100", "200", "300"];
        assert!(page.lines().any(|line| line.split_whitespace().skip(1).eq(figures)), "{page}");
        assert!(!page.lines().any(|line| line.ends_with('…')), "{page}");
    }
}
