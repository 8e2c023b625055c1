//! The one sentence that the user of a copy needs: what the figure is of, and which operand gives the one that was wanted. It
//! says nothing that the verdicts do not show.

use super::{nanos, storage_name};
use crate::block_io;
use rdsk_analysis::charged::charged;
use rdsk_analysis::copy::{Parts, cell, parts};
use rdsk_analysis::metrics::PAGE_BYTES;
use rdsk_analysis::{Analysis, is_of_loop_file, metrics, words};
use rdsk_model::{CellRecord, Copy, EndKind, IoPath, Op, Problem, Status, Sync, Target, VerdictCode};
use rdsk_units::printable;

/// From this many times dd's time on, the data reached the device later than dd said.
const LATER: f64 = 1.1;
/// From this share of the time on, one end set the pace.
const PACE: f64 = 0.6;
/// A call into memory takes less, also on a busy machine; what takes longer waits for something.
const MAX_CALL_NS: f64 = 50e3;
/// A device that is busy for less of the time did not set the pace.
const IDLE: f64 = 0.5;
/// Direct I/O takes multiples of this where the device does not say otherwise.
const DIRECT_ALIGN: u64 = 512;

pub(crate) fn sentence(analysis: &Analysis<'_>, copy: &Copy) -> String {
    let Some(parts) = parts(copy).filter(|_| has_copied(copy)) else {
        return "Nothing was copied, so nothing was measured.".into();
    };
    let (read, write) = (cell(analysis, copy, Op::Read), cell(analysis, copy, Op::Write));
    let of_calls = |cell| cost_of_calls(copy, cell).map(|text| (Rank::NotTheDevice, text));
    let of_read = read.and_then(|cell| of_calls(cell).or_else(|| of_reads(analysis, copy, cell)));
    let of_write = write.and_then(|cell| of_calls(cell).or_else(|| of_writes(analysis, copy, cell, &parts)));
    // What is no figure of a device comes first; then what took longer.
    let is_read_longer =
        parts.inside.is_some_and(|inside| inside.read_ns > inside.write_ns + parts.flush_ns + parts.close_ns);
    let said = match (of_read, of_write) {
        (None, None) => return no_storage(copy, &parts),
        (Some(only), None) | (None, Some(only)) => vec![only],
        (Some(read), Some(write)) if read.0 < write.0 || (read.0 == write.0 && is_read_longer) => {
            vec![read, (write.0, write.1.replacen("This", "The writes", 1))]
        }
        (Some(read), Some(write)) => vec![write, (read.0, read.1.replacen("This", "The reads", 1))],
    };
    let mut sentences: Vec<String> = said.into_iter().map(|(_, text)| text).collect();
    if let Some(first) = analysis.error.as_ref().and_then(not_all) {
        sentences.insert(0, first);
    }
    sentences.extend(pace(copy, &parts));
    if copy.runs.iter().any(|run| !run.is_complete) {
        let is_alone = !copy.runs.iter().any(|run| run.is_complete);
        let text = if is_alone && analysis.status == Status::Interrupted {
            "The copy was cut short: these are the figures until then."
        } else if is_alone {
            "The copy failed: these are the figures until then."
        } else {
            "The last run was cut short: these are the times of those before it."
        };
        sentences.push(text.into());
    }
    sentences.join(" ")
}

/// What is said first of a copy of which not all is where it should be.
fn not_all(error: &Problem) -> Option<String> {
    let message = printable(&error.message);
    match error.code.as_str() {
        // dd takes the end of a device that was removed for the end of its content.
        "gone" => Some(format!("Not all was copied: {message}.")),
        // The block layer counts a request when it ends, however it ends.
        "flush-failed" => {
            Some(format!("Data was lost: {message}. What a device counted holds requests that failed, too."))
        }
        _ => None,
    }
}

