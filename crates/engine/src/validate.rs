//! Checks of a workload that hold for every engine: one that contradicts itself or exceeds its target is refused before any
//! I/O. It issues nothing.

use crate::error::EngineError;
use crate::job::Job;
use rdsk_model::{EngineKind, Op, Sync, Workload};
use rdsk_targets::Claim;

/// `io_uring` has 32 bits for the block size, and no device takes that much at once.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

/// I/Os in flight per stream; the kernel's own limit for a ring.
const MAX_DEPTH: u32 = 32_768;

/// Streams; each is a thread.
const MAX_STREAMS: u32 = 4_096;

pub(crate) fn check_shape(workload: &Workload) -> Result<(), EngineError> {
    let Workload { streams, queue_depth, block_bytes, .. } = workload;
    let invalid = |why: String| Err(EngineError::Workload(why));
    if *streams == 0 || *streams > MAX_STREAMS {
        return invalid(format!("{streams} streams; 1 to {MAX_STREAMS} are possible"));
    }
    if *queue_depth == 0 || *queue_depth > MAX_DEPTH {
        return invalid(format!("a queue depth of {queue_depth}; 1 to {MAX_DEPTH} are possible"));
    }
    if workload.engine == EngineKind::Sync && *queue_depth > 1 {
        return invalid(format!("the sync engine has one I/O in flight per stream, not {queue_depth}"));
    }
    if *block_bytes > MAX_BLOCK_BYTES {
        return invalid(format!("blocks of {block_bytes} bytes; {MAX_BLOCK_BYTES} are possible"));
    }
    if workload.op == Op::Read && workload.sync == Sync::FsyncAtEnd {
        return invalid("a read leaves nothing to synchronise".into());
    }
    check_positions(workload)
}

/// The targets that the streams of a job use: index in the Record and claim of each.
///
/// # Errors
/// When a target was not claimed, or the span does not lie inside it.
pub(crate) fn used_targets<'a>(job: &Job<'a>) -> Result<Vec<(u32, &'a Claim)>, EngineError> {
    let Workload { targets, streams, offset_bytes, span_bytes, .. } = job.workload;
    let mut used = Vec::new();
    for &index in targets.iter().take(*streams as usize) {
        let no_claim = EngineError::NoClaim { index, claims: job.claims.len() };
        let claim = job.claims.get(index as usize).ok_or(no_claim)?;
        let size_bytes = claim.size_bytes();
        if offset_bytes.saturating_add(*span_bytes) > size_bytes {
            let name = &claim.target.name;
            return Err(EngineError::Workload(format!(
                "{span_bytes} bytes from offset {offset_bytes} extend beyond the {size_bytes} bytes of {name}"
            )));
        }
        used.push((index, claim));
    }
    Ok(used)
}

/// Checks the chosen positions of a workload that has any.
fn check_positions(workload: &Workload) -> Result<(), EngineError> {
    let Some(points) = &workload.points else { return Ok(()) };
    let invalid = |why: &str| Err(EngineError::Workload(format!("its chosen positions {why}")));
    if workload.streams != 1 || workload.queue_depth != 1 {
        return invalid("need one stream with one I/O in flight");
    }
    if points.is_empty() || u32::try_from(points.len()).is_err() {
        return invalid("are none or more than 2^32");
    }
    if !points.block_bytes.is_empty() && points.block_bytes.len() != points.offset_bytes.len() {
        return invalid("differ in number from their sizes");
    }
    let end = workload.offset_bytes.saturating_add(workload.span_bytes);
    for index in 0..points.len() {
        let Some((offset, bytes)) = points.get(index, workload.block_bytes) else { continue };
        let inside = offset >= workload.offset_bytes
            && offset.checked_add(bytes).is_some_and(|last| last <= end)
            && bytes <= workload.block_bytes
            && bytes > 0;
        if !inside {
            return invalid("extend beyond the span or are larger than the block size");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Pattern, Points};

    fn workload(sizes: Vec<u64>) -> Workload {
        let offset_bytes = (0..100).map(|index| index * 8192).collect();
        let points = Points { offset_bytes, block_bytes: sizes, ..Points::default() };
        let pattern = Pattern::Random;
        Workload { pattern, block_bytes: 4096, points: Some(points), ..Workload::sequential_read(1 << 20) }
    }

    #[test]
    fn positions_outside_the_span_are_refused() {
        assert!(check_positions(&workload(Vec::new())).is_ok());
        assert!(check_positions(&workload(vec![4096; 99])).is_err());
        assert!(check_positions(&workload(vec![8192; 100])).is_err(), "larger than the buffer");
        let short = Workload { span_bytes: 8192 * 99, ..workload(Vec::new()) };
        assert!(check_positions(&short).is_err());
        let deep = Workload { queue_depth: 2, ..workload(Vec::new()) };
        assert!(check_positions(&deep).is_err());
    }
}
