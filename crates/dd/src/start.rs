//! Where a copy starts: what is skipped of the input and of the output, and the buffers. As dd does it, a file without
//! positions is read past.

use crate::buffer::Buffer;
use crate::copier::{Copier, Failure};
use crate::operands::{Amount, Status};
use crate::summary;
use rustix::io::Errno;

impl Copier<'_> {
    pub(crate) fn input_buffer(&mut self) -> Result<Buffer, Failure> {
        self.buffer(self.operands.input_block_bytes, "input")
    }

    pub(crate) fn output_buffer(&mut self) -> Result<Buffer, Failure> {
        self.buffer(self.operands.output_block_bytes, "output")
    }

    fn buffer(&mut self, bytes: u64, which: &str) -> Result<Buffer, Failure> {
        Buffer::new(bytes).ok_or_else(|| {
            let size = summary::binary_size(bytes);
            self.terminal.say(&format!("memory exhausted by {which} buffer of size {bytes} bytes ({size})"));
            Failure::BeforeCopy
        })
    }

    pub(crate) fn skip_input(&mut self) -> Result<(), Failure> {
        let skip = self.operands.skip;
        if skip.is_zero() {
            return Ok(());
        }
        let total = self.total(skip, self.operands.input_block_bytes);
        let is_past_end = match total {
            _ if self.input.offset.is_none() => self.skip_by_reading(skip)?,
            Some(bytes) => self.skip_by_seek(bytes)?,
            None => {
                let name = self.input.plain();
                self.tell(Errno::OVERFLOW, &format!("{name}: cannot skip"));
                return Err(Failure::Quit);
            }
        };
        if is_past_end && self.operands.status != Status::None {
            let name = self.input.plain();
            self.terminal.say(&format!("{name}: cannot skip to specified offset"));
        }
        Ok(())
    }

    /// Whether the input ends before.
    fn skip_by_seek(&mut self, bytes: u64) -> Result<bool, Failure> {
        let from = self.input.offset.unwrap_or(0);
        if let Err(errno) = self.input.seek_by(bytes) {
            // Behind the end of a device a seek fails.
            let _ = self.input.is_seekable_to_end();
            let name = self.input.plain();
            self.tell(errno, &format!("{name}: cannot skip"));
            return Err(Failure::Quit);
        }
        self.input.advance(bytes);
        let size = rustix::fs::fstat(self.input.fd()).ok().filter(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
        });
        let size = size.and_then(|stat| u64::try_from(stat.st_size).ok());
        Ok(size.is_some_and(|size| size.saturating_sub(from) < bytes))
    }

    /// Blocks that are read in part count as skipped, though their rest is not.
    fn skip_by_reading(&mut self, skip: Amount) -> Result<bool, Failure> {
        let mut buffer = self.input_buffer()?;
        let (mut left, mut skipped) = (skip, 0);
        while !left.is_zero() {
            let want = if left.blocks > 0 { self.operands.input_block_bytes } else { left.bytes };
            let want = usize::try_from(want).unwrap_or(usize::MAX).min(buffer.bytes().len());
            match self.read_block(&mut buffer.bytes()[..want])? {
                Ok(0) => break,
                Ok(read) => skipped += read as u64,
                Err(errno) => {
                    let name = self.input.quoted();
                    self.tell(errno, &format!("error reading {name}"));
                    return Err(Failure::Quit);
                }
            }
            if left.blocks > 0 {
                left.blocks -= 1;
            } else {
                left.bytes = 0;
            }
        }
        Ok(self.total(skip, self.operands.input_block_bytes) != Some(skipped))
    }

    pub(crate) fn seek_output(&mut self) -> Result<(), Failure> {
        let seek = self.operands.seek;
        if seek.is_zero() {
            return Ok(());
        }
        let result = match self.total(seek, self.operands.output_block_bytes) {
            Some(bytes) => self.output.seek_by(bytes).map(|_| self.output.advance(bytes)),
            None => Err(Errno::OVERFLOW),
        };
        result.map_err(|errno| {
            let name = self.output.plain();
            self.tell(errno, &format!("{name}: cannot seek"));
            Failure::Quit
        })
    }

    fn total(&self, amount: Amount, block_bytes: u64) -> Option<u64> {
        amount.total(block_bytes).filter(|&bytes| i64::try_from(bytes).is_ok())
    }
}
