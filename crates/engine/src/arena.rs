//! The memory of one stream: one arena, cut into slots, so that no two I/Os in flight share a buffer. Slots of more than a page are on
//! ordinary pages, as the buffers of programs are, unless huge ones are asked for. Reads have one slot per I/O in flight. Writes have a pool of further ones and take all in turn, so
//! that what is written neither compresses nor repeats within what a disk compresses as one. It issues no I/O, and takes no huge
//! pages that are reserved for others (`MAP_HUGETLB`).
#![allow(unsafe_code, reason = "anonymous mappings and slices over them")]

use crate::error::EngineError;
use crate::random::WyRand;
use crate::stamper::{SECTOR_BYTES, SHORT_STAMP_BYTES};
use rdsk_model::{BufferPages, EngineKind, Op, ReadContent, Workload};
use rdsk_sys::memory::HUGE_PAGE_BYTES;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Slots start on this boundary: a page, and the strictest alignment that direct I/O requires.
const SLOT_ALIGN_BYTES: usize = 4096;

/// What one stream writes at least before data comes again. Compressors of disks look back by 64 KiB (LZ4), by the 128 KiB
/// of a btrfs extent, or by a record of ZFS, 1 MiB at most by default. The caches of a processor hold as much: with 16 MiB,
/// writes of 1 MiB into a tmpfs were 7 % slower, with 256 KiB to 4 MiB alike (2026-11).
const POOL_BYTES: usize = 2 << 20;

/// The same of all streams together.
const MAX_POOLS_BYTES: usize = 256 << 20;

/// What is looked at of the data that was read: pages of this size, so many of each of so many slots.
const PAGE_BYTES: usize = 4096;
const MAX_PAGES_SEEN: usize = 8;
const MAX_SLOTS_SEEN: usize = 8;

/// Whether the memory is filled with random data, which writes need, or left as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Left as the kernel provides it, but touched, so that no page fault occurs during the measurement.
    Touched,
    /// Random bytes, and a pool of further slots.
    Random(WriteFill),
}

/// What the slots of writes hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteFill {
    pub(crate) seed: u64,
    /// Bytes of the pool.
    pub(crate) pool_bytes: usize,
    /// Percent of each sector that are zeros, below 100.
    pub(crate) compressible_percent: u32,
    /// Whether reads have slots of their own, one for each I/O in flight: what they return is not written.
    pub(crate) with_reads: bool,
}

/// The pool of one of `streams` streams, which writes `ops` blocks of `block_bytes`: what is not written needs no data.
pub(crate) fn pool_bytes(streams: usize, ops: u64, block_bytes: usize) -> usize {
    let slot_bytes = block_bytes.checked_next_multiple_of(SLOT_ALIGN_BYTES).unwrap_or(block_bytes);
    let written = usize::try_from(ops).unwrap_or(usize::MAX).saturating_mul(slot_bytes);
    POOL_BYTES.min(MAX_POOLS_BYTES / streams.max(1)).min(written)
}

/// An arena of slots of one page that takes no more is on small pages. On a huge one it would take all of that, which is 2 GiB for 1024
/// streams of single pages.
const MAX_SMALL_BYTES: usize = 64 << 10;

/// How an arena is cut and what it takes of memory.
///
/// Worked examples: 4 reads of 4 KiB in flight are 4 slots of a page, 16 KiB, on small pages; 32 of them would be 128 KiB, more than
/// [`MAX_SMALL_BYTES`], and take one huge page of 2 MiB. 32 writes of 1 MiB have the 2 MiB of their pool beside them: 34 slots and 34 MiB,
/// on ordinary pages, or on 17 huge ones where those are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ArenaShape {
    slot_stride_bytes: usize,
    slots: usize,
    /// The pages that it is on: it starts at one and is a multiple of them.
    page_bytes: usize,
    arena_bytes: usize,
}

impl ArenaShape {
    /// For `depth` I/Os in flight and a pool of so many bytes; `None` for more than can be addressed.
    fn choose(pages: BufferPages, depth: usize, slot_bytes: usize, pool_bytes: usize) -> Option<Self> {
        let slot_stride_bytes = slot_bytes.max(1).checked_next_multiple_of(SLOT_ALIGN_BYTES)?;
        let slots = depth.saturating_add(pool_bytes / slot_stride_bytes);
        let used_bytes = slot_stride_bytes.checked_mul(slots)?;
        let is_small = match slot_stride_bytes {
            SLOT_ALIGN_BYTES => used_bytes <= MAX_SMALL_BYTES,
            _ => pages == BufferPages::Ordinary,
        };
        let page_bytes = if is_small { SLOT_ALIGN_BYTES } else { HUGE_PAGE_BYTES };
        let arena_bytes = used_bytes.checked_next_multiple_of(page_bytes)?;
        (arena_bytes < usize::MAX / 2).then_some(Self { slot_stride_bytes, slots, page_bytes, arena_bytes })
    }
}

