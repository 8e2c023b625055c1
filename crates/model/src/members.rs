//! The members of an array as their counters show them: the figures, and the traits of whoever can read them and of whoever
//! decides by them where to ask next. It reads nothing itself.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What one member of an array was asked.
///
/// There is one of these for each I/O and each member, so a Record has the four figures as a list, in the order of the
/// fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub struct MemberIo {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl From<[u64; 4]> for MemberIo {
    fn from([reads, read_bytes, writes, write_bytes]: [u64; 4]) -> Self {
        Self { reads, read_bytes, writes, write_bytes }
    }
}

impl From<MemberIo> for [u64; 4] {
    fn from(io: MemberIo) -> Self {
        [io.reads, io.read_bytes, io.writes, io.write_bytes]
    }
}

impl MemberIo {
    /// What was asked since an earlier reading of the same counters; 0 where they went back.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }
}

/// One request at a position that was chosen as the run went on, and what each member was asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenIo {
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// From submission to completion, in ns.
    pub latency_ns: u64,
    /// One entry per member, in an order that stays the same: reads, bytes read, writes, bytes written.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<[u64; 4]>"))]
    pub members: Vec<MemberIo>,
}

/// What follows from the requests so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPosition {
    /// This request is next.
    Ask {
        /// First byte.
        offset_bytes: u64,
        /// Size in bytes.
        bytes: u64,
    },
    /// Nothing more is to be asked, and the members' counters told what they can.
    Told,
    /// Nothing more is to be asked: the counters tell nothing here.
    Untold,
}

/// Someone who chooses each position from what the members were asked at the earlier ones.
pub trait PositionChooser: fmt::Debug + Sync {
    /// What follows from all requests so far, in their order; the same for the same requests.
    fn next(&self, seen: &[ChosenIo]) -> NextPosition;
}

/// Someone who can read the counters of an array's members, between one I/O and the next.
pub trait MemberCounters: fmt::Debug + Sync {
    /// How many members there are; the same at every call.
    fn count(&self) -> usize;
    /// Reads the counters as they are now, one entry per member; `into` has [`Self::count`] entries. Allocates nothing. An
    /// entry that cannot be read stays as it is.
    fn read(&self, into: &mut [MemberIo]);
}
