//! What a write cell measured: memory that took the data, a device, or a device that others used too. It never judges
//! reads.

use super::Judgement;
use super::facts::{COMPRESSED_SHARE, FOREIGN_BYTES, FOREIGN_SHARE, Facts, are_foreign};
use super::zeros::past_the_block_layer;
use crate::metrics::{self, PAGE_BYTES};
use crate::words;
use rdsk_model::{IoPath, Op, Sync, VerdictCode};
use rdsk_units::percent;

/// A write without a sync measured the device only if the device had absorbed this share at the return.
const ABSORBED_SHARE: f64 = 0.9;
/// A durable or direct write has reached the device if this share was counted there.
const DURABLE_SHARE: f64 = 0.98;
/// Ratio of whole pages to written bytes from which the difference exceeds that of metadata.
const CLEARLY_MORE: f64 = 1.2;
/// A filesystem also writes its journal and metadata, several blocks for each small durable write.
const JOURNAL_FACTOR: f64 = 10.0;
const JOURNAL_BYTES: u64 = 16 << 20;

/// Steps 3 and 4 of the verdict: `page-cache`, `unverified`.
pub(super) fn memory(facts: &Facts<'_>) -> Judgement {
    let Some(share) = facts.share else { return Some(without_counters(facts)) };
    if let Some(judgement) = past_the_block_layer(facts) {
        return Some(judgement);
    }
    if let Some(text) = through_pages(facts).or_else(|| journalled(facts)) {
        return Some((VerdictCode::PageCache, text));
    }
    if facts.cell.workload.sync == Sync::None
        && let Some(absorbed) = absorbed(facts)
        && absorbed < ABSORBED_SHARE
        && (!facts.is_direct() || share >= DURABLE_SHARE)
    {
        return Some((VerdictCode::PageCache, returned_early(facts, absorbed)));
    }
    if facts.cell.workload.sync == Sync::None && !facts.is_direct() {
        // Pages overwritten while still dirty reach the device once, so less than all is normal.
        return None;
    }
    if share >= DURABLE_SHARE { None } else { Some(too_little(facts, share)) }
}

/// Whether a filesystem passed partial-page direct writes through the page cache, as btrfs does (measured on 6.1, 2026-11):
/// the kernel charges whole pages when it dirties them, and only the bytes when they bypass the cache. Such writes may be on
/// the device at their return, but pages were copied, read and written back for them.
fn through_pages(facts: &Facts<'_>) -> Option<String> {
    let workload = &facts.cell.workload;
    if !facts.is_direct()
        || !facts.is_file()
        || facts.is_simulated()
        || !metrics::writes_partial_pages(workload, PAGE_BYTES)
    {
        return None;
    }
    // The minimum number of pages that writes of this size touch, at any offset.
    let pages_bytes = workload.block_bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES;
    let is_inside =
        workload.shift_bytes.is_multiple_of(PAGE_BYTES) && workload.align_bytes.is_multiple_of(PAGE_BYTES);
    let crosses = !is_inside && workload.block_bytes.is_multiple_of(PAGE_BYTES);
    let touched = (pages_bytes + if crosses { PAGE_BYTES } else { 0 }) as f64 / workload.block_bytes as f64;
    let charged = facts.process_share?;
    // A few metadata pages are charged in either case, so the threshold lies halfway between the two; if the difference is
    // small, all of it must be there.
    let least = if touched >= CLEARLY_MORE { f64::midpoint(1.0, touched) } else { touched };
    (charged >= least && touched > 1.0).then(|| {
        let charged = words::bytes(facts.cell.evidence.process.write_bytes.unwrap_or(0));
        let kind = facts.filesystems().next();
        let kind = kind.map_or_else(|| "the filesystem".to_owned(), |kind| rdsk_units::printable(&kind.kind));
        format!(
            "{kind} passed these partial-page direct writes through the page cache: the kernel charged {charged} in whole pages \
             for {}, and {} wrote {}",
            words::bytes(facts.bytes),
            facts.device_names,
            words::bytes(facts.moved.unwrap_or(0)),
        )
    })
}