/// The pages of a workload's buffers, if they are larger than one.
pub(crate) fn pages_of(workload: &Workload) -> BufferPages {
    workload.buffers.unwrap_or(BufferPages::Ordinary)
}

/// What the buffers of all streams of a workload take of memory at most; `u64::MAX` beyond that, 0 for a simulated host.
pub fn buffers_bytes(workload: &Workload) -> u64 {
    if workload.engine == EngineKind::Sim {
        return 0;
    }
    let depth = usize::try_from(workload.queue_depth).unwrap_or(usize::MAX);
    let block_bytes = usize::try_from(workload.block_bytes).unwrap_or(usize::MAX);
    let pool_bytes = match workload.op {
        Op::Read => 0,
        Op::Write => {
            pool_bytes(usize::try_from(workload.streams).unwrap_or(usize::MAX), u64::MAX, block_bytes)
        }
    };
    let has_mix = workload.jobs.iter().any(|job| job.reads.is_some() && job.changes_data());
    let in_flight = if has_mix { depth.saturating_mul(2) } else { depth };
    let shape = ArenaShape::choose(pages_of(workload), in_flight.max(1), block_bytes, pool_bytes);
    let each = shape.and_then(|shape| u64::try_from(shape.arena_bytes).ok()).unwrap_or(u64::MAX);
    each.saturating_mul(u64::from(workload.streams))
}

/// Memory in equal slots. It starts on a 2 MiB boundary, unless it is small.
#[derive(Debug)]
pub(crate) struct Arena {
    base: NonNull<u8>,
    mapping: NonNull<c_void>,
    mapping_bytes: usize,
    pub(crate) slot_stride_bytes: usize,
    /// I/Os in flight at most.
    pub(crate) depth: usize,
    /// As many as I/Os in flight, or more.
    pub(crate) slots: usize,
    /// The first slots, this many, are for reads beside writes; 0 where all slots are for the same.
    pub(crate) read_slots: usize,
    /// Whether each slot is one piece of memory, where the kernel has huge pages.
    pub(crate) is_in_one_piece: bool,
}

