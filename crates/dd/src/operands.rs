//! What the operands of a dd command line ask for. Plain data; it parses and opens nothing.

use rustix::fs::OFlags;
use std::ffi::OsString;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// The file to read; standard input if absent.
    pub input: Option<OsString>,
    /// The file to write; standard output if absent.
    pub output: Option<OsString>,
    /// Bytes per read.
    pub input_block_bytes: u64,
    /// Bytes per write.
    pub output_block_bytes: u64,
    /// Whether `bs` was given: every block is written as it was read.
    pub is_one_block: bool,
    /// What is skipped of the input.
    pub skip: Amount,
    /// What is skipped of the output.
    pub seek: Amount,
    /// How much is copied; all if absent.
    pub count: Option<Amount>,
    /// Flags of the input.
    pub input_flags: Flags,
    /// Flags of the output.
    pub output_flags: Flags,
    /// Conversions.
    pub convert: Conversions,
    /// What is printed.
    pub status: Status,
}

/// Whole blocks and the bytes beyond them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Whole blocks.
    pub blocks: u64,
    /// Bytes after them, fewer than a block.
    pub bytes: u64,
}

impl Amount {
    /// Bytes of all; nothing if they are too many.
    pub fn total(self, block_bytes: u64) -> Option<u64> {
        self.blocks.checked_mul(block_bytes)?.checked_add(self.bytes)
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.blocks == 0 && self.bytes == 0
    }
}

/// `iflag` or `oflag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Those of open(2).
    pub open: OFlags,
    /// Reads until a block is full.
    pub is_full_block: bool,
    /// Drops what was read or written from the page cache.
    pub is_no_cache: bool,
    /// Whether these are in bytes: `count`, `skip`, `seek`.
    pub(crate) in_bytes: [bool; 3],
}

impl Default for Flags {
    fn default() -> Self {
        Self { open: OFlags::empty(), is_full_block: false, is_no_cache: false, in_bytes: [false; 3] }
    }
}

/// `conv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Goes on after read errors.
    pub is_no_error: bool,
    /// Pads every input block with zeros.
    pub is_sync: bool,
    /// Seeks rather than writes blocks of zeros.
    pub is_sparse: bool,
    /// Does not truncate the output.
    pub is_no_truncate: bool,
    /// Does not create the output.
    pub is_no_create: bool,
    /// Fails if the output exists.
    pub is_exclusive: bool,
    /// Flushes data and metadata at the end.
    pub is_fsync: bool,
    /// Flushes data at the end.
    pub is_fdatasync: bool,
}

/// What is printed beside errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Counts and the line with time and rate.
    #[default]
    All,
    /// That, and a line every second.
    Progress,
    /// Counts only.
    NoTransfer,
    /// Nothing.
    None,
}
