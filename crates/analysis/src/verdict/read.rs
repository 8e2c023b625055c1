//! What a read cell measured: holes, memory, or a device that others used too. It never judges writes.

use super::Judgement;
use super::facts::{COMPRESSED_SHARE, Facts, are_foreign};
use super::zeros::{memory_had_nothing, past_the_block_layer};
use crate::medium::is_memory_disk;
use crate::{metrics, words};
use rdsk_model::{Op, Pattern, StreamRange, VerdictCode};
use rdsk_units::percent;

/// Below this share of bytes from the device, memory answered some reads. Readahead and partial last blocks stay above.
const DEVICE_SHARE: f64 = 0.9;
/// The same of filesystems that are made once, with extents as large as one likes (measured on 6.1, 2026-11, erofs with text: 0.43 %).
const PACKED_SHARE: f64 = 0.001;
const PACKED: &[&str] = &["erofs", "squashfs"];
/// From this share of unwritten bytes in the span on, missing device reads are attributed to holes.
const HOLE_SHARE: f64 = 0.1;
/// What the kernel may read ahead of each stream when it is unknown what it charged to us (the largest usual
/// `read_ahead_kb`, doubled).
const READAHEAD_BYTES: u64 = 8 << 20;

/// Steps 2 to 4 of the verdict: `hole`, `page-cache`, `unverified`.
pub(super) fn memory(facts: &Facts<'_>) -> Judgement {
    hole(facts)
        .or_else(|| past_the_block_layer(facts))
        .or_else(|| if facts.is_direct() { direct(facts) } else { buffered(facts) })
}

fn hole(facts: &Facts<'_>) -> Judgement {
    let holes = metrics::hole_share(facts.cell).filter(|&share| share >= HOLE_SHARE)?;
    // The extents may be older than the data; then the counters of both device and process show that the bytes were fetched.
    let fetched = match (facts.share, facts.process_share) {
        (Some(device), Some(process)) => device.min(process),
        (_, Some(process)) => process,
        (Some(device), None) if holes < 0.9 => device,
        _ => 0.0,
    };
    let missing = 1.0 - fetched.min(1.0);
    (missing >= 0.5 * holes).then(|| {
        let moved = match facts.moved {
            Some(moved) => format!("{} read {}", facts.device_names, words::bytes(moved)),
            None => "no device counter to compare".into(),
        };
        let (holes, bytes) = (percent(holes), words::bytes(facts.bytes));
        (
            VerdictCode::Hole,
            format!("{holes} of the span was never written and reads as zeros: {bytes} completed ({moved})"),
        )
    })
}

fn buffered(facts: &Facts<'_>) -> Judgement {
    if let Some(share) = own_share(facts) {
        let elsewhere = || stored_in_less(facts, share).or_else(|| elsewhere(facts));
        let answer = || elsewhere().unwrap_or_else(|| page_cache(facts, share));
        return (share < DEVICE_SHARE).then(answer);
    }
    let in_memory = facts.memory_filesystem();
    if in_memory.is_some() {
        return in_memory;
    }
    let (cell, visits) = (facts.cell, metrics::visits(facts.cell));
    let spans = facts.targets.len().max(1) as u64 * visits;
    let span = crate::passes::visit_span_bytes(cell).saturating_mul(spans);
    let cached = cell.evidence.page_cache.and_then(|cache| cache.before.cached_bytes);
    if let Some(cached) = cached.filter(|&cached| span > 0 && metrics::ratio(cached, span) >= DEVICE_SHARE) {
        let (cached, span) = (words::bytes(cached), words::bytes(span));
        let text = format!("{cached} of the {span} to be read were in the page cache before the first read");
        return Some((VerdictCode::PageCache, text));
    }
    Some(unverified(facts))
}

/// The kernel fetched the bytes for us from another device than the one that is counted, as from the realtime device of XFS
/// (measured on 6.1, 2026-11: 8 MiB fetched, the data device read nothing).
fn elsewhere(facts: &Facts<'_>) -> Judgement {
    let (device, fetched) = (facts.share?, facts.process_share?);
    let (moved, charged) = (facts.moved?, facts.charged(Op::Read)?);
    (device < DEVICE_SHARE && fetched >= DEVICE_SHARE && !facts.is_simulated()).then(|| {
        let (moved, charged) = (words::bytes(moved), words::bytes(charged));
        let device = &facts.device_names;
        let text = format!(
            "the kernel fetched {charged} for these reads, but {device} counted {moved}: its counters do not follow this I/O"
        );
        (VerdictCode::Unverified, text)
    })
}

/// The share that was fetched from a device for us: others' reads must not count as ours.
fn own_share(facts: &Facts<'_>) -> Option<f64> {
    match (facts.share, facts.process_share) {
        (Some(device), Some(_)) if is_never_charged(facts) => Some(device),
        (Some(device), Some(process)) => Some(device.min(process)),
        (Some(device), None) => Some(device),
        (None, _) if facts.process_share == Some(0.0) && is_uncounted_memory(facts) => None,
        (None, Some(process)) if facts.is_block_backed() => Some(process),
        (None, _) => None,
    }
}

