//! Reads of a copy: whole blocks and parts, waits that a signal ends, and what comes after a read that failed.

use crate::copier::{Copier, Done};
use crate::operands::Status;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// How a copy goes on after a read that failed.
pub(crate) enum AfterError {
    End,
    Next,
    /// The block that could not be read is written as zeros.
    Zeros,
}

impl Copier<'_> {
    pub(crate) fn after_read_error(&mut self, errno: Errno, partial: usize) -> Done<AfterError> {
        let goes_on = self.operands.convert.is_no_error;
        if !goes_on || self.operands.status != Status::None {
            let name = self.input.quoted();
            self.tell(errno, &format!("error reading {name}"));
        }
        if !goes_on {
            self.has_failed = true;
            return Ok(AfterError::End);
        }
        self.print_summary();
        self.process_signals()?;
        let bad = self.operands.input_block_bytes.saturating_sub(partial as u64);
        // As dd does it, without being asked for.
        let _ = self.input.drop_cache(bad);
        if !self.pass_bad_block(bad) {
            self.has_failed = true;
            self.input_is_lost = true;
        }
        Ok(if self.operands.convert.is_sync && partial == 0 { AfterError::Zeros } else { AfterError::Next })
    }

    /// Moves past a block that could not be read, wherever the failed read left the file.
    fn pass_bad_block(&mut self, bytes: u64) -> bool {
        if self.input_is_lost || matches!(self.input.offset, Err(Errno::SPIPE)) {
            return true;
        }
        if self.input.offset.is_ok() {
            self.input.advance(bytes);
        }
        let passed = self.input.offset.and_then(|wanted| {
            let offset = rustix::fs::seek(self.input.fd(), SeekFrom::Current(0))?;
            let ahead =
                i64::try_from(i128::from(wanted) - i128::from(offset)).map_err(|_| Errno::OVERFLOW)?;
            let is_usual = u64::try_from(ahead).is_ok_and(|ahead| ahead <= bytes);
            if !is_usual && self.operands.status != Status::None {
                self.terminal.say("warning: invalid file offset after failed read");
            }
            if ahead == 0 { Ok(offset) } else { rustix::fs::seek(self.input.fd(), SeekFrom::Current(ahead)) }
        });
        let Err(errno) = passed else { return true };
        let name = self.input.plain();
        self.tell(errno, &format!("{name}: cannot seek"));
        false
    }

    /// One block of the input, whole if `fullblock` asks for it.
    pub(crate) fn read_block(&mut self, buffer: &mut [u8]) -> Done<Result<usize, Errno>> {
        if !self.operands.input_flags.is_full_block {
            return self.read_some(buffer);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_some(&mut buffer[filled..])? {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(errno) => return Ok(Err(errno)),
            }
        }
        Ok(Ok(filled))
    }

    /// The same of the output, whose skipped part is read where it has no positions.
    pub(crate) fn read_output(&mut self, buffer: &mut [u8]) -> Done<Result<usize, Errno>> {
        let mut filled = 0;
        while filled < buffer.len() {
            self.process_signals()?;
            // No poll(2) before: one end of a pipe never becomes readable, and a read tells that at once.
            match rustix::io::read(self.output.fd(), &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => continue,
                Err(errno) => return Ok(Err(errno)),
            }
            if !self.operands.input_flags.is_full_block {
                break;
            }
        }
        Ok(Ok(filled))
    }

    /// One read(2) that signals may interrupt.
    fn read_some(&mut self, buffer: &mut [u8]) -> Done<Result<usize, Errno>> {
        let result = loop {
            self.process_signals()?;
            match self.input.read(buffer, &mut self.stamps, self.signals.wake.as_ref()) {
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
        let Ok(read) = result else { return Ok(result) };
        if read > 0 && read < buffer.len() {
            self.process_signals()?;
        }
        if read > 0 && self.warns_of_partial_reads && self.last_read > 0 && self.last_read < buffer.len() {
            let bytes = self.last_read;
            if self.operands.status != Status::None {
                let noun = if bytes == 1 { "byte" } else { "bytes" };
                self.terminal
                    .say(&format!("warning: partial read ({bytes} {noun}); suggest iflag=fullblock"));
            }
            self.warns_of_partial_reads = false;
        }
        self.last_read = read;
        Ok(result)
    }
}
