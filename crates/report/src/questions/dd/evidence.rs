//! What each end of a copy is, and what its device counted while the copy ran: requests, sizes, merges, depth, and the reads
//! that writes caused.

use super::answer::{is_storage, name};
use crate::block_io;
use rdsk_analysis::charged::{charged, is_served};
use rdsk_analysis::copy::cell;
use rdsk_analysis::metrics::{self, PAGE_BYTES};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Copy, CopyEnd, Op, Target};
use rdsk_units::printable;

/// Bytes that a device moves for each byte of the copy at most, readahead and metadata included.
const OURS: f64 = 1.25;

pub(super) fn of_end(analysis: &Analysis<'_>, copy: &Copy, op: Op) -> String {
    let end = match op {
        Op::Read => &copy.input,
        Op::Write => &copy.output,
    };
    let Some(cell) = cell(analysis, copy, op) else {
        let why = if is_storage(end.kind) { "its device cannot be looked up here" } else { "no storage" };
        return format!("{}: {why}", what(end));
    };
    let place = metrics::first_target(analysis, cell).map_or_else(String::new, place);
    // BPF says whose each bio is; without it, that is concluded from sums.
    let evidence = block_io::sentence(analysis, cell).unwrap_or_else(|| counted_requests(analysis, cell, op));
    format!("{}{place}: {evidence}", printable(&end.name))
}

fn what(end: &CopyEnd) -> String {
    let (given, kind) = (printable(&end.name), name(end.kind));
    if given == kind { given } else { format!("{given}, {kind}") }
}

/// ` on ext4, vda`.
fn place(target: &Target) -> String {
    let device = target.device.as_ref().map(|device| printable(&device.name));
    match (&target.filesystem, device) {
        (Some(filesystem), Some(device)) => format!(" on {}, {device}", printable(&filesystem.kind)),
        (Some(filesystem), None) => format!(" on {}", printable(&filesystem.kind)),
        (None, _) => String::new(),
    }
}

fn counted_requests(analysis: &Analysis<'_>, cell: &CellRecord, op: Op) -> String {
    let asked = block_io::asked(cell, cell.result.ops.unwrap_or(0));
    let Some(requests) = metrics::device_requests(cell, op) else {
        let is_counted = cell.evidence.device.iter().any(|device| device.diskstat.is_some());
        let why = if is_counted {
            "what its device counted may be the other end's"
        } else {
            "its device has no counters"
        };
        return format!("{asked}; {why}");
    };
    let mean = metrics::mean_request_bytes(cell, op).map(|mean| {
        format!("{} of {} on average", words::plural(requests, "request"), words::bytes(metrics::whole(mean)))
    });
    let mut parts = vec![match (mean, asker(analysis, cell, op)) {
        (Some(mean), Asker::Copy) => format!("{asked} became {mean}"),
        (Some(mean), Asker::OthersToo) => {
            format!("{asked}; its device did {mean}, those of others among them")
        }
        (Some(mean), Asker::Others) => {
            format!("{asked} and no request to the device, which did {mean} for others")
        }
        (Some(mean), Asker::Unknown) => {
            format!("{asked}; its device did {mean}, which others may have asked for")
        }
        (None, _) => format!("{asked}, and no request to the device"),
    }];
    if let Some(merges) = metrics::merges(cell, op).filter(|&merges| merges > 0) {
        parts.push(words::plural(merges, "merge"));
    }
    let devices = metrics::devices(cell).unwrap_or_default();
    if let Some(depth) =
        devices.iter().filter_map(|device| device.in_flight_max).max().filter(|&depth| depth > 0)
    {
        parts.push(format!("at least {depth} in flight at the peak"));
    }
    if op == Op::Write {
        parts.extend(reads_caused(cell));
        parts.extend(
            metrics::flushes(cell).filter(|&count| count > 0).map(|count| words::plural(count, "flush")),
        );
    }
    parts.join(", ")
}

/// Who asked a device for what it did while a copy ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Copy,
    OthersToo,
    Others,
    Unknown,
}

/// By what the kernel fetched for this process, where that is known, and by what the copy moved: much more is of others as well,
/// and less may be, since memory can have answered the copy.
fn asker(analysis: &Analysis<'_>, cell: &CellRecord, op: Op) -> Asker {
    let Some(moved) = metrics::device_bytes(cell, op) else { return Asker::Unknown };
    let charged = charged(cell, &analysis.targets, op).filter(|_| op == Op::Read);
    let Some(expected) = charged.or(cell.result.bytes) else { return Asker::Unknown };
    if expected == 0 {
        return Asker::Others;
    }
    let share = metrics::ratio(moved, expected);
    // Copies on several devices are no surplus.
    let least = if op == Op::Write { metrics::written(cell).least } else { 1.0 };
    match share {
        // A server of FUSE asks for what it needs besides, as others do.
        share if share > OURS * least && metrics::first_target(analysis, cell).is_some_and(is_served) => {
            Asker::Unknown
        }
        share if share > OURS * least => Asker::OthersToo,
        share if charged.is_none() && share < least / OURS => Asker::Unknown,
        _ => Asker::Copy,
    }
}

/// The pages that were read because only a part of each was written.
fn reads_caused(cell: &CellRecord) -> Option<String> {
    let read = cell.evidence.process.read_bytes.filter(|&bytes| bytes >= PAGE_BYTES)?;
    metrics::writes_partial_pages(&cell.workload, PAGE_BYTES)
        .then(|| format!("{} read because of writes of part of a page", words::bytes(read)))
}
