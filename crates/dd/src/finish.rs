//! The end of a copy: the flush that was asked for, what the page cache is to drop, the close, and dd's last lines.

use crate::copier::{Copier, Done, Failure, retried};
use crate::operands::Amount;
use crate::side::Calls;
use crate::summary::Counts;
use rustix::io::Errno;
use std::time::{Duration, Instant};

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
    /// How long the parts took.
    pub times: Times,
}

/// How long the parts of a copy took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From the start to the return of the last call that transferred data or flushed it.
    pub to_return: Duration,
    /// From the start until both ends were closed: the time in dd's line.
    pub to_close: Duration,
    /// In the flush that the operands ask for.
    pub flush: Duration,
}

impl Copier<'_> {
    /// Closes both ends and prints the counts where dd does. `result` is that of [`Copier::run`].
    pub fn finish(self, result: Result<(), Failure>) -> Finished {
        let Self { operands, input, output, terminal, began, flush, counts, stamps, .. } = self;
        let to_return = began.elapsed();
        let names = [input.quoted(), output.quoted()];
        let (mut input, closed_input) = input.close();
        let (mut output, closed_output) = output.close();
        let to_close = began.elapsed();
        if !stamps.are_sure() {
            (input.times, output.times) = (None, None);
        }
        let mut finished =
            Finished { result, counts, input, output, times: Times { to_return, to_close, flush } };
        if matches!(result, Err(Failure::BrokenPipe | Failure::BeforeCopy)) {
            return finished;
        }
        let sides = [("input", closed_input), ("output", closed_output)];
        for ((side, closed), name) in sides.into_iter().zip(names) {
            if let Err(errno) = closed {
                terminal.say(&format!("closing {side} file {name}: {}", crate::error::words(errno)));
                finished.result = Err(Failure::BeforeCopy);
                return finished;
            }
        }
        let lines = crate::summary::lines(operands.status, &counts, to_close);
        terminal.print_last(&lines);
        finished
    }

    pub(crate) fn flush(&mut self) -> Done<()> {
        if !self.operands.convert.is_fdatasync && !self.must_fsync {
            return Ok(());
        }
        let began = Instant::now();
        let result = self.flush_output();
        self.flush = began.elapsed();
        result
    }

    fn flush_output(&mut self) -> Done<()> {
        let mut failure = Ok(());
        if self.operands.convert.is_fdatasync
            && let Err(errno) = retried(|| rustix::fs::fdatasync(self.output.fd()))
        {
            if !matches!(errno, Errno::NOSYS | Errno::INVAL) {
                let name = self.output.quoted();
                self.tell(errno, &format!("fdatasync failed for {name}"));
                failure = Err(Failure::Told);
            }
            self.must_fsync = true;
        }
        if self.must_fsync
            && let Err(errno) = retried(|| rustix::fs::fsync(self.output.fd()))
        {
            let name = self.output.quoted();
            self.tell(errno, &format!("fsync failed for {name}"));
            return Err(Failure::Told);
        }
        failure
    }

    pub(crate) fn drop_caches(&mut self) {
        let copies_nothing = self.operands.count.is_some_and(Amount::is_zero);
        let asked = [self.operands.input_flags.is_no_cache, self.operands.output_flags.is_no_cache];
        let mut failed = Vec::new();
        for (side, is_asked) in [&mut self.input, &mut self.output].into_iter().zip(asked) {
            if (is_asked || side.gathered.is_to_end)
                && let Err(errno) = side.drop_rest_of_cache()
            {
                failed.push((errno, side.plain()));
            }
        }
        for (errno, name) in failed.into_iter().filter(|_| copies_nothing) {
            self.tell(errno, &format!("failed to discard cache for: {name}"));
            self.has_failed = true;
        }
    }
}
