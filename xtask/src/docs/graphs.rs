//! The reports that show graphs: speed by position, and block size × streams × LUNs. The statements made about the graphs are
//! compared; the figures are read from Records as the program's own pages read them.

use super::measured::{number, record};
use super::page::{Allowed, Cell, Report, Table};
use anyhow::Context;
use rdsk_analysis::zones::Zones;
use rdsk_model::{CellRecord, Record};
use serde_json::Value;
use std::ops::RangeInclusive;
use std::path::Path;

/// Single writes are 27 to 33 % faster than single reads, concurrent ones 7 to 41 %.
const SINGLE: (f64, f64) = (1.27, 1.33);
const CONCURRENT: (f64, f64) = (1.07, 1.41);
const SIZES: [&str; 8] = ["16k", "32k", "64k", "128k", "256k", "512k", "1M", "2M"];

fn cell(what: impl Into<String>, rdsk: f64, allowed: Allowed) -> Cell {
    Cell::new(what, None, rdsk, allowed)
}

/// The page of `zones`.
pub(super) fn zones(program: &Path) -> anyhow::Result<Report> {
    let command = "zones sim:freebsd-wd800jd --bs 1M,5M --order ascending --full --runs 1";
    let record: Record =
        serde_json::from_value(record(program, command)?).context("rdsk does not read its own Record")?;
    let analysis = rdsk_analysis::Analysis::of(&record);
    let read = |cell: &CellRecord| analysis.zones(cell).cloned();
    let seen: Vec<Zones> = record.cells.iter().filter_map(read).collect();
    let [small, large] = seen.as_slice() else {
        anyhow::bail!("rdsk {command} did not give two block sizes")
    };
    let banded = |zones: &Zones| -> f64 {
        let bands = zones.latency_bands.iter().flat_map(|found| &found.bands);
        bands.map(|band| band.share * 100.0).sum()
    };
    let busy = |zones: &Zones| zones.busy_share.map_or(f64::NAN, |share| share * 100.0);
    let mebibytes = |bytes_per_s: f64| bytes_per_s / f64::from(1 << 20);
    let (outer, inner) =
        (large.outer_bytes_per_s.unwrap_or(f64::NAN), large.inner_bytes_per_s.unwrap_or(f64::NAN));
    let as_in_report = Table {
        title: "Every block of the disk, one dd after the other".into(),
        command: command.into(),
        cells: vec![
            cell("5 MiB: MiB/s at the outer end", mebibytes(outer), Allowed::AtLeast(0.0)),
            cell("5 MiB: MiB/s at the inner end", mebibytes(inner), Allowed::AtLeast(0.0)),
            cell("5 MiB: outer rate over inner rate; the curve falls", outer / inner, Allowed::AtLeast(1.2)),
            cell("1 MiB: % of the I/Os in a latency band", banded(small), Allowed::AtLeast(2.0)),
            cell("5 MiB: % of the I/Os in a latency band", banded(large), Allowed::AtMost(0.0)),
            cell("1 MiB: % of the time in which the disk is busy", busy(small), Allowed::AtMost(85.0)),
            cell("5 MiB: % of the time in which the disk is busy", busy(large), Allowed::AtMost(95.0)),
        ],
    };
    Ok(Report {
        name: "zones",
        title: "Speed by position (FreeBSD, October 2005)",
        text: "The question: how fast is a disk at each position, and how large must the blocks be to show it? A \
               whole WD800JD was read and written in blocks of 1, 5, 10 and 20 MB, with one dd per block.\n\nThe \
               report shows graphs and no table, so rdsk is compared with its statements: the rate falls from the \
               outer to the inner end; blocks of 1 MB show \"shadows\", bands beside the main mode, and blocks \
               of 5 MB do not; the disk is never saturated (systat showed 85 % at most). The model shows these \
               bands without any clock error: the next dd starts so long after the previous one that, with small \
               blocks, the sector has passed the head and a revolution of 8.33 ms is lost. The report's two samples \
               of 1 MB, 14.5 and 21.4 ms, are 6.9 ms apart; how much its clock added is unknown.",
        counts: String::new(),
        tables: vec![as_in_report],
    })
}

