//! Where the figures of docs/reports stand in Records: for each page a function of a row's name. They are read as the program's own
//! pages read them.

use anyhow::{Result, ensure};
use rdsk_analysis::Analysis;
use rdsk_analysis::iostat::{COLUMNS, iostat_row, waiting_mean};
use rdsk_analysis::zones::Zones;
use rdsk_model::{DeviceEvidence, Record};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The Records of command lines, each measured once.
pub(super) struct Records<'p> {
    program: &'p Path,
    measured: BTreeMap<String, Value>,
}

impl<'p> Records<'p> {
    pub(super) fn new(program: &'p Path) -> Self {
        Self { program, measured: BTreeMap::new() }
    }

    /// Those of these command lines, in their order.
    ///
    /// # Errors
    /// When one fails.
    pub(super) fn made_by(&mut self, commands: &[&str]) -> Result<Vec<&Value>> {
        for command in commands {
            if !self.measured.contains_key(*command) {
                let (record, status) = crate::programs::record(self.program, command)?;
                ensure!(status.success(), "rdsk {command}: {status}: {}", record["error"]);
                self.measured.insert((*command).to_owned(), record);
            }
        }
        Ok(commands.iter().map(|command| &self.measured[*command]).collect())
    }
}

/// A value in a cell of a Record.
fn value<'r>(record: &'r Value, id: &str, pointer: &str) -> Option<&'r Value> {
    record["cells"].as_array()?.iter().find(|cell| cell["id"] == id)?.pointer(pointer)
}

