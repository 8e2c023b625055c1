//! How fast a target is read, roughly, before anything is planned: what takes the time of writing a test file where there is none to
//! write. It reads little, past the page cache, and its figure shapes a plan and is shown nowhere.

use crate::arena::{Arena, Fill};
use crate::clock::now_ns;
use rdsk_model::{BufferPages, IoPath};
use rdsk_sys::io::{Flags, pread2};
use rdsk_targets::{Claim, OpenMode};

const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that are read at most.
const MAX_BLOCKS: u64 = 16;

/// Bytes per second of the first sequential direct reads from an offset, in so much time at most but for one read that takes longer.
/// `None` where direct I/O is not possible, or a read failed: the cells will say so.
pub fn rough_read_rate(claim: &Claim, offset_bytes: u64, longest_ns: u64) -> Option<f64> {
    let target = &claim.target;
    let grain = target.direct_align_bytes.unwrap_or(4096).max(4096);
    let begin = offset_bytes.checked_next_multiple_of(grain)?;
    let blocks = (target.size_bytes.checked_sub(begin)? / BLOCK_BYTES as u64).min(MAX_BLOCKS);
    if claim.simulated().is_some() || target.direct_io != Some(true) || blocks == 0 {
        return None;
    }
    let fd = claim.open(OpenMode { path: IoPath::Direct, ..OpenMode::READ }).ok()?;
    let mut arena = Arena::new(BufferPages::Ordinary, 1, BLOCK_BYTES, Fill::Touched).ok()?;
    let began_ns = now_ns();
    let mut bytes = 0;
    for block in 0..blocks {
        let at = begin + block * BLOCK_BYTES as u64;
        bytes += pread2(&fd, arena.slot(0, BLOCK_BYTES), at, Flags::empty()).ok()?;
        if now_ns().saturating_sub(began_ns) >= longest_ns {
            break;
        }
    }
    let elapsed_ns = now_ns().saturating_sub(began_ns).max(1);
    (bytes > 0).then_some(bytes as f64 * 1e9 / elapsed_ns as f64)
}
