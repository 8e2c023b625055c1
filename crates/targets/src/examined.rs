//! Everything that was seen of a target, for the permission check and the Record. Data only; `examine` fills it in.

use crate::identity::{Identity, NoIdentity};
use crate::place::Place;
use crate::signature::Signature;
use crate::uses::{Found, Use};
use rdsk_model::{ExtentEvidence, Target};
use std::path::PathBuf;

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
