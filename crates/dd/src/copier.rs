//! A copy from its first read to its last close: skip, seek, block after block, the flush that was asked for, what the page cache is to
//! drop, and the times. It opens nothing.

use crate::operands::{Amount, Operands, Status};
use crate::side::{Calls, Side, Timer};
use crate::signals::{Done, Failure, Signals, retried};
use crate::summary::{self, Counts};
use rdsk_model::Clock;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Direct I/O takes memory from the start of a page on.
const PAGE_BYTES: usize = 4096;

/// How often `status=progress` prints.
const PROGRESS_NS: u64 = 1_000_000_000;

/// Where the lines of a copy go.
pub trait Terminal {
    /// A message; the program's name comes before it.
    fn say(&mut self, message: &str);
    /// Lines as they stand.
    fn print(&mut self, lines: &str);
    /// A line that replaces the one before it.
    fn progress(&mut self, line: &str);
}

/// Whether the output may still be written. It is asked right before each call that writes.
pub trait Gate {
    /// For a call that is made at `now_ns` by the clock of the copy. If it may not, the copy ends as [refused](Failure::Refused).
    fn may_write(&self, output: BorrowedFd<'_>, now_ns: u64) -> bool;
}

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

/// One copy.
pub struct Copier<'a> {
    pub(crate) operands: &'a Operands,
    pub(crate) input: Side,
    pub(crate) output: Side,
    pub(crate) terminal: &'a mut dyn Terminal,
    pub(crate) signals: &'a Signals,
    gate: Option<&'a dyn Gate>,
    pub(crate) timer: Timer<'a>,
    pub(crate) began_ns: u64,
    pub(crate) counts: Counts,
    next_progress_ns: u64,
    /// Whether the flush at the end covers metadata; a last direct write of a part of a block adds it.
    pub(crate) must_fsync: bool,
    pub(crate) is_sparse: bool,
    /// Whether the last block was sought past, so that the file may have to become longer.
    pub(crate) ends_in_hole: bool,
    pub(crate) last_read: usize,
    /// Bytes of the last block that was read in part.
    pub(crate) partial: usize,
    /// Whether the input has ended, so that what is dropped of it from the page cache reaches to its end.
    pub(crate) is_at_end: bool,
    pub(crate) has_failed: bool,
}

impl<'a> Copier<'a> {
    /// A copy that begins now, of files that are open.
    pub fn new(
        operands: &'a Operands,
        (input, output): (Side, Side),
        terminal: &'a mut dyn Terminal,
        signals: &'a Signals,
        clock: &'a dyn Clock,
    ) -> Self {
        let convert = operands.convert;
        let is_plain = operands.is_one_block
            && !(convert.is_sparse || convert.is_sync)
            && !(operands.input_flags.is_no_cache || operands.output_flags.is_no_cache)
            && !(input.waits || output.waits)
            && operands.status != Status::Progress;
        let timer = Timer::new(clock, is_plain);
        let began_ns = timer.now_ns();
        Self {
            operands,
            input,
            output,
            terminal,
            signals,
            gate: None,
            timer,
            began_ns,
            counts: Counts::default(),
            next_progress_ns: PROGRESS_NS,
            must_fsync: convert.is_fsync,
            is_sparse: convert.is_sparse,
            ends_in_hole: false,
            last_read: 0,
            partial: 0,
            is_at_end: false,
            has_failed: false,
        }
    }

    /// The same copy, which asks a gate before it writes.
    #[must_use]
    pub fn behind(self, gate: Option<&'a dyn Gate>) -> Self {
        Self { gate, ..self }
    }

    /// Fails if the output may no longer be written.
    #[inline]
    pub(crate) fn pass_gate(&self) -> Done<()> {
        let is_open = self.gate.is_none_or(|gate| gate.may_write(self.output.fd(), self.timer.now_ns()));
        if is_open { Ok(()) } else { Err(Failure::Refused) }
    }

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

    fn copy(&mut self) -> Done<()> {
        let operands = self.operands;
        self.skip_input()?;
        self.seek_output()?;
        if operands.count.is_some_and(Amount::is_zero) {
            self.is_at_end = true;
            return Ok(());
        }
        let mut input = self.memory(operands.input_block_bytes)?;
        let block = from_page(&mut input);
        let mut output = match operands.is_one_block {
            true => None,
            false => Some(self.memory(operands.output_block_bytes)?),
        };
        let mut gathered = output.as_mut().map(|output| (from_page(output), 0));
        while let Some(want) = self.wanted() {
            self.show_progress();
            let Some(length) = self.next_block(block, want)? else { break };
            match &mut gathered {
                None => self.write_as_read(&block[..length])?,
                Some((output, filled)) => self.gather(output, filled, &block[..length])?,
            }
        }
        if let Some((output, filled)) = gathered.filter(|(_, filled)| *filled > 0) {
            self.write_partly(&output[..filled])?;
        }
        self.extend_over_hole()
    }

