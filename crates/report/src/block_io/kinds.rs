//! Bios and requests by kind, as a line of each: how many, of which size, from whom. It says what was counted and explains nothing.

use rdsk_analysis::block_io::{Account, Submitted};
use rdsk_analysis::words::{self, plural};
use rdsk_model::Op;
use std::cmp::Reverse;

/// Kinds that are listed; the others are summed up.
const MOST_LISTED: usize = 6;

/// `16 writes of 4 KiB from pwrite64(2), 1 flush from fsync(2)`; empty without any.
pub(crate) fn bio_kinds(account: &Account<'_>) -> String {
    listed(&account.submitted(), |bios| of_kind(account, bios), |bios| bios.sum.count, "bio")
}

/// A mean is called one where it is not the size of each.
fn of_kind(account: &Account<'_>, bios: &Submitted<'_>) -> String {
    let Submitted { origin, op, sum, .. } = *bios;
    if bios.is_flush {
        return format!("{} from {origin}", plural(sum.count, "flush"));
    }
    let size = words::bytes(sum.bytes / sum.count.max(1));
    let mean = if account.is_each(op, sum, None) { "" } else { " on average" };
    let marks = [(bios.read_ahead, "read-ahead"), (bios.nowait, "not to wait")];
    let marks: String =
        marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| format!(" ({mark})")).collect();
    format!("{} of {size}{mean} from {origin}{marks}", plural(sum.count, op.as_str()))
}

/// `2 reads of 64 KiB, 2 writes of 64 KiB with FUA, 1 flush`; empty without any.
pub(crate) fn request_kinds(account: &Account<'_>, flushes: u64) -> String {
    let mut kinds: Vec<(Op, u64, bool, u64)> = account.request_kinds();
    kinds.sort_by_key(|&(.., count)| Reverse(count));
    let of_kind = |&(op, bytes, fua, count): &(Op, u64, bool, u64)| {
        let fua = if fua { " with FUA" } else { "" };
        format!("{} of {}{fua}", plural(count, op.as_str()), words::bytes(bytes))
    };
    let kinds = listed(&kinds, of_kind, |&(.., count)| count, "request");
    let flushes = (flushes > 0).then(|| plural(flushes, "flush"));
    [kinds].into_iter().filter(|kinds| !kinds.is_empty()).chain(flushes).collect::<Vec<_>>().join(", ")
}

/// The first few in words, and how many the others are.
fn listed<T>(kinds: &[T], words: impl Fn(&T) -> String, count: impl Fn(&T) -> u64, what: &str) -> String {
    let others: u64 = kinds.iter().skip(MOST_LISTED).map(count).sum();
    let mut parts: Vec<String> = kinds.iter().take(MOST_LISTED).map(words).collect();
    if others > 0 {
        parts.push(format!("{} of other kinds", plural(others, what)));
    }
    parts.join(", ")
}
