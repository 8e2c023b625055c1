//! A copy of `rdsk dd`: its operands, its two ends, and what each run of it did and took. It holds data and draws nothing.

use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// What an end of a copy is.
    EndKind {
        /// A regular file.
        File = "file",
        /// A block device.
        Block = "block",
        /// `/dev/zero`.
        Zero = "zero",
        /// `/dev/null`.
        Null = "null",
        /// `/dev/random` or `/dev/urandom`.
        Random = "random",
        /// Another character device.
        Character = "character",
        /// A pipe.
        Pipe = "pipe",
        /// A socket.
        Socket = "socket",
        /// A terminal.
        Terminal = "terminal",
        /// A directory, which cannot be read.
        Directory = "directory",
    }
);
words!(
    /// Who made the data of a copy stable.
    StableBy {
        /// The operands did: `conv=fsync`, `conv=fdatasync`, `oflag=sync` or `oflag=dsync`.
        Operands = "operands",
        /// An fdatasync(2) of rdsk after dd's last line.
        Rdsk = "rdsk",
        /// None: the output is no storage, or it could not be flushed.
        Nobody = "nobody",
    }
);

/// The input or the output of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyEnd {
    /// What the user called it; untrusted text.
    pub name: String,
    /// What it is.
    pub kind: EndKind,
    /// Its target in the Record; `None` if it is no file and no block device.
    pub target: Option<u32>,
    /// Bytes per read or write, as requested.
    pub block_bytes: u64,
}

/// One run of a copy. Times count from the start, just before the first read; bytes and blocks are those of dd's lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub struct CopyRun {
    /// Its number from 0, among the runs of its line.
    pub round: u32,
    /// When it began, from the start of rdsk.
    pub start_ns: u64,
    /// Time to open both ends and truncate the output, before the start.
    pub open_ns: u64,
    /// Time in read(2); `None` where an earlier version did not know it.
    pub read_ns: Option<u64>,
    /// Time in write(2), likewise.
    pub write_ns: Option<u64>,
    /// Time in the flush that the operands ask for.
    pub flush_ns: u64,
    /// Until the last write or that flush returned.
    pub to_return_ns: u64,
    /// Until both ends were closed: the time in dd's line.
    pub to_close_ns: u64,
    /// Until the data was on stable storage; `None` if that is not known.
    pub to_stable_ns: Option<u64>,
    /// Who saw to that.
    pub stable_by: StableBy,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub full_blocks_in: u64,
    pub partial_blocks_in: u64,
    pub full_blocks_out: u64,
    pub partial_blocks_out: u64,
    /// Whether dd would end with 0.
    pub is_complete: bool,
}

/// One command line of dd, and its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Copy {
    /// The operands as given.
    pub operands: Vec<String>,
    /// What was read.
    pub input: CopyEnd,
    /// What was written.
    pub output: CopyEnd,
    /// The runs, in the order of time.
    pub runs: Vec<CopyRun>,
}
