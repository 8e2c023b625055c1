//! Records as CSV: one row for each cell, a column for each figure, the unit in the name of the column. Figures are those of the
//! Record, to the last digit; what was not measured is empty.

use rdsk_analysis::lasting::lasting_of;
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Device, DeviceEvidence, Estimate, Latency, Op, Record, Target, Untold};
use rdsk_units::printable;

/// A column of the CSV. Names stay; more may be added behind the last one.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name, with the unit of a figure at its end.
    pub name: &'static str,
    value: fn(&Record, &CellRecord) -> Field,
}

/// What stands in one field.
enum Field {
    /// Text of the user, of a device or of a file.
    Text(Option<String>),
    /// One of our own words.
    Word(&'static str),
    Whole(Option<u64>),
    Real(Option<f64>),
}

use Field::{Real, Text, Whole, Word};

/// Every column, in the order of the file. docs/export.md says what each is.
pub const COLUMNS: &[Column] = &[
    column("record_id", |record, _| text(&record.id)),
    column("label", |record, _| Text(record.label.clone())),
    column("started_at", |record, _| text(&record.started_at)),
    column("status", |record, _| Word(record.status.as_str())),
    column("rdsk_version", |record, _| text(&record.rdsk_version)),
    column("source", |record, _| Text(Some(source(record)))),
    column("kernel", |record, _| Text(record.host.as_ref().map(|host| host.kernel.clone()))),
    column("target", |record, cell| text(&target_names(record, cell))),
    column("target_kind", |record, cell| {
        Word(of_target(record, cell, |target| Some(target.kind.as_str())).unwrap_or(""))
    }),
    column("target_size_bytes", |record, cell| {
        Whole(of_target(record, cell, |target| Some(target.size_bytes).filter(|&size| size > 0)))
    }),
    column("filesystem", |record, cell| {
        Text(of_target(record, cell, |target| Some(target.filesystem.as_ref()?.kind.clone())))
    }),
    column("device", |record, cell| Text(of_device(record, cell, |device| Some(device.name.clone())))),
    column("device_model", |record, cell| Text(of_device(record, cell, |device| device.model.clone()))),
    column("device_serial", |record, cell| Text(of_device(record, cell, |device| device.serial.clone()))),
    column("cell", |_, cell| text(&cell.id)),
    column("experiment", |_, cell| Word(cell.experiment.as_str())),
    column("op", |_, cell| Word(cell.workload.direction())),
    column("pattern", |_, cell| Word(cell.workload.word(Untold::Pattern).unwrap_or_default())),
    column("path", |_, cell| Word(cell.workload.word(Untold::Path).unwrap_or_default())),
    column("sync", |_, cell| Word(cell.workload.word(Untold::Sync).unwrap_or_default())),
    column("cache", |_, cell| Word(cell.workload.cache.as_str())),
    column("block_bytes", |_, cell| Whole(Some(cell.workload.block_bytes))),
    column("align_bytes", |_, cell| Whole(Some(cell.workload.align_bytes))),
    column("shift_bytes", |_, cell| Whole(Some(cell.workload.shift_bytes))),
    column("queue_depth", |_, cell| Whole(Some(cell.workload.queue_depth.into()).filter(|&count| count > 0))),
    column("streams", |_, cell| Whole(Some(cell.workload.streams.into()).filter(|&count| count > 0))),
    column("offset_bytes", |_, cell| Whole(cell.workload.known_offset_bytes())),
    column("span_bytes", |_, cell| Whole(Some(cell.workload.span_bytes).filter(|&span| span > 0))),
    column("engine", |_, cell| Word(cell.result.engine.map_or("", |engine| engine.as_str()))),
    column("stop", |_, cell| Word(cell.result.stop.as_str())),
    column("elapsed_ns", |_, cell| Whole(cell.result.elapsed_ns)),
    column("bytes", |_, cell| Whole(cell.result.bytes)),
    column("ops", |_, cell| Whole(cell.result.ops)),
    column("bytes_per_s", |_, cell| mean(cell.result.bytes_per_s)),
    column("bytes_per_s_low", |_, cell| low(cell.result.bytes_per_s)),
    column("bytes_per_s_high", |_, cell| high(cell.result.bytes_per_s)),
    column("ops_per_s", |_, cell| mean(cell.result.ops_per_s)),
    column("ops_per_s_low", |_, cell| low(cell.result.ops_per_s)),
    column("ops_per_s_high", |_, cell| high(cell.result.ops_per_s)),
    column("latency_count", |_, cell| latency(cell, |latency| Some(latency.count))),
    column("latency_min_ns", |_, cell| latency(cell, |latency| latency.min)),
    column("latency_mean_ns", |_, cell| {
        Real(cell.result.latency_ns.as_ref().and_then(|latency| latency.mean))
    }),
    column("latency_p50_ns", |_, cell| latency(cell, |latency| latency.p50)),
    column("latency_p90_ns", |_, cell| latency(cell, |latency| latency.p90)),
    column("latency_p99_ns", |_, cell| latency(cell, |latency| latency.p99)),
    column("latency_p999_ns", |_, cell| latency(cell, |latency| latency.p999)),
    column("latency_p9999_ns", |_, cell| latency(cell, |latency| latency.p9999)),
    column("latency_max_ns", |_, cell| latency(cell, |latency| latency.max)),
    column("to_return_ns", |_, cell| Whole(cell.result.to_return_ns)),
    column("to_close_ns", |_, cell| Whole(cell.result.to_close_ns)),
    column("to_stable_ns", |_, cell| Whole(cell.result.to_stable_ns)),
    column("in_flight_mean", |_, cell| Real(cell.result.in_flight_mean)),
    column("cpu_user_ns", |_, cell| Whole(cell.result.cpu_ns.map(|cpu| cpu.user))),
    column("cpu_system_ns", |_, cell| Whole(cell.result.cpu_ns.map(|cpu| cpu.system))),
    column("errors", |_, cell| Whole(Some(cell.result.errors.len() as u64))),
    column("evidence", |_, cell| Word(cell.evidence.source.as_str())),
    column("device_reads", |_, cell| counted(cell, |device| device.reads)),
    column("device_read_bytes", |_, cell| Whole(metrics::device_bytes(cell, Op::Read))),
    column("device_writes", |_, cell| counted(cell, |device| device.writes)),
    column("device_write_bytes", |_, cell| Whole(metrics::device_bytes(cell, Op::Write))),
    column("device_flushes", |_, cell| counted(cell, |device| device.flushes)),
    column("verdict", |_, cell| Word(cell.verdict.as_ref().map_or("", |verdict| verdict.code.as_str()))),
    column("device_share", |_, cell| Real(cell.verdict.as_ref().and_then(|verdict| verdict.device_share))),
    column("lasting_bytes_per_s", |record, cell| {
        Real(lasting_of(record, cell).map(|lasting| lasting.bytes_per_s))
    }),
    column("rate_is", |record, cell| {
        Word(
            lasting_of(record, cell).map_or("", |lasting| if lasting.is_burst { "burst" } else { "lasting" }),
        )
    }),
];

/// The Records as one CSV (RFC 4180, lines end with a line feed): the head, then a row for each cell.
///
/// Names that a spreadsheet would take for a formula stand behind an apostrophe, as docs/export.md says.
pub fn csv<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<String>| {
        writer.write_record(row).expect("every row has all columns, and memory takes them");
    };
    write(COLUMNS.iter().map(|column| column.name.to_owned()).collect());
    for record in records {
        for cell in &record.cells {
            write(COLUMNS.iter().map(|column| shown((column.value)(record, cell))).collect());
        }
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("every field is text")
}

const fn column(name: &'static str, value: fn(&Record, &CellRecord) -> Field) -> Column {
    Column { name, value }
}

fn shown(field: Field) -> String {
    match field {
        Text(text) => text.as_deref().map_or_else(String::new, harmless),
        Word(word) => word.into(),
        Whole(value) => value.map_or_else(String::new, |value| value.to_string()),
        // The shortest text that reads back as the same number.
        Real(value) => {
            value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
        }
    }
}

/// The text without control characters, and behind an apostrophe where a spreadsheet would calculate it. A text that begins with
/// one gets a second one, so that the program that takes one away has the name.
fn harmless(text: &str) -> String {
    let text = printable(text);
    // Spreadsheets pass over spaces before a formula, and some take the full-width signs for the plain ones.
    let signs = ['=', '+', '-', '@', '\'', '＝', '＋', '－', '＠'];
    if text.trim_start().starts_with(signs) { format!("'{text}") } else { text }
}

fn text(text: &str) -> Field {
    Text(Some(text.into()))
}

fn source(record: &Record) -> String {
    record.source.as_ref().map_or_else(|| "rdsk".into(), |source| source.tool.clone())
}

/// The names of all targets of a cell.
pub(crate) fn target_names(record: &Record, cell: &CellRecord) -> String {
    let name = |&index: &u32| metrics::target(record, index).map_or("?", |target| target.name.as_str());
    cell.workload.targets.iter().map(name).collect::<Vec<_>>().join(" + ")
}

/// A fact of the first target.
fn of_target<T>(record: &Record, cell: &CellRecord, fact: impl FnOnce(&Target) -> Option<T>) -> Option<T> {
    metrics::first_target(record, cell).and_then(fact)
}

fn of_device<T>(record: &Record, cell: &CellRecord, fact: impl FnOnce(&Device) -> Option<T>) -> Option<T> {
    metrics::first_device(record, cell).and_then(fact)
}

fn mean(rate: Option<Estimate>) -> Field {
    Real(rate.map(|rate| rate.mean))
}

fn low(rate: Option<Estimate>) -> Field {
    Real(rate.and_then(|rate| rate.low))
}

fn high(rate: Option<Estimate>) -> Field {
    Real(rate.and_then(|rate| rate.high))
}

fn latency(cell: &CellRecord, which: fn(&Latency) -> Option<u64>) -> Field {
    Whole(cell.result.latency_ns.as_ref().and_then(which))
}

/// The sum over the devices that stand for the targets; unknown if one of them is.
fn counted(cell: &CellRecord, count: fn(&DeviceEvidence) -> Option<u64>) -> Field {
    let sum = |devices: Vec<&DeviceEvidence>| devices.into_iter().map(count).sum::<Option<u64>>();
    Whole(metrics::devices(cell).and_then(sum))
}
