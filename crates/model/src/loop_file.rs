//! What a loop device of a stack is made of: its backing file, where that lies, and how much of it memory held. Raw facts; it
//! judges nothing.

use crate::evidence::{ExtentEvidence, PageCache};
use serde::{Deserialize, Serialize};

/// The backing file of one loop device below a target, over the visits of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopFile {
    /// Index of the target.
    pub target: u32,
    /// Kernel name of the loop device, one of [`crate::Evidence::device`].
    pub device: String,
    /// Path of the file, or of the device that it is; untrusted text.
    pub file: String,
    /// Type of its filesystem as in mountinfo: `ext4`, `tmpfs`; `None` if it is a device, or unknown.
    pub filesystem: Option<String>,
    /// Whether the loop device passes the file's page cache (`loop/dio`).
    pub direct_io: Option<bool>,
    /// Kernel name of the device that carries the file, whose counters are in [`crate::Evidence::device`] too; `None` if the
    /// filesystem has none.
    pub below: Option<String>,
    /// Bytes of the file that the loop device shows.
    pub size_bytes: u64,
    /// How these bytes lie on the filesystem at the end of the latest visit, without anything written out for the question;
    /// `None` where FIEMAP is not supported.
    pub extents: Option<ExtentEvidence>,
    /// How much of them was in the page cache, summed over visits.
    pub page_cache: Option<PageCache>,
}
