//! Looks at what a device holds where it was read, after the reads: a few pages from all over the span. A pass from start to end
//! leaves the end of the span in its buffers, where often nothing is stored. It reads past the page cache and writes nothing.

use crate::arena::{Arena, Fill};
use crate::random::mix;
use rdsk_model::{BufferPages, ReadContent, Target, TargetKind};
use rdsk_sys::io::{Flags, pread2};
use std::os::fd::OwnedFd;

/// Pages that are looked at, one from each part of the span: of a device that holds data in a fifth of it, some data is found all but
/// once in a million times.
pub const PAGES_LOOKED_AT: u64 = 64;
/// Their size, unless direct I/O needs larger ones here.
pub const PAGE_BYTES: u64 = 4096;
const MAX_PAGE_BYTES: u64 = 1 << 20;
/// A look may always take this long, or this part of the time that was measured.
const SHORT_NS: u64 = 200_000_000;
const PART_OF_MEASURED: u64 = 100;

/// Time in nanoseconds after which a look at what was read in `measured_ns` begins no further read.
pub fn look_ns(measured_ns: u64) -> u64 {
    (measured_ns / PART_OF_MEASURED).max(SHORT_NS)
}

/// What was read of a device: so many bytes of a span, from a byte of it on, and from its start again where its end was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Start of the span.
    pub offset_bytes: u64,
    /// Its length.
    pub span_bytes: u64,
    /// Where in the span it began.
    pub begin_bytes: u64,
    /// How much was read; of more than the span each byte counts once.
    pub read_bytes: u64,
}

impl Stretch {
    /// All of a span.
    pub const fn whole(offset_bytes: u64, span_bytes: u64) -> Self {
        Self { offset_bytes, span_bytes, begin_bytes: 0, read_bytes: span_bytes }
    }

    /// Its whole pages.
    fn pages(self, page_bytes: u64) -> Pages {
        let first = self.offset_bytes.div_ceil(page_bytes);
        let behind = self.offset_bytes.saturating_add(self.span_bytes) / page_bytes;
        let round = behind.saturating_sub(first);
        if self.read_bytes >= self.span_bytes {
            return Pages { first, round, skipped: 0, count: round };
        }
        let begin_bytes = self.offset_bytes.saturating_add(self.begin_bytes);
        let skipped = begin_bytes.div_ceil(page_bytes).saturating_sub(first);
        let end = begin_bytes.saturating_add(self.read_bytes) / page_bytes;
        Pages { first, round, skipped, count: end.saturating_sub(first + skipped).min(round) }
    }
}

/// The whole pages of a stretch, by number: `count` of a round of them.
#[derive(Clone, Copy, Debug)]
struct Pages {
    first: u64,
    round: u64,
    skipped: u64,
    count: u64,
}

impl Pages {
    /// The number of one of them, counted from where the stretch begins.
    const fn number(self, page: u64) -> u64 {
        self.first + (self.skipped + page) % self.round
    }
}

/// What the device holds in these stretches, of all of them together; each `seed` looks at other pages. `None` if the target need not be asked:
/// only a block device may return zeros that it does not store, and of a loop device the extents of its file show more; and if it
/// cannot be read by direct I/O. `open` opens it for that; `goes_on` is asked before each page, and what was seen by then counts.
pub fn look_at_device<E>(
    target: &Target,
    stretches: &[Stretch],
    seed: u64,
    goes_on: &mut dyn FnMut() -> bool,
    open: impl FnOnce() -> Result<OwnedFd, E>,
) -> Option<ReadContent> {
    let device = target.device.as_ref().filter(|device| device.may_invent_zeros())?;
    let is_loop = |name: &String| name.starts_with("loop");
    if target.kind != TargetKind::Block || is_loop(&device.name) || target.stack.iter().any(is_loop) {
        return None;
    }
    let page_bytes = target.direct_align_bytes.unwrap_or(PAGE_BYTES).max(PAGE_BYTES);
    let pages: Vec<Pages> = stretches.iter().map(|stretch| stretch.pages(page_bytes)).collect();
    let count = pages.iter().map(|pages| pages.count).sum();
    if count == 0 || page_bytes > MAX_PAGE_BYTES || !goes_on() {
        return None;
    }
    let length = usize::try_from(page_bytes).ok()?;
    let fd = open().ok()?;
    let mut arena = Arena::new(BufferPages::Ordinary, 1, length, Fill::Touched).ok()?;
    let mut content = ReadContent::default();
    for part in scattered(PAGES_LOOKED_AT.min(count)) {
        if !goes_on() {
            break;
        }
        let (begin, end) = part_of(count, part);
        let page = number(&pages, begin + mix(seed, begin) % (end - begin))?;
        // A failed read shows nothing of the content; those that were measured have their errors.
        let read = pread2(&fd, arena.slot(0, length), page * page_bytes, Flags::empty());
        if read.is_ok_and(|moved| moved == length) {
            let held = arena.content(1, length);
            let is_zero = held.zero_pages == held.pages;
            content = content.plus(ReadContent { pages: 1, zero_pages: is_zero.into() });
        }
    }
    (content.pages > 0).then_some(content)
}

