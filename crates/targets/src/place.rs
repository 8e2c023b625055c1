//! Where a target is: a directory, a file, a block device or a simulated LUN, each with what tells it from whatever takes its
//! name later. Data only.

use crate::device_number::DeviceNumber;
use crate::sim::Simulated;
use std::path::PathBuf;

/// Where a target is, and how it is told apart from whatever takes its name later.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A directory, in which a test file can be made.
    Directory {
        /// Its path, symlinks resolved.
        path: PathBuf,
        /// What an ordinary user may still write.
        free_bytes: u64,
        /// Size of the filesystem.
        total_bytes: u64,
        /// What a thin pool below may give, of which a tenth stays free; `None` where there is none.
        pool_spare_bytes: Option<u64>,
    },
    /// A regular file.
    File {
        /// `st_dev`.
        dev: u64,
        /// `st_ino`.
        ino: u64,
        /// Whether rdsk made it for this run.
        own: bool,
    },
    /// A block device.
    Block {
        /// Its number.
        major_minor: DeviceNumber,
        /// The kernel's count of attachments of its disk; `None` before Linux 5.15.
        attachment: Option<Attachment>,
    },
    /// A LUN of a simulated system.
    Sim(Simulated),
}

/// Which attachment of a disk was examined. The number of a loop device stays when it gets another file, and so does that
/// of a drive with another medium; the kernel's count (`diskseq`) does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The whole disk, as sysfs spells it.
    pub disk: String,
    /// The count.
    pub sequence: u64,
}
