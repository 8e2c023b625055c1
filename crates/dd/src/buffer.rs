//! Buffers that start at a page, as direct I/O needs them, and the block of a copy that is laid before the copy begins.

use crate::operands::Operands;
use rdsk_sys::memory::{FreshPages, HUGE_PAGE_BYTES, use_huge_pages};

/// Alignment of every buffer: a page, which no device's block exceeds in practice.
const ALIGNMENT: usize = 4096;

/// A larger block is taken when it is read: it may be larger than what there is to read.
const AHEAD_BYTES: u64 = 16 << 20;

/// Bytes that start at a multiple of 4 KiB.
pub(crate) struct Buffer {
    /// Nobody had it before, as in dd, which has done nothing else when it asks for its buffer.
    space: FreshPages,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Zeros; nothing if there is not so much memory.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok()?;
        // dd's buffer has a page before and one behind it; without them one of 2 MiB could become a huge page where dd's cannot.
        Self::aligned(length, ALIGNMENT, length.checked_add(2 * ALIGNMENT)?, ALIGNMENT)
    }

    /// The same in one piece of the machine's memory, which is there already, where the kernel has a huge page for it; otherwise in
    /// pages. A device is given one piece instead of one for each page.
    pub(crate) fn in_one_piece(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok().filter(|&length| length <= HUGE_PAGE_BYTES)?;
        let mut buffer = Self::aligned(length, HUGE_PAGE_BYTES, 2 * HUGE_PAGE_BYTES, 0)?;
        use_huge_pages(&mut buffer.space[buffer.start..buffer.start + HUGE_PAGE_BYTES]);
        buffer.touch();
        Some(buffer)
    }

    /// Takes its memory now, and not when the copy is timed.
    fn touch(&mut self) {
        std::hint::black_box(self.bytes()).fill(0);
    }

    /// `length` bytes of `all` that are asked for, at the first boundary that is not below `from`.
    fn aligned(length: usize, boundary: usize, all: usize, from: usize) -> Option<Self> {
        let space = FreshPages::new(all).ok()?;
        let start = from + space[from..].as_ptr().align_offset(boundary);
        (start.checked_add(length)? <= all).then_some(Self { space, start, length })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.space[self.start..self.start + self.length]
    }
}

/// The block that is read and written, in memory that was taken before the copy begins.
pub struct Block(pub(crate) Buffer);

impl Block {
    /// In pages, as that of dd, and as early as it: what the process frees until the copy begins lies in pieces, and of these a device
    /// takes more work (a direct write of 1 MiB 1 to 2 %). Nothing for a copy between blocks of two sizes, or of very large ones.
    pub fn in_pages(operands: &Operands) -> Option<Self> {
        let bytes = operands.input_block_bytes;
        let mut buffer =
            (operands.is_one_block && bytes <= AHEAD_BYTES).then(|| Buffer::new(bytes)).flatten()?;
        buffer.touch();
        Some(Self(buffer))
    }

    /// In one piece, where the kernel has one: a device takes it with less work. Where it takes no more pieces in a request than the
    /// block has pages, requests would be larger than those of dd.
    pub fn in_one_piece(operands: &Operands) -> Option<Self> {
        operands.is_one_block.then(|| Buffer::in_one_piece(operands.input_block_bytes)).flatten().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::quote::Charset;
    use std::ffi::OsString;

    #[test]
    fn memory_is_zeros_from_a_boundary_on() {
        for bytes in [1, 512, 4096, 16_384, 65_536] {
            let both = [(Buffer::new(bytes), ALIGNMENT), (Buffer::in_one_piece(bytes), HUGE_PAGE_BYTES)];
            for (mut buffer, boundary) in both.map(|(buffer, boundary)| (buffer.unwrap(), boundary)) {
                assert_eq!(buffer.bytes().as_ptr().addr() % boundary, 0);
                assert_eq!(buffer.bytes(), vec![0; usize::try_from(bytes).unwrap()]);
            }
        }
        assert!(Buffer::in_one_piece(HUGE_PAGE_BYTES as u64 + 1).is_none());
    }

    #[test]
    fn only_a_copy_of_one_block_has_it_laid_before() {
        let block = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let operands = parse(&words, Charset::Utf8).unwrap();
            Block::in_pages(&operands).map(|Block(mut buffer)| buffer.bytes().len())
        };
        assert_eq!(block(&["bs=1M"]), Some(1 << 20));
        assert_eq!(block(&["ibs=4k", "obs=8k"]), None, "two blocks");
        assert_eq!(block(&["bs=1G"]), None, "there may be less to read");
    }
}
