//! The room `targets`: files, block devices and simulated disks are examined, the requested access is authorized, and
//! only then are they claimed. It is the only room that opens anything for writing, and never before that check;
//! examining opens for reading only.
//!
//! A name goes through the folders in this order: `machine` is what is there, `identity` which device the name means, `facts` what
//! is known of it, `uses`, `labels` and `space` what speaks against writing to it. `examine` puts all of this together,
//! `authorize` decides, `claim` opens, and `testfile` makes the file that a directory is measured by.

mod authorize;
mod claim;
mod device_hold;
mod display;
mod error;
mod examine;
mod examined;
mod facts;
mod id;
mod identity;
mod labels;
mod machine;
mod permission;
mod probe;
mod recheck;
mod roots;
mod sim;
mod space;
mod take_device;
mod testfile;
#[cfg(test)]
mod tests;
mod tools;
mod uses;
mod within;
mod witness;

pub use authorize::authorize;
pub use claim::{Claim, OpenMode, REMOVAL_TAKES, claim};
pub use device_hold::DeviceHold;
pub use error::TargetError;
pub use examine::examine;
pub use examined::{Examined, Place};
pub use facts::arrays_at_end::arrays_at_end;
pub use facts::disk_commanded_by;
pub use id::new_id;
pub use identity::{Identity, IdentityKind, NoIdentity};
pub use labels::signature::Signature;
pub use machine::attachment::{Attachment, Mark};
pub use permission::{Access, Overwrite, Permission, Refusal, Sharing};
pub use rdsk_sys::device_number::DeviceNumber;
pub use roots::{Roots, ToolSource};
pub use sim::{SIM_PREFIX, Simulated, each_lun, load_system};
pub use space::fills_up::{check_growth, writable_bytes};
pub use space::growth::{Growth, Rewriting};
pub use testfile::orphan::{Orphans, RemovedOrphan, remove_orphans};
pub use testfile::registry::{TestFileLeft, remove_all_test_files_now, test_files_left};
pub use testfile::shared::{SharedFile, await_laid_out, may_be_laid_out, remove_after};
pub use testfile::writer::{CreatedTestFile, TestFileProgress, TestFileSize};
pub use testfile::{TestFileOptions, create_test_file, plan_test_file, share_space};
pub use uses::{Labelled, Use, UseKind};
pub use witness::Witness;