/// Whether any byte was written.
pub(super) fn has_copied(copy: &Copy) -> bool {
    copy.runs.iter().any(|run| run.written_bytes > 0)
}

/// How much a sentence matters; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    NotTheDevice,
    TheDevice,
}

/// Neither end is storage, or none that could be looked up.
fn no_storage(copy: &Copy, parts: &Parts) -> String {
    let (input, output) = (name(copy.input.kind), name(copy.output.kind));
    let is_memory = |kind: EndKind| matches!(kind, EndKind::Zero | EndKind::Null);
    if is_memory(copy.input.kind) && is_memory(copy.output.kind) {
        return format!("No disk took part: from {input} to {output} only the processor works.");
    }
    let slower = parts.inside.map_or_else(String::new, |inside| {
        let slower = if inside.read_ns > inside.write_ns { "reads" } else { "writes" };
        format!("; the {slower} took longer")
    });
    if is_storage(copy.input.kind) || is_storage(copy.output.kind) {
        return format!("Which disk took part cannot be looked up here (it needs /proc and /sys){slower}.");
    }
    format!("No disk took part: this measured {input} and {output}{slower}.")
}

/// Whether an end is on a disk, even where no look-up says on which.
pub(super) fn is_storage(kind: EndKind) -> bool {
    matches!(kind, EndKind::File | EndKind::Block)
}

/// An end that is no storage, in words.
pub(super) fn name(kind: EndKind) -> &'static str {
    match kind {
        EndKind::File => "a file",
        EndKind::Block => "a block device",
        EndKind::Zero => "/dev/zero",
        EndKind::Null => "/dev/null",
        EndKind::Random => "the random generator",
        EndKind::Character => "a character device",
        EndKind::Pipe => "a pipe",
        EndKind::Socket => "a socket",
        EndKind::Terminal => "a terminal",
        EndKind::Directory => "a directory",
    }
}

/// An input that is no storage and took most of the time hides what the output can do.
fn pace(copy: &Copy, parts: &Parts) -> Option<String> {
    let share = parts.inside?.read_ns / parts.total_ns;
    let is_storage = copy.input.target.is_some();
    (!is_storage && share >= PACE).then(|| {
        let (share, input) = (rdsk_units::percent(share), name(copy.input.kind));
        format!("{share} of the time went into reading from {input}: the output may be faster.")
    })
}

fn of_reads(analysis: &Analysis<'_>, copy: &Copy, cell: &CellRecord) -> Option<(Rank, String)> {
    let device =
        storage_name(analysis, copy, Op::Read).map_or_else(|| "no device".into(), |name| printable(&name));
    let moved = words::bytes(cell.result.bytes? / metrics::visits(cell));
    let verdict = cell.verdict.as_ref()?;
    Some(match verdict.code {
        VerdictCode::Incomplete => return None,
        VerdictCode::PageCache if !reaches_device(analysis, cell) => {
            (Rank::NotTheDevice, format!("The input is kept in memory by {device}: no disk was read."))
        }
        VerdictCode::PageCache
            if cell.workload.path == IoPath::Buffered && !is_of_loop_file(cell, &analysis.targets) =>
        {
            (Rank::NotTheDevice, cached(analysis, cell, &device, &moved))
        }
        VerdictCode::Hole => (Rank::NotTheDevice, format!("This measured no disk: {}.", verdict_text(cell))),
        VerdictCode::Device if cell.workload.path == IoPath::Direct => {
            (Rank::TheDevice, format!("This measured {device}: {}.", one_at_a_time(cell, "direct reads")))
        }
        VerdictCode::Device => (
            Rank::TheDevice,
            format!("This measured {device}, read through the page cache: {}.", readahead(cell)),
        ),
        code => (Rank::NotTheDevice, format!("The reads are {code}: {}.", verdict_text(cell))),
    })
}

