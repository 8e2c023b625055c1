//! The reports that show tables: paths, stream and align. Each cell of a table has its place in a Record; the figures of the
//! tables are the reports'.

use super::measured::{number, record};
use super::page::{Allowed, Cell, Report, Table};
use rdsk_analysis::iostat::{COLUMNS, iostat_row, waiting_mean};
use rdsk_model::DeviceEvidence;
use serde_json::Value;
use std::path::Path;

/// What experiments.md of the project's plan allows: 5 % for the first report, 10 % for the others, 20 % in the cached
/// column of the fifth, a factor of 2 for the write cache.
const PATHS: Allowed = Allowed::Share(0.05);
const STREAM: Allowed = Allowed::Share(0.10);
const ALIGN: Allowed = Allowed::Share(0.10);
const ALIGN_CACHED: Allowed = Allowed::Share(0.20);
const CACHE_OFF: Allowed = Allowed::Factor(2.0);

/// What was counted of the first device of a cell.
fn device(record: &Value, id: &str) -> Option<DeviceEvidence> {
    let cell = record["cells"].as_array()?.iter().find(|cell| cell["id"] == id)?;
    serde_json::from_value(cell.pointer("/evidence/device/0")?.clone()).ok()
}

/// A column of `iostat -x` of that device; NaN where there is none.
fn iostat(record: &Value, id: &str, column: &str) -> f64 {
    let row = device(record, id).and_then(|device| iostat_row(&device));
    let figure = COLUMNS.iter().find(|(name, _)| *name == column).map(|(_, figure)| figure);
    row.zip(figure).map_or(f64::NAN, |(row, figure)| figure(&row))
}

/// The page of `paths`.
pub(super) fn paths(program: &Path) -> anyhow::Result<Report> {
    let operations = [
        ("read, raw", "paths/read/direct", 15.06),
        ("read, block", "paths/read/buffered", 20.60),
        ("write, raw", "paths/write/direct", 18.40),
        ("write, block", "paths/write/buffered", 442.58),
    ];
    let mut tables = Vec::new();
    for (system, what, has_figures) in [
        ("hpux-k460", "As in the report: buffers of 4 KB, raw requests of 256 KB", true),
        ("hpux-k460-8k", "The patch level with buffers of 8 KB", false),
        ("hpux-k460-1m", "The driver with raw requests of 1 MB", false),
    ] {
        let command = format!("paths sim:{system} --rw read,write --bytes 100M");
        let record = record(program, &command)?;
        let cells = operations.iter().map(|&(what, id, report)| {
            let passes = number(&record, id, "/result/bytes") / f64::from(100 << 20);
            Cell {
                what: what.to_owned(),
                report: has_figures.then_some(report),
                rdsk: number(&record, id, "/result/to_close_ns") / passes / 1e9,
                allowed: PATHS,
            }
        });
        let cells = cells.collect();
        tables.push(Table { title: format!("{what}, in seconds of wall time"), command, cells });
    }
    Ok(Report {
        name: "paths",
        title: "Raw against block (HP-UX, March 2007)",
        text: "The question: why is dd of 100 MB so much slower through the block device than through the raw one? The \
               machine was a K460 with one JBOD disk, the blocks were 1024 KB.\n\nThe table is the time until the last \
               close. It follows from a disk of 7200 rpm that gives about 6.7 MiB/s and takes 0.2 ms per command, and from \
               what the host does: the block device reads 4 KB at a time without read-ahead, reads each buffer before it \
               is written, and merges nothing; a synchronous raw write has lost its turn when the next one comes.",
        tables,
    })
}

