//! Makes stable what a copy left in memory, and says how that ended. It writes nothing itself, and judges no copy.

use super::WaitFor;
use rdsk_model::{Problem, ProblemKind, StableBy};
use rdsk_sys::io::{WriteOut, write_out};
use rdsk_units::printable;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Bytes that are written out between two looks at whether to go on.
const PIECE_BYTES: u64 = 64 << 20;

/// When the output was stable by the clock, who saw to that, and the error of a flush.
pub(super) struct Stable {
    pub(super) at_ns: Option<u64>,
    pub(super) by: StableBy,
    pub(super) error: Option<Errno>,
}

impl Stable {
    pub(super) const UNKNOWN: Self = Self { at_ns: None, by: StableBy::Nobody, error: None };
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    Whole,
    CutShort,
    /// What is open cannot be flushed: a pipe, or a file of a filesystem without that call.
    Impossible,
    /// Not all of the data became stable. The kernel shows this to the first who asks, and to none afterwards.
    Failed(Errno),
}

/// Makes what was written stable. A flush of a whole file cannot be interrupted, so its data goes out piece by piece before: the
/// next piece is handed to the device before the last one is waited for, so that the device always has work.
pub(super) fn flush(
    fd: impl AsFd,
    offset: u64,
    bytes: u64,
    goes_on: &mut dyn FnMut(WaitFor) -> bool,
) -> Flushed {
    let fd = fd.as_fd();
    let pieces = bytes.div_ceil(PIECE_BYTES);
    let piece = |index: u64, part, goes_on: &mut dyn FnMut(WaitFor) -> bool| {
        let start = offset.saturating_add(index * PIECE_BYTES);
        let errno_of = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        done(goes_on, || write_out(fd, start, PIECE_BYTES, part).map_err(errno_of))
    };
    for index in 0..=pieces {
        if !goes_on(WaitFor::Flush) {
            return Flushed::CutShort;
        }
        let started = if index < pieces { piece(index, WriteOut::Start, goes_on) } else { Flushed::Whole };
        let ended = match started {
            Flushed::Whole if index > 0 => piece(index - 1, WriteOut::Wait, goes_on),
            started => started,
        };
        match ended {
            Flushed::Whole => {}
            // Where pieces cannot be written out by themselves, the whole can.
            Flushed::Impossible => break,
            Flushed::CutShort | Flushed::Failed(_) => return ended,
        }
    }
    done(goes_on, || rustix::fs::fdatasync(fd))
}

/// One call, begun again where a signal interrupted it that is not to end the flush.
fn done(goes_on: &mut dyn FnMut(WaitFor) -> bool, mut call: impl FnMut() -> Result<(), Errno>) -> Flushed {
    loop {
        match call() {
            Ok(()) => return Flushed::Whole,
            Err(Errno::INTR) if goes_on(WaitFor::Flush) => {}
            Err(Errno::INTR) => return Flushed::CutShort,
            Err(errno) if is_no_call(errno) => return Flushed::Impossible,
            Err(errno) => return Flushed::Failed(errno),
        }
    }
}

/// Whether the error says of the call, and nothing of the data.
fn is_no_call(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::INVAL | Errno::SPIPE | Errno::OPNOTSUPP | Errno::PERM)
}

/// What is wrong where the flush of this output failed.
pub(super) fn problem(name: &str, errno: Errno) -> Problem {
    let why = rdsk_dd::errno_words(errno);
    let message = format!("flushing {} failed: {why}; not all of it is on the device", printable(name));
    Problem::plain(ProblemKind::Io, "flush-failed", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_flushed_has_not_failed() {
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        assert_eq!(flush(&writer, 0, 4096, &mut |_| true), Flushed::Impossible);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(flush(&file, 0, 4096, &mut |_| true), Flushed::Whole);
        assert_eq!(
            flush(&file, u64::MAX - 1, 4096, &mut |_| true),
            Flushed::Whole,
            "no piece, but the whole"
        );
        assert_eq!(flush(&file, 0, 4096, &mut |_| false), Flushed::CutShort);
    }

    #[test]
    fn only_an_error_of_the_data_is_a_failure() {
        for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::STALE] {
            assert_eq!(done(&mut |_| true, || Err(errno)), Flushed::Failed(errno));
        }
        for errno in [Errno::NOSYS, Errno::INVAL, Errno::SPIPE, Errno::PERM] {
            assert_eq!(done(&mut |_| true, || Err(errno)), Flushed::Impossible);
        }
    }

    #[test]
    fn an_interrupted_call_goes_on_as_long_as_it_is_wanted() {
        let mut answers = [Ok(()), Err(Errno::INTR), Err(Errno::INTR)].to_vec();
        let mut call = || answers.pop().unwrap_or(Err(Errno::IO));
        assert_eq!(done(&mut |_| true, &mut call), Flushed::Whole);
        assert_eq!(done(&mut |_| false, || Err(Errno::INTR)), Flushed::CutShort);
    }

    #[test]
    fn the_problem_is_plain_whatever_the_output_is_called() {
        let problem = problem("o\u{1b}ut", Errno::IO);
        assert_eq!((problem.kind, problem.code.as_str()), (ProblemKind::Io, "flush-failed"));
        assert!(!problem.message.contains('\u{1b}'), "{problem}");
        assert!(problem.message.contains(" failed: Input/output error; not all of it is on the device"));
    }
}
