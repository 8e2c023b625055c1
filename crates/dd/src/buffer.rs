//! Buffers that start at a page, as direct I/O needs them.

use rdsk_sys::memory::{HUGE_PAGE_BYTES, use_huge_pages};

/// Alignment of every buffer: a page, which no device's block exceeds in practice.
const ALIGNMENT: usize = 4096;

/// Bytes that start at a multiple of 4 KiB.
pub(crate) struct Buffer {
    space: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Zeros; nothing if there is not so much memory.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok()?;
        Self::aligned(length, ALIGNMENT, length.checked_add(ALIGNMENT)?)
    }

    /// The same in one piece of the machine's memory, which is there already, where the kernel has a huge page for it; otherwise in
    /// pages. A device is given one piece instead of one for each page.
    pub(crate) fn in_one_piece(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok().filter(|&length| length <= HUGE_PAGE_BYTES)?;
        let mut buffer = Self::aligned(length, HUGE_PAGE_BYTES, 2 * HUGE_PAGE_BYTES)?;
        use_huge_pages(&mut buffer.space[buffer.start..buffer.start + HUGE_PAGE_BYTES]);
        // Touched now, and not when the copy is timed.
        std::hint::black_box(buffer.bytes()).fill(0);
        Some(buffer)
    }

    fn aligned(length: usize, alignment: usize, all: usize) -> Option<Self> {
        // Memory that the kernel hands out as zeros costs nothing until it is used; a vector that cannot be had aborts, so
        // that it is asked for first.
        Vec::<u8>::new().try_reserve_exact(all).ok()?;
        let space = vec![0_u8; all];
        let start = space.as_ptr().align_offset(alignment);
        (start <= alignment).then_some(Self { space, start, length })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.space[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