    /// Zeros for a block, and what [`from_page`] leaves out.
    fn memory(&mut self, bytes: u64) -> Done<Vec<u8>> {
        let length = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(PAGE_BYTES));
        // Asked for first, so that a block beyond all memory ends the copy and not the process.
        let length = length.filter(|&length| Vec::<u8>::new().try_reserve_exact(length).is_ok());
        length
            .map(|length| vec![0; length])
            .ok_or_else(|| self.fail(None, &format!("there is no memory for a block of {bytes} bytes")))
    }

    /// Bytes to read next; `None` when the count is reached.
    fn wanted(&self) -> Option<usize> {
        let block = usize::try_from(self.operands.input_block_bytes).ok()?;
        let Some(count) = self.operands.count else { return Some(block) };
        let blocks = self.counts.full_in + self.counts.partial_in;
        if blocks < count.blocks {
            return Some(block);
        }
        (blocks == count.blocks && count.bytes > 0).then_some(usize::try_from(count.bytes).ok()?)
    }

    /// What is skipped of a file without positions is read.
    fn skip_input(&mut self) -> Done<()> {
        let (skip, block_bytes) = (self.operands.skip, self.operands.input_block_bytes);
        if skip.is_zero() {
            return Ok(());
        }
        let bytes = skip.total(block_bytes).and_then(|bytes| i64::try_from(bytes).ok());
        if self.input.offset.is_some() {
            let sought = bytes.ok_or(Errno::OVERFLOW).and_then(|bytes| self.input.seek_by(bytes));
            let sought = sought.map_err(|errno| self.fail(Some(errno), "cannot skip so much of the input"));
            return sought.map(|offset| self.input.offset = Some(offset));
        }
        let mut memory = self.memory(block_bytes)?;
        let block = from_page(&mut memory);
        for want in
            (0..skip.blocks).map(|_| block_bytes).chain([skip.bytes].into_iter().filter(|&rest| rest > 0))
        {
            let want = usize::try_from(want).unwrap_or(usize::MAX).min(block.len());
            match self.read_block(&mut block[..want])? {
                Ok(0) => break,
                Ok(_) => {}
                Err(errno) => return Err(self.fail(Some(errno), "cannot read what is skipped of the input")),
            }
        }
        Ok(())
    }

    fn seek_output(&mut self) -> Done<()> {
        let seek = self.operands.seek;
        if seek.is_zero() {
            return Ok(());
        }
        let bytes = seek.total(self.operands.output_block_bytes).and_then(|bytes| i64::try_from(bytes).ok());
        let sought = bytes.ok_or(Errno::OVERFLOW).and_then(|bytes| self.output.seek_by(bytes));
        let sought = sought.map_err(|errno| self.fail(Some(errno), "cannot seek so far in the output"));
        sought.map(|offset| self.output.offset = Some(offset))
    }

    /// A file that ends with blocks that were sought past is as long as if they had been written.
    fn extend_over_hole(&mut self) -> Done<()> {
        let length = crate::side::length_of(self.output.fd()).filter(|_| self.ends_in_hole);
        let Some((length, end)) =
            length.zip(self.output.seek_by(0).ok()).filter(|(length, end)| length < end)
        else {
            return Ok(());
        };
        rustix::fs::ftruncate(self.output.fd(), end).map_err(|errno| {
            self.fail(Some(errno), &format!("cannot extend the output from {length} to {end} bytes"))
        })
    }

    /// Prints what `status` allows of the counts, time and rate.
    pub(crate) fn print_summary(&mut self) {
        let elapsed_ns = self.timer.now_ns().saturating_sub(self.began_ns);
        self.terminal.print(&summary::lines(self.operands.status, &self.counts, elapsed_ns));
        self.timer.forget();
    }

    /// Prints the counts if a signal asked for them, and ends the copy if one asked for that.
    #[inline]
    pub(crate) fn answer_signals(&mut self) -> Done<()> {
        let signals = self.signals;
        signals.answer(|| self.print_summary())
    }

    fn show_progress(&mut self) {
        if self.operands.status != Status::Progress {
            return;
        }
        let elapsed_ns = self.timer.now_ns().saturating_sub(self.began_ns);
        if elapsed_ns >= self.next_progress_ns {
            self.terminal.progress(&summary::transfer(self.counts.written_bytes, elapsed_ns, 0));
            self.next_progress_ns += PROGRESS_NS;
        }
    }

    /// Says what went wrong, with the kernel's words.
    pub(crate) fn fail(&mut self, errno: Option<Errno>, message: &str) -> Failure {
        let words = errno.map_or_else(String::new, |errno| format!(": {}", crate::errno_words(errno)));
        self.terminal.say(&format!("{message}{words}"));
        self.timer.forget();
        Failure::Failed
    }

    /// Whether writes go past the page cache as the operands have it.
    pub(crate) fn is_output_direct(&self) -> bool {
        self.operands.output_flags.open.contains(OFlags::DIRECT)
    }
}

/// The block within its memory, which is longer by a page.
fn from_page(memory: &mut [u8]) -> &mut [u8] {
    let begin = memory.as_ptr().align_offset(PAGE_BYTES);
    let end = memory.len() - PAGE_BYTES + begin;
    &mut memory[begin..end]
}
