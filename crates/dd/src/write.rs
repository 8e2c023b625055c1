//! Writes of a copy: blocks as they were read or gathered, zeros that are sought past, and the end of a file that they leave
//! out.

use crate::buffer::Buffer;
use crate::copier::{BrokenPipe, Copier, Done, Failure};
use crate::operands::Status;
use rustix::io::Errno;

impl Copier<'_> {
    /// Writes a block as it was read.
    pub(crate) fn write_input_block(&mut self, block: &[u8]) -> Done<()> {
        self.write_all(block, "error writing")?;
        if block.len() as u64 == self.operands.input_block_bytes {
            self.counts.full_out += 1;
        } else {
            self.counts.partial_out += 1;
        }
        Ok(())
    }

    /// Adds bytes to the output's block, and writes it whenever it is full.
    pub(crate) fn fill_output(
        &mut self,
        output: &mut Buffer,
        filled: &mut usize,
        mut bytes: &[u8],
    ) -> Done<()> {
        let block = output.bytes();
        while !bytes.is_empty() {
            let take = bytes.len().min(block.len() - *filled);
            block[*filled..*filled + take].copy_from_slice(&bytes[..take]);
            (*filled, bytes) = (*filled + take, &bytes[take..]);
            if *filled == block.len() {
                let before = self.counts.written_bytes;
                if let Err(failure) = self.write_all(block, "writing to") {
                    self.counts.partial_out += u64::from(self.counts.written_bytes > before);
                    return Err(if failure == Failure::Told { Failure::Quit } else { failure });
                }
                self.counts.full_out += 1;
                *filled = 0;
            }
        }
        Ok(())
    }

    pub(crate) fn write_rest(&mut self, rest: &[u8]) -> Done<()> {
        if rest.is_empty() {
            return Ok(());
        }
        let before = self.counts.written_bytes;
        let written = self.write_all(rest, "error writing");
        self.counts.partial_out += u64::from(self.counts.written_bytes > before);
        written
    }

    /// Writes everything, or tells why not.
    pub(crate) fn write_all(&mut self, bytes: &[u8], action: &str) -> Done<()> {
        let block = self.operands.output_block_bytes;
        if self.operands.output_flags.open.contains(rustix::fs::OFlags::DIRECT)
            && (bytes.len() as u64) < block
        {
            self.leave_direct();
        }
        let mut written = 0;
        let result = loop {
            if written == bytes.len() {
                break Ok(());
            }
            self.process_signals()?;
            self.last_write_was_seek = false;
            if self.is_sparse && bytes.iter().all(|&byte| byte == 0) {
                if self.output.seek_by(bytes.len() as u64).is_ok() {
                    self.last_write_was_seek = true;
                    written = bytes.len();
                    break Ok(());
                }
                self.is_sparse = false;
            }
            match self.output.write(&bytes[written..], &mut self.stamps, self.signals.wake.as_ref()) {
                Ok(0) => break Err(Errno::NOSPC),
                Ok(some) => written += some,
                Err(Errno::INTR) => {}
                Err(errno) => break Err(errno),
            }
        };
        self.counts.written_bytes += written as u64;
        self.output.advance(written as u64);
        if self.operands.output_flags.is_no_cache && written > 0 {
            let _ = self.output.drop_cache(written as u64);
        }
        match result {
            Ok(()) => Ok(()),
            Err(Errno::PIPE) if self.signals.broken_pipe == BrokenPipe::Ends => Err(Failure::BrokenPipe),
            Err(errno) => {
                let name = self.output.quoted();
                self.tell(errno, &format!("{action} {name}"));
                Err(Failure::Told)
            }
        }
    }

    /// A last part of a block cannot be written directly: it goes through the page cache, and is flushed and dropped.
    fn leave_direct(&mut self) {
        if let Err(errno) = self.output.turn_off_direct()
            && self.operands.status != Status::None
        {
            let name = self.output.quoted();
            self.tell(errno, &format!("failed to turn off O_DIRECT: {name}"));
        }
        self.must_fsync = true;
        self.output.gathered.is_to_end = true;
        // Where the last part begins is remembered for the end.
        let _ = self.output.drop_rest_of_cache();
    }

    /// A file that ends with blocks that were sought past is as long as if they had been written.
    pub(crate) fn extend_after_seek(&mut self) -> Done<()> {
        if !self.last_write_was_seek {
            return Ok(());
        }
        let Ok(stat) = rustix::fs::fstat(self.output.fd()) else { return Ok(()) };
        let is_regular =
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile;
        let Ok(end) = self.output.seek_by(0) else { return Ok(()) };
        if !is_regular || u64::try_from(stat.st_size).is_ok_and(|size| size >= end) {
            return Ok(());
        }
        rustix::fs::ftruncate(self.output.fd(), end).map_err(|errno| {
            let name = self.output.quoted();
            self.tell(errno, &format!("failed to truncate to {end} bytes in output file {name}"));
            Failure::Told
        })
    }
}
