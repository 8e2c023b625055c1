//! Makes the page cache cold or warm over a span and checks the result. It reports only what it has checked, and never drops what
//! others use beyond the span.

use crate::error::EngineError;
use crate::job::Prepared;
use crate::open_target::OpenTarget;
use rdsk_model::{CacheState, Device, LoadJob, PageCacheState, StopFlag, Target, TargetKind, Workload};
use rdsk_sys::cache::{CacheStat, cachestat, drop_block_device, drop_cached, drop_cached_range, page_size};
use rdsk_sys::io::{Flags, pread2};
use rdsk_targets::{Access, OpenMode};
use rustix::fs::FallocateFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Attempts to empty the cache: others may hold a page for a moment.
const ATTEMPTS: u32 = 4;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Size of the reads that warm the cache.
const WARM_BYTES: usize = 1 << 20;

/// Spans whose cache is not to be emptied with the rest of their target any more: that did not help, or others use the target. By
/// target and length: spans of one length move through a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanOnly(Vec<(u32, u64)>);

/// How much of a target is dropped from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptied {
    Span,
    Whole,
}

/// Brings the cache over the span of every target into the requested state.
///
/// # Errors
/// When reading for the warm-up fails, or the stop flag is raised meanwhile.
pub(crate) fn prepare(
    workload: &Workload,
    targets: &[OpenTarget<'_>],
    span_only: &mut SpanOnly,
    stop: &StopFlag,
) -> Result<Prepared, EngineError> {
    let mut reached = None;
    for target in targets {
        let this = match workload.cache {
            CacheState::Any => continue,
            CacheState::Cold => cool(workload, target, span_only),
            CacheState::Warm => warm(workload, target, stop)?,
        };
        reached = Some(reached.unwrap_or(true) && this);
    }
    Ok(Prepared { page_cache: page_cache(workload, targets.iter().map(OpenTarget::fd)), reached })
}

/// Gives the span of a job back to the filesystem and allocates it anew, so that its writes are the first to their blocks. Why not, in
/// words, where the filesystem cannot, or the file is not one that rdsk has made.
///
/// # Errors
/// When a part of it was done and the rest failed: the test file then has a hole.
pub(crate) fn allocate_anew(target: &OpenTarget<'_>, load: &LoadJob) -> Result<Option<String>, EngineError> {
    let name = &target.claim.target.name;
    if !target.claim.target.made_by_rdsk {
        return Ok(Some(format!(
            "{name} is no test file of rdsk, so job {} writes over what it has",
            load.name
        )));
    }
    let page = page_size();
    let begin = load.offset_bytes.next_multiple_of(page);
    let end = (load.offset_bytes + load.span_bytes) / page * page;
    let Some(bytes) = end.checked_sub(begin).filter(|&bytes| bytes > 0) else { return Ok(None) };
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if let Err(errno) = rustix::fs::fallocate(target.fd(), hole, begin, bytes) {
        let why = crate::error::errno_text(errno.raw_os_error());
        return Ok(Some(format!(
            "the filesystem of {name} gives no space back ({why}), so job {} writes over blocks that were written before",
            load.name
        )));
    }
    rustix::fs::fallocate(target.fd(), FallocateFlags::empty(), begin, bytes)
        .map_err(|errno| EngineError::Allocate { target: name.clone(), source: errno.into() })?;
    Ok(None)
}

/// The page cache over the span, summed over the targets; `None` if it is unknown for one of them.
pub(crate) fn page_cache<'a>(
    workload: &Workload,
    fds: impl Iterator<Item = BorrowedFd<'a>>,
) -> PageCacheState {
    let mut sum = PageCacheState { cached_bytes: Some(0), dirty_bytes: Some(0) };
    for fd in fds {
        let state = cache_stat(workload, fd).ok();
        let cached = state.map(|state| state.cached_bytes());
        let dirty = state.and_then(|state| Some(state.dirty_bytes()? + state.writeback_bytes()?));
        sum.cached_bytes = sum.cached_bytes.zip(cached).map(|(left, right)| left + right);
        sum.dirty_bytes = sum.dirty_bytes.zip(dirty).map(|(left, right)| left + right);
    }
    sum
}

fn cache_stat(workload: &Workload, fd: BorrowedFd<'_>) -> io::Result<CacheStat> {
    cachestat(fd, workload.offset_bytes, workload.span_bytes)
}

/// Whole pages around the span: first byte, length, number of pages.
fn pages_of(workload: &Workload) -> (u64, u64, u64) {
    let page = page_size();
    let begin = workload.offset_bytes / page * page;
    let end = (workload.offset_bytes + workload.span_bytes).next_multiple_of(page);
    (begin, end - begin, (end - begin) / page)
}