// SAFETY: an arena owns its mapping; moving it to another thread moves the only reference.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena for `depth` I/Os in flight, in slots of at least `slot_bytes` bytes each, filled as requested; slots of
    /// more than a page are on such pages.
    ///
    /// # Errors
    /// [`EngineError::Memory`] when the kernel provides none.
    pub(crate) fn new(
        pages: BufferPages,
        depth: usize,
        slot_bytes: usize,
        fill: Fill,
    ) -> Result<Self, EngineError> {
        let depth = depth.max(1);
        let wanted = u64::try_from(depth)
            .unwrap_or(u64::MAX)
            .saturating_mul(u64::try_from(slot_bytes).unwrap_or(u64::MAX));
        let too_large = || EngineError::Memory {
            bytes: wanted,
            source: std::io::Error::from(std::io::ErrorKind::OutOfMemory),
        };
        let pool_bytes = match fill {
            Fill::Touched => 0,
            Fill::Random(fill) => fill.pool_bytes,
        };
        let read_slots = if matches!(fill, Fill::Random(fill) if fill.with_reads) { depth } else { 0 };
        let in_flight = depth.saturating_add(read_slots);
        let shape = ArenaShape::choose(pages, in_flight, slot_bytes, pool_bytes).ok_or_else(too_large)?;
        let ArenaShape { slot_stride_bytes, slots, page_bytes, arena_bytes } = shape;
        let (mapping, mapping_bytes) = map_aligned(arena_bytes, page_bytes)
            .map_err(|source| EngineError::Memory { bytes: wanted, source: source.into() })?;
        let skip = mapping.as_ptr().cast::<u8>().align_offset(page_bytes);
        // SAFETY: the mapping starts at a page and has one huge page more than an arena on these, so that `arena_bytes` after its first
        // boundary of a page of the arena's are inside.
        let base = unsafe { mapping.cast::<u8>().add(skip) };
        let is_in_one_piece = page_bytes == HUGE_PAGE_BYTES || slot_stride_bytes == SLOT_ALIGN_BYTES;
        let mut arena = Self {
            base,
            mapping,
            mapping_bytes,
            slot_stride_bytes,
            depth,
            slots,
            read_slots,
            is_in_one_piece,
        };
        if !is_in_one_piece {
            arena.touch_apart();
        }
        arena.fill(fill);
        Ok(arena)
    }

    /// Touches every second page first, and then those between: the kernel gives pages that are touched one after the other often in one
    /// piece while much memory is free, which no program can count on. With fio 3.33 each page was a piece (16 reads of 1 MiB: 32
    /// requests of 128), here 28 requests without this (2026-11).
    fn touch_apart(&mut self) {
        let memory = self.memory();
        for first in [0, SLOT_ALIGN_BYTES] {
            memory.iter_mut().skip(first).step_by(2 * SLOT_ALIGN_BYTES).for_each(|byte| *byte = 1);
        }
    }

    #[inline]
    pub(crate) fn slot_pointer(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.slots);
        // SAFETY: slot < slots, and the arena spans slots × stride bytes.
        unsafe { self.base.as_ptr().add(slot * self.slot_stride_bytes) }
    }

    /// The first `len` bytes of a slot.
    ///
    /// # Panics
    /// When the slot or the length is out of range.
    #[inline]
    pub(crate) fn slot(&mut self, slot: usize, len: usize) -> &mut [u8] {
        assert!(slot < self.slots && len <= self.slot_stride_bytes);
        // SAFETY: the range is inside the mapping, which is initialised by the kernel, and `&mut self` makes it unique.
        unsafe { std::slice::from_raw_parts_mut(self.slot_pointer(slot), len) }
    }

    /// Every slot, for threads that work on different ones at the same time.
    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let slot_bytes = self.slot_stride_bytes;
        self.memory().chunks_exact_mut(slot_bytes)
    }

    /// All slots, for one I/O at a time.
    pub(crate) fn cycle(&mut self) -> SlotCycle<'_> {
        let slot_bytes = self.slot_stride_bytes;
        SlotCycle { memory: self.memory(), slot_bytes, next: 0 }
    }

    /// The slots of reads beside writes, if there are any, and all others, for one I/O at a time.
    pub(crate) fn cycles(&mut self) -> (Option<SlotCycle<'_>>, SlotCycle<'_>) {
        let (slot_bytes, read_slots) = (self.slot_stride_bytes, self.read_slots);
        let (reads, others) = self.memory().split_at_mut(read_slots * slot_bytes);
        let reads = (read_slots > 0).then_some(SlotCycle { memory: reads, slot_bytes, next: 0 });
        (reads, SlotCycle { memory: others, slot_bytes, next: 0 })
    }

    fn memory(&mut self) -> &mut [u8] {
        let used_bytes = self.slots * self.slot_stride_bytes;
        // SAFETY: the arena spans slots × stride bytes from `base`, initialised, and `&mut self` makes the slice unique.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), used_bytes) }
    }

    /// What the first `slots` slots hold after reads of `block_bytes` bytes: a few pages of each, spread over the block. A page
    /// that was never read into is left out: a thread of a pool may get no I/O.
    pub(crate) fn content(&mut self, slots: usize, block_bytes: usize) -> ReadContent {
        let mut content = ReadContent::default();
        let len = block_bytes.min(self.slot_stride_bytes);
        for slot in 0..slots.min(MAX_SLOTS_SEEN).min(self.slots) {
            let block = &*self.slot(slot, len);
            let step = block.len().div_ceil(PAGE_BYTES).div_ceil(MAX_PAGES_SEEN).max(1);
            for page in block.chunks(PAGE_BYTES).step_by(step) {
                let Some((first, rest)) = page.split_first() else { continue };
                // Touching left a one at its start.
                let is_zero_after = rest.iter().all(|&byte| byte == 0);
                if !(is_zero_after && *first == 1) {
                    content.pages += 1;
                    content.zero_pages += u64::from(is_zero_after && *first == 0);
                }
            }
        }
        content
    }

    fn fill(&mut self, fill: Fill) {
        // What lies behind the last slot is not touched, so that it takes no memory.
        let used_bytes = self.slots * self.slot_stride_bytes;
        // SAFETY: the arena spans slots × stride bytes from `base`, 8-byte aligned; `&mut self` makes the slice unique.
        let words =
            unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast::<u64>(), used_bytes / 8) };
        match fill {
            Fill::Touched => words.iter_mut().step_by(SLOT_ALIGN_BYTES / 8).for_each(|word| *word = 1),
            Fill::Random(WriteFill { seed, compressible_percent, .. }) => {
                let mut random = WyRand::new(seed);
                words.iter_mut().for_each(|word| *word = random.next());
                if compressible_percent > 0 {
                    self.memory()
                        .chunks_mut(SECTOR_BYTES)
                        .for_each(|sector| compress(sector, compressible_percent));
                }
            }
        }
    }
}

