//! Where the bytes of a file are on its device, or that they are nowhere: the FIEMAP ioctl and sums over its answer.
//! It never reads the file's data.
#![allow(unsafe_code, reason = "FS_IOC_FIEMAP has no safe wrapper")]

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// One run of a file's bytes as FIEMAP reports it. What lies between two extents is a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte, counted from the start of the file.
    pub logical: u64,
    /// First byte, counted from the start of the device; without meaning while the place is unknown.
    pub physical: u64,
    /// Length in bytes.
    pub len: u64,
    /// The kernel's `FIEMAP_EXTENT_*` bits (include/uapi/linux/fiemap.h).
    pub flags: u32,
}

/// Sums over a span of a file. The four byte counts add up to the span's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentSummary {
    /// Bytes on the device at a known place; a read reaches the device.
    pub mapped_bytes: u64,
    /// Bytes allocated and never written: reads give zeros without reaching the device.
    pub unwritten_bytes: u64,
    /// Bytes without any extent, those beyond the end of the file included.
    pub hole_bytes: u64,
    /// Bytes not yet allocated or kept among the metadata.
    pub inline_or_delalloc_bytes: u64,
    /// Extents that touch the span.
    pub extents: u64,
}

/// Extents listed at most: 32 MiB of them. A file in more pieces is an error, not an endless loop.
pub const MAX_EXTENTS: usize = 1 << 20;

/// Whether dirty pages are written out before a file's extents are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// They are (`FIEMAP_FLAG_SYNC`), so that delayed allocations get their place.
    First,
    /// They are not: what is not allocated yet is listed as such.
    Never,
}

/// Lists the extents that touch `len` bytes from `offset` (`len` 0: to the end), ascending. The first and the last may
/// reach beyond the span.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` where the filesystem reports no extents (tmpfs, block devices); `InvalidData` when the
/// filesystem makes no progress or has more than [`MAX_EXTENTS`] extents there.
pub fn extents(fd: impl AsFd, offset: u64, len: u64, flush: Flush) -> io::Result<Vec<Extent>> {
    let fd = fd.as_fd();
    let end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
    let mut flags = if flush == Flush::First { FIEMAP_FLAG_SYNC } else { 0 };
    let mut request = Box::new(RawFiemap {
        start: 0,
        length: 0,
        flags: 0,
        mapped_extents: 0,
        extent_count: EXTENT_COUNT,
        reserved: 0,
        extents: [RawExtent::default(); EXTENTS_PER_CALL],
    });
    let mut list = Vec::new();
    let mut at = offset;
    while at < end {
        request.start = at;
        request.length = end - at;
        request.flags = flags;
        request.mapped_extents = 0;
        // SAFETY: the kernel writes at most `extent_count` extents behind the header, and the structure has that many.
        unsafe { ioctl(fd, Updater::<FS_IOC_FIEMAP, RawFiemap>::new(&mut request)) }?;
        let mapped = usize::try_from(request.mapped_extents).unwrap_or(usize::MAX).min(EXTENTS_PER_CALL);
        let Some(last) = request.extents[..mapped].last() else { break };
        let (last_flags, next) = (last.flags, last.logical.saturating_add(last.length));
        list.extend(request.extents[..mapped].iter().map(|&raw| Extent {
            logical: raw.logical,
            physical: raw.physical,
            len: raw.length,
            flags: raw.flags,
        }));
        if last_flags & FIEMAP_EXTENT_LAST != 0 {
            break;
        }
        if next <= at || list.len() > MAX_EXTENTS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the list of extents does not end"));
        }
        at = next;
        // One flush is enough; a second would only wait for what others write meanwhile.
        flags = 0;
    }
    Ok(list)
}

/// Adds up what `extents` (ascending, as [`extents`] gives them) say of the span of `span_len` bytes from
/// `span_offset`. Parts of extents outside the span do not count.
pub fn summarise(extents: &[Extent], span_offset: u64, span_len: u64) -> ExtentSummary {
    let span_end = span_offset.saturating_add(span_len);
    let mut summary = ExtentSummary::default();
    let mut covered_to = span_offset;
    for extent in extents {
        // Starting where the last one ended keeps the sum right even if a filesystem let extents overlap.
        let start = extent.logical.max(covered_to);
        let end = extent.logical.saturating_add(extent.len).min(span_end);
        if start >= end {
            continue;
        }
        summary.extents += 1;
        summary.hole_bytes += start - covered_to;
        covered_to = end;
        let bytes = match extent.flags {
            flags if flags & NOWHERE != 0 => &mut summary.inline_or_delalloc_bytes,
            flags if flags & FIEMAP_EXTENT_UNWRITTEN != 0 => &mut summary.unwritten_bytes,
            _ => &mut summary.mapped_bytes,
        };
        *bytes += end - start;
    }
    summary.hole_bytes += span_end - covered_to;
    summary
}

/// How many bytes of `extents` lie in blocks that other files have too, so that writing them allocates others (reflinks,
/// snapshots: `FIEMAP_EXTENT_SHARED`).
pub fn shared_bytes(extents: &[Extent]) -> u64 {
    let shared = extents.iter().filter(|extent| extent.flags & FIEMAP_EXTENT_SHARED != 0);
    shared.fold(0, |sum, extent| sum.saturating_add(extent.len))
}

const FIEMAP_FLAG_SYNC: u32 = 0x1;
const FIEMAP_EXTENT_LAST: u32 = 0x1;
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;
const FIEMAP_EXTENT_DELALLOC: u32 = 0x4;
const FIEMAP_EXTENT_DATA_INLINE: u32 = 0x200;
const FIEMAP_EXTENT_DATA_TAIL: u32 = 0x400;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
const FIEMAP_EXTENT_SHARED: u32 = 0x2000;
/// Flags of bytes without a place of their own on the device: not yet allocated, or kept among the metadata.
const NOWHERE: u32 =
    FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL;

