//! The trims of a load: what a target holds somewhere is discarded, by the call that its kind has. Only what rdsk may write is, and of
//! files only those that it has made.

use crate::stream_spec::StreamSpec;
use rdsk_model::{LoadJob, Target, TargetKind};
use rustix::fs::FallocateFlags;
use std::io;

/// Why a job cannot trim this target; `None` where it can, or does not trim.
pub fn why_not(job: &LoadJob, target: &Target) -> Option<&'static str> {
    if !job.has_trims() {
        return None;
    }
    match target.kind {
        TargetKind::Block => None,
        TargetKind::File if target.made_by_rdsk => None,
        TargetKind::File => Some("holes are made only in test files of rdsk: name a directory, or a device"),
        TargetKind::Sim => Some("a simulated disk discards nothing"),
    }
}

/// Discards a range of bytes: `BLKDISCARD` of a device, a hole in a file.
///
/// # Errors
/// Those of the call, such as `EOPNOTSUPP` of a device that discards nothing.
pub(crate) fn discard(spec: &StreamSpec<'_>, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    match spec.open.claim.target.kind {
        TargetKind::Block => rdsk_sys::device::discard(spec.fd, offset_bytes, bytes),
        TargetKind::File | TargetKind::Sim => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            Ok(rustix::fs::fallocate(spec.fd, hole, offset_bytes, bytes)?)
        }
    }
}