/// The page of `stream`.
pub(super) fn stream(program: &Path) -> anyhow::Result<Report> {
    let mut tables = Vec::new();
    let san = "stream sim:solaris-san --rw write --bs 16k --bytes 2G";
    let record_san = record(program, san)?;
    let cell = |what: &str, report: f64, rdsk: f64, allowed: Allowed| Cell {
        what: what.to_owned(),
        report: Some(report),
        rdsk,
        allowed,
    };
    let (block, raw) = ("stream/write/buffered", "stream/write/direct");
    let waiting = device(&record_san, block).and_then(|device| waiting_mean(&device)).unwrap_or(f64::NAN);
    let active = iostat(&record_san, block, "aqu-sz") - waiting;
    let requests = iostat(&record_san, block, "w/s");
    tables.push(Table {
        title: "Solaris, block device, 16 KB blocks".into(),
        command: san.into(),
        cells: vec![
            cell("w/s", 13006.1, requests, STREAM),
            cell("MB/s (of 1024 KB)", 101.6, iostat(&record_san, block, "wkB/s") / 1024.0, STREAM),
            cell("request, KB", 8.0, iostat(&record_san, block, "wareq-sz"), STREAM),
            cell("wait", 133.5, waiting, STREAM),
            cell("actv", 256.4, active, STREAM),
            cell("wsvc_t, ms", 10.3, waiting / requests * 1e3, STREAM),
            cell("asvc_t, ms", 19.7, active / requests * 1e3, STREAM),
            cell("%b", 100.0, iostat(&record_san, block, "%util"), STREAM),
        ],
    });
    tables.push(Table {
        title: "Solaris, raw device, 16 KB blocks".into(),
        command: san.into(),
        cells: vec![
            cell("w/s", 2805.0, iostat(&record_san, raw, "w/s"), STREAM),
            cell("MB/s (of 1024 KB)", 43.8, iostat(&record_san, raw, "wkB/s") / 1024.0, STREAM),
            cell("actv", 0.9, iostat(&record_san, raw, "aqu-sz"), Allowed::AtMost(1.0)),
            cell("asvc_t, ms", 0.3, iostat(&record_san, raw, "w_await"), STREAM),
            cell("%b", 87.0, iostat(&record_san, raw, "%util"), STREAM),
        ],
    });
    tables.extend(linux(program, &cell)?);
    Ok(Report {
        name: "stream",
        title: "One dd, watched by iostat (Solaris and Linux)",
        text: "The question: what does iostat show of a single dd with 16 KB blocks, through the block device and through \
               the raw one? \n\nBuffered writes queue far ahead: Solaris sends them in pieces of 8 KB, 256 at a time with the \
               rest waiting, Linux merges them to 512 KB. A single raw writer never has more than one request outstanding, \
               so it measures latency. Where the write cache is off, each write waits for its turn of the disk.\n\nThe \
               units are iostat's: its MB has 1024 KB. Waiting and active requests are the host's own counters; the times \
               of service follow from them by Little's law, as iostat's do. The row of the ZFS file is held by a test of \
               the models (crates/disk/tests/dd.rs), because its time here would be spent in durable writes."
            .trim(),
        tables,
    })
}

