//! Buffers that start at a page, as direct I/O needs them.

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
        let all = length.checked_add(ALIGNMENT)?;
        // Memory that the kernel hands out as zeros costs nothing until it is used; a vector that cannot be had aborts, so
        // that it is asked for first.
        Vec::<u8>::new().try_reserve_exact(all).ok()?;
        let space = vec![0_u8; all];
        let start = space.as_ptr().align_offset(ALIGNMENT);
        (start <= ALIGNMENT).then_some(Self { space, start, length })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.space[self.start..self.start + self.length]
    }
}
