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
        let total = self.total(skip, self.operands.input_block_bytes).ok_or(Errno::OVERFLOW);
        let sought = total.and_then(|bytes| self.input.seek_by(bytes).map(|_| bytes));
        let is_past_end = match sought {
            Ok(bytes) => self.advance_input(bytes),
            // Behind the end of a device a seek fails.
            Err(errno) if self.input.is_seekable_to_end() => {
                let name = self.input.plain();
                self.tell(errno, &format!("{name}: cannot skip"));
                return Err(Failure::Quit);
            }
            Err(_) => self.skip_by_reading(skip)?,
        };
        if is_past_end && self.operands.status != Status::None {
            let name = self.input.plain();
            self.terminal.say(&format!("{name}: cannot skip to specified offset"));
        }
        Ok(())
    }

    /// The input stands so much further, or at its end. Whether it ends before.
    fn advance_input(&mut self, bytes: u64) -> bool {
        let from = self.input.offset.unwrap_or(0);
        let size = rustix::fs::fstat(self.input.fd()).ok().filter(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
        });
        let size = size.and_then(|stat| u64::try_from(stat.st_size).ok());
        let left = size.map(|size| size.saturating_sub(from)).filter(|&left| left < bytes);
        // Behind the end of a file there is nothing that could be copied or dropped.
        self.input.advance(left.unwrap_or(bytes));
        left.is_some()
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
                    if self.operands.convert.is_no_error {
                        self.print_summary();
                    }
                    return Err(Failure::Quit);
                }
            }
            left.take_one();
        }
        Ok(self.total(skip, self.operands.input_block_bytes) != Some(skipped))
    }

    pub(crate) fn seek_output(&mut self) -> Result<(), Failure> {
        let seek = self.operands.seek;
        if seek.is_zero() {
            return Ok(());
        }
        let total = self.total(seek, self.operands.output_block_bytes);
        let sought = total.ok_or(Errno::OVERFLOW).and_then(|bytes| self.output.seek_by(bytes).map(|_| bytes));
        match sought {
            Ok(bytes) => {
                self.output.advance(bytes);
                Ok(())
            }
            Err(errno) if self.output.is_seekable_to_end() => Err(self.cannot_seek(Some(errno))),
            Err(errno) => self.seek_by_reading(seek, total.map(|_| errno)),
        }
    }

    fn cannot_seek(&mut self, why: Option<Errno>) -> Failure {
        let message = format!("{}: cannot seek", self.output.plain());
        match why {
            Some(errno) => self.tell(errno, &message),
            None => self.terminal.say(&message),
        }
        Failure::Quit
    }

    /// Passes what is to be skipped of an output without positions: it is read, and where it ends, zeros are written.
    /// `why_not` is what the seek failed with, if it was tried.
    fn seek_by_reading(&mut self, seek: Amount, why_not: Option<Errno>) -> Result<(), Failure> {
        let mut buffer = self.output_buffer()?;
        let mut left = seek;
        while let Some(want) = self.next_part(left) {
            match self.read_output(&mut buffer.bytes()[..want])? {
                Ok(0) => break,
                Ok(_) => left.take_one(),
                // What could not be done is the seek.
                Err(_) => return Err(self.cannot_seek(why_not)),
            }
        }
        buffer.bytes().fill(0);
        // What is skipped is not copied.
        let counts = self.counts;
        while let Some(want) = self.next_part(left) {
            match self.write_all(&buffer.bytes()[..want], "writing to") {
                Err(Failure::Told) => return Err(Failure::Quit),
                written => written?,
            }
            self.counts = counts;
            left.take_one();
        }
        Ok(())
    }

    /// Bytes of the output to pass next: a block, or what stands behind the last one.
    fn next_part(&self, left: Amount) -> Option<usize> {
        let bytes = if left.blocks > 0 { self.operands.output_block_bytes } else { left.bytes };
        usize::try_from(bytes).ok().filter(|_| !left.is_zero())
    }

    fn total(&self, amount: Amount, block_bytes: u64) -> Option<u64> {
        amount.total(block_bytes).filter(|&bytes| i64::try_from(bytes).is_ok())
    }
}
