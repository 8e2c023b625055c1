//! The page of jobs that fio measured: rate and latency of each, what each did, and how far the samples lie apart. It adds no
//! interval, since the order of the samples is not known.

use crate::cells;
use crate::figures::{Unit, iops, or_missing, significant, whole};
use crate::page::{Page, Tone};
use crate::table::shortened;
use rdsk_analysis::Analysis;
use rdsk_analysis::words::{list, plural};
use rdsk_model::{CellRecord, Experiment, Latency, RateSamples, Sync, Untold};
use rdsk_units::{Bytes, printable};

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    let cells: Vec<&CellRecord> = cells::of_experiment(analysis, Experiment::Fio).collect();
    page.blank();
    let count = plural(cells.len() as u64, "figure");
    page.sentence(
        Tone::Heading,
        "FIO: ",
        format!("{count} of fio's jobs; fio shows nothing below its own calls"),
    );
    draw_figures(page, &cells);
    draw_syncs(page, &cells);
    draw_workloads(page, analysis, &cells);
    draw_samples(page, &cells);
    cells::draw_whys(page, analysis, &cells, |cell| label(cell).to_owned());
}

/// What is shown of latencies: the name of each figure, and which it is.
type Times = [(&'static str, fn(&Latency) -> Option<f64>); 4];
const TIMES: Times = [
    ("mean", |latency| latency.mean),
    ("p50", |latency| latency.p50.map(|ns| ns as f64)),
    ("p99", |latency| latency.p99.map(|ns| ns as f64)),
    ("p99.9", |latency| latency.p999.map(|ns| ns as f64)),
];

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

fn draw_figures(page: &mut Page, cells: &[&CellRecord]) {
    let latency = |cell: &CellRecord, which: fn(&Latency) -> Option<f64>| {
        cell.result.latency_ns.as_ref().and_then(which)
    };
    let means = cells.iter().filter_map(|cell| latency(cell, |latency| latency.mean));
    let unit = Unit::fit(&Unit::TIMES, means);
    let row = |cell: &&CellRecord| {
        let rate = cell.result.bytes_per_s.map(|rate| rate.mean);
        let mut row = vec![
            short_label(cell),
            Unit::MIB_PER_S.figure_or_missing(rate),
            or_missing(cell.result.ops_per_s.map(|rate| iops(rate.mean))),
        ];
        row.extend(TIMES.map(|(_, which)| unit.figure_or_missing(latency(cell, which))));
        row
    };
    let rows: Vec<Vec<String>> = cells.iter().map(row).collect();
    let heads = TIMES.map(|(name, _)| format!("{name} {}", unit.name));
    let heads = ["", Unit::MIB_PER_S.name, "IOPS", &heads[0], &heads[1], &heads[2], &heads[3]];
    page.table(&heads, &rows);
}

/// The latencies of fsync and the like, which are not in those of the writes.
fn draw_syncs(page: &mut Page, cells: &[&CellRecord]) {
    let syncs: Vec<(String, &Latency)> = cells
        .iter()
        .filter_map(|cell| Some((short_label(cell), cell.result.sync_latency_ns.as_ref()?)))
        .collect();
    if syncs.is_empty() {
        return;
    }
    let unit = Unit::fit(&Unit::TIMES, syncs.iter().filter_map(|(_, latency)| latency.mean));
    let row = |(name, latency): &(String, &Latency)| {
        let mut row = vec![name.clone(), whole(Some(latency.count))];
        row.extend(TIMES.map(|(_, which)| unit.figure_or_missing(which(latency))));
        row
    };
    let rows: Vec<Vec<String>> = syncs.iter().map(row).collect();
    let heads = TIMES.map(|(name, _)| format!("{name} {}", unit.name));
    page.blank();
    page.table(&["sync (fsync, fdatasync)", "syncs", &heads[0], &heads[1], &heads[2], &heads[3]], &rows);
}

fn draw_workloads(page: &mut Page, analysis: &Analysis<'_>, cells: &[&CellRecord]) {
    let row = |cell: &&CellRecord| {
        let workload = &cell.workload;
        let target = cells::target_name(analysis, cell).unwrap_or_default();
        vec![
            short_label(cell),
            whole(Some(workload.queue_depth.into()).filter(|&depth| depth > 0)),
            whole(Some(workload.streams.into()).filter(|&jobs| jobs > 0)),
            whole(cell.result.ops),
            // What is cut where a page is narrow is words, never a number.
            what(cell),
            target,
        ]
    };
    let rows: Vec<Vec<String>> = cells.iter().map(row).collect();
    page.blank();
    page.table_with(&["", "depth", "jobs", "I/Os", "workload", ""], &rows, &[4, 5]);
}

/// `random read, 4 KiB, direct`; `read, 4 KiB, unknown order and path` where the document repeats no options.
fn what(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let (op, block) = (workload.op, Bytes(workload.block_bytes).approx());
    let order = workload.word(Untold::Pattern).map_or_else(String::new, |pattern| format!("{pattern} "));
    let path = workload.word(Untold::Path).map_or_else(String::new, |path| format!(", {path}"));
    let sync = if workload.sync == Sync::Dsync { ", durable" } else { "" };
    let words = [(Untold::Pattern, "order"), (Untold::Path, "path"), (Untold::Sync, "sync")];
    let untold: Vec<String> =
        words.into_iter().filter(|(word, _)| !workload.tells(*word)).map(|(_, name)| name.into()).collect();
    let unknown = if untold.is_empty() { String::new() } else { format!(", unknown {}", list(&untold)) };
    format!("{order}{op}, {block}{path}{sync}{unknown}")
}

fn draw_samples(page: &mut Page, cells: &[&CellRecord]) {
    let row = |cell: &&CellRecord| {
        let RateSamples { count, mean, stddev, min, max, jobs } = cell.result.samples?.bytes_per_s?;
        let figure = |value: f64| Unit::MIB_PER_S.figure(value);
        let sigma = (mean > 0.0).then(|| significant(stddev / mean * 100.0));
        // Each sample is that of one of so many jobs.
        let each = if jobs > 1 { format!(", each of {jobs} jobs") } else { String::new() };
        let row = [
            short_label(cell) + &each,
            whole(Some(count)),
            figure(min),
            figure(mean),
            figure(max),
            or_missing(sigma),
        ];
        Some(Vec::from(row))
    };
    let rows: Vec<Vec<String>> = cells.iter().filter_map(row).collect();
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
                jobs: 1,
            });
            cell.result.samples = Some(Samples { bytes_per_s, ops_per_s: None });
        });
        let mut record = fixtures::record(vec![fixtures::disk()], vec![cell]);
        let text = "fio counts no bytes".into();
        record.cells[0].verdict = Some(Verdict { code: VerdictCode::Unverified, device_share: None, text });
        record.source = Some(Source { tool: "fio".into(), version: Some("fio-3.33".into()) });
        let page = crate::tests::text(&record, Style::default());
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
        row(&["job/read", "1", "1", "20,000", "sequential", "read,", "4", "KiB,", "direct"]);
        row(&["job/read", "4", "30.0", "40.0", "50.0", "5.00"]);
        assert!(!page.contains('±'), "{page}");
    }

    #[test]
    fn syncs_and_samples_of_single_jobs_are_shown_as_what_they_are() {
        let cell = fixtures::cell("fio/job/write", Op::Write, IoPath::Buffered, 4096, 20_000, 2_000_000_000);
        let mut cell = fixtures::with(cell, |cell| cell.experiment = Experiment::Fio);
        let syncs = Latency { count: 911, p999: None, ..cell.result.latency_ns.clone().unwrap() };
        cell.result.sync_latency_ns = Some(syncs);
        let mib = 1_048_576.0;
        let samples =
            RateSamples { count: 8, mean: 10.0 * mib, stddev: mib, min: mib, max: 20.0 * mib, jobs: 4 };
        cell.result.samples = Some(Samples { bytes_per_s: Some(samples), ops_per_s: None });
        let page = crate::tests::text(
            &fixtures::record(vec![fixtures::disk()], vec![cell.clone()]),
            Style::default(),
        );
        let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split_whitespace().collect()).collect();
        let row = |words: &[&str]| assert!(rows.iter().any(|row| row == words), "{words:?}: {page}");
        row(&["job/write", "911", "100", "100", "200", "–"]);
        row(&["job/write,", "each", "of", "4", "jobs", "8", "1.00", "10.0", "20.0", "10.0"]);
        row(&["job/write", "1", "1", "20,000", "sequential", "write,", "4", "KiB,", "buffered"]);

        cell.workload.untold = Untold::ALL.to_vec();
        (cell.workload.queue_depth, cell.workload.streams) = (0, 0);
        let page =
            crate::tests::text(&fixtures::record(vec![fixtures::disk()], vec![cell]), Style::default());
        let unknown = "write, 4 KiB, unknown order, path and sync";
        let line = page.lines().find(|line| line.contains(unknown)).unwrap_or_else(|| panic!("{page}"));
        assert!(line.split_whitespace().skip(1).take(3).eq(["–", "–", "20,000"]), "{line}");
        assert!(!page.contains("sequential write"), "{page}");
    }

    #[test]
    fn a_long_job_name_costs_no_figure() {
        let id = format!("fio/{}/read", "job".repeat(30));
        let cell = fixtures::cell(&id, Op::Read, IoPath::Direct, 4096, 20_000, 2_000_000_000);
        let cell = fixtures::with(cell, |cell| cell.experiment = Experiment::Fio);
        let mut record = fixtures::record(vec![fixtures::disk()], vec![cell]);
        record.source = Some(Source { tool: "fio".into(), version: None });
        let page = crate::tests::text(&record, Style::default());
        let figures = ["39.1", "10,000", "100", "100", "200", "300"];
        assert!(page.lines().any(|line| line.split_whitespace().skip(1).eq(figures)), "{page}");
        assert!(!page.lines().any(|line| line.ends_with('…')), "{page}");
    }
}
