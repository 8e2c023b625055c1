//! One end of a copy: what it is, what the operands ask of it, and what a device holds that was read.

use super::{WaitFor, WatchedEnd};
use rdsk_dd::{Amount, Calls, Finished, Operands, Side};
use rdsk_engine::{Stretch, look_at_device, look_ns};
use rdsk_model::{
    CacheState, CopyEnd, CopyRun, EndKind, EngineKind, IoPath, Op, Problem, ProblemKind, ReadContent, Sync,
    Workload,
};
use rdsk_targets::Witness;
use rustix::fs::{FileType, OFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a device holds where a copy read it, from a few of its pages, others for each run. Neither after an error or a signal nor for
/// long: the operands do not ask for these reads. It reads, so that everything must have been counted.
pub(super) fn content_after(
    witness: &Witness,
    calls: &Calls,
    run: &CopyRun,
    goes_on: &mut dyn FnMut(WaitFor) -> bool,
) -> Option<ReadContent> {
    if !run.is_complete {
        return None;
    }
    let (began, most) = (Instant::now(), Duration::from_nanos(look_ns(run.to_close_ns)));
    let open = || -> io::Result<OwnedFd> {
        let fd = witness.open()?;
        rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? | OFlags::DIRECT)?;
        Ok(fd)
    };
    let read = [Stretch::whole(calls.start.unwrap_or(0), calls.bytes)];
    let mut goes_on = || began.elapsed() < most && goes_on(WaitFor::Look);
    look_at_device(&witness.target, &read, run.start_ns, &mut goes_on, open)
}

/// That the device of an end is no longer there although its part of the copy is not done.
pub(super) fn device_that_left(
    [read_end, write_end]: &[Option<WatchedEnd>; 2],
    finished: &Finished,
    sys: &Path,
) -> Option<Problem> {
    let cut_short = read_end.as_ref().filter(|end| finished.input.bytes < end.before.bytes);
    cut_short.into_iter().chain(write_end).find_map(|end| {
        let words = rdsk_observe::place::left(&end.witness.target, sys)?;
        Some(Problem::plain(ProblemKind::Io, "gone", format!("{words}, and the copy ends there")))
    })
}

/// An end as the Record shows it.
pub(super) fn describe(side: &Side, target: Option<u32>, block_bytes: u64) -> CopyEnd {
    CopyEnd { name: side.name.clone(), kind: kind(side.fd()), target, block_bytes }
}

/// What an open file is. Memory devices are those of admin-guide/devices.txt.
pub(super) fn kind(fd: impl AsFd) -> EndKind {
    let Ok(stat) = rustix::fs::fstat(&fd) else { return EndKind::Character };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EndKind::File,
        FileType::BlockDevice => EndKind::Block,
        FileType::Directory => EndKind::Directory,
        FileType::Fifo => EndKind::Pipe,
        FileType::Socket => EndKind::Socket,
        _ => match (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) {
            (1, 3) => EndKind::Null,
            (1, 5) => EndKind::Zero,
            (1, 8 | 9) => EndKind::Random,
            _ if rustix::termios::isatty(fd) => EndKind::Terminal,
            _ => EndKind::Character,
        },
    }
}

/// What one end is asked to do, from a place of its target on.
pub(super) fn workload(operands: &Operands, op: Op, (target, start): (u32, u64)) -> Workload {
    let (flags, block_bytes) = match op {
        Op::Read => (operands.input_flags, operands.input_block_bytes),
        Op::Write => (operands.output_flags, operands.output_block_bytes),
    };
    let path = if flags.open.contains(OFlags::DIRECT) { IoPath::Direct } else { IoPath::Buffered };
    let sync = match op {
        Op::Read => Sync::None,
        Op::Write if is_durable_each(operands) => Sync::Dsync,
        Op::Write if is_durable(operands) => Sync::FsyncAtEnd,
        Op::Write => Sync::None,
    };
    Workload {
        op,
        path,
        sync,
        cache: CacheState::Any,
        block_bytes,
        align_bytes: block_bytes,
        shift_bytes: start % block_bytes,
        engine: EngineKind::Sync,
        targets: vec![target],
        offset_bytes: start,
        ..Workload::sequential_read(0)
    }
}

/// Whether the data is stable when dd is done.
pub(super) fn is_durable(operands: &Operands) -> bool {
    operands.convert.is_fsync || operands.convert.is_fdatasync || is_durable_each(operands)
}

fn is_durable_each(operands: &Operands) -> bool {
    operands.output_flags.open.intersects(OFlags::DSYNC | OFlags::SYNC)
}

/// Bytes that are skipped or read at most.
pub(super) fn total(amount: Amount, block_bytes: u64) -> u64 {
    amount.total(block_bytes).unwrap_or(u64::MAX)
}
