//! The transfers of a copy: whole blocks and parts, what comes after a read that failed, and zeros that are sought past.

use crate::copier::Copier;
use crate::operands::Status;
use crate::signals::{Done, Failure};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

impl Copier<'_> {
    /// Reads the next block and counts it; gives how much of it is to be written, or nothing at the end. What cannot be read is passed
    /// where `noerror` asks for that, and is zeros with `sync`.
    pub(crate) fn next_block(&mut self, block: &mut [u8], want: usize) -> Done<Option<usize>> {
        let convert = self.operands.convert;
        loop {
            if convert.is_sync && convert.is_no_error {
                block.fill(0);
            }
            let read = match self.read_block(&mut block[..want])? {
                Ok(0) => {
                    self.is_at_end = true;
                    return Ok(None);
                }
                Ok(read) => {
                    self.input.advance(read as u64);
                    if self.operands.input_flags.is_no_cache {
                        self.input.drop_behind(read as u64);
                    }
                    read
                }
                Err(errno) => {
                    if !self.passes_error(errno)? {
                        return Ok(None);
                    }
                    if !(convert.is_sync && self.partial == 0) {
                        continue;
                    }
                    0
                }
            };
            return Ok(Some(self.padded(block, read)));
        }
    }

    /// Counts what was read, and pads it with zeros where every block is to be full.
    fn padded(&mut self, block: &mut [u8], read: usize) -> usize {
        if read == block.len() {
            self.counts.full_in += 1;
            self.partial = 0;
            return read;
        }
        self.counts.partial_in += 1;
        self.partial = read;
        if !self.operands.convert.is_sync {
            return read;
        }
        block[read..].fill(0);
        block.len()
    }

    /// Whether the copy goes on behind a block that could not be read.
    fn passes_error(&mut self, errno: Errno) -> Done<bool> {
        let goes_on = self.operands.convert.is_no_error;
        if !goes_on || self.operands.status != Status::None {
            let name = self.input.shown();
            self.fail(Some(errno), &format!("error reading {name}"));
        }
        if !goes_on {
            self.has_failed = true;
            return Ok(false);
        }
        self.print_summary();
        self.answer_signals()?;
        // A failed read may have left the file anywhere.
        let block = self.operands.input_block_bytes;
        self.input.advance(block.saturating_sub(self.partial as u64));
        if let Some(offset) = self.input.offset
            && let Err(errno) = rustix::fs::seek(self.input.fd(), SeekFrom::Start(offset))
        {
            return Err(self.fail(Some(errno), "cannot seek behind what could not be read"));
        }
        Ok(true)
    }

    /// One block of the input, whole if `fullblock` asks for it.
    pub(crate) fn read_block(&mut self, buffer: &mut [u8]) -> Done<Result<usize, Errno>> {
        let mut filled = 0;
        loop {
            match self.read_some(&mut buffer[filled..])? {
                Ok(0) => return Ok(Ok(filled)),
                Ok(read) => filled += read,
                Err(errno) => return Ok(Err(errno)),
            }
            if filled == buffer.len() || !self.operands.input_flags.is_full_block {
                return Ok(Ok(filled));
            }
        }
    }

    /// One read(2) that signals may interrupt.
    fn read_some(&mut self, buffer: &mut [u8]) -> Done<Result<usize, Errno>> {
        let result = loop {
            self.answer_signals()?;
            match self.input.read(buffer, &mut self.timer, self.signals) {
                Err(Errno::INTR) => {}
                // The read behind a last part of a block starts where direct I/O cannot.
                Err(Errno::INVAL)
                    if self.last_read > 0 && self.last_read < buffer.len() && self.input.is_direct() =>
                {
                    break Ok(0);
                }
                result => break result,
            }
        };
        if let Ok(read) = result {
            self.last_read = read;
        }
        Ok(result)
    }

    /// Writes a block as it was read.
    pub(crate) fn write_as_read(&mut self, block: &[u8]) -> Done<()> {
        self.write_all(block)?;
        if block.len() as u64 == self.operands.input_block_bytes {
            self.counts.full_out += 1;
        } else {
            self.counts.partial_out += 1;
        }
        Ok(())
    }

    /// Adds bytes to the output's block, and writes it whenever it is full.
    pub(crate) fn gather(&mut self, block: &mut [u8], filled: &mut usize, mut bytes: &[u8]) -> Done<()> {
        while !bytes.is_empty() {
            let take = bytes.len().min(block.len() - *filled);
            block[*filled..*filled + take].copy_from_slice(&bytes[..take]);
            (*filled, bytes) = (*filled + take, &bytes[take..]);
            if *filled == block.len() {
                let before = self.counts.written_bytes;
                let written = self.write_all(block);
                self.counts.partial_out += u64::from(written.is_err() && self.counts.written_bytes > before);
                written?;
                self.counts.full_out += 1;
                *filled = 0;
            }
        }
        Ok(())
    }

    /// Writes the rest of the output.
    pub(crate) fn write_partly(&mut self, rest: &[u8]) -> Done<()> {
        let before = self.counts.written_bytes;
        let written = self.write_all(rest);
        self.counts.partial_out += u64::from(self.counts.written_bytes > before);
        written
    }

    /// Writes everything, or says why not.
    fn write_all(&mut self, bytes: &[u8]) -> Done<()> {
        if self.is_output_direct() && (bytes.len() as u64) < self.operands.output_block_bytes {
            self.leave_direct();
        }
        let mut written = 0;
        let mut result = Ok(());
        while result.is_ok() && written < bytes.len() {
            self.answer_signals()?;
            self.ends_in_hole =
                self.is_sparse && bytes.iter().all(|&byte| byte == 0) && self.seeks_past(bytes.len());
            if self.ends_in_hole {
                written = bytes.len();
                break;
            }
            self.pass_gate()?;
            match self.output.write(&bytes[written..], &mut self.timer, self.signals) {
                Ok(0) => result = Err(Errno::NOSPC),
                Ok(some) => written += some,
                Err(Errno::INTR) => {}
                Err(errno) => result = Err(errno),
            }
        }
        self.counts.written_bytes += written as u64;
        self.output.advance(written as u64);
        if self.operands.output_flags.is_no_cache && written > 0 {
            self.output.drop_behind(written as u64);
        }
        match result {
            Err(Errno::PIPE) => Err(Failure::BrokenPipe),
            Err(errno) => {
                let name = self.output.shown();
                Err(self.fail(Some(errno), &format!("error writing {name}")))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Leaves a block of zeros out of a file with positions; others get it.
    fn seeks_past(&mut self, length: usize) -> bool {
        self.is_sparse = i64::try_from(length).is_ok_and(|length| self.output.seek_by(length).is_ok());
        self.is_sparse
    }

    /// A last part of a block cannot be written directly: it goes through the page cache, and is flushed.
    fn leave_direct(&mut self) {
        if let Err(errno) = self.output.turn_off_direct() {
            let name = self.output.shown();
            self.fail(Some(errno), &format!("the last part of {name} cannot go through the page cache"));
        }
        self.must_fsync = true;
    }
}
