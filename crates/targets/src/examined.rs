//! Everything that was seen of a target, for the permission check and the Record: where it is, what it is called, what uses it.
//! Data only; `examine` fills it in.

use crate::identity::{Identity, NoIdentity};
use crate::labels::signature::Signature;
use crate::machine::Attachment;
use crate::sim::Simulated;
use crate::space::growth::{Growth, Rewriting};
use crate::uses::{InUse, Use};
use rdsk_model::{ExtentEvidence, Target};
use rdsk_sys::device_number::DeviceNumber;
use std::path::PathBuf;

/// Where a target is, and how it is distinguished from anything that takes its name later.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A directory in which a test file can be created.
    Directory {
        /// Its path, symlinks resolved.
        path: PathBuf,
        /// `st_dev`: directories with the same one share their free bytes.
        dev: u64,
        /// Bytes available to an ordinary user.
        free_bytes: u64,
        /// Size of the filesystem.
        total_bytes: u64,
        /// What a thin pool, or what a sparse file grows in, below it can still provide, keeping a tenth free; `None` if nothing
        /// below it limits what is written.
        pool_spare_bytes: Option<u64>,
        /// What its filesystem does with blocks that are written again.
        rewriting: Rewriting,
    },
    /// A regular file.
    File {
        /// `st_dev`.
        dev: u64,
        /// `st_ino`.
        ino: u64,
    },
    /// A block device.
    Block {
        /// Its number.
        major_minor: DeviceNumber,
        /// Which disk has the number; `None` if sysfs does not know it.
        attachment: Option<Attachment>,
    },
    /// A LUN of a simulated system.
    Sim(Simulated),
}

impl Place {
    /// Whether it is the block device of this number.
    pub(crate) fn is_device(&self, number: DeviceNumber) -> bool {
        matches!(self, Self::Block { major_minor, .. } if *major_minor == number)
    }
}

/// A target and everything that the permission check needs.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The facts for the Record.
    pub target: Target,
    /// What was examined, symlinks resolved.
    pub path: PathBuf,
    /// Where it is.
    pub place: Place,
    /// Values that `--destroy` accepts; empty for files and for devices without an identity.
    pub identities: Vec<Identity>,
    /// Names of the device that are not identities, because other devices have them or may have them.
    pub no_identities: Vec<NoIdentity>,
    /// What uses it, the most serious first.
    pub uses: Vec<Use>,
    /// What could not be examined, so that it is not proven to be unused; safe to print.
    pub doubts: Vec<String>,
    /// Signatures found on a device.
    pub signatures: Vec<Signature>,
    /// Signatures found on its partitions and on the disk around it, each with the name that sysfs has for that.
    pub labels_around: Vec<(String, Signature)>,
    /// How a file is allocated on its filesystem; `None` if the filesystem does not report it.
    pub allocation: Option<ExtentEvidence>,
    /// What writing to it takes of, besides itself: [`crate::check_growth`].
    pub growths: Vec<Growth>,
    /// How many of its bytes a run writes at most, each once, or what the test file takes; `None` if that is not known, and then
    /// all of them may be.
    pub write_bytes: Option<u64>,
}

impl Examined {
    /// What a test file of `size_bytes` takes of the filesystem of this directory when a run overwrites `again_bytes` of it;
    /// [`u64::MAX`] if there is no limit.
    pub fn test_file_takes(&self, size_bytes: u64, again_bytes: u64) -> u64 {
        match &self.place {
            Place::Directory { rewriting, .. } => rewriting.taken_bytes(size_bytes, again_bytes),
            Place::File { .. } | Place::Block { .. } | Place::Sim(_) => size_bytes,
        }
    }

    /// A target without identities, signatures and extents.
    pub(crate) fn new(target: Target, path: PathBuf, place: Place, usage: InUse) -> Self {
        Self {
            target,
            path,
            place,
            identities: Vec::new(),
            no_identities: Vec::new(),
            uses: usage.uses,
            doubts: usage.doubts,
            signatures: Vec::new(),
            labels_around: Vec::new(),
            allocation: None,
            growths: Vec::new(),
            write_bytes: None,
        }
    }
}