/// Empties the cache over the span and returns whether it is empty, which covers what the kernel refused. Large folios that extend
/// beyond the span are dropped only with the rest of the target; that is tried where no other program loses by it, until it was in vain.
fn cool(workload: &Workload, target: &OpenTarget<'_>, span_only: &mut SpanOnly) -> bool {
    let is_empty_after = |part: Emptied| {
        let is_dropped = drop_part(workload, target, part).is_ok();
        is_dropped && cache_stat(workload, target.fd()).is_ok_and(|state| state.cached == 0)
    };
    if is_empty_after(Emptied::Span) {
        return true;
    }
    let span = (target.index, workload.span_bytes);
    let may_reach_beyond = !span_only.0.contains(&span) && target.claim.may_be_dropped_whole();
    let part = if may_reach_beyond { Emptied::Whole } else { Emptied::Span };
    for _ in 1..ATTEMPTS {
        std::thread::sleep(PAUSE);
        if is_empty_after(part) {
            return true;
        }
    }
    if !span_only.0.contains(&span) {
        span_only.0.push(span);
    }
    false
}

/// Asks the kernel to drop what it has cached. In what is only read, dirty pages are those of others: only the span's are written back.
fn drop_part(workload: &Workload, target: &OpenTarget<'_>, part: Emptied) -> io::Result<()> {
    let fd = target.fd();
    let (begin, len, _) = pages_of(workload);
    match (part, target.claim.access()) {
        (Emptied::Span, Access::Read) => drop_cached_range(fd, begin, len),
        (Emptied::Span, Access::Write) => drop_cached(fd, begin, len),
        (Emptied::Whole, _) => {
            let _ = may_be_told_to_drop(&target.claim.target).then(|| drop_block_device(fd));
            drop_cached(fd, 0, 0)
        }
    }
}

/// Whether the target is a device that only forgets what the kernel has cached of it. Older drivers of RAM disks free their pages, which
/// are the data (`brd_ioctl` in drivers/block/brd.c), and device mapper hands the call down to the device below (`dm_blk_ioctl`).
fn may_be_told_to_drop(target: &Target) -> bool {
    let is_ram_disk = |name: &str| {
        name.strip_prefix("ram").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // Documentation/admin-guide/devices.txt: major 1, whatever the node is called.
    let has_number = |device: &Device| device.major_minor.starts_with("1:") || is_ram_disk(&device.name);
    target.kind == TargetKind::Block
        && !target.device.as_ref().is_some_and(has_number)
        && !target.stack.iter().any(|name| is_ram_disk(name))
}

/// Reads the span through the page cache until all of it is cached; returns whether it is.
fn warm(workload: &Workload, target: &OpenTarget<'_>, stop: &StopFlag) -> Result<bool, EngineError> {
    let (_, _, pages) = pages_of(workload);
    let reader = target.claim.open(OpenMode::READ)?;
    // Read-ahead beyond the span would still be in progress when the measurement starts, and count as reads of other
    // programs.
    let _ = rustix::fs::fadvise(&reader, 0, None, rustix::fs::Advice::Random);
    let mut buffer = vec![0u8; WARM_BYTES];
    for _ in 0..2 {
        if cache_stat(workload, reader.as_fd()).is_ok_and(|state| state.cached >= pages) {
            return Ok(true);
        }
        let begin = workload.offset_bytes;
        let end = begin + workload.span_bytes;
        let mut offset = begin;
        while offset < end {
            if stop.is_raised() {
                return Err(EngineError::Interrupted(target.claim.target.name.clone()));
            }
            let len = usize::try_from(end - offset).unwrap_or(usize::MAX).min(WARM_BYTES);
            match pread2(&reader, &mut buffer[..len], offset, Flags::empty()) {
                // The target became shorter; the check that follows shows it.
                Ok(0) => break,
                Ok(moved) => offset += moved as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(EngineError::Cache { target: target.claim.target.name.clone(), source });
                }
            }
        }
    }
    Ok(cache_stat(workload, reader.as_fd()).is_ok_and(|state| state.cached >= pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, number: &str, below: &[&str]) -> Target {
        let stack = [&[name][..], below].concat().into_iter().map(str::to_owned).collect();
        let device = Device { name: name.into(), major_minor: number.into(), ..Device::default() };
        Target { kind: TargetKind::Block, device: Some(device), stack, ..Target::default() }
    }

    #[test]
    fn ram_disks_and_what_lies_on_them_keep_their_data() {
        for ram in [
            device("ram0", "1:0", &[]),
            device("ram0p1", "259:3", &["ram0"]),
            device("odd", "1:7", &[]),
            device("dm-0", "253:0", &["ram15"]),
            device("dm-1", "253:1", &["md0", "sda", "ram3"]),
        ] {
            assert!(!may_be_told_to_drop(&ram), "{:?}", ram.stack);
        }
        for disk in [
            device("sda", "8:0", &[]),
            device("zram0", "11:0", &[]),
            device("ramses", "252:1", &[]),
            device("dm-0", "253:0", &["vda"]),
        ] {
            assert!(may_be_told_to_drop(&disk), "{:?}", disk.stack);
        }
        let file = Target { kind: TargetKind::File, ..device("sda", "8:0", &[]) };
        assert!(!may_be_told_to_drop(&file), "no device");
    }
}