/// The number of a page of several lists, which are counted one behind the other.
fn number(lists: &[Pages], mut page: u64) -> Option<u64> {
    for pages in lists {
        if page < pages.count {
            return Some(pages.number(page));
        }
        page -= pages.count;
    }
    None
}

/// The numbers below `parts`, at most [`PAGES_LOOKED_AT`], each once and any first few of them from all over: their bits are
/// those of a count, reversed.
fn scattered(parts: u64) -> impl Iterator<Item = (u64, u64)> {
    let bits = PAGES_LOOKED_AT.ilog2();
    (0..PAGES_LOOKED_AT)
        .map(move |count| count.reverse_bits() >> (u64::BITS - bits))
        .filter(move |part| *part < parts)
        .map(move |part| (part, parts))
}

/// The first number of one of the parts of `whole`, and the first behind it. A part holds at least one.
fn part_of(whole: u64, (part, parts): (u64, u64)) -> (u64, u64) {
    let begin =
        |part| u64::try_from(u128::from(whole) * u128::from(part) / u128::from(parts)).unwrap_or(whole);
    (begin(part), begin(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::Device;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    const MIB: u64 = 1 << 20;

    fn disk() -> Target {
        let device = Device { name: "vdb".into(), rotational: Some(false), ..Device::default() };
        Target { kind: TargetKind::Block, device: Some(device), ..Target::default() }
    }

    /// A file stands for the device: it is read in the same way.
    fn look(file: &File, change: impl FnOnce(&mut Target)) -> Option<ReadContent> {
        let mut target = disk();
        change(&mut target);
        look_at_device(&target, &[Stretch::whole(MIB, 16 * MIB)], 7, &mut || true, || {
            file.try_clone().map(OwnedFd::from)
        })
    }

    /// A look at a disk that a file stands for, for as long as `goes_on`.
    fn look_while(file: &File, stretch: Stretch, goes_on: &mut dyn FnMut() -> bool) -> Option<ReadContent> {
        look_at_device(&disk(), &[stretch], 7, goes_on, || file.try_clone().map(OwnedFd::from))
    }

    #[test]
    fn no_page_is_counted_twice() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MIB).unwrap();
        let pages = |(from, bytes)| {
            look_while(&file, Stretch::whole(from, bytes), &mut || true).map(|seen| seen.pages)
        };
        assert_eq!(pages((0, 4096)), Some(1));
        assert_eq!(pages((4096, 3 * 4096)), Some(3));
        assert_eq!(pages((512, 4 * 4096)), Some(3), "only whole pages");
        assert_eq!(pages((512, 4096)), None);
        assert_eq!(pages((0, MIB)), Some(64));
        // Of a span of few pages each is read: exactly one holds data, whichever it is.
        for data in 0..5 {
            let file = tempfile::tempfile().unwrap();
            file.set_len(MIB).unwrap();
            file.write_all_at(&[7], data * 4096 + 9).unwrap();
            let seen = look_while(&file, Stretch::whole(0, 5 * 4096), &mut || true);
            assert_eq!(seen, Some(ReadContent { pages: 5, zero_pages: 4 }), "page {data}");
        }
    }

    #[test]
    fn a_look_ends_when_it_is_told_to_and_what_it_saw_is_from_all_over() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 * MIB).unwrap();
        let data = vec![7; usize::try_from(8 * MIB).unwrap()];
        file.write_all_at(&data, 8 * MIB).unwrap();
        let after = |pages: u32| {
            let mut left = pages + 1;
            look_while(&file, Stretch::whole(0, 16 * MIB), &mut || {
                left = left.saturating_sub(1);
                left > 0
            })
        };
        assert_eq!(after(0), None, "it is not even opened");
        assert_eq!(after(5), Some(ReadContent { pages: 4, zero_pages: 2 }), "asked once before it is opened");
    }

    #[test]
    fn a_look_is_short_beside_what_was_measured() {
        assert_eq!(look_ns(0), 200_000_000);
        assert_eq!(look_ns(100_000_000_000), 1_000_000_000);
    }

    #[test]
    fn pages_from_all_over_the_span_are_looked_at() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(17 * MIB).unwrap();
        assert_eq!(look(&file, |_| {}), Some(ReadContent { pages: 64, zero_pages: 64 }));
        // The second half holds data, before the span too.
        let data = vec![7; usize::try_from(MIB).unwrap()];
        for at in [0].into_iter().chain(9..17) {
            file.write_all_at(&data, at * MIB).unwrap();
        }
        assert_eq!(look(&file, |_| {}), Some(ReadContent { pages: 64, zero_pages: 32 }));
    }

    /// A tenth of the span holds nothing: that which a visit that goes round did not read.
    #[test]
    fn a_stretch_that_goes_round_is_looked_at_at_both_ends() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(21 * MIB).unwrap();
        let data = vec![7; usize::try_from(18 * MIB).unwrap()];
        file.write_all_at(&data[..usize::try_from(8 * MIB).unwrap()], MIB).unwrap();
        file.write_all_at(&data[..usize::try_from(10 * MIB).unwrap()], 11 * MIB).unwrap();
        let read = |begin_bytes, read_bytes| {
            let stretch = Stretch { begin_bytes, read_bytes, ..Stretch::whole(MIB, 20 * MIB) };
            look_while(&file, stretch, &mut || true).unwrap()
        };
        assert_eq!(read(10 * MIB, 18 * MIB), ReadContent { pages: 64, zero_pages: 0 });
        assert_eq!(read(10 * MIB + 512, 18 * MIB - 512), ReadContent { pages: 64, zero_pages: 0 });
        assert_eq!(read(8 * MIB, 2 * MIB), ReadContent { pages: 64, zero_pages: 64 });
        assert_eq!(read(19 * MIB, 2 * MIB), ReadContent { pages: 64, zero_pages: 0 });
        // All was read, wherever it began, or more than all.
        for begin_bytes in [0, 7 * MIB, 19 * MIB] {
            for read_bytes in [20 * MIB, 90 * MIB] {
                let seen = read(begin_bytes, read_bytes);
                assert!((6..=8).contains(&seen.zero_pages), "{begin_bytes} {read_bytes}: {seen:?}");
            }
        }
    }

    /// The first of two streams read data, and the other one, which came three times as far, nothing.
    #[test]
    fn each_of_several_stretches_has_its_part() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(32 * MIB).unwrap();
        file.write_all_at(&vec![7; usize::try_from(16 * MIB).unwrap()], 0).unwrap();
        let part =
            |offset_bytes, read_bytes| Stretch { read_bytes, ..Stretch::whole(offset_bytes, 16 * MIB) };
        let stretches = [part(0, 4 * MIB), part(16 * MIB, 0), part(16 * MIB, 12 * MIB)];
        let seen =
            look_at_device(&disk(), &stretches, 7, &mut || true, || file.try_clone().map(OwnedFd::from));
        assert_eq!(seen, Some(ReadContent { pages: 64, zero_pages: 48 }));
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
        assert!(look(&file, plain).is_some(), "what a host of virtual machines shows as one");
        let plain = |target: &mut Target| {
            plain(target);
            target.device.as_mut().unwrap().name = "sdb".into();
        };
        assert_eq!(look(&file, plain), None, "a hard disk reads zeros like any other data");
        assert_eq!(look(&file, |target| target.direct_align_bytes = Some(32 * MIB)), None);
        let short = tempfile::tempfile().unwrap();
        assert_eq!(look(&short, |_| {}), None, "nothing could be read");
    }
}
