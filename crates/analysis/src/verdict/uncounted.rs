//! I/O that the processor does by itself on a disk that is memory, past the block layer: no request is made, and no counter of the
//! device moves. It judges nothing else.

use super::Judgement;
use super::facts::Facts;
use crate::metrics;
use rdsk_model::{Op, Pattern, VerdictCode};
use rdsk_units::printable;

/// From this share of bytes on the device counted them.
const COUNTED_SHARE: f64 = 0.9;

/// Files of a filesystem that is mounted with `dax` (Documentation/filesystems/dax.rst), and buffered reads of the disk itself on
/// kernels before 6.4, which asked its driver for single pages (measured on 6.1 with pmem and `queue/iostats` 1, 2026-11: 29 MiB read,
/// none counted, no bio).
pub(super) fn judge(facts: &Facts<'_>) -> Judgement {
    let disk = facts.memory_disk()?;
    facts.share.filter(|&share| share < COUNTED_SHARE)?;
    let filesystems = facts.targets.iter().filter_map(|target| target.filesystem.as_ref());
    let mut mounted = filesystems.filter(|filesystem| has_dax(&filesystem.options));
    let how = match mounted.next() {
        Some(filesystem) => {
            format!("{} is mounted with dax, where the processor copies", printable(&filesystem.kind))
        }
        None if is_by_pages(facts) => "this kernel has the processor copy single pages".to_owned(),
        None => return None,
    };
    let text = format!(
        "{how} without a request, so that {disk} counts nothing: the figure is that of the processor and this memory, and no counter \
         proves it"
    );
    Some((VerdictCode::Unverified, text))
}

/// `dax`, or `dax=always`; with `dax=inode`, which is the default, and `dax=never` the options do not say.
fn has_dax(options: &str) -> bool {
    options.split(',').any(|option| ["dax", "dax=always"].contains(&option))
}

/// Whether buffered reads reached the disk page by page: no process was charged for them, and memory had nothing.
fn is_by_pages(facts: &Facts<'_>) -> bool {
    let workload = &facts.cell.workload;
    let is_uncounted = facts.moved == Some(0) && facts.process_share == Some(0.0);
    workload.op == Op::Read
        && !facts.is_direct()
        && !facts.is_file()
        && is_uncounted
        && memory_had_nothing(facts)
}

/// Whether memory can have answered nothing: none of the span was cached at the start, and no byte was read twice.
pub(super) fn memory_had_nothing(facts: &Facts<'_>) -> bool {
    let cell = facts.cell;
    let passes = metrics::visits(cell) * facts.targets.len().max(1) as u64;
    let is_random = cell.workload.pattern == Pattern::Random;
    // Random places repeat; few of a large span hardly do.
    let most = cell.workload.span_bytes.saturating_mul(passes) / if is_random { 20 } else { 1 };
    let was_empty = cell.evidence.page_cache.is_some_and(|cache| cache.before.cached_bytes == Some(0));
    was_empty && facts.bytes <= most
}

#[cfg(test)]
mod tests {
    use super::super::verdict;
    use super::*;
    use crate::fixtures::{self, cell, with};
    use rdsk_model::{CellRecord, IoPath, Target};

    #[test]
    fn only_dax_for_all_files_is_known_from_the_options() {
        assert!(has_dax("rw,relatime,dax=always") && has_dax("dax,rw"));
        assert!(!has_dax("rw,dax=never") && !has_dax("rw,dax=inode") && !has_dax("rw,nodax"));
    }

    #[track_caller]
    fn check(cell: &CellRecord, target: Target, code: VerdictCode, words: &str) {
        let verdict = verdict(cell, &[target], Some(8));
        assert_eq!(verdict.code, code, "{}", verdict.text);
        assert!(verdict.text.contains(words), "{}", verdict.text);
    }

    /// On a disk that is memory the processor copies, past the block layer (6.1 with pmem and counters on).
    #[test]
    fn what_no_request_was_made_for_is_not_the_page_cache() {
        let on_pmem = |mut target: Target, options: &str| {
            let device = target.device.as_mut().unwrap();
            device.name = "pmem0".into();
            target.stack = vec!["pmem0".into()];
            if let Some(filesystem) = &mut target.filesystem {
                filesystem.options = options.into();
            }
            target
        };
        let uncounted = |path: IoPath| {
            with(cell("t", Op::Read, path, 1 << 20, 64, 500_000_000), |cell| {
                (cell.evidence.device[0].name, cell.evidence.device[0].read_bytes) =
                    ("pmem0".into(), Some(0));
                cell.evidence.process.read_bytes = Some(0);
            })
        };
        let dax = || on_pmem(fixtures::file(), "rw,dax=always");
        let direct = uncounted(IoPath::Direct);
        check(&direct, dax(), VerdictCode::Unverified, "is mounted with dax");
        check(&direct, on_pmem(fixtures::file(), "rw"), VerdictCode::PageCache, "despite O_DIRECT");
        let buffered = |cached_bytes: u64| {
            with(uncounted(IoPath::Buffered), |cell| {
                let cache = cell.evidence.page_cache.get_or_insert_default();
                cache.before.cached_bytes = Some(cached_bytes);
                cell.workload.span_bytes = u64::MAX / 64;
            })
        };
        check(&buffered(0), dax(), VerdictCode::Unverified, "is mounted with dax");
        check(&buffered(0), on_pmem(fixtures::disk(), ""), VerdictCode::Unverified, "copy single pages");
        check(&buffered(1 << 30), on_pmem(fixtures::disk(), ""), VerdictCode::PageCache, "memory answered");
    }
}
