//! Looks at what a device holds where it was read, after the reads: a few pages from all over the span. A pass from start to end
//! leaves the end of the span in its buffers, where often nothing is stored. It reads past the page cache and writes nothing.

use crate::arena::{Arena, Fill};
use crate::random::mix;
use rdsk_model::{ReadContent, Target, TargetKind};
use rdsk_sys::io::{Flags, pread2};
use std::os::fd::OwnedFd;

/// Pages that are looked at, one from each part of the span.
const PAGES: u64 = 8;
/// Their size, unless direct I/O needs larger ones here.
const PAGE_BYTES: u64 = 4096;
const MAX_PAGE_BYTES: u64 = 1 << 20;

/// What the device holds in `bytes` from `offset_bytes`; each `seed` looks at other pages. `None` if the target need not be asked:
/// only a block device may return zeros that it does not store, and of a loop device the extents of its file tell more; and if it
/// cannot be read by direct I/O. `open` opens it for that.
pub fn look_at_device<E>(
    target: &Target,
    (offset_bytes, bytes): (u64, u64),
    seed: u64,
    open: impl FnOnce() -> Result<OwnedFd, E>,
) -> Option<ReadContent> {
    let device = target.device.as_ref().filter(|device| device.may_invent_zeros())?;
    let is_loop = |name: &String| name.starts_with("loop");
    if target.kind != TargetKind::Block || is_loop(&device.name) || target.stack.iter().any(is_loop) {
        return None;
    }
    let page_bytes = target.direct_align_bytes.unwrap_or(PAGE_BYTES).max(PAGE_BYTES);
    if bytes < page_bytes || page_bytes > MAX_PAGE_BYTES {
        return None;
    }
    let length = usize::try_from(page_bytes).ok()?;
    let fd = open().ok()?;
    let mut arena = Arena::new(1, length, Fill::Touched).ok()?;
    let end_bytes = offset_bytes.saturating_add(bytes);
    let mut seen = ReadContent::default();
    for part in 0..PAGES {
        let begin = u128::from(bytes) * u128::from(part) / u128::from(PAGES);
        let part_bytes = (bytes / PAGES).max(1);
        let at = u64::try_from(begin).unwrap_or(0) + mix(seed, part) % part_bytes;
        let first = (offset_bytes + at).min(end_bytes - page_bytes) / page_bytes * page_bytes;
        // A failed read tells nothing of the content; those that were measured have their errors.
        if pread2(&fd, arena.slot(0, length), first, Flags::empty()).is_ok_and(|moved| moved == length) {
            seen = seen.plus(arena.content(1, length));
        }
    }
    (seen.pages > 0).then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Device;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    const MIB: u64 = 1 << 20;

    /// A file stands for the device: it is read in the same way.
    fn look(file: &File, change: impl FnOnce(&mut Target)) -> Option<ReadContent> {
        let device = Device { name: "vdb".into(), rotational: Some(false), ..Device::default() };
        let mut target = Target { kind: TargetKind::Block, device: Some(device), ..Target::default() };
        change(&mut target);
        look_at_device(&target, (MIB, 16 * MIB), 7, || file.try_clone().map(OwnedFd::from))
    }

    #[test]
    fn pages_from_all_over_the_span_are_looked_at() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(17 * MIB).unwrap();
        assert_eq!(look(&file, |_| {}), Some(ReadContent { pages: 8, zero_pages: 8 }));
        // The second half holds data, before the span too.
        let data = vec![7; usize::try_from(MIB).unwrap()];
        for at in [0].into_iter().chain(9..17) {
            file.write_all_at(&data, at * MIB).unwrap();
        }
        assert_eq!(look(&file, |_| {}), Some(ReadContent { pages: 8, zero_pages: 4 }));
    }

    #[test]
    fn only_a_device_that_may_invent_zeros_is_looked_at() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(17 * MIB).unwrap();
        assert_eq!(look(&file, |target| target.kind = TargetKind::File), None);
        assert_eq!(look(&file, |target| target.device = None), None);
        assert_eq!(look(&file, |target| target.device.as_mut().unwrap().name = "loop3".into()), None);
        assert_eq!(look(&file, |target| target.stack = vec!["dm-0".into(), "loop3".into()]), None);
        let plain = |target: &mut Target| {
            let device = target.device.as_mut().unwrap();
            (device.rotational, device.discards) = (Some(true), Some(false));
        };
        assert_eq!(look(&file, plain), None, "a hard disk reads zeros like any other data");
        assert_eq!(look(&file, |target| target.direct_align_bytes = Some(32 * MIB)), None);
        let short = tempfile::tempfile().unwrap();
        assert_eq!(look(&short, |_| {}), None, "nothing could be read");
    }
}
