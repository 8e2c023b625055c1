//! The sync engine's loop over chosen positions, which keeps the latency of each. It allocates nothing; its memory is reserved
//! before it starts.

use crate::arena::Arena;
use crate::clock::now_ns;
use crate::positions::PositionSource;
use crate::sync::{answer, transfer};
use crate::watchdog::SHORT_NS;
use crate::work::{StreamEnd, StreamOutcome, Work};
use rdsk_model::{Op, PointRun};

/// So many failed positions in a row end the pass: then the device fails, not the position.
const FAILED_IN_A_ROW: u32 = 4;
/// Positions of a pass that may fail in total.
const MAX_MISSED: usize = 64;

/// Whether an error belongs to this position: a bad sector, or a part of a stack that does not respond. A device that is
/// gone, or a request that it rejects, fails everywhere.
fn is_of_this_position(result: &std::io::Result<usize>) -> bool {
    let errno = result.as_ref().err().and_then(std::io::Error::raw_os_error);
    errno.is_some_and(|errno| [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO].contains(&errno))
}

/// Makes the buffer and the check of an I/O ready; whether it may be issued.
fn may_issue(work: &mut Work<'_>, buffer: &mut [u8], offset_bytes: u64) -> bool {
    if let Some(wanted) = work.spec.check {
        work.outcome.cache_probe.check(work.spec.fd, offset_bytes, buffer.len(), wanted);
    }
    if work.spec.op == Op::Read {
        return true;
    }
    work.stamper.stamp(buffer, offset_bytes);
    work.may_write(now_ns()).is_some()
}

/// Issues the I/O of one stream over chosen positions. A position that fails is kept as an error, and the pass goes on.
pub(crate) fn run(mut work: Work<'_>, arena: &mut Arena, mut source: PositionSource<'_>) -> StreamOutcome {
    let spec = work.spec;
    let mut buffers = arena.cycle();
    let mut done = PointRun {
        order: Vec::with_capacity(source.left()),
        latency_ns: Vec::with_capacity(source.left()),
        ..PointRun::default()
    };
    work.start();
    let mut failed_in_a_row = 0;
    let end = loop {
        if let Some(end) = work.must_stop(work.outcome.end_ns) {
            break end;
        }
        let Some(position) = source.next() else { break StreamEnd::Complete };
        let Ok(len) = usize::try_from(position.bytes) else { break StreamEnd::Failed };
        let buffer = buffers.next(len);
        if !may_issue(&mut work, buffer, position.offset_bytes) {
            break StreamEnd::Halted;
        }
        work.outcome.asked_bytes += position.bytes;
        let new_places = spec.touch(position.offset_bytes, len);
        let begin_ns = now_ns();
        let result =
            transfer(&spec, spec.op, buffer, position.offset_bytes, &mut work.outcome.interrupted_calls);
        let end_ns = now_ns();
        work.outcome.end_ns = end_ns;
        match result {
            Ok(moved) if moved == len => {}
            other => {
                failed_in_a_row += 1;
                let may_go_on = is_of_this_position(&other)
                    && failed_in_a_row < FAILED_IN_A_ROW
                    && work.outcome.missed.len() < MAX_MISSED;
                let Some(index) = position.index.filter(|_| may_go_on) else {
                    work.fail(position.offset_bytes, len, answer(&other));
                    break StreamEnd::Failed;
                };
                work.miss(position.offset_bytes, len, answer(&other));
                done.failed.push(index);
                continue;
            }
        }
        failed_in_a_row = 0;
        work.count(end_ns, end_ns - begin_ns, position.bytes);
        if end_ns - begin_ns > SHORT_NS && work.was_away(begin_ns, end_ns, begin_ns) {
            // How long it took is not known: the position has no latency in this pass.
            continue;
        }
        work.count_first(new_places, begin_ns, end_ns, position.bytes);
        done.order.extend(position.index);
        done.latency_ns.push(end_ns - begin_ns);
    };
    StreamOutcome { positions: Some(done), ..work.finish(end) }
}