/// Memory answered reads.
fn cached(analysis: &Analysis<'_>, cell: &CellRecord, device: &str, moved: &str) -> String {
    let delivered = match delivered(analysis, cell) {
        Some(0) => format!("none of the {moved} that were read came from {device}"),
        Some(bytes) => format!("of {moved} that were read, {device} delivered only {}", words::bytes(bytes)),
        None => format!("it answered an unknown part of the {moved} that were read"),
    };
    let advice = if takes_direct(analysis, cell) { "add iflag=direct, or drop" } else { "drop" };
    format!(
        "This measured the page cache: {delivered}; {advice} the input's pages before with iflag=nocache count=0."
    )
}

fn of_writes(
    analysis: &Analysis<'_>,
    copy: &Copy,
    cell: &CellRecord,
    parts: &Parts,
) -> Option<(Rank, String)> {
    let device =
        storage_name(analysis, copy, Op::Write).map_or_else(|| "no device".into(), |name| printable(&name));
    let verdict = cell.verdict.as_ref()?;
    Some(match (verdict.code, parts.later_ns) {
        (VerdictCode::Incomplete, _) => return None,
        (VerdictCode::PageCache, _) if !reaches_device(analysis, cell) => {
            (Rank::NotTheDevice, format!("The output is kept in memory by {device}: no disk was written."))
        }
        (VerdictCode::PageCache, Some(_)) if !is_of_loop_file(cell, &analysis.targets) => {
            (Rank::NotTheDevice, taken_by_memory(analysis, cell, &device, parts))
        }
        (VerdictCode::Device, _) => (Rank::TheDevice, written(copy, cell, &device, much_later(parts))),
        (code, _) => (Rank::NotTheDevice, format!("The writes are {code}: {}.", verdict_text(cell))),
    })
}

/// What a call cost, where that is what took the time: blocks smaller than a page that went through memory, while the device was idle for
/// the most part. What a byte costs there is nothing beside what a call does.
fn cost_of_calls(copy: &Copy, cell: &CellRecord) -> Option<String> {
    let workload = &cell.workload;
    let verdict = cell.verdict.as_ref()?;
    let is_of_memory = matches!(verdict.code, VerdictCode::PageCache | VerdictCode::Device)
        && workload.path == IoPath::Buffered
        && workload.sync != Sync::Dsync;
    let busy = metrics::devices(cell).unwrap_or_default();
    let is_busy = |device| metrics::busy_share(cell, device).is_some_and(|share| share >= IDLE);
    if workload.block_bytes >= PAGE_BYTES || !is_of_memory || busy.into_iter().any(is_busy) {
        return None;
    }
    let parts = parts(copy)?;
    let inside = parts.inside.filter(|inside| inside.read_ns + inside.write_ns >= PACE * parts.total_ns)?;
    let ns = match workload.op {
        Op::Read => inside.read_ns,
        Op::Write => inside.write_ns,
    };
    let each_ns = ns / (cell.result.ops? / metrics::visits(cell)).max(1) as f64;
    let (block, each) = (words::bytes(workload.block_bytes), nanos(each_ns));
    let op = workload.op;
    (each_ns <= MAX_CALL_NS).then(|| {
        format!(
            "This measured the cost of a call: a {op} of {block} took {each}, whatever the device; raise bs."
        )
    })
}

/// How much later than dd said the data was stable, if that is much.
fn much_later(parts: &Parts) -> Option<f64> {
    parts.later_ns.filter(|later| parts.total_ns + later >= LATER * parts.total_ns)
}

/// Memory took writes, wholly or in part, and the device had them later.
fn taken_by_memory(analysis: &Analysis<'_>, cell: &CellRecord, device: &str, parts: &Parts) -> String {
    let moved = words::bytes(cell.result.bytes.unwrap_or(0) / metrics::visits(cell));
    let rate = stable_rate(cell).map_or_else(String::new, |rate| format!(" ({rate} until then)"));
    let (total, later) = (nanos(parts.total_ns), nanos(parts.later_ns.unwrap_or(0.0)));
    let part = if much_later(parts).is_some() { "" } else { " in part" };
    format!(
        "This measured the page cache{part}: {moved} returned in {total}, and reached {device} {later} later{rate}; add {}.",
        write_advice(analysis, cell)
    )
}