/// `struct fiemap` without its flexible tail is 32 bytes, and those are the size inside the number.
const FS_IOC_FIEMAP: Opcode = opcode::read_write::<[u64; 4]>(b'f', 11);
const EXTENTS_PER_CALL: usize = 256;
/// [`EXTENTS_PER_CALL`] as the structure wants it.
const EXTENT_COUNT: u32 = 256;

/// `struct fiemap_extent` of include/uapi/linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of include/uapi/linux/fiemap.h with room for its extents.
#[repr(C)]
struct RawFiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_PER_CALL],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    const MIB: u64 = 1 << 20;

    fn extent(logical: u64, len: u64, flags: u32) -> Extent {
        Extent { logical, physical: 0, len, flags }
    }

    /// The extents of a file, or `None` aloud where the temporary directory's filesystem has none to say.
    fn listed(file: &File) -> Option<Vec<Extent>> {
        match extents(file, 0, 0, Flush::First) {
            Ok(list) => Some(list),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                eprintln!("SKIPPED: the temporary directory's filesystem has no FIEMAP");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_sparse_file_is_a_hole() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * MIB).unwrap();
        let Some(list) = listed(&file) else { return };
        let summary = summarise(&list, 0, 8 * MIB);
        assert_eq!(summary, ExtentSummary { hole_bytes: 8 * MIB, ..ExtentSummary::default() });
    }

    #[test]
    fn a_fallocated_file_is_unwritten() {
        let file = tempfile::tempfile().unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 8 * MIB).unwrap();
        let Some(list) = listed(&file) else { return };
        let summary = summarise(&list, 0, 8 * MIB);
        assert_eq!(summary.unwritten_bytes, 8 * MIB);
        assert_eq!((summary.mapped_bytes, summary.hole_bytes), (0, 0));
        assert_eq!(summarise(&list, MIB, MIB).unwritten_bytes, MIB, "clipped to the span");
    }

    #[test]
    fn a_written_file_is_mapped_after_a_flush() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&vec![1; usize::try_from(MIB).unwrap()], 0).unwrap();
        file.write_all_at(&vec![2; usize::try_from(MIB).unwrap()], 3 * MIB).unwrap();
        let Some(list) = listed(&file) else { return };
        let summary = summarise(&list, 0, 4 * MIB);
        assert_eq!((summary.mapped_bytes, summary.hole_bytes), (2 * MIB, 2 * MIB));
        assert!(list.iter().all(|extent| extent.physical > 0));
        assert_ne!(list.last().unwrap().flags & FIEMAP_EXTENT_LAST, 0);
    }

    #[test]
    fn the_structure_has_the_kernels_layout() {
        assert_eq!(size_of::<RawExtent>(), 56);
        assert_eq!(std::mem::offset_of!(RawFiemap, extents), 32);
        assert_eq!(usize::try_from(EXTENT_COUNT).unwrap(), EXTENTS_PER_CALL);
    }

    #[test]
    fn many_extents_take_several_calls() {
        let file = tempfile::tempfile().unwrap();
        let pieces = 2 * u64::from(EXTENT_COUNT) + 3;
        for piece in 0..pieces {
            file.write_all_at(&[1; 4096], piece * 128 * 1024).unwrap();
        }
        let Some(list) = listed(&file) else { return };
        let summary = summarise(&list, 0, pieces * 128 * 1024);
        assert_eq!(summary.extents, pieces);
        assert_eq!(summary.mapped_bytes, pieces * 4096);
    }

    #[test]
    fn tmpfs_says_that_it_cannot() {
        let shm = std::path::Path::new("/dev/shm");
        let Ok(file) = tempfile::tempfile_in(shm) else { return };
        if rustix::fs::fstatfs(&file).unwrap().f_type == 0x0102_1994 {
            let error = extents(&file, 0, 0, Flush::First).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        }
    }

    #[test]
    fn only_shared_extents_are_counted_as_shared() {
        let list = [
            extent(0, 100, FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_LAST),
            extent(100, 50, 0),
            extent(200, 7, 0x2800),
        ];
        assert_eq!(shared_bytes(&list), 107);
    }

    #[test]
    fn sums_add_up_to_the_span() {
        let list = [
            extent(0, 100, 0),
            extent(100, 50, FIEMAP_EXTENT_UNWRITTEN),
            extent(200, 100, FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN),
            extent(300, 100, FIEMAP_EXTENT_DATA_INLINE),
            extent(1000, 100, FIEMAP_EXTENT_LAST),
        ];
        for (offset, len, [mapped, unwritten, hole, inline], count) in [
            (0, 1100, [200, 50, 650, 200], 5),
            (0, 100, [100, 0, 0, 0], 1),
            (50, 100, [50, 50, 0, 0], 2),
            (150, 50, [0, 0, 50, 0], 0),
            (250, 100, [0, 0, 0, 100], 2),
            (1050, 1000, [50, 0, 950, 0], 1),
            (5, 0, [0, 0, 0, 0], 0),
        ] {
            let summary = summarise(&list, offset, len);
            let expected = ExtentSummary {
                mapped_bytes: mapped,
                unwritten_bytes: unwritten,
                hole_bytes: hole,
                inline_or_delalloc_bytes: inline,
                extents: count,
            };
            assert_eq!(summary, expected, "span {offset}+{len}");
        }
    }
}