/// Makes `percent` of a sector zeros, at its end; its stamp stays.
fn compress(sector: &mut [u8], percent: u32) {
    let random_bytes = sector.len() * 100u32.saturating_sub(percent) as usize / 100;
    sector[random_bytes.max(SHORT_STAMP_BYTES)..].fill(0);
}

impl Drop for Arena {
    fn drop(&mut self) {
        // While a panic unwinds, I/O may still be in flight into this memory; it then stays mapped until the process ends.
        if std::thread::panicking() {
            return;
        }
        // SAFETY: the range is exactly the mapping made by `new`; engines drop the arena after the last completion.
        let result = unsafe { rustix::mm::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
        debug_assert!(result.is_ok(), "our own mapping can be unmapped");
    }
}

/// Ordinary pages; for an arena on huge ones with advice to use these, and one more than needed so that a boundary lies inside. The
/// kernel's reserved huge pages are for databases and virtual machines, and the limit of a container may end who touches one.
fn map_aligned(bytes: usize, page_bytes: usize) -> rustix::io::Result<(NonNull<c_void>, usize)> {
    let is_huge = page_bytes == HUGE_PAGE_BYTES;
    let mapping_bytes = if is_huge { bytes + HUGE_PAGE_BYTES } else { bytes };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice aliases nothing.
    let address = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), mapping_bytes, protection, MapFlags::PRIVATE)
    }?;
    let mapping = NonNull::new(address).ok_or(rustix::io::Errno::NOMEM)?;
    // Where transparent huge pages are for all, ordinary ones have to be asked for. A kernel without them returns EINVAL: its pages are
    // all ordinary.
    let advice = if is_huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: the advice changes no content of our own fresh mapping.
    let _ = unsafe { rustix::mm::madvise(mapping.as_ptr(), mapping_bytes, advice) };
    Ok((mapping, mapping_bytes))
}

/// Slots that one thread takes one after the other, and then from the start again.
#[derive(Debug)]
pub(crate) struct SlotCycle<'a> {
    memory: &'a mut [u8],
    slot_bytes: usize,
    /// Where the next slot starts.
    next: usize,
}

impl<'a> SlotCycle<'a> {
    /// The one slot, again and again.
    pub(crate) fn of_one(slot: &'a mut [u8]) -> Self {
        Self { slot_bytes: slot.len(), memory: slot, next: 0 }
    }