/// The page of `scale`.
pub(super) fn scale(program: &Path) -> anyhow::Result<Report> {
    let mut records = Vec::new();
    for (system, controllers) in [("tms-ramsan", 1), ("tms-ramsan-2", 2), ("tms-ramsan-3", 3)] {
        let command = format!("scale sim:{system}");
        records.push((record(program, &command)?, command, controllers));
    }
    let mut tables = Vec::new();
    for (record, command, controllers) in &records {
        let mut cells = Vec::new();
        for (streams, (low, high)) in [(1, SINGLE), (3, CONCURRENT), (10, CONCURRENT)] {
            let ahead = ahead(record, streams);
            let what = |end: &str| format!("{streams} at once, writes over reads, {end} of the block sizes");
            cells.push(cell(what("smallest ratio"), *ahead.start(), Allowed::Range(low, high)));
            cells.push(cell(what("largest ratio"), *ahead.end(), Allowed::Range(low, high)));
        }
        cells.push(cell(
            "single reads, 256 KiB over 16 KiB: the block size matters",
            rate(record, "read", "256k", 1) / rate(record, "read", "16k", 1),
            Allowed::AtLeast(1.3),
        ));
        let title = format!("{controllers} controller{}", if *controllers == 1 { "" } else { "s" });
        tables.push(Table { title, command: command.clone(), cells });
    }
    let more = |(before, now): (&Value, &Value), op: &str, streams: u32| {
        let ratios = SIZES.map(|size| rate(now, op, size, streams) / rate(before, op, size, streams));
        ratios.into_iter().fold(f64::INFINITY, f64::min)
    };
    let mut cells = Vec::new();
    for (pair, words) in records.windows(2).zip(["2 controllers over 1", "3 controllers over 2"]) {
        for op in ["read", "write"] {
            for streams in [3, 10] {
                let what = format!("{streams} {op}s at once, {words}, smallest ratio of the block sizes");
                cells.push(cell(what, more((&pair[0].0, &pair[1].0), op, streams), Allowed::AtLeast(1.05)));
            }
        }
    }
    tables.push(storagetek(program, &records[0].0)?);
    let command =
        records.iter().map(|(_, command, _)| command.as_str()).collect::<Vec<_>>().join("\n    rdsk ");
    tables.push(Table { title: "More controllers".into(), command, cells });
    Ok(Report {
        name: "scale",
        title: "Block size, streams and LUNs (IBM H70 and a RAM-SAN)",
        text: "The question: what do the block size, several dd at once and several controllers gain? The storage \
               had no mechanics; 1, 3 and 10 dd of 4 GB were started 5 seconds apart, distributed over the \
               LUNs.\n\nThe report shows graphs and no table, so rdsk is compared with its statements: the block \
               size matters; single writes are 27 to 33 % faster than single reads, and 7 to 41 % faster if several \
               run; several controllers on separate buses raise the total of several streams. The rates cover the \
               time in which all streams ran.",
        counts: String::new(),
        tables,
    })
}

/// What the report says of another array: single writes of the RAM-SAN are 50 to 60 % faster, and reads about the same.
fn storagetek(program: &Path, ram_san: &Value) -> anyhow::Result<Table> {
    let command = "scale sim:stk-d173 --streams 1";
    let seen = record(program, command)?;
    let ahead = |op: &str, size: &str| rate(ram_san, op, size, 1) / rate(&seen, op, size, 1);
    let mut cells: Vec<Cell> = SIZES
        .iter()
        .map(|size| {
            let words = size.replace('k', " KiB").replace('M', " MiB");
            let what = format!("1 write at once, RAM-SAN over StorageTek, {words}");
            cell(what, ahead("write", size), Allowed::Range(1.5, 1.6))
        })
        .collect();
    let reads = SIZES.map(|size| (ahead("read", size) - 1.0).abs() * 100.0);
    // A missing value stays one: NaN is above nothing that `max` would keep.
    let most = if reads.iter().any(|apart| apart.is_nan()) {
        f64::NAN
    } else {
        reads.into_iter().fold(0.0, f64::max)
    };
    cells.push(
        cell("1 read at once: % apart, at most over the block sizes", most, Allowed::AtMost(10.0))
            .following(),
    );
    Ok(Table { title: "StorageTek".into(), command: command.into(), cells })
}

fn rate(record: &Value, op: &str, size: &str, streams: u32) -> f64 {
    number(record, &format!("scale/{op}/{size}/{streams}"), "/result/bytes_per_s/mean")
}

/// Ratio of writes over reads, from the smallest to the largest over the block sizes. A missing value gives NaN for both.
fn ahead(record: &Value, streams: u32) -> RangeInclusive<f64> {
    let ratios = SIZES.map(|size| rate(record, "write", size, streams) / rate(record, "read", size, streams));
    if ratios.iter().any(|ratio| ratio.is_nan()) {
        return f64::NAN..=f64::NAN;
    }
    let least = ratios.into_iter().fold(f64::INFINITY, f64::min);
    least..=ratios.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
