//! A copy from its first read to its last close: the loop, the flush that was asked for, what the page cache is to drop, and the times.

use crate::copier::Copier;
use crate::operands::Amount;
use crate::side::Calls;
use crate::signals::{Done, Failure, retried};
use crate::summary::Counts;
use rustix::io::Errno;

/// What a copy did.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub result: Result<(), Failure>,
    /// Blocks and bytes.
    pub counts: Counts,
    /// The reads.
    pub input: Calls,
    /// The writes.
    pub output: Calls,
    /// When its parts ended.
    pub times: Times,
}

/// When the parts of a copy ended, by its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The start, just before the first read.
    pub began_ns: u64,
    /// When the flush began that the operands ask for; without one, as the next.
    pub flush_from_ns: u64,
    /// The return of the last call that transferred data or flushed it.
    pub returned_ns: u64,
    /// Both ends were closed: the end of the time in dd's line.
    pub closed_ns: u64,
}

impl Times {
    /// The time in dd's line.
    pub fn elapsed_ns(&self) -> u64 {
        self.closed_ns.saturating_sub(self.began_ns)
    }
}

impl Copier<'_> {
    /// Copies, flushes as the operands ask, and closes both ends. Errors were said; the counts were not printed.
    pub fn run(mut self) -> Finished {
        let copied = self.copy();
        let flush_from_ns = self.timer.now_ns();
        let has_gone =
            matches!(copied, Err(Failure::Interrupted(_) | Failure::BrokenPipe | Failure::Refused));
        let is_flushed = !has_gone && (self.operands.convert.is_fdatasync || self.must_fsync);
        let flushed = if is_flushed { self.flush() } else { Ok(()) };
        self.drop_caches();
        let returned_ns = self.timer.now_ns();
        let flush_from_ns = if is_flushed { flush_from_ns } else { returned_ns };
        let has_failed = if self.has_failed { Err(Failure::Failed) } else { Ok(()) };
        let Self { input, output, terminal, timer, began_ns, counts, .. } = self;
        let names = [input.shown(), output.shown()];
        let (input, closed_input) = input.close();
        let (output, closed_output) = output.close();
        let closed_ns = timer.now_ns();
        let mut result = copied.and(flushed).and(has_failed);
        for (closed, name) in [closed_input, closed_output].into_iter().zip(names) {
            if let Err(errno) = closed {
                terminal.say(&format!("closing {name} failed: {}", crate::errno_words(errno)));
                result = result.and(Err(Failure::Failed));
            }
        }
        let times = Times { began_ns, flush_from_ns, returned_ns, closed_ns };
        Finished { result, counts, input, output, times }
    }

    fn flush(&mut self) -> Done<()> {
        self.pass_gate()?;
        let output = &self.output;
        let mut flushed = Ok(());
        if self.operands.convert.is_fdatasync {
            flushed = retried(|| rustix::fs::fdatasync(output.fd()));
        }
        let has_no_call = matches!(flushed, Err(Errno::NOSYS | Errno::INVAL));
        if has_no_call || (flushed.is_ok() && self.must_fsync) {
            flushed = retried(|| rustix::fs::fsync(output.fd()));
        }
        flushed.map_err(|errno| {
            let name = self.output.shown();
            self.fail(Some(errno), &format!("flushing {name} failed"))
        })
    }

    /// Of an output that was there before, what lies behind the copy stays. Where nothing is copied, this is what the operands are for,
    /// and a pipe has nothing to drop.
    fn drop_caches(&mut self) {
        let Self { operands, is_at_end, .. } = *self;
        let is_alone = operands.count.is_some_and(Amount::is_zero);
        let to_end = [is_at_end, is_at_end && (is_alone || !operands.convert.is_no_truncate)];
        let asked = [operands.input_flags.is_no_cache, operands.output_flags.is_no_cache];
        for (side, (is_asked, to_end)) in
            [&mut self.input, &mut self.output].into_iter().zip(asked.into_iter().zip(to_end))
        {
            if is_asked {
                side.drop_rest(to_end);
                if is_alone && side.offset.is_none() {
                    self.terminal.say(&format!("{} has no pages to drop", side.shown()));
                    self.has_failed = true;
                }
            }
        }
    }
}