    /// The first `len` bytes of the next slot.
    ///
    /// # Panics
    /// When a slot is shorter.
    #[inline]
    pub(crate) fn next(&mut self, len: usize) -> &mut [u8] {
        let (begin, end) = (self.next, self.next + self.slot_bytes);
        self.next = if end < self.memory.len() { end } else { 0 };
        &mut self.memory[begin..end][..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamper::Stamper;
    use std::collections::HashSet;

    #[test]
    fn pages_of_zeros_are_counted_and_pages_that_nobody_filled_are_none() {
        let mut arena = Arena::new(BufferPages::Huge, 4, 3 * PAGE_BYTES, Fill::Touched).unwrap();
        assert_eq!(arena.content(4, 3 * PAGE_BYTES), ReadContent::default(), "nobody read into it");
        arena.slot(0, 3 * PAGE_BYTES).fill(0);
        arena.slot(1, PAGE_BYTES).fill(0);
        arena.slot(2, 2 * PAGE_BYTES).fill(7);
        assert_eq!(arena.content(4, 3 * PAGE_BYTES), ReadContent { pages: 6, zero_pages: 4 });
        assert_eq!(arena.content(1, 512), ReadContent { pages: 1, zero_pages: 1 });
        arena.slot(0, 3 * PAGE_BYTES)[3 * PAGE_BYTES - 1] = 1;
        assert_eq!(arena.content(1, 3 * PAGE_BYTES), ReadContent { pages: 3, zero_pages: 2 });
        let mut large = Arena::new(BufferPages::Huge, 16, 1 << 20, Fill::Touched).unwrap();
        large.cycle().memory.fill(0);
        let most = (MAX_PAGES_SEEN * MAX_SLOTS_SEEN) as u64;
        assert_eq!(large.content(16, 1 << 20).pages, most, "a look is short");
    }

    #[test]
    fn slots_are_aligned_and_apart() {
        let mut arena = Arena::new(BufferPages::Huge, 33, 5000, Fill::Touched).unwrap();
        assert_eq!((arena.slots, arena.slot_stride_bytes), (33, 8192));
        assert_eq!(arena.slot_pointer(0).align_offset(HUGE_PAGE_BYTES), 0);
        for slot in 0..33 {
            let pointer = arena.slot_pointer(slot);
            assert_eq!(pointer.align_offset(SLOT_ALIGN_BYTES), 0);
            arena.slot(slot, 5000).fill(u8::try_from(slot).unwrap());
        }
        assert_eq!(arena.slots_mut().count(), 33);
        assert!(
            (0u8..).zip(arena.slots_mut()).all(|(number, slot)| slot.len() == 8192 && slot[4999] == number)
        );
        for slot in 0..33 {
            assert!(arena.slot(slot, 5000).iter().all(|&byte| usize::from(byte) == slot));
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(matches!(
            Arena::new(BufferPages::Huge, usize::MAX, 4096, Fill::Touched),
            Err(EngineError::Memory { .. })
        ));
        assert!(matches!(
            Arena::new(BufferPages::Huge, 1, usize::MAX - 1, Fill::Touched),
            Err(EngineError::Memory { .. })
        ));
    }

    #[test]
    fn random_fill_has_no_repeated_word_and_balanced_bits() {
        let mut arena = Arena::new(
            BufferPages::Huge,
            4,
            64 << 10,
            Fill::Random(WriteFill { seed: 7, pool_bytes: 0, ..WriteFill::default() }),
        )
        .unwrap();
        let mut words = HashSet::new();
        let mut ones = 0u64;
        for slot in 0..4 {
            for chunk in arena.slot(slot, 64 << 10).chunks_exact(8) {
                let word = u64::from_le_bytes(chunk.try_into().unwrap());
                ones += u64::from(word.count_ones());
                assert!(words.insert(word), "word {word:#x} came twice");
            }
        }
        let bits = u64::try_from(words.len()).unwrap() * 64;
        assert!(ones.abs_diff(bits / 2) < bits / 100, "{ones} of {bits} bits are ones");
    }

    #[test]
    fn no_two_written_sectors_are_equal() {
        let mut arena = Arena::new(
            BufferPages::Huge,
            1,
            64 << 10,
            Fill::Random(WriteFill { seed: 3, pool_bytes: 0, ..WriteFill::default() }),
        )
        .unwrap();
        let mut seen = HashSet::new();
        for (visit, stream) in [(0, 0), (0, 1), (1, 0)] {
            let mut stamper = Stamper::new(9, visit, stream);
            for offset in [0, 0, 65536, 4096] {
                let block = arena.slot(0, 64 << 10);
                stamper.stamp(block, offset);
                for (page, at) in block.chunks_exact(4096).zip((offset..).step_by(4096)) {
                    assert_eq!(u64::from_le_bytes(page[16..24].try_into().unwrap()), at);
                }
                for sector in block.chunks_exact(SECTOR_BYTES) {
                    assert!(seen.insert(sector.to_vec()), "the same sector twice");
                }
            }
        }
    }

    #[test]
    fn compressible_data_are_zeros_at_the_end_of_each_sector() {
        let fill = WriteFill { seed: 7, compressible_percent: 50, ..WriteFill::default() };
        let mut arena = Arena::new(BufferPages::Ordinary, 2, 8192, Fill::Random(fill)).unwrap();
        Stamper::new(1, 0, 0).stamp(arena.slot(1, 8192), 4096);
        for sector in arena.slot(1, 8192).chunks(SECTOR_BYTES) {
            assert!(sector[256..].iter().all(|&byte| byte == 0));
            assert!(sector[..256].iter().filter(|&&byte| byte == 0).count() < 40);
        }
        let mut sector = [1u8; SECTOR_BYTES];
        compress(&mut sector, 99);
        assert_eq!(sector.iter().filter(|&&byte| byte == 1).count(), SHORT_STAMP_BYTES);
    }

    #[test]
    fn many_streams_of_single_pages_take_pages() {
        let with = |op, streams, queue_depth, block_bytes| {
            let workload =
                Workload { op, streams, queue_depth, block_bytes, ..Workload::sequential_read(1 << 30) };
            buffers_bytes(&workload)
        };
        let huge = HUGE_PAGE_BYTES as u64;
        assert_eq!(with(Op::Read, 1024, 1, 4096), 4 << 20);
        assert_eq!(with(Op::Read, 1024, 16, 512), 64 << 20, "of each page of a slot a part is used");
        assert_eq!(with(Op::Read, 1024, 17, 4096), 1024 * huge);
        assert_eq!(with(Op::Read, 1, 1, 8192), 8192);
        assert_eq!(with(Op::Read, 1, 3, 1 << 20), 3 << 20);
        assert_eq!(with(Op::Write, 1, 1, 1 << 20), 3 << 20, "with its pool");
        let huge_read = |queue_depth, block_bytes| {
            let buffers = Some(BufferPages::Huge);
            let workload =
                Workload { buffers, queue_depth, block_bytes, ..Workload::sequential_read(1 << 30) };
            buffers_bytes(&workload)
        };
        assert_eq!(huge_read(1, 8192), huge, "a block lies in one piece");
        assert_eq!(huge_read(3, 1 << 20), 2 * huge);
        assert_eq!(with(Op::Write, 1024, 1, 4096), 1024 * huge);
        assert_eq!(with(Op::Read, 2, u32::MAX, u64::MAX), u64::MAX);
        let simulated = Workload { engine: EngineKind::Sim, ..Workload::sequential_read(1 << 30) };
        assert_eq!(buffers_bytes(&simulated), 0);
        let mut small = Arena::new(BufferPages::Huge, 16, 4096, Fill::Touched).unwrap();
        assert_eq!(small.mapping_bytes, 16 * 4096);
        small.slot(15, 4096).fill(7);
    }

    #[test]
    fn writes_have_a_pool_and_take_its_slots_in_turn() {
        let pool = |streams| pool_bytes(streams, u64::MAX, 16 << 10);
        assert_eq!((pool(1), pool(128), pool(1024)), (POOL_BYTES, POOL_BYTES, 256 << 10));
        assert_eq!(pool_bytes(1, 3, 5000), 3 * 8192, "no more than is written");
        let fill = Fill::Random(WriteFill { seed: 5, pool_bytes: pool(1), ..WriteFill::default() });
        let mut arena = Arena::new(BufferPages::Huge, 3, 16 << 10, fill).unwrap();
        assert_eq!((arena.depth, arena.slots), (3, 131));
        let mut seen = HashSet::new();
        let mut slots = arena.cycle();
        (0..131).for_each(|_| assert!(seen.insert(slots.next(16 << 10).to_vec())));
        (0..131).for_each(|_| assert!(seen.contains(slots.next(16 << 10)), "from the start again"));
        assert_eq!(Arena::new(BufferPages::Huge, 3, 1 << 20, fill).unwrap().slots, 5);
        assert_eq!(
            Arena::new(BufferPages::Huge, 3, 3 << 20, fill).unwrap().slots,
            3,
            "a block is more than the pool"
        );
    }

    /// Huge pages of the kernel's pool are reserved for databases and virtual machines.
    #[test]
    fn nothing_is_mapped_on_reserved_huge_pages() {
        let taken =
            |source: &str| ["HUGETLB", "HUGE_2MB"].iter().any(|last| source.contains(&format!("::{last}")));
        assert!(taken(&format!("MapFlags::{}", "HUGETLB")));
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                let source = std::fs::read_to_string(&path).unwrap();
                assert!(!taken(&source) && !source.contains(&format!("libc::{}", "MAP_HUGETLB")), "{path:?}");
            }
        }
    }

    #[test]
    fn small_blocks_change_too() {
        let mut block = [0u8; 27];
        let mut stamper = Stamper::new(1, 0, 0);
        stamper.stamp(&mut block, 0);
        let first = block;
        stamper.stamp(&mut block, 0);
        assert_ne!(first, block);
        let mut byte = [0u8; 1];
        stamper.stamp(&mut byte, 3);
    }
}