fn linux(program: &Path, cell: &dyn Fn(&str, f64, f64, Allowed) -> Cell) -> anyhow::Result<Vec<Table>> {
    let (block, raw) = ("stream/write/buffered", "stream/write/direct");
    let large = "stream sim:linux-disk --rw write --bs 16k --bytes 4G";
    let small = "stream sim:linux-disk --rw write --bs 8k --bytes 1G";
    let (of_16k, of_8k) = (record(program, large)?, record(program, small)?);
    let mut tables = vec![
        Table {
            title: "Linux, block device, 16 KB blocks".into(),
            command: large.into(),
            cells: vec![
                cell("w/s", 115.0, iostat(&of_16k, block, "w/s"), STREAM),
                cell("wkB/s", 57868.0, iostat(&of_16k, block, "wkB/s"), STREAM),
                cell("wrqm/s", 14098.0, iostat(&of_16k, block, "wrqm/s"), STREAM),
                cell("avgrq-sz, sectors", 1006.4, iostat(&of_16k, block, "wareq-sz") * 2.0, STREAM),
                cell("avgqu-sz", 140.86, iostat(&of_16k, block, "aqu-sz"), STREAM),
                cell("await, ms", 1325.4, iostat(&of_16k, block, "w_await"), STREAM),
                cell("%util", 100.0, iostat(&of_16k, block, "%util"), STREAM),
            ],
        },
        Table {
            title: "Linux, raw device, 8 KB blocks".into(),
            command: small.into(),
            cells: vec![
                cell("w/s", 3645.0, iostat(&of_8k, raw, "w/s"), STREAM),
                cell("wkB/s", 29160.0, iostat(&of_8k, raw, "wkB/s"), STREAM),
                cell("wrqm/s", 0.0, iostat(&of_8k, raw, "wrqm/s"), Allowed::AtMost(0.0)),
                cell("avgrq-sz, sectors", 16.0, iostat(&of_8k, raw, "wareq-sz") * 2.0, STREAM),
                cell("avgqu-sz", 0.63, iostat(&of_8k, raw, "aqu-sz"), STREAM),
                cell("await, ms", 0.18, iostat(&of_8k, raw, "w_await"), STREAM),
                cell("%util", 62.9, iostat(&of_8k, raw, "%util"), STREAM),
            ],
        },
    ];
    for (system, what, id, report, allowed) in [
        ("linux-10k", "block, write cache on", block, 160.0, STREAM),
        ("linux-10k", "raw, write cache on", raw, 160.0, STREAM),
        ("linux-10k-nocache", "raw, write cache off", raw, 1.3, CACHE_OFF),
    ] {
        let command = format!("stream sim:{system} --rw write --bs 16k --bytes 2G");
        let record = record(program, &command)?;
        let rate = iostat(&record, id, "wkB/s") / 1024.0;
        tables.push(Table {
            title: format!("A 10 000 rpm disk, {what}"),
            command,
            cells: vec![cell("MB/s (of 1024 KB)", report, rate, allowed)],
        });
    }
    Ok(tables)
}

/// The page of `align`.
pub(super) fn align(program: &Path) -> anyhow::Result<Report> {
    let columns = [
        ("cached buffered", "cached-buffered"),
        ("cached direct", "cached-direct"),
        ("uncached buffered", "uncached-buffered"),
        ("uncached direct", "uncached-direct"),
    ];
    let rows: [(u32, [Option<f64>; 4]); 5] = [
        (1, [Some(5.887), None, Some(8306.0), None]),
        (27, [Some(6.135), None, Some(8479.0), None]),
        (512, [Some(8.713), Some(2498.0), Some(8742.0), Some(2579.0)]),
        (2048, [Some(9.733), Some(2422.0), Some(8670.0), Some(2721.0)]),
        (4096, [Some(10.350), Some(2514.0), Some(25.039), Some(2560.0)]),
    ];
    let command = "align sim:wd2500 --rw write --bs 1,27,512,2048,4096 --budget 1h";
    let record = record(program, command)?;
    let mut cells = Vec::new();
    for (bytes, figures) in rows {
        for ((what, column), report) in columns.iter().zip(figures) {
            let id = format!("align/write/{column}/{bytes}");
            let Some(report) = report else {
                let cell =
                    record["cells"].as_array().and_then(|cells| cells.iter().find(|cell| cell["id"] == *id));
                let stop = cell.and_then(|cell| cell["result"]["stop"].as_str());
                anyhow::ensure!(
                    stop == Some("not_applicable"),
                    "{id}: the report has n/a, rdsk has {stop:?}"
                );
                continue;
            };
            cells.push(Cell {
                what: format!("{bytes} bytes, {what}"),
                report: Some(report),
                rdsk: number(&record, &id, "/result/latency_ns/mean") / 1e3,
                allowed: if *column == "cached-buffered" { ALIGN_CACHED } else { ALIGN },
            });
        }
    }
    Ok(Report {
        name: "align",
        title: "Write latency and block size (August 2010)",
        text: "The question: what do the size and the alignment of a write cost, in the page cache and out of it? The \
               machine was Linux 2.6.27 with ext3 on a WD2500JS; the file had 64 MB and was allocated before, the offsets \
               were random multiples of the size.\n\nIn the cache, size hardly matters. Out of it a write of less than a \
               page waits until the kernel has read the page, a seek and half a turn of the disk; a whole page is written \
               without. Direct writes of 1 and 27 bytes are refused (n/a in the report, and here).",
        tables: vec![Table { title: "Microseconds per write".into(), command: command.into(), cells }],
    })
}