/// Whether the filesystem takes direct writes through the page cache and its journal: ext4 that journals data as well
/// (Documentation/admin-guide/ext4.rst, `data=journal`: no O_DIRECT).
fn journalled(facts: &Facts<'_>) -> Option<String> {
    let journals = |options: &str| options.split(',').any(|option| option == "data=journal");
    let is_such = |kind: &&rdsk_model::Filesystem| kind.kind == "ext4" && journals(&kind.options);
    let kind = facts.filesystems().find(is_such).filter(|_| facts.is_direct() && !facts.is_simulated())?;
    Some(format!(
        "{} with data=journal sends direct writes through the page cache and its journal: {} wrote {} for {} completed",
        rdsk_units::printable(&kind.kind),
        facts.device_names,
        words::bytes(facts.moved.unwrap_or(0)),
        words::bytes(facts.bytes),
    ))
}

/// The share that the device had written when the last write returned, without what was still dirty, so that the writes
/// of others do not count as ours.
fn absorbed(facts: &Facts<'_>) -> Option<f64> {
    let counted =
        metrics::returned_bytes(facts.cell, Op::Write)? as f64 / facts.bytes as f64 / facts.written.least;
    let dirty = facts.cell.evidence.page_cache.and_then(|cache| cache.after.dirty_bytes);
    let clean = dirty.map_or(1.0, |dirty| 1.0 - metrics::ratio(dirty.min(facts.bytes), facts.bytes));
    Some(counted.min(clean).min(1.0))
}

fn returned_early(facts: &Facts<'_>, absorbed: f64) -> String {
    let result = &facts.cell.result;
    let timed = |ns: Option<u64>| {
        ns.filter(|&ns| ns > 0).map(|ns| words::rate(facts.bytes as f64 / metrics::seconds(ns)))
    };
    let times = match (timed(result.to_return_ns), timed(result.to_stable_ns)) {
        (Some(returned), Some(stable)) => format!("{returned} into RAM, {stable} on disk; "),
        _ => String::new(),
    };
    let device = &facts.device_names;
    let (absorbed, bytes) = (percent(absorbed), words::bytes(facts.bytes));
    let moved = facts.moved.unwrap_or(0);
    let others = foreign_writes(facts).filter(|_| !facts.is_simulated() && !facts.is_served());
    let in_the_end = others.map_or_else(
        || format!("{} in the end", words::bytes(moved)),
        |(foreign, _)| {
            let ours = words::bytes(moved - foreign);
            let foreign = words::bytes(foreign);
            format!("at most {ours} for it in the end; {foreign} more were for others, or for the filesystem")
        },
    );
    let what = match (facts.is_direct(), facts.is_simulated()) {
        (true, false) => "O_DIRECT fell back to memory",
        (true, true) => "the host kept direct writes in memory",
        (false, _) => "memory took the data",
    };
    format!("{what}: {times}{device} had written {absorbed} of {bytes} at the return and {in_the_end}")
}

fn too_little(facts: &Facts<'_>, share: f64) -> (VerdictCode, String) {
    let device = &facts.device_names;
    let (bytes, moved) = (words::bytes(facts.bytes), words::bytes(facts.moved.unwrap_or(0)));
    let workload = &facts.cell.workload;
    if let Some(text) = stored_in_less(facts, share) {
        return (VerdictCode::Unverified, text);
    }
    if workload.path.uses_page_cache() && workload.sync == Sync::FsyncAtEnd {
        let text = format!(
            "{} of {bytes} stayed in memory: {device} wrote {moved}, because pages were overwritten before the sync",
            percent(1.0 - share)
        );
        return (VerdictCode::PageCache, text);
    }
    match facts.process_share {
        Some(process) if facts.is_file() && process < DURABLE_SHARE => {
            let text = format!("the filesystem kept {bytes} in memory: {device} wrote {moved}");
            (VerdictCode::PageCache, text)
        }
        _ => {
            let text = format!(
                "{bytes} were written, {device} counted {moved}: its counters do not follow this I/O"
            );
            (VerdictCode::Unverified, text)
        }
    }
}

