//! The reports that show tables: paths, stream and align. Each cell of a table has its place in a Record; the figures of the
//! tables are the reports'.

use super::measured::{number, record, value};
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
    serde_json::from_value(value(record, id, "/evidence/device/0")?.clone()).ok()
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
            let seconds = number(&record, id, "/result/to_close_ns") / passes / 1e9;
            Cell::new(what, has_figures.then_some(report), seconds, PATHS)
        });
        let cells = cells.collect();
        tables.push(Table { title: format!("{what}, in seconds of wall time"), command, cells });
    }
    Ok(Report {
        name: "paths",
        title: "Raw against block (HP-UX, March 2007)",
        text: "The question: why is dd of 100 MB so much slower through the block device than through the raw one? \
               The machine was a K460 with one JBOD disk, the blocks were 1024 KB.\n\nThe table shows the time \
               until the last close. It follows from a disk of 7200 rpm with about 6.7 MiB/s and 0.2 ms per \
               command, and from what the host does: the block device reads 4 KB at a time without readahead, reads \
               each buffer before it writes it, and merges nothing; between two synchronous raw writes the sector \
               passes the head, so each write loses a revolution.",
        counts: String::new(),
        tables,
    })
}

/// The operations of a single dd, as the cells of `stream` name them.
const BLOCK: &str = "stream/write/buffered";
const RAW: &str = "stream/write/direct";

/// The page of `stream`.
pub(super) fn stream(program: &Path) -> anyhow::Result<Report> {
    let command = "stream sim:solaris-san --rw write --bs 16k --bytes 2G";
    let record = record(program, command)?;
    let block = |column: &str| iostat(&record, BLOCK, column);
    let raw = |column: &str| iostat(&record, RAW, column);
    let waiting = device(&record, BLOCK).and_then(|device| waiting_mean(&device)).unwrap_or(f64::NAN);
    let active = block("aqu-sz") - waiting;
    let requests = block("w/s");
    let mut tables = vec![
        Table {
            title: "Solaris, block".into(),
            command: command.into(),
            cells: vec![
                Cell::new("w/s", 13006.1, requests, STREAM),
                Cell::new("MB/s (of 1024 KB)", 101.6, block("wkB/s") / 1024.0, STREAM).following(),
                Cell::new("request, KB", 8.0, block("wareq-sz"), STREAM).following(),
                Cell::new("wait", 133.5, waiting, STREAM),
                Cell::new("actv", 256.4, active, STREAM).following(),
                Cell::new("wsvc_t, ms", 10.3, waiting / requests * 1e3, STREAM).following(),
                Cell::new("asvc_t, ms", 19.7, active / requests * 1e3, STREAM).following(),
                Cell::new("%b", 100.0, block("%util"), STREAM).following(),
            ],
        },
        Table {
            title: "Solaris, raw".into(),
            command: command.into(),
            cells: vec![
                Cell::new("w/s", 2805.0, raw("w/s"), STREAM),
                Cell::new("MB/s (of 1024 KB)", 43.8, raw("wkB/s") / 1024.0, STREAM).following(),
                Cell::new("actv", 0.9, raw("aqu-sz"), Allowed::AtMost(1.0)),
                Cell::new("asvc_t, ms", 0.3, raw("w_await"), STREAM),
                Cell::new("%b", 87.0, raw("%util"), STREAM).following(),
            ],
        },
    ];
    tables.extend(linux(program)?);
    Ok(Report {
        name: "stream",
        title: "One dd, watched by iostat (Solaris and Linux)",
        text: "The question: what does iostat show of a single dd with 16 KB blocks, through the block device and \
               through the raw one?\n\nBuffered writes build a long queue: Solaris sends them in pieces of 8 KB, \
               256 at a time while the rest wait, and Linux merges them to 512 KB. A single raw writer never has \
               more than one request in flight, so it measures latency. If the write cache is off, each write waits \
               for a revolution of the disk.\n\nThe units are iostat's: its MB has 1024 KB. Waiting and active \
               requests are the host's own counters; as in iostat, the service times follow from them by Little's \
               law. A test of the models (crates/disk/tests/dd.rs) covers the row of the ZFS file, because durable \
               writes would dominate its time here.",
        counts: String::new(),
        tables,
    })
}

