//! Stamps by which no two sectors that are written are equal. They take no more than a few bytes of each; the rest is in `arena`.

use crate::random::mix;

/// Bytes that share one long stamp.
const STAMP_EVERY_BYTES: usize = 4096;

/// Bytes that share one short stamp: no two written blocks of this size are ever equal. Arrays deduplicate by this or more.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Size of a long stamp; truncated if the block is smaller.
const STAMP_BYTES: usize = 32;

/// Size of the stamp of any other sector of a page.
pub(crate) const SHORT_STAMP_BYTES: usize = 8;

/// An odd number, so that no two products are equal: 2^64 over the golden ratio.
const SECTOR_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes every sector of written data unique.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamper {
    key: u64,
    sequence: u64,
}

impl Stamper {
    /// The stamper of one stream of one visit.
    pub(crate) fn new(seed: u64, visit: u32, stream: u32) -> Self {
        Self { key: mix(mix(seed, u64::from(visit)), u64::from(stream)), sequence: 0 }
    }

    /// The stamper of one of several threads that share a stream; no two of them ever write the same stamp.
    pub(crate) fn for_thread(self, thread: u64) -> Self {
        Self { key: mix(self.key, thread.wrapping_add(1)), ..self }
    }

    /// Stamps each page of the block that goes to `offset_bytes`: key, sequence number, offset of the page, and a mix of
    /// the three, little-endian, as much as fits; and each further sector of the page with a number made of the mix.
    #[inline]
    pub(crate) fn stamp(&mut self, block: &mut [u8], offset_bytes: u64) {
        let mut page_offset = offset_bytes;
        for page in block.chunks_mut(STAMP_EVERY_BYTES) {
            let mixed = mix(self.key ^ page_offset, self.sequence);
            let words = [self.key, self.sequence, page_offset, mixed];
            let mut stamp = [0u8; STAMP_BYTES];
            for (bytes, word) in stamp.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            if let Some(head) = page.first_chunk_mut::<STAMP_BYTES>() {
                *head = stamp;
            } else {
                // A block of a few bytes gets the end of the stamp, where the mix changes most.
                let len = page.len();
                page.copy_from_slice(&stamp[STAMP_BYTES - len..]);
            }
            for (sector, number) in page.chunks_mut(SECTOR_BYTES).zip(0u64..).skip(1) {
                let stamp = (mixed ^ number).wrapping_mul(SECTOR_FACTOR).to_le_bytes();
                if let Some(head) = sector.first_chunk_mut::<SHORT_STAMP_BYTES>() {
                    *head = stamp;
                } else {
                    let len = sector.len();
                    sector.copy_from_slice(&stamp[stamp.len() - len..]);
                }
            }
            page_offset = page_offset.wrapping_add(4096);
        }
        self.sequence += 1;
    }
}
