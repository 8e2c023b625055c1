//! Everything that was seen of a target, for the permission check and the Record: where it is, what it is called, what uses it.
//! Data only; `examine` fills it in.

use crate::device_number::DeviceNumber;
use crate::identity::{Identity, NoIdentity};
use crate::signature::Signature;
use crate::sim::Simulated;
use crate::uses::{Found, Use};
use rdsk_model::{ExtentEvidence, Target};
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

/// A target and everything that a judgement needs.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The facts for the Record.
    pub target: Target,
    /// What was examined, symlinks resolved.
    pub path: PathBuf,
    /// Where it is.
    pub place: Place,
    /// What `--destroy` would have to say; empty for files and for devices that have no identity.
    pub identities: Vec<Identity>,
    /// What a device calls itself that is no identity, because others may have it or have it.
    pub no_identities: Vec<NoIdentity>,
    /// What uses it, the weightiest first.
    pub uses: Vec<Use>,
    /// What could not be looked at, so that it is not proven to be unused; safe to print.
    pub doubts: Vec<String>,
    /// What lies on a device.
    pub signatures: Vec<Signature>,
    /// How a file lies on its filesystem; `None` where the filesystem does not tell.
    pub allocation: Option<ExtentEvidence>,
}

impl Examined {
    /// A target without identities, signatures and extents.
    pub(crate) fn new(target: Target, path: PathBuf, place: Place, found: Found) -> Self {
        Self {
            target,
            path,
            place,
            identities: Vec::new(),
            no_identities: Vec::new(),
            uses: found.uses,
            doubts: found.doubts,
            signatures: Vec::new(),
            allocation: None,
        }
    }
}
