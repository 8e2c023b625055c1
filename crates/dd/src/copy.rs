//! The copy itself: skip, seek, and block after block read, padded, swapped and written. It opens and closes nothing.

use crate::copier::{Copier, Done, Failure};
use crate::operands::Amount;
use crate::read::AfterError;

impl Copier<'_> {
    /// Copies, flushes, and drops from the page cache what was to be dropped. The error was told; the counts were not
    /// printed.
    ///
    /// # Errors
    /// Where dd ends with 1 or by a signal.
    pub fn run(&mut self) -> Result<(), Failure> {
        let copied = self.copy();
        if let Err(failure @ (Failure::Interrupted(_) | Failure::BrokenPipe | Failure::BeforeCopy)) = copied {
            return Err(failure);
        }
        let flushed = self.flush();
        self.drop_caches();
        if copied == Err(Failure::Quit) {
            return Err(if flushed.is_err() { Failure::BeforeCopy } else { Failure::Told });
        }
        copied.and(flushed)?;
        if self.has_failed { Err(Failure::Told) } else { Ok(()) }
    }

    fn copy(&mut self) -> Done<()> {
        self.skip_input()?;
        self.seek_output()?;
        if self.operands.count.is_some_and(Amount::is_zero) {
            return Ok(());
        }
        let mut input = match self.block.take() {
            Some(block) => block.0,
            None => self.input_buffer()?,
        };
        let mut output = if self.has_two_buffers() { Some(self.output_buffer()?) } else { None };
        let (mut filled, mut saved) = (0, None);
        let mut partial = 0;
        loop {
            self.show_progress();
            let Some(want) = self.wanted() else { break };
            let block = input.bytes();
            if self.operands.convert.is_sync && self.operands.convert.is_no_error {
                block.fill(0);
            }
            let read = match self.read_block(&mut block[..want])? {
                Ok(0) => {
                    self.drop_to_the_end();
                    break;
                }
                Ok(read) => {
                    self.input.advance(read as u64);
                    if self.operands.input_flags.is_no_cache {
                        // dd tells of a failure only where nothing is copied.
                        let _ = self.input.drop_cache(read as u64);
                    }
                    read
                }
                Err(errno) => match self.after_read_error(errno, partial)? {
                    AfterError::End => break,
                    AfterError::Next => continue,
                    AfterError::Zeros => 0,
                },
            };
            let length = self.padded(block, read, &mut partial);
            match &mut output {
                None => self.write_input_block(&block[..length])?,
                Some(output) => {
                    let swapped;
                    let bytes = if self.operands.convert.is_swab {
                        swapped = swab(&block[..length], &mut saved);
                        &swapped
                    } else {
                        &block[..length]
                    };
                    self.fill_output(output, &mut filled, bytes)?;
                }
            }
        }
        if let Some(output) = &mut output {
            if let Some(byte) = saved {
                self.fill_output(output, &mut filled, &[byte])?;
            }
            self.write_rest(&output.bytes()[..filled])?;
        }
        self.extend_after_seek()
    }

    /// The input has ended, so that what is dropped of it and of a new output reaches to the end.
    fn drop_to_the_end(&mut self) {
        let operands = self.operands;
        self.input.gathered.is_to_end |= operands.input_flags.is_no_cache;
        self.output.gathered.is_to_end |=
            operands.output_flags.is_no_cache && !operands.convert.is_no_truncate;
    }

    fn has_two_buffers(&self) -> bool {
        !self.operands.is_one_block || self.operands.convert.is_swab
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

    /// Counts what was read, and pads it with zeros where every block is to be full.
    fn padded(&mut self, block: &mut [u8], read: usize, partial: &mut usize) -> usize {
        if read == block.len() {
            self.counts.full_in += 1;
            *partial = 0;
            return read;
        }
        self.counts.partial_in += 1;
        *partial = read;
        if !self.operands.convert.is_sync {
            return read;
        }
        if !self.operands.convert.is_no_error {
            block[read..].fill(0);
        }
        block.len()
    }
}

/// Swaps every pair of bytes; one that is left waits for the next block.
fn swab(bytes: &[u8], saved: &mut Option<u8>) -> Vec<u8> {
    let mut all: Vec<u8> = saved.take().into_iter().chain(bytes.iter().copied()).collect();
    if all.len() % 2 == 1 {
        *saved = all.pop();
    }
    for pair in all.chunks_exact_mut(2) {
        pair.swap(0, 1);
    }
    all
}