/// What writes that reached their device show.
fn written(copy: &Copy, cell: &CellRecord, device: &str, later: Option<f64>) -> String {
    let is_cut = !copy.runs.iter().any(|run| run.is_complete);
    let how = match (cell.workload.path, cell.workload.sync) {
        (_, Sync::Dsync) => "every write was stable when it returned".into(),
        (IoPath::Direct, _) => one_at_a_time(cell, "direct writes"),
        (_, Sync::FsyncAtEnd) if is_cut => {
            "most of the data had left the page cache when the copy ended, before the flush at its end".into()
        }
        (_, Sync::FsyncAtEnd) => "the flush at the end is in the time".into(),
        (IoPath::Buffered | IoPath::DontCache, _) => {
            "most of the data had left the page cache when dd was done".into()
        }
    };
    let rest = match cell.workload.path {
        IoPath::Direct => "the flush of its cache took",
        IoPath::Buffered | IoPath::DontCache => "what was still in memory took",
    };
    match (later, stable_rate(cell)) {
        (Some(later), Some(rate)) => {
            format!("This measured {device}: {how}; {rest} {} more ({rate} until on disk).", nanos(later))
        }
        _ => format!("This measured {device}: {how}."),
    }
}

fn one_at_a_time(cell: &CellRecord, what: &str) -> String {
    let block = block_io::call_size(cell);
    let each = cell.result.latency_ns.as_ref().and_then(|latency| latency.p50.or(latency.max));
    let each = each.map_or_else(String::new, |ns| format!(", each about {}", words::nanos(ns)));
    format!("{what} of {block}, one at a time{each}")
}

fn readahead(cell: &CellRecord) -> String {
    let block = block_io::call_size(cell);
    match metrics::mean_request_bytes(cell, Op::Read) {
        Some(mean) => {
            format!("reads of {block} were requests of {} on average", words::bytes(metrics::whole(mean)))
        }
        None => format!("reads of {block}"),
    }
}

/// Bytes that came from the device in a run: by its own counters, or by what the kernel charged, whichever is less.
fn delivered(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<u64> {
    let own = charged(cell, &analysis.targets, Op::Read);
    let of_all = [own, metrics::device_bytes(cell, Op::Read)].into_iter().flatten().min();
    of_all.map(|bytes| bytes / metrics::visits(cell))
}

fn write_advice(analysis: &Analysis<'_>, cell: &CellRecord) -> &'static str {
    match (cell.workload.sync, takes_direct(analysis, cell)) {
        (Sync::None, true) => "conv=fdatasync or oflag=direct",
        (Sync::None, false) => "conv=fdatasync",
        _ => "oflag=direct",
    }
}

/// Whether direct I/O takes blocks of this size at this place.
fn takes_direct(analysis: &Analysis<'_>, cell: &CellRecord) -> bool {
    let target = metrics::first_target(analysis, cell);
    let align = target.and_then(|target| target.direct_align_bytes).unwrap_or(DIRECT_ALIGN).max(1);
    let workload = &cell.workload;
    [workload.block_bytes, workload.offset_bytes].iter().all(|bytes| bytes.is_multiple_of(align))
}

fn reaches_device(analysis: &Analysis<'_>, cell: &CellRecord) -> bool {
    metrics::first_target(analysis, cell).is_some_and(|target: &Target| target.device.is_some())
}

fn stable_rate(cell: &CellRecord) -> Option<String> {
    metrics::stable_rate(cell).map(words::rate)
}

fn verdict_text(cell: &CellRecord) -> &str {
    cell.verdict.as_ref().map_or("", |verdict| verdict.text.as_str())
}
