//! Memory as `/proc/meminfo` reports it, of the whole machine. It says nothing of one file or one process.

use crate::{ObserveError, read_text};
use std::path::Path;

/// The lines of `/proc/meminfo` that matter to I/O, in bytes; `None` where the kernel does not print one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// `MemTotal`: memory that the kernel can use.
    pub total_bytes: Option<u64>,
    /// `MemAvailable`: what could be had without swapping.
    pub available_bytes: Option<u64>,
    /// `Cached`: the page cache without swap cache, memory-backed files included.
    pub cached_bytes: Option<u64>,
    /// `Dirty`: waiting to be written.
    pub dirty_bytes: Option<u64>,
    /// `Writeback`: being written.
    pub writeback_bytes: Option<u64>,
}

impl Meminfo {
    /// Reads `<proc>/meminfo`.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read(proc: &Path) -> Result<Self, ObserveError> {
        Ok(Self::parse(&read_text(&proc.join("meminfo"))?))
    }

    /// Reads its text. The kernel's `kB` are 1024 bytes.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Self {
            total_bytes: field("MemTotal"),
            available_bytes: field("MemAvailable"),
            cached_bytes: field("Cached"),
            dirty_bytes: field("Dirty"),
            writeback_bytes: field("Writeback"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_are_1024_bytes() {
        let text = "MemTotal:        4030276 kB\nMemFree: 1 kB\nSwapCached:           7 kB\nCached: 20 kB\n\
                    Dirty:                40 kB\nWriteback:             0 kB\nWritebackTmp:          9 kB\n";
        assert_eq!(
            Meminfo::parse(text),
            Meminfo {
                total_bytes: Some(4_030_276 * 1024),
                available_bytes: None,
                cached_bytes: Some(20_480),
                dirty_bytes: Some(40_960),
                writeback_bytes: Some(0),
            }
        );
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = Meminfo::read(Path::new("/proc")).unwrap();
        assert!(memory.total_bytes.unwrap() > 16 << 20);
        assert!(memory.available_bytes < memory.total_bytes);
        assert!(
            Meminfo::read(Path::new("/nonexistent"))
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/meminfo")
        );
    }
}
