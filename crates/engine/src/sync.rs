//! The sync engine: one blocking pread or pwrite at a time per stream, preadv2 or pwritev2 where the path has a flag. One loop, compiled separately for each kind of
//! offsets, direction and check, so that what lies between two I/Os does not branch on what is known beforehand. It allocates
//! nothing.

use crate::arena::{Arena, SlotCycle};
use crate::clock::now_ns;
use crate::offsets::{OffsetSource, Offsets};
use crate::stream_spec::StreamSpec;
use crate::work::{StreamEnd, StreamOutcome, Work};
use rdsk_model::{CacheState, Op};
use rdsk_sys::io::{pread2, pwrite2};
use std::io;

/// Issues the I/O of one stream, the whole blocks first, then the shorter one.
pub(crate) fn run(work: Work<'_>, arena: &mut Arena) -> StreamOutcome {
    match work.spec.offsets {
        Offsets::Sequential(offsets) => with_offsets(work, arena, offsets),
        Offsets::Uniform(offsets) => with_offsets(work, arena, offsets),
        Offsets::Permuted(offsets) => with_offsets(work, arena, offsets),
    }
}

fn with_offsets<O: OffsetSource>(work: Work<'_>, arena: &mut Arena, offsets: O) -> StreamOutcome {
    match (work.spec.op, work.spec.check) {
        (Op::Read, None) => each_in_turn::<O, false, false>(work, arena, offsets),
        (Op::Read, Some(_)) => each_in_turn::<O, false, true>(work, arena, offsets),
        (Op::Write, None) => each_in_turn::<O, true, false>(work, arena, offsets),
        (Op::Write, Some(_)) => each_in_turn::<O, true, true>(work, arena, offsets),
    }
}

fn each_in_turn<O: OffsetSource, const WRITE: bool, const CHECK: bool>(
    mut work: Work<'_>,
    arena: &mut Arena,
    mut offsets: O,
) -> StreamOutcome {
    let spec = work.spec;
    let mut buffers = arena.cycle();
    work.start();
    let mut next = || offsets.next_offset();
    let mut end = blocks::<WRITE, CHECK>(&mut work, &mut buffers, spec.block_bytes, spec.full_ops, &mut next);
    if end == StreamEnd::Complete && spec.tail_bytes > 0 {
        let mut tail = || offsets.tail_offset(spec.tail_bytes as u64);
        end = blocks::<WRITE, CHECK>(&mut work, &mut buffers, spec.tail_bytes, 1, &mut tail);
    }
    work.finish(end)
}

/// The hot loop. For plain reads nothing lies between two I/Os, so the end of one is the start of the next: one clock
/// reading each. Stamping and checking the cache are outside the latency, which costs a second reading.
#[inline]
pub(crate) fn blocks<const WRITE: bool, const CHECK: bool>(
    work: &mut Work<'_>,
    buffers: &mut SlotCycle<'_>,
    len: usize,
    ops: u64,
    next_offset: &mut impl FnMut() -> u64,
) -> StreamEnd {
    let fd = work.spec.fd;
    let wanted = work.spec.check.unwrap_or(CacheState::Any);
    let mut begin_ns = work.outcome.end_ns;
    for _ in 0..ops {
        if let Some(end) = work.must_stop(begin_ns) {
            return end;
        }
        let offset = next_offset();
        let buffer = buffers.next(len);
        if WRITE {
            work.stamper.stamp(buffer, offset);
        }
        if CHECK {
            work.outcome.cache_probe.check(fd, offset, len, wanted);
        }
        let new_places = work.spec.touch(offset, len);
        if WRITE || CHECK {
            begin_ns = now_ns();
        }
        if WRITE {
            let Some(at_ns) = work.may_write(begin_ns) else { return StreamEnd::Halted };
            begin_ns = at_ns;
        }
        work.outcome.asked_bytes += len as u64;
        let op = if WRITE { Op::Write } else { Op::Read };
        let result = transfer(&work.spec, op, buffer, offset, &mut work.outcome.interrupted_calls);
        let end_ns = now_ns();
        work.outcome.end_ns = end_ns;
        match result {
            Ok(moved) if moved == len => {}
            other => {
                work.fail(offset, len, answer(&other));
                return StreamEnd::Failed;
            }
        }
        work.count(end_ns, end_ns - begin_ns, len as u64);
        work.count_first(new_places, begin_ns, end_ns, len as u64);
        begin_ns = end_ns;
    }
    StreamEnd::Complete
}

/// One transfer; a call that a signal interrupted is repeated and counted.
#[inline]
pub(crate) fn transfer(
    spec: &StreamSpec<'_>,
    op: Op,
    buffer: &mut [u8],
    offset: u64,
    interrupted_calls: &mut u64,
) -> io::Result<usize> {
    loop {
        let result = match op {
            Op::Write => pwrite2(spec.fd, buffer, offset, spec.flags),
            Op::Read => pread2(spec.fd, buffer, offset, spec.flags),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => *interrupted_calls += 1,
            other => return other,
        }
    }
}

/// The result as one number: a negative errno, or the bytes that were transferred.
pub(crate) fn answer(result: &io::Result<usize>) -> i64 {
    match result {
        Ok(moved) => i64::try_from(*moved).unwrap_or(i64::MAX),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}