/// The tables of Linux.
fn linux(program: &Path) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    let block = [115.0, 57868.0, 14098.0, 1006.4, 140.86, 1325.4, 100.0];
    let raw = [3645.0, 29160.0, 0.0, 16.0, 0.63, 0.18, 62.9];
    for (what, size, id, [requests, kilobytes, merges, sectors, queue, wait, busy]) in
        [("block", "16k --bytes 4G", BLOCK, block), ("raw", "8k --bytes 1G", RAW, raw)]
    {
        let command = format!("stream sim:linux-disk --rw write --bs {size}");
        let record = record(program, &command)?;
        let seen = |column: &str| iostat(&record, id, column);
        let merged = if merges > 0.0 { STREAM } else { Allowed::AtMost(0.0) };
        // At full speed the rate was fitted, with one write outstanding the two parts of its time.
        let follows = |cell: Cell, in_block: bool, in_raw: bool| {
            if if id == BLOCK { in_block } else { in_raw } { cell.following() } else { cell }
        };
        let cells = vec![
            follows(Cell::new("w/s", requests, seen("w/s"), STREAM), true, true),
            follows(Cell::new("wkB/s", kilobytes, seen("wkB/s"), STREAM), false, true),
            follows(Cell::new("wrqm/s", merges, seen("wrqm/s"), merged), true, false),
            Cell::new("avgrq-sz, sectors", sectors, seen("wareq-sz") * 2.0, STREAM),
            follows(Cell::new("avgqu-sz", queue, seen("aqu-sz"), STREAM), false, true),
            follows(Cell::new("await, ms", wait, seen("w_await"), STREAM), true, false),
            follows(Cell::new("%util", busy, seen("%util"), STREAM), true, false),
        ];
        tables.push(Table { title: format!("Linux, {what}"), command, cells });
    }
    for (system, what, id, report, allowed) in [
        ("linux-10k", "10 000 rpm, block, cache on", BLOCK, 160.0, STREAM),
        ("linux-10k", "10 000 rpm, raw, cache on", RAW, 160.0, STREAM),
        ("linux-10k-nocache", "10 000 rpm, raw, cache off", RAW, 1.3, CACHE_OFF),
        ("linux-10k-raid0", "Hardware RAID 0, block", BLOCK, 160.0, STREAM),
        ("linux-10k-raid0", "Hardware RAID 0, raw", RAW, 160.0, STREAM),
    ] {
        let command = format!("stream sim:{system} --rw write --bs 16k --bytes 2G");
        let record = record(program, &command)?;
        let rate = iostat(&record, id, "wkB/s") / 1024.0;
        tables.push(Table {
            title: what.into(),
            command,
            cells: vec![Cell::new("MB/s (of 1024 KB)", report, rate, allowed)],
        });
    }
    let durable = |system: &str| -> anyhow::Result<f64> {
        let record = record(program, &format!("stream sim:{system} --rw write --bs 16k --bytes 256M"))?;
        Ok(number(&record, "stream/write/direct-dsync", "/result/bytes_per_s/mean"))
    };
    let gain = durable("linux-10k-raid0")? / durable("linux-10k")?;
    tables.push(Table {
        title: "Hardware RAID 0, durable".into(),
        command: "stream sim:linux-10k-raid0 --rw write --bs 16k --bytes 256M\n    rdsk stream sim:linux-10k --rw write --bs 16k \
                  --bytes 256M"
            .into(),
        cells: vec![Cell::new("dsync writes, volume over disk: much better", None, gain, Allowed::AtLeast(2.0))],
    });
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
                let stop = value(&record, &id, "/result/stop").and_then(Value::as_str);
                let is_refused = stop == Some("not_applicable");
                anyhow::ensure!(is_refused, "{id}: the report has n/a, rdsk has {stop:?}");
                continue;
            };
            let microseconds = number(&record, &id, "/result/latency_ns/mean") / 1e3;
            let allowed = if *column == "cached-buffered" { ALIGN_CACHED } else { ALIGN };
            cells.push(Cell::new(format!("{bytes} bytes, {what}"), report, microseconds, allowed));
        }
    }
    let mut tables = vec![Table { title: "Microseconds per write".into(), command: command.into(), cells }];
    tables.extend(advice(program)?);
    Ok(Report {
        name: "align",
        title: "Write latency and block size (August 2010)",
        text: "The question: what do the size and the alignment of a write cost, in the page cache and outside it? \
               The machine was Linux 2.6.27 with ext3 on a WD2500JS; the file had 64 MB and was allocated in \
               advance, and the offsets were random multiples of the size.\n\nIn the cache, size hardly matters. \
               Outside it, a write smaller than a page waits until the kernel has read the page, which takes a seek \
               and half a revolution; a whole page needs no read. Direct writes of 1 and 27 bytes are refused (n/a \
               in the report, and here).",
        counts: String::new(),
        tables,
    })
}

/// What the report says without figures: of disks with larger sectors, and of RAID with a battery-backed cache.
fn advice(program: &Path) -> anyhow::Result<Vec<Table>> {
    let command = "align sim:wd2500-4kn --rw write --bs 512,2048,4096 --budget 1h";
    let large = record(program, command)?;
    let is_refused = |bytes: &u32| {
        let stop = value(&large, &format!("align/write/uncached-direct/{bytes}"), "/result/stop");
        stop.and_then(Value::as_str) == Some("not_applicable")
    };
    let (small, whole) = ([512, 2048].iter().filter(|bytes| is_refused(bytes)).count(), is_refused(&4096));
    let refused = if whole { f64::NAN } else { f64::from(u8::try_from(small)?) };
    let sectors = Table {
        title: "Sectors of 4096 bytes".into(),
        command: command.into(),
        cells: vec![
            Cell::new("direct sizes below 4096 that are refused, of 2", None, refused, Allowed::AtLeast(2.0))
                .following(),
        ],
    };
    let raw = |system: &str| -> anyhow::Result<f64> {
        let record = record(program, &format!("stream sim:{system} --rw write --bs 16k --bytes 256M"))?;
        Ok(number(&record, "stream/write/direct", "/result/bytes_per_s/mean"))
    };
    let gathered = Table {
        title: "RAID 5 with a cache that waits for whole stripes".into(),
        command: "stream sim:raid5-cache --rw write --bs 16k --bytes 256M\n    rdsk stream sim:raid5 --rw write --bs 16k \
                  --bytes 256M"
            .into(),
        cells: vec![Cell::new(
            "direct writes of 16 KiB, with the cache over without",
            None,
            raw("raid5-cache")? / raw("raid5")?,
            Allowed::AtLeast(2.0),
        )],
    };
    Ok(vec![sectors, gathered])
}
