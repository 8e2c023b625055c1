//! Tells the page cache to drop what `nocache` covers. Which ranges these are is decided in `no_cache.rs`.

use crate::no_cache::{DROP_BYTES, Gathered, Range, Stands, part, rest};
use crate::side::Side;
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;

impl Side {
    /// Adds what was transferred, and drops whole units of it.
    ///
    /// # Errors
    /// Where the file has no positions.
    pub(crate) fn drop_cache(&mut self, transferred: u64) -> Result<(), Errno> {
        let gathered = self.gathered.bytes.saturating_add(transferred);
        self.gathered.bytes = gathered % DROP_BYTES;
        let whole = gathered - self.gathered.bytes;
        if whole == 0 {
            return Ok(());
        }
        let end = self.end(whole + self.gathered.bytes)?;
        self.advise(part(end, whole, self.gathered.bytes));
        Ok(())
    }

    /// Drops what is left.
    ///
    /// # Errors
    /// Where the file has no positions.
    pub(crate) fn drop_rest_of_cache(&mut self) -> Result<(), Errno> {
        let Gathered { bytes, is_to_end, .. } = self.gathered;
        if bytes == 0 && !is_to_end {
            return Ok(());
        }
        let end = self.end(0)?;
        self.advise(if is_to_end { rest(end, bytes) } else { part(end, bytes, 0) });
        Ok(())
    }

    fn end(&mut self, advance: u64) -> Result<u64, Errno> {
        if self.gathered.stands == Stands::AtOffset {
            return self.offset.map_err(|_| Errno::SPIPE);
        }
        let end = match self.gathered.output_end {
            None => rustix::fs::seek(self.fd(), SeekFrom::Current(0)),
            Some(end) => end.map(|end| end.saturating_add(advance)),
        };
        self.gathered.output_end = Some(end);
        end
    }

    /// It is advice: whether the kernel takes it is not asked.
    fn advise(&self, range: Option<Range>) {
        if let Some(Range { from, length }) = range {
            let _ = rustix::fs::fadvise(self.fd(), from, length, Advice::DontNeed);
        }
    }
}
