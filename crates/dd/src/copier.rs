//! What a copy is: its two ends, its operands, its counts, and whoever hears of it. The other files let it do its work.

use crate::buffer::Block;
use crate::no_cache::Stands;
use crate::operands::{Amount, Operands, Status};
use crate::side::Side;
use crate::stamps::{Stamps, TickRate};
use crate::summary::{self, Counts, IsProgress};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often `status=progress` prints.
const PROGRESS: Duration = Duration::from_secs(1);

/// Where dd's lines go.
pub trait Terminal {
    /// A message; the program's name comes before it.
    fn say(&mut self, message: &str);
    /// Lines as they stand.
    fn print(&mut self, lines: &str);
    /// The same at the end of a copy.
    fn print_last(&mut self, lines: &str);
    /// A line that replaces the one before it.
    fn progress(&mut self, line: &str);
}

/// What signals ask for; a handler sets it.
#[derive(Debug, Default)]
pub struct Signals {
    /// The number of a signal that ends the copy; 0 for none.
    pub interrupt: Arc<AtomicUsize>,
    /// Whether the counts are to be printed once.
    pub info: Arc<AtomicBool>,
    /// Becomes readable with every signal, so that waiting for a pipe or a terminal ends.
    pub wake: Option<OwnedFd>,
    /// What a pipe without readers means.
    pub broken_pipe: BrokenPipe,
}

/// What a pipe without readers means: SIGPIPE ends a process unless it was started to ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrokenPipe {
    /// The end, at once.
    #[default]
    Ends,
    /// A write that failed.
    IsError,
}

/// How a copy ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error that was told.
    Told,
    /// The same; dd gives up at once, and prints no counts if the flush fails too.
    Quit,
    /// The same, before anything was copied: dd prints no counts.
    BeforeCopy,
    /// A signal.
    Interrupted(usize),
    /// Nobody reads the output.
    BrokenPipe,
}

/// The outcome of a step of a copy.
pub(crate) type Done<T> = Result<T, Failure>;

/// One copy.
pub struct Copier<'a> {
    pub(crate) operands: &'a Operands,
    pub(crate) input: Side,
    pub(crate) output: Side,
    pub(crate) terminal: &'a mut dyn Terminal,
    pub(crate) signals: &'a Signals,
    pub(crate) counts: Counts,
    pub(crate) began: Instant,
    pub(crate) flush: Duration,
    next_progress: Duration,
    /// Whether the flush at the end covers metadata; a last direct write of a part of a block adds it.
    pub(crate) must_fsync: bool,
    pub(crate) is_sparse: bool,
    pub(crate) last_write_was_seek: bool,
    pub(crate) last_read: usize,
    pub(crate) warns_of_partial_reads: bool,
    pub(crate) input_is_lost: bool,
    pub(crate) has_failed: bool,
    pub(crate) stamps: Stamps,
    /// The block that was laid before, until the copy takes it.
    pub(crate) block: Option<Block>,
}

impl<'a> Copier<'a> {
    /// A copy that has not begun, of files that are open. The times of its calls are read from the processor's counter where its rate
    /// is known. The block lies where `block` says, or else in pages that are taken when the copy needs them.
    pub fn new(
        operands: &'a Operands,
        mut input: Side,
        mut output: Side,
        terminal: &'a mut dyn Terminal,
        signals: &'a Signals,
        (rate, block): (Option<TickRate>, Option<Block>),
    ) -> Self {
        let is_direct =
            (operands.input_flags.open | operands.output_flags.open).contains(rustix::fs::OFlags::DIRECT);
        let has_bytes = operands.count.is_some_and(|count| !count.is_zero());
        let copies_nothing = operands.count.is_some_and(Amount::is_zero);
        input.gathered.is_to_end = copies_nothing && operands.input_flags.is_no_cache;
        output.gathered.is_to_end = copies_nothing && operands.output_flags.is_no_cache;
        output.gathered.stands = Stands::AsCounted;
        (input.recent.rate, output.recent.rate) = (rate, rate);
        let needs_whole_blocks = operands.skip.blocks > 0 || has_bytes || is_direct;
        let convert = operands.convert;
        let is_plain = operands.is_one_block
            && !(convert.is_swab || convert.is_sparse || convert.is_sync)
            && !(operands.input_flags.is_no_cache || operands.output_flags.is_no_cache)
            && !(input.waits || output.waits)
            && operands.status != Status::Progress;
        Self {
            operands,
            input,
            output,
            terminal,
            signals,
            counts: Counts::default(),
            began: Instant::now(),
            flush: Duration::ZERO,
            next_progress: PROGRESS,
            must_fsync: operands.convert.is_fsync,
            is_sparse: operands.convert.is_sparse,
            last_write_was_seek: false,
            last_read: 0,
            warns_of_partial_reads: operands.is_one_block
                && !operands.convert.is_swab
                && !operands.input_flags.is_full_block
                && needs_whole_blocks,
            input_is_lost: false,
            has_failed: false,
            stamps: Stamps::new(is_plain, rate),
            block,
        }
    }

    /// Prints what `status` allows of the counts, time and rate.
    pub(crate) fn print_summary(&mut self) {
        let lines = summary::lines(self.operands.status, &self.counts, self.began.elapsed());
        self.terminal.print(&lines);
        self.stamps.forget();
    }

    /// Prints the counts if a signal asked for them, and ends the copy if one asked for that.
    pub(crate) fn process_signals(&mut self) -> Done<()> {
        process_signals(self.signals, || self.print_summary())
    }

    pub(crate) fn show_progress(&mut self) {
        if self.operands.status == Status::Progress && self.began.elapsed() >= self.next_progress {
            let line = summary::transfer(self.counts.written_bytes, self.began.elapsed(), IsProgress::Yes);
            self.terminal.progress(&line);
            self.next_progress += PROGRESS;
        }
    }

    /// A message with the kernel's words.
    pub(crate) fn tell(&mut self, errno: Errno, message: &str) {
        self.terminal.say(&format!("{message}: {}", crate::error::words(errno)));
        self.stamps.forget();
    }
}

/// Lets the counts be printed if a signal asked for them, and fails if one asked for the end.
pub(crate) fn process_signals(signals: &Signals, print: impl FnOnce()) -> Done<()> {
    let signal = signals.interrupt.load(Ordering::Relaxed);
    if signal != 0 {
        return Err(Failure::Interrupted(signal));
    }
    if signals.info.load(Ordering::Relaxed) && signals.info.swap(false, Ordering::Relaxed) {
        print();
    }
    Ok(())
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
