//! What the members' counters and the kernel say of an array's layout: plain data.

use super::layouts::{Level, Rotation};

/// A layout that the counters agree with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberLayout {
    /// The level, if only one agrees.
    pub level: Option<Level>,
    /// How its parity moves, if only one way agrees.
    pub rotation: Option<Rotation>,
    /// Bytes on one member before the next; `None` if no boundary was seen, as with mirrors.
    pub chunk_bytes: Option<u64>,
    /// Data of one full stripe; `None` if the counters agree with none, or with several.
    pub stripe_bytes: Option<u64>,
    /// Where the first full stripe begins, or the first chunk; `None` if it makes no difference or is not known.
    pub start_offset_bytes: Option<u64>,
    /// Members that were reached at all.
    pub members: u64,
    /// Members of each stripe that hold parity; `None` if it is not known.
    pub parity_members: Option<u64>,
    /// Members that hold the same data; 1 without copies, `None` if it is not known.
    pub copies: Option<u64>,
    /// Writes during which some member was read.
    pub writes_with_reads: u64,
    /// Writes that were made for this.
    pub writes: u64,
    /// Bytes that members were read for the sake of writes.
    pub caused_read_bytes: u64,
    /// Whether the counters leave several full stripes open, and the kernel's words decided between them.
    pub needs_words: bool,
    /// The reasons, one sentence each.
    pub evidence: Vec<String>,
    /// Why nothing of this is sure; empty if it is.
    pub doubts: Vec<String>,
    /// Whether the kernel says the same, and in which words; `None` if it says nothing.
    pub declared: Option<Declared>,
}

impl MemberLayout {
    /// Whether what was counted holds beyond doubt.
    pub fn is_sure(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// What the kernel says, held against what was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Whether nothing that it says was counted otherwise.
    pub agrees: bool,
    /// A sentence with its words.
    pub text: String,
}
