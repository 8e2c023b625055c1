//! One stream of a simulated visit: what it still has to do and what it did. It makes no call itself.

use crate::error::EngineError;
use crate::job::Job;
use crate::offsets::{OffsetSource as _, Offsets, placement_of};
use crate::places::Places;
use crate::positions::{Position, PositionSource};
use crate::stream_spec::Quota;
use crate::work::StreamEnd;
use rdsk_disk::LunId;
use rdsk_model::{IoError, StreamResult};
use std::sync::Arc;

/// A stream.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// What it did so far; times are readings of the clock.
    pub(super) result: StreamResult,
    pub(super) lun: LunId,
    pub(super) places: Option<Arc<Places>>,
    offsets: Offsets,
    /// Chosen positions instead of the offsets.
    positions: Option<PositionSource<'a>>,
    block_bytes: u64,
    /// Whole blocks that are left.
    full_ops: u64,
    /// Length of the last, shorter call; 0 for none.
    tail_bytes: u64,
    /// When it may start, from the start of the visit.
    pub(super) turn_ns: u64,
    pub(super) ended: Option<StreamEnd>,
    pub(super) error: Option<IoError>,
    pub(super) asked_bytes: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        job: &Job<'a>,
        index: u32,
        luns: &[(u32, LunId)],
        places: &[Option<Arc<Places>>],
        page_bytes: u64,
    ) -> Result<Self, EngineError> {
        let workload = job.workload;
        let placement = placement_of(workload, index)?;
        let (target, lun) = luns[placement.target_position];
        let offsets = Offsets::new(workload, job.visit, index, page_bytes)?.beginning_at(job.begin_bytes);
        let Quota { full_ops, tail_bytes } = Quota::new(job, index, &offsets)?;
        Ok(Self {
            result: StreamResult { index, target, ..StreamResult::default() },
            lun,
            places: places.get(placement.target_position).cloned().flatten(),
            offsets,
            positions: PositionSource::new(job),
            block_bytes: workload.block_bytes,
            full_ops,
            tail_bytes,
            turn_ns: workload.stagger_ns.saturating_mul(u64::from(index)),
            ended: None,
            error: None,
            asked_bytes: 0,
        })
    }

    pub(super) fn start(&mut self, now_ns: u64) {
        (self.result.start_ns, self.result.end_ns) = (now_ns, now_ns);
    }

    /// The next call; `None` when the stream has ended.
    pub(super) fn next(&mut self) -> Option<Position> {
        if self.is_over() {
            return None;
        }
        let next = match &mut self.positions {
            Some(positions) => positions.next(),
            None => self.next_of_span(),
        };
        if next.is_none() {
            self.ended = Some(StreamEnd::Complete);
        }
        next
    }

    fn next_of_span(&mut self) -> Option<Position> {
        if self.full_ops > 0 {
            self.full_ops -= 1;
            return Some(Position {
                index: None,
                offset_bytes: self.offsets.next_offset(),
                bytes: self.block_bytes,
            });
        }
        let bytes = std::mem::take(&mut self.tail_bytes);
        (bytes > 0).then(|| Position { index: None, offset_bytes: self.offsets.tail_offset(bytes), bytes })
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the stream, unless it has ended for another reason.
    pub(super) fn end(&mut self, end: StreamEnd) {
        self.ended.get_or_insert(end);
    }

    /// Ends the stream with its first error.
    pub(super) fn fail(&mut self, offset_bytes: u64, errno: i32, message: String, now_ns: u64) {
        self.result.end_ns = now_ns;
        self.ended = Some(StreamEnd::Failed);
        let (target, stream) = (self.result.target, Some(self.result.index));
        self.error.get_or_insert(IoError { target, stream, offset_bytes, errno, message });
    }
}