/// A file that takes less room than it has bytes, also where direct writes go through the page cache (btrfs does that with checksums since
/// 6.15). The kernel charges a page each time that it becomes dirty, so what was charged in
/// full was not overwritten in memory: all of it left memory, and the filesystem packed it (measured on a loop device, 2026-11, btrfs
/// with `compress=zstd:1`: 200 MiB of zeros charged, 3.5 % of it written).
fn stored_in_less(facts: &Facts<'_>, share: f64) -> Option<String> {
    let kind = facts.compressing_filesystem()?;
    let is_charged = facts.process_share.is_some_and(|charged| charged >= DURABLE_SHARE);
    // Direct writes that no device counted may have gone past these counters altogether.
    let is_counted = !facts.is_direct() || share >= COMPRESSED_SHARE;
    let may_be = is_charged && facts.is_file() && !facts.is_simulated() && is_counted;
    may_be.then(|| {
        format!(
            "none of {} was overwritten in memory, and {} wrote {} of it: {} keeps the file in fewer bytes (compression), so that this \
             is not the rate of the device",
            words::bytes(facts.bytes),
            facts.device_names,
            percent(share),
            rdsk_units::printable(&kind.kind),
        )
    })
}

fn without_counters(facts: &Facts<'_>) -> (VerdictCode, String) {
    if let Some(judgement) = facts.memory_filesystem() {
        return judgement;
    }
    let dirty = facts.cell.evidence.page_cache.and_then(|cache| cache.after.dirty_bytes);
    if let Some(dirty) = dirty.filter(|&dirty| metrics::ratio(dirty, facts.bytes) > 1.0 - ABSORBED_SHARE) {
        let (dirty, bytes) = (words::bytes(dirty), words::bytes(facts.bytes));
        let text =
            format!("memory took the data: {dirty} of {bytes} were dirty in the page cache at the return");
        return (VerdictCode::PageCache, text);
    }
    (
        VerdictCode::Unverified,
        format!("no counter shows whether the bytes were written: {}", facts.no_counters()),
    )
}

/// What the device wrote that our writes do not explain, where it is so much that others wrote, and what they explain, in bytes.
fn foreign_writes(facts: &Facts<'_>) -> Option<(u64, u64)> {
    let moved = facts.moved?;
    // How much parity is written depends on the writes, and parity updates also read.
    let copies = facts.written.most?;
    // A buffered partial-page write submits the whole page, and the kernel charges the whole page.
    let pages = match facts.cell.workload.path {
        IoPath::Buffered | IoPath::DontCache => {
            facts.ops * (facts.cell.workload.block_bytes.div_ceil(PAGE_BYTES) + 1) * PAGE_BYTES
        }
        IoPath::Direct => facts.bytes,
    };
    let ours = facts.cell.evidence.process.write_bytes.unwrap_or(pages).max(facts.bytes);
    let (limit_bytes, limit_share) =
        if facts.is_file() { (JOURNAL_BYTES, JOURNAL_FACTOR) } else { (FOREIGN_BYTES, FOREIGN_SHARE) };
    let foreign = moved.saturating_sub(metrics::whole(ours as f64 * copies));
    (foreign > limit_bytes && metrics::ratio(foreign, ours) > limit_share).then_some((foreign, ours))
}

/// Step 8: the device wrote or read more than our writes explain.
pub(super) fn disturbed(facts: &Facts<'_>) -> Judgement {
    facts.written.most?;
    let read = facts.opposite?;
    let device = &facts.device_names;
    if let Some((foreign, ours)) = foreign_writes(facts) {
        let (foreign, ours) = (words::bytes(foreign), words::bytes(ours));
        let text = format!("{device} wrote {foreign} for others besides the {ours} of this test");
        return Some((VerdictCode::Disturbed, text));
    }
    let our_reads = facts.charged(Op::Read).unwrap_or(facts.ops * 2 * PAGE_BYTES);
    let foreign = read.saturating_sub(our_reads);
    are_foreign(foreign, facts.bytes).then(|| {
        let (foreign, bytes) = (words::bytes(foreign), words::bytes(facts.bytes));
        (VerdictCode::Disturbed, format!("{device} read {foreign} for others while {bytes} were written"))
    })
}