/// A number in a cell of a Record; NaN if it is missing, which no tolerance accepts.
fn number(record: &Value, id: &str, pointer: &str) -> f64 {
    value(record, id, pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// The ratio of the mean rates of a cell in two Records.
fn rates_ratio(records: &[&Value], id: &str) -> f64 {
    let [first, second] = records else { return f64::NAN };
    number(first, id, "/result/bytes_per_s/mean") / number(second, id, "/result/bytes_per_s/mean")
}

/// Seconds until the last close, for 100 MiB.
pub(super) fn paths(records: &[&Value], _: &str, what: &str) -> f64 {
    let (op, path) = what.split_once(", ").unwrap_or_default();
    let id = format!("paths/{op}/{}", if path == "raw" { "direct" } else { "buffered" });
    let passes = number(records[0], &id, "/result/bytes") / f64::from(100 << 20);
    number(records[0], &id, "/result/to_close_ns") / passes / 1e9
}

/// Columns of iostat, of the single dd that writes as the title says.
pub(super) fn stream(records: &[&Value], title: &str, what: &str) -> f64 {
    if title.ends_with("sync writes") {
        return rates_ratio(records, "stream/write/direct-dsync");
    }
    let id = if title.contains("block") { "stream/write/buffered" } else { "stream/write/direct" };
    let device = value(records[0], id, "/evidence/device/0").cloned();
    let device: Option<DeviceEvidence> = device.and_then(|device| serde_json::from_value(device).ok());
    let row = device.as_ref().and_then(iostat_row);
    let column = |name: &str| {
        let figure = COLUMNS.iter().find(|(column, _)| *column == name).map(|(_, figure)| figure);
        row.as_ref().zip(figure).map_or(f64::NAN, |(row, figure)| figure(row))
    };
    let waiting = device.as_ref().and_then(waiting_mean).unwrap_or(f64::NAN);
    match what {
        "MB/s (of 1024 KB)" => column("wkB/s") / 1024.0,
        "request, KB" => column("wareq-sz"),
        "avgrq-sz, sectors" => column("wareq-sz") * 2.0,
        "wait" => waiting,
        "wsvc_t, ms" => waiting / column("w/s") * 1e3,
        // Of direct writes none waits in the host.
        "actv" if title.contains("raw") => column("aqu-sz"),
        "asvc_t, ms" if title.contains("raw") => column("w_await"),
        "actv" => column("aqu-sz") - waiting,
        "asvc_t, ms" => (column("aqu-sz") - waiting) / column("w/s") * 1e3,
        "avgqu-sz" => column("aqu-sz"),
        "await, ms" => column("w_await"),
        "%b" => column("%util"),
        name => column(name),
    }
}

/// What `zones` saw in passes with small and with large blocks.
pub(super) fn zones(records: &[&Value], _: &str, what: &str) -> f64 {
    let Ok(record) = serde_json::from_value::<Record>(records[0].clone()) else { return f64::NAN };
    let analysis = Analysis::of(&record);
    let zones: Vec<&Zones> = record.cells.iter().filter_map(|cell| analysis.zones(cell)).collect();
    let [small, large] = zones[..] else { return f64::NAN };
    let (size, what) = what.split_once(": ").unwrap_or_default();
    let zones = if size == "1 MiB" { small } else { large };
    let outer = zones.outer_bytes_per_s.unwrap_or(f64::NAN);
    let inner = zones.inner_bytes_per_s.unwrap_or(f64::NAN);
    match what {
        "MiB/s at the outer end" => outer / f64::from(1 << 20),
        "MiB/s at the inner end" => inner / f64::from(1 << 20),
        "outer rate over inner rate; the curve falls" => outer / inner,
        "% of the I/Os in a latency band" => {
            let bands = zones.latency_bands.iter().flat_map(|bands| &bands.bands);
            bands.map(|band| band.share * 100.0).sum()
        }
        "% of the time in which the disk is busy" => zones.busy_share.map_or(f64::NAN, |share| share * 100.0),
        _ => f64::NAN,
    }
}

const SIZES: [&str; 8] = ["16k", "32k", "64k", "128k", "256k", "512k", "1M", "2M"];

/// Ratios of rates over block sizes: of writes and reads, of more controllers and fewer, of two arrays.
pub(super) fn scale(records: &[&Value], _: &str, what: &str) -> f64 {
    let rate = |record: &Value, op: &str, size: &str, streams: &str| {
        // Beside several targets a single stream runs on each by itself: the first stands for them.
        let has_several = record["targets"].as_array().is_some_and(|targets| targets.len() > 1);
        let on_first = if streams == "1" && has_several { "@0" } else { "" };
        number(record, &format!("scale/{op}/{size}/{streams}{on_first}"), "/result/bytes_per_s/mean")
    };
    let words: Vec<&str> = what.split(' ').collect();
    let (streams, is_largest) = (words[0], what.contains("largest") || what.contains("at most"));
    // A missing value stays one: NaN is above and below nothing that `max` or `min` would keep.
    let extreme = |ratio: &dyn Fn(&str) -> f64| {
        let ratios = SIZES.map(ratio);
        if ratios.iter().any(|ratio| ratio.is_nan()) {
            return f64::NAN;
        }
        ratios.into_iter().reduce(if is_largest { f64::max } else { f64::min }).unwrap_or(f64::NAN)
    };
    match (records, words.as_slice()) {
        ([record], ["single", "reads,", ..]) => {
            rate(record, "read", "256k", "1") / rate(record, "read", "16k", "1")
        }
        ([record], [_, "at", "once,", ..]) => {
            extreme(&|size| rate(record, "write", size, streams) / rate(record, "read", size, streams))
        }
        ([ram_san, array], ["1", "write", .., size, unit]) => {
            let size = format!("{size}{}", if *unit == "KiB" { "k" } else { "M" });
            rate(ram_san, "write", &size, "1") / rate(array, "write", &size, "1")
        }
        ([ram_san, array], ["1", "read", ..]) => extreme(&|size| {
            (rate(ram_san, "read", size, "1") / rate(array, "read", size, "1") - 1.0).abs() * 100.0
        }),
        ([.., _, _, _], [_, op, "at", "once,", more, ..]) => {
            let more = if *more == "3" { 2 } else { 1 };
            let op = op.trim_end_matches('s');
            extreme(&|size| {
                rate(records[more], op, size, streams) / rate(records[more - 1], op, size, streams)
            })
        }
        _ => f64::NAN,
    }
}

/// Microseconds per write of a size, the sizes that are refused, and what a cache for whole stripes gains.
pub(super) fn align(records: &[&Value], _: &str, what: &str) -> f64 {
    if let (Some((bytes, column)), [record]) = (what.split_once(" bytes, "), records) {
        let id = format!("align/write/{}/{bytes}", column.replace(' ', "-"));
        return number(record, &id, "/result/latency_ns/mean") / 1e3;
    }
    if what.starts_with("direct sizes below") {
        // Shifted cells are 4096+512, and so on.
        let is_size = |cell: &Value| {
            let id = cell["id"].as_str().and_then(|id| id.strip_prefix("align/write/uncached-direct/"));
            id.is_some_and(|size| size.parse::<u64>().is_ok())
        };
        let cells = records[0]["cells"].as_array().into_iter().flatten();
        let refused = cells.filter(|cell| is_size(cell) && cell["result"]["stop"] == "not_applicable");
        return refused.map(|_| 1.0).sum();
    }
    rates_ratio(records, "stream/write/direct")
}
