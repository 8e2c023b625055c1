//! What BPF programs counted of one watched device: bios and requests by kind, the other counts, and sentences that say why. Each sentence
//! follows from counts that stand above it.

use super::{bio_kinds, request_kinds};
use crate::figures::MISSING;
use crate::page::{Page, Tone};
use rdsk_analysis::block_io::{Account, Sum};
use rdsk_analysis::metrics;
use rdsk_analysis::words::{self, plural};
use rdsk_model::{BlockActivity, Op, Origin, ProcessCalls};
use rdsk_units::Nanos;

/// No Linux has smaller pages; what those of this machine are is not known here, and is not said.
const SMALLEST_PAGE_BYTES: u64 = metrics::PAGE_BYTES;
/// Fewer reads for each write are the filesystem's own.
const READS_PER_WRITE: f64 = 0.05;
/// A mean so near to a power of two is said to be about that: a command's messages are writes, too.
const NEAR: f64 = 0.02;

/// Lines below the name of the device. `calls` are those of the command that is watched, where the kernel says them.
pub(crate) fn draw_activity(page: &mut Page, block: &BlockActivity, calls: Option<&ProcessCalls>) {
    let account = Account::from(block);
    for (lead, kinds) in
        [("  bios: ", bio_kinds(&account)), ("  requests: ", request_kinds(&account, block.flushes))]
    {
        page.sentence(Tone::Plain, lead, if kinds.is_empty() { MISSING.to_owned() } else { kinds });
    }
    page.sentence(Tone::Plain, "  ", other_counts(block));
    for sentence in explained(block, &account, calls) {
        page.sentence(Tone::Plain, "  ", sentence);
    }
}

fn other_counts(block: &BlockActivity) -> String {
    let mut text = format!("{}, {}", plural(block.merges, "merge"), plural(block.splits, "split"));
    for (count, what) in [(block.discards, "discard"), (block.write_zeroes, "write-zeroes request")] {
        if count > 0 {
            text.push_str(&format!(", {}", plural(count, what)));
        }
    }
    if let Some(median) = block.latency.quantile_unchecked(0.5) {
        text.push_str(&format!("; {} in the device (median)", Nanos(median)));
    }
    if let Some(deepest) = block.deepest.filter(|&deepest| deepest > 0) {
        text.push_str(&format!("; at most {deepest} in flight"));
    }
    text
}

/// What explains the counts; each sentence only where its counts are there.
fn explained(block: &BlockActivity, account: &Account<'_>, calls: Option<&ProcessCalls>) -> Vec<String> {
    let (reads, writes) = (account.origins(Op::Read), account.origins(Op::Write));
    let mut said = Vec::new();
    let in_writes = reads.iter().filter(|(origin, _)| origin.is_write_call());
    said.extend(in_writes.map(|(origin, sum)| read_first(*origin, *sum, calls)));
    for (origin, sum) in writes.iter().filter(|(origin, _)| origin.flushes()) {
        said.push(format!("The data left at {origin}{}.", in_requests(account, *sum)));
    }
    for (origin, sum) in writes.iter().filter(|(origin, _)| origin.submits_writes()) {
        said.push(format!(
            "The data left inside {origin}{}: past the page cache, or on disk before the call returned.",
            in_requests(account, *sum)
        ));
    }
    if writes.iter().any(|(origin, _)| *origin == Origin::Kernel) {
        said.push("The kernel's threads wrote, too: what any process had left in memory, or what loop devices pass on.".into());
    }
    for (op, which) in [(Op::Read, "read"), (Op::Write, "wrote")] {
        let (bios, requests) = (account.by(op, |_| true).count, account.requests(op).count);
        if block.merges > 0 && block.lost == 0 && bios > requests {
            let (bios, requests) = (plural(bios, "bio"), plural(requests, "request"));
            said.push(format!("Neighbours were merged: {bios} that {which} became {requests}."));
        }
    }
    if block.splits > 0 {
        let splits = plural(block.splits, "split");
        said.push(format!("{splits} cut bios that were larger than a request may be."));
    }
    if reads.iter().chain(&writes).any(|(origin, _)| *origin == Origin::Other) {
        said.push(
            "Other processes used the device meanwhile; the requests and times hold theirs, too.".into(),
        );
    }
    if block.lost > 0 {
        said.push(format!("The programs missed {}: the counts may be too low.", plural(block.lost, "event")));
    }
    said
}

/// Why a write made the kernel read. A filesystem reads blocks of its own inside a write, too: bitmaps, tables, sectors of a FAT.
/// That it read the rest of pages is said only where nearly nothing else explains the counts.
fn read_first(origin: Origin<'_>, reads: Sum, calls: Option<&ProcessCalls>) -> String {
    let inside = format!("{} inside {origin}", plural(reads.count, "read"));
    match calls.and_then(|calls| part_of_page(reads, calls)) {
        Some(each) => format!(
            "Each write of about {} fills a part of a page, so the kernel read the page first: {inside}.",
            about(each)
        ),
        None => format!(
            "{inside}: the kernel needed {} for these writes, for pages that change only in part or for the filesystem's own blocks.",
            if reads.count == 1 { "it" } else { "them" }
        ),
    }
}

/// The mean size of the command's writes, where it is below a page, each read is of a page at least, and there are as many reads as
/// such writes make.
fn part_of_page(reads: Sum, calls: &ProcessCalls) -> Option<f64> {
    let each = (calls.writes > 0).then(|| metrics::ratio(calls.written_bytes, calls.writes))?;
    let are_pages = reads.bytes >= reads.count.saturating_mul(SMALLEST_PAGE_BYTES);
    let are_many = reads.count as f64 >= READS_PER_WRITE * calls.writes as f64;
    (each < SMALLEST_PAGE_BYTES as f64 && are_pages && are_many).then_some(each)
}

/// `, 2 requests of 512 KiB`, if all requests to write are these bios'.
fn in_requests(account: &Account<'_>, bios: Sum) -> String {
    let requests = account.requests(Op::Write);
    match account.request_sizes(Op::Write)[..] {
        _ if requests.bytes != bios.bytes => String::new(),
        [(each, count)] => format!(", {} of {}", plural(count, "request"), words::bytes(each)),
        _ => format!(", {}", plural(requests.count, "request")),
    }
}

/// A mean size, as the power of two that it is nearly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean size is not negative, and far below 2^53"
)]
fn about(mean: f64) -> String {
    let power = 2.0_f64.powi(mean.max(1.0).log2().round() as i32);
    let near = if (mean / power - 1.0).abs() <= NEAR { power } else { mean.round() };
    words::bytes(near as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_about_a_power_of_two() {
        assert_eq!([511.3, 511.9, 700.2, 0.2].map(about), ["512 B", "512 B", "700 B", "0 B"]);
    }
}