/// Whether the kernel charges no process for these reads: until 6.4 it read single pages from zram, ram disks and pmem by a call
/// of the driver (`rw_page`) that no account passes (measured on 6.1 with zram, 2026-11: 16 MiB read, 0 charged). Memory has
/// not answered if it held nothing of the span at the start and no byte was read twice.
fn is_never_charged(facts: &Facts<'_>) -> bool {
    is_memory_disk(&facts.device_names) && facts.process_share == Some(0.0) && memory_had_nothing(facts)
}

/// The same of memory that does not count its I/O, as RAM disks do not.
fn is_uncounted_memory(facts: &Facts<'_>) -> bool {
    facts.memory_disk().is_some() && memory_had_nothing(facts)
}

/// A file that takes less room than it has bytes: compressed, as btrfs and squashfs keep it. Its device read all of it.
fn stored_in_less(facts: &Facts<'_>, share: f64) -> Judgement {
    let kind = facts.compressing_filesystem()?;
    // Streams that share a range may read what one of them has just brought into memory.
    let is_own = facts.cell.workload.range == StreamRange::Disjoint;
    let least = if PACKED.contains(&kind.kind.as_str()) { PACKED_SHARE } else { COMPRESSED_SHARE };
    let may_be = share >= least && is_own && facts.is_file() && !facts.is_simulated();
    if !(may_be && memory_had_nothing(facts)) {
        return None;
    }
    let text = format!(
        "nothing was in memory, and {} read {} of {} completed: {} keeps the file in fewer bytes (compression), so that this is not the \
         rate of the device",
        facts.device_names,
        percent(share),
        words::bytes(facts.bytes),
        rdsk_units::printable(&kind.kind),
    );
    Some((VerdictCode::Unverified, text))
}

fn page_cache(facts: &Facts<'_>, share: f64) -> (VerdictCode, String) {
    let moved = facts.moved.map(|moved| format!("{} read {}", facts.device_names, words::bytes(moved)));
    let charged = facts.charged(Op::Read);
    let system = if facts.is_simulated() { "the host" } else { "the kernel" };
    let charged =
        charged.map(|charged| format!("{system} fetched {} for these reads", words::bytes(charged)));
    let counted: Vec<String> = moved.into_iter().chain(charged).collect();
    let (served, bytes) = (percent(1.0 - share), words::bytes(facts.bytes));
    (VerdictCode::PageCache, format!("memory answered {served} of {bytes}: {}", words::list(&counted)))
}

fn direct(facts: &Facts<'_>) -> Judgement {
    let (Some(share), Some(moved)) = (facts.share, facts.moved) else {
        return facts.memory_filesystem().or_else(|| Some(unverified(facts)));
    };
    if share >= DEVICE_SHARE {
        return None;
    }
    let (bytes, moved) = (words::bytes(facts.bytes), words::bytes(moved));
    let device = &facts.device_names;
    // The counters of the process decide between a filesystem that answered from memory and counters of the wrong device.
    match facts.process_share {
        process if facts.is_file() && process.map_or(facts.is_served(), |process| process < DEVICE_SHARE) => {
            let stored = stored_in_less(facts, share);
            if stored.is_some() {
                return stored;
            }
            let served = percent(1.0 - share);
            let text = format!(
                "the filesystem answered {served} of {bytes} from memory despite O_DIRECT: {device} read {moved}"
            );
            Some((VerdictCode::PageCache, text))
        }
        _ => {
            let text = format!(
                "{bytes} were read with direct I/O, {device} counted {moved}: its counters do not follow this I/O"
            );
            Some((VerdictCode::Unverified, text))
        }
    }
}

fn unverified(facts: &Facts<'_>) -> (VerdictCode, String) {
    (VerdictCode::Unverified, format!("no counter shows where the bytes came from: {}", facts.no_counters()))
}

/// Step 8: the device read more than was read for us, or wrote while we only read.
pub(super) fn disturbed(facts: &Facts<'_>) -> Judgement {
    let moved = facts.moved?;
    let workload = &facts.cell.workload;
    let readahead = match workload.pattern {
        Pattern::Sequential if !facts.is_direct() => {
            let visits = metrics::visits(facts.cell);
            READAHEAD_BYTES.saturating_mul(u64::from(workload.streams)).saturating_mul(visits)
        }
        _ => 0,
    };
    let ours = match facts.charged(Op::Read) {
        Some(charged) => charged.max(facts.bytes),
        None => facts.bytes + readahead,
    };
    let is_much = |foreign: u64| are_foreign(foreign, facts.bytes);
    let (read, written) = (moved.saturating_sub(ours), facts.opposite.unwrap_or(0));
    let device = &facts.device_names;
    if is_much(read) && !facts.reconstructs() {
        let (read, ours) = (words::bytes(read), words::bytes(ours));
        return Some((
            VerdictCode::Disturbed,
            format!("{device} read {read} for others besides the {ours} of this test"),
        ));
    }
    is_much(written).then(|| {
        let (written, bytes) = (words::bytes(written), words::bytes(facts.bytes));
        (VerdictCode::Disturbed, format!("{device} wrote {written} for others while {bytes} were read"))
    })
}
